"""Functions of arrays for ragged tensors: squeeze, reverse, split, one_hot, segments, cumulative sums and others."""

import builtins

from runnel import dtypes, raw_ops as _ops
from runnel.core import convert, framework
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.framework import name_scope
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged.ragged_functions import expand_dims
from runnel.ragged.ragged_gather import gather
from runnel.ragged.ragged_tensor import RaggedTensor, _axis, _spans, _splits_of, as_ragged_or_tensor


def _is_ragged(value):
    return isinstance(value, RaggedTensor)


def _checked(tensor, check):
    with framework.control_dependencies([] if check is None else [check]):
        return array_ops.identity(tensor)


def squeeze(input, axis=None, name=None, squeeze_dims=None):  # noqa: A002
    """Removes dimensions of size 1; those that are ragged must have one value per row."""
    axis = squeeze_dims if axis is None else axis
    with name_scope(name, "RaggedSqueeze"):
        ragged = as_ragged_or_tensor(input)
        if not _is_ragged(ragged):
            return array_ops.squeeze(ragged, axis)
        if axis is None:
            raise ValueError("Ragged.squeeze must have an axis argument.")
        axes = sorted({_axis(int(a), ragged.shape.rank) for a in (axis if isinstance(axis, (list, tuple)) else [axis])})
        flat, splits, rank = ragged.flat_values, list(ragged.nested_row_splits), ragged.ragged_rank
        dense = [a - rank for a in axes if a > rank]
        if dense:
            flat = array_ops.squeeze(flat, dense)
        kept = []
        for level, one in enumerate(splits, 1):
            if level in axes:
                lengths = one[1:] - one[:-1]
                flat = _checked(flat, check_ops.assert_equal(lengths, array_ops.ones_like(lengths), message=(
                    "the given axis (axis = %d) is not squeezable!" % level)))
            else:
                kept.append(one)
        if 0 in axes:
            rows = ragged.nrows()
            flat = _checked(flat, check_ops.assert_equal(rows, array_ops.ones_like(rows), message=(
                "the given axis (axis = 0) is not squeezable!")))
            if not kept:
                return array_ops.squeeze(flat, [0])
            kept = kept[1:]
        for one in reversed(kept):
            flat = RaggedTensor._of(flat, one)
        return flat


def reverse(tensor, axis, name=None):
    """Reverses dimensions; a ragged one within each row."""
    ragged = as_ragged_or_tensor(tensor)
    axes = axis if isinstance(axis, (list, tuple)) else convert.constant_value(convert.convert_to_tensor(axis)).tolist()
    if not isinstance(axes, (list, tuple)):
        axes = [axes]
    with name_scope(name, "Reverse"):
        for one in axes:
            ragged = _reversed(ragged, _axis(int(one), ragged.shape.rank))
        return ragged


def _reversed(ragged, axis):
    if not _is_ragged(ragged):
        return array_ops.reverse(ragged, [axis])
    if axis == 0:
        return gather(ragged, math_ops.range(ragged.nrows() - 1, -1, -1))
    if axis > 1:
        return ragged.with_values(_reversed(ragged.values, axis - 1))
    rows = ragged.value_rowids()
    ends = array_ops.gather(ragged.row_starts() + ragged.row_limits() - 1, rows)
    return ragged.with_values(gather(ragged.values, ends - math_ops.range(ragged.row_splits[-1])))


def split(value, num_or_size_splits, axis=0, num=None, name=None):
    """Splits a ragged tensor along a dimension into parts of one size, or of given sizes."""
    with name_scope(name, "RaggedSplit"):
        value = as_ragged_or_tensor(value)
        if not _is_ragged(value):
            return array_ops.split(value, num_or_size_splits, axis, num)
        axis = _axis(axis, value.shape.rank)
        if isinstance(num_or_size_splits, int) or not isinstance(num_or_size_splits, (list, tuple)) and not getattr(
                num_or_size_splits, "shape", [1]):
            count = convert.constant_value(convert.convert_to_tensor(num_or_size_splits))
            if count is None or int(count) <= 0:
                raise ValueError("num_or_size_splits must be a known positive number")
            known = value.shape.as_list()[axis] if value.shape.rank is not None else None
            whole = _length(value, axis)
            if known is not None and known % int(count):
                raise ValueError("Cannot exactly split axis %d of size %d into %d parts" % (axis, known, int(count)))
            size = whole // math_ops.cast(int(count), whole.dtype)
            size = _checked(size, check_ops.assert_equal(size * int(count), whole, message="Cannot exactly split the dimension"))
            edges = [size * i for i in builtins.range(int(count) + 1)]
        else:
            sizes = convert.convert_to_tensor(num_or_size_splits)
            count = sizes.shape.as_list()[0] if sizes.shape.rank else num
            if count is None and num is None:
                raise ValueError("`num` must be specified statically")
            whole = _length(value, axis)
            ends = math_ops.cumsum(math_ops.cast(sizes, whole.dtype))
            ends = _checked(ends, check_ops.assert_equal(ends[-1], whole, message="The sizes do not add up to the dimension"))
            edges = [math_ops.cast(0, whole.dtype)] + [ends[i] for i in builtins.range(count)]
        key = (slice(None),) * axis
        return [value[key + (slice(a, b),)] for a, b in zip(edges, edges[1:])]


def _length(ragged, axis):
    """Returns the size of a dimension whose rows all have it."""
    if not _is_ragged(ragged):
        return array_ops.shape(ragged, out_type=dtypes.int64)[axis]
    if axis == 0:
        return ragged.nrows()
    if axis > 1:
        return math_ops.cast(_length(ragged.values, axis - 1), ragged.row_splits.dtype)
    if ragged.uniform_row_length is None:
        raise ValueError("split of a ragged dimension whose rows have different lengths")
    return math_ops.cast(ragged.uniform_row_length, ragged.row_splits.dtype)


def tile(input, multiples, name=None):  # noqa: A002
    """Repeats a ragged tensor along its axes."""
    with name_scope(name, "RaggedTile", [input, multiples]):
        ragged = as_ragged_or_tensor(input)
        if not _is_ragged(ragged):
            return array_ops.tile(ragged, multiples)
        counts = convert.convert_to_tensor(multiples, dtype_hint=ragged.row_splits.dtype, name="multiples")
        counts.shape.assert_has_rank(1)
        known = convert.constant_value(counts)
        if known is not None:
            counts = [int(count) for count in known]
        else:
            counts = math_ops.cast(counts, ragged.row_splits.dtype)
            counts = [counts[i] for i in builtins.range(ragged.shape.rank or counts.shape.as_list()[0])]
        result = _tiled(ragged, counts[1:])
        if not _is_one(counts[0]):
            result = gather(result, array_ops.tile(math_ops.range(result.nrows()), [counts[0]]))
        if known is not None and ragged.shape.rank is not None:
            result._set_shape([None if size is None else size * count for size, count in zip(ragged.shape.as_list(), counts)])
        return result


def _is_one(count):
    return isinstance(count, int) and count == 1


def _tiled(ragged, counts):
    """Returns a ragged tensor with each row repeated counts[0] times in itself, and so on for the dimensions within."""
    values = ragged.values
    if _is_ragged(values):
        values = _tiled(values, counts[1:])
    elif counts[1:]:
        values = array_ops.tile(values, [1, *counts[1:]])
    if _is_one(counts[0]):
        return ragged.with_values(values)
    lengths, starts = ragged.row_lengths(), ragged.row_starts()
    again = [array_ops.reshape(array_ops.tile(array_ops.expand_dims(x, 1), [1, counts[0]]), [-1]) for x in (starts, lengths)]
    places, _ = _spans(*again)
    picked = gather(values, places) if _is_ragged(values) else array_ops.gather(values, places)
    if ragged.uniform_row_length is not None:
        return RaggedTensor.from_uniform_row_length(picked, ragged.uniform_row_length * counts[0], nrows=ragged.nrows(), validate=False)
    return RaggedTensor.from_row_lengths(picked, lengths * counts[0], validate=False)


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """Like tf.one_hot, of each value."""
    ragged = as_ragged_or_tensor(indices)
    if isinstance(axis, int) and axis >= 0:
        if _is_ragged(ragged) and axis <= ragged.ragged_rank:
            raise ValueError("axis (%d) must be greater than indices.ragged_rank (%d)." % (axis, ragged.ragged_rank))
        axis -= ragged.ragged_rank if _is_ragged(ragged) else 0
    with name_scope(name, "RaggedOneHot"):
        made = array_ops.one_hot(ragged.flat_values if _is_ragged(ragged) else ragged, depth, on_value, off_value, axis, dtype)
        return ragged.with_flat_values(made) if _is_ragged(ragged) else made


ragged_one_hot = one_hot


def bitcast(input, type, name=None):  # noqa: A002
    """Reinterprets the bits of each value."""
    kind, ragged = dtypes.as_dtype(type), as_ragged_or_tensor(input)
    with name_scope(name, "RaggedBitcast"):
        flat = ragged.flat_values
        if ragged.dtype.size < kind.size and flat.shape.rank is not None and flat.shape.rank < 2:
            raise ValueError("`input.flat_values` is required to have rank >= 2 when input.dtype.size < type.size. Actual rank: %d" % flat.shape.rank)
        return ragged.with_flat_values(_ops.Bitcast(flat, type=kind))


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):  # noqa: A002
    """Computes cumulative sums along a dimension."""
    ragged = as_ragged_or_tensor(x)
    with name_scope(name, "RaggedCumSum"):
        axis = _axis(axis, ragged.shape.rank)
        if axis == ragged.ragged_rank:
            rows = ragged
            while _is_ragged(rows.values):
                rows = rows.values
            total = math_ops.cumsum(rows.values, exclusive=exclusive, reverse=reverse)
            if not reverse:
                whole = math_ops.cumsum(rows.values, exclusive=True)
                before = array_ops.gather(array_ops.concat([whole, array_ops.zeros_like(whole[:1])], 0), rows.row_starts())
                return ragged.with_flat_values(total - array_ops.gather(before, rows.value_rowids()))
            whole = array_ops.concat([math_ops.cumsum(rows.values, reverse=True), array_ops.zeros_like(rows.values[:1])], 0)
            return ragged.with_flat_values(total - array_ops.gather(array_ops.gather(whole, rows.row_limits()), rows.value_rowids()))
        if axis > ragged.ragged_rank:
            return ragged.with_flat_values(math_ops.cumsum(ragged.flat_values, axis - ragged.ragged_rank, exclusive, reverse))
        dense = math_ops.cumsum(ragged.to_tensor(), axis, exclusive, reverse)
        return RaggedTensor.from_tensor(dense, lengths=ragged.nested_row_lengths())


ragged_cumsum = cumsum


# --- Segments

def segments(values, ids, count, unsorted):
    """Reduces rows with the same number; positions within ragged rows are reduced on their own."""
    if not _is_ragged(values):
        return unsorted(values, ids, count)
    lengths = _ops.Maximum(_ops.UnsortedSegmentMax(values.row_lengths(), ids, count), 0)
    starts = math_ops.cumsum(lengths, exclusive=True)
    owner = values.value_rowids()
    place = math_ops.range(values.row_splits[-1]) - array_ops.gather(values.row_splits, owner)
    flat_ids = array_ops.gather(array_ops.gather(starts, ids), owner) + place
    inner = segments(values.values, flat_ids, math_ops.reduce_sum(lengths), unsorted)
    return RaggedTensor._of(inner, _splits_of(lengths))


def _segment(unsorted, title):
    def reduce(data, segment_ids, num_segments, name=None):
        with name_scope(name, title):
            data, ids = as_ragged_or_tensor(data), as_ragged_or_tensor(segment_ids)
            if not _is_ragged(data) and not _is_ragged(ids):
                return unsorted(data, ids, num_segments)
            while _is_ragged(ids):
                if not _is_ragged(data):
                    raise ValueError("segment_ids.shape must be a prefix of data.shape, but segment_ids is ragged and data is not.")
                check = check_ops.assert_equal(ids.row_splits, data.row_splits, message="segment_ids.shape must be a prefix of data.shape")
                ids, data = ids.values, data.values
                data = data.with_flat_values(_checked(data.flat_values, check)) if _is_ragged(data) else _checked(data, check)
            return segments(data, ids, math_ops.cast(num_segments, ids.dtype), unsorted)
    reduce.__doc__ = "Reduces the rows of a ragged tensor that have the same segment number."
    return reduce


def _mean(values, ids, count, power=1.0):
    ones = array_ops.ones(array_ops.shape(values)[:1], values.dtype)
    number = _ops.UnsortedSegmentSum(ones, ids, count)
    total = _ops.UnsortedSegmentSum(values, ids, count)
    number = number if power == 1.0 else _ops.Sqrt(number)
    if values.shape.rank != 1:
        number = array_ops.reshape(number, array_ops.concat([array_ops.shape(number), array_ops.ones([array_ops.rank(values) - 1], dtypes.int32)], 0))
    return total / number


segment_sum = _segment(_ops.UnsortedSegmentSum, "RaggedSegmentSum")
segment_prod = _segment(_ops.UnsortedSegmentProd, "RaggedSegmentProd")
segment_min = _segment(_ops.UnsortedSegmentMin, "RaggedSegmentMin")
segment_max = _segment(_ops.UnsortedSegmentMax, "RaggedSegmentMax")
segment_mean = _segment(_mean, "RaggedSegmentMean")
segment_sqrt_n = _segment(lambda values, ids, count: _mean(values, ids, count, 0.5), "RaggedSegmentSqrtN")


def dynamic_partition(data, partitions, num_partitions, name=None):
    """Divides a ragged tensor into a list of ragged tensors by the partition of each row."""
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    stacked = stack_partitions(data, partitions, num_partitions, name)
    return [stacked[i] for i in builtins.range(num_partitions)]


def stack_partitions(data, partitions, num_partitions, name=None):
    """Returns a ragged tensor whose row i has the values of `data` with partition i."""
    with name_scope(name, "SegmentStack"):
        data, partitions = as_ragged_or_tensor(data), as_ragged_or_tensor(partitions)
        if _is_ragged(partitions):
            if not _is_ragged(data):
                data = RaggedTensor.from_tensor(data, ragged_rank=partitions.ragged_rank, row_splits_dtype=partitions.row_splits.dtype)
            return stack_partitions(data.values, partitions.values, num_partitions)
        rank = partitions.shape.rank
        if rank is None:
            raise ValueError("partitions must have known rank.")
        partitions.shape.assert_is_compatible_with(data.shape[:rank])
        num_partitions = convert.convert_to_tensor(num_partitions, dtype_hint=partitions.dtype, name="num_partitions")
        num_partitions.shape.assert_has_rank(0)
        if rank == 0:
            return stack_partitions(expand_dims(data, 0), array_ops.expand_dims(partitions, 0), num_partitions)
        if rank > 1:
            if _is_ragged(data):
                for _ in builtins.range(rank - 1):
                    data = data.values if _is_ragged(data) else array_ops.reshape(data, array_ops.concat([[-1], array_ops.shape(data)[2:]], 0))
            else:
                data = array_ops.reshape(data, array_ops.concat([[-1], array_ops.shape(data)[rank:]], 0))
            partitions = array_ops.reshape(partitions, [-1])
        count = math_ops.cast(num_partitions, partitions.dtype)
        partitions = _checked(partitions, check_ops.assert_non_negative(partitions, message="partitions must be non-negative"))
        partitions = _checked(partitions, check_ops.assert_less(partitions, count, message="partitions must be less than num_partitions"))
        order = _ops.TopKV2(-partitions, array_ops.size(partitions), sorted=True)[1]
        ones = array_ops.ones_like(partitions, data.row_splits.dtype if _is_ragged(data) else partitions.dtype)
        lengths = _ops.UnsortedSegmentSum(ones, partitions, count)
        rows = gather(data, order) if _is_ragged(data) else array_ops.gather(data, order)
        return RaggedTensor.from_row_splits(rows, _splits_of(lengths), validate=False)


# --- Others

def cross(inputs, name=None):
    """Returns the crosses of the rows of tensors, sparse and ragged tensors: strings joined by "_X_"."""
    return _crossed(inputs, False, 0, None, name)


_DEFAULT_CROSS_HASH_KEY = 0xDECAFCAFFE


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """Returns the hashes of the crosses of the rows of tensors, sparse and ragged tensors."""
    return _crossed(inputs, True, num_buckets, hash_key, name)


def _crossed(inputs, is_hashed, num_buckets, hash_key, name):
    if not isinstance(inputs, (tuple, list)):
        raise TypeError("Inputs must be a list")
    ragged, sparse, dense, order = [], [], [], ""
    with name_scope(name, "RaggedCross"):
        for value in inputs:
            if isinstance(value, SparseTensorValue):
                value = SparseTensor.from_value(value)
            if isinstance(value, SparseTensor):
                order, sparse = order + "S", [*sparse, value]
                continue
            value = as_ragged_or_tensor(value)
            if _is_ragged(value):
                if value.ragged_rank != 1 or value.shape.rank not in (2, None):
                    raise ValueError("tf.ragged.cross only supports inputs with rank=2.")
                order, ragged = order + "R", [*ragged, value]
            else:
                if value.shape.rank not in (2, None):
                    raise ValueError("tf.ragged.cross only supports inputs with rank=2.")
                order, dense = order + "D", [*dense, value]
        if not inputs:
            raise ValueError("Inputs must not be empty")
        splits = ragged[0].row_splits.dtype if ragged else dtypes.int64
        if any(value.row_splits.dtype != splits for value in ragged):
            splits, ragged = dtypes.int64, [value.with_row_splits_dtype(dtypes.int64) for value in ragged]

        def plain(tensor):
            if tensor.dtype != dtypes.string and not tensor.dtype.is_integer:
                raise ValueError("Unexpected dtype for inputs: %s. Inputs must be strings or integers" % tensor.dtype)
            return tensor if tensor.dtype == dtypes.string else math_ops.cast(tensor, dtypes.int64)
        made = _ops.RaggedCross(
            [plain(value.values) for value in ragged], [value.row_splits for value in ragged], [value.indices for value in sparse],
            [plain(value.values) for value in sparse], [value.dense_shape for value in sparse], [plain(value) for value in dense],
            input_order=order, hashed_output=is_hashed, num_buckets=num_buckets,
            hash_key=_DEFAULT_CROSS_HASH_KEY if hash_key is None else hash_key,
            out_values_type=dtypes.int64 if is_hashed else dtypes.string, out_row_splits_type=splits)
        return RaggedTensor.from_row_splits(made[0], made[1], validate=False)


def fill_empty_rows(ragged_input, default_value, name=None):
    """Gives rows without values one value, `default_value`. Returns (the ragged tensor, which rows were empty)."""
    with name_scope(name, "RaggedFillEmptyRows"):
        if not _is_ragged(ragged_input):
            raise TypeError("ragged_input must be RaggedTensor, got %s" % type(ragged_input))
        default = convert.convert_to_tensor(default_value, dtype=ragged_input.dtype)
        rowids, values, empty, _ = _ops.RaggedFillEmptyRows(
            math_ops.cast(ragged_input.value_rowids(), dtypes.int64), ragged_input.values, math_ops.cast(ragged_input.nrows(), dtypes.int64), default)
        return RaggedTensor.from_value_rowids(values, rowids, nrows=ragged_input.nrows(), validate=False), empty


def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """Computes the variance along dimensions."""
    from runnel.ragged.ragged_functions import map_flat_values, reduction
    ragged = as_ragged_or_tensor(input_tensor)
    if ragged.dtype.is_complex:
        raise ValueError("reduce_variance is not supported for RaggedTensors with complex dtypes.")
    mean = reduction(math_ops.reduce_mean)
    with name_scope(name, "RaggedReduceVariance"):
        square = map_flat_values(_ops.Square, ragged)
        of_square, squared = mean(square, axis=axis, keepdims=keepdims), mean(ragged, axis=axis, keepdims=keepdims)
        squared = map_flat_values(_ops.Square, squared) if _is_ragged(squared) else _ops.Square(squared)
        import runnel
        difference = runnel.subtract(of_square, squared)
        return runnel.maximum(difference, convert.convert_to_tensor(0, difference.dtype))


def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """Computes the standard deviation along dimensions."""
    import runnel
    with name_scope(name, "RaggedReduceStd"):
        return runnel.sqrt(reduce_variance(input_tensor, axis, keepdims))



def softmax(logits, axis=None, name=None):
    """Returns the softmax of rows along a dimension, by default the last one."""
    with name_scope(name, "RaggedSoftmax"):
        axis = -1 if axis is None else axis
        shifted = logits - math_ops.reduce_max(logits, axis, keepdims=True)
        powers = shifted.with_flat_values(_ops.Exp(x=shifted.flat_values))
        return powers / math_ops.reduce_sum(powers, axis, keepdims=True)
