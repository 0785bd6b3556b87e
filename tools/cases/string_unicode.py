"""Unicode ops, n-grams, segment joins."""

import base64

from .base import *


def raw(data):
    return {"b64": base64.b64encode(data).decode()}


BAD_UTF8 = [
    b"a\xffb",
    b"\xe4\xb8",
    b"\xe4\xb8a",
    b"\xf0\x9f\x98",
    b"\xf0\x9fa",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe0\x80\x80",
    b"\xef\xbb\xbfx",
    b"",
    b"a\x01\tb",
    "h\u00e9llo \u4e16\u754c \U0001f600".encode(),
]
UTF16 = [
    b"\x00a\xd8\x00\x00b",
    b"\xd8\x3d\xde\x00",
    b"\x00a\x00",
    b"\xfe\xff\x00a",
    b"\xff\xfea\x00",
    b"\xdc\x00\x00a",
    b"\xd8\x00",
    b"\xfe\xff",
    b"\xfe",
    b"\xd8\x00\x00",
    b"\xd8\x00\xd8\x00\xdc\x00",
    b"",
]
UTF32 = [
    b"\0\0\xfe\xff",
    b"\0\0\xfe\xff\0\0\0a",
    b"\xff\xfe\0\0a\0\0\0",
    b"\0\0\xfe",
    b"\0\0\xd8\0\0\0\0a",
    b"\0\0\0a\0\0\0",
    b"\0\x11\0\0\0\0\0a",
    b"\0\x01\xf6\0",
]
OTHERS = [
    ("euc_kr", b"\xb9\xe6"),
    ("ISO-8859-1", b"a\x81\xe9\xff"),
    ("latin1", b"a\xe9"),
    ("US-ASCII", b"a\x80\xe9b"),
    ("ascii", b"plain"),
    ("windows-1252", b"a\x80\x81\x82\xe9\xff"),
    ("cp1252", b"\x93quoted\x94"),
    ("windows-1251", "\u043f\u0440\u0438\u0432\u0435\u0442".encode("cp1251")),
    ("KOI8-R", "\u043f\u0440\u0438\u0432\u0435\u0442".encode("koi8-r")),
    ("ISO-8859-2", b"a\xe9\xff"),
    ("ISO-8859-15", b"\xa4\xe9"),
    ("Shift_JIS", "\u65e5\u672c\u8a9e abc".encode("shift_jis")),
    ("EUC-JP", "\u65e5\u672c\u8a9e abc".encode("euc-jp")),
    ("ISO-2022-JP", "\u65e5\u672c\u8a9e abc".encode("iso-2022-jp")),
    ("GB18030", "\u4e16\u754c abc \U0001f600".encode("gb18030")),
    ("GBK", "\u4e16\u754c abc".encode("gbk")),
    ("Big5", "\u4e16\u754c abc".encode("big5")),
    ("EUC-KR", "\ud55c\uad6d\uc5b4 abc".encode("euc-kr")),
    ("IBM850", b"a\x81\xe9"),
]


def texts(items):
    return vec("string", [raw(x) for x in items])


def fill(t):
    fill_decode(t)
    fill_encode(t)
    fill_ngrams(t)
    fill_segments(t)


def fill_decode(t):
    one, two = "UnicodeDecode", "UnicodeDecodeWithOffsets"
    bad = texts(BAD_UTF8)
    for op in (one, two):
        for d in ("int32", "int64"):
            t.row("utf8_" + d, op, [bad], {"input_encoding": "UTF-8", "Tsplits": d})
        t.row("scalar", op, [scalar("string", "h\u00e9")], {"input_encoding": "UTF-8"})
        t.row("matrix", op, [given("string", [2, 2], ["a", "bc", "", "d"])], {"input_encoding": "UTF-8"})
        t.row("empty", op, [given("string", [0, 2], [])], {"input_encoding": "UTF-8"})
    ways = [
        ("ignore", {"errors": "ignore"}),
        ("strict", {"errors": "strict"}),
        ("char", {"replacement_char": 65}),
        ("surrogate", {"replacement_char": 0xD800}),
        ("char_high", {"replacement_char": 0x110000}),
        ("char_low", {"replacement_char": -1}),
        ("controls", {"replace_control_characters": True}),
        ("no_controls", {"replace_control_characters": True, "errors": "ignore"}),
        ("unknown", {"input_encoding": "nope"}),
        ("unnamed", {"input_encoding": ""}),
        ("bad_errors", {"errors": "maybe"}),
    ]
    for name, attrs in ways:
        t.row(name, two, [bad], dict({"input_encoding": "utf_8"}, **attrs))
        attrs = dict({"input_encoding": "UTF-8", "output_encoding": "UTF-16-BE"}, **attrs)
        t.row(name, "UnicodeTranscode", [bad], attrs)
    controls = vec("string", ["a\x01b\x1f \t"])
    strict = {"input_encoding": "UTF-8", "errors": "strict", "replace_control_characters": True}
    t.row("strict_controls", one, [controls], strict)
    for names, items in (
        (("UTF-16BE", "UTF-16-BE", "UTF-16LE", "UTF-16", "utf16"), UTF16),
        (("UTF-32BE", "UTF-32-BE", "UTF-32LE", "UTF-32"), UTF32),
    ):
        for name in names:
            t.row(name, two, [texts(items)], {"input_encoding": name})
            out = {"input_encoding": name, "output_encoding": "UTF-8"}
            t.row(name, "UnicodeTranscode", [texts(items)], out)
    for name, data in OTHERS:
        t.row("from_" + name, two, [texts([data, b"", b"abc"])], {"input_encoding": name})
    for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        attrs = {"input_encoding": "UTF-8", "output_encoding": out}
        t.row("to_" + out, "UnicodeTranscode", [bad], attrs)
        attrs = dict(attrs, replacement_char=0xD800)
        t.row("surrogate_" + out, "UnicodeTranscode", [bad], attrs)
    attrs = {"input_encoding": "Shift_JIS", "output_encoding": "UTF-8"}
    t.row("japanese", "UnicodeTranscode", [texts(["\u65e5\u672c\u8a9e".encode("shift_jis")])], attrs)
    attrs = {"input_encoding": "UTF-8", "output_encoding": "UTF-7"}
    t.row("bad_output", "UnicodeTranscode", [bad], attrs)


    edges = [0, 0x40, 0x41, 0x7F, 0x370, 0x1F600, 0xD800, 0xDFFF, 0x10FFFF, 0x110000, -1, -(2**31)]
    spread = [i * 769 for i in range(0, 1449, 7)]
    t.row("edges", "UnicodeScript", [vec("int32", edges)])
    t.row("spread", "UnicodeScript", [vec("int32", spread)])
    t.row("low", "UnicodeScript", [given("int32", [2, 2048], list(range(4096)))])
    t.row("empty", "UnicodeScript", [vec("int32", [])])


def fill_encode(t):
    op = "UnicodeEncode"
    odd = vec("int32", [97, 0x1F600, 0xD800, 0xFFFE, 0xFDD0, 0x10FFFF, 0x110000, -1, 0xE9, 0xFFFF])
    for out in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for how in ("replace", "ignore"):
            attrs = {"output_encoding": out, "errors": how}
            t.row("%s_%s" % (how, out), op, [odd, vec("int64", [0, 2, 2, 10])], attrs)
        attrs = {"output_encoding": out, "replacement_char": 0xD800}
        t.row("surrogate_" + out, op, [odd, vec("int32", [0, 10])], attrs)
    utf8 = {"output_encoding": "UTF-8"}
    for code in (0xD800, 0xFFFE, 0x110000, -1):
        attrs = dict(utf8, errors="strict")
        t.row("strict_%x" % (code & 0xFFFFFFFF), op, [vec("int32", [97, code]), vec("int64", [0, 2])], attrs)
    two = vec("int32", [97, 98])
    for name, splits in (
        ("none", []),
        ("zero", [0]),
        ("late", [1, 2]),
        ("down", [0, 2, 1]),
        ("beyond", [0, 3]),
        ("short", [0, 1]),
        ("below", [0, -1, 2]),
        ("empty_rows", [0, 0, 2, 2]),
    ):
        t.row("splits_" + name, op, [two, vec("int64", splits)], utf8)
    t.row("nothing", op, [vec("int32", []), vec("int64", [0])], utf8)
    t.row("char", op, [two, vec("int64", [0, 2])], dict(utf8, replacement_char=-2))
    t.row("matrix", op, [given("int32", [1, 1], [97]), vec("int64", [0, 1])], utf8)
    t.row("splits_matrix", op, [two, given("int64", [1, 2], [0, 2])], utf8)


def fill_ngrams(t):
    op = "StringNGrams"
    words = vec("string", ["a", "bb", "c", "d", "the fifth word is longer than inline"])

    def attrs(widths, padding=-1, short=False, sep=" "):
        return {
            "separator": sep,
            "ngram_widths": widths,
            "left_pad": "L",
            "right_pad": "R",
            "pad_width": padding,
            "preserve_short_sequences": short,
        }

    for padding in (-(1 << 30), 1 << 30, (1 << 31) - 1):
        for widths in ([1 << 30, 1 << 30], [(1 << 31) - 1]):
            name = "huge_%d_%d" % (padding, widths[0])
            t.row(name, op, [words, vec("int64", [0, 5])], attrs(widths, padding))
    for padding in (-5, -1, 0, 2):
        for short in (False, True):
            t.row("no_widths_%d_%d" % (padding, short), op, [words, vec("int64", [0, 5])], attrs([], padding, short))
    for padding in (-1, 0, 1, 2):
        for short in (False, True):
            name = "padding_%d_%d" % (padding, short)
            t.row(name, op, [words, vec("int64", [0, 3, 3, 4, 5])], attrs([2, 3], padding, short))
    t.row("int32", op, [words, vec("int32", [0, 5])], attrs([1, 2], 0, sep=""))
    t.row("short", op, [words, vec("int64", [0, 1, 5])], attrs([4], 0, True))
    t.row("short_padded", op, [words, vec("int64", [0, 1, 5])], attrs([6], 1, True))
    t.row("no_widths", op, [words, vec("int64", [0, 5])], attrs([], 0))
    t.row("no_widths_short", op, [words, vec("int64", [0, 5])], attrs([], 1, True))
    t.row("width_0", op, [words, vec("int64", [0, 5])], attrs([0], 0))
    t.row("width_low", op, [words, vec("int64", [0, 5])], attrs([2, -1], 0))
    for name, splits in (
        ("none", []),
        ("zero", [0]),
        ("beyond", [0, 6]),
        ("late", [1, 5]),
        ("short", [0, 3]),
        ("down", [0, 4, 3, 5]),
        ("below", [0, -1, 5]),
    ):
        t.row("splits_" + name, op, [words, vec("int64", splits)], attrs([2], 0))
    for splits in ([], [0], [0, 0]):
        t.row("nothing_%d" % len(splits), op, [vec("string", []), vec("int64", splits)], attrs([2]))
    t.row("matrix", op, [given("string", [1, 1], ["a"]), vec("int64", [0, 1])], attrs([2]))


def fill_segments(t):
    op = "UnsortedSegmentJoin"
    three = vec("string", ["a", "", "ccc"])
    grid = given("string", [2, 2], ["a", "bb", "ccc", "longer than the twenty-two bytes inline"])
    for d in ("int32", "int64"):
        t.row(d, op, [three, vec(d, [0, 2, 0]), const(scalar(d, 4))], {"separator": "--"})
    for name, x, ids, n in (
        ("rows", grid, vec("int32", [1, 1]), 2),
        ("all", grid, given("int32", [2, 2], [1, 1, 0, 1]), 2),
        ("low", three, vec("int32", [0, -1, 0]), 2),
        ("high", three, vec("int32", [0, 2, 0]), 2),
        ("counts", three, vec("int32", [0, 1]), 2),
        ("unlike", grid, given("int32", [1, 2], [0, 1]), 2),
        ("scalar", scalar("string", "a"), scalar("int32", 0), 1),
        ("whole", grid, scalar("int32", 0), 1),
        ("empty", vec("string", []), vec("int32", []), 2),
        ("negative", three, vec("int32", [0, 0, 0]), -1),
        ("no_segments", vec("string", []), vec("int32", []), 0),
    ):
        t.row(name, op, [x, ids, scalar("int32", n)])
        t.row(name + "_const", op, [x, ids, iscalar(n)], {"separator": ", "})
    t.row("vector", op, [three, vec("int32", [0, 0, 0]), vec("int32", [1])])
