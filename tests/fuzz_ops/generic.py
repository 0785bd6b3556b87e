"""Random cases from the definition of an op alone."""

import numpy as np

import hints
import values

ANY_TYPES = ["float", "double", "int32", "int64", "half", "bfloat16", "complex64", "bool", "string", "uint8"]
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67]


def is_possible(op):
    """Whether tensors are all that the op takes."""
    if op.name in hints.EXCLUDED or hints.may_wait(op.name) or op.name.startswith("_"):
        return False
    if any(a.kind in ("func", "list(func)", "tensor", "list(tensor)") for a in op.attrs.values()):
        return False
    return bool(op.inputs) and not any(
        a.is_ref or a.type in ("resource", "variant") or a.type_list_attr for a in op.inputs
    )


def weight(op):
    """How often an op is drawn: those that are likely to take any shapes more."""
    types = {a.type_attr for a in op.inputs}
    is_elementwise = len(op.inputs) <= 3 and len(types) == 1 and None not in types and len(op.outputs) == 1
    return 4 if is_elementwise else 1


def draw_shape(rng):
    rank = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    if rank == 1:
        return [rng.choice(LENGTHS + [0])]
    return [rng.choice([0, 1, 2, 3, 4, 5]) if rng.random() < 0.1 else rng.choice([1, 2, 3, 4]) for _ in range(rank)]


def related(rng, base):
    """A shape that goes with |base|, most of the time."""
    style = rng.random()
    if style < 0.6:
        return list(base)
    if style < 0.85:  # broadcasts against it
        cut = list(base[rng.randint(0, len(base)) :])
        return [1 if rng.random() < 0.3 else d for d in cut]
    if style < 0.93:
        return []
    return draw_shape(rng)


def integer_argument(rng, name, dtype, base):
    """(shape, data) of an integer input by its name, or None."""
    rank = max(1, len(base))
    fill = lambda shape, numbers: (shape, values.data_of(dtype, np.array(numbers, "i8").reshape(-1)))
    small = lambda: rng.choice([0, 1, 1, 2, 2, 3, 4])
    if name in ("axis", "dim", "concat_dim", "split_dim", "dimension", "batch_dims"):
        return fill([], [rng.randint(-rank, rank - 1) if rng.random() < 0.9 else rank])
    if name in ("reduction_indices", "axes", "dims"):
        n = rng.randint(0, rank)
        return fill([n], rng.sample(range(rank), n))
    if name in (
        "shape",
        "size",
        "dense_shape",
        "output_shape",
        "sizes",
        "s0",
        "s1",
        "fft_length",
        "input_sizes",
        "block_shape",
    ):
        n = rank if name in ("shape", "dense_shape", "output_shape") else 2
        return fill([n], [small() for _ in range(n)])
    if name in ("paddings", "pads", "crops"):
        return fill([rank, 2], [rng.choice([0, 0, 1, 2]) for _ in range(2 * rank)])
    if name == "perm":
        return fill([rank], rng.sample(range(rank), rank))
    if name in (
        "k",
        "num",
        "depth",
        "num_segments",
        "num_rows",
        "num_columns",
        "diameter",
        "max_output_size",
        "fixed_length",
    ):
        return fill([], [small()])
    if name in ("indices", "segment_ids", "segment_indices"):
        shape = [base[0]] if base and rng.random() < 0.6 else draw_shape(rng)[:2]
        n = int(np.prod(shape, dtype=np.int64))
        top = max(1, base[0] if base else 1)
        drawn = [rng.randrange(top) if rng.random() < 0.97 else rng.choice([-1, top]) for _ in range(n)]
        return fill(shape, sorted(drawn) if "segment" in name else drawn)
    if name in ("multiples", "begin", "start", "limit", "delta", "shift", "stop", "end", "strides"):
        n = rank if name in ("multiples", "begin", "end", "strides") else None
        draw = lambda: rng.choice([0, 1, 1, 2, 3])
        return fill([n], [draw() for _ in range(n)]) if n is not None else fill([], [draw()])
    return None


def attributes(rng, op):
    out = {}
    kernel = rng.choice(op.kernels) if op.kernels else {}
    inferred = op.inferred()
    for attr in op.attrs.values():
        name, kind = attr.name, attr.kind
        if kind == "type":
            types = kernel.get(name) or attr.allowed or ANY_TYPES
            if rng.random() < 0.03:
                types = attr.allowed or ANY_TYPES
            types = [t for t in types if values.can_draw(t)] or ["float"]
            out[name] = (kind, rng.choice(types))
        elif name in inferred and kind == "int":
            out[name] = (kind, max(attr.minimum or 0, rng.choice([1, 2, 2, 3])))
        elif attr.has_default and (rng.random() < 0.5 or name in hints.FIXED_ATTRS):
            continue
        elif kind == "bool":
            out[name] = (kind, rng.random() < 0.5)
        elif kind == "string":
            out[name] = (kind, rng.choice(attr.allowed or [attr.default or b"", b"", b"a"]))
        elif kind == "int":
            near = attr.default if isinstance(attr.default, int) else 1
            least = attr.minimum if attr.minimum is not None else -3
            out[name] = (kind, max(least, rng.choice([near, near + 1, 0, 1, 2, 3, -1])))
        elif kind == "float":
            out[name] = (kind, rng.choice([0.0, 0.5, 1.0, 2.0, -1.0, 0.1, attr.default or 0.25]))
        elif kind == "list(int)":
            n = max(attr.minimum or 0, rng.choice([0, 1, 2, 3, 4, 5]))
            out[name] = (kind, [rng.choice([0, 1, 1, 2, 3, -1]) for _ in range(n)])
        elif kind == "shape":
            out[name] = (kind, draw_shape(rng))
        elif kind == "list(float)":
            out[name] = (
                kind,
                [rng.choice([0.0, 0.5, 1.0, 1.2, -1.0]) for _ in range(rng.randint(attr.minimum or 0, 5))],
            )
        elif kind == "list(bool)":
            out[name] = (kind, [rng.random() < 0.5 for _ in range(rng.randint(attr.minimum or 0, 3))])
        elif kind == "list(string)":
            out[name] = (kind, [rng.choice(values.STRINGS) for _ in range(max(attr.minimum or 0, 1))])
        elif kind == "list(type)":
            out[name] = (
                kind,
                [rng.choice([t for t in attr.allowed or ANY_TYPES if t]) for _ in range(max(attr.minimum or 0, 1))],
            )
        elif kind == "list(shape)":
            out[name] = (kind, [draw_shape(rng) for _ in range(max(attr.minimum or 0, 1))])
    return out


def one_input(rng, op, position, base, attrs):
    """A tensor for the argument at |position|."""
    arg, made = op.inputs[position], None
    dtype = arg.type or attrs[arg.type_attr][1]
    if dtype in values.INTS and (position > 0 or arg.name in ("shape", "dims", "indices")):
        made = integer_argument(rng, arg.name, dtype, base)
    if made is None:
        shape = list(base) if position == 0 else related(rng, base)
        made = shape, values.draw(rng, dtype, shape, hints.is_tame(op.name))
    return ("tensor", dtype, tuple(made[0]), made[1], rng.choice(["shaped", "open", "const"]))


def case(rng, op):
    attrs = attributes(rng, op)
    base = draw_shape(rng)
    inputs = []
    for position, arg in enumerate(op.inputs):
        if arg.number_attr:
            inputs.append([one_input(rng, op, position, base, attrs) for _ in range(attrs[arg.number_attr][1])])
        else:
            inputs.append(one_input(rng, op, position, base, attrs))
    for name in op.inferred():
        if attrs[name][0] != "int":
            attrs.pop(name)
    # Stock's C API takes the second list of an eager op for the first.
    has_lists = sum(isinstance(x, list) for x in inputs) > 1
    mode = "graph" if has_lists or hints.has_random_state(op) else rng.choice(["eager", "graph"])
    nodes = [{"op": op.name, "attrs": attrs, "inputs": inputs}]
    return {"mode": mode, "op": op.name, "nodes": nodes, "from": "definition"}
