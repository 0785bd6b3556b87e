"""Cases of several ops with state: arrays, lists, queues, tables, datasets, recurrent cells, codecs."""

import numpy as np

import values


class Program:
    """Nodes that are added one after the other; attributes get their kinds from the definitions."""

    def __init__(self, rng, ops):
        self.rng, self.ops, self.nodes = rng, ops, []
        self.own = rng.randrange(1 << 40)

    def add(self, name, *inputs, **attrs):
        op = self.ops[name]
        if "shared_name" in op.attrs:
            attrs.setdefault("shared_name", b"%d/%d" % (self.own, len(self.nodes)))
        for arg, one in zip(op.inputs, inputs):
            if arg.number_attr:
                attrs[arg.number_attr] = len(one)
        attrs = {k: (op.attrs[k].kind, v) for k, v in attrs.items()}
        self.nodes.append({"op": name, "attrs": attrs, "inputs": list(inputs)})
        return len(self.nodes) - 1

    def tensor(self, dtype, shape, data=None, tame=True):
        if data is None:
            data = values.draw(self.rng, dtype, shape, tame)
        elif dtype != "string":
            data = values.data_of(dtype, np.array(data))
        return ("tensor", dtype, tuple(shape), data, self.rng.choice(["open", "const"]))

    def int32(self, *numbers):
        return self.tensor("int32", [len(numbers)], list(numbers))

    def scalar(self, dtype, number):
        return self.tensor(dtype, [], [number])

    def case(self, name, modes=("eager", "graph")):
        return {"mode": self.rng.choice(modes), "op": name, "nodes": self.nodes, "from": "program"}


def out(node, i=0):
    return ("node", node, i)


def tensor_array(rng, ops):
    p = Program(rng, ops)
    dtype = rng.choice(["float", "double", "int32", "half", "string", "bool"])
    size, shape = rng.randint(1, 5), [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]
    array = p.add("TensorArrayV3", p.scalar("int32", size), dtype=dtype, dynamic_size=rng.random() < 0.5,
                  clear_after_read=rng.random() < 0.3, tensor_array_name=b"a")  # fmt: skip
    flow = out(array, 1)
    for i in rng.sample(range(size), size if rng.random() < 0.8 else size // 2):
        at = p.scalar("int32", i if rng.random() < 0.97 else rng.choice([-1, size, size + 1]))
        flow = out(p.add("TensorArrayWriteV3", out(array), at, p.tensor(dtype, shape), flow))
    p.add("TensorArraySizeV3", out(array), flow)
    how = rng.randrange(4)
    if how == 0:
        p.add("TensorArrayReadV3", out(array), p.scalar("int32", rng.randrange(size)), flow, dtype=dtype)
    elif how == 1:
        some = [rng.randrange(size) for _ in range(rng.randint(0, 3))]
        p.add("TensorArrayGatherV3", out(array), p.tensor("int32", [len(some)], some), flow, dtype=dtype)
    elif how == 2:
        p.add("TensorArrayConcatV3", out(array), flow, dtype=dtype)
    else:
        rows = [rng.randint(0, 2) for _ in range(size)]
        whole = p.tensor(dtype, [sum(rows)] + shape)
        split = p.add("TensorArraySplitV3", out(array), whole, p.tensor("int64", [size], rows), flow)
        p.add("TensorArrayConcatV3", out(array), out(split), dtype=dtype)
    return p.case("TensorArrayV3")


def tensor_list(rng, ops):
    p = Program(rng, ops)
    dtype = rng.choice(["float", "double", "int32", "string"])
    shape = [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]
    held = p.add("EmptyTensorList", p.tensor("int32", [len(shape)], shape), p.scalar("int32", -1), element_dtype=dtype)
    for _ in range(rng.randint(0, 4)):
        held = p.add("TensorListPushBack", out(held), p.tensor(dtype, shape))
    p.add("TensorListLength", out(held))
    wanted = p.tensor("int32", [len(shape)], [-1 if rng.random() < 0.3 else d for d in shape])
    how = rng.randrange(4)
    if how == 0:
        p.add("TensorListStack", out(held), wanted, element_dtype=dtype)
    elif how == 1:
        p.add("TensorListPopBack", out(held), wanted, element_dtype=dtype)
    elif how == 2:
        p.add("TensorListGetItem", out(held), p.scalar("int32", rng.randint(-1, 4)), wanted, element_dtype=dtype)
    else:
        some = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
        p.add("TensorListGather", out(held), p.tensor("int32", [len(some)], some), wanted, element_dtype=dtype)
    return p.case("EmptyTensorList")


def queue(rng, ops):
    p = Program(rng, ops)
    kind = rng.choice(["FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"])
    dtype = rng.choice(["float", "int64", "string"])
    shape = [rng.randint(1, 3) for _ in range(rng.randint(0, 1))]
    if kind == "PriorityQueueV2":
        made = p.add(kind, component_types=[dtype], shapes=[[], shape])
    else:
        made = p.add(kind, component_types=[dtype], shapes=[shape])
    held = 0
    for _ in range(rng.randint(1, 4)):
        n = rng.randint(1, 3)
        components = [p.tensor(dtype, [n] + shape)]
        if kind == "PriorityQueueV2":
            components.insert(0, p.tensor("int64", [n], [rng.randint(-3, 3) for _ in range(n)]))
        p.add("QueueEnqueueManyV2", out(made), components)
        held += n
        if rng.random() < 0.5 and held:
            take = rng.randint(1, held)
            types = (["int64"] if kind == "PriorityQueueV2" else []) + [dtype]
            p.add("QueueDequeueManyV2", out(made), p.scalar("int32", take), component_types=types)
            held -= take
        p.add("QueueSizeV2", out(made))
    return p.case(kind, ("graph",))


def hash_table(rng, ops):
    p = Program(rng, ops)
    key = rng.choice(["int64", "string"])
    value = rng.choice(["float", "int64", "string"] if key == "string" else ["float", "string"])
    table = p.add("MutableHashTableV2", key_dtype=key, value_dtype=value)
    for _ in range(rng.randint(1, 3)):
        n = rng.randint(0, 5)
        p.add("LookupTableInsertV2", out(table), p.tensor(key, [n]), p.tensor(value, [n]))
        if rng.random() < 0.4:
            p.add("LookupTableRemoveV2", out(table), p.tensor(key, [rng.randint(0, 2)]))
        p.add("LookupTableSizeV2", out(table))
        p.add("LookupTableFindV2", out(table), p.tensor(key, [rng.randint(0, 4)]), p.tensor(value, []))
    return p.case("MutableHashTableV2")


def dataset(rng, ops):
    p = Program(rng, ops)
    size = rng.randint(0, 9)
    dtype = rng.choice(["int64", "float", "string"])
    shape = [rng.randint(1, 3) for _ in range(rng.randint(0, 1))]
    slices = [p.tensor(dtype, [size] + shape)]
    made = p.add("TensorSliceDataset", slices, Toutput_types=[dtype], output_shapes=[shape])
    types, shapes = {"output_types": [dtype], "output_shapes": [shape]}, [shape]
    for _ in range(rng.randint(0, 4)):
        n = p.scalar("int64", rng.choice([-1, 0, 1, 2, 3, 5]))
        positive = p.scalar("int64", rng.randint(1, 4))
        how = rng.randrange(7)
        if how == 0:
            made = p.add("TakeDataset", out(made), n, **types)
        elif how == 1:
            made = p.add("SkipDataset", out(made), n, **types)
        elif how == 2:
            made = p.add("RepeatDataset", out(made), p.scalar("int64", rng.randint(0, 3)), **types)
        elif how == 3:
            made = p.add("ConcatenateDataset", out(made), out(made), **types)
        elif how == 4:
            shard = p.scalar("int64", rng.randint(0, 2))
            made = p.add("ShardDataset", out(made), p.scalar("int64", 3), shard, **types)
        elif how == 5:
            seeds = p.scalar("int64", 5), p.scalar("int64", 9)
            made = p.add("ShuffleDataset", out(made), positive, *seeds, reshuffle_each_iteration=False, **types)
        elif len(shapes[0]) < 4:
            shapes = [[-1] + shapes[0]]
            drop = p.tensor("bool", [], [rng.random() < 0.5])
            types = dict(types, output_shapes=shapes)
            made = p.add("BatchDatasetV2", out(made), positive, drop, **types)
    p.add("DatasetCardinality", out(made))
    iterator = p.add("IteratorV2", container=b"", **types)
    p.add("MakeIterator", out(made), out(iterator))
    for _ in range(rng.randint(0, 3)):
        p.add("IteratorGetNext", out(iterator), **types)
    return p.case("TensorSliceDataset")


def lstm(rng, ops):
    """A recurrent cell, and its gradient from what it gave."""
    p = Program(rng, ops)
    dtype = rng.choice(["float", "half"])
    batch, inputs, cells = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 4)
    t = lambda *shape: p.tensor(dtype, shape, np.array([rng.uniform(-1, 1) for _ in range(int(np.prod(shape)))]))
    flags = {"use_peephole": rng.random() < 0.5}
    x, cs, h = t(batch, inputs), t(batch, cells), t(batch, cells)
    w, b = t(inputs + cells, 4 * cells), t(4 * cells)
    wci, wcf, wco = t(cells), t(cells), t(cells)
    clip = rng.choice([-1.0, 0.5, 3.0])
    cell = p.add(
        "LSTMBlockCell", x, cs, h, w, wci, wcf, wco, b, forget_bias=rng.choice([0.0, 1.0]), cell_clip=clip, **flags
    )
    i, c, f, o, ci, co, hh = (out(cell, k) for k in range(7))
    p.add(
        "LSTMBlockCellGrad",
        x,
        cs,
        h,
        w,
        wci,
        wcf,
        wco,
        b,
        i,
        c,
        f,
        o,
        ci,
        co,
        t(batch, cells),
        t(batch, cells),
        **flags,
    )
    return p.case("LSTMBlockCell")


def block_lstm(rng, ops):
    p = Program(rng, ops)
    dtype = rng.choice(["float", "half"])
    time, batch, inputs, cells = (rng.randint(1, 3) for _ in range(4))
    t = lambda *shape: p.tensor(dtype, shape, np.array([rng.uniform(-1, 1) for _ in range(int(np.prod(shape)))]))
    version = rng.choice(["", "V2"])
    flags = {"use_peephole": rng.random() < 0.5}
    length = p.scalar("int64", time)
    given = [length, t(time, batch, inputs), t(batch, cells), t(batch, cells), t(inputs + cells, 4 * cells)]
    given += [t(cells), t(cells), t(cells), t(4 * cells)]
    cell = p.add("BlockLSTM" + version, *given, cell_clip=rng.choice([0.0, 3.0]), **flags)
    grads = [t(time, batch, cells), t(time, batch, cells)]
    p.add("BlockLSTMGrad" + version, *given, *(out(cell, k) for k in range(7)), *grads, **flags)
    return p.case("BlockLSTM" + version)


def gru(rng, ops):
    p = Program(rng, ops)
    batch, inputs, cells = (rng.randint(1, 4) for _ in range(3))
    t = lambda *shape: p.tensor("float", shape, np.array([rng.uniform(-1, 1) for _ in range(int(np.prod(shape)))]))
    given = [t(batch, inputs), t(batch, cells), t(inputs + cells, 2 * cells), t(inputs + cells, cells)]
    given += [t(2 * cells), t(cells)]
    cell = p.add("GRUBlockCell", *given)
    p.add("GRUBlockCellGrad", *given, out(cell, 0), out(cell, 1), out(cell, 2), t(batch, cells))
    return p.case("GRUBlockCell")


def codec(rng, ops):
    """A picture, encoded and decoded; the bytes may lose some in between."""
    p = Program(rng, ops)
    channels = rng.choice([1, 3])
    shape = [rng.randint(1, 9), rng.randint(1, 9), channels]
    picture = p.tensor("uint8", shape, [rng.randrange(256) for _ in range(int(np.prod(shape)))])
    bytes_of = p.add("EncodePng", picture, compression=rng.choice([-1, 0, 9]))
    text = out(bytes_of)
    if rng.random() < 0.3:
        text = out(p.add("Substr", text, p.scalar("int32", 0), p.scalar("int32", rng.randint(1, 90))))
    decoder = rng.choice(["DecodePng", "DecodeImage", "DecodeJpeg", "DecodeBmp"])
    p.add(decoder, text, channels=rng.choice([0, 1, 3, 4]))
    return hide_bytes(p.case("EncodePng"))


def hide_bytes(case):
    """Compressed bytes are an encoder's own business."""
    case["hidden"] = {"EncodePng", "EncodeJpeg", "Substr"}
    return case


ALL = [tensor_array, tensor_list, queue, hash_table, dataset, lstm, block_lstm, gru, codec]
