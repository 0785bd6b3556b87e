"""Sorting, histograms, norms, namespaces, frozen graphs."""

from both import both


@both
def test_sorting(tf, np):
    x = tf.constant([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])
    i = tf.constant([5, -3, 7, -2147483648])
    with tf.Session() as sess:
        return sess.run([tf.sort(x), tf.sort(x, axis=0), tf.sort(x, direction="DESCENDING"), tf.argsort(x), tf.argsort(x, axis=0, direction="DESCENDING"), tf.sort(i), tf.sort(tf.constant([3, 250], tf.uint8))])


@both
def test_statistics(tf, np):
    x = tf.constant([0.1, 0.5, 0.9, 0.5, -1.0, 2.0])
    with tf.Session() as sess:
        return sess.run([tf.histogram_fixed_width(x, [0.0, 1.0], 4), tf.histogram_fixed_width_bins(x, [0.0, 1.0], 4), tf.confusion_matrix([0, 1, 2, 1], [0, 2, 2, 1]), tf.norm(x), tf.norm(tf.reshape(x, [2, 3]), axis=1), tf.norm(x, ord=1),
                         tf.norm(x, ord=np.inf), tf.norm(tf.reshape(x, [2, 3]), ord="fro", axis=[0, 1]), tf.lbeta([1.0, 2.0]), tf.unravel_index([3, 5], [2, 3]), tf.bincount([1, 1, 3]), tf.math.xlogy([0.0, 2.0], [0.0, 3.0]),
                         tf.math.polyval([1.0, 2.0, 3.0], 2.0), tf.math.top_k([1.0, 3.0, 2.0], 2), tf.reduce_join(["a", "b"]), tf.math.reduce_std(x), tf.math.reduce_variance(x), tf.verify_tensor_all_finite(x, "bad")])


@both
def test_linear_algebra(tf, np):
    a = tf.constant([[4.0, 1.0], [1.0, 3.0]])
    b = tf.constant([[1.0], [2.0]])
    with tf.Session() as sess:
        return sess.run([tf.cholesky(a), tf.matrix_determinant(a), tf.matrix_inverse(a), tf.matrix_solve(a, b), tf.cholesky_solve(tf.cholesky(a), b), tf.matrix_triangular_solve(tf.cholesky(a), b), tf.trace(a), tf.linalg.logdet(a),
                         tf.linalg.adjoint(tf.complex(a, a)), tf.linalg.diag([1.0, 2.0]), tf.linalg.band_part(a, 0, -1), tf.linalg.eye(2)])


@both
def test_bits(tf, np):
    a, b = tf.constant([12, 10]), tf.constant([10, 6])
    with tf.Session() as sess:
        return sess.run([tf.bitwise.bitwise_and(a, b), tf.bitwise.bitwise_or(a, b), tf.bitwise.bitwise_xor(a, b), tf.bitwise.invert(a), tf.bitwise.left_shift(a, 1), tf.bitwise.right_shift(a, 1)])


@both
def test_stateless(tf, np):
    with tf.Session() as sess:
        return sess.run([tf.random.stateless_uniform([3], [1, 2]), tf.random.stateless_normal([3], [3, 4]), tf.random.stateless_uniform([3], [5, 6], 0, 10, tf.int32), tf.random.stateless_truncated_normal([3], [7, 8])])


@both
def test_extract(tf, np):
    x = tf.placeholder(tf.float32, name="x")
    y = tf.add(x, 1.0, name="y")
    tf.multiply(y, 2.0, name="z")
    part = tf.graph_util.extract_sub_graph(tf.get_default_graph().as_graph_def(), ["y"])
    return [node.name for node in part.node]


def test_old_names():
    import warnings
    import numpy as np
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as sess, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = tf.constant([1.0, -2.0, 4.0])
        values = sess.run([tf.select(x > 0, x, -x), tf.inv(x), tf.inv(x), tf.mul(x, 2.0), tf.sub(x, 1.0), tf.neg(x), tf.pack([x, x]), tf.unpack(x), tf.listdiff([1, 2, 3], [2])])
        tf.scalar_summary("loss", tf.reduce_sum(x))
        tf.histogram_summary("x", x)
        assert len(sess.run(tf.merge_all_summaries())) > 50
    np.testing.assert_array_equal(values[0], [1, 2, 4])
    np.testing.assert_array_equal(values[1], [1, -0.5, 0.25])
    np.testing.assert_array_equal(values[6].shape, [2, 3])
    texts = [str(w.message) for w in said if w.category is DeprecationWarning]
    assert len(texts) == len(set(texts)) and "tf.inv is deprecated: use tf.reciprocal instead." in texts
