"""Programs of the package tensorflow_hub, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_hub
import tf_keras as keras

X = np.random.RandomState(0).rand(16, 4).astype("float32")
Y = X.sum(1, keepdims=True)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def folder(at):
    """Writes a layer with variables there, as published models are written."""
    kernel = tf.Variable(np.linspace(-1, 1, 12).reshape(4, 3), dtype=tf.float32)
    root = tf.train.Checkpoint(kernel=kernel)
    root.variables, root.trainable_variables = [kernel], [kernel]
    root.regularization_losses = [tf.function(lambda: 0.01 * tf.nn.l2_loss(kernel), input_signature=[])]
    root.__call__ = tf.function(lambda x: tf.tanh(tf.matmul(x, kernel)), input_signature=[tf.TensorSpec([None, 4])])
    tf.saved_model.save(root, at)
    return at


@program
def called():
    with tempfile.TemporaryDirectory() as at:
        return tf.reshape(tensorflow_hub.load(folder(at))(X[:2]), [-1])


@program
def layer():
    with tempfile.TemporaryDirectory() as at:
        first = tensorflow_hub.KerasLayer(folder(at), trainable=True, input_shape=[4])
        model = keras.Sequential([first, keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        return model.fit(X, Y, epochs=3, shuffle=False, verbose=0).history["loss"]


for name, function in PROGRAMS.items():
    keras.utils.set_random_seed(7)
    print(name, *[float(x) for x in function()])
