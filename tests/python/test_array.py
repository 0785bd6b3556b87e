"""Shapes, slices, joins: values and graphs."""

from both import both


@both(graph=True)
def test_constants(tf, np):
    rows = [tf.constant(1), tf.constant(1.5), tf.constant([1, 2]), tf.constant([1, 2.5]), tf.constant("a"), tf.constant(["a", b"bc"]), tf.constant(True),
            tf.constant(2**40), tf.constant(np.float64(1)), tf.constant(np.arange(3)), tf.constant(1 + 2j), tf.constant([], tf.int32), tf.constant([[1], [2]]),
            tf.constant(3, shape=[2, 2]), tf.constant([1, 2], shape=[3]), tf.constant(1, tf.float16), tf.constant([1.5], tf.bfloat16), tf.constant(7, tf.uint8),
            tf.zeros([2, 3]), tf.ones([2], tf.int32), tf.zeros([]), tf.fill([2, 2], 7), tf.zeros_like(tf.constant([1, 2])), tf.ones_like(tf.constant([1.0])),
            tf.eye(3), tf.eye(2, 3), tf.zeros([2], tf.bool), tf.zeros([40, 40])]
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_shapes(tf, np):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    k = tf.constant(np.arange(6).reshape(2, 3))
    rows = [tf.shape(x), tf.shape(k), tf.size(x), tf.size(k), tf.rank(x), tf.reshape(x, [-1]), tf.reshape(k, [3, 2]), tf.transpose(x), tf.transpose(k, [1, 0]),
            tf.expand_dims(x, 1), tf.expand_dims(x, axis=-1), tf.squeeze(tf.expand_dims(x, 0)), tf.squeeze(tf.expand_dims(x, 0), [0]), tf.shape(x, out_type=tf.int64),
            tf.zeros_like(x), tf.ones_like(x), tf.zeros(tf.shape(x)), tf.matrix_transpose(x), tf.identity(x)]
    with tf.Session() as sess:
        return sess.run(rows, {x: np.ones((2, 3))}) + [str(r.shape) for r in rows] + [str(r) for r in rows]


@both(graph=True)
def test_joins(tf, np):
    a = tf.constant([[1, 2], [3, 4]])
    b = tf.constant([[5, 6], [7, 8]])
    rows = [tf.concat([a, b], 0), tf.concat([a, b], axis=1), tf.concat([a], 0), tf.stack([a, b]), tf.stack([a, b], axis=-1), tf.unstack(a), tf.unstack(a, axis=1), tf.split(a, 2),
            tf.split(a, [1, 1], 1), tf.tile(a, [2, 1]), tf.pad(a, [[1, 0], [0, 1]]), tf.pad(a, [[1, 0], [0, 1]], constant_values=9), tf.pad(a, [[1, 0], [0, 1]], "REFLECT"), tf.reverse(a, [0]),
            tf.stack([1, 2, 3]), tf.stack([a[0, 0], 5]), tf.roll(a, 1, 0), tf.meshgrid([1, 2], [3, 4, 5])]
    with tf.Session() as sess:
        return sess.run(rows)


@both(graph=True)
def test_gathers(tf, np):
    p = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    rows = [tf.gather(p, [2, 0]), tf.gather(p, [1], axis=1), tf.gather_nd(p, [[1, 1], [2, 2]]), tf.one_hot([0, 2], 3), tf.one_hot([1], 2, on_value=5, off_value=-1), tf.one_hot([1, 0], 2, axis=0, dtype=tf.int32),
            tf.where(p > 5), tf.where(p > 5, p, -p), tf.boolean_mask(p, [True, False, True, False]), tf.sequence_mask([1, 3], 4), tf.sequence_mask([1, 2]), tf.slice(p, [1, 0], [2, -1]),
            tf.strided_slice(p, [0, 0], [4, 3], [2, 2]), tf.scatter_nd([[1], [3]], [9.0, 8.0], [5]), tf.dynamic_stitch([[0], [1]], [[1.0], [2.0]]), tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2),
            tf.unique([1, 1, 2]), tf.invert_permutation([1, 0, 2]), tf.matrix_band_part(p, 0, -1), tf.diag([1, 2]), tf.matrix_diag([1.0, 2.0]), tf.reverse_sequence(p, [1, 2, 3, 1], seq_axis=1)]
    with tf.Session() as sess:
        return sess.run(rows)


@both(raises=True)
def test_ragged(tf, np):
    return tf.constant([[1, 2], [3]])


@both(raises=True)
def test_none(tf, np):
    return tf.constant(None)


@both(raises=True)
def test_wrong_value(tf, np):
    return tf.constant(1.5, tf.int32)


@both
def test_shapes_of_parts_that_are_known(tf, np):
    any_, x = tf.placeholder(tf.int32), tf.placeholder(tf.float32)
    k = tf.zeros([4, 4])
    rows = [tf.reshape(x, [any_, 37]), tf.tile(tf.zeros([1, 1]), [any_, 7]), tf.pad(k, [[1, 2], any_]), tf.pad(k, [[any_, 0], [1, 2]]),
            tf.pad(tf.placeholder(tf.float32, [None, 20]), [[0, any_], [0, 0]]), tf.batch_to_space(x, any_, 4), tf.zeros([2, 3])[:any_]]
    return [str(r.shape) for r in rows]


@both
def test_parts_by_numbers(tf, np):
    p = tf.constant(np.arange(24.0).reshape(2, 3, 4))
    axis = tf.placeholder_with_default(1, [])
    n = tf.placeholder(tf.int32)
    rows = [tf.gather_nd(p, [[[0], [2]], [[1], [1]]], batch_dims=1), tf.gather_nd(p, [[[1], [2], [3]], [[0], [0], [0]]], batch_dims=2),
            tf.repeat(np.ones([0, 4]), 0, axis=1), tf.repeat(p[0], [1, 0, 2], axis=0), tf.repeat(p[0], n, axis=1), tf.repeat(p[0, 0], n),
            tf.boolean_mask(p, [True, False, True], axis=axis), tf.linspace([1.0, 2.0], [5.0, 10.0], 3), tf.linspace([1.0, 2.0], 3.0, 4, axis=-1),
            tf.linspace(0.0, 1.0, 3), tf.tensordot(p, p, n + [[0, 1], [0, 1]]), tf.reduce_all([]), tf.reduce_any([], 0), tf.angle([-1.5, 0.0, 2.0]),
            p[tf.constant(1, tf.int16)], p[:, tf.Dimension(None):2]]
    with tf.Session() as sess:
        return sess.run(rows, {n: 0})


@both
def test_gradients_by_rows(tf, np):
    p, z = tf.constant(np.arange(6.0).reshape(3, 2)), tf.constant([6.0, 6.0], tf.float16)
    rows = tf.gradients(tf.gather_nd(p, [[2], [0]]) ** 2.0, p)[0]
    powers = tf.gradients(z ** z, [z], [tf.constant([0.0, 1.0], tf.float16)])[0]
    with tf.Session() as sess:
        return [type(rows).__name__, sess.run([rows.indices, rows.values, rows.dense_shape]), sess.run(powers)]


@both
def test_gradients_given_as_arrays(tf, np):
    c = tf.constant([1 + 2j, 3j])
    with tf.Session() as sess:
        return sess.run(tf.gradients(c * c, c, [np.array([1 + 1j, 2])]))
