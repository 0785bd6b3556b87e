"""Typical training programs: towers, language models, adversarial and target networks, record files."""

import os
import tempfile

from both import both


@both(rtol=1e-3, atol=1e-5)
def test_towers(tf, np):
    """Gradients of several towers, averaged on the host, as in programs for several GPUs."""
    def tower_loss(images, labels):
        kernel = tf.get_variable("weights", [8, 3], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1))
        biases = tf.get_variable("biases", [3], initializer=tf.constant_initializer(0.1))
        decay = tf.multiply(tf.nn.l2_loss(kernel), 0.004, name="weight_loss")
        tf.add_to_collection("losses", decay)
        logits = tf.nn.bias_add(tf.matmul(images, kernel), biases)
        cross = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        tf.add_to_collection("losses", tf.reduce_mean(cross, name="cross_entropy"))
        return tf.add_n(tf.get_collection("losses", scope=tf.get_default_graph().get_name_scope()), name="total_loss")

    def average_gradients(tower_grads):
        average = []
        for grad_and_vars in zip(*tower_grads):
            grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
            grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
            average.append((grad, grad_and_vars[0][1]))
        return average

    rng = np.random.RandomState(0)
    images = rng.rand(2, 16, 8).astype(np.float32)
    labels = rng.randint(0, 3, (2, 16))
    with tf.device("/cpu:0"):
        global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
        lr = tf.train.exponential_decay(0.1, global_step, 10, 0.9, staircase=True)
        opt = tf.train.GradientDescentOptimizer(lr)
        tower_grads, losses = [], []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(2):
                with tf.device("/cpu:0"), tf.name_scope("tower_%d" % i):
                    loss = tower_loss(tf.constant(images[i]), tf.constant(labels[i]))
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
                    losses.append(loss)
        grads = average_gradients(tower_grads)
        apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
        averages = tf.train.ExponentialMovingAverage(0.99, global_step)
        averages_op = averages.apply(tf.trainable_variables())
        train_op = tf.group(apply_gradient_op, averages_op)
        saver = tf.train.Saver(tf.global_variables())
    out = []
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(50):
            sess.run(apply_gradient_op)
            out.append(sess.run(losses))
        sess.run(train_op)
    return out, [v.name for v in tf.global_variables()], saver.saver_def.save_tensor_name


@both(rtol=1e-3, atol=1e-4)
def test_language_model(tf, np):
    """A model that is built three times over shared variables; the learning rate is assigned."""
    class Model:
        def __init__(self, is_training, batch):
            self.x = tf.placeholder(tf.int32, [batch, 4])
            self.y = tf.placeholder(tf.int32, [batch, 4])
            embedding = tf.get_variable("embedding", [10, 6])
            inputs = tf.nn.embedding_lookup(embedding, self.x)
            w = tf.get_variable("kernel", [12, 6])
            state = tf.zeros([batch, 6])
            outputs = []
            with tf.variable_scope("RNN"):
                for step in range(4):
                    if step > 0:
                        tf.get_variable_scope().reuse_variables()
                    u = tf.get_variable("u", [6])
                    state = tf.tanh(tf.matmul(tf.concat([inputs[:, step, :], state], 1), w) * u)
                    outputs.append(state)
            output = tf.reshape(tf.concat(outputs, 1), [-1, 6])
            logits = tf.nn.xw_plus_b(output, tf.get_variable("softmax_w", [6, 10]), tf.get_variable("softmax_b", [10]))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(self.y, [-1]), logits=logits)
            self.cost = tf.reduce_sum(losses) / batch
            if not is_training:
                return
            self.lr = tf.Variable(0.0, trainable=False)
            tvars = tf.trainable_variables()
            grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), 5)
            self.train_op = tf.train.GradientDescentOptimizer(self.lr).apply_gradients(
                zip(grads, tvars), global_step=tf.train.get_or_create_global_step())
            self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
            self.lr_update = tf.assign(self.lr, self.new_lr)

    tf.set_random_seed(2)
    initializer = tf.random_uniform_initializer(-0.1, 0.1, seed=5)
    with tf.name_scope("Train"), tf.variable_scope("Model", reuse=None, initializer=initializer):
        train = Model(True, 4)
    with tf.name_scope("Valid"), tf.variable_scope("Model", reuse=True, initializer=initializer):
        valid = Model(False, 2)
    data = np.random.RandomState(0).randint(0, 10, (4, 5))
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for epoch in range(4):
            sess.run(train.lr_update, {train.new_lr: 0.5 * 0.9 ** epoch})
            for _ in range(25):
                cost, _ = sess.run([train.cost, train.train_op], {train.x: data[:, :-1], train.y: data[:, 1:]})
            out.append((cost, sess.run(valid.cost, {valid.x: data[:2, :-1], valid.y: data[:2, 1:]})))
    return out, [v.name for v in tf.trainable_variables()]


@both(rtol=2e-3, atol=1e-4)
def test_adversaries(tf, np):
    """Two networks with optimizers of their own, over variables picked by name."""
    def generator(z):
        with tf.variable_scope("generator"):
            w = tf.get_variable("w", [2, 4], initializer=tf.random_normal_initializer(stddev=0.5, seed=1))
            v = tf.get_variable("v", [4, 1], initializer=tf.random_normal_initializer(stddev=0.5, seed=2))
            return tf.matmul(tf.nn.relu(tf.matmul(z, w)), v)

    def discriminator(x, reuse=False):
        with tf.variable_scope("discriminator") as scope:
            if reuse:
                scope.reuse_variables()
            w = tf.get_variable("w", [1, 4], initializer=tf.random_normal_initializer(stddev=0.5, seed=3))
            v = tf.get_variable("v", [4, 1], initializer=tf.random_normal_initializer(stddev=0.5, seed=4))
            return tf.matmul(tf.tanh(tf.matmul(x, w)), v)

    z = tf.placeholder(tf.float32, [None, 2], name="z")
    x = tf.placeholder(tf.float32, [None, 1], name="x")
    fake = generator(z)
    real_logits, fake_logits = discriminator(x), discriminator(fake, reuse=True)
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(cross(logits=real_logits, labels=tf.ones_like(real_logits))) + tf.reduce_mean(
        cross(logits=fake_logits, labels=tf.zeros_like(fake_logits)))
    g_loss = tf.reduce_mean(cross(logits=fake_logits, labels=tf.ones_like(fake_logits)))
    d_vars = [var for var in tf.trainable_variables() if "discriminator" in var.name]
    g_vars = [var for var in tf.trainable_variables() if var.name.startswith("generator")]
    d_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(d_loss, var_list=d_vars)
    g_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(g_loss, var_list=g_vars)
    clip = [var.assign(tf.clip_by_value(var, -0.9, 0.9)) for var in d_vars]
    rng = np.random.RandomState(0)
    out = []
    sess = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    for _ in range(60):
        noise, good = rng.randn(16, 2).astype(np.float32), rng.randn(16, 1).astype(np.float32) + 2
        _, d = sess.run([d_train, d_loss], {z: noise, x: good})
        sess.run(clip)
        _, g = sess.run([g_train, g_loss], {z: noise})
        out.append((d, g))
    sess.close()
    return out, [v.name for v in tf.global_variables()]


@both(rtol=1e-3, atol=1e-4)
def test_target_network(tf, np):
    """A network that follows another by assignments."""
    def network(state, scope):
        with tf.variable_scope(scope):
            w = tf.get_variable("w", [3, 5], initializer=tf.random_normal_initializer(seed=7))
            v = tf.get_variable("v", [5, 2], initializer=tf.random_normal_initializer(seed=8))
        return tf.matmul(tf.nn.relu(tf.matmul(state, w)), v)

    state = tf.placeholder(tf.float32, [None, 3])
    target = tf.placeholder(tf.float32, [None])
    action = tf.placeholder(tf.int32, [None])
    q, q_target = network(state, "q"), network(state, "target")
    chosen = tf.reduce_sum(q * tf.one_hot(action, 2), reduction_indices=1)
    error = tf.where(tf.abs(target - chosen) < 1.0, 0.5 * tf.square(target - chosen), tf.abs(target - chosen) - 0.5)
    loss = tf.reduce_mean(error)
    optimizer = tf.train.RMSPropOptimizer(0.005, decay=0.95, epsilon=0.01)
    grads = optimizer.compute_gradients(loss, tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="q"))
    train = optimizer.apply_gradients([(tf.clip_by_norm(g, 10), v) for g, v in grads])
    own = sorted(tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="q/"), key=lambda v: v.name)
    other = sorted(tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target"), key=lambda v: v.name)
    follow = tf.group(*[t.assign(t * 0.9 + o * 0.1) for o, t in zip([v for v in own if "RMSProp" not in v.name], other)])
    rng = np.random.RandomState(3)
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(50):
            s, a = rng.rand(8, 3).astype(np.float32), rng.randint(0, 2, 8)
            best = sess.run(q_target, {state: s}).max(1)
            out.append(sess.run([loss, train], {state: s, action: a, target: 0.9 * best + 1})[0])
            sess.run(follow)
    return out


@both
def test_records(tf, np):
    """Records written, read by queues, parsed and batched."""
    where = os.path.join(tempfile.mkdtemp(prefix="runnel_records"), "data.tfrecords")
    writer = tf.python_io.TFRecordWriter(where)
    for i in range(12):
        example = tf.train.Example(features=tf.train.Features(feature={
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[np.full(4, i, np.uint8).tobytes()]))}))
        writer.write(example.SerializeToString())
    writer.close()
    filename_queue = tf.train.string_input_producer([where], num_epochs=1, shuffle=False)
    _, serialized = tf.TFRecordReader().read(filename_queue)
    features = tf.parse_single_example(serialized, features={"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)})
    image = tf.decode_raw(features["image"], tf.uint8)
    image.set_shape([4])
    image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
    images, labels = tf.train.batch([image, tf.cast(features["label"], tf.int32)], batch_size=4, capacity=20)
    out = []
    with tf.Session() as sess:
        sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            while not coord.should_stop():
                out.append(sess.run([images, labels]))
        except tf.errors.OutOfRangeError:
            out.append("done")
        finally:
            coord.request_stop()
        coord.join(threads)
    return out


@both(rtol=1e-3, atol=1e-5)
def test_evaluation_by_averages(tf, np):
    """Train with averages, save, and evaluate with the averages in the variables' places."""
    where = tempfile.mkdtemp(prefix="runnel_averages")
    data = np.random.RandomState(1).rand(20, 3).astype(np.float32)

    def inference(x):
        with tf.variable_scope("layer", regularizer=lambda w: 0.01 * tf.nn.l2_loss(w)):
            w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
            b = tf.get_variable("b", [1], initializer=tf.zeros_initializer(), regularizer=tf.no_regularizer)
        return tf.matmul(x, w) + b

    step = tf.train.get_or_create_global_step()
    y = inference(tf.constant(data))
    loss = tf.reduce_mean(tf.square(y - data[:, :1])) + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    apply_op = tf.train.MomentumOptimizer(tf.train.piecewise_constant(step, [10, 20], [0.1, 0.05, 0.01]), 0.9).minimize(loss, step)
    ema = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([apply_op]):
        train = ema.apply(tf.trainable_variables())
    saver = tf.train.Saver()
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(40):
            sess.run(train)
        out.append(sess.run(loss))
        saver.save(sess, os.path.join(where, "model.ckpt"), global_step=step)
    with tf.Graph().as_default():
        y = inference(tf.constant(data))
        ema = tf.train.ExponentialMovingAverage(0.9)
        saver = tf.train.Saver(ema.variables_to_restore())
        with tf.Session() as sess:
            ckpt = tf.train.get_checkpoint_state(where)
            if ckpt and ckpt.model_checkpoint_path:
                saver.restore(sess, ckpt.model_checkpoint_path)
                out.append(ckpt.model_checkpoint_path.split("/")[-1].split("-")[-1])
            out.append(sess.run(y))
    return out


@both(rtol=1e-3, atol=1e-5)
def test_accumulated_gradients(tf, np):
    """Gradients of several batches are kept in variables, and applied together."""
    w = tf.Variable([[1.0], [2.0]], name="w")
    x = tf.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    opt = tf.train.AdamOptimizer(0.1)
    tvs = tf.trainable_variables()
    kept = [tf.Variable(tf.zeros_like(tv.initialized_value()), trainable=False) for tv in tvs]
    zero = [tv.assign(tf.zeros_like(tv)) for tv in kept]
    gvs = opt.compute_gradients(loss, tvs)
    add = [kept[i].assign_add(gv[0]) for i, gv in enumerate(gvs)]
    step = opt.apply_gradients([(kept[i], gv[1]) for i, gv in enumerate(gvs)])
    rng = np.random.RandomState(0)
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(10):
            sess.run(zero)
            for _ in range(3):
                sess.run(add, {x: rng.rand(4, 2)})
            sess.run(step)
            out.append(sess.run(w))
    return out
