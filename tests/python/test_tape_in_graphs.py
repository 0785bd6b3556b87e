"""Tapes, custom gradients and tf.function while a graph is built."""

from both import both


@both
def test_custom_gradient(tf, np):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(dy):
            return dy * (1 - 1 / (1 + e))
        return tf.log(1 + e), grad
    x = tf.placeholder(tf.float32, [2])
    y = log1pexp(x) * 3.0
    dx, = tf.gradients(y, x)
    with tf.Session() as sess:
        return [sess.run([y, dx], {x: [0.0, 100.0]}), y.shape.as_list(), dx.shape.as_list()]


@both
def test_custom_gradient_of_two(tf, np):
    @tf.custom_gradient
    def two(a, b):
        def grad(da, db):
            return da * 10.0, db * 20.0
        return (a + 1.0, b + 2.0), grad
    a, b = tf.constant(1.0), tf.constant(2.0)
    p, q = two(a * 2.0, b)
    with tf.Session() as sess:
        return sess.run([p, q] + tf.gradients(p * q, [a, b]))


@both
def test_custom_gradient_with_a_variable(tf, np):
    v = tf.get_variable("v", initializer=2.0, use_resource=True)

    @tf.custom_gradient
    def scaled(x):
        y = x * v

        def grad(dy, variables=None):
            return dy * 100.0, [dy * 1000.0 for _ in variables]
        return y, grad
    x = tf.constant(3.0)
    y = scaled(x)
    grads = tf.gradients(y, [x, v])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([y] + grads)


@both
def test_tape(tf, np):
    w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    x = tf.placeholder(tf.float32, [2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(w * w * x)
    dw, dx = tape.gradient(y, [w, x])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([y, dw, dx], {x: [3.0, 4.0]})


@both
def test_function(tf, np):
    w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True)

    @tf.function
    def f(x, scale=2.0):
        return {"a": tf.reduce_sum(w * x) * scale, "b": x + 1.0}
    x = tf.placeholder(tf.float32, [2])
    first, second = f(x), f(x, scale=3.0)
    grads = tf.gradients(first["a"] + second["a"], [w, x])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([first, second, grads], {x: [3.0, 4.0]})


@both
def test_pass_through(tf, np):
    x = tf.constant([1.2, 2.7])
    y = tf.grad_pass_through(tf.round)(x * 2.0)
    with tf.Session() as sess:
        return sess.run([y] + tf.gradients(y, x))


@both(raises=True)
def test_too_few_gradients(tf, np):
    @tf.custom_gradient
    def bad(a, b):
        return a + b, lambda dy: [dy]
    a, b = tf.constant(1.0), tf.constant(2.0)
    return tf.gradients(bad(a, b), [a, b])
