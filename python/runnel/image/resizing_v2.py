"""Resizing of images in 2.x: pixels are squares whose centres are at half coordinates (tf.image.resize)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor, evaluated_value
from runnel.core.framework import name_scope
from runnel.image import resizing
from runnel.ops import array_ops, math_ops


class ResizeMethod:
    """The interpolation method of resize."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_PLAIN = {"bilinear": raw_ops.ResizeBilinear, "bicubic": raw_ops.ResizeBicubic}
_KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5", "gaussian": "gaussian",
            "mitchellcubic": "mitchellcubic"}


def _resized(images, size, method, antialias):
    if method == "nearest":
        return raw_ops.ResizeNearestNeighbor(images=images, size=size, half_pixel_centers=True)
    if method == "area":
        return raw_ops.ResizeArea(images=images, size=size)
    if method in _PLAIN and not antialias:
        return _PLAIN[method](images=images, size=size, half_pixel_centers=True)
    if method not in _KERNELS:
        raise ValueError("Resize method is not implemented: %s" % method)
    shape = math_ops.cast(array_ops.shape(images)[1:3], dtypes.float32)
    return raw_ops.ScaleAndTranslate(images=images, size=size, scale=math_ops.cast(size, dtypes.float32) / shape, translation=array_ops.zeros([2]),
                                     kernel_type=_KERNELS[method], antialias=antialias)


def resize(images, size, method=ResizeMethod.BILINEAR, preserve_aspect_ratio=False, antialias=False, name=None):
    """Resizes images to [height, width]. The result is float unless pixels are only copied.

    Args:
      images: a batch [rows, height, width, channels] or an image [height, width, channels].
      size: [height, width].
      method: one of ResizeMethod.
      preserve_aspect_ratio: whether `size` is a frame into which the images fit.
      antialias: whether pixels are averaged when an image shrinks.
      name: name of the scope of the new operations.
    """
    if hasattr(images, "ragged_rank"):
        from runnel.ragged import ragged_images
        return ragged_images.resize(resize, images, size, method, preserve_aspect_ratio=preserve_aspect_ratio, antialias=antialias)
    with name_scope(name, "resize", [images, size]):
        batch, is_one = resizing._four(images)
        size = convert_to_tensor(size, dtypes.int32, name="size")
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        known = batch.shape.as_list()
        if preserve_aspect_ratio:
            size = _fitted(batch, size)
        wanted = evaluated_value(size)
        dims = [None, None] if wanted is None else [int(d) for d in wanted]
        if None not in dims and known[1:3] == dims:
            return array_ops.squeeze(batch, [0]) if is_one else batch
        result = _resized(batch, size, method, antialias)
        result.set_shape([known[0], *dims, known[3]])
        return array_ops.squeeze(result, [0]) if is_one else result


def _fitted(batch, size):
    """Returns the largest size in the frame `size` with the images' ratio of height and width."""
    sides = math_ops.cast(array_ops.shape(batch)[1:3], dtypes.float32)
    ratios = math_ops.cast(size, dtypes.float32) / sides
    return math_ops.cast(raw_ops.Round(x=raw_ops.Minimum(x=ratios[0], y=ratios[1]) * sides), dtypes.int32)


def resize_with_pad(image, target_height, target_width, method=ResizeMethod.BILINEAR, antialias=False):
    """Resizes images to fit into a frame, keeping the ratio of height and width, and pads them evenly with zeros."""
    with name_scope(None, "resize_image_with_pad", [image]):
        batch, is_one = resizing._four(image)
        known = batch.shape.as_list()
        target = convert_to_tensor([target_height, target_width], dtypes.int32)
        sides = math_ops.cast(array_ops.shape(batch)[1:3], dtypes.float64)
        ratio = math_ops.reduce_max(sides / math_ops.cast(target, dtypes.float64))
        size = math_ops.cast(raw_ops.Floor(x=sides / ratio), dtypes.int32)
        missing = math_ops.cast(target, dtypes.float64) - sides / ratio
        before = math_ops.cast(raw_ops.Maximum(x=raw_ops.Floor(x=missing / 2), y=convert_to_tensor(0, dtypes.float64)), dtypes.int32)
        resized = resize(batch, size, method, antialias=antialias)
        after = raw_ops.Maximum(x=target - before - size, y=convert_to_tensor(0, dtypes.int32))
        pads = array_ops.stack([[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]])
        padded = raw_ops.Pad(input=resized, paddings=pads)
        sizes = evaluated_value(target)
        padded.set_shape([known[0], *([None, None] if sizes is None else [int(d) for d in sizes]), known[3]])
        return array_ops.squeeze(padded, [0]) if is_one else padded
