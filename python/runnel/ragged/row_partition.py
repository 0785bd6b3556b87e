"""tf.experimental.RowPartition: how the values of a ragged tensor are divided into rows."""

from runnel import dtypes, raw_ops
from runnel.core import convert, tensor_shape
from runnel.core.convert import constant_value
from runnel.core.framework import Tensor, name_scope
from runnel.core.type_spec import CompositeTensor, TensorSpec
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged.row_partition_spec import RowPartitionSpec

# The ways to state a partition. Row splits are always known; the others are kept if they were given, and computed if not.
_ENCODINGS = ("row_splits", "row_lengths", "value_rowids", "nrows", "uniform_row_length", "nvals")


_row_partition_factory_key = object()  # what the from_... methods give the constructor


class RowPartition(CompositeTensor):
    """A division of values into rows: row i has the values row_splits[i] to row_splits[i + 1]. The from_... methods create it."""

    def __init__(self, row_splits, row_lengths=None, value_rowids=None, nrows=None, uniform_row_length=None, nvals=None, internal=None):
        if internal is not _row_partition_factory_key:
            raise ValueError("RowPartition constructor is private; please use one of the factory methods instead (e.g., "
                             "RowPartition.from_row_lengths())")
        if not isinstance(row_splits, (Tensor, TensorSpec)):
            raise TypeError("Row-partitioning argument must be a Tensor, got %r" % (row_splits,))
        if row_splits.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("Row-partitioning argument must be int32 or int64")
        row_splits.shape.assert_has_rank(1)
        self._known = dict(zip(_ENCODINGS, (row_splits, row_lengths, value_rowids, nrows, uniform_row_length, nvals)))
        for value in self._known.values():
            if value is not None and not isinstance(value, (Tensor, TensorSpec)):
                raise TypeError("Cached value must be a Tensor or None.")
            if value is not None and value.dtype != row_splits.dtype:
                raise ValueError("Inconsistent dtype for encoding tensors: %s vs %s" % (value, row_splits))

    _row_splits = property(lambda self: self._known["row_splits"])
    _row_lengths = property(lambda self: self._known["row_lengths"])
    _value_rowids = property(lambda self: self._known["value_rowids"])
    _nrows = property(lambda self: self._known["nrows"])
    _uniform_row_length = property(lambda self: self._known["uniform_row_length"])
    _nvals = property(lambda self: self._known["nvals"])

    # Creation.

    @classmethod
    def _of(cls, **known):
        return cls(internal=_row_partition_factory_key, **known)

    @classmethod
    def from_row_splits(cls, row_splits, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition from the places where rows begin, and the end of the last."""
        _check_validate(validate)
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        if isinstance(row_splits, TensorSpec):
            return cls._of(row_splits=row_splits)
        with name_scope(None, "RowPartitionFromRowSplits", [row_splits]):
            splits = _taken(row_splits, "row_splits", dtype, dtype_hint)
            splits.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_splits do not form a valid RaggedTensor:"
                splits = _after([check_ops.assert_rank(splits, 1, message=message + "rank"),
                                 check_ops.assert_equal(splits[0], _zero(splits), message=message + "zero"),
                                 _assert_ascending(splits, message + "monotonic")], splits)
            return cls._of(row_splits=splits)

    @classmethod
    def from_row_lengths(cls, row_lengths, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition from the lengths of the rows."""
        _check_validate(validate)
        with name_scope(None, "RowPartitionFromRowLengths", [row_lengths]):
            lengths = _taken(row_lengths, "row_lengths", dtype, dtype_hint)
            lengths.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_lengths do not form a valid RowPartition"
                lengths = _after([check_ops.assert_rank(lengths, 1, message=message),
                                  check_ops.assert_non_negative(lengths, message=message)], lengths)
            limits = math_ops.cumsum(lengths)
            return cls._of(row_splits=array_ops.concat([_zeros(lengths), limits], 0), row_lengths=lengths)

    @classmethod
    def from_row_starts(cls, row_starts, nvals, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition from the places where rows begin, and the number of values."""
        _check_validate(validate)
        with name_scope(None, "RowPartitionFromRowStarts", [row_starts]):
            starts = _taken(row_starts, "row_starts", dtype, dtype_hint)
            starts.shape.assert_has_rank(1)
            nvals = math_ops.cast(nvals, starts.dtype)
            if validate:
                message = "Arguments to from_row_starts do not form a valid RaggedTensor"
                starts = _after([check_ops.assert_rank(starts, 1, message=message),
                                 check_ops.assert_equal(starts[:1], _zero(starts), message=message), _assert_ascending(starts, message),
                                 check_ops.assert_less_equal(starts[-1:], nvals, message=message)], starts)
            return cls._of(row_splits=array_ops.concat([starts, [nvals]], 0), nvals=nvals)

    @classmethod
    def from_row_limits(cls, row_limits, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition from the places where rows end."""
        _check_validate(validate)
        with name_scope(None, "RowPartitionFromRowLimits", [row_limits]):
            limits = _taken(row_limits, "row_limits", dtype, dtype_hint)
            limits.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_limits do not form a valid RaggedTensor"
                limits = _after([check_ops.assert_rank(limits, 1, message=message),
                                 check_ops.assert_non_negative(limits[:1], message=message), _assert_ascending(limits, message)], limits)
            return cls._of(row_splits=array_ops.concat([_zeros(limits), limits], 0))

    @classmethod
    def from_value_rowids(cls, value_rowids, nrows=None, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition from the row of each value."""
        _check_validate(validate)
        with name_scope(None, "RowPartitionFromValueRowIds", [value_rowids, nrows]):
            rowids = _taken(value_rowids, "value_rowids", dtype, dtype_hint)
            if nrows is None:
                known = constant_value(rowids)
                nrows = array_ops.concat([rowids[-1:], [-1]], 0)[0] + 1 if known is None else (
                    convert.constant(known[-1] + 1 if known.size else 0, rowids.dtype))
            else:
                nrows = convert.convert_to_tensor(nrows, rowids.dtype, name="nrows")
                _check_row_count(constant_value(nrows), constant_value(rowids))
            rowids.shape.assert_has_rank(1)
            nrows.shape.assert_has_rank(0)
            if validate:
                message = "Arguments to from_value_rowids do not form a valid RowPartition"
                rowids = _after([check_ops.assert_rank(rowids, 1, message=message), check_ops.assert_rank(nrows, 0, message=message),
                                 check_ops.assert_non_negative(rowids[:1], message=message), _assert_ascending(rowids, message),
                                 check_ops.assert_less(rowids[-1:], nrows, message=message)], rowids)
            # Bincount and its dense counterparts take 32-bit numbers only.
            lengths = math_ops.bincount(math_ops.cast(rowids, dtypes.int32), minlength=math_ops.cast(nrows, dtypes.int32),
                                        maxlength=math_ops.cast(nrows, dtypes.int32), dtype=rowids.dtype)
            lengths.set_shape([constant_value(nrows)])
            splits = array_ops.concat([_zeros(rowids), math_ops.cumsum(lengths)], 0)
            return cls._of(row_splits=splits, row_lengths=lengths, value_rowids=rowids, nrows=nrows)

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length, nvals=None, nrows=None, validate=True, dtype=None, dtype_hint=None):
        """Creates a partition into rows of one length. `nrows` is needed if the length may be 0."""
        _check_validate(validate)
        if nrows is None and nvals is None:
            raise ValueError("Either (or both) of nvals and nrows must be specified")
        with name_scope(None, "RowPartitionFromUniformRowLength", [uniform_row_length, nrows]):
            kind = _common_dtype([uniform_row_length, nvals, nrows], dtype, dtype_hint)
            length, nvals, nrows = (None if value is None else _number_of(value, kind, name) for value, name in (
                (uniform_row_length, "uniform_row_length"), (nvals, "nvals"), (nrows, "nrows")))
            length.shape.assert_has_rank(0)
            if nrows is None:
                nrows = _rows_of(length, nvals)
            known = [None if value is None else constant_value(value) for value in (length, nrows, nvals)]
            checks = []
            if known[2] is None and known[0] is not None and known[1] is not None:
                known[2] = known[0] * known[1]
                if nvals is not None and validate:
                    checks.append(check_ops.assert_equal(nvals, convert.constant(known[2], kind)))
                nvals = convert.constant(known[2], kind)
            elif nvals is None:
                nvals = nrows * length
            if validate:
                _check_uniform(*known)
                if any(value is None for value in known):
                    checks.append(check_ops.assert_equal(nrows * length, nvals, message=(
                        "uniform_row_length times nrows must equal nvals")))
                checks.append(check_ops.assert_rank(length, 0, message="uniform_row_length must be a scalar."))
                if known[0] is None:
                    checks.append(check_ops.assert_greater_equal(length, _zero(length), message="uniform_row_length must be >= 0."))
            if known[0] is not None and known[1] is not None:
                splits = convert.constant([row * int(known[0]) for row in range(int(known[1]) + 1)], kind)
            else:
                splits = math_ops.range(nrows + 1, dtype=kind) * length
            return cls._of(row_splits=_after(checks, splits), uniform_row_length=length, nrows=nrows, nvals=nvals)

    # What is known of it.

    dtype = property(lambda self: self._row_splits.dtype)

    def row_splits(self):
        """Returns where rows begin, and the end of the last."""
        return self._row_splits

    def row_lengths(self):
        """Returns the lengths of the rows."""
        if self._row_lengths is not None:
            return self._row_lengths
        return self._row_splits[1:] - self._row_splits[:-1]

    def row_starts(self):
        """Returns where rows begin."""
        return self._row_splits[:-1]

    def row_limits(self):
        """Returns where rows end."""
        return self._row_splits[1:]

    def value_rowids(self):
        """Returns the row of each value."""
        from runnel.ragged import ragged_tensor
        return self._value_rowids if self._value_rowids is not None else ragged_tensor._rowids(self._row_splits)

    def nrows(self):
        """Returns the number of rows."""
        if self._nrows is not None:
            return self._nrows
        known = self.static_nrows
        return array_ops.size(self._row_splits, out_type=self.dtype) - 1 if known is None else convert.constant(known, self.dtype)

    def nvals(self):
        """Returns the number of values."""
        return self._nvals if self._nvals is not None else self._row_splits[-1]

    def uniform_row_length(self):
        """Returns the length of every row, or None if the partition does not have rows of one length."""
        return self._uniform_row_length

    def offsets_in_rows(self):
        """Returns the place of each value in its row."""
        rowids = self.value_rowids()
        places = math_ops.range(array_ops.size(rowids, out_type=self.dtype))
        return places - array_ops.gather(self.row_starts(), rowids)

    def is_uniform(self):
        """Tells whether the partition is known to have rows of one length."""
        return self._uniform_row_length is not None

    @property
    def static_nrows(self):
        """The number of rows, or None if unknown."""
        size = tensor_shape.Dimension(self._row_splits.shape[0]).value if self._row_splits.shape.ndims else None
        return size - 1 if size is not None else _number(self._nrows)

    @property
    def static_nvals(self):
        """The number of values, or None if unknown."""
        known = _number(self._nvals)
        if known is None and self._value_rowids is not None:
            known = tensor_shape.Dimension(self._value_rowids.shape[0]).value
        return known

    @property
    def static_uniform_row_length(self):
        """The length of every row, or None if unknown."""
        return _number(self._uniform_row_length)

    # Changes.

    def _with(self, **known):
        return RowPartition(internal=_row_partition_factory_key, **{**self._known, **known})

    def _with_dependencies(self, dependencies):
        return self._with(row_splits=_after(dependencies, self._row_splits))

    def with_dtype(self, dtype):
        """Returns the partition with numbers of another type: int32 or int64."""
        dtype = dtypes.as_dtype(dtype)
        if dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        if dtype == self.dtype:
            return self
        return RowPartition(internal=_row_partition_factory_key, **{name: None if value is None else math_ops.cast(value, dtype)
                                              for name, value in self._known.items()})

    def _set_uniform(self, length):
        """States the length of all rows, which was unknown."""
        self._known["uniform_row_length"] = convert.constant(length, self.dtype)
        if self._known["nrows"] is None:
            self._known["nrows"] = self.nrows()

    def _merge_with_spec(self, spec):
        """Returns the partition, with what a description knows of it."""
        if not self._type_spec.is_compatible_with(spec):
            raise ValueError("RowPartition and RowPartitionSpec are not compatible")
        given = {name: getattr(spec, name) for name in ("nrows", "nvals", "uniform_row_length")}
        return self._with(**{name: convert.constant(value, self.dtype) for name, value in given.items() if value is not None})

    def _merge_precomputed_encodings(self, other, validate=True):
        """Returns the partition, with what another one that is equal to it knows."""
        mine, others = self._known, other._known
        if self is other or all(mine[name] is others[name] for name in _ENCODINGS):
            return self
        merged, is_checked = {}, {}
        for name in ("nrows", "nvals", "uniform_row_length", "row_splits", "row_lengths", "value_rowids"):
            merged[name], is_checked[name] = _merged(mine[name], others[name], name, validate)
            # What follows from checked encodings need not be checked again.
            if is_checked[name] and (name in ("row_splits", "row_lengths") or name in ("uniform_row_length", "value_rowids")
                                     and is_checked["nrows"]):
                validate = False
        for one in (self, other):
            if all(merged[name] is one._known[name] for name in _ENCODINGS if name != "nvals"):
                return one
        return RowPartition(internal=_row_partition_factory_key, **merged)

    @property
    def _type_spec(self):
        return RowPartitionSpec.from_value(self)

    def __repr__(self):
        if self._uniform_row_length is not None:
            return "tf.RowPartition(nrows=%s, uniform_row_length=%s)" % (_shown(self._nrows), _shown(self._uniform_row_length))
        return "tf.RowPartition(row_splits=%s)" % (_shown(self._row_splits),)


def _add_methods():
    """_has_precomputed_nrows tells whether the number of rows was given; _with_precomputed_nrows computes it. Likewise for the others."""
    for name in _ENCODINGS:
        def has(self, name=name):
            return self._known[name] is not None

        def computed(self, name=name):
            return self._with(**{name: getattr(self, name)()})
        setattr(RowPartition, "_has_precomputed_" + name, has)
        setattr(RowPartition, "_with_precomputed_" + name, computed)


_add_methods()


def _number_of(value, dtype, name):
    if isinstance(value, Tensor):
        return math_ops.cast(value, dtype)
    return convert.convert_to_tensor(value, dtype, name=name)


def _shown(value):
    return value.numpy() if hasattr(value, "numpy") else value


def _number(value):
    known = None if value is None or isinstance(value, TensorSpec) else constant_value(value)
    return None if known is None else int(known)


def _after(checks, value):
    from runnel.flow.groups import with_dependencies
    checks = [check for check in checks if check is not None]
    return with_dependencies(checks, value) if checks else value


def _zero(like):
    return convert.constant(0, like.dtype)


def _zeros(like):
    return convert.constant([0], like.dtype)


def _assert_ascending(values, message):
    return check_ops.assert_non_negative(values[1:] - values[:-1], message=message)


def _check_validate(validate):
    if not isinstance(validate, bool):
        raise TypeError("validate must have type bool")


def _common_dtype(values, dtype, dtype_hint):
    """Returns the type of numbers: the given one, that of the first value that has one, the hint, or int64."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    for value in values:
        if isinstance(value, Tensor):
            return value.dtype
    return dtypes.as_dtype(dtype_hint or dtypes.int64)


def _taken(partition, name, dtype, dtype_hint):
    """Returns an encoding as a tensor of 32-bit or 64-bit numbers."""
    import numpy as np
    if isinstance(partition, np.ndarray) and partition.dtype == np.int32 and dtype is None:
        partition = convert.convert_to_tensor(partition, name=name)
    else:
        partition = convert.convert_to_tensor(partition, dtype=dtype, dtype_hint=dtype_hint or dtypes.int64, name=name)
    if partition.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("%s must have dtype int32 or int64" % name)
    return partition


def _check_row_count(nrows, rowids):
    if nrows is None:
        return
    if nrows < 0:
        raise ValueError("Expected nrows >= 0; got %d" % nrows)
    if rowids is not None and rowids.size > 0 and nrows < rowids[-1] + 1:
        raise ValueError("Expected nrows >= value_rowids[-1] + 1; got nrows=%d, value_rowids[-1]=%d" % (nrows, rowids[-1]))


def _rows_of(length, nvals):
    """Returns how many rows of a length make a number of values; 0 for rows of length 0."""
    known = constant_value(length)
    if known is not None:
        return nvals // length if known > 0 else _zero(length)
    return array_ops.where(math_ops.equal(length, 0), _zero(length), nvals // raw_ops.Maximum(x=length, y=convert.constant(1, length.dtype)))


def _check_uniform(length, nrows, nvals):
    if length is not None and length < 0:
        raise ValueError("uniform_row_length must be >= 0.")
    if all(value is not None for value in (length, nrows, nvals)) and length * nrows != nvals:
        raise ValueError("uniform_row_length=%d times nrows=%d must equal nvals=%d" % (length, nrows, nvals))


def _merged(one, two, name, validate):
    """Returns one of two encodings that must be equal, and whether that is checked or certain."""
    if one is None or two is None:
        return (one if two is None else two), False
    if one is two:
        return one, True
    message = "RowPartition._merge_precomputed_encodings: partitions have incompatible %s" % name
    if not one.shape.is_compatible_with(two.shape):
        raise ValueError(message)
    if not validate:
        return one, False
    return _after([check_ops.assert_equal(one, two, message=message)], one), True
