"""tensorflow.python.ops.weak_tensor_ops: importing it puts the functions for weak tensors in place, whatever the mode of promotion."""

from runnel.experimental_numpy import weak_functions

weak_functions.install()
