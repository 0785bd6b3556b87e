"""Names of the first releases, which lectures and books still show. Each warns once with its new name."""

from runnel import raw_ops as _ops
from runnel.core.deprecation import warn_once


def select(condition, t, e, name=None):
    """The old name of tf.where."""
    warn_once("select", "where")
    return _ops.Select(condition, t, e, name=name)


def inv(x, name=None):
    """The old name of tf.reciprocal."""
    warn_once("inv", "reciprocal")
    return _ops.Reciprocal(x, name=name)


def complex_abs(x, name=None):
    """The old name of tf.abs for complex numbers."""
    warn_once("complex_abs", "abs")
    from runnel.ops.math_ops import abs as abs_
    return abs_(x, name=name)


def listdiff(x, y, out_idx=None, name=None):
    """The old name of tf.setdiff1d."""
    warn_once("listdiff", "setdiff1d")
    return _ops.ListDiff(x, y, out_idx=out_idx, name=name)


def scalar_summary(tags, values, collections=None, name=None):
    """The old name of tf.summary.scalar."""
    warn_once("scalar_summary", "summary.scalar")
    return _summary("ScalarSummary", tags, values, collections, name)


def histogram_summary(tag, values, collections=None, name=None):
    """The old name of tf.summary.histogram."""
    warn_once("histogram_summary", "summary.histogram")
    return _summary("HistogramSummary", tag, values, collections, name)


def image_summary(tag, tensor, max_images=3, collections=None, name=None):
    """The old name of tf.summary.image."""
    warn_once("image_summary", "summary.image")
    return _summary("ImageSummary", tag, tensor, collections, name, max_images=max_images)


def _summary(op, tag, values, collections, name, **attrs):
    from runnel.core.framework import GraphKeys, get_default_graph
    result = getattr(_ops, op)(tag, values, name=name, **attrs)
    get_default_graph().add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, result)
    return result


def merge_summary(inputs, collections=None, name=None):
    """The old name of tf.summary.merge."""
    warn_once("merge_summary", "summary.merge")
    from runnel import summary
    return summary.merge(inputs, collections, name)


def merge_all_summaries(key="summaries"):
    """The old name of tf.summary.merge_all."""
    warn_once("merge_all_summaries", "summary.merge_all")
    from runnel import summary
    return summary.merge_all(key)
