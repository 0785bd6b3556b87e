"""DecodeProtoV2 and EncodeProto with descriptors in attributes. Attributes in case files are ASCII only, so each
descriptor is short enough that its lengths stay below 128."""

import base64
import struct

from .base import *

TYPES = (
    "double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum "
    "sfixed32 sfixed64 sint32 sint64"
).split()


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def put(number, value):
    """Encodes a field: a number, or text with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def field(name, number, kind, default=None, repeated=False, of=None, packed=None):
    out = put(1, name) + put(3, number) + put(4, 3 if repeated else 1)
    out += put(5, TYPES.index(kind) + 1)
    if of:
        out += put(6, of)
    if default is not None:
        out += put(7, default)
    if packed is not None:
        out += put(8, put(2, 1))
    return out


def file(name, syntax, message, *fields, more=b"", body=b""):
    body = put(1, message) + b"".join(put(2, f) for f in fields) + body
    out = put(1, name) + put(2, "p") + put(4, body) + more + put(12, syntax)
    assert len(out) < 128, (name, len(out))
    return put(1, out)


COLOUR = put(5, put(1, "E") + put(2, put(1, "A")) + put(2, put(1, "B") + put(2, 5)))
FILES = (
    file(
        "a", "proto2", "M",
        field("i", 1, "int32", "7"),
        field("r", 2, "int64", repeated=True),
        field("s", 3, "string", "dd"),
        field("b", 4, "bytes", repeated=True),
        field("t", 5, "bool", "true"),
    )
    + file(
        "b", "proto2", "R",
        field("f", 1, "float", repeated=True, packed=True),
        field("d", 2, "double", "1.5"),
        field("e", 3, "enum", "B", of=".p.E"),
        field("g", 4, "float", "inf"),
        more=COLOUR,
    )
    + file(
        "c", "proto2", "U",
        field("u", 1, "uint32", "9"),
        field("l", 2, "uint64"),
        field("z", 3, "sint32", repeated=True),
        field("y", 4, "sint64", "-3"),
        field("x", 5, "fixed64"),
        field("w", 6, "fixed32", repeated=True),
    )
    + file(
        "d", "proto2", "S",
        field("h", 1, "sfixed32", "-4"),
        field("k", 2, "sfixed64", repeated=True),
        field("m", 3, "message", of=".p.S"),
    )
    + file("e", "proto3", "P", field("v", 1, "int32", repeated=True), field("q", 2, "string", repeated=True))
)
SOURCE = "bytes://" + FILES.decode()


def group_source(repeated):
    """A message with a group, in which the message may be again."""
    inner = put(1, "G") + put(2, field("a", 1, "int32")) + put(2, field("n", 2, "message", repeated=True, of=".p.M"))
    group = field("g", 1, "group", repeated=repeated, of=".p.M.G")
    return "bytes://" + file("g", "proto2", "M", group, field("i", 2, "int32"), body=put(3, inner)).decode()


def begin(number):
    return varint(number << 3 | 3)


def end(number):
    return varint(number << 3 | 4)


def raw(data):
    return {"b64": base64.b64encode(data).decode()}


def fixed(number, fmt, value):
    return varint(number << 3 | (1 if struct.calcsize(fmt) == 8 else 5)) + struct.pack(fmt, value)


M = put(1, 3) + put(2, 1) + put(2, 2) + put(2, -3) + put(3, "hi") + put(4, "x") + put(4, b"\xff") + put(5, 0)
R = put(1, struct.pack("<2f", 1.5, -2.5)) + fixed(1, "<f", 9) + fixed(2, "<d", 2.5) + put(3, 0) + fixed(4, "<f", 1)
U = put(1, 4000000000) + put(2, 2**63 + 1) + put(3, 1) + put(3, 10) + put(4, 7) + fixed(5, "<Q", 2**60)
U += fixed(6, "<I", 3) + put(6, struct.pack("<2I", 4, 4000000000))
S = fixed(1, "<i", -9) + fixed(2, "<q", -(2**40)) + put(3, fixed(1, "<i", 5))
P = put(1, varint(5) + varint(-6)) + put(2, "a") + put(2, "")


def fill(t):
    op = "DecodeProtoV2"

    def decode(name, messages, kind, names, types, attrs=None, shape=None, **more):
        values = given("string", [len(messages)] if shape is None else shape, [raw(m) for m in messages])
        a = {"message_type": "p." + kind, "field_names": names, "output_types": types}
        t.row(name, op, [values], dict(a, **dict({"descriptor_source": SOURCE}, **(attrs or {}))), **more)

    decode("m", [M, b""], "M", ["i", "r", "s", "b", "t"], ["int32", "int64", "string", "string", "bool"])
    decode("r", [R, b""], "R", ["f", "d", "e", "g"], ["float", "double", "int32", "double"])
    decode("u", [b"", U], "U", list("ulzyxw"), ["uint32", "uint64", "int64", "int64", "uint64", "uint32"])
    decode("u_wide", [U], "U", ["u", "z"], ["uint64", "int32"])
    decode("s", [S, b""], "S", ["h", "k", "m"], ["int64", "int64", "string"])
    decode("p", [P, b""], "P", ["v", "q"], ["int32", "string"])
    decode("matrix", [M, b""], "M", ["r", "i"], ["int64", "int32"], shape=[2, 1])
    decode("scalar", [b""], "M", ["r", "i"], ["int64", "int32"], shape=[])
    decode("twice", [M + M], "M", ["r", "i", "s"], ["int64", "int32", "string"])
    decode("asked_twice", [M], "M", ["i", "i"], ["int32", "int32"])
    decode("no_fields", [M], "M", [], [])
    decode("sanitize", [M], "M", ["r"], ["int64"], {"sanitize": True})
    decode("packed", [put(2, 5) + put(2, varint(6) + varint(7))], "M", ["r"], ["int64"])
    decode("wire", [fixed(1, "<i", 5) + put(3, 4)], "M", ["i", "s"], ["int32", "string"])
    decode("none", [], "M", ["i"], ["int32"])
    for name, data in (
        ("tag", b"\xff\xff"),
        ("cut", b"\x0a\x03ab"),
        ("cut_string", put(3, "hello")[:-2]),
        ("cut_packed", varint(2 << 3 | 2) + b"\x02\x05\xff"),
        ("cut_number", b"\x08"),
    ):
        is_list = name == "cut_packed"
        names = ["r"] if is_list else ["s", "i"]
        types = ["int64"] if is_list else ["string", "int32"]
        decode("bad_" + name, [data], "M", names, types, message="code-only")
    decode("unknown_field", [M], "M", ["nope"], ["int32"])
    decode("unknown_type", [M], "Q", ["i"], ["int32"])
    decode("counts", [M], "M", ["i"], ["int32", "int32"])
    decode("format", [M], "M", ["i"], ["int32"], {"message_format": "json"})
    for message, name, kind in (
        ("M", "i", "float"),
        ("M", "r", "int32"),
        ("M", "t", "int32"),
        ("R", "d", "float"),
        ("R", "e", "int64"),
        ("U", "u", "int64"),
        ("U", "l", "int64"),
        ("S", "m", "int32"),
    ):
        decode("type_%s_%s" % (name, kind), [M], message, [name], [kind])
    for name, source in (("garbage", "bytes://zzz"), ("file", "/dev/null/nowhere")):
        decode("source_" + name, [M], "M", ["i"], ["int32"], {"descriptor_source": source})
    local = {"message_type": "tensorflow.TensorShapeProto.Dim", "field_names": ["size", "name"]}
    dims = given("string", [2], [raw(put(1, 5) + put(2, "x")), ""])
    t.row("local", op, [dims], dict(local, output_types=["int64", "string"]))
    fill_text(t)
    fill_groups(t)
    fill_encode(t)


def fill_text(t):
    def decode(name, texts, kind, names, types, shape=None, **more):
        values = given("string", shape or [len(texts)], texts)
        a = {"message_type": "p." + kind, "field_names": names, "output_types": types, "descriptor_source": SOURCE}
        t.row("text_" + name, "DecodeProtoV2", [values], dict(a, message_format="text"), **more)

    m = "i: 0 r: 1 r: [2, -3] s: 'hi' b: 'x' b: '\\377' t: false"
    decode("m", [m, ""], "M", ["i", "r", "s", "b", "t"], ["int32", "int64", "string", "string", "bool"])
    r = "f: [1.5, -inf] f: 2 d: 1e3 e: A # a comment\n g: nan"
    decode("r", [r, "e: 5"], "R", ["f", "d", "e", "g"], ["float", "double", "int32", "double"])
    u = "u: 0x10 l: 18446744073709551615 z: -1 z: 5 y: -9 x: 7, w: 3; w: 4"
    decode("u", [u], "U", list("ulzyxw"), ["uint32", "uint64", "int64", "int64", "uint64", "uint32"])
    s = ["h: -9 k: -1 m { h: 5 m < k: 2 > }", "m {}"]
    decode("s", s, "S", ["h", "k", "m"], ["int64", "int64", "string"], shape=[2, 1])
    decode("p", ["v: 0 v: -6 q: 'a' 'b' q: ''", "v: []"], "P", ["v", "q"], ["int32", "string"])
    starts = {"starts": "Unable to parse text protobuf; Error parsing text-format p."}
    decode("unknown", ["bogus: 1"], "M", ["i"], ["int32"], message=starts)
    decode("twice", ["i: 1 i: 2"], "M", ["i"], ["int32"], message=starts)
    decode("cut", ["m { h: 1"], "S", ["h"], ["int64"], message=starts)
    decode("range", ["i: 2147483648"], "M", ["i"], ["int32"], message=starts)


def fill_groups(t):
    def row(name, messages, names, types, is_text=False, repeated=False, **more):
        values = given("string", [len(messages)], messages if is_text else [raw(m) for m in messages])
        a = {"message_type": "p.M", "field_names": names, "output_types": types, "descriptor_source": group_source(repeated)}
        t.row("group_" + name, "DecodeProtoV2", [values], dict(a, **({"message_format": "text"} if is_text else {})), **more)

    i, g, both = (["i"], ["int32"]), (["g"], ["string"]), (["g", "i"], ["string", "int32"])
    texts = ["G { a: 5 } i: 3", "g { a: 5 } i: 4", "G: < a: 5 > i: 5", "G { a: 5 n { i: 2 G { a: 1 } } } i: 6", "i: 7"]
    row("text", texts, *both, is_text=True)
    row("text_list", ["G { a: 5 } G { a: 6 } i: 3", "G [{ a: 5 }, { }] i: 4"], *both, is_text=True, repeated=True)
    starts = {"starts": "Unable to parse text protobuf; Error parsing text-format p."}
    for name, text in (("twice", "G { } G { }"), ("inner", "G { b: 5 }"), ("cut", "G { a: 5"), ("name", "GG { a: 5 }")):
        row("text_" + name, [text], *i, is_text=True, message=starts)
    row("text_type", ["i: 3"], ["g"], ["int32"], is_text=True)
    one = begin(1) + put(1, 5) + end(1)
    row("binary", [one + put(2, 3), put(2, 4)], *both)
    row("repeated", [one + one + put(2, 3)], *both, repeated=True)
    row("skipped", [one + put(2, 3), begin(7) + begin(8) + put(1, 5) + end(8) + end(7) + put(2, 4)], *i)
    row("deep", [begin(7) * 90 + end(7) * 90 + put(2, 4)], *i)
    for name, data in (
        ("open", begin(1) + put(1, 5) + put(2, 3)),
        ("crossed", begin(7) + end(8) + put(2, 3)),
        ("closed", put(2, 3) + end(7)),
        ("too_deep", begin(7) * 200 + end(7) * 200 + put(2, 4)),
    ):
        row("bad_" + name, [data], *i, message="code-only")
    row("bad_packed", [put(1, "ab")], *g)


def fill_encode(t):
    op = "EncodeProto"

    def encode(name, sizes, values, message, names, attrs=None):
        shape = [len(sizes), len(sizes[0])] if sizes else [0, len(names)]
        flat = given("int32", shape, [n for row in sizes for n in row])
        a = {"message_type": "p." + message, "field_names": names, "descriptor_source": SOURCE}
        t.row(name, op, [flat, values], dict(a, **(attrs or {})))

    one = lambda d, *v: given(d, [1, len(v)], list(v))
    encode("order", [[2, 1]], [one("int64", 1, -2), one("int32", -3)], "M", ["r", "i"])
    encode("strings", [[1, 2, 1]], [one("string", "q"), one("string", "", "w"), one("bool", True)], "M", ["s", "b", "t"])
    encode("r", [[2, 1, 1, 1]], [one("float", 1, 2.5), one("double", -1.5), one("int32", 5), one("double", 0.1)], "R", ["f", "d", "e", "g"])
    numbers = [one("uint32", 4000000000), one("uint64", 7), one("int32", -1, 5), one("int64", -9), one("uint64", 3), one("uint32", 1, 2)]
    encode("u", [[1, 1, 2, 1, 1, 2]], numbers, "U", list("ulzyxw"))
    group = {"descriptor_source": group_source(True)}
    encode("group", [[2, 1]], [one("string", "\x08\x05", ""), one("int32", 3)], "M", ["g", "i"], group)
    encode("s", [[1, 1, 1]], [one("int32", -9), one("int64", -9), one("string", "\x0d")], "S", ["h", "k", "m"])
    encode("p", [[2, 1]], [one("int64", -1, 300), one("string", "a")], "P", ["v", "q"])
    encode("single_twice", [[2]], [one("int32", 3, 4)], "M", ["i"])
    encode("fewer", [[1, 0]], [one("int64", 3, 4), one("int32", 1)], "M", ["r", "i"])
    encode("negative", [[-1]], [one("int64", 3, 4)], "M", ["r"])
    encode("more", [[3]], [one("int64", 3, 4)], "M", ["r"])
    encode("two", [[1], [0]], [given("int64", [2, 1], [3, 4])], "M", ["r"])
    encode("no_messages", [], [given("int64", [0, 2], [])], "M", ["r"])
    encode("wide", [[1]], [one("int64", 3)], "M", ["i"])
    encode("type", [[1]], [one("float", 3)], "M", ["i"])
    encode("type_double", [[1]], [one("float", 3)], "R", ["d"])
    encode("vector", [[1]], [vec("int32", [3])], "M", ["i"])
    encode("sizes", [[1, 1]], [one("int32", 3)], "M", ["i"])
    encode("unlike", [[1, 1]], [one("int64", 3), given("int32", [2, 1], [1, 2])], "M", ["r", "i"])
    encode("unknown_field", [[1]], [one("int32", 3)], "M", ["nope"])
    encode("counts", [[1]], [one("int32", 3)], "M", ["i", "r"])
    t.row(
        "deep",
        op,
        [given("int32", [2, 1, 1], [1, 1]), [given("int32", [2, 1, 1], [3, 4])]],
        {"message_type": "p.M", "field_names": ["i"], "descriptor_source": SOURCE},
    )
    t.row(
        "local",
        op,
        [given("int32", [1, 1], [1]), [given("int64", [1, 1], [9])]],
        {"message_type": "tensorflow.TensorShapeProto.Dim", "field_names": ["size"]},
    )
