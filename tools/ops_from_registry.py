#!/usr/bin/env python3
"""Prints ops of stock TensorFlow's registry as .ops text (see doc/ops_format.md).

  ops_from_registry.py --stock stock.pb MatMul Conv2D

`tf_registry.py --save stock.pb` writes stock.pb. Without --stock, reads the
registry of the installed library. The definitions are complete: names, types,
defaults, allowed values, minimums, flags, deprecations. `shape`, `grad`, `role`
and `doc` must be written by hand: the lines printed for them say TODO.
"""
import argparse
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tf_registry  # noqa: E402

WIDTH = 100
FLAGS = (("is_stateful", "stateful"), ("is_commutative", "commutative"),
         ("is_aggregate", "aggregate"), ("allows_uninitialized_input", "allows_uninitialized"),
         ("is_distributed_communication", "distributed"))


def wrap(line):
    """Breaks a line at commas; continuations are indented by six."""
    out, indent = [], ""
    while len(indent + line) > WIDTH:
        cut = (indent + line).rfind(", ", 0, WIDTH) - len(indent)
        if cut <= 0:
            cut = (indent + line).rfind(" ", 0, WIDTH) - len(indent) - 1
        out.append(indent + line[:cut + 1])
        line, indent = line[cut + 2:], " " * 6
    out.append(indent + line)
    return "\n".join(out)


def value_text(kind, value):
    if kind == "type":
        return value
    if kind == "shape":
        return shape_text(value["shape"])
    if kind == "float":
        return value if isinstance(value, str) else repr(value)
    if kind.startswith("list("):
        return "[" + ", ".join(value_text(kind[5:-1], v) for v in value) + "]"
    if kind == "tensor":
        return tensor_text(value["tensor"])
    if kind in ("string", "int", "bool"):
        return json.dumps(value)
    sys.exit("ops_from_registry: no text for a default of kind " + kind)


def tensor_text(data):
    from tensorflow.core.framework import tensor_pb2
    from tensorflow.python.framework import tensor_util
    array = tensor_util.MakeNdarray(tensor_pb2.TensorProto.FromString(bytes.fromhex(data)))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        sys.exit("ops_from_registry: no text for a tensor of %s %s" % (array.dtype, array.shape))
    return "%s [%s]" % (array.dtype, ", ".join(str(v) for v in array))


def shape_text(dims):
    return "?" if dims == "?" else "[" + ", ".join("?" if d < 0 else str(d) for d in dims) + "]"


def attr_text(attr, sets):
    kind = attr["type"]
    text = kind
    if "allowed" in attr:
        words = [json.dumps(v) if kind == "string" else v for v in attr["allowed"]]
        words = sets.get(tuple(words), words)
        allowed = "{" + ", ".join(words) + "}"
        text = allowed if kind == "type" else kind + " in " + allowed
    if "minimum" in attr:
        text += " >= %d" % attr["minimum"]
    if "default" in attr:
        text += " = " + value_text(kind, attr["default"])
    return "%s: %s" % (attr["name"], text)


def op_text(op, sets, extra):
    def args(part):
        return ", ".join(tf_registry.arg_text(a) for a in op[part])
    out = [wrap("op %s(%s) -> (%s)" % (op["name"], args("inputs"), args("outputs")))]
    out += [wrap("  " + attr_text(a, sets)) for a in op["attrs"]]
    flags = [word for field, word in FLAGS if op.get(field)]
    if flags:
        out.append("  flags " + " ".join(flags))
    if "deprecation" in op:
        out.append("  deprecated %d %s" % (op["deprecation"]["version"],
                                           op["deprecation"]["explanation"]))
    out += ["  full  %s %s" % pair for pair in sorted(op.get("full_type", {}).items())]
    return "\n".join(out + ["  " + line for line in extra])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="+")
    parser.add_argument("--stock", help="an OpList file")
    args = parser.parse_args()
    raw = open(args.stock, "rb").read() if args.stock else tf_registry.stock_bytes()
    op_def_pb2, types_pb2 = tf_registry.protos()
    op_list = op_def_pb2.OpList()
    op_list.ParseFromString(raw)
    stock = {op.name: op for op in op_list.op}
    for name in args.ops:
        if name not in stock:
            sys.exit("ops_from_registry: no op " + name)
        op = tf_registry.canon_op(types_pb2, stock[name], full_type=True)
        print(op_text(op, {}, ["shape TODO", "grad  TODO", "doc   TODO"]) + "\n")


if __name__ == "__main__":
    main()
