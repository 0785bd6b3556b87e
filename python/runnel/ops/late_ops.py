"""Small functions over single ops: proto fields, sampled products, JPEG quality, DLPack."""

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert
from runnel.core.framework import name_scope


def decode_proto(bytes, message_type, field_names, output_types, descriptor_source="local://", message_format="binary",  # noqa: A002
                 sanitize=False, name=None):
    """Returns (sizes, values) of the fields of serialized protos."""
    return _ops.DecodeProtoV2(bytes=bytes, message_type=message_type, field_names=field_names, output_types=output_types,
                              descriptor_source=descriptor_source, message_format=message_format, sanitize=sanitize, name=name)


def encode_proto(sizes, values, field_names, message_type, descriptor_source="local://", name=None):
    """Serializes protos, given the sizes and values of their fields."""
    return _ops.EncodeProto(sizes=sizes, values=values, field_names=field_names, message_type=message_type,
                            descriptor_source=descriptor_source, name=name)


def sampled_addmm(indices, values, dense_shape, mat1, mat2, beta=1.0, alpha=1.0, output_type=dtypes.float32):
    """Returns alpha mat1 mat2 + beta S at the places of S, a sparse tensor of rank 2 or more: (indices, values, dense_shape).

    Only the elements at these places are computed.
    """
    from runnel.ops import array_ops, math_ops
    indices, values = convert.convert_to_tensor(indices), math_ops.cast(values, output_type)
    mat1, mat2 = math_ops.cast(mat1, output_type), math_ops.cast(mat2, output_type)
    batch, row, column = indices[:, :-2], indices[:, -2:-1], indices[:, -1:]
    rows = array_ops.gather_nd(mat1, array_ops.concat([batch, row], 1))
    columns = array_ops.gather_nd(array_ops.matrix_transpose(mat2), array_ops.concat([batch, column], 1))
    product = math_ops.reduce_sum(rows * columns, axis=-1)
    return indices, alpha * product + beta * values, convert.convert_to_tensor(dense_shape)


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    """Encodes and decodes an image with a JPEG quality that the seed chooses."""
    from runnel.image import adjust_jpeg_quality
    from runnel.ops import stateless_random
    if min_jpeg_quality < 0 or max_jpeg_quality < 0 or min_jpeg_quality > 100 or max_jpeg_quality > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = stateless_random.stateless_random_uniform(shape=[], seed=seed, minval=min_jpeg_quality, maxval=max_jpeg_quality, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)


class _Capsule:
    """Makes NumPy read a DLPack capsule in the memory of the CPU."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **kwargs):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


def to_dlpack(tf_tensor):
    """Returns a DLPack capsule with a copy of an eager tensor."""
    import numpy as np
    if not hasattr(tf_tensor, "numpy"):
        raise TypeError("The argument to `to_dlpack` must be a TF tensor, not Python object")
    return np.array(tf_tensor.numpy(), copy=True).__dlpack__()


def from_dlpack(dlcapsule):
    """Returns a tensor with a copy of what a DLPack capsule holds."""
    import numpy as np
    with name_scope(None, "from_dlpack"):
        return convert.convert_to_tensor(np.array(np.from_dlpack(_Capsule(dlcapsule)), copy=True))
