"""Decodes and encodes image files (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import math_ops


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


def decode_webp(contents, channels=0, dtype=dtypes.uint8, name=None):
    """Decodes the frames of a WebP file's bytes."""
    return raw_ops.DecodeWebP(contents=contents, channels=channels, dtype=dtype, name=name)


def decode_jxl(contents, channels=0, dtype=dtypes.uint8, name=None):
    """Decodes the bytes of a JPEG XL file."""
    return raw_ops.DecodeJxl(contents=contents, channels=channels, dtype=dtype, name=name)


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
