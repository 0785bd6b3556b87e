"""Parsing of Example and SequenceExample messages."""

import base64
import struct

from .base import *


# Encodes the wire format by hand, so that the tests do not depend on an encoder.


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def floats(*values, packed=True):
    if packed:
        return field(2, field(1, struct.pack("<%df" % len(values), *values)) if values else b"")
    return field(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values))


def ints(*values, packed=True):
    if packed:
        return field(3, field(1, b"".join(map(varint, values))) if values else b"")
    return field(3, b"".join(varint(1 << 3) + varint(v) for v in values))


def texts(*values):
    return field(1, b"".join(field(1, v.encode()) for v in values))


def entry(key, value):
    return field(1, field(1, key.encode()) + field(2, value))


def example(*features):
    return field(1, b"".join(entry(k, v) for k, v in features))


def sequence(context=(), lists=()):
    out = field(1, b"".join(entry(k, v) for k, v in context)) if context else b""
    if lists:
        out += field(2, b"".join(entry(k, b"".join(field(1, s) for s in v)) for k, v in lists))
    return out


def raw(data):
    return {"b64": base64.b64encode(data).decode()}


def batch(*messages):
    return vec("string", [raw(m) for m in messages])


def keys(*names):
    return [scalar("string", k) for k in names]


NAMES = vec("string", [])
A = example(("f", floats(1, 2)), ("i", ints(3, -4, 5)), ("s", texts("x", "yy")))
B = example(("i", ints(6)), ("f", floats(7, 8)))
C = example(("s", texts()), ("f", floats(9, 10)), ("i", ints()))
UNPACKED = example(
    ("f", floats(1, 2, packed=False)), ("i", ints(1 << 40, -1, packed=False)), ("s", texts("z"))
)
ALL = {"sparse_types": ["float", "int64", "string"], "dense_shapes": [], "Tdense": []}


def parse_example(t, name, rows, sparse=(), dense=(), names=NAMES, **more):
    """Adds a case; `sparse` is [(key, type)], `dense` is [(key, default, shape)]."""
    attrs = {"sparse_types": [d for _, d in sparse], "dense_shapes": [s for _, _, s in dense]}
    if not dense:
        attrs["Tdense"] = []
    inputs = [rows, names, keys(*[k for k, _ in sparse]), keys(*[k for k, _, _ in dense])]
    t.row(name, "ParseExample", inputs + [[d for _, d, _ in dense]], attrs, **more)
    v2 = dict(attrs, num_sparse=len(sparse), ragged_value_types=[], ragged_split_types=[])
    lists = [vec("string", [k for k, _ in sparse]), vec("string", [k for k, _, _ in dense])]
    inputs = [rows, names] + lists + [vec("string", []), [d for _, d, _ in dense]]
    t.row(name, "ParseExampleV2", inputs, v2, **more)
    if rows["shape"] == [1] and names is NAMES:
        alone = scalar("string", rows["values"][0])
        t.row(name + "_alone", "ParseExampleV2", [alone] + inputs[1:], v2, **more)


def fill_examples(t):
    every = [("f", "float"), ("i", "int64"), ("s", "string")]
    two = ("f", vec("float", [-1, -2]), [2])
    needed = ("f", vec("float", []), [2])
    parse_example(t, "sparse_all", batch(A, B, C, b""), every)
    parse_example(t, "sparse_unpacked", batch(UNPACKED, A), every)
    parse_example(t, "sparse_none", batch(), every)
    parse_example(t, "sparse_no_features", batch(b"", b""), every)
    parse_example(t, "dense_fixed", batch(A, B, b""), [], [two])
    parse_example(t, "dense_matrix", batch(A), [], [("f", vec("float", []), [2, 1])])
    parse_example(t, "dense_unpacked", batch(UNPACKED), [], [two])
    parse_example(t, "dense_required", batch(A, B), [], [needed])
    parse_example(t, "dense_missing", batch(A, example(("q", floats(1)))), [], [needed])
    parse_example(t, "dense_scalar", batch(B, B), [], [("i", scalar("int64", 4), [])])
    parse_example(t, "dense_text", batch(A, b""), [], [("s", vec("string", ["d", "e"]), [2])])
    parse_example(t, "dense_none", batch(), [], [two])
    parse_example(t, "both", batch(A, B), [("i", "int64")], [two])
    pad = ("i", vec("int64", [-7]), [-1])
    parse_example(t, "padded", batch(A, B, C, b""), [], [pad])
    parse_example(t, "padded_none", batch(b"", b""), [], [pad])
    parse_example(t, "padded_text", batch(A, B), [], [("s", vec("string", ["pad"]), [-1])])
    parse_example(t, "padded_no_default", batch(A, B), [], [("i", vec("int64", []), [-1])])
    parse_example(t, "padded_stride", batch(A, b""), [], [("f", vec("float", [0]), [-1, 2])])
    parse_example(t, "padded_uneven", batch(A), [], [("i", vec("int64", [0]), [-1, 2])])
    parse_example(t, "padded_unpacked", batch(UNPACKED, B), [], [pad])
    # If a key occurs twice, the last one counts. A feature without a kind counts as missing.
    twice = example(("f", floats(1, 2)), ("f", floats(3, 4)))
    nothing = example(("f", b""))
    parse_example(t, "twice", batch(twice), [("f", "float")])
    parse_example(t, "twice_dense", batch(twice), [], [two])
    parse_example(t, "no_kind", batch(nothing, A), [("f", "float")], [])
    parse_example(t, "no_kind_dense", batch(nothing), [], [two])
    parse_example(t, "no_kind_required", batch(nothing), [], [needed])
    split = field(1, entry("f", floats(1, 2))) + field(1, entry("i", ints(3)))
    parse_example(t, "split_features", batch(split), [("i", "int64")], [two])
    unknown = varint(9 << 3) + varint(300) + A + field(12, b"x")
    parse_example(t, "unknown_fields", batch(unknown), every, [])
    value_first = field(1, field(1, field(2, floats(1, 2)) + field(1, b"f")))
    parse_example(t, "value_first", batch(value_first), [("f", "float")], [])
    # Errors.
    parse_example(t, "wrong_type", batch(B, A), [("f", "int64")], [])
    parse_example(t, "wrong_type_dense", batch(B, A), [], [("f", vec("int64", [1]), [1])])
    parse_example(t, "wrong_type_padded", batch(B, A), [], [("f", vec("int64", [1]), [-1])])
    named = vec("string", ["one", "two"])
    parse_example(t, "wrong_type_named", batch(B, A), [("f", "int64")], [], named)
    parse_example(t, "missing_named", batch(A, b""), [], [needed], named)
    parse_example(t, "too_few", batch(A), [], [("f", vec("float", []), [3])])
    parse_example(t, "too_many", batch(A), [], [("i", vec("int64", [9, 9]), [2])])
    parse_example(t, "too_many_text", batch(A), [], [("s", vec("string", []), [1])])
    parse_example(t, "too_few_text", batch(A), [], [("s", vec("string", []), [3])])
    parse_example(t, "too_many_unpacked", batch(UNPACKED), [], [("i", vec("int64", []), [1])])
    parse_example(t, "too_few_unpacked", batch(UNPACKED), [], [("f", vec("float", []), [4])])
    parse_example(t, "cut", batch(A, B[:-3]), every, [], message="code-only")
    parse_example(t, "junk", batch(b"\x01\x02"), every, [], message="code-only")
    bad_ints = example(("i", field(3, field(1, b"\xff\xff"))))
    parse_example(t, "bad_ints", batch(bad_ints), [("i", "int64")], [], message="code-only")
    bad_other = example(("q", field(3, field(1, b"\xff\xff"))), ("i", ints(1)))
    parse_example(t, "bad_elsewhere", batch(bad_other), [("i", "int64")], [], message="code-only")
    parse_example(
        t, "names_count", batch(A, B), every, [], vec("string", ["one"]), message="code-only"
    )
    parse_example(t, "default_shape", batch(A), [], [("f", vec("float", [1]), [2])])
    parse_example(t, "default_padded", batch(A), [], [("i", vec("int64", [1, 2]), [-1])])
    parse_example(t, "unknown_shape", batch(A), [], [("f", vec("float", [1]), [2, -1])])


def fill_v2(t):
    def ragged(name, rows, kinds, splits, **more):
        attrs = {
            "num_sparse": 0,
            "sparse_types": [],
            "Tdense": [],
            "dense_shapes": [],
            "ragged_value_types": [d for _, d in kinds],
            "ragged_split_types": splits,
        }
        none = vec("string", [])
        inputs = [rows, none, none, none, vec("string", [k for k, _ in kinds]), []]
        t.row(name, "ParseExampleV2", inputs, attrs, **more)

    every = [("f", "float"), ("i", "int64"), ("s", "string")]
    ragged("ragged", batch(A, B, C, b"", UNPACKED), every, ["int32", "int64", "int32"])
    ragged("ragged_none", batch(), every, ["int32", "int64", "int32"])
    ragged("ragged_scalar", scalar("string", raw(A)), every, ["int32", "int64", "int64"])
    ragged("ragged_scalar_missing", scalar("string", raw(B)), every, ["int32", "int64", "int64"])
    ragged("ragged_wrong_type", batch(B, A), [("f", "int64")], ["int64"])
    attrs = {
        "num_sparse": 2,
        "sparse_types": ["int64", "string"],
        "dense_shapes": [[2], [-1]],
        "ragged_value_types": ["string"],
        "ragged_split_types": ["int32"],
    }
    inputs = [
        vec("string", ["i", "s"]),
        vec("string", ["f", "i2"]),
        vec("string", ["s2"]),
        [vec("float", [5, 6]), vec("int64", [0])],
    ]
    more = example(("s2", texts("p", "q")), ("i2", ints(4, 5)), ("f", floats(1, 2)))
    t.row("mixed", "ParseExampleV2", [batch(more, A), NAMES] + inputs, attrs)
    t.row("mixed_scalar", "ParseExampleV2", [scalar("string", raw(more)), NAMES] + inputs, attrs)
    t.row(
        "matrix",
        "ParseExampleV2",
        [given("string", [1, 1], [raw(A)]), NAMES] + inputs,
        attrs,
        message="code-only",
    )
    t.row(
        "key_count",
        "ParseExampleV2",
        [batch(A), NAMES, vec("string", ["i"])] + inputs[1:],
        attrs,
        message="code-only",
    )


def fill_single(t):
    def single(name, data, sparse=(), dense=(), **more):
        attrs = {
            "num_sparse": len(sparse),
            "sparse_keys": [k for k, _ in sparse],
            "dense_keys": [k for k, _, _ in dense],
            "sparse_types": [d for _, d in sparse],
            "dense_shapes": [s for _, _, s in dense],
        }
        if not dense:
            attrs["Tdense"] = []
        inputs = [scalar("string", raw(data)), [d for _, d, _ in dense]]
        t.row(name, "ParseSingleExample", inputs, attrs, **more)

    every = [("f", "float"), ("i", "int64"), ("s", "string")]
    two = ("f", vec("float", [-1, -2]), [2])
    single("sparse_all", A, every)
    single("sparse_missing", B, every)
    single("sparse_unpacked", UNPACKED, every)
    single("dense_fixed", A, [], [two])
    single("dense_default", b"", [], [two])
    single("padded", A, [], [("i", vec("int64", [-7]), [-1])])
    single("padded_missing", b"", [], [("i", vec("int64", [-7]), [-1])])
    single("padded_text", A, [], [("s", vec("string", ["d"]), [-1])])
    single("padded_uneven", A, [], [("i", vec("int64", [0]), [-1, 2])])
    single("dense_missing", b"", [], [("f", vec("float", []), [2])], message="code-only")
    single("wrong_type", A, [("f", "int64")])
    single("wrong_type_dense", A, [], [("f", vec("int64", [1]), [1])])
    single("too_many", A, [], [("i", vec("int64", [9, 9]), [2])])
    single("too_many_floats", A, [], [("f", vec("float", []), [1])])
    single("too_many_text", A, [], [("s", vec("string", []), [1])])
    single("too_few", A, [], [("i", vec("int64", []), [4])])
    single("too_few_text", A, [], [("s", vec("string", []), [4])])
    single("too_few_unpacked", UNPACKED, [], [("f", vec("float", []), [4])])
    single("default_shape", A, [], [("f", vec("float", [1]), [2])])
    single("junk", b"\x01\x02", every, message="code-only")


STEPS = sequence(
    [("c", ints(5)), ("d", floats(1.5))],
    [("f", [floats(1, 2), floats(3, 4)]), ("s", [texts("a"), texts(), texts("b", "c")])],
)
SHORT = sequence([("c", ints(6, 7))], [("f", [floats(5, 6)]), ("s", [texts("d")])])
EMPTY = sequence([("c", ints())], [("f", []), ("s", [])])


def fill_sequences(t):
    def single(name, data, cs=(), cd=(), ls=(), ld=(), empty=(), **more):
        attrs = {
            "Ncontext_sparse": len(cs),
            "Ncontext_dense": len(cd),
            "Nfeature_list_sparse": len(ls),
            "Nfeature_list_dense": len(ld),
            "context_sparse_types": [d for _, d in cs],
            "context_dense_shapes": [s for _, _, s in cd],
            "feature_list_sparse_types": [d for _, d in ls],
            "feature_list_dense_types": [d for _, d, _ in ld],
            "feature_list_dense_shapes": [s for _, _, s in ld],
        }
        inputs = [
            scalar("string", raw(data)),
            vec("string", list(empty)),
            keys(*[k for k, _ in cs]),
            keys(*[k for k, _, _ in cd]),
            keys(*[k for k, _ in ls]),
            keys(*[k for k, _, _ in ld]),
            [d for _, d, _ in cd],
            scalar("string", "debug"),
        ]
        if not cd:
            attrs["Tcontext_dense"] = []
        t.row(name, "ParseSingleSequenceExample", inputs, attrs, **more)

    def many(name, messages, cs=(), cd=(), ls=(), ld=(), empty=(), names=NAMES, **more):
        attrs = {
            "feature_list_dense_missing_assumed_empty": list(empty),
            "context_sparse_keys": [k for k, _ in cs],
            "context_dense_keys": [k for k, _, _ in cd],
            "feature_list_sparse_keys": [k for k, _ in ls],
            "feature_list_dense_keys": [k for k, _, _ in ld],
            "Ncontext_sparse": len(cs),
            "Ncontext_dense": len(cd),
            "Nfeature_list_sparse": len(ls),
            "Nfeature_list_dense": len(ld),
            "context_sparse_types": [d for _, d in cs],
            "context_dense_shapes": [s for _, _, s in cd],
            "feature_list_sparse_types": [d for _, d in ls],
            "feature_list_dense_types": [d for _, d, _ in ld],
            "feature_list_dense_shapes": [s for _, _, s in ld],
        }
        if not cd:
            attrs["Tcontext_dense"] = []
        defaults = [d for _, d, _ in cd]
        t.row(name, "ParseSequenceExample", [batch(*messages), names, defaults], attrs, **more)

    def ragged(name, messages, cr=(), lr=(), cs=(), ls=(), ld=(), splits="int64", **more):
        rows = messages if isinstance(messages, dict) else batch(*messages)
        attrs = {
            "Ncontext_sparse": len(cs),
            "Nfeature_list_sparse": len(ls),
            "Nfeature_list_dense": len(ld),
            "Tcontext_dense": [],
            "context_sparse_types": [d for _, d in cs],
            "context_ragged_value_types": [d for _, d in cr],
            "context_ragged_split_types": [splits] * len(cr),
            "context_dense_shapes": [],
            "feature_list_sparse_types": [d for _, d in ls],
            "feature_list_dense_types": [d for _, d, _ in ld],
            "feature_list_dense_shapes": [s for _, _, s in ld],
            "feature_list_ragged_value_types": [d for _, d in lr],
            "feature_list_ragged_split_types": [splits] * len(lr),
        }
        inputs = [
            rows,
            NAMES,
            vec("string", [k for k, _ in cs]),
            NAMES,
            vec("string", [k for k, _ in cr]),
            vec("string", [k for k, _ in ls]),
            vec("string", [k for k, _, _ in ld]),
            vec("string", [k for k, _ in lr]),
            vec("bool", [False] * len(ld)),
            [],
        ]
        t.row(name, "ParseSequenceExampleV2", inputs, attrs, **more)

    cs, ls = [("c", "int64")], [("s", "string")]
    ld = [("f", "float", [2])]
    for form in (single, lambda name, m, *a, **k: many(name, [m, SHORT, m], *a, **k)):
        form("sparse", STEPS, cs, [], ls, [])
        form("dense", STEPS, [], [("d", vec("float", [9]), [1])], [], ld)
        form("context_scalar", STEPS, [], [("d", scalar("float", 9), [])], [], [])
        form("all", STEPS, cs, [("d", vec("float", [9]), [1])], ls, ld)
        form("empty_lists", EMPTY, cs, [], ls, ld)
        form("missing_list", sequence([("c", ints(1))]), cs, [], ls, [])
        form("missing_dense_list", sequence([("c", ints(1))]), [], [], [], ld, message="code-only")
        form("assumed_empty", sequence([("c", ints(1))]), [], [], [], ld, ["f"])
        form("nothing", b"", cs, [], ls, [])
        form("missing_context", b"", [], [("d", vec("float", []), [1])], [], [], message="code-only")
        form("wrong_type", STEPS, [("c", "float")], [], [], [], message="code-only")
        form("wrong_type_list", STEPS, [], [], [("s", "float")], [], message="code-only")
        form("wrong_type_dense_list", STEPS, [], [], [], [("s", "float", [])], message="code-only")
        form("wrong_size", STEPS, [], [], [], [("f", "float", [3])])
        form("junk", b"\x01\x02", cs, [], ls, [], message="code-only")
        form("cut", STEPS[:-3], cs, [], ls, [], message="code-only")
    many("none", [], cs, [("d", vec("float", [9]), [1])], ls, ld)
    steps = lambda *sizes: sequence([], [("f", [floats(*range(n)) for n in sizes])])
    names = vec("string", ["x", "y"])
    for name, rows in (
        ("total", [steps(2, 3), steps(2)]),
        ("total_each", [steps(1), steps(1)]),
        ("step", [steps(1, 3), steps(2)]),
        ("step_second", [steps(2), steps(1, 1)]),
        ("step_first", [steps(1), steps(2)]),
        ("step_long", [steps(4), steps(2)]),
        ("step_none", [steps(2, 0), steps(2)]),
    ):
        many("uneven_" + name, rows, [], [], [], ld, names=names)
        many("uneven_unnamed_" + name, rows, [], [], [], ld)
    many("padded", [STEPS, SHORT], [], [], [], ld)
    many("context_default", [SHORT, STEPS], [], [("d", vec("float", [9]), [1])], [], [])
    many("named", [STEPS, b""], [], [], [], ld, names=vec("string", ["x", "y"]), message="code-only")
    unpacked = sequence(
        [("c", ints(1, 2, packed=False))], [("f", [floats(1, 2, packed=False), floats(3, 4)])]
    )
    many("unpacked", [unpacked, STEPS], cs, [], [], ld)
    ragged("ragged", [STEPS, SHORT, EMPTY, b""], [("c", "int64")], [("s", "string")])
    ragged("ragged_int32", [STEPS, SHORT], cs, ls, splits="int32")
    ragged("ragged_floats", [STEPS, SHORT], [("d", "float")], [("f", "float")])
    ragged("sparse", [STEPS, SHORT], [], [], cs, ls, ld)
    ragged("sparse_scalar", scalar("string", raw(STEPS)), [], [], cs, ls, ld)
    ragged("ragged_wrong_type", [STEPS], [("c", "float")], [], message="code-only")


def fill(t):
    fill_examples(t)
    fill_v2(t)
    fill_single(t)
    fill_sequences(t)
