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


def fill(t):
    neighbours(t)
    starts(t)
    shrink(t)
