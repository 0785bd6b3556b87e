"""tensorflow.python.autograph.utils.context_managers."""

import contextlib

import runnel
from runnel.ops.tensor_array import TensorArray


def control_dependency_on_returns(return_value):
    """A context manager: what is built inside waits for a tensor, a TensorArray, or several; None is nothing to wait for."""
    if return_value is None:
        return contextlib.nullcontext()
    values = return_value if isinstance(return_value, (list, tuple)) else [return_value]
    return runnel.control_dependencies([value.flow if isinstance(value, TensorArray) else value for value in values])
