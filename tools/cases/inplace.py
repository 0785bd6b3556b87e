"""Ops that return their input with some rows or slices changed; hashes of rows; shuffled indices."""

from .base import *


def rows(t):
    for op, kinds in (("InplaceUpdate", "F I U C b s"), ("InplaceAdd", "F I U C"), ("InplaceSub", "F I U C")):
        for d in dtypes(kinds):
            t.row(d, op, [drawn(d, [4, 3]), vec("int32", [2, 0]), drawn(d, [2, 3])])
        x, v = drawn("float", [4, 3]), drawn("float", [2, 3])
        t.row("again", op, [x, vec("int32", [1, 1]), v])
        t.row("wraps", op, [x, vec("int32", [-1, 6]), v])
        t.row("vector", op, [drawn("float", [4]), vec("int32", [3]), drawn("float", [1])])
        t.row("nothing", op, [x, vec("int32", []), drawn("float", [0, 3])])
        t.row("empty", op, [drawn("float", [0, 3]), vec("int32", [1]), drawn("float", [1, 3])])
        t.row("scalar_index", op, [x, scalar("int32", 1), v])
        t.row("rank", op, [x, vec("int32", [1]), drawn("float", [3])])
        t.row("width", op, [x, vec("int32", [1]), drawn("float", [1, 2])])
        t.row("count", op, [x, vec("int32", [1, 2]), drawn("float", [1, 3])])
        t.row("type", op, [drawn("qint8", [2]), vec("int32", [1]), drawn("qint8", [1])])
    t.row("bool", "InplaceAdd", [drawn("bool", [2]), vec("int32", [1]), drawn("bool", [1])])
    t.row("string", "InplaceSub", [drawn("string", [2]), vec("int32", [1]), drawn("string", [1])])
    t.row("kept", "Sub", [node("InplaceAdd", [dict(node("Neg", [drawn("float", [3])]), id="x"), vec("int32", [1]),
                                              drawn("float", [1])]), drawn("float", [3])])


def slices(t):
    op = "TensorStridedSliceUpdate"

    def at(begin, end, strides, d="int32"):
        return [const(vec(d, begin)), const(vec(d, end)), const(vec(d, strides))]

    for d in dtypes("F I U C b s"):
        t.row(d, op, [drawn(d, [5, 3])] + at([1], [4], [2]) + [drawn(d, [2, 3])])
    x = drawn("double", [5, 4])
    for d in ("int32", "int64"):
        t.row("index_" + d, op, [x] + at([0, 1], [5, 3], [1, 1], d) + [drawn("double", [5, 2])])
    t.row("broadcast", op, [x] + at([1, 0], [4, 4], [1, 2]) + [drawn("double", [2])])
    t.row("scalar", op, [x] + at([1], [3], [1]) + [drawn("double", [])])
    t.row("backwards", op, [x] + at([3], [0], [-1]) + [drawn("double", [3, 4])])
    t.row("shrink", op, [x] + at([2], [3], [1]) + [drawn("double", [4])], {"shrink_axis_mask": 1})
    t.row("new_axis", op, [x] + at([0, 1], [0, 3], [1, 1]) + [drawn("double", [1, 2, 4])], {"new_axis_mask": 1})
    t.row("masks", op, [x] + at([1, 1], [3, 3], [1, 1]) + [drawn("double", [3, 3])], {"begin_mask": 1, "end_mask": 2})
    t.row("ellipsis", op, [x] + at([0, 1], [0, 3], [1, 1]) + [drawn("double", [5, 2])], {"ellipsis_mask": 1})
    t.row("nothing", op, [x] + at([3], [3], [1]) + [drawn("double", [0, 4])])
    t.row("fed", op, [x, vec("int32", [1]), vec("int32", [3]), vec("int32", [1]), drawn("double", [2, 4])])
    t.row("too_large", op, [x] + at([1], [3], [1]) + [drawn("double", [3, 4])])
    t.row("quantized", op, [drawn("qint8", [5])] + at([1], [3], [1]) + [drawn("qint8", [2])])
    t.row("zero_stride", op, [x] + at([1], [3], [0]) + [drawn("double", [2, 4])])
    t.row("grad", op, [x] + at([1], [4], [2]) + [drawn("double", [2, 4])], grad=True)
    t.row("grad_broadcast", op, [x] + at([1, 0], [4, 4], [1, 2]) + [drawn("double", [2])], grad=True)
    t.row("grad_shrink", op, [x] + at([2], [3], [1]) + [drawn("double", [4])], {"shrink_axis_mask": 1}, grad=True)
    t.row("grad_fed", op, [x, vec("int32", [1]), vec("int32", [3]), vec("int32", [1]), drawn("double", [1, 4])], grad=True)


def scatters(t):
    for op in ("ScatterNdMax", "ScatterNdMin"):
        for d in dtypes("F I U"):
            at = given("int32", [3, 1], [2, 0, 2])
            t.row(d, op, [ref(drawn(d, [4, 2])), at, drawn(d, [3, 2])])
            t.row(d, "Resource" + op, [resource(drawn(d, [4, 2])), at, drawn(d, [3, 2])])
        at = given("int64", [2, 2], [2, 0, 1, 1])
        t.row("elements", op, [ref(drawn("float", [4, 2])), at, drawn("float", [2])])
        t.row("index", op, [ref(drawn("float", [4])), given("int32", [1, 1], [9]), drawn("float", [1])], message="code-only")
        t.row("ignored", op, [ref(drawn("float", [4])), given("int32", [2, 1], [9, 1]), drawn("float", [2])],
              {"bad_indices_policy": "IGNORE"})
        t.row("shape", op, [ref(drawn("float", [4])), given("int32", [1, 1], [1]), drawn("float", [2])], message="code-only")
        t.row("elements", "Resource" + op, [resource(drawn("float", [4, 2])), at, drawn("float", [2])])
        t.row("index", "Resource" + op, [resource(drawn("float", [4])), given("int32", [1, 1], [9]), drawn("float", [1])],
              message="code-only")


def hashes(t):
    op, how = "Fingerprint", const(scalar("string", "farmhash64"))
    for d in dtypes("F I U C b s qint8 quint8 qint32 qint16 quint16"):
        t.row(d, op, [drawn(d, [3]), how])
        t.row("rows_" + d, op, [drawn(d, [2, 2, 3]), how])
    t.row("none", op, [drawn("float", [0, 3]), how])
    t.row("no_cells", op, [drawn("float", [2, 0]), how])
    t.row("no_strings", op, [drawn("string", [2, 0]), how], undefined=[0])  # stock leaves it unset
    t.row("long", op, [drawn("uint8", [2, 300]), how])
    t.row("fed", op, [drawn("float", [2]), scalar("string", "farmhash64")])
    t.row("method", op, [drawn("float", [2]), const(scalar("string", "md5"))])
    t.row("fed_method", op, [drawn("float", [2]), scalar("string", "md5")])
    t.row("methods", op, [drawn("float", [2]), vec("string", ["farmhash64"])])
    t.row("scalar", op, [drawn("float", []), how])


def shuffles(t):
    op = "RandomIndexShuffle"
    seed = vec("int32", [12, 34, 56])
    for d in ("int32", "uint32", "int64", "uint64"):
        t.row(d, op, [vec(d, list(range(9))), seed, scalar(d, 8)])
        t.row("scalar_" + d, op, [scalar(d, 5), seed, scalar(d, 99)])
        t.row("seed_" + d, op, [scalar("int64", 5), vec(d, [3, 2, 1]), scalar("int64", 1000)])
        t.row("rows_" + d, op, [vec("int32", [1, 2]), given(d, [2, 3], [1, 2, 3, 4, 5, 6]), vec("int32", [5, 7])])
    for bits in (16, 17, 20, 30, 31, 33, 40, 52, 61, 62):
        most = (1 << bits) + 1
        t.row("bits_%d" % bits, op, [vec("int64", [0, 1, most // 2, most - 3]), vec("int64", [-1, 7, 1 << 40]), scalar("int64", most)])
    for rounds in (4, 6, 8, 24):
        t.row("rounds_%d" % rounds, op, [vec("int64", [0, 1, 2, 3]), seed, scalar("int64", 3)], {"rounds": rounds})
    t.row("zero", op, [vec("int64", [0, 0]), seed, scalar("int64", 0)])
    t.row("seeds", op, [scalar("int64", 3), given("int32", [2, 3], [1, 2, 3, 4, 5, 6]), scalar("int64", 30)])
    t.row("limits", op, [scalar("int64", 3), seed, vec("int64", [30, 31, 70000])])
    t.row("nothing", op, [vec("int64", []), seed, scalar("int64", 30)], message="code-only")
    t.row("negative", op, [scalar("int64", 3), seed, scalar("int64", -1)])
    t.row("negative_index", op, [vec("int32", [1, -7]), seed, scalar("int32", 30)])
    t.row("negative_both", op, [scalar("int64", -1), seed, scalar("int64", -1)])
    t.row("beyond", op, [vec("int64", [1, 7]), seed, vec("int64", [4, 5])])
    t.row("seed_size", op, [scalar("int64", 3), vec("int32", [1, 2]), scalar("int64", 30)])
    t.row("seed_rows", op, [vec("int64", [3, 4]), given("int32", [3, 3], 1), scalar("int64", 30)])
    t.row("matrix", op, [given("int64", [1, 1], [1]), seed, scalar("int64", 30)])
    t.row("limit_count", op, [vec("int64", [3, 4]), seed, vec("int64", [30, 31, 32])])


def fill(t):
    rows(t)
    slices(t)
    scatters(t)
    hashes(t)
    shuffles(t)
    for d in dtypes("F I U C b"):
        t.row(d, "DebugGradientIdentity", [drawn(d, [3])])
    t.row("grad", "DebugGradientIdentity", [drawn("double", [3])], grad=True)
    t.row("float", "DebugGradientRefIdentity", [ref(drawn("float", [3]))])
