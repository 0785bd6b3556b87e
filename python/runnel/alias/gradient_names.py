"""tensorflow.python.eager.backprop: functions that differentiate functions, under the names that TensorFlow's tests use."""

from runnel.core.composite_gradients import flatten as get_flat_tensors_for_gradients, pack as replace_flat_tensors_for_gradients  # noqa: F401
from runnel.eager.forward import (  # noqa: F401
    jvp_of_op as _jvp_dispatch, possible_gradient_types as TFE_Py_TapeSetPossibleGradientTypes,
    record_operation, record_operation_backprop_only, record_operation_forwardprop_only, should_record_backprop)
from runnel.eager.gradient_functions import (  # noqa: F401
    gradients_function, implicit_gradients as implicit_grad, implicit_value_and_gradients as implicit_val_and_grad, make_vjp,
    value_and_gradients_function as val_and_grad_function)


def get_filtered_grad_fn(grad_fn):
    """Returns a function that gives the pairs of gradients and variables of another one, without those whose gradient is None."""
    return lambda *args, **kwargs: [(gradient, variable) for gradient, variable in grad_fn(*args, **kwargs) if gradient is not None]


def op_attr_type(op_type, attr_name):
    """Returns the number of the type of an op's attribute, in a list if its values are lists."""
    from runnel import _core
    from runnel.alias.eager_names import (
        TF_ATTR_BOOL, TF_ATTR_FLOAT, TF_ATTR_FUNC, TF_ATTR_INT, TF_ATTR_SHAPE, TF_ATTR_STRING, TF_ATTR_TENSOR, TF_ATTR_TYPE)
    from runnel.core.protobuf import message_class
    numbers = {"string": TF_ATTR_STRING, "int": TF_ATTR_INT, "float": TF_ATTR_FLOAT, "bool": TF_ATTR_BOOL, "type": TF_ATTR_TYPE,
               "shape": TF_ATTR_SHAPE, "tensor": TF_ATTR_TENSOR, "func": TF_ATTR_FUNC}
    kind = next(attr.type for attr in message_class("OpDef").FromString(_core.op_def(op_type)).attr if attr.name == attr_name)
    return [numbers[kind[5:-1]]] if kind.startswith("list(") else numbers[kind]


def make_attr(attr_type, value):
    """Returns the value of an attribute of this type, as `op_attr_type` gives it, in the form of NodeDefs."""
    from runnel import dtypes
    from runnel.alias.eager_names import TF_ATTR_SHAPE, TF_ATTR_TYPE
    from runnel.core.tensor_shape import as_shape
    if isinstance(attr_type, list):
        return [make_attr(attr_type[0], one) for one in value]
    if attr_type == TF_ATTR_TYPE:
        return dtypes.as_dtype(value)
    if attr_type == TF_ATTR_SHAPE:
        return as_shape(value).as_proto()
    return value.encode() if isinstance(value, str) else value


def AggregateIndexedSlicesGradients(grads):  # noqa: N802
    """Returns the sum of gradients, some of which may be None: IndexedSlices with all rows, or a tensor if one of them is a tensor."""
    import runnel
    from runnel.core.composite import IndexedSlices
    grads = [grad for grad in grads if grad is not None]
    if len(grads) < 2:
        return grads[0] if grads else None
    if not all(isinstance(grad, IndexedSlices) for grad in grads):
        return runnel.add_n(grads)
    indices = [grad.indices for grad in grads]
    if len({x.dtype for x in indices}) > 1:
        indices = [runnel.cast(x, runnel.int64) for x in indices]
    return IndexedSlices(runnel.concat([grad.values for grad in grads], 0), runnel.concat(indices, 0), grads[0].dense_shape)


def _as_indexed_slices(x, optimize=True):
    """Returns a tensor as IndexedSlices that have all its rows."""
    import runnel
    from runnel.core.composite import IndexedSlices
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, runnel.Tensor):
        raise TypeError("A Tensor or IndexedSlices is expected, not %r" % type(x))
    shape = runnel.shape(x)
    return IndexedSlices(x, runnel.range(shape[0]), shape)
