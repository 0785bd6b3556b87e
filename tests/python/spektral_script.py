"""Programs of the package spektral, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import scipy.sparse
import spektral
import tensorflow as tf
import tf_keras as keras

DRAW = np.random.RandomState(0)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Graphs(spektral.data.Dataset):
    """Some graphs, each with the sum of its features as the number to learn."""

    def read(self):
        made = []
        for n in (3, 4, 5, 3, 4, 5, 4, 4):
            x = DRAW.rand(n, 3).astype("float32")
            a = (DRAW.rand(n, n) > 0.5).astype("float32")
            made.append(spektral.data.Graph(x=x, a=scipy.sparse.csr_matrix(np.maximum(a, a.T)), y=x.sum(keepdims=True)[0]))
        return made


class Net(keras.Model):
    """A convolution of a graph, pooled."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.pool, self.dense = layer, spektral.layers.GlobalSumPool(), keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(self.pool([self.layer(inputs[:2]), inputs[2]]))


def trained(layer):
    loader = spektral.data.DisjointLoader(Graphs(), batch_size=4, epochs=3, shuffle=False)
    model, optimizer = Net(layer), keras.optimizers.Adam(0.01)

    @tf.function(input_signature=loader.tf_signature(), reduce_retracing=True)
    def step(inputs, target):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - target))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss
    return [step(*batch) for batch in loader]


@program
def convolution():
    return trained(spektral.layers.GCNConv(8, activation="relu"))


@program
def attention():
    return trained(spektral.layers.GATConv(4, attn_heads=2))


@program
def isomorphism():
    return trained(spektral.layers.GINConv(8))


for name, function in PROGRAMS.items():
    keras.utils.set_random_seed(7)
    DRAW.seed(0)
    print(name, *[float(x) for x in function()])
