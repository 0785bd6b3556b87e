"""tf.gradients, tf.hessians and registered gradients."""

from both import both


@both
def test_gradients(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    w = tf.constant([[0.5], [-1.0]])
    y = tf.reduce_sum(tf.square(tf.tanh(tf.matmul(x, w))))
    unused = tf.constant(1.0)
    with tf.Session() as sess:
        dx, dw, none = tf.gradients(y, [x, w, unused])
        rows = [sess.run([dx, dw]), none is None, dx.shape.as_list()]
        rows.append(sess.run(tf.gradients(y, unused, unconnected_gradients="zero")))
        rows.append(sess.run(tf.gradients([x * 2, x * 3], x, grad_ys=[tf.ones_like(x), 2 * tf.ones_like(x)])))
        z = x * x
        rows.append(sess.run(tf.gradients(z * x, x, stop_gradients=[z])))
        rows.append(sess.run(tf.gradients(tf.stop_gradient(z) * x, x)))
        rows.append(sess.run(tf.gradients(tf.gradients(tf.reduce_sum(x ** 3), x), x)))
        rows.append(sess.run(tf.hessians(tf.reduce_sum(w ** 3), w)))
        return rows


@both
def test_slices(tf, np):
    p = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    g, = tf.gradients(tf.reduce_sum(tf.square(tf.gather(p, [1, 1, 3]))), p)
    with tf.Session() as sess:
        return [type(g).__name__, sess.run(g), sess.run(tf.convert_to_tensor(g)), g.dtype.name, str(g.shape)]


@both(raises=True)
def test_wrong_count(tf, np):
    x = tf.constant(1.0)
    tf.gradients([x], [x], grad_ys=[x, x])


@both
def test_override(tf, np):
    name = "Mine%d" % id(np)

    @tf.RegisterGradient(name)
    def mine(op, grad):
        return grad * 100.0

    x = tf.constant([1.0, 2.0])
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.square(x)
    with tf.Session() as sess:
        return sess.run(tf.gradients(y + tf.square(x), x))


def test_failed_rule_leaves_the_graph():
    import pytest
    import runnel as tf

    @tf.RegisterGradient("FailsLate")
    def fails(op, grad):
        grad * 2.0
        raise ValueError("no gradient today")

    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0])
        with graph.gradient_override_map({"Square": "FailsLate"}):
            y = tf.square(x)
        z = tf.tanh(tf.exp(y))
        names = [op.name for op in graph.get_operations()]
        for _ in range(3):
            with pytest.raises(ValueError, match="no gradient today"):
                tf.gradients(z, x)
        assert [op.name for op in graph.get_operations()] == names
        with tf.Session() as sess:
            assert sess.run(tf.gradients(z, y)[0]).shape == (2,)
            assert sess.run(x + 1).tolist() == [2.0, 3.0]


@both
def test_rule_gets_slices(tf, np):
    kinds = []

    def rule(op, grad):
        kinds.append(isinstance(grad, tf.IndexedSlices))
        return tf.IndexedSlices(grad.values * 2.0, grad.indices, grad.dense_shape)

    tf.RegisterGradient("TwiceTheRows")(rule)
    table = tf.get_variable("table", initializer=np.arange(8.0).reshape(4, 2), use_resource=True)
    with tf.get_default_graph().gradient_override_map({"Identity": "TwiceTheRows"}):
        same = tf.identity(table * 1.5)
    y = tf.gather(same, [1, 3, 1]) ** 2.0
    gradient = tf.gradients(y, table)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return kinds, sess.run(tf.convert_to_tensor(gradient))


@both
def test_integers_and_complex_numbers(tf, np):
    k = tf.constant([3, 4])
    found = [tf.gradients(y, k)[0] for y in (k * k, k * k * k, tf.square(k), tf.square(tf.cast(k, tf.float32)), k)]
    z = tf.constant(7 + 3j)
    errors = []
    for call in (lambda: tf.gradients(tf.square(z), z), lambda: tf.gradients(k, k, unconnected_gradients="nonsense")):
        try:
            call()
        except (TypeError, ValueError) as e:
            errors.append("%s %s" % (type(e).__name__, str(e)[:28]))
    with tf.Session() as sess:
        return [None if g is None else sess.run(g) for g in found] + errors


@both
def test_prevented(tf, np):
    x = tf.constant([1.0, 2.0])
    try:
        tf.gradients(tf.raw_ops.PreventGradient(input=x * 2.0, message="not here"), x)
    except LookupError as e:
        return str(e)
