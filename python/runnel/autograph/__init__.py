"""tf.autograph: Python's control flow over tensors, as operations of a graph."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "autograph.ag_logging: set_verbosity trace",
    "autograph.conversion: do_not_convert to_code to_graph",
    "submodules: experimental")
