"""Linear operators as composite values: their descriptions (TypeSpecs), and parts of their batches."""

import functools
import inspect

import numpy as np

from runnel.core.type_spec import BatchableTypeSpec, CompositeTensor, TensorSpec, TypeSpec, register

_HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
_STATIC = ("num_rows", "num_columns", "batch_shape")  # described by value, if it is known


@functools.cache
def _signature(cls):
    return inspect.signature(cls.__init__)


def arguments(cls, args, kwargs):
    """Returns the arguments of a constructor by name, with defaults."""
    bound = _signature(cls).bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def _field(operator, name):
    """Returns an argument as the operator holds it: converted to a tensor, where it is one."""
    import runnel as tf
    value = operator.parameters.get(name)
    if name in _STATIC:
        known = tf.get_static_value(value) if isinstance(value, tf.Tensor) else value
        value = value if known is None else known
    elif name in _HINTS or value is not None:
        value = getattr(operator, name, value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _describe(value):
    """Returns the description of what has tensors in it, and anything else unchanged."""
    import runnel as tf
    from runnel.core.composite_specs import VariableSpec
    if isinstance(value, CompositeTensor):
        return value._type_spec
    if hasattr(value, "initializer") and hasattr(value, "assign"):
        return VariableSpec.from_value(value)
    if isinstance(value, tf.Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
    return value


def _leaves(value):
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


class LinearOperatorSpec(BatchableTypeSpec):
    """The description of linear operators of one class: of its arguments that are tensors or operators, and the values of the others."""

    def __init__(self, param_specs, non_tensor_params, prefer_static_fields):
        self._param_specs, self._non_tensor_params = param_specs, non_tensor_params
        self._prefer_static_fields = tuple(prefer_static_fields)

    value_type: type

    @classmethod
    def from_operator(cls, operator):
        """Returns the description of an operator."""
        specs, others = {}, {}
        names = [name for name in operator.parameters if name not in ("name", "parameters")]
        for name in names:
            described = _describe(_field(operator, name))
            leaves = _leaves(described)
            are_specs = [isinstance(leaf, TypeSpec) for leaf in leaves]
            if leaves and all(are_specs):
                specs[name] = described
            elif not any(are_specs):
                others[name] = _field(operator, name)
            else:
                raise NotImplementedError("Field %s contains a mix of `Tensor` and  non-`Tensor` values." % name)
        return cls(specs, others, tuple(name for name in _STATIC if name in names))

    def _serialize(self):
        return self._param_specs, self._non_tensor_params, self._prefer_static_fields

    @property
    def _component_specs(self):
        return self._param_specs

    def _to_components(self, value):
        return {name: _field(value, name) for name in self._param_specs}

    def _from_components(self, components):
        return self.value_type(**self._non_tensor_params, **components)

    def _changed(self, change):
        from runnel import nest
        return type(self)(nest.map_structure(change, self._param_specs), self._non_tensor_params, self._prefer_static_fields)

    def _batch(self, batch_size):
        return self._changed(lambda spec: spec._batch(batch_size))

    def _unbatch(self):
        return self._changed(lambda spec: spec._unbatch())


def make_spec(cls):
    """Gives a class of operators the class of its descriptions."""
    spec = type(cls.__name__ + "Spec", (LinearOperatorSpec,), {"value_type": cls, "__module__": cls.__module__})
    name = "tf.linalg." + spec.__name__ if cls.__module__.startswith("runnel.") else "%s.%s" % (cls.__module__, cls.__qualname__ + "Spec")
    try:
        register(name)(spec)
    except ValueError:  # a class that is defined again, in a function: SavedModels know the first one
        pass
    cls._type_spec = property(spec.from_operator)


def _map(change, value, dims):
    return [_map(change, item, dims) for item in value] if isinstance(value, (list, tuple)) else change(value, dims)


def _rebuilt(operator, change):
    """Returns an operator of the same kind, with `change(value, matrix_dims)` for each argument that has batch dimensions."""
    if not operator._matrix_dims:
        raise NotImplementedError("Slices of %s" % type(operator).__name__)
    changed = {name: _map(change, _field(operator, name), dims) for name, dims in operator._matrix_dims.items()
               if operator.parameters.get(name) is not None}
    return type(operator)(**{**operator.parameters, **changed})


def slice_batch(operator, slices):
    """Returns the operators of a part of the batch, given as the batch's indices."""
    import runnel as tf
    slices = tuple(slices) if isinstance(slices, (list, tuple)) else (slices,)
    if "batch_shape" in operator.parameters:  # nothing but a shape is given
        known = operator.batch_shape
        part = np.empty(known.as_list())[slices].shape if known.is_fully_defined() else (
            tf.shape(tf.zeros(operator.batch_shape_tensor())[slices]))
        return type(operator)(**{**operator.parameters, "batch_shape": part})
    batch = operator.batch_shape_tensor()

    def spread(value, dims):
        """Returns an argument with all dimensions of the batch."""
        if isinstance(value, CompositeTensor):
            return _rebuilt(value, spread)
        shape = tf.shape(value)
        return tf.broadcast_to(value, tf.concat([batch, shape[tf.size(shape) - dims:]], 0))

    def cut(value, dims):
        if isinstance(value, CompositeTensor):
            return value[slices]
        rest = () if any(part is Ellipsis for part in slices) else (Ellipsis,)
        index = (*slices, *rest, *([slice(None)] * dims))
        return value[index]

    return _rebuilt(_rebuilt(operator, spread), cut)
