"""Small things of `tf`: switches between versions, libraries, texts of versions."""

from runnel import _core

GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
CXX11_ABI_FLAG, CXX_VERSION, MONOLITHIC_BUILD = 1, 201703, 0


def disable_v2_behavior():
    """Nothing: this is the API of 1.x."""


disable_v2_tensorshape = disable_tensor_equality = disable_control_flow_v2 = disable_v2_behavior


def enable_v2_tensorshape():
    raise NotImplementedError("the API here is that of 1.x: see doc/python.md")


enable_tensor_equality = enable_v2_tensorshape


def enable_control_flow_v2():
    """Nothing: conditionals and loops are the same to a program, however they are built."""


def control_flow_v2_enabled():
    """Whether conditionals and loops are functions: they are Switch, Merge and Enter nodes."""
    return False


def enable_v2_behavior():
    """Eager execution, and variables that are resources."""
    import runnel
    runnel.enable_eager_execution()
    runnel.enable_resource_variables()


def assert_proper_iterable(values):
    """Fails unless `values` can be gone through, and is no tensor, array or text."""
    import numpy
    from runnel.composite import SparseTensor
    from runnel.framework import Tensor
    if isinstance(values, (Tensor, SparseTensor, numpy.ndarray, bytes, str)):
        raise TypeError("Expected argument to be a (list of) iterables, got %s: %s." % (type(values).__name__, values))
    if not hasattr(values, "__iter__"):
        raise TypeError("Expected argument to be iterable, got %s: %s." % (type(values).__name__, values))


def sparse_matmul(a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """The product of matrices of which one has many zeros."""
    from runnel import raw_ops
    return raw_ops.SparseMatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=name)


def quantize(input, min_range, max_range, T, mode="MIN_COMBINED", round_mode="HALF_AWAY_FROM_ZERO", name=None,  # noqa: A002
             narrow_range=False, axis=None, ensure_minimum_range=0.01):
    """Floating point numbers as quantised ones: (values, least, largest)."""
    from runnel import raw_ops
    return raw_ops.QuantizeV2(input, min_range, max_range, T=T, mode=mode, round_mode=round_mode, narrow_range=narrow_range,
                              axis=-1 if axis is None else axis, ensure_minimum_range=ensure_minimum_range, name=name)


quantize_v2 = quantize


def get_static_value(tensor, partial=False):
    """The array that a tensor always is, or None."""
    from runnel.convert import constant_value
    return constant_value(tensor, partial)


def is_symbolic_tensor(tensor):
    """Whether it is a tensor of a graph."""
    from runnel.framework import Tensor
    return isinstance(tensor, Tensor) and tensor.op is not None


def load_op_library(library_filename):
    """A module with the functions of the ops that a plug-in adds."""
    import types
    from runnel import raw_ops
    from runnel.protobuf import message_class
    module = types.ModuleType("runnel_plugin")
    data = _core.load_library(library_filename)
    names = [op.name for op in message_class("OpList").FromString(data).op]
    for name in names:
        function = raw_ops.function(name)
        setattr(module, raw_ops.snake_case(name), function)
        setattr(module, name, function)
    module.OP_LIST = message_class("OpList").FromString(data)
    return module


def load_library(library_location):
    """Loads a plug-in, or all of a folder."""
    import os
    if os.path.isdir(library_location):
        for name in sorted(os.listdir(library_location)):
            if name.endswith(".so"):
                _core.load_library(os.path.join(library_location, name))
    elif os.path.exists(library_location):
        _core.load_library(library_location)
    else:
        raise OSError(2, "The file or folder to load kernel libraries from does not exist.", library_location)


load_file_system_library = load_library


def get_logger():
    """The logger "tensorflow"."""
    from runnel import logging
    return logging.get_logger()
