"""Linear operators with few numbers per row: permutations and tridiagonal matrices."""

import numpy as np

import runnel as tf
from runnel import dtypes
from runnel.core import tensor_shape
from runnel.linalg.linear_operator import LinearOperator, adjoint_of, broadcast_batches, dynamic_batch, static_batch
from runnel.linalg.linear_operator_kinds import _given


class LinearOperatorPermutation(LinearOperator):
    """A permutation matrix: row i of a product is row perm[i] of the argument."""

    _matrix_dims = {"perm": 1}

    def __init__(self, perm, dtype=dtypes.float32, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=None, name="LinearOperatorPermutation"):
        self._perm = _given(perm, "perm")
        if self._perm.shape.ndims is not None and self._perm.shape.ndims < 1:
            raise ValueError("Argument `perm` must have at least 1 dimension. Received: %s." % (self._perm,))
        if not self._perm.dtype.is_integer:
            raise TypeError("Argument `perm` must be integer dtype. Received: %s." % (self._perm,))
        known = tf.get_static_value(self._perm)
        if known is not None and np.any(np.sort(known, axis=-1) != np.arange(known.shape[-1])):
            raise ValueError("Argument `perm` must be a vector of unique integers from 0 to %d." % (known.shape[-1] - 1))
        if is_non_singular is False:
            raise ValueError("A Permutation operator is always non-singular. Expected argument `is_non_singular` to be True. "
                             "Received: False.")
        if is_square is False:
            raise ValueError("A Permutation operator is always square. Expected argument `is_square` to be True. Received: False.")
        super().__init__(dtype, [self._perm], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    perm = property(lambda self: self._perm)

    def _shape(self):
        shape = self._perm.shape
        return shape.concatenate(shape[-1:]) if shape.ndims is not None else shape

    def _shape_tensor(self):
        shape = tf.shape(self._perm)
        return tf.concat([shape, shape[-1:]], 0)

    def _inverse_perm(self):
        return tf.argsort(tf.convert_to_tensor(self._perm), axis=-1)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        perm = self._inverse_perm() if adjoint else tf.convert_to_tensor(self._perm)
        x = adjoint_of(x) if adjoint_arg else x
        perm, x = broadcast_batches(perm[..., tf.newaxis], x)
        return tf.gather(x, tf.squeeze(perm, -1), axis=-2, batch_dims=-1 if x.shape.ndims is None else x.shape.ndims - 2)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _to_dense(self):
        size = tf.shape(self._perm)[-1]
        return tf.cast(tf.equal(tf.range(0, tf.cast(size, self._perm.dtype)), tf.convert_to_tensor(self._perm)[..., tf.newaxis]), self.dtype)

    def _diag_part(self):
        size = tf.cast(tf.shape(self._perm)[-1], self._perm.dtype)
        return tf.cast(tf.equal(tf.range(0, size), self._perm), self.dtype)

    def _log_abs_determinant(self):
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _determinant(self):
        # The sign: minus one per pair that stands in the wrong order.
        perm = tf.convert_to_tensor(self._perm)
        wrong = tf.cast(tf.greater(perm[..., :, tf.newaxis], perm[..., tf.newaxis, :]), dtypes.int32)
        pairs = tf.reduce_sum(tf.matrix_band_part(wrong, 0, -1), axis=[-2, -1])
        return tf.cast(1 - 2 * tf.mod(pairs, 2), self.dtype)

    def _cond(self):
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _assert_non_singular(self):
        return tf.no_op("assert_non_singular")

    def _linop_inverse(self):
        return LinearOperatorPermutation(self._inverse_perm(), self.dtype, self.is_non_singular, self.is_self_adjoint, self.is_positive_definite, True)

    _linop_adjoint = _linop_inverse


class LinearOperatorTridiag(LinearOperator):
    """A tridiagonal matrix.

    `diagonals` are a [..., 3, N] tensor ("compact"), a list of three [..., N] tensors ("sequence": above, on and below the diagonal) or
    the [..., N, N] matrix ("matrix").
    """

    def __init__(self, diagonals, diagonals_format="compact", is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=None, name="LinearOperatorTridiag"):
        if diagonals_format not in ("compact", "matrix", "sequence"):
            raise ValueError("Argument `diagonals_format` must be one of compact, matrix, or sequence. Received : %s." % (diagonals_format,))
        self._diagonals_format = diagonals_format
        if diagonals_format == "sequence":
            self._diagonals = [_given(part, "diagonals") for part in diagonals]
            parts = self._diagonals
        else:
            self._diagonals = _given(diagonals, "diagonals")
            parts = [self._diagonals]
        if is_square is False:
            raise ValueError("Only square tridiagonal operators currently supported.")
        super().__init__(parts[0].dtype, parts, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def _matrix_dims(self):
        return {"diagonals": 1 if self._diagonals_format == "sequence" else 2}

    diagonals = property(lambda self: self._diagonals)
    diagonals_format = property(lambda self: self._diagonals_format)

    def _shape(self):
        if self._diagonals_format == "matrix":
            return self._diagonals.shape
        if self._diagonals_format == "compact":
            shape = self._diagonals.shape
            return shape[:-2].concatenate(shape[-1:]).concatenate(shape[-1:]) if shape.ndims is not None else shape
        shapes = [part.shape for part in self._diagonals]
        if any(shape.ndims is None for shape in shapes):
            return tensor_shape.unknown_shape()
        size = shapes[1][-1:]
        return static_batch(*(shape[:-1] for shape in shapes)).concatenate(size).concatenate(size)

    def _shape_tensor(self):
        if self._diagonals_format == "matrix":
            return tf.shape(self._diagonals)
        if self._diagonals_format == "compact":
            shape = tf.shape(self._diagonals)
            return tf.concat([shape[:-2], shape[-1:], shape[-1:]], 0)
        shapes = [tf.shape(part) for part in self._diagonals]
        return tf.concat([dynamic_batch(*(shape[:-1] for shape in shapes)), shapes[1][-1:], shapes[1][-1:]], 0)

    def _three(self):
        """Returns the diagonals above, on and below the main one, of length N each."""
        if self._diagonals_format == "compact":
            return [tf.convert_to_tensor(self._diagonals)[..., i, :] for i in range(3)]
        if self._diagonals_format == "sequence":
            parts = broadcast_batches(*(tf.convert_to_tensor(part)[..., tf.newaxis] for part in self._diagonals))
            return [tf.squeeze(part, -1) for part in parts]
        packed = tf.raw_ops.MatrixDiagPartV3(input=self._diagonals, k=[-1, 1], padding_value=tf.zeros([], self.dtype), align="LEFT_RIGHT")
        return [packed[..., i, :] for i in range(3)]

    def _adjoint_diagonals(self):
        above, middle, below = self._three()
        parts = [tf.roll(below, shift=-1, axis=-1), middle, tf.roll(above, shift=1, axis=-1)]
        return [tf.conj(part) for part in parts] if self.dtype.is_complex else parts

    def _stacked(self, adjoint):
        return tf.stack(self._adjoint_diagonals() if adjoint else self._three(), axis=-2)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_of(x) if adjoint_arg else x
        diagonals, x = broadcast_batches(self._stacked(adjoint), x)
        return tf.linalg.tridiagonal_matmul(diagonals, x, diagonals_format="compact")

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        diagonals, rhs = broadcast_batches(self._stacked(adjoint), rhs)
        return tf.linalg.tridiagonal_solve(diagonals, rhs, diagonals_format="compact")

    def _diag_part(self):
        return self._three()[1]

    def _to_dense(self):
        if self._diagonals_format == "matrix":
            return tf.convert_to_tensor(self._diagonals)
        return tf.raw_ops.MatrixDiagV3(diagonal=self._stacked(False), k=[-1, 1], num_rows=-1, num_cols=-1,
                                       padding_value=tf.zeros([], self.dtype), align="LEFT_RIGHT")

    def _linop_adjoint(self):
        if self._diagonals_format == "matrix":
            return LinearOperatorTridiag(adjoint_of(self._diagonals), "matrix", self.is_non_singular, self.is_self_adjoint,
                                         self.is_positive_definite, True)
        parts = self._adjoint_diagonals()
        return LinearOperatorTridiag(parts if self._diagonals_format == "sequence" else tf.stack(parts, axis=-2), self._diagonals_format,
                                     self.is_non_singular, self.is_self_adjoint, self.is_positive_definite, True)
