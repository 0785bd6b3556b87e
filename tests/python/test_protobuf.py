"""Protobuf messages: fields, bytes and text compared with stock's; invalid bytes."""

import glob
import json
import os
import random
import re

import pytest
from both import ROOT, both
from support import stock

CHECK = """
import json, sys
import tensorflow
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import api_def_pb2, kernel_def_pb2
from tensorflow.core.protobuf import config_pb2, tensor_bundle_pb2, tensorflow_server_pb2, fingerprint_pb2, saved_model_pb2
from tensorflow.core.util import event_pb2, saved_tensor_slice_pb2
from google.protobuf import descriptor_pool
pool = descriptor_pool.Default()
TYPES = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string", 11: "message", 12: "bytes",
         13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64"}
checked, wrong = 0, []
messages, packages = json.loads(sys.argv[1])
for name, fields in messages.items():
    if "$" in name:
        continue
    try:
        stock = pool.FindMessageTypeByName(packages[name.split(".")[0]] + "." + name)
    except KeyError:
        continue
    for field, number, kind, label, type_name in fields:
        other = stock.fields_by_name.get(field)
        checked += 1
        if other is None or other.number != number or (TYPES[other.type] != kind and not (kind == "bytes" and TYPES[other.type] == "message")):
            wrong.append((name, field, number, kind))
        elif (label == "*" or label == "m") != bool(other.is_repeated):
            wrong.append((name, field, label))
        elif label.startswith("?") != (other.containing_oneof is not None and not other.containing_oneof.name.startswith("_")):
            wrong.append((name, field, label))
print(json.dumps([checked, wrong]))
"""


def packages():
    """Returns {message: package}, as the files in proto/ have them."""
    out = {}
    for path in glob.glob(os.path.join(ROOT, "proto", "*.proto")) + glob.glob(os.path.join(ROOT, "python", "proto", "*.proto")):
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE).group(1)
        out.update((message, package) for message in re.findall(r"^message (\w+)", text, re.MULTILINE))
    return out


def test_table():
    import runnel  # noqa: F401  (finds the build folder)
    from runnel._descriptors import MESSAGES
    checked, wrong = json.loads(stock.printed("protobuf", CHECK, json.dumps([MESSAGES, packages()])).splitlines()[-1])
    assert checked > 600
    assert not wrong


@both
def test_examples(tf, np):
    example = tf.train.Example(features=tf.train.Features(feature={
        "a": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, -2, 300])),
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=np.array([0.1, 1e20, -3.0], np.float32))),
        "t": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x", b""]))}))
    data = example.SerializeToString()
    copy = tf.train.Example.FromString(data)
    feature = copy.features.feature
    return [sorted(feature), list(feature["a"].int64_list.value), list(feature["f"].float_list.value), list(feature["t"].bytes_list.value), feature["a"].WhichOneof("kind"), feature["t"].HasField("float_list"), len(data), example == copy, example.ByteSize(),
            str(feature["a"]), str(feature["f"]), str(feature["t"])]


@both
def test_graphs(tf, np):
    graph_def = tf.GraphDef()
    node = graph_def.node.add()
    node.name, node.op = "x", "Const"
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([1.0, 2.0]))
    node.attr["shapes"].list.shape.add().dim.add(size=3)
    node.attr["names"].list.s.extend([b"a", b"b\n\"\xff"])
    graph_def.node.extend([tf.NodeDef(name="y", op="Identity", input=["x", "^z"])])
    graph_def.versions.producer = 21
    copy = tf.GraphDef()
    copy.CopyFrom(graph_def)
    del copy.node[0]
    copy.node[0].ClearField("input")
    return [str(node.attr["dtype"]), str(node.attr["shapes"]), str(node.attr["names"]), len(graph_def.node), str(copy), node.attr["value"].WhichOneof("value"), "dtype" in node.attr, "none" in node.attr, len(copy.SerializeToString()), graph_def == copy,
            tf.make_ndarray(node.attr["value"].tensor), [f[0].name for f in copy.node[0].ListFields()] if hasattr(copy.node[0].ListFields()[0][0], "name") else None]


@both
def test_defaults(tf, np):
    config = tf.ConfigProto()
    rows = [config.allow_soft_placement, config.gpu_options.per_process_gpu_memory_fraction, config.HasField("gpu_options"), config.SerializeToString(), str(config)]
    config.gpu_options.SetInParent()
    rows += [config.HasField("gpu_options"), config.SerializeToString()]
    config.device_count["GPU"] = 0
    config.session_inter_op_thread_pool.add(num_threads=2)
    return rows + [config.SerializeToString(), str(config), tf.RunOptions.FULL_TRACE, tf.RunOptions(trace_level="FULL_TRACE").trace_level]


@both(raises=True)
def test_unknown_field(tf, np):
    tf.ConfigProto(no_such_field=1)


@both(raises=True)
def test_wrong_type(tf, np):
    tf.NodeDef().name = 5


def test_bad_bytes():
    from runnel.core.protobuf import DecodeError, message_class
    import runnel as tf
    with tf.Graph().as_default() as graph:
        tf.matmul(tf.ones([2, 2]), tf.placeholder(tf.float32, [2, None]))
        good = graph.as_graph_def().SerializeToString()
    assert message_class("GraphDef").FromString(good).SerializeToString() == good
    rng = random.Random(7)
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = bytes(data[:rng.randrange(len(data) + 1)])
        try:
            str(message_class("GraphDef").FromString(data))
        except (DecodeError, RecursionError):
            pass
    with pytest.raises(DecodeError):
        message_class("NodeDef").FromString(b"\x0a\x05ab")


def test_formats_of_the_protobuf_package():
    """google.protobuf's text_format and json_format read and write our messages."""
    import runnel as tf
    text_format = pytest.importorskip("google.protobuf.text_format")
    json_format = pytest.importorskip("google.protobuf.json_format")
    text = """node { name: 'A' op: 'Placeholder' attr { key: 'shape' value { shape { dim { size: 3 name: "x" } } } } }
              node { name: "B" op: "Const" input: ["A", "^C"] attr { key: "value" value { tensor { dtype: DT_INT32 int_val: [1, -2] tensor_content: "\\001a" } } } }
              library { function { ret { key: "y" value: "B:0" } } } versions { producer: 21 }"""
    graph = tf.GraphDef()
    text_format.Merge(text, graph)
    assert [n.name for n in graph.node] == ["A", "B"] and graph.node[1].input == ["A", "^C"] and graph.library.function[0].ret["y"] == "B:0"
    assert graph.node[1].attr["value"].tensor.dtype == tf.int32.as_datatype_enum and list(graph.node[1].attr["value"].tensor.int_val) == [1, -2]
    assert text_format.MessageToString(graph) == str(graph) and text_format.Parse(str(graph), tf.GraphDef()) == graph
    assert json_format.Parse(json_format.MessageToJson(graph), tf.GraphDef()) == graph
    for bad in ("node { foo: 1 }", "node { attr { key: 'x' value { type: DT_FOO } } }", "versions { producer: 'x' }", "node { name: 'a' name: 'b' }"):
        with pytest.raises(text_format.ParseError):
            text_format.Parse(bad, tf.GraphDef())
    assert tf.NodeDef.DESCRIPTOR.full_name == "tensorflow.NodeDef" and tf.AttrValue.DESCRIPTOR.fields_by_name["list"].containing_oneof.name == "value"
