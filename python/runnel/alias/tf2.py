"""tensorflow.python.tf2: whether the behaviour of 2.x is on."""


def enabled():
    """Always False: this is the 1.x API, also where it executes eagerly."""
    return False
