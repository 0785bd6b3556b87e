"""tf.autograph: Runnel does not convert Python's if and for, so these functions only exist for programs that call them."""

import types


def do_not_convert(func=None):
    """A decorator that returns the function unchanged."""
    return func if func is not None else lambda decorated: decorated


def set_verbosity(level, alsologtostdout=False):
    """Does nothing: there is no conversion to report."""


def trace(*args):
    """Prints its arguments while a graph is being built."""
    print(*args)


experimental = types.SimpleNamespace(do_not_convert=do_not_convert)
