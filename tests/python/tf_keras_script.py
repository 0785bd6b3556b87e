"""Whole programs of the package tf_keras, for test_library_programs.py: prints a line "name number number ..." per program."""

import os
import sys
import tempfile

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tf_keras as keras

DRAW = np.random.RandomState(0)
X = DRAW.rand(64, 8).astype("float32")
Y = (X.sum(1, keepdims=True) > 4).astype("float32")
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def losses(model, loss="mse", optimizer="adam"):
    model.compile(optimizer, loss)
    return model.fit(X, Y, epochs=3, batch_size=16, shuffle=False, verbose=0).history["loss"]


@program
def dense():
    return losses(keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]), "binary_crossentropy")


@program
def operations_of_tensors():
    """Operations of TensorFlow on symbolic inputs become layers, which a configuration restores."""
    inputs = keras.Input((8,))
    hidden = tf.nn.relu(keras.layers.Dense(8)(inputs)) + 1.0
    hidden = tf.concat([hidden, hidden * 2 - hidden[:, :8]], 1)
    model = keras.Model(inputs, keras.layers.Dense(1)(tf.reduce_mean(hidden, 1, keepdims=True) / 2))
    found = losses(model, optimizer="sgd")
    copy = keras.Model.from_config(model.get_config())
    copy.set_weights(model.get_weights())
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
    return [*found, float(np.abs(copy.predict(X, verbose=0) - model.predict(X, verbose=0)).max()),
            sum(layer.name.startswith("tf.") for layer in model.layers)]


@program
def lstm():
    return losses(keras.Sequential([keras.layers.Reshape((8, 1)), keras.layers.LSTM(4), keras.layers.Dense(1)]))


@program
def convolution():
    return losses(keras.Sequential([keras.layers.Reshape((4, 2, 1)), keras.layers.Conv2D(4, 2, padding="same"), keras.layers.BatchNormalization(),
                                    keras.layers.ReLU(), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1)]))


@program
def saved():
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    found = losses(model)
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "model.keras"))
        again = keras.models.load_model(os.path.join(folder, "model.keras"))
        model.save_weights(os.path.join(folder, "weights"))
        again.load_weights(os.path.join(folder, "weights"))
    return [*found, float(again.evaluate(X, Y, verbose=0))]


@program
def own_step():
    model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
    optimizer, metric = keras.optimizers.RMSprop(0.01), keras.metrics.Mean()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        metric.update_state(loss)
    return [(step(X, Y), float(metric.result()))[1] for _ in range(4)]


@program
def saved_folders():
    inputs = keras.Input([X.shape[1]])
    hidden = keras.layers.Dense(4, activation="tanh", activity_regularizer="l2")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dropout(0.5)(hidden)))
    found = losses(model)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder, save_format="tf")
        again, loaded = keras.models.load_model(folder), tf.saved_model.load(folder)
        return [*found, float(again.evaluate(X, Y, verbose=0)), float(tf.reduce_sum(again(X))), float(tf.reduce_sum(loaded(X)))]


@program
def generators():
    class Batches(keras.utils.Sequence):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4]

    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.legacy.Adam(0.05), "mse")
    history = model.fit(((X[i % 8:i % 8 + 5], Y[i % 8:i % 8 + 5]) for i in range(12)), steps_per_epoch=4, epochs=2, verbose=0).history["loss"]
    history += model.fit(Batches(), epochs=2, shuffle=False, verbose=0).history["loss"]
    return [*history, float(model.evaluate(Batches(), verbose=0))]


for name in sys.argv[1:] or PROGRAMS:
    keras.utils.set_random_seed(7)
    print(name, *PROGRAMS[name]())
