"""Images as tensors [height, width, channels], or batches of them."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import cond
from runnel.ops.math_ops import _pick
from runnel.ops.random_ops import random_crop, random_uniform  # noqa: F401


class ResizeMethod:
    """The interpolation method of resize_images."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_NAMED = {"bilinear": 0, "nearest": 1, "bicubic": 2, "area": 3}


# Files


def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False,
                acceptable_fraction=1, dct_method="", name=None):
    """Decodes the bytes of a JPEG file."""
    return raw_ops.DecodeJpeg(contents=contents, channels=channels, ratio=ratio,
                              fancy_upscaling=fancy_upscaling,
                              try_recover_truncated=try_recover_truncated,
                              acceptable_fraction=acceptable_fraction, dct_method=dct_method, name=name)


def decode_and_crop_jpeg(contents, crop_window, channels=0, ratio=1, fancy_upscaling=True,
                         try_recover_truncated=False, acceptable_fraction=1, dct_method="", name=None):
    """Decodes the part [y, x, height, width] of a JPEG file's bytes."""
    return raw_ops.DecodeAndCropJpeg(contents=contents, crop_window=crop_window, channels=channels,
                                     ratio=ratio, fancy_upscaling=fancy_upscaling,
                                     try_recover_truncated=try_recover_truncated,
                                     acceptable_fraction=acceptable_fraction, dct_method=dct_method,
                                     name=name)


def decode_png(contents, channels=0, dtype=dtypes.uint8, name=None):
    """Decodes the bytes of a PNG file."""
    return raw_ops.DecodePng(contents=contents, channels=channels, dtype=dtype, name=name)


def decode_bmp(contents, channels=0, name=None):
    """Decodes the bytes of a BMP file."""
    return raw_ops.DecodeBmp(contents=contents, channels=channels, name=name)


def decode_gif(contents, name=None):
    """Decodes the frames of a GIF file's bytes."""
    return raw_ops.DecodeGif(contents=contents, name=name)


def decode_image(contents, channels=None, dtype=dtypes.uint8, name=None, expand_animations=True):
    """Decodes the bytes of an image file of any supported format; with `expand_animations`, a GIF keeps its frames."""
    with name_scope(name, "decode_image"):
        return raw_ops.DecodeImage(contents=contents, channels=channels or 0, dtype=dtype,
                                   expand_animations=expand_animations)


def encode_jpeg(image, format="", quality=95, progressive=False, optimize_size=False,  # noqa: A002
                chroma_downsampling=True, density_unit="in", x_density=300, y_density=300,
                xmp_metadata="", name=None):
    """Encodes an image as the bytes of a JPEG file."""
    return raw_ops.EncodeJpeg(image=image, format=format, quality=quality, progressive=progressive,
                              optimize_size=optimize_size, chroma_downsampling=chroma_downsampling,
                              density_unit=density_unit, x_density=x_density, y_density=y_density,
                              xmp_metadata=xmp_metadata, name=name)


def encode_png(image, compression=-1, name=None):
    """Encodes an image as the bytes of a PNG file."""
    return raw_ops.EncodePng(image=convert_to_tensor(image), compression=compression, name=name)


def extract_jpeg_shape(contents, output_type=dtypes.int32, name=None):
    """Returns [height, width, channels] of a JPEG file's bytes."""
    return raw_ops.ExtractJpegShape(contents=contents, output_type=output_type, name=name)


def is_jpeg(contents, name=None):
    """Tells whether bytes begin like a JPEG file."""
    with name_scope(name, "is_jpeg"):
        return math_ops.equal(raw_ops.Substr(input=contents, pos=0, len=3), b"\xff\xd8\xff", name=name)


# Sizes


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


# Turning


def _axis(image, of_three):
    rank = image.shape.ndims
    if rank not in (3, 4):
        raise ValueError("'image' (shape %s) must have either 3 or 4 dimensions." % image.shape)
    return of_three + rank - 3


def flip_left_right(image):
    """Mirrors an image horizontally."""
    with name_scope(None, "flip_left_right", [image]):
        image = convert_to_tensor(image, name="image")
        return array_ops.reverse(image, [_axis(image, 1)])


def flip_up_down(image):
    """Flips an image vertically."""
    with name_scope(None, "flip_up_down", [image]):
        image = convert_to_tensor(image, name="image")
        return array_ops.reverse(image, [_axis(image, 0)])


def _random_flip(image, axis, seed, scope):
    with name_scope(None, scope, [image]) as scope:
        image = convert_to_tensor(image, name="image")
        at = _axis(image, axis)
        if image.shape.ndims == 3:
            turns = random_uniform([], 0, 1.0, seed=seed) < 0.5
            result = cond(turns, lambda: array_ops.reverse(image, [at]), lambda: image, name=scope)
            result.set_shape(image.shape)
            return result
        count = array_ops.shape(image)[0]
        flips = math_ops.cast(raw_ops.Round(x=random_uniform([count], seed=seed)), image.dtype)
        flips = array_ops.reshape(flips, [count, 1, 1, 1])
        return flips * array_ops.reverse(image, [at]) + (1 - flips) * image


def random_flip_left_right(image, seed=None):
    """Mirrors an image horizontally with probability 1/2."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image, seed=None):
    """Flips an image vertically with probability 1/2."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def transpose_image(image, name=None):
    """Swaps the rows and columns of an image."""
    with name_scope(name, "transpose", [image]):
        image = convert_to_tensor(image, name="image")
        order = [1, 0, 2] if image.shape.ndims == 3 else [0, 2, 1, 3]
        return array_ops.transpose(image, order, name=name)


transpose = transpose_image


def rot90(image, k=1, name=None):
    """Rotates an image counter-clockwise by k times 90 degrees."""
    with name_scope(name, "rot90", [image, k]):
        image = convert_to_tensor(image, name="image")
        k = k % 4 if isinstance(k, int) else k
        if not isinstance(k, int):
            from runnel.ops.control_flow import case
            k = convert_to_tensor(k, dtypes.int32) % 4
            result = case([(math_ops.equal(k, n), lambda n=n: rot90(image, n)) for n in (1, 2, 3)],
                          default=lambda: image, exclusive=True)
            return result
        if k == 0:
            return array_ops.identity(image)
        if k == 2:
            return array_ops.reverse(image, [_axis(image, 0), _axis(image, 1)])
        if k == 1:
            return array_ops.reverse(transpose_image(image), [_axis(image, 0)])
        return transpose_image(array_ops.reverse(image, [_axis(image, 0)]))


# Colours


def convert_image_dtype(image, dtype, saturate=False, name=None):
    """Converts an image to another type: floats are in [0, 1), integers fill their range."""
    image = convert_to_tensor(image, name="image")
    dtype = dtypes.as_dtype(dtype)
    if dtype == image.dtype:
        return array_ops.identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as name:
        if image.dtype.is_integer and dtype.is_integer:
            return _integer_image(image, dtype, saturate, name)
        if image.dtype.is_floating and dtype.is_floating:
            return math_ops.cast(image, dtype, name=name)
        if image.dtype.is_integer:
            floats = math_ops.cast(image, dtype)
            return math_ops.multiply(floats, 1.0 / image.dtype.max, name=name)
        scaled = math_ops.multiply(image, dtype.max + 0.5)
        if saturate:
            return math_ops.saturate_cast(scaled, dtype, name=name)
        return math_ops.cast(scaled, dtype, name=name)


def _integer_image(image, dtype, saturate, name):
    """Converts between integer types by shifting."""
    scale_in, scale_out = image.dtype.max, dtype.max
    if scale_in > scale_out:
        factor = (scale_in + 1) // (scale_out + 1)
        scaled = raw_ops.FloorDiv(x=image, y=convert_to_tensor(factor, image.dtype))
        return (math_ops.saturate_cast if saturate else math_ops.cast)(scaled, dtype, name=name)
    wide = (math_ops.saturate_cast if saturate else math_ops.cast)(image, dtype)
    factor = (scale_out + 1) // (scale_in + 1)
    return math_ops.multiply(wide, convert_to_tensor(factor, dtype), name=name)


def rgb_to_grayscale(images, name=None):
    """Converts RGB to one channel: 0.2989 R + 0.587 G + 0.114 B."""
    with name_scope(name, "rgb_to_grayscale", [images]) as name:
        images = convert_to_tensor(images, name="images")
        kind = images.dtype
        floats = convert_image_dtype(images, dtypes.float32)
        weights = [0.2989, 0.5870, 0.1140]
        gray = array_ops.expand_dims(math_ops.tensordot(floats, weights, [-1, -1]), -1)
        return convert_image_dtype(gray, kind, name=name)


def grayscale_to_rgb(images, name=None):
    """Copies the grey channel to three channels."""
    with name_scope(name, "grayscale_to_rgb", [images]) as name:
        images = convert_to_tensor(images, name="images")
        rank = images.shape.ndims
        result = array_ops.tile(images, [1] * (rank - 1) + [3], name=name)
        result.set_shape(images.shape.as_list()[:-1] + [3])
        return result


def rgb_to_hsv(images, name=None):
    """Converts RGB to hue, saturation and value, all in [0, 1]."""
    return raw_ops.RGBToHSV(images=images, name=name)


def hsv_to_rgb(images, name=None):
    """Converts hue, saturation and value to RGB."""
    return raw_ops.HSVToRGB(images=images, name=name)


def _by_matrix(images, matrix):
    images = convert_to_tensor(images, name="images")
    kernel = convert_to_tensor(matrix, images.dtype, name="kernel")
    rank = images.shape.ndims
    return math_ops.tensordot(images, kernel, axes=[[rank - 1], [0]])


def rgb_to_yiq(images):
    """Converts RGB to YIQ."""
    return _by_matrix(images, [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617],
                               [0.114, -0.32134392, 0.31119955]])


def yiq_to_rgb(images):
    """Converts YIQ to RGB."""
    return _by_matrix(images, [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021],
                               [0.6208248, -0.64720424, 1.70423049]])


def rgb_to_yuv(images):
    """Converts RGB to YUV."""
    return _by_matrix(images, [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512],
                               [0.114, 0.43601035, -0.10001026]])


def yuv_to_rgb(images):
    """Converts YUV to RGB."""
    return _by_matrix(images, [[1, 1, 1], [0, -0.394642334, 2.03206185],
                               [1.13988303, -0.58062185, 0]])


def _in_floats(image, fn, name=None):
    """Applies `fn` to the image as floats and converts the result back."""
    image = convert_to_tensor(image, name="image")
    kind = image.dtype
    floats = image if kind in (dtypes.float16, dtypes.float32) else convert_image_dtype(
        image, dtypes.float32)
    return convert_image_dtype(fn(floats), kind, saturate=True, name=name)


def adjust_brightness(image, delta):
    """Adds `delta`, relative to the range [0, 1), to the pixels."""
    with name_scope(None, "adjust_brightness", [image, delta]) as name:
        return _in_floats(image, lambda x: x + math_ops.cast(delta, x.dtype), name)


def adjust_contrast(images, contrast_factor):
    """Scales the distance of pixels from the mean of their channel."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as name:
        return _in_floats(images, lambda x: raw_ops.AdjustContrastv2(
            images=x, contrast_factor=convert_to_tensor(contrast_factor, dtypes.float32)), name)


def adjust_gamma(image, gamma=1, gain=1):
    """Returns gain * image ** gamma, for pixels in [0, 1]."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]) as name:
        if isinstance(gamma, (int, float)) and gamma < 0:
            raise ValueError("Gamma should be a non-negative real number.")
        return _in_floats(image, lambda x: gain * x ** gamma, name)


def adjust_hue(image, delta, name=None):
    """Rotates the hue by `delta`, in [-1, 1]."""
    with name_scope(name, "adjust_hue", [image]) as name:
        if isinstance(delta, (int, float)) and not -1 <= delta <= 1:
            raise ValueError("delta must be in the interval [-1, 1]")
        return _in_floats(image, lambda x: raw_ops.AdjustHue(images=x, delta=delta))


def adjust_saturation(image, saturation_factor, name=None):
    """Scales the saturation."""
    with name_scope(name, "adjust_saturation", [image]) as name:
        return _in_floats(image, lambda x: raw_ops.AdjustSaturation(images=x, scale=saturation_factor))


def adjust_jpeg_quality(image, jpeg_quality, dct_method="", name=None):
    """Encodes the image as JPEG of the given quality and decodes it again."""
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        channels = image.shape.as_list()[-1]
        kind = image.dtype
        pixels = convert_image_dtype(image, dtypes.uint8, saturate=True)
        contents = raw_ops.EncodeJpegVariableQuality(images=pixels, quality=jpeg_quality)
        pixels = decode_jpeg(contents, channels=channels, dct_method=dct_method)
        return convert_image_dtype(pixels, kind, saturate=True)


def random_brightness(image, max_delta, seed=None):
    """Adjusts the brightness by a random delta in [-max_delta, max_delta)."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image, lower, upper, seed=None):
    """Adjusts the contrast by a random factor in [lower, upper)."""
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image, max_delta, seed=None):
    """Adjusts the hue by a random delta in [-max_delta, max_delta); max_delta is at most 0.5."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image, lower, upper, seed=None):
    """Adjusts the saturation by a random factor in [lower, upper)."""
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    """Re-encodes the image as JPEG of a random quality."""
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise ValueError("0 <= min_jpeg_quality < max_jpeg_quality <= 100 must hold")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)


def per_image_standardization(image):
    """Scales each image to mean 0 and variance 1."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = convert_to_tensor(image)
        if image.dtype not in (dtypes.float16, dtypes.float32):
            image = convert_image_dtype(image, dtypes.float32)
        axes = [-1, -2, -3]
        pixels = math_ops.reduce_prod(array_ops.shape(image)[-3:])
        mean = math_ops.reduce_mean(image, axes, keepdims=True)
        deviation = math_ops.reduce_std(image, axes, keepdims=True)
        least = raw_ops.Rsqrt(x=math_ops.cast(pixels, image.dtype))
        adjusted = raw_ops.Maximum(x=deviation, y=least)
        return raw_ops.RealDiv(x=image - mean, y=adjusted, name=scope)


# Boxes and patches


def draw_bounding_boxes(images, boxes, name=None, colors=None):
    """Draws boxes [y1, x1, y2, x2] on images."""
    if colors is None:
        return raw_ops.DrawBoundingBoxes(images=images, boxes=boxes, name=name)
    return raw_ops.DrawBoundingBoxesV2(images=images, boxes=boxes, colors=colors, name=name)


def sample_distorted_bounding_box(image_size, bounding_boxes, seed=None, seed2=None,
                                  min_object_covered=0.1, aspect_ratio_range=None, area_range=None,
                                  max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """Returns (begin, size, box) of a random crop that covers enough of the objects."""
    with name_scope(name, "sample_distorted_bounding_box"):
        return raw_ops.SampleDistortedBoundingBoxV2(
            image_size=image_size, bounding_boxes=bounding_boxes, seed=seed or 0, seed2=seed2 or 0,
            min_object_covered=min_object_covered,
            aspect_ratio_range=list(aspect_ratio_range or (0.75, 1.33)),
            area_range=list(area_range or (0.05, 1.0)), max_attempts=max_attempts or 100,
            use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes), name=name)


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5,
                        score_threshold=float("-inf"), name=None):
    """Returns the indices of the best boxes that do not overlap much."""
    with name_scope(name, "non_max_suppression"):
        return raw_ops.NonMaxSuppressionV3(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold"),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold"))


def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5,
                                    score_threshold=float("-inf"), soft_nms_sigma=0.0, name=None):
    """Returns (indices, scores) of the best boxes; if sigma is not 0, overlap lowers scores."""
    with name_scope(name, "non_max_suppression_with_scores"):
        result = raw_ops.NonMaxSuppressionV5(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            soft_nms_sigma=convert_to_tensor(soft_nms_sigma, dtypes.float32),
            pad_to_max_output_size=False)
        return result[0], result[1]


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                               pad_to_max_output_size=False, name=None):
    """Returns (indices, number) of the best boxes; with `pad_to_max_output_size`, the indices are padded with zeros."""
    with name_scope(name, "non_max_suppression_padded"):
        result = raw_ops.NonMaxSuppressionV4(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            pad_to_max_output_size=pad_to_max_output_size)
        return result[0], result[1]


def non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold=0.5,
                                 score_threshold=float("-inf"), name=None):
    """Like non_max_suppression, for given overlaps [n, n]."""
    with name_scope(name, "non_max_suppression_overlaps"):
        return raw_ops.NonMaxSuppressionWithOverlaps(
            overlaps=overlaps, scores=scores, max_output_size=max_output_size,
            overlap_threshold=convert_to_tensor(overlap_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32))


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size,
                                 iou_threshold=0.5, score_threshold=float("-inf"),
                                 pad_per_class=False, clip_boxes=True, name=None):
    """Returns (boxes, scores, classes, counts) of the best boxes over all classes."""
    with name_scope(name, "combined_non_max_suppression"):
        return raw_ops.CombinedNonMaxSuppression(
            boxes=boxes, scores=scores, max_output_size_per_class=max_output_size_per_class,
            max_total_size=max_total_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            pad_per_class=pad_per_class, clip_boxes=clip_boxes)


def extract_glimpse(input, size, offsets, centered=True, normalized=True,  # noqa: A002
                    uniform_noise=True, name=None):
    """Extracts windows around points; pixels outside of the image are noise."""
    return raw_ops.ExtractGlimpse(input=input, size=size, offsets=offsets, centered=centered,
                                  normalized=normalized, uniform_noise=uniform_noise, name=name)


def extract_patches(images, sizes, strides, rates, padding, name=None):
    """Extracts windows of images; each becomes a vector in the channel dimension."""
    return array_ops.extract_image_patches(images, sizes, strides, rates, padding, name)


# Measures


def image_gradients(image):
    """Returns (dy, dx), the differences of neighbouring pixels."""
    image = convert_to_tensor(image)
    if image.shape.ndims != 4:
        raise ValueError("image_gradients expects a 4D tensor [batch_size, h, w, d], not %s." %
                         image.shape)
    count, height, width, depth = array_ops.unstack(array_ops.shape(image), 4)
    dy = image[:, 1:, :, :] - image[:, :-1, :, :]
    dx = image[:, :, 1:, :] - image[:, :, :-1, :]
    dy = array_ops.concat([dy, array_ops.zeros(array_ops.stack([count, 1, width, depth]),
                                               image.dtype)], 1)
    dx = array_ops.concat([dx, array_ops.zeros(array_ops.stack([count, height, 1, depth]),
                                               image.dtype)], 2)
    dy.set_shape(image.shape)
    dx.set_shape(image.shape)
    return dy, dx


def sobel_edges(image):
    """Returns (dy, dx) of Sobel's filters in a last dimension of 2."""
    from runnel.nn import nn_conv
    image = convert_to_tensor(image)
    depth = image.shape.as_list()[-1]
    kernel = array_ops.tile(array_ops.reshape(convert_to_tensor(
        [[[-1., -1.], [-2., 0.], [-1., 1.]], [[0., -2.], [0., 0.], [0., 2.]],
         [[1., -1.], [2., 0.], [1., 1.]]]), [3, 3, 1, 2]), [1, 1, depth, 1])
    padded = array_ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = nn_conv.depthwise_conv2d(padded, kernel, [1, 1, 1, 1], "VALID")
    return array_ops.reshape(edges, array_ops.concat([array_ops.shape(image), [2]], 0))


def total_variation(images, name=None):
    """Returns the sum of the differences of neighbouring pixels, one value per image."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = None if images.shape.ndims == 3 else [1, 2, 3]
        down = images[..., 1:, :, :] - images[..., :-1, :, :]
        along = images[..., :, 1:, :] - images[..., :, :-1, :]
        return (math_ops.reduce_sum(math_ops.abs(down), axis=axes)
                + math_ops.reduce_sum(math_ops.abs(along), axis=axes))


def psnr(a, b, max_val, name=None):
    """Returns the peak signal-to-noise ratio in decibels."""
    with name_scope(name, "PSNR", [a, b]):
        largest = convert_image_dtype(math_ops.cast(max_val, convert_to_tensor(a).dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = math_ops.reduce_mean(raw_ops.SquaredDifference(x=a, y=b), [-3, -2, -1])
        ten = convert_to_tensor(10.0)
        return math_ops.subtract(20 * raw_ops.Log(x=largest) / raw_ops.Log(x=ten),
                                 convert_to_tensor(4.342944819) * raw_ops.Log(x=error), name="psnr")


def _ssim_window(size, sigma):
    import numpy
    at = numpy.arange(size, dtype=numpy.float32) - (size - 1) / 2.0
    logits = -0.5 * (at / sigma) ** 2
    grid = logits[:, None] + logits[None, :]
    weights = numpy.exp(grid - grid.max())
    return convert_to_tensor((weights / weights.sum()).astype(numpy.float32).reshape(size, size, 1, 1))


def _ssim_parts(one, two, max_val, filter_size, filter_sigma, k1, k2):
    """Returns (similarity, contrast and structure), one value per image and channel."""
    from runnel.nn import nn_conv
    kernel = array_ops.tile(_ssim_window(filter_size, filter_sigma),
                            array_ops.stack([1, 1, array_ops.shape(one)[-1], 1]))

    def blur(x):
        shape = array_ops.shape(x)
        flat = array_ops.reshape(x, array_ops.concat([[-1], shape[-3:]], 0))
        y = nn_conv.depthwise_conv2d_native(flat, kernel, [1, 1, 1, 1], "VALID")
        return array_ops.reshape(y, array_ops.concat([shape[:-3], array_ops.shape(y)[1:]], 0))
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean1, mean2 = blur(one), blur(two)
    product, squares = mean1 * mean2 * 2.0, raw_ops.Square(x=mean1) + raw_ops.Square(x=mean2)
    luminance = (product + c1) / (squares + c1)
    cross = blur(one * two) * 2.0
    both = blur(raw_ops.Square(x=one) + raw_ops.Square(x=two))
    structure = (cross - product + c2) / (both - squares + c2)
    return luminance * structure, structure


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03,
         return_index_map=False):
    """Returns the structural similarity of images, one value per image."""
    with name_scope(None, "SSIM", [img1, img2]):
        img1 = convert_to_tensor(img1)
        max_val = convert_image_dtype(math_ops.cast(max_val, img1.dtype), dtypes.float32)
        one, two = convert_image_dtype(img1, dtypes.float32), convert_image_dtype(img2, dtypes.float32)
        value, _ = _ssim_parts(one, two, max_val, filter_size, filter_sigma, k1, k2)
        if return_index_map:
            return math_ops.reduce_mean(value, [-1])
        return math_ops.reduce_mean(math_ops.reduce_mean(value, [-3, -2]), [-1])


def ssim_multiscale(img1, img2, max_val, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
                    filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """Returns the structural similarity over several scales, one value per image."""
    from runnel.nn import nn_conv, nn_ops
    with name_scope(None, "MS-SSIM", [img1, img2]):
        img1 = convert_to_tensor(img1)
        max_val = convert_image_dtype(math_ops.cast(max_val, img1.dtype), dtypes.float32)
        pair = [convert_image_dtype(img1, dtypes.float32), convert_image_dtype(img2, dtypes.float32)]
        factors = []
        for scale in range(len(power_factors)):
            if scale > 0:
                pair = [nn_conv.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") for x in pair]
            value, structure = _ssim_parts(*pair, max_val, filter_size, filter_sigma, k1, k2)
            value = math_ops.reduce_mean(value, [-3, -2])
            factors.append(nn_ops.relu(math_ops.reduce_mean(structure, [-3, -2])))
        factors[-1] = nn_ops.relu(value)
        stacked = array_ops.stack(factors, axis=-1)
        return math_ops.reduce_mean(math_ops.reduce_prod(raw_ops.Pow(
            x=stacked, y=convert_to_tensor(list(power_factors))), [-1]), [-1])
