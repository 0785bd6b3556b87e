"""tf.linalg.LinearOperator: matrices with structure.

A class defines its matrix (`_shape`, `_matmul`, `_to_dense`) and, if its structure allows a better way than the dense
matrix, `_solve`, `_log_abs_determinant` and so on.
"""

import runnel as tf
from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.framework import name_scope
from runnel.core.module import Module
from runnel.core.type_spec import CompositeTensor
from runnel.linalg import linear_operator_spec


def adjoint_of(matrix):
    """Returns the conjugate transpose of matrices."""
    matrix = tf.convert_to_tensor(matrix)
    return tf.matrix_transpose(matrix, conjugate=matrix.dtype.is_complex)


def static_batch(*shapes):
    """Returns the static shape that batches broadcast to."""
    whole = tensor_shape.TensorShape([])
    for shape in shapes:
        whole = tf.broadcast_static_shape(whole, tensor_shape.as_shape(shape))
    return whole


def dynamic_batch(*shapes):
    """Returns the shape, as a tensor, that batches broadcast to."""
    whole = shapes[0]
    for shape in shapes[1:]:
        whole = tf.broadcast_dynamic_shape(whole, shape)
    return whole


def broadcast_batches(*matrices):
    """Broadcasts the batch dimensions of matrices."""
    matrices = [tf.convert_to_tensor(matrix) for matrix in matrices]
    batches = [matrix.shape[:-2] for matrix in matrices]
    if all(batch.is_fully_defined() for batch in batches):
        whole = static_batch(*batches)
        if all(batch.as_list() == whole.as_list() for batch in batches):
            return matrices
        return [tf.broadcast_to(matrix, tf.concat([whole.as_list(), tf.shape(matrix)[-2:]], 0))
                for matrix in matrices]
    whole = dynamic_batch(*(tf.shape(matrix)[:-2] for matrix in matrices))
    return [tf.broadcast_to(matrix, tf.concat([whole, tf.shape(matrix)[-2:]], 0)) for matrix in matrices]


def matrix_triangular_solve_with_broadcast(matrix, rhs, lower=True, adjoint=False, name=None):
    """Solves triangular systems whose batches broadcast."""
    with name_scope(name, "MatrixTriangularSolve", [matrix, rhs]):
        matrix, rhs = broadcast_batches(matrix, rhs)
        return tf.matrix_triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


def matrix_solve_with_broadcast(matrix, rhs, adjoint=False, name=None):
    """Solves systems whose batches broadcast."""
    with name_scope(name, "MatrixSolve", [matrix, rhs]):
        matrix, rhs = broadcast_batches(matrix, rhs)
        return tf.matrix_solve(matrix, rhs, adjoint=adjoint)


def cholesky_solve_with_broadcast(chol, rhs, name=None):
    """Solves systems by a Cholesky factor, with batches that broadcast."""
    with name_scope(name, "CholeskySolveWithBroadcast", [chol, rhs]):
        chol, rhs = broadcast_batches(chol, rhs)
        return tf.cholesky_solve(chol, rhs)


class LinearOperator(Module, CompositeTensor):
    """A batch of matrices [..., M, N].

    It is a composite value: functions, loops and tf.nest take it apart into the tensors that its constructor was given.

    Args:
      dtype: type of the matrix.
      is_non_singular, is_self_adjoint, is_positive_definite, is_square: known properties; None if unknown.
    """

    def __init__(self, dtype, graph_parents=None, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None, is_square=None, name=None, parameters=None):
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        self._is_square_set_or_implied_by_hints = is_square
        self._graph_parents = list(graph_parents or [])
        self._dtype = dtypes.as_dtype(dtype).base_dtype if dtype is not None else None
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._operator_name = name or type(self).__name__

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        made._parameters = linear_operator_spec.arguments(cls, args, kwargs)
        return made

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        linear_operator_spec.make_spec(cls)

    # How many dimensions of each argument belong to the matrix; the others are dimensions of the batch.
    _matrix_dims: dict = {}

    def __getitem__(self, slices):
        """Returns the operators of a part of the batch."""
        return linear_operator_spec.slice_batch(self, slices)

    def _convert_variables_to_tensors(self):
        """Returns the operator with the present values of its variables."""
        from runnel import nest
        spec = self._type_spec
        return spec._from_components(nest.map_structure(
            lambda part: part._convert_variables_to_tensors() if isinstance(part, LinearOperator) else tf.convert_to_tensor(part),
            spec._to_components(self)))

    def _gradient_parts(self):
        from runnel import nest
        return nest.flatten(self._type_spec._to_components(self), expand_composites=True)

    def _with_gradients(self, gradients):
        from runnel import nest
        parts = self._gradient_parts()
        gradients = [tf.zeros_like(part, dtype=self.dtype) if gradient is None else gradient for part, gradient in zip(parts, gradients)]
        return nest.pack_sequence_as(self, gradients, expand_composites=True)

    _TF_MODULE_IGNORED_PROPERTIES = Module._TF_MODULE_IGNORED_PROPERTIES | {"_graph_parents", "_parameters"}

    name = property(lambda self: self._operator_name)
    dtype = property(lambda self: self._dtype)
    parameters = property(lambda self: dict(self._parameters))
    graph_parents = property(lambda self: self._graph_parents)
    is_non_singular = property(lambda self: self._is_non_singular)
    is_self_adjoint = property(lambda self: self._is_self_adjoint)
    is_positive_definite = property(lambda self: self._is_positive_definite)

    @property
    def is_square(self):
        """Whether it is square, by its shape or as declared."""
        known = self.domain_dimension == self.range_dimension
        said = self._is_square_set_or_implied_by_hints
        if said is False and known:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return known if said is None else said

    def _name_scope(self, name):
        return name_scope("%s/%s" % (self.name, name))

    # Shapes.

    @property
    def shape(self):
        """The static shape."""
        return self._shape()

    def _shape_tensor(self):
        return tf.shape(self.to_dense())

    def shape_tensor(self, name="shape_tensor"):
        """Returns the shape as a tensor."""
        with self._name_scope(name):
            if self.shape.is_fully_defined():
                return tf.convert_to_tensor(self.shape.as_list(), dtypes.int32)
            return self._shape_tensor()

    @property
    def batch_shape(self):
        return self.shape[:-2]

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        with self._name_scope(name):
            return self.shape_tensor()[:-2]

    @property
    def tensor_rank(self):
        return self.shape.ndims

    def tensor_rank_tensor(self, name="tensor_rank_tensor"):
        with self._name_scope(name):
            return tf.size(self.shape_tensor())

    def _dimension(self, i):
        shape = self.shape
        return tensor_shape.Dimension(None if shape.ndims is None else shape.as_list()[i])

    @property
    def domain_dimension(self):
        return self._dimension(-1)

    @property
    def range_dimension(self):
        return self._dimension(-2)

    def domain_dimension_tensor(self, name="domain_dimension_tensor"):
        with self._name_scope(name):
            return self.shape_tensor()[-1]

    def range_dimension_tensor(self, name="range_dimension_tensor"):
        with self._name_scope(name):
            return self.shape_tensor()[-2]

    def _check_input_dtype(self, arg):
        """Raises TypeError if the operator cannot be applied to a tensor of that type."""
        if arg.dtype.base_dtype != self.dtype:
            raise TypeError("Expected argument to have dtype %s.  Found: %s in tensor %s" % (self.dtype, arg.dtype, arg))

    # Products and solutions.

    def _argument(self, x, adjoint, adjoint_arg):
        x = tf.convert_to_tensor(x, dtype=self.dtype, name="x")
        inner = self.range_dimension if adjoint else self.domain_dimension
        given = x.shape[-1 if adjoint_arg else -2] if x.shape.ndims is not None else None
        inner.assert_is_compatible_with(tensor_shape.Dimension(given))
        return x

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """Returns A X, or the product with another operator."""
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            with self._name_scope(name):
                return _product(left, right)
        with self._name_scope(name):
            return self._matmul(self._argument(x, adjoint, adjoint_arg), adjoint, adjoint_arg)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return tf.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def __matmul__(self, other):
        return self.matmul(other)

    def matvec(self, x, adjoint=False, name="matvec"):
        """Returns A x, for vectors."""
        with self._name_scope(name):
            x = tf.convert_to_tensor(x, dtype=self.dtype, name="x")
            return tf.squeeze(self.matmul(x[..., tf.newaxis], adjoint=adjoint), axis=-1)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """Returns X with A X = rhs; for an operator, the operator A^-1 rhs."""
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        if self.is_square is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to not be square.")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            with self._name_scope(name):
                return left.inverse().matmul(rhs.adjoint() if adjoint_arg else rhs)
        with self._name_scope(name):
            return self._solve(self._argument(rhs, adjoint, adjoint_arg), adjoint, adjoint_arg)

    def _can_use_cholesky(self):
        return self.is_self_adjoint and self.is_positive_definite

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return cholesky_solve_with_broadcast(tf.cholesky(self.to_dense()), rhs)
        return matrix_solve_with_broadcast(self.to_dense(), rhs, adjoint=adjoint)

    def solvevec(self, rhs, adjoint=False, name="solve"):
        """Returns x with A x = rhs, for vectors."""
        with self._name_scope(name):
            rhs = tf.convert_to_tensor(rhs, dtype=self.dtype, name="rhs")
            return tf.squeeze(self.solve(rhs[..., tf.newaxis], adjoint=adjoint), axis=-1)

    # Derived operators.

    def adjoint(self, name="adjoint"):
        """Returns the conjugate transpose, an operator."""
        if self.is_self_adjoint:
            return self
        with self._name_scope(name):
            return self._linop_adjoint()

    H = property(adjoint)

    def _linop_adjoint(self):
        from runnel.linalg.linear_operator_made import LinearOperatorAdjoint
        return LinearOperatorAdjoint(self, is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                                     is_positive_definite=self.is_positive_definite, is_square=self.is_square)

    def inverse(self, name="inverse"):
        """Returns the inverse, an operator."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._name_scope(name):
            return self._linop_inverse()

    def _linop_inverse(self):
        from runnel.linalg.linear_operator_made import LinearOperatorInversion
        return LinearOperatorInversion(self, is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                                       is_positive_definite=self.is_positive_definite, is_square=self.is_square)

    def cholesky(self, name="cholesky"):
        """Returns the Cholesky factor, an operator."""
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        with self._name_scope(name):
            return self._linop_cholesky()

    def _linop_cholesky(self):
        from runnel.linalg.linear_operator_kinds import LinearOperatorLowerTriangular
        return LinearOperatorLowerTriangular(tf.cholesky(self.to_dense()), is_non_singular=True,
                                             is_self_adjoint=False, is_square=True)

    # Values.

    def to_dense(self, name="to_dense"):
        """Returns the matrix."""
        with self._name_scope(name):
            return self._to_dense()

    def _to_dense(self):
        size = self.domain_dimension_tensor() if self.shape.ndims is None or self.shape.as_list()[-1] is None else (
            self.shape.as_list()[-1])
        batch = self.batch_shape.as_list() if self.batch_shape.is_fully_defined() else self.batch_shape_tensor()
        return self._matmul(tf.eye(size, batch_shape=batch, dtype=self.dtype))

    def diag_part(self, name="diag_part"):
        """Returns the main diagonal."""
        with self._name_scope(name):
            return self._diag_part()

    def _diag_part(self):
        return tf.matrix_diag_part(self.to_dense())

    def trace(self, name="trace"):
        """Returns the sum of the main diagonal."""
        with self._name_scope(name):
            return self._trace()

    def _trace(self):
        return tf.reduce_sum(self.diag_part(), axis=-1)

    def add_to_tensor(self, x, name="add_to_tensor"):
        """Returns A + x."""
        with self._name_scope(name):
            return self._add_to_tensor(tf.convert_to_tensor(x, dtype=self.dtype, name="x"))

    def _add_to_tensor(self, x):
        return self.to_dense() + x

    def determinant(self, name="det"):
        """Returns the determinant."""
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        with self._name_scope(name):
            return self._determinant()

    def _determinant(self):
        if self._can_use_cholesky():
            return tf.exp(self.log_abs_determinant())
        return tf.matrix_determinant(self.to_dense())

    def log_abs_determinant(self, name="log_abs_det"):
        """Returns the logarithm of the determinant's absolute value."""
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        with self._name_scope(name):
            return self._log_abs_determinant()

    def _log_abs_determinant(self):
        if self._can_use_cholesky():
            return 2 * tf.reduce_sum(tf.log(tf.matrix_diag_part(tf.cholesky(self.to_dense()))), axis=-1)
        return tf.linalg.slogdet(self.to_dense())[1]

    def eigvals(self, name="eigvals"):
        """Returns the eigenvalues of a self-adjoint matrix."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        with self._name_scope(name):
            return self._eigvals()

    def _eigvals(self):
        return tf.linalg.eigvalsh(self.to_dense())

    def cond(self, name="cond"):
        """Returns the condition number."""
        with self._name_scope(name):
            return self._cond()

    def _cond(self):
        values = tf.abs(self._eigvals() if self.is_self_adjoint else tf.linalg.svd(self.to_dense(), compute_uv=False))
        return tf.reduce_max(values, axis=-1) / tf.reduce_min(values, axis=-1)

    # Checks.

    def assert_non_singular(self, name="assert_non_singular"):
        """Returns an operation that fails if the matrix is singular."""
        with self._name_scope(name):
            return self._assert_non_singular()

    def _assert_non_singular(self):
        return tf.assert_less(self.cond(), tf.cast(1.0 / _epsilon(self.dtype), self.dtype.real_dtype),
                              message="Singular matrix up to precision epsilon.")

    def assert_positive_definite(self, name="assert_positive_definite"):
        """Returns an operation that fails if the matrix is not positive definite."""
        with self._name_scope(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self):
        if self.is_self_adjoint:
            diagonal = tf.matrix_diag_part(tf.cholesky(self.to_dense()))
            return tf.assert_positive(diagonal, message="Matrix was not positive definite.")
        raise NotImplementedError("assert_positive_definite is not implemented.")

    def assert_self_adjoint(self, name="assert_self_adjoint"):
        """Returns an operation that fails if the matrix is not self-adjoint."""
        with self._name_scope(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self):
        dense = self.to_dense()
        return tf.assert_equal(dense, adjoint_of(dense), message="Matrix was not equal to its adjoint.")


def _epsilon(dtype):
    import numpy as np
    return np.finfo(dtype.real_dtype.as_numpy_dtype).eps


def _product(left, right):
    """Returns the operator of a product; products of simple kinds stay simple."""
    from runnel.linalg import linear_operator_kinds as kinds
    from runnel.linalg.linear_operator_circulant import _Circulant
    from runnel.linalg.linear_operator_made import LinearOperatorComposition
    if isinstance(left, _Circulant) and isinstance(right, _Circulant) and left.block_depth == right.block_depth:
        return left.times(right)
    if isinstance(left, kinds.LinearOperatorZeros) and left.is_square and right.is_square:
        return left
    if isinstance(right, kinds.LinearOperatorZeros) and left.is_square and right.is_square:
        return right
    if isinstance(left, kinds.LinearOperatorIdentity):
        return right
    if isinstance(right, kinds.LinearOperatorIdentity):
        return left
    hints = dict(is_non_singular=_both(left.is_non_singular, right.is_non_singular),
                 is_square=_both(left.is_square, right.is_square))
    if isinstance(left, kinds.LinearOperatorScaledIdentity) and isinstance(right, kinds.LinearOperatorScaledIdentity):
        return kinds.LinearOperatorScaledIdentity(left.domain_dimension_tensor(), left.multiplier * right.multiplier, **hints)
    for one, two in ((left, right), (right, left)):
        if isinstance(one, kinds.LinearOperatorDiag) and isinstance(two, kinds.LinearOperatorScaledIdentity):
            return kinds.LinearOperatorDiag(one.diag * two.multiplier[..., tf.newaxis], **hints)
    if isinstance(left, kinds.LinearOperatorDiag) and isinstance(right, kinds.LinearOperatorDiag):
        return kinds.LinearOperatorDiag(left.diag * right.diag, **hints)
    if isinstance(left, kinds.LinearOperatorDiag) and isinstance(right, kinds.LinearOperatorLowerTriangular):
        return kinds.LinearOperatorLowerTriangular(left.diag[..., tf.newaxis] * right.to_dense(), **hints)
    if isinstance(left, kinds.LinearOperatorLowerTriangular) and isinstance(right, kinds.LinearOperatorDiag):
        return kinds.LinearOperatorLowerTriangular(left.matmul(right.to_dense()), **hints)
    return LinearOperatorComposition([left, right], **hints)


def _both(one, two):
    if one and two:
        return True
    return False if one is False or two is False else None
