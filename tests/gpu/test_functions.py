"""Functions with loops on a GPU: their work is recorded, whatever they are called with."""

import numpy as np
import runnel as tf

tf.enable_eager_execution()

RATES = np.array([0.5, 0.25, 1.0], np.float32)


def grown(values, rates, turns):
    for _ in range(turns):
        values = values * rates + np.sin(values)
    return values


def grow(values, rates, turns):
    def body(i, y):
        return i + 1, y * rates + tf.sin(y)

    return tf.while_loop(lambda i, y: i < turns, body, [0, values])[1]


def test_arguments_and_numbers_of_turns():
    rates = tf.Variable(RATES)
    step = tf.function(lambda values, turns: grow(values, rates, turns))
    with tf.device("/GPU:0"):
        for turn in range(12):
            values = np.array([turn, 1, 2], np.float32) * np.float32(0.1)
            got = step(tf.constant(values), tf.constant(2 + turn % 3)).numpy()
            np.testing.assert_allclose(got, grown(values, RATES, 2 + turn % 3), rtol=1e-5)


def losses(device):
    with tf.device(device):
        rates = tf.Variable(RATES)

        @tf.function
        def train(values):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(grow(values, rates, 3)))
            rates.assign_sub(0.01 * tape.gradient(loss, rates))
            return loss

        return [train(tf.constant([0.1, 0.2, 0.3 + 0.01 * i])).numpy() for i in range(8)]


def test_training():
    on_gpu = losses("/GPU:0")
    np.testing.assert_allclose(on_gpu, losses("/CPU:0"), rtol=1e-4)
    assert on_gpu[-1] < on_gpu[0]
