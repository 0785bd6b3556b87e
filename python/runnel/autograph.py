"""tf.autograph: Python's own ifs and loops are not converted here; what says so of functions is."""

import types


def do_not_convert(func=None):
    """A decorator of functions that are taken as they are, as all are."""
    return func if func is not None else lambda decorated: decorated


def set_verbosity(level, alsologtostdout=False):
    """How much is said about conversion: nothing."""


def trace(*args):
    """Prints its arguments while a graph is built."""
    print(*args)


experimental = types.SimpleNamespace(do_not_convert=do_not_convert)
