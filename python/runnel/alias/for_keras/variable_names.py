"""tensorflow.python.ops.resource_variable_ops: variables over a handle that the caller makes."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.ops import resource_variable, variables


class _BaseMeta(type(resource_variable.ResourceVariable)):  # type: ignore[misc]
    def __instancecheck__(cls, value):
        return isinstance(value, resource_variable.ResourceVariable) if cls is BaseResourceVariable else super().__instancecheck__(value)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, resource_variable.ResourceVariable) if cls is BaseResourceVariable else super().__subclasscheck__(kind)


class BaseResourceVariable(resource_variable.ResourceVariable, metaclass=_BaseMeta):
    """A variable over a handle. Every resource variable is an instance."""

    def __init__(self, trainable=None, shape=None, dtype=None, handle=None, constraint=None, synchronization=None, aggregation=None,
                 distribute_strategy=None, name=None, unique_id=None, handle_name=None, graph_element=None, initial_value=None,
                 initializer_op=None, is_initialized_op=None, cached_value=None, save_slice_info=None, caching_device=None,
                 in_graph_mode=None, validate_shape=True, **unused_kwargs):
        self._number = next(resource_variable._made)
        self._synchronization = synchronization or variables.VariableSynchronization.AUTO
        self._aggregation = aggregation or variables.VariableAggregation.NONE
        self._trainable = variables._checked_trainable(self._synchronization, trainable, name)
        self._in_graph_mode = handle._graph is not None if in_graph_mode is None else in_graph_mode
        self._handle, self._handle_name = handle, handle_name or "Variable"
        self._name = name if name is not None else self._handle_name + ":0"
        self._unique_id = unique_id
        self._shape, self._dtype = tensor_shape.as_shape(shape), dtypes.as_dtype(dtype)
        self._initial_value, self._initializer_op, self._is_initialized_op = initial_value, initializer_op, is_initialized_op
        self._graph_element, self._cached_value = graph_element, cached_value
        self._constraint, self._caching_device, self._validate_shape = constraint, caching_device, validate_shape
        self._save_slice_info = save_slice_info


def _variable_handle_from_shape_and_dtype(shape, dtype, shared_name, name, graph_mode, initial_value=None):
    """Returns a new handle of a variable without a value."""
    return raw_ops.VarHandleOp(shape=shape, dtype=dtype, shared_name=shared_name or "", debug_name=name or "", name=name)
