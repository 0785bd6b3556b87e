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
    graph = framework.Graph()
    with graph.as_default():
        tensor = convert.constant(values, dtype, shape, verify_shape=verify_shape)
    node = message_class("NodeDef").FromString(tensor.op._node_def())
    return node.attr["value"].tensor


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
