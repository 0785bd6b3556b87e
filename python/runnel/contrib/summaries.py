"""Summaries of tensors, activations and collections (tf.contrib.layers.summarize_*)."""

import re

from runnel import dtypes, raw_ops, summary
from runnel.core.framework import GraphKeys, get_collection
from runnel.ops import math_ops


def summarize_activation(op):
    """Adds a histogram of an activation, and how often it is at its bounds."""
    def share(name, compare, bound):
        inputs = op.op.inputs[0]
        at_bound = compare(x=inputs, y=math_ops.cast(bound, inputs.dtype))
        summary.scalar("%s/%s" % (op.op.name, name),
                       math_ops.reduce_mean(math_ops.cast(at_bound, dtypes.float32)))

    if op.op.type in ("Relu", "Softplus", "Relu6"):
        share("zeros", raw_ops.Less, 0.0)
    if op.op.type == "Relu6":
        share("sixes", raw_ops.Greater, 6.0)
    return summary.histogram("%s/activation" % op.op.name, op)


def summarize_tensor(tensor, tag=None):
    """Adds a scalar or histogram summary of a tensor; returns None if it is not numeric."""
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.bool):
        return None
    kind = summary.scalar if tensor.shape.ndims == 0 else summary.histogram
    return kind(tag or "%s_summary" % tensor.op.name, tensor)


def summarize_tensors(tensors, summarizer=summarize_tensor):
    """Summarizes each tensor."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(collection, name_filter=None, summarizer=summarize_tensor):
    """Summarizes each tensor of a collection whose name matches."""
    return summarize_tensors([x for x in get_collection(collection)
                              if name_filter is None or re.match(name_filter, x.op.name)], summarizer)


def summarize_activations(name_filter=None, summarizer=summarize_activation):
    """Summarizes each collected activation."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
