"""Types and constants of tf.experimental.numpy, and questions about types."""

import math

import numpy as np

from runnel import dtypes
from runnel.core.framework import Tensor as ndarray  # noqa: F401, N813
from runnel.experimental_numpy.promotion import is_tensor, numpy_type

e, pi, inf, newaxis = math.e, math.pi, math.inf, None
bool_, object_, bytes_, str_ = np.bool_, np.object_, np.bytes_, np.str_
int8, int16, int32, int64, uint8, uint16, uint32, uint64 = np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, complex64, complex128 = np.float16, np.float32, np.float64, np.complex64, np.complex128
int_, float_, complex_, string_, unicode_ = np.int64, np.float64, np.complex128, np.bytes_, np.str_
iinfo, inexact = np.iinfo, np.inexact


def finfo(dtype):
    """Returns the limits of a floating-point type."""
    return np.finfo(numpy_type(dtype))


def issubdtype(arg1, arg2):
    """Tells whether a type is of a kind, as NumPy's issubdtype does."""
    return np.issubdtype(*(x.as_numpy_dtype if isinstance(x, dtypes.DType) else x for x in (arg1, arg2)))


def isscalar(num):
    """Tells whether a value is a number or a tensor of rank 0."""
    return num.shape.rank == 0 if is_tensor(num) else np.isscalar(num)
