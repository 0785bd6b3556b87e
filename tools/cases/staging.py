"""Staging areas, barriers, mutexes, session tensors, old versions of tensor arrays."""

from .base import *


def stages(t):
    one = {"dtypes": ["float"], "shared_name": "s"}
    two = {"dtypes": ["float", "int32"], "shared_name": "s"}
    named = {"shared_name": "s"}
    put = lambda *xs, **a: node("Stage", [list(xs)], dict(named, **a))
    x, y = vec("float", [1, 2]), vec("float", [3])
    t.row("one", "Stage", [[x]], named, then=[node("StageSize", [], one), node("Unstage", [], one)])
    t.row("order", "Unstage", [], one, before=[put(x), put(y)], then=[node("Unstage", [], one)])
    t.row("pair", "Unstage", [], two, before=[put(x, scalar("int32", 7))], then=[node("StageSize", [], two)])
    for d in dtypes("half bfloat16 double int8 int64 uint16 complex64 bool string"):
        t.row(d, "Unstage", [], {"dtypes": [d], "shared_name": "s"}, before=[put(drawn(d, [2, 2]))])
    t.row("mismatch", "Unstage", [], two, before=[put(x)], then=[node("StageSize", [], one)])
    t.row("first", "StagePeek", [scalar("int32", 0)], one, before=[put(x), put(y)], then=[node("StageSize", [], one)])
    t.row("second", "StagePeek", [scalar("int32", 1)], one, before=[put(x), put(y)])
    t.row("vector", "StagePeek", [vec("int32", [0])], one, before=[put(x)])
    t.row("none", "StageSize", [], one)
    t.row("two", "StageSize", [], one, before=[put(x), put(y)])
    t.row("all", "StageClear", [], one, before=[put(x), put(y)], then=[node("StageSize", [], one)])
    t.row("memory", "Stage", [[vec("float", [1, 2, 3])]], dict(named, memory_limit=8), message={"starts": "Attempted to insert"})
    t.row("fits", "Stage", [[x]], dict(named, memory_limit=8, capacity=1), then=[node("StageSize", [], one)])
    t.row("own_names", "Stage", [[x]], {}, then=[node("StageSize", [], {"dtypes": ["float"]})])
    t.row("no_types", "Unstage", [], {"dtypes": []})
    t.row("capacity_negative", "Stage", [[x]], {"capacity": -1})


def maps(t):
    for o in ("", "Ordered"):
        name = lambda op: o + op
        full = {"dtypes": ["float", "int32"], "shared_name": "m"}
        some = lambda *d: {"dtypes": list(d), "shared_name": "m"}
        k = lambda v: scalar("int64", v)
        at = lambda *v: vec("int32", list(v))
        a, b = scalar("float", 1.5), scalar("int32", 7)
        put = lambda key, idx, *xs: node(name("MapStage"), [k(key), at(*idx), list(xs)], full)
        size = node(name("MapSize"), [], full)
        missing = node(name("MapIncompleteSize"), [], full)
        stage, unstage, peek = name("MapStage"), name("MapUnstage"), name("MapPeek")
        t.row("whole", stage, [k(1), at(0, 1), [a, b]], full, then=[size, missing])
        t.row("part", stage, [k(1), at(0), [a]], full, then=[size, missing])
        t.row("rest", stage, [k(1), at(1), [b]], full, before=[put(1, [0], a)], then=[size, missing])
        t.row("again", stage, [k(1), at(0), [a]], full, before=[put(1, [0], a)], then=[missing])
        t.row("disorder", stage, [k(1), at(1, 0), [b, a]], full)
        t.row("negative", stage, [k(7), at(-1), [a]], full)
        t.row(
            "memory",
            stage,
            [k(1), at(0), [drawn("float", [100])]],
            dict(some("float"), memory_limit=64),
            message={"starts": "Attempted to insert"},
        )
        t.row("whole", unstage, [k(1), at(0, 1)], full, before=[put(1, [0, 1], a, b)], then=[size])
        t.row(
            "parts",
            unstage,
            [k(1), at(1)],
            some("int32"),
            before=[put(1, [0, 1], a, b)],
            then=[size, node(unstage, [k(1), at(0)], some("float")), size],
        )
        t.row(
            "taken",
            unstage,
            [k(1), at(0)],
            some("float"),
            before=[put(1, [0, 1], a, b), node(unstage, [k(1), at(0)], some("float"))],
        )
        t.row("high", unstage, [k(1), at(5)], some("float"), before=[put(1, [0, 1], a, b)])
        for kind, key in (("vector", vec("int64", [1, 2])), ("matrix", given("int64", [1, 3], [1, 2, 3]))):
            t.row("key_" + kind, stage, [key, at(0, 1), [a, b]], full)
            t.row("key_" + kind, unstage, [key, at(0)], some("float"), before=[put(1, [0, 1], a, b)])
            t.row("key_" + kind, peek, [key, at(0)], some("float"), before=[put(1, [0, 1], a, b)])
        t.row("key_one", stage, [vec("int64", [1]), at(0, 1), [a, b]], full, then=[size])
        t.row("one", peek, [k(1), at(0)], some("float"), before=[put(1, [0, 1], a, b)], then=[size])
        t.row("both", peek, [k(-3), at(0, 1)], full, before=[put(-3, [0, 1], a, b)], then=[size])
        t.row("any", name("MapUnstageNoKey"), [at(0, 1)], full, before=[put(9, [0, 1], a, b)], then=[size])
        t.row("none", name("MapSize"), [], full)
        t.row("one", name("MapSize"), [], full, before=[put(1, [0, 1], a, b)])
        t.row("none", name("MapIncompleteSize"), [], full)
        t.row("one", name("MapIncompleteSize"), [], full, before=[put(1, [0], a)])
        t.row("all", name("MapClear"), [], full, before=[put(1, [0, 1], a, b), put(2, [0], a)], then=[size, missing])
        for d in dtypes("half double int8 uint64 complex64 bool string"):
            f = {"dtypes": [d], "shared_name": "m"}
            put_one = node(stage, [k(4), at(0), [drawn(d, [3])]], f)
            t.row(d, unstage, [k(4), at(0)], f, before=[put_one])
    f = {"dtypes": ["float"], "shared_name": "m"}
    put = lambda key: node("OrderedMapStage", [scalar("int64", key), vec("int32", [0]), [scalar("float", key)]], f)
    t.row(
        "order",
        "OrderedMapUnstageNoKey",
        [vec("int32", [0])],
        f,
        before=[put(3), put(-1), put(2)],
        then=[node("OrderedMapUnstageNoKey", [vec("int32", [0])], f), node("OrderedMapSize", [], f)],
    )


def barriers(t):
    attrs = {"component_types": ["float", "int32"], "shapes": [[2], []], "shared_name": "b"}
    b = node("Barrier", attrs=attrs)
    types = {"component_types": ["float", "int32"]}
    keys = lambda *ks: vec("string", list(ks))
    insert = lambda ks, values, c: node("BarrierInsertMany", [b, ks, values], {"component_index": c})
    rows = lambda n: drawn("float", [n, 2])
    first = insert(keys("a", "b"), rows(2), 0)
    ready, missing = node("BarrierReadySize", [b]), node("BarrierIncompleteSize", [b])
    take = lambda n, **a: node("BarrierTakeMany", [b, scalar("int32", n)], dict(types, **a))
    second = insert(keys("b", "a"), vec("int32", [7, 8]), 1)
    close = node("BarrierClose", [b])
    t.row("first", "BarrierInsertMany", [b, keys("a", "b"), rows(2)], {"component_index": 0}, then=[ready, missing])
    t.row(
        "complete",
        "BarrierInsertMany",
        [b, keys("b"), vec("int32", [7])],
        {"component_index": 1},
        before=[first],
        then=[ready, missing, take(1)],
    )
    t.row("none", "BarrierReadySize", [b])
    t.row("two", "BarrierReadySize", [b], before=[first, second])
    t.row("none", "BarrierIncompleteSize", [b])
    t.row("two", "BarrierIncompleteSize", [b], before=[first])
    put = "BarrierInsertMany"
    t.row("again", put, [b, keys("a"), rows(1)], {"component_index": 0}, before=[first])
    t.row("type", put, [b, keys("a"), vec("int32", [1])], {"component_index": 0})
    t.row("no_keys", put, [b, keys(), given("float", [0] + list(rows(1)["shape"][1:]), [])], {"component_index": 0})
    t.row("component", put, [b, keys("a"), rows(1)], {"component_index": 2})
    t.row("key_scalar", put, [b, scalar("string", "a"), rows(1)], {"component_index": 0})
    n = lambda v: scalar("int32", v)
    op = "BarrierTakeMany"
    t.row("one", op, [b, n(1)], types, before=[first, insert(keys("b"), vec("int32", [7]), 1)], then=[ready, missing])
    third = [insert(keys("c"), rows(1), 0), insert(keys("c"), vec("int32", [9]), 1)]
    t.row("order", op, [b, n(2)], types, before=third + [insert(keys("d"), rows(1), 0), insert(keys("d"), vec("int32", [1]), 1)])
    t.row("closed", op, [b, n(5)], types, before=[first, second, close])
    t.row("few", op, [b, n(5)], dict(types, allow_small_batch=True), before=third + [close], then=[ready])
    t.row("empty", op, [b, n(1)], types, before=[close])
    t.row("few_of_none", op, [b, n(1)], dict(types, allow_small_batch=True), before=[close])
    t.row("vector", op, [b, vec("int32", [1])], types)
    t.row("types", op, [b, n(1)], {"component_types": ["float"]})
    t.row("timeout", op, [b, n(1)], dict(types, timeout_ms=5))
    t.row("once", "BarrierClose", [b], {}, then=[close, insert(keys("q"), rows(1), 0)])
    t.row(
        "rest",
        "BarrierClose",
        [b],
        {},
        before=[first],
        then=[insert(keys("q"), rows(1), 0), insert(keys("a", "b"), vec("int32", [1, 2]), 1), ready],
    )
    t.row(
        "cancels",
        "BarrierClose",
        [b],
        {"cancel_pending_enqueues": True},
        then=[node("BarrierClose", [b], {"cancel_pending_enqueues": True}), insert(keys("q"), rows(1), 0)],
    )
    t.row("capacity", "Barrier", [], dict(attrs, capacity=3))
    t.row("shapes", "Barrier", [], dict(attrs, shapes=[]))
    t.row("open_shape", "Barrier", [], {"component_types": ["float"], "shapes": [[None]]})


def locks(t):
    m = node("MutexV2", attrs={"shared_name": "m"})
    lock = node("MutexLock", [m])
    t.row("made", "MutexV2", [], {"shared_name": "m"})
    t.row("once", "MutexLock", [m], {}, then=[node("ConsumeMutexLock", [lock])])
    t.row("again", "ConsumeMutexLock", [lock], {}, then=[node("ConsumeMutexLock", [lock])])


def kept(t):
    text = lambda s: scalar("string", s)
    name = text("node;0;/job:localhost/replica:0/task:0/device:CPU:0")
    get = node("GetSessionTensor", [name], {"dtype": "float"})
    t.row(
        "kept",
        "GetSessionHandle",
        [drawn("float", [2, 3])],
        then=[get, node("DeleteSessionTensor", [name]), get],
    )
    t.row("resource", "GetSessionHandleV2", [drawn("float", [2])])
    t.row("unknown", "GetSessionTensor", [text("x;1;y")], {"dtype": "float"})
    t.row("unknown", "DeleteSessionTensor", [text("x;1;y")])
    t.row("vector", "GetSessionTensor", [vec("string", ["a", "b"])], {"dtype": "float"}, message="code-only")


def gradients_with_shape(t):
    def array(**attrs):
        return dict(node("TensorArrayV3", [iscalar(2)], dict({"dtype": "float"}, **attrs)), id="a")

    def gradient(a, *prefix):
        written = node("TensorArrayWriteV3", [use("a"), iscalar(0), drawn("float", [2]), use("a", 1)])
        return dict(node("TensorArrayGradWithShape", [a, written, ivec(*prefix)], {"source": "g"}), id="g")

    def row(name, a, prefix, shape, **more):
        wrote = node("TensorArrayWriteV3", [use("g"), iscalar(0), drawn("float", shape), use("g", 1)])
        t.row(name, "TensorArrayReadV3", [gradient(a, *prefix), iscalar(0), wrote], {"dtype": "float"}, **more)

    fixed = array(element_shape=[2], identical_element_shapes=True)
    row("with_shape", array(), [3], [3, 2])
    row("with_shape_twice", fixed, [3, 1], [3, 1, 2])
    row("without_shape", array(), [], [2])
    row("wrong_shape", fixed, [3], [4, 2], message="code-only")
    t.row("unwritten", "TensorArrayReadV3", [gradient(fixed, 3), iscalar(0), use("g", 1)], {"dtype": "float"})
    op = "TensorArrayGradWithShape"
    a = array()
    t.row("negative", op, [a, use("a", 1), vec("int32", [-2])], {"source": "g"}, message="code-only")
    t.row("matrix", op, [a, use("a", 1), given("int32", [1, 1], [2])], {"source": "g"}, message="code-only")
    t.row("handle", op, [node("VarHandleOp", [], {"dtype": "float", "shape": []}), scalar("float", 0), vec("int32", [2])],
          {"source": "g"}, message="code-only")


def arrays(t):
    h, flow, i = vec("string", ["a", "b"]), scalar("float", 0), scalar("int32", 0)
    f = {"dtype": "float"}
    t.row("deprecated", "TensorArrayV2", [i], f)
    t.row("deprecated", "TensorArrayGradV2", [h, flow], {"source": "g"})
    t.row("deprecated", "TensorArrayWriteV2", [h, i, drawn("float", [2]), flow])
    t.row("deprecated", "TensorArrayReadV2", [h, i, flow], f)
    t.row("deprecated", "TensorArrayGatherV2", [h, vec("int32", [0]), flow], f)
    t.row("deprecated", "TensorArrayScatterV2", [h, vec("int32", [0]), drawn("float", [1, 2]), flow])
    t.row("deprecated", "TensorArraySplitV2", [h, drawn("float", [2]), vec("int64", [2]), flow])
    t.row("deprecated", "TensorArraySizeV2", [h, flow])
    t.row("deprecated", "TensorArrayCloseV2", [h])
    t.row("no_array", "TensorArrayConcatV2", [h, flow], f, message="code-only")
    r = ref(h)
    t.row("deprecated", "TensorArray", [i], f)
    t.row("deprecated", "TensorArrayGrad", [h, flow], {"source": "g"})
    t.row("deprecated", "TensorArrayWrite", [r, i, drawn("float", [2]), flow])
    t.row("deprecated", "TensorArrayRead", [r, i, flow], f)
    t.row("deprecated", "TensorArrayGather", [r, vec("int32", [0]), flow], f)
    t.row("deprecated", "TensorArrayScatter", [r, vec("int32", [0]), drawn("float", [1, 2]), flow])
    t.row("deprecated", "TensorArraySplit", [r, drawn("float", [2]), vec("int64", [2]), flow])
    t.row("deprecated", "TensorArrayConcat", [r, flow], f)
    t.row("deprecated", "TensorArrayPack", [r, flow], f)
    t.row("deprecated", "TensorArrayUnpack", [r, drawn("float", [2]), flow])
    t.row("deprecated", "TensorArraySize", [r, flow])
    t.row("deprecated", "TensorArrayClose", [r])
    gradients_with_shape(t)
    q = node("FIFOQueueV2", attrs={"component_types": ["float"], "shared_name": "q"})
    t.row("size", "FakeQueue", [q])


def fill(t):
    stages(t)
    maps(t)
    barriers(t)
    locks(t)
    kept(t)
    arrays(t)
