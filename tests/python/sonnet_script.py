"""Programs of the package sonnet (dm-sonnet), for test_library_programs.py: prints a line "name number number ..." per program."""

import os
import tempfile

import numpy as np
import sonnet as snt
import tensorflow as tf

DRAW = np.random.RandomState(0)
X = DRAW.rand(32, 8).astype("float32")
Y = X.sum(1, keepdims=True)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def trained(module, forward, optimizer, steps=5):
    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(forward(X) - Y))
        variables = module.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss
    forward(X)
    return [step() for _ in range(steps)]


@program
def perceptron():
    model = snt.nets.MLP([16, 1])
    return trained(model, model, snt.optimizers.Adam(0.01))


@program
def convolution():
    model = snt.Sequential([lambda x: tf.reshape(x, [-1, 4, 2, 1]), snt.Conv2D(3, 2), tf.nn.relu, snt.Flatten(), snt.Linear(1)])
    norm = snt.BatchNorm(create_scale=True, create_offset=True)
    return trained(model, lambda x: model(norm(x, is_training=True)), snt.optimizers.Momentum(0.01, 0.9))


@program
def recurrent():
    core, out = snt.LSTM(5), snt.Linear(1)

    def forward(x):
        found, _ = snt.dynamic_unroll(core, tf.transpose(x)[..., None], core.initial_state(32))
        return out(found[-1])
    holder = tf.Module()
    holder.parts = [core, out]
    return trained(holder, forward, snt.optimizers.RMSProp(0.01))


@program
def saved():
    model = snt.nets.MLP([4, 2])
    wanted = model(X)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(os.path.join(folder, "at"))
        again = snt.nets.MLP([4, 2])
        again(X)
        tf.train.Checkpoint(model=again).restore(path).assert_consumed()
        kept = tf.Module()
        kept.model, kept.call = model, tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 8])])
        tf.saved_model.save(kept, folder)
        again_from_folder = tf.saved_model.load(folder)
        loaded = again_from_folder.call(X)
    return [*wanted[0], tf.reduce_max(abs(again(X) - wanted)), tf.reduce_max(abs(loaded - wanted))]


for name, function in PROGRAMS.items():
    tf.random.set_seed(7)
    print(name, *[float(x) for x in function()])
