"""Decoding and encoding image files: JPEG, PNG, GIF, BMP."""

import base64
import struct
import zlib

from .base import *

# 14 x 11 pixels, quality 70, chroma at half the size; the same in grey, progressive; CMYK and YCCK, 9 x 7.
COLOUR = "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESUM8SDc9Pjv/2wBDAQoLCw4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/wAARCAALAA4DASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDktP8ADW7HyfpXR23hqNEAdcEj0rotJt4fl/ditzT7aExkmMEmuWeLcYQtFNyvvsrW/wA+5jkucVbH/9k="
GREY = "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wgALCAALAA4BAREA/8QAFQABAQAAAAAAAAAAAAAAAAAABgX/2gAIAQEAAAABlKC6j//EABcQAAMBAAAAAAAAAAAAAAAAAAADBDH/2gAIAQEAAQUCnE5OJz//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAY/Ah//xAAVEAEBAAAAAAAAAAAAAAAAAAAQQf/aAAgBAQABPyGTk//aAAgBAQAAABAP/8QAFhABAQEAAAAAAAAAAAAAAAAAALEQ/9oACAEBAAE/EDPGb//Z"
CMYK = "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP/8AAFAgABwAJBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4EQwBNAFkASwAAPwBfCtpFYafLezKWjt4mlcLgkhRk49+Kl8K2kVhp8t7MpaO3iaVwuCSFGTj34p2hLBoujTalOoZbdNwXONzdFXIBxkkDOOM1Jo6Jo2g3OonYGgiJTcCQXPCggc4LED8apf8ACwNd/wCfPTP+/b//ABdc9/wlnin/AKCg/wDAeL/4msb/AISzxT/0FB/4Dxf/ABNcp9u13/oN6j/4Fv8A41//2Q=="
YCCK = "/9j/7gAOQWRvYmUAZAAAAAAC/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP/9sAQwEODg4TERMmFRUmTzUtNU9PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P/8AAFAgABwAJBAEiAAIRAQMRAQQiAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/EAB8BAAMBAQEBAQEBAQEAAAAAAAABAgMEBQYHCAkKC//EALURAAIBAgQEAwQHBQQEAAECdwABAgMRBAUhMQYSQVEHYXETIjKBCBRCkaGxwQkjM1LwFWJy0QoWJDThJfEXGBkaJicoKSo1Njc4OTpDREVGR0hJSlNUVVZXWFlaY2RlZmdoaWpzdHV2d3h5eoKDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uLj5OXm5+jp6vLz9PX29/j5+v/aAA4EAQACEQMRBAAAPwCLxRdTahqMVlCwWS4lWJS2cAscZPtzW3/whvhn/n0m/wC/7/40UU7Wgn5v9AlFS3/Nok0dE0bQbnUTsDQREpuBILnhQQOcFiB+Ncp9u13/AKDeo/8AgW/+NFFf/9k="


def file(data):
    """Returns a scalar string with the given bytes."""
    return scalar("string", {"b64": base64.b64encode(data).decode()})


def jpeg(text):
    return file(base64.b64decode(text))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, palette=None, alpha=None, interlaced=0, extra=b""):
    """Returns a PNG file; rows are bytes, without the filter byte."""
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
    out += extra
    if palette:
        out += chunk(b"PLTE", bytes(palette))
    if alpha:
        out += chunk(b"tRNS", bytes(alpha))
    out += chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows), 9))
    return out + chunk(b"IEND", b"")


def bits(codes):
    """Packs (code, width) pairs, the lowest bit first."""
    value = n = 0
    for code, width in codes:
        value |= code << n
        n += width
    return value.to_bytes((n + 7) // 8, "little")


def lzw(pixels, depth):
    """Encodes for GIF without compression: emits a clear code before codes would get wider."""
    clear, run = 1 << depth, (1 << depth) - 2
    codes = []
    for i, p in enumerate(pixels):
        if i % run == 0:
            codes.append((clear, depth + 1))
        codes.append((p, depth + 1))
    codes.append((clear + 1, depth + 1))
    return bytes([depth]) + blocks(bits(codes))


def lzw_packed(pixels, depth):
    """Compresses for GIF with LZW."""
    clear = 1 << depth
    table, width, codes, w = {bytes([i]): i for i in range(clear)}, depth + 1, [], b""
    codes.append((clear, width))
    count = clear + 2
    for p in pixels:
        c = bytes([p])
        if w + c in table:
            w += c
            continue
        codes.append((table[w], width))
        table[w + c] = count
        count += 1
        if count - 1 == 1 << width and width < 12:
            width += 1
        w = c
    codes += [(table[w], width), (clear + 1, width)]
    return bytes([depth]) + blocks(bits(codes))


def blocks(data):
    out = b""
    for i in range(0, len(data), 255):
        part = data[i : i + 255]
        out += bytes([len(part)]) + part
    return out + b"\0"


def frame(x, y, w, h, pixels, depth=2, local=None, interlaced=0, control=None, coder=lzw):
    out = b""
    if control is not None:  # disposal << 2 | transparent, index
        out += b"!\xf9\x04" + struct.pack("<BHB", control[0], 0, control[1]) + b"\0"
    flags = interlaced << 6 | (0x80 | depth - 1 if local else 0)
    out += b"," + struct.pack("<HHHHB", x, y, w, h, flags) + bytes(local or b"")
    return out + coder(pixels, depth)


PALETTE = [10, 20, 30, 250, 0, 1, 2, 240, 3, 4, 5, 230]


def gif(w, h, frames, palette=PALETTE, end=b";", version=b"GIF89a"):
    head = version + struct.pack("<HHBBB", w, h, 0x80 | 1 if palette else 0, 0, 0)
    return head + bytes(palette or b"") + b"".join(frames) + end


def bmp(w, h, bpp, data, size=None, offset=54, header=40, magic=b"BM"):
    size = offset + len(data) if size is None else size
    head = magic + struct.pack("<IHHI", size & 0xFFFFFFFF, 0, 0, offset)
    head += struct.pack("<IiiHHIIiiII", header, w, h, 1, bpp, 0, 0, 0, 0, 0, 0)
    return head + data


def bmp_rows(w, h, channels):
    out = b""
    for y in range(h):
        row = bytes((7 * x + 50 * y) % 256 for x in range(w * channels))
        out += row + b"\0" * (-len(row) % 4)
    return out


PNGS = {
    "rgb": png(2, 2, 8, 2, [[1, 2, 3, 250, 240, 230], [9, 8, 7, 100, 110, 120]]),
    "rgba": png(2, 1, 8, 6, [[1, 2, 3, 4, 250, 240, 230, 220]]),
    "grey": png(3, 2, 8, 0, [[0, 128, 255], [7, 8, 9]]),
    "grey_alpha": png(2, 1, 8, 4, [[10, 128, 200, 255]]),
    "grey1": png(9, 2, 1, 0, [[0b10110011, 0x80], [0x0F, 0]]),
    "grey2": png(5, 1, 2, 0, [[0b00011011, 0b11000000]]),
    "grey4": png(3, 1, 4, 0, [[0x1F, 0x80]]),
    "palette": png(4, 1, 8, 3, [[0, 1, 2, 1]], palette=[1, 2, 3, 40, 50, 60, 250, 251, 252]),
    "palette1": png(4, 1, 1, 3, [[0b01100000]], palette=[1, 2, 3, 40, 50, 60]),
    "palette_alpha": png(
        3, 1, 8, 3, [[0, 1, 2]], palette=[1, 2, 3, 40, 50, 60, 9, 9, 9], alpha=[0, 128]
    ),
    "rgb_key": png(2, 1, 8, 2, [[1, 2, 3, 4, 5, 6]], alpha=[0, 1, 0, 2, 0, 3]),
    "grey_key": png(2, 1, 8, 0, [[1, 2]], alpha=[0, 2]),
    "rgb16": png(2, 1, 16, 2, [[1, 2, 3, 4, 5, 6, 250, 251, 252, 253, 254, 255]]),
    "grey16": png(2, 1, 16, 0, [[1, 200, 255, 3]]),
    "rgba16": png(1, 1, 16, 6, [[1, 2, 3, 4, 5, 6, 128, 0]]),
    "interlaced": png(3, 3, 8, 0, [[1], [2], [3, 4], [5], [6], [7, 8, 9]], interlaced=1),
    "gamma": png(2, 1, 8, 0, [[64, 200]], extra=chunk(b"gAMA", struct.pack(">I", 100000))),
}
GIFS = {
    "one": gif(4, 3, [frame(0, 0, 4, 3, [0, 1, 2, 3] * 3)]),
    "two": gif(
        4, 3, [frame(0, 0, 4, 3, [0, 1, 2, 3] * 3), frame(1, 1, 2, 2, [3, 2, 1, 0])]
    ),
    "part_first": gif(4, 3, [frame(1, 1, 2, 1, [3, 2])]),
    "clear": gif(
        4,
        3,
        [
            frame(0, 0, 4, 3, [0, 1, 2, 3] * 3, control=(0, 0)),
            frame(0, 0, 4, 3, [1] * 6 + [2] * 6, control=(1, 1)),
            frame(2, 0, 2, 3, [1, 3, 2, 1, 0, 1], control=(2 << 2 | 1, 1)),
            frame(0, 1, 4, 1, [0, 1, 2, 3], control=(3 << 2 | 1, 0)),
            frame(0, 2, 1, 1, [1]),
        ],
    ),
    "local": gif(2, 1, [frame(0, 0, 2, 1, [0, 3], local=[9, 8, 7] * 3 + [6, 5, 4])]),
    "no_map": gif(2, 1, [frame(0, 0, 2, 1, [0, 3])], palette=None),
    "interlaced": gif(2, 9, [frame(0, 0, 2, 9, [i // 2 % 4 for i in range(18)], interlaced=1)]),
    "packed": gif(
        31, 23, [frame(0, 0, 31, 23, [(i * i // 7 + i) % 4 for i in range(713)], coder=lzw_packed)]
    ),
    "outside": gif(2, 2, [frame(1, 1, 3, 3, [1] * 9)]),
    "larger": gif(2, 1, [frame(0, 0, 2, 1, [0, 1]), frame(0, 0, 3, 2, [1, 2, 3] * 2)]),
    "version87": gif(2, 1, [frame(0, 0, 2, 1, [0, 1])], version=b"GIF87a"),
    "comment": gif(2, 1, [b"!\xfe\x03abc\0", frame(0, 0, 2, 1, [0, 1])]),
    "no_end": gif(2, 1, [frame(0, 0, 2, 1, [0, 1])], end=b""),
    "bad_record": gif(2, 1, [frame(0, 0, 2, 1, [0, 1]), b"?"]),
    "cut_second": gif(
        4, 3, [frame(0, 0, 4, 3, [0, 1, 2, 3] * 3), frame(0, 0, 4, 3, [3] * 12)[:14]], end=b""
    ),
    "cut_first": gif(4, 3, [frame(0, 0, 4, 3, [0, 1, 2, 3] * 3)[:13]], end=b""),
    "no_frames": gif(4, 3, []),
    "index": gif(2, 1, [frame(0, 0, 2, 1, [0, 7], depth=3)]),
}


def decode_rows(t):
    ops = ("DecodeJpeg", "DecodePng", "DecodeGif", "DecodeBmp", "DecodeImage")
    kinds = {
        "jpeg": jpeg(COLOUR),
        "png": file(PNGS["rgb"]),
        "gif": file(GIFS["one"]),
        "gifs": file(GIFS["two"]),
        "bmp": file(bmp(3, 2, 24, bmp_rows(3, 2, 3))),
    }
    for op in ops:
        for name, value in kinds.items():
            t.row("of_" + name, op, [value])
        t.row("nothing", op, [scalar("string", "")])
        t.row("words", op, [scalar("string", "this is no image")])
        t.row("vector_of", op, [vec("string", ["", ""])])
        t.row("one_of", op, [vec("string", ["x"])])
        if op != "DecodeGif":
            for channels in (1, 2, 3, 4, 5):
                for name in ("jpeg", "png", "gif", "bmp"):
                    t.row("%s_channels_%d" % (name, channels), op, [kinds[name]], {"channels": channels})
    crop = ivec(2, 3, 5, 7)
    for name, value in kinds.items():
        t.row("of_" + name, "DecodeAndCropJpeg", [value, crop])
    t.row("nothing", "DecodeAndCropJpeg", [scalar("string", ""), crop])

    # JPEG
    for name, text in (("colour", COLOUR), ("grey", GREY), ("cmyk", CMYK), ("ycck", YCCK)):
        for channels in (0, 1, 3, 4):
            t.row("%s_%d" % (name, channels), "DecodeJpeg", [jpeg(text)], {"channels": channels})
        t.row(name, "DecodeImage", [jpeg(text)])
        t.row(name, "ExtractJpegShape", [jpeg(text)])
        t.row(name + "_64", "ExtractJpegShape", [jpeg(text)], {"output_type": "int64"})
    for d in ("", "INTEGER_FAST", "INTEGER_ACCURATE", "FLOAT"):
        for fancy in (True, False):
            for ratio in (1, 2, 4, 8):
                t.row(
                    "%s_%d_%d" % (d or "default", fancy, ratio),
                    "DecodeJpeg",
                    [jpeg(COLOUR)],
                    {"dct_method": d, "fancy_upscaling": fancy, "ratio": ratio},
                )
    t.row("ratio_3", "DecodeJpeg", [jpeg(COLOUR)], {"ratio": 3})
    t.row("ratio_16", "DecodeJpeg", [jpeg(COLOUR)], {"ratio": 16})
    whole = base64.b64decode(COLOUR)
    for name, cut in (("most", len(whole) - 40), ("some", len(whole) - 60), ("header", 300), ("start", 20), ("magic", 3)):
        t.row("cut_" + name, "DecodeJpeg", [file(whole[:cut])], message="code-only")
        for fraction in (0.1, 1.0) if cut > 3 else ():  # stock loops forever on the magic number alone
            t.row(
                "recover_%s_%d" % (name, 10 * fraction),
                "DecodeJpeg",
                [file(whole[:cut])],
                {"try_recover_truncated": True, "acceptable_fraction": fraction},
                message="code-only",
                # The pixels of incomplete blocks depend on the version of libjpeg.
                **({"undefined": [0]} if name == "most" else {}),
            )
        t.row(
            "part_" + name,
            "DecodeJpeg",
            [file(whole[:cut])],
            {"acceptable_fraction": 0.1},
            message="code-only",
        )
        t.row("cut_" + name, "ExtractJpegShape", [file(whole[:cut])])
        t.row("cut_" + name, "DecodeImage", [file(whole[:cut])], message="code-only")
    t.row("words", "ExtractJpegShape", [scalar("string", "no image")])
    t.row("nothing", "ExtractJpegShape", [scalar("string", "")])
    t.row("vector", "ExtractJpegShape", [vec("string", ["a", "b"])])
    flipped = bytearray(whole)
    flipped[-45] ^= 0x55
    t.row("flipped", "DecodeJpeg", [file(bytes(flipped))], message="code-only")
    for name, c in (
        ("all", (0, 0, 11, 14)),
        ("corner", (0, 0, 3, 4)),
        ("end", (8, 10, 3, 4)),
        ("row", (5, 0, 1, 14)),
        ("pixel", (6, 6, 1, 1)),
        ("too_high", (8, 10, 4, 4)),
        ("too_wide", (8, 10, 3, 5)),
        ("negative", (-1, 0, 3, 3)),
        ("none", (0, 0, 0, 3)),
        ("huge", (2147483647, 2147483647, 2147483647, 2147483647)),
        ("huge_size", (1, 1, 2147483647, 2147483647)),
    ):
        t.row("crop_" + name, "DecodeAndCropJpeg", [jpeg(COLOUR), vec("int32", list(c))])
    for ratio in (2, 4, 8):
        t.row("ratio_%d" % ratio, "DecodeAndCropJpeg", [jpeg(COLOUR), ivec(0, 1, 1, 1)], {"ratio": ratio})
    t.row("grey", "DecodeAndCropJpeg", [jpeg(COLOUR), ivec(1, 2, 3, 4)], {"channels": 1})
    t.row("of_grey", "DecodeAndCropJpeg", [jpeg(GREY), ivec(1, 2, 3, 4)])
    t.row("of_grey_3", "DecodeAndCropJpeg", [jpeg(GREY), ivec(1, 2, 3, 4)], {"channels": 3})
    t.row("plain", "DecodeAndCropJpeg", [jpeg(COLOUR), ivec(1, 2, 3, 4)], {"fancy_upscaling": False})
    t.row("three", "DecodeAndCropJpeg", [jpeg(COLOUR), vec("int32", [1, 2, 3])])
    t.row("matrix", "DecodeAndCropJpeg", [jpeg(COLOUR), given("int32", [1, 4], [1, 2, 3, 4])])

    # PNG
    for name, data in PNGS.items():
        for channels in (0, 1, 3, 4):
            t.row("%s_%d" % (name, channels), "DecodePng", [file(data)], {"channels": channels})
            t.row(
                "%s_%d_16" % (name, channels),
                "DecodePng",
                [file(data)],
                {"channels": channels, "dtype": "uint16"},
            )
        for d in ("uint8", "uint16", "float"):
            t.row("%s_%s" % (name, d), "DecodeImage", [file(data)], {"dtype": d})
    good = PNGS["rgb"]
    for name, data in (
        ("cut", good[:-20]),
        ("cut_data", good[:48]),
        ("cut_header", good[:20]),
        ("magic", good[:8]),
        ("crc", good[:30] + b"\0" + good[31:]),
        ("no_end", good[:-12]),
        ("huge", png(1 << 30, 1 << 30, 8, 2, [[0]])),
        ("wide", png(1 << 29, 1, 8, 2, [[0]])),
        ("empty", png(0, 1, 8, 2, [[]])),
        ("depth", png(1, 1, 3, 0, [[0]])),
    ):
        t.row(name, "DecodePng", [file(data)], message="code-only")

    # GIF
    for name, data in GIFS.items():
        t.row(name, "DecodeGif", [file(data)], message="code-only")
        for expand in (True, False):
            t.row(
                "gif_%s_%d" % (name, expand),
                "DecodeImage",
                [file(data)],
                {"expand_animations": expand},
                message="code-only",
            )
    for d in ("uint16", "float"):
        for name, value in kinds.items():
            t.row("%s_as_%s" % (name, d), "DecodeImage", [value], {"dtype": d})
            t.row(
                "%s_still_%s" % (name, d), "DecodeImage", [value], {"dtype": d, "expand_animations": False}
            )
    t.row("gif_4", "DecodeImage", [file(GIFS["one"])], {"channels": 4, "expand_animations": False})

    # BMP
    for bpp in (8, 24, 32):
        c = bpp // 8
        for w, h in ((1, 1), (3, 2), (4, 3), (5, -2)):
            data = bmp(w, h, bpp, bmp_rows(w, abs(h), c))
            for channels in (0, 1, 3, 4):
                t.row(
                    "%d_%d_%d_%d" % (bpp, w, abs(h), channels), "DecodeBmp", [file(data)], {"channels": channels}
                )
    rows = bmp_rows(3, 2, 3)
    for name, data in (
        ("bpp", bmp(3, 2, 16, rows)),
        ("one_bit", bmp(3, 2, 1, rows)),
        ("cut", bmp(3, 2, 24, rows[:-5])),
        ("cut_header", bmp(3, 2, 24, rows)[:30]),
        ("no_width", bmp(0, 2, 24, rows)),
        ("negative", bmp(-3, 2, 24, rows)),
        ("no_height", bmp(3, 0, 24, rows)),
        ("least", bmp(3, -(1 << 31), 24, rows)),
        ("huge", bmp((1 << 31) - 1, (1 << 31) - 1, 32, rows)),
        ("tall", bmp(1 << 14, 1 << 17, 24, rows)),
        ("far", bmp(3, 2, 24, rows, offset=4000)),
        ("far_negative", bmp(3, 2, 24, rows, offset=0xFFFFFFFF)),
        ("offset", bmp(3, 2, 24, b"ab" + rows, offset=56)),
        ("header", bmp(3, 2, 24, rows, header=12)),
        ("longer", bmp(3, 2, 24, rows + b"1234")),
        ("size", bmp(3, 2, 24, rows, size=10)),
    ):
        t.row(name, "DecodeBmp", [file(data)])


def encode_rows(t):
    rgb, grey = drawn("uint8", [11, 14, 3], 0, 256), drawn("uint8", [9, 7, 1], 0, 256)
    for name, image in (
        ("rgb", rgb),
        ("grey", grey),
        ("rgba", drawn("uint8", [3, 4, 4], 0, 256)),
        ("two", drawn("uint8", [3, 4, 2], 0, 256)),
        ("five", drawn("uint8", [3, 4, 5], 0, 256)),
        ("matrix", drawn("uint8", [3, 4])),
        ("batch", drawn("uint8", [2, 3, 4, 3], 0, 256)),
        ("batches", drawn("uint8", [2, 1, 3, 4, 1], 0, 256)),
        ("empty", given("uint8", [0, 4, 3], [])),
        ("empty_wide", given("uint8", [4, 0, 3], [])),
        ("no_channels", given("uint8", [4, 4, 0], [])),
        ("no_images", given("uint8", [0, 4, 4, 3], [])),
        ("pixel", given("uint8", [1, 1, 3], [1, 2, 3])),
        ("flat", given("uint8", [40, 40, 3], 77)),
    ):
        t.row(name, "EncodeJpeg", [image])
        t.row(name, "EncodePng", [image])
        t.row(name, "EncodeJpegVariableQuality", [image, scalar("int32", 70)])
    for q in (0, 1, 30, 100, 101, -1):
        t.row("quality_%d" % q, "EncodeJpeg", [rgb], {"quality": q})
        t.row("quality_%d" % q, "EncodeJpegVariableQuality", [rgb, scalar("int32", q)])
    t.row("qualities", "EncodeJpegVariableQuality", [rgb, vec("int32", [50, 60])])
    for f in ("grayscale", "rgb"):
        t.row("rgb_as_" + f, "EncodeJpeg", [rgb], {"format": f})
        t.row("grey_as_" + f, "EncodeJpeg", [grey], {"format": f})
        t.row("other_as_" + f, "EncodeJpeg", [drawn("uint8", [3, 4, 2], 0, 256)], {"format": f})
    for name, a in (
        ("progressive", {"progressive": True}),
        ("optimized", {"optimize_size": True}),
        ("full_chroma", {"chroma_downsampling": False}),
        ("density", {"density_unit": "cm", "x_density": 100, "y_density": 50}),
        ("xmp", {"xmp_metadata": "<x:xmpmeta/>"}),
    ):
        t.row(name, "EncodeJpeg", [rgb], a)
    for c in (-1, 0, 1, 6, 9, 10, -2):
        t.row("compression_%d" % c, "EncodePng", [given("uint8", [16, 9, 3], 5)], {"compression": c})
    for channels in (1, 2, 3, 4, 5):
        t.row("wide_%d" % channels, "EncodePng", [drawn("uint16", [5, 3, channels], 0, 65536)])
    t.row("batch_16", "EncodePng", [drawn("uint16", [2, 3, 3, 2], 0, 65536)])


def fill(t):
    decode_rows(t)
    encode_rows(t)
