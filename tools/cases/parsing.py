"""Text and bytes to tensors."""

from .base import *


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
