"""Random streams: the same seeds give the same numbers."""

from .base import *

SEEDS = {"seed": 7, "seed2": 11}
EXACT = {"tol": 0}


def fill(t):
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        exact = EXACT if op == "RandomUniform" else {}
        for d in F:
            t.row(d, op, [ivec(9)], dict(SEEDS, dtype=d), **exact)
            t.row("200_" + d, op, [ivec(200)], dict(SEEDS, dtype=d), **exact)
        for name, s in (
            ("scalar", []),
            ("one", [1]),
            ("five", [5]),
            ("matrix", [3, 4]),
            ("empty", [0, 3]),
            ("1000", [1000]),
        ):
            t.row(name, op, [ivec(*s)], dict(SEEDS, dtype="float"), **exact)
        for a, b in ((1, 0), (0, 1), (87654321, 42), (-1, -5), (2**40, 3)):
            t.row(
                "seeds_%d_%d" % (a, b),
                op,
                [ivec(6)],
                {"seed": a, "seed2": b, "dtype": "float"},
                **exact
            )
        t.row(
            "second_run",
            op,
            [ivec(6)],
            dict(SEEDS, dtype="float"),
            then=[node("Identity", [use("node")])] * 2,
            **exact
        )
        t.row("int64_shape", op, [const(vec("int64", [2, 2]))], dict(SEEDS, dtype="float"), **exact)
        t.row("fed_shape", op, [vec("int32", [2, 2])], dict(SEEDS, dtype="float"), **exact)
        t.row("negative", op, [vec("int32", [2, -2])], dict(SEEDS, dtype="float"))
        t.row("const_negative", op, [ivec(2, -2)], dict(SEEDS, dtype="float"))
        t.row("shape_matrix", op, [given("int32", [1, 1], [2])], dict(SEEDS, dtype="float"))
        t.row("bad_dtype", op, [ivec(2)], dict(SEEDS, dtype="int32"))
        t.row("float_shape", op, [vec("float", [2])], dict(SEEDS, dtype="float"))
    op = "RandomUniformInt"
    for d in ("int32", "int64"):
        for name, lo, hi, n in (
            ("small", 0, 10, 37),
            ("negative", -5, 5, 9),
            ("wide", -2000000000, 2000000000, 9),
            ("one", 3, 4, 5),
        ):
            t.row("%s_%s" % (name, d), op, [ivec(n), scalar(d, lo), scalar(d, hi)], SEEDS)
    t.row(
        "second_run",
        op,
        [ivec(4), scalar("int32", 0), scalar("int32", 100)],
        SEEDS,
        then=[node("Identity", [use("node")])],
    )
    t.row("empty_range", op, [ivec(4), scalar("int32", 3), scalar("int32", 3)], SEEDS)
    t.row("vector", op, [ivec(4), vec("int32", [3]), scalar("int32", 5)], SEEDS)
    t.row("empty", op, [ivec(0), scalar("int32", 3), scalar("int32", 5)], SEEDS)
    t.each("", "RandomShuffle", "F I U C b s", lambda d: [drawn(d, [7])], SEEDS, **EXACT)
    for name, s in (
        ("matrix", [6, 3]),
        ("rank3", [4, 2, 3]),
        ("one", [1, 5]),
        ("scalar", []),
        ("empty", [0, 2]),
        ("100", [100]),
    ):
        t.row(name, "RandomShuffle", [drawn("float", s)], SEEDS, **EXACT)
    t.row(
        "second_run",
        "RandomShuffle",
        [drawn("int32", [6])],
        SEEDS,
        then=[node("Identity", [use("node")])],
    )
    for d in F:
        t.row(d, "Multinomial", [drawn(d, [2, 5], -3, 3), iscalar(9)], SEEDS)
    t.row(
        "int32_out",
        "Multinomial",
        [drawn("float", [2, 5]), iscalar(9)],
        dict(SEEDS, output_dtype="int32"),
    )
    t.row("one_class", "Multinomial", [drawn("float", [2, 1]), iscalar(3)], SEEDS)
    t.row(
        "certain", "Multinomial", [given("float", [1, 3], ["-inf", 0.0, "-inf"]), iscalar(5)], SEEDS
    )
    t.row("none", "Multinomial", [drawn("float", [2, 4]), iscalar(0)], SEEDS)
    t.row("many", "Multinomial", [drawn("float", [3, 17], -3, 3), iscalar(60)], SEEDS)
    t.row(
        "second_run",
        "Multinomial",
        [drawn("float", [2, 4]), iscalar(6)],
        SEEDS,
        then=[node("Identity", [use("node")])],
    )
    t.row("negative", "Multinomial", [drawn("float", [2, 4]), scalar("int32", -1)], SEEDS)
    t.row("vector", "Multinomial", [drawn("float", [4]), iscalar(2)], SEEDS)
    t.row("no_classes", "Multinomial", [drawn("float", [2, 0]), iscalar(2)], SEEDS)
    samplers(t)
    t.row("float", "RandomGamma", [ivec(3), vec("float", [0.5, 2, 10])], SEEDS, tol=1e-5)
    t.row("double", "RandomGamma", [ivec(3), vec("double", [0.5, 2])], SEEDS, tol=1e-10)
    p = [scalar("float", 1), scalar("float", 2), scalar("float", -1), scalar("float", 3)]
    t.row(
        "scalars",
        "ParameterizedTruncatedNormal",
        [ivec(9)] + p,
        dict(SEEDS, dtype="float"),
        tol=1e-5,
    )
    t.row(
        "tail",
        "ParameterizedTruncatedNormal",
        [ivec(5), scalar("float", 0), scalar("float", 1), scalar("float", 4), scalar("float", 9)],
        dict(SEEDS, dtype="float"),
        tol=1e-5,
    )
    t.row(
        "bad_range",
        "ParameterizedTruncatedNormal",
        [ivec(5), scalar("float", 0), scalar("float", 1), scalar("float", 4), scalar("float", 2)],
        dict(SEEDS, dtype="float"),
    )


def samplers(t):
    true = given("int64", [2, 1], [3, 1])
    base = dict(SEEDS, num_true=1, num_sampled=4, unique=True)
    for op, more in (
        ("UniformCandidateSampler", {"range_max": 10}),
        ("LogUniformCandidateSampler", {"range_max": 10}),
        ("LearnedUnigramCandidateSampler", {"range_max": 10}),
        ("ThreadUnsafeUnigramCandidateSampler", {"range_max": 10}),
        ("AllCandidateSampler", {"num_sampled": 5}),
        ("FixedUnigramCandidateSampler", {"range_max": 5, "unigrams": [1.0, 2.0, 3.0, 4.0, 5.0]}),
    ):
        t.row("unique", op, [true], dict(base, **more))
        if op != "AllCandidateSampler":
            t.row("repeated", op, [true], dict(base, unique=False, **more))
        t.row("num_true", op, [true], dict(base, num_true=2, **more))
    t.row(
        "hits",
        "ComputeAccidentalHits",
        [given("int64", [2, 2], [3, 1, 5, 3]), vec("int64", [1, 5, 7])],
        dict(SEEDS, num_true=2),
    )
