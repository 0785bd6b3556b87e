"""Linear operators of TensorFlow 2 against stock: circulant, Toeplitz, permutation, tridiagonal and block matrices; operators as values."""

import pytest

pytest.importorskip("numpy")
from both import both


def _values(np, operator):
    """Returns what an operator computes."""
    rows = operator.to_dense()
    rng = np.random.RandomState(3)
    x = rng.randn(*rows.shape.as_list()[:-1], 2).astype(rows.dtype.as_numpy_dtype)
    found = [rows, operator.matmul(x), operator.matmul(x, adjoint=True), operator.solve(x), operator.solve(x, adjoint=True),
             operator.diag_part(), operator.trace(), operator.determinant(), operator.log_abs_determinant(), operator.inverse().to_dense(),
             operator.adjoint().to_dense()]
    return [list(operator.shape), operator.domain_dimension.value, operator.is_self_adjoint, operator.is_non_singular,
            operator.is_square] + [value.numpy() for value in found]


@both(v2=True, rtol=1e-4, atol=1e-5)
def test_circulant(tf, np):
    rng = np.random.RandomState(0)
    one = (rng.randn(2, 4) + 1j * rng.randn(2, 4)).astype(np.complex64)
    return [_values(np, tf.linalg.LinearOperatorCirculant(one)),
            _values(np, tf.linalg.LinearOperatorCirculant(np.array([4.0, 2.0, 1.0, 2.0]), input_output_dtype=tf.float64)),
            _values(np, tf.linalg.LinearOperatorCirculant2D((rng.randn(2, 3) + 3j).astype(np.complex64))),
            _values(np, tf.linalg.LinearOperatorCirculant3D((rng.randn(2, 2, 2) + 3j).astype(np.complex64))),
            tf.linalg.LinearOperatorCirculant(one[0]).convolution_kernel().numpy()]


@both(v2=True, rtol=1e-4, atol=1e-5)
def test_toeplitz_permutation_tridiag(tf, np):
    rng = np.random.RandomState(1)
    column, row, diagonals = rng.randn(2, 4), rng.randn(2, 4), rng.randn(2, 3, 4)
    row[:, 0] = column[:, 0] = 5
    diagonals[:, 1] += 5
    made = [tf.linalg.LinearOperatorToeplitz(column, row), tf.linalg.LinearOperatorPermutation([[2, 0, 1, 3], [0, 1, 3, 2]], tf.float64),
            tf.linalg.LinearOperatorTridiag(diagonals), tf.linalg.LinearOperatorTridiag(list(diagonals[0]), "sequence"),
            tf.linalg.LinearOperatorTridiag(tf.linalg.LinearOperatorTridiag(diagonals).to_dense(), "matrix")]
    return [_values(np, operator) for operator in made]


def _blocks(tf, np):
    rng = np.random.RandomState(2)
    full = tf.linalg.LinearOperatorFullMatrix
    return [[full(rng.randn(2, 2) + 3 * np.eye(2), is_non_singular=True)], [full(rng.randn(3, 2)), full(rng.randn(3, 3) + 3 * np.eye(3), is_non_singular=True)]]


@both(v2=True, rtol=1e-4, atol=1e-5)
def test_blocks(tf, np):
    rows = _blocks(tf, np)
    lower = tf.linalg.LinearOperatorBlockLowerTriangular(rows)
    diagonal = tf.linalg.LinearOperatorBlockDiag([rows[0][0], rows[1][1]])
    parts = [np.ones([2, 1]), np.full([3, 1], 2.0)]
    lists = [operator_method(parts) for operator in (lower, diagonal) for operator_method in (operator.matmul, operator.solve)]
    return [_values(np, lower), _values(np, diagonal), [[part.numpy() for part in found] for found in lists],
            [part.numpy() for part in lower.matvec([part[:, 0] for part in parts], adjoint=True)]]


@both(v2=True, raises=True, message=True)
def test_rows_of_blocks(tf, np):
    rows = _blocks(tf, np)
    tf.linalg.LinearOperatorBlockLowerTriangular([rows[0], rows[1][1:]])


@both(v2=True, raises=True, message=True)
def test_not_a_permutation(tf, np):
    tf.linalg.LinearOperatorPermutation([0, 2, 2])


@both(v2=True, raises=True, message=True)
def test_square_after_all(tf, np):
    return tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]], is_square=False).is_square


@both(v2=True)
def test_operators_are_values(tf, np):
    operator = tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorDiag([1.0, 2.0]), tf.linalg.LinearOperatorScaledIdentity(2, 3.0)])
    flat = tf.nest.flatten(operator, expand_composites=True)
    again = tf.nest.pack_sequence_as(operator, flat, expand_composites=True)
    product = tf.function(lambda op, x: op.matmul(x))(operator, np.ones([4, 1], np.float32))
    batch = tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(np.arange(12.0).reshape(3, 4) + 1), np.ones([4, 1]))
    kinds = [getattr(tf.linalg, "LinearOperatorCirculant" + depth) for depth in ("", "2D", "3D")]
    specs = [type(kind(np.ones([2, 2, 2], np.complex64))._type_spec).__name__ for kind in kinds]
    return specs + [[part.numpy() for part in flat], type(again).__name__, again.to_dense().numpy(), product.numpy(),
            batch[1:].to_dense().numpy(), batch[..., 2].to_dense().numpy(), type(batch[0]).__name__]


@both(v2=True)
def test_gradients_of_composite_values(tf, np):
    operator = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([operator, ragged])
        product = operator.matmul([[3.0], [5.0]])
        squares = ragged * ragged
    found = tape.gradient(squares, ragged)
    return [tape.gradient(product, operator).diag.numpy(), found.flat_values.numpy(), found.row_splits.numpy(),
            tape.gradient(product, ragged) is None]


@both(v2=True, raises=True, message=True)
def test_no_gradient_of_sparse_tensors(tf, np):
    sparse = tf.sparse.from_dense([[0.0, 2.0], [3.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(sparse)
        total = tf.sparse.reduce_sum(sparse)
    return tape.gradient(total, sparse)
