"""tf.keras in eager execution, compared with tf_keras: custom training loops and fit, from the same initial values."""

import os
import tempfile

from both import both


def data(np):
    random = np.random.RandomState(0)
    x = random.randn(96, 6).astype("float32")
    return x, (x @ random.randn(6, 3)).argmax(1)


def begin(model, np):
    random = np.random.RandomState(7)
    model.set_weights([random.uniform(-0.5, 0.5, np.shape(w)).astype("float32") for w in model.get_weights()])
    return model


def net(tf):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(3)]

        def call(self, x, training=False):
            for part in self.parts:
                x = part(x)
            return x

    return Net()


def loop(tf, np, wrap):
    x, y = data(np)
    model = net(tf)
    model(x[:2])
    begin(model, np)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.5)
    mean, right = tf.keras.metrics.Mean(), tf.keras.metrics.SparseCategoricalAccuracy()

    @wrap
    def step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = loss_of(labels, logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        mean.update_state(loss)
        right.update_state(labels, logits)
        return loss

    figures = []
    for _ in range(3):
        mean.reset_states()
        right.reset_states()
        for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(32):
            step(*batch)
        figures.append([float(mean.result()), float(right.result())])
    return [figures, model.get_weights(), len(model.layers), len(model.trainable_variables)]


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_loop(tf, np):
    return loop(tf, np, lambda function: function)


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_loop_in_a_function(tf, np):
    return loop(tf, np, tf.function)


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_optimizers(tf, np):
    x, y = data(np)
    results = []
    for optimizer in (tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.RMSprop(0.01), tf.keras.optimizers.Adagrad(0.1), tf.keras.optimizers.Nadam(0.01),
                      tf.keras.optimizers.Adamax(0.01), tf.keras.optimizers.SGD(0.1, clipvalue=0.01),
                      tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.2, 2, 0.5))):
        v = tf.Variable([[1.0, -2.0], [0.5, 3.0]])
        for i in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(v) * (i + 1.0))
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        results.append(v.numpy())
    return results


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_fit(tf, np):
    x, y = data(np)
    layers = tf.keras.layers
    model = begin(tf.keras.Sequential([layers.Dense(8, activation="relu", input_shape=(6,)), layers.Dense(3)]), np)
    model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy", tf.keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="entropy")])
    history = model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0, validation_data=(x[:40], y[:40]))
    return [{key: [float(v) for v in values] for key, values in history.history.items()}, model.get_weights(),
            [float(v) for v in model.evaluate(x, y, verbose=0)], model.predict(x[:3], verbose=0), model(x[:2]).numpy()]


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_weights_in_files(tf, np):
    x, _ = data(np)
    path = os.path.join(tempfile.mkdtemp(), "weights")
    first = net(tf)
    first(x[:2])
    begin(first, np).save_weights(path)
    second = net(tf)
    second(x[:2])
    second.load_weights(path)
    return [first(x[:3]).numpy(), second(x[:3]).numpy()]


@both(eager=True, rtol=1e-4, atol=1e-5)
def test_normalisation_and_dropout(tf, np):
    x, _ = data(np)
    normal, drop = tf.keras.layers.BatchNormalization(), tf.keras.layers.Dropout(0.5)
    before = normal(x, training=False).numpy()
    during = normal(x, training=True).numpy()
    after = normal(x, training=False).numpy()
    dropped = drop(np.ones((100, 10), "float32"), training=True).numpy()
    return [before, during, after, [w.numpy() for w in normal.weights], drop(x, training=False).numpy(), bool(300 < (dropped == 0).sum() < 700), float(dropped.max())]


def test_model_in_a_file(tmp_path):
    import numpy as np
    import runnel as tf
    from both import eager_mode
    x, _ = data(np)
    with eager_mode(tf):
        model = begin(tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu", input_shape=(6,)), tf.keras.layers.Dense(3)]), np)
        model.save(str(tmp_path / "model"))
        again = tf.keras.models.load_model(str(tmp_path / "model"))
        np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-6)
    with tf.Graph().as_default():
        np.testing.assert_allclose(tf.keras.models.load_model(str(tmp_path / "model")).predict(x), served(tf, tmp_path, x), rtol=1e-6)


def served(tf, folder, x):
    """What the SavedModel itself gives."""
    with tf.Session(graph=tf.Graph()) as sess:
        signature = tf.saved_model.loader.load(sess, ["serve"], str(folder / "model")).signature_def["serving_default"]
        (given,), (made,) = signature.inputs.values(), signature.outputs.values()
        return sess.run(made.name, {given.name: x})
