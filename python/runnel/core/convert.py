"""Conversion of values to tensors: convert_to_tensor, constant, and the registry of convertible types."""

from runnel import _core, dtypes
from runnel.core import tensor_shape
from runnel.core.framework import Operation, Tensor

_registry: list = []  # (priority, order, types, function)
_found: dict = {}  # type -> functions, in order
_PLAIN = frozenset((int, float, bool, complex, str, bytes))


def register_tensor_conversion_function(base_type, conversion_func, priority=100):
    """Registers `conversion_func(value, dtype, name, as_ref)` for a type or a tuple of types.

    The function returns a tensor, or NotImplemented.
    """
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    _registry.append((priority, len(_registry), types, conversion_func))
    _registry.sort(key=lambda row: row[:2])
    _found.clear()


def _functions_for(value):
    kind = type(value)
    functions = _found.get(kind)
    if functions is None:
        functions = [row[3] for row in _registry if isinstance(value, row[2])]
        if hasattr(kind, "__tf_tensor__"):
            functions.insert(0, _by_protocol)
        _found[kind] = functions
    return functions


def _by_protocol(value, dtype=None, name=None, as_ref=False):
    """Converts an object of a library by its own method."""
    tensor = value.__tf_tensor__(dtype, name)
    if not isinstance(tensor, Tensor):
        raise TypeError("Failed to convert %r to a tensor: __tf_tensor__ returned %r" % (value, tensor))
    return tensor


def _convert(value, dtype=None, preferred=None, name=None, as_ref=False):
    """Returns the tensor of `value`. C calls this for every input that is not a tensor."""
    if isinstance(value, Tensor):
        if dtype is not None and not dtype.is_compatible_with(value.dtype):
            raise ValueError("Tensor conversion requested dtype %s for Tensor with dtype %s: %r" % (
                dtype.name, value.dtype.name, value))
        return _here(value)
    if type(value) not in _PLAIN:
        for function in _functions_for(value):
            if dtype is None and preferred is not None:
                try:
                    tensor = function(value, dtype=preferred, name=name, as_ref=as_ref)
                except (TypeError, ValueError):
                    tensor = NotImplemented
                if tensor is not NotImplemented and tensor is not None:
                    return tensor
            tensor = function(value, dtype=dtype, name=name, as_ref=as_ref)
            if tensor is not NotImplemented:
                return tensor
    if dtype is None and preferred is not None:
        try:
            return _constant(value, preferred, None, name or "Const")
        except (TypeError, ValueError):
            pass
    return _constant(value, dtype, None, name or "Const")


def _here(value):
    """Turns an eager tensor into a constant if a graph is being built."""
    if value.op is None and _core.current() is not None:
        from runnel.eager import context as eager
        return eager.capture_constant(value)
    return value


def _constant(value, dtype, shape, name):
    graph = _core.current()
    if value is None:
        raise ValueError("None values not supported.")
    if graph is None:
        from runnel.eager import context as eager
        return eager.constant(value, dtype, shape)
    tensor = _core.constant(graph, value, 0 if dtype is None else dtype._number, name or "Const", shape)
    if _core.intercepts_ops():
        from runnel.eager import op_callbacks
        return op_callbacks.constant_added(tensor)
    return tensor


def convert_to_tensor(value, dtype=None, name=None, preferred_dtype=None, dtype_hint=None):
    """Converts `value` to a tensor: a tensor, a number, a string, nested lists, an array or a variable.

    Args:
      value: the value to convert.
      dtype: the required type; by default the value determines it.
      name: name of the operation, if one is created.
      preferred_dtype: the type to use if possible when `dtype` is None.
      dtype_hint: the same as preferred_dtype.
    """
    if type(value) is Tensor and dtype is None and value.op is not None:
        return value
    preferred = dtype_hint or preferred_dtype
    return _convert(value, None if dtype is None else dtypes.as_dtype(dtype),
                    None if preferred is None else dtypes.as_dtype(preferred), name)


def internal_convert_to_tensor(value, dtype=None, name=None, as_ref=False, preferred_dtype=None):
    """Like convert_to_tensor, and can return a reference."""
    return _convert(value, None if dtype is None else dtypes.as_dtype(dtype),
                    None if preferred_dtype is None else dtypes.as_dtype(preferred_dtype), name, as_ref)


def convert_n_to_tensor(values, dtype=None, name=None, preferred_dtype=None):
    """Converts each of `values` to a tensor."""
    return [convert_to_tensor(value, dtype, None if name is None else "%s_%d" % (name, i),
                              preferred_dtype) for i, value in enumerate(values)]


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    """Converts `value` to a tensor unless it is an IndexedSlices."""
    from runnel.core.composite import IndexedSlices
    return value if isinstance(value, IndexedSlices) else convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_sparse_tensor(value, dtype=None, name=None):
    """Converts `value` to a tensor unless it is a SparseTensor."""
    from runnel.core.composite import SparseTensor, SparseTensorValue
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value, dtype, name)


def constant(value, dtype=None, shape=None, name="Const", verify_shape=False):
    """Creates a tensor with a constant value.

    Args:
      value: a number, a string, nested lists or an array.
      dtype: its type; by default the value determines it (Python numbers are int32 and float32).
      shape: its shape; a number fills it, and a list is extended by repeating its last element.
      name: name of the operation.
      verify_shape: whether a value of another shape is an error.
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if shape is None:
        if isinstance(value, Tensor) and value.op is not None:
            raise TypeError("List of Tensors when single Tensor expected")
        return _constant(value, dtype, None, name)
    dims = tuple(int(d) for d in tensor_shape.as_shape(shape).as_list())
    array = _core.as_array(value, 0 if dtype is None else dtype._number)
    count = 1
    for d in dims:
        count *= d
    return _constant(_fill_shape(array, dims, count, verify_shape), dtype, None, name)


def _fill_shape(array, dims, count, verify):
    import numpy as np
    array = np.asarray(array)
    if array.shape == dims:
        return array
    if verify:
        raise TypeError("Expected Tensor's shape: %s, got %s." % (dims, array.shape))
    if array.size == count:
        return array.reshape(dims)
    if count == 0:
        return np.empty(dims, array.dtype)
    if array.size == 0 or array.size > count:
        raise ValueError("Too many elements provided. Needed at most %d, but received %d" % (
            count, array.size))
    flat = array.ravel()
    filled = np.concatenate([flat, np.repeat(flat[-1:], count - flat.size)])
    return filled.reshape(dims)


def constant_value(tensor, partial=False):
    """Returns the constant value of a tensor as an array, if it is known without computing; else None.

    With `partial`, a Pack whose inputs are partly unknown gives an array of objects with None for those.
    """
    if not isinstance(tensor, Tensor):
        return None if hasattr(tensor, "_as_graph_element") and hasattr(tensor, "initializer") else tensor  # a variable's value may change
    if tensor.op is None:
        return tensor.numpy()
    if _is_plain(tensor):
        return _plain_value(tensor)
    if partial and tensor.op.type == "Pack" and tensor.op.get_attr("axis") == 0:
        import numpy
        values = [constant_value(x, True) for x in tensor.op.inputs]
        rows = numpy.empty(len(values), object)
        rows[:] = values
        return rows
    return _partial_part(tensor) if partial else None


def _partial_part(tensor):
    """Returns an output of Unpack or Split whose input is known in part, on its first axis; None if it is not."""
    op = tensor.op
    if op.type == "Unpack" and op.get_attr("axis") == 0:
        whole = constant_value(op.inputs[0], True)
        return None if whole is None else whole[tensor.value_index]
    if op.type == "Split" and constant_value(op.inputs[0]) == 0:
        whole = constant_value(op.inputs[1], True)
        size = 0 if whole is None else len(whole) // len(op.outputs)
        return None if whole is None else whole[tensor.value_index * size:(tensor.value_index + 1) * size]
    return None


def evaluated_value(tensor):
    """Returns the constant value of a tensor, computed from constants if necessary; None if it depends on anything else."""
    if not isinstance(tensor, Tensor):
        return tensor
    if tensor.op is None:
        return tensor.numpy()
    value = tensor._constant_value()
    if value is not None or not _is_plain(tensor):
        return _value_of_sizes(tensor, 32) if value is None else value
    return _plain_value(tensor)


def _value_of_sizes(tensor, depth):
    """Returns the value of a tensor that depends on constants and on known sizes of tensors alone; None if it depends on anything else."""
    value, op = tensor._constant_value(), tensor.op
    if value is not None or depth == 0 or not op.inputs:
        return value
    if op.type == "StridedSlice":
        size = _size_of_slice(op)
        if size is not None:
            return _as_array(size, tensor.dtype)
    from runnel.core.framework import Graph
    inputs = []
    for one in op.inputs:
        inputs.append(_value_of_sizes(one, depth - 1))
        if inputs[-1] is None:
            return None
    with Graph().as_default() as graph:
        attributes = {key: value for key, value in op.node_def.attr.items() if not key.startswith("_")}
        made = graph.create_op(op.type, [constant(x, one.dtype) for x, one in zip(inputs, op.inputs)], attrs=attributes)
        return made.outputs[tensor.value_index]._constant_value()


def _as_array(value, dtype):
    import numpy
    return numpy.array(value, dtype.as_numpy_dtype)


def _size_of_slice(op):
    """Returns the number that `shape(x)[i]` is; None if this is no such slice, or the size is unknown."""
    if op.inputs[0].op.type != "Shape" or op.get_attr("shrink_axis_mask") != 1:
        return None
    begin, shape = constant_value(op.inputs[1]), op.inputs[0].op.inputs[0].shape
    if begin is None or shape.ndims is None or not -shape.ndims <= int(begin[0]) < shape.ndims:
        return None
    return shape.as_list()[int(begin[0])]


# Ops whose constant values constant_value computes: the same as in stock, because a shape or value that is known while the
# graph is built is checked then, and any other only in a step.
_SEEN_THROUGH = frozenset("Range Cast Concat ConcatV2 Pack Unpack Split Fill Equal NotEqual StopGradient Identity".split())


def _is_plain(tensor):
    op = tensor.op
    kind = op.type
    if kind == "Const":
        return True
    if kind in ("Shape", "Size"):
        return op.inputs[0].shape.is_fully_defined()
    if kind == "Rank":
        return op.inputs[0].shape.ndims is not None
    if kind not in _SEEN_THROUGH or kind in ("Pack", "Unpack") and op.get_attr("axis") != 0:
        return False
    if kind == "Fill":
        return tensor.shape.is_fully_defined() and _is_plain(op.inputs[1])
    return all(_is_plain(x) for x in op.inputs)


def _plain_value(tensor):
    """Returns the value of a tensor that _is_plain. Its operations may wait for others, as those of a loop's body wait for the loop: the
    value is computed in a graph where they wait for nothing."""
    value = tensor._constant_value()
    if value is not None:
        return value
    from runnel.core.framework import Graph
    op = tensor.op
    with Graph().as_default() as graph:
        if op.type in ("Shape", "Size", "Rank"):
            inputs = [graph.create_op("Placeholder", [], attrs={"dtype": op.inputs[0].dtype, "shape": op.inputs[0].shape}).outputs[0]]
        else:
            inputs = [constant(_plain_value(x), x.dtype) for x in op.inputs]
        attributes = {key: value for key, value in op.node_def.attr.items() if not key.startswith("_")}
        return graph.create_op(op.type, inputs, attrs=attributes).outputs[tensor.value_index]._constant_value()


def _part_of_shape(tensor):
    """Returns the TensorShape of `sizes[begin:end:stride]` as far as it is known; None if that is no slice of a vector."""
    op = tensor.op
    bounds = [constant_value(x) for x in op.inputs[1:]]
    masks = {name: op.get_attr(name + "_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    if any(b is None or len(b) != 1 for b in bounds) or masks["ellipsis"] or masks["new_axis"] or masks["shrink_axis"]:
        return None
    begin, end, stride = (int(b[0]) for b in bounds)
    sizes = constant_value_as_shape(op.inputs[0])
    if sizes.rank is None:
        return None
    return tensor_shape.TensorShape(sizes.as_list()[None if masks["begin"] & 1 else begin:None if masks["end"] & 1 else end:stride])


def constant_value_as_shape(tensor):
    """Returns the TensorShape that a vector of sizes describes, as far as it is known."""
    if not isinstance(tensor, Tensor):
        return tensor_shape.as_shape(tensor)
    value = evaluated_value(tensor)
    if value is not None:
        return tensor_shape.TensorShape([None if d < 0 else int(d) for d in value])
    dims = tensor._dims()
    rank = dims[0] if dims else None
    if tensor.op is not None and tensor.op.type == "Shape":
        return tensor.op.inputs[0].shape
    if tensor.op is not None and tensor.op.type == "Pack":
        parts = [evaluated_value(part) for part in tensor.op.inputs]
        return tensor_shape.TensorShape([None if p is None or p < 0 else int(p) for p in parts])
    if tensor.op is not None and tensor.op.type == "ConcatV2":
        shape = tensor_shape.TensorShape(())
        for part in tensor.op.inputs[:-1]:
            shape = shape.concatenate(constant_value_as_shape(part))
        return shape
    if tensor.op is not None and tensor.op.type == "Cast":
        return constant_value_as_shape(tensor.op.inputs[0])
    part = _part_of_shape(tensor) if tensor.op is not None and tensor.op.type == "StridedSlice" else None
    if part is not None:
        return part
    return tensor_shape.unknown_shape(rank)


_core.register(convert=_convert)
register_tensor_conversion_function(
    tensor_shape.TensorShape, lambda v, dtype=None, name=None, as_ref=False: _shape_constant(
        v, dtype, name), 100)
register_tensor_conversion_function(
    tensor_shape.Dimension, lambda v, dtype=None, name=None, as_ref=False: _dimension_constant(
        v, dtype, name), 100)


def _shape_constant(shape, dtype, name):
    if not shape.is_fully_defined():
        raise ValueError("Cannot convert a partially known TensorShape %s to a Tensor." % shape)
    if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError("Cannot convert a TensorShape to dtype %s." % dtype.name)
    dims = shape.as_list()
    if dtype is None:
        dtype = dtypes.int64 if any(d >= 2**31 for d in dims) else dtypes.int32
    return _constant(dims, dtype, None, name or "shape_as_tensor")


def _dimension_constant(dimension, dtype, name):
    if dimension.value is None:
        raise ValueError("Cannot convert unknown Dimension to a Tensor: %s" % dimension)
    return _constant(dimension.value, dtype or dtypes.int32, None, name or "Const")


def _of_operation(value, dtype=None, name=None, as_ref=False):
    raise TypeError("can't convert Operation '%s' to Tensor" % value.name)


register_tensor_conversion_function(Operation, _of_operation)


__all__ = ["constant", "convert_to_tensor", "convert_to_tensor_or_indexed_slices",
           "convert_to_tensor_or_sparse_tensor", "register_tensor_conversion_function"]
