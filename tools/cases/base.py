"""Helpers for writing cases."""

import json
import zlib

F = ["half", "bfloat16", "float", "double"]
I = ["int8", "int16", "int32", "int64"]
U = ["uint8", "uint16", "uint32", "uint64"]
C = ["complex64", "complex128"]
GROUPS = {
    "F": F,
    "I": I,
    "U": U,
    "C": C,
    "f": ["float", "double"],
    "i": ["int32", "int64"],
    "b": ["bool"],
    "s": ["string"],
    "Q": ["qint8", "quint8", "qint32"],
}
NAN, INF = "nan", "inf"
SPECIAL = [NAN, INF, "-inf", 0.0, -0.0, 1, -1, 0.5, -2.5, 1e-30, -1e30, 3e38]


def dtypes(text):
    """Returns the dtypes that "F I uint8" stands for; see GROUPS."""
    out = []
    for word in text.split():
        out += GROUPS.get(word, [word])
    return out


def drawn(dtype, shape, lo=None, hi=None, **more):
    """Returns a fed input with random values; Table.seeded gives it a seed."""
    spec = {"dtype": dtype, "shape": list(shape), "seed": None}
    if lo is not None and dtype not in ("bool", "string"):
        if dtype.startswith("u") or dtype.startswith("qu"):
            lo = max(lo, 0)
        if dtype not in F + C:
            lo, hi = int(lo), int(hi)
            if hi <= lo:
                hi = lo + 1
        spec.update(lo=lo, hi=hi)
    spec.update(more)
    return spec


def given(dtype, shape, values, **more):
    """Returns a fed input with the given values; a single value fills the shape."""
    values = values if isinstance(values, list) else [values]
    return dict({"dtype": dtype, "shape": list(shape), "values": values}, **more)


def vec(dtype, values, **more):
    return given(dtype, [len(values)], values, **more)


def scalar(dtype, value, **more):
    return given(dtype, [], [value], **more)


def const(spec):
    """Returns the same input as a Const node, so that shape inference sees its value."""
    return dict(spec, const=True)


def ivec(*values):
    return const(vec("int32", list(values)))


def iscalar(value):
    return const(scalar("int32", value))


def node(op, inputs=(), attrs=None, **more):
    spec = {"op": op}
    if attrs:
        spec["attrs"] = attrs
    if inputs:
        spec["inputs"] = list(inputs)
    return dict(spec, **more)


def ref(spec, **more):
    return dict(spec, variable="ref", **more)


def resource(spec, **more):
    return dict(spec, variable="resource", **more)


def use(name, output=0):
    return {"use": name, "output": output} if output else {"use": name}


class Table:
    """The cases of one family, in the order in which they are written."""

    def __init__(self):
        self.rows, self.names = [], set()

    def row(self, name, op, inputs=(), attrs=None, **more):
        first = name = "%s_%s" % (op, name)
        n = 1
        while name in self.names:
            n += 1
            name = "%s_%d" % (first, n)
        self.names.add(name)
        spec = dict({"name": name}, **node(op, inputs, attrs))
        self.count = 0
        base = zlib.crc32(name.encode()) % 900
        more = {k: v for k, v in more.items() if v is not None}
        spec = self.seeded(dict(spec, **more), base)
        self.rows.append(spec)

    def seeded(self, spec, base):
        """Gives every random input a seed of its own that depends only on the row's name."""
        if isinstance(spec, list):
            return [self.seeded(x, base) for x in spec]
        if not isinstance(spec, dict):
            return spec
        spec = {k: self.seeded(v, base) for k, v in spec.items()}
        if "seed" in spec and spec["seed"] is None:
            spec["seed"] = base + self.count
            self.count += 1
        return spec

    def each(self, name, op, kinds, make, attrs=None, **more):
        """Adds one row per dtype; make(dtype) returns the inputs, or (inputs, attrs)."""
        for d in dtypes(kinds):
            made = make(d)
            inputs, a = made if isinstance(made, tuple) else (made, attrs)
            self.row("%s_%s" % (name, d) if name else d, op, inputs, a, **more)

    def write(self, path, module):
        with open(path, "w") as f:
            f.write("# Written by tools/make_cases.py from tools/cases/%s.py.\n" % module)
            for r in self.rows:
                f.write(json.dumps(r) + "\n")


def wrong_in_stock(is_wrong=True):
    """Marks a row whose gradient stock's C registry gets wrong; the recorded one is Python's."""
    return {"stock_grad": False} if is_wrong else {}


def loose(dtype):
    """Returns the tolerance for sums of products, which kernels add in different orders."""
    return {
        "half": 1e-2,
        "bfloat16": 4e-2,
        "float": 1e-5,
        "double": 1e-12,
        "complex64": 1e-5,
        "complex128": 1e-12,
    }.get(dtype, 0)
