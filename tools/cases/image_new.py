"""WebP and JPEG XL images, made by Pillow and cjxl."""

import base64

from .base import *

# Five rows of six pixels.
FILES = {
    "anim_webp": (
        "UklGRroBAABXRUJQVlA4WAoAAAACAAAABQAABAAAQU5JTQYAAAAAAAAAAABBTk1GfgAAAAAAAAAAAAUAAAQAAGQAAAJWUDhMZgAA"
        "AC8FAAEA76CokSTls8zr4vxbBA8K2zZSQ8d8D4raNmJTn97ezG7+1aZtwIzpuePA339yCwjkFhDQNCBwESr5cu+N3AICuWX/gcJI"
        "kszY3ds2IvofgJQrS5g0IQvtU5su1rFv6eu8D0FOTUaAAAAAAAAAAAAABQAABAAAZAAAAFZQOExnAAAALwUAAQDvoKiRJOWzzOvs"
        "/NsBD4raNmJTn97eLE5t2zbM4vT+bc6ff7VpGzBjeu44//dOVgFAVgGAmgHARUjky703sgoAssregcJIkszY3ds2IvofgJQrS5g0"
        "IQvtU5su1rFv6eu8DwBBTk1GgAAAAAAAAAAAAAUAAAQAAGQAAABWUDhMaAAAAC8FAAEA76CokSTls8yn5c6/OfCgqG0jNvXp7Y3l"
        "1AQAweYee8uijvlXm7YBM6bnjpN/3dp/1q2sBABZCQDUFABchIS+3HsjKwEAFEaSZMbu3rYR0f8glEvjmdAuVWVjGTvkvu5v8zxA"
    ),
    "anim_rgba_webp": (
        "UklGRowBAABXRUJQVlA4WAoAAAASAAAABQAABAAAQU5JTQYAAAAAAAAAAABBTk1GXgAAAAAAAAAAAAUAAAQAAGQAAAJWUDhMRQAA"
        "AC8FAAEQx0CQbWNSj6He+AgCgYRhgby3FQgkJrmNte3IVKEKALD/HEBh20Zq7u6emaER/Q+QiW2DbeoH4vK4UL7MBx3q+gBBTk1G"
        "cgAAAAAAAAAAAAUAAAQAAGQAAAJWUDhMWQAAAC8FAAEQ76CQjSTIZCSWdgGW9F4Egmwbk0qM7yC3Jci2ManEaA91J8Js41RfAzmE"
        "q0L2AQCAqjp//xyAwkiSzNjd2zYi+h/cxLZB2NQPSpfHJcqX+agOdX0GAEFOTUaAAAAAAAAAAAAABQAABAAAZAAAAlZQOExoAAAA"
        "LwUAARDvoKCRFMfJWqAawRUW0MsXCwbZRhI4hiocy1m9wtsaZiPJpArLsv8FOoWzJcw2TvV1DMexKmT2vgMAkKa9WgcAAPPf5wAU"
        "RpJkxu7ethHR/zCxbRQ29UOky+NS5ct8TIe6PnA="
    ),
    "gray_jxl": (
        "/wogIBAUFwIIAgEAeABLGIsVUkwKtisAyXkvk02JiIijn/x7UuGVKewjDQA="
    ),
    "lossy_webp": (
        "UklGRmQAAABXRUJQVlA4IFgAAABQAgCdASoGAAUAAUAmJbACdEf/3aqDA1AMtAAA/t413KJVyhnGOzPUtib//Fzl46kz/6rvP/SA"
        "wqP/syf/JSRzZf/K//kgsebL/8Vv93BCeP2MGUweKgAA"
    ),
    "rgb_jxl": (
        "/wogIBBQXAgIAgEAoABLGJOOg4MZKJ4kTrhMDfgBhgIAPADgAQAPAHgAQDgAAAD+FwQAAAAA"
    ),
    "rgb_webp": (
        "UklGRiwAAABXRUJQVlA4TCAAAAAvBQABAM1lRP8DihlJghhGYN7jr3jtIgz2oMQEaODkDQ=="
    ),
    "rgba_jxl": (
        "/wogILCguBAICBAAwABLGJOOg4MJMKJ2jEGORGpjDOYg4gBDZqB8AABMlw7AAAzAANez4P/pFhBJgv6TJAk="
    ),
    "rgba_webp": (
        "UklGRjIAAABXRUJQVlA4TCUAAAAvBQABEM1lRP8DihlJghhGYN7jr3jtIgz2oAgEUthKT4AO7MQbAA=="
    ),
}


def file(name, cut=None):
    raw = base64.b64decode(FILES[name])[:cut]
    return given("string", [], [{"b64": base64.b64encode(raw).decode()}])


def fill(t):
    for name in sorted(FILES):
        # Stock writes beyond the end of what it allocates for animations without alpha.
        bad = name == "anim_webp"
        for op in ("DecodeWebP", "DecodeJxl", "DecodeImage", "DecodePng", "DecodeJpeg", "DecodeBmp"):
            for channels in (0, 1, 3, 4):
                if bad and not channels or channels and op in ("DecodePng", "DecodeJpeg", "DecodeBmp"):
                    continue
                t.row("%s_%d" % (name, channels), op, [file(name)], {"channels": channels}, message="code-only" if channels == 4 and op == "DecodeJpeg" else None)
        if bad:
            continue
        t.row(name, "DecodeGif", [file(name)])
        for dtype in ("uint16", "float"):
            t.row("%s_%s" % (name, dtype), "DecodeImage", [file(name)], {"dtype": dtype})
        t.row("%s_still" % name, "DecodeImage", [file(name)], {"expand_animations": False})
        t.row(name, "DecodeAndCropJpeg", [file(name), ivec(0, 0, 1, 1)])
    for op in ("DecodeWebP", "DecodeJxl"):
        t.row("two_channels", op, [file("rgb_webp")], {"channels": 2})
        t.row("negative_channels", op, [file("rgb_webp")], {"channels": -1})
        t.row("vector", op, [given("string", [1], ["x"])])
        t.row("empty", op, [given("string", [], [""])])
        t.row("unknown", op, [given("string", [], ["what"])])
    for cut in (12, 20, 40):
        t.row("cut_%d" % cut, "DecodeWebP", [file("rgb_webp", cut)], message="code-only")
        t.row("cut_%d" % cut, "DecodeJxl", [file("rgb_jxl", cut)], message="code-only")
    t.row("cut_animation", "DecodeWebP", [file("anim_rgba_webp", 200)], message="code-only")
