"""tf.function and Python functions in eager execution: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


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
def test_py_func(tf, np):
    return [tf.py_func(lambda x: x * 2, [tf.constant([1.0, 2.0])], tf.float32).numpy(),
            tf.numpy_function(lambda a, b: a + b, [tf.constant(1), tf.constant(2)], tf.int32).numpy()]


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
