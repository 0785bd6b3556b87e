"""Summary ops (tf.summary)."""

import contextlib
import re

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, add_to_collections, executing_eagerly, get_collection, name_scope
from runnel.core.protobuf import message_class

_BAD_TAG = re.compile(r"[^-/\w\.]")


def _clean(name):
    cleaned = _BAD_TAG.sub("_", name).lstrip("/")
    if cleaned != name:
        from runnel import logging
        logging.info("Summary name %s is illegal; using %s instead." % (name, cleaned))
    return cleaned


@contextlib.contextmanager
def _scope(name, family, default, values):
    """A context manager: (tag, name of the node)."""
    name = _clean(name)
    family = None if family is None else _clean(family)
    with name_scope(name if family is None else "%s/%s" % (family, name), default, values) as scope:
        yield ((scope if family is None else "%s/%s" % (family, scope)).rstrip("/"), scope)


def _collected(value, collections):
    add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, value)
    return value


def _eager():
    return executing_eagerly()


def scalar(name, tensor, collections=None, family=None):
    """Returns a summary of one number."""
    if _eager():
        return convert_to_tensor(b"")
    with _scope(name, family, None, [tensor]) as (tag, scope):
        value = raw_ops.ScalarSummary(tags=tag, values=tensor, name=scope)
        return _collected(value, collections)


def histogram(name, values, collections=None, family=None):
    """Returns a summary of the distribution of values."""
    with _scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        value = raw_ops.HistogramSummary(tag=tag, values=values, name=scope)
        return _collected(value, collections)


def image(name, tensor, max_outputs=3, collections=None, family=None):
    """Returns a summary of images [batch, height, width, channels]."""
    with _scope(name, family, None, [tensor]) as (tag, scope):
        value = raw_ops.ImageSummary(tag=tag, tensor=tensor, max_images=max_outputs, name=scope)
        return _collected(value, collections)


def audio(name, tensor, sample_rate, max_outputs=3, collections=None, family=None):
    """Returns a summary of sounds [batch, frames(, channels)] in [-1, 1]."""
    with _scope(name, family, None, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        value = raw_ops.AudioSummaryV2(tag=tag, tensor=tensor, sample_rate=rate,
                                       max_outputs=max_outputs, name=scope)
        return _collected(value, collections)


def tensor_summary(name, tensor, summary_description=None, collections=None, summary_metadata=None,
                   family=None, display_name=None):
    """Returns a summary of a whole tensor, with the metadata that a plug-in needs to show it."""
    metadata = summary_metadata
    if metadata is None:
        metadata = message_class("SummaryMetadata")()
        if summary_description is not None:
            metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with _scope(name, family, None, [tensor]) as (tag, scope):
        value = raw_ops.TensorSummaryV2(tensor=tensor, tag=tag, name=scope,
                                        serialized_summary_metadata=metadata.SerializeToString())
        return _collected(value, collections)


def text(name, tensor, collections=None):
    """Returns a summary of strings, which TensorBoard shows as Markdown."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype != dtypes.string:
        raise ValueError("Expected tensor %s to have dtype string, got %s" % (tensor.name, tensor.dtype))
    metadata = message_class("SummaryMetadata")()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, summary_metadata=metadata, collections=collections)


def merge(inputs, collections=None, name=None):
    """Merges summaries into one."""
    if _eager():
        raise RuntimeError("Merging tf.summary.* ops is not compatible with eager execution.")
    with name_scope(name, "Merge", inputs):
        value = raw_ops.MergeSummary(inputs=list(inputs), name=name)
        return _collected(value, [] if collections is None else collections)


def merge_all(key=GraphKeys.SUMMARIES, scope=None, name=None):
    """Merges all summaries of a collection; None if there are none."""
    if _eager():
        raise RuntimeError("Merging tf.summary.* ops is not compatible with eager execution.")
    found = get_collection(key, scope=scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def):
    """Returns the SummaryDescription of a TensorSummary node."""
    if node_def.op != "TensorSummary":
        raise ValueError("Can't get_summary_description on %s" % node_def.op)
    import json
    description = message_class("SummaryDescription")()
    text_form = node_def.attr["description"].s.decode() or "{}"
    for key, value in json.loads(text_form).items():
        setattr(description, re.sub("([A-Z])", lambda m: "_" + m.group(1).lower(), key), value)
    return description
