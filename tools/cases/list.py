"""TensorLists: creation, updates, reads, concatenation and splitting, and their gradients."""

from .base import *

ANY = iscalar(-1)
KINDS = "F I U C b s qint8 quint8 qint32"


def empty(d="float", shape=None, most=-1):
    s = ANY if shape is None else ivec(*shape)
    return node("EmptyTensorList", [s, iscalar(most)], {"element_dtype": d})


def reserve(n, d="float", shape=None):
    s = ANY if shape is None else ivec(*shape)
    return node("TensorListReserve", [s, iscalar(n)], {"element_dtype": d})


def push(lst, x):
    return node("TensorListPushBack", [lst, x])


def pushed(*xs, d="float", shape=None):
    lst = empty(d, shape)
    for x in xs:
        lst = push(lst, x)
    return lst


def setitem(lst, i, x, **attrs):
    return node("TensorListSetItem", [lst, iscalar(i), x], attrs or None)


def stack(lst, d="float", shape=None):
    s = ANY if shape is None else ivec(*shape)
    return node("TensorListStack", [lst, s], {"element_dtype": d})


def length(lst):
    return node("TensorListLength", [lst])


def element_shape(lst):
    return node("TensorListElementShape", [lst], {"shape_type": "int64"})


def look(d="float", shape=None):
    """Returns nodes that read the length, element shape and contents of the list under test."""
    return [length(use("node")), element_shape(use("node")), stack(use("node"), d, shape)]


def x(*shape, d="float"):
    return drawn(d, shape)


def fill(t):
    make(t)
    ends(t)
    places(t)
    whole(t)
    rows(t)
    scatters(t)
    sums(t)
    grads(t)


def make(t):
    for op, second in (("EmptyTensorList", -1), ("TensorListReserve", 3)):
        for name, s in (
            ("any", ANY),
            ("scalar", ivec()),
            ("partial", ivec(2, -1)),
            ("full", ivec(2, 3)),
            ("int64", const(vec("int64", [4]))),
            ("fed", vec("int32", [2, -1])),
            ("scalar_shape", scalar("int32", 3)),
            ("const_scalar_shape", iscalar(3)),
            ("matrix", given("int32", [1, 1], [2])),
            ("negative", vec("int32", [-2])),
            ("const_negative", ivec(-2)),
        ):
            t.row(
                name,
                op,
                [s, iscalar(second)],
                {"element_dtype": "float"},
                then=[length(use("node")), element_shape(use("node"))],
                # Stock's message names neither the node nor the shapes.
                **({"message": "code-only"} if "scalar_shape" in name else {})
            )
        t.row("vector", op, [ANY, vec("int32", [1, 2])], {"element_dtype": "float"})
    t.row("negative_count", "TensorListReserve", [ANY, iscalar(-1)], {"element_dtype": "float"})
    for n in (0, 1):
        lst = push(empty(most=n), x(2))
        t.row("limit_%d" % n, "TensorListPushBack", [lst, x(2)] if n else [empty(most=0), x(2)])


def ends(t):
    t.each(
        "",
        "TensorListPushBack",
        KINDS,
        lambda d: [pushed(drawn(d, [2]), d=d), drawn(d, [2])],
    )
    for d in dtypes(KINDS):
        lst = pushed(drawn(d, [2]), drawn(d, [2]), d=d)
        t.row("stack_" + d, "TensorListStack", [lst, ANY], {"element_dtype": d})
    t.row("first", "TensorListPushBack", [empty(), x(2, 3)], then=look())
    t.row("second", "TensorListPushBack", [pushed(x(2)), x(2)], then=look())
    t.row("shapes", "TensorListPushBack", [pushed(x(2)), x(3)], then=look())
    t.row("fits", "TensorListPushBack", [empty(shape=[-1, 2]), x(3, 2)], then=look())
    t.row("wrong_shape", "TensorListPushBack", [empty(shape=[2]), x(3)])
    t.row("wrong_rank", "TensorListPushBack", [empty(shape=[2]), x(2, 1)])
    t.row("wrong_dtype", "TensorListPushBack", [empty("double"), x(2)])
    t.row("empty_tensor", "TensorListPushBack", [empty(), x(0, 3)], then=look())
    two = dict(empty(), id="l")
    t.row(
        "shared",
        "TensorListPushBack",
        [push(dict(pushed(x(2)), id="l"), x(2)), x(2)],
        then=[stack(use("l")), stack(push(use("l"), x(2))), stack(use("node")), stack(use("l"))],
    )
    t.row(
        "both",
        "TensorListStack",
        [push(two, x(2)), ANY],
        {"element_dtype": "float"},
        then=[length(use("l")), stack(push(use("l"), x(3)))],
    )
    pop = "TensorListPopBack"
    f = {"element_dtype": "float"}
    t.row("", pop, [pushed(x(2), x(3)), ANY], f, then=[stack(use("node"))])
    t.row("to_empty", pop, [pushed(x(2)), ANY], f, then=[length(use("node"))])
    t.row("empty", pop, [empty(), ANY], f)
    t.row("unset", pop, [reserve(2, shape=[2]), ANY], f, then=[length(use("node"))])
    t.row("unset_shape", pop, [reserve(2), ivec(3)], f)
    t.row("unset_any", pop, [reserve(2), ANY], f)
    t.row("other_shape", pop, [pushed(x(2)), ivec(3)], f)
    t.row("wrong_dtype", pop, [pushed(x(2)), ANY], {"element_dtype": "double"})
    t.row(
        "shared",
        pop,
        [dict(pushed(x(2), x(2)), id="l"), ANY],
        f,
        then=[stack(use("l")), stack(use("node")), stack(use("l"))],
    )
    lists = node("Pack", [[empty(shape=[2]), pushed(x(2), shape=[2])]])
    batch = "TensorListPushBackBatch"
    first = node("Unpack", [use("node")], {"num": 2})
    last = dict(node("Unpack", [use("node")], {"num": 2}), output=1)
    t.row("", batch, [lists, x(2, 2)], then=[stack(first), stack(last)])
    t.row("count", batch, [lists, x(3, 2)])
    t.row("shape", batch, [lists, x(2, 3)])
    t.row("scalar", batch, [lists, x()])
    t.row("dtype", batch, [lists, x(2, 2, d="double")])


def places(t):
    get, put = "TensorListGetItem", "TensorListSetItem"
    f = {"element_dtype": "float"}
    for d in dtypes(KINDS):
        lst = pushed(drawn(d, [2]), drawn(d, [2]), d=d)
        t.row(d, get, [lst, iscalar(1), ANY], {"element_dtype": d})
        t.row("unset_" + d, get, [reserve(2, d, [3]), iscalar(1), ANY], {"element_dtype": d})
    lst = pushed(x(2), x(2, 3), x(0))
    for i in (-1, 0, 1, 2, 3):
        t.row("at_%d" % i, get, [lst, iscalar(i), ANY], f)
    t.row("fed", get, [lst, scalar("int32", 1), ANY], f)
    t.row("int64_shape", get, [lst, iscalar(0), const(vec("int64", [2]))], f)
    t.row("unset_any", get, [reserve(2), iscalar(0), ANY], f)
    t.row("unset_merged", get, [reserve(2, shape=[-1, 2]), iscalar(0), ivec(3, -1)], f)
    t.row("unset_sibling", get, [setitem(reserve(2), 1, x(2)), iscalar(0), ANY], f)
    t.row("unset_clash", get, [reserve(2, shape=[2]), iscalar(0), vec("int32", [3])], f)
    t.row("clash", get, [reserve(2, shape=[2]), iscalar(0), ivec(3)], f)
    t.row("wrong_dtype", get, [lst, iscalar(0), ANY], {"element_dtype": "int32"})
    t.row("many", get, [node("Pack", [[empty(), empty()]]), iscalar(0), ANY], f)
    t.row("", put, [reserve(3, shape=[2]), iscalar(1), x(2)], then=look())
    t.row("again", put, [pushed(x(2), x(2)), iscalar(1), x(2)], then=look())
    t.row("fed_index", put, [pushed(x(2), x(2)), scalar("int32", 0), x(2)], then=look())
    t.row(
        "shared",
        put,
        [dict(pushed(x(2), x(2)), id="l"), iscalar(0), x(2)],
        then=[stack(use("l")), stack(use("node")), stack(use("l"))],
    )
    for i in (-1, 2, 5):
        t.row("at_%d" % i, put, [reserve(2), iscalar(i), x(2)])
    grow = {"resize_if_index_out_of_bounds": True}
    t.row("grow", put, [pushed(x(2)), iscalar(3), x(2)], grow, then=look())
    t.row("grow_not", put, [pushed(x(2), x(2)), iscalar(0), x(2)], grow, then=look())
    t.row("shape", put, [reserve(2, shape=[3]), iscalar(0), x(2)])
    t.row("dtype", put, [reserve(2, "double"), iscalar(0), x(2)])


def whole(t):
    t.row("none", "TensorListLength", [empty()])
    t.row("three", "TensorListLength", [reserve(3)])
    t.row("many", "TensorListLength", [node("Pack", [[empty(), empty()]])])
    t.row("any", "TensorListElementShape", [empty()], {"shape_type": "int32"})
    t.row("scalar", "TensorListElementShape", [empty(shape=[])], {"shape_type": "int32"})
    t.row("partial", "TensorListElementShape", [empty(shape=[-1, 3])], {"shape_type": "int64"})
    for n in (0, 1, 2, 5):
        t.row(
            "%d" % n,
            "TensorListResize",
            [dict(pushed(x(2), x(2)), id="l"), iscalar(n)],
            then=look(shape=[2]) + [stack(use("l"))],
        )
    t.row("negative", "TensorListResize", [reserve(2), iscalar(-1)])
    t.row("vector", "TensorListResize", [reserve(2), vec("int32", [1])])
    join, f = "TensorListConcatLists", {"element_dtype": "float"}
    t.row("", join, [pushed(x(2)), pushed(x(2), x(2))], f, then=look())
    l = dict(pushed(x(2)), id="l")
    t.row("itself", join, [l, use("l")], f, then=look() + [stack(use("l"))])
    t.row("unset", join, [reserve(2, shape=[2]), pushed(x(2), shape=[2])], f, then=look())
    t.row("not_identical", join, [empty(shape=[2]), empty()], f)
    t.row("clash", join, [empty(shape=[2]), empty(shape=[3])], f)
    t.row("dtype_a", join, [empty("double"), empty("double")], f)
    t.row("dtype_b", join, [empty(), empty("double")], f)
    pair = node("Pack", [[pushed(x(2)), pushed(x(2))]])
    t.row("pairs", join, [pair, pair], f, then=[stack(node("Unpack", [use("node")], {"num": 2}))])
    t.row("sizes", join, [pair, node("Pack", [[empty()]])], f)


def rows(t):
    f = {"element_dtype": "float"}
    op = "TensorListStack"
    t.row("unset", op, [setitem(reserve(3), 1, x(2)), ANY], f)
    t.row("all_unset", op, [reserve(3, shape=[2, 2]), ANY], f)
    t.row("unknown", op, [reserve(3), ANY], f)
    t.row("empty", op, [empty(shape=[2]), ANY], f)
    t.row("empty_shape", op, [empty(), ivec(2)], f)
    t.row("empty_unknown", op, [empty(), ANY], f)
    t.row("count", op, [reserve(3, shape=[2]), ANY], dict(f, num_elements=3))
    t.row("wrong_count", op, [reserve(3, shape=[2]), ANY], dict(f, num_elements=4))
    t.row("ragged", op, [pushed(x(1), x(2)), ANY], f)
    t.row("ranks", op, [pushed(x(1), x(1, 1)), ANY], f)
    t.row("clash", op, [pushed(x(1), x(1)), vec("int32", [2])], f)
    t.row("const_clash", op, [pushed(x(1), shape=[1]), ivec(2)], f)
    t.row("dtype", op, [pushed(x(1)), ANY], {"element_dtype": "int32"})
    t.row("scalars", op, [pushed(x(), x(), x()), ANY], f)
    t.row("many", op, [node("TensorListFromTensor", [x(300, 16), ANY]), ANY], f)
    t.row("empty_elements", op, [pushed(x(0), x(0)), ANY], f)
    op = "TensorListGather"
    lst = pushed(x(2), x(2), x(2))
    for d in dtypes(KINDS):
        a = pushed(drawn(d, [2]), drawn(d, [2]), d=d)
        t.row(d, op, [a, ivec(1, 0, 1), ANY], {"element_dtype": d})
    t.row("none", op, [lst, ivec(), ANY], f)
    t.row("none_shape", op, [lst, ivec(), ivec(2)], f)
    t.row("below", op, [lst, ivec(0, -1), ANY], f)
    t.row("beyond", op, [lst, ivec(0, 3), ANY], f)
    t.row("unset", op, [reserve(3, shape=[2]), ivec(2, 0), ANY], f)
    t.row("unset_any", op, [reserve(3), ivec(2, 0), ANY], f)
    t.row("ragged", op, [pushed(x(1), x(2)), ivec(1, 0), ANY], f)
    t.row("ragged_same", op, [pushed(x(1), x(2)), ivec(1, 1), ANY], f)
    t.row("clash", op, [reserve(3, shape=[2]), ivec(0), ivec(3)], f)
    t.row("dtype", op, [lst, ivec(0), ANY], {"element_dtype": "double"})
    joins(t)
    parts(t)


def joins(t):
    f = {"element_dtype": "float"}
    none = const(given("int64", [0], []))
    for d in dtypes(KINDS):
        a = pushed(drawn(d, [2, 2]), drawn(d, [1, 2]), d=d)
        t.row(d, "TensorListConcatV2", [a, ANY, none], {"element_dtype": d})
    for op in ("TensorListConcat", "TensorListConcatV2"):
        more = [ANY, none] if op.endswith("V2") else []
        t.row("", op, [pushed(x(2), x(3))] + more, f)
        t.row("zero", op, [pushed(x(0, 2), x(3, 2), x(0, 2))] + more, f)
        t.row("scalars", op, [pushed(x(), x())] + more, f)
        t.row("clash", op, [pushed(x(1, 1), x(1, 2))] + more, f)
        t.row("ranks", op, [pushed(x(1, 1), x(1))] + more, f)
        t.row("empty", op, [empty()] + more, f)
        t.row("empty_shape", op, [empty(shape=[-1, 2])] + more, f)
        t.row("unset", op, [reserve(2, shape=[3, 2])] + more, f)
        t.row("unset_any", op, [reserve(2)] + more, f)
        t.row("unset_rows", op, [reserve(2, shape=[-1, 2])] + more, f)
        t.row("unset_one", op, [setitem(reserve(2, shape=[-1, 2]), 0, x(1, 2))] + more, f)
        t.row("unset_first", op, [setitem(reserve(2, shape=[-1, 2]), 1, x(1, 2))] + more, f)
        both = setitem(setitem(reserve(3, shape=[-1, 2]), 0, x(1, 2)), 1, x(2, 2))
        t.row("unset_last", op, [both] + more, f)
        t.row("dtype", op, [pushed(x(1))] + more, {"element_dtype": "double"})
        t.row("scalar_elements", op, [empty(shape=[])] + more, f)
    op = "TensorListConcat"
    t.row("shape", op, [pushed(x(1, 2), x(2, 2))], dict(f, element_shape=[-1, 2]))
    t.row("shape_clash", op, [pushed(x(1, 2), x(2, 2))], dict(f, element_shape=[-1, 3]))
    t.row("shape_rows", op, [pushed(x(1, 2), x(2, 2))], dict(f, element_shape=[1, 2]))
    op = "TensorListConcatV2"
    dims = lambda *v: const(vec("int64", list(v)))
    t.row("leading", op, [reserve(2, shape=[-1, 2]), ANY, dims(1, 2)], f)
    t.row("leading_wins", op, [reserve(2, shape=[3, 2]), ANY, dims(1, 2)], f)
    t.row("leading_short", op, [reserve(2, shape=[-1, 2]), ANY, dims(1)], f)
    one = setitem(reserve(2, shape=[-1, 2]), 0, x(1, 2))
    t.row("leading_set", op, [one, ANY, dims(5, 2)], f)
    t.row("leading_one", op, [one, ANY, dims(4)], f)
    t.row("shape", op, [reserve(2), ivec(3, 2), none], f)
    t.row("shape_clash", op, [setitem(reserve(2), 0, x(1, 2)), ivec(3, 2), none], f)
    t.row("shape_list_clash", op, [reserve(2, shape=[3, 2]), ivec(4, 2), none], f)
    t.row("int64", op, [pushed(x(1, 2)), const(vec("int64", [-1, 2])), none], f)
    for s in ([], [3], [-1], [1, 2, 3]):
        t.row("fed_%d" % len(s), op, [pushed(x(2), x(2), shape=[2]), vec("int32", s), none], f)
    for name, lead in (("vector", vec("int64", [1])), ("matrix", given("int64", [1, 1], [1])), ("scalar", scalar("int64", 1))):
        t.row("leading_" + name, op, [pushed(x(2), x(2)), ANY, lead], f)
        t.row("leading_unset_" + name, op, [reserve(1, shape=[-1, 2]), ANY, lead], f)
    t.row("scalars", op, [pushed(x(), x(), shape=[]), vec("int32", []), none], f)
    t.row("no_shape", "TensorListConcat", [reserve(0, shape=[])], dict(f, element_shape=[]))
    t.row("no_shape_open", "TensorListConcat", [reserve(0)], dict(f, element_shape=[]))


def parts(t):
    op = "TensorListFromTensor"
    t.each("", op, KINDS, lambda d: [drawn(d, [3, 2]), ANY])
    for d in ("float", "string", "int8"):
        t.row("look_" + d, op, [drawn(d, [3, 2]), ANY], then=look(d))
    t.row("wide", op, [x(3, 16), ANY], then=look())
    t.row("shape", op, [x(3, 2), ivec(-1)], then=look())
    t.row("full_shape", op, [x(3, 2), const(vec("int64", [2]))], then=look())
    t.row("scalars", op, [x(3), ANY], then=look())
    t.row("empty", op, [x(0, 2), ivec(2)], then=look())
    t.row("scalar", op, [x(), ANY])
    t.row("clash", op, [x(3, 2), ivec(3)])
    t.row("fed_clash", op, [x(3, 2), vec("int32", [3])])
    op = "TensorListSplit"
    dims = lambda *v: const(vec("int64", list(v)))
    at = lambda i: node(
        "TensorListGetItem", [use("node"), iscalar(i), ANY], {"element_dtype": "float"}
    )
    see = [length(use("node")), element_shape(use("node")), at(0), at(1)]
    t.each("", op, KINDS, lambda d: [drawn(d, [3, 2]), ANY, dims(1, 2)])
    t.row("two", op, [x(3, 2), ANY, dims(1, 2)], then=see)
    t.row("zero", op, [x(3, 2), ANY, dims(0, 3)], then=see)
    t.row("fed", op, [x(3, 2), ANY, vec("int64", [2, 1])], then=see)
    t.row("shape", op, [x(3, 2), ivec(-1, 2), dims(1, 2)], then=see)
    t.row("rows", op, [x(3), ivec(2), dims(1, 2)], then=see)
    t.row("few", op, [x(3, 2), ANY, dims(1, 1)])
    t.row("much", op, [x(3, 2), ANY, dims(1, 3)])
    t.row("negative", op, [x(3, 2), ANY, dims(-1, 4)])
    t.row("clash", op, [x(3, 2), ivec(-1, 3), dims(1, 2)])
    t.row("rank", op, [x(3, 2), ivec(2), dims(1, 2)], message="code-only")
    for name, s in (("scalar_shape", []), ("short_shape", [5]), ("clash_fed", [1, 3]), ("open_shape", [-1, 2])):
        for lengths in ([1, 2], [1], [4, -1]):
            t.row(name, op, [x(3, 2), vec("int32", s), vec("int64", lengths)])
    t.row("scalar", op, [x(), ANY, dims(1)])
    t.row("matrix", op, [x(3), ANY, given("int64", [1, 1], [3])])


def scatters(t):
    for op in ("TensorListScatter", "TensorListScatterV2"):
        more = [iscalar(-1)] if op.endswith("V2") else []
        t.each("", op, KINDS, lambda d: [drawn(d, [3, 2]), ivec(2, 0, 3), ANY] + more)
        t.row("look", op, [x(3, 2), ivec(2, 0, 3), ANY] + more, then=look())
        t.row("shape", op, [x(3, 2), ivec(2, 0, 1), ivec(2)] + more, then=look())
        t.row("twice", op, [x(3, 2), ivec(1, 0, 1), ANY] + more, then=look())
        t.row("none", op, [x(0, 2), ivec(), ANY] + more, then=[length(use("node"))])
        t.row("negative", op, [x(3, 2), ivec(2, -1, 1), ANY] + more)
        t.row("few", op, [x(3, 2), ivec(2, 1), ANY] + more)
        t.row("clash", op, [x(3, 2), ivec(2, 1, 0), ivec(3)] + more)
        t.row("scalar", op, [x(), ivec(2), ANY] + more)
    op = "TensorListScatterV2"
    for n in (-2, 3, 4, 7):
        t.row("%d" % n, op, [x(3, 2), ivec(2, 0, 3), ANY, iscalar(n)], then=look())
    for name, n in (("vector", vec("int32", [3])), ("matrix", given("int32", [1, 1], [3]))):
        t.row("number_" + name, op, [x(3, 2), ivec(2, 0, 3), vec("int32", [3]), n])
    op = "TensorListScatterIntoExistingList"
    t.row("few", op, [pushed(x(2)), x(2, 2), ivec(0)])
    t.row("matrix", op, [pushed(x(2)), x(2, 2), given("int32", [2, 1], [0, 1])])
    t.row("scalar", op, [pushed(x(2)), x(), ivec(0)])
    lst = dict(pushed(x(2), x(2)), id="l")
    t.row("", op, [lst, x(2, 2), ivec(1, 0)], then=look() + [stack(use("l"))])
    t.row("grow", op, [lst, x(2, 2), ivec(3, 0)], then=look()[:2])
    t.row("twice", op, [lst, x(3, 2), ivec(1, 0, 1)], then=look())
    t.row("dtype", op, [pushed(x(2)), x(1, 2, d="double"), ivec(0)])


def sums(t):
    a, b = pushed(x(2), x(3)), pushed(x(2), x(3))
    lists = lambda *v: node("AddN", [list(v)])
    f = {"element_dtype": "float"}
    get = lambda lst, i: ("TensorListGetItem", [lst, iscalar(i), ANY], f)
    t.row("sum", *get(lists(a, b), 1))
    t.row("sum_itself", *get(lists(dict(a, id="l"), use("l"), use("l")), 0))
    t.row("sum_unset", *get(lists(a, reserve(2)), 1))
    t.row("sum_unset_first", *get(lists(reserve(2), a, b), 1))
    t.row("sum_shapes", *get(lists(a, pushed(x(2), x(2))), 1))
    t.row("sum_lengths", *get(lists(a, empty()), 1))
    t.row("sum_dtypes", *get(lists(a, empty("double")), 1))
    t.row("sum_static", *get(lists(reserve(2, shape=[2]), reserve(2)), 1))
    fed = lambda *s: node("TensorListReserve", [vec("int32", list(s)), iscalar(2)], {"element_dtype": "float"})
    t.row("sum_clash_fed", *get(lists(fed(), fed(1)), 1))
    t.row("sum_clash_sizes", *get(lists(fed(2), fed(1)), 1))
    t.row("sum_clash", *get(lists(reserve(2, shape=[2]), reserve(2, shape=[3])), 1))
    t.row("zeros", *get(node("ZerosLike", [a]), 1))
    t.row("zeros_static", *get(node("ZerosLike", [reserve(2, shape=[2])]), 1))
    for d in dtypes("F C int32"):
        pair = [pushed(drawn(d, [2]), d=d), pushed(drawn(d, [2]), d=d)]
        t.row("sum_" + d, "TensorListStack", [lists(*pair), ANY], {"element_dtype": d})
    inner = push(
        node("EmptyTensorList", [ivec(), iscalar(-1)], {"element_dtype": "variant"}), pushed(x(2))
    )
    v = {"element_dtype": "variant"}
    t.row(
        "lists",
        "TensorListStack",
        [node("TensorListGetItem", [inner, iscalar(0), ivec()], v), ANY],
        f,
    )
    t.row(
        "zeros_lists",
        "TensorListStack",
        [node("TensorListGetItem", [node("ZerosLike", [inner]), iscalar(0), ivec()], v), ANY],
        f,
    )


def grads(t):
    for d in ("float", "double"):
        f = {"element_dtype": d}
        y = lambda *s: drawn(d, s)
        p = lambda *xs: pushed(*xs, d=d)
        none = const(given("int64", [0], []))
        g = {"grad": True}
        gl = {"grad": True, "stock_grad": False}
        t.row("grad_" + d, "TensorListStack", [p(y(2), y(2)), ANY], f, **gl)
        t.row("grad_pop_" + d, "TensorListPopBack", [p(y(2), y(3)), ANY], f, **gl)
        popped = node("TensorListPopBack", [p(y(2), y(2), y(2)), ANY], f)
        t.row("grad_popped_" + d, "TensorListStack", [popped, ANY], f, **gl)
        t.row("grad_" + d, "TensorListGetItem", [p(y(2), y(3)), iscalar(1), ANY], f, **gl)
        s = setitem(p(y(2), y(2)), 0, y(2))
        t.row("grad_set_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = setitem(p(y(2)), 2, y(2), resize_if_index_out_of_bounds=True)
        t.row("grad_set_grow_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = node("TensorListResize", [p(y(2), y(2)), iscalar(3)])
        t.row("grad_resize_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = node("TensorListResize", [p(y(2), y(2)), iscalar(1)])
        t.row("grad_cut_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = node("TensorListFromTensor", [y(3, 2), ANY])
        t.row("grad_rows_" + d, "TensorListGetItem", [s, iscalar(1), ivec(2)], f, **gl)
        t.row("grad_all_rows_" + d, "TensorListStack", [s, ANY], f, **gl)
        t.row("grad_" + d, "TensorListGather", [p(y(2), y(2), y(2)), ivec(2, 0), ANY], f, **gl)
        s = node("TensorListScatterV2", [y(2, 2), ivec(2, 0), ivec(2), iscalar(4)])
        t.row("grad_scattered_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = node("TensorListScatter", [y(2, 2), ivec(2, 0), ivec(2)])
        t.row("grad_scattered_v1_" + d, "TensorListStack", [s, ANY], f, **gl)
        s = node("TensorListScatterIntoExistingList", [p(y(2), y(2), y(2)), y(2, 2), ivec(2, 0)])
        t.row("grad_scattered_into_" + d, "TensorListStack", [s, ANY], f, **gl)
        t.row("grad_" + d, "TensorListConcatV2", [p(y(2, 2), y(1, 2)), ANY, none], f, **gl)
        t.row("grad_" + d, "TensorListConcat", [p(y(2, 2), y(1, 2))], f, **gl)
        s = node("TensorListSplit", [y(3, 2), ivec(-1, 2), const(vec("int64", [2, 1]))])
        t.row("grad_split_" + d, "TensorListConcatV2", [s, ANY, none], f, **gl)
        t.row("grad_part_" + d, "TensorListGetItem", [s, iscalar(0), ANY], f, **gl)
        both = dict(p(y(2), y(2)), id="l")
        s = node("AddV2", [
            node("TensorListGetItem", [both, iscalar(0), ivec(2)], f),
            node("TensorListGetItem", [use("l"), iscalar(1), ivec(2)], f),
        ])
        t.row("grad_sum_of_items_" + d, "TensorListStack", [p(s, y(2)), ANY], f, **gl)
