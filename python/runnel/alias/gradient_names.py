"""tensorflow.python.eager.backprop: functions that differentiate functions, under the names that TensorFlow's tests use."""

from runnel.eager.gradient_functions import (  # noqa: F401
    gradients_function, implicit_gradients as implicit_grad, implicit_value_and_gradients as implicit_val_and_grad, make_vjp,
    value_and_gradients_function as val_and_grad_function)
