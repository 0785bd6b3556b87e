"""Clustering: nearest neighbours, initial centres of k-means; and SDCA's shrinking."""

from .base import *


def i64(value):
    return const(scalar("int64", value))


def neighbours(t):
    op = "NearestNeighbors"
    p, c = drawn("float", [7, 3]), drawn("float", [5, 3])
    for k in (1, 2, 5, 9):
        t.row("k%d" % k, op, [p, c, i64(k)], tol=1e-5)
    t.row("fed", op, [p, c, scalar("int64", 2)], tol=1e-5)
    t.row("wide", op, [drawn("float", [4, 40]), drawn("float", [30, 40]), i64(3)], tol=1e-4)
    t.row("ties", op, [given("float", [1, 1], 0.0), given("float", [4, 1], [1.0, -1.0, 1.0, -1.0]), i64(3)])
    t.row("no_points", op, [drawn("float", [0, 3]), c, i64(2)])
    t.row("no_centers", op, [p, drawn("float", [0, 3]), i64(2)])
    t.row("k0", op, [p, c, i64(0)])
    t.row("negative", op, [p, c, i64(-1)])
    t.row("k_vector", op, [p, c, const(vec("int64", [1, 2]))])
    t.row("sizes", op, [p, drawn("float", [5, 2]), i64(2)])
    t.row("rank", op, [drawn("float", [7]), c, i64(2)])
    t.row("centers_rank", op, [p, drawn("float", [3]), i64(2)])


def starts(t):
    op = "KmeansPlusPlusInitialization"
    p = drawn("float", [12, 2])
    for n, seed, retries in [(1, 1, 0), (3, 5, 0), (5, 7, 0), (3, 5, 2), (6, 9, 3), (12, 3, 0)]:
        t.row("n%d_%d_%d" % (n, seed, retries), op, [p, i64(n), i64(seed), i64(retries)])
    t.row("many", op, [p, i64(13), i64(1), i64(0)])
    t.row("none", op, [p, i64(0), i64(1), i64(0)])
    t.row("retries", op, [p, i64(2), i64(1), i64(-1)])
    t.row("rank", op, [drawn("float", [12]), i64(2), i64(1), i64(0)])
    t.row("vector", op, [p, const(vec("int64", [2])), i64(1), i64(0)])
    t.row("seed", op, [p, i64(2), const(vec("int64", [2])), i64(0)])
    t.row("empty", op, [drawn("float", [0, 2]), i64(1), i64(1), i64(0)])
    op = "KMC2ChainInitialization"
    for seed in (1, 2, 3, 77):
        t.row("seed%d" % seed, op, [drawn("float", [20], 0, 1), i64(seed)])
    t.row("one", op, [vec("float", [2.0]), i64(1)])
    t.row("rank", op, [drawn("float", [2, 3]), i64(1)])
    t.row("seed_vector", op, [drawn("float", [3]), const(vec("int64", [1]))])
    t.row("empty", op, [drawn("float", [0]), i64(1)])


def shrink(t):
    op = "SdcaShrinkL1"
    w = lambda *v: ref(vec("float", list(v)))
    t.row("one", op, [[w(1.0, -2.0, 0.3, -0.2)]], {"l1": 0.5, "l2": 1.0})
    t.row("two", op, [[w(1.0, -2.0), w(0.1, 5.0, -0.0)]], {"l1": 1.0, "l2": 4.0})
    t.row("no_l1", op, [[w(1.0, -2.0)]], {"l1": 0.0, "l2": 1.0})
    t.row("no_l2", op, [[w(1.0, -2.0)]], {"l1": 1.0, "l2": 0.0})
    t.row("neither", op, [[w(1.0, -2.0, 0.0)]], {"l1": 0.0, "l2": 0.0})


LOSSES = ["logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"]


def floats(values):
    """A tensor of floats with these values, nested as its shape."""
    shape, flat = [], values
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0] if flat else None
    flat = values
    while flat and isinstance(flat[0], list):
        flat = [v for row in flat for v in row]
    return given("float", shape, flat)


# Stock visits the examples in a random order: rows have one example, or examples without common features.
def sdca(t):
    def row(name, loss="squared_loss", l1=0.0, l2=1.0, parts=1, inner=1, adaptive=False, op="SdcaOptimizerV2", **other):
        args = dict(
            examples=[[0, 0]], features=[[0, 1]], values=[[1.0, 2.0]], dense=[[[1.0, -0.5]]], weights=[1.0],
            labels=[1.0], names=[[0, 1, 2]], sparse=[[0.1, 0.2, 0.3]], dense_weights=[[0.1, -0.3]],
            state=[[0.0, 0.0, 0.0, 0.0]],
        )  # fmt: skip
        args.update(other)
        of = lambda name: [vec("int64", v) for v in args[name]]
        fs = lambda name: [floats(v) for v in args[name]]
        inputs = [of("examples"), of("features"), fs("values"), fs("dense"), floats(args["weights"])]
        state = floats(args["state"]) if args["state"] else given("float", [0, 4], [])
        inputs += [floats(args["labels"]), of("names"), fs("sparse"), fs("dense_weights"), state]
        attrs = {"loss_type": loss, "l1": l1, "l2": l2, "num_loss_partitions": parts, "num_inner_iterations": inner}
        attrs["adaptive" if op.endswith("V2") else "adaptative"] = adaptive
        attrs["num_sparse_features"] = len(args["examples"])
        attrs["num_sparse_features_with_values"] = len(args["values"])
        attrs["num_dense_features"] = len(args["dense"])
        t.row(name, op, inputs, attrs, tol=1e-5)

    none = dict(examples=[], features=[], values=[], names=[], sparse=[])
    for loss in LOSSES:
        for label in (0.0, 1.0):
            at = [[0.1 if label else -0.1, 0.0, 0.0, 0.0]]
            row("%s_%d" % (loss, label), loss, 0.1, 2.0, labels=[label], weights=[0.7], state=at)
            row("%s_%d_parts" % (loss, label), loss, 0.1, 2.0, 3, labels=[label], weights=[0.7], state=at)
        row(loss + "_zeros", loss, **none, dense=[[[0.0]]], dense_weights=[[0.1]])
        row(loss + "_no_weight", loss, weights=[0.0])
        row(loss + "_label", loss, labels=[-0.5])
        row(loss + "_v1", loss, op="SdcaOptimizer", labels=[1.0], weights=[2.0])
        row(loss + "_steep", loss, l2=0.001, weights=[2.0])
        row(loss + "_far", loss, dense=[[[30.0, -20.0]]], l2=0.5, labels=[0.0])
    row("iterations", l1=0.1, l2=2.0, inner=10, labels=[-0.4])
    row("adaptive", l1=0.1, l2=2.0, adaptive=True, inner=2)
    row("adaptive_v1", op="SdcaOptimizer", l1=0.1, l2=2.0, adaptive=True, inner=2)
    two = dict(weights=[0.7, 1.0], labels=[1.0, 0.0], state=[[0.1, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    for loss in LOSSES:
        row(loss + "_apart", loss, l1=0.05, **none, dense=[[[2.0, 0.0], [0.0, 1.5]]], **dict(two, state=[[0.0] * 4] * 2))
    row("groups", inner=2, examples=[[0, 1], [0, 1, 1]], features=[[7, 5], [1, 2, 3]], values=[[2.0, 3.0]],
        names=[[5, 7], [3, 2, 1]], sparse=[[0.1, 0.2], [0.0, 0.5, -0.5]], dense=[], dense_weights=[], **two)  # fmt: skip
    row("gap", examples=[[1]], features=[[1]], values=[[2.0]], dense=[], dense_weights=[], **two)
    row("same_name", names=[[0, 1, 1]])
    row("many_rows", dense=[[[1.0, 2.0], [3.0, 4.0]]])
    row("many_weights", dense_weights=[[0.1, 0.2, 0.3]])
    row("shrunk_away", l1=10.0)
    row("nothing", weights=[], labels=[], state=[])
    # Refused.
    row("no_features", **none, dense=[], dense_weights=[])
    row("labels", labels=[1.0, 2.0])
    row("weights", weights=[1.0, 2.0])
    row("state_width", state=[[0.0]])
    row("state_rank", state=[0.0] * 4)
    row("state_rows", state=[[0.0] * 4] * 2)
    row("dense_rank", dense=[[1.0]])
    row("entries", examples=[[0]])
    row("columns", features=[[0]])
    row("no_such", features=[[0, 77]])
    row("negative", features=[[-1, 0]])
    row("twice", features=[[1, 1]])
    row("no_names", names=[[]], sparse=[[]])
    row("parts_0", parts=0)
    op = "SdcaFprint"
    text = lambda *values: vec("string", list(values))
    t.row("short", op, [text("", "a", "abc", "hello world", "0123456789abcdef", "x" * 33, "abc" * 20)])
    t.row("long", op, [text("y" * 143, "z" * 144, "0123456789" * 27, "abcdefg" * 100)])
    t.row("empty", op, [text()])
    t.row("rank", op, [given("string", [1, 1], ["a"])])
    t.row("scalar", op, [scalar("string", "a")])


def fill(t):
    sdca(t)
    neighbours(t)
    starts(t)
    shrink(t)
