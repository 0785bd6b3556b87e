"""Functions that make, reshape, slice and join tensors."""

import builtins

from runnel import _core, dtypes, raw_ops as _ops
from runnel.core import fallbacks, tensor_shape
from runnel.core.composite import IndexedSlices, SparseTensor
from runnel.core.convert import constant, constant_value, convert_to_tensor, register_tensor_conversion_function
from runnel.core.framework import Tensor, executing_eagerly, name_scope
from runnel.eager import quick
from runnel.ops.math_ops import _pick, cast


# --- Placeholders and constants

def placeholder(dtype, shape=None, name=None):
    """Creates a tensor whose value is fed in every step that uses it."""
    if executing_eagerly():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return _ops.Placeholder(dtypes.as_dtype(dtype).base_dtype, tensor_shape.as_shape(shape), name=name)


def placeholder_with_default(input, shape, name=None):  # noqa: A002
    """Creates a tensor that has the value of `input` unless it is fed."""
    return _ops.PlaceholderWithDefault(input, shape, name=name)


def sparse_placeholder(dtype, shape=None, name=None):
    """Creates a sparse tensor whose value is fed."""
    base = "" if name is None else name
    fixed = None if shape is None else tensor_shape.as_shape(shape)
    rank = None if fixed is None else fixed.rank
    if rank is None:
        dense_shape = placeholder(dtypes.int64, [None], base + "/shape" if name else None)
    elif not fixed.is_fully_defined():
        default = constant([-1 if d is None else d for d in fixed.as_list()], dtypes.int64, name=base + "/shape_default" if name else "Const")
        dense_shape = placeholder_with_default(default, [rank], base + "/shape" if name else None)
    else:
        dense_shape = constant(fixed.as_list(), dtypes.int64, name=base + "/shape" if name else "Const")
    made = SparseTensor(
        values=placeholder(dtype, [None], base + "/values" if name else None),
        indices=placeholder(dtypes.int64, [None, rank], base + "/indices" if name else None),
        dense_shape=dense_shape)
    if rank is not None:
        made.set_shape(fixed)
    return made


def identity(input, name=None):  # noqa: A002
    """Returns a tensor with the value of `input`."""
    if isinstance(input, SparseTensor):
        return SparseTensor(identity(input.indices), identity(input.values), identity(input.dense_shape))
    if isinstance(input, IndexedSlices):
        shape = None if input.dense_shape is None else identity(input.dense_shape)
        return IndexedSlices(identity(input.values, name=name), identity(input.indices), shape)
    if getattr(input, "_is_composite", False) and not hasattr(input, "handle"):  # extension types and composites of libraries
        from runnel import nest
        return nest.map_structure(identity, input, expand_composites=True)
    return _ops.Identity(convert_to_tensor(input), name=name)


def identity_n(input, name=None):  # noqa: A002
    """Returns tensors with the values of `input`, computed by one operation."""
    return _ops.IdentityN(input, name=name)


def zeros(shape, dtype=dtypes.float32, name=None):
    """Creates a tensor of zeros."""
    return _filled(shape, dtype, name, "zeros", 0)


def ones(shape, dtype=dtypes.float32, name=None):
    """Creates a tensor of ones."""
    return _filled(shape, dtype, name, "ones", 1)


def _filled(shape, dtype, name, default_name, number):
    dtype = dtypes.as_dtype(dtype).base_dtype
    if type(shape) in (list, builtins.tuple) and _core.current() is None and (dtype.is_floating or dtype.is_integer) and builtins.all(
            type(d) is int and 0 <= d < 2**31 for d in shape):
        return _ops.Fill(quick.vector(builtins.tuple(shape)), _core.eager_constant(number, dtype._number))
    with name_scope(name, default_name, [shape]) as scope:
        value = ((False, True)[number] if dtype == dtypes.bool else
                 ("", "1")[number] if dtype == dtypes.string else number)
        if not isinstance(shape, Tensor):
            try:
                dims = tensor_shape.as_shape(shape)
                if dims.is_fully_defined():
                    if dims.num_elements() < 1000:
                        return constant(value, shape=dims, dtype=dtype, name=scope)
                    shape = dims
            except (TypeError, ValueError):
                pass
            shape = _shape_tensor(shape)
        if shape._rank() != 1:
            shape = reshape(shape, [-1])
        return fill(shape, constant(value, dtype=dtype), name=scope)


def _shape_tensor(shape):
    if isinstance(shape, (list, tuple)) and not shape:
        return convert_to_tensor(shape, dtype=dtypes.int32)
    if isinstance(shape, tensor_shape.TensorShape):
        return convert_to_tensor(shape, dtype=dtypes.int32)
    if isinstance(shape, (list, tuple)):
        shape = [tensor_shape.dimension_value(d) for d in shape]
        shape = [int(d) if isinstance(d, float) and d.is_integer() else d for d in shape]
    return convert_to_tensor(shape, dtype_hint=dtypes.int32)


def fill(dims, value, name=None):
    """Creates a tensor of shape `dims` in which every element is `value`."""
    return _ops.Fill(dims, value, name=name)


def zeros_like(tensor, dtype=None, name=None, optimize=True):
    """Creates zeros with the shape of `tensor`, and its type unless `dtype` is given."""
    return _like(tensor, dtype, name, optimize, 0)


def ones_like(tensor, dtype=None, name=None, optimize=True):
    """Creates ones with the shape of `tensor`, and its type unless `dtype` is given."""
    return _like(tensor, dtype, name, optimize, 1)


def _like(tensor, dtype, name, optimize, number):
    default_name = ("zeros_like", "ones_like")[number]
    with name_scope(name, default_name, [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        if dtype is not None:
            dtype = dtypes.as_dtype(dtype)
        if number == 1:
            if optimize and tensor.shape.is_fully_defined():
                with name_scope("Shape"):
                    dims = convert_to_tensor(tensor.shape)
            else:
                dims = _ops.Shape(tensor)
            result = ones(dims, dtype or tensor.dtype, name=scope)
            result.set_shape(tensor.shape)
            return result
        if optimize and tensor.shape.is_fully_defined() and tensor.dtype != dtypes.variant:
            return zeros(tensor.shape, dtype or tensor.dtype, name=scope)
        if dtype is not None and dtype != tensor.dtype and dtype != dtypes.variant:
            return zeros(_shape(tensor, optimize), dtype, name=scope)
        return _ops.ZerosLike(tensor, name=scope)


# --- Shapes

def _shape(input, optimize=True, out_type=dtypes.int32, name=None):  # noqa: A002
    with name_scope(name, "Shape", [input]) as scope:
        if isinstance(input, SparseTensor):
            return cast(input.dense_shape, out_type)
        input = convert_to_tensor(input)
        if optimize and input.shape.is_fully_defined():
            return constant(input.shape.as_list(), out_type, name=scope)
        return _ops.Shape(input, out_type=out_type, name=scope)


def shape_internal(input, name=None, optimize=True, out_type=dtypes.int32):  # noqa: A002
    """Returns the shape of a tensor. With `optimize`, a fully known shape becomes a constant."""
    return _shape(input, optimize, out_type, name)


def shape(input, name=None, out_type=dtypes.int32):  # noqa: A002
    """Returns the shape of a tensor as a 1-D tensor."""
    if isinstance(input, _core.EagerTensor) and out_type is dtypes.int32 and _core.current() is None:
        return quick.vector(input._dims())
    return _shape(input, True, out_type, name)


def shape_n(input, out_type=dtypes.int32, name=None):  # noqa: A002
    """Returns the shapes of several tensors."""
    return _ops.ShapeN(input, out_type=out_type, name=name)


def size(input, name=None, out_type=dtypes.int32):  # noqa: A002
    """Returns the number of elements of a tensor."""
    with name_scope(name, "Size", [input]) as scope:
        if isinstance(input, SparseTensor):
            return _ops.Prod(cast(input.dense_shape, out_type), 0, name=scope)
        input = convert_to_tensor(input)
        if input.shape.is_fully_defined():
            return constant(input.shape.num_elements(), out_type, name=scope)
        return _ops.Size(input, out_type=out_type, name=scope)


def rank(input, name=None):  # noqa: A002
    """Returns the number of dimensions of a tensor."""
    with name_scope(name, "Rank", [input]) as scope:
        if isinstance(input, SparseTensor):
            return _ops.Size(input.dense_shape, name=scope)
        input = convert_to_tensor(input)
        known = input._rank()
        if known is not None:
            return constant(known, dtypes.int32, name=scope)
        return _ops.Rank(input, name=scope)


def reshape(tensor, shape, name=None):
    """Returns the elements of `tensor` in another shape. One size may be -1: it is computed."""
    if isinstance(shape, (list, tuple)):
        shape = [tensor_shape.dimension_value(d) for d in shape]
    return _ops.Reshape(tensor, shape, name=name)


def expand_dims(input, axis=None, name=None, dim=None):  # noqa: A002
    """Inserts a dimension of size 1 at `axis`."""
    axis = _pick("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return _ops.ExpandDims(input, quick.number(axis), name=name)


def squeeze(input, axis=None, name=None, squeeze_dims=None):  # noqa: A002
    """Removes the dimensions of size 1: those in `axis`, or all."""
    axis = _pick("axis", axis, "squeeze_dims", squeeze_dims)
    if axis is not None and not isinstance(axis, (list, tuple)):
        axis = [axis]
    return _ops.Squeeze(input, axis=axis, name=name)


def transpose(a, perm=None, name="transpose", conjugate=False):
    """Permutes the dimensions of `a` by `perm`; without `perm`, reverses them."""
    if isinstance(a, _core.EagerTensor) and not conjugate and _core.current() is None:
        if perm is None:
            return _ops.Transpose(a, quick.vector(builtins.tuple(builtins.range(len(a._dims()) - 1, -1, -1))))
        if builtins.all(type(n) is int for n in perm) if isinstance(perm, (list, tuple)) else False:
            return _ops.Transpose(a, quick.vector(builtins.tuple(perm)))
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        op = _ops.ConjugateTranspose if conjugate and a.dtype.is_complex else _ops.Transpose
        if perm is not None:
            return op(a, perm, name=scope)
        known = a._rank()
        if known is not None:
            perm = constant(list(builtins.range(known - 1, -1, -1)), dtypes.int32, name="perm")
        else:
            from runnel.ops.math_ops import range as range_op
            count = _ops.Rank(a)
            perm = (count - 1) - range_op(0, count, 1)
        return op(a, perm, name=scope)


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    """Swaps the last two dimensions."""
    with name_scope(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a, name="a")
        known = a._rank()
        if known is None:
            count = _ops.Rank(a)
            from runnel.ops.math_ops import range as range_op
            perm = concat([range_op(count - 2), stack([count - 1, count - 2])], 0)
        else:
            if known < 2:
                raise ValueError("Argument `a` must be a (batch) matrix with rank >= 2. Received `a` "
                                 "= %s with shape: %s" % (a, a.shape))
            perm = list(builtins.range(known - 2)) + [known - 1, known - 2]
        return transpose(a, perm=perm, conjugate=conjugate)


def broadcast_dynamic_shape(shape_x, shape_y):
    """Returns the shape that two shapes, given as tensors, broadcast to."""
    return _ops.BroadcastArgs(shape_x, shape_y)


def broadcast_static_shape(shape_x, shape_y):
    """Returns the shape that two TensorShapes broadcast to."""
    shape_x, shape_y = tensor_shape.as_shape(shape_x), tensor_shape.as_shape(shape_y)
    if shape_x.rank is None or shape_y.rank is None:
        return tensor_shape.unknown_shape()
    a, b = shape_x.as_list(), shape_y.as_list()
    count = max(len(a), len(b))
    a, b = [1] * (count - len(a)) + a, [1] * (count - len(b)) + b
    out = []
    for i, j in zip(a, b):
        if i == 1 or j == 1:
            out.append(j if i == 1 else i)
        elif i is None or j is None:
            out.append(j if i is None else i)
        elif i == j:
            out.append(i)
        else:
            raise ValueError("Incompatible shapes for broadcasting. Two shapes are compatible if for each dimension pair they are either equal or "
                             "one of them is 1. Received: %s and %s." % (shape_x, shape_y))
    return tensor_shape.TensorShape(out)


# --- Joining and splitting

def concat(values, axis, name="concat"):
    """Joins tensors along an existing dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with name_scope(name):
            convert_to_tensor(axis, name="concat_dim", dtype=dtypes.int32).shape.assert_has_rank(0)
            return identity(values[0], name=name)
    return _ops.ConcatV2(values, quick.number(axis), name=name)


def stack(values, axis=0, name="stack"):
    """Joins tensors of equal shape along a new dimension."""
    if axis == 0:
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    known = convert_to_tensor(values[0], name=name)._rank()
    if known is not None and not -known - 2 < axis < known + 1:
        raise ValueError("Argument `axis` = %d not in range [%d, %d)" % (axis, -known - 1, known + 1))
    return _ops.Pack(values, axis=axis, name=name)


def _flat(values):
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from _flat(value)
    else:
        yield values


def unstack(value, num=None, axis=0, name="unstack"):
    """Splits a tensor along a dimension into tensors without that dimension."""
    if num is None:
        value = convert_to_tensor(value)
        dims = value._dims()
        if dims is not None:
            if axis < -len(dims) or axis >= len(dims):
                raise ValueError("Argument `axis` = %d not in range [%d, %d)" % (axis, -len(dims), len(dims)))
            num = dims[axis]
        if num is None:
            raise ValueError("Cannot infer argument `num` from shape %s" % value.shape)
    return _ops.Unpack(value, num=num, axis=axis, name=name)


pack, unpack = stack, unstack


def parallel_stack(values, name="parallel_stack"):
    """Stacks tensors of equal shape along a new first dimension, each as soon as it is computed."""
    with name_scope(name):
        first = convert_to_tensor(values[0])
        output = tensor_shape.TensorShape([len(values)]).concatenate(first.shape)
        return _ops.ParallelConcat([expand_dims(value, 0) for value in values], shape=output)


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """Splits a tensor along a dimension, into a number of equal parts or into parts of the given sizes."""
    if isinstance(num_or_size_splits, (int, tensor_shape.Dimension)):
        return _ops.Split(axis, value, num_split=int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes._rank() == 0:
        raise ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument to split. "
                         "Argument provided: %s" % (num_or_size_splits,))
    if num is None:
        dims = sizes._dims()
        num = dims[0] if dims else None
        if num is None:
            raise ValueError("Cannot infer argument `num` from shape %s" % (num_or_size_splits,))
    return _ops.SplitV(value, sizes, axis, num_split=num, name=name)


# --- Slices and indices

def slice(input_, begin, size, name=None):  # noqa: A001
    """Returns the part of `input_` of size `size` that starts at `begin`. A size of -1 means all that is left."""
    return _ops.Slice(input_, begin, size, name=name)


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0,
                  new_axis_mask=0, shrink_axis_mask=0, var=None, name=None):
    """Returns the part of `input_` that x[begin:end:strides] selects."""
    if strides is None:
        strides = ones_like(begin)
    return _ops.StridedSlice(input_, begin, end, strides, name=name, begin_mask=begin_mask,
                             end_mask=end_mask, ellipsis_mask=ellipsis_mask,
                             new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask)


_SLICE_TYPE_ERROR = ("Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid "
                     "indices")


def _check_index(index):
    if isinstance(index, (int, Tensor, tensor_shape.Dimension)) and not isinstance(index, builtins.bool):
        return
    if hasattr(index, "dtype") and getattr(index, "shape", None) == ():
        return
    if hasattr(index, "_as_graph_element") or hasattr(index, "__index__") and not isinstance(index, builtins.bool):
        return
    raise TypeError(_SLICE_TYPE_ERROR + ", got %r" % (index,))


def _slice_of_tensors(s):
    """If one bound of a slice is a tensor, turns the missing bounds into tensors of its type."""
    kind = next((b.dtype for b in (s.start, s.stop, s.step) if isinstance(b, Tensor)), None)
    if kind is None:
        return s
    kind = kind.base_dtype
    return builtins.slice(_Missing(constant(0, kind)) if s.start is None else s.start,
                          _Missing(constant(0, kind)) if s.stop is None else s.stop,
                          constant(1, kind) if s.step is None else s.step)


class _Missing:
    """A bound that was not given, and its default."""

    def __init__(self, tensor):
        self.tensor = tensor


def _slice_parts(slice_spec):
    """Returns (begin, end, strides, masks) of an index: integers, slices, an ellipsis, new axes."""
    if not isinstance(slice_spec, (list, tuple)):
        slice_spec = [slice_spec]
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), 0)
    for index, s in enumerate(slice_spec):
        bit = 1 << index
        if isinstance(s, builtins.slice):
            s = _slice_of_tensors(builtins.slice(*(tensor_shape.dimension_value(x) for x in (s.start, s.stop, s.step))))
            for bound, where, mask in ((s.start, begin, "begin_mask"), (s.stop, end, "end_mask")):
                if bound is None or isinstance(bound, _Missing):
                    where.append(0 if bound is None else bound.tensor)
                    masks[mask] |= bit
                else:
                    _check_index(bound)
                    where.append(bound)
            if s.step is not None:
                _check_index(s.step)
            strides.append(1 if s.step is None else s.step)
        elif s is Ellipsis or s is None:
            if s is Ellipsis and masks["ellipsis_mask"]:
                raise ValueError("Multiple ellipses not allowed")
            begin.append(0)
            end.append(0)
            strides.append(1)
            masks["ellipsis_mask" if s is Ellipsis else "new_axis_mask"] |= bit
        else:
            _check_index(s)
            s = tensor_shape.dimension_value(s)
            begin.append(s)
            end.append(s + 1)
            strides.append(1)
            masks["shrink_axis_mask"] |= bit
    return begin, end, strides, masks


def _packed(begin, end, strides):
    """Returns begin, end and strides as vectors of one type."""
    if not begin:
        return [constant([], dtype=dtypes.int32)] * 3
    packed = [stack(part) for part in (begin, end, strides)]
    if builtins.any(p.dtype.base_dtype == dtypes.int64 for p in packed):
        return [cast(p, dtypes.int64) for p in packed]
    if builtins.any(p.dtype.base_dtype == dtypes.int16 for p in packed):
        return [cast(p, dtypes.int16) for p in packed]
    return packed


def slice_arguments(slice_spec):
    """Returns (begin, end, strides, masks) of an index as StridedSlice takes them."""
    begin, end, strides, masks = _slice_parts(slice_spec)
    return (*_packed(begin, end, strides), masks)


def _slice_helper(tensor, slice_spec, var=None):
    """Implements x[...] with integers, slices, an ellipsis, new axes, tensors and masks."""
    if isinstance(slice_spec, Tensor) and slice_spec.dtype == dtypes.bool:
        return boolean_mask(tensor, slice_spec)
    if hasattr(slice_spec, "dtype") and getattr(slice_spec.dtype, "kind", "") == "b":
        return boolean_mask(tensor, slice_spec)
    begin, end, strides, masks = _slice_parts(slice_spec)
    if isinstance(tensor, _core.EagerTensor) and _core.current() is None and builtins.all(type(n) is int for n in begin + end + strides) and begin:
        return quick.part(tensor, begin, end, strides, masks)
    with name_scope(None, "strided_slice", [tensor] + begin + end + strides) as name:
        packed = _packed(begin, end, strides)
        return strided_slice(tensor, packed[0], packed[1], packed[2], name=name, var=var, **masks)


def _part(tensor, slice_spec, var=None):
    try:
        return _slice_helper(tensor, slice_spec, var)
    except (TypeError, ValueError):
        return fallbacks.operator("__operators__.getitem", tensor, slice_spec)


setattr(Tensor, "__getitem__", _part)  # noqa: B010


def gather(params, indices, validate_indices=None, name=None, axis=None, batch_dims=0):
    """Selects slices of `params` along `axis` by index."""
    if axis is None:
        axis = batch_dims
    if not isinstance(axis, int) or axis != 0 or batch_dims:
        return _ops.GatherV2(params, indices, axis, batch_dims=batch_dims, name=name)
    sparse_read = getattr(params, "sparse_read", None)
    if sparse_read is not None:
        return sparse_read(indices, name=name)
    return _ops.GatherV2(params, indices, axis, name=name)


def gather_nd(params, indices, name=None, batch_dims=0, bad_indices_policy=""):
    """Selects elements or slices of `params` by index vectors; `bad_indices_policy` "IGNORE" gives zeros for bad ones."""
    if isinstance(batch_dims, Tensor):
        batch_dims = constant_value(batch_dims)
        batch_dims = None if batch_dims is None else int(batch_dims)
    if batch_dims != 0:
        return _batch_gather_nd(params, indices, batch_dims, name)
    read = getattr(params, "gather_nd", None)
    if read is not None and not isinstance(params, Tensor) and not bad_indices_policy:
        return read(indices, name=name)
    return _ops.GatherNd(params, indices, bad_indices_policy=bad_indices_policy, name=name)


def _batch_gather_nd(params, indices, batch_dims, name):
    """Like gather_nd for each element of a batch: prepends the batch indices to `indices`."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        params, indices = convert_to_tensor(params, name="params"), convert_to_tensor(indices, name="indices")
        if not isinstance(batch_dims, int):
            raise TypeError("Argument `batch_dims` must be an int; got %r" % (batch_dims,))
        if batch_dims < 0:
            raise ValueError("tf.gather_nd does not allow negative batch_dims.")
        for tensor, what in ((params, "params"), (indices, "indices")):
            if tensor._rank() is not None and batch_dims >= tensor._rank():
                raise ValueError("Argument `batch_dims` = %d must be less than rank(`%s`) = %d" % (
                    batch_dims, what, tensor._rank()))
        known = tensor_shape.TensorShape(None)
        if indices._rank() is not None and params._rank() is not None and indices.shape.dims[-1].value is not None:
            known = indices.shape[:-1].concatenate(params.shape[batch_dims + indices.shape.dims[-1].value:])
        batch, places = shape(params)[:batch_dims], shape(indices)
        count = _ops.Prod(batch, [0])
        params = reshape(params, concat([[count], shape(params)[batch_dims:]], 0))
        indices = reshape(indices, concat([[count], places[batch_dims:]], 0))
        column = concat([[count], ones_like(places[batch_dims:])], 0)
        numbers = reshape(cast(_ops.Range(0, count, 1), indices.dtype), column)
        numbers = _ops.BroadcastTo(numbers, concat([shape(indices)[:-1], [1]], 0))
        result = _ops.GatherNd(params, concat([numbers, indices], -1))
        result = reshape(result, concat([batch, shape(result)[1:]], 0))
        result.set_shape(known)
        return result


def batch_gather(params, indices, name=None):
    """Selects slices by index within each element of a batch."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices._rank() is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        return gather(params, indices, batch_dims=indices._rank() - 1, axis=indices._rank() - 1)


def tensor_scatter_update(tensor, indices, updates, name=None):
    """Returns a copy of `tensor` with the slices at `indices` replaced by `updates`."""
    return _ops.TensorScatterUpdate(tensor, indices, updates, name=name)


def tensor_scatter_add(tensor, indices, updates, name=None):
    """Returns a copy of `tensor` with `updates` added at `indices`."""
    return _ops.TensorScatterAdd(tensor, indices, updates, name=name)


def tensor_scatter_sub(tensor, indices, updates, name=None):
    """Returns a copy of `tensor` with `updates` subtracted at `indices`."""
    return _ops.TensorScatterSub(tensor, indices, updates, name=name)


tensor_scatter_nd_update, tensor_scatter_nd_add = tensor_scatter_update, tensor_scatter_add
tensor_scatter_nd_sub = tensor_scatter_sub


def boolean_mask(tensor, mask, name="boolean_mask", axis=None):
    """Returns the elements or slices of `tensor` where `mask` is true."""
    from runnel.ops.math_ops import reduce_prod
    with name_scope(name, values=[tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        mask_shape, tensor_dims = mask.shape, tensor.shape
        if mask_shape.rank == 0:
            raise ValueError("mask cannot be scalar.")
        if mask_shape.rank is None:
            raise ValueError("Number of mask dimensions must be specified, even if some dimensions are "
                             "None. E.g. shape=[None] is ok, but shape=None is not.")
        axis = 0 if axis is None else axis
        known = constant_value(axis) if isinstance(axis, Tensor) else axis
        if known is not None:
            axis = known = int(known)
            tensor_dims[axis:axis + mask_shape.rank].assert_is_compatible_with(mask_shape)
        leading = reduce_prod(shape(tensor)[axis:axis + mask_shape.rank], [0])
        tensor = reshape(tensor, concat([shape(tensor)[:axis], [leading],
                                         shape(tensor)[axis + mask_shape.rank:]], 0))
        if known is not None:
            first = tensor_dims[axis:axis + mask_shape.rank].num_elements()
            tensor.set_shape(tensor_shape.as_shape(tensor_dims[:axis]).concatenate([first]).concatenate(
                tensor_dims[axis + mask_shape.rank:]))
        indices = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(tensor, indices, axis=axis)


def where(condition, x=None, y=None, name=None):
    """Returns elements of `x` where `condition` is true and of `y` elsewhere. Without both, returns the indices of the true elements."""
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, dtype_hint=dtypes.bool, name="condition")
            return _ops.Where(condition, name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return _ops.Select(condition, x, y, name=name)


def where_v2(condition, x=None, y=None, name=None):
    """Like where, with broadcasting of `condition`, `x` and `y`."""
    if x is None and y is None:
        return where(condition, name=name)
    return _ops.SelectV2(condition, x, y, name=name)


def tile(input, multiples, name=None):  # noqa: A002
    """Repeats a tensor along each dimension."""
    return _ops.Tile(input, multiples, name=name)


def repeat(input, repeats, axis=None, name=None):  # noqa: A002
    """Repeats each element along `axis`."""
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        if not isinstance(axis, (int, type(None))):
            raise TypeError("`axis` must be an int; got %s" % type(axis).__name__)
        if axis is None or data._rank() == 0:
            data, axis = reshape(data, [-1]), 0 if axis is None else axis
        repeats = cast(convert_to_tensor(repeats, name="repeats"), dtypes.int32)
        repeats.shape.with_rank_at_most(1)
        known = data._rank()
        if known is not None and not -known <= axis < known:
            raise ValueError("axis=%d out of bounds: expected %d<=axis<%d" % (axis, -known, known))
        if axis < 0:
            axis += rank(data) if known is None else known
        if repeats._rank() == 1 and repeats._dims() != (1,) and known is not None:
            data.shape[axis:axis + 1].assert_is_compatible_with(repeats.shape)
        rows = shape(data)[axis]
        if repeats._rank() == 0 or repeats._dims() == (1,):
            repeats = reshape(repeats, [])
            dims = concat([shape(data)[:axis + 1], [repeats], shape(data)[axis + 1:]], 0)
            spread = _ops.BroadcastTo(expand_dims(data, axis + 1), dims)
            return reshape(spread, concat([shape(data)[:axis], [rows * repeats], shape(data)[axis + 1:]], 0))
        if repeats._rank() is None:  # it may be a scalar, which applies to all rows
            repeats = _ops.BroadcastTo(reshape(repeats, [-1]), [rows])
        longest = _ops.Maximum(_ops.Max(repeats, 0), 0)  # without rows there is no maximum
        mask = sequence_mask(repeats, longest)
        numbers = tile(expand_dims(_ops.Range(0, rows, 1), 1), stack([1, longest]))
        return gather(data, boolean_mask(numbers, mask), axis=axis)


def pad(tensor, paddings, mode="CONSTANT", name=None, constant_values=0):
    """Adds a border to a tensor: mode "CONSTANT", "REFLECT" or "SYMMETRIC"."""
    mode = mode.upper()
    if mode == "CONSTANT":
        if isinstance(constant_values, Tensor) or constant_values != 0:
            result = _ops.PadV2(tensor, paddings, constant_values, name=name)
        else:
            result = _ops.Pad(tensor, paddings, name=name)
    elif mode in ("REFLECT", "SYMMETRIC"):
        result = _ops.MirrorPad(tensor, paddings, mode=mode, name=name)
    else:
        raise ValueError("Value of argument `mode` expected to be one of \"CONSTANT\", \"REFLECT\", or "
                         "\"SYMMETRIC\". Received `mode` = %s" % mode)
    if result.op is not None and result._rank() is not None and not result.shape.is_fully_defined():
        _refine_padded(result, *result.op.inputs[:2])
    return result


def _refine_padded(result, tensor, paddings):
    """Sets the static sizes of a padded tensor when only some paddings are known."""
    paddings = constant_value(paddings, partial=True)
    if paddings is None or tensor._rank() is None:
        return
    known = [None if row is None or dim is None or builtins.any(x is None for x in row) else builtins.sum(map(int, row)) + dim
             for dim, row in zip(tensor.shape.as_list(), list(paddings))]
    result.set_shape(known)


def reverse(tensor, axis, name=None):
    """Reverses a tensor along the dimensions in `axis`."""
    return _ops.ReverseV2(tensor, axis, name=name)


def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None,  # noqa: A002
                     seq_dim=None, batch_dim=None):
    """Reverses the first `seq_lengths[i]` elements of each row i."""
    seq_axis = _pick("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = _pick("batch_axis", batch_axis, "batch_dim", batch_dim)
    return _ops.ReverseSequence(input, seq_lengths, seq_dim=seq_axis, batch_dim=batch_axis or 0, name=name)


def roll(input, shift, axis, name=None):  # noqa: A002
    """Rotates elements along dimensions; what leaves one end enters at the other."""
    return _ops.Roll(input, shift, axis, name=name)


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """Returns vectors that are `on_value` at the given index and `off_value` elsewhere."""
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value, axis, dtype]) as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        given = [None if v is None else convert_to_tensor(v, dtype_hint=wanted) for v in (on_value, off_value)]
        for value, what in zip(given, ("on_value", "off_value")):
            if value is not None and wanted is None:
                wanted = value.dtype.base_dtype
            elif value is not None and value.dtype.base_dtype != wanted:
                raise TypeError("dtype %s of %s does not match dtype %s" % (value.dtype, what, wanted))
        wanted = wanted or dtypes.float32
        on_value = convert_to_tensor(1, wanted, name="on_value") if given[0] is None else given[0]
        off_value = convert_to_tensor(0, wanted, name="off_value") if given[1] is None else given[1]
        return _ops.OneHot(indices, depth, on_value, off_value, axis=-1 if axis is None else axis,
                           name=scope)


def sequence_mask(lengths, maxlen=None, dtype=dtypes.bool, name=None):
    """Returns masks that are true for the first `lengths[i]` elements of each row."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = _ops.Max(lengths, _all_dims(lengths))
            maxlen = _ops.Maximum(constant(0, maxlen.dtype), maxlen)
        else:
            maxlen = convert_to_tensor(maxlen)
        row = _ops.Range(constant(0, maxlen.dtype), maxlen, constant(1, maxlen.dtype))
        matrix = _ops.Cast(expand_dims(lengths, -1), maxlen.dtype)
        result = row < matrix
        dtype = dtypes.as_dtype(dtype)
        return result if dtype == dtypes.bool else cast(result, dtype)


def _all_dims(tensor):
    from runnel.ops.math_ops import _reduction_dims
    return _reduction_dims(tensor, None)


def meshgrid(*args, **kwargs):
    """Returns coordinate grids from coordinate vectors."""
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError("'%s' is an invalid keyword argument for this function" % next(iter(kwargs)))
    if indexing not in ("xy", "ij"):
        raise ValueError("Argument `indexing` parameter must be either 'xy' or 'ij', got '%s'" % indexing)
    with name_scope(name, "meshgrid", list(args)):
        count = len(args)
        output = [reshape(stack(x), [1] * i + [-1] + [1] * (count - i - 1)) for i, x in enumerate(args)]
        shapes = [size(x) for x in args]
        kind = convert_to_tensor(args[0]).dtype.base_dtype if args else dtypes.float32
        if indexing == "xy" and count > 1:
            output[0] = reshape(output[0], [1, -1] + [1] * (count - 2))
            output[1] = reshape(output[1], [-1, 1] + [1] * (count - 2))
            shapes[0], shapes[1] = shapes[1], shapes[0]
        factor = ones(shapes, kind)
        return [x * factor for x in output]


def unique(x, out_idx=dtypes.int32, name=None):
    """Returns the distinct elements of a vector, and for each element of `x` the index of its value."""
    return _ops.Unique(x, out_idx=out_idx, name=name)


def unique_with_counts(x, out_idx=dtypes.int32, name=None):
    """Like unique, and also returns how often each distinct element occurs."""
    return _ops.UniqueWithCounts(x, out_idx=out_idx, name=name)


def setdiff1d(x, y, index_dtype=dtypes.int32, name=None):
    """Returns the elements of `x` that are not in `y`, and their indices."""
    return _ops.ListDiff(x, y, out_idx=index_dtype, name=name)


def diag(diagonal, name=None):
    """Creates a tensor with the given diagonal and zeros elsewhere."""
    return _ops.Diag(diagonal, name=name)


def diag_part(input, name=None):  # noqa: A002
    """Returns the diagonal of a tensor."""
    return _ops.DiagPart(input, name=name)


def matrix_diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Creates matrices with the given diagonals."""
    return _ops.MatrixDiagV3(diagonal, k, num_rows, num_cols, _padding_like(diagonal, padding_value), align=align, name=name)


def _padding_like(like, value):
    """Returns the default padding, 0, as a bool for bools."""
    return bool(value) if isinstance(value, int) and getattr(like, "dtype", None) == dtypes.bool else value


def matrix_diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):  # noqa: A002
    """Returns diagonals of matrices."""
    return _ops.MatrixDiagPartV3(input, k, _padding_like(input, padding_value), align=align, name=name)


def matrix_set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):  # noqa: A002
    """Returns matrices with their diagonals replaced."""
    return _ops.MatrixSetDiagV3(input, diagonal, k, align=align, name=name)


def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None):
    """Creates an identity matrix, or a batch of them."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        is_square = num_columns is None
        batch = [] if batch_shape is None else batch_shape
        num_columns = num_rows if num_columns is None else num_columns
        if isinstance(num_rows, Tensor) or isinstance(num_columns, Tensor):
            diag_size = _ops.Minimum(num_rows, num_columns)
        else:
            diag_size = min(num_rows, num_columns)
        if isinstance(batch, Tensor) or isinstance(diag_size, Tensor):
            diag_shape = concat([convert_to_tensor(batch, dtype=dtypes.int32),
                                 reshape(convert_to_tensor(diag_size, dtype=dtypes.int32), [1])], 0)
        else:
            diag_shape = list(batch) + [diag_size]
        diagonal = ones(diag_shape, dtype=dtype)
        if is_square:
            return matrix_diag(diagonal)
        if isinstance(batch, Tensor) or isinstance(diag_size, Tensor):
            full = concat([convert_to_tensor(batch, dtype=dtypes.int32), stack([num_rows, num_columns])], 0)
        else:
            full = list(batch) + [num_rows, num_columns]
        return matrix_set_diag(zeros(full, dtype=dtype), diagonal)


def space_to_depth(input, block_size, name=None, data_format="NHWC"):  # noqa: A002
    """Moves blocks of each image into the channel dimension."""
    return _ops.SpaceToDepth(input, block_size=block_size, data_format=data_format, name=name)


def depth_to_space(input, block_size, name=None, data_format="NHWC"):  # noqa: A002
    """Moves channels of each image into blocks of pixels."""
    return _ops.DepthToSpace(input, block_size=block_size, data_format=data_format, name=name)


def space_to_batch(input, paddings, block_size=None, name=None, block_shape=None):  # noqa: A002
    """Moves blocks of the spatial dimensions into the batch dimension."""
    block_size = _pick("block_shape", block_shape, "block_size", block_size)
    result = _ops.SpaceToBatchND(input, [block_size, block_size], paddings, name=name)
    result.set_shape(result.shape.with_rank(4))
    return result


def batch_to_space(input, crops, block_size, name=None):  # noqa: A002
    """Moves elements of the batch dimension into blocks of the spatial dimensions."""
    result = _ops.BatchToSpaceND(input, [block_size, block_size], crops, name=name)
    result.set_shape(result.shape.with_rank(4))
    return result


def searchsorted(sorted_sequence, values, side="left", out_type=dtypes.int32, name=None):
    """Returns the indices at which `values` would be inserted into sorted rows."""
    with name_scope(name, "SearchSorted", [sorted_sequence, values]):
        sorted_sequence = convert_to_tensor(sorted_sequence)
        values = convert_to_tensor(values)
        flat = reshape(sorted_sequence, [-1, shape(sorted_sequence)[-1]])
        wanted = reshape(values, [-1, shape(values)[-1]])
        op = _ops.UpperBound if side == "right" else _ops.LowerBound
        return reshape(op(flat, wanted, out_type=out_type), shape(values))


def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    """Returns the Levenshtein distance between sparse sequences."""
    return _ops.EditDistance(hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices,
                             truth.values, truth.dense_shape, normalize=normalize, name=name)


def extract_image_patches(images, ksizes=None, strides=None, rates=None, padding=None, name=None, sizes=None):
    """Extracts patches of images into the channel dimension."""
    ksizes = _pick("sizes", sizes, "ksizes", ksizes)
    return _ops.ExtractImagePatches(images, ksizes=ksizes, strides=strides, rates=rates, padding=padding,
                                    name=name)


def dequantize(input, min_range, max_range, mode="MIN_COMBINED", name=None, axis=None,  # noqa: A002
               narrow_range=False, dtype=dtypes.float32):
    """Converts quantized values to floats."""
    return _ops.Dequantize(input, min_range, max_range, mode=mode, name=name, narrow_range=narrow_range,
                           axis=-1 if axis is None else axis, dtype=dtype)


# --- Conversion of lists of tensors

def _is_tensor(item):
    return isinstance(item, Tensor) or hasattr(item, "_as_graph_element") or hasattr(item, "__tf_tensor__")


def _list_to_tensor(value, dtype=None, name=None, as_ref=False):
    if not builtins.any(_is_tensor(item) for item in _flat(value)):
        return NotImplemented
    is_asked = dtype is not None  # then tensors of other types are cast
    if dtype is None:
        for item in _flat(value):
            if _is_tensor(item):
                dtype = dtypes.as_dtype(item.dtype if hasattr(item, "dtype") else convert_to_tensor(item).dtype).base_dtype
                break
    return _pack_nested(value, dtype, name or "packed", is_asked)


def _pack_nested(value, dtype, name, is_cast):
    """Packs a nested list that contains tensors; lists without tensors stay as they are."""
    with name_scope(name) as scope:
        parts = [_pack_nested(item, dtype, str(i), is_cast) if isinstance(item, (list, tuple)) else item
                 for i, item in enumerate(value)]
        if is_cast:
            parts = [cast(part, dtype) if isinstance(part, Tensor) else part for part in parts]
        for part in parts:
            if isinstance(part, Tensor) and part.dtype.base_dtype != dtype:
                raise TypeError("Cannot convert a list containing a tensor of dtype %s to %s (Tensor "
                                "is: %r)" % (part.dtype, dtype, part))
        if not builtins.any(_is_tensor(p) for p in parts):
            return parts
        parts = [part if isinstance(part, Tensor) else
                 convert_to_tensor(part, dtype, name=str(i)) for i, part in enumerate(parts)]
        return _ops.Pack(parts, name=scope)


def quantize(input, min_range, max_range, T, mode="MIN_COMBINED", round_mode="HALF_AWAY_FROM_ZERO", name=None,  # noqa: A002
             narrow_range=False, axis=None, ensure_minimum_range=0.01):
    """Quantizes floats to the type `T`; returns (output, output_min, output_max)."""
    return _ops.QuantizeV2(input, min_range, max_range, T=T, mode=mode, round_mode=round_mode, narrow_range=narrow_range,
                           axis=-1 if axis is None else axis, ensure_minimum_range=ensure_minimum_range, name=name)


quantize_v2 = quantize


register_tensor_conversion_function((list, tuple), _list_to_tensor, 99)
__all__ = [name for name, value in list(globals().items())
           if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == __name__]
