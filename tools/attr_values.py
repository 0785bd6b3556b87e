#!/usr/bin/env python3
"""Checks that the case tables try every value of attributes that have few of them.

  attr_values.py CASES GOLDEN LIBTENSORFLOW.SO --gaps FILE

An attribute counts if its definition lists its values as strings, or if it is a bool. A value is tried by a
row of the op that runs in stock and gives the attribute this value, or leaves it at this default. FILE lists
what no row tries: "Op attribute=value". The check fails if a gap is not listed, and if a listed one is closed.
Ops without a row are not looked at: `ops_test --mode support` knows them.
"""
import argparse
import ctypes
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_tier import bytes_of, fields  # noqa: E402

BOOL, STRING = 5, 2  # fields of AttrValue


def rows_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def attr_values(value):
    """Returns the strings or bools of a serialized AttrValue, which may be a list."""
    out = []
    for number, part in fields(value):
        if number == 1:  # a list
            out += [p.decode() for n, p in fields(part) if n == STRING]
        elif number == STRING:
            out.append(part.decode())
        elif number == BOOL:
            out.append(bool(part))
    return out


def definitions(library):
    """Returns {op: {attribute: (values, default or None)}} of what is to be tried."""
    lib = ctypes.CDLL(library)
    out = {}
    for _, op in fields(bytes_of(lib.TF_GetAllOpList)):
        parts = list(fields(op))
        attrs = {}
        for number, attr in parts:
            if number != 4:
                continue
            fact = dict(fields(attr))
            kind = fact[2].decode()
            default = (attr_values(fact[3]) or [None])[0] if 3 in fact else None
            if kind == "bool":
                # False is the value that a message leaves out.
                attrs[fact[1].decode()] = ([False, True], bool(default) if 3 in fact else None)
            elif kind == "string" and 7 in fact and attr_values(fact[7]):
                attrs[fact[1].decode()] = (attr_values(fact[7]), default)
        if attrs:
            out[parts[0][1].decode()] = attrs
    return out


def tried(cases, golden):
    """Returns {op: [attributes of a row that ran]}."""
    out = {}
    for path in sorted(glob.glob(os.path.join(cases, "*.jsonl"))):
        for row, answer in zip(rows_of(path), rows_of(os.path.join(golden, os.path.basename(path)))):
            if "error" not in answer:
                out.setdefault(row["op"], []).append(row.get("attrs") or {})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases")
    parser.add_argument("golden")
    parser.add_argument("library")
    parser.add_argument("--gaps", required=True)
    args = parser.parse_args()
    rows, gaps, count = tried(args.cases, args.golden), [], 0
    for op, attrs in sorted(definitions(args.library).items()):
        for name, (values, default) in sorted(attrs.items()):
            seen = [row.get(name, default) for row in rows.get(op, [])]
            count += len(values) if seen else 0
            gaps += ["%s %s=%s" % (op, name, v) for v in values if seen and v not in seen]
    with open(args.gaps) as file:
        listed = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    bad = ["%s: no row tries it" % g for g in gaps if g not in listed]
    bad += ["%s: listed as a gap, but a row tries it" % g for g in listed if g not in gaps]
    for line in bad:
        print(line)
    print("%d values, %d gaps, %d lines differ" % (count, len(gaps), len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
