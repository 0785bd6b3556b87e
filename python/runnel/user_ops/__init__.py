"""tf.user_ops: an example of an op that a user adds."""

from runnel import raw_ops as _ops

__all__ = ["my_fact"]


def my_fact():
    """Returns a fact."""
    return _ops.Fact()
