#!/usr/bin/env python3
"""The models of compare.py and figures.py: models.py OUT [NAME ...]

OUT/identity/1  x to itself, [rows]
OUT/mlp/1       784-128-10 with relu, random weights, which are also in OUT/mlp.npz
OUT/slow/1      x [rows] to a number, by matmuls that cost some milliseconds per row, alone or batched
OUT/wide/1      three times as many per row, from the mean of 150,000 floats
OUT/big/1       x to x + 1, with a variable of 500 MB

Needs stock TensorFlow and numpy.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

SIDE = 512  # of the matrices that make a model slow


def floats(*shape):
    return tf.TensorSpec(shape, tf.float32, name="x")


def burn(rows, count):
    """One number per row after |count| products of matrices."""
    side = tf.linspace(-1.0, 1.0, SIDE)
    matrix = tf.sin(rows[:, None, None] + side[None, :, None] * side[None, None, :])
    product = matrix
    for _ in range(count):
        product = tf.matmul(product, matrix) / SIDE
    return tf.reduce_mean(product, [1, 2])


class Identity(tf.Module):
    @tf.function(input_signature=[floats(None)])
    def __call__(self, x):
        return {"y": tf.identity(x)}


class Mlp(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.values = {name: tf.Variable(value) for name, value in weights.items()}

    @tf.function(input_signature=[floats(None, 784)])
    def __call__(self, x):
        v = self.values
        return {"y": tf.nn.relu(x @ v["w1"] + v["b1"]) @ v["w2"] + v["b2"]}


class Slow(tf.Module):
    @tf.function(input_signature=[floats(None)])
    def __call__(self, x):
        return {"y": burn(x, 4)}


class Wide(tf.Module):
    @tf.function(input_signature=[floats(None, 150000)])
    def __call__(self, x):
        return {"y": burn(tf.reduce_mean(x, 1), 12)}


class Big(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.Variable(tf.ones([125, 1000000]))

    @tf.function(input_signature=[floats(None)])
    def __call__(self, x):
        return {"y": x + self.table[0, 0]}


def mlp_weights():
    random = np.random.default_rng(1)
    weights = {"w1": random.normal(0, 0.05, [784, 128]), "b1": random.normal(0, 0.1, [128]),
               "w2": random.normal(0, 0.1, [128, 10]), "b2": random.normal(0, 0.1, [10])}
    return {name: value.astype(np.float32) for name, value in weights.items()}


def main():
    out = pathlib.Path(sys.argv[1])
    weights = mlp_weights()
    makers = {"identity": Identity, "mlp": lambda: Mlp(weights), "slow": Slow, "wide": Wide, "big": Big}
    for name in sys.argv[2:] or makers:
        model = makers[name]()
        tf.saved_model.save(model, str(out / name / "1"), signatures={"serving_default": model.__call__})
    np.savez(out / "mlp.npz", **weights)


if __name__ == "__main__":
    main()
