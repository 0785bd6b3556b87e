"""Summaries of 2.x in the form that TensorBoard's pages show: scalars, histograms, images and texts."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.protobuf import message_class
from runnel.ops import array_ops, control_flow, math_ops
from runnel.summary.writers import summary_scope, write


def _metadata(plugin, description):
    made = message_class("SummaryMetadata")()
    made.summary_description = description or ""
    made.plugin_data.plugin_name = plugin
    return made


def scalar(name, data, step=None, description=None):
    """Writes one number. Returns whether it was recorded."""
    with summary_scope(name, "scalar_summary", [data]) as (tag, _):
        return write(tag, lambda: _scalar(data), step, _metadata("scalars", description))


def _scalar(data):
    value = math_ops.cast(data, dtypes.float32)
    if value._rank() not in (None, 0):
        raise ValueError("Expected scalar shape, saw shape: %s." % value.shape)
    return value


def histogram(name, data, step=None, buckets=None, description=None):
    """Writes how values are distributed over `buckets` ranges of equal width, 30 by default."""
    count = 30 if buckets is None else buckets
    with summary_scope(name, "histogram_summary", [data]) as (tag, _):
        return write(tag, lambda: _buckets(data, count), step, _metadata("histograms", description))


def _buckets(data, count):
    """Returns [count, 3]: left edge, right edge and number of values of each range."""
    data = math_ops.cast(array_ops.reshape(convert_to_tensor(data), [-1]), dtypes.float64)

    def of_values():
        low, high = math_ops.reduce_min(data), math_ops.reduce_max(data)
        return control_flow.cond(math_ops.equal(low, high), lambda: of_one_value(low), lambda: of_range(low, high))

    def of_one_value(value):
        edges = array_ops.fill([count], value)
        size = math_ops.cast(array_ops.size(data), dtypes.float64)
        counts = array_ops.concat([array_ops.zeros([count - 1], dtypes.float64), [size]], 0)
        return array_ops.stack([edges, edges, counts], 1)

    def of_range(low, high):
        width = (high - low) / count
        places = math_ops.cast(raw_ops.Floor(x=(data - low) / width), dtypes.int32)
        places = raw_ops.Minimum(x=places, y=convert_to_tensor(count - 1))
        counts = raw_ops.UnsortedSegmentSum(data=array_ops.ones_like(data), segment_ids=places, num_segments=convert_to_tensor(count))
        edges = raw_ops.LinSpace(start=low, stop=high, num=convert_to_tensor(count + 1))
        edges = array_ops.concat([edges[:-1], [high]], 0)
        return array_ops.stack([edges[:-1], edges[1:], counts], 1)

    if count == 0:
        return array_ops.zeros([0, 3], dtypes.float64)
    return control_flow.cond(math_ops.equal(array_ops.size(data), 0), lambda: array_ops.zeros([count, 3], dtypes.float64), of_values)


def image(name, data, step=None, max_outputs=3, description=None):
    """Writes images, [rows, height, width, channels]: the first `max_outputs` of them."""
    with summary_scope(name, "image_summary", [data, max_outputs]) as (tag, _):
        return write(tag, lambda: _images(data, max_outputs), step, _metadata("images", description))


def _images(data, max_outputs):
    import runnel
    data = convert_to_tensor(data)
    if data._rank() not in (None, 4):
        raise ValueError("Shape %s must have rank 4" % data.shape)
    pixels = runnel.image.convert_image_dtype(data, dtypes.uint8, saturate=True)[:max_outputs]
    encoded = runnel.map_fn(lambda one: raw_ops.EncodePng(image=one), pixels, dtype=dtypes.string)
    shape = array_ops.shape(pixels)
    sizes = raw_ops.AsString(input=array_ops.stack([shape[2], shape[1]]))
    return array_ops.concat([sizes, array_ops.reshape(encoded, [-1])], 0)


def text(name, data, step=None, description=None):
    """Writes strings, which the page shows as Markdown."""
    with summary_scope(name, "text_summary", [data]) as (tag, _):
        return write(tag, lambda: _strings(data), step, _metadata("text", description))


def _strings(data):
    value = convert_to_tensor(data)
    if value.dtype != dtypes.string:
        raise ValueError("Expected dtype string, saw %s" % value.dtype)
    return value
