"""Sets of options whose values are checked: tensorflow.python.data.util.options.

An option is a property that `create_option` makes. It keeps what was set; `merge_options` lets later sets win.
"""

import logging


class OptionsBase:
    """A set of options, empty at first."""

    def __init__(self):
        object.__setattr__(self, "_options", {})
        object.__setattr__(self, "_mutable", True)

    def __eq__(self, other):
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in {*self._options, *other._options})

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name, value):
        if not self._mutable:
            raise ValueError("Mutating `tf.data.Options()` returned by `tf.data.Dataset.options()` has no effect. Use "
                             "`tf.data.Dataset.with_options(options)` to set or update dataset options.")
        if not hasattr(self, name):
            raise AttributeError("Cannot set the property %s on %s." % (name, type(self).__name__))
        object.__setattr__(self, name, value)

    def _set_mutable(self, mutable):
        """Allows changes, or forbids them."""
        object.__setattr__(self, "_mutable", mutable)
        for value in self._options.values():
            if isinstance(value, OptionsBase):
                value._set_mutable(mutable)

    def _to_proto(self):
        raise NotImplementedError("%s._to_proto()" % type(self).__name__)

    def _from_proto(self, pb):
        raise NotImplementedError("%s._from_proto()" % type(self).__name__)


def create_option(name, ty, docstring, default_factory=lambda: None):
    """Returns a property of a set of options: a value of type `ty`, by default what `default_factory` returns."""
    def get(options):
        if name not in options._options:
            options._options[name] = default_factory()
        return options._options[name]

    def put(options, value):
        if not isinstance(value, ty):
            raise TypeError("Property \"%s\" must be of type %s, got: %s (type: %s)" % (name, ty, value, type(value)))
        options._options[name] = value
    return property(get, put, None, docstring)


def merge_options(*options_list):
    """Returns a new set with the options of all sets; where several have one, the last wins."""
    if not options_list:
        raise ValueError("At least one options should be provided")
    kind = type(options_list[0])
    for options in options_list:
        if not isinstance(options, kind):
            raise TypeError("Could not merge incompatible options of type %s and %s." % (type(options), kind))
    if not issubclass(kind, OptionsBase):
        raise TypeError("All options to be merged should inherit from `OptionsBase` but found option of type %s which does not." % kind)
    defaults, made = kind(), kind()
    for options in options_list:
        for name in list(options._options):
            _merge_one(made, name, getattr(options, name), getattr(defaults, name))
    return made


def _merge_one(made, name, new, default):
    old = getattr(made, name)
    if new in (default, old):
        return
    if isinstance(old, OptionsBase) and isinstance(new, OptionsBase):
        new = merge_options(old, new)
    elif name == "framework_type" and old != default:
        new = sorted({*old, *new})
    elif old != default:
        logging.warning("Changing the value of option %s from %r to %r.", name, old, new)
    setattr(made, name, new)
