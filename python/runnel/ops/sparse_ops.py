"""Functions of sparse tensors."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.convert import constant_value_as_shape, convert_to_tensor
from runnel.core.framework import Tensor, name_scope
from runnel.core.naming import named
from runnel.ops.math_ops import _pick, cast


def _sparse(value):
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def sparse_add(a, b, threshold=None, thresh=None):
    """Adds two tensors of which at least one is sparse."""
    threshold = _pick("threshold", threshold, "thresh", thresh)
    threshold = 0 if threshold is None else threshold
    is_sparse = [isinstance(x, (SparseTensor, SparseTensorValue)) for x in (a, b)]
    if not any(is_sparse):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if all(is_sparse):
        a, b = _sparse(a), _sparse(b)
        threshold = convert_to_tensor(threshold, dtype=a.values.dtype.real_dtype.base_dtype, name="thresh")
        out = _ops.SparseAdd(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, threshold)
        return SparseTensor(*out)
    sparse, dense = (_sparse(a), b) if is_sparse[0] else (_sparse(b), a)
    return _ops.SparseTensorDenseAdd(sparse.indices, sparse.values, sparse.dense_shape, dense)


def sparse_concat(axis, sp_inputs, name=None, expand_nonconcat_dim=False, concat_dim=None, expand_nonconcat_dims=None):
    """Joins sparse tensors along a dimension."""
    axis = _pick("axis", axis, "concat_dim", concat_dim)
    inputs = [_sparse(sp) for sp in sp_inputs]
    if len(inputs) == 1:
        return inputs[0]
    if expand_nonconcat_dim or expand_nonconcat_dims:
        raise NotImplementedError("sparse_concat supports equal shapes only")
    out = _ops.SparseConcat([sp.indices for sp in inputs], [sp.values for sp in inputs], [sp.dense_shape for sp in inputs],
                            concat_dim=axis, name=name)
    return _shaped(SparseTensor(*out), _concatenated([sp.shape for sp in inputs], axis))


def _shaped(sparse, dims):
    """Returns a sparse tensor, in a graph with a static shape that is known from elsewhere."""
    if dims is not None and sparse.dense_shape.op is not None:
        sparse.set_shape(dims)
    return sparse


def _concatenated(shapes, axis):
    """Returns the dimensions of a concatenation; None if ranks are unknown."""
    if any(shape.rank is None for shape in shapes) or not -shapes[0].rank <= axis < shapes[0].rank:
        return None
    along = [shape.as_list()[axis] for shape in shapes]
    dims = shapes[0].as_list()
    dims[axis] = None if None in along else sum(along)
    return dims


def sparse_reorder(sp_input, name=None):
    """Sorts the entries of a sparse tensor by their indices."""
    sp_input = _sparse(sp_input)
    indices, values = _ops.SparseReorder(sp_input.indices, sp_input.values, sp_input.dense_shape, name=name)
    return _shaped(SparseTensor(indices, values, _ops.Identity(sp_input.dense_shape)), sp_input.shape)


def sparse_reshape(sp_input, shape, name=None):
    """Returns the entries of a sparse tensor in another shape."""
    sp_input = _sparse(sp_input)
    shape = cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape", [sp_input]) as scope:
        indices, new_shape = _ops.SparseReshape(sp_input.indices, sp_input.dense_shape, shape, name=scope)
        reshaped = SparseTensor(indices, _ops.Identity(sp_input.values), new_shape)
        given = constant_value_as_shape(shape) if sp_input.shape.is_fully_defined() else None
        return _shaped(reshaped, given if given is not None and given.is_fully_defined() else None)


def sparse_split(keyword_required=None, sp_input=None, num_split=None, axis=None, name=None, split_dim=None):
    """Splits a sparse tensor into `num_split` parts along a dimension."""
    axis = _pick("axis", axis, "split_dim", split_dim)
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sparse_split needs sp_input, num_split and axis as keyword arguments")
    sp_input = _sparse(sp_input)
    indices, values, shapes = _ops.SparseSplit(axis, sp_input.indices, sp_input.values, sp_input.dense_shape, num_split=num_split, name=name)
    return [SparseTensor(*row) for row in zip(indices, values, shapes)]


def sparse_slice(sp_input, start, size, name=None):
    """Returns the part of a sparse tensor of size `size` that starts at `start`."""
    sp_input = _sparse(sp_input)
    start = convert_to_tensor(start, dtypes.int64)
    size = convert_to_tensor(size, dtypes.int64)
    with name_scope(name, "SparseSlice", [sp_input]) as scope:
        return SparseTensor(*_ops.SparseSlice(sp_input.indices, sp_input.values, sp_input.dense_shape, start, size, name=scope))


def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0, validate_indices=True, name=None):
    """Creates a dense tensor with `sparse_values` at `sparse_indices` and `default_value` elsewhere."""
    return _ops.SparseToDense(sparse_indices, output_shape, sparse_values, default_value, validate_indices=validate_indices, name=name)


def sparse_tensor_to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """Converts a sparse tensor to a dense one."""
    sp_input = _sparse(sp_input)
    if default_value is None:
        default_value = "" if sp_input.dtype == dtypes.string else False if sp_input.dtype == dtypes.bool else 0
    dense = sparse_to_dense(sp_input.indices, sp_input.dense_shape, sp_input.values, default_value, validate_indices, name)
    if dense.op is not None and sp_input.shape.rank is not None:  # in a graph, refine the static shape
        dense.set_shape(sp_input.shape)
    return dense


def sparse_to_indicator(sp_input, vocab_size, name=None):
    """Returns a bool matrix that tells which ids occur in each row."""
    with name_scope(name, "SparseToIndicator", [sp_input]) as scope:
        sp_input = _sparse(sp_input)
        count = _ops.Shape(sp_input.indices)[0]
        ones = _ops.Fill(_ops.ExpandDims(count, 0), True)
        merged = sparse_merge(sp_input, SparseTensor(sp_input.indices, ones, sp_input.dense_shape), vocab_size)
        return sparse_tensor_to_dense(merged, default_value=False, validate_indices=False, name=scope)


def _cross_inputs(inputs):
    """Returns (indices, values, shapes, dense inputs) of the inputs of a cross, which are strings or int64."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(i, (SparseTensor, Tensor)) for i in inputs):
        raise TypeError("All inputs must be Tensor or SparseTensor.")
    sparse = [i for i in inputs if isinstance(i, SparseTensor)]
    values, dense = ([t if t.dtype == dtypes.string else cast(t, dtypes.int64) for t in tensors] for tensors in (
        [i.values for i in sparse], [i for i in inputs if not isinstance(i, SparseTensor)]))
    return [i.indices for i in sparse], values, [i.dense_shape for i in sparse], dense


def sparse_cross(inputs, name=None, separator=None):
    """Returns, for each row, all combinations of the inputs' values as strings such as "a_X_b"."""
    separator = convert_to_tensor("_X_" if separator is None else separator, dtypes.string)
    return SparseTensor(*_ops.SparseCrossV2(*_cross_inputs(inputs), sep=separator, name=name))


def sparse_cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """Returns, for each row, the hashes of all combinations of the inputs' values, modulo `num_buckets` unless it is 0."""
    indices, values, shapes, dense = _cross_inputs(inputs)
    texts = all(t.dtype == dtypes.string for t in values + dense)
    return SparseTensor(*_ops.SparseCross(
        indices, values, shapes, dense, hashed_output=True, num_buckets=num_buckets, hash_key=hash_key or 0xDECAFCAFFE,
        out_type=dtypes.int64, internal_type=dtypes.string if texts else dtypes.int64, name=name))


def sparse_merge(sp_ids, sp_values, vocab_size, name=None, already_sorted=False):
    """Makes a sparse tensor whose last index comes from `sp_ids` and whose values come from `sp_values`."""
    from runnel.ops.array_ops import concat
    from runnel.ops.math_ops import cast
    with name_scope(name, "SparseMerge", [sp_ids, sp_values]):
        sp_ids, sp_values = _sparse(sp_ids), _sparse(sp_values)
        ids = _ops.ExpandDims(cast(sp_ids.values, dtypes.int64), 1)
        indices = concat([sp_ids.indices[:, :-1], ids], 1)
        shape = concat([sp_ids.dense_shape[:-1], _ops.ExpandDims(cast(convert_to_tensor(vocab_size), dtypes.int64), 0)], 0)
        merged = SparseTensor(indices, sp_values.values, shape)
        return merged if already_sorted else sparse_reorder(merged)


def sparse_retain(sp_input, to_retain):
    """Keeps the entries for which `to_retain` is true."""
    from runnel.ops.array_ops import reshape, where
    sp_input = _sparse(sp_input)
    to_retain = convert_to_tensor(to_retain)
    places = reshape(where(to_retain), [-1])
    return SparseTensor(_ops.GatherV2(sp_input.indices, places, 0), _ops.GatherV2(sp_input.values, places, 0),
                        _ops.Identity(sp_input.dense_shape))


def sparse_reset_shape(sp_input, new_shape=None):
    """Returns the entries in the shape `new_shape`, or in the smallest shape that holds them."""
    from runnel.ops.math_ops import reduce_max
    sp_input = _sparse(sp_input)
    indices, values = _ops.Identity(sp_input.indices), _ops.Identity(sp_input.values)
    if new_shape is None:
        shape = _ops.Maximum(convert_to_tensor(0, dtype=dtypes.int64), reduce_max(indices, 0) + 1)
    else:
        shape = convert_to_tensor(new_shape, dtype=dtypes.int64)
    return SparseTensor(indices, values, shape)


def sparse_fill_empty_rows(sp_input, default_value, name=None):
    """Adds an entry with `default_value` to each empty row. Returns (result, which rows were empty)."""
    sp_input = _sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp_input]):
        default_value = convert_to_tensor(default_value, dtype=sp_input.values.dtype)
        out = _ops.SparseFillEmptyRows(sp_input.indices, sp_input.values, sp_input.dense_shape, default_value)
        return SparseTensor(out[0], out[1], sp_input.dense_shape), out[2]


def sparse_tensor_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """Multiplies a sparse matrix by a dense one, or a dense one by a sparse one."""
    if isinstance(b, (SparseTensor, SparseTensorValue)):
        from runnel.ops.array_ops import transpose
        return transpose(sparse_tensor_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a))
    sp_a = _sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, sp_a.values, b]) as scope:
        b = convert_to_tensor(b, name="b")
        return _ops.SparseTensorDenseMatMul(sp_a.indices, sp_a.values, sp_a.dense_shape, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b, name=scope)


def sparse_softmax(sp_input, name=None):
    """Computes the softmax over the entries of each row."""
    with name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]) as scope:
        values = _ops.SparseSoftmax(sp_input.indices, sp_input.values, sp_input.dense_shape, name=scope)
        return SparseTensor(sp_input.indices, values, sp_input.dense_shape)


def _pairwise(op, public_name):
    def function(sp_a, sp_b, name=None):
        with name_scope(name, op, [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
            out = getattr(_ops, op)(sp_a.indices, sp_a.values, sp_a.dense_shape, sp_b.indices, sp_b.values, sp_b.dense_shape, name=scope)
        return SparseTensor(out[0], out[1], sp_a.dense_shape)
    return named(function, public_name, "Returns the element-wise %s of two sparse tensors; a missing entry counts as 0." % public_name[7:])


sparse_maximum = _pairwise("SparseSparseMaximum", "sparse_maximum")
sparse_minimum = _pairwise("SparseSparseMinimum", "sparse_minimum")


def _reducer(op, public_name, doc, is_sparse):
    def function(sp_input, axis=None, keepdims=None, reduction_axes=None, keep_dims=None, name=None):
        from runnel.ops.math_ops import _reduction_dims
        sp_input = _sparse(sp_input)
        keepdims = bool(_pick("keepdims", keepdims, "keep_dims", keep_dims))
        axis = _pick("axis", axis, "reduction_axes", reduction_axes)
        out = getattr(_ops, op)(sp_input.indices, sp_input.values, sp_input.dense_shape, _reduction_dims(sp_input, axis), keep_dims=keepdims, name=name)
        return SparseTensor(*out) if is_sparse else out
    return named(function, public_name, doc)


sparse_reduce_sum = _reducer("SparseReduceSum", "sparse_reduce_sum", "Returns the sum over dimensions as a dense tensor.", False)
sparse_reduce_max = _reducer("SparseReduceMax", "sparse_reduce_max", "Returns the maximum over dimensions as a dense tensor.", False)
sparse_reduce_sum_sparse = _reducer("SparseReduceSumSparse", "sparse_reduce_sum_sparse", "Returns the sum over dimensions as a sparse tensor.", True)
sparse_reduce_max_sparse = _reducer("SparseReduceMaxSparse", "sparse_reduce_max_sparse", "Returns the maximum over dimensions as a sparse tensor.", True)


def sparse_transpose(sp_input, perm=None, name=None):
    """Permutes the dimensions of a sparse tensor by `perm`; without `perm`, reverses them."""
    from runnel.ops.array_ops import gather, transpose
    with name_scope(name, "SparseTranspose", [sp_input]):
        sp_input = _sparse(sp_input)
        if perm is None:
            rank = sp_input.dense_shape.shape.dims[0].value
            perm = list(range(rank - 1, -1, -1)) if rank is not None else (_ops.Rank(sp_input) - 1) - _ops.Range(0, _ops.Rank(sp_input), 1)
        indices = transpose(gather(transpose(sp_input.indices), perm))
        return sparse_reorder(SparseTensor(indices, sp_input.values, gather(sp_input.dense_shape, perm)))


def sparse_mask(a, mask_indices, name=None):
    """Returns the IndexedSlices `a` without the rows in `mask_indices`."""
    from runnel.core.composite import IndexedSlices
    from runnel.ops.array_ops import gather
    with name_scope(name, "sparse_mask", [a, mask_indices]) as scope:
        out_indices, to_gather = _ops.ListDiff(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, to_gather, name=scope), out_indices, a.dense_shape)


def from_dense(tensor, name=None):
    """Converts a dense tensor to a sparse one."""
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        from runnel.ops.array_ops import zeros_like
        indices = _ops.Where(_ops.NotEqual(tensor, zeros_like(tensor)))
        return SparseTensor(indices, _ops.GatherNd(tensor, indices), _ops.Shape(tensor, out_type=dtypes.int64))


def sparse_expand_dims(sp_input, axis=None, name=None):
    """Inserts a dimension of size 1 at `axis`."""
    from runnel.ops.array_ops import concat
    rank = sp_input.dense_shape.shape.dims[0].value
    axis = -1 if axis is None else axis
    with name_scope(name, default_name="expand_dims", values=[sp_input]):
        if rank is None:
            rank = _ops.Size(sp_input.dense_shape)  # known when the graph runs
        axis = rank + axis + 1 if axis < 0 else axis
        column = _ops.Fill([_ops.Shape(sp_input.indices)[0], 1], convert_to_tensor(0, dtype=dtypes.int64))
        indices = concat([sp_input.indices[:, :axis], column, sp_input.indices[:, axis:]], 1)
        shape = concat([sp_input.dense_shape[:axis], convert_to_tensor([1], dtype=dtypes.int64), sp_input.dense_shape[axis:]], 0)
        return SparseTensor(indices, sp_input.values, shape)


def sparse_eye(num_rows, num_columns=None, dtype=dtypes.float32, name=None):
    """Creates a sparse identity matrix."""
    from runnel.ops.array_ops import ones, stack
    from runnel.ops.math_ops import cast
    with name_scope(name, default_name="eye", values=[num_rows, num_columns]):
        num_rows = cast(convert_to_tensor(num_rows), dtypes.int64)
        num_columns = num_rows if num_columns is None else cast(convert_to_tensor(num_columns), dtypes.int64)
        size = _ops.Minimum(num_rows, num_columns)
        place = _ops.Range(convert_to_tensor(0, dtype=dtypes.int64), size, convert_to_tensor(1, dtype=dtypes.int64))
        return SparseTensor(stack([place, place], axis=1), ones([size], dtype=dtype), stack([num_rows, num_columns]))


def serialize_sparse(sp_input, name=None, out_type=dtypes.string):
    """Serializes to a [3] vector of strings or variants."""
    sp_input = _sparse(sp_input)
    return _ops.SerializeSparse(sp_input.indices, sp_input.values, sp_input.dense_shape, out_type=out_type, name=name)


def serialize_many_sparse(sp_input, name=None, out_type=dtypes.string):
    """Serializes each row to a [3] vector of strings or variants."""
    sp_input = _sparse(sp_input)
    return _ops.SerializeManySparse(sp_input.indices, sp_input.values, sp_input.dense_shape, out_type=out_type, name=name)


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    """Restores the sparse tensor from serialized rows."""
    return SparseTensor(*_ops.DeserializeManySparse(serialized_sparse, dtype, name=name))


