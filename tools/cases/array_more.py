"""Space to batch and depth, sequences, sorted search, scatter into tensors, variants of Identity."""

from .base import *

EXACT = {"tol": 0}


def ragged(t):
    """Adds cases of rows of different lengths, padded."""
    op, five = "RaggedTensorToTensor", [1, 2, 3, 4, 5]
    ids = lambda *values: vec("int64", list(values))

    def row(name, shape, values, default, parts, types, **more):
        t.row(
            name,
            op,
            [shape, values, default, parts],
            {"row_partition_types": types},
            **more
        )

    open2 = const(vec("int64", [-1, -1]))
    zero, splits = scalar("int32", 0), [ids(0, 2, 2, 5)]
    for d in dtypes("F I U C b"):
        values = vec(d, [True, False, True, True, False] if d == "bool" else five)
        row(d, open2, values, scalar(d, True if d == "bool" else 7), splits, ["ROW_SPLITS"])
    row("string", open2, vec("string", list("abcde")), scalar("string", "-"), splits, ["ROW_SPLITS"])
    whole = vec("int32", five)
    row("fed", vec("int64", [-1, -1]), whole, zero, splits, ["ROW_SPLITS"])
    row("any_const", const(scalar("int64", -1)), whole, zero, splits, ["ROW_SPLITS"])
    row(
        "any_shape",
        scalar("int64", -1),
        whole,
        zero,
        splits,
        ["ROW_SPLITS"],
        message={"starts": "Received a shape scalar with unknown static value."},
    )
    row("cut", const(ids(2, 2)), whole, zero, splits, ["ROW_SPLITS"])
    row("pad", const(ids(4, 4)), whole, scalar("int32", -1), splits, ["ROW_SPLITS"])
    row("int32", const(vec("int32", [-1, 2])), whole, zero, [vec("int32", [0, 2, 2, 5])], ["ROW_SPLITS"])
    rowids = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
    row("rowids", open2, whole, zero, [scalar("int64", 4), ids(0, 0, 2, 2, 2)], rowids)
    row("rowids_cut", const(ids(3, 2)), whole, zero, [scalar("int64", 4), ids(0, 0, 2, 2, 2)], rowids)
    open3 = const(ids(-1, -1, -1))
    row("two", open3, whole, zero, [ids(0, 2, 3), ids(0, 1, 3, 5)], ["ROW_SPLITS"] * 2)
    row("two_cut", const(ids(2, 1, 3)), whole, zero, [ids(0, 2, 3), ids(0, 1, 3, 5)], ["ROW_SPLITS"] * 2)
    mixed = [scalar("int64", 2), ids(0, 1, 1), ids(0, 1, 3, 4)]
    row("mixed", open3, vec("int32", five[:4]), zero, mixed, rowids + ["ROW_SPLITS"])
    cells = given("int32", [3, 2], [1, 2, 3, 4, 5, 6])
    row("cells", open3, cells, vec("int32", [9, 8]), [ids(0, 1, 3)], ["ROW_SPLITS"])
    row("cells_scalar", const(ids(-1, -1, 2)), cells, scalar("int32", 7), [ids(0, 1, 3)], ["ROW_SPLITS"])
    row("no_rows", open2, given("int32", [0], []), zero, [ids(0)], ["ROW_SPLITS"])
    ones = [ids(0, 2, 2, 5)]
    five = vec("double", [1, 2, 3, 4, 5])
    grad = {"grad": True, "stock_grad": False}
    row("grad", open2, five, scalar("double", 0.5), ones, ["ROW_SPLITS"], **grad)
    row("grad_cut", const(ids(2, 2)), five, scalar("double", 0.5), ones, ["ROW_SPLITS"], **grad)
    row("grad_rowids", open2, five, scalar("double", 7), [scalar("int64", 4), ids(0, 0, 2, 2, 2)], rowids, **grad)
    row("grad_two", open3, five, scalar("double", 1), [ids(0, 2, 3), ids(0, 1, 3, 5)], ["ROW_SPLITS"] * 2, **grad)
    pairs = drawn("double", [3, 2])
    row("grad_cells", open3, pairs, vec("double", [9, 8]), [ids(0, 1, 3)], ["ROW_SPLITS"], **grad)
    row("grad_cells_scalar", const(ids(-1, -1, 2)), pairs, scalar("double", 7), [ids(0, 1, 3)], ["ROW_SPLITS"], **grad)
    row("bad_type", open2, whole, zero, splits, ["ROW_LIMITS"])
    row("descending", open2, whole, zero, [ids(0, 2, 1, 5)], ["ROW_SPLITS"])
    row("not_zero", open2, whole, zero, [ids(1, 5)], ["ROW_SPLITS"])
    row("nothing", open2, whole, zero, [ids()], ["ROW_SPLITS"])
    row("high_rowid", open2, whole, zero, [scalar("int64", 2), ids(0, 0, 1, 1, 7)], rowids)
    row("rank", const(ids(-1)), whole, zero, splits, ["ROW_SPLITS"])
    row("counts", open2, whole, zero, splits, ["ROW_SPLITS"] * 2)
    row("default", open2, whole, vec("int32", [1, 2]), splits, ["ROW_SPLITS"])
    row("first_alone", open2, whole, zero, [scalar("int64", 2)], ["FIRST_DIM_SIZE"])


def blocks(t):
    for d in dtypes("F I U"):
        t.row(
            d,
            "SpaceToBatchND",
            [drawn(d, [1, 4, 2]), ivec(2), const(given("int32", [1, 2], [0, 0]))],
            **EXACT
        )
        t.row(
            d,
            "BatchToSpaceND",
            [drawn(d, [2, 2, 2]), ivec(2), const(given("int32", [1, 2], [0, 0]))],
            **EXACT
        )
        t.row(d, "SpaceToDepth", [drawn(d, [1, 2, 4, 1])], {"block_size": 2}, **EXACT)
        t.row(d, "DepthToSpace", [drawn(d, [1, 1, 2, 4])], {"block_size": 2}, **EXACT)
    pads = lambda *p: const(given("int32", [len(p), 2], [x for pair in p for x in pair]))
    for name, s, b, p in [
        ("two", [2, 3, 5, 2], [3, 2], ((1, 2), (0, 1))),
        ("ones", [1, 4, 2], [1], ((0, 0),)),
        ("bad_block", [1, 3, 2], [2], ((0, 0),)),
        ("zero", [1, 4], [0], ((0, 0),)),
        ("negative_pad", [1, 4], [2], ((-1, 1),)),
    ]:
        t.row(name, "SpaceToBatchND", [drawn("float", s), ivec(*b), pads(*p)])
        t.row(
            "fed_" + name,
            "SpaceToBatchND",
            [
                drawn("float", s),
                vec("int32", b),
                given("int32", [len(p), 2], [x for pair in p for x in pair]),
            ],
        )
    for name, s, b, p in [
        ("two", [12, 2, 3, 1], [3, 2], ((1, 2), (0, 1))),
        ("bad_batch", [3, 2], [2], ((0, 0),)),
        ("crop_all", [2, 1], [2], ((2, 1),)),
        ("negative", [2, 1], [2], ((-1, 0),)),
    ]:
        t.row(name, "BatchToSpaceND", [drawn("float", s), ivec(*b), pads(*p)])
        t.row(
            "fed_" + name,
            "BatchToSpaceND",
            [
                drawn("float", s),
                vec("int32", b),
                given("int32", [len(p), 2], [x for pair in p for x in pair]),
            ],
        )
    t.row("grad", "SpaceToBatchND", [drawn("double", [1, 3, 2]), ivec(2), pads((1, 0))], grad=True)
    t.row("grad", "BatchToSpaceND", [drawn("double", [2, 2, 2]), ivec(2), pads((1, 0))], grad=True)
    t.row(
        "plain",
        "SpaceToBatch",
        [drawn("float", [1, 4, 2, 2]), pads((0, 0), (1, 1))],
        {"block_size": 2},
    )
    t.row(
        "grad",
        "SpaceToBatch",
        [drawn("double", [1, 4, 2, 1]), pads((0, 0), (1, 1))],
        {"block_size": 2},
        grad=True,
    )
    t.row(
        "bad",
        "SpaceToBatch",
        [drawn("float", [1, 3, 2, 2]), pads((0, 0), (1, 1))],
        {"block_size": 2},
    )
    t.row(
        "plain",
        "BatchToSpace",
        [drawn("float", [4, 2, 2, 2]), pads((0, 1), (1, 0))],
        {"block_size": 2},
    )
    t.row(
        "grad",
        "BatchToSpace",
        [drawn("double", [4, 1, 1, 2]), pads((0, 0), (0, 0))],
        {"block_size": 2},
        grad=True,
    )
    for op, s in (("SpaceToDepth", [2, 4, 6, 3]), ("DepthToSpace", [2, 2, 3, 12])):
        t.row("plain", op, [drawn("float", s)], {"block_size": 2})
        t.row("bad", op, [drawn("float", [1, 3, 3, 3])], {"block_size": 2})
        t.row("one", op, [drawn("float", [1, 2, 2, 1])], {"block_size": 1})
        t.row(
            "planes",
            op,
            [drawn("float", [1, 4, 2, 2])],
            {"block_size": 2, "data_format": "NCHW"},
            message={"starts": "No OpKernel was registered to support Op '%s' used by {{node node}}" % op},
        )
        t.row("rank3", op, [drawn("float", [2, 2, 4])], {"block_size": 2})
        t.row("grad", op, [drawn("double", [1, 2, 2, 4])], {"block_size": 2}, grad=True)


def sequences(t):
    for d in dtypes("F I U C b s"):
        t.row(
            d, "ReverseSequence", [drawn(d, [2, 4]), vec("int64", [3, 2])], {"seq_dim": 1}, **EXACT
        )
    for name, s, n, seq, batch in [
        ("batch1", [4, 2, 3], [3, 4], 0, 1),
        ("zero", [2, 3], [0, 1], 1, 0),
        ("long", [2, 3], [4, 1], 1, 0),
        ("negative", [2, 3], [-1, 1], 1, 0),
        ("count", [2, 3], [1], 1, 0),
        ("same_dim", [2, 3], [1, 1], 0, 0),
        ("high_dim", [2, 3], [1, 1], 2, 0),
    ]:
        t.row(
            name,
            "ReverseSequence",
            [drawn("float", s), vec("int32", n)],
            {"seq_dim": seq, "batch_dim": batch},
        )
    t.row(
        "grad",
        "ReverseSequence",
        [drawn("double", [2, 3]), vec("int64", [3, 2])],
        {"seq_dim": 1},
        grad=True,
    )
    h = lambda idx, vals, shape: [
        given("int64", [len(vals), len(shape)], idx),
        vec("string", vals),
        vec("int64", shape),
    ]
    t.row(
        "words",
        "EditDistance",
        h([0, 0, 0, 1, 1, 0], ["a", "b", "c"], [2, 2])
        + h([0, 0, 1, 0, 1, 1], ["a", "c", "d"], [2, 2]),
    )
    t.row(
        "plain",
        "EditDistance",
        h([0, 0, 0, 1, 1, 0], ["a", "b", "c"], [2, 2])
        + h([0, 0, 1, 0, 1, 1], ["a", "c", "d"], [2, 2]),
        {"normalize": False},
    )
    t.row("empty_truth", "EditDistance", h([0, 0], ["a"], [1, 1]) + h([], [], [1, 0]))
    t.row(
        "unlike",
        "EditDistance",
        h([0, 0], ["a"], [1, 1])
        + [given("int64", [1, 3], [0, 0, 0]), vec("string", ["a"]), vec("int64", [1, 1, 1])],
    )


def scatters(t):
    for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"):
        for d in dtypes("F I U C"):
            t.row(d, op, [drawn(d, [4]), given("int32", [2, 1], [3, 0]), drawn(d, [2])])
        t.row(
            "slices",
            op,
            [drawn("float", [3, 2]), given("int64", [2, 1], [2, 0]), drawn("float", [2, 2])],
        )
        t.row(
            "twice", op, [drawn("float", [3]), given("int32", [2, 1], [1, 1]), drawn("float", [2])]
        )
        t.row("high", op, [drawn("float", [3]), given("int32", [1, 1], [3]), drawn("float", [1])])
        t.row(
            "bad_updates",
            op,
            [drawn("float", [3]), given("int32", [1, 1], [0]), drawn("float", [2])],
        )
        t.row(
            "grad",
            op,
            [drawn("double", [4]), given("int32", [2, 1], [3, 0]), drawn("double", [2])],
            grad=True,
        )
    for d in dtypes("F I U C b"):
        t.row(
            d,
            "StridedSliceAssign",
            [ref(drawn(d, [5, 4])), ivec(1, 0), ivec(5, 4), ivec(2, 3), drawn(d, [2, 2])],
            **EXACT
        )
    t.row(
        "shrink",
        "StridedSliceAssign",
        [ref(drawn("float", [5, 4])), ivec(1, 0), ivec(2, 4), ivec(1, 1), drawn("float", [4])],
        {"shrink_axis_mask": 1},
    )
    t.row(
        "bad_value",
        "StridedSliceAssign",
        [ref(drawn("float", [5])), ivec(1), ivec(3), ivec(1), drawn("float", [3])],
    )


def odds(t):
    for op in ("UniqueV2", "UniqueWithCountsV2"):
        axis = lambda *a: const(vec("int64", list(a)))
        t.row("flat", op, [vec("int32", [3, 1, 3, 2]), axis()])
        t.row("rows", op, [given("int32", [3, 2], [1, 2, 0, 1, 1, 2]), axis(0)])
        t.row("columns", op, [given("float", [2, 3], [1, 2, 1, 0.0, 1, 0.0]), axis(1)])
        t.row("matrix_flat", op, [given("int32", [1, 2], [1, 1]), axis()])
        t.row("axis_high", op, [vec("int32", [1]), axis(1)])
    t.row("matrix", "UnravelIndex", [vec("int32", [0, 5, 7]), vec("int32", [2, 4])])
    t.row("scalar", "UnravelIndex", [scalar("int64", 5), vec("int64", [2, 4])])
    t.row("high", "UnravelIndex", [vec("int32", [8]), vec("int32", [2, 4])])
    t.row("same", "EnsureShape", [drawn("float", [2, 3])], {"shape": [2, 3]})
    t.row("partial", "EnsureShape", [drawn("float", [2, 3])], {"shape": [None, 3]})
    # The kernel's message ends with a name that stock generates for the fed tensor.
    for name, shape in (("bad", [2, 4]), ("rank", [2])):
        t.row(
            name,
            "EnsureShape",
            [drawn("float", [2, 3])],
            {"shape": shape},
            message={"starts": "Shape of tensor "},
        )
    open_input = node("PlaceholderWithDefault", [const(vec("float", [1, 2]))], {"shape": None})
    t.row("open", "EnsureShape", [open_input], {"shape": [3]})
    t.row("grad", "EnsureShape", [drawn("double", [2])], {"shape": [2]}, grad=True)
    t.row("zeros", "Empty", [ivec(2, 3)], {"dtype": "float", "init": True})
    t.row("shape_only", "Empty", [ivec(2)], {"dtype": "int32"}, undefined=[0])
    t.row("negative", "Empty", [vec("int32", [-1])], {"dtype": "int32"})
    for op in ("DeepCopy", "GuaranteeConst"):
        t.row("float", op, [drawn("float", [3])])
        t.row("empty", op, [drawn("int32", [0])])
    t.row("handle", "GuaranteeConst", [node("VarHandleOp", [], {"dtype": "float", "shape": [2]})])
    t.row("variable", "GuaranteeConst", [ref(drawn("float", [3]))], message="code-only")
    t.row(
        "rows",
        "ParallelConcat",
        [[drawn("float", [1, 2]), drawn("float", [1, 2])]],
        {"shape": [2, 2]},
    )
    t.row("deprecated", "TileGrad", [drawn("float", [4]), ivec(2)])
    t.row(
        "missing_file",
        "ImmutableConst",
        [],
        {"dtype": "float", "shape": [1], "memory_region_name": "/dev/null/region"},
        message="code-only",
    )


def old_names(t):
    """Adds the ops of old graphs, which new ones may not have; tests/capi/outdated_test.c runs them."""
    m = drawn("float", [2, 2])
    count = const(scalar("int64", 1))
    t.row("removed", "BatchMatrixBandPart", [m, count, count])
    t.row("removed", "BatchMatrixDiag", [m])
    t.row("removed", "BatchMatrixDiagPart", [m])
    t.row("removed", "BatchMatrixSetDiag", [m, drawn("float", [2])])


def fill(t):
    old_names(t)
    ragged(t)
    blocks(t)
    sequences(t)
    scatters(t)
    odds(t)
