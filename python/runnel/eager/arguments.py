"""The arguments of a repeated call of a tf.function: which trace they need, without making their types.

Arguments are a structure. Its leaves that are tensors (or composite tensors, arrays, variables) are told apart by type and
shape; numbers and strings by value; other objects as `functions.trace_type` does.
"""

from runnel import nest
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TypeSpec
from runnel.functions.trace_type import of_object
from runnel.ops.resource_variable import ResourceVariable

_PLAIN = (int, float, str, bytes, bool, type(None), complex)


class Arguments:
    """The arguments of one call. `is_special` if only their types can tell which trace they need."""

    def __init__(self, args, kwargs):
        self._given = [args, kwargs]
        self._tensors, self._leaves, self._handles = [], [], {}
        self.is_special = False
        for x in nest.flatten(self._given):
            self._leaves.append(self._described(x))
        self.is_special = self.is_special or any(isinstance(x, TypeSpec) for x in self._leaves)

    def _described(self, x):
        """Returns what tells traces apart at a leaf, and keeps its tensors."""
        if isinstance(x, framework.Tensor):
            self._tensors.append(x)
            return x._dtype_number, x._dims()
        if type(x) in _PLAIN:
            return type(x), x
        if isinstance(x, ResourceVariable):
            number = self._handles.get(id(x))
            if number is None:
                number = self._handles[id(x)] = len(self._handles)
                self._tensors.append(x.handle)
                if x.trainable:
                    self._read(x)
            return number, x.dtype, x.shape._dims, x.trainable
        if hasattr(x, "_is_composite"):
            spec = x._type_spec
            self._tensors += spec._to_tensors(x)
            return spec, type(x)
        if type(x).__module__ == "numpy" and hasattr(x, "dtype"):
            tensor = convert_to_tensor(x)
            self._tensors.append(tensor)
            return tensor._dtype_number, tensor._dims()
        if hasattr(type(x), "__tf_tracing_type__") or hasattr(x, "__wrapped__") or hasattr(x, "__array__"):
            self.is_special = True
            return None
        return of_object(x)

    @staticmethod
    def _read(variable):
        from runnel.eager import backprop
        backprop._accessed(variable)

    def tensors(self):
        """Returns the tensors, in the order in which the graph takes them."""
        return self._tensors

    def key(self):
        """Returns what tells traces apart."""
        return _structure_key(self._given), tuple(self._leaves)


def _structure_key(value):
    if isinstance(value, dict):
        return type(value).__name__, tuple([(k, _structure_key(value[k])) for k in sorted(value, key=repr)])
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple([_structure_key(item) for item in value])
    return None
