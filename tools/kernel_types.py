#!/usr/bin/env python3
"""Compares the types that our CPU kernels take with those of stock TensorFlow's.

  kernel_types.py TABLE LIBTENSORFLOW.SO --gaps FILE --missing LIST   what the library lacks; needs no stock
  kernel_types.py --record TABLE                       writes the table from the installed stock
  kernel_types.py --check TABLE                        compares the table with the installed stock

TABLE has one line per op with a CPU kernel: the op, then one column per set of kernels, "T=float,half
Tidx=int32". A set stands for every combination of its types that the op's definition allows. "any"
is a kernel without limits. Kernels with a label and kernels for other attributes do not count.
FILE lists the combinations that we lack on purpose or not yet: "Op T=float,half Tidx=int32 # why". A line
without types excuses the whole op. The comparison fails if a gap is not listed, and if a listed one is closed.
LIST has the ops that are not registered at all, "Op # why", 39 at most.
"""
import argparse
import ctypes
import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from check_tier import bytes_of, fields, types_of  # noqa: E402

NAMES = dict(enumerate(
    "invalid float double int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8 qint32 bfloat16 qint16 "
    "quint16 uint16 complex128 half resource variant uint32 uint64 float8_e5m2 float8_e4m3fn float8_e4m3fnuz "
    "float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2 float4_e2m1fn".split()))


def kernels_of(data):
    """Returns {op: [{attribute: set of type names}]} of a KernelList's CPU kernels without a label."""
    out = {}
    for _, kernel in fields(data):
        op, device, limits, label = "", "", {}, b""
        for number, value in fields(kernel):
            if number == 1:
                op = value.decode()
            elif number == 2:
                device = value.decode()
            elif number == 3:
                parts = dict(fields(value))
                types = types_of(parts[2])
                if types:
                    limits[parts[1].decode()] = {NAMES[t] for t in types}
            elif number == 5:
                label = value
        if device in ("CPU", "DEFAULT") and not label:
            out.setdefault(op, []).append(limits)
    return out


def combinations(several, attrs, can):
    """Returns the tuples of types of |attrs| that the kernels take and the definition allows."""
    out = set()
    for limits in several:
        sets = [limits.get(a, can.get(a, set())) & can.get(a, limits.get(a, set())) for a in attrs]
        out.update(itertools.product(*[sorted(s) for s in sets]))
    return out


def compact(tuples):
    """Returns the tuples as few sets: those that differ in the first place only are one."""
    groups = {}
    for t in tuples:
        groups.setdefault(t[1:], set()).add(t[0])
    sets = {}
    for rest, firsts in groups.items():
        sets.setdefault(tuple(sorted(firsts)), set()).add(rest)
    out = []
    for firsts, rests in sorted(sets.items()):
        if rests == {()}:
            out.append([firsts])
        else:
            out += [[firsts] + others for others in compact(rests)]
    return out


def spell(attrs, sets):
    return " ".join("%s=%s" % (a, ",".join(s)) for a, s in zip(attrs, sets)) or "any"


def parse(columns):
    """Returns (attributes, tuples) of a line's columns."""
    attrs, out = [], set()
    for column in columns:
        parts = [p.partition("=") for p in column.split() if p != "any"]
        attrs = [p[0] for p in parts]
        out.update(itertools.product(*[p[2].split(",") for p in parts]))
    return attrs, out


def stock_lines():
    from tensorflow.python.framework import kernels, op_def_registry
    from tensorflow.core.framework import types_pb2
    every = kernels_of(kernels.get_all_registered_kernels().SerializeToString())
    lines = []
    for op in sorted(every):
        if op.startswith(("_Mkl", "Xla", "_Xla", "TPU")):
            continue
        definition = op_def_registry.get(op)
        can = {a.name: {types_pb2.DataType.Name(t)[3:].lower() for t in a.allowed_values.list.type}
               for a in definition.attr if a.type == "type" and a.allowed_values.list.type}
        attrs = sorted(set().union(*every[op]) & {a.name for a in definition.attr if a.type == "type"})
        # An attribute that one of the kernels does not limit takes what the definition allows.
        attrs = [a for a in attrs if all(a in limits or a in can for limits in every[op])]
        columns = [spell(attrs, s) for s in compact(combinations(every[op], attrs, can))] if attrs else ["any"]
        lines.append("\t".join([op] + columns))
    return lines


def read_table(path):
    for line in open(path):
        if not line.startswith("#"):
            op, *columns = line.rstrip("\n").split("\t")
            yield op, columns


def read_gaps(path):
    """Returns {op: None for the whole op, or the listed tuples by attributes}."""
    out = {}
    for line in open(path):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            out[words[0]] = None
        elif words:
            attrs, tuples = parse([" ".join(words[1:])])
            out.setdefault(words[0], (attrs, set()))[1].update(tuples)
    return out


def takes(limits, attrs, types):
    """Returns whether a kernel with these limits takes these types of its attributes."""
    return all(a not in limits or t in limits[a] for a, t in zip(attrs, types))


MOST_MISSING = 39


def compare_missing(wanted, path):
    """Returns how many of the ops that are not registered are not in the list, or the other way round."""
    lines = [line.partition("#") for line in open(path) if line.strip() and not line.startswith("#")]
    listed = [line[0].strip() for line in lines]
    bad = ["%s: not registered, and not in %s" % (op, path) for op in wanted if op not in listed]
    bad += ["%s: in %s, but registered, or not in the table" % (op, path) for op in listed if op not in wanted]
    bad += ["%s: no reason" % line[0].strip() for line in lines if not line[2].strip()]
    if len(listed) > MOST_MISSING:
        bad.append("%s has %d ops, %d at most" % (path, len(listed), MOST_MISSING))
    for line in bad:
        print(line)
    return len(bad)


def compare(table, library, gaps_file, missing_file):
    lib = ctypes.CDLL(library)
    lib.TF_NewStatus.restype = ctypes.c_void_p
    ours = kernels_of(bytes_of(lib.TF_GetAllRegisteredKernels, lib.TF_NewStatus()))
    registered = {list(fields(op))[0][1].decode() for _, op in fields(bytes_of(lib.TF_GetAllOpList))}
    gaps, count = read_gaps(gaps_file), 0
    bad = compare_missing([op for op, _ in read_table(table) if op not in registered], missing_file)
    for op, columns in read_table(table):
        if op not in registered:
            continue
        attrs, wanted = parse(columns)
        known = gaps.pop(op, (attrs, set()))
        if known is None:
            continue
        lacks = {t for t in wanted if not any(takes(limits, attrs, t) for limits in ours.get(op, []))}
        count += len(wanted)
        for sets in compact(lacks - known[1]) if attrs else [[]] * bool(lacks):
            bad += 1
            print("%s %s" % (op, spell(attrs, sets)))
        for sets in compact(known[1] - lacks):
            bad += 1
            print("%s %s: listed as a gap, but it is none" % (op, spell(known[0], sets)))
    for op in gaps:
        bad += 1
        print("%s: listed as a gap, but it is not in the table or not registered" % op)
    print("%d combinations, %d lines differ" % (count, bad))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("library", nargs="?")
    parser.add_argument("--gaps")
    parser.add_argument("--missing")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.record:
        with open(args.table, "w") as f:
            f.write("# The types of stock's CPU kernels, by tools/kernel_types.py --record.\n")
            f.write("\n".join(stock_lines()) + "\n")
        return 0
    if args.check:
        here, there = [line.rstrip("\n") for line in open(args.table)][1:], stock_lines()
        for line in sorted(set(here) ^ set(there)):
            print(("- " if line in here else "+ ") + line[:200])
        return here != there
    return 1 if compare(args.table, args.library, args.gaps, args.missing) else 0


if __name__ == "__main__":
    sys.exit(main())
