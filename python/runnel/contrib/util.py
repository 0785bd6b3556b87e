"""tf.contrib.util: TensorProtos and constants."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, "make_tensor_proto make_ndarray", "constant_value=get_static_value")
