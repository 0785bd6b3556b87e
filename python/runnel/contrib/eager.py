"""tf.contrib.eager: eager execution under its first names."""

import sys

from runnel.core.framework import executing_eagerly, init_scope  # noqa: F401
from runnel.eager.backprop import GradientTape  # noqa: F401
from runnel.eager.context import enable_eager_execution  # noqa: F401
from runnel.eager.def_function import function as defun  # noqa: F401
from runnel.eager.eager_script import py_function as py_func  # noqa: F401
from runnel.eager.gradient_functions import (  # noqa: F401
    gradients_function, implicit_gradients, implicit_value_and_gradients, value_and_gradients_function)
from runnel.ops.resource_variable import ResourceVariable as Variable  # noqa: F401

in_eager_mode = executing_eagerly
python = tfe = sys.modules[__name__]  # its paths in 1.x: tensorflow.contrib.eager.python.tfe


def num_gpus():
    """Returns the number of GPUs."""
    from runnel.config import list_physical_devices
    return len(list_physical_devices("GPU"))
