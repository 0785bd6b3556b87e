"""Circulant matrices, which the Fourier transform makes diagonal, and Toeplitz matrices, which are parts of larger ones."""

import runnel as tf
from runnel import dtypes
from runnel.core import tensor_shape
from runnel.linalg.linear_operator import LinearOperator, adjoint_of, broadcast_batches, dynamic_batch, static_batch
from runnel.linalg.linear_operator_kinds import _given

_FFT_OP = {1: tf.fft, 2: tf.fft2d, 3: tf.fft3d}  # by depth of blocks
_IFFT_OP = {1: tf.ifft, 2: tf.ifft2d, 3: tf.ifft3d}
_COMPLEX = {dtypes.float16: dtypes.complex64, dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _to_complex(values):
    values = tf.convert_to_tensor(values)
    return values if values.dtype.is_complex else tf.cast(values, _COMPLEX[values.dtype.base_dtype])


class _Circulant(LinearOperator):
    """A circulant matrix of blocks, nested `block_depth` deep. Its eigenvalues are the spectrum, in order of frequencies."""

    def __init__(self, spectrum, block_depth, input_output_dtype=dtypes.complex64, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None, is_square=True, name="LinearOperatorCirculant"):
        if block_depth not in (1, 2, 3):
            raise ValueError("Argument `block_depth` must be one of [1, 2, 3]. Received: %s." % (block_depth,))
        self._block_depth = block_depth
        self._spectrum = _given(spectrum, "spectrum")
        if self._spectrum.shape.ndims is not None and self._spectrum.shape.ndims < block_depth:
            raise ValueError("Argument `spectrum` must have at least %d dimensions. Received: %s." % (block_depth, self._spectrum))
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator. Expected argument `is_self_adjoint` to "
                                 "be True when `spectrum.dtype.is_complex` = True. Received: False.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("A [[nested] block] circulant operator is always square. Expected argument `is_square` to be True. "
                             "Received: False.")
        super().__init__(input_output_dtype, [self._spectrum], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def _matrix_dims(self):
        return {"spectrum": self._block_depth}

    spectrum = property(lambda self: self._spectrum)
    block_depth = property(lambda self: self._block_depth)

    @property
    def block_shape(self):
        """The sizes of the blocks, outermost first."""
        return self._spectrum.shape[-self._block_depth:]

    def block_shape_tensor(self):
        """Returns the sizes of the blocks as a tensor."""
        return tf.shape(self._spectrum)[-self._block_depth:]

    def _shape(self):
        sizes = self.block_shape
        size = sizes.num_elements() if sizes.is_fully_defined() else None
        return self._spectrum.shape[:-self._block_depth].concatenate([size, size])

    def _shape_tensor(self):
        size = tf.reduce_prod(self.block_shape_tensor())
        return tf.concat([tf.shape(self._spectrum)[:-self._block_depth], [size, size]], 0)

    def _transform(self, x, is_inverse):
        return (_IFFT_OP if is_inverse else _FFT_OP)[self._block_depth](x)

    def _flat(self, x):
        """Returns the blocks of each vector in a row."""
        shape = x.shape
        if shape.is_fully_defined():
            return tf.reshape(x, shape[:-self._block_depth].as_list() + [self.block_shape.num_elements()])
        return tf.reshape(x, tf.concat([tf.shape(x)[:-self._block_depth], [-1]], 0))

    def _apply(self, x, adjoint, adjoint_arg, combine):
        """Returns what `combine` makes of the transformed columns of `x` and the spectrum, transformed back."""
        spectrum = _to_complex(self._spectrum)
        spectrum = tf.conj(spectrum) if adjoint else spectrum
        columns = tf.cast(adjoint_of(x) if adjoint_arg else x, spectrum.dtype)
        # A column of eigenvalues per matrix, so that both have matrices in their last two dimensions.
        values = tf.reshape(spectrum, tf.concat([tf.shape(spectrum)[:-self._block_depth], [-1, 1]], 0))
        columns, values = broadcast_batches(columns, values)
        rows = tf.matrix_transpose(columns)
        lead, blocks = tf.shape(rows)[:-1], self.block_shape_tensor()
        transformed = self._transform(tf.reshape(rows, tf.concat([lead, blocks], 0)), False)
        values = tf.reshape(values, tf.concat([tf.shape(values)[:-2], [1], blocks], 0))
        back = self._transform(combine(transformed, values), True)
        result = tf.matrix_transpose(tf.reshape(back, tf.shape(rows)))
        result.set_shape(columns.shape)
        return tf.cast(result, self.dtype)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._apply(x, adjoint, adjoint_arg, tf.multiply)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._apply(rhs, adjoint, adjoint_arg, tf.divide)

    def convolution_kernel(self, name="convolution_kernel"):
        """Returns the first column, as blocks: the inverse transform of the spectrum."""
        with self._name_scope(name):
            return tf.cast(self._transform(_to_complex(self._spectrum), True), self.dtype)

    def _axes(self):
        return list(range(-self._block_depth, 0))

    def _determinant(self):
        return tf.cast(tf.reduce_prod(self._spectrum, axis=self._axes()), self.dtype)

    def _log_abs_determinant(self):
        return tf.cast(tf.reduce_sum(tf.log(tf.abs(self._spectrum)), axis=self._axes()), self.dtype)

    def _trace(self):
        return tf.cast(tf.reduce_sum(tf.convert_to_tensor(self._spectrum), axis=self._axes()), self.dtype)

    def _diag_part(self):
        # All elements of the diagonal are equal.
        mean = self.trace() / tf.cast(self.domain_dimension_tensor(), self.dtype)
        return mean[..., tf.newaxis] * tf.ones(self.shape_tensor()[:-1], dtype=self.dtype)

    def _eigvals(self):
        return self._flat(tf.convert_to_tensor(self._spectrum))

    def _cond(self):
        values = tf.abs(self._eigvals())
        return tf.reduce_max(values, axis=-1) / tf.reduce_min(values, axis=-1)

    def _like(self, spectrum, **hints):
        known = dict(is_non_singular=self.is_non_singular, is_self_adjoint=self.is_self_adjoint,
                     is_positive_definite=self.is_positive_definite)
        kind = {1: LinearOperatorCirculant, 2: LinearOperatorCirculant2D, 3: LinearOperatorCirculant3D}[self._block_depth]
        return kind(spectrum, self.dtype, **{**known, **hints})

    def times(self, other):
        """Returns the product with another circulant operator, which is one too: both have the same eigenvectors."""
        return self._like(self._spectrum * other.spectrum, **_together(self, other))

    def _linop_adjoint(self):
        return self._like(tf.conj(self._spectrum) if self._spectrum.dtype.is_complex else self._spectrum)

    def _linop_inverse(self):
        return self._like(1.0 / self._spectrum)

    def assert_hermitian_spectrum(self, name="assert_hermitian_spectrum"):
        """Returns an operation that fails if the matrix is not real."""
        import numpy as np
        with self._name_scope(name):
            eps = np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
            limit = eps * tf.cast(self.domain_dimension_tensor(), self.dtype.real_dtype)
            return tf.assert_less(tf.abs(tf.imag(self.convolution_kernel())), limit, message="Spectrum was not Hermitian")

    def _assert_non_singular(self):
        values = tf.abs(self._spectrum)
        return tf.assert_less(tf.zeros_like(values), values, message="Singular operator:  Spectrum contained zero values.")

    def _assert_positive_definite(self):
        return tf.assert_positive(tf.real(self._spectrum),
                                  message="Not positive definite:  Real part of spectrum was not all positive.")

    def _assert_self_adjoint(self):
        imaginary = tf.imag(self._spectrum)
        return tf.assert_equal(tf.zeros_like(imaginary), imaginary,
                               message="Not self-adjoint:  The spectrum contained non-zero imaginary part.")


def _together(one, two):
    """Returns what is known of the product of two operators that commute."""
    def both(hint):
        return True if getattr(one, hint) and getattr(two, hint) else None
    return {hint: both(hint) for hint in ("is_non_singular", "is_self_adjoint", "is_positive_definite")}


def _of_depth(depth, title, words):
    def init(self, spectrum, input_output_dtype=dtypes.complex64, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
             is_square=True, name=title):
        _Circulant.__init__(self, spectrum, depth, input_output_dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    # The name is there from the start, because the class of its descriptions is called after it.
    return type(title, (_Circulant,), {"__init__": init, "__doc__": words, "__module__": __name__})


LinearOperatorCirculant = _of_depth(1, "LinearOperatorCirculant", "A circulant matrix, given by its eigenvalues (the spectrum).")
LinearOperatorCirculant2D = _of_depth(2, "LinearOperatorCirculant2D", "A circulant matrix of circulant blocks.")
LinearOperatorCirculant3D = _of_depth(3, "LinearOperatorCirculant3D", "A circulant matrix of circulant blocks of circulant blocks.")


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with equal elements along each diagonal, given by its first column and row."""

    _matrix_dims = {"col": 1, "row": 1}

    def __init__(self, col, row, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorToeplitz"):
        self._row, self._col = _given(row, "row"), _given(col, "col")
        for what, values in (("row", self._row), ("col", self._col)):
            if values.shape.ndims is not None and values.shape.ndims < 1:
                raise ValueError("Argument %s must have at least 1 dimension.  Found: %s" % (what, values))
        sizes = [values.shape.as_list()[-1] if values.shape.ndims else None for values in (self._row, self._col)]
        if None not in sizes and sizes[0] != sizes[1]:
            raise ValueError("Expected square matrix, got row and col with mismatched dimensions.")
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        super().__init__(self._row.dtype, [self._row, self._col], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    col = property(lambda self: self._col)
    row = property(lambda self: self._row)

    def _shape(self):
        if self._row.shape.ndims is None or self._col.shape.ndims is None:
            return tensor_shape.unknown_shape()
        size = self._row.shape[-1:].merge_with(self._col.shape[-1:])
        return static_batch(self._row.shape[:-1], self._col.shape[:-1]).concatenate(size).concatenate(size)

    def _shape_tensor(self):
        rows, columns = tf.shape(self._row), tf.shape(self._col)
        return tf.concat([dynamic_batch(rows[:-1], columns[:-1]), rows[-1:], rows[-1:]], 0)

    def _both(self):
        """Returns column and row with one batch shape."""
        column, row = broadcast_batches(tf.convert_to_tensor(self._col)[..., tf.newaxis], tf.convert_to_tensor(self._row)[..., tf.newaxis])
        return tf.squeeze(column, -1), tf.squeeze(row, -1)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        # The matrix is the upper left quarter of a circulant one of twice the size, which multiplies by Fourier transforms.
        x = adjoint_of(x) if adjoint_arg else x
        column, row = self._both()
        if adjoint:
            column, row = (tf.conj(row), tf.conj(column)) if self.dtype.is_complex else (row, column)
            # The first element belongs to both.
        first = tf.concat([column, tf.zeros_like(column[..., :1]), tf.reverse(row[..., 1:], [-1])], -1)
        whole = LinearOperatorCirculant(tf.fft(_to_complex(first)), input_output_dtype=self.dtype)
        below = tf.zeros_like(x)
        result = whole.matmul(tf.concat([x, below], -2))
        return result[..., :tf.shape(x)[-2], :]

    def _to_dense(self):
        column, row = self._both()
        size = tf.shape(row)[-1]
        diagonals = tf.concat([tf.reverse(row, [-1]), column[..., 1:]], -1)  # from the upper right corner to the lower left
        places = tf.range(size)[:, tf.newaxis] - tf.range(size)[tf.newaxis, :] + size - 1
        dense = tf.gather(diagonals, places, axis=-1)
        dense.set_shape(self.shape)
        return dense

    def _diag_part(self):
        first = tf.convert_to_tensor(self._col)[..., :1]
        return tf.broadcast_to(first, self.shape_tensor()[:-1])

    def _trace(self):
        first = tf.convert_to_tensor(self._col)[..., 0]
        return tf.broadcast_to(first, self.batch_shape_tensor()) * tf.cast(self.domain_dimension_tensor(), self.dtype)

    def _assert_self_adjoint(self):
        return tf.assert_equal(self._row, self._col, message="row and col are not the same, and so this operator is not self-adjoint.")


def exponential_power_convolution_kernel(grid_shape, length_scale, power=None, divisor=None, zero_inflation=None):
    """Returns the kernel exp(-|x / length_scale|^power / divisor) on a grid, centered at its first element.

    Args:
      grid_shape: the numbers of points per dimension; the grid spans [0, 1] in each.
      length_scale: one scale per dimension.
      power: 2 by default.
      divisor: `power` by default.
      zero_inflation: the share of a peak at the center that is mixed in.
    """
    length_scale = tf.convert_to_tensor(length_scale, name="length_scale")
    dtype = length_scale.dtype
    power = tf.convert_to_tensor(2.0 if power is None else power, dtype=dtype, name="power")
    divisor = power if divisor is None else tf.convert_to_tensor(divisor, dtype=dtype, name="divisor")
    exponent = tf.zeros([], dtype)
    for i, size in enumerate(grid_shape):
        places = tf.linspace(tf.zeros([], dtype), tf.ones([], dtype), size)
        from_middle = tf.abs((places - places[tf.cast(size, dtypes.int32) // 2]) / length_scale[i])
        exponent -= tf.reshape(from_middle ** power / divisor, [-1 if j == i else 1 for j in range(len(grid_shape))])
    kernel = tf.exp(tf.signal.ifftshift(exponent))
    if zero_inflation:
        share = tf.convert_to_tensor(zero_inflation, dtype=dtype, name="zero_inflation")
        peak = tf.pad(tf.ones([1] * len(grid_shape), dtype), [[0, size - 1] for size in grid_shape])
        kernel = (1.0 - share) * kernel + share * peak
    return kernel
