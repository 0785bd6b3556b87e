"""tensorflow.python.tf2: whether 2.x behaviour is enabled."""


def enabled():
    """Returns False: this is the 1.x API, also in eager execution."""
    return False
