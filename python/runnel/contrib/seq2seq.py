"""tf.contrib.seq2seq: decoders, helpers, attention and the loss of sequences."""

from runnel import nest, nn
from runnel.contrib.attention import (
    AttentionMechanism, AttentionWrapper, AttentionWrapperState, BahdanauAttention, LuongAttention, hardmax)
from runnel.contrib.decoding import (
    BasicDecoder, BasicDecoderOutput, CustomHelper, Decoder, GreedyEmbeddingHelper, Helper, InferenceHelper,
    SampleEmbeddingHelper, ScheduledEmbeddingTrainingHelper, TrainingHelper, dynamic_decode)
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True,
                  sum_over_timesteps=False, sum_over_batch=False, softmax_loss_function=None, name=None):
    """Returns the weighted cross entropy of sequences: [batch, time, classes], [batch, time], [batch, time]."""
    for value, rank, what in (
            (logits, 3, "Logits must be a [batch_size x sequence_length x logits] tensor"),
            (targets, 2, "Targets must be a [batch_size x sequence_length] tensor"),
            (weights, 2, "Weights must be a [batch_size x sequence_length] tensor")):
        if len(value.get_shape()) != rank:
            raise ValueError(what)
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError("average_across_timesteps and sum_over_timesteps cannot be set to True at same time.")
    if average_across_batch and sum_over_batch:
        raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = array_ops.shape(logits)[2]
        flat = array_ops.reshape(logits, [-1, classes])
        labels = array_ops.reshape(targets, [-1])
        if softmax_loss_function is None:
            losses = nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
        else:
            losses = softmax_loss_function(labels=labels, logits=flat)
        losses *= array_ops.reshape(weights, [-1])
        total = math_ops.reduce_sum(weights)
        if average_across_timesteps and average_across_batch:
            return math_ops.reduce_sum(losses) / (total + 1e-12)
        if sum_over_timesteps and sum_over_batch:
            counted = math_ops.cast(math_ops.count_nonzero(weights), losses.dtype)
            return math_ops.reduce_sum(losses) / (counted + 1e-12)
        losses = array_ops.reshape(losses, array_ops.shape(logits)[0:2])
        for axis, averages, sums in ((0, average_across_batch, sum_over_batch),
                                     (1, average_across_timesteps, sum_over_timesteps)):
            if averages or sums:
                # If the batch dimension was reduced before, time is dimension 0.
                at = axis if losses.shape.ndims == 2 else 0
                counts = weights if averages else math_ops.cast(math_ops.not_equal(weights, 0), losses.dtype)
                losses = math_ops.reduce_sum(losses, [at]) / (math_ops.reduce_sum(counts, [axis]) + 1e-12)
        return losses


def tile_batch(t, multiplier, name=None):
    """Repeats each example of a nest of tensors."""
    def tiled(x):
        x = convert_to_tensor(x, name="t")
        shape = array_ops.shape(x)
        repeated = array_ops.tile(array_ops.expand_dims(x, 1),
                                  array_ops.concat([[1, multiplier], array_ops.ones_like(shape[1:])], 0))
        result = array_ops.reshape(repeated, array_ops.concat([shape[:1] * multiplier, shape[1:]], 0))
        batch = x.shape.as_list()[0]
        result.set_shape([None if batch is None else batch * multiplier] + x.shape.as_list()[1:])
        return result

    with name_scope(name, "tile_batch", nest.flatten(t) + [multiplier]):
        return nest.map_structure(tiled, t)
