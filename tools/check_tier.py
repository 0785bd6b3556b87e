#!/usr/bin/env python3
"""Checks that a libtensorflow has the ops, kernels and gradients of a list.

  check_tier.py OPS.TSV LIBTENSORFLOW.SO [--tier T1] [--ops DIR]

OPS.TSV has a header line and the columns op, family, tier, grad, kernels, separated by tabs. Checks
for every op of the tier that the library registers it; that its CPU kernels accept every listed type
that its definition allows; and, if stock has a gradient (grad is "yes" or "missing-in-C++"), that the
.ops file in DIR (src/ops) names a rule. Prints one line per missing item, then a count. Reads the
kernels through the C API, so it does not need stock TensorFlow.
"""
import argparse
import ctypes
import glob
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from support.wire import fields, varints  # noqa: E402

NAMES = {"f16": 19, "bf16": 14, "f32": 1, "f64": 2, "i8": 6, "i16": 5, "i32": 3, "i64": 9, "u8": 4,
         "u16": 17, "u32": 22, "u64": 23, "c64": 8, "c128": 18, "b": 10, "str": 7, "res": 20,
         "var": 21, "qi8": 11, "qu8": 12, "qi32": 13, "qi16": 15, "qu16": 16, "f8e5": 24,
         "f8e4": 25, "int4": 29, "uint4": 30, "int2": 31, "uint2": 32, "float4_e2m1fn": 33}
GROUPS = {"F": "f16 bf16 f32 f64", "I": "i8 i16 i32 i64", "U": "u8 u16 u32 u64", "C": "c64 c128",
          "Q": "qi8 qu8 qi32"}


def types_of(attr_value):
    """Returns the types in an AttrValue.list.type, packed or not."""
    out = set()
    for number, value in fields(attr_value):
        if number == 1:  # list
            for inner, types in fields(value):
                if inner == 6:
                    out.update(varints(types))
        elif number == 6:
            out.add(value)
    return out


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t),
                ("free", ctypes.c_void_p)]


def bytes_of(function, *args):
    function.restype = ctypes.POINTER(Buffer)
    function.argtypes = [ctypes.c_void_p] * len(args)
    buffer = function(*args)
    return ctypes.string_at(buffer.contents.data, buffer.contents.length)


def allowed(lib):
    """Returns {(op, attribute): types that the definition allows}, for attributes with such a list."""
    out = {}
    for _, op in fields(bytes_of(lib.TF_GetAllOpList)):
        parts = list(fields(op))
        for number, attr in parts:
            if number == 4:
                attr = dict(fields(attr))
                if attr.get(2) == b"type" and 7 in attr:
                    out[parts[0][1].decode(), attr[1].decode()] = types_of(attr[7])
    return out


def kernels(lib):
    """Returns {op: {type attribute: types}} of the CPU kernels; attributes that accept any type are absent."""
    lib.TF_NewStatus.restype = ctypes.c_void_p
    rows = {}
    for _, kernel in fields(bytes_of(lib.TF_GetAllRegisteredKernels, lib.TF_NewStatus())):
        op, device, limits = "", "", {}
        for number, value in fields(kernel):
            if number == 1:
                op = value.decode()
            elif number == 2:
                device = value.decode()
            elif number == 3:
                parts = dict(fields(value))
                limits[parts[1].decode()] = types_of(parts[2])
        if device == "CPU":
            rows.setdefault(op, []).append(limits)
    out = {}
    for op, several in rows.items():
        names = set.intersection(*[set(r) for r in several])  # attributes that every kernel restricts
        out[op] = {n: set().union(*[r[n] for r in several]) for n in names}
    return out


def gradients(folder):
    """Returns {op: text of its "grad" line, "" if it has none}."""
    out, op = {}, None
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for line in open(path):
            found = re.match(r"op (\w+)\(", line)
            if found:
                op = found.group(1)
                out[op] = ""
            elif op and line.startswith("  grad "):
                out[op] = line.split()[1]
    return out


def wanted_types(text):
    out = set()
    for word in filter(None, text.split(",")):
        for name in GROUPS.get(word, word).split():
            out.add(name)
    return out


def missing_of(op, grad, kinds, have, rules, may):
    if op not in rules:
        return ["not registered"]
    out = []
    if kinds != "-" and op not in have:
        out.append("no kernel")
    elif kinds not in ("-", "any"):
        for part in kinds.split():
            attr, _, types = part.partition("=")
            bound, can = have[op].get(attr), may.get((op, attr), set(NAMES.values()))
            lacks = [t for t in sorted(wanted_types(types))
                     if bound is not None and NAMES[t] in can - bound]
            if lacks:
                out.append("%s lacks %s" % (attr, " ".join(lacks)))
    if grad in ("yes", "missing-in-C++") and rules[op] in ("", "none", "refused"):
        out.append("no gradient rule")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("list")
    parser.add_argument("library")
    parser.add_argument("--tier", default="T1")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--ops", default=os.path.join(here, "../src/ops"))
    parser.add_argument("--except", dest="excused", help="file of lines 'Op reason': these ops only need to be registered")
    args = parser.parse_args()
    lib = ctypes.CDLL(args.library)
    have, rules, may = kernels(lib), gradients(args.ops), allowed(lib)
    excused = set()
    if args.excused:
        lines = [line.split() for line in open(args.excused) if line[0] != "#"]
        excused = {words[0] for words in lines if words}
    count = missing = 0
    for line in open(args.list):
        op, _, tier, grad, kinds = line.rstrip("\n").split("\t")[:5]
        if tier != args.tier:
            continue
        count += 1
        lacks = missing_of(op, grad, kinds.strip(), have, rules, may)
        if op in excused:
            lacks = [what for what in lacks if what == "not registered"]
        missing += bool(lacks)
        for what in lacks:
            print("%s: %s" % (op, what))
    print("%d ops of %s, %d missing" % (count, args.tier, missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
