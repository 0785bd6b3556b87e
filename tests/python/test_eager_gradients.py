"""Tapes and custom gradients in eager execution: the same programs in stock."""

import functools

from both import both as _both

both = functools.partial(_both, eager=True)


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


@functools.partial(both, raises=True)
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
