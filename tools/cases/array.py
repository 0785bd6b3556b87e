"""Ops that create, slice, join, reorder and index tensors."""

from .base import *
from . import array_index, array_more

ALL = "F I U C b s"
EXACT = {"tol": 0}


def constants(t):
    for d in dtypes(ALL + " Q"):
        spec = {
            "dtype": d,
            "shape": [3],
            "values": (
                ["a", "", "xyz"]
                if d == "string"
                else [True, False, True] if d == "bool" else [1, 0, 2]
            ),
        }
        t.row(d, "Const", [], {"value": spec, "dtype": d})
        t.row(d, "Fill", [ivec(2, 3), drawn(d, [])], **EXACT)
        t.row(d, "Identity", [drawn(d, [2, 3])], **EXACT)
    t.row("scalar", "Const", [], {"value": given("float", [], [2.5]), "dtype": "float"})
    t.row("empty", "Const", [], {"value": given("float", [0, 2], []), "dtype": "float"})
    t.row("no_value", "Const", [], {"dtype": "float"})
    t.row("dtype_mismatch", "Const", [], {"dtype": "int32", "value": given("float", [], [1])})
    t.row("int64_dims", "Fill", [const(vec("int64", [2])), scalar("float", 1)])
    t.row("scalar", "Fill", [ivec(), scalar("float", 4)])
    t.row("empty", "Fill", [ivec(0, 3), scalar("float", 4)])
    t.row("fed_dims", "Fill", [vec("int32", [2, 2]), scalar("float", 4)])
    t.row("300", "Fill", [ivec(300), scalar("float", 4)])
    t.row("negative", "Fill", [ivec(2, -1), scalar("float", 4)])
    t.row("fed_negative", "Fill", [vec("int32", [2, -2]), scalar("float", 4)])
    t.row("value_vector", "Fill", [ivec(2), vec("float", [1, 2])])
    t.row("fed_value_vector", "Fill", [vec("int32", [2]), vec("float", [1, 2])])
    t.row("dims_matrix", "Fill", [const(given("int32", [1, 1], [2])), scalar("float", 1)])
    t.row("grad", "Fill", [ivec(2, 3), scalar("double", 4)], grad=True)
    for op, kinds in (("ZerosLike", "F I U C b s"), ("OnesLike", "F I U C b")):
        t.each("", op, kinds, lambda d: [drawn(d, [2, 3])])
        t.row("scalar", op, [drawn("float", [])])
        t.row("empty", op, [drawn("float", [0, 2])])
        t.row("300", op, [drawn("float", [300])])
    t.row("string", "OnesLike", [drawn("string", [2])])
    for op in ("Identity", "StopGradient", "PreventGradient", "Snapshot"):
        if op != "Identity":
            t.each("", op, "float int32 bool", lambda d: [drawn(d, [3])])
        t.row("scalar", op, [drawn("float", [])])
        t.row("empty", op, [drawn("float", [0])])
    t.row("grad", "Identity", [drawn("double", [3])], grad=True)
    t.row("grad", "StopGradient", [drawn("double", [3])], grad=True, fd=False)
    t.row("mixed", "IdentityN", [[drawn("float", [2]), drawn("int32", [3]), drawn("string", [])]])
    t.row("one", "IdentityN", [[drawn("double", [0])]])
    t.row("none", "IdentityN", [[]], {"T": []})
    t.row("grad", "IdentityN", [[drawn("double", [2]), drawn("double", [3])]], grad=True)
    t.row("variable", "RefIdentity", [ref(drawn("float", [3]))])
    t.row("variable", "Identity", [ref(drawn("float", [3]))])
    t.row("unfed", "Placeholder", [], {"dtype": "float", "shape": [2]})
    t.row("unfed_unknown", "Placeholder", [], {"dtype": "float"})
    t.row("unfed_partial", "Placeholder", [], {"dtype": "int32", "shape": [None, 3]})
    t.row("default", "PlaceholderWithDefault", [drawn("float", [2])], {"shape": [2]})
    t.row("partial", "PlaceholderWithDefault", [drawn("int32", [2, 3])], {"shape": [None, 3]})
    t.row("unknown", "PlaceholderWithDefault", [drawn("string", [2])], {"shape": None})
    t.row("bad_shape", "PlaceholderWithDefault", [drawn("float", [2])], {"shape": [3]})
    t.row("grad", "PlaceholderWithDefault", [drawn("double", [2])], {"shape": [2]}, grad=True)
    t.row("deprecated", "PlaceholderV2", [], {"dtype": "float", "shape": [1]})


def shapes(t):
    for op in ("Shape", "Size"):
        for name, s in (("scalar", []), ("vector", [5]), ("rank4", [2, 0, 3, 1])):
            t.row(name, op, [drawn("float", s)])
            t.row(name + "_int64", op, [drawn("float", s)], {"out_type": "int64"})
        t.row("string", op, [drawn("string", [3, 2])])
        t.row("out_float", op, [drawn("float", [2])], {"out_type": "float"})
    for name, s in (("scalar", []), ("vector", [5]), ("rank4", [2, 0, 3, 1])):
        t.row(name, "Rank", [drawn("int32", s)])
    t.row("two", "ShapeN", [[drawn("float", [2, 3]), drawn("float", [])]])
    t.row("int64", "ShapeN", [[drawn("int32", [4])]], {"out_type": "int64"})
    shape = lambda *v: const(vec("int32", list(v)))
    for d in dtypes(ALL):
        t.row(d, "Reshape", [drawn(d, [2, 3]), shape(3, 2)], **EXACT)
        t.row(d, "ExpandDims", [drawn(d, [2, 3]), iscalar(1)], **EXACT)
        t.row(d, "Squeeze", [drawn(d, [2, 1, 3])], **EXACT)
    for name, s, to in [
        ("unknown", [2, 6], [3, -1]),
        ("to_scalar", [1, 1], []),
        ("from_scalar", [], [1, 1]),
        ("flat", [2, 3], [-1]),
        ("empty", [0, 3], [3, 0]),
        ("empty_unknown", [0, 3], [-1, 3]),
        ("empty_infer_zero", [0, 3], [0, -1]),
        ("two_unknown", [4], [-1, -1]),
        ("bad_count", [2, 3], [4]),
        ("not_divisible", [5], [2, -1]),
        ("negative", [4], [-2, 2]),
    ]:
        t.row(name, "Reshape", [drawn("float", s), shape(*to)])
        t.row("fed_" + name, "Reshape", [drawn("float", s), vec("int32", to)])
    t.row("int64", "Reshape", [drawn("float", [4]), const(vec("int64", [2, 2]))])
    t.row("matrix_shape", "Reshape", [drawn("float", [4]), const(given("int32", [1, 1], [4]))])
    for name, dims, to in (("one", [], 1), ("open", [2], -1), ("wrong", [2], 3)):
        t.row("scalar_" + name, "Reshape", [drawn("int32", dims), scalar("int32", to)])
    t.row("rank_254", "Reshape", [vec("int32", [7]), vec("int32", [1] * 254)])
    t.row("grad", "Reshape", [drawn("double", [2, 3]), shape(-1)], grad=True)
    for axis in (0, 1, 2, -1, -3, 3, -4):
        t.row("axis%d" % axis, "ExpandDims", [drawn("float", [2, 3]), iscalar(axis)])
    t.row("scalar", "ExpandDims", [drawn("float", []), iscalar(0)])
    t.row("fed_axis", "ExpandDims", [drawn("float", [2]), scalar("int32", -1)])
    t.row("fed_axis_high", "ExpandDims", [drawn("float", [2]), scalar("int32", 5)])
    t.row("int64_axis", "ExpandDims", [drawn("float", [2]), const(scalar("int64", 1))])
    t.row("vector_axis", "ExpandDims", [drawn("float", [2]), ivec(0)])
    t.row("two_axes", "ExpandDims", [drawn("float", [2]), ivec(0, 1)])
    t.row("grad", "ExpandDims", [drawn("double", [2]), iscalar(0)], grad=True)
    for name, s, dims in [
        ("all", [1, 2, 1], []),
        ("first", [1, 2, 1], [0]),
        ("last", [1, 2, 1], [-1]),
        ("both", [1, 2, 1], [0, 2]),
        ("not_one", [1, 2], [1]),
        ("high", [1, 2], [2]),
        ("low", [1], [-2]),
        ("to_scalar", [1, 1], []),
        ("scalar", [], []),
        ("empty", [0, 1], [1]),
        ("nothing", [2, 3], []),
    ]:
        t.row(name, "Squeeze", [drawn("float", s)], {"squeeze_dims": dims})
    t.row("grad", "Squeeze", [drawn("double", [1, 2, 1])], {"squeeze_dims": [0]}, grad=True)
    for d in ("int32", "int64"):
        for name, a, b in [
            ("same", [2, 3], [2, 3]),
            ("scalar", [2, 3], []),
            ("both", [2, 1], [1, 3]),
            ("rank", [4, 2, 3], [2, 1]),
            ("zero", [0, 1], [1, 3]),
            ("bad", [2], [3]),
            ("ones", [1, 1], [1]),
        ]:
            t.row("%s_%s" % (name, d), "BroadcastGradientArgs", [vec(d, a), vec(d, b)])
            t.row("%s_%s" % (name, d), "BroadcastArgs", [vec(d, a), vec(d, b)])
    t.row("below_zero", "BroadcastArgs", [const(vec("int32", [3, -4])), const(vec("int32", [1]))])
    t.row("matrix", "BroadcastGradientArgs", [given("int32", [1, 1], [1]), vec("int32", [1])])
    t.each("", "BroadcastTo", ALL, lambda d: [drawn(d, [3, 1]), ivec(2, 3, 4)], **EXACT)
    for name, s, to in [
        ("same", [2, 3], [2, 3]),
        ("scalar", [], [2, 2]),
        ("row", [3], [2, 3]),
        ("empty", [1], [0]),
        ("to_scalar", [], []),
        ("bad", [2], [3]),
        ("rank_down", [2, 3], [3]),
        ("rank5", [2, 1, 3], [2, 2, 2, 2, 3]),
    ]:
        t.row(name, "BroadcastTo", [drawn("float", s), ivec(*to)])
    t.row("fed", "BroadcastTo", [drawn("float", [3]), vec("int64", [2, 3])])
    t.row("fed_bad", "BroadcastTo", [drawn("float", [2]), vec("int32", [3])])
    t.row("grad", "BroadcastTo", [drawn("double", [3, 1]), ivec(2, 3, 4)], grad=True)
    t.row("grad_scalar", "BroadcastTo", [drawn("double", []), ivec(2, 2)], grad=True)


def bits(t):
    for name, d, s, to in [
        ("float_int32", "float", [3], "int32"),
        ("int32_float", "int32", [3], "float"),
        ("float_uint8", "float", [2], "uint8"),
        ("uint8_float", "uint8", [2, 4], "float"),
        ("double_int32", "double", [2], "int32"),
        ("half_uint16", "half", [3], "uint16"),
        ("uint8_uint16", "uint8", [4, 2], "uint16"),
        ("int64_complex64", "int64", [2], "complex64"),
        ("bfloat16_int16", "bfloat16", [3], "int16"),
        ("same", "int8", [2], "qint8"),
        ("bad_last", "uint8", [3], "float"),
        ("scalar_wide", "uint8", [], "float"),
        ("scalar", "float", [], "int32"),
        ("empty", "float", [0], "uint8"),
        ("string", "string", [2], "float"),
    ]:
        t.row(name, "Bitcast", [drawn(d, s)], {"type": to}, tol=0)


def join(t):
    for d in dtypes(ALL + " Q"):
        t.row(d, "ConcatV2", [[drawn(d, [2, 3]), drawn(d, [2, 1])], iscalar(1)], **EXACT)
        t.row(d, "Concat", [iscalar(1), [drawn(d, [2, 3]), drawn(d, [2, 1])]], **EXACT)
        t.row(d, "Pack", [[drawn(d, [3]), drawn(d, [3])]], **EXACT)
    cat = lambda shapes, d="float": [drawn(d, s) for s in shapes]
    for name, ss, axis in [
        ("0", [[1, 3], [2, 3]], 0),
        ("last", [[2, 3], [2, 4]], -1),
        ("rank3", [[2, 1, 3], [2, 2, 3]], 1),
        ("first", [[1, 2, 2], [2, 2, 2]], -3),
        ("three", [[2], [0], [5]], 0),
        ("empty", [[0], [0]], 0),
        ("wide", [[3, 37], [3, 40]], 1),
        ("tall", [[20, 7], [15, 7]], 0),
        ("axis_high", [[2], [2]], 1),
        ("axis_low", [[2], [2]], -2),
        ("scalars", [[], []], 0),
        ("bad_shapes", [[2, 3], [3, 3]], 1),
        ("ranks", [[2], [2, 1]], 0),
    ]:
        t.row(name, "ConcatV2", [cat(ss), iscalar(axis)])
        t.row("fed_" + name, "ConcatV2", [cat(ss), scalar("int32", axis)])
        t.row(name, "Concat", [iscalar(axis), cat(ss)])
    t.row("int64_axis", "ConcatV2", [cat([[2], [3]]), const(scalar("int64", 0))])
    t.row("axis_vector", "ConcatV2", [cat([[2], [3]]), ivec(0, 1)])
    for name, shapes in (("first", [[], [1]]), ("last", [[1], []]), ("all", [[], []])):
        t.row("scalar_" + name, "ConcatV2", [cat(shapes), scalar("int32", 0)])
        t.row("scalar_" + name, "Concat", [scalar("int32", 0), cat(shapes)])
    t.row("one", "ConcatV2", [cat([[2]]), iscalar(0)])
    t.row("many", "ConcatV2", [cat([[2, 3]] * 9), iscalar(0)])
    t.row("many_inner", "ConcatV2", [cat([[2, 3]] * 9), iscalar(1)])
    t.row("type_mismatch", "ConcatV2", [[drawn("float", [2]), drawn("int32", [2])], iscalar(0)])
    for axis in (0, 1, -1):
        t.row(
            "grad%d" % axis, "ConcatV2", [cat([[2, 3], [2, 3]], "double"), iscalar(axis)], grad=True
        )
        t.row(
            "grad%d" % axis, "Concat", [iscalar(axis), cat([[2, 3], [2, 3]], "double")], grad=True
        )
    t.row(
        "grad_unlike", "ConcatV2", [cat([[2, 3], [2, 1], [2, 2]], "double"), iscalar(1)], grad=True
    )
    t.row("grad_float", "ConcatV2", [cat([[2, 3], [1, 3]]), iscalar(0)], grad=True)
    for d in ("int32", "int64"):
        t.row(
            d,
            "ConcatOffset",
            [iscalar(1), [vec(d, [2, 3, 5]), vec(d, [2, 7, 5]), vec(d, [2, 1, 5])]],
        )
        t.row(
            "const_" + d,
            "ConcatOffset",
            [iscalar(-1), [const(vec(d, [2, 3])), const(vec(d, [2, 7]))]],
        )
    t.row("mismatch", "ConcatOffset", [iscalar(0), [vec("int32", [2, 3]), vec("int32", [2, 7])]])
    t.row("axis_high", "ConcatOffset", [iscalar(2), [vec("int32", [2, 3]), vec("int32", [2, 3])]])
    t.row("ranks", "ConcatOffset", [iscalar(0), [vec("int32", [2, 3]), vec("int32", [2])]])
    for name, ss, axis in [
        ("0", [[2, 3], [2, 3]], 0),
        ("1", [[2, 3], [2, 3]], 1),
        ("2", [[2, 3], [2, 3]], 2),
        ("last", [[2, 3], [2, 3]], -1),
        ("first", [[2, 3], [2, 3]], -3),
        ("scalars", [[], [], []], 0),
        ("one", [[2]], 0),
        ("empty", [[0], [0]], 0),
        ("high", [[2], [2]], 2),
        ("low", [[2], [2]], -3),
        ("bad_shapes", [[2], [3]], 0),
        ("many", [[3]] * 17, 1),
    ]:
        t.row("axis_" + name, "Pack", [cat(ss)], {"axis": axis})
    t.row("none", "Pack", [[]], {"T": "float"})
    t.row("grad", "Pack", [cat([[2, 3]] * 3, "double")], {"axis": 1}, grad=True)
    t.row("grad_scalars", "Pack", [cat([[]] * 3, "double")], grad=True)


def cut(t):
    for d in dtypes(ALL):
        t.row(d, "Split", [iscalar(0), drawn(d, [4, 2])], {"num_split": 2}, **EXACT)
        t.row(d, "SplitV", [drawn(d, [5, 2]), ivec(2, 3), iscalar(0)], {"num_split": 2}, **EXACT)
        t.row(d, "Unpack", [drawn(d, [3, 2])], {"num": 3}, **EXACT)
        t.row(d, "Slice", [drawn(d, [4, 3]), ivec(1, 0), ivec(2, 2)], **EXACT)
    for name, s, axis, n in [
        ("1", [2, 6], 1, 3),
        ("last", [2, 6], -1, 2),
        ("rank3", [2, 4, 3], 1, 2),
        ("one", [3], 0, 1),
        ("empty", [0, 4], 1, 2),
        ("zero_parts", [0], 0, 2),
        ("not_divisible", [5], 0, 2),
        ("axis_high", [4], 1, 2),
        ("axis_low", [4], -2, 2),
        ("scalar", [], 0, 1),
        ("wide", [3, 74], 1, 2),
    ]:
        t.row(name, "Split", [iscalar(axis), drawn("float", s)], {"num_split": n})
        t.row("fed_" + name, "Split", [scalar("int32", axis), drawn("float", s)], {"num_split": n})
    t.row("axis_vector", "Split", [ivec(0, 1), drawn("float", [4])], {"num_split": 2})
    t.row("none", "Split", [iscalar(0), drawn("float", [4])], {"num_split": 0})
    t.row("grad", "Split", [iscalar(1), drawn("double", [2, 4])], {"num_split": 2}, grad=True)
    for name, s, sizes, axis in [
        ("last", [2, 6], [1, 2, 3], -1),
        ("rest", [6], [2, -1, 1], 0),
        ("zero", [3], [0, 3], 0),
        ("one", [3], [3], 0),
        ("too_few", [4], [1, 2], 0),
        ("too_many", [4], [3, 2], 0),
        ("two_rests", [4], [-1, -1], 0),
        ("negative", [4], [-2, 6], 0),
        ("axis_high", [4], [2, 2], 1),
        ("rank3", [2, 3, 4], [1, 2], 1),
        ("empty", [0, 4], [1, 3], 1),
        ("rest_negative", [2], [3, -1], 0),
    ]:
        t.row(
            name,
            "SplitV",
            [drawn("float", s), ivec(*sizes), iscalar(axis)],
            {"num_split": len(sizes)},
        )
        t.row(
            "fed_" + name,
            "SplitV",
            [drawn("float", s), vec("int64", sizes), iscalar(axis)],
            {"num_split": len(sizes)},
        )
    t.row("wrong_count", "SplitV", [drawn("float", [4]), ivec(2, 2), iscalar(0)], {"num_split": 3})
    t.row(
        "grad",
        "SplitV",
        [drawn("double", [2, 4]), ivec(1, 3), iscalar(1)],
        {"num_split": 2},
        grad=True,
    )
    for name, s, axis, n in [
        ("1", [2, 3], 1, 3),
        ("last", [2, 3, 4], -1, 4),
        ("one", [1, 2], 0, 1),
        ("none", [0, 2], 0, 0),
        ("empty", [2, 0], 0, 2),
        ("wrong_num", [3, 2], 0, 2),
        ("high", [3], 1, 3),
        ("low", [3], -2, 3),
        ("scalar", [], 0, 1),
    ]:
        t.row("axis_" + name, "Unpack", [drawn("float", s)], {"num": n, "axis": axis})
    t.row("grad", "Unpack", [drawn("double", [2, 3])], {"num": 3, "axis": 1}, grad=True)
    for name, s, b, n in [
        ("rest", [4, 3], [1, 1], [-1, -1]),
        ("all", [4, 3], [0, 0], [4, 3]),
        ("none", [4], [4], [0]),
        ("zero", [4, 3], [1, 1], [0, 2]),
        ("scalar", [], [], []),
        ("rank5", [2, 3, 2, 3, 2], [0, 1, 0, 1, 1], [2, 2, 1, 2, 1]),
        ("wide", [5, 40], [1, 3], [3, 36]),
        ("begin_high", [4], [5], [1]),
        ("size_high", [4], [2], [3]),
        ("begin_negative", [4], [-1], [1]),
        ("size_low", [4], [0], [-2]),
        ("lengths", [4, 3], [0], [1]),
        ("empty", [0, 3], [0, 1], [0, 2]),
    ]:
        t.row(name, "Slice", [drawn("float", s), ivec(*b), ivec(*n)])
        t.row("fed_" + name, "Slice", [drawn("float", s), vec("int32", b), vec("int32", n)])
    t.row(
        "int64", "Slice", [drawn("float", [4]), const(vec("int64", [1])), const(vec("int64", [2]))]
    )
    t.row("index_types", "Slice", [drawn("float", [4]), const(vec("int64", [1])), ivec(2)])
    t.row("grad", "Slice", [drawn("double", [4, 3]), ivec(1, 0), ivec(2, 2)], grad=True)
    t.row("grad_rest", "Slice", [drawn("double", [4, 3]), ivec(1, 1), ivec(-1, -1)], grad=True)
    strided(t)


# name, shape, begin, end, strides, masks by the first letters of their attrs
STRIDED = [
    ("plain", [5, 4], [1, 0], [4, 3], [1, 1], {}),
    ("steps", [5, 4], [0, 0], [5, 4], [2, 3], {}),
    ("back", [5, 4], [4, 3], [0, 0], [-1, -2], {}),
    ("negative", [5], [-3], [-1], [1], {}),
    ("prefix", [5, 4], [1], [3], [1], {}),
    ("begin_mask", [5, 4], [3, 1], [4, 3], [1, 1], {"begin_mask": 1}),
    ("end_mask", [5, 4], [1, 1], [2, 2], [1, 1], {"end_mask": 3}),
    ("back_all", [5], [0], [0], [-1], {"begin_mask": 1, "end_mask": 1}),
    ("shrink", [5, 4], [2, 1], [3, 3], [1, 1], {"shrink_axis_mask": 1}),
    ("shrink_negative", [5, 4], [-1, 1], [0, 3], [1, 1], {"shrink_axis_mask": 1}),
    ("shrink_all", [5, 4], [2, 1], [3, 2], [1, 1], {"shrink_axis_mask": 3}),
    ("ellipsis", [2, 3, 4], [0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}),
    ("ellipsis_middle", [2, 3, 4, 5], [1, 0, 2], [2, 0, 5], [1, 1, 2], {"ellipsis_mask": 2}),
    ("new_axis", [3, 4], [0, 1], [0, 3], [1, 1], {"new_axis_mask": 1}),
    ("new_axis_last", [3], [0, 0], [3, 0], [1, 1], {"new_axis_mask": 2}),
    ("ellipsis_new_axis", [3, 4], [0, 0], [0, 0], [1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ("clamped", [4], [-10], [10], [1], {}),
    ("empty", [4], [3], [1], [1], {}),
    ("of_empty", [0, 3], [0, 1], [0, 3], [1, 1], {}),
    ("scalar", [], [], [], [], {}),
    ("rank6", [2, 2, 2, 2, 2, 3], [0, 1, 0, 0, 0, 0], [2, 2, 2, 1, 2, 3], [1, 1, 1, 1, 1, 2], {}),
    ("stride_zero", [4], [0], [2], [0], {}),
    ("too_long", [4], [0, 0], [1, 1], [1, 1], {}),
    ("lengths", [4, 4], [0, 0], [1], [1, 1], {}),
    ("shrink_high", [4], [4], [5], [1], {"shrink_axis_mask": 1}),
    ("shrink_low", [4], [-5], [-4], [1], {"shrink_axis_mask": 1}),
    ("shrink_back", [4], [2], [1], [-1], {"shrink_axis_mask": 1}),
    ("two_ellipses", [2, 3], [0, 0], [0, 0], [1, 1], {"ellipsis_mask": 3}),
]

BAD_STRIDED = "stride_zero too_long lengths shrink_high shrink_low shrink_back two_ellipses".split()


def strided(t):
    t.each(
        "",
        "StridedSlice",
        ALL + " Q",
        lambda d: [drawn(d, [5, 4]), ivec(1, 0), ivec(5, 4), ivec(2, 3)],
        **EXACT
    )
    for name, s, b, e, st, masks in STRIDED:
        t.row(name, "StridedSlice", [drawn("float", s), ivec(*b), ivec(*e), ivec(*st)], masks)
        t.row(
            "fed_" + name,
            "StridedSlice",
            [drawn("float", s), vec("int32", b), vec("int32", e), vec("int32", st)],
            masks,
        )
        if name not in BAD_STRIDED:
            t.row(
                "grad_" + name,
                "StridedSlice",
                [drawn("double", s), ivec(*b), ivec(*e), ivec(*st)],
                masks,
                grad=True,
            )
    t.row(
        "int64",
        "StridedSlice",
        [drawn("float", [5])] + [const(vec("int64", [x])) for x in (1, 4, 2)],
    )
    g = lambda d, dy, s, b, e, st: [ivec(*s), ivec(*b), ivec(*e), ivec(*st), drawn(d, dy)]
    t.each("", "StridedSliceGrad", ALL, lambda d: g(d, [2, 2], [5, 4], [1, 0], [5, 4], [2, 3]))
    t.row(
        "back",
        "StridedSliceGrad",
        g("float", [5], [5], [0], [0], [-1]),
        {"begin_mask": 1, "end_mask": 1},
    )
    t.row(
        "shrink",
        "StridedSliceGrad",
        g("float", [2], [5, 4], [2, 1], [3, 3], [1, 1]),
        {"shrink_axis_mask": 1},
    )
    t.row(
        "new_axis",
        "StridedSliceGrad",
        g("float", [1, 2, 4], [3, 4], [0, 1], [0, 3], [1, 1]),
        {"new_axis_mask": 1},
    )
    t.row("bad_dy", "StridedSliceGrad", g("float", [3, 2], [5, 4], [1, 0], [5, 4], [2, 3]))
    t.row(
        "grad", "StridedSliceGrad", g("double", [2, 2], [5, 4], [1, 0], [5, 4], [2, 3]), grad=True
    )


def move(t):
    for d in dtypes(ALL):
        t.row(d, "Transpose", [drawn(d, [2, 3]), ivec(1, 0)], **EXACT)
        t.row(d, "Tile", [drawn(d, [2, 1]), ivec(2, 3)], **EXACT)
        t.row(d, "Reverse", [drawn(d, [2, 3]), const(vec("bool", [False, True]))], **EXACT)
        t.row(d, "ReverseV2", [drawn(d, [2, 3]), ivec(1)], **EXACT)
        t.row(d, "Pad", [drawn(d, [2, 2]), const(given("int32", [2, 2], [1, 0, 0, 2]))], **EXACT)
        t.row(
            d,
            "PadV2",
            [drawn(d, [2, 2]), const(given("int32", [2, 2], [1, 0, 0, 2])), drawn(d, [])],
            **EXACT
        )
        if d not in ("string",):
            t.row(
                d,
                "MirrorPad",
                [drawn(d, [3]), const(given("int32", [1, 2], [2, 1]))],
                {"mode": "REFLECT"},
                **EXACT
            )
    for name, s, p in [
        ("scalar", [], []),
        ("vector", [5], [0]),
        ("same", [2, 3, 4], [0, 1, 2]),
        ("021", [2, 3, 4], [0, 2, 1]),
        ("210", [2, 3, 4], [2, 1, 0]),
        ("201", [2, 3, 4], [2, 0, 1]),
        ("120", [2, 3, 4], [1, 2, 0]),
        ("0231", [2, 3, 2, 3], [0, 2, 3, 1]),
        ("0312", [2, 3, 2, 3], [0, 3, 1, 2]),
        ("rank5", [2, 1, 3, 2, 2], [4, 2, 0, 1, 3]),
        ("rank8", [2, 1, 2, 1, 2, 1, 2, 2], [7, 5, 6, 0, 1, 3, 2, 4]),
        ("empty", [0, 3], [1, 0]),
        ("17x33", [17, 33], [1, 0]),
        ("29x47", [29, 47], [1, 0]),
        ("8x70", [8, 70], [1, 0]),
        ("twice", [2, 3], [1, 1]),
        ("high", [2, 3], [0, 2]),
        ("short", [2, 3], [0]),
        ("negative", [2, 3], [-1, 0]),
    ]:
        t.row(name, "Transpose", [drawn("float", s), ivec(*p)])
        if name in ("scalar", "021", "twice", "high", "short", "negative"):
            t.row("fed_" + name, "Transpose", [drawn("float", s), vec("int32", p)])
    t.row("int64", "Transpose", [drawn("float", [2, 3]), const(vec("int64", [1, 0]))])
    t.row("grad", "Transpose", [drawn("double", [2, 3, 2]), ivec(2, 0, 1)], grad=True)
    t.row("conj", "ConjugateTranspose", [drawn("complex64", [2, 3]), ivec(1, 0)])
    t.row("float", "ConjugateTranspose", [drawn("float", [2, 3]), ivec(1, 0)])
    for name, s, m in [
        ("vector", [3], [3]),
        ("scalar", [], []),
        ("rank3", [2, 1, 3], [1, 4, 2]),
        ("zero", [2, 3], [0, 1]),
        ("ones", [2, 3], [1, 1]),
        ("rank5", [1, 2, 1, 2, 2], [2, 1, 3, 2, 1]),
        ("wide", [2, 37], [3, 2]),
        ("negative", [2], [-1]),
        ("short", [2, 3], [2]),
        ("empty", [0, 2], [2, 2]),
    ]:
        t.row(name, "Tile", [drawn("float", s), ivec(*m)])
        t.row("fed_" + name, "Tile", [drawn("float", s), vec("int32", m)])
    t.row("int64", "Tile", [drawn("float", [2]), const(vec("int64", [3]))])
    t.row("grad", "Tile", [drawn("double", [2, 3]), ivec(2, 2)], grad=True)
    t.row("grad_rank3", "Tile", [drawn("double", [2, 1, 3]), ivec(1, 3, 2)], grad=True)
    for name, s, axes in [
        ("none", [2, 3], []),
        ("both", [2, 3], [0, 1]),
        ("last", [2, 3, 4], [-1]),
        ("middle", [2, 3, 4], [1]),
        ("outer", [2, 3, 4], [0, 2]),
        ("empty", [0, 3], [0]),
        ("wide", [3, 37], [1]),
        ("wide3", [2, 9, 3], [1]),
        ("high", [2], [1]),
        ("low", [2], [-2]),
        ("twice", [2, 2], [0, 0]),
        ("twice_negative", [2, 2], [1, -1]),
    ]:
        t.row(name, "ReverseV2", [drawn("float", s), ivec(*axes)])
        t.row("fed_" + name, "ReverseV2", [drawn("float", s), vec("int32", axes)])
    t.row("int64", "ReverseV2", [drawn("float", [3]), const(vec("int64", [0]))])
    t.row("scalar", "ReverseV2", [drawn("float", []), ivec()])
    t.row("axis_matrix", "ReverseV2", [drawn("float", [2]), const(given("int32", [1, 1], [0]))])
    t.row("grad", "ReverseV2", [drawn("double", [2, 3]), ivec(1)], grad=True)
    t.row(
        "grad", "Reverse", [drawn("double", [2, 3]), const(vec("bool", [True, False]))], grad=True
    )
    t.row("short", "Reverse", [drawn("float", [2, 3]), const(vec("bool", [True]))])
    pads(t)


def pads(t):
    pad = lambda p, d="int32": given(d, [len(p), 2], [x for pair in p for x in pair])
    for name, s, p in [
        ("none", [2, 3], [(0, 0), (0, 0)]),
        ("vector", [3], [(2, 1)]),
        ("rank3", [1, 2, 3], [(1, 1), (0, 2), (3, 0)]),
        ("rank5", [1, 2, 1, 2, 1], [(1, 0)] * 5),
        ("empty", [0, 2], [(1, 1), (0, 1)]),
        ("scalar", [], []),
        ("wide", [5, 37], [(1, 2), (3, 4)]),
        ("rank4", [1, 3, 3, 2], [(0, 0), (1, 1), (1, 1), (0, 0)]),
        ("negative", [3], [(-1, 0)]),
        ("short", [2, 3], [(1, 1)]),
    ]:
        for op in ("Pad", "PadV2"):
            more = [scalar("float", 7.5)] if op == "PadV2" else []
            t.row(name, op, [drawn("float", s), const(pad(p))] + more)
            t.row("fed_" + name, op, [drawn("float", s), pad(p)] + more)
    t.row("int64", "Pad", [drawn("float", [2]), const(pad([(1, 1)], "int64"))])
    t.row("three_columns", "Pad", [drawn("float", [2]), const(given("int32", [1, 3], [1, 1, 1]))])
    t.row(
        "value_vector", "PadV2", [drawn("float", [2]), const(pad([(1, 1)])), vec("float", [1, 2])]
    )
    t.row("grad", "Pad", [drawn("double", [2, 3]), const(pad([(1, 0), (0, 2)]))], grad=True)
    t.row(
        "grad",
        "PadV2",
        [drawn("double", [2, 3]), const(pad([(1, 0), (0, 2)])), scalar("double", 3)],
        grad=True,
    )
    for mode in ("REFLECT", "SYMMETRIC"):
        t.row(
            "rank2_" + mode,
            "MirrorPad",
            [drawn("float", [3, 4]), const(pad([(2, 1), (1, 3)]))],
            {"mode": mode},
        )
        t.row(
            "too_much_" + mode,
            "MirrorPad",
            [drawn("float", [3]), const(pad([(4, 0)]))],
            {"mode": mode},
        )
        t.row(
            "grad_" + mode,
            "MirrorPad",
            [drawn("double", [3, 4]), const(pad([(2, 1), (1, 3)]))],
            {"mode": mode},
            grad=True,
        )
        t.row(
            mode,
            "MirrorPadGrad",
            [drawn("float", [6, 8]), const(pad([(2, 1), (1, 3)]))],
            {"mode": mode},
        )


def fill(t):
    constants(t)
    shapes(t)
    bits(t)
    join(t)
    cut(t)
    move(t)
    array_index.fill(t)
    array_more.fill(t)
