#!/usr/bin/env python3
"""Records the results of stock TensorFlow for shape-inference cases.

  record_shapes.py CASES > NEW

CASES is in the language of tests/framework/shape_probe.c.  Builds each case as a small graph and
imports it. The new `expect` line is stock's result: the output shapes, or the message of the shape
function without the node's summary.  Drops cases that stock rejects before shape inference.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2, types_pb2  # noqa: E402

PRODUCER = 2474


def dtype(name):
    return types_pb2.DataType.Value("DT_" + name.upper())


def dims(text):
    if text == "*":
        return None
    return [] if text == "[]" else [-1 if d == "?" else int(d) for d in text.split(",")]


def set_shape(proto, text):
    proto.SetInParent()
    sizes = dims(text)
    if sizes is None:
        proto.unknown_rank = True
    for size in sizes or []:
        proto.dim.add().size = size


def set_attr(attr, kind, words):
    if kind[0] == "l":
        attr.list.SetInParent()
    if kind == "i":
        attr.i = int(words[0])
    elif kind == "b":
        attr.b = words[0] == "True"
    elif kind == "f":
        attr.f = float(words[0])
    elif kind == "s":
        attr.s = (words[0] if words else "").encode()
    elif kind == "type":
        attr.type = dtype(words[0])
    elif kind == "shape":
        set_shape(attr.shape, words[0])
    elif kind == "li":
        attr.list.i.extend(int(w) for w in words)
    elif kind == "lf":
        attr.list.f.extend(float(w) for w in words)
    elif kind == "ls":
        attr.list.s.extend(w.encode() for w in words)
    elif kind == "lt":
        attr.list.type.extend(dtype(w) for w in words)
    elif kind == "lshape":
        for word in words:
            set_shape(attr.list.shape.add(), word)


def add_input(graph, index, words, is_ref):
    node = graph.node.add(name="in%d" % index)
    node.attr["dtype"].type = dtype(words[0])
    if len(words) > 2:
        node.op = "Const"
        np_type = tf.dtypes.as_dtype(dtype(words[0])).as_numpy_dtype
        value = np.array([float(w) for w in words[3:]]).astype(np_type).reshape(dims(words[1]))
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    else:
        node.op = "VariableV2" if is_ref else "Placeholder"
        set_shape(node.attr["shape"].shape, words[1])


def answer(lines, ref_args):
    graph = graph_pb2.GraphDef()
    graph.versions.producer = PRODUCER
    node = graph.node.add(name="x", op=lines[0][1])
    for words in lines[1:]:
        if words[0] == "attr":
            set_attr(node.attr[words[1]], words[2], words[3:])
        else:
            index = len(node.input)
            node.input.append("in%d" % index)
            add_input(graph, index, words[1:], index in ref_args)
    with tf.Graph().as_default() as built:
        try:
            tf.import_graph_def(graph, name="")
        except (ValueError, tf.errors.OpError) as error:
            text = str(error)
            if " for '{{node" not in text:
                return None
            return "err " + text.split(" for '{{node")[0].replace("\n", "\\n")
        out = "ok"
        for output in built.get_operation_by_name("x").outputs:
            if output.shape.rank is None:
                out += " <unknown>"
            else:
                out += " [" + ",".join("?" if d is None else str(d)
                                       for d in output.shape.as_list()) + "]"
        return out


def main():
    from tensorflow.python.framework import op_def_registry
    case = []
    for line in open(sys.argv[1]):
        words = line.split()
        if not words or words[0][0] == "#":
            sys.stdout.write(line)
        elif words[0] in ("op", "attr", "in"):
            case = [words] if words[0] == "op" else case + [words]
        else:
            arguments = op_def_registry.get(case[0][1]).input_arg
            if any(a.is_ref and a.number_attr for a in arguments):
                refs = set(range(1 if arguments[0].name == "index" else 0, 64))
            else:
                refs = {i for i, a in enumerate(arguments) if a.is_ref}
            text = answer(case, refs)
            if text is not None:
                print("\n".join(" ".join(w) for w in case) + "\nexpect " + text)


if __name__ == "__main__":
    main()
