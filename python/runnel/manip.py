"""tf.manip: reshaping and moving elements."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "batch_to_space_nd gather_nd reshape reverse roll scatter_nd space_to_batch_nd tile",
)
