"""Converts and adjusts the colours of images (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.image.codecs import decode_jpeg
from runnel.ops import array_ops, math_ops
from runnel.ops.random_ops import random_uniform


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
