"""tensorflow.python.autograph.operators.variables: names that may have no value."""

from runnel.autograph import state


class Undefined(state.Undefined):
    """The value of a name before it is assigned; so are its attributes and elements."""

    symbol_name = property(lambda self: self.name)

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self


class UndefinedReturnValue:
    """What a function without a return statement returns."""


def ld(v):
    """Returns a value that is about to be used. Raises UnboundLocalError if it is undefined."""
    return state.load(v)


def ldu(load_v, name):
    """Returns load_v(), or Undefined if there is no such value."""
    try:
        return load_v()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)
