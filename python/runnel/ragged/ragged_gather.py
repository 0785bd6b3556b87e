"""Picking values of ragged tensors by index: gather along any axis, with batch dimensions, and gather_nd."""

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, fallbacks
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_creation import flat_shape
from runnel.ragged.ragged_tensor import RaggedTensor, _axis, _spans, as_ragged_or_tensor


def _is_ragged(value):
    return isinstance(value, RaggedTensor)


def _index(value):
    value = as_ragged_or_tensor(value) if hasattr(value, "ragged_rank") else convert.convert_to_tensor(value, dtype_hint=dtypes.int64)
    return value


def gather(params, indices, axis=None, batch_dims=0, name=None, validate_indices=None):
    """Selects slices of a ragged tensor, or of a tensor by ragged indices, along `axis`."""
    with name_scope(name, "RaggedGather"):
        params, indices = as_ragged_or_tensor(params), _index(indices)
        if batch_dims < 0:
            rank = indices.shape.rank
            if rank is None:
                raise ValueError("batch_dims may only be negative if rank(indices) is statically known.")
            batch_dims += rank
        axis = batch_dims if axis is None else _axis(axis, params.shape.rank)
        if axis < batch_dims:
            raise ValueError("axis must be greater than or equal to batch_dims")
        if not _is_ragged(params) and not _is_ragged(indices):
            return array_ops.gather(params, indices, axis=axis, batch_dims=batch_dims)
        if params.shape.rank is not None and indices.shape.rank is not None and batch_dims > indices.shape.rank:
            raise ValueError("batch_dims=%d must be less than or equal to rank(indices)=%d" % (batch_dims, indices.shape.rank))
        if batch_dims:
            return _of_batches(params, indices, axis, batch_dims)
        return _along(params, indices, axis)


def _with_kind(params, indices):
    """Returns both with row numbers of one type."""
    kinds = {x.row_splits.dtype for x in (params, indices) if _is_ragged(x)}
    if len(kinds) > 1:
        params, indices = (x.with_row_splits_dtype(dtypes.int64) if _is_ragged(x) else x for x in (params, indices))
    return params, indices


def _along(params, indices, axis):
    """Selects slices along an axis, without batch dimensions."""
    if axis > 0:
        if not _is_ragged(params):
            params = RaggedTensor.from_tensor(params, ragged_rank=1, row_splits_dtype=indices.row_splits.dtype)
        if axis > 1:
            inner = _along(params.values, indices, axis - 1) if _is_ragged(params.values) or _is_ragged(indices) else array_ops.gather(
                params.values, indices, axis=axis - 1)
            return params.with_values(inner)
        if _is_ragged(indices):
            rows = params.nrows()
            many = _rows(indices, array_ops.tile(math_ops.range(indices.nrows(out_type=dtypes.int64)), [math_ops.cast(rows, dtypes.int32)]))
            return _of_batches(params, RaggedTensor.from_uniform_row_length(many, indices.nrows(), nrows=rows), 1, 1)
        if indices.shape.rank is None:
            raise ValueError("rank(indices) must be known statically")
        flat = array_ops.reshape(indices, [-1])
        rows, count = params.nrows(), array_ops.size(flat, out_type=params.row_splits.dtype)
        each = RaggedTensor.from_uniform_row_length(array_ops.tile(flat, [math_ops.cast(rows, dtypes.int32)]), count, nrows=rows)
        picked = _of_batches(params, each, 1, 1)
        if indices.shape.rank > 1:
            return _in_shape(picked.values, rows, indices)
        return picked if indices.shape.rank == 1 else _without_last(picked, 1)
    params, indices = _with_kind(params, indices)
    if _is_ragged(indices):
        return indices.with_values(_along(params, indices.values, 0) if _is_ragged(params) or _is_ragged(indices.values) else array_ops.gather(
            params, indices.values))
    if indices.shape.rank == 0:
        return params[indices]
    if indices.shape.rank is None:
        raise ValueError("rank(indices) must be known statically")
    if indices.shape.rank > 1:
        size = array_ops.shape(indices, out_type=params.row_splits.dtype)
        inner = _along(params, array_ops.reshape(indices, array_ops.concat([[-1], array_ops.shape(indices)[2:]], 0)), 0)
        static = indices.shape.as_list()[1]
        return RaggedTensor.from_uniform_row_length(inner, size[1] if static is None else static, nrows=size[0])
    return _rows(params, indices)


def _in_shape(values, rows, indices):
    """Returns what was picked by the same indices in each row, in the shape of the indices."""
    kind = values.row_splits.dtype if _is_ragged(values) else rows.dtype
    sizes = array_ops.unstack(array_ops.shape(indices, out_type=kind), num=indices.shape.rank)
    if not _is_ragged(values):
        inner = array_ops.shape(values, out_type=kind)[1:]
        made = array_ops.reshape(values, array_ops.concat([[rows], sizes, inner], 0))
        made.set_shape([None] + indices.shape.as_list() + values.shape.as_list()[1:])
        return made
    counts = [math_ops.cast(rows, kind)]  # of lists at each level
    for size in sizes:
        counts.append(counts[-1] * size)
    for size, count in reversed(list(zip(sizes, counts))):
        values = RaggedTensor._of(values, math_ops.range(count + 1) * size)
    return values


def _rows(params, indices):
    """Returns the rows of numbers `indices`, a vector."""
    flat = params.flat_values
    is_tensor = not hasattr(flat, "_is_composite")
    numbers = flat if is_tensor else math_ops.range(flat_shape(flat, dtypes.int64)[0])
    made = _ops.RaggedGather(list(params.nested_row_splits), numbers, indices, OUTPUT_RAGGED_RANK=params.ragged_rank)
    value = made[1] if is_tensor else fallbacks.applied(array_ops.gather, flat, made[1])
    for splits in reversed(list(made[0])):
        value = RaggedTensor._of(value, splits)
    return value


def _of_batches(params, indices, axis, batch_dims):
    """Selects slices in each batch: result[b, i] = params[b, indices[b, i]]."""
    kind = next(x.row_splits.dtype for x in (params, indices) if _is_ragged(x))
    if not _is_ragged(params):
        params = RaggedTensor.from_tensor(params, ragged_rank=1, row_splits_dtype=kind)
    if not _is_ragged(indices):
        if indices.shape.rank == batch_dims:
            picked = _of_batches(params, array_ops.expand_dims(indices, -1), axis, batch_dims)
            return _without_last(picked, batch_dims)
        indices = RaggedTensor.from_tensor(indices, ragged_rank=1, row_splits_dtype=kind)
    params, indices = _with_kind(params, indices)
    if batch_dims > 1 or axis > 1 and batch_dims > 1:
        return indices.with_values(gather(params.values, indices.values, axis=axis - 1, batch_dims=batch_dims - 1))
    if axis > 1:
        raise NotImplementedError("tf.gather of ragged tensors with batch_dims=%d and axis=%d" % (batch_dims, axis))
    shift, inner, rest = array_ops.gather(params.row_starts(), indices.value_rowids()), indices.values, indices.values
    while _is_ragged(rest):
        shift, rest = array_ops.gather(shift, rest.value_rowids()), rest.values
    if _is_ragged(inner):
        return indices.with_values(gather(params.values, inner.with_flat_values(math_ops.cast(rest, shift.dtype) + shift)))
    if inner.shape.rank != 1:
        shift = array_ops.reshape(shift, array_ops.concat([array_ops.shape(shift), array_ops.ones([inner.shape.rank - 1], dtypes.int32)], 0))
    return indices.with_values(gather(params.values, math_ops.cast(inner, params.row_splits.dtype) + shift))


def _without_last(picked, batch_dims):
    from runnel.ragged.ragged_arrays import squeeze
    return squeeze(picked, batch_dims)


def batch_gather(params, indices, name=None):
    """Selects slices in each row: result[b, i] = params[b, indices[b, i]]."""
    params, indices = as_ragged_or_tensor(params), _index(indices)
    rank = indices.shape.rank
    if rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    if rank == 0:
        raise ValueError("indices.rank must be at least 1.")
    return gather(params, indices, axis=rank - 1, batch_dims=rank - 1, name=name)


def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    """Selects values by index tuples, the last dimension of `indices`."""
    if batch_dims:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGatherNd"):
        params, indices = as_ragged_or_tensor(params), _index(indices)
        if not _is_ragged(params) and not _is_ragged(indices):
            return array_ops.gather_nd(params, indices)
        rank = indices.shape.rank
        if rank is None:
            raise ValueError("indices.rank be statically known.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        if _is_ragged(indices) and rank == indices.ragged_rank + 1:
            raise ValueError("The innermost dimension of indices may not be ragged")
        size = indices.shape.as_list()[-1]
        if size is None:
            raise ValueError("indices.shape[-1] must be statically known.")
        if rank > 2:
            if _is_ragged(indices):
                return indices.with_values(gather_nd(params, indices.values))
            return gather_nd(params, RaggedTensor.from_tensor(indices, row_splits_dtype=params.row_splits.dtype))
        if rank == 1:
            return params[tuple(indices[i] for i in range(size))] if size else params
        return _by_tuples(params, indices, size)


def _by_tuples(params, indices, size):
    if size == 0:
        count = array_ops.shape(indices)[0]
        from runnel.ragged import ragged_functions
        return ragged_functions.tile(ragged_functions.expand_dims(params, 0), array_ops.concat(
            [[count], array_ops.ones([params.shape.rank], dtypes.int32)], 0))
    kind = params.row_splits.dtype if _is_ragged(params) else indices.dtype
    indices = math_ops.cast(indices, kind)
    place, rest = indices[:, 0], params
    for i in range(1, size):
        if not _is_ragged(rest):
            return array_ops.gather_nd(rest, array_ops.concat([array_ops.expand_dims(place, 1), indices[:, i:]], 1))
        place, rest = array_ops.gather(rest.row_starts(), place) + indices[:, i], rest.values
    return _rows(rest, place) if _is_ragged(rest) else array_ops.gather(rest, place)


def batch_gather_with_default(params, indices, default_value="", name=None):
    """Like batch_gather, with `default_value` for indices that are out of range."""
    from runnel.ragged import ragged_functions
    with name_scope(name, "RaggedBatchGatherWithDefault"):
        params, indices = as_ragged_or_tensor(params), _index(indices)
        default = as_ragged_or_tensor(default_value, dtype=params.dtype)
        if not _is_ragged(params):
            params = RaggedTensor.from_tensor(params)
        first = indices.values if _is_ragged(indices) else None
        pad = ragged_functions.concat([params, _row_of(default, params)], 1)
        limit = params.row_lengths()
        rows = indices.value_rowids() if first is not None else None
        if rows is None:
            raise NotImplementedError("batch_gather_with_default by indices that are not ragged")
        most = array_ops.gather(limit, rows)
        inside = math_ops.cast(first, most.dtype)
        place = array_ops.where((inside < most) & (inside >= 0), inside, most)
        return batch_gather(pad, indices.with_values(place))


def _row_of(default, params):
    if default.shape.rank != 0:
        raise NotImplementedError("batch_gather_with_default with a default that is not a scalar")
    rows = math_ops.cast(params.nrows(), dtypes.int32)
    return array_ops.fill(array_ops.stack([rows, 1]), default)


def repeat_ranges(params, splits, repeats):
    """Repeats each range params[splits[i]:splits[i + 1]] repeats[i] times."""
    starts, limits = splits[:-1], splits[1:]
    rows = _ops.Where(condition=array_ops.sequence_mask(repeats, math_ops.reduce_max(repeats)))[:, 0]
    begin, length = array_ops.gather(starts, rows), array_ops.gather(limits - starts, rows)
    places, _ = _spans(begin, length)
    return array_ops.gather(params, places)

