"""Lookup tables, static and mutable: creation, lookup, export."""

from .base import *

KEYS = {"int32": [3, 1, 7], "int64": [3, 1, 7], "string": ["c", "a", "g"]}
VALUES = {
    "float": [0.5, 1.5, 2.5],
    "double": [0.5, 1.5, 2.5],
    "int32": [5, 6, 7],
    "int64": [50, 60, 70],
    "string": ["x", "y", "z"],
}
PAIRS = [
    ("string", "int64"),
    ("int64", "string"),
    ("int32", "float"),
    ("int64", "int64"),
    ("string", "string"),
    ("int32", "double"),
]


def table(op, k, v, **more):
    return dict(node(op, [], {"key_dtype": k, "value_dtype": v}), id="t", **more)


def variants(t):
    def tensors(length):
        lists = node("TensorListReserve", [ivec(2), iscalar(length)], {"element_dtype": "float"})
        return node("Reshape", [lists, ivec(1)])

    one = const(given("int32", [0], []))
    fallback = node("Reshape", [tensors(5), one])
    for asked in (3, 4):
        found = node("LookupTableFindV2", [use("t"), vec("int64", [asked]), fallback])
        t.row("variants_%d" % asked, "LookupTableInsertV2",
              [table("MutableHashTableV2", "int64", "variant"), vec("int64", [3]), tensors(2)],
              then=[node("TensorListLength", [node("Reshape", [found, one])])])


def from_file(t):
    def row(name, v2, k, v, lines, asked, key, value, **more):
        attrs = {"key_index": key, "value_index": value}
        for a in ("vocab_size", "delimiter", "offset"):
            if a in more:
                attrs[a] = more.pop(a)
        path = scalar("string", "/tmp/runnel_case_table.txt", const=True)
        text = scalar("string", lines, const=True)
        fallback = scalar(v, "none" if v == "string" else -1)
        t.row(
            name,
            "InitializeTableFromTextFile" + v2,
            [table("HashTable" + v2, k, v), path],
            attrs,
            before=[node("WriteFile", [path, text])],
            then=[node("LookupTableFind" + v2, [use("t"), vec(k, asked), fallback])],
            **more
        )

    for v2 in ("", "V2"):
        s = dict(delimiter=" ")
        abc = "a 1\nb 2\nc 3\n"
        row("line_number", v2, "string", "int64", abc, ["a 1", "c 3", "x"], -2, -1)
        row("number_line", v2, "int64", "string", abc, [0, 2, 9], -1, -2)
        row("columns", v2, "string", "int64", abc, ["a", "c"], 0, 1, **s)
        row("swapped", v2, "int64", "string", abc, [1, 3], 1, 0, **s)
        row("floats", v2, "string", "float", "a 1.5\nb 2e3", ["a", "b"], 0, 1, **s)
        row("int32", v2, "string", "int32", abc, ["a", "c"], 0, 1, **s)
        row("some", v2, "string", "int64", abc, ["a", "c"], 0, 1, vocab_size=2, **s)
        row("too_few", v2, "string", "int64", abc, ["a"], 0, 1, vocab_size=9, **s)
        row("offset", v2, "string", "int64", abc, ["a", "c"], 0, -1, offset=5, **s)
        row("empty", v2, "string", "int64", "", ["a"], -2, -1)
        row("repeated", v2, "string", "int64", "a\nb\nb\n", ["a"], -2, -1)
        row("not_int", v2, "string", "int64", "a x\nb y\n", ["a"], 0, 1, **s)
        row("few_columns", v2, "string", "int64", abc, ["a"], 0, 2, **s)
        row("delimiter", v2, "string", "int64", abc, ["a"], 0, 1, delimiter="  ")
        row("number_for_text", v2, "string", "string", abc, ["a"], 0, -1, **s)
        row("number_key_for_text", v2, "string", "string", abc, ["a"], -1, -2, **s)


def anonymous(t):
    """Adds tables that have no name: those that one step makes, fills and reads."""
    for k, v in PAIRS:
        name = "%s_%s" % (k, v)
        keys, values = vec(k, KEYS[k]), vec(v, VALUES[v])
        fallback = scalar(v, "none" if v == "string" else -1)
        t.row("unfilled_" + name, "LookupTableFindV2", [table("AnonymousHashTable", k, v), keys, fallback])
        if (k, v) == ("string", "string"):
            continue
        made = table("AnonymousMutableHashTable", k, v)
        filled = node("LookupTableInsertV2", [made, keys, values])
        t.row("anonymous_" + name, "LookupTableFindV2", [use("t"), keys, fallback], control=[filled])
        t.row("anonymous_unknown_" + name, "LookupTableFindV2", [made, keys, fallback])
    for op in ("AnonymousHashTable", "AnonymousMutableHashTable"):
        t.row("size", op, [], {"key_dtype": "int64", "value_dtype": "int64"}, undefined=[0])
        t.row("bad_types", op, [], {"key_dtype": "float", "value_dtype": "int64"}, message="code-only")
        t.row("anonymous", "LookupTableSizeV2", [table(op, "int64", "int64")])
    filled = node("InitializeTableV2", [table("AnonymousHashTable", "string", "int64"), vec("string", ["a", "b"]), vec("int64", [5, 6])])
    t.row("anonymous_fixed", "LookupTableFindV2", [use("t"), vec("string", ["b", "x"]), scalar("int64", -1)], control=[filled])
    t.row("narrow_keys", "AnonymousHashTable", [], {"key_dtype": "int32", "value_dtype": "int64"}, message="code-only")
    tensors = "AnonymousMutableHashTableOfTensors"
    attrs = {"key_dtype": "int64", "value_dtype": "float", "value_shape": [2]}
    t.row("made", tensors, [], attrs, undefined=[0])
    t.row("scalar", tensors, [], dict(attrs, value_shape=[]))
    made = dict(node(tensors, [], attrs), id="t")
    filled = node("LookupTableInsertV2", [made, vec("int64", [3, 4]), given("float", [2, 2], [1, 2, 3, 4])])
    t.row("anonymous_tensors", "LookupTableFindV2", [use("t"), vec("int64", [4, 9]), vec("float", [-1, -2])], control=[filled])
    dense = "AnonymousMutableDenseHashTable"
    attrs = {"key_dtype": "int64", "value_dtype": "float", "value_shape": [2], "initial_num_buckets": 4}
    reserved = [scalar("int64", -1), scalar("int64", -2)]
    t.row("made", dense, reserved, attrs, undefined=[0])
    t.row("buckets", dense, reserved, dict(attrs, initial_num_buckets=5))
    t.row("load", dense, reserved, dict(attrs, max_load_factor=1.5))
    t.row("same_keys", dense, [scalar("int64", -1), scalar("int64", -1)], attrs)
    t.row("shapes", dense, [scalar("int64", -1), vec("int64", [-2])], attrs)
    made = dict(node(dense, reserved, attrs), id="t")
    filled = node("LookupTableInsertV2", [made, vec("int64", [3, 4]), given("float", [2, 2], [1, 2, 3, 4])])
    t.row("anonymous_dense", "LookupTableFindV2", [use("t"), vec("int64", [4, 9]), vec("float", [-1, -2])], control=[filled])
    t.row("anonymous_dense", "LookupTableExportV2", [use("t")], {"Tkeys": "int64", "Tvalues": "float"}, control=[filled])
    t.row("first_version", "MutableDenseHashTable", reserved[:1], attrs, message="code-only")


def fill(t):
    from_file(t)
    anonymous(t)
    variants(t)
    for v2 in ("", "V2"):
        fixed, changing = "HashTable" + v2, "MutableHashTable" + v2
        find, size = "LookupTableFind" + v2, "LookupTableSize" + v2
        init, insert = "InitializeTable" + v2, "LookupTableInsert" + v2
        load, export = "LookupTableImport" + v2, "LookupTableExport" + v2
        many = lambda k, v: [node(size, [use("t")])]
        for k, v in PAIRS:
            name = "%s_%s" % (k, v)
            # Mutable tables do not support string keys with string values.
            lacks = {"message": "code-only"} if (k, v) == ("string", "string") else {}
            keys, values = vec(k, KEYS[k]), vec(v, VALUES[v])
            asked = given(k, [2, 2], KEYS[k][1:] + KEYS[k][:1] + KEYS[k][-1:])
            fallback = scalar(v, "none" if v == "string" else -1)
            unknown = given(k, [2], ["q", "a"] if k == "string" else [100, 1])
            look = [
                node(find, [use("t"), asked, fallback]),
                node(find, [use("t"), unknown, fallback]),
                node(size, [use("t")]),
            ]
            t.row(name, init, [table(fixed, k, v), keys, values], then=look)
            t.row(name, insert, [table(changing, k, v), keys, values], then=look, **lacks)
            t.row(name, load, [table(changing, k, v), keys, values], then=look, **lacks)
            t.row("not_filled_" + name, find, [table(fixed, k, v), unknown, fallback])
            t.row("new_" + name, find, [table(changing, k, v), unknown, fallback], **lacks)
            one = [use("t"), vec(k, KEYS[k][:1]), vec(v, VALUES[v][:1])]
            t.row("one_" + name, export, [table(changing, k, v)], then=[node(load, one), node(export, [use("t")])], **lacks)
        for op in (fixed, changing):
            t.row(
                "size",
                op,
                [],
                {"key_dtype": "int64", "value_dtype": "int64"},
                then=[node(size, [use("node")])],
                **({} if v2 else {"undefined": [0]})  # the handle's name contains a generated number
            )
            t.row("bad_types", op, [], {"key_dtype": "float", "value_dtype": "int64"}, message="code-only")
            t.row("size", size, [table(op, "int64", "int64")])
        ints = lambda *x: vec("int64", list(x))
        h, m = table(fixed, "int64", "int64"), table(changing, "int64", "int64")
        sees = [node(find, [use("t"), ints(1, 2, 3), scalar("int64", -1)]), node(size, [use("t")])]
        t.row("repeated_same", init, [h, ints(1, 1), ints(5, 5)], then=sees)
        t.row("repeated", init, [h, ints(1, 1), ints(5, 6)])
        t.row("counts", init, [h, ints(1, 2), ints(5)])
        t.row("nothing", init, [h, ints(), ints()])
        t.row("nothing", load, [h, ints(), ints()])
        t.row("nothing_mutable", load, [m, ints(), ints()], then=[node(size, [use("t")])])
        t.row("scalars", init, [h, scalar("int64", 1), scalar("int64", 5)])
        t.row("key_type", init, [h, vec("int32", [1]), ints(5)])
        t.row("value_type", init, [h, ints(1), vec("int32", [5])])
        t.row("mutable", init, [m, ints(1), ints(5)], message="code-only")
        t.row("fixed", insert, [h, ints(1), ints(5)], message="code-only")
        t.row("repeated", insert, [m, ints(1, 1, 2), ints(5, 6, 7)], then=sees)
        t.row("again", insert, [m, ints(1), ints(5)], then=[node(insert, [use("t"), ints(1, 3), ints(8, 9)])] + sees)
        t.row("matrix", insert, [m, given("int64", [2, 1], [1, 2]), given("int64", [2, 1], [5, 6])], then=sees)
        t.row("counts", insert, [m, ints(1, 2), ints(5)])
        t.row("key_type", insert, [m, vec("int32", [1]), ints(5)])
        t.row("value_type", insert, [m, ints(1), vec("int32", [5])])
        t.row("replaces", load, [m, ints(1), ints(5)], then=[node(load, [use("t"), ints(3), ints(9)])] + sees)
        if not v2:
            t.row("key_type", find, [m, vec("int32", [1]), scalar("int64", 5)])
        t.row("value_type", find, [m, ints(1), scalar("int32", 5)])
        t.row("default_vector", find, [m, ints(1, 2), ints(5)], message="code-only")
        t.row("default_each", find, [m, ints(1, 2), ints(5, 6)])
        t.row("empty", find, [m, given("int64", [0, 3], []), scalar("int64", 5)])
        t.row("scalar", find, [m, scalar("int64", 4), scalar("int64", 5)])
        t.row("not_filled", export, [h], {"Tkeys": "int64", "Tvalues": "int64"}, message="code-only")
    for r in t.rows:  # types that no input determines
        if r["op"].startswith("LookupTableExport") and "attrs" not in r:
            a = r["inputs"][0]["attrs"]
            r["attrs"] = {"Tkeys": a["key_dtype"], "Tvalues": a["value_dtype"]}
            for n in r.get("then", []):
                if n["op"].startswith("LookupTableExport"):
                    n["attrs"] = r["attrs"]
    m = table("MutableHashTableV2", "int64", "int64")
    ints = lambda *x: vec("int64", list(x))
    filled = [node("LookupTableInsertV2", [use("t"), ints(1, 2, 3), ints(5, 6, 7)])]
    sees = [
        node("LookupTableFindV2", [use("t"), ints(1, 2, 3), scalar("int64", -1)]),
        node("LookupTableSizeV2", [use("t")]),
    ]
    gone = [node("LookupTableRemoveV2", [use("t"), ints(2, 9, 2)])]
    t.row("", "LookupTableRemoveV2", [m, ints(1)], then=filled + gone + sees)
    t.row("key_type", "LookupTableRemoveV2", [m, vec("int32", [1])])
    h = table("HashTableV2", "int64", "int64")
    t.row("fixed", "LookupTableRemoveV2", [h, ints(1)], message="code-only")
