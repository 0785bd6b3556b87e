"""Ragged tensors: conversion, gathering, ranges, crosses, variants, filled rows."""

from .base import *

PLAIN = "F I U C b s qint8 quint8 qint16 quint16 qint32"


def splits(*values, d="int64"):
    return vec(d, list(values))


def to_sparse(t):
    for d in dtypes(PLAIN):
        t.row(d, "RaggedTensorToSparse", [[splits(0, 2, 2, 5)], drawn(d, [5])])
    for d in ("int32", "int64"):
        two = [splits(0, 2, 2, 3, d=d), splits(0, 1, 4, 4, d=d)]
        t.row("two_" + d, "RaggedTensorToSparse", [two, drawn("float", [4])])
        t.row("cells_" + d, "RaggedTensorToSparse", [two, drawn("float", [4, 2, 3])])
    t.row("three", "RaggedTensorToSparse",
          [[splits(0, 1, 3), splits(0, 0, 2, 3), splits(0, 2, 2, 5)], drawn("double", [5])])
    t.row("no_rows", "RaggedTensorToSparse", [[splits(0)], drawn("float", [0])])
    t.row("empty_rows", "RaggedTensorToSparse", [[splits(0, 0, 0)], drawn("float", [0, 3])])
    t.row("empty_cells", "RaggedTensorToSparse", [[splits(0, 1, 3)], drawn("float", [3, 0])])
    t.row("no_splits", "RaggedTensorToSparse", [[splits()], drawn("float", [0])])
    t.row("not_zero", "RaggedTensorToSparse", [[splits(1, 3)], drawn("float", [3])])
    t.row("falls", "RaggedTensorToSparse", [[splits(0, 3, 2)], drawn("float", [2])])
    t.row("negative", "RaggedTensorToSparse", [[splits(0, -1)], drawn("float", [2])])
    t.row("too_long", "RaggedTensorToSparse", [[splits(0, 2, 9)], drawn("float", [5])])
    t.row("inner_too_long", "RaggedTensorToSparse", [[splits(0, 2), splits(0, 1, 2, 3)], drawn("float", [3])])
    t.row("scalar", "RaggedTensorToSparse", [[splits(0, 1)], drawn("float", [])])
    t.row("matrix_splits", "RaggedTensorToSparse", [[given("int64", [1, 2], [0, 1])], drawn("float", [1])])
    t.row("grad", "RaggedTensorToSparse", [[splits(0, 2, 2, 3)], drawn("double", [3, 2])], grad=True)


def gather(t):
    two = [splits(0, 2, 2, 3), splits(0, 1, 4, 4)]
    for d in dtypes(PLAIN):
        t.row(d, "RaggedGather", [[splits(0, 2, 2, 5)], drawn(d, [5]), vec("int32", [2, 0, 2])],
              {"OUTPUT_RAGGED_RANK": 1})
    for d in ("int32", "int64"):
        s = [splits(0, 2, 2, 3, d=d), splits(0, 1, 4, 4, d=d)]
        for rank, indices in ((1, scalar(d, 0)), (2, vec(d, [2, 0, 1])), (3, given(d, [2, 2], [0, 1, 2, 0])),
                              (4, given(d, [2, 1, 2], [0, 1, 2, 0]))):
            t.row("rank%d_%s" % (rank, d), "RaggedGather", [s, drawn("float", [4, 2]), indices],
                  {"OUTPUT_RAGGED_RANK": rank})
    t.row("scalar", "RaggedGather", [[splits(0, 2, 5)], drawn("float", [5]), scalar("int32", 1)],
          {"OUTPUT_RAGGED_RANK": 0})
    t.row("none", "RaggedGather", [two, drawn("float", [4]), vec("int32", [])], {"OUTPUT_RAGGED_RANK": 2})
    t.row("no_cells", "RaggedGather", [[splits(0, 2, 5)], drawn("float", [5, 0]), vec("int32", [1, 0])],
          {"OUTPUT_RAGGED_RANK": 1})
    t.row("some_values", "RaggedGather", [[splits(1, 2, 3)], drawn("float", [5]), vec("int32", [1, 0])],
          {"OUTPUT_RAGGED_RANK": 1})
    bad = {"OUTPUT_RAGGED_RANK": 1}
    x = drawn("float", [5])
    t.row("index", "RaggedGather", [[splits(0, 2, 5)], x, vec("int32", [0, 2])], bad)
    t.row("negative", "RaggedGather", [[splits(0, 2, 5)], x, vec("int64", [-1])], bad)
    t.row("index_matrix", "RaggedGather", [[splits(0, 2, 5)], x, given("int32", [2, 1], [0, 7])],
          {"OUTPUT_RAGGED_RANK": 2})
    t.row("falls", "RaggedGather", [[splits(0, 4, 2)], x, vec("int32", [0])], bad)
    t.row("past", "RaggedGather", [[splits(0, 9)], x, vec("int32", [0])], bad)
    t.row("negative_split", "RaggedGather", [[splits(-1, 3)], x, vec("int32", [0])], bad)
    t.row("no_splits", "RaggedGather", [[splits()], x, vec("int32", [])], bad)
    t.row("rank", "RaggedGather", [[splits(0, 2, 5)], x, vec("int32", [0])], {"OUTPUT_RAGGED_RANK": 2})
    t.row("scalar_values", "RaggedGather", [[splits(0, 1)], drawn("float", []), vec("int32", [0])], bad)
    t.row("grad", "RaggedGather", [two, drawn("double", [4, 2]), vec("int32", [2, 0, 2])],
          {"OUTPUT_RAGGED_RANK": 2}, grad=True)
    t.row("grad_one", "RaggedGather", [[splits(0, 2, 2, 5)], drawn("double", [5]), vec("int64", [2, 0, 2])],
          {"OUTPUT_RAGGED_RANK": 1}, grad=True)


def ranges(t):
    for d in ("float", "double", "int32", "int64"):
        for s in ("int32", "int64"):
            t.row("%s_%s" % (d, s), "RaggedRange",
                  [vec(d, [0, 5, 8, 3]), vec(d, [3, 9, 2, 3]), vec(d, [1, 2, -3, 1])], {"Tsplits": s})
        t.row("scalars_" + d, "RaggedRange", [scalar(d, 1), scalar(d, 9), scalar(d, 3)])
        t.row("mixed_" + d, "RaggedRange", [scalar(d, 0), vec(d, [3, 5, -2]), scalar(d, 1)])
        t.row("down_" + d, "RaggedRange", [vec(d, [5, 0]), scalar(d, 0), scalar(d, -2)])
        t.row("zero_" + d, "RaggedRange", [vec(d, [5, 0]), scalar(d, 0), scalar(d, 0)])
        t.row("none_" + d, "RaggedRange", [vec(d, []), scalar(d, 0), scalar(d, 1)])
    t.row("fractions", "RaggedRange", [vec("float", [0, 0.5]), scalar("float", 2), scalar("float", 0.3)])
    t.row("default", "RaggedRange", [scalar("float", 0), scalar("float", 2), scalar("float", 1e-30)], message="code-only")
    t.row("nan", "RaggedRange", [scalar("float", NAN), scalar("float", 2), scalar("float", 1)], message="code-only")
    t.row("lengths", "RaggedRange", [vec("int32", [1, 2]), vec("int32", [3]), scalar("int32", 1)])
    t.row("matrix", "RaggedRange", [given("int32", [1, 1], [0]), scalar("int32", 3), scalar("int32", 1)])
    t.row("bfloat16", "RaggedRange", [scalar("bfloat16", 1), scalar("bfloat16", 9), scalar("bfloat16", 3)],
          message="code-only")


def cross(t):
    def row(name, order, ragged=(), sparse=(), dense=(), out="string", s="int64", **more):
        attrs = {"input_order": order, "hashed_output": out == "int64", "num_buckets": more.pop("buckets", 0),
                 "hash_key": more.pop("key", 956888297470), "out_values_type": out, "out_row_splits_type": s,
                 "Nsparse": len(sparse)}
        inputs = [[r[0] for r in ragged], [r[1] for r in ragged], [x[0] for x in sparse], [x[1] for x in sparse],
                  [x[2] for x in sparse], list(dense)]
        attrs["ragged_values_types"] = [r[0]["dtype"] for r in ragged]
        attrs["ragged_splits_types"] = [r[1]["dtype"] for r in ragged]
        attrs["sparse_values_types"] = [x[1]["dtype"] for x in sparse]
        attrs["dense_types"] = [x["dtype"] for x in dense]
        t.row(name, "RaggedCross", inputs, attrs, **more)

    def words(s="int64"):
        return vec("string", ["a", "b", "c", "d"]), splits(0, 2, 2, 4, d=s)

    def numbers(s="int64"):
        return vec("int64", [7, 8, -9, 10, 11]), splits(0, 1, 3, 5, d=s)

    points = (given("int64", [4, 2], [0, 0, 0, 1, 1, 0, 2, 3]), vec("string", ["s", "t", "u", "v"]), vec("int64", [3, 4]))
    table = given("string", [3, 2], ["p", "q", "r", "x", "y", "z"])
    table2 = given("int64", [3, 1], [1, 2, 3])
    for out in ("string", "int64"):
        for s in ("int32", "int64"):
            n = "%s_%s" % (out, s)
            row("ragged_" + n, "RR", [words(s), numbers(s)], out=out, s=s)
            row("mixed_" + n, "RSDR", [words(s), numbers(s)], [points], [table], out=out, s=s)
        row("dense_" + out, "DD", dense=[table, table2], out=out)
        row("sparse_" + out, "S", sparse=[points], out=out)
    row("buckets", "RD", [numbers()], dense=[table], out="int64", buckets=100)
    row("key", "R", [words()], out="int64", key=-1)
    row("none", "", out="string")
    row("order", "RRR", [words(), numbers()])
    row("letters", "RX", [words(), numbers()])
    row("too_many", "RR", [words()], dense=[table])
    row("rows", "RD", [words()], dense=[given("string", [2, 1], ["a", "b"])])
    row("sparse_rows", "RS", [words()], [(points[0], points[1], vec("int64", [9, 4]))])
    row("sparse_rank", "S", sparse=[(given("int64", [1, 3], [0, 0, 0]), vec("string", ["a"]), vec("int64", [1, 1, 1]))])
    row("ragged_rank", "R", [(given("string", [1, 1], ["a"]), splits(0, 1))])
    row("dense_rank", "D", dense=[vec("string", ["a"])])
    row("bad_splits", "R", [(vec("string", ["a"]), splits(0, 5))])
    row("falling_splits", "R", [(vec("string", ["a"]), splits(0, 1, 0))])
    row("first_split", "R", [(vec("string", ["a"]), splits(1, 1))])


def fill_rows(t):
    fill = "RaggedFillEmptyRows"
    for d in dtypes("F I U C b s"):
        t.row(d, fill, [vec("int64", [0, 0, 2, 4]), drawn(d, [4]), scalar("int64", 6), drawn(d, [])])
    ids, x, y = vec("int64", [0, 1, 1]), drawn("float", [3]), scalar("float", -1)
    t.row("full", fill, [ids, x, scalar("int64", 2), y])
    t.row("unordered", fill, [vec("int64", [3, 0, 3]), x, scalar("int64", 5), y])
    t.row("known_rows", fill, [ids, x, const(scalar("int64", 4)), y])
    t.row("no_values", fill, [vec("int64", []), drawn("float", [0]), scalar("int64", 2), y])
    t.row("nothing", fill, [vec("int64", []), drawn("float", [0]), scalar("int64", 0), y])
    t.row("no_rows", fill, [ids, x, scalar("int64", 0), y])
    t.row("row", fill, [vec("int64", [0, 1, 7]), x, scalar("int64", 3), y])
    t.row("negative_row", fill, [vec("int64", [0, 1, -7]), x, scalar("int64", 3), y])
    t.row("negative_rows", fill, [vec("int64", []), drawn("float", [0]), scalar("int64", -3), y], message="code-only")
    t.row("lengths", fill, [vec("int64", [0, 1]), x, scalar("int64", 3), y])
    t.row("vector_rows", fill, [ids, x, vec("int64", [3]), y])
    t.row("matrix", fill, [given("int64", [3, 1], [0, 1, 1]), x, scalar("int64", 3), y])
    t.row("vector_default", fill, [ids, x, scalar("int64", 3), vec("float", [1])])
    t.row("grad", fill, [vec("int64", [0, 0, 2, 4]), drawn("double", [4]), scalar("int64", 6), drawn("double", [])],
          grad=True)
    for d in dtypes("F I U C"):
        t.row(d, fill + "Grad", [vec("int64", [0, 1, 3]), drawn(d, [5])])
    t.row("index", fill + "Grad", [vec("int64", [0, 9]), drawn("float", [5])])
    t.row("negative", fill + "Grad", [vec("int64", [-1]), drawn("float", [5])])
    t.row("matrix", fill + "Grad", [given("int64", [1, 1], [0]), drawn("float", [5])])


def variants(t):
    to, back = "RaggedTensorToVariant", "RaggedTensorFromVariant"

    def encode(rank, x, batched, *s, **more):
        return node(to, [list(s), x], {"batched_input": batched, "RAGGED_RANK": rank, "Tsplits": "int64"}, **more)

    def both(name, s, x, batched, inner, outer, kind="int64", **more):
        attrs = {"input_ragged_rank": inner, "output_ragged_rank": outer, "Tvalues": x["dtype"], "Tsplits": kind}
        made = node(to, [s, x], {"batched_input": batched, "RAGGED_RANK": len(s), "Tsplits": kind})
        t.row(name, back, [made], attrs, **more)

    for d in dtypes(PLAIN):
        both(d, [splits(0, 2, 2, 5)], drawn(d, [5]), True, 0, 1)
    for s in ("int32", "int64"):
        two = [splits(0, 2, 2, 3, d=s), splits(0, 1, 4, 4, d=s)]
        both("two_" + s, two, drawn("float", [4, 2]), True, 1, 2, s)
        both("whole_" + s, two, drawn("float", [4, 2]), False, 2, 2, s)
        both("inferred_" + s, two, drawn("float", [4, 2]), True, -1, 2, s)
    both("dense", [], drawn("float", [3, 2]), False, 0, 0)
    both("no_rows", [splits(0)], drawn("float", [0]), True, 0, 1)
    both("scalar_values", [], drawn("float", []), False, 0, 0)
    both("batched_dense", [], drawn("float", [3, 2]), True, 0, 1)
    both("batched_vector", [], drawn("float", [3]), True, 0, 1, message="code-only")
    both("rank_differs", [splits(0, 2)], drawn("float", [2]), False, 0, 1, message="code-only")
    both("input_rank", [splits(0, 2)], drawn("float", [2]), True, 1, 2, message="code-only")
    attrs = {"batched_input": True, "RAGGED_RANK": 1, "Tsplits": "int64"}
    t.row("falls", to, [[splits(0, 2, 1)], drawn("float", [1])], attrs)
    t.row("past", to, [[splits(0, 9)], drawn("float", [1])], attrs)
    t.row("short", to, [[splits(0, 1)], drawn("float", [4])], attrs)
    t.row("first", to, [[splits(1, 2)], drawn("float", [2])], attrs)
    t.row("first_whole", to, [[splits(1, 2)], drawn("float", [2])], dict(attrs, batched_input=False))
    t.row("no_splits", to, [[splits()], drawn("float", [0])], attrs)
    one = encode(1, drawn("float", [4]), True, splits(0, 1, 4))
    t.row("type", back, [one], {"input_ragged_rank": 0, "output_ragged_rank": 1, "Tvalues": "double"})
    t.row("splits_type", back, [encode(1, drawn("float", [4]), False, splits(0, 1, 4))],
          {"input_ragged_rank": 1, "output_ragged_rank": 1, "Tvalues": "float", "Tsplits": "int32"})
    t.row("ragged_rank", back, [encode(1, drawn("float", [4]), False, splits(0, 1, 4))],
          {"input_ragged_rank": 2, "output_ragged_rank": 2, "Tvalues": "float"})
    t.row("negative_rank", back, [node("Reshape", [one, ivec(1, 2)])],
          {"input_ragged_rank": -1, "output_ragged_rank": 1, "Tvalues": "float"})
    t.row("matrix", back, [node("Reshape", [one, ivec(1, 2)])],
          {"input_ragged_rank": 0, "output_ragged_rank": 2, "Tvalues": "float"})
    for name, a, b in (("rows_differ", [4, 4, 2], [1, 4, 3]), ("ranks_differ", [4, 4], [1])):
        pair = node("Pack", [[encode(1, drawn("float", x), False, splits(0, x[0])) for x in (a, b)]])
        t.row(name, back, [pair], {"input_ragged_rank": 1, "output_ragged_rank": 2, "Tvalues": "float"})
    lists = node("EmptyTensorList", [iscalar(-1), iscalar(-1)], {"element_dtype": "float"})
    t.row("list", back, [lists], {"input_ragged_rank": 0, "output_ragged_rank": 0, "Tvalues": "float"}, message="code-only")
    # Values, through variants and back.
    t.row("grad", back, [encode(1, drawn("double", [4, 2]), True, splits(0, 1, 4))],
          {"input_ragged_rank": 0, "output_ragged_rank": 1, "Tvalues": "double"}, grad=True)
    t.row("grad_whole", back, [encode(1, drawn("double", [4]), False, splits(0, 1, 4))],
          {"input_ragged_rank": 1, "output_ragged_rank": 1, "Tvalues": "double"}, grad=True)
    def total(name, a, b, d="double", **more):
        t.row(name, back, [node("AddN", [[a, b]])], {"input_ragged_rank": 1, "output_ragged_rank": 1, "Tvalues": d}, **more)

    for d in ("int32", "half", "double", "complex64"):
        total("sum_" + d, encode(1, drawn(d, [4]), False, splits(0, 1, 4)),
              encode(1, drawn(d, [4]), False, splits(0, 1, 4)), d)
    first = encode(1, drawn("double", [4]), False, splits(0, 1, 4))
    total("sum_types", first, encode(1, drawn("float", [4]), False, splits(0, 1, 4)))
    total("sum_splits", first, encode(1, drawn("double", [4]), False, splits(0, 2, 4)))
    total("sum_ranks", first, encode(0, drawn("double", [4]), False))
    total("sum_list", first, node("EmptyTensorList", [iscalar(-1), iscalar(-1)], {"element_dtype": "float"}),
          message="code-only")
    t.row("zeros", back, [node("ZerosLike", [encode(1, drawn("float", [4]), False, splits(0, 1, 4))])],
          {"input_ragged_rank": 1, "output_ragged_rank": 1, "Tvalues": "float"})
    gradient = "RaggedTensorToVariantGradient"
    for d in dtypes(PLAIN):
        t.row(d, gradient, [encode(1, drawn(d, [4]), True, splits(0, 1, 4)), splits(0, 1, 4), ivec(4)], {"Tvalues": d})
    t.row("one", gradient, [encode(1, drawn("float", [4]), False, splits(0, 1, 4)), splits(0, 1, 4), ivec(4)],
          {"Tvalues": "float"})
    t.row("falls", gradient, [one, splits(0, 4, 1), ivec(4)], {"Tvalues": "float"})


def fill(t):
    to_sparse(t)
    gather(t)
    ranges(t)
    cross(t)
    fill_rows(t)
    variants(t)
