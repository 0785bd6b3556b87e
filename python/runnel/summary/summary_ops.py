"""Summary ops (tf.summary)."""

import contextlib
import re
import warnings

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


_NOT_IN_2 = "Cannot activate TF2 compatibility support for TF1 summary ops: "


def _step_of_2():
    """Returns the step of a summary that a writer of 2.x records, or None."""
    from runnel.summary import writers
    from runnel.train.training_util import get_global_step
    step = writers.get_step()
    return get_global_step() if step is None else step


def _is_for_2():
    """Tells whether a summary goes to the writer of 2.x instead: in eager execution and its functions, if a writer and a step are there."""
    from runnel.eager import context
    from runnel.summary import writers
    if not context.executing_eagerly_outside_functions():
        return False
    if not writers.has_default_writer():
        warnings.warn(_NOT_IN_2 + "default summary writer not found.", stacklevel=3)
        return False
    if _step_of_2() is None:
        warnings.warn(_NOT_IN_2 + "global step not set. To set step for summary writer, use `tf.summary.SummaryWriter.as_default(step=_)`, "
                      "`tf.summary.experimental.set_step()` or `tf.compat.v1.train.create_global_step()`.", stacklevel=3)
        return False
    return True


def _through_2(kind, name, family, data, *args, **kwargs):
    """Records a summary with the writer of 2.x. Returns an empty string, which stands for the summary."""
    from runnel.summary import kinds
    with _scope(name, family, None, [data]) as (tag, _), name_scope(None):
        getattr(kinds, kind)(tag, data, *args, step=_step_of_2(), **kwargs)
    return convert_to_tensor(b"")


def scalar(name, tensor, collections=None, family=None):
    """Returns a summary of one number."""
    if _is_for_2():
        return _through_2("scalar", name, family, tensor)
    with _scope(name, family, None, [tensor]) as (tag, scope):
        value = raw_ops.ScalarSummary(tags=tag, values=tensor, name=scope)
        return _collected(value, collections)


def histogram(name, values, collections=None, family=None):
    """Returns a summary of the distribution of values."""
    if _is_for_2():
        return _through_2("histogram", name or "HistogramSummary", family, values)
    with _scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        value = raw_ops.HistogramSummary(tag=tag, values=values, name=scope)
        return _collected(value, collections)


def image(name, tensor, max_outputs=3, collections=None, family=None):
    """Returns a summary of images [batch, height, width, channels]."""
    if _is_for_2():
        return _through_2("image", name, family, tensor, max_outputs=max_outputs)
    with _scope(name, family, None, [tensor]) as (tag, scope):
        value = raw_ops.ImageSummary(tag=tag, tensor=tensor, max_images=max_outputs, name=scope)
        return _collected(value, collections)


def audio(name, tensor, sample_rate, max_outputs=3, collections=None, family=None):
    """Returns a summary of sounds [batch, frames(, channels)] in [-1, 1]."""
    if _is_for_2():
        return _through_2("audio", name, family, tensor, sample_rate, max_outputs=max_outputs)
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
    if tensor.dtype == dtypes.string and _is_for_2():
        return _through_2("text", name, None, tensor)
    if tensor.dtype != dtypes.string:
        raise ValueError("Expected tensor %s to have dtype string, got %s" % (tensor.name, tensor.dtype))
    metadata = message_class("SummaryMetadata")()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, summary_metadata=metadata, collections=collections)


def merge(inputs, collections=None, name=None):
    """Merges summaries into one."""
    if executing_eagerly():
        raise RuntimeError("Merging tf.summary.* ops is not compatible with eager execution.")
    with name_scope(name, "Merge", inputs):
        value = raw_ops.MergeSummary(inputs=list(inputs), name=name)
        return _collected(value, [] if collections is None else collections)


def merge_all(key=GraphKeys.SUMMARIES, scope=None, name=None):
    """Merges all summaries of a collection; None if there are none."""
    if executing_eagerly():
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
