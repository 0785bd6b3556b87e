"""Parsing of text, raw bytes and serialized tensors."""

import base64

from . import parsing_example, parsing_proto
from .base import *

# Zstandard frames: of "hello zstd" five times, of nothing, and one that does not give its size.
ZSTD_HELLO = b"(\xb5/\xfd 2\x85\x00\x00Phello zstd\x01\x00[\x16$"
ZSTD_EMPTY = b"(\xb5/\xfd \x00\x01\x00\x00"
ZSTD_SIZELESS = b"(\xb5/\xfd\x00X\x19\x00\x00abc"


def fill(t):
    for d in dtypes("f i"):
        t.row(d, "StringToNumber", [vec("string", ["1", "-12", "0"])], {"out_type": d})
    t.row("reals", "StringToNumber", [vec("string", ["1.5", "-2e3", " 7 ", "inf", "nan", "1e-50"])])
    for name, x in [("word", "abc"), ("empty", ""), ("rest", "1x")]:
        t.row(name, "StringToNumber", [scalar("string", x)])
    t.row("int_overflow", "StringToNumber", [scalar("string", "9999999999")], {"out_type": "int32"})
    t.row("int_fraction", "StringToNumber", [scalar("string", "1.5")], {"out_type": "int32"})
    eight = {"b64": "AAECAwQFBgc="}
    for d in dtypes("half f int8 int16 i uint8 uint16 b complex64"):
        t.row(
            d,
            "DecodeRaw",
            (
                [vec("string", ["01234567", "abcdefgh"])]
                if d != "bool"
                else [vec("string", [{"b64": "AAEAAQ=="}])]
            ),
            {"out_type": d},
            tol=0,
        )
    t.row(
        "big_endian",
        "DecodeRaw",
        [vec("string", [eight])],
        {"out_type": "int32", "little_endian": False},
    )
    t.row("unlike", "DecodeRaw", [vec("string", ["ab", "abcd"])], {"out_type": "uint8"})
    t.row("not_divisible", "DecodeRaw", [vec("string", ["abc"])], {"out_type": "int32"})
    t.row("empty", "DecodeRaw", [vec("string", [])], {"out_type": "int32"})
    for d in dtypes("f i b s half complex64 uint8"):
        t.row(
            d, "ParseTensor", [node("SerializeTensor", [drawn(d, [2, 2])])], {"out_type": d}, tol=0
        )
        t.row(d, "SerializeTensor", [drawn(d, [3])])
    t.row(
        "wrong_type",
        "ParseTensor",
        [node("SerializeTensor", [drawn("float", [2])])],
        {"out_type": "int32"},
        message="code-only",
    )
    t.row(
        "not_a_tensor",
        "ParseTensor",
        [scalar("string", "no proto")],
        {"out_type": "int32"},
        message="code-only",
    )
    t.row(
        "vector",
        "ParseTensor",
        [vec("string", ["a", "b"])],
        {"out_type": "int32"},
        message="code-only",
    )
    lines = vec("string", ["1,2.5,a", '3,,"b,c"'])
    defaults = [vec("int32", [0]), vec("float", [9]), vec("string", [])]
    t.row("mixed", "DecodeCSV", [lines, defaults])
    t.row("required", "DecodeCSV", [vec("string", [",1"]), [vec("int32", []), vec("int32", [])]])
    t.row("too_few", "DecodeCSV", [vec("string", ["1"]), [vec("int32", [0]), vec("int32", [0])]])
    t.row(
        "delimiter",
        "DecodeCSV",
        [vec("string", ["1;2"]), [vec("int64", [0]), vec("double", [0])]],
        {"field_delim": ";"},
    )
    t.row(
        "no_quotes",
        "DecodeCSV",
        [vec("string", ['"a",b']), [vec("string", [""]), vec("string", [""])]],
        {"use_quote_delim": False},
    )
    t.row(
        "columns",
        "DecodeCSV",
        [vec("string", ["1,2,3"]), [vec("int32", [0]), vec("int32", [0])]],
        {"select_cols": [0, 2]},
    )
    t.row("not_a_number", "DecodeCSV", [vec("string", ["x"]), [vec("int32", [0])]])
    fill_csv(t)
    fill_bytes(t)
    # An Example with the features i: int64 [7] and x: float [1, 2].
    example = {"b64": "Ch8KCgoBaRIFGgMKAQcKEQoBeBIMEgoKCAAAgD8AAABA"}
    t.row(
        "both",
        "ParseExample",
        [
            vec("string", [example, example]),
            vec("string", []),
            [scalar("string", "i")],
            [scalar("string", "x")],
            [vec("float", [5, 6])],
        ],
        {"sparse_types": ["int64"], "dense_shapes": [[2]]},
    )
    t.row(
        "dense",
        "ParseExample",
        [
            vec("string", [""]),
            vec("string", []),
            [],
            [scalar("string", "x")],
            [vec("float", [5, 6])],
        ],
        {"sparse_types": [], "dense_shapes": [[2]]},
        message="code-only",
    )
    t.row(
        "required",
        "ParseExample",
        [vec("string", [""]), vec("string", []), [], [scalar("string", "x")], [vec("float", [])]],
        {"sparse_types": [], "dense_shapes": [[2]]},
        message="code-only",
    )
    t.row(
        "not_an_example",
        "ParseExample",
        [
            vec("string", ["\x01\x02"]),
            vec("string", []),
            [],
            [scalar("string", "x")],
            [vec("float", [5, 6])],
        ],
        {"sparse_types": [], "dense_shapes": [[2]]},
        message="code-only",
    )
    t.row(
        "sparse",
        "ParseExample",
        [vec("string", ["", ""]), vec("string", []), [scalar("string", "i")], [], []],
        {"sparse_types": ["int64"], "dense_shapes": [], "Tdense": []},
        message="code-only",
    )
    single = {
        "num_sparse": 0,
        "sparse_keys": [],
        "dense_keys": ["x"],
        "sparse_types": [],
        "dense_shapes": [[2]],
    }
    t.row(
        "dense",
        "ParseSingleExample",
        [scalar("string", ""), [vec("float", [5, 6])]],
        single,
        message="code-only",
    )
    t.row(
        "required",
        "ParseSingleExample",
        [scalar("string", ""), [vec("float", [])]],
        single,
        message="code-only",
    )
    parsing_example.fill(t)
    parsing_proto.fill(t)


def fill_csv(t):
    records = [
        "1,2,",
        '1,"a""b"',
        '1,"ab',
        '1,"ab"c',
        '1,a"b',
        '"1",2',
        "1,\r\n",
        " 1 , 2 ",
        '1, "x"',
        "",
        '"",""',
        '1,"a\nb"',
        '1,"x,y"',
        '1,"x" ',
        "1,\r2",
        "1,2\n",
        '"a"\r\n,b',
        "1,a\r",
        ",",
        '"""",""""',
    ]
    for i, record in enumerate(records):
        fields = [vec("string", ["d"]), vec("string", ["e"])]
        t.row("record_%d" % i, "DecodeCSV", [vec("string", [record]), fields])
    numbers = ["", "x", "99999999999999999999", "1.5", "-3", " 4 ", "NA", "+5", "0x10", "1e400"]
    for d in dtypes("f i"):
        for i, text in enumerate(numbers):
            t.row(
                "%s_%d" % (d, i),
                "DecodeCSV",
                [vec("string", [text + ",1"]), [vec(d, [7]), vec("int32", [0])]],
                {"na_value": "NA"},
            )
    two = [vec("int32", [0]), vec("int32", [0])]
    t.row("matrix", "DecodeCSV", [given("string", [2, 1], ["1,2", "3,4"]), two])
    t.row("scalar_default", "DecodeCSV", [vec("string", [",2"]), [scalar("int32", 5), two[0]]])
    t.row("columns_short", "DecodeCSV", [vec("string", ["1,2,3"]), two], {"select_cols": [1, 3]})
    t.row("second_bad", "DecodeCSV", [vec("string", ["1,2", "3,x", "y,1"]), two])
    for name, cols in (("falling", [3, 1]), ("count", [1]), ("negative", [-1, 1])):
        t.row(
            "columns_" + name,
            "DecodeCSV",
            [vec("string", ["1,2,3"]), two],
            {"select_cols": cols},
        )
    for name, delimiter, record in (
        ("two", ",,", "1"),
        ("quote", '"', '1"2'),
        ("line", "\n", "1\n2"),
        ("tab", "\t", "1\t2"),
    ):
        t.row(
            "delimiter_" + name,
            "DecodeCSV",
            [vec("string", [record]), two],
            {"field_delim": delimiter},
        )
    t.row("none", "DecodeCSV", [vec("string", []), two])
    t.row("default_pair", "DecodeCSV", [vec("string", ["1,2"]), [vec("int32", [1, 2]), two[0]]])


def fill_bytes(t):
    text = vec("string", ["abcdef", "xy", ""])
    for d in dtypes("int8 int16 i f uint8 uint16 bfloat16"):
        t.row(d, "DecodePaddedRaw", [text, iscalar(8)], {"out_type": d}, tol=0)
    t.row("cut", "DecodePaddedRaw", [text, iscalar(2)], {"out_type": "uint8"})
    t.row("fed", "DecodePaddedRaw", [text, scalar("int32", 4)], {"out_type": "int16"})
    t.row(
        "big_endian",
        "DecodePaddedRaw",
        [text, iscalar(4)],
        {"out_type": "int16", "little_endian": False},
    )
    for n in (3, 0, -2):
        t.row("bad_%d" % n, "DecodePaddedRaw", [text, iscalar(n)], {"out_type": "int16"})
        t.row(
            "bad_fed_%d" % n, "DecodePaddedRaw", [text, scalar("int32", n)], {"out_type": "int16"}
        )
    zlib_hello = {"b64": "eJzLSM3JyVfIQJAAOi4GfQ=="}
    gzip_hi = {"b64": "H4sIAAAAAAACA8vIBACsKpPYAgAAAA=="}
    t.row("none", "DecodeCompressed", [vec("string", ["abc", ""])])
    t.row("zlib", "DecodeCompressed", [vec("string", [zlib_hello])], {"compression_type": "ZLIB"})
    t.row("gzip", "DecodeCompressed", [scalar("string", gzip_hi)], {"compression_type": "GZIP"})
    t.row("empty", "DecodeCompressed", [vec("string", [""])], {"compression_type": "GZIP"})
    t.row("junk", "DecodeCompressed", [vec("string", ["junk"])], {"compression_type": "ZLIB"})
    frames = [("zstd", ZSTD_HELLO), ("zstd_empty", ZSTD_EMPTY), ("zstd_two", ZSTD_HELLO * 2), ("zstd_cut", ZSTD_HELLO[:-3])]
    frames += [("zstd_more", ZSTD_HELLO + b"xx"), ("zstd_junk", b"garbage!garbage!"), ("zstd_nothing", b""), ("zstd_head", ZSTD_HELLO[:5])]
    frames += [("zstd_skippable", b"\x50\x2a\x4d\x18\x03\0\0\0abc" + ZSTD_HELLO), ("zstd_sizeless", ZSTD_SIZELESS)]
    for name, data in frames:
        packed = {"b64": base64.b64encode(data).decode()}
        t.row(name, "DecodeCompressed", [vec("string", [packed])], {"compression_type": "ZSTD"})
    t.row("unknown", "DecodeCompressed", [vec("string", ["a"])], {"compression_type": "FOO"})
    for i, text in enumerate(JSON):
        t.row("%d" % i, "DecodeJSONExample", [scalar("string", text)])
    for i, text in enumerate(BAD_JSON):
        t.row("bad_%d" % i, "DecodeJSONExample", [scalar("string", text)], message="code-only")
    t.row("several", "DecodeJSONExample", [vec("string", JSON[:2])])


def feature(value):
    return '{"features":{"feature":{"a":%s}}}' % value


JSON = [
    "{}",
    feature('{"int64List":{"value":[1,"2",-5,1e3]}}'),
    feature('{"int64_list":{"value":[9223372036854775807,"-9223372036854775808"]}}'),
    feature('{"floatList":{"value":[1.5,"NaN","-Infinity","2.5",1e-50]}}'),
    feature('{"bytesList":{"value":["YWI=","YWI","_-8","+/8=",""]}}'),
    feature("{}"),
    feature('{"int64List":{}}'),
    feature('{"int64List":{"value":[]}}'),
    feature('{"int64List":null}'),
    '{"features":null}',
    '{"features":{}}',
    ' { "features" : { "feature" : { "b\\u00e9\\n\\ud83d\\ude00" : { "int64List" : { "value" : [ 1 ] } } } } } ',
]
BAD_JSON = [
    "",
    "{",
    "[]",
    "null",
    '{"x":1}',
    "{} x",
    '{"features":[]}',
    feature('{"int64List":{"value":[1.5]}}'),
    feature('{"int64List":{"value":["x"]}}'),
    feature('{"int64List":{"value":[9223372036854775808]}}'),
    feature('{"int64List":{"value":1}}'),
    feature('{"floatList":{"value":[1e40]}}'),
    feature('{"floatList":{"value":["x"]}}'),
    feature('{"bytesList":{"value":["?"]}}'),
    feature('{"bytesList":{"value":[1]}}'),
    feature('{"int64List":{"value":[1,]}}'),
    feature('{"int64List":{"value":[01]}}'),
    feature('{"int64List":{"value":[1]},"floatList":{"value":[1]}}'),
    '{"features":{"feature":{"a":{"int64List":{"value":[1]}}}}',
    '{"features":{"feature":{"\\ud83d":{}}}}',
]
