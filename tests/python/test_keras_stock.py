"""tf.keras compared with tf_keras: from the same initial values, the same batches give the same results and weights."""

import os
import tempfile

from both import both


def data(np, classes=3):
    random = np.random.RandomState(0)
    x = random.randn(120, 6).astype("float32")
    return x, (x @ random.randn(6, classes)).argmax(1)


def begin(model, np, vectors=False):
    """Gives a model's variables values that do not depend on anything else; vectors are still what they were at first, or else are given values too."""
    random = np.random.RandomState(7)
    model.set_weights([(random.uniform(-0.5, 0.5, np.shape(w)) if vectors or np.ndim(w) > 1 else np.asarray(w)).astype("float32") for w in model.get_weights()])
    return model


def small(tf, np, last=3, activation="softmax"):
    layers = tf.keras.layers
    return begin(tf.keras.Sequential([layers.Dense(8, activation="tanh", input_shape=(6,)), layers.Dense(last, activation=activation)]), np)


def learned(model, history):
    return [{key: [float(v) for v in values] for key, values in history.history.items()}, model.get_weights()]


@both(rtol=1e-4, atol=1e-5)
def test_fit_with_each_optimizer(tf, np):
    x, y = data(np)
    results = []
    for optimizer in ("sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
                      tf.keras.optimizers.Adam(0.01, amsgrad=True), tf.keras.optimizers.SGD(0.1, clipnorm=0.1)):
        model = small(tf, np)
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        results.append(learned(model, model.fit(x, y, batch_size=40, epochs=3, shuffle=False, verbose=0, validation_split=0.25)))
    return results


@both(rtol=1e-4, atol=1e-5)
def test_losses(tf, np):
    x, y = data(np)
    one_hot = np.eye(3, dtype="float32")[y]
    cases = [("categorical_crossentropy", "softmax", one_hot), ("mse", None, one_hot), ("mae", None, one_hot), ("hinge", None, 2 * one_hot - 1),
             ("kld", "softmax", one_hot * 0.9 + 0.03), ("poisson", "softplus", one_hot), ("cosine_similarity", None, one_hot), ("binary_crossentropy", "sigmoid", one_hot),
             ("logcosh", None, one_hot), (tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), None, y),
             (tf.keras.losses.CategoricalCrossentropy(label_smoothing=0.1), "softmax", one_hot), (tf.keras.losses.Huber(0.3), None, one_hot),
             (tf.keras.losses.MeanSquaredError(), None, one_hot), (tf.keras.losses.BinaryCrossentropy(from_logits=True), None, one_hot),
             (lambda t, p: tf.reduce_sum(tf.abs(t - p), axis=-1), None, one_hot)]
    results = []
    for loss, activation, target in cases:
        model = small(tf, np, activation=activation)
        model.compile(tf.keras.optimizers.SGD(0.05), loss)
        model.fit(x, target, batch_size=60, epochs=2, shuffle=False, verbose=0)
        results.append([float(model.evaluate(x, target, verbose=0)), model.get_weights()[0]])
    return results


@both(rtol=1e-4, atol=1e-5)
def test_metrics(tf, np):
    x, y = data(np)
    one_hot = np.eye(3, dtype="float32")[y]
    m = tf.keras.metrics
    model = small(tf, np)
    model.compile("sgd", "categorical_crossentropy", metrics=[
        "accuracy", "mse", "mae", m.CategoricalAccuracy(name="right"), m.AUC(name="auc"), m.Precision(name="precision"),
        m.Recall(name="recall"), m.TopKCategoricalAccuracy(k=2, name="top2"), m.MeanSquaredError(name="squares"), m.CategoricalCrossentropy(name="entropy")])
    history = model.fit(x, one_hot, batch_size=50, epochs=2, shuffle=False, verbose=0)
    return [learned(model, history), [float(v) for v in model.evaluate(x, one_hot, verbose=0)], model.metrics_names]


@both(rtol=1e-4, atol=1e-5)
def test_binary_metrics(tf, np):
    x, y = data(np, 2)
    m = tf.keras.metrics
    model = small(tf, np, 1, "sigmoid")
    model.compile("adam", "binary_crossentropy", metrics=["accuracy", m.AUC(name="auc"), m.TruePositives(name="tp"), m.FalsePositives(name="fp"),
                                                          m.TrueNegatives(name="tn"), m.FalseNegatives(name="fn"), m.BinaryAccuracy(threshold=0.6, name="strict")])
    history = model.fit(x, y.astype("float32"), batch_size=50, epochs=2, shuffle=False, verbose=0, class_weight={0: 1.0, 1: 3.0})
    return learned(model, history) + [[float(v) for v in model.evaluate(x, y.astype("float32"), verbose=0)]]


@both(rtol=1e-4, atol=1e-5)
def test_weights_of_samples(tf, np):
    x, y = data(np)
    model = small(tf, np)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    weights = np.linspace(0.1, 2, len(x)).astype("float32")
    history = model.fit(x, y, batch_size=30, epochs=2, shuffle=False, verbose=0, sample_weight=weights)
    return learned(model, history) + [[float(v) for v in model.evaluate(x, y, sample_weight=weights, verbose=0)]]


def subclass(tf):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.first = tf.keras.layers.Dense(8, activation="relu")
            self.drop = tf.keras.layers.Dropout(0.0)
            self.rest = [tf.keras.layers.Dense(5, activation="tanh"), tf.keras.layers.Dense(3, activation="softmax")]

        def call(self, inputs, training=False):
            x = self.drop(self.first(inputs), training=training)
            for layer in self.rest:
                x = layer(x)
            return x

    return Net()


@both(rtol=1e-4, atol=1e-5)
def test_subclassed_model(tf, np):
    x, y = data(np)
    model = subclass(tf)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.train_on_batch(x[:8], y[:8])
    begin(model, np, vectors=True)
    history = model.fit(x, y, batch_size=40, epochs=3, shuffle=False, verbose=0, validation_data=(x[:30], y[:30]))
    return learned(model, history) + [model.predict(x[:5]), len(model.layers), len(model.trainable_variables), [float(v) for v in model.evaluate(x, y, verbose=0)]]


@both(rtol=1e-4, atol=1e-5)
def test_layer_of_ones_own(tf, np):
    class Linear(tf.keras.layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(name="w", shape=(int(input_shape[-1]), self.units), initializer="ones", trainable=True)
            self.b = self.add_weight(name="b", shape=(self.units,), initializer="zeros", trainable=True)
            super().build(input_shape)

        def call(self, inputs):
            self.add_loss(0.01 * tf.reduce_sum(tf.square(self.w)))
            return tf.matmul(inputs, self.w) + self.b

        def get_config(self):
            return dict(super().get_config(), units=self.units)

    x, y = data(np)
    model = tf.keras.Sequential([tf.keras.Input((6,)), Linear(4, name="linear"), tf.keras.layers.Lambda(lambda t: t * 2.0), tf.keras.layers.Dense(3)])
    begin(model, np)
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=60, epochs=2, shuffle=False, verbose=0)
    layer = model.get_layer("linear")
    return learned(model, history) + [len(model.losses), [w.shape.as_list() for w in layer.weights], layer.get_config()["units"]]


@both(rtol=1e-4, atol=1e-5)
def test_functional_with_several(tf, np):
    x, y = data(np)
    layers = tf.keras.layers
    a, b = tf.keras.Input((4,), name="a"), tf.keras.Input((2,), name="b")
    shared = layers.Dense(5, activation="relu", name="shared")
    h = layers.concatenate([shared(a), layers.Dense(3, name="other")(b)])
    kind, size = layers.Dense(3, activation="softmax", name="kind")(h), layers.Dense(1, name="size")(h)
    model = begin(tf.keras.Model(inputs=[a, b], outputs=[kind, size]), np)
    model.compile("sgd", loss={"kind": "sparse_categorical_crossentropy", "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.2},
                  metrics={"kind": ["accuracy"]})
    targets = {"kind": y, "size": x.sum(1, keepdims=True)}
    history = model.fit({"a": x[:, :4], "b": x[:, 4:]}, targets, batch_size=40, epochs=2, shuffle=False, verbose=0)
    plain = model.fit([x[:, :4], x[:, 4:]], [y, x.sum(1, keepdims=True)], batch_size=40, epochs=1, shuffle=False, verbose=0)
    return learned(model, history) + [learned(model, plain)[0], model.predict([x[:3, :4], x[:3, 4:]]), model.metrics_names]


@both(rtol=1e-4, atol=1e-5)
def test_callbacks(tf, np):
    x, y = data(np)
    K = tf.keras.callbacks
    seen = []

    class Mine(K.Callback):
        def on_train_begin(self, logs=None):
            seen.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, sorted(logs)))

        def on_train_batch_end(self, batch, logs=None):
            if batch == 0:
                seen.append("batch")

        def on_test_begin(self, logs=None):
            seen.append("test")

        def on_train_end(self, logs=None):
            seen.append("end")

    results = []
    folder = tempfile.mkdtemp()
    for callbacks in ([Mine()], [K.EarlyStopping(monitor="val_loss", patience=1, min_delta=0.5)], [K.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))],
                      [K.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=10.0)], [K.TerminateOnNaN()],
                      [K.CSVLogger(os.path.join(folder, "log.csv"))], [K.LambdaCallback(on_epoch_begin=lambda epoch, logs: seen.append(epoch))]):
        model = small(tf, np)
        model.compile(tf.keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
        history = model.fit(x, y, batch_size=40, epochs=4, shuffle=False, verbose=0, validation_data=(x[:40], y[:40]), callbacks=callbacks)
        results.append(learned(model, history))
        results.append(history.epoch)
    with open(os.path.join(folder, "log.csv")) as stream:
        header = stream.readline()
    return [results, seen, header]


@both(rtol=1e-4, atol=1e-5)
def test_best_weights_come_back(tf, np):
    x, y = data(np)
    model = small(tf, np)
    model.compile(tf.keras.optimizers.SGD(5.0), "sparse_categorical_crossentropy")
    stop = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True)
    history = model.fit(x, y, batch_size=120, epochs=8, shuffle=False, verbose=0, callbacks=[stop])
    return learned(model, history) + [stop.stopped_epoch]


@both(rtol=1e-4, atol=1e-5)
def test_checkpoints_and_files(tf, np):
    x, y = data(np)
    folder = tempfile.mkdtemp()
    model = small(tf, np)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    saved = tf.keras.callbacks.ModelCheckpoint(os.path.join(folder, "w-{epoch:02d}"), save_weights_only=True, monitor="loss", save_best_only=True)
    model.fit(x, y, batch_size=40, epochs=2, shuffle=False, verbose=0, callbacks=[saved, tf.keras.callbacks.TensorBoard(os.path.join(folder, "logs"))])
    after = model.predict(x[:4])
    other = small(tf, np)
    other.load_weights(os.path.join(folder, "w-02"))
    rebuilt = tf.keras.models.model_from_json(model.to_json())
    rebuilt.set_weights(model.get_weights())
    copied = tf.keras.Sequential.from_config(model.get_config())
    copied.set_weights(model.get_weights())
    twin = tf.keras.models.clone_model(model)
    twin.set_weights(model.get_weights())
    return [after, other.predict(x[:4]), rebuilt.predict(x[:4]), copied.predict(x[:4]), twin.predict(x[:4]), os.path.isdir(os.path.join(folder, "logs"))]


@both(rtol=1e-4, atol=1e-5)
def test_sources_of_batches(tf, np):
    x, y = data(np)

    class Batches(tf.keras.utils.Sequence):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return x[40 * i:40 * i + 40], y[40 * i:40 * i + 40]

    def generator():
        while True:
            for i in range(3):
                yield x[40 * i:40 * i + 40], y[40 * i:40 * i + 40]

    results = []
    for source, more in ((Batches(), {}), (generator(), {"steps_per_epoch": 3})):
        model = small(tf, np)
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
        results.append(learned(model, model.fit(source, epochs=2, verbose=0, shuffle=False, validation_data=Batches(), **more)))
    results.append([float(v) for v in model.evaluate(Batches(), verbose=0)])
    results.append(model.predict(x, batch_size=50)[:3])
    return results


@both(rtol=2e-4, atol=2e-5)
def test_kinds_of_layers(tf, np):
    layers, random = tf.keras.layers, np.random.RandomState(3)
    images, words = random.rand(12, 8, 8, 2).astype("float32"), random.randint(0, 10, (12, 5))
    targets = random.rand(12, 2).astype("float32")
    nets = [
        (images, [layers.Conv2D(3, 3, activation="relu", input_shape=(8, 8, 2)), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(2)]),
        (images, [layers.SeparableConv2D(3, 3, input_shape=(8, 8, 2)), layers.BatchNormalization(), layers.ReLU(), layers.GlobalAveragePooling2D(), layers.Dense(2)]),
        (images, [layers.DepthwiseConv2D(3, input_shape=(8, 8, 2)), layers.AveragePooling2D(), layers.GlobalMaxPooling2D(), layers.Dense(2)]),
        (images, [layers.ZeroPadding2D(1, input_shape=(8, 8, 2)), layers.Conv2DTranspose(2, 3, strides=2), layers.Cropping2D(2), layers.UpSampling2D(), layers.Flatten(), layers.Dense(2)]),
        (words, [layers.Embedding(10, 4, input_length=5), layers.Conv1D(3, 2), layers.GlobalMaxPooling1D(), layers.Dense(2)]),
        (words, [layers.Embedding(10, 4, input_length=5), layers.LSTM(4, return_sequences=True), layers.GRU(3), layers.Dense(2)]),
        (words, [layers.Embedding(10, 4, input_length=5), layers.Bidirectional(layers.LSTM(3)), layers.Dense(2)]),
        (words, [layers.Embedding(10, 4, input_length=5), layers.SimpleRNN(4, return_sequences=True), layers.TimeDistributed(layers.Dense(2)), layers.GlobalAveragePooling1D()]),
        (words.astype("float32"), [layers.Dense(4, input_shape=(5,)), layers.LayerNormalization(), layers.LeakyReLU(0.2), layers.PReLU(), layers.Reshape((2, 2)), layers.Permute((2, 1)),
                                   layers.Flatten(), layers.RepeatVector(2), layers.Flatten(), layers.Activation("elu"), layers.Dense(2)]),
    ]
    results = []
    for x, net in nets:
        model = begin(tf.keras.Sequential(net), np)
        model.compile(tf.keras.optimizers.SGD(0.01), "mse")
        history = model.fit(x, targets, batch_size=6, epochs=2, shuffle=False, verbose=0)
        results.append([learned(model, history), model.predict(x[:3])])
    return results


@both
def test_helpers(tf, np):
    sequence = tf.keras.preprocessing.sequence
    text = tf.keras.preprocessing.text
    tokens = text.Tokenizer(num_words=6, oov_token="?")
    lines = ["The cat sat on the mat.", "The dog ate the cat!", "a mat"]
    tokens.fit_on_texts(lines)
    return [sequence.pad_sequences([[1, 2, 3], [4], []], maxlen=2), sequence.pad_sequences([[1, 2, 3], [4]], padding="post", value=9),
            sequence.pad_sequences([[1, 2, 3], [4]], maxlen=2, truncating="post", dtype="float32"), tokens.texts_to_sequences(lines), tokens.word_index,
            tf.keras.utils.to_categorical([0, 2, 1], 4), tf.keras.utils.normalize(np.array([[3.0, 4.0], [1.0, 0.0]])), tokens.texts_to_matrix(lines, "count"),
            tokens.sequences_to_texts([[2, 3]])]


@both(rtol=1e-4, atol=1e-5)
def test_metrics_by_hand(tf, np):
    m = tf.keras.metrics
    results = []
    with tf.Session() as sess:
        for metric, batches in ((m.Mean(), [([1.0, 3.0],), ([5.0],)]), (m.SparseCategoricalAccuracy(), [([0, 1], [[0.9, 0.1], [0.8, 0.2]]), ([1], [[0.3, 0.7]])]),
                                (m.Sum(), [([1.0, 3.0],), ([5.0],)]), (m.AUC(), [([0.0, 1.0, 1.0], [0.2, 0.4, 0.9]), ([0.0], [0.6])])):
            updates = [metric.update_state(*batch) for batch in batches]
            result = metric.result()
            sess.run([v.initializer for v in metric.variables])
            for update in updates:
                sess.run(update)
            results.append(float(sess.run(result)))
    return results


@both(rtol=1e-4, atol=1e-5)
def test_feature_columns(tf, np):
    fc, random = tf.feature_column, np.random.RandomState(2)
    age = fc.numeric_column("age")
    columns = [age, fc.embedding_column(fc.categorical_column_with_identity("kind", 5), 2), fc.indicator_column(fc.bucketized_column(age, [20.0, 50.0]))]
    x = {"age": random.uniform(0, 80, 60).astype("float32"), "kind": random.randint(0, 5, 60)}
    y = (x["age"] / 80 + (x["kind"] == 2)).astype("float32")
    model = tf.keras.Sequential([tf.keras.layers.DenseFeatures(columns), tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.0001), "mse")
    model.train_on_batch({key: value[:4] for key, value in x.items()}, y[:4])
    begin(model, np, vectors=True)
    history = model.fit(x, y, batch_size=20, epochs=3, shuffle=False, verbose=0)
    return learned(model, history) + [model.predict(x)[:4]]


@both(rtol=1e-4, atol=1e-5)
def test_rates_that_change(tf, np):
    x, y = data(np)
    results = []
    for rate in (tf.keras.optimizers.schedules.ExponentialDecay(0.2, 2, 0.5), tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [0.3, 0.1, 0.02]),
                 tf.keras.optimizers.schedules.PolynomialDecay(0.2, 5), tf.keras.optimizers.schedules.InverseTimeDecay(0.2, 2, 0.5)):
        model = small(tf, np)
        model.compile(tf.keras.optimizers.SGD(rate), "sparse_categorical_crossentropy")
        results.append(learned(model, model.fit(x, y, batch_size=40, epochs=3, shuffle=False, verbose=0)))
    model = small(tf, np)
    model.compile(tf.keras.optimizers.Adam(0.05, decay=0.3), "sparse_categorical_crossentropy")
    results.append(learned(model, model.fit(x, y, batch_size=40, epochs=3, shuffle=False, verbose=0)))
    return results


@both(rtol=1e-4, atol=1e-5)
def test_backend(tf, np):
    K = tf.keras.backend
    random = np.random.RandomState(4)
    x, y = tf.constant(random.randn(3, 4).astype("float32")), tf.constant(random.rand(3, 4).astype("float32"))
    b, c = tf.constant(random.randn(2, 3, 4).astype("float32")), tf.constant(random.randn(2, 4, 5).astype("float32"))
    parts = [K.min(x, axis=1), K.prod(y), K.std(x, axis=0), K.var(x, axis=1, keepdims=True), K.any(x > 1), K.all(x > -9, axis=1), K.flatten(x), K.batch_flatten(b),
             K.expand_dims(x), K.squeeze(K.expand_dims(x, 0), 0), K.stack([x, y]), K.permute_dimensions(b, (0, 2, 1)), K.repeat(x, 2), K.repeat_elements(x, 2, axis=1),
             K.reverse(x, 1), K.one_hot(tf.constant([0, 2]), 3), K.arange(2, 8, 3), K.constant([1, 2]), K.batch_dot(b, c), K.batch_dot(x, y, axes=1), K.relu(x, alpha=0.1, max_value=0.5),
             K.hard_sigmoid(x), K.binary_crossentropy(y, K.sigmoid(x)), K.binary_crossentropy(y, x, from_logits=True), K.categorical_crossentropy(y, K.softmax(x)),
             K.switch(x > 0, x, y), K.maximum(x, y), K.pow(y, 2.0), K.l2_normalize(x, axis=1), K.sum(x), K.mean(x > 0), K.clip(x, -0.5, 0.5), K.dot(x, K.transpose(y)), K.sign(x),
             K.gather(x, tf.constant([0, 2])), K.cumsum(x, axis=1), K.argmin(x, axis=1), K.concatenate([x, y], axis=0), K.gradients(K.sum(K.square(x)), [x])[0]]
    with tf.Session() as sess:
        return sess.run(parts) + [K.int_shape(b), K.ndim(b), K.dtype(x), K.epsilon(), K.floatx(), int(K.count_params(x)), K.image_data_format()]


@both(rtol=1e-4, atol=1e-5)
def test_losses_by_hand(tf, np):
    random = np.random.RandomState(4)
    y, p = random.rand(5, 3).astype("float32"), random.rand(5, 3).astype("float32")
    L, results = tf.keras.losses, []
    for loss in (L.SquaredHinge(), L.CategoricalHinge(), L.MeanAbsolutePercentageError(), L.MeanSquaredLogarithmicError(), L.KLDivergence(), L.Poisson(),
                 L.MeanSquaredError(reduction="sum"), L.MeanSquaredError(reduction="none"), L.CosineSimilarity(), L.LogCosh(), L.Huber(0.2)):
        results.append(loss(y, p))
    results.append(L.MeanAbsoluteError()(y, p, sample_weight=np.arange(5.0).astype("float32")))
    results.append(tf.keras.metrics.mean_squared_error(y, p))
    with tf.Session() as sess:
        return sess.run(results)
