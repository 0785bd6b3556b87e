"""Ragged tensors from lists and ranges, and functions for them alone (tf.ragged)."""

import builtins

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ragged.ragged_functions import boolean_mask, map_flat_values, stack  # noqa: F401
from runnel.ragged.ragged_tensor import RaggedTensor, RaggedTensorValue, _long, _rowids, _spans


def _is_list(value):
    import numpy as np
    return isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.ndim > 0


def _find_scalar_and_max_depth(pylist):
    """Returns (depth of the scalars or None, greatest depth of lists)."""
    if not _is_list(pylist):
        return 0, 0
    scalars, deepest = None, 1
    for item in pylist:
        depth, below = _find_scalar_and_max_depth(item)
        if depth is not None:
            if scalars is not None and scalars != depth + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalars = depth + 1
        deepest = max(deepest, below + 1)
    return scalars, deepest


def _default_inner_shape_for_pylist(pylist, ragged_rank):
    """Returns the shape of the values of nested lists whose first dimensions are ragged."""
    rows = pylist
    for depth in builtins.range(ragged_rank):
        if not all(_is_list(row) for row in rows):
            raise ValueError("pylist has scalar values depth %d, but ragged_rank=%d requires scalar value depth greater than %d" % (
                depth + 1, ragged_rank, ragged_rank))
        rows = [item for row in rows for item in row]
    shape, first = [], rows
    while _is_list(first):
        shape.append(len(first))
        if not len(first):
            break
        first = first[0]
    _check_inner_shape(rows, shape)
    return tuple(shape[1:])


def _check_inner_shape(item, shape):
    if _is_list(item) != bool(shape) or shape and shape[0] != len(item):
        raise ValueError("inner values have inconsistent shape")
    for child in item if shape else ():
        _check_inner_shape(child, shape[1:])


def _build(pylist, ragged_rank, inner_shape, make_ragged, make_flat):
    """Makes a ragged value of nested lists, by functions that make rows and flat values."""
    if inner_shape is not None:
        inner_shape = tuple(inner_shape)
    if not _is_list(pylist):
        if ragged_rank is not None and ragged_rank != 0:
            raise ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d" % (pylist, ragged_rank))
        if inner_shape:
            raise ValueError("Invalid pylist=%r: incompatible with dim(inner_shape)=%d" % (pylist, len(inner_shape)))
        return make_flat(pylist, ())
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError("Invalid ragged_rank=%r: must be nonnegative" % ragged_rank)
    scalars, deepest = _find_scalar_and_max_depth(pylist)
    if scalars is not None and deepest > scalars:
        raise ValueError("Invalid pylist=%r: empty list nesting is greater than scalar value nesting" % (pylist,))
    if scalars is not None and ragged_rank is not None and deepest < ragged_rank:
        raise ValueError("Invalid pylist=%r, max depth smaller than ragged_rank=%d" % (pylist, ragged_rank))
    if inner_shape is not None and ragged_rank is not None:
        wanted = ragged_rank + len(inner_shape) + 1
        if scalars is not None and wanted != scalars or scalars is None and wanted < deepest:
            raise ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d and dim(inner_shape)=%d" % (pylist, ragged_rank, len(inner_shape)))
    if ragged_rank == 0 or ragged_rank is None and (deepest < 2 or inner_shape is not None and deepest - len(inner_shape) < 2):
        return make_flat(pylist, None if inner_shape is None else (len(pylist), *inner_shape))
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else _default_inner_shape_for_pylist(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, deepest - 1 if scalars is None else scalars - 1 - len(inner_shape))
    nested, rows = [], pylist
    for _ in builtins.range(ragged_rank):
        splits, below = [0], []
        for row in rows:
            below.extend(row)
            splits.append(len(below))
        nested.append(splits)
        rows = below
    flat = make_flat(rows, (len(rows), *inner_shape))
    for splits in reversed(nested):
        flat = make_ragged(flat, splits)
    return flat


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=dtypes.int64):
    """Creates a constant ragged tensor from nested lists.

    Args:
      pylist: nested lists with all numbers or strings at the same depth.
      dtype: their type; by default the values determine it.
      ragged_rank: how many dimensions are ragged; by default all but the innermost.
      inner_shape: the shape of a single value.
      name: name of the operations.
      row_splits_dtype: int32 or int64.
    """

    def flat(rows, shape):
        kind = dtype or (dtypes.float32 if _is_list(rows) and not len(rows) else None)
        return convert.constant(rows, kind, shape)

    with name_scope(name, "RaggedConstant"):
        return _build(pylist, ragged_rank, inner_shape, lambda values, splits: RaggedTensor.from_row_splits(
            values, convert.constant(splits, row_splits_dtype), validate=False), flat)


def constant_value(pylist, dtype=None, ragged_rank=None, inner_shape=None, row_splits_dtype="int64"):
    """Like constant, but returns arrays: a RaggedTensorValue."""
    import numpy as np
    kind = dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype
    splits_kind = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype

    def flat(rows, shape):
        made = np.array(rows) if kind in (None, object) else np.array(rows).astype(kind)  # which wraps numbers around, as in stock
        return made if shape is None or not _is_list(rows) else np.reshape(made, shape)

    return _build(pylist, ragged_rank, inner_shape, lambda values, splits: RaggedTensorValue(values, np.array(splits, splits_kind)), flat)


def placeholder(dtype, ragged_rank, value_shape=None, name=None):
    """Creates a ragged tensor that is fed with a RaggedTensorValue."""
    with name_scope(name, "RaggedPlaceholder"):
        flat_shape = [None, *value_shape] if value_shape is not None else None if ragged_rank else value_shape
        result = array_ops.placeholder(dtype, flat_shape, "flat_values")
        for i in reversed(builtins.range(ragged_rank)):
            splits = array_ops.placeholder(dtypes.int64, [None], "row_splits_%d" % i)
            result = RaggedTensor.from_row_splits(result, splits, validate=False)
        return result


def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=dtypes.int64):  # noqa: A001
    """Returns a ragged tensor whose row i counts from starts[i] to limits[i] by deltas[i]."""
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]):
        starts, limits, deltas = (convert.convert_to_tensor(v, dtype=dtype) for v in (starts, limits, deltas))
        kind = dtype or next((t.dtype for t in (starts, limits, deltas) if t.dtype.is_floating), None) or (
            dtypes.int64 if dtypes.int64 in (starts.dtype, limits.dtype, deltas.dtype) else dtypes.int32)
        starts, limits, deltas = (math_ops.cast(t, kind) for t in (starts, limits, deltas))
        base = array_ops.zeros_like(starts + limits + deltas)
        starts, limits, deltas = (array_ops.reshape(t + base, [-1]) for t in (starts, limits, deltas))
        exact = (limits - starts) / deltas
        lengths = _ops.Maximum(math_ops.cast(-_ops.Floor(-math_ops.cast(exact, dtypes.float64)), row_splits_dtype), 0)
        places, splits = _spans(array_ops.zeros_like(lengths), lengths)
        rows = _rowids(splits)
        values = array_ops.gather(starts, rows) + math_ops.cast(places, kind) * array_ops.gather(deltas, rows)
        return RaggedTensor._of(values, splits)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    """Returns the row of each value."""
    with name_scope(name, "RaggedSplitsToSegmentIds"):
        ids = _rowids(_long(splits, "splits"))
        return ids if out_type is None else math_ops.cast(ids, out_type)


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    """Returns the row splits for the sorted row numbers of values."""
    with name_scope(name, "SegmentIdsToRowSplits"):
        ids = _long(segment_ids, "segment_ids")
        if num_segments is None:  # the ids need not be sorted
            num_segments = math_ops.reduce_max(array_ops.concat([ids, array_ops.fill([1], math_ops.cast(-1, ids.dtype))], 0)) + 1
        splits = RaggedTensor.from_value_rowids(ids, ids, nrows=num_segments, validate=False).row_splits
        return splits if out_type is None else math_ops.cast(splits, out_type)


def stack_dynamic_partitions(data, partitions, num_partitions, name=None):
    """Returns a ragged tensor whose row i has the rows of `data` with partition i."""
    from runnel.ragged import ragged_arrays
    return ragged_arrays.stack_partitions(data, partitions, num_partitions, name)
