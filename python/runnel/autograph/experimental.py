"""tf.autograph.experimental."""

import enum

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(__name__, "autograph.conversion: do_not_convert set_loop_options")


class Feature(enum.Enum):
    """Optional parts of the conversion. Runnel always converts asserts and comparisons, and never lists."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls):
        """Returns all features."""
        return tuple(cls.__members__.values())

    @classmethod
    def all_but(cls, exclude):
        """Returns all features but one, or but several."""
        excluded = exclude if isinstance(exclude, (list, tuple, set)) else (exclude,)
        return tuple(feature for feature in cls.all() if feature not in excluded and feature is not cls.ALL)
