"""tf.bitwise: operations on the bits of integers."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "bitwise_and=raw_ops.BitwiseAnd bitwise_or=raw_ops.BitwiseOr bitwise_xor=raw_ops.BitwiseXor invert=raw_ops.Invert "
    "left_shift=raw_ops.LeftShift right_shift=raw_ops.RightShift",
)
