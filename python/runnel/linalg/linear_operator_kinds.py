"""Linear operators given by numbers: diagonal, triangular and full matrices, identities."""

import runnel as tf
from runnel import dtypes
from runnel.core import tensor_shape
from runnel.linalg.linear_operator import (
    LinearOperator, adjoint_of, broadcast_batches, dynamic_batch, matrix_triangular_solve_with_broadcast, static_batch)


def _given(values, name):
    """Converts `values` to a tensor. A variable is returned itself, so that each use reads its current value."""
    return values if hasattr(values, "initializer") else tf.convert_to_tensor(values, name=name)


class LinearOperatorFullMatrix(LinearOperator):
    """A dense matrix."""

    _matrix_dims = {"matrix": 2}

    def __init__(self, matrix, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorFullMatrix"):
        self._matrix = _given(matrix, "matrix")
        if self._matrix.shape.ndims is not None and self._matrix.shape.ndims < 2:
            raise ValueError("Argument matrix must have at least 2 dimensions.  Found: %s" % (self._matrix,))
        super().__init__(self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint, is_positive_definite,
                         is_square, name)

    matrix = property(lambda self: self._matrix)

    def _shape(self):
        return self._matrix.shape

    def _shape_tensor(self):
        return tf.shape(self._matrix)

    def _to_dense(self):
        return tf.convert_to_tensor(self._matrix)


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix."""

    _matrix_dims = {"diag": 1}

    def __init__(self, diag, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorDiag"):
        self._diag = _given(diag, "diag")
        if self._diag.shape.ndims is not None and self._diag.shape.ndims < 1:
            raise ValueError("Argument diag must have at least 1 dimension.  Found: %s" % (self._diag,))
        dtype = self._diag.dtype.base_dtype
        if not dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(dtype, [self._diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    diag = property(lambda self: self._diag)

    def _shape(self):
        shape = self._diag.shape
        return shape.concatenate(shape[-1:]) if shape.ndims is not None else shape

    def _shape_tensor(self):
        shape = tf.shape(self._diag)
        return tf.concat([shape, shape[-1:]], 0)

    def _column(self, adjoint):
        diag = tf.convert_to_tensor(self._diag)
        return (tf.conj(diag) if adjoint and self.dtype.is_complex else diag)[..., tf.newaxis]

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._column(adjoint) * (adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return (adjoint_of(rhs) if adjoint_arg else rhs) * (1.0 / self._column(adjoint))

    def _determinant(self):
        return tf.reduce_prod(self._diag, axis=-1)

    def _log_abs_determinant(self):
        values = tf.reduce_sum(tf.log(tf.abs(self._diag)), axis=-1)
        return tf.cast(values, self.dtype) if self.dtype.is_complex else values

    def _to_dense(self):
        return tf.matrix_diag(tf.convert_to_tensor(self._diag))

    def _diag_part(self):
        return tf.convert_to_tensor(self._diag)

    def _add_to_tensor(self, x):
        return tf.matrix_set_diag(x, tf.matrix_diag_part(x) + self._diag)

    def _eigvals(self):
        return tf.convert_to_tensor(self._diag)

    def _cond(self):
        sizes = tf.abs(self._diag)
        return tf.reduce_max(sizes, axis=-1) / tf.reduce_min(sizes, axis=-1)

    def _linop_inverse(self):
        return LinearOperatorDiag(1.0 / tf.convert_to_tensor(self._diag), is_non_singular=self.is_non_singular,
                                  is_self_adjoint=self.is_self_adjoint,
                                  is_positive_definite=self.is_positive_definite, is_square=True)

    def _linop_cholesky(self):
        return LinearOperatorDiag(tf.sqrt(self._diag), is_non_singular=True, is_self_adjoint=True,
                                  is_positive_definite=True, is_square=True)

    def _linop_adjoint(self):
        return LinearOperatorDiag(tf.conj(self._diag), is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                                  is_positive_definite=self.is_positive_definite, is_square=True)

    def _assert_non_singular(self):
        return tf.assert_positive(tf.abs(self._diag), message="Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self):
        return tf.assert_positive(tf.real(self._diag) if self.dtype.is_complex else self._diag, message=(
            "Non-positive definite operator:  Diagonal contained non-positive entries."))


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix; elements above the diagonal are taken as 0."""

    _matrix_dims = {"tril": 2}

    def __init__(self, tril, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorLowerTriangular"):
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = _given(tril, "tril")
        if self._tril.shape.ndims is not None and self._tril.shape.ndims < 2:
            raise ValueError("Argument tril must have at least 2 dimensions.  Found: %s" % (self._tril,))
        super().__init__(self._tril.dtype, [self._tril], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    tril = property(lambda self: self._tril)

    def _shape(self):
        return self._tril.shape

    def _shape_tensor(self):
        return tf.shape(self._tril)

    def _to_dense(self):
        return tf.matrix_band_part(tf.convert_to_tensor(self._tril), -1, 0)

    def _get_diag(self):
        return tf.matrix_diag_part(tf.convert_to_tensor(self._tril))

    def _diag_part(self):
        return self._get_diag()

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return matrix_triangular_solve_with_broadcast(self.to_dense(), rhs, lower=True, adjoint=adjoint)

    def _determinant(self):
        return tf.reduce_prod(self._get_diag(), axis=-1)

    def _log_abs_determinant(self):
        return tf.reduce_sum(tf.log(tf.abs(self._get_diag())), axis=-1)

    def _assert_non_singular(self):
        return tf.assert_positive(tf.abs(self._get_diag()), message="Singular operator:  Diagonal contained zero values.")

    def _eigvals(self):
        return self._diag_part()

    def _linop_inverse(self):
        eye = tf.eye(tf.shape(self._tril)[-1], dtype=self.dtype)
        return LinearOperatorLowerTriangular(self._solve(eye), is_non_singular=self.is_non_singular,
                                             is_self_adjoint=self.is_self_adjoint,
                                             is_positive_definite=self.is_positive_definite, is_square=True)


class _Sized(LinearOperator):
    """Operators given by a number of rows."""

    def _set_rows(self, rows, columns=None, batch_shape=None):
        self._num_rows = rows
        self._num_columns = rows if columns is None else columns
        self._batch_shape_arg = batch_shape

    @staticmethod
    def _number(size):
        value = tf.get_static_value(size) if isinstance(size, tf.Tensor) else size
        return None if value is None else int(value)

    def _batch(self):
        if self._batch_shape_arg is None:
            return tensor_shape.TensorShape([])
        from runnel.core.convert import constant_value_as_shape
        given = tf.convert_to_tensor(self._batch_shape_arg, dtypes.int32)
        return constant_value_as_shape(given)

    def _shape(self):
        return self._batch().concatenate([self._number(self._num_rows), self._number(self._num_columns)])

    def _batch_tensor(self):
        if self._batch_shape_arg is None:
            return tf.constant([], dtypes.int32)
        return tf.convert_to_tensor(self._batch_shape_arg, dtypes.int32)

    def _shape_tensor(self):
        return tf.concat([self._batch_tensor(), tf.stack([self._num_rows, self._num_columns])], 0)

    def _with_batch(self, x):
        """Returns x broadcast to the operator's batch dimensions."""
        batch = self.batch_shape
        if batch.ndims == 0 or batch.is_fully_defined() and x.shape[:-2].is_fully_defined() and (
                static_batch(batch, x.shape[:-2]).as_list() == x.shape[:-2].as_list()):
            return x
        whole = dynamic_batch(self.batch_shape_tensor(), tf.shape(x)[:-2])
        return tf.broadcast_to(x, tf.concat([whole, tf.shape(x)[-2:]], 0))


class LinearOperatorIdentity(_Sized):
    """The identity matrix."""

    def __init__(self, num_rows, batch_shape=None, dtype=None, is_non_singular=True, is_self_adjoint=True,
                 is_positive_definite=True, is_square=True, assert_proper_shapes=False, name="LinearOperatorIdentity"):
        if not is_self_adjoint:
            raise ValueError("An identity operator is always self adjoint.")
        if not is_non_singular:
            raise ValueError("An identity operator is always non-singular.")
        if not is_positive_definite:
            raise ValueError("An identity operator is always positive-definite.")
        if not is_square:
            raise ValueError("An identity operator is always square.")
        self._set_rows(num_rows, batch_shape=batch_shape)
        super().__init__(dtype or dtypes.float32, None, True, True, True, True, name)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._with_batch(adjoint_of(x) if adjoint_arg else x)

    _solve = _matmul

    def _to_dense(self):
        batch = self.batch_shape.as_list() if self.batch_shape.is_fully_defined() else self.batch_shape_tensor()
        return tf.eye(self._num_rows, batch_shape=batch, dtype=self.dtype)

    def _diag_part(self):
        return tf.ones(self.shape_tensor()[:-1], dtype=self.dtype)

    def _determinant(self):
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self):
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    _eigvals = _diag_part
    _cond = _determinant

    def _add_to_tensor(self, x):
        return tf.matrix_set_diag(x, tf.matrix_diag_part(x) + 1)

    def _linop_inverse(self):
        return self

    _linop_cholesky = _linop_inverse

    def _assert_non_singular(self):
        return tf.no_op("assert_non_singular")

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular


class LinearOperatorScaledIdentity(_Sized):
    """The identity matrix times a number, one per matrix of the batch."""

    _matrix_dims = {"multiplier": 0}

    def __init__(self, num_rows, multiplier, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=True, assert_proper_shapes=False, name="LinearOperatorScaledIdentity"):
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._set_rows(num_rows)
        self._multiplier = _given(multiplier, "multiplier")
        dtype = self._multiplier.dtype.base_dtype
        if not dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        super().__init__(dtype, [self._multiplier], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    multiplier = property(lambda self: self._multiplier)

    def _batch(self):
        return self._multiplier.shape

    def _batch_tensor(self):
        return tf.shape(self._multiplier)

    def _factor(self, adjoint=False):
        factor = tf.convert_to_tensor(self._multiplier)
        return (tf.conj(factor) if adjoint and self.dtype.is_complex else factor)[..., tf.newaxis, tf.newaxis]

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return (adjoint_of(x) if adjoint_arg else x) * self._factor(adjoint)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return (adjoint_of(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _to_dense(self):
        return self._factor() * tf.eye(self._num_rows, dtype=self.dtype)

    def _diag_part(self):
        return self._factor()[..., 0] * tf.ones([self._num_rows], dtype=self.dtype)

    _eigvals = _diag_part

    def _rows(self):
        return tf.cast(self._num_rows, self.dtype)

    def _trace(self):
        return self._multiplier * self._rows()

    def _determinant(self):
        return tf.pow(tf.convert_to_tensor(self._multiplier), self._rows())

    def _log_abs_determinant(self):
        return self._rows() * tf.cast(tf.log(tf.abs(self._multiplier)), self.dtype)

    def _cond(self):
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _add_to_tensor(self, x):
        return tf.matrix_set_diag(x, tf.matrix_diag_part(x) + self._factor()[..., 0])

    def _linop_inverse(self):
        return LinearOperatorScaledIdentity(self._num_rows, 1.0 / tf.convert_to_tensor(self._multiplier),
                                            self.is_non_singular, self.is_self_adjoint, self.is_positive_definite)

    def _linop_cholesky(self):
        return LinearOperatorScaledIdentity(self._num_rows, tf.sqrt(self._multiplier), True, True, True)


class LinearOperatorZeros(_Sized):
    """A matrix of zeros."""

    def __init__(self, num_rows, num_columns=None, batch_shape=None, dtype=None, is_non_singular=False,
                 is_self_adjoint=True, is_positive_definite=False, is_square=True, assert_proper_shapes=False,
                 name="LinearOperatorZeros"):
        if is_non_singular:
            raise ValueError("A zero operator is always non-invertible.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        if is_self_adjoint is False and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        self._set_rows(num_rows, num_columns, batch_shape)
        super().__init__(dtype or dtypes.float32, None, False, is_self_adjoint, False, is_square, name)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = self._with_batch(adjoint_of(x) if adjoint_arg else x)
        rows = self._num_columns if adjoint else self._num_rows
        return tf.zeros(tf.concat([tf.shape(x)[:-2], tf.stack([rows, tf.shape(x)[-1]])], 0), dtype=self.dtype)

    def _to_dense(self):
        return tf.zeros(self.shape_tensor(), dtype=self.dtype)

    def _diag_part(self):
        shape = self.shape_tensor()
        return tf.zeros(tf.concat([shape[:-2], [tf.minimum(shape[-2], shape[-1])]], 0), dtype=self.dtype)

    def _determinant(self):
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _add_to_tensor(self, x):
        return self._with_batch(x)


class LinearOperatorHouseholder(LinearOperator):
    """The reflection I - 2 v v^H of a unit vector v."""

    _matrix_dims = {"reflection_axis": 1}

    def __init__(self, reflection_axis, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=None, name="LinearOperatorHouseholder"):
        self._reflection_axis = _given(reflection_axis, "reflection_axis")
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite is True:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_non_singular is False:
            raise ValueError("A Householder operator is always non-singular.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        super().__init__(self._reflection_axis.dtype, [self._reflection_axis], is_non_singular, True,
                         is_positive_definite, True, name)

    reflection_axis = property(lambda self: self._reflection_axis)

    def _shape(self):
        shape = self._reflection_axis.shape
        return shape.concatenate(shape[-1:])

    def _shape_tensor(self):
        shape = tf.shape(self._reflection_axis)
        return tf.concat([shape, shape[-1:]], 0)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_of(x) if adjoint_arg else x
        v = tf.nn.l2_normalize(self._reflection_axis, axis=-1)[..., tf.newaxis]
        v, x = broadcast_batches(v, x)
        return x - 2 * v * tf.matmul(v, x, adjoint_a=True)

    _solve = _matmul

    def _determinant(self):
        return -tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self):
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _trace(self):
        return tf.cast(self.domain_dimension_tensor(), self.dtype) - 2 * tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _cond(self):
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _linop_inverse(self):
        return self
