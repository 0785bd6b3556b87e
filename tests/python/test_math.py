"""Arithmetic, operators, reductions: values and graphs."""

from both import both


@both(graph=True)
def test_operators(tf, np):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    i = tf.constant([[5, -7, 9]], name="i")
    rows = [x + 1, 1 + x, x - 2.0, 2 - x, x * 3, 3 * x, x / 2, 2 / x, x // 2, x % 2, x ** 2, 2.0 ** x, -x, abs(x),
            x < 2, x <= 2, x > 2, x >= 2, i + 1, i / 2, 7 / i, i // 2, i % 4, ~(x > 1), (x > 1) & (x < 3),
            (x > 1) | (x < 0), (x > 1) ^ (x < 3), x @ tf.ones([3, 2]), x + np.float32(2), np.ones([1, 3], np.float32) * x]
    with tf.Session() as sess:
        return sess.run(rows, {x: [[1.0, 2.0, 3.0], [4.0, 0.5, -6.0]]})


@both(graph=True)
def test_slices(tf, np):
    x = tf.placeholder(tf.float32, [2, 3, 4], name="x")
    n = tf.constant(1)
    rows = [x[0], x[-1], x[:, 1], x[..., 2], x[:, :, 1:3], x[::-1], x[:, tf.newaxis, 0], x[0, 1, 2], x[:, 1:2, ::2],
            x[n], x[n:, 0], x[..., tf.newaxis], x[:1], x[1:, ...]]
    with tf.Session() as sess:
        return sess.run(rows, {x: np.arange(24.0).reshape(2, 3, 4)})


@both(graph=True)
def test_reductions(tf, np):
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)
    u = tf.placeholder(tf.float32)
    rows = [tf.reduce_sum(x), tf.reduce_sum(x, 0), tf.reduce_mean(x, axis=[0, 1]), tf.reduce_max(x, 1, keepdims=True),
            tf.reduce_min(x, axis=-1), tf.reduce_prod(x), tf.reduce_all(x > -1), tf.reduce_any(x > 1, axis=0),
            tf.reduce_sum(u), tf.reduce_sum(x, reduction_indices=[1]), tf.reduce_mean(x, 1, keep_dims=True),
            tf.argmax(x, 1), tf.argmin(x, axis=0), tf.cumsum(x, axis=1), tf.cumprod(x, exclusive=True),
            tf.reduce_logsumexp(x, axis=1), tf.add_n([x, x, x]), tf.count_nonzero(x)]
    with tf.Session() as sess:
        return sess.run(rows, {u: np.ones((2, 2), np.float32)})


@both(graph=True)
def test_products(tf, np):
    a = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    b = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    c = tf.constant(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    rows = [tf.matmul(a, b), tf.matmul(a, a, transpose_b=True), tf.matmul(c, c, transpose_a=True), tf.matmul(c, c, adjoint_b=True),
            tf.tensordot(a, b, 1), tf.tensordot(c, b, [[1, 2], [0, 1]]), tf.tensordot(a, c, axes=[[1], [1]])]
    with tf.Session() as sess:
        return sess.run(rows)


@both
def test_einsum(tf, np):
    a = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    b = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    c = tf.constant(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    rows = [tf.einsum("ij,jk->ik", a, b), tf.einsum("ij,jk", a, b), tf.einsum("bij->bji", c), tf.einsum("bij,ij->b", c, b),
            tf.einsum("ii->i", tf.ones([3, 3])), tf.einsum("...j,jk->...k", a, b)]
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_elementwise(tf, np):
    x = tf.constant([0.1, 0.5, 0.9], name="x")
    rows = [f(x) for f in (tf.sin, tf.cos, tf.tan, tf.exp, tf.log, tf.sqrt, tf.rsqrt, tf.square, tf.abs, tf.sign, tf.floor, tf.ceil,
                           tf.round, tf.sigmoid, tf.tanh, tf.negative, tf.reciprocal, tf.erf, tf.lgamma, tf.digamma, tf.log1p, tf.expm1,
                           tf.acos, tf.asin, tf.atan, tf.is_nan, tf.is_finite, tf.log_sigmoid)]
    rows += [f(x, 0.5) for f in (tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum, tf.pow, tf.squared_difference,
                                 tf.truediv, tf.floordiv, tf.floormod, tf.atan2, tf.equal, tf.not_equal, tf.less, tf.greater, tf.div, tf.div_no_nan)]
    rows += [tf.clip_by_value(x, 0.2, 0.6), tf.cast(x, tf.int32), tf.cast(x, tf.float64), tf.to_float([1, 2]), tf.saturate_cast([300.0], tf.uint8)]
    rows += [tf.complex(x, x), tf.real(tf.complex(x, x)), tf.conj(tf.complex(x, x)), tf.logical_and([True], [False]), tf.logical_xor([True], [False])]
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_ranges(tf, np):
    rows = [tf.range(5), tf.range(2, 8), tf.range(1, 9, 3), tf.range(0.0, 1.0, 0.25), tf.range(3, dtype=tf.int64)]
    with tf.Session() as sess:
        return sess.run(rows)


@both(raises=True)
def test_wrong_types(tf, np):
    return tf.constant(1.0) + tf.constant(1)


@both(raises=True)
def test_wrong_shapes(tf, np):
    return tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))


@both
def test_linspace(tf, np):
    with tf.Session() as sess:
        return sess.run([tf.linspace(0.0, 1.0, 5), tf.lin_space(2.0, 4.0, 3)])


@both(graph=True)
def test_tensordot_unknown(tf, np):
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    c = tf.tensordot(a, b, 1)
    with tf.Session() as sess:
        return sess.run(c, {a: np.ones((2, 3)), b: np.arange(12.).reshape(3, 4)})


@both(graph=True)
def test_tensordot_lists(tf, np):
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None, 3, None])
    c = tf.tensordot(a, b, [[-1, 0], [1, 2]])
    with tf.Session() as sess:
        return sess.run(c, {a: np.arange(24.).reshape(4, 2, 3), b: np.arange(24.).reshape(2, 3, 4)})


@both
def test_segment_mean_unknown(tf, np):
    a = tf.placeholder(tf.float32)
    c = [tf.unsorted_segment_mean(a, [0, 2, 0], 3), tf.unsorted_segment_sqrt_n(a, [0, 2, 0], 3)]
    with tf.Session() as sess:
        return sess.run(c, {a: np.arange(6.).reshape(3, 2)})
