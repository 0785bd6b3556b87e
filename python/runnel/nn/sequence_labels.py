"""Labels of sequences: without repetitions, and those that occur; and isotonic regression."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def collapse_repeated(labels, seq_length, name=None):
    """Returns (labels without those that equal the one before, their numbers): [batch, most] padded with 0, and [batch]."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels, seq_length = convert_to_tensor(labels, name="labels"), convert_to_tensor(seq_length, name="seq_length")
        is_new = array_ops.concat([array_ops.ones_like(labels[:, :1], dtypes.bool), math_ops.not_equal(labels[:, 1:], labels[:, :-1])], 1)
        is_kept = math_ops.logical_and(is_new, array_ops.sequence_mask(seq_length, array_ops.shape(labels)[1]))
        counts = math_ops.reduce_sum(math_ops.cast(is_kept, seq_length.dtype), 1)
        most = math_ops.reduce_max(math_ops.cast(counts, dtypes.int32))
        places = array_ops.where(array_ops.sequence_mask(counts, most))
        shape = array_ops.stack([array_ops.shape(labels)[0], most])
        packed = raw_ops.ScatterNd(indices=places, updates=array_ops.boolean_mask(labels, is_kept), shape=math_ops.cast(shape, dtypes.int64))
        return packed, counts


def ctc_unique_labels(labels, name=None):
    """Returns (the labels that occur in each row, padded with 0; for each label its place among them)."""
    from runnel.ops.functional_ops import map_fn
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = math_ops.cast(convert_to_tensor(labels, name="labels"), dtypes.int64)

        def row(one):
            found = raw_ops.Unique(x=one)
            return array_ops.pad(found.y, [[0, array_ops.size(one) - array_ops.size(found.y)]]), found.idx
        return list(map_fn(row, labels, dtype=(labels.dtype, dtypes.int32)))


def isotonic_regression(inputs, decreasing=True, axis=-1):
    """Returns (the closest decreasing, or increasing, values along an axis; the number of the segment of each)."""
    with name_scope("isotonic_regression"):
        inputs = convert_to_tensor(inputs)
        if inputs.dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            kind = inputs.dtype
        else:
            kind = dtypes.float32 if inputs.dtype.size <= 2 else dtypes.float64
        rank = inputs.shape.rank
        axis = axis % rank
        order = [i for i in range(rank) if i != axis] + [axis]
        back = [order.index(i) for i in range(rank)]
        moved = array_ops.transpose(inputs, order)
        rows = array_ops.reshape(moved, [-1, array_ops.shape(moved)[-1]])
        values, segments = raw_ops.IsotonicRegression(input=rows if decreasing else -rows, output_dtype=kind)

        def placed(tensor):
            return array_ops.transpose(array_ops.reshape(tensor, array_ops.shape(moved)), back)
        return placed(values if decreasing else -values), placed(segments)


def general_dropout(x, rate, uniform_sampler, noise_shape=None, name=None):
    """Returns `x` with a share of its elements set to 0 and the others scaled up; `uniform_sampler(shape, dtype)` draws the numbers."""
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if isinstance(rate, (int, float)) and not 0 <= rate < 1:
            raise ValueError("`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate=%s" % rate)
        if not x.dtype.is_floating:
            raise ValueError("`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype=%s" % x.dtype)
        if isinstance(rate, (int, float)) and rate == 0:
            return x
        rate = convert_to_tensor(rate, x.dtype)
        numbers = uniform_sampler(shape=array_ops.shape(x) if noise_shape is None else noise_shape, dtype=x.dtype)
        return array_ops.where_v2(numbers >= rate, x / (1 - rate), array_ops.zeros_like(x))
