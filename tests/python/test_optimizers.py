"""Optimizers, learning rates, clipping, averages: the same graphs as in stock, and the same values after some steps."""

from both import both


def model(tf, use_resource=False):
    """A loss with dense and sparse gradients."""
    tf.set_random_seed(3)
    w = tf.get_variable("w", [2, 3], use_resource=use_resource)
    v = tf.get_variable("v", [3, 2], use_resource=use_resource)
    e = tf.get_variable("e", [5, 2], use_resource=use_resource, initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(tf.matmul(w, v))) + tf.reduce_sum(tf.square(tf.gather(e, [1, 1, 2])))
    return [w, v, e], loss


def made(tf, step):
    train = tf.train
    return [train.GradientDescentOptimizer(0.1), train.MomentumOptimizer(0.1, 0.9), train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
            train.AdamOptimizer(0.1), train.AdagradOptimizer(0.1), train.AdadeltaOptimizer(0.1), train.RMSPropOptimizer(0.01),
            train.RMSPropOptimizer(0.01, centered=True, momentum=0.5), train.FtrlOptimizer(0.1),
            train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1), train.ProximalAdagradOptimizer(0.1),
            train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01), train.AdagradDAOptimizer(0.1, step)]


def trained(tf, use_resource):
    variables, loss = model(tf, use_resource)
    step = tf.train.get_or_create_global_step()
    ops = [optimizer.minimize(loss, global_step=step) for optimizer in made(tf, step)]
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for op in ops:
            for _ in range(3):
                sess.run(op)
            out.append(sess.run([loss, step] + variables))
    return out, [v.name for v in tf.global_variables()]


@both(rtol=1e-4)
def test_references(tf, np):
    return trained(tf, False)


@both(rtol=1e-4)
def test_resources(tf, np):
    return trained(tf, True)


def apply_rows(tf):
    """Optimizers applied to gradients that are given: the graph is theirs alone."""
    step = tf.train.get_or_create_global_step()
    dense = tf.placeholder(tf.float32, [2, 3], name="dense")
    rows = tf.IndexedSlices(tf.placeholder(tf.float32, [2, 2], name="rows"), tf.constant([1, 1], name="which"), tf.constant([5, 2]))
    pairs = []
    for use_resource in (False, True):
        with tf.variable_scope("r" if use_resource else "v", use_resource=use_resource):
            pairs.append((dense, tf.get_variable("w", [2, 3])))
            pairs.append((rows, tf.get_variable("e", [5, 2])))
    return [optimizer.apply_gradients(pairs, global_step=step) for optimizer in made(tf, step)]


@both(graph=True)
def test_graphs(tf, np):
    return [op.name for op in apply_rows(tf)]


@both
def test_slots(tf, np):
    variables, loss = model(tf)
    adam = tf.train.AdamOptimizer(0.1)
    adam.minimize(loss, var_list=variables[:2])
    return adam.get_slot_names(), adam.get_slot(variables[0], "m").name, [v.name for v in adam.variables()], adam.get_slot(
        variables[2], "m") is None


@both(rtol=1e-4)
def test_own_optimizer(tf, np):
    class Sign(tf.train.Optimizer):
        def __init__(self, rate, name="Sign"):
            super().__init__(False, name)
            self._rate = rate

        def _create_slots(self, var_list):
            for v in var_list:
                self._zeros_slot(v, "count", self._name)

        def _apply_dense(self, grad, var):
            count = self.get_slot(var, "count").assign_add(tf.ones(var.shape))
            return tf.group(var.assign_sub(self._rate * tf.sign(grad)), count)

        def _apply_sparse(self, grad, var):
            return tf.scatter_sub(var, grad.indices, self._rate * tf.sign(grad.values))

    variables, loss = model(tf)
    optimizer = Sign(0.1)
    op = optimizer.minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        sess.run(op)
        return sess.run(variables + [optimizer.get_slot(variables[0], "count")])


@both
def test_gates(tf, np):
    out = []
    for gate in (tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH):
        with tf.Graph().as_default():
            x = tf.Variable([1.0, 2.0], use_resource=True)
            y = tf.Variable([3.0, 4.0], use_resource=True)
            op = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(x * y), gate_gradients=gate)
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(op)
                out.append(sess.run([x, y]))
    return out


@both(rtol=1e-4)
def test_hundred_steps(tf, np):
    """Two layers of references: updates must not run into gradients that still read the weights."""
    tf.set_random_seed(1)
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 1])
    w1 = tf.Variable(tf.random_normal([4, 8], stddev=0.5, seed=1))
    b1 = tf.Variable(tf.zeros([8]))
    w2 = tf.Variable(tf.random_normal([8, 1], stddev=0.5, seed=2))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) - y))
    op = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    data = rng.randn(32, 4).astype(np.float32)
    feed = {x: data, y: data[:, :1] * data[:, 1:2]}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, op], feed)[0] for _ in range(100)], sess.run([w1, w2])


@both(rtol=1e-4)
def test_learning_rates(tf, np):
    tf.set_random_seed(5)
    step = tf.train.get_or_create_global_step()
    train = tf.train
    rates = [train.exponential_decay(0.1, step, 10, 0.9), train.exponential_decay(0.1, step, 10, 0.9, staircase=True),
             train.natural_exp_decay(0.1, step, 10, 0.9), train.inverse_time_decay(0.1, step, 10, 0.9), train.polynomial_decay(0.1, step, 10),
             train.polynomial_decay(0.1, step, 3, cycle=True, power=2.0), train.piecewise_constant(step, [2, 4], [0.1, 0.2, 0.3]),
             train.cosine_decay(0.1, step, 10), train.cosine_decay_restarts(0.1, step, 2), train.linear_cosine_decay(0.1, step, 10),
             train.noisy_linear_cosine_decay(0.1, step, 10)]
    count = tf.assign_add(step, 1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        out = []
        for _ in range(12):
            out.append(sess.run(rates))
            sess.run(count)
        return out


@both(graph=True)
def test_rate_graphs(tf, np):
    step = tf.train.get_or_create_global_step()
    tf.train.exponential_decay(0.1, step, 10, 0.9, staircase=True)
    tf.train.polynomial_decay(0.1, step, 10)
    tf.train.inverse_time_decay(0.1, step, 10, 0.9)
    tf.train.cosine_decay(0.1, step, 10)
    tf.train.linear_cosine_decay(0.1, step, 10)


@both(graph=True)
def test_clipping(tf, np):
    x = tf.constant([3.0, 4.0])
    y = tf.constant([[1.0, 2.0], [2.0, 1.0]])
    both_clipped, norm = tf.clip_by_global_norm([x, None, y], 2.0)
    rows = [tf.clip_by_norm(x, 1.0), tf.clip_by_norm(y, 1.0, axes=1), tf.clip_by_average_norm(x, 0.1), tf.clip_by_value(x, 0.0, 3.5),
            both_clipped[0], both_clipped[2], norm, tf.global_norm([x, y]), tf.clip_by_norm(tf.zeros([2]), 1.0)]
    with tf.Session() as sess:
        return sess.run(rows), both_clipped[1] is None


@both(rtol=1e-4)
def test_averages(tf, np):
    x = tf.Variable([1.0, 2.0], name="x")
    y = tf.get_variable("y", [2], use_resource=True, initializer=tf.ones_initializer())
    step = tf.train.get_or_create_global_step()
    op = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(x) * y), global_step=step)
    average = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    with tf.control_dependencies([op]):
        update = average.apply([x, y])
    loss = tf.identity(tf.reduce_sum(x), name="loss")
    debiased = tf.train.ExponentialMovingAverage(0.5, zero_debias=True, name="d")
    follow = debiased.apply([loss])
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(update)
            sess.run(follow)
            out.append(sess.run([x, y, average.average(x), average.average(y), debiased.average(loss)]))
    return out, sorted(average.variables_to_restore()), average.average_name(x), [v.name for v in tf.moving_average_variables()]


@both
def test_constraint(tf, np):
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), constraint=lambda value: tf.clip_by_value(value, 0.5, 0.8))
    op = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(v * [1.0, -1.0, 0.3]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        return sess.run(v)


@both(raises=True)
def test_no_variables(tf, np):
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


@both(raises=True)
def test_no_gradients(tf, np):
    tf.Variable(1.0)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


@both(raises=True)
def test_integer_loss(tf, np):
    v = tf.Variable(1)
    tf.train.GradientDescentOptimizer(0.1).minimize(v * 2)
