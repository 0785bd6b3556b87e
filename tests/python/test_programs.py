"""Typical tutorial programs, unchanged, run for a hundred steps here and in stock."""

from both import both


def digits(np, count=256):
    """Ten classes of noisy 8 x 8 pictures."""
    rng = np.random.RandomState(0)
    shapes = rng.rand(10, 64).astype(np.float32)
    labels = rng.randint(0, 10, count)
    return (shapes[labels] + 0.1 * rng.randn(count, 64)).astype(np.float32), labels


@both(rtol=1e-4)
def test_linear_regression(tf, np):
    rng = np.random.RandomState(1)
    x_data = rng.rand(100).astype(np.float32)
    y_data = x_data * 0.1 + 0.3
    tf.set_random_seed(1)
    W = tf.Variable(tf.random_uniform([1], -1.0, 1.0))
    b = tf.Variable(tf.zeros([1]))
    y = W * x_data + b
    loss = tf.reduce_mean(tf.square(y - y_data))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    init = tf.initialize_all_variables()
    sess = tf.Session()
    sess.run(init)
    rows = []
    for step in range(101):
        sess.run(train)
        if step % 20 == 0:
            rows.append((step, sess.run(W), sess.run(b)))
    return rows


@both(rtol=1e-3, atol=1e-5)
def test_softmax_regression(tf, np):
    images, labels = digits(np)
    x = tf.placeholder(tf.float32, [None, 64])
    W = tf.Variable(tf.zeros([64, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, W) + b)
    y_ = tf.placeholder(tf.float32, [None, 10])
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    hot = np.eye(10, dtype=np.float32)[labels]
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(100):
            batch = slice(i % 4 * 64, i % 4 * 64 + 64)
            _, loss = sess.run([train_step, cross_entropy], feed_dict={x: images[batch], y_: hot[batch]})
            losses.append(loss)
        return losses, sess.run(accuracy, {x: images, y_: hot})


@both(rtol=2e-3, atol=1e-4)
def test_layers(tf, np):
    images, labels = digits(np)
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    with tf.variable_scope("hidden"):
        w = tf.get_variable("w", [64, 32], initializer=tf.truncated_normal_initializer(stddev=0.1))
        b = tf.get_variable("b", [32], initializer=tf.constant_initializer(0.1))
        hidden = tf.nn.relu(tf.matmul(x, w) + b)
    with tf.variable_scope("out"):
        w = tf.get_variable("w", [32, 10], initializer=tf.random_normal_initializer(stddev=0.1))
        logits = tf.nn.xw_plus_b(hidden, w, tf.get_variable("b", [10], initializer=tf.zeros_initializer()))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "w" in v.name])
    step = tf.Variable(0, trainable=False, name="step")
    rate = tf.train.exponential_decay(0.01, step, 50, 0.9, staircase=True)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(100):
            losses.append(sess.run([loss, train], {x: images, y: labels})[0])
        return losses, sess.run([step, rate]), [v.name for v in tf.trainable_variables()]


@both(rtol=2e-3, atol=1e-4)
def test_convolutions(tf, np):
    images, labels = digits(np, 64)
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 64])
    y = tf.placeholder(tf.int32, [None])
    image = tf.reshape(x, [-1, 8, 8, 1])
    w1 = tf.Variable(tf.truncated_normal([3, 3, 1, 8], stddev=0.1))
    h1 = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, w1, strides=[1, 1, 1, 1], padding="SAME"), tf.Variable(tf.constant(0.1, shape=[8]))))
    p1 = tf.nn.max_pool(h1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(p1, [-1, 4 * 4 * 8])
    w2 = tf.Variable(tf.truncated_normal([128, 10], stddev=0.1))
    logits = tf.matmul(flat, w2)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 10), logits=logits))
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    top = tf.nn.in_top_k(logits, y, 1)
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(100):
            losses.append(sess.run([train, loss], {x: images, y: labels})[1])
        return losses, sess.run(tf.reduce_sum(tf.cast(top, tf.int32)), {x: images, y: labels})


@both(rtol=1e-3, atol=1e-5)
def test_xor(tf, np):
    x = tf.placeholder(tf.float32, [4, 2])
    y = tf.placeholder(tf.float32, [4, 1])
    w1 = tf.Variable(tf.random_uniform([2, 4], -1, 1, seed=1), name="w1")
    w2 = tf.Variable(tf.random_uniform([4, 1], -1, 1, seed=2), name="w2")
    b1, b2 = tf.Variable(tf.zeros([4])), tf.Variable(tf.zeros([1]))
    guess = tf.sigmoid(tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2)
    cost = tf.reduce_mean(-(y * tf.log(guess) + (1 - y) * tf.log(1.0 - guess)))
    train = tf.train.RMSPropOptimizer(0.05).minimize(cost)
    data = {x: [[0, 0], [0, 1], [1, 0], [1, 1]], y: [[0], [1], [1], [0]]}
    rows = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(100):
            sess.run(train, data)
            if i % 50 == 0:
                rows.append(sess.run(cost, data))
        return rows


@both(rtol=1e-3, atol=1e-5)
def test_word_vectors(tf, np):
    tf.set_random_seed(11)
    inputs = tf.placeholder(tf.int32, [8])
    labels = tf.placeholder(tf.int64, [8, 1])
    embeddings = tf.Variable(tf.random_uniform([20, 6], -1.0, 1.0))
    embed = tf.nn.embedding_lookup(embeddings, inputs)
    weights = tf.Variable(tf.truncated_normal([20, 6], stddev=1.0 / 6 ** 0.5))
    biases = tf.Variable(tf.zeros([20]))
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, labels, embed, 5, 20, seed=5))
    train = tf.train.AdagradOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    rng = np.random.RandomState(2)
    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        losses = []
        for _ in range(50):
            batch = rng.randint(0, 20, 8)
            losses.append(sess.run([train, loss], {inputs: batch, labels: (batch[:, None] + 1) % 20})[1])
        return losses, sess.run(embeddings / norm)


@both(rtol=1e-4)
def test_control_flow(tf, np):
    n = tf.placeholder(tf.int32, [])
    i, total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + tf.to_float(i) * 0.5), [tf.constant(0), tf.constant(0.0)])
    x = tf.Variable(3.0)
    y = tf.cond(n > 5, lambda: x * 2, lambda: x * x)
    assign = tf.assign(x, y)
    with tf.control_dependencies([assign]):
        after = tf.identity(x.read_value()) if hasattr(x, "read_value") else tf.identity(x)
    mapped = tf.map_fn(lambda v: v * v + 1, tf.range(4))
    grads = tf.gradients(y, x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([i, total, y, grads], {n: 3}), sess.run([i, total, y, grads], {n: 7}), sess.run(after, {n: 1}), sess.run(x), sess.run(mapped)]


@both
def test_checkpoints(tf, np):
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        v = tf.Variable([1.0, 2.0], name="v")
        w = tf.get_variable("scope/w", initializer=tf.constant(5))
        saver = tf.train.Saver()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run([v.assign_add([1.0, 1.0]), w.assign(7)])
            saved = saver.save(sess, path, global_step=3)
        rows = [os.path.basename(saved), sorted(os.path.basename(f) for f in os.listdir(folder)), os.path.basename(tf.train.latest_checkpoint(folder))]
        with tf.Session() as sess:
            saver.restore(sess, saved)
            rows.append(sess.run([v, w]))
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.train.import_meta_graph(saved + ".meta").restore(sess, saved)
            rows.append(sess.run("v:0"))
        return rows


@both(rtol=1e-4, atol=1e-5)
def test_recurrent(tf, np):
    tf.set_random_seed(5)
    x = tf.placeholder(tf.float32, [None, 6, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    guess = tf.layers.dense(outputs[:, -1], 1)
    loss = tf.losses.mean_squared_error(y, guess)
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    rng = np.random.RandomState(3)
    data = rng.rand(16, 6, 3).astype(np.float32)
    feed = {x: data, y: data.sum((1, 2))[:, None] / 10}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([train, loss], feed)[1] for _ in range(60)]
