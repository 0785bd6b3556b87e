"""tensorflow.python.ops.numpy_ops: names of the implementation of tf.experimental.numpy."""

from runnel.experimental_numpy import promotion
from runnel.experimental_numpy.behavior import experimental_enable_numpy_behavior
from runnel.experimental_numpy.promotion import result_type as _result_type  # noqa: F401

enable_numpy_behavior = experimental_enable_numpy_behavior

_state = {"float64": True, "docs": "inlined", "mismatch": False}


def enable_numpy_methods_on_tensor():
    """Gives tensors NumPy's methods."""
    experimental_enable_numpy_behavior(dtype_conversion_mode="off")


def is_allow_float64():
    """Tells whether float64 is allowed."""
    return _state["float64"]


def set_allow_float64(b):
    """Sets whether float64 is allowed; it makes float32 the type of Python's floats if not."""
    _state["float64"] = b
    promotion.set_prefer_float32(not b)


def default_float_type():
    """Returns the type of Python's floats."""
    return promotion.float_type()


def is_sig_mismatch_an_error():
    """Tells whether signatures are compared with NumPy's."""
    return _state["mismatch"]


def set_is_sig_mismatch_an_error(value):
    """Sets whether signatures are compared with NumPy's."""
    _state["mismatch"] = value


def get_np_doc_form():
    """Returns how documentation refers to NumPy's."""
    return _state["docs"]


def set_np_doc_form(value):
    """Sets how documentation refers to NumPy's."""
    _state["docs"] = value
