"""Invalid sparse tensors for every op that takes one: each op has its own error messages."""

from .base import *

INDICES = given("int64", [3, 2], [0, 1, 1, 3, 2, 0])
SIZES = vec("int64", [3, 4])


def misfits(d="float"):
    """Returns (name, indices, values, sizes) of sparse tensors that are invalid in one way each."""
    of = lambda n: drawn(d, [n], 1, 9)
    at = lambda *numbers: given("int64", [len(numbers) // 2, 2], list(numbers))
    return (
        ("indices_vector", vec("int64", [0, 1, 2]), of(3), SIZES),
        ("values_matrix", INDICES, drawn(d, [3, 1], 1, 9), SIZES),
        ("sizes_matrix", INDICES, of(3), given("int64", [1, 2], [3, 4])),
        ("fewer_values", INDICES, of(2), SIZES),
        ("more_values", INDICES, of(4), SIZES),
        ("fewer_sizes", INDICES, of(3), vec("int64", [3])),
        ("more_sizes", INDICES, of(3), vec("int64", [3, 4, 5])),
        ("negative_size", INDICES, of(3), vec("int64", [-3, 4])),
        ("negative_last", INDICES, of(3), vec("int64", [3, -4])),
        ("overflow", INDICES, of(3), vec("int64", [1 << 62, 1 << 62])),
        ("row_high", at(0, 1, 1, 3, 3, 0), of(3), SIZES),
        ("column_high", at(0, 1, 1, 4, 2, 0), of(3), SIZES),
        ("row_negative", at(-1, 1, 1, 3, 2, 0), of(3), SIZES),
        ("column_negative", at(0, -1, 1, 3, 2, 0), of(3), SIZES),
        ("unsorted", at(0, 1, 2, 0, 1, 3), of(3), SIZES),
        ("twice", at(0, 1, 1, 3, 1, 3), of(3), SIZES),
    )


def fill(t):
    f = "float"
    dense = drawn(f, [3, 4], 1, 9)
    good = [INDICES, drawn(f, [3], 1, 9), SIZES]
    ops = (
        ("SparseReorder", lambda i, v, s: [i, v, s], {}),
        ("SparseReshape", lambda i, v, s: [i, s, vec("int64", [4, 3])], {}),
        ("SparseSlice", lambda i, v, s: [i, v, s, vec("int64", [0, 1]), vec("int64", [2, 3])], {}),
        ("SparseSplit", lambda i, v, s: [scalar("int64", 0), i, v, s], {"num_split": 2}),
        ("SparseConcat", lambda i, v, s: [[INDICES, i], [good[1], v], [SIZES, s]], {"concat_dim": 0}),
        ("SparseFillEmptyRows", lambda i, v, s: [i, v, s, scalar(f, 0)], {}),
        ("SparseTensorDenseAdd", lambda i, v, s: [i, v, s, dense], {}),
        ("SparseDenseCwiseAdd", lambda i, v, s: [i, v, s, dense], {}),
        ("SparseDenseCwiseMul", lambda i, v, s: [i, v, s, dense], {}),
        ("SparseDenseCwiseDiv", lambda i, v, s: [i, v, s, dense], {}),
        ("SparseTensorDenseMatMul", lambda i, v, s: [i, v, s, drawn(f, [4, 2])], {}),
        ("SparseReduceSum", lambda i, v, s: [i, v, s, vec("int32", [1])], {}),
        ("SparseReduceMax", lambda i, v, s: [i, v, s, vec("int32", [1])], {}),
        ("SparseReduceSumSparse", lambda i, v, s: [i, v, s, vec("int32", [1])], {}),
        ("SparseReduceMaxSparse", lambda i, v, s: [i, v, s, vec("int32", [1])], {}),
        ("SparseSoftmax", lambda i, v, s: [i, v, s], {}),
        ("SparseAdd", lambda i, v, s: [i, v, s] + good + [scalar(f, 0)], {}),
        ("SparseSparseMaximum", lambda i, v, s: [i, v, s] + good, {}),
        ("SparseSparseMinimum", lambda i, v, s: good + [i, v, s], {}),
        ("SerializeSparse", lambda i, v, s: [i, v, s], {}),
        ("SerializeManySparse", lambda i, v, s: [i, v, s], {}),
        ("AddSparseToTensorsMap", lambda i, v, s: [i, v, s], {}),
        ("AddManySparseToTensorsMap", lambda i, v, s: [i, v, s], {}),
    )
    wording = {
        # Stock's message shows the shape of the indices instead.
        ("SparseSplit", "values_matrix"): {"message": {"starts": "Input values should be a vector but received shape"}},
        # Stock's message names the allocator that is full.
        ("SparseFillEmptyRows", "overflow"): {"message": "code-only"},
    }
    for op, inputs, attrs in ops:
        for name, i, v, s in misfits():
            t.row("misfit_" + name, op, inputs(i, v, s), attrs, **wording.get((op, name), {}))
    whole = [INDICES, drawn("int32", [3], 1, 9), SIZES]
    union = {"set_operation": "union"}
    for name, i, v, s in misfits("int32"):
        t.row("misfit_" + name, "SetSize", [i, v, s])
        t.row("misfit_" + name, "DenseToSparseSetOperation", [given("int32", [3, 2], [1, 2, 3, 3, 5, 4]), i, v, s], union)
        t.row("misfit_" + name, "SparseToSparseSetOperation", whole + [i, v, s], union)
        t.row("misfit_" + name, "EditDistance", [i, v, s] + whole)
        t.row("misfit_truth_" + name, "EditDistance", whole + [i, v, s])
    fill_more(t)


def fill_more(t):
    """Adds bad arguments other than the sparse tensor."""
    f = "float"
    good = [INDICES, drawn(f, [3], 1, 9), SIZES]
    both = lambda *numbers: vec("int64", list(numbers))
    for name, start, size in (
        ("start_matrix", given("int64", [1, 2], [0, 0]), both(1, 1)),
        ("size_matrix", both(0, 0), given("int64", [1, 2], [1, 1])),
        ("size_short", both(0, 0), both(1)),
        ("size_negative", both(0, 0), both(1, -1)),
        ("far", both(0, 1 << 62), both(1, 1 << 62)),
    ):
        t.row(name, "SparseSlice", good + [start, size])
    for name, axis, n in (
        ("axis_vector", both(0), 2),
        ("axis_matrix", given("int64", [1, 1], [0]), 2),
        ("axis_low", scalar("int64", -3), 2),
        ("axis_high_misfit", scalar("int64", 3), 5),
    ):
        values = drawn(f, [2]) if "misfit" in name else good[1]
        t.row(name, "SparseSplit", [axis, INDICES, values, SIZES], {"num_split": n})
    flat = [given("int64", [1, 1], [0]), drawn(f, [1]), both(5)]
    t.row("ranks", "SparseConcat", [[x, y] for x, y in zip(good, flat)], {"concat_dim": 0})
    t.row("axis_low", "SparseConcat", [[x, x] for x in good], {"concat_dim": -3})
    t.row("ranks", "SparseTensorDenseAdd", good + [drawn(f, [12])])
    t.row("ranks", "SparseDenseCwiseMul", good + [drawn(f, [2, 3, 4])])
    t.row("vector", "SparseTensorDenseMatMul", good + [drawn(f, [4])])
    three = given("int64", [1, 3], [0, 1, 2])
    t.row("columns", "SparseTensorDenseMatMul", [three, drawn(f, [1]), SIZES, drawn(f, [4, 2])])
    for name, at in (("inner_high", [5, 1]), ("outer_high", [1, 5]), ("both_high", [5, 5])):
        one = [given("int64", [1, 2], at), drawn(f, [1]), SIZES, drawn(f, [3, 2])]
        t.row(name, "SparseTensorDenseMatMul", one, {"adjoint_a": True})
    for op in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"):
        for known in (const, lambda x: x):
            t.row("axis_low", op, good[:2] + [known(SIZES), known(vec("int32", [-3]))])
            t.row("axis_far", op, good[:2] + [known(SIZES), known(scalar("int32", 2))])
        t.row("axes_matrix", op, good + [given("int32", [1, 1], [0])])
    t.row("map_matrix", "SparseFillEmptyRowsGrad", [given("int64", [1, 1], [0]), drawn(f, [1])])
    t.row("grad_matrix", "SparseFillEmptyRowsGrad", [both(0), drawn(f, [1, 1])])
    t.row("indices_vector", "SparseAddGrad", [drawn(f, [3]), both(0), INDICES, INDICES])
    t.row("grad_matrix", "SparseAddGrad", [drawn(f, [3, 1]), INDICES, INDICES, INDICES])
    t.row("ranks", "SparseAddGrad", [drawn(f, [3]), given("int64", [1, 1], [0]), INDICES, INDICES])
    for name, dy, i, start, out in (
        ("grad_matrix", [3, 1], INDICES, both(0, 0), INDICES),
        ("indices_vector", [3], both(0), both(0, 0), INDICES),
        ("few", [1], INDICES, both(0, 0), INDICES),
        ("start_short", [3], INDICES, both(0), INDICES),
        ("ranks", [3], INDICES, both(0, 0), given("int64", [3, 1], [0, 1, 2])),
    ):
        t.row(name, "SparseSliceGrad", [drawn(f, dy), i, start, out])
    t.row("matrix", "SparseReshape", [INDICES, SIZES, given("int64", [1, 1], [12])])
    t.row("negative", "SparseReshape", [INDICES, SIZES, both(-2, 3)])
    t.row("overflow", "SparseReshape", [INDICES, SIZES, both(1 << 62, 1 << 62)])
    t.row("none_left", "SparseReshape", [given("int64", [1, 2], [0, 0]), both(0, 3), both(5, 0)])
    for op in ("SparseAdd", "SparseSparseMaximum"):
        tail = [scalar(f, 0)] if op == "SparseAdd" else []
        t.row("ranks", op, good + flat + tail)
        t.row("sizes", op, good + good[:2] + [both(3, 5)] + tail)
    t.row("threshold_vector", "SparseAdd", good + good + [vec(f, [0])])
    one = [given("int64", [1, 1], [0]), vec("int32", [1]), both(1)]
    cube = [given("int64", [1, 3], [0, 0, 0]), vec("int32", [1]), both(1, 1, 1)]
    t.row("vectors", "EditDistance", one + one)
    t.row("ranks", "EditDistance", cube + [given("int64", [1, 2], [0, 0]), vec("int32", [1]), both(1, 1)])
