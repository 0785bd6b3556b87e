"""WeakTensor: a tensor whose type yields to the type of what it is combined with (promotion_modes.py)."""

from runnel import _core, dtypes, errors
from runnel.core import tensor_type
from runnel.core.convert import convert_to_tensor, register_tensor_conversion_function
from runnel.extension_types.extension_type import BatchableExtensionType
from runnel.core.framework import Tensor
from runnel.core.type_spec import register

_ALLOWED = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.complex128)


class WeakTensor(BatchableExtensionType):
    """A tensor of a weak type. It has the methods of tensors, and the functions of tf return weak tensors for it."""

    tensor: Tensor

    def __validate__(self):
        if self.tensor.dtype not in _ALLOWED:
            raise TypeError("%s not allowed as a weak type. The allowed types are %s." % (self.tensor.dtype, _ALLOWED))

    @classmethod
    def from_tensor(cls, tensor):
        """Returns the weak tensor of a tensor."""
        if isinstance(tensor, WeakTensor):
            tensor = tensor.tensor
        if not isinstance(tensor, Tensor):
            raise errors.InvalidArgumentError(None, None, "WeakTensor can only be constructed from tf.Tensor or tf.WeakTensor, but %s was given."
                                              % type(tensor))
        return WeakTensor(tensor)

    @property
    def dtype(self):
        """The type of the elements."""
        return self.tensor.dtype

    @property
    def shape(self):
        """The shape."""
        return self.tensor.shape

    is_tensor_like = property(lambda self: True)

    def __getattr__(self, name):
        tensor = self.__dict__.get("tensor")
        if tensor is None:
            raise AttributeError(name)
        if name == "__name__":
            return "tf.EagerWeakTensor" if isinstance(tensor, _core.EagerTensor) else "tf.GraphWeakTensor"
        return getattr(tensor, name)

    def to_tensor(self):
        """Returns the tensor, whose type is not weak."""
        return self.tensor

    def numpy(self):
        """Returns the value as an array. Only in eager execution."""
        if not isinstance(self.tensor, _core.EagerTensor):
            raise ValueError("WeakTensor.numpy() is only supported in eager mode.")
        return self.tensor.numpy()

    def _as_graph_element(self):
        return self.tensor

    def _gradient_parts(self):
        return [self.tensor]

    def _with_gradients(self, gradients):
        return WeakTensor.from_tensor(convert_to_tensor(gradients[0]))

    def __tf_tensor__(self, dtype=None, name=None):
        return convert_to_tensor(self.tensor, dtype, name)

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return np.array(self.tensor.numpy(), dtype)

    def __iter__(self):
        if not isinstance(self.tensor, _core.EagerTensor):
            raise errors.OperatorNotAllowedInGraphError(
                "Iterating over a symbolic `tf.WeakTensor` is not allowed: its rows are known when a session runs. Write tf.map_fn or "
                "tf.scan instead of the loop.")
        rows = iter(self.tensor)
        return (WeakTensor.from_tensor(row) for row in rows)

    def __len__(self):
        return len(self.tensor)

    def __bool__(self):
        return bool(self.tensor)

    def __int__(self):
        return int(self.tensor)

    def __float__(self):
        return float(self.tensor)

    def __complex__(self):
        return complex(self.tensor)

    def __index__(self):
        return self.tensor.__index__()

    def __hash__(self):
        return hash(self.tensor)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __format__(self, spec):
        return format(self.tensor, spec) + " weakly typed"

    def __str__(self):
        return _marked(str(self.tensor))

    def __repr__(self):
        return _marked(repr(self.tensor))


def _marked(text):
    return "%s, weak=True%s" % (text[:-1], text[-1])


class _OfKind(type):
    """Weak tensors of one kind: those that hold values, or those of graphs."""

    def __instancecheck__(cls, value):
        return isinstance(value, WeakTensor) and isinstance(value, cls.kind)


class EagerWeakTensor(metaclass=_OfKind):
    """The type of weak tensors that hold their values."""

    kind = tensor_type.Value


class GraphWeakTensor(metaclass=_OfKind):
    """The type of weak tensors that a graph computes."""

    kind = tensor_type.Symbol


def convert_to_weak_tensor_or_tensor(t, to_weak):
    """Returns a tensor as a weak one, or a weak one as a tensor."""
    if to_weak:
        return WeakTensor.from_tensor(t)
    return t.tensor if isinstance(t, WeakTensor) else t


register("tf.WeakTensor.Spec")(vars(WeakTensor)["Spec"])
tensor_type.add_kind(WeakTensor, lambda value: value.tensor)
register_tensor_conversion_function(WeakTensor, lambda value, dtype=None, name=None, as_ref=False: convert_to_tensor(value.tensor, dtype, name), 10)
