"""Whole programs of Keras 3, for test_keras_programs.py: prints a line "name number number ..." per program.

Arguments: names of programs, all by default; "export=FOLDER" also exports models there.
"""

import os
import sys
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

EPOCHS = 3
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def images(count=64, classes=4):
    draw = np.random.RandomState(1)
    y = draw.randint(0, classes, count)
    x = draw.rand(count, 8, 8, 1).astype("float32") + y[:, None, None, None] / classes
    return x, y


def words(count=48, length=10, most=20):
    draw = np.random.RandomState(2)
    x = draw.randint(1, most, (count, length))
    x[np.arange(length)[None] >= draw.randint(3, length + 1, count)[:, None]] = 0
    return x, (x.sum(1) % 3 == 0).astype("float32")


def fit(model, *args, **kwargs):
    kwargs = dict({"epochs": EPOCHS, "verbose": 0}, **kwargs)
    return model.fit(*args, **kwargs).history["loss"]


@program
def cnn():
    x, y = images()
    model = keras.Sequential([
        layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D(), layers.Dropout(0.25),
        layers.Flatten(), layers.Dense(4)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return fit(model, x, y, batch_size=16) + model.evaluate(x, y, verbose=0)


@program
def transformer():
    x, y = words()
    ids = keras.Input([10], dtype="int32")
    h = layers.Embedding(20, 8)(ids) + layers.Embedding(10, 8)(keras.ops.arange(10))
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 4, dropout=0.1)(h, h))
    h = layers.LayerNormalization()(h + layers.Dense(8)(layers.Dense(16, activation="gelu")(h)))
    out = layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling1D()(h))
    model = keras.Model(ids, out)
    model.compile(keras.optimizers.AdamW(1e-2, clipnorm=1.0), "binary_crossentropy")
    return fit(model, x, y, batch_size=16)


@program
def lstm():
    x, y = words()
    model = keras.Sequential([layers.Embedding(20, 6), layers.LSTM(8, dropout=0.1), layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.RMSprop(1e-2), "binary_crossentropy")
    return fit(model, x, y, batch_size=16)


@program
def masked_gru():
    x, y = words()
    model = keras.Sequential([
        layers.Embedding(20, 6, mask_zero=True), layers.Bidirectional(layers.GRU(5, return_sequences=True)), layers.GRU(4),
        layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.BinaryCrossentropy(from_logits=True))
    return fit(model, x, y, batch_size=12)


@program
def datasets():
    x, y = images()
    data = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(64, seed=3)
    data = data.map(lambda a, b: (tf.image.flip_left_right(a) * 2.0, b), num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(2)
    model = keras.Sequential([layers.Flatten(), layers.Dense(16, activation="tanh"), layers.Dense(4)])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fit(model, data) + [model.evaluate(data, verbose=0)]


@program
def text():
    lines = np.array(["the cat sat", "a dog ran far", "the dog sat", "a cat ran", "no cat", "the far dog ran"] * 4)
    y = np.array([1, 0, 1, 0, 1, 0] * 4, "float32")
    tokens = layers.TextVectorization(max_tokens=12, output_sequence_length=5)
    tokens.adapt(lines)
    model = keras.Sequential([
        keras.Input([], dtype="string"), tokens, layers.Embedding(12, 6), layers.GlobalAveragePooling1D(), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.BinaryCrossentropy(from_logits=True))
    return fit(model, tf.constant(lines), y, batch_size=8) + [len(tokens.get_vocabulary())]


@program
def own_step():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = layers.Dense(8, activation="relu"), layers.Dense(1)
            self.mean = keras.metrics.Mean("loss")

        def call(self, x):
            return self.out(self.hidden(x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True)[:, 0] - y))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            self.mean.update_state(loss)
            return {"loss": self.mean.result()}

        @property
        def metrics(self):
            return [self.mean]

    draw = np.random.RandomState(4)
    x = draw.rand(40, 5).astype("float32")
    model = Model()
    model.compile(keras.optimizers.Nadam(1e-2))
    return fit(model, x, x @ np.arange(5, dtype="float32"), batch_size=8)


@program
def many_inputs():
    draw = np.random.RandomState(5)
    a, b = draw.rand(40, 4).astype("float32"), draw.randint(0, 6, (40, 1))
    first, second = keras.Input([4], name="numbers"), keras.Input([1], dtype="int32", name="kinds")
    h = layers.Concatenate()([layers.Dense(6, activation="swish")(first), layers.Flatten()(layers.Embedding(6, 3)(second))])
    model = keras.Model({"numbers": first, "kinds": second}, {
        "sum": layers.Dense(1, name="sum")(h), "kind": layers.Dense(6, activation="softmax", name="kind")(h)})
    model.compile(keras.optimizers.Adagrad(0.1), {"sum": "mse", "kind": "sparse_categorical_crossentropy"},
                  loss_weights={"sum": 0.5, "kind": 1.0}, metrics={"kind": ["accuracy"]})
    return fit(model, {"numbers": a, "kinds": b}, {"sum": a.sum(1), "kind": b[:, 0]}, batch_size=10,
               sample_weight={"sum": np.linspace(0.5, 1.5, 40), "kind": np.ones(40)})


@program
def mixed_precision():
    x, y = images()
    with_policy = keras.DTypePolicy("mixed_bfloat16")
    model = keras.Sequential([
        layers.Flatten(), layers.Dense(16, activation="relu", dtype=with_policy), layers.Dense(4, dtype="float32")])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fit(model, x, y, batch_size=16, shuffle=False)


@program
def saved():
    x, y = images()
    model = keras.Sequential([keras.Input([8, 8, 1]), layers.SeparableConv2D(4, 3), layers.GlobalMaxPooling2D(), layers.Dense(4)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = fit(model, x, y, batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "model.keras"))
        again = keras.models.load_model(os.path.join(folder, "model.keras"))
        losses += fit(again, x, y, batch_size=16)
        model.export(os.path.join(folder, "exported"), verbose=False)
        loaded = tf.saved_model.load(os.path.join(folder, "exported"))
        losses += [float(abs(loaded.serve(x) - model.predict(x, verbose=0)).numpy().max() < 1e-5)]
    return losses


@program
def callbacks():
    x, y = images()
    model = keras.Sequential([layers.Flatten(), layers.Dense(4)])
    model.compile(keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.5, 4, 0.8)), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with tempfile.TemporaryDirectory() as folder:
        used = [keras.callbacks.TensorBoard(folder, histogram_freq=1), keras.callbacks.EarlyStopping("loss", patience=1),
                keras.callbacks.ModelCheckpoint(os.path.join(folder, "{epoch}.weights.h5"), save_weights_only=True)]
        losses = fit(model, x, y, batch_size=16, validation_split=0.25, callbacks=used)
        files = sorted(name for _, _, names in os.walk(folder) for name in names)
        tags = []
        for place, _, names in os.walk(folder):
            for name in sorted(names):
                if "tfevents" in name:
                    events = tf.compat.v1.train.summary_iterator(os.path.join(place, name))
                    tags += [value.tag for event in events for value in event.summary.value]
    return losses + [len(files), len(tags), len([tag for tag in tags if tag.startswith("epoch_loss")])]


def export(folder):
    """Exports a model and writes what it predicts."""
    keras.utils.set_random_seed(11)
    x, _ = images(8)
    model = keras.Sequential([keras.Input([8, 8, 1]), layers.Conv2D(3, 3, activation="relu"), layers.Flatten(), layers.Dense(4)])
    model.export(os.path.join(folder, "model"), verbose=False)
    np.savez(os.path.join(folder, "predicted.npz"), x=x, y=model.predict(x, verbose=0))


def main():
    for name in [word for word in sys.argv[1:] if "=" not in word] or PROGRAMS:
        keras.backend.clear_session()
        keras.utils.set_random_seed(7)
        print(name, *["%.9g" % float(number) for number in PROGRAMS[name]()], flush=True)
    for word in sys.argv[1:]:
        if word.startswith("export="):
            export(word[len("export="):])


main()
