"""Eager execution, tapes and tf.function: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


def texts(values):
    return [str(v) for v in values] + [repr(v) for v in values]


@both
def test_texts(tf, np):
    values = [tf.constant(x) for x in (3.0, 7, True, [1, 2], [[1.0, 2.0], [3.0, 4.0]], "ab", ["a", "b"], 1 + 2j)]
    values += [tf.constant(2.5, tf.float64), tf.constant(1.5, tf.float16), tf.constant([], tf.int64), tf.zeros([0, 2])]
    return texts(values) + [v.device for v in values]


@both
def test_python_protocols(tf, np):
    a, b = tf.constant(3), tf.constant([1.5, 2.5])
    return [int(a), float(a), bool(a), len(b), [float(x) for x in b], [10, 20, 30, 40][a], list(range(a)),
            np.sin(b), np.asarray(b), "%.2f" % tf.constant(1.25), format(tf.constant(2.0), ".3f"), b.ndim,
            b.shape.as_list(), b.dtype.name, b.get_shape().as_list(), a.numpy(), tf.constant("x").numpy(), complex(a), a == a]


@both
def test_operators(tf, np):
    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])
    i = tf.constant([5, 7])
    results = [x + y, x - 1, 2 - x, x * y, x / y, 1 / x, x // 2, x % 2, x ** 2, 2.0 ** x, -x, abs(-x), x < y, x >= 2, i / 2, i // 2,
               x[0], x[1:], x[::-1], x[..., tf.newaxis], tf.constant([[1, 2], [3, 4]])[:, 1], tf.constant([True]) & False,
               tf.constant([[1.0, 2.0]]) @ tf.constant([[3.0], [4.0]])]
    return [r.numpy() for r in results]


@both
def test_functions(tf, np):
    x = tf.reshape(tf.range(12, dtype=tf.float32), [3, 4])
    parts = tf.split(x, 2, axis=1)
    values, indices = tf.nn.top_k(x, 2)
    unique = tf.unique([1, 1, 2])
    mean, variance = tf.nn.moments(x, [0])
    return [r.numpy() for r in [
        tf.matmul(x, x, transpose_b=True), tf.reduce_sum(x, 1), tf.reduce_mean(x), tf.concat(parts, 0), tf.stack([x, x]),
        tf.transpose(x), values, indices, unique.y, unique.idx, mean, variance, tf.where(x > 5), tf.where(x > 5, x, -x),
        tf.one_hot([0, 2], 3), tf.cast(x, tf.int32), tf.nn.softmax(x), tf.nn.relu(x - 5), tf.argmax(x, 1), tf.gather(x, [2, 0]),
        tf.tile([[1, 2]], [2, 2]), tf.zeros_like(x), tf.fill([2], 7), tf.expand_dims(x, 0), tf.squeeze([[1]]), tf.shape(x),
        tf.size(x), tf.pad(x, [[1, 1], [0, 0]]), tf.linspace(0.0, 1.0, 5), tf.clip_by_value(x, 2, 4), tf.norm(x),
        tf.tensordot(x, x, [[1], [1]]), tf.string_join(["a", "b"]), tf.eye(2), tf.reverse(x, [0]), tf.cumsum(x)]]


@both
def test_constants_of_tensors(tf, np):
    a = tf.constant(2.0)
    return [tf.convert_to_tensor([a, 3.0]).numpy(), tf.stack([a, 1.0]).numpy(), tf.constant(a).numpy(),
            tf.convert_to_tensor(np.arange(3)).numpy(), tf.convert_to_tensor([[a, a], [1.0, a]]).numpy()]


def failing(program):
    return both(program, raises=True)


@functools.partial(both, raises=True, message=True)
def test_type_mismatch(tf, np):
    return tf.constant(1.0) + tf.constant(1)


@failing
def test_shape_mismatch(tf, np):
    return tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])


@failing
def test_matmul_mismatch(tf, np):
    return tf.matmul([[1.0]], [[1.0, 2.0], [3.0, 4.0]])


@functools.partial(both, raises=True, message=True)
def test_no_placeholder(tf, np):
    return tf.placeholder(tf.float32)


@functools.partial(both, raises=True, message=True)
def test_no_gradients(tf, np):
    return tf.gradients(tf.constant(1.0), tf.constant(1.0))


@functools.partial(both, raises=True, message=True)
def test_scalar_len(tf, np):
    return len(tf.constant(1))


@functools.partial(both, raises=True, message=True)
def test_truth_of_many(tf, np):
    return bool(tf.constant([1, 2]))


@functools.partial(both, raises=True, message=True)
def test_no_name(tf, np):
    return tf.constant(1).name


@failing
def test_float_for_int(tf, np):
    return tf.constant(1.5, tf.int32)


@failing
def test_bad_index(tf, np):
    return tf.gather([1, 2], [5])


@failing
def test_assertion(tf, np):
    tf.assert_equal(tf.constant(1), tf.constant(2))


@both
def test_variables(tf, np):
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    out = [repr(v), v.name, w.name, v.numpy(), (v + 1).numpy(), (2 * v).numpy(), v[0].numpy(), v.read_value().numpy()]
    v.assign([3.0, 4.0])
    out.append(v.numpy())
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.5, 0.5])
    out += [v.numpy(), tf.reduce_sum(v).numpy(), tf.matmul(w, w).numpy(), v.shape.as_list(), v.dtype.name, v.trainable]
    tf.assign(v, [0.0, 1.0])
    out.append(v.numpy())
    v.scatter_update(tf.IndexedSlices(tf.constant([9.0]), tf.constant([1])))
    out += [v.numpy(), len(tf.global_variables()), np.asarray(v), tf.nn.embedding_lookup(w, [1]).numpy()]
    return out


@both
def test_random(tf, np):
    tf.set_random_seed(42)
    a = [tf.random_uniform([2]).numpy(), tf.random_uniform([2]).numpy(), tf.random_normal([2], seed=1).numpy()]
    tf.set_random_seed(42)
    b = [tf.random_uniform([2]).numpy(), tf.truncated_normal([3]).numpy(), tf.random_shuffle([1, 2, 3, 4]).numpy()]
    return a + b + [tf.get_variable("g", [2, 2], initializer=tf.glorot_uniform_initializer(seed=3)).numpy()]


@both
def test_control_flow(tf, np):
    x = tf.constant(5)
    a = tf.cond(x > 3, lambda: x * 2, lambda: x)
    i, s = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
    b = tf.case([(x < 3, lambda: tf.constant(1)), (x > 4, lambda: tf.constant(2))], default=lambda: tf.constant(3))
    with tf.control_dependencies([x]), tf.name_scope("n"), tf.device("/cpu:0"):
        c = tf.identity(x)
    total = 0
    while x > 0:
        total += x
        x -= 1
    return [a.numpy(), i.numpy(), s.numpy(), b.numpy(), c.numpy(), total.numpy(), tf.group(a, b), tf.no_op(),
            tf.map_fn(lambda v: v * v, tf.constant([1, 2, 3])).numpy(),
            tf.scan(lambda p, v: p + v, tf.constant([1, 2, 3])).numpy(), tf.foldl(lambda p, v: p * v, tf.constant([1, 2, 3])).numpy()]


@both
def test_tape(tf, np):
    x, y = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = x * x * y
    first = tape.gradient(z, x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        a = x * y
        b = tf.sin(a)
    out = [first.numpy(), tape.gradient(b, x).numpy(), tape.gradient(a, y).numpy(),
           [g.numpy() for g in tape.gradient(b, [x, y])], tape.gradient(a, {"p": x, "q": y})["q"].numpy(),
           tape.gradient([a, b], x).numpy(), tape.gradient(a, x, output_gradients=tf.constant(2.0)).numpy()]
    out.append(tape.gradient(a, tf.constant(1.0)))
    out.append(tape.gradient(a, tf.constant(1.0), unconnected_gradients=tf.UnconnectedGradients.ZERO).numpy())
    return out


@both
def test_tape_of_variables(tf, np):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    b = tf.Variable([0.5, -0.5])
    frozen = tf.Variable([1.0, 1.0], trainable=False)
    x = tf.constant([[1.0, -1.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(tf.matmul(x, w) + b * frozen) ** 2)
    grads = tape.gradient(loss, [w, b, frozen])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(b)
        loss = tf.reduce_sum(tf.matmul(x, w) * b)
    more = tape.gradient(loss, (w, b))
    return [None if g is None else g.numpy() for g in list(grads) + list(more)] + [
        len(tape.watched_variables()), tape.watched_variables()[0].numpy()]


@both
def test_higher_order(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as t3:
        t3.watch(x)
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape() as t1:
                t1.watch(x)
                y = x ** 4 + tf.exp(x)
            d1 = t1.gradient(y, x)
        d2 = t2.gradient(d1, x)
    d3 = t3.gradient(d2, x)
    return [d1.numpy(), d2.numpy(), d3.numpy()]


@both
def test_sparse_gradient(tf, np):
    table = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(table, [1, 3, 1])
        loss = tf.reduce_sum(rows * rows)
    g = tape.gradient(loss, table)
    return [type(g).__name__, tf.convert_to_tensor(g).numpy()]


@both
def test_stop_recording_and_reset(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * 5.0
        w = y + x
    out = [tape.gradient(y, x).numpy(), tape.gradient(z, x), tape.gradient(w, x).numpy()]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        y = 7.0 * x
    return out + [tape.gradient(y, x).numpy()]


@functools.partial(both, raises=True, message=True)
def test_tape_once(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


@both
def test_gradient_inside_of_the_tape(tf, np):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
    return [first.numpy(), second.numpy(), tape.gradient(second, x).numpy()]


@both
def test_variable_made_in_a_function(tf, np):
    class Lazy:
        v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(5.0)
            return self.v * x
    lazy = Lazy()
    out = [lazy(tf.constant(2.0)).numpy(), lazy(tf.constant(3.0)).numpy()]
    with tf.GradientTape() as tape:
        y = lazy(tf.constant(3.0))
    return out + [tape.gradient(y, lazy.v).numpy()]


@both
def test_jacobians(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    w = tf.Variable([1.0, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * w
    return [tape.jacobian(y, x).numpy(), tape.jacobian(y, [w])[0].numpy(), tape.batch_jacobian(y, x).numpy()]


@both
def test_stop_gradient(tf, np):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * tf.stop_gradient(x * x)
    return tape.gradient(y, x).numpy()


@both
def test_custom_gradient(tf, np):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(dy):
            return dy * (1 - 1 / (1 + e))
        return tf.log(1 + e), grad

    @tf.custom_gradient
    def two(a, b):
        def grad(da, db):
            return da * 10.0, db * 20.0
        return (a + 1.0, b + 2.0), grad
    x = tf.constant([0.0, 100.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    out = [y.numpy(), tape.gradient(y, x).numpy()]
    a, b = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        p, q = two(a * 2.0, b)
        r = p * q
    return out + [g.numpy() for g in tape.gradient(r, [a, b])]


@both
def test_custom_gradient_of_variables(tf, np):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def scaled(x):
        y = x * v

        def grad(dy, variables=None):
            return dy * 100.0, [dy * 1000.0 for _ in variables]
        return y, grad
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x * x)
        dx, dv = tape.gradient(y, [x, v])
    return [dx.numpy(), dv.numpy(), outer.gradient(dx, x).numpy()]


@failing
def test_custom_gradient_fails(tf, np):
    @tf.custom_gradient
    def bad(x):
        def grad(dy):
            raise KeyError("no")
        return x, grad
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bad(x)
    tape.gradient(y, x)


@both
def test_datasets(tf, np):
    d = tf.data.Dataset.from_tensor_slices((np.arange(6), np.arange(6) * 10.0)).map(lambda a, b: (a + 1, b)).batch(4)
    out = [(a.numpy(), b.numpy()) for a, b in d]
    scale = tf.constant(3)
    out.append([int(x) for x in tf.data.Dataset.range(5).map(lambda x: x * tf.cast(scale, tf.int64)).filter(lambda x: x > 3)])
    out.append([x["k"].numpy() for x in tf.data.Dataset.from_tensor_slices({"k": [1, 2]}).repeat(2)])
    out.append([x.numpy() for x in tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), tf.int32)])
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    out.append([int(iterator.get_next()), int(iterator.get_next())])
    out.append([x.numpy() for x in tf.data.Dataset.range(10).shuffle(10, seed=1).take(3)])
    return out


@both
def test_py_func(tf, np):
    return [tf.py_func(lambda x: x * 2, [tf.constant([1.0, 2.0])], tf.float32).numpy(),
            tf.numpy_function(lambda a, b: a + b, [tf.constant(1), tf.constant(2)], tf.int32).numpy()]


@both
def test_function(tf, np):
    count = []

    @tf.function
    def f(x, y=2.0):
        count.append(1)
        return x * y, {"s": tf.reduce_sum(x)}
    out = [f(tf.constant([1.0, 2.0])), f(tf.constant([3.0, 4.0])), f(tf.constant([3.0]), 5.0)]
    return [(a.numpy(), d["s"].numpy()) for a, d in out] + [len(count)]


@both
def test_function_with_variables(tf, np):
    v = tf.Variable(1.0)
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        v.assign_add(x)
        a = v * 2.0
        v.assign(a)
        return v.read_value() + tf.reduce_sum(w)

    @tf.function
    def loss(x):
        return tf.reduce_sum(w * x) ** 2 * v

    @tf.function
    def silent():
        v.assign(7.0)
    out = [step(tf.constant(3.0)).numpy(), v.numpy()]
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    out += [g.numpy() for g in tape.gradient(y, [x, w, v])]
    silent()
    return out + [y.numpy(), v.numpy()]


@both
def test_function_nested(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def inner(x):
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tf.constant(0), x])[1]

    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)

        @tf.function
        def __call__(self, x):
            return inner(x) * self.w
    model = Model()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(tf.constant([1.0, 2.0])))
    return [y.numpy(), tape.gradient(y, model.w).numpy(), inner([1.0]).numpy()]


@both
def test_tape_in_function(tf, np):
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def grads(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * w * x)
        return tape.gradient(y, w)
    return grads(tf.constant(3.0)).numpy()


@both
def test_graphs_by_hand(tf, np):
    with tf.Graph().as_default():
        outside = tf.executing_eagerly()
        x = tf.placeholder(tf.float32)
        y = x * 2
        with tf.Session() as sess:
            value = sess.run(y, {x: 4.0})
    return [outside, tf.executing_eagerly(), value]


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
def test_function_with_effects_on_a_tape(tf, np):
    v = tf.Variable(1.0, trainable=False)
    x = tf.ones([100])

    @tf.function
    def f(x):
        v.assign_add(1.0)
        return tf.nn.dropout(x, rate=0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [v.numpy(), bool(np.array_equal(tape.gradient(y, x).numpy(), y.numpy())), v.numpy()]


@both
def test_gradients_of_functions_again(tf, np):
    @tf.function
    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x * x * x)

    @tf.function
    def cube(x):
        return x * x * x
    x = tf.constant([-1.0, -2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = branch(x) + cube(x)
        first = tape.gradient(y, x)
    return [y.numpy(), first.numpy(), outer.gradient(first, x).numpy()]


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
def test_py_function(tf, np):
    x, n = tf.constant([1.0, 2.0]), tf.constant(3.0)

    def power(a, k):
        out = a
        while k > 1:
            out *= a
            k -= 1
        return out
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(power, [x, n], tf.float32)
    out = [y.numpy(), tape.gradient(y, x).numpy()]
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        y = tf.py_function(power, [x, 3.0], tf.float32)
        y.set_shape([2])
        with tf.Session() as sess:
            out += sess.run([y, tf.gradients(y * 2.0, x)[0]], {x: [1.0, 2.0]})
    return out


@both
def test_recompute_and_pass_through(tf, np):
    v = tf.Variable(3.0)
    x = tf.constant([1.0, 2.0])
    again = tf.recompute_grad(lambda a: a * a)
    through = tf.grad_pass_through(tf.round)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = again(x) * v
        z = through(x * 1.4)
    return [y.numpy(), tape.gradient(y, x).numpy(), tape.gradient(y, v).numpy(), z.numpy(), tape.gradient(z, x).numpy()]


@both
def test_tables_queues_averages(tf, np):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    v = tf.Variable(1.0)
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([v])
    v.assign(2.0)
    average.apply([v])
    array = tf.TensorArray(tf.float32, 3)
    for i in range(3):
        array = array.write(i, float(i))
    rate = tf.train.exponential_decay(0.1, tf.Variable(10), 10, 0.5)
    return [table.lookup(tf.constant(["b", "z"])).numpy(), average.average(v).numpy(), array.stack().numpy(), rate().numpy()]


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
def test_threads(tf, np):
    import threading
    found = [None] * 8

    def work(number):
        x = tf.constant(float(number))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        found[number] = tape.gradient(y, x).numpy()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


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
