"""Sparse tensors: softmax, reductions, sets, crosses and counts; serialized, and in maps."""

from .base import *

ROWS = given("int64", [5, 2], [0, 0, 0, 2, 1, 1, 1, 3, 2, 0])
SIZES = vec("int64", [3, 4])
NONE = given("int64", [0, 2], [])
CUBE = given("int64", [4, 3], [0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1])
CUBES = vec("int64", [2, 2, 2])
MIXED = given("int64", [5, 2], [1, 0, 0, 2, 1, 1, 1, 3, 2, 0])


def fill(t):
    fill_groups(t)
    fill_sets(t)
    fill_cross(t)
    fill_serial(t)
    fill_map(t)
    fill_count(t)


def fill_groups(t):
    op = "SparseSoftmax"
    t.each("", op, "half f", lambda d: [ROWS, drawn(d, [5], -3, 3), SIZES])
    t.row("cube", op, [CUBE, drawn("float", [4], -3, 3), CUBES])
    t.row("mixed", op, [MIXED, drawn("float", [5], -3, 3), SIZES])
    t.row("none", op, [NONE, drawn("float", [0]), SIZES])
    t.row("large", op, [ROWS, vec("float", [1e30, -1e30, INF, 0, NAN]), SIZES])
    t.row("grad", op, [ROWS, drawn("double", [5], -3, 3), SIZES], grad=True)
    t.row("grad_cube", op, [CUBE, drawn("double", [4], -3, 3), CUBES], grad=True)
    t.row("vector", op, [given("int64", [2, 1], [1, 2]), drawn("float", [2]), vec("int64", [4])])
    t.row("short", op, [ROWS, drawn("float", [3]), SIZES])
    t.row("rank", op, [ROWS, drawn("float", [5]), CUBES])
    for op, kinds in (("SparseReduceSumSparse", "F I U C"), ("SparseReduceMaxSparse", "F I U")):
        t.each("", op, kinds, lambda d: [ROWS, drawn(d, [5], -9, 9), SIZES, vec("int32", [1])])
        for name, axes in (
            ("first", [0]),
            ("back", [-1]),
            ("all", [0, 1]),
            ("none", []),
            ("twice", [0, 0]),
            ("high", [5]),
        ):
            for keep in (False, True):
                t.row(
                    "%s_%d" % (name, keep),
                    op,
                    [ROWS, drawn("float", [5], -9, 9), SIZES, vec("int32", axes)],
                    {"keep_dims": keep},
                )
        for axes in ([0], [1], [2], [0, 2], [1, 2]):
            t.row(
                "cube_" + "_".join(map(str, axes)),
                op,
                [CUBE, drawn("float", [4]), CUBES, ivec(*axes)],
                {"keep_dims": len(axes) > 1},
            )
        t.row("empty", op, [NONE, drawn("float", [0]), SIZES, ivec(0)])
        t.row("mixed", op, [MIXED, drawn("float", [5]), SIZES, ivec(1)])
        t.row("short", op, [ROWS, drawn("float", [3]), SIZES, ivec(1)])
        t.row("scalar_axis", op, [ROWS, drawn("float", [5]), SIZES, iscalar(1)])
        t.row("matrix_axes", op, [ROWS, drawn("float", [5]), SIZES, given("int32", [1, 1], [1])])


def fill_sets(t):
    dd, ds, ss = (
        "DenseToDenseSetOperation",
        "DenseToSparseSetOperation",
        "SparseToSparseSetOperation",
    )
    ways = ("intersection", "union", "a-b", "b-a", "A-B")

    def dense(d, dims, values):
        return given(d, dims, ["w%d" % v for v in values] if d == "string" else values)

    a = lambda d: dense(d, [2, 4], [1, 2, 3, 3, 5, 4, 5, 4])
    b = lambda d: dense(d, [2, 3], [3, 9, 1, 7, 7, 4])
    places = given("int64", [3, 2], [0, 0, 0, 1, 1, 0])
    sizes = vec("int64", [2, 2])
    s = lambda d: [places, dense(d, [3], [3, 9, 5]), sizes]
    other = lambda d: [
        given("int64", [3, 2], [0, 1, 1, 0, 1, 1]),
        dense(d, [3], [3, 9, 5]),
        vec("int64", [2, 7]),
    ]
    for d in dtypes("I uint8 uint16 s"):
        for way in ways if d in ("int32", "string") else ("union",):
            t.row("%s_%s" % (d, way), dd, [a(d), b(d)], {"set_operation": way})
            t.row("%s_%s" % (d, way), ds, [a(d)] + s(d), {"set_operation": way})
            t.row("%s_%s" % (d, way), ss, s(d) + other(d), {"set_operation": way})
    for way in ("xor", "", "a - b"):
        t.row("way_" + way.replace(" ", "_"), dd, [a("int32"), b("int32")], {"set_operation": way})
    union = {"set_operation": "union"}
    i = "int32"
    t.row("groups", dd, [a(i), dense(i, [1, 3], [1, 2, 3])], union)
    t.row("vectors", dd, [dense(i, [2], [1, 2]), dense(i, [2], [1, 2])], union)
    t.row("ranks", dd, [a(i), dense(i, [1, 2, 1], [1, 2])], union)
    t.row("no_rows", dd, [dense(i, [0, 3], []), dense(i, [0, 2], [])], union)
    t.row("no_members", dd, [dense(i, [2, 0], []), b(i)], union)
    t.row("nothing", dd, [a(i), dense(i, [2, 1], [7, 8])], {"set_operation": "intersection"})
    cube = dense(i, [2, 2, 2], [1, 1, 2, 3, 4, 4, 5, 5])
    t.row("cube", dd, [cube, dense(i, [2, 2, 1], [1, 9, 4, 6])], union)
    minus = {"set_operation": "a-b"}
    one = dense(i, [1], [5])
    t.row("one", ds, [a(i), given("int64", [1, 2], [1, 0]), one, sizes], minus)
    back = given("int64", [2, 2], [1, 0, 0, 0])
    two = dense(i, [2], [5, 3])
    t.row("order", ds, [a(i), back, two, sizes], minus)
    t.row("unchecked", ds, [a(i), back, two, sizes], dict(minus, validate_indices=False))
    t.row("groups", ds, [a(i), places, dense(i, [3], [1, 2, 3]), vec("int64", [3, 2])], union)
    far = given("int64", [3, 2], [0, 0, 0, 5, 1, 0])
    t.row("far", ds, [a(i), far, dense(i, [3], [1, 2, 3]), sizes], union)
    t.row("short", ds, [a(i), places, two, sizes], union)
    t.row("vector", ds, [dense(i, [2], [1, 2])] + s(i), union)
    first = [given("int64", [1, 2], [0, 0]), one, vec("int64", [3, 2])]
    last = lambda n: [given("int64", [1, 2], [2, 1]), one, vec("int64", [n, 2])]
    t.row("apart", ss, first + last(3), union)
    t.row("groups", ss, first + last(4), union)
    t.row(
        "cube",
        ss,
        [given("int64", [1, 3], [0, 0, 1]), one, vec("int64", [2, 3, 2])]
        + [given("int64", [1, 3], [1, 2, 1]), one, vec("int64", [2, 3, 2])],
        union,
    )
    flat = [given("int64", [1, 1], [0]), one, vec("int64", [3])]
    t.row("vector", ss, flat + flat, union)
    op = "SetSize"
    for d in dtypes("I uint8 uint16 s"):
        t.row(d, op, [places, dense(d, [3], [3, 3, 5]), sizes])
    deep = given("int64", [3, 3], [0, 0, 0, 1, 2, 0, 1, 2, 1])
    t.row("cube", op, [deep, dense("string", [3], [1, 2, 3]), vec("int64", [2, 3, 2])])
    t.row("order", op, [back, two, sizes])
    t.row("unchecked", op, [back, two, sizes], {"validate_indices": False})
    t.row("far", op, [given("int64", [2, 2], [1, 0, 7, 0]), two, sizes])
    t.row("twice", op, [given("int64", [2, 2], [0, 0, 0, 0]), two, sizes])
    t.row("vector", op, [given("int64", [2, 1], [1, 2]), two, vec("int64", [4])])
    t.row("none", op, [NONE, dense(i, [0], []), sizes])
    free = {"validate_indices": False}
    for name, at in (("row", [0, 0, 9, 0]), ("column", [0, 9, 1, 0]), ("both", [0, 1, 0, 9])):
        wild = [given("int64", [2, 2], at), two, sizes]
        t.row("wild_" + name, op, wild, free)
        t.row("wild_" + name, ds, [a(i)] + wild, dict(union, **free))
        t.row("wild_" + name, ss, s(i) + wild, dict(union, **free))


def fill_cross(t):
    places = given("int64", [3, 2], [0, 0, 0, 2, 1, 1])
    words = vec("string", ["a", "b", "c"])
    more = vec("string", ["p", "q", "r"])
    numbers = vec("int64", [7, -8, 9223372036854775807])
    sizes = vec("int64", [2, 4])
    dense = given("string", [2, 2], ["x", "y", "z", "w"])
    dense_numbers = given("int64", [2, 2], [1, 2, 3, 4])
    types = lambda xs: [x["dtype"] for x in xs]

    def inputs(indices, values, shapes, dense):
        attrs = {"N": len(indices), "sparse_types": types(values), "dense_types": types(dense)}
        return [indices, values, shapes, dense], attrs

    def first(name, indices, values, shapes, dense, out="string", inner="string", **more_attrs):
        args, attrs = inputs(indices, values, shapes, dense)
        attrs.update(hashed_output=out == "int64", num_buckets=0, hash_key=956888297470)
        attrs.update(out_type=out, internal_type=inner)
        attrs.update(more_attrs)
        t.row(name, "SparseCross", args, attrs)

    two = lambda other: ([places, places], [words, other], [sizes, sizes])
    first("strings", *two(more), [dense])
    first("mixed", *two(numbers), [dense, dense_numbers], inner="int64")
    first("mixed_hashed", *two(numbers), [dense, dense_numbers], "int64", "int64")
    first("mixed_buckets", *two(numbers), [dense, dense_numbers], "int64", "int64", num_buckets=100)
    first("strings_hashed", *two(more), [dense], "int64", num_buckets=10, hash_key=0)
    first("type", *two(numbers), [dense])
    first("dense_type", [], [], [], [dense, dense_numbers])
    first("one", [places], [words], [sizes], [])
    first("dense", [], [], [], [dense, dense])
    first("nothing", [], [], [], [])
    odd = lambda numbers: given("int64", [3, 2], numbers)
    first("row_far", [places, odd([0, 0, 0, 2, 7, 1])], [words, more], [sizes, sizes], [dense])
    first("row_low", [places, odd([0, 0, 0, 2, -1, 1])], [words, more], [sizes, sizes], [dense])
    first("row_back", [places, odd([0, 0, 1, 2, 0, 1])], [words, more], [sizes, sizes], [dense])
    first("row_back_first", [odd([0, 0, 1, 2, 0, 1]), places], [words, more], [sizes, sizes], [dense])
    first("batch", [places, places], [words, more], [sizes, vec("int64", [3, 4])], [dense])
    first("dense_batch", *two(more), [given("string", [1, 2], ["x", "y"])])
    first("values", [places, places], [words, vec("string", ["a"])], [sizes, sizes], [dense])
    first("shape", [places, places], [words, more], [sizes, vec("int64", [2])], [dense])
    first("dense_vector", *two(more), [vec("string", ["x", "y"])])
    first("columns", [places, given("int64", [3, 1], [0, 0, 1])], [words, more], [sizes, sizes], [dense])
    first("indices", [places, vec("int64", [0])], [words, more], [sizes, sizes], [dense])
    first("no_width", *two(more), [given("string", [2, 0], [])])
    op = "SparseCrossV2"
    args, attrs = inputs(*two(numbers), [dense, dense_numbers])
    for name, sep in (("sep", "^"), ("no_sep", ""), ("long_sep", "_and_also_")):
        t.row(name, op, args + [scalar("string", sep)], attrs)
    t.row("sep_vector", op, args + [vec("string", ["a"])], attrs, message={"starts": "Input separator should be a scalar."})
    op = "SparseCrossHashed"
    salt = vec("int64", [1, 2])
    tail = lambda n, strong, salt: [scalar("int64", n), scalar("bool", strong), salt]
    t.row("buckets", op, args + tail(100, False, salt), attrs)
    t.row("all", op, args + tail(0, False, salt), attrs)
    t.row("negative", op, args + tail(-1, False, salt), attrs)
    t.row("salt_short", op, args + tail(100, False, vec("int64", [1])), attrs)
    strong_args, strong_attrs = inputs([places, places], [words, numbers], [sizes, sizes], [dense])
    for key in ([1, 2], [5, 6]):
        t.row("strong", op, strong_args + tail(100, True, vec("int64", key)), strong_attrs)
    t.row("strong_all", op, strong_args + tail(0, True, salt), strong_attrs)


def fill_serial(t):
    one, many = "SerializeSparse", "SerializeManySparse"
    back, back_many = "DeserializeSparse", "DeserializeManySparse"
    kinds = "F I U C b s"
    of = lambda d: [ROWS, drawn(d, [5]), SIZES]
    for d in dtypes(kinds):
        t.row(d, one, of(d))
        t.row(d, many, of(d))
        t.row(d, back_many, [node(many, of(d))], {"dtype": d})
        for out in ("string", "variant"):
            made = node(many, of(d), {"out_type": out})
            t.row("%s_%s" % (d, out), back, [made], {"dtype": d})
    made = lambda indices, shape, out="string": node(
        one, [indices, drawn("float", [indices["shape"][0]]), shape], {"out_type": out}
    )
    f = {"dtype": "float"}
    for out in ("string", "variant"):
        pair = lambda x, y: node("Pack", [[x, y]])
        same = pair(made(ROWS, SIZES, out), made(given("int64", [1, 2], [5, 0]), vec("int64", [6, 1]), out))
        t.row("one_" + out, back, [made(ROWS, SIZES, out)], f)
        t.row("two_" + out, back, [same], f)
        t.row("square_" + out, back, [pair(same, same)], f)
        flat = made(given("int64", [1, 1], [5]), vec("int64", [6]), out)
        t.row("ranks_" + out, back, [pair(made(ROWS, SIZES, out), flat)], f)
        t.row("empty_rows_" + out, back, [node(many, [NONE, drawn("float", [0]), SIZES], {"out_type": out})], f)
        t.row("type_" + out, back, [made(ROWS, SIZES, out)], {"dtype": "int32"})
    t.row("two", back_many, [node("Pack", [[made(ROWS, SIZES), made(ROWS, SIZES)]])], f)
    text = lambda dims, *values: given("string", dims, list(values))
    for op in (back, back_many):
        t.row("rows", op, [text([1, 2], "a", "b")], f)
        t.row("bad", op, [text([1, 3], "a", "b", "c")], f)
        t.row("empty", op, [text([0, 3])], f)
        t.row("scalar", op, [text([], "a")], f)
        # Three serialized tensors that do not form a sparse tensor.
        t.row("scalars", op, [node("Reshape", [node("Pack", [[node("SerializeTensor", [scalar("int64", 1)])] * 3]), ivec(1, 3)])], f, message="code-only")
    t.row("vector", back, [text([1], "a")], f)
    for name, indices, n, sizes in (
        ("far", given("int64", [3, 2], [0, 0, 5, 2, 1, 1]), 3, SIZES),
        ("order", given("int64", [3, 2], [1, 0, 0, 2, 1, 1]), 3, SIZES),
        ("flat", given("int64", [2, 1], [0, 1]), 2, vec("int64", [3])),
        ("no_rows", given("int64", [1, 2], [0, 1]), 1, vec("int64", [0, 3])),
        ("sizes", given("int64", [2, 2], [0, 1, 1, 1]), 2, vec("int64", [3])),
        ("values", given("int64", [2, 2], [0, 1, 1, 1]), 1, SIZES),
        ("indices", vec("int64", [0, 1]), 2, vec("int64", [3])),
        ("sizes_matrix", given("int64", [2, 2], [0, 1, 1, 1]), 2, given("int64", [1, 1], [3])),
    ):
        for op in (one, many):
            t.row(name, op, [indices, drawn("float", [n]), sizes])
    t.row("none", one, [NONE, drawn("float", [0]), SIZES])
    t.row("none", many, [NONE, drawn("float", [0]), SIZES])
    t.row("cube", many, [CUBE, drawn("float", [4]), CUBES])


def fill_map(t):
    add, many, take = (
        "AddSparseToTensorsMap",
        "AddManySparseToTensorsMap",
        "TakeManySparseFromTensorsMap",
    )
    for d in dtypes("F I U C b s"):
        name = {"shared_name": "map_" + d}
        added = node(many, [ROWS, drawn(d, [5]), SIZES], name)
        t.row(d, take, [added], dict(name, dtype=d))
    named = lambda n: {"shared_name": "map_" + n}
    one = lambda n: node(add, [ROWS, drawn("float", [5]), SIZES], named(n))
    t.row("two", take, [node("Pack", [[one("two"), one("two")]])], dict(named("two"), dtype="float"))
    deep = node(add, [CUBE, drawn("float", [4]), CUBES], named("ranks"))
    t.row("ranks", take, [node("Pack", [[one("ranks"), deep]])], dict(named("ranks"), dtype="float"))
    t.row("type", take, [node("Pack", [[one("type")]])], dict(named("type"), dtype="int32"))
    f = {"dtype": "float"}
    t.row("unknown", take, [vec("int64", [3])], dict(named("empty"), **f))
    t.row("none", take, [vec("int64", [])], dict(named("empty"), **f))
    t.row("matrix", take, [given("int64", [1, 1], [0])], dict(named("empty"), **f))
    t.row("first", add, [ROWS, drawn("float", [5]), SIZES], named("add"))
    t.row("first", many, [ROWS, drawn("float", [5]), SIZES], named("many"))
    for name, indices, n, sizes in (
        ("far", given("int64", [3, 2], [0, 0, 5, 2, 1, 1]), 3, SIZES),
        ("flat", given("int64", [2, 1], [0, 1]), 2, vec("int64", [3])),
        ("values", given("int64", [2, 2], [0, 1, 1, 1]), 1, SIZES),
        ("indices", vec("int64", [0, 1]), 2, vec("int64", [3])),
        ("sizes", given("int64", [2, 2], [0, 1, 1, 1]), 2, vec("int64", [3])),
    ):
        t.row(name, many, [indices, drawn("float", [n]), sizes], named("bad"))
        if name not in ("far", "flat"):
            t.row(name, add, [indices, drawn("float", [n]), sizes], named("bad"))


def fill_count(t):
    op = "DenseCountSparseOutput"
    grid = lambda d: given(d, [2, 3], [1, 1, 3, 2, 2, 9])
    none = lambda d: given(d, [0], [])
    counts = {"binary_output": False}
    for d in dtypes("i"):
        for out in dtypes("i f"):
            t.row("%s_%s" % (d, out), op, [grid(d), none(out)], counts)
            weights = given(out, [2, 3], [1, 2, 3, 4, 5, 6])
            t.row("%s_%s_weights" % (d, out), op, [grid(d), weights], counts)
    i = "int32"
    for name, attrs in (
        ("binary", {"binary_output": True}),
        ("least", {"minlength": 20}),
        ("most", {"maxlength": 3}),
        ("both", {"minlength": 5, "maxlength": 3}),
        ("most_0", {"maxlength": 0}),
    ):
        t.row(name, op, [grid(i), none("float")], dict(counts, **attrs))
        t.row(name + "_weights", op, [grid(i), given("float", [2, 3], [1, 2, 3, 4, 5, 6])], dict(counts, **attrs))
    for name, values in (
        ("vector", vec(i, [1, 1, 3])),
        ("zeros", vec(i, [0, 0])),
        ("negative", vec(i, [-1, 1])),
        ("cube", given(i, [1, 1, 1], [1])),
        ("scalar", scalar(i, 1)),
        ("empty", vec(i, [])),
        ("empty_rows", given(i, [2, 0], [])),
        ("no_rows", given(i, [0, 2], [])),
    ):
        t.row(name, op, [values, none("int64")], counts)
    t.row("weights_short", op, [vec(i, [1, 1, 3]), vec("float", [1, 2])], counts)
    op = "SparseCountSparseOutput"
    places = given("int64", [3, 2], [0, 0, 0, 1, 1, 1])
    values, sizes, three = vec(i, [5, 5, 2]), vec("int64", [3, 4]), vec("float", [1, 2, 3])
    for d in dtypes("i"):
        for out in dtypes("i f"):
            t.row("%s_%s" % (d, out), op, [places, vec(d, [5, 5, 2]), sizes, vec(out, [1, 2, 3])], counts)
    for name, indices, v, s, w in (
        ("counts", places, values, sizes, none("int64")),
        ("vector", given("int64", [3, 1], [0, 2, 3]), values, vec("int64", [4]), none("int64")),
        ("none", NONE, vec(i, []), sizes, none("float")),
        ("mixed", given("int64", [3, 2], [1, 0, 0, 1, 0, 0]), values, sizes, three),
        ("cube", given("int64", [1, 3], [0, 0, 0]), vec(i, [5]), vec("int64", [3, 4, 5]), none("float")),
        ("negative", places, vec(i, [5, -5, 2]), sizes, none("float")),
        ("values", places, vec(i, [5, 5]), sizes, none("float")),
        ("weights", places, values, sizes, vec("float", [1, 2])),
        ("sizes", places, values, vec("int64", [3, 4, 5]), none("float")),
        ("indices", vec("int64", [0]), vec(i, [5]), vec("int64", [3]), none("float")),
    ):
        t.row(name, op, [indices, v, s, w], counts)
    for name, numbers in (("far", [0, 0, 0, 1, 4, 1]), ("wide", [0, 0, 0, 1, 1, 9]), ("low", [0, 0, 0, 1, -1, 1])):
        starts = {"starts": "Invalid index value at 2: dimension "}
        t.row(name, op, [given("int64", [3, 2], numbers), values, sizes, none("float")], counts, message=starts)
    op = "RaggedCountSparseOutput"
    for d in dtypes("i"):
        for out in dtypes("i f"):
            t.row("%s_%s" % (d, out), op, [vec("int64", [0, 2, 2, 3]), vec(d, [5, 5, 2]), vec(out, [1, 2, 3])], counts)
    for name, splits, v, w in (
        ("counts", [0, 2, 2, 3], [5, 5, 2], []),
        ("end", [0, 2], [5, 5, 2], []),
        ("start", [1, 3], [5, 5, 2], []),
        ("no_splits", [], [5], []),
        ("one_split", [0], [5], []),
        ("back", [0, 2, 1, 3], [5, 5, 2], []),
        ("far", [0, 9, 3], [5, 5, 2], []),
        ("weights", [0, 2, 2, 3], [5, 5, 2], [1, 2]),
        ("negative", [0, 2, 2, 3], [5, 5, -2], []),
        ("nothing", [0, 0, 0], [], []),
    ):
        t.row(name, op, [vec("int64", splits), vec(i, v), vec("float", w)], counts)
