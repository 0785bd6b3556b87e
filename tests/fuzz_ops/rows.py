"""Random variations of the cases in tests/ops/cases: other values, types, sizes, attributes."""

import base64
import glob
import json
import os

import numpy as np

import hints
import values


class Unusable(Exception):
    """A row that one step of a graph, or eager execution, cannot express."""


def load(folder):
    """All rows by op."""
    by_op = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
        with open(path) as f:
            for line in f:
                if not line.startswith("#"):
                    row = json.loads(line)
                    by_op.setdefault(row["op"], []).append(row)
    return by_op


class Mutator:
    """Decides, once per case, how a row is changed."""

    def __init__(self, rng, row, op):
        self.rng, self.op, self.tame = rng, op, hints.is_tame(row["op"])
        self.sizes, self.types, self.odd = {}, {}, 0.0
        careful = hints.is_careful(row["op"])
        if rng.random() < 0.35 and not careful:  # another size wherever the row has the old one
            drawn = sorted({d for s in tensors_of(row) if "seed" in s for d in s["shape"]})
            for size in drawn:
                if rng.random() < 0.4:
                    self.sizes[size] = rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
        if rng.random() < 0.4:
            self.types = hints.other_types(rng, op)
        self.redraw = rng.random() < 0.6
        if not careful:
            self.odd = rng.choice([0, 0, 0, 0.05, 0.3])  # share of given numbers that change
        self.attr_odds = 0 if careful else rng.choice([0, 0.15, 0.4])

    def tensor(self, spec, dtype):
        shape = [self.sizes.get(d, d) if "seed" in spec else d for d in spec.get("shape", [])]
        n = int(np.prod(shape, dtype=np.int64))
        if n > 1 << 20:
            raise Unusable
        if "seed" in spec:
            if self.redraw and "lo" not in spec or self.rng.random() < 0.3:
                return shape, values.draw(self.rng, dtype, shape, self.tame)
            return shape, self.within(dtype, n, spec.get("lo"), spec.get("hi"))
        flat = spec.get("values", [])
        flat = flat * n if len(flat) == 1 and n != 1 else flat
        if len(flat) != n:
            raise Unusable
        return shape, self.given(spec["dtype"], dtype, flat)

    def within(self, dtype, n, lo, hi):
        rng = self.rng
        if dtype == "string":
            return [rng.choice(values.STRINGS) for _ in range(n)]
        if dtype == "bool":
            return bytes(rng.randrange(2) for _ in range(n))
        if dtype in values.INTS:
            lo = (0 if dtype[0] == "u" or dtype[1] == "u" else -8) if lo is None else int(lo)
            hi = lo + 16 if hi is None else max(int(hi), lo + 1)
            return values.data_of(dtype, np.array([rng.randrange(lo, hi) for _ in range(n)], "i8"))
        lo, hi = -1 if lo is None else lo, 1 if hi is None else hi
        array = np.array([rng.uniform(lo, hi) for _ in range(n)])
        if dtype in values.COMPLEX:
            array = array + 1j * np.array([rng.uniform(lo, hi) for _ in range(n)])
        return values.data_of(dtype, array)

    def given(self, row_dtype, dtype, flat):
        out = []
        for v in flat:
            v = base64.b64decode(v["b64"]) if isinstance(v, dict) else v
            if row_dtype == "string":
                v = v.encode() if isinstance(v, str) else v
                out.append(self.text(v) if self.rng.random() < self.odd else v)
                continue
            v = plain_number(v)
            out.append(self.number(dtype, v) if self.rng.random() < self.odd else v)
        if (row_dtype == "string") != (dtype == "string"):
            raise Unusable
        if dtype == "string":
            return out
        if dtype in values.INTS and all(isinstance(v, int) for v in out):
            info = np.iinfo(values.NUMPY[dtype])
            low, span = int(info.min), int(info.max) - int(info.min) + 1
            return np.array([(v - low) % span + low for v in out], object).astype(values.NUMPY[dtype]).tobytes()
        out = np.array(out, "c16")
        return values.data_of(dtype, out if dtype in values.COMPLEX else out.real)

    def number(self, dtype, v):
        rng = self.rng
        if dtype == "bool":
            return not v
        if dtype in values.INTS:
            if not isinstance(v, int):
                return 0
            return rng.choice([v + 1, v - 1, 0, -1, 1, 2, -v, int(values.draw_int(rng, dtype, 1)[0])])
        return float(values.draw_float(rng, dtype if dtype in values.LIMITS else "float", 1, self.tame)[0])

    def text(self, v):
        rng = self.rng
        how = rng.randrange(5)
        if how == 0 or not v:
            return rng.choice(values.STRINGS)
        at = rng.randrange(len(v))
        if how == 1:
            return v[:at]
        if how == 2:
            return v[:at] + bytes([rng.randrange(256)]) + v[at + 1 :]
        if how == 3:
            return v[:at] + v[at : at + 4] + v[at:]
        return v[:at] + v[at + 1 :]

    def attr(self, attr, value):
        rng, kind = self.rng, attr.kind
        if rng.random() >= self.attr_odds or attr.name in hints.FIXED_ATTRS:
            return value
        if kind == "bool":
            return rng.random() < 0.5
        if attr.allowed and kind == "string":
            return rng.choice(attr.allowed)
        if kind == "int" and isinstance(value, int):
            least = -(2**31) if attr.minimum is None else attr.minimum
            return max(least, rng.choice([value + 1, value - 1, 0, 1, -1, value]))
        if kind == "float":
            return rng.choice([value, value * 2, -value, 0.0, 1.0, 0.5, value + 1, 1e-3])
        if kind == "list(int)" and value:
            return [rng.choice([v, v, v + 1, v - 1, 1, 2]) for v in value]
        return value


def plain_number(v):
    """JSON's value of a number; infinities, NaN and large integers are strings there."""
    if isinstance(v, list):
        return complex(*map(float, v))
    if isinstance(v, str):
        return int(v) if v.lstrip("-").isdigit() else float(v)
    return v


def tensors_of(spec):
    if isinstance(spec, list):
        for x in spec:
            yield from tensors_of(x)
    elif isinstance(spec, dict):
        if "dtype" in spec and "shape" in spec and not isinstance(spec["dtype"], dict):
            yield spec
        for key in ("inputs", "before", "then"):
            yield from tensors_of(spec.get(key, []))


class Lowering:
    """A row as the nodes of a case."""

    def __init__(self, rng, ops, mutator):
        self.rng, self.ops, self.mutator = rng, ops, mutator
        self.nodes, self.known, self.variables, self.is_graph_only = [], {}, [], False
        self.name = rng.randrange(1 << 40)

    def add(self, op, attrs, inputs):
        self.nodes.append({"op": op, "attrs": attrs, "inputs": inputs})
        return len(self.nodes) - 1

    def input(self, spec, dtype=None):
        if "use" in spec:
            if spec["use"] not in self.known:
                raise Unusable
            kind, number, output = self.known[spec["use"]]
            return (kind, number, spec.get("output", output))
        if "op" in spec:
            if dtype and self.mutator.types:
                raise Unusable
            made = ("node", self.node(spec, False), spec.get("output", 0))
        else:
            dtype = dtype or spec["dtype"]
            shape, data = self.mutator.tensor(spec, dtype)
            how = "const" if spec.get("const") else self.rng.choice(["shaped", "open", "const"])
            made = ("tensor", dtype, tuple(shape), data, how)
            if spec.get("variable"):
                made = self.variable(spec["variable"], made)
        if "id" in spec:
            if made[0] != "node":
                raise Unusable
            self.known[spec["id"]] = made
        return made

    def variable(self, kind, value):
        attrs = {
            "dtype": ("type", value[1]),
            "shape": ("shape", list(value[2])),
            "shared_name": ("string", b"v%d_%d" % (self.name, len(self.variables))),
        }
        if kind == "resource":
            handle = ("node", self.add("VarHandleOp", attrs, []), 0)
            self.add("AssignVariableOp", {}, [handle, value])
        else:
            self.is_graph_only = True
            handle = ("node", self.add("VariableV2", attrs, []), 0)
            self.add("Assign", {}, [handle, value])
        self.variables.append((kind, value[1], handle))
        return handle

    def attrs(self, op, given, is_mutable):
        out, inferred = {}, op.inferred()
        for name, value in given.items():
            attr = op.attrs.get(name)
            if is_mutable and name in self.mutator.types and name in inferred:
                continue
            if attr is None or attr.kind in ("func", "list(func)", "list(tensor)"):
                raise Unusable
            value = plain_attr(attr.kind, value)
            if attr.kind == "tensor":
                shape, data = self.mutator.tensor(value, value["dtype"])
                value = (value["dtype"], tuple(shape), data)
            elif is_mutable:
                if attr.kind == "type" and name in self.mutator.types:
                    value = self.mutator.types[name]
                value = self.mutator.attr(attr, value)
            out[name] = (attr.kind, value)
        if "shared_name" in op.attrs:  # eager cases share a context, not their state
            own = out.get("shared_name", ("string", b"n%d" % len(self.nodes)))[1]
            out["shared_name"] = ("string", b"%d/%s" % (self.name, own))
        if is_mutable:
            for attr in op.attrs.values():
                if attr.name not in out and attr.has_default and attr.default is not None:
                    changed = self.mutator.attr(attr, attr.default)
                    if changed != attr.default:
                        out[attr.name] = (attr.kind, changed)
        return out

    def node(self, spec, is_main):
        op = self.ops.get(spec["op"])
        if op is None or spec["op"] in hints.EXCLUDED:
            raise Unusable
        inputs, given = [], spec.get("inputs", [])
        types = self.mutator.types if is_main else {}
        for arg, one in zip(op.inputs, given):
            dtype = types.get(arg.type_attr)
            if arg.type == "resource":  # the variable behind it has the op's type
                dtype = types.get("T", types.get("dtype"))
            if isinstance(one, list):
                inputs.append([self.input(x, dtype) for x in one])
            else:
                inputs.append(self.input(one, dtype))
        if len(given) != len(op.inputs):
            raise Unusable
        if any(arg.is_ref for arg in op.inputs + op.outputs):
            self.is_graph_only = True
        attrs = self.attrs(op, spec.get("attrs", {}), is_main)
        for arg, one in zip(op.inputs, inputs):
            if arg.number_attr and isinstance(one, list):  # stock's eager ops do not infer it well
                attrs[arg.number_attr] = ("int", len(one))
        number = self.add(spec["op"], attrs, inputs)
        if "id" in spec:
            self.known[spec["id"]] = ("node", number, 0)
        return number


def plain_attr(kind, value):
    """JSON's value of an attribute as capi.py takes it."""
    if kind == "string":
        return value.encode()
    if kind == "list(string)":
        return [v.encode() for v in value]
    if kind == "shape":
        return None if value in (None, "?") else [-1 if d is None else d for d in value]
    if kind == "list(shape)":
        return [plain_attr("shape", v) for v in value]
    if kind == "float":
        return float(value)
    return value


def case(rng, ops, row):
    """A case made of |row|, changed."""
    if row["op"] not in ops or row["op"] in hints.EXCLUDED:
        raise Unusable
    lowering = Lowering(rng, ops, Mutator(rng, row, ops[row["op"]]))
    for spec in row.get("before", []):
        lowering.node(spec, False)
    lowering.known["node"] = ("node", lowering.node(row, True), 0)
    for spec in row.get("then", []):
        lowering.node(spec, False)
    for kind, dtype, handle in lowering.variables:
        if kind == "ref":
            lowering.add("Identity", {}, [handle])
        else:
            lowering.add("ReadVariableOp", {"dtype": ("type", dtype)}, [handle])
    mode = "graph" if lowering.is_graph_only else rng.choice(["eager", "graph"])
    if any(hints.has_random_state(ops[n["op"]]) for n in lowering.nodes):
        mode = "graph"
    if any(hints.may_wait(n["op"]) for n in lowering.nodes):
        mode = "graph"  # where a step has a deadline
    if sum(isinstance(x, list) for n in lowering.nodes for x in n["inputs"]) > 1:
        mode = "graph"  # stock's C API takes the second list of an eager op for the first
    return {"mode": mode, "op": row["op"], "nodes": lowering.nodes, "from": row["name"]}
