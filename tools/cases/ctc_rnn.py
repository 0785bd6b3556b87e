"""Recurrent cells, fused recurrent layers, and connectionist temporal classification."""

from .base import *


def fill(t):
    lstm(t)
    gru(t)
    ctc(t)


def params(d, batch, inputs, cell):
    s = lambda *dims: drawn(d, dims)
    return [
        s(batch, cell),
        s(batch, cell),
        s(inputs + cell, 4 * cell),
        s(cell),
        s(cell),
        s(cell),
        s(4 * cell),
    ]


def swap(inputs, i, spec):
    return inputs[:i] + [spec] + inputs[i + 1 :]


def lstm(t):
    peep = {"use_peephole": True}
    # Only the gradients of the cell state and of the output are defined.
    for d, more in (("float", {"tol": 1e-5}), ("half", {"tol": 1e-2})):
        x = lambda b=2, i=3, c=4: [drawn(d, [b, i])] + params(d, b, i, c)
        op = "LSTMBlockCell"
        t.row(d, op, x(), **more)
        t.row("peephole_" + d, op, x(), peep, **more)
        t.row("no_bias_" + d, op, x(), {"forget_bias": 0.0}, **more)
        t.row("clip_" + d, op, x(), {"cell_clip": 0.1}, **more)
        t.row("no_clip_" + d, op, x(), {"cell_clip": -1.0}, **more)
        t.row("wide_" + d, op, x(5, 7, 37), peep, **more)
        t.row("one_" + d, op, x(1, 1, 1), **more)
        for op in ("BlockLSTM", "BlockLSTMV2"):
            y = lambda n, b=2, i=3, c=4: [
                scalar("int64", n),
                drawn(d, [n, b, i]),
            ] + params(d, b, i, c)
            t.row(d, op, y(3), **more)
            t.row("peephole_" + d, op, y(3), peep, **more)
            t.row("clip_" + d, op, y(3), {"cell_clip": 0.1}, **more)
            t.row("long_" + d, op, y(9, 3, 5, 11), peep, **more)
            t.row(
                "short_" + d,
                op,
                [scalar("int64", 1), drawn(d, [3, 2, 3])] + params(d, 2, 3, 4),
                undefined=[0, 2, 3, 4, 5],
                **more
            )
        g = [drawn(d, [2, 4], 0.1, 0.9) for _ in range(8)]
        for p in (False, True):
            t.row(
                "%s_%s" % ("peephole" if p else "plain", d),
                "LSTMBlockCellGrad",
                x() + g,
                {"use_peephole": p},
                **more
            )
            for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
                h = [drawn(d, [3, 2, 4], 0.1, 0.9) for _ in range(9)]
                head = [scalar("int64", 3), drawn(d, [3, 2, 3])] + params(d, 2, 3, 4)
                name = "%s_%s" % ("peephole" if p else "plain", d)
                t.row(name, op, head + h, {"use_peephole": p}, **more)
    x = [drawn("float", [2, 3])] + params("float", 2, 3, 4)
    cell = {"grad": True, "grad_outputs": [1, 6]}
    # Clipping has no gradient, so these cases must not clip.
    t.row("grad", "LSTMBlockCell", x, {"cell_clip": 0.0}, **cell)
    t.row("grad_peephole", "LSTMBlockCell", x, dict(peep, cell_clip=0.0), **cell)
    block = [scalar("int64", 3), drawn("float", [3, 2, 3])] + params("float", 2, 3, 4)
    for op in ("BlockLSTM", "BlockLSTMV2"):
        # Stock uses the gradient of BlockLSTM for BlockLSTMV2, whose gates are in another order, so its
        # values are wrong: the tolerance leaves only the comparison with finite differences.
        more = dict(cell, **({"grad_tol": 100} if op == "BlockLSTMV2" else {}))
        t.row("grad", op, block, {"cell_clip": 0.0}, **more)
        t.row("grad_peephole", op, block, dict(peep, cell_clip=0.0), **more)
    for i, bad in (
        (0, [3, 3]),
        (1, [3, 4]),
        (1, [2, 5]),
        (2, [3, 4]),
        (2, [2, 5]),
        (3, [6, 16]),
        (3, [7, 15]),
        (7, [15]),
    ):
        name = "bad_%d_%s" % (i, "x".join(map(str, bad)))
        t.row(name, "LSTMBlockCell", swap(x, i, drawn("float", bad)))
        t.row(
            name,
            "BlockLSTM",
            swap(block, i + 1, drawn("float", ([3] if i == 0 else []) + bad)),
        )
    for i in (1, 2, 3, 4, 5, 6, 7, 8):
        t.row("rank_%d" % i, "BlockLSTM", swap(block, i, drawn("float", [2, 2, 2, 2])))
    t.row("length_vector", "BlockLSTM", swap(block, 0, vec("int64", [1])))
    t.row("bad_dtype", "BlockLSTM", [block[0]] + [dict(b, dtype="double") for b in block[1:]])
    zeros = lambda *shapes: [given("float", list(s), [] if 0 in s else 0.5) for s in shapes]
    cell = lambda b, i, c: zeros([b, i], [b, c], [b, c], [i + c, 4 * c], [c], [c], [c], [4 * c])
    for b, i, c in ((0, 0, 0), (0, 2, 3), (2, 0, 3), (2, 2, 0)):
        t.row("empty_%d_%d_%d" % (b, i, c), "LSTMBlockCell", cell(b, i, c))
    for k in range(8):
        t.row("empty_%d" % k, "LSTMBlockCell", swap(x, k, given("float", [0] * len(x[k]["shape"]), [])))
    t.row("rank_0", "LSTMBlockCell", swap(x, 0, drawn("float", [2, 3, 1])), message="code-only")


def gru(t):
    def args(b=2, i=3, c=4):
        s = lambda *dims: drawn("float", dims)
        return [s(b, i), s(b, c), s(i + c, 2 * c), s(i + c, c), s(2 * c), s(c)]

    op = "GRUBlockCell"
    t.row("", op, args())
    t.row("wide", op, args(5, 7, 37))
    t.row("one", op, args(1, 1, 1))
    t.row("grad", op, args(), grad=True, grad_outputs=[3])
    back = args() + [drawn("float", [2, 4], 0.1, 0.9) for _ in range(4)]
    t.row("", "GRUBlockCellGrad", back)
    wide = args(5, 7, 37) + [drawn("float", [5, 37], 0.1, 0.9) for _ in range(4)]
    t.row("wide", "GRUBlockCellGrad", wide)
    for i, bad in (
        (1, [3, 4]),
        (2, [6, 8]),
        (2, [7, 7]),
        (3, [6, 4]),
        (3, [7, 3]),
        (4, [7]),
        (5, [3]),
        (0, [3]),
        (1, [4]),
        (5, [1, 4]),
    ):
        name = "bad_%d_%s" % (i, "x".join(map(str, bad)))
        t.row(name, op, swap(args(), i, drawn("float", bad)))
    for i in range(6, 10):
        t.row("bad_%d_rows" % i, "GRUBlockCellGrad", swap(back, i, drawn("float", [3, 4])))
        t.row("bad_%d_columns" % i, "GRUBlockCellGrad", swap(back, i, drawn("float", [2, 3])))


class Tolerant:
    """A table that adds a tolerance to its rows."""

    def __init__(self, table, tol):
        self.table, self.tol = table, tol

    def row(self, *args, **more):
        self.table.row(*args, **dict({"tol": self.tol, "grad_tol": self.tol}, **more))


def ctc(table):
    labels = [
        given("int64", [4, 2], [0, 0, 0, 1, 1, 0, 1, 1]),
        vec("int32", [1, 2, 1, 1]),
    ]
    lengths = vec("int32", [6, 5])
    for d in ("float", "double"):
        # Stock adds logarithms in float even for double.
        t = Tolerant(table, 1e-6 if d == "double" else 1e-5)
        x = [drawn(d, [6, 2, 4], -2, 2)] + labels + [lengths]
        op = "CTCLoss"
        t.row(d, op, x)
        for name in (
            "preprocess_collapse_repeated",
            "ignore_longer_outputs_than_inputs",
        ):
            t.row("%s_%s" % (name, d), op, x, {name: True})
        t.row("no_merge_" + d, op, x, {"ctc_merge_repeated": False})
        t.row(
            "both_" + d,
            op,
            x,
            {"ctc_merge_repeated": False, "preprocess_collapse_repeated": True},
        )
        t.row("grad_" + d, op, x, grad=True, grad_outputs=[0])
        if d == "float":
            t.row(d, "CTCLossV2", x, beyond=True, message="code-only")
        for merge in (False, True):
            m = {"merge_repeated": merge}
            y = [drawn(d, [9, 3, 4], -2, 2), vec("int32", [9, 5, 0])]
            t.row("%s_%s" % (merge, d), "CTCGreedyDecoder", y, m)
            z = [drawn(d, [7, 2, 4], -2, 2), vec("int32", [7, 5])]
            for width, paths in ((1, 1), (4, 2), (30, 5)):
                t.row(
                    "%s_%d_%d_%s" % (merge, width, paths, d),
                    "CTCBeamSearchDecoder",
                    z,
                    dict(m, beam_width=width, top_paths=paths),
                )
        for blank in (0, 1, -1, -4, 4, -5):
            y = [drawn(d, [6, 2, 4], -2, 2), lengths]
            t.row("blank_%d_%s" % (blank, d), "CTCGreedyDecoder", y, {"blank_index": blank})
    t = table
    x = [drawn("float", [6, 2, 4], -2, 2)] + labels + [lengths]
    op = "CTCLoss"
    one = [given("int64", [2, 2], [0, 0, 1, 0]), vec("int32", [1, 2])]
    t.row("short", op, [x[0]] + one + [lengths])
    t.row("not_fitting", op, x[:3] + [vec("int32", [1, 5])])
    ignore = {"ignore_longer_outputs_than_inputs": True}
    t.row("not_fitting_ignored", op, x[:3] + [vec("int32", [1, 5])], ignore)
    t.row("no_path", op, x[:3] + [vec("int32", [2, 2])])
    numbers = [0.5, -1.0, 2.0, 0.25] * 12
    t.row("not_finite", op, [given("float", [6, 2, 4], numbers[:8] + ["nan"] + numbers[9:])] + x[1:])
    t.row("no_time", op, x[:3] + [vec("int32", [0, 5])])
    t.row("rank", op, swap(x, 0, drawn("float", [2, 3])))
    t.row("lengths", op, swap(x, 3, vec("int32", [1])))
    t.row("long", op, swap(x, 3, vec("int32", [7, 1])))
    t.row("negative_length", op, swap(x, 3, vec("int32", [-1, 2])))
    t.row("label_behind_end", op, swap(x, 2, vec("int32", [1, 2, 3, 1])))
    t.row("negative_label", op, swap(x, 2, vec("int32", [1, 2, 1, -1])))
    t.row("labels_rank", op, swap(x, 1, drawn("int64", [4])))
    t.row("labels_columns", op, swap(x, 1, given("int64", [4, 3], [0])))
    t.row("labels_rows", op, swap(x, 1, given("int64", [3, 2], [0, 0, 0, 1, 1, 0])))
    t.row("labels_beyond", op, swap(x, 1, given("int64", [4, 2], [0, 0, 0, 1, 1, 0, 5, 1])))
    t.row("no_labels", op, [x[0], given("int64", [0, 2], []), given("int32", [0], []), lengths])
    t.row("values_rank", op, swap(x, 2, given("int32", [1, 4], [1])))
    nothing = [given("int64", [0, 2], []), given("int32", [0], [])]
    for dims in ([3, 0, 4], [0, 2, 4], [3, 2, 0], [0, 0, 0]):
        name = "empty_" + "x".join(map(str, dims))
        some = [given("float", dims, [])]
        # Without classes, stock checks the labels first.
        more = {"message": "code-only"} if dims[1] and not dims[2] else {}
        t.row(name, op, some + nothing + [given("int32", [dims[1]], [0] if dims[1] else [])], **more)
    for op, attrs in (
        ("CTCGreedyDecoder", {}),
        ("CTCBeamSearchDecoder", {"beam_width": 5, "top_paths": 2}),
    ):
        y = [drawn("float", [5, 2, 4]), vec("int32", [5, 4])]
        t.row("rank", op, swap(y, 0, drawn("float", [2, 3])), attrs)
        t.row("long", op, swap(y, 1, vec("int32", [6, 1])), attrs)
        t.row("lengths", op, swap(y, 1, vec("int32", [6])), attrs)
    attrs = {"beam_width": 2, "top_paths": 3}
    t.row("paths", "CTCBeamSearchDecoder", y, attrs)
    attrs = {"beam_width": 5, "top_paths": 3}
    t.row("few", "CTCBeamSearchDecoder", [drawn("float", [1, 1, 2]), vec("int32", [1])], attrs)
