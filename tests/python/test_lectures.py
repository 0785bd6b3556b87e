"""Code fragments of lectures and beginners' tutorials: the same results as in stock, and errors of the same class."""

from both import both


@both
def test_deferred_execution(tf, np):
    a = tf.constant(2.0)
    b = tf.constant(3.0)
    c = a * b
    text = [str(a), str(c)]
    with tf.Session() as sess:
        return text, sess.run(c), c.eval(), sess.run([a, b, c]), sess.run({"sum": a + b})


@both
def test_variables_and_counters(tf, np):
    state = tf.Variable(0, name="counter")
    new_value = tf.add(state, tf.constant(1))
    update = tf.assign(state, new_value)
    init_op = tf.initialize_all_variables()
    out = []
    with tf.Session() as sess:
        sess.run(init_op)
        out.append(sess.run(state))
        for _ in range(3):
            sess.run(update)
            out.append(sess.run(state))
    return out


@both
def test_feeding_any_edge(tf, np):
    input1 = tf.placeholder(tf.float32)
    input2 = tf.placeholder(tf.float32)
    middle = tf.multiply(input1, input2)
    output = middle + 1.0
    with tf.Session() as sess:
        return sess.run(output, feed_dict={input1: [7.0], input2: [2.0]}), sess.run(output, feed_dict={middle: [1.0, 2.0]})


@both(raises=True)
def test_forgotten_feed(tf, np):
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:
        return sess.run(x * 2)


@both(raises=True)
def test_forgotten_initializer(tf, np):
    w = tf.Variable([1.0])
    with tf.Session() as sess:
        return sess.run(w + 1)


@both(raises=True)
def test_shapes_that_do_not_meet(tf, np):
    return tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))


@both(raises=True)
def test_wrong_feed_shape(tf, np):
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.Session() as sess:
        return sess.run(x, {x: np.zeros((2, 4))})


@both(raises=True)
def test_variable_made_twice(tf, np):
    tf.get_variable("v", [1])
    return tf.get_variable("v", [1])


@both(raises=True)
def test_another_graph(tf, np):
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        b = tf.constant(2.0)
        return a + b


@both
def test_sharing_variables(tf, np):
    with tf.variable_scope("foo"):
        v = tf.get_variable("v", [1])
    with tf.variable_scope("foo", reuse=True):
        v1 = tf.get_variable("v", [1])
    with tf.variable_scope("bar") as scope:
        w = tf.get_variable("w", [1])
        scope.reuse_variables()
        w1 = tf.get_variable("w")
    return v is v1, w is w1, v.name, w.name, [t.name for t in tf.trainable_variables()]


@both
def test_interactive(tf, np):
    sess = tf.InteractiveSession()
    x = tf.Variable([1.0, 2.0])
    a = tf.constant([3.0, 3.0])
    x.initializer.run()
    sub = tf.subtract(x, a)
    value = sub.eval()
    sess.close()
    return value


@both
def test_gradients_by_hand(tf, np):
    x = tf.placeholder(tf.float32)
    y = x ** 3 + 2 * x
    first, = tf.gradients(y, x)
    second, = tf.gradients(first, x)
    with tf.Session() as sess:
        return sess.run([y, first, second], {x: 2.0})


@both(rtol=1e-4)
def test_two_layer_network_of_numpy_and_of_graphs(tf, np):
    N, D, H = 16, 20, 10
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, shape=(N, D))
    y = tf.placeholder(tf.float32, shape=(N, D))
    w1 = tf.Variable(rng.randn(D, H).astype(np.float32), use_resource=True)  # the other kind is read while it is assigned, in stock
    w2 = tf.Variable(rng.randn(H, D).astype(np.float32), use_resource=True)
    h = tf.maximum(tf.matmul(x, w1), 0)
    y_pred = tf.matmul(h, w2)
    loss = tf.reduce_mean(tf.reduce_sum((y_pred - y) ** 2, axis=1))
    grad_w1, grad_w2 = tf.gradients(loss, [w1, w2])
    updates = tf.group(w1.assign(w1 - 1e-3 * grad_w1), w2.assign(w2 - 1e-3 * grad_w2))
    values = {x: rng.randn(N, D), y: rng.randn(N, D)}
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(50):
            loss_val, _ = sess.run([loss, updates], feed_dict=values)
            losses.append(loss_val)
    return losses


@both
def test_old_names(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.Session() as sess:
        return sess.run([tf.reduce_sum(x, reduction_indices=[1]), tf.reduce_mean(x, 0, keep_dims=True), tf.to_int32(x), tf.arg_max(x, 1),
                         tf.div(7, 2), tf.log(x), tf.matrix_inverse(x)])


@both
def test_loop_and_choice(tf, np):
    i = tf.constant(0)
    total = tf.while_loop(lambda i, s: tf.less(i, 10), lambda i, s: [i + 1, s + tf.square(i)], [i, tf.constant(0)])[1]
    choice = tf.cond(total > 100, lambda: total * 2, lambda: total - 1)
    with tf.Session() as sess:
        return sess.run([total, choice])


@both
def test_control_dependencies(tf, np):
    v = tf.Variable(1.0)
    with tf.control_dependencies([tf.assign_add(v, 2.0)]):
        after = v.read_value()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(after) for _ in range(3)]


@both
def test_queue_of_a_pipeline(tf, np):
    queue = tf.FIFOQueue(3, "float")
    init = queue.enqueue_many(([0.0, 0.0, 0.0],))
    x = queue.dequeue()
    step = queue.enqueue([x + 1])
    with tf.Session() as sess:
        init.run()
        for _ in range(4):
            step.run()
        return [sess.run(queue.dequeue()) for _ in range(3)]
