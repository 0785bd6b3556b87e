"""Lookups in tables that may be split over several tensors (tf.nn.embedding_lookup and others)."""

from runnel import dtypes, raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import colocate_with, name_scope
from runnel.ops import array_ops, math_ops


def _as_list(params):
    if hasattr(params, "_get_variable_list"):  # a PartitionedVariable
        return list(params)
    return list(params) if isinstance(params, (list, tuple)) else [params]


def _rows(params, ids, name=None):
    """Returns rows of one table, read on its device."""
    if hasattr(params, "sparse_read"):
        return params.sparse_read(ids, name=name)
    with colocate_with(params):
        return array_ops.gather(params, ids, name=name)


def _clipped(values, ids, max_norm):
    if max_norm is None:
        return values
    from runnel.ops import clip_ops
    ids_rank, rank = ids.shape.ndims, values.shape.ndims
    if ids_rank is not None and rank is not None:
        axes = list(range(ids_rank, rank))
    else:
        axes = math_ops.range(array_ops.rank(ids), array_ops.rank(values))
    return clip_ops.clip_by_norm(values, max_norm, axes=axes)


def embedding_lookup(params, ids, partition_strategy="mod", name=None, validate_indices=True,
                     max_norm=None):
    """Returns the rows `ids` of a table, which may be split over the tensors `params`.

    Args:
      params: a table, or its parts. With "mod", row i is row i // n of part i % n; with "div", parts hold consecutive
        rows, the first parts one more.
      ids: row numbers of any shape.
      partition_strategy: "mod" or "div".
      name: name of the scope.
      validate_indices: not used.
      max_norm: rows with a larger norm are scaled down to it.
    """
    params = _as_list(params)
    if not params:
        raise ValueError("Need at least one param")
    with name_scope(name, "embedding_lookup", params + [ids]) as name:
        ids = convert_to_tensor(ids, name="ids")
        if len(params) == 1:
            values = _clipped(_rows(params[0], ids, name=None if max_norm is not None else name), ids,
                              max_norm)
            return raw_ops.Identity(input=values)
        return _partitioned_lookup(params, ids, partition_strategy, max_norm)


def _partitioned_lookup(params, ids, partition_strategy, max_norm):
    parts = len(params)
    flat = array_ops.reshape(ids, [-1])
    positions = math_ops.range(array_ops.size(flat))
    if partition_strategy == "mod":
        owners, rows = flat % parts, flat // parts
    elif partition_strategy == "div":
        owners, rows = _div_owners(params, flat)
    else:
        raise ValueError("Unrecognized partition strategy: " + str(partition_strategy))
    owners = math_ops.cast(owners, dtypes.int32)
    row_groups = raw_ops.DynamicPartition(data=rows, partitions=owners, num_partitions=parts)
    place_groups = raw_ops.DynamicPartition(data=positions, partitions=owners, num_partitions=parts)
    found = []
    for part, group in zip(params, row_groups):
        with colocate_with(part):
            found.append(_clipped(_rows(part, group), group, max_norm))
    result = raw_ops.ParallelDynamicStitch(indices=list(place_groups), data=found)
    width = found[0].shape
    if width.dims is not None:
        element = width.as_list()[1:]
        if all(d is not None for d in element):
            result = array_ops.reshape(result, array_ops.concat([array_ops.shape(ids), element], 0))
            result.set_shape(ids.shape.concatenate(element))
            return result
    with colocate_with(params[0]):
        element_shape = array_ops.shape(convert_to_tensor(params[0]))[1:]
    return array_ops.reshape(result, array_ops.concat([array_ops.shape(ids), element_shape], 0))


def _div_owners(params, flat):
    parts = len(params)
    sizes = [p.shape.as_list()[0] if p.shape.dims else None for p in params]
    if all(size is not None for size in sizes):
        total = convert_to_tensor(sum(sizes), flat.dtype)
    else:
        counts = []
        for part in params:
            with colocate_with(part):
                counts.append(math_ops.cast(array_ops.shape(convert_to_tensor(part))[0], flat.dtype))
        total = math_ops.reduce_sum(array_ops.stack(counts))
    each, extras = total // parts, total % parts
    owners = raw_ops.Maximum(flat // (each + 1), (flat - extras) // each)
    is_early = math_ops.cast(owners < extras, flat.dtype)
    rows = is_early * (flat % (each + 1)) + (1 - is_early) * ((flat - extras) % each)
    return owners, rows


def embedding_lookup_sparse(params, sp_ids, sp_weights, partition_strategy="mod", name=None,
                            combiner=None, max_norm=None, allow_fast_lookup=False):
    """Combines rows: row i of the result combines the rows of the ids in row i of `sp_ids`.

    `combiner` is "sum", "mean" (divided by the sum of the weights) or "sqrtn" (divided by their norm).
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum', got %s" % combiner)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor, got %s" % type(sp_ids))
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError("sp_weights must be either None or SparseTensor")
    params = _as_list(params)
    with name_scope(name, "embedding_lookup_sparse", params + [sp_ids.indices]) as name:
        segments = math_ops.cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, index = array_ops.unique(sp_ids.values)
        rows = embedding_lookup(params, ids, partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            fn = {"sum": raw_ops.SparseSegmentSum, "mean": raw_ops.SparseSegmentMean,
                  "sqrtn": raw_ops.SparseSegmentSqrtN}[combiner]
            return fn(data=rows, indices=index, segment_ids=segments, name=name)
        return _weighted(rows, index, segments, sp_weights.values, combiner, name)


def _weighted(rows, index, segments, weights, combiner, name):
    rows = array_ops.gather(rows, index)
    if weights.dtype != rows.dtype:
        weights = math_ops.cast(weights, rows.dtype)
    count = array_ops.rank(rows) - 1
    shape = array_ops.concat([array_ops.shape(weights), array_ops.fill(
        array_ops.expand_dims(count, 0), 1)], 0)
    known = weights.shape
    weights = array_ops.reshape(weights, shape)
    if rows.shape.ndims is not None:
        weights.set_shape(known.concatenate([1] * (rows.shape.ndims - 1)))
    total = raw_ops.SegmentSum(data=rows * weights, segment_ids=segments,
                               name=name if combiner == "sum" else None)
    if combiner == "sum":
        return total
    if combiner == "mean":
        norm = raw_ops.SegmentSum(data=weights, segment_ids=segments)
    else:
        norm = raw_ops.Sqrt(raw_ops.SegmentSum(data=raw_ops.Square(weights), segment_ids=segments))
    return raw_ops.DivNoNan(x=total, y=norm, name=name)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner="mean",
                                 default_id=None, name=None, partition_strategy="div", max_norm=None,
                                 allow_fast_lookup=False):
    """Like embedding_lookup_sparse, for ids that may be missing or negative.

    Those use the row of `default_id`, or zeros.
    """
    from runnel import sparse
    weights = _as_list(embedding_weights)
    if not weights:
        raise ValueError("Missing embedding_weights %s." % (embedding_weights,))
    with name_scope(name, "embedding_lookup", weights + [sparse_ids.indices]) as scope:
        shape = sparse_ids.dense_shape
        rank = sparse_ids.shape.ndims or array_ops.size(shape)
        flat_shape = [math_ops.reduce_prod(shape[:-1] if sparse_ids.shape.ndims
                                           else raw_ops.Slice(input=shape, begin=[0], size=[rank - 1])),
                      array_ops.gather(shape, rank - 1)]
        ids = sparse.reshape(sparse_ids, flat_shape)
        kept = ids.values >= 0
        if sparse_weights is not None and combiner != "sum":
            kept = math_ops.logical_and(kept, sparse_weights.values > 0)
        if sparse_weights is not None:
            sparse_weights = sparse.retain(SparseTensor(ids.indices, sparse_weights.values,
                                                        ids.dense_shape), kept)
        ids = sparse.retain(ids, kept)
        ids, is_empty = sparse.fill_empty_rows(ids, default_id or 0)
        if sparse_weights is not None:
            sparse_weights, _ = sparse.fill_empty_rows(sparse_weights, 1.0)
        result = embedding_lookup_sparse(weights, ids, sparse_weights, combiner=combiner,
                                         partition_strategy=partition_strategy,
                                         name=None if default_id is None else scope,
                                         max_norm=max_norm)
        if default_id is None:
            column = array_ops.reshape(is_empty, [-1, 1])
            mask = array_ops.tile(column, array_ops.stack([1, array_ops.shape(result)[1]]))
            result = array_ops.where(mask, array_ops.zeros_like(result), result, name=scope)
        outer = raw_ops.Slice(input=math_ops.cast(shape, dtypes.int32), begin=[0], size=[rank - 1])
        final = array_ops.reshape(result, array_ops.concat([outer, array_ops.shape(result)[1:]], 0))
        if sparse_ids.shape.ndims is not None and result.shape.dims is not None:
            final.set_shape([None] * (sparse_ids.shape.ndims - 1) + result.shape.as_list()[1:])
        return final

