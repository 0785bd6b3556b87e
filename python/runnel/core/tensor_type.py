"""The type of everything that counts as a tensor: tensors, variables, and classes of libraries that derive from it."""

import abc

from runnel.core import framework


class Tensor(abc.ABC):
    """The base of classes whose objects tf.is_tensor accepts; they convert by `__tf_tensor__`."""

    @property
    def dtype(self):
        """The type of the elements."""

    @property
    def shape(self):
        """The static shape."""


def _register():
    from runnel.ops.variables import Variable
    Tensor.register(framework.Tensor)
    Tensor.register(Variable)
    framework._tensor_like.append(Tensor)


_register()
