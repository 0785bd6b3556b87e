#!/usr/bin/env python3
"""The models of the serving tests, with TensorFlow Serving's names, signatures and values: make_models.py OUT

OUT/half_plus_two/00000123             y = 0.5 x + 2
OUT/half_plus_three/00000123           y = 0.5 x + 3
OUT/half_plus_two_2_versions/00000123  half_plus_two
OUT/half_plus_two_2_versions/00000124  half_plus_three
OUT/simple/1                           OUTPUT0, OUTPUT1 = INPUT0 + and - INPUT1, int32 [-1,16], of Triton's examples
OUT/simple_string/1                    the same with numbers as strings
OUT/every_type/1                       the identity of an input per type: BOOL to BOOL_OUT, and so on
OUT/outputs/1                          x to a = x + 1, b = 2 x and c = x x; signature random: x plus a random number
OUT/counter/1                          x to x + n; signature count: adds x to the variable n
OUT/lookup/1                           words to their numbers in an asset, -1 for others

Each half_ has the signatures serving_default (predict, x to y), regress_x_to_y, regress_x_to_y2, regress_x2_to_y3 and classify_x_to_y; the
last four take serialized examples with a feature x. Needs stock TensorFlow. Those in tests/serve/models were made by this.
"""
import os
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow.compat.v1 as tf

PREFIX = "tensorflow/serving/"


def signature(method, inputs, outputs):
    info = tf.saved_model.utils.build_tensor_info
    return tf.saved_model.signature_def_utils.build_signature_def(
        inputs={name: info(tensor) for name, tensor in inputs.items()},
        outputs={name: info(tensor) for name, tensor in outputs.items()}, method_name=PREFIX + method)


def make(folder, plus):
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.get_variable("a", initializer=0.5)
        b = tf.get_variable("b", initializer=float(plus))
        c = tf.get_variable("c", initializer=3.0)
        examples = tf.placeholder(tf.string, [None], name="tf_example")
        features = tf.parse_example(examples, {
            "x": tf.FixedLenFeature([1], tf.float32),
            "x2": tf.FixedLenFeature([1], tf.float32, default_value=[0.0]),
        })
        x = tf.identity(features["x"], name="x")
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, x), c, name="y2")
        y3 = tf.add(tf.multiply(a, tf.identity(features["x2"], name="x2")), c, name="y3")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={
            "serving_default": signature("predict", {"x": x}, {"y": y}),
            "regress_x_to_y": signature("regress", {"inputs": examples}, {"outputs": y}),
            "regress_x_to_y2": signature("regress", {"inputs": examples}, {"outputs": y2}),
            "regress_x2_to_y3": signature("regress", {"inputs": examples}, {"outputs": y3}),
            "classify_x_to_y": signature("classify", {"inputs": examples}, {"scores": y}),
        })
        builder.save()


def save(folder, inputs, outputs, others={}, main_op=None):
    with tf.Session() as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(
            session, ["serve"], main_op=main_op, assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            signature_def_map={name: signature("predict", *ports)
                               for name, ports in {"serving_default": (inputs, outputs), **others}.items()})
        builder.save()


def make_simple(folder, has_strings):
    with tf.Graph().as_default():
        dtype = tf.string if has_strings else tf.int32
        inputs = {name: tf.placeholder(dtype, [None, 16], name=name) for name in ("INPUT0", "INPUT1")}
        a, b = (tf.strings.to_number(x, tf.int32) if has_strings else x for x in inputs.values())
        outputs = {"OUTPUT0": a + b, "OUTPUT1": a - b}
        if has_strings:
            outputs = {name: tf.as_string(x) for name, x in outputs.items()}
        save(folder, inputs, outputs)


TYPES = {"BOOL": tf.bool, "UINT8": tf.uint8, "UINT16": tf.uint16, "UINT32": tf.uint32, "UINT64": tf.uint64, "INT8": tf.int8,
         "INT16": tf.int16, "INT32": tf.int32, "INT64": tf.int64, "FP16": tf.half, "BF16": tf.bfloat16, "FP32": tf.float32,
         "FP64": tf.float64, "BYTES": tf.string}


def make_every_type(folder):
    with tf.Graph().as_default():
        inputs = {name: tf.placeholder(dtype, [None, None], name=name) for name, dtype in TYPES.items()}
        save(folder, inputs, {name + "_OUT": tf.identity(x) for name, x in inputs.items()})


def make_outputs(folder):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 1], name="x")
        random = {"random": ({"x": x}, {"y": x + tf.random.uniform(tf.shape(x))})}
        save(folder, {"x": x}, {"a": x + 1, "b": 2 * x, "c": x * x}, random)


def make_counter(folder):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        n = tf.get_variable("n", initializer=0.0, use_resource=True)
        with tf.control_dependencies([n.assign_add(x)]):
            count = n.read_value()
        save(folder, {"x": x}, {"y": x + n}, {"count": ({"x": x}, {"n": count})})


def make_lookup(folder):
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "words.txt")
        with open(path, "w") as file:
            file.write("zero\none\ntwo\n")
        words = tf.placeholder(tf.string, [None], name="words")
        whole, line = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(path, tf.string, whole, tf.int64, line), -1)
        save(folder, {"words": words}, {"numbers": table.lookup(words)}, main_op=tf.tables_initializer())


def main():
    tf.disable_eager_execution()
    for name, plus in (("half_plus_two/00000123", 2), ("half_plus_three/00000123", 3),
                       ("half_plus_two_2_versions/00000123", 2), ("half_plus_two_2_versions/00000124", 3)):
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, plus)
    for name, build in (("simple/1", lambda folder: make_simple(folder, False)),
                        ("simple_string/1", lambda folder: make_simple(folder, True)), ("every_type/1", make_every_type),
                        ("outputs/1", make_outputs), ("counter/1", make_counter), ("lookup/1", make_lookup)):
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        build(folder)


main()
