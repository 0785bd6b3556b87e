#!/usr/bin/env python3
"""Models as Keras exports them, with stock TensorFlow's answers: make_models.py OUT [NAME ...]

Each model becomes OUT/NAME/ (a SavedModel) with in_KEY.npy and out_KEY.npy beside its files, for every input and output of the signature
serving_default, and ports.txt, the names of its first input and output in the graph. Weights are random, of a fixed seed. Needs stock
TensorFlow and Keras. Those in tests/saved_model/data were made by this.
"""
import os
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf
import keras
from keras import layers
from tensorflow.core.protobuf import saved_model_pb2

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


@model
def mlp():
    return keras.Sequential([
        layers.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(4, activation="softmax")
    ]), (3, 8)


@model
def convnet():
    return keras.Sequential([
        layers.Input((12, 12, 1)),
        layers.Conv2D(6, 3, use_bias=False), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
        layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
        layers.Flatten(), layers.Dropout(0.5), layers.Dense(10)
    ]), (2, 12, 12, 1)


@model
def lstm():
    return keras.Sequential([layers.Input((7, 5)), layers.LSTM(6, return_sequences=True), layers.LSTM(4),
                             layers.Dense(3)]), (2, 7, 5)


@model
def lenet():
    return keras.Sequential([
        layers.Input((28, 28, 1)),
        layers.Conv2D(20, 5, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(50, 5, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(500, activation="relu"), layers.Dense(10)
    ]), (1, 28, 28, 1)


@model
def bidirectional():
    return keras.Sequential([layers.Input((9,), dtype="int32"), layers.Embedding(30, 8, mask_zero=True),
                             layers.Bidirectional(layers.LSTM(6)), layers.Dense(3)]), ("ints", 30, (4, 9))


@model
def gru():
    return keras.Sequential([layers.Input((9,), dtype="int32"), layers.Embedding(30, 8), layers.GRU(6),
                             layers.Dense(3)]), ("ints", 30, (4, 9))


@model
def transformer():
    x = keras.Input((16,), dtype="int32")
    h = layers.Embedding(50, 32)(x)
    a = layers.MultiHeadAttention(4, 8)(h, h, use_causal_mask=True)
    h = layers.LayerNormalization()(h + a)
    f = layers.Dense(32)(layers.Dense(64, activation="gelu")(h))
    h = layers.LayerNormalization()(h + f)
    return keras.Model(x, layers.Dense(50)(h)), ("ints", 50, (2, 16))


@model
def mobilenet():
    return keras.applications.MobileNet(weights=None, input_shape=(224, 224, 3)), (2, 224, 224, 3)


@model
def mobilenet_v2():
    return keras.applications.MobileNetV2(weights=None, input_shape=(96, 96, 3)), (2, 96, 96, 3)


@model
def efficientnet():
    return keras.applications.EfficientNetB0(weights=None, input_shape=(64, 64, 3)), (2, 64, 64, 3)


@model
def resnet50():
    return keras.applications.ResNet50(weights=None), (2, 224, 224, 3)


@model
def mix():
    x = keras.Input((8, 8, 3))
    h = layers.SeparableConv2D(4, 3, activation="elu", padding="same")(x)
    h = layers.GaussianNoise(0.1)(layers.UpSampling2D()(h))
    h = layers.Conv2DTranspose(5, 3, strides=2, activation="selu")(h)
    h = layers.Cropping2D(1)(layers.ZeroPadding2D(2)(layers.LeakyReLU()(h)))
    h = layers.AveragePooling2D(3)(layers.PReLU()(h))
    h = layers.GroupNormalization(5)(h)
    h = layers.Permute((3, 1, 2))(h)
    a = layers.GlobalMaxPooling2D()(h)
    b = layers.GlobalAveragePooling2D()(h)
    h = layers.Concatenate()([layers.Add()([a, b]), layers.Multiply()([a, b]), layers.Maximum()([a, b])])
    return keras.Model(x, layers.Dense(3, activation="softplus")(layers.UnitNormalization()(h))), (2, 8, 8, 3)


def values(spec, rng):
    if spec[0] == "ints":
        return rng.integers(0, spec[1], spec[2]).astype(np.int32)
    return rng.standard_normal(spec).astype(np.float32)


def stir(net, rng):
    """Moving averages and scales as training leaves them, so that batch norms are no identities."""
    for v in net.variables:
        name = v.path.split("/")[-1]
        if name == "moving_variance":
            v.assign(rng.uniform(0.5, 2, v.shape).astype(np.float32))
        elif name in ("moving_mean", "beta", "bias"):
            v.assign(0.1 * rng.standard_normal(v.shape).astype(np.float32))
        elif name == "gamma":
            v.assign(rng.uniform(0.7, 1.3, v.shape).astype(np.float32))


def parse(path):
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(path, "saved_model.pb"), "rb") as file:
        model.ParseFromString(file.read())
    return model


def make(out, name):
    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(7)
    net, spec = MODELS[name]()
    stir(net, rng)
    path = os.path.join(out, name)
    net.export(path, verbose=False)
    call = tf.saved_model.load(path).signatures["serving_default"]
    args = {key: values(spec, rng) for key in call.structured_input_signature[1]}
    results = call(**{k: tf.constant(v) for k, v in args.items()})
    for key, value in args.items():
        np.save(os.path.join(path, f"in_{key}.npy"), value)
    for key, value in results.items():
        np.save(os.path.join(path, f"out_{key}.npy"), value.numpy())
    with open(os.path.join(path, "ports.txt"), "w") as file:
        signature = parse(path).meta_graphs[0].signature_def["serving_default"]
        file.write(next(iter(signature.inputs.values())).name + "\n" + next(iter(signature.outputs.values())).name + "\n")
    for name in ("fingerprint.pb", "assets"):  # of no use here, and different every time
        target = os.path.join(path, name)
        shutil.rmtree(target) if os.path.isdir(target) else os.remove(target)
    print(name, {k: v.shape for k, v in args.items()}, {k: tuple(v.shape) for k, v in results.items()}, flush=True)


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        make(sys.argv[1], name)
