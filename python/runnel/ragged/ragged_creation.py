"""How ragged tensors come to be: the from_... methods of RaggedTensor."""

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert
from runnel.core import fallbacks
from runnel.core.composite import SparseTensor
from runnel.core.framework import Tensor, name_scope
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged.row_partition import RowPartition


def _rows(values, dtype):
    """Returns the size of the first dimension."""
    if hasattr(values, "ragged_rank"):
        return values.nrows(dtype)
    return flat_shape(values, dtype)[0]


def flat_shape(values, dtype):
    """Returns the shape of flat values, which need not be tensors."""
    if not isinstance(values, Tensor) and hasattr(values, "_is_composite"):
        if values.shape.is_fully_defined():
            return convert.constant(values.shape.as_list(), dtype)
        return fallbacks.applied(array_ops.shape, values, out_type=dtype)
    return array_ops.shape(values, out_type=dtype)


class RaggedCreation:
    """The methods that create ragged tensors; the base of RaggedTensor."""

    @classmethod
    def _from_row_partition(cls, values, row_partition, validate=True):
        """Creates a ragged tensor of values that a RowPartition divides into rows."""
        if not isinstance(row_partition, RowPartition):
            raise TypeError("Argument `row_partition` should be a RowPartition. Received %s." % (row_partition,))
        if not isinstance(validate, bool):
            raise TypeError("Argument `validate` should have type bool. Received %s." % (validate,))
        values = cls._values_for(values, row_partition)
        if row_partition._has_precomputed_value_rowids():
            values.shape[:1].assert_is_compatible_with(row_partition.value_rowids().shape)
        if validate:
            message = "Arguments to _from_row_partition do not form a valid RaggedTensor"
            checks = [check_ops.assert_equal(row_partition.nvals(), _rows(values, row_partition.dtype), message=message)]
            if isinstance(values, Tensor):
                checks.append(check_ops.assert_rank_at_least(values, 1))
            row_partition = row_partition._with_dependencies(checks)
        return cls(values, row_partition, internal=True)

    @classmethod
    def _values_for(cls, values, partition):
        from runnel.ragged.ragged_tensor import as_ragged_or_tensor
        values = as_ragged_or_tensor(values, name="values")
        if isinstance(values, cls) and values._row_partition.dtype != partition.dtype:
            raise ValueError("Argument `row_partition` of RaggedTensor with name: partition must have same dtype as Argument `values`. "
                             "(%r vs. %r)." % (partition.dtype, values._row_partition.dtype))
        return values

    @classmethod
    def _made(cls, name, default_name, values, make, validate):
        """Creates a ragged tensor in a scope; `make` returns its partition, given the values and the type of their partitions."""
        from runnel.ragged.ragged_tensor import RaggedTensorValue, as_ragged_or_tensor
        if not isinstance(validate, bool):
            raise TypeError("Argument `validate` must have type bool. Received %s." % (validate,))
        with name_scope(name, default_name, [values]):
            if isinstance(values, RaggedTensorValue):
                values = as_ragged_or_tensor(values)
            return cls._from_row_partition(values, make(values._row_partition.dtype if isinstance(values, cls) else None), validate)

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Creates a ragged tensor whose row i is values[row_splits[i]:row_splits[i + 1]]."""
        return cls._made(name, "RaggedFromRowSplits", values, lambda hint: RowPartition.from_row_splits(
            row_splits, validate=validate, dtype_hint=hint), validate)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Creates a ragged tensor whose row i has row_lengths[i] values."""
        return cls._made(name, "RaggedFromRowLengths", values, lambda hint: RowPartition.from_row_lengths(
            row_lengths, validate=validate, dtype_hint=hint), validate)

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Creates a ragged tensor whose row i begins at row_starts[i]."""
        from runnel.ragged.ragged_tensor import as_ragged_or_tensor
        values = as_ragged_or_tensor(values)
        return cls._made(name, "RaggedFromRowStarts", values, lambda hint: RowPartition.from_row_starts(
            row_starts, _rows(values, hint or dtypes.int64), validate=validate, dtype_hint=hint), validate)

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        """Creates a ragged tensor whose row i ends before row_limits[i]."""
        return cls._made(name, "RaggedFromRowLimits", values, lambda hint: RowPartition.from_row_limits(
            row_limits, validate=validate, dtype_hint=hint), validate)

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        """Creates a ragged tensor in which value i belongs to row value_rowids[i]."""
        return cls._made(name, "RaggedFromValueRowIds", values, lambda hint: RowPartition.from_value_rowids(
            value_rowids, nrows, validate=validate, dtype_hint=hint), validate)

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, validate=True, name=None):
        """Creates a ragged tensor whose rows all have one length. `nrows` is needed only if that is 0."""
        from runnel.ragged.ragged_tensor import as_ragged_or_tensor
        values = as_ragged_or_tensor(values, name="values")

        def make(hint):
            size = values.shape.as_list()[0] if values.shape.ndims else None
            size = size if size is not None else _rows(values, hint or _dtype_of(uniform_row_length, nrows))
            return RowPartition.from_uniform_row_length(uniform_row_length, nvals=size, nrows=nrows, validate=validate, dtype_hint=hint)
        return cls._made(name, "RaggedFromUniformRowLength", values, make, validate)

    @classmethod
    def _nested(cls, name, default_name, what, flat_values, nested, make):
        """Creates a ragged tensor from what divides all levels, the outermost first."""
        if isinstance(nested, Tensor):
            raise TypeError("Argument `%s` must be a list of Tensors. Received %s." % (what, nested))
        with name_scope(name, default_name, [flat_values]):
            result = flat_values
            for item in reversed(list(nested)):
                result = make(result, item)
            return result

    @classmethod
    def from_nested_value_rowids(cls, flat_values, nested_value_rowids, nested_nrows=None, name=None, validate=True):
        """Creates a ragged tensor from the rows of the values of all levels, the outermost first."""
        if isinstance(nested_nrows, Tensor):
            raise TypeError("Argument `nested_nrows` must be a list of Tensors. Received %s." % (nested_nrows,))
        if isinstance(nested_value_rowids, Tensor):
            raise TypeError("Argument `nested_value_rowids` must be a list of Tensors. Received %s." % (nested_value_rowids,))
        nested = list(nested_value_rowids)
        counts = [None] * len(nested) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested):
            raise ValueError("Argument `nested_nrows` must have the same length as argument `nested_value_rowids`. len(nested_nrows) = %d vs. "
                             "len(nested_values_rowids) = %d." % (len(counts), len(nested)))
        return cls._nested(name, "RaggedFromNestedValueRowIds", "nested_value_rowids", flat_values, list(zip(nested, counts)),
                           lambda values, item: cls.from_value_rowids(values, *item, validate=validate))

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        """Creates a ragged tensor from the row splits of all levels, the outermost first."""
        return cls._nested(name, "RaggedFromNestedRowSplits", "nested_row_splits", flat_values, nested_row_splits,
                           lambda values, splits: cls.from_row_splits(values, splits, validate=validate))

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        """Creates a ragged tensor from the row lengths of all levels, the outermost first."""
        return cls._nested(name, "RaggedFromNestedRowlengths", "nested_row_lengths", flat_values, nested_row_lengths,
                           lambda values, lengths: cls.from_row_lengths(values, lengths, validate=validate))

    @classmethod
    def _from_nested_row_partitions(cls, flat_values, nested_row_partitions, name=None, validate=True):
        """Creates a ragged tensor from RowPartitions, the outermost first."""
        if isinstance(nested_row_partitions, RowPartition):
            raise TypeError("Argument `nested_row_partitions` must be a list of RowPartitions. Received %s." % (nested_row_partitions,))
        return cls._nested(name, "RaggedFromNestedRowPartitions", "nested_row_partitions", flat_values, nested_row_partitions,
                           lambda values, partition: cls._from_row_partition(values, partition, validate))

    # Conversion.

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=dtypes.int64):
        """Converts a tensor; its rows have the given lengths, or lose the `padding` at their ends."""
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if not isinstance(ragged_rank, int):
            raise TypeError("Argument `ragged_rank` must be an int. Received %s." % ragged_rank)
        if ragged_rank <= 0:
            raise ValueError("Argument `ragged_rank` must be greater than 0. Received %s." % ragged_rank)
        with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
            tensor = convert.convert_to_tensor(tensor, name="tensor")
            if tensor.shape.rank is not None and tensor.shape.rank < 2:
                raise ValueError("The rank of a RaggedTensor must be greater than 1, i.e., a list of scalars won't have ragged dimensions. "
                                 "Received argument `tensor` with rank %d." % tensor.shape.rank)
            if isinstance(lengths, (list, tuple)) and len(lengths) and all(getattr(x, "shape", ()) or isinstance(x, (list, tuple)) for x in lengths):
                if ragged_rank not in (1, len(lengths)):
                    raise ValueError("If Argument `lengths` is a tuple of row_lengths, argument `ragged_rank` must be len(lengths): %d. Received "
                                     "ragged_rank: %d." % (len(lengths), ragged_rank))
                tensor.shape.with_rank_at_least(len(lengths) + 1)
                outer = cls.from_tensor(tensor, lengths[0], row_splits_dtype=row_splits_dtype)
                inner = list(lengths[1:])
                return outer.with_values(cls.from_tensor(outer.values, inner, row_splits_dtype=row_splits_dtype)) if inner else outer
            shape = array_ops.shape(tensor, out_type=row_splits_dtype)
            if ragged_rank > 1:
                return cls._from_tensor_levels(tensor, shape, lengths, padding, ragged_rank, row_splits_dtype)
            if padding is not None:
                lengths = _lengths_without(padding, tensor, shape, row_splits_dtype)
            if lengths is None:
                values = array_ops.reshape(tensor, array_ops.concat([[-1], shape[2:]], 0))
                return cls(values, _uniform(tensor, shape), internal=True)
            lengths = convert.convert_to_tensor(lengths, dtype_hint=row_splits_dtype, name="lengths")
            if not lengths.dtype.is_integer:
                raise TypeError("Argument `tensor` (name: lengths) must be of type integer. Received %r." % lengths.dtype)
            lengths = _ops.Minimum(_ops.Maximum(math_ops.cast(lengths, row_splits_dtype), 0), shape[1])
            values = _ops.GatherNd(tensor, array_ops.where(array_ops.sequence_mask(lengths, shape[1])))
            return cls.from_row_lengths(values, lengths, validate=False)

    @classmethod
    def _from_tensor_levels(cls, tensor, shape, lengths, padding, ragged_rank, dtype):
        if lengths is not None or padding is not None:
            raise NotImplementedError("from_tensor does not support lengths or padding with ragged_rank > 1")
        merged = array_ops.reshape(tensor, array_ops.concat([[shape[0] * shape[1]], shape[2:]], 0))
        return cls(cls.from_tensor(merged, ragged_rank=ragged_rank - 1, row_splits_dtype=dtype), _uniform(tensor, shape), internal=True)

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=dtypes.int64):
        """Converts a 2-D sparse tensor whose entries are at the start of each row."""
        if not isinstance(st_input, SparseTensor):
            raise TypeError("Argument `st_input` must be of type SparseTensor, but is of type %s." % type(st_input).__name__)
        with name_scope(name, "RaggedFromSparse", [st_input.values]):
            rank = st_input.dense_shape.shape.as_list()[0] if st_input.dense_shape.shape.ndims else None
            if rank is not None and rank != 2:
                raise ValueError("rank(st_input) must be 2.")
            indices = math_ops.cast(st_input.indices, row_splits_dtype)
            partition = RowPartition.from_value_rowids(indices[:, 0], nrows=math_ops.cast(st_input.dense_shape[0], row_splits_dtype),
                                                       validate=False)
            whole = check_ops.assert_equal(indices[:, 1], partition.offsets_in_rows(), message="SparseTensor is not right-ragged")
            return cls._from_row_partition(st_input.values, partition._with_dependencies([whole]), validate=False)


def _dtype_of(*values):
    return next((value.dtype for value in values if isinstance(value, Tensor)), dtypes.int64)


def _uniform(tensor, shape):
    """Returns the partition of a tensor's first dimension into rows of the second's size."""
    known = tensor.shape.as_list() if tensor.shape.ndims is not None else [None, None]
    rows, length = (shape[i] if known[i] is None else known[i] for i in range(2))
    return RowPartition.from_uniform_row_length(length, nvals=rows * length, nrows=rows, validate=False, dtype=shape.dtype)


def _lengths_without(padding, tensor, shape, dtype):
    """Returns the lengths of rows without the padding at their ends."""
    padding = convert.convert_to_tensor(padding, dtype=tensor.dtype, name="padding")
    if tensor.shape.ndims is not None:
        padding.shape.assert_is_compatible_with(tensor.shape[2:])
    there = math_ops.not_equal(tensor, padding)
    if tensor._rank() > 2:
        there = math_ops.reduce_any(there, axis=list(range(2, tensor._rank())))
    return math_ops.reduce_max(math_ops.range(1, shape[1] + 1) * math_ops.cast(there, dtype), 1)
