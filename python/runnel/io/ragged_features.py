"""RaggedFeature: a feature of tf.Example that becomes a ragged tensor, and how other features divide its values into rows."""

import collections

from runnel import dtypes, raw_ops as _ops

_KEYED = "RowSplits RowLengths RowStarts RowLimits ValueRowIds".split()


class RaggedFeature(collections.namedtuple("RaggedFeature", ["dtype", "value_key", "partitions", "row_splits_dtype", "validate"])):
    """A feature of any length, which becomes a RaggedTensor; of a single example, without partitions, a vector.

    Args:
      dtype: the type of the values.
      value_key: the name of the feature with the values; by default the key of this feature.
      partitions: what divides the values into rows, from the outermost to the innermost: `RowSplits(key)`,
        `RowLengths(key)`, `RowStarts(key)`, `RowLimits(key)` or `ValueRowIds(key)` with the name of another feature, or
        `UniformRowLength(length)`.
      row_splits_dtype: the type of row splits.
      validate: whether the step fails if the features are no valid partition.
    """

    RowSplits = collections.namedtuple("RowSplits", ["key"])
    RowLengths = collections.namedtuple("RowLengths", ["key"])
    RowStarts = collections.namedtuple("RowStarts", ["key"])
    RowLimits = collections.namedtuple("RowLimits", ["key"])
    ValueRowIds = collections.namedtuple("ValueRowIds", ["key"])
    UniformRowLength = collections.namedtuple("UniformRowLength", ["length"])

    def __new__(cls, dtype, value_key=None, partitions=(), row_splits_dtype=dtypes.int32, validate=False):
        if value_key is not None:
            if not isinstance(value_key, str):
                raise ValueError("Argument `value_key` must be a string; got %s" % (value_key,))
            if not value_key:
                raise ValueError("Argument `value_key` must not be empty")
        dtype, row_splits_dtype = dtypes.as_dtype(dtype), dtypes.as_dtype(row_splits_dtype)
        if dtype not in (dtypes.int64, dtypes.float32, dtypes.string):
            raise ValueError("Argument `dtype` must be int64, float32, or bytes; got %r" % (dtype,))
        if row_splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("Argument `row_splits_dtype` must be int32 or int64; got%r" % (row_splits_dtype,))
        if not isinstance(partitions, (list, tuple)):
            raise TypeError("Argument `partitions` must be a list or tuple. Receivedpartitions=%s of type %s." % (partitions, type(partitions).__name__))
        kinds = tuple(getattr(cls, name) for name in _KEYED + ["UniformRowLength"])
        for partition in partitions:
            if not isinstance(partition, kinds):
                raise TypeError("Argument `partitions` cannot be cast to any of the partition types in %s; got: %r with type %s" % (
                    kinds, partition, type(partition)))
        if not isinstance(validate, bool):
            raise TypeError("Argument `validate` must be a bool; got %r" % (validate,))
        return super().__new__(cls, dtype, value_key, tuple(partitions), row_splits_dtype, validate)

    def keys(self, key):
        """Returns {name of a feature that is read: its type}; `key` is the key of this feature."""
        found = {self.value_key or key: self.dtype}
        for partition in self.partitions:
            if not isinstance(partition, RaggedFeature.UniformRowLength):
                found[partition.key] = dtypes.int64
        return found


def as_ragged(is_single, values, outer_splits, inner_splits=None):
    """Returns the features that a parsing op returned as values and row splits; of a single example, the values themselves."""
    from runnel.ragged.ragged_tensor import RaggedTensor
    if inner_splits is not None:
        values = [RaggedTensor.from_row_splits(x, splits, validate=False) for x, splits in zip(values, inner_splits)]
    if is_single:
        return list(values)
    return [RaggedTensor.from_row_splits(x, splits, validate=False) for x, splits in zip(values, outer_splits)]


def partitioned(feature, key, parsed):
    """Returns a RaggedFeature's value; `parsed` are the features that it reads."""
    from runnel.ragged.ragged_tensor import RaggedTensor
    value = parsed[feature.value_key or key]
    if not isinstance(value, RaggedTensor):  # of one example
        for partition in reversed(feature.partitions):
            value = _of_one(value, partition, parsed, feature)
        return value
    # A batch of sequences has two dimensions of its own. The partitions are applied to all steps, which are joined first.
    outer = value.row_splits if value.ragged_rank > 1 else None
    rows = value if outer is None else value.values
    for partition in reversed(feature.partitions):
        rows = _of_batch(rows, partition, parsed, feature, key, outer)
    return rows if outer is None else RaggedTensor.from_row_splits(rows, outer, validate=feature.validate)


def _fold(values, length):
    """Returns values as rows of a fixed length."""
    from runnel.ops import array_ops
    return array_ops.reshape(values, array_ops.concat([[-1, length], array_ops.shape(values)[1:]], axis=0))


def _of_one(values, partition, parsed, feature):
    from runnel.core.convert import convert_to_tensor
    from runnel.ops import math_ops
    from runnel.ragged.ragged_tensor import RaggedTensor
    if isinstance(partition, RaggedFeature.UniformRowLength):
        if not isinstance(values, RaggedTensor):
            return _fold(values, partition.length)
        length = convert_to_tensor(partition.length, dtype=feature.row_splits_dtype)
        return RaggedTensor.from_uniform_row_length(values, length, validate=feature.validate)
    made = {RaggedFeature.RowSplits: RaggedTensor.from_row_splits, RaggedFeature.RowLengths: RaggedTensor.from_row_lengths,
            RaggedFeature.RowStarts: RaggedTensor.from_row_starts, RaggedFeature.RowLimits: RaggedTensor.from_row_limits,
            RaggedFeature.ValueRowIds: RaggedTensor.from_value_rowids}[type(partition)]
    return made(values, math_ops.cast(parsed[partition.key], feature.row_splits_dtype), validate=feature.validate)


def _of_batch(rows, partition, parsed, feature, key, outer):
    """Divides each row of `rows` by the row of a partition."""
    from runnel.core import framework
    from runnel.core.convert import convert_to_tensor
    from runnel.ops import check_ops, math_ops
    from runnel.ragged.ragged_tensor import RaggedTensor
    validate = feature.validate
    if isinstance(partition, RaggedFeature.UniformRowLength):
        if rows.ragged_rank > 1:
            length = convert_to_tensor(partition.length, dtype=rows.row_splits.dtype)
            inner = RaggedTensor.from_uniform_row_length(rows.values, length, validate=validate)
            return RaggedTensor.from_row_splits(inner, rows.row_splits // length, validate=validate)
        return RaggedTensor.from_row_splits(_fold(rows.values, partition.length), rows.row_splits // partition.length, validate=validate)
    given = parsed[partition.key]
    if given.values.dtype != rows.row_splits.dtype:
        given = given.with_flat_values(math_ops.cast(given.flat_values, rows.row_splits.dtype))
    checks = []
    if outer is not None:
        if validate:
            checks.append(check_ops.assert_equal(outer, given.row_splits, message="Feature %s: values and partitions are not aligned" % key))
        given = given.values
    with framework.control_dependencies(checks):
        return _divided(rows, partition, given, validate)


def _divided(rows, partition, given, validate):
    """Returns `rows` with each row divided; places in a row become places among all values."""
    import runnel
    from runnel.ops import array_ops, math_ops
    from runnel.ragged.ragged_tensor import RaggedTensor

    def moved(base):
        return given.values + array_ops.repeat(base, given.row_lengths())

    if isinstance(partition, RaggedFeature.RowLengths):
        return given.with_values(RaggedTensor.from_row_lengths(rows.values, given.values, validate=validate))
    if isinstance(partition, RaggedFeature.RowStarts):
        return given.with_values(RaggedTensor.from_row_starts(rows.values, moved(rows.row_starts()), validate=validate))
    if isinstance(partition, RaggedFeature.ValueRowIds):
        counts = _ops.Maximum(x=runnel.reduce_max(given.with_values(given.values + 1), axis=1), y=0)
        ids = moved(math_ops.cumsum(counts, exclusive=True))
        return RaggedTensor.from_row_lengths(RaggedTensor.from_value_rowids(rows.values, ids, validate=validate), counts, validate=validate)
    if isinstance(partition, RaggedFeature.RowSplits):
        given = given[:, 1:]
    return given.with_values(RaggedTensor.from_row_limits(rows.values, moved(rows.row_starts()), validate=validate))
