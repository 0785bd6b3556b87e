"""Matrix decompositions, linear operators, tf.compat.v2, and names that other packages use."""

import pytest
from both import both


@both
def test_factors(tf, np):
    a = np.random.RandomState(0).randn(2, 4, 3)
    square = a[:, :3]
    q, r = tf.linalg.qr(a)
    full_q, full_r = tf.linalg.qr(a, full_matrices=True)
    s, u, v = tf.linalg.svd(a)
    e, w = tf.linalg.eigh(square + np.swapaxes(square, 1, 2))
    sign, size = tf.linalg.slogdet(square)
    rebuilt = tf.matmul(u * s[:, None, :], v, adjoint_b=True)
    again = tf.matmul(w * e[:, None, :], w, adjoint_b=True)
    with tf.Session() as sess:
        return sess.run([q, r, full_q, full_r, s, rebuilt, e, again, sign, size, tf.svd(a, compute_uv=False),
                         tf.self_adjoint_eigvals(square), tf.linalg.matrix_rank(a), tf.linalg.pinv(a),
                         tf.norm(tf.constant(a), ord=2, axis=[1, 2])])


@both
def test_norms(tf, np):
    """Of complex numbers, of shapes that are known only in the step, and with the dimensions that are left."""
    a = np.random.RandomState(3).randn(2, 3, 4).astype(np.float32)
    z = (a + 1j * a[:, ::-1]).astype(np.complex64)
    fed = tf.placeholder(tf.float32, None)
    found = [tf.norm(z, 2, [1, 2]), tf.norm(z, 1, [0, 2], keepdims=True), tf.norm(a, 2, [0, 1], keepdims=True), tf.norm(a, 2, [-1, 0]),
             tf.norm(fed, 2, [-2, -1]), tf.norm(fed, 2, [0, 2], keepdims=True), tf.norm(fed, 2, [2, 0])]
    for order in "euclidean", 1, 2, np.inf:
        for axis in None, 1, [1, 2]:
            found += tf.linalg.normalize(z, order, axis)
    with tf.Session() as sess:
        return sess.run(found, {fed: a}), [x.dtype.name for x in found]


@both
def test_orthogonal_values(tf, np):
    tf.set_random_seed(4)
    tall = tf.get_variable("tall", [5, 3], initializer=tf.orthogonal_initializer(seed=1))
    wide = tf.get_variable("wide", [2, 2, 3, 20], initializer=tf.orthogonal_initializer(gain=2.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([tall, wide]), [op.name for op in tf.get_default_graph().get_operations()]


@both
def test_gradients_of_factors(tf, np):
    """Of functions that do not depend on the signs of the vectors."""
    def slopes(shape, function):
        x = tf.constant(np.random.RandomState(1).randn(*shape))
        return tf.gradients(function(x), x)[0]

    weights = np.random.RandomState(2).randn(5, 5)

    def singular(x):
        s, u, v = tf.linalg.svd(x)
        return tf.reduce_sum(s) + tf.reduce_sum(u ** 2 * weights[:u.shape[0], :u.shape[1]]) + tf.reduce_sum(
            v ** 2 * weights[:v.shape[0], :v.shape[1]])

    def eigen(x):
        e, v = tf.linalg.eigh(x)
        return tf.reduce_sum(e ** 3) + tf.reduce_sum(v ** 2 * weights[:4, :4])

    with tf.Session() as sess:
        return sess.run([slopes((4, 4), singular), slopes((5, 3), singular), slopes((3, 5), singular),
                         slopes((4, 4), eigen), slopes((4, 4), lambda x: tf.linalg.slogdet(x)[1]),
                         slopes((5, 3), lambda x: tf.linalg.qr(x)[0] * weights[:5, :3]),
                         slopes((3, 3), lambda x: tf.linalg.qr(x)[1] * weights[:3, :3]),
                         slopes((4, 3), lambda x: tf.svd(x, compute_uv=False) ** 2),
                         slopes((3, 3), lambda x: tf.self_adjoint_eigvals(x) ** 2)])


@both
def test_linear_operators(tf, np):
    linalg = tf.linalg
    draw = np.random.RandomState(3)
    lower = np.tril(draw.rand(3, 3)) + np.eye(3)
    positive = lower @ lower.T
    x = draw.rand(3, 2)
    operators = [
        linalg.LinearOperatorFullMatrix(positive, is_self_adjoint=True, is_positive_definite=True),
        linalg.LinearOperatorFullMatrix(np.stack([lower, positive])),
        linalg.LinearOperatorDiag(np.array([1.0, -2.0, 3.0])),
        linalg.LinearOperatorLowerTriangular(lower),
        linalg.LinearOperatorIdentity(3, dtype=tf.float64),
        linalg.LinearOperatorScaledIdentity(3, np.float64(2.5)),
        linalg.LinearOperatorHouseholder(np.array([0.6, 0.0, 0.8])),
        linalg.LinearOperatorLowRankUpdate(linalg.LinearOperatorDiag(np.array([1.0, 2.0, 3.0]), is_positive_definite=True),
                                           draw.rand(3, 1), np.array([0.5]), is_diag_update_positive=True),
        linalg.LinearOperatorBlockDiag([linalg.LinearOperatorDiag(np.array([2.0])),
                                        linalg.LinearOperatorFullMatrix(positive[:2, :2])]),
    ]
    operators.append(linalg.LinearOperatorComposition([operators[2], operators[3]]))
    operators.append(linalg.LinearOperatorAdjoint(operators[3]))
    operators.append(linalg.LinearOperatorInversion(operators[3]))
    results = [[op.to_dense(), op.matmul(x), op.solve(x), op.matmul(x, adjoint=True), op.solve(x, adjoint=True),
                op.matvec(x[:, 0]), op.solvevec(x[:, 0]), op.determinant(), op.log_abs_determinant(), op.diag_part(),
                op.trace(), op.add_to_tensor(positive), op.matmul(x.T, adjoint_arg=True), op.shape_tensor()]
               for op in operators]
    big = linalg.LinearOperatorKronecker([operators[3], operators[2]])
    zeros = linalg.LinearOperatorZeros(3, dtype=tf.float64)
    results.append([big.to_dense(), big.solve(np.ones((9, 1))), big.log_abs_determinant(), zeros.to_dense(), zeros.matmul(x),
                    operators[0].cholesky().to_dense(), operators[2].inverse().to_dense(), operators[0].cond()])
    hints = [(str(op.shape), op.is_square, op.is_non_singular, op.is_self_adjoint) for op in operators]
    with tf.Session() as sess:
        return sess.run(results), hints


@both
def test_operators_refuse(tf, np):
    linalg = tf.linalg
    texts = []
    for make in (lambda: linalg.LinearOperatorDiag(np.ones(2), is_self_adjoint=False),
                 lambda: linalg.LinearOperatorIdentity(2, is_non_singular=False),
                 lambda: linalg.LinearOperatorFullMatrix(np.ones((2, 2)), is_non_singular=False).solve(np.ones((2, 1))),
                 lambda: linalg.LinearOperatorFullMatrix(np.ones((2, 2)), is_non_singular=False, is_positive_definite=True)):
        try:
            make()
        except Exception as error:
            texts.append(type(error).__name__)
    return texts


@both
def test_second_version(tf, np):
    v2 = tf.compat.v2
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    values = [v2.reduce_sum(x, 0, True), v2.transpose(x, [1, 0], False), v2.where([[True], [False]], x, 0.0),
              v2.math.argmax(x, 1, tf.int32), v2.gather(x, [1], None, 1), v2.size(x, tf.int64), v2.zeros_like(input=x),
              v2.nn.softmax_cross_entropy_with_logits(x, x), v2.nn.moments(x, [0], None, True)[0], v2.pad(x, [[0, 1], [0, 0]], "CONSTANT", 7),
              v2.expand_dims(x, 0), v2.math.count_nonzero(x), v2.nn.conv2d(x[None, :, :, None], np.ones((1, 1, 1, 1), "f"), 1, "SAME"),
              v2.boolean_mask(x, [True, False], 0), v2.squeeze(x[None], 0), v2.convert_to_tensor([1, 2], None, tf.float32)]
    variable = v2.Variable(3.0, name="v")
    with v2.name_scope("a"):
        name = tf.constant(1.0).name
    with tf.Session() as sess:
        sess.run(variable.initializer)
        return sess.run(values), name, variable.name, isinstance(variable, v2.Variable), hasattr(v2, "placeholder")


@both
def test_numpy_scalars(tf, np):
    with tf.Session() as sess:
        return sess.run([tf.constant(np.float32(23.0), tf.int32), tf.constant(1) < np.float32(23.0),
                         tf.constant(1) + np.float64(2), tf.convert_to_tensor(np.float64(2), tf.int32)])


@both
def test_paths_of_nests(tf, np):
    from tensorflow.python.util import nest
    value = {"b": [1, (2, 3)], "a": 4}
    return [nest.flatten_with_tuple_paths(value), nest.flatten_with_joined_string_paths(value),
            nest.map_structure_with_paths(lambda path, leaf: path + str(leaf), value)]


@both
def test_parts_of_modules(tf, np):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(1.0, use_resource=True, name="w")

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            self.z = [Inner(), Inner()]
            self.b = {"k": tf.Variable(2.0, use_resource=True, trainable=False, name="b")}

    module = Outer()
    return ([v.name for v in module.variables], [v.name for v in module.trainable_variables], len(module.submodules),
            [path for path, _ in module._flatten(predicate=lambda leaf: hasattr(leaf, "initializer"), with_path=True)])


def test_backend_of_keras():
    import numpy as np
    import runnel as tf
    backend = tf.keras.backend
    inputs = np.arange(24, dtype="f").reshape(2, 4, 3)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)

    def step(x, states):
        total = x + states[0]
        return total, [total]

    for unroll in (False, True):
        with tf.Graph().as_default(), tf.Session() as sess:
            start = [tf.zeros([2, 3])]
            last, outputs, states = backend.rnn(step, tf.constant(inputs), start, unroll=unroll)
            masked, _, _ = backend.rnn(step, tf.constant(inputs), start, mask=tf.constant(mask), unroll=unroll)
            back, _, _ = backend.rnn(step, tf.constant(inputs), start, go_backwards=True, unroll=unroll)
            found = sess.run([last, outputs, states[0], masked, back])
        sums = np.cumsum(inputs, 1)
        assert all(np.array_equal(a, b) for a, b in zip(found, [
            sums[:, -1], sums, sums[:, -1], np.stack([sums[0, 1], sums[1, 3]]), sums[:, -1]]))
    with tf.Graph().as_default():
        assert [backend.get_uid("x"), backend.get_uid("x"), backend.get_uid("y")] == [1, 2, 1]
        x = backend.placeholder((2,))
        total = backend.variable(0.0)
        add = backend.function([x], [backend.sum(x)], updates=[(total, total + backend.sum(x))])
        assert add([[1.0, 2.0]]) == [3.0] and add([[1.0, 1.0]]) == [2.0] and backend.get_value(total) == 5.0


def test_custom_objects():
    import runnel as tf
    utils = tf.keras.utils

    class Half(tf.keras.layers.Layer):
        def call(self, x):
            return x / 2

    with utils.custom_object_scope({"Half": Half}):
        layer = tf.keras.layers.deserialize({"class_name": "Half", "config": {}})
    assert isinstance(layer, Half) and "Half" not in utils.get_custom_objects()
    with pytest.raises((ValueError, AttributeError)):
        tf.keras.layers.deserialize({"class_name": "Half", "config": {}})
    saved = tf.keras.regularizers.serialize(tf.keras.regularizers.l2(0.5))
    assert saved == {"class_name": "L1L2", "config": {"l1": 0.0, "l2": 0.5}}
    assert tf.keras.regularizers.deserialize(saved).l2 == 0.5
