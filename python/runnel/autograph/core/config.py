"""tensorflow.python.autograph.core.config: the rules by which impl.conversion decides. The first that matches holds."""

import types

from runnel.autograph import conversion
from runnel.autograph.core.config_lib import Action, Convert, DoNotConvert  # noqa: F401

CONVERSION_RULES = tuple(DoNotConvert(name) for name in sorted(conversion.LIBRARIES | conversion.STANDARD))

_OWN_RULES = CONVERSION_RULES


def are_changed():
    """Tells whether someone has set other rules than those of Runnel."""
    return CONVERSION_RULES is not _OWN_RULES


def action_for(module_name):
    """Returns what the rules want of a module, given by name."""
    if isinstance(module_name, str):
        module = types.SimpleNamespace(__name__=module_name)
        for rule in CONVERSION_RULES:
            action = rule.get_action(module)
            if action is not Action.NONE:
                return action
    return Action.NONE
