"""Resizes, crops and pads images (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.math_ops import _pick


class ResizeMethod:
    """The interpolation method of resize_images."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_NAMED = {"bilinear": 0, "nearest": 1, "bicubic": 2, "area": 3}


def _four(image):
    """Returns (batch, whether the input was a single image)."""
    image = convert_to_tensor(image, name="images")
    rank = image.shape.ndims
    if rank is None:
        raise ValueError("'images' contains no shape.")
    if rank == 3:
        return array_ops.expand_dims(image, 0), True
    if rank != 4:
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    return image, False


def _resize_op(images, size, method, align_corners, half_pixel_centers=False):
    if method == ResizeMethod.AREA:
        return raw_ops.ResizeArea(images=images, size=size, align_corners=align_corners)
    op = {ResizeMethod.BILINEAR: raw_ops.ResizeBilinear,
          ResizeMethod.NEAREST_NEIGHBOR: raw_ops.ResizeNearestNeighbor,
          ResizeMethod.BICUBIC: raw_ops.ResizeBicubic}.get(method)
    if op is None:
        raise ValueError("Resize method is not implemented: %s" % method)
    return op(images=images, size=size, align_corners=align_corners,
              half_pixel_centers=half_pixel_centers)


def resize_images(images, size, method=ResizeMethod.BILINEAR, align_corners=False,
                  preserve_aspect_ratio=False, name=None):
    """Resizes images to [height, width]. The result is float unless pixels are only copied."""
    from runnel.core.convert import evaluated_value
    method = _NAMED.get(method, method)
    if hasattr(images, "ragged_rank"):
        from runnel.ragged import ragged_images
        return ragged_images.resize(resize_images, images, size, method, align_corners=align_corners, preserve_aspect_ratio=preserve_aspect_ratio)
    with name_scope(name, "resize", [images, size]):
        batch, is_one = _four(images)
        size = convert_to_tensor(size, dtypes.int32, name="size")
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        known = batch.shape.as_list()
        if preserve_aspect_ratio:
            shape = array_ops.shape(batch)
            height, width = (math_ops.cast(shape[i], dtypes.float32) for i in (1, 2))
            scale = raw_ops.Minimum(x=math_ops.cast(size[0], dtypes.float32) / height,
                                    y=math_ops.cast(size[1], dtypes.float32) / width)
            size = array_ops.stack([math_ops.cast(raw_ops.Round(x=scale * d), dtypes.int32)
                                    for d in (height, width)])
        wanted = evaluated_value(size)
        if wanted is not None and known[1:3] == [int(d) for d in wanted]:
            if not preserve_aspect_ratio:
                return array_ops.squeeze(batch, [0]) if is_one else batch
        result = _resize_op(batch, size, method, align_corners)
        dims = [None, None] if wanted is None else [int(d) for d in wanted]
        result.set_shape([known[0]] + dims + [known[3]])
        return array_ops.squeeze(result, [0]) if is_one else result


resize = resize_images


def resize_bilinear(images, size, align_corners=False, name=None, half_pixel_centers=False):
    """Resizes images with bilinear interpolation."""
    return raw_ops.ResizeBilinear(images=images, size=size, align_corners=align_corners,
                                  half_pixel_centers=half_pixel_centers, name=name)


def resize_bicubic(images, size, align_corners=False, name=None, half_pixel_centers=False):
    """Resizes images with bicubic interpolation."""
    return raw_ops.ResizeBicubic(images=images, size=size, align_corners=align_corners,
                                 half_pixel_centers=half_pixel_centers, name=name)


def resize_nearest_neighbor(images, size, align_corners=False, name=None, half_pixel_centers=False):
    """Resizes images by taking the nearest pixel."""
    return raw_ops.ResizeNearestNeighbor(images=images, size=size, align_corners=align_corners,
                                         half_pixel_centers=half_pixel_centers, name=name)


def resize_area(images, size, align_corners=False, name=None):
    """Resizes images by averaging areas."""
    return raw_ops.ResizeArea(images=images, size=size, align_corners=align_corners, name=name)


def _sizes(batch):
    """Returns (batch, height, width, depth), as numbers where they are known."""
    dims = batch.shape.as_list()
    if None not in dims:
        return dims
    shape = array_ops.unstack(array_ops.shape(batch), 4)
    return [s if d is None else d for s, d in zip(shape, dims)]


def _check(holds, message):
    if isinstance(holds, bool) and not holds:
        raise ValueError(message)


def _known(*values):
    return all(isinstance(v, int) for v in values)


def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """Crops an image to the target size, starting at an offset."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        batch, is_one = _four(image)
        count, height, width, depth = _sizes(batch)
        if _known(offset_width):
            _check(offset_width >= 0, "offset_width must be >= 0.")
        if _known(offset_height):
            _check(offset_height >= 0, "offset_height must be >= 0.")
        if _known(width, target_width, offset_width):
            _check(width >= target_width + offset_width, "width must be >= target + offset.")
        if _known(height, target_height, offset_height):
            _check(height >= target_height + offset_height, "height must be >= target + offset.")
        result = array_ops.slice(batch, array_ops.stack([0, offset_height, offset_width, 0]),
                                 array_ops.stack([-1, target_height, target_width, -1]))
        result.set_shape([None if not isinstance(x, int) else x
                          for x in (count, target_height, target_width, depth)])
        return array_ops.squeeze(result, [0]) if is_one else result


def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """Places an image at an offset in an image of the target size, padded with zeros."""
    with name_scope(None, "pad_to_bounding_box", [image]):
        batch, is_one = _four(image)
        count, height, width, depth = _sizes(batch)
        after_width = target_width - offset_width - width
        after_height = target_height - offset_height - height
        if _known(after_width):
            _check(after_width >= 0, "width must be <= target - offset")
        if _known(after_height):
            _check(after_height >= 0, "height must be <= target - offset")
        pads = array_ops.reshape(array_ops.stack(
            [0, 0, offset_height, after_height, offset_width, after_width, 0, 0]), [4, 2])
        result = array_ops.pad(batch, pads)
        result.set_shape([None if not isinstance(x, int) else x
                          for x in (count, target_height, target_width, depth)])
        return array_ops.squeeze(result, [0]) if is_one else result


def resize_image_with_crop_or_pad(image, target_height, target_width):
    """Crops or pads an image around its centre to the target size."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        batch, is_one = _four(image)
        _, height, width, _ = _sizes(batch)

        def largest(a, b):
            return max(a, b) if _known(a, b) else raw_ops.Maximum(x=a, y=b)

        def smallest(a, b):
            return min(a, b) if _known(a, b) else raw_ops.Minimum(x=a, y=b)
        more_w, more_h = target_width - width, target_height - height
        result = crop_to_bounding_box(batch, largest(-more_h // 2, 0), largest(-more_w // 2, 0),
                                      smallest(target_height, height), smallest(target_width, width))
        result = pad_to_bounding_box(result, largest(more_h // 2, 0), largest(more_w // 2, 0),
                                     target_height, target_width)
        return array_ops.squeeze(result, [0]) if is_one else result


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def resize_image_with_pad(image, target_height, target_width, method=ResizeMethod.BILINEAR,
                          align_corners=False):
    """Resizes an image to fit the target size, keeping its aspect ratio, and pads it with zeros."""
    with name_scope(None, "resize_image_with_pad", [image]):
        batch, is_one = _four(image)
        _, height, width, _ = _sizes(batch)
        h, w = (math_ops.cast(x, dtypes.float32) for x in (height, width))
        ratio = raw_ops.Maximum(x=w / target_width, y=h / target_height)
        new_h = math_ops.cast(raw_ops.Floor(x=h / ratio), dtypes.int32)
        new_w = math_ops.cast(raw_ops.Floor(x=w / ratio), dtypes.int32)
        pad_h = raw_ops.Maximum(x=0, y=(target_height - new_h) // 2)
        pad_w = raw_ops.Maximum(x=0, y=(target_width - new_w) // 2)
        resized = resize_images(batch, array_ops.stack([new_h, new_w]), method, align_corners)
        result = pad_to_bounding_box(resized, pad_h, pad_w, target_height, target_width)
        return array_ops.squeeze(result, [0]) if is_one else result


def central_crop(image, central_fraction):
    """Crops the central fraction of an image."""
    if not 0.0 < central_fraction <= 1.0:
        raise ValueError("central_fraction must be within (0, 1]")
    image = convert_to_tensor(image)
    if central_fraction == 1.0:
        return image
    with name_scope(None, "central_crop", [image]):
        batch, is_one = _four(image)
        _, height, width, _ = _sizes(batch)

        def start(size):
            if isinstance(size, int):
                return int((size - size * central_fraction) / 2)
            size = math_ops.cast(size, dtypes.float64)
            return math_ops.cast((size - size * central_fraction) / 2, dtypes.int32)
        y, x = start(height), start(width)
        return crop_to_bounding_box(array_ops.squeeze(batch, [0]) if is_one else batch, y, x,
                                    height - y * 2, width - x * 2)


def crop_and_resize(image, boxes, box_ind=None, crop_size=None, method="bilinear",
                    extrapolation_value=0, name=None, box_indices=None):
    """Crops boxes [y1, x1, y2, x2] of images and resizes them to one size."""
    return raw_ops.CropAndResize(image=image, boxes=boxes,
                                 box_ind=_pick("box_indices", box_indices, "box_ind", box_ind),
                                 crop_size=crop_size, method=method,
                                 extrapolation_value=extrapolation_value, name=name)
