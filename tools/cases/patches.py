"""Image patches, MatrixDiagV2 and V3, Roll, data format conversion."""

from .base import *

EXACT = {"tol": 0}


def windows(t):
    def images(d, shape, sizes, strides=(1, 1), rates=(1, 1), padding="VALID"):
        around = lambda v: [1] + list(v) + [1]
        attrs = {
            "ksizes": around(sizes),
            "strides": around(strides),
            "rates": around(rates),
            "padding": padding,
        }
        return [drawn(d, shape)], attrs

    op = "ExtractImagePatches"
    t.each("", op, "F I U C", lambda d: images(d, [2, 4, 5, 2], (2, 3)), **EXACT)
    for name, args in [
        ("same", ([1, 5, 4, 3], (3, 3), (1, 1), (1, 1), "SAME")),
        ("same_strided", ([2, 5, 4, 1], (3, 2), (2, 3), (1, 1), "SAME")),
        ("strided", ([1, 6, 7, 2], (2, 2), (2, 3))),
        ("rates", ([1, 7, 8, 2], (2, 3), (1, 1), (3, 2))),
        ("rates_same", ([1, 7, 8, 1], (3, 3), (2, 1), (2, 3), "SAME")),
        ("one", ([1, 3, 3, 4], (1, 1))),
        ("all", ([2, 3, 3, 1], (3, 3))),
        ("large", ([1, 2, 2, 1], (3, 3))),
        ("too_large", ([1, 2, 2, 1], (6, 6), (2, 2))),
        ("empty", ([0, 4, 4, 1], (2, 2))),
        ("no_channels", ([1, 4, 4, 0], (2, 2))),
        ("wide", ([1, 9, 37, 3], (3, 3), (2, 2))),
    ]:
        inputs, attrs = images("float", *args)
        t.row(name, op, inputs, attrs, **EXACT)
    for name, args in [
        ("grad", ([2, 4, 5, 2], (2, 3))),
        ("grad_same", ([1, 5, 4, 2], (3, 2), (2, 1), (1, 1), "SAME")),
        ("grad_rates", ([1, 6, 5, 1], (2, 2), (1, 1), (2, 2))),
    ]:
        inputs, attrs = images("double", *args)
        t.row(name, op, inputs, attrs, grad=True)
    good = dict(ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
    for name, changed in [
        ("ksizes_5", dict(ksizes=[1, 2, 2, 1, 1])),
        ("ksizes_depth", dict(ksizes=[1, 2, 2, 2])),
        ("ksizes_zero", dict(ksizes=[1, 0, 2, 1])),
        ("strides_batch", dict(strides=[2, 1, 1, 1])),
        ("strides_5", dict(strides=[1, 1, 1, 1, 1])),
        ("strides_zero", dict(strides=[1, 0, 1, 1])),
        ("rates_depth", dict(rates=[1, 1, 1, 2])),
        ("rates_5", dict(rates=[1, 1, 1, 1, 1])),
        ("rates_zero", dict(rates=[1, 0, 1, 1])),
    ]:
        t.row(name, op, [drawn("float", [1, 4, 4, 1])], dict(good, **changed))
    t.row("matrix", op, [drawn("float", [4, 4])], good)

    op = "ExtractVolumePatches"
    volume = dict(ksizes=[1, 2, 2, 3, 1], strides=[1, 1, 2, 1, 1], padding="VALID")
    t.each("", op, "F I U", lambda d: [drawn(d, [1, 3, 4, 5, 2])], volume, **EXACT)
    t.row("same", op, [drawn("float", [2, 3, 4, 4, 1])], dict(volume, padding="SAME"), **EXACT)
    t.row("large", op, [drawn("float", [1, 1, 4, 4, 1])], volume)
    t.row("grad", op, [drawn("double", [1, 3, 4, 4, 2])], volume, grad=True)
    t.row("grad_same", op, [drawn("double", [1, 2, 3, 3, 1])], dict(volume, padding="SAME"), grad=True)
    for name, changed in [
        ("ksizes_6", dict(ksizes=[1, 2, 2, 1, 1, 1])),
        ("ksizes_batch", dict(ksizes=[2, 2, 2, 2, 1])),
        ("ksizes_zero", dict(ksizes=[1, 2, 0, 2, 1])),
        ("strides_depth", dict(strides=[1, 1, 1, 1, 2])),
        ("strides_zero", dict(strides=[1, 1, 1, 0, 1])),
    ]:
        t.row(name, op, [drawn("float", [1, 4, 4, 4, 1])], dict(volume, **changed))
    t.row("images", op, [drawn("float", [1, 4, 4, 1])], volume)


def diagonals(t):
    pad = lambda d, v=7: scalar(d, v if d not in ("bool",) else True)
    for v in ("V2", "V3"):
        part, make, put = "MatrixDiagPart" + v, "MatrixDiag" + v, "MatrixSetDiag" + v
        t.each("", part, "F I U C b", lambda d: [drawn(d, [2, 3, 4]), ivec(-1, 1), pad(d)], **EXACT)
        t.each(
            "",
            make,
            "F I U C b",
            lambda d: [drawn(d, [2, 3, 3]), ivec(-1, 1), iscalar(-1), iscalar(-1), pad(d)],
            **EXACT
        )
        t.each(
            "", put, "F I U C b", lambda d: [drawn(d, [2, 3, 4]), drawn(d, [2, 2, 3]), ivec(0, 1)], **EXACT
        )
        for name, s, k in [
            ("main", [3, 4], iscalar(0)),
            ("above", [3, 4], iscalar(2)),
            ("below", [3, 4], iscalar(-2)),
            ("tall", [5, 2], ivec(-3, 0)),
            ("all", [3, 3], ivec(-2, 2)),
            ("one_of_vector", [4, 3], ivec(1)),
            ("fed", [3, 3], vec("int32", [-1, 0])),
            ("empty", [0, 3, 3], ivec(0, 1)),
            ("no_rows", [0, 3], iscalar(0)),
            ("high", [3, 4], iscalar(4)),
            ("low", [3, 4], ivec(-3, 0)),
            ("order", [3, 4], ivec(1, 0)),
            ("three", [3, 4], ivec(0, 1, 2)),
            ("none", [3, 4], ivec()),
            ("k_matrix", [3, 4], const(given("int32", [1, 1], [0]))),
            ("vector", [4], iscalar(0)),
            ("fed_high", [3, 4], scalar("int32", 4)),
            ("fed_low", [3, 4], vec("int32", [-3, 0])),
            ("fed_order", [3, 4], vec("int32", [1, 0])),
            ("fed_three", [3, 4], vec("int32", [0, 1, 2])),
        ]:
            t.row(name, part, [drawn("float", s), k, pad("float")])
        t.row("pad_vector", part, [drawn("float", [3, 3]), iscalar(0), vec("float", [1, 2])])
        for name, s, k, rows, columns in [
            ("main", [3], iscalar(0), iscalar(-1), iscalar(-1)),
            ("above", [2], iscalar(2), iscalar(-1), iscalar(-1)),
            ("below", [2], iscalar(-1), iscalar(-1), iscalar(-1)),
            ("wide", [2], iscalar(1), iscalar(-1), iscalar(5)),
            ("tall", [3], iscalar(0), iscalar(5), iscalar(-1)),
            ("sizes", [2, 3], ivec(0, 1), iscalar(3), iscalar(4)),
            ("batch", [2, 2, 3], ivec(-1, 0), iscalar(-1), iscalar(-1)),
            ("batch_one", [2, 3], iscalar(1), iscalar(-1), iscalar(-1)),
            ("fed", [2, 3], vec("int32", [-1, 0]), scalar("int32", -1), scalar("int32", -1)),
            ("fed_sizes", [3], scalar("int32", 0), scalar("int32", 4), scalar("int32", -1)),
            ("few_rows", [3], iscalar(0), iscalar(2), iscalar(-1)),
            ("few_columns", [3], iscalar(1), iscalar(-1), iscalar(3)),
            ("too_large", [3], iscalar(0), iscalar(4), iscalar(4)),
            ("lines", [3, 3], ivec(0, 1), iscalar(-1), iscalar(-1)),
            ("order", [3, 3], ivec(1, 0), iscalar(-1), iscalar(-1)),
            ("fed_few_rows", [3], scalar("int32", 0), scalar("int32", 2), iscalar(-1)),
            ("none", [3], ivec(), iscalar(-1), iscalar(-1)),
            ("rows_vector", [3], iscalar(0), ivec(3), iscalar(-1)),
            ("fed_lines", [3, 3], vec("int32", [0, 1]), iscalar(-1), iscalar(-1)),
            ("scalar", [], iscalar(0), iscalar(-1), iscalar(-1)),
        ]:
            t.row(name, make, [drawn("float", s), k, rows, columns, pad("float")])
        for name, s, line, k in [
            ("main", [3, 4], [3], iscalar(0)),
            ("below", [3, 4], [2], iscalar(-1)),
            ("band", [4, 3], [3, 3], ivec(-1, 1)),
            ("batch", [2, 3, 3], [2, 3], iscalar(0)),
            ("fed", [3, 3], [2, 3], vec("int32", [-1, 0])),
            ("empty", [0, 3, 3], [0, 3], iscalar(0)),
            ("short", [3, 4], [2], iscalar(0)),
            ("lines", [3, 4], [3, 3], ivec(0, 1)),
            ("rank", [2, 3, 4], [10], vec("int32", [-1, 1])),
            ("deep", [2, 3, 4], [2, 2, 3], vec("int32", [-1, 1])),
            ("shallow", [2, 3, 4], [2, 3], vec("int32", [-1, 1])),
            ("high", [3, 4], [1], iscalar(4)),
            ("order", [3, 4], [2, 3], ivec(1, 0)),
            ("fed_short", [3, 4], [2], scalar("int32", 0)),
            ("batches", [2, 3, 3], [3, 3], iscalar(0)),
            ("none", [3, 4], [3], ivec()),
        ]:
            t.row(name, put, [drawn("float", s), drawn("float", line), k])
        t.row("grad", part, [drawn("double", [2, 3, 4]), ivec(-1, 1), scalar("double", 0)], grad=True)
        t.row("grad_one", part, [drawn("double", [3, 3]), iscalar(1), scalar("double", 0)], grad=True)
        # Stock's gradient of V2 expects diagonals aligned as in V3.
        lines, k = ([2, 3], iscalar(1)) if v == "V2" else ([2, 2, 3], ivec(0, 1))
        t.row(
            "grad",
            make,
            [drawn("double", lines), k, iscalar(-1), iscalar(-1), scalar("double", 0)],
            grad=True,
        )
        t.row("grad", put, [drawn("double", [2, 3, 4]), drawn("double", [2, 3, 3]), ivec(-1, 1)], grad=True)
    for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        a = {"align": align}
        t.row(align, "MatrixDiagPartV3", [drawn("float", [3, 4]), ivec(-2, 3), scalar("float", 9)], a)
        t.row(
            align,
            "MatrixDiagV3",
            [drawn("float", [4, 3]), ivec(-1, 2), iscalar(-1), iscalar(-1), scalar("float", 9)],
            a,
        )
        t.row(align, "MatrixSetDiagV3", [drawn("float", [3, 4]), drawn("float", [6, 3]), ivec(-2, 3)], a)
        t.row(
            "grad_" + align,
            "MatrixDiagPartV3",
            [drawn("double", [3, 4]), ivec(-1, 2), scalar("double", 0)],
            a,
            grad=True,
        )
        t.row(
            "grad_" + align,
            "MatrixSetDiagV3",
            [drawn("double", [3, 4]), drawn("double", [3, 3]), ivec(0, 2)],
            a,
            grad=True,
        )


def rolled(t):
    one = lambda v: const(vec("int32", [v]))
    t.each("", "Roll", "F I U C b s", lambda d: [drawn(d, [3, 4]), ivec(1, -1), ivec(0, 1)], **EXACT)
    for name, s, shift, axis in [
        ("scalar_shift", [5], iscalar(2), iscalar(0)),
        ("far", [5], iscalar(13), iscalar(0)),
        ("far_back", [5], iscalar(-13), iscalar(-1)),
        ("twice", [4, 3], ivec(1, 2), ivec(0, 0)),
        ("none", [4], ivec(), ivec()),
        ("zero", [4], iscalar(0), iscalar(0)),
        ("int64", [2, 3, 4], const(vec("int64", [1, 3])), const(vec("int64", [0, 2]))),
        ("middle", [2, 5, 3], iscalar(2), iscalar(1)),
        ("empty", [0, 3], iscalar(1), iscalar(0)),
        ("empty_axis", [3, 0], iscalar(1), iscalar(1)),
        ("fed", [6], scalar("int32", 2), scalar("int32", 0)),
        ("300", [300], iscalar(77), iscalar(0)),
        ("scalar", [], iscalar(1), iscalar(0)),
        ("shift_matrix", [3], const(given("int32", [1, 1], [1])), one(0)),
        ("axis_matrix", [3], one(1), const(given("int32", [1, 1], [0]))),
        ("counts", [3, 3], ivec(1, 2), ivec(0)),
        ("axis_high", [3, 3], one(1), one(2)),
        ("axis_low", [3, 3], one(1), one(-3)),
    ]:
        t.row(name, "Roll", [drawn("float", s), shift, axis])
    t.row("grad", "Roll", [drawn("double", [3, 4]), ivec(1, -2), ivec(0, 1)], grad=True)

    t.each(
        "", "ConjugateTranspose", "F I U C b s", lambda d: [drawn(d, [2, 3, 4]), ivec(2, 0, 1)], **EXACT
    )
    t.row("fed", "ConjugateTranspose", [drawn("complex64", [2, 3]), vec("int32", [1, 0])])
    t.row("scalar", "ConjugateTranspose", [drawn("complex128", []), ivec()])
    t.row("bad", "ConjugateTranspose", [drawn("complex64", [2, 3]), ivec(0, 0)])
    t.row("grad", "ConjugateTranspose", [drawn("double", [2, 3, 4]), ivec(2, 0, 1)], grad=True)


def scattered(t):
    at = given("int32", [3, 1], [4, 0, 2])
    for op in ("TensorScatterMax", "TensorScatterMin"):
        t.each("", op, "F I U", lambda d: [drawn(d, [6, 2]), at, drawn(d, [3, 2])], **EXACT)
        t.row("int64", op, [drawn("float", [4]), given("int64", [2, 1], [3, 1]), drawn("float", [2])])
        t.row("same", op, [drawn("float", [3]), given("int32", [3, 1], [1, 1, 1]), vec("float", [5, -7, 3])])
        t.row("points", op, [drawn("float", [2, 3]), given("int32", [2, 2], [1, 2, 0, 0]), drawn("float", [2])])
        t.row("none", op, [drawn("float", [3]), given("int32", [0, 1], []), drawn("float", [0])])
        t.row("high", op, [drawn("float", [3]), given("int32", [1, 1], [3]), drawn("float", [1])])
        t.row("shapes", op, [drawn("float", [3]), given("int32", [2, 1], [0, 1]), drawn("float", [3])])
        t.row("grad", op, [drawn("double", [5, 2]), at, drawn("double", [3, 2])], grad=True)
    op = "ScatterNdNonAliasingAdd"
    t.each("", op, "F I U C b", lambda d: [drawn(d, [6]), at, drawn(d, [3])], **EXACT)
    t.row("rows", op, [drawn("float", [5, 2]), at, drawn("float", [3, 2])])
    t.row("same", op, [drawn("int32", [3]), given("int32", [3, 1], [1, 1, 0]), vec("int32", [1, 2, 3])])
    t.row("high", op, [drawn("float", [3]), given("int32", [1, 1], [3]), drawn("float", [1])])
    t.row("grad", op, [drawn("double", [5, 2]), at, drawn("double", [3, 2])], grad=True)
    place = [ivec(1, 0), ivec(3, 2), ivec(1, 1)]
    op = "ResourceStridedSliceAssign"
    for d in dtypes("F I U C b s"):
        t.row(d, op, [resource(drawn(d, [4, 3]))] + place + [drawn(d, [2, 2])])
    t.row(
        "shrink",
        op,
        [resource(drawn("float", [4, 3])), ivec(1), ivec(2), ivec(1), drawn("float", [3])],
        {"shrink_axis_mask": 1},
    )
    t.row(
        "masks",
        op,
        [resource(drawn("float", [4, 3])), ivec(0, 0), ivec(2, 0), ivec(1, 2), drawn("float", [4, 2])],
        {"begin_mask": 1, "end_mask": 3},
    )
    t.row("shape", op, [resource(drawn("float", [4, 3]))] + place + [drawn("float", [2, 3])], message="code-only")


def formats(t):
    for op in ("DataFormatDimMap", "DataFormatVecPermute"):
        t.each("", op, "i", lambda d: [vec(d, [0, 1, 2, 3])])
        t.row("back", op, [vec("int32", [3, 2, 1, 0])], {"src_format": "NCHW", "dst_format": "NHWC"})
        t.row("three", op, [vec("int32", [0, 4, 2, 1, 3])], {"src_format": "NDHWC", "dst_format": "NCDHW"})
        t.row("short", op, [vec("int32", [0, 1, 2, 3])], {"src_format": "NHW"})
        t.row("short_to", op, [vec("int32", [0, 1, 2, 3])], {"dst_format": "NHW"})
        t.row("lengths", op, [vec("int32", [0, 1, 2, 3])], {"dst_format": "NCHWX"})
        t.row("letters", op, [vec("int32", [0, 1, 2, 3])], {"dst_format": "NCHX"})
    t.row("negative", "DataFormatDimMap", [vec("int32", [-1, -2, -3, -4])])
    t.row("matrix", "DataFormatDimMap", [given("int32", [2, 2], [0, 1, 2, 3])])
    t.row("scalar", "DataFormatDimMap", [scalar("int32", 3)])
    t.row("empty", "DataFormatDimMap", [vec("int32", [])])
    op = "DataFormatVecPermute"
    for name, s in [
        ("pairs", [4, 2]),
        ("space", [2]),
        ("space_pairs", [2, 2]),
        ("three_of_four", [3]),
        ("triples", [4, 3]),
        ("five_pairs", [5, 2]),
        ("scalar", []),
        ("cube", [1, 1, 1]),
    ]:
        t.row(name, op, [drawn("int32", s)])
    for name, s, formats in (("digits", [2], ("1234", "4321")), ("digits_pairs", [2, 2], ("1234", "4321")), ("five_digits", [3], ("12345", "54321"))):
        t.row(name, op, [drawn("int32", s)], {"src_format": formats[0], "dst_format": formats[1]})
    t.row("turned", op, [vec("int32", [1, 2, 3, 4])], {"src_format": "HWNC", "dst_format": "NCHW"})
    t.row("space_turned", op, [vec("int32", [1, 2])], {"src_format": "HWNC", "dst_format": "WHNC"})
    t.row("space_three", op, [vec("int32", [1, 2, 3])], {"src_format": "NDHWC", "dst_format": "NCDHW"})


def logs(t):
    op = "CumulativeLogsumexp"
    t.each("", op, "F", lambda d: [drawn(d, [3, 4]), iscalar(1)])
    for exclusive in (False, True):
        for reverse in (False, True):
            a = {"exclusive": exclusive, "reverse": reverse}
            name = ("exclusive_" if exclusive else "") + ("reverse" if reverse else "forward")
            t.row(name, op, [drawn("double", [5]), iscalar(0)], a)
            t.row("rows_" + name, op, [drawn("float", [3, 4]), iscalar(0)], a)
            t.row("grad_" + name, op, [drawn("double", [3, 4]), iscalar(1)], a, grad=True, fd=not exclusive)
    t.row("int64", op, [drawn("float", [3]), const(scalar("int64", -1))])
    t.row("special", op, [vec("float", [1, "-inf", 2, "inf", 3]), iscalar(0)])
    t.row("large", op, [vec("float", [1000, 1001, -1000]), iscalar(0)])
    t.row("empty", op, [drawn("float", [0, 2]), iscalar(0)])
    t.row("300", op, [drawn("float", [300]), iscalar(0)])
    t.row("axis", op, [drawn("float", [3]), iscalar(1)])
    t.row("fed_axis", op, [drawn("float", [3]), scalar("int32", 1)])


def fill(t):
    windows(t)
    diagonals(t)
    rolled(t)
    scattered(t)
    formats(t)
    logs(t)
