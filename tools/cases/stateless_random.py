"""Stateless random ops: the same seeds, keys and counters give the same numbers."""

from .base import *

EXACT = {"tol": 0}


def seed(a, b, d="int64"):
    return vec(d, [a, b])


def key(k=12345, lo=0, hi=7, alg=1):
    return [vec("uint64", [k]), vec("uint64", [lo, hi]), scalar("int32", alg)]


def bounded(t):
    op = "StatelessParameterizedTruncatedNormal"
    seed = const(vec("int64", [7, 3]))
    f = lambda d, v: vec(d, v) if isinstance(v, list) else scalar(d, v)
    params = lambda d, *vs: [f(d, v) for v in vs]
    for d in ["half"] + dtypes("f"):
        for name, shape, ps in [
            ("wide", [6], (0.0, 1.0, -50.0, 50.0)),
            ("moved", [3, 2], (5.0, 2.0, 1.0, 9.0)),
            ("rejecting", [40], (0.0, 1.0, -1.4, 1.4)),
            ("narrow", [9], (0.0, 1.0, 0.1, 0.4)),
            ("tail", [9], (0.0, 1.0, 2.0, 9.0)),
            ("other_tail", [9], (0.0, 1.0, -9.0, -2.0)),
            ("each", [3, 2], ([0.0, 100.0], 1.0, -50.0, 150.0)),
            ("each_of_four", [5, 3], ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [-1.0, 0.5, -9.0], [2.0, 0.9, 20.0])),
            ("scalar", [], (0.0, 1.0, -2.0, 2.0)),
            ("empty", [0, 2], (0.0, 1.0, -2.0, 2.0)),
        ]:
            t.row("%s_%s" % (name, d), op, [ivec(*shape), seed] + params(d, *ps), tol={"half": 1e-3, "float": 1e-5}.get(d, 1e-12))
    outer = [given("float", [2, 1], [0.0, 10.0]), f("float", 1.0), f("float", -50.0), f("float", [40.0, 50.0, 60.0])]
    t.row("outer", op, [ivec(2, 2, 3), seed] + outer, tol=1e-5)
    t.row("shape", op, [ivec(3, 2), seed] + params("float", [0.0, 1.0, 2.0], 1.0, -5.0, 5.0), message="code-only")
    t.row("order", op, [ivec(3), seed] + params("float", 0.0, 1.0, 5.0, -5.0), message="code-only")
    t.row("seed", op, [ivec(3), const(vec("int64", [1]))] + params("float", 0.0, 1.0, -5.0, 5.0))


def fill(t):
    bounded(t)
    for base in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        exact = EXACT if "Uniform" in base else {}
        for op, place in ((base, [seed(7, 11)]), (base + "V2", key())):
            for d in F:
                t.row(d, op, [ivec(9)] + place, {"dtype": d}, **exact)
                t.row("200_" + d, op, [ivec(200)] + place, {"dtype": d}, **exact)
            for name, s in (
                ("scalar", []),
                ("one", [1]),
                ("matrix", [3, 4]),
                ("empty", [0, 3]),
                ("1000", [1000]),
            ):
                t.row(name, op, [ivec(*s)] + place, {"dtype": "float"}, **exact)
            t.row("again", op, [ivec(4)] + place, then=[node("Identity", [use("node")])], **exact)
            t.row("int64", op, [const(vec("int64", [2, 2]))] + place, **exact)
            t.row("fed", op, [vec("int32", [2, 2])] + place, **exact)
            t.row("negative", op, [vec("int32", [-2])] + place)
            t.row("shape_rank", op, [given("int32", [1, 1], [2])] + place)
            t.row("bad_dtype", op, [ivec(2)] + place, {"dtype": "int32"})
        places(t, base, [ivec(5)], [], exact)
    op = "StatelessRandomUniformFullInt"
    for d in ("int32", "int64", "uint32", "uint64"):
        t.row(d, op, [ivec(9), seed(3, 4)], {"dtype": d})
        t.row(d, op + "V2", [ivec(9)] + key(), {"dtype": d})
        t.row("seed_" + d, op, [ivec(3), seed(3, 4, d)])
    places(t, op, [ivec(5)], [], EXACT)
    op = "StatelessRandomUniformInt"
    for d in ("int32", "int64"):
        for name, lo, hi in (
            ("small", 0, 10),
            ("one", 3, 4),
            ("wide", 5, 2000000000),
            ("negative", -7, 5),
        ):
            bounds = [scalar(d, lo), scalar(d, hi)]
            t.row("%s_%s" % (name, d), op, [ivec(9), seed(3, 4)] + bounds)
            t.row("%s_%s" % (name, d), op + "V2", [ivec(9)] + key() + bounds)
    bounds = [scalar("int32", 1), scalar("int32", 9)]
    places(t, op, [ivec(5)], bounds, EXACT)
    for o, place in ((op, [seed(1, 2)]), (op + "V2", key())):
        t.row("empty_range", o, [ivec(3)] + place + [scalar("int32", 3)] * 2)
        t.row("vector", o, [ivec(3)] + place + [vec("int32", [3]), scalar("int32", 5)])
    for a, b in ((0, 0), (1, 2), (-1, -5), (2**40, 3), (-(2**62), 2**62)):
        t.row("%d_%d" % (a, b), "StatelessRandomGetKeyCounter", [seed(a, b)])
        t.row("%d_%d" % (a, b), "StatelessRandomGetKeyCounterAlg", [seed(a, b)])
    t.row("int32", "StatelessRandomGetKeyCounter", [seed(-3, 4, "int32")])
    t.row("size", "StatelessRandomGetKeyCounter", [vec("int64", [1, 2, 3])])
    t.row("rank", "StatelessRandomGetKeyCounter", [given("int64", [1, 2], [1])])
    t.row("", "StatelessRandomGetAlg")
    draws(t)
    rejects(t)
    casts(t)


def places(t, op, before, behind, exact):
    """Adds valid and invalid seeds, keys and counters."""
    for d in ("int32", "int64"):
        for a, b in ((0, 0), (1, 0), (0, 1), (-1, -5), (87654321, 42)):
            name = "%s_%d_%d" % (d, a, b)
            t.row(name, op, before + [seed(a, b, d)] + behind, **exact)
    t.row("wide", op, before + [seed(2**40, -(2**50))] + behind, **exact)
    t.row("seed_size", op, before + [vec("int64", [1])] + behind)
    t.row("seed_rank", op, before + [given("int64", [1, 2], [1])] + behind)
    v2 = op + "V2"
    for k, lo, hi in ((0, 0, 0), (1, 5, 0), (2**63 + 3, 2**64 - 2, 9), (77, 3, 2**63)):
        name = "%d_%d_%d" % (k, lo, hi)
        wide = [vec("uint64", [str(x) if x >= 2**63 else x for x in v]) for v in ([k], [lo, hi])]
        t.row(name, v2, before + wide + [scalar("int32", 1)] + behind, **exact)
    good = key()
    for name, i, bad in (
        ("key_size", 0, vec("uint64", [1, 2])),
        ("key_rank", 0, scalar("uint64", 1)),
        ("counter_rank", 1, given("uint64", [1, 2], [1])),
        ("counter_long", 1, vec("uint64", [1, 2, 3])),
        ("alg_rank", 2, vec("int32", [1])),
        ("alg_2", 2, scalar("int32", 2)),
        ("alg_3", 2, scalar("int32", 3)),
        ("alg_9", 2, scalar("int32", 9)),
    ):
        t.row(name, v2, before + good[:i] + [bad] + good[i + 1 :] + behind, **exact)


def draws(t):
    op = "StatelessMultinomial"
    for d in F:
        t.row(d, op, [drawn(d, [2, 5], -3, 3), iscalar(9), seed(7, 11)])
    t.row(
        "int32",
        op,
        [drawn("float", [2, 5]), iscalar(9), seed(7, 11, "int32")],
        {"output_dtype": "int32"},
    )
    t.row("many", op, [drawn("float", [3, 17], -3, 3), iscalar(60), seed(1, 2)])
    t.row("none", op, [drawn("float", [2, 4]), iscalar(0), seed(1, 2)])
    t.row("negative", op, [drawn("float", [2, 4]), scalar("int32", -1), seed(1, 2)])
    t.row("vector", op, [drawn("float", [4]), iscalar(2), seed(1, 2)])
    t.row("seed", op, [drawn("float", [2, 4]), iscalar(2), vec("int64", [1])])
    op = "StatelessShuffle"
    t.each("", op, "F I U C b s", lambda d: [drawn(d, [7])] + key(), **EXACT)
    for name, s in (
        ("matrix", [6, 3]),
        ("rank3", [4, 2, 3]),
        ("one", [1, 5]),
        ("scalar", []),
        ("empty", [0, 2]),
        ("100", [100]),
    ):
        t.row(name, op, [drawn("float", s)] + key(5, 3, 9), **EXACT)
    t.row("alg", op, [drawn("float", [4])] + key(alg=2))


def rejects(t):
    for d, tol in (("half", 1e-2), ("float", 1e-5), ("double", 1e-10)):
        a = vec(d, [0.5, 1, 2, 10])
        t.row(d, "StatelessRandomGammaV2", [ivec(6, 4), seed(7, 11), a], tol=tol)
        t.row(d, "StatelessRandomGammaV3", [ivec(6, 4)] + key() + [a], tol=tol)
    one = scalar("float", 3)
    t.row("scalar", "StatelessRandomGammaV3", [ivec(40)] + key() + [one], tol=1e-5)
    t.row("none", "StatelessRandomGammaV3", [ivec()] + key() + [one], tol=1e-5)
    t.row("empty", "StatelessRandomGammaV3", [ivec(0)] + key() + [one])
    for r in ("half", "float", "double", "int32", "int64"):
        rates = vec(r, [1, 3, 12, 100])
        t.row("to_int64_" + r, "StatelessRandomPoisson", [ivec(7, 4), seed(7, 11), rates], {"dtype": "int64"})
    for d in ("half", "float", "double", "int32"):
        rates = vec("double", [0.5, 3, 12, 100])
        t.row(d, "StatelessRandomPoisson", [ivec(7, 4), seed(7, 11), rates], {"dtype": d})
    t.row("scalar", "StatelessRandomPoisson", [ivec(9), seed(7, 11), scalar("float", 20)], {"dtype": "float"})
    op = "StatelessRandomBinomial"
    for d in ("half", "float", "double"):
        n, p = vec(d, [5, 100, 1000, 40]), vec(d, [0.5, 0.25, 0.75, 0.1])
        t.row(d, op, [ivec(7, 4), seed(7, 11), n, p], {"dtype": "float"})
    n, p = vec("double", [5, 100, 1000, 40]), vec("double", [0.5, 0.25, 0.75, 0.1])
    for d in ("int32", "int64", "double"):
        t.row("to_" + d, op, [ivec(7, 4), seed(7, 11), n, p], {"dtype": d})
    t.row("scalars", op, [ivec(9), seed(1, 2), scalar("float", 50), scalar("float", 0.3)])
    t.row("broadcast", op, [ivec(3, 4), seed(1, 2), n, scalar("double", 0.3)])
    few = [vec("double", [3, 12]), vec("double", [0.9, 0.7])]
    t.row("few_failures", op, [ivec(6, 2), seed(1, 2)] + few)
    t.row("wrong_end", op, [ivec(3, 3), seed(1, 2), n, p])
    t.row("wrong_batch", op, [ivec(3, 4), seed(1, 2), n, vec("double", [0.1, 0.2])])
    t.row("seed", op, [ivec(3, 4), vec("int64", [1]), n, p])
    for o, rate in (("StatelessRandomPoisson", "float"), ("StatelessRandomGammaV2", "float")):
        a = {"dtype": "float"}
        t.row("wrong_end", o, [ivec(3, 3), seed(1, 2), vec(rate, [1, 2])], a)
        t.row("seed", o, [ivec(3, 2), vec("int64", [1]), vec(rate, [1, 2])], a)
        t.row("shape_rank", o, [given("int32", [1, 1], [2]), seed(1, 2), vec(rate, [1, 2])], a)
    t.row("certain", op, [ivec(3, 4), seed(1, 2), n, vec("double", [0.0, 1.0, 0.0, 1.0])])


def casts(t):
    op = "StochasticCastToInt"
    key, at, alg = vec("uint64", [1]), vec("uint64", [0, 0]), scalar("int32", 1)
    for d in F:
        for out, lo in (("int8", -128), ("int16", -32768), ("int32", -65536)):
            whole = vec(d, [0, 1, -1, 2, 100, -100, lo, -lo // 2, NAN])
            t.row("%s_%s" % (d, out), op, [whole, key, at, alg], {"Tout": out})
            # Which fractions go up depends on the width of stock's vectors.
            t.row("%s_%s_fractions" % (d, out), op, [drawn(d, [2, 3]), key, at, alg], {"Tout": out}, undefined=[0])
    beyond = vec("float", [1e10, -1e10, INF, "-inf", 300.0, -300.0])
    t.row("beyond", op, [beyond, key, at, alg], {"Tout": "int8"})
    t.row("empty", op, [drawn("float", [0]), key, at, alg], {"Tout": "int8"})
    t.row("key", op, [drawn("float", [2]), vec("uint64", [1, 2]), at, alg], {"Tout": "int8"})
    t.row("alg", op, [drawn("float", [2]), key, at, scalar("int32", 7)], {"Tout": "int8"})
    t.row("alg_vector", op, [drawn("float", [2]), key, at, vec("int32", [1])], {"Tout": "int8"})
