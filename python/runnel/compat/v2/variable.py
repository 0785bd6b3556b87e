"""tf.Variable of 2.x."""

import inspect

import runnel as _v1
from runnel.core.tensor_type import _Kinds
from runnel.ops.variables import _VariableMeta as _V1Meta


class _VariableMeta(_V1Meta, _Kinds):  # libraries derive from tf.Variable and from the type of tensors together
    def __call__(cls, *args, **kwargs):
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        return _v1.Variable(use_resource=True, **_VARIABLE.bind(*args, **kwargs).arguments)

    def __instancecheck__(cls, value):
        return isinstance(value, _v1.Variable) if cls is Variable else super().__instancecheck__(value)


class Variable(_v1.Variable, metaclass=_VariableMeta):
    """A resource variable; tf.Variable creates reference variables. Every variable is an instance."""


_VARIABLE = inspect.signature(
    lambda initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None, variable_def=None,
    dtype=None, import_scope=None, constraint=None, synchronization=None, aggregation=None, shape=None,
    experimental_enable_variable_lifting=True: None)
