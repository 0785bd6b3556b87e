"""tensorflow.python.ops.linalg.linear_operator_util: names of the implementation of linear operators."""

import runnel as tf
from runnel.linalg.linear_operator import adjoint_of, broadcast_batches  # noqa: F401
from runnel.linalg.linear_operator_blocks import arg_is_blockwise, split_arg_into_blocks  # noqa: F401


def broadcast_matrix_batch_dims(batch_matrices, name=None):
    """Returns matrices, a list, with one batch shape."""
    return broadcast_batches(*batch_matrices) if batch_matrices else []


def assert_no_entries_with_modulus_zero(x, message=None, name="assert_no_entries_with_modulus_zero"):
    """Returns an operation that fails if an element is zero."""
    with tf.name_scope(name):
        size = tf.abs(tf.convert_to_tensor(x, name="x"))
        return tf.assert_less(tf.zeros_like(size), size, message=message)


def assert_zero_imag_part(x, message=None, name="assert_zero_imag_part"):
    """Returns an operation that fails if an element is not real."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        if x.dtype.is_floating:
            return tf.no_op()
        imaginary = tf.imag(x)
        return tf.assert_equal(tf.zeros_like(imaginary), imaginary, message=message)


def assert_compatible_matrix_dimensions(operator, x):
    """Returns an operation that fails if the operator cannot be applied to `x`."""
    return tf.assert_equal(tf.shape(x)[-2], operator.domain_dimension_tensor(), message=(
        "Dimensions are not compatible.  shape[-2] of argument to be the same as this operator"))


def is_adjoint_pair(x, y):
    """Tells whether one operator is the adjoint object of the other."""
    from runnel.linalg.linear_operator_made import LinearOperatorAdjoint
    if x is y:
        return x.is_self_adjoint is not False and bool(x.is_self_adjoint)
    return any(isinstance(one, LinearOperatorAdjoint) and one.operator is two for one, two in ((x, y), (y, x)))


def is_aat_form(operators):
    """Tells whether a product of operators is A A^H, seen from the objects."""
    operators = list(operators)
    if not operators:
        raise ValueError("AAT form is undefined for empty operators")
    if len(operators) % 2:
        return False
    return all(is_adjoint_pair(operators[i], operators[-1 - i]) for i in range(len(operators) // 2))


def use_operator_or_provided_hint_unless_contradicting(operator, hint_attr_name, provided_hint_value, message):
    """Returns what the operator or the caller knows. Raises ValueError if they contradict each other."""
    known = {getattr(operator, hint_attr_name), provided_hint_value} - {None}
    if len(known) > 1:
        raise ValueError(message)
    return known.pop() if known else None


def make_composite_tensor(cls, module_name="tf.linalg"):
    """A decorator of classes of linear operators that makes their objects composite values."""
    from runnel.linalg.linear_operator_spec import make_spec
    make_spec(cls)
    return cls
