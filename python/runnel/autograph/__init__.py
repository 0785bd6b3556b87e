"""tf.autograph: Python's control flow over tensors, as operations of a graph."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "autograph.conversion: do_not_convert to_code to_graph trace set_verbosity",
    "submodules: experimental")
