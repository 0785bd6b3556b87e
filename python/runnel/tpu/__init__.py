"""tf.tpu: embeddings that are described for TPUs, here on CPUs; what needs a TPU says so."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "tpu.systems: XLAOptions",
)
