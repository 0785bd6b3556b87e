"""tf.keras: models that learn."""

import os

import numpy as np
import pytest


@pytest.fixture
def tf():
    import runnel as tf
    tf.keras.backend.clear_session()
    np.random.seed(0)
    tf.set_random_seed(0)
    return tf


def _data():
    r = np.random.RandomState(0)
    x = r.randn(1000, 10).astype("f")
    return x, (x @ r.randn(10, 3)).argmax(1)


def test_sequential(tf, tmp_path, capsys):
    keras, (x, y) = tf.keras, _data()
    layers = keras.layers
    model = keras.Sequential([layers.Dense(32, activation="relu", input_shape=(10,), kernel_regularizer=keras.regularizers.l2(1e-4)), layers.Dropout(0.1),
                              layers.BatchNormalization(), layers.Dense(3, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(x, y, epochs=20, validation_split=0.2, callbacks=[keras.callbacks.EarlyStopping(patience=5)]).history
    assert history["val_accuracy"][-1] > 0.9 and history["loss"][-1] < history["loss"][0]
    shown = capsys.readouterr().out
    assert "Epoch 1/20" in shown and "800/800 [==============================]" in shown and "val_acc: " in shown
    model.summary()
    assert "Total params: 579" in capsys.readouterr().out
    before = model.predict(x)
    model.save(str(tmp_path / "model"))
    again = keras.models.load_model(str(tmp_path / "model"))
    np.testing.assert_allclose(again.predict(x), before, atol=1e-6)
    assert again.evaluate(x, y, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0), abs=1e-5)
    model.save_weights(str(tmp_path / "weights"))
    model.set_weights([w * 0 for w in model.get_weights()])
    model.load_weights(str(tmp_path / "weights"))
    np.testing.assert_allclose(model.predict(x), before, atol=1e-6)


def test_functional(tf):
    layers = tf.keras.layers
    start = tf.keras.Input((8, 8, 1))
    h = layers.MaxPooling2D()(layers.Conv2D(8, 3, padding="same", activation="relu")(start))
    h = layers.Add()([h, layers.Conv2D(8, 1)(h)])
    model = tf.keras.Model(start, layers.Dense(2)(layers.GlobalAveragePooling2D()(h)))
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    r = np.random.RandomState(0)
    losses = model.fit(r.randn(64, 8, 8, 1), r.randn(64, 2), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model(tf.ones([3, 8, 8, 1])).shape.as_list() == [3, 2]


def test_recurrent(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(20, 8, input_length=6), layers.LSTM(16, return_sequences=True), layers.Bidirectional(layers.GRU(8)),
                                 layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["acc"])
    x = np.random.RandomState(1).randint(0, 20, (500, 6))
    model.fit(x, (x.sum(1) > 57).astype("f"), epochs=12, verbose=0)
    assert model.evaluate(x, (x.sum(1) > 57).astype("f"), verbose=0)[1] > 0.8


def test_sources(tf):
    x, y = _data()
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(10,))])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((x, y.astype("i4"))).batch(50)
    first = model.fit(dataset, epochs=2, verbose=0).history["loss"]
    assert first[1] < first[0]

    def batches():
        while True:
            for i in range(0, 1000, 100):
                yield x[i:i + 100], y[i:i + 100]
    assert model.fit(batches(), steps_per_epoch=10, epochs=2, verbose=0).history["loss"][1] < first[1]


def test_other_formats_are_refused(tmp_path):
    import runnel as tf
    with tf.Graph().as_default():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        for name in ("m.h5", "m.hdf5", "m.keras"):
            path = str(tmp_path / name)
            for call in (model.save, model.save_weights, model.load_weights, tf.keras.models.load_model):
                with pytest.raises(NotImplementedError, match="without such an ending"):
                    call(path)
        with pytest.raises(NotImplementedError, match="save_format='h5'"):
            model.save(str(tmp_path / "m"), save_format="h5")
    assert not os.listdir(tmp_path)


def test_progress_in_a_pipe_is_a_line_for_each_epoch(capfd):
    import runnel as tf
    from runnel.keras.utils import Progbar
    line = Progbar(3)
    for step in (1, 2, 3):
        line.update(step, [("loss", 0.5)])
    text = capfd.readouterr().out
    assert "\r" not in text and text.count("\n") == 1 and text.startswith("3/3 [===") and "loss: 0.5" in text, text
    assert tf.keras.utils.Progbar is Progbar
