"""The types of everything that counts as a tensor: tensors, variables, and classes of libraries that derive from `Tensor`.

`Value` is what holds its values (eager execution), `Symbol` what a graph computes. They are types to test against: `add_kind` says which
other classes count.
"""

from runnel import _core
from runnel.core import framework

_more: list = []  # (class, function of a value that returns the tensor it stands for)


class _Kinds(type):
    def __instancecheck__(cls, value):
        if type.__instancecheck__(cls, value):
            return True
        kinds = _KINDS.get(cls)
        if kinds is None:
            return False
        for other, tensor in _more:
            if isinstance(value, other):
                value = tensor(value)
        return kinds(value)


class Tensor(metaclass=_Kinds):
    """The base of classes whose objects tf.is_tensor accepts; they convert by `__tf_tensor__`."""


class Value(Tensor):
    """The type of tensors that hold their values."""


class Symbol(Tensor):
    """The type of tensors that a graph computes."""


def add_kind(cls, tensor):
    """Makes the values of a class count as what the tensor is that the function `tensor` returns for them."""
    _more.append((cls, tensor))


def _is_tensor(value):
    from runnel.ops.variables import Variable
    return isinstance(value, (framework.Tensor, Variable))


_KINDS = {
    Tensor: _is_tensor,
    Value: lambda value: isinstance(value, _core.EagerTensor),
    Symbol: lambda value: isinstance(value, framework.Tensor) and not isinstance(value, _core.EagerTensor),
}

framework._tensor_like.append(Tensor)
