"""Conversion between arrays and TensorProtos."""

from runnel import _core, dtypes
from runnel.core import tensor_shape
from runnel.core.convert import constant_value
from runnel.core.framework import Tensor, is_tensor  # noqa: F401

get_static_value = constant_value


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    """Returns the TensorProto of a constant with `values`."""
    from runnel.core import convert, framework
    from runnel.core.protobuf import message_class
    if hasattr(values, "SerializeToString"):
        return values
    if dtype is not None and dtypes.as_dtype(dtype).is_quantized and not hasattr(values, "dtype") and not _holds_tuples(values):
        raise TypeError("A value of type %s is a tuple, not %r" % (dtypes.as_dtype(dtype).name, values))
    graph = framework.Graph()
    with graph.as_default():
        tensor = convert.constant(values, dtype, shape, verify_shape=verify_shape)
    node = message_class("NodeDef").FromString(tensor.op._node_def())
    proto = node.attr["value"].tensor
    if proto.tensor_content and (tensor.dtype in _BY_VALUE or shape is not None):
        _write_by_value(proto, tensor.dtype, values)
    return proto


def _holds_tuples(values):
    while isinstance(values, list) and values:
        values = values[0]
    return isinstance(values, tuple)


def ShapeEquals(tensor_proto, shape):  # noqa: N802
    """Tells whether the shape of a TensorProto is a TensorShapeProto, or a list of numbers."""
    wanted = [dim.size for dim in shape.dim] if hasattr(shape, "dim") else list(shape)
    return [dim.size for dim in tensor_proto.tensor_shape.dim] == wanted


# Types whose values stock writes one by one, not as the bytes of the tensor: type -> (field, numbers per value).
_BY_VALUE = {dtypes.complex64: ("scomplex_val", 2), dtypes.complex128: ("dcomplex_val", 2), **{
    dtypes.as_dtype(name): ("int_val", 1) for name in ("int2", "int4", "uint2", "uint4")}}
_FIELDS = {dtypes.float32: "float_val", dtypes.float64: "double_val", dtypes.int64: "int64_val", dtypes.uint32: "uint32_val",
           dtypes.uint64: "uint64_val", **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16), "int_val")}


def _write_by_value(proto, dtype, values):
    """Replaces the bytes of a TensorProto by numbers, for types that need it and for fewer values than elements."""
    import numpy as np
    given = np.size(values)
    flat = MakeNdarray(proto).ravel()
    if dtype not in _BY_VALUE and (given >= flat.size or dtype not in _FIELDS):
        return
    field, count = _BY_VALUE.get(dtype) or (_FIELDS[dtype], 1)
    flat = flat[:min(given, flat.size)]
    proto.ClearField("tensor_content")
    numbers = [part for x in flat for part in (x.real, x.imag)] if count == 2 else [int(x) if "int" in dtype.name else float(x) for x in flat]
    getattr(proto, field).extend(numbers)


def MakeNdarray(tensor):
    """Returns the array of a TensorProto."""
    import numpy as np
    value = _core.array_from_proto(tensor.SerializeToString())
    return np.array(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)


make_ndarray = MakeNdarray


def shape_tensor(shape):
    """Converts a shape of any form to an int32 tensor."""
    from runnel.core.convert import convert_to_tensor
    if isinstance(shape, (tuple, list)):
        if not shape:
            return convert_to_tensor(shape, dtypes.int32, name="shape")
        shape = [tensor_shape.dimension_value(d) for d in shape]
        if all(isinstance(d, int) for d in shape) and any(d >= 2**31 for d in shape):
            return convert_to_tensor(shape, dtypes.int64, name="shape")
    return convert_to_tensor(shape, preferred_dtype=dtypes.int32, name="shape")


def is_symbolic_tensor(tensor):
    """Tells whether `tensor` is a tensor of a graph, and not an eager one."""
    return isinstance(tensor, Tensor) and tensor.op is not None
