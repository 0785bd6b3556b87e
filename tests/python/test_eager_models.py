"""Models and their training in eager execution: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


@both
def test_linear_regression(tf, np):
    # A program of the time when eager execution was new.
    x_train = np.array([3.3, 4.4, 5.5, 6.71, 6.93, 4.168, 9.779, 6.182, 7.59, 2.167], np.float32)
    y_train = np.array([1.7, 2.76, 2.09, 3.19, 1.694, 1.573, 3.366, 2.596, 2.53, 1.221], np.float32)
    w = tf.Variable(0.3)
    b = tf.Variable(-0.2)

    def linear_regression(inputs):
        return inputs * w + b

    def mean_square(model_fn, inputs, labels):
        return tf.reduce_sum(tf.pow(model_fn(inputs) - labels, 2)) / (2 * len(inputs))
    optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.01)
    losses = [mean_square(linear_regression, x_train, y_train).numpy()]
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = mean_square(linear_regression, x_train, y_train)
        grads = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(grads, [w, b]))
        losses.append(loss.numpy())
    return losses + [w.numpy(), b.numpy()]


@both
def test_optimizers(tf, np):
    out = []
    for optimizer in (tf.train.AdamOptimizer(0.1), tf.train.MomentumOptimizer(0.1, 0.9), tf.train.AdagradOptimizer(0.1),
                      tf.train.RMSPropOptimizer(0.1)):
        v = tf.Variable([1.0, -2.0])
        for _ in range(3):
            optimizer.minimize(lambda v=v: tf.reduce_sum(v * v), var_list=[v])
        out.append(v.numpy())
    step = tf.train.get_or_create_global_step()
    v = tf.Variable(1.0)
    tf.train.GradientDescentOptimizer(0.5).minimize(lambda: v * v, global_step=step)
    return out + [v.numpy(), step.numpy()]


@both
def test_mlp_by_batches(tf, np):
    rng = np.random.RandomState(0)
    x, t = rng.rand(40, 5).astype(np.float32), rng.randint(0, 3, 40)
    w1, b1 = tf.Variable(rng.randn(5, 8).astype(np.float32)), tf.Variable(tf.zeros([8]))
    w2, b2 = tf.Variable(rng.randn(8, 3).astype(np.float32)), tf.Variable(tf.zeros([3]))
    weights = [w1, b1, w2, b2]
    optimizer = tf.train.AdamOptimizer(0.01)
    losses = []
    for batch, labels in tf.data.Dataset.from_tensor_slices((x, t)).batch(10).repeat(2):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.matmul(batch, w1) + b1)
            logits = tf.matmul(h, w2) + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        losses.append(loss.numpy())
    return losses


@both
def test_layers(tf, np):
    conv, norm, dense = tf.layers.Conv2D(2, 3, padding="same", kernel_initializer=tf.ones_initializer()), tf.layers.BatchNormalization(), tf.layers.Dense(3)

    def model(x):
        h = tf.nn.relu(norm(conv(x), training=True))
        h = tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2))
        return dense(h)
    x = tf.constant(np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1))
    model(x)
    for v in conv.variables + dense.variables:
        v.assign(np.linspace(-1, 1, v.shape.num_elements(), dtype=np.float32).reshape(v.shape.as_list()))
    with tf.GradientTape() as tape:
        loss = tf.losses.sparse_softmax_cross_entropy([0, 2], model(x))
    found = conv.trainable_variables + norm.trainable_variables + dense.trainable_variables
    return [loss.numpy(), [g.numpy() for g in tape.gradient(loss, found)], norm.moving_mean.numpy(), [v.name for v in found]]


@both
def test_recurrent_cell(tf, np):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    state = cell.zero_state(2, tf.float32)
    x = tf.ones([2, 3])
    cell(x, state)
    for v in cell.variables:
        v.assign(np.linspace(-1, 1, v.shape.num_elements(), dtype=np.float32).reshape(v.shape.as_list()))
    with tf.GradientTape() as tape:
        for _ in range(3):
            out, state = cell(x, state)
        loss = tf.reduce_sum(out)
    return [loss.numpy()] + [g.numpy() for g in tape.gradient(loss, cell.trainable_variables)]


@both
def test_saver(tf, np):
    import tempfile
    v = tf.Variable([1.0, 2.0], name="kept")
    saver = tf.train.Saver([v])
    with tempfile.TemporaryDirectory() as folder:
        path = saver.save(None, folder + "/model", global_step=3)
        v.assign([0.0, 0.0])
        saver.restore(None, path)
        return [v.numpy(), tf.train.list_variables(path), path.rpartition("/")[2]]


@both
def test_model_of_keras(tf, np):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = tf.keras.layers.Dense(4, activation="relu", kernel_initializer="ones")
            self.out = tf.keras.layers.Dense(2, kernel_initializer="ones", bias_initializer="ones")

        def call(self, x):
            return self.out(self.hidden(x))
    net = Net()
    plain = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(2,), kernel_initializer="ones"), tf.keras.layers.Dense(1)])
    counted = [len(plain.trainable_variables), plain(np.ones((4, 2), np.float32)).shape.as_list()]
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(tf.constant([[1.0, 2.0], [0.5, -1.0]])) - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        losses.append(loss.numpy())
    return losses + counted


@_both(eager=True, rtol=1e-4)
def test_fit(tf, np):
    rng = np.random.RandomState(1)
    x, t = rng.rand(40, 4).astype(np.float32), rng.randint(0, 3, 40)
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh", input_shape=(4,)),
                                 tf.keras.layers.Dense(3, activation="softmax")])
    model.set_weights([np.linspace(-1, 1, w.size, dtype=np.float32).reshape(w.shape) for w in model.get_weights()])
    model.compile(optimizer=tf.train.AdamOptimizer(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(x, t, batch_size=10, epochs=3, shuffle=False, verbose=0).history
    return [[float(v) for v in history["loss"]], model.predict(x[:5]), [float(v) for v in model.evaluate(x, t, verbose=0)]]


@both
def test_functional_model(tf, np):
    inputs = tf.keras.Input(shape=(4,))
    hidden = tf.keras.layers.Dense(3, activation="relu", kernel_initializer="ones")(inputs)
    dropped = tf.keras.layers.Dropout(0.5)(hidden)
    model = tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(2, kernel_initializer="ones")(dropped))
    table = tf.keras.Sequential([tf.keras.layers.Embedding(10, 4, input_length=3), tf.keras.layers.LSTM(5), tf.keras.layers.Dense(1)])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(tf.ones([2, 4])))
    late = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    return [y.numpy(), [g.numpy() for g in tape.gradient(y, model.trainable_variables)], model.count_params(),
            table(np.zeros((2, 3), np.int32)).shape.as_list(), late(tf.ones([4, 2])).shape.as_list(), len(late.trainable_variables)]
