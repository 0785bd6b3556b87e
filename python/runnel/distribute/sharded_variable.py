"""Variables in parts along their first axis, which lie on several parameter servers."""

from runnel.core import convert
from runnel.core.tensor_shape import TensorShape
from runnel.core.trackable import AutoTrackable
from runnel.ops import array_ops, math_ops


class ShardedVariable(AutoTrackable):
    """A variable made of others, its rows in their order. It converts to a tensor; `variables` are the parts."""

    def __init__(self, variables, name="ShardedVariable"):
        self._variables = list(variables)
        first = self._variables[0]
        if any(v.dtype != first.dtype or v.shape[1:] != first.shape[1:] for v in self._variables):
            raise ValueError("All elements in argument `variables` must have the same dtype and the same shape but for the first axis")
        self._name = name

    variables = property(lambda self: self._variables)
    name = property(lambda self: self._name)
    dtype = property(lambda self: self._variables[0].dtype)
    trainable = property(lambda self: self._variables[0].trainable)

    @property
    def shape(self):
        """The shape of the whole."""
        rows = sum(v.shape.as_list()[0] for v in self._variables)
        return TensorShape([rows, *self._variables[0].shape.as_list()[1:]])

    def __iter__(self):
        return iter(self._variables)

    def __len__(self):
        return len(self._variables)

    def _as_operand(self):
        return array_ops.concat([v.read_value() for v in self._variables], 0)

    def read_value(self):
        """Returns the value as a tensor."""
        return self._as_operand()

    value = read_value

    def numpy(self):
        """Returns the value as an array."""
        return self._as_operand().numpy()

    def __getitem__(self, key):
        return self._as_operand()[key]

    def _each(self, method, value):
        value = convert.convert_to_tensor(value, self.dtype)
        sizes = [v.shape.as_list()[0] for v in self._variables]
        for variable, part in zip(self._variables, array_ops.split(value, sizes, 0)):
            getattr(variable, method)(part)
        return self

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Sets the value."""
        return self._each("assign", value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the value."""
        return self._each("assign_add", delta)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Subtracts from the value."""
        return self._each("assign_sub", delta)

    def __repr__(self):
        return "<ShardedVariable %r shape=%s dtype=%s parts=%d>" % (self._name, self.shape, self.dtype.name, len(self._variables))


math_ops.override_operators(ShardedVariable)
convert.register_tensor_conversion_function(
    ShardedVariable, lambda value, dtype=None, name=None, as_ref=False: convert.convert_to_tensor(value._as_operand(), dtype, name=name))
