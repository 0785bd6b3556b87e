"""Ops on strings."""

from . import string_unicode
from .base import *

RAW = {"b64": "/wABAg=="}
WORDS = [
    "",
    "a",
    "Hello World",
    "  padded\t\n",
    "longer than the twenty-two bytes that fit inline",
    RAW,
    "h\u00e9llo \u00dc",
]


def fill(t):
    words = vec("string", WORDS)
    for op in ("StringLower", "StringUpper"):
        t.row("bytes", op, [words])
        t.row("utf8", op, [vec("string", ["h\u00e9LLO", "\u00dcber"])], {"encoding": "utf-8"})
        t.row("bad_encoding", op, [words], {"encoding": "latin"})
        t.row("scalar", op, [scalar("string", "MiXed")])
        t.row("empty", op, [given("string", [0], [])])
        t.row("float", op, [drawn("float", [2])])
    t.row("bytes", "StringLength", [words])
    t.row("utf8", "StringLength", [words], {"unit": "UTF8_CHAR"})
    t.row("empty", "StringLength", [given("string", [0, 2], [])])
    t.row("words", "StringStrip", [words])
    t.row("scalar", "StringStrip", [scalar("string", " \x0b a b \r\n")])
    t.row("two", "StringJoin", [[words, scalar("string", "!")]])
    t.row(
        "separator",
        "StringJoin",
        [[vec("string", ["a", "b"]), vec("string", ["c", "d"]), scalar("string", "e")]],
        {"separator": "--"},
    )
    t.row("one", "StringJoin", [[words]], {"separator": ","})
    t.row("scalars", "StringJoin", [[scalar("string", "a"), scalar("string", "b")]])
    t.row("bad_shapes", "StringJoin", [[vec("string", ["a"]), vec("string", ["c", "d"])]])
    t.row("none", "StringJoin", [[]])
    for d in ("int32", "int64"):
        t.row(d, "Substr", [vec("string", ["Hello", "World!"]), vec(d, [1, -2]), vec(d, [3, 1])])
    for name, x, p, n in [
        ("scalars", vec("string", ["Hello", "World!"]), scalar("int32", 1), scalar("int32", 2)),
        ("long", scalar("string", "abc"), scalar("int32", 1), scalar("int32", 99)),
        ("high", scalar("string", "abc"), scalar("int32", 4), scalar("int32", 1)),
        ("at_end", scalar("string", "abc"), scalar("int32", 3), scalar("int32", 1)),
        ("low", scalar("string", "abc"), scalar("int32", -4), scalar("int32", 1)),
        ("negative_length", scalar("string", "abc"), scalar("int32", 0), scalar("int32", -1)),
        (
            "broadcast",
            given("string", [2, 1], ["abcdef", "uvwxyz"]),
            vec("int32", [0, 2]),
            vec("int32", [1, 2]),
        ),
        ("bad_shapes", vec("string", ["abc"]), vec("int32", [0]), vec("int32", [0, 1])),
        ("one_text", scalar("string", "abcdef"), given("int32", [2, 2], [0, 1, 2, 3]), given("int32", [2, 2], [1, 2, 2, 2])),
        ("row", given("string", [1, 2], ["abcdef", "uvwxyz"]), given("int32", [2, 1], [0, 2]), given("int32", [2, 1], [3, 20])),
        ("cube", given("string", [2, 1, 2], list("abcd")), given("int32", [2, 1, 2], 0), given("int32", [2, 1, 2], 1)),
        ("cube_at", given("string", [2, 1, 2], list("abcd")), scalar("int32", 0), scalar("int32", 1)),
        ("cube_broadcast", given("string", [1, 1, 1], ["abcdef"]), vec("int32", [1, 2, 3]), vec("int32", [1, 2, 1])),
    ]:
        t.row(name, "Substr", [x, p, n])
    t.row(
        "utf8",
        "Substr",
        [vec("string", ["h\u00e9llo", "\u00fcber"]), scalar("int32", 1), scalar("int32", 2)],
        {"unit": "UTF8_CHAR"},
    )
    for pad in (False, True):
        t.row("pad_%d" % pad, "EncodeBase64", [words], {"pad": pad})
    t.row("values", "DecodeBase64", [vec("string", ["", "YQ", "YQ==", "SGVsbG8", "_-8", "AAECAw"])])
    for name, x in [
        ("bad_length", "YQQQQ"),
        ("bad_letter", "Y*=="),
        ("long_padding", "YQ==="),
        ("plain_alphabet", "/+8="),
    ]:
        t.row(name, "DecodeBase64", [scalar("string", x)])
    for n in (1, 7, 1000):
        t.row("buckets_%d" % n, "StringToHashBucketFast", [words], {"num_buckets": n})
    t.row("buckets_0", "StringToHashBucketFast", [words], {"num_buckets": 0})
    t.row(
        "lengths",
        "StringToHashBucketFast",
        [
            vec(
                "string",
                [
                    "x" * n
                    for n in (3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 200)
                ],
            )
        ],
        {"num_buckets": 9223372036854775807},
    )
    t.row("key", "StringToHashBucketStrong", [words], {"num_buckets": 1000, "key": [123, 456]})
    t.row("short_key", "StringToHashBucketStrong", [words], {"num_buckets": 10, "key": [1]})
    for n in (1, 10):
        t.row("buckets_%d" % n, "StringToHashBucket", [words], {"num_buckets": n})
    uris = vec("string", ["s3://bucket/x", "/tmp/x", "s3:/x", "", "xs3://"])
    for name, p in [
        ("s3", "^s3://.*"),
        ("any", ".*"),
        ("class", "[a-z0-9]+:/+x"),
        ("empty", ""),
        ("alternatives", "(s3:/x|/tmp/x)"),
        ("counted", "x?s3:/{2}[^/]*/?x?"),
        ("bad", "("),
    ]:
        t.row(name, "StaticRegexFullMatch", [uris], {"pattern": p})
        t.row(name, "RegexFullMatch", [uris, scalar("string", p)])
    two = vec("string", ["a b", "c"])
    for name, sep in (("vector", vec("string", ["a"])), ("two", two), ("none", vec("string", [])), ("matrix", given("string", [1, 1], ["a"]))):
        t.row("sep_" + name, "StringSplit", [two, sep])
        t.row("sep_" + name, "StringSplitV2", [two, sep])
    for op in ("StringSplit", "StringSplitV2"):
        t.row("input_scalar", op, [scalar("string", "a b"), scalar("string", "")])
        t.row("input_matrix", op, [given("string", [1, 2], ["a b", "c"]), scalar("string", "")])
    for name, p, r in [
        ("letters", "[a-m]", "_"),
        ("groups", "(\\w+)/(\\w+)", "\\2-\\1"),
        ("none", "zzz", "y"),
        ("bad", "[", "x"),
    ]:
        t.row(name, "StaticRegexReplace", [uris], {"pattern": p, "rewrite": r})
        t.row(
            "first_" + name,
            "StaticRegexReplace",
            [uris],
            {"pattern": p, "rewrite": r, "replace_global": False},
        )
    for d in dtypes("F I U C b"):
        t.row(
            d,
            "AsString",
            [
                given(
                    d,
                    [3],
                    (
                        [True, False, True]
                        if d == "bool"
                        else (
                            [1, 0, 2]
                            if d[0] == "u"
                            else [1.5, 0.0, -2] if d in F + C else [1, 0, -2]
                        )
                    ),
                )
            ],
        )
    for name, a in [
        ("precision", {"precision": 2}),
        ("scientific", {"scientific": True}),
        ("shortest", {"shortest": True}),
        ("width", {"width": 9, "precision": 1}),
        ("fill", {"width": 9, "fill": "0"}),
        ("both", {"scientific": True, "shortest": True}),
    ]:
        t.row(name, "AsString", [vec("float", [1.5, -0.1, 1e10, NAN, INF])], a)
    t.row("int_width", "AsString", [vec("int32", [5, -5])], {"width": 6, "fill": "0"})
    t.row("int_precision", "AsString", [vec("int32", [5, -5])], {"precision": 2})
    t.row("fill_long", "AsString", [vec("float", [1.5])], {"fill": "ab"})
    for name, a in [
        ("text", {"scientific": True}),
        ("text_width", {"width": 5}),
        ("text_left", {"width": 5, "fill": "-"}),
        ("text_cut", {"width": 5, "precision": 2, "fill": "0"}),
        ("text_precision", {"precision": 2}),
    ]:
        t.row(name, "AsString", [vec("string", ["abc", "", "abcdef"])], a)
    for name, x, sep in [
        ("spaces", ["a b  c", "", " d "], ""),
        ("comma", ["a,b,,c", ",", "x"], ","),
        ("word", ["a--b--", "--"], "--"),
    ]:
        t.row(name, "StringSplitV2", [vec("string", x), scalar("string", sep)])
        t.row(
            "max_" + name,
            "StringSplitV2",
            [vec("string", x), scalar("string", sep)],
            {"maxsplit": 1},
        )
        t.row(name, "StringSplit", [vec("string", x), scalar("string", sep)])
        t.row(
            "kept_" + name,
            "StringSplit",
            [vec("string", x), scalar("string", sep)],
            {"skip_empty": False},
        )
    for name, p, r in [
        ("letters", "[a-m]", "_"),
        ("groups", "(\\w+)/(\\w+)", "\\2-\\1"),
        ("bad", "[", "x"),
    ]:
        t.row(name, "RegexReplace", [uris, scalar("string", p), scalar("string", r)])
        t.row(
            "first_" + name,
            "RegexReplace",
            [uris, scalar("string", p), scalar("string", r)],
            {"replace_global": False},
        )
    grid = given("string", [2, 3], ["a", "b", "c", "d", "e", "f"])
    for name, axes in [
        ("rows", [0]),
        ("columns", [1]),
        ("last", [-1]),
        ("both", [0, 1]),
        ("other_order", [1, 0]),
        ("none", []),
        ("high", [2]),
    ]:
        t.row(name, "ReduceJoin", [grid, ivec(*axes)], {"separator": "."})
        t.row("keep_" + name, "ReduceJoin", [grid, ivec(*axes)], {"keep_dims": True})
    t.row(
        "two",
        "StringFormat",
        [[vec("int32", [1, 2, 3, 4, 5, 6, 7]), scalar("float", 1.5)]],
        {"template": "x = {}, y = {}."},
    )
    t.row(
        "summary",
        "StringFormat",
        [[drawn("int32", [3, 3])]],
        {"template": "%t%", "placeholder": "%t%", "summarize": 1},
    )
    t.row("letters", "StringFormat", [[vec("string", ["é\n\"", "a\\'"])]], {"template": "ü {}", "placeholder": "{}"})
    t.row("too_few", "StringFormat", [[scalar("int32", 1)]], {"template": "{} {}"})
    t.row(
        "letters", "UnicodeScript", [vec("int32", [65, 0x3B1, 0x5D0, 0x4E00, 0x30, -1, 0x10FFFF])]
    )
    string_unicode.fill(t)
