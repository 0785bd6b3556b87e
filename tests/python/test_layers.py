"""tf.layers and recurrent cells."""

from both import both


@both
def test_convnet(tf, np):
    tf.set_random_seed(1)
    x, y, training = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.bool, [])
    h = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    h = tf.layers.batch_normalization(h, training=training)
    h = tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2))
    h = tf.layers.dense(h, 16, activation=tf.nn.relu, name="fc")
    z = tf.layers.dense(h, 10)
    loss = tf.losses.sparse_softmax_cross_entropy(y, z)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    r = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for v in tf.global_variables():  # values that do not depend on how many nodes were made before
            v.load(r.randn(*v.shape.as_list()) * 0.1 + ("variance" in v.name), sess)
        feeds = {x: r.randn(4, 8, 8, 1), y: [1, 2, 3, 4], training: False}
        results = [sess.run(loss, feeds)]
        feeds[training] = True
        results += sess.run([loss] + tf.gradients(loss, tf.trainable_variables()), feeds)
        sess.run(updates, feeds)
        return [v.name for v in tf.global_variables()], results, sess.run([v for v in tf.global_variables() if "moving" in v.name])


@both
def test_more_layers(tf, np):
    x, v = tf.ones([2, 8, 8, 2]), tf.ones([2, 6, 6, 6, 1])
    ones = tf.ones_initializer()
    outputs = [tf.layers.conv1d(x[:, 0], 3, 2, kernel_initializer=ones), tf.layers.conv3d(v, 2, 2, kernel_initializer=ones),
               tf.layers.conv2d_transpose(x, 3, 3, 2, kernel_initializer=ones), tf.layers.conv2d_transpose(x, 3, 3, 2, padding="same", kernel_initializer=ones),
               tf.layers.separable_conv2d(x, 3, 3, depthwise_initializer=ones, pointwise_initializer=ones),
               tf.layers.average_pooling2d(x, 2, 1), tf.layers.max_pooling1d(x[:, 0], 2, 2), tf.layers.dropout(x, 0.5),
               tf.layers.dense(x, 3, kernel_initializer=ones, bias_initializer=ones), tf.layers.batch_normalization(x[:, 0, 0])]
    with tf.variable_scope("shared"):
        tf.layers.dense(x[:, 0, 0], 2, name="d", kernel_initializer=ones)
    with tf.variable_scope("shared", reuse=True):
        outputs.append(tf.layers.dense(x[:, 0, 0] * 2, 2, name="d", kernel_initializer=ones))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [v.name for v in tf.global_variables()], [str(o.shape) for o in outputs], sess.run(outputs)


def _cells(tf):
    rnn = tf.nn.rnn_cell
    return [rnn.BasicLSTMCell(6), rnn.GRUCell(6), rnn.LSTMCell(6, use_peepholes=True, num_proj=4), rnn.BasicRNNCell(5),
            rnn.MultiRNNCell([rnn.BasicRNNCell(6), rnn.LSTMCell(3)]), rnn.ResidualWrapper(rnn.GRUCell(5))]


@both
def test_recurrent(tf, np):
    x, lengths = tf.placeholder(tf.float32, [None, 7, 5]), tf.placeholder(tf.int32, [None])
    outputs = []
    for i, cell in enumerate(_cells(tf)):
        with tf.variable_scope("s%d" % i):
            outputs.append(tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32))
    for i, cell in enumerate(_cells(tf)):
        with tf.variable_scope("t%d" % i):
            outputs.append(tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32))
    outputs.append(tf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3), x, lengths, dtype=tf.float32))
    gradients = tf.gradients([tf.reduce_sum(o[0][0]) for o in outputs], x)
    r = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            v.load(r.randn(*v.shape.as_list()) * 0.3, sess)
        return [v.name for v in tf.global_variables()], sess.run([outputs, gradients], {x: r.randn(3, 7, 5), lengths: [7, 3, 5]})


@both
def test_training_by_a_placeholder_with_a_default(tf, np):
    x = tf.constant(np.random.RandomState(0).randn(50, 4).astype("float32"))
    training = tf.placeholder_with_default(False, [], name="training")
    normal = tf.layers.batch_normalization(x, training=training)
    dropped = tf.layers.dropout(tf.ones([20, 20]), 0.5, training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        without = sess.run([normal, tf.reduce_sum(dropped)])
        sess.run(updates, {training: True})
        within, total = sess.run([normal, tf.reduce_sum(dropped)], {training: True})
        return [without, within, bool(300 < total < 500), sess.run(tf.global_variables()), sess.run(normal), tf.get_static_value(training) is None]


@both
def test_kinds_of_batch_normalization(tf, np):
    r = np.random.RandomState(0)
    rows = []
    for number, (shape, options) in enumerate([
            ([4, 3], {"renorm": True}),
            ([None, 3, 5, 2], {"renorm": True, "renorm_clipping": {"rmax": 1.2, "rmin": 0.8, "dmax": 0.1}, "axis": 1}),
            ([4, 3, 5, 2], {"axis": [1, 3]}), ([4, 3, 5, 2], {"virtual_batch_size": 2}), ([4, 3, 5, 2], {"axis": 1, "fused": True}),
            ([4, 3, 2, 2, 5], {}), ([4, 3, 2, 2, 5], {"axis": 1}), ([4, 3], {"fused": True}),
            ([4, 3], {"adjustment": lambda s: (tf.ones([s[0], 1]) * 1.5, tf.zeros([s[0], 1]) + 0.25)})]):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, shape)
            training = tf.placeholder_with_default(True, []) if number % 2 else True
            y = tf.layers.batch_normalization(x, training=training, **options)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            dx = tf.gradients(tf.reduce_sum(y * y * x), x)[0]
            value = r.randn(*[4 if s is None else s for s in shape]).astype("f")
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                steps = [sess.run([y, dx] + updates, {x: value * (i + 1) + i})[:2] for i in range(3)]
                variables = tf.global_variables()
                rows.append(([v.name for v in variables], steps, sess.run(variables), len(updates), y.shape.as_list()))
    return rows


@both(raises=True)
def test_clipping_that_is_unknown(tf, np):
    tf.layers.batch_normalization(tf.zeros([2, 3]), renorm=True, renorm_clipping={"max": 1.0})


@both(graph=True)
def test_layers_regularizers_and_volumes(tf, np):
    x = tf.placeholder(tf.float32, [2, 3, 4, 4, 4])
    a = tf.layers.average_pooling3d(x, 2, 2, data_format="channels_first")
    b = tf.layers.max_pooling3d(x, 2, 1)
    with tf.variable_scope("there", custom_getter=lambda getter, name, *args, **kwargs: getter(
            name.replace("kernel", "weights"), *args, **kwargs)):
        d = tf.layers.dense(tf.reshape(x, [2, -1]), 3, kernel_initializer=tf.ones_initializer(),
                            kernel_regularizer=lambda w: tf.reduce_sum(w * w, name="squares"),
                            bias_regularizer=lambda w: None)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        value = np.arange(384, dtype="f").reshape(2, 3, 4, 4, 4) % 7
        return ([v.name for v in tf.global_variables()], [t.name for t in losses], sess.run([a, b, d] + losses, {x: value}))


@both
def test_separable_sequences(tf, np):
    x = tf.placeholder(tf.float32, [2, 9, 3])
    ones = tf.ones_initializer()
    y = tf.layers.separable_conv1d(x, 4.0, 3, strides=2, padding="same", depth_multiplier=2, depthwise_initializer=ones,
                                   pointwise_initializer=ones, activation=tf.nn.relu)
    z = tf.layers.separable_conv1d(x, 2, 3, dilation_rate=2, use_bias=False, depthwise_initializer=ones, pointwise_initializer=ones)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return ([(v.name, v.shape.as_list()) for v in tf.global_variables()],
                sess.run([y, z], {x: np.arange(54, dtype="f").reshape(2, 9, 3) % 5}))


@both
def test_averages_are_not_partitioned(tf, np):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        tf.layers.batch_normalization(tf.zeros([4, 6]), training=True)
        tf.layers.dense(tf.zeros([4, 6]), 2, kernel_regularizer=lambda w: tf.reduce_sum(w))
    return [v.name for v in tf.global_variables()], [t.name for t in tf.losses.get_regularization_losses()]
