"""DynamicPartition and DynamicStitch, queues, tensor arrays, stacks."""

from .base import *

EXACT = {"tol": 0}


def partitions(t):
    t.each(
        "",
        "DynamicPartition",
        "F I U C b s",
        lambda d: [drawn(d, [6]), vec("int32", [0, 2, 0, 1, 2, 2])],
        {"num_partitions": 3},
        **EXACT
    )
    for name, s, p, n in [
        ("rows", [4, 3], vec("int32", [1, 0, 1, 1]), 2),
        ("empty_part", [3], vec("int32", [0, 0, 2]), 4),
        ("one", [3], vec("int32", [0, 0, 0]), 1),
        ("none", [0, 2], vec("int32", []), 2),
        ("matrix", [2, 2, 3], given("int32", [2, 2], [0, 1, 1, 0]), 2),
        ("scalar", [3], scalar("int32", 1), 2),
        ("high", [2], vec("int32", [0, 2]), 2),
        ("negative", [2], vec("int32", [0, -1]), 2),
        ("bad_shapes", [3], vec("int32", [0, 1]), 2),
        ("wide", [9, 37], drawn("int32", [9], 0, 3), 3),
        ("300", [300], drawn("int32", [300], 0, 4), 4),
    ]:
        t.row(name, "DynamicPartition", [drawn("float", s), p], {"num_partitions": n})
    t.row(
        "zero_parts",
        "DynamicPartition",
        [drawn("float", [2]), vec("int32", [0, 0])],
        {"num_partitions": 0},
    )
    t.row(
        "grad",
        "DynamicPartition",
        [drawn("double", [4, 2]), vec("int32", [1, 0, 1, 2])],
        {"num_partitions": 3},
        grad=True,
    )
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        t.each(
            "",
            op,
            "F I U C b s",
            lambda d: [
                [vec("int32", [0, 3]), vec("int32", [2, 1])],
                [drawn(d, [2, 2]), drawn(d, [2, 2])],
            ],
            **EXACT
        )
        # Must fail before memory for the largest index is allocated.
        t.row("negative_and_large", op, [[vec("int32", [2147483647, -1])], [drawn("double", [2])]])
        t.row(
            "scalars",
            op,
            [[scalar("int32", 1), scalar("int32", 0)], [drawn("float", [3]), drawn("float", [3])]],
        )
        t.row(
            "const_ids",
            op,
            [[ivec(0, 2), ivec(1)], [drawn("float", [2, 3]), drawn("float", [1, 3])]],
        )
        t.row(
            "matrix_ids",
            op,
            [
                [given("int32", [2, 1], [0, 1]), scalar("int32", 2)],
                [drawn("float", [2, 1, 3]), drawn("float", [3])],
            ],
        )
        t.row("none", op, [[vec("int32", [])], [drawn("float", [0, 2])]])
        t.row("negative", op, [[vec("int32", [0, -1])], [drawn("float", [2])]])
        t.row(
            "bad_shapes",
            op,
            [
                [vec("int32", [0]), vec("int32", [1])],
                [drawn("float", [1, 2]), drawn("float", [1, 3])],
            ],
        )
        t.row("counts", op, [[vec("int32", [0, 1])], [drawn("float", [3])]])
        t.row(
            "grad",
            op,
            [
                [vec("int32", [0, 2]), vec("int32", [1])],
                [drawn("double", [2, 2]), drawn("double", [1, 2])],
            ],
            grad=True,
        )
    t.row(
        "last_wins",
        "DynamicStitch",
        [
            [vec("int32", [0, 1]), vec("int32", [1, 0])],
            [vec("float", [1, 2]), vec("float", [3, 4])],
        ],
    )


def queue(op, types=("float",), **attrs):
    return node(op, attrs=dict({"component_types": list(types), "shared_name": "q"}, **attrs))


def queues(t):
    for v2 in ("V2", ""):
        enqueue, many, dequeue, dequeue_many, up_to = (
            "QueueEnqueue" + v2,
            "QueueEnqueueMany" + v2,
            "QueueDequeue" + v2,
            "QueueDequeueMany" + v2,
            "QueueDequeueUpTo" + v2,
        )
        size, close, closed = "QueueSize" + v2, "QueueClose" + v2, "QueueIsClosed" + v2
        fifo, shuffle, padding, priority = (
            "FIFOQueue" + v2,
            "RandomShuffleQueue" + v2,
            "PaddingFIFOQueue" + v2,
            "PriorityQueue" + v2,
        )
        put = lambda q, *xs: node(enqueue, [q, list(xs)])
        fill = lambda q, *xs: node(many, [q, list(xs)])
        q = lambda *types, **a: queue(fifo, types or ("float",), **a)
        one = {"component_types": ["float"]}
        two = {"component_types": ["float", "int32"]}
        if v2:
            t.row("made", fifo, [], {"component_types": ["float"]})
            t.row("made", shuffle, [], {"component_types": ["float"]})
        t.row("no_types", fifo, [], {"component_types": []})
        t.row(
            "shapes_count",
            fifo,
            [],
            {"component_types": ["float"], "shapes": [[1], [2]]},
            message="code-only",
        )
        t.row(
            "first",
            dequeue,
            [q()],
            one,
            before=[put(q(), scalar("float", 1)), put(q(), scalar("float", 2))],
            then=[node(dequeue, [q()], one), node(size, [q()])],
        )
        t.row(
            "pair",
            dequeue,
            [q("float", "int32")],
            two,
            before=[put(q("float", "int32"), drawn("float", [2]), drawn("int32", [3]))],
        )
        t.row(
            "string",
            dequeue,
            [q("string")],
            {"component_types": ["string"]},
            before=[put(q("string"), vec("string", ["a", "longer than twenty-two bytes"]))],
        )
        t.row("put", enqueue, [q(), [drawn("float", [2])]], None, then=[node(size, [q()])])
        t.row("bad_type", enqueue, [q(), [drawn("int32", [2])]])
        t.row("bad_count", enqueue, [q(), [drawn("float", [2]), drawn("float", [2])]])
        t.row("bad_shape", enqueue, [q(shapes=[[3]]), [drawn("float", [2])]])
        t.row(
            "many",
            many,
            [q(shapes=[[]]), [vec("float", [1, 2, 3])]],
            None,
            then=[node(size, [q(shapes=[[]])]), node(dequeue, [q(shapes=[[]])], one)],
        )
        t.row("many_scalar", many, [q(), [scalar("float", 1)]])
        t.row("many_unlike", many, [q("float", "int32"), [vec("float", [1, 2]), vec("int32", [1])]])
        t.row(
            "many_none",
            many,
            [q(shapes=[[]]), [vec("float", [])]],
            None,
            then=[node(size, [q(shapes=[[]])])],
        )
        t.row(
            "three",
            dequeue_many,
            [q(shapes=[[2]]), iscalar(2)],
            one,
            before=[fill(q(shapes=[[2]]), drawn("float", [3, 2]))],
            then=[node(size, [q(shapes=[[2]])])],
        )
        t.row(
            "unknown_shapes",
            dequeue_many,
            [q(), iscalar(1)],
            one,
            before=[put(q(), scalar("float", 1))],
        )
        t.row("zero", dequeue_many, [q(shapes=[[2]]), iscalar(0)], one)
        t.row("negative", dequeue_many, [q(shapes=[[2]]), scalar("int32", -1)], one)
        t.row(
            "pairs",
            dequeue_many,
            [q("float", "int32", shapes=[[], [2]]), iscalar(2)],
            two,
            before=[
                fill(
                    q("float", "int32", shapes=[[], [2]]),
                    vec("float", [1, 2]),
                    drawn("int32", [2, 2]),
                )
            ],
        )
        t.row(
            "rest",
            up_to,
            [q(shapes=[[]]), iscalar(5)],
            one,
            before=[fill(q(shapes=[[]]), vec("float", [1, 2])), node(close, [q(shapes=[[]])])],
            then=[node(up_to, [q(shapes=[[]]), iscalar(5)], one)],
        )
        t.row("empty", size, [q()])
        t.row("two", size, [q()], before=[put(q(), scalar("float", 1))] * 2)
        t.row("open", closed, [q()])
        t.row("closed", closed, [q()], before=[node(close, [q()])])
        t.row(
            "close",
            close,
            [q()],
            None,
            then=[
                node(enqueue, [q(), [scalar("float", 1)]]),
                node(dequeue, [q()], one),
                node(close, [q()]),
            ],
        )
        t.row("close_cancel", close, [q()], {"cancel_pending_enqueues": True})
        t.row(
            "after_close",
            dequeue,
            [q()],
            one,
            before=[put(q(), scalar("float", 5)), node(close, [q()])],
            then=[node(dequeue, [q()], one)],
        )
        t.row(
            "too_few_after_close",
            dequeue_many,
            [q(shapes=[[]]), iscalar(3)],
            one,
            before=[put(q(shapes=[[]]), scalar("float", 5)), node(close, [q(shapes=[[]])])],
            then=[node(size, [q(shapes=[[]])])],
        )
        t.row(
            "capacity", size, [q(capacity=2)], before=[put(q(capacity=2), scalar("float", 1))] * 2
        )
        t.row(
            "dequeue_types",
            dequeue,
            [q()],
            {"component_types": ["int32"]},
            before=[put(q(), scalar("float", 1))],
        )
        s = lambda **a: queue(
            shuffle, ("float",), **dict({"shapes": [[]], "seed": 3, "seed2": 4}, **a)
        )
        t.row(
            "shuffled",
            dequeue_many,
            [s(), iscalar(6)],
            one,
            before=[fill(s(), vec("float", [1, 2, 3, 4, 5, 6]))],
        )
        t.row(
            "shuffled_one",
            dequeue,
            [s()],
            one,
            before=[fill(s(), vec("float", [1, 2, 3, 4, 5, 6]))],
            then=[node(dequeue, [s()], one), node(size, [s()])],
        )
        t.row(
            "shuffled_rest",
            up_to,
            [s(min_after_dequeue=2), iscalar(9)],
            one,
            before=[
                fill(s(min_after_dequeue=2), vec("float", [1, 2, 3])),
                node(close, [s(min_after_dequeue=2)]),
            ],
        )
        t.row(
            "bad_minimum",
            shuffle,
            [],
            {"component_types": ["float"], "capacity": 2, "min_after_dequeue": 2},
            message="code-only",
        )
        p = lambda: queue(padding, ("float",), shapes=[[None]])
        t.row(
            "padded",
            dequeue_many,
            [p(), iscalar(2)],
            one,
            before=[put(p(), drawn("float", [3])), put(p(), drawn("float", [1]))],
        )
        r = lambda: node(
            priority, attrs={"component_types": ["float"], "shapes": [[]], "shared_name": "q"}
        )
        ordered = {"component_types": ["int64", "float"]}
        t.row(
            "by_priority",
            dequeue,
            [r()],
            ordered,
            before=[
                put(r(), scalar("int64", 5), scalar("float", 1)),
                put(r(), scalar("int64", 2), scalar("float", 2)),
            ],
            then=[node(dequeue, [r()], ordered)],
        )
        t.row(
            "by_priority_many",
            dequeue_many,
            [r(), iscalar(3)],
            ordered,
            before=[fill(r(), vec("int64", [5, 2, 9]), vec("float", [1, 2, 3]))],
        )
        if v2:
            t.row("made", padding, [], {"component_types": ["float"], "shapes": [[None]]})
            t.row("made", priority, [], {"component_types": ["float"], "shapes": [[]]})
        else:
            for op in (fifo, shuffle, padding, priority):
                t.row(
                    "made", op, [], {"component_types": ["float"], "shapes": [[2]]}, undefined=[0]
                )


def arrays(t):
    ta = lambda d="float", **a: node(
        "TensorArrayV3", [iscalar(3)], dict({"dtype": d}, **a), id="ta"
    )
    handle, flow = use("ta"), use("ta", 1)
    write = lambda i, x, f=flow: node("TensorArrayWriteV3", [handle, iscalar(i), x, f])
    t.row("made", "TensorArrayV3", [iscalar(3)], {"dtype": "float"}, undefined=[0])
    for d in dtypes("F I U C b s"):
        t.row(
            d,
            "TensorArrayReadV3",
            [ta(d), iscalar(1), write(1, drawn(d, [2]))],
            {"dtype": d},
            **EXACT
        )
    both = write(1, drawn("float", [2]), write(0, drawn("float", [2])))
    three = write(2, drawn("float", [2]), both)
    t.row(
        "write", "TensorArrayWriteV3", [ta(), iscalar(0), drawn("float", [2]), flow], undefined=[0]
    )
    t.row(
        "high",
        "TensorArrayWriteV3",
        [ta(), iscalar(3), drawn("float", [2]), flow],
        message="code-only",
    )
    t.row(
        "negative",
        "TensorArrayWriteV3",
        [ta(), iscalar(-1), drawn("float", [2]), flow],
        message="code-only",
    )
    t.row(
        "type",
        "TensorArrayWriteV3",
        [ta(), iscalar(0), drawn("int32", [2]), flow],
        message="code-only",
    )
    t.row(
        "grows",
        "TensorArrayWriteV3",
        [ta(dynamic_size=True), iscalar(9), drawn("float", [2]), flow],
        undefined=[0],
    )
    t.row(
        "unwritten",
        "TensorArrayReadV3",
        [ta(), iscalar(0), flow],
        {"dtype": "float"},
        message="code-only",
    )
    t.row(
        "twice",
        "TensorArrayReadV3",
        [
            ta(),
            iscalar(0),
            node(
                "TensorArrayWriteV3",
                [handle, iscalar(0), drawn("float", [1]), write(0, drawn("float", [1]))],
            ),
        ],
        {"dtype": "float"},
        message="code-only",
    )
    t.row(
        "kept",
        "TensorArrayReadV3",
        [ta(clear_after_read=False), iscalar(0), both],
        {"dtype": "float"},
    )
    t.row("size", "TensorArraySizeV3", [ta(), flow])
    t.row("grown", "TensorArraySizeV3", [ta(dynamic_size=True), write(4, drawn("float", [1]))])
    t.row("rows", "TensorArrayGatherV3", [ta(), vec("int32", [1, 0]), both], {"dtype": "float"})
    t.row(
        "shaped",
        "TensorArrayGatherV3",
        [ta(), vec("int32", [2, 0, 1]), three],
        {"dtype": "float", "element_shape": [2]},
    )
    t.row(
        "unlike",
        "TensorArrayGatherV3",
        [ta(), vec("int32", [0, 1]), write(1, drawn("float", [3]), write(0, drawn("float", [2])))],
        {"dtype": "float"},
        message="code-only",
    )
    scattered = node(
        "TensorArrayScatterV3", [handle, vec("int32", [2, 0, 1]), drawn("float", [3, 2]), flow]
    )
    t.row(
        "scattered",
        "TensorArrayGatherV3",
        [ta(), vec("int32", [0, 1, 2]), scattered],
        {"dtype": "float"},
    )
    t.row(
        "flow",
        "TensorArrayScatterV3",
        [ta(), vec("int32", [2, 0]), drawn("float", [2, 2]), flow],
        undefined=[0],
    )
    t.row(
        "counts",
        "TensorArrayScatterV3",
        [ta(), vec("int32", [2, 0]), drawn("float", [3, 2]), flow],
        message="code-only",
    )
    split = node(
        "TensorArraySplitV3", [handle, drawn("float", [6, 2]), vec("int64", [1, 2, 3]), flow]
    )
    t.row("split", "TensorArrayReadV3", [ta(), iscalar(1), split], {"dtype": "float"})
    t.row(
        "flow",
        "TensorArraySplitV3",
        [ta(), drawn("float", [6, 2]), vec("int64", [1, 2, 3]), flow],
        undefined=[0],
    )
    t.row(
        "lengths",
        "TensorArraySplitV3",
        [ta(), drawn("float", [6, 2]), vec("int64", [1, 2, 2]), flow],
        message="code-only",
    )
    t.row("joined", "TensorArrayConcatV3", [ta(), split], {"dtype": "float"})
    t.row("close", "TensorArrayCloseV3", [ta()])
    t.row("made", "TensorArrayGradV3", [ta(), flow], {"source": "gradients"}, undefined=[0])
    stack = lambda: node(
        "StackV2", [iscalar(-1)], {"elem_type": "float", "stack_name": "s"}, id="s"
    )
    pushed = node("StackPushV2", [stack(), drawn("float", [2])])
    t.row("made", "StackV2", [iscalar(5)], {"elem_type": "float"})
    t.row("push", "StackPushV2", [stack(), drawn("float", [2])])
    t.row("swap", "StackPushV2", [stack(), drawn("float", [2])], {"swap_memory": True})
    t.row("popped", "StackPopV2", [use("s")], {"elem_type": "float"}, control=[pushed])
    t.row("empty", "StackPopV2", [stack()], {"elem_type": "float"}, message="code-only")
    t.row("close", "StackCloseV2", [stack()])
    old = lambda: node("Stack", attrs={"elem_type": "float", "stack_name": "s"}, id="s")
    t.row("made", "Stack", [], {"elem_type": "float"}, undefined=[0])
    t.row("push", "StackPush", [old(), drawn("float", [2])])
    t.row(
        "popped",
        "StackPop",
        [use("s")],
        {"elem_type": "float"},
        control=[node("StackPush", [old(), drawn("float", [2])])],
    )
    ranked = node("PriorityQueueV2", attrs={"component_types": ["string"], "shapes": [[]]})
    for name, first, second in (("priorities", [1, 2], ["a"]), ("priority_one", [1], ["a"])):
        t.row(name, "QueueEnqueueV2", [ranked, [vec("int64", first), scalar("string", second[0])]])
    squares = [given("int64", [2, 2], [1, 2, 3, 4]), vec("string", ["a", "b"])]
    t.row("priorities", "QueueEnqueueManyV2", [ranked, squares])
    t.row("second_vector", "QueueEnqueueV2", [ranked, [scalar("int64", 1), vec("string", ["a", "b"])]])
    # Each node gets a stack of its own, even with the same stack_name.
    other = node("Stack", attrs={"elem_type": "float", "stack_name": "s"})
    t.row("stacks", "NotEqual", [old(), other])
    t.row("empty", "StackPop", [old()], {"elem_type": "float"}, message="code-only")
    t.row("close", "StackClose", [old()])
    accumulators(t)


def accumulators(t):
    for prefix in ("", "Resource"):
        make, apply, take = (
            prefix + "ConditionalAccumulator",
            prefix + "AccumulatorApplyGradient",
            prefix + "AccumulatorTakeGradient",
        )
        count, step = prefix + "AccumulatorNumAccumulated", prefix + "AccumulatorSetGlobalStep"
        for d in ("half", "float", "double"):
            acc = lambda **a: node(
                make, attrs=dict({"dtype": d, "shape": [2], "shared_name": "acc"}, **a)
            )
            add = lambda at, x, **a: node(apply, [acc(**a), scalar("int64", at), x])
            two = [add(0, vec(d, [1, 2])), add(0, vec(d, [3, 6]))]
            t.row(
                "mean_" + d,
                take,
                [acc(), scalar("int32", 2)],
                {"dtype": d},
                before=two,
                then=[node(count, [acc()])],
            )
        t.row(
            "sum",
            take,
            [acc(reduction_type="SUM"), scalar("int32", 2)],
            {"dtype": d},
            before=[
                add(0, vec(d, [1, 2]), reduction_type="SUM"),
                add(0, vec(d, [3, 6]), reduction_type="SUM"),
            ],
        )
        t.row("count", count, [acc()], before=two)
        t.row(
            "stale",
            count,
            [acc()],
            before=[
                node(step, [acc(), scalar("int64", 5)]),
                add(2, vec(d, [1, 2])),
                add(5, vec(d, [1, 2])),
            ],
        )
        t.row("step", step, [acc(), scalar("int64", 3)])
        t.row(
            "bad_shape", apply, [acc(), scalar("int64", 0), vec(d, [1, 2, 3])], message="code-only"
        )
        t.row(
            "bad_type", apply, [acc(), scalar("int64", 0), vec("half", [1, 2])], message="code-only"
        )
        t.row("none_required", take, [acc(), scalar("int32", 0)], {"dtype": d}, message="code-only")
        t.row(
            "made",
            make,
            [],
            {"dtype": "float", "shape": [2]},
            **({} if prefix else {"undefined": [0]})
        )
    acc = node(
        "SparseConditionalAccumulator",
        attrs={"dtype": "float", "shape": [3, 2], "shared_name": "acc"},
    )
    add = node(
        "SparseAccumulatorApplyGradient",
        [
            acc,
            scalar("int64", 0),
            vec("int64", [0, 2]),
            drawn("float", [2, 2]),
            vec("int64", [3, 2]),
        ],
        {"has_known_shape": True},
    )
    t.row(
        "made", "SparseConditionalAccumulator", [], {"dtype": "float", "shape": [2]}, undefined=[0]
    )
    t.row(
        "mean",
        "SparseAccumulatorTakeGradient",
        [acc, scalar("int32", 1)],
        {"dtype": "float"},
        before=[add, add],
    )
    t.row(
        "applied",
        "SparseAccumulatorApplyGradient",
        [
            acc,
            scalar("int64", 0),
            vec("int64", [0, 2]),
            drawn("float", [2, 2]),
            vec("int64", [3, 2]),
        ],
        {"has_known_shape": True},
    )
    ints = lambda *v: vec("int64", list(v))
    for name, declared, indices, dims, sizes in (
        ("indices_matrix", [3, 2], {"dtype": "int64", "shape": [1, 1], "values": [0]}, [1, 2], ints(3, 2)),
        ("indices_scalar", [3, 2], scalar("int64", 0), [1, 2], ints(3, 2)),
        ("values_scalar", [3, 2], ints(0), [], ints(3, 2)),
        ("fewer", [3, 2], ints(0, 1), [1, 2], ints(3, 2)),
        ("more", [3, 2], ints(0), [2, 2], ints(3, 2)),
        ("wide", [3, 2], ints(0), [1, 3], ints(3, 2)),
        ("wide_shape", [3, 2], ints(0), [1, 3], ints(3, 3)),
        ("flat", [3, 2], ints(0), [1], ints(3)),
        ("deep", [3, 2], ints(0), [1, 2, 2], ints(3, 2, 2)),
        ("rows", [3, 2], ints(0), [1, 2], ints(4, 2)),
        ("short_shape", [3, 2], ints(0), [1, 2], ints(3)),
        ("long_shape", [3, 2], ints(0), [1, 2], ints(3, 2, 5)),
        ("no_shape", [3, 2], ints(0), [1, 2], ints()),
        ("high", [3, 2], ints(5), [1, 2], ints(3, 2)),
        ("high_open", None, ints(9), [1, 2], ints(3, 2)),
        ("short_shape_open", None, ints(0), [1, 2], ints(3)),
    ):
        for known in (True, False):
            whose = node("SparseConditionalAccumulator", attrs={"dtype": "float", "shape": declared, "shared_name": "acc"})
            t.row(
                "%s_%d" % (name, known),
                "SparseAccumulatorApplyGradient",
                [whose, scalar("int64", 0), indices, drawn("float", dims), sizes],
                {"has_known_shape": known},
            )
    anything = node("SparseConditionalAccumulator", attrs={"dtype": "float", "shape": None, "shared_name": "acc"})
    for name, dims in (("wide", [1, 3]), ("flat", [1]), ("deep", [1, 2, 2]), ("same", [1, 2])):
        args = lambda dims: [anything, scalar("int64", 0), ints(0), drawn("float", dims), ints(*([3] + dims[1:]))]
        first = node("SparseAccumulatorApplyGradient", args([1, 2]), {"has_known_shape": True})
        t.row("second_" + name, "SparseAccumulatorApplyGradient", args(dims), {"has_known_shape": True}, before=[first])
    # A declared shape of [] accepts any gradient; SyncReplicasOptimizer declares it.
    for name, declared in (("any", []), ("first", [3]), ("too_many", [3, 2, 1])):
        loose = node(
            "SparseConditionalAccumulator",
            attrs={"dtype": "float", "shape": declared, "shared_name": "acc"},
        )
        rows = {"dtype": "float", "shape": [2, 2], "values": [1, 2, 3, 4]}
        given = [loose, scalar("int64", 0), vec("int64", [0, 2]), rows, vec("int64", [3, 2])]
        put = node("SparseAccumulatorApplyGradient", given, {"has_known_shape": True})
        if name == "too_many":
            attrs = {"has_known_shape": True}
            t.row(name, "SparseAccumulatorApplyGradient", given, attrs)
            continue
        t.row(
            "mean_" + name,
            "SparseAccumulatorTakeGradient",
            [loose, scalar("int32", 1)],
            {"dtype": "float"},
            before=[put, put],
        )


def fill(t):
    partitions(t)
    queues(t)
    arrays(t)
    records(t)


def records(t):
    op = "RecordInput"
    nowhere = {"file_pattern": "/dev/null/nowhere/*"}
    t.row("nowhere", op, [], nowhere)
    t.row("compression", op, [], dict(nowhere, compression_type="snappy"), message="code-only")
