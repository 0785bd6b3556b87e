"""Mutable hash tables with tensor values, and dense hash tables, which have empty and deleted keys."""

from .base import *


def fill(t):
    k = lambda *v: vec("int64", list(v))
    io = {"Tin": "int64", "Tout": "float"}
    types = {"key_dtype": "int64", "value_dtype": "float", "shared_name": "t"}
    find = lambda h, keys, default, **a: node("LookupTableFindV2", [h, keys, default], dict(io, **a))
    insert = lambda h, keys, values: node("LookupTableInsertV2", [h, keys, values])
    size = lambda h: node("LookupTableSizeV2", [h])
    export = {"Tkeys": "int64", "Tvalues": "float"}
    dense = lambda shape=(2,), **a: node(
        "MutableDenseHashTableV2",
        [scalar("int64", -1), scalar("int64", -2)],
        dict(types, value_shape=list(shape), **a),
    )
    tensors = lambda shape=(2,), **a: node(
        "MutableHashTableOfTensorsV2", [], dict(types, value_shape=list(shape), **a)
    )
    t.row("made", "MutableDenseHashTableV2", [scalar("int64", -1), scalar("int64", -2)], types)
    t.row("made", "MutableHashTableOfTensorsV2", [], types)
    old = {"key_dtype": "int64", "value_dtype": "float"}
    t.row("made", "MutableHashTableOfTensors", [], old)
    for name, h in (("dense", dense()), ("tensors", tensors())):
        two = insert(h, k(3, 5), given("float", [2, 2], [1, 2, 3, 4]))
        op = "LookupTableFindV2"
        t.row(name, op, [h, k(5, 4, 3), vec("float", [8, 9])], io, before=[two])
        if name != "dense":  # stock's dense table accepts only vectors
            t.row(name + "_matrix", op, [h, given("int64", [1, 2], [3, 7]), vec("float", [8, 9])], io, before=[two])
        t.row(name + "_none", op, [h, k(), vec("float", [8, 9])], io, before=[two])
        t.row(name + "_empty", op, [h, k(1), vec("float", [8, 9])], io)
        t.row(name + "_default", op, [h, k(1), vec("float", [8, 9, 7])], io, message="code-only")
        again = insert(h, k(3), given("float", [1, 2], [7, 7]))
        t.row(name + "_again", op, [h, k(3, 5), vec("float", [0, 0])], io, before=[two, again], then=[size(h)])
        t.row(name, "LookupTableInsertV2", [h, k(1), given("float", [1, 2], [1, 2])], then=[size(h)])
        t.row(name + "_shape", "LookupTableInsertV2", [h, k(1), vec("float", [1])], message="code-only")
        t.row(name, "LookupTableSizeV2", [h], before=[two])
        one = insert(h, k(3), given("float", [1, 2], [1, 2]))
        if name != "dense":  # stock's dense table exports every bucket, used or not
            t.row(name, "LookupTableExportV2", [h], export, before=[one])
        t.row(
            name,
            "LookupTableRemoveV2",
            [h, k(3, 9)],
            before=[two],
            then=[size(h), find(h, k(3, 5), vec("float", [0, 0]))],
        )
        if name == "dense":  # stock's dense table checks the shapes of keys
            continue
        t.row(
            name,
            "LookupTableImportV2",
            [h, k(8), given("float", [1, 2], [6, 6])],
            before=[two],
            then=[size(h), find(h, k(3, 8), vec("float", [0, 0]))],
        )
    h = dense()
    t.row("empty_key", "LookupTableInsertV2", [h, k(-1), given("float", [1, 2], [1, 2])])
    t.row("deleted_key", "LookupTableInsertV2", [h, k(-2), given("float", [1, 2], [1, 2])])
    t.row("empty_key", "LookupTableFindV2", [h, k(-1), vec("float", [1, 2])], io)
    t.row("deleted_key", "LookupTableFindV2", [h, k(-2), vec("float", [1, 2])], io)
    made = "MutableDenseHashTableV2"
    keys = lambda a, b: [scalar("int64", a), scalar("int64", b)]
    t.row("same_keys", made, keys(1, 1), types)
    t.row("buckets", made, keys(1, 2), dict(types, initial_num_buckets=12))
    t.row("load", made, keys(1, 2), dict(types, max_load_factor=1.5))
    t.row("key_shapes", made, [scalar("int64", 1), k(1, 2)], types)
    # Other types of keys and values.
    for key in ("int32", "int64", "string"):
        for value in ("float", "double", "int32") + {"int32": (), "int64": ("int64",), "string": ("bool",)}[key]:
            a = {"key_dtype": key, "value_dtype": value, "value_shape": [2], "shared_name": "t"}
            three = vec(key, ["a", "bb", "c"] if key == "string" else [4, 5, 6])
            nothing = [scalar(key, "x" if key == "string" else 1), scalar(key, "y" if key == "string" else 2)]
            values = drawn(value, [3, 2])
            for name, h in (
                ("dense", node("MutableDenseHashTableV2", nothing, a)),
                ("tensors", node("MutableHashTableOfTensorsV2", [], a)),
            ):
                put = node("LookupTableInsertV2", [h, three, values])
                t.row(
                    "%s_%s_%s" % (name, key, value),
                    "LookupTableFindV2",
                    [h, three, drawn(value, [2])],
                    {"Tin": key, "Tout": value},
                    before=[put],
                )
    h = dense(shape=())
    t.row("scalars", "LookupTableFindV2", [h, k(4, 5), scalar("float", 3)], io, before=[insert(h, k(4), vec("float", [2]))])
    t.row("matrices", made, keys(1, 2), dict(types, value_shape=[2, 1]))
    t.row("matrices", "MutableHashTableOfTensorsV2", [], dict(types, value_shape=[2, 1]))
    fill_dense(t)


def fill_dense(t):
    """Adds exports of dense tables, which show the buckets: their order must be stock's."""

    def table(empty, deleted, value, buckets, **more):
        attrs = {"key_dtype": empty["dtype"], "value_dtype": value, "shared_name": "t", "initial_num_buckets": buckets}
        return node("MutableDenseHashTableV2", [empty, deleted], dict(attrs, **more))

    put = lambda h, keys, values: node("LookupTableInsertV2", [h, keys, values])
    remove = lambda h, keys: node("LookupTableRemoveV2", [h, keys])
    k = lambda *v: vec("int64", list(v))

    def export(name, h, key, value, before):
        t.row(name, "LookupTableExportV2", [h], {"Tkeys": key, "Tvalues": value}, before=before)

    h = table(scalar("int64", 0), scalar("int64", -1), "int64", 8)
    three = put(h, k(1, 9, 17), k(1, 2, 3))  # three keys of the same bucket
    export("dense", h, "int64", "int64", [three])
    export("dense_removed", h, "int64", "int64", [three, remove(h, k(9))])
    export("dense_taken_again", h, "int64", "int64", [three, remove(h, k(9)), put(h, k(25), k(4)), put(h, k(17), k(5))])
    export("dense_none", h, "int64", "int64", [])
    h = table(scalar("int64", 0), scalar("int64", -1), "float", 4)
    many = put(h, k(*range(1, 14)), vec("float", list(range(13))))
    export("dense_grown", h, "int64", "float", [many, remove(h, k(5))])
    h = table(k(0, 0), k(-1, -1), "float", 16, value_shape=[2])
    pairs = put(h, given("int64", [4, 2], [1, 2, 3, 4, -7, 8, 100, 1]), given("float", [4, 2], list(range(1, 9))))
    export("dense_vectors", h, "int64", "float", [pairs])
    t.row("dense_deleted", "LookupTableRemoveV2", [h, given("int64", [1, 2], [-1, -1])], {"Tin": "int64"}, before=[pairs])
    texts = table(vec("string", ["", ""]), vec("string", ["#", "#"]), "int64", 16)
    words = given("string", [3, 2], ["a", "b", "c", "d", "hello", "world"])
    export("dense_texts", texts, "string", "int64", [put(texts, words, k(1, 2, 3))])
    small = table(scalar("int32", 0), scalar("int32", -1), "float", 8)
    export("dense_int32", small, "int32", "float", [put(small, vec("int32", [-2, -3, 11]), vec("float", [1, 2, 3]))])
    for name, keys in (("vectors", given("int64", [2, 2], [3, 4, 5, 6])), ("suffix", k(3, 4, 5)), ("vector", k(3, 4))):
        both = [h, keys, vec("float", [-1, -2])]
        t.row("dense_" + name, "LookupTableFindV2", both, {"Tin": "int64", "Tout": "float"}, before=[pairs])
