"""Complete programs in the style of 1.x tutorials: the same losses here and in stock."""

import os
import tempfile

from both import both


def _blobs(np, count=60, classes=3, size=4, seed=0):
    rng = np.random.RandomState(seed)
    labels = rng.randint(classes, size=count)
    centres = rng.randn(classes, size) * 2
    return (centres[labels] + rng.randn(count, size) * 0.5).astype("float32"), labels.astype("int64")


def _images(np, count=8, side=12, seed=0):
    rng = np.random.RandomState(seed)
    return rng.rand(count, side, side, 1).astype("float32"), rng.randint(5, size=count).astype("int64")


@both(rtol=1e-4)
def test_linear_regression_with_summaries(tf, np):
    tf.set_random_seed(42)
    rng = np.random.RandomState(1)
    train_x = rng.rand(30).astype("float32")
    train_y = (2 * train_x + 1 + rng.randn(30) * 0.1).astype("float32")
    X, Y = tf.placeholder("float"), tf.placeholder("float")
    W = tf.Variable(rng.randn(), name="weight", dtype=tf.float32)
    b = tf.Variable(rng.randn(), name="bias", dtype=tf.float32)
    pred = tf.add(tf.multiply(X, W), b)
    cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * 30)
    optimizer = tf.train.GradientDescentOptimizer(0.05).minimize(cost)
    tf.summary.scalar("loss", cost)
    tf.summary.histogram("weight", W)
    merged = tf.summary.merge_all()
    costs = []
    folder = tempfile.mkdtemp()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(folder, graph=tf.get_default_graph())
        for epoch in range(5):
            for x, y in zip(train_x, train_y):
                sess.run(optimizer, feed_dict={X: x, Y: y})
            c, summary = sess.run([cost, merged], feed_dict={X: train_x, Y: train_y})
            writer.add_summary(summary, epoch)
            costs.append(c)
        writer.close()
        final = sess.run(W), sess.run(b)
    events = []
    for name in os.listdir(folder):
        for event in tf.train.summary_iterator(os.path.join(folder, name)):
            events += [(event.step, value.tag, round(value.simple_value, 4)) for value in event.summary.value]
    return costs, final, events


@both(rtol=1e-4)
def test_logistic_regression_with_queues(tf, np):
    tf.set_random_seed(1)
    x, y = _blobs(np)
    image, label = tf.train.slice_input_producer([x, y], shuffle=False, num_epochs=3)
    images, labels = tf.train.batch([image, label], batch_size=20)
    w = tf.get_variable("w", [4, 3], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [3], initializer=tf.constant_initializer(0.0))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(images, w) + b))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=step)
    losses = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            while not coord.should_stop():
                losses.append(sess.run([loss, train])[0])
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coord.request_stop()
        coord.join(threads)
        return losses, sess.run(step)


@both(rtol=1e-3, atol=1e-4)
def test_mlp_with_dropout_and_decay(tf, np):
    tf.set_random_seed(7)
    x, y = _blobs(np)
    inputs = tf.placeholder(tf.float32, [None, 4], name="inputs")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    keep = tf.placeholder_with_default(1.0, [], name="keep_prob")

    def dense(h, size, name, activation=None):
        with tf.variable_scope(name):
            w = tf.get_variable("weights", [h.get_shape()[1].value, size], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=3),
                                regularizer=lambda v: 0.001 * tf.nn.l2_loss(v))
            b = tf.get_variable("biases", [size], initializer=tf.constant_initializer(0.1))
            out = tf.nn.bias_add(tf.matmul(h, w), b)
            return activation(out) if activation else out
    hidden = tf.nn.dropout(dense(inputs, 16, "hidden", tf.nn.relu), keep_prob=keep, seed=5)
    logits = dense(hidden, 3, "output")
    data_loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    total = data_loss + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    step = tf.Variable(0, trainable=False)
    rate = tf.train.exponential_decay(0.1, step, 10, 0.9, staircase=True)
    train = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(total, global_step=step)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows = [sess.run([total, rate, train], {inputs: x, labels: y, keep: 0.8})[:2] for _ in range(15)]
        return rows, sess.run(accuracy, {inputs: x, labels: y}), [v.name for v in tf.trainable_variables()]


@both(rtol=1e-3, atol=1e-4)
def test_cnn(tf, np):
    tf.set_random_seed(3)
    images, labels = _images(np)
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    y = tf.placeholder(tf.int64, [None])
    training = tf.placeholder(tf.bool)
    net = tf.layers.conv2d(x, 6, 3, padding="same", activation=tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1), name="conv1")
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 8, 3, use_bias=False, kernel_initializer=tf.glorot_uniform_initializer(seed=2), name="conv2")
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training))
    net = tf.layers.flatten(tf.nn.avg_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    logits = tf.layers.dense(net, 5, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(y, 5), logits=logits))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    _, update = tf.metrics.accuracy(y, tf.argmax(logits, 1))
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        losses = [sess.run([loss, train], {x: images, y: labels, training: True})[0] for _ in range(8)]
        return losses, sess.run([loss, update], {x: images, y: labels, training: False})


@both(rtol=1e-3, atol=1e-4)
def test_convolutional_autoencoder(tf, np):
    images, _ = _images(np)
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    init = tf.variance_scaling_initializer(seed=1)
    net = tf.layers.conv2d(x, 4, 3, 2, "same", activation=tf.nn.leaky_relu, kernel_initializer=init)
    code = tf.layers.dense(tf.layers.flatten(net), 10, tf.nn.sigmoid, kernel_initializer=init)
    net = tf.reshape(tf.layers.dense(code, 6 * 6 * 4, tf.nn.elu, kernel_initializer=init), [-1, 6, 6, 4])
    out = tf.layers.conv2d_transpose(net, 1, 3, 2, "same", kernel_initializer=init)
    loss = tf.losses.mean_squared_error(x, tf.nn.sigmoid(out))
    optimizer = tf.train.RMSPropOptimizer(0.01)
    grads = optimizer.compute_gradients(loss)
    train = optimizer.apply_gradients([(tf.clip_by_norm(g, 1.0), v) for g, v in grads])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: images})[0] for _ in range(8)], [v.name for _, v in grads]


@both(rtol=1e-3, atol=1e-4)
def test_variational_autoencoder(tf, np):
    tf.set_random_seed(0)
    x_data = (np.random.RandomState(0).rand(16, 20) > 0.5).astype("float32")
    x = tf.placeholder(tf.float32, [None, 20])

    def layer(h, n_out, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [int(h.shape[1]), n_out], initializer=tf.random_normal_initializer(0, 0.1, seed=n_out))
            return tf.matmul(h, w) + tf.get_variable("b", n_out, initializer=tf.zeros_initializer)
    h = tf.nn.tanh(layer(x, 12, "enc"))
    mean, log_var = layer(h, 3, "mean"), layer(h, 3, "log_var")
    eps = tf.random_normal(tf.shape(log_var), 0, 1, dtype=tf.float32, seed=11)
    z = mean + tf.sqrt(tf.exp(log_var)) * eps
    logits = layer(tf.nn.tanh(layer(z, 12, "dec")), 20, "out")
    rec = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), axis=1)
    kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), 1)
    loss = tf.reduce_mean(rec + kl)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], {x: x_data})[0] for _ in range(15)]
        return losses, sess.run(tf.nn.sigmoid(logits), {z: np.zeros((2, 3))}), sess.run(tf.reduce_mean(kl), {x: x_data})


@both(rtol=1e-3, atol=1e-4)
def test_gan(tf, np):
    tf.set_random_seed(5)
    real_data = np.random.RandomState(0).randn(32, 2).astype("float32") + 3
    z = tf.placeholder(tf.float32, [None, 4])
    real = tf.placeholder(tf.float32, [None, 2])

    def generator(z):
        with tf.variable_scope("generator"):
            h = tf.layers.dense(z, 8, tf.nn.relu, kernel_initializer=tf.random_normal_initializer(stddev=0.3, seed=1))
            return tf.layers.dense(h, 2, kernel_initializer=tf.random_normal_initializer(stddev=0.3, seed=2))

    def discriminator(x, reuse=None):
        with tf.variable_scope("discriminator", reuse=reuse):
            h = tf.layers.dense(x, 8, tf.nn.leaky_relu, kernel_initializer=tf.random_normal_initializer(stddev=0.3, seed=3))
            return tf.layers.dense(h, 1, kernel_initializer=tf.random_normal_initializer(stddev=0.3, seed=4))
    fake = generator(z)
    d_real, d_fake = discriminator(real), discriminator(fake, reuse=True)
    xent = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(xent(logits=d_real, labels=tf.ones_like(d_real) * 0.9) + xent(logits=d_fake, labels=tf.zeros_like(d_fake)))
    g_loss = tf.reduce_mean(xent(logits=d_fake, labels=tf.ones_like(d_fake)))
    t_vars = tf.trainable_variables()
    d_vars = [v for v in t_vars if v.name.startswith("discriminator")]
    g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
    d_step = tf.train.AdamOptimizer(0.005, beta1=0.5).minimize(d_loss, var_list=d_vars)
    g_step = tf.train.AdamOptimizer(0.005, beta1=0.5).minimize(g_loss, var_list=g_vars)
    noise = np.random.RandomState(1)
    rows = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(10):
            batch = noise.uniform(-1, 1, [32, 4])
            _, d = sess.run([d_step, d_loss], {real: real_data, z: batch})
            _, g = sess.run([g_step, g_loss], {z: batch})
            rows.append((d, g))
    return rows, [v.name for v in t_vars]


@both(rtol=1e-4)
def test_kmeans(tf, np):
    points, _ = _blobs(np, count=40, size=2)
    data = tf.constant(points)
    centroids = tf.Variable(tf.slice(data, [0, 0], [3, -1]))
    expanded, around = tf.expand_dims(data, 0), tf.expand_dims(centroids, 1)
    distances = tf.reduce_sum(tf.square(tf.subtract(expanded, around)), 2)
    nearest = tf.argmin(distances, 0)
    sums = tf.unsorted_segment_sum(data, nearest, 3)
    counts = tf.unsorted_segment_sum(tf.ones_like(data), nearest, 3)
    means = tf.concat([tf.reduce_mean(tf.gather(data, tf.reshape(tf.where(tf.equal(nearest, c)), [1, -1])), axis=[1]) for c in range(3)], 0)
    parts = tf.dynamic_partition(data, tf.to_int32(nearest), 3)
    update = tf.assign(centroids, sums / counts)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            with_means, found = sess.run([means, update])
        return found, sess.run([tf.shape(p) for p in parts]), with_means.shape, sess.run(nearest)


@both(rtol=1e-3, atol=1e-4)
def test_dataset_pipeline_with_records(tf, np):
    x, y = _blobs(np)
    path = os.path.join(tempfile.mkdtemp(), "train.tfrecords")
    writer = tf.python_io.TFRecordWriter(path)
    for features, label in zip(x, y):
        writer.write(tf.train.Example(features=tf.train.Features(feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=features)),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"row"]))})).SerializeToString())
    writer.close()

    def parse(record):
        parsed = tf.parse_single_example(record, {"x": tf.FixedLenFeature([4], tf.float32), "y": tf.FixedLenFeature([], tf.int64),
                                                  "name": tf.FixedLenFeature([], tf.string, default_value="")})
        return parsed["x"], parsed["y"]
    train = tf.data.TFRecordDataset(path).map(parse, num_parallel_calls=2).shuffle(100, seed=3).repeat(2).batch(16).prefetch(1)
    test = tf.data.Dataset.from_tensor_slices((x, y)).batch(30)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    features, labels = iterator.get_next()
    logits = tf.layers.dense(features, 3, kernel_initializer=tf.zeros_initializer(), name="out")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.FtrlOptimizer(0.5).minimize(loss, tf.train.create_global_step())
    correct = tf.reduce_sum(tf.to_int32(tf.nn.in_top_k(logits, labels, 1)))
    rows = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run(iterator.make_initializer(train))
            try:
                while True:
                    rows.append(sess.run([loss, step])[0])
            except tf.errors.OutOfRangeError:
                pass
            sess.run(iterator.make_initializer(test))
            rows.append([sess.run(correct), sess.run(correct)])
    return rows


@both(rtol=1e-3, atol=1e-4)
def test_saver_and_restore(tf, np):
    folder = tempfile.mkdtemp()
    x, y = _blobs(np)

    def build():
        inputs, labels = tf.placeholder(tf.float32, [None, 4], name="x"), tf.placeholder(tf.int64, [None], name="y")
        logits = tf.layers.dense(inputs, 3, kernel_initializer=tf.zeros_initializer(), name="logits")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_or_create_global_step())
        tf.add_to_collection("train_op", train)
        return inputs, labels, tf.identity(loss, name="the_loss"), train
    with tf.Graph().as_default():
        inputs, labels, loss, train = build()
        saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for i in range(4):
                sess.run(train, {inputs: x, labels: y})
                saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=i)
            direct = [sess.run([loss, train], {inputs: x, labels: y})[0] for _ in range(3)]
    state = tf.train.get_checkpoint_state(folder)
    kept = [os.path.basename(p) for p in state.all_model_checkpoint_paths]
    with tf.Graph().as_default():  # the same program again
        inputs, labels, loss, train = build()
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, tf.train.latest_checkpoint(folder))
            again = [sess.run([loss, train], {inputs: x, labels: y})[0] for _ in range(3)]
    with tf.Graph().as_default() as graph:  # from the file alone
        saver = tf.train.import_meta_graph(state.model_checkpoint_path + ".meta", clear_devices=True)
        with tf.Session() as sess:
            saver.restore(sess, state.model_checkpoint_path)
            train = tf.get_collection("train_op")[0]
            feed = {graph.get_tensor_by_name("x:0"): x, "y:0": y}
            alone = [sess.run(["the_loss:0", train], feed)[0] for _ in range(3)]
            step = sess.run(tf.train.get_global_step())
    reader = tf.train.NewCheckpointReader(state.model_checkpoint_path)
    return direct, again, alone, step, kept, sorted(reader.get_variable_to_shape_map().items()), tf.train.list_variables(folder)


@both(rtol=1e-3, atol=1e-4)
def test_monitored_session_with_hooks(tf, np):
    folder = tempfile.mkdtemp()
    x, y = _blobs(np)
    seen = []

    class Watch(tf.train.SessionRunHook):
        def begin(self):
            self._step = tf.train.get_global_step()
            seen.append("begin")

        def after_create_session(self, session, coord):
            seen.append("created")

        def before_run(self, run_context):
            return tf.train.SessionRunArgs({"step": self._step, "loss": "loss:0"})

        def after_run(self, run_context, run_values):
            seen.append((int(run_values.results["step"]), round(float(run_values.results["loss"]), 3)))

        def end(self, session):
            seen.append("end")
    inputs, labels = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None])
    logits = tf.layers.dense(inputs, 3, kernel_initializer=tf.zeros_initializer())
    loss = tf.identity(tf.losses.sparse_softmax_cross_entropy(labels, logits), name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    scaffold = tf.train.Scaffold(init_op=tf.global_variables_initializer(), saver=tf.train.Saver(max_to_keep=3))
    hooks = [tf.train.StopAtStepHook(last_step=6), tf.train.NanTensorHook(loss), Watch(),
             tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=3), tf.train.StepCounterHook(every_n_steps=2, output_dir=folder)]
    for _ in range(2):
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, scaffold=scaffold, hooks=hooks, save_checkpoint_steps=2, save_summaries_steps=None,
                                               log_step_count_steps=None) as sess:
            while not sess.should_stop():
                sess.run(train, feed_dict={inputs: x, labels: y})
        break
    return seen, os.path.basename(tf.train.latest_checkpoint(folder)), sorted(n for n in os.listdir(folder) if n.endswith(".index"))


@both(rtol=1e-4)
def test_simple_save_and_load(tf, np):
    folder = os.path.join(tempfile.mkdtemp(), "export")
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w = tf.get_variable("w", initializer=np.arange(8, dtype="float32").reshape(4, 2))
    y = tf.nn.softmax(tf.matmul(x, w), name="y")
    data = np.ones((2, 4), "float32") * 0.1
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, folder, inputs={"x": x}, outputs={"y": y})
        before = sess.run(y, {x: data})
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        meta = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], folder)
        signature = meta.signature_def[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        feed, fetch = signature.inputs["x"].name, signature.outputs["y"].name
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
        after = sess.run(fetch, {feed: data})
    with tf.Graph().as_default(), tf.Session() as sess:
        out, = tf.import_graph_def(frozen, return_elements=["y:0"], name="frozen")
        last = sess.run(out, {"frozen/x:0": data})
    return before, after, last, signature.method_name, sorted(n.name for n in frozen.node)


@both(rtol=1e-3, atol=1e-4)
def test_style_of_a_matrix_factorization(tf, np):
    rng = np.random.RandomState(0)
    users, items, ratings = rng.randint(6, size=30), rng.randint(5, size=30), rng.rand(30).astype("float32") * 4 + 1
    u, i, r = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    init = tf.truncated_normal_initializer(stddev=0.1, seed=1)
    with tf.variable_scope("mf", partitioner=None):
        p, q = tf.get_variable("P", [6, 3], initializer=init), tf.get_variable("Q", [5, 3], initializer=init)
        bu, bi = tf.get_variable("bu", [6], initializer=tf.zeros_initializer()), tf.get_variable("bi", [5], initializer=tf.zeros_initializer())
    pu, qi = tf.nn.embedding_lookup(p, u), tf.nn.embedding_lookup(q, i)
    infer = tf.reduce_sum(pu * qi, 1) + tf.gather(bu, u) + tf.gather(bi, i) + float(ratings.mean())
    loss = tf.nn.l2_loss(infer - r) + 0.02 * (tf.nn.l2_loss(pu) + tf.nn.l2_loss(qi))
    step = tf.train.get_or_create_global_step()
    opt = tf.train.AdamOptimizer(tf.train.polynomial_decay(0.1, step, 10, 0.01))
    grads = opt.compute_gradients(loss)
    train = opt.apply_gradients(grads, global_step=step)
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    with tf.control_dependencies([train]):
        train = ema.apply([bu, bi])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], {u: users, i: items, r: ratings})[0] for _ in range(10)]
        return losses, sess.run([ema.average(bu), bi]), [type(g).__name__ for g, _ in grads], sorted(v.op.name for v in tf.global_variables())


@both(rtol=1e-3, atol=1e-4)
def test_residual_network_with_images(tf, np):
    tf.set_random_seed(1)
    images, labels = _images(np)
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    y = tf.placeholder(tf.int64, [None])
    init = tf.variance_scaling_initializer(seed=2)
    image = tf.map_fn(tf.image.per_image_standardization, x)
    image = tf.image.resize_images(image, [8, 8])

    def block(h, filters, stride, name):
        with tf.variable_scope(name):
            short = h
            if stride > 1 or int(h.shape[-1]) != filters:
                short = tf.layers.conv2d(h, filters, 1, stride, "SAME", kernel_initializer=init, name="shortcut")
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True, momentum=0.9, epsilon=1e-5))
            h = tf.layers.conv2d(h, filters, 3, stride, "SAME", kernel_initializer=init, name="conv_a")
            h = tf.layers.conv2d(tf.nn.relu(h), filters, 3, 1, "SAME", kernel_initializer=init, name="conv_b")
            return h + short
    net = block(block(tf.layers.conv2d(image, 4, 3, 1, "SAME", kernel_initializer=init), 4, 1, "a"), 8, 2, "b")
    logits = tf.layers.dense(tf.reduce_mean(net, [1, 2]), 5, kernel_initializer=init)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss += 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
    rate = tf.train.piecewise_constant(tf.train.get_or_create_global_step(), [3, 6], [0.1, 0.01, 0.001])
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    train = tf.group(train, tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)) as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, rate, train], {x: images, y: labels})[:2] for _ in range(8)], [v.name for v in tf.trainable_variables()]
