"""Functions of tf.nn that 2.x has otherwise than 1.x, or that 1.x does not have."""

import math

from runnel import dtypes, raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):  # noqa: A002
    """Convolves over 1, 2 or 3 spatial dimensions, with strides or dilation."""
    from runnel.nn import nn_conv
    if data_format != "NCDHW":
        return nn_conv.convolution(input, filters, padding, strides, dilations, name, data_format)
    # The op has channels last on CPUs.
    moved = array_ops.transpose(input, [0, 2, 3, 4, 1])
    result = nn_conv.convolution(moved, filters, padding, strides, dilations, name)
    return array_ops.transpose(result, [0, 4, 1, 2, 3])


def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):  # noqa: A002
    """Pools over 1, 2 or 3 spatial dimensions with "AVG" or "MAX"; windows may be dilated."""
    from runnel.nn import nn_dilation
    return nn_dilation.pool(input, window_shape, pooling_type, padding, dilations, strides, name, data_format)


def embedding_lookup(params, ids, max_norm=None, name=None):
    """Returns the rows `ids` of a table, which may be split into ranges over the tensors `params`."""
    from runnel.nn import embedding_ops
    if hasattr(ids, "ragged_rank"):
        return ids.with_flat_values(embedding_lookup(params, ids.flat_values, max_norm, name))
    return embedding_ops.embedding_lookup(params, ids, "div", name, max_norm=max_norm)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner="mean", default_id=None, max_norm=None,
                                 name=None, allow_fast_lookup=False):
    """Combines the rows that each row of sparse ids selects; rows without ids give `default_id`, or zeros."""
    from runnel.nn import embedding_ops
    return embedding_ops.safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    """Returns the cross entropy of independent binary classes, element by element."""
    from runnel.nn import nn_ops
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def gelu(features, approximate=False, name=None):
    """Returns x * P(X <= x) for X of a standard normal distribution; `approximate` computes P by tanh."""
    with name_scope(name, "Gelu", [features]):
        x = convert_to_tensor(features, name="features")
        if not x.dtype.is_floating:
            raise ValueError("`features.dtype` must be a floating point tensor.Received:features.dtype=%s" % x.dtype)
        if not approximate:
            return 0.5 * x * (1.0 + raw_ops.Erf(x=x / math_ops.cast(1.4142135623730951, x.dtype)))
        cubic = math_ops.cast(0.044715, x.dtype) * raw_ops.Pow(x=x, y=convert_to_tensor(3, x.dtype))
        return 0.5 * x * (1.0 + raw_ops.Tanh(x=math_ops.cast(math.sqrt(2 / math.pi), x.dtype) * (x + cubic)))


def stateless_dropout(x, rate, seed, rng_alg="auto_select", noise_shape=None, name=None):
    """Sets elements to zero with probability `rate`, determined by `seed`, and scales the others by 1 / (1 - rate)."""
    from runnel.nn import nn_ops
    from runnel.ops.stateless_random import stateless_random_uniform
    with name_scope(name, "stateless_dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError("x has to be a floating point tensor since it's going to be scaled. Got a %s tensor instead." % x.dtype)
        if isinstance(rate, (int, float)):
            if not 0 <= rate < 1:
                raise ValueError("`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate=%s" % rate)
            if rate == 0:
                return x
        rate = convert_to_tensor(rate, x.dtype, name="rate")
        scaled = x * (1 / (1 - rate))
        drawn = stateless_random_uniform(nn_ops._noise_shape(x, noise_shape), seed, dtype=x.dtype, alg=rng_alg)
        kept = array_ops.where_v2(drawn >= rate, scaled, math_ops.cast(0, x.dtype))
        kept.set_shape(x.shape)
        return kept


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """Returns the loss of connectionist temporal classification for each row.

    Args:
      labels: a SparseTensor, or a tensor [rows, longest] of which `label_length` values count.
      logits: the scores, [time, rows, classes], or [rows, time, classes] if not `logits_time_major`.
      label_length: the lengths of the labels; None for a SparseTensor.
      logit_length: how many steps count in each row.
      unique: not needed here.
      blank_index: the class that stands for none: 0 by default, for a SparseTensor it must be given.
    """
    with name_scope(name, "ctc_loss", [logits, label_length, logit_length]):
        logits = convert_to_tensor(logits, name="logits")
        if not logits_time_major:
            logits = array_ops.transpose(logits, [1, 0, 2])
        is_sparse = isinstance(labels, SparseTensor)
        if is_sparse and blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
        if not is_sparse:
            labels = math_ops.cast(convert_to_tensor(labels, name="labels"), dtypes.int32)
            label_length = math_ops.cast(label_length, dtypes.int32)
        classes = array_ops.shape(logits)[2]
        blank = math_ops.cast(0 if blank_index is None else blank_index, dtypes.int32)
        blank = array_ops.where_v2(blank < 0, blank + classes, blank)
        logit_length = math_ops.cast(logit_length, dtypes.int32)
        sparse = labels if is_sparse else _sparse_rows(labels, label_length)
        # The op takes the last class for blank.
        values = array_ops.where_v2(sparse.values > math_ops.cast(blank, sparse.values.dtype), sparse.values - 1, sparse.values)
        order = array_ops.concat([math_ops.range(blank), math_ops.range(blank + 1, classes), [blank]], 0)
        scores = array_ops.gather(logits, order, axis=2)
        def losses(scores, values):
            return raw_ops.CTCLoss(inputs=scores, labels_indices=sparse.indices, labels_values=math_ops.cast(values, dtypes.int32),
                                   sequence_length=logit_length, ignore_longer_outputs_than_inputs=not is_sparse)[0]

        if is_sparse:
            return losses(scores, values)
        from runnel.ops import control_flow
        is_blank = math_ops.equal(sparse.values, blank)
        loss = control_flow.cond(math_ops.reduce_any(is_blank), lambda: _with_blank_labels(
            losses, scores, array_ops.where_v2(is_blank, classes - 1, values), logit_length), lambda: losses(scores, values))
        # A label needs a step for each class, and one for the blank between equal classes.
        inside = array_ops.sequence_mask(label_length - 1, array_ops.shape(labels)[1] - 1)
        repeats = math_ops.cast(math_ops.equal(labels[:, 1:], labels[:, :-1]) & inside, dtypes.int32)
        needed = label_length + math_ops.reduce_sum(repeats, 1)
        return array_ops.where_v2(needed > logit_length, math_ops.cast(float("inf"), loss.dtype), loss)


def _with_blank_labels(losses, scores, values, lengths):
    """Returns the losses of rows in which the last class, the blank, is a label, too: a class of its own with the same probability.

    The op divides the probabilities by their sum, which is 1 + p(blank) then; the losses are made smaller by its logarithm in each step.
    """
    from runnel.nn import nn_ops
    logs = nn_ops.log_softmax(scores)
    blanks = logs[:, :, -1]
    steps = array_ops.transpose(array_ops.sequence_mask(lengths, array_ops.shape(scores)[0], dtype=logs.dtype), [1, 0])
    return losses(array_ops.concat([logs, logs[:, :, -1:]], 2), values) - math_ops.reduce_sum(steps * raw_ops.Log1p(x=raw_ops.Exp(x=blanks)), 0)


def _sparse_rows(labels, lengths):
    """Returns the SparseTensor of the first `lengths` values of each row."""
    inside = array_ops.sequence_mask(lengths, array_ops.shape(labels)[1])
    indices = array_ops.where(inside)
    return SparseTensor(indices, array_ops.gather_nd(labels, indices), array_ops.shape(labels, out_type=dtypes.int64))
