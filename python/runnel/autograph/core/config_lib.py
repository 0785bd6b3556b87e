"""Rules that say of modules whether their functions are converted."""

import enum


class Action(enum.Enum):
    """What a rule wants."""

    NONE = 0
    CONVERT = 1
    DO_NOT_CONVERT = 2


class Rule:
    """A rule for a module and those below it."""

    _action = Action.NONE

    def __init__(self, module_prefix):
        self._prefix = module_prefix

    def matches(self, module_name):
        """Tells whether a module is meant."""
        return module_name == self._prefix or module_name.startswith(self._prefix + ".")

    def get_action(self, module):
        """Returns what is wanted of a module."""
        return self._action if self.matches(module.__name__) else Action.NONE

    def __str__(self):
        return "%s rule for %s" % (type(self).__name__, self._prefix)


class DoNotConvert(Rule):
    """Functions of the module run as they are."""

    _action = Action.DO_NOT_CONVERT


class Convert(Rule):
    """Functions of the module are converted, whatever later rules say."""

    _action = Action.CONVERT
