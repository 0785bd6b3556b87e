"""Resizing images and converting their colours."""

import base64
import struct
import zlib

from . import image_codec, image_more, image_new
from .base import *


def png(width, height, rgb):
    """Returns a PNG file of 8-bit RGB, as base64."""
    row = 3 * width
    raw = b"".join(b"\0" + bytes(rgb[i * row : (i + 1) * row]) for i in range(height))
    out = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b"")):
        crc = zlib.crc32(kind + data)
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
    return base64.b64encode(out).decode()


def fill(t):
    sizes = [("up", [5, 7]), ("down", [2, 2]), ("same", [3, 4]), ("one", [1, 1])]
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeArea", "ResizeBicubic"):
        for name, s in sizes:
            t.row(name, op, [drawn("float", [2, 3, 4, 2]), ivec(*s)])
            t.row(
                "corners_" + name,
                op,
                [drawn("float", [1, 3, 4, 1]), ivec(*s)],
                {"align_corners": True},
            )
            if op != "ResizeArea":
                t.row(
                    "centers_" + name,
                    op,
                    [drawn("float", [1, 3, 4, 1]), ivec(*s)],
                    {"half_pixel_centers": True},
                )
        t.each("", op, "F I uint8 uint16", lambda d: [drawn(d, [1, 2, 2, 1], 0, 9), ivec(3, 3)])
        t.row("zero_size", op, [drawn("float", [1, 2, 2, 1]), vec("int32", [0, 2])])
        t.row("rank3", op, [drawn("float", [2, 2, 1]), ivec(3, 3)])
        t.row("size_short", op, [drawn("float", [1, 2, 2, 1]), ivec(3)])
    image = lambda d: given(d, [1, 2, 2, 1], ["-inf", "nan", "-0.0", 1.5])
    for d in ("half", "float"):
        for name, how in (("", {}), ("centers_", {"half_pixel_centers": True}), ("aligned_", {"align_corners": True})):
            t.row("same_odd_%s%s" % (name, d), "ResizeBilinear", [image(d), ivec(2, 2)], how)
    t.row(
        "both",
        "ResizeBilinear",
        [drawn("float", [1, 2, 2, 1]), ivec(3, 3)],
        {"align_corners": True, "half_pixel_centers": True},
    )
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        t.row("grad", op, [drawn("float", [1, 3, 3, 1]), ivec(5, 4)], grad=True)
        t.row(
            "grad_centers",
            op,
            [drawn("float", [1, 3, 3, 1]), ivec(5, 4)],
            {"half_pixel_centers": True},
            grad=True,
        )
    t.row(
        "float", "ResizeBilinearGrad", [drawn("float", [1, 5, 4, 2]), drawn("float", [1, 3, 3, 2])]
    )
    t.row(
        "double",
        "ResizeBilinearGrad",
        [drawn("float", [1, 5, 4, 1]), drawn("double", [1, 3, 3, 1])],
        {"align_corners": True},
        tol=1e-6,
    )
    t.row("float", "ResizeNearestNeighborGrad", [drawn("float", [1, 5, 4, 2]), ivec(3, 3)])
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        for d in dtypes("F" if op == "ResizeBilinearGrad" else "f"):
            for name, a in (("", {}), ("corners_", {"align_corners": True})):
                t.row(
                    name + "down_" + d,
                    op,
                    [drawn("float", [2, 2, 3, 2]), drawn(d, [2, 5, 4, 2])],
                    a,
                    tol=loose(d) and max(loose(d), 1e-6),
                )
        t.row(
            "centers",
            op,
            [drawn("float", [1, 7, 5, 1]), drawn("float", [1, 3, 3, 1])],
            {"half_pixel_centers": True},
            tol=1e-5,
        )
        t.row("batches", op, [drawn("float", [2, 5, 4, 1]), drawn("float", [1, 3, 3, 1])], message="code-only")
        t.row("rank3", op, [drawn("float", [5, 4, 1]), drawn("float", [1, 3, 3, 1])])
        t.row("empty", op, [drawn("float", [0, 5, 4, 1]), drawn("float", [0, 3, 3, 1])])
        t.row(
            "both",
            op,
            [drawn("float", [1, 5, 4, 1]), drawn("float", [1, 3, 3, 1])],
            {"align_corners": True, "half_pixel_centers": True},
        )
    for d in dtypes("F int8 uint8 int32"):
        t.row(
            "down_" + d, "ResizeNearestNeighborGrad", [drawn(d, [1, 5, 4, 2], 0, 9), ivec(3, 3)]
        )
    for name, a in (("corners", {"align_corners": True}), ("centers", {"half_pixel_centers": True})):
        t.row(name, "ResizeNearestNeighborGrad", [drawn("float", [1, 5, 4, 2]), ivec(3, 3)], a)
        t.row(
            name + "_up", "ResizeNearestNeighborGrad", [drawn("float", [1, 2, 3, 1]), ivec(4, 4)], a
        )
    t.row("zero", "ResizeNearestNeighborGrad", [drawn("float", [1, 2, 3, 1]), vec("int32", [0, 4])])
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeArea", "ResizeBicubic"):
        t.row("large", op, [drawn("float", [1, 17, 13, 3]), ivec(29, 31)], tol=1e-6)
        t.row("shrink", op, [drawn("float", [1, 31, 29, 2]), ivec(9, 7)], tol=1e-6)
        t.row("no_images", op, [drawn("float", [0, 3, 3, 2]), ivec(2, 2)])
        t.row("no_pixels", op, [drawn("float", [1, 0, 3, 2]), ivec(2, 2)])
    # Lines of the result that are longer than a strip.
    for d in ("float", "uint8"):
        t.row("strips_" + d, "ResizeBilinear", [drawn(d, [1, 2, 1500, 1], 0, 9), ivec(3, 2100)], tol=0)
    t.row("deep", "ResizeBilinear", [drawn("uint8", [1, 2, 2, 1100], 0, 9), ivec(3, 2)], tol=0)
    # Results so narrow that most pixels of a line are read by none.
    for d, depth, width, out in (("uint8", 3, 3000, 20), ("half", 1, 9000, 70), ("double", 2, 600, 5), ("uint8", 40, 90, 4)):
        images = [drawn(d, [1, 3, width, depth], 0, 9), ivec(2, out)]
        for name, how in (("", {}), ("centers_", {"half_pixel_centers": True})):
            t.row("narrow_%s%s_%d" % (name, d, depth), "ResizeBilinear", images, how, tol=0)
    for depth in (1, 3, 5):
        name, back = "large_%d" % depth, drawn("float", [1, 13, 17, depth])
        t.row(name, "ResizeBilinearGrad", [back, drawn("float", [1, 7, 5, depth])], tol=1e-6)
    for channels, shape in ((5, [2, 7, 9]), (60, [3, 5]), (1100, [1, 2])):
        images = drawn("float", shape + [channels], 0, 1)
        t.row("channels_%d" % channels, "AdjustContrastv2", [images, scalar("float", 0.5)], tol=1e-6)
    rgb = drawn("float", [2, 3, 3], 0, 1)
    for name, f in (("half", 0.5), ("double", 2.0), ("zero", 0.0), ("negative", -0.3)):
        t.row(name, "AdjustContrastv2", [rgb, scalar("float", f)], tol=1e-5)
        t.row(name, "AdjustHue", [rgb, scalar("float", f)], tol=1e-5)
        t.row(name, "AdjustSaturation", [rgb, scalar("float", f)], tol=1e-5)
    one = const(scalar("float", 1))
    t.row("removed", "AdjustContrast", [rgb, one, one, one])
    for op in ("AdjustContrastv2", "AdjustHue", "AdjustSaturation"):
        t.row("two_channels", op, [drawn("float", [2, 3, 2]), scalar("float", 0.5)], tol=1e-5)
        t.row("vector", op, [drawn("float", [3]), scalar("float", 0.5)])
    t.row("deprecated", "RandomCrop", [drawn("float", [3, 3, 1]), vec("int64", [2, 2])])
    t.row("not_an_image", "DecodeJpeg", [scalar("string", "no image")], message="code-only")
    t.row("vector", "DecodeJpeg", [vec("string", ["no image"])])
    t.row(
        "channels",
        "DecodeJpeg",
        [scalar("string", "no image")],
        {"channels": 2},
        message="code-only",
    )
    t.row("not_an_image", "DecodePng", [scalar("string", "no image")], message="code-only")
    for channels in (0, 1, 3, 4):
        t.row(
            "channels_%d" % channels,
            "DecodePng",
            [scalar("string", {"b64": png(2, 1, [255, 0, 10, 1, 2, 3])})],
            {"channels": channels},
        )
    image_codec.fill(t)
    image_new.fill(t)
    image_more.fill(t)
