"""Types of tf.experimental.numpy: which type a result has, and values as tensors of that type."""

import numbers

import runnel as tf
from runnel import dtypes, nest
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.ops.variables import Variable

_settings = {"prefer_float32": False}


def set_prefer_float32(is_preferred):
    """Sets whether Python's floats become float32 instead of float64."""
    _settings["prefer_float32"] = bool(is_preferred)


def float_type():
    """Returns the NumPy type of results that have to be floats."""
    import numpy as np
    return np.dtype(np.float64)


def numpy_type(dtype):
    """Returns the NumPy type of a type: TensorFlow's, NumPy's, Python's, or its name."""
    import numpy as np
    return np.dtype(dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype)


def is_tensor(value):
    """Tells whether a value is a tensor or converts to one by itself, such as a variable."""
    return isinstance(value, (Tensor, Variable)) or hasattr(value, "__tf_tensor__")


def _described(value):
    import numpy as np
    if isinstance(value, (bool, np.generic, np.ndarray)):
        return np.asarray(value).dtype
    if isinstance(value, numbers.Number):
        return value
    if isinstance(value, dtypes.DType):
        return numpy_type(value)
    if is_tensor(value):
        return numpy_type(value.dtype)
    return value


def result_type(*arrays_and_dtypes):
    """Returns the NumPy type to which NumPy promotes tensors, arrays, numbers and types."""
    import numpy as np
    given = [_described(value) for value in nest.flatten(arrays_and_dtypes)]
    if not given:
        return float_type()
    found = np.result_type(*given)
    if _settings["prefer_float32"] and found == np.float64 and all(isinstance(x, numbers.Number) for x in given):
        return np.dtype(np.float32)
    return found


def promote_types(type1, type2):
    """Returns the NumPy type to which both types can be cast."""
    import numpy as np
    return np.promote_types(numpy_type(type1), numpy_type(type2))


def array(val, dtype=None, copy=True, ndmin=0):
    """Returns a tensor of a value: a number, an array, a tensor, or nested lists of them."""
    result = _tensor(val, None if dtype is None else numpy_type(dtype))
    if copy and result is val:
        result = tf.identity(result)
    missing = ndmin - (result.shape.rank or 0)
    if ndmin and missing > 0:
        result = tf.reshape(result, tf.concat([[1] * missing, tf.shape(result)], 0))
    return result


def _tensor(value, dtype):
    import numpy as np
    if is_tensor(value):
        tensor = convert_to_tensor(value)
    elif any(is_tensor(x) for x in nest.flatten(value)):
        common = numpy_type(dtype) if dtype is not None else result_type(value)
        tensor = convert_to_tensor(nest.map_structure(lambda x: _tensor(x, common), value))
    else:
        if dtype is None:
            dtype = np.asarray(value).dtype
            if dtype == np.float64 and _settings["prefer_float32"] and not isinstance(value, (np.ndarray, np.generic)):
                dtype = np.dtype(np.float32)
        return convert_to_tensor(np.asarray(value).astype(dtype) if dtype.kind in "biufcV" else np.asarray(value))
    return tensor if dtype is None or numpy_type(tensor.dtype) == dtype else tf.cast(tensor, dtypes.as_dtype(dtype))


def asarray(a, dtype=None):
    """Returns a tensor of a value; a tensor of that type is returned itself."""
    return array(a, dtype, copy=False)


def asanyarray(a, dtype=None):
    """Returns a tensor of a value, as `asarray` does."""
    return asarray(a, dtype)


def ascontiguousarray(a, dtype=None):
    """Returns a tensor of a value with at least one dimension."""
    return array(a, dtype, ndmin=1)


def is_inexact(tensor):
    """Tells whether a tensor has floats or complex numbers."""
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def as_inexact(value):
    """Returns a tensor of a value, integers as floats."""
    tensor = asarray(value)
    return tensor if is_inexact(tensor) else tf.cast(tensor, dtypes.as_dtype(float_type()))


def truth(value):
    """Returns a tensor of bools: which elements are not zero."""
    tensor = asarray(value)
    return tf.not_equal(tensor, tf.zeros_like(tensor)) if tensor.dtype.is_complex else tf.cast(tensor, dtypes.bool)


def promoted(*values):
    """Returns tensors of values, all of the type to which NumPy promotes them."""
    values = [value if isinstance(value, numbers.Number) or is_tensor(value) else asarray(value) for value in values]
    common = result_type(*values)
    return [asarray(value, common) for value in values]


def axis_of(axis, rank):
    """Returns an axis as a number from 0. Raises ValueError if it is out of range."""
    if rank is not None and not -rank <= axis < rank:
        raise ValueError("axis %d is out of bounds for array of dimension %d" % (axis, rank))
    return axis + rank if axis < 0 and rank is not None else axis
