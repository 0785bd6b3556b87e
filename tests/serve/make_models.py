#!/usr/bin/env python3
"""The models of the serving tests, with TensorFlow Serving's names, signatures and values: make_models.py OUT

OUT/half_plus_two/00000123             y = 0.5 x + 2
OUT/half_plus_three/00000123           y = 0.5 x + 3
OUT/half_plus_two_2_versions/00000123  half_plus_two
OUT/half_plus_two_2_versions/00000124  half_plus_three

Each has the signatures serving_default (predict, x to y), regress_x_to_y, regress_x_to_y2, regress_x2_to_y3 and classify_x_to_y; the
last four take serialized examples with a feature x. Needs stock TensorFlow. Those in tests/serve/models were made by this.
"""
import os
import shutil
import sys

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


def main():
    tf.disable_eager_execution()
    for name, plus in (("half_plus_two/00000123", 2), ("half_plus_three/00000123", 3),
                       ("half_plus_two_2_versions/00000123", 2), ("half_plus_two_2_versions/00000124", 3)):
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, plus)


main()
