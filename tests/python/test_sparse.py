"""Sparse tensors and sets."""

from both import both


def make(tf):
    return (tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3]), tf.SparseTensor([[0, 0], [1, 2]], [4.0, 5.0], [2, 3]))


@both
def test_sums_and_products(tf, np):
    a, b = make(tf)
    d = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    with tf.Session() as sess:
        return sess.run([tf.sparse_add(a, b), tf.sparse_add(a, d), tf.sparse_tensor_dense_matmul(a, tf.transpose(d)), tf.sparse_tensor_dense_matmul(a, d, adjoint_a=True),
                         tf.sparse_maximum(a, b), tf.sparse_minimum(a, b), tf.sparse_softmax(a), tf.sparse_reduce_sum(a, 1), tf.sparse_reduce_sum(a), tf.sparse_reduce_max(a, axis=0, keepdims=True),
                         tf.sparse_reduce_sum_sparse(a, 1), -a.values, tf.negative(a), tf.cast(a, tf.int32)])


@both
def test_shapes(tf, np):
    a, b = make(tf)
    with tf.Session() as sess:
        return sess.run([tf.sparse_concat(1, [a, b]), tf.sparse_concat(axis=0, sp_inputs=[a, b]), tf.sparse_reshape(a, [3, 2]), tf.sparse_split(sp_input=a, num_split=3, axis=1), tf.sparse_slice(a, [0, 1], [2, 2]),
                         tf.sparse_tensor_to_dense(a), tf.sparse_tensor_to_dense(a, default_value=-1.0), tf.sparse_transpose(a), tf.sparse_retain(a, [True, False, True]), tf.sparse_reset_shape(a), tf.sparse_reset_shape(a, [4, 5]),
                         tf.sparse_fill_empty_rows(tf.SparseTensor([[0, 0]], [1.0], [3, 2]), 7.0), tf.sparse_reorder(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])), tf.sparse_to_dense([1, 3], [5], 9),
                         tf.sparse_to_indicator(tf.SparseTensor([[0, 0], [1, 0]], [2, 3], [2, 1]), 5), tf.sparse.from_dense([[0, 1], [2, 0]]), tf.sparse.eye(3), tf.sparse.expand_dims(a, 1)])


@both
def test_sets(tf, np):
    a, b = tf.constant([[1, 2, 3], [4, 5, 6]]), tf.constant([[2, 3, 9], [6, 6, 0]])
    with tf.Session() as sess:
        return sess.run([tf.sets.set_intersection(a, b), tf.sets.set_difference(a, b), tf.sets.set_union(a, b), tf.sets.set_size(tf.sets.set_union(a, b)), tf.sets.set_difference(a, b, aminusb=False)])


@both
def test_gradient(tf, np):
    values = tf.constant([1.0, 2.0, 3.0])
    a = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], values, [2, 3])
    y = tf.reduce_sum(tf.square(tf.sparse_tensor_dense_matmul(a, tf.ones([3, 2]))))
    with tf.Session() as sess:
        return sess.run(tf.gradients(y, values))


@both
def test_functions_of_values(tf, np):
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [-4.0, 9.0], [3, 2])
    rows = [f(sparse) for f in (tf.abs, tf.sign, tf.square, tf.tanh, tf.negative, tf.erf)] + [tf.sqrt(tf.abs(sparse), name="root")]
    with tf.Session() as sess:
        return [sess.run(x) for x in rows]
