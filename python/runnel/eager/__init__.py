"""Eager execution, gradient tapes and functions; its public names are names of `tf`."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "eager.context: EagerTensor disable_eager_execution enable_eager_execution executing_eagerly_outside_functions start",
)
