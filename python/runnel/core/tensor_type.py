"""The type of everything that counts as a tensor: tensors, variables, and classes of libraries that derive from it."""

from runnel.core import framework


class _Kinds(type):
    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or cls is Tensor and isinstance(value, _kinds())


class Tensor(metaclass=_Kinds):
    """The base of classes whose objects tf.is_tensor accepts; they convert by `__tf_tensor__`."""


def _kinds():
    from runnel.ops.variables import Variable
    return framework.Tensor, Variable


framework._tensor_like.append(Tensor)
