"""What checkpoints of objects store: the value of a variable, the contents of a table, the position of an iterator."""

from runnel import dtypes, raw_ops
from runnel.core import framework
from runnel.ops import variables

ATTRIBUTES = "/.ATTRIBUTES/"


class Saveable:
    """Tensors of an object that are saved together.

    Args:
      owner: the object.
      attribute: their name in an object graph; each tensor adds a suffix.
      tensors: [(suffix, dtype)].
      read: a function that returns the tensors.
      restore: a function from tensors to the operation that restores them.
      full_name: the name of a variable.
    """

    def __init__(self, owner, attribute, tensors, read, restore, full_name=""):
        self.owner, self.attribute, self.full_name = owner, attribute, full_name
        self.suffixes, self.dtypes = [suffix for suffix, _ in tensors], [dtype for _, dtype in tensors]
        self.read, self.restore = read, restore

    def names(self, key):
        """Returns the names of its tensors in a checkpoint, given its key."""
        return [key + suffix for suffix in self.suffixes]


def _of_variable(variable):
    def restore(tensors):
        if not framework.executing_eagerly():
            tensors[0].set_shape(variable.shape)
        return variable.assign(tensors[0], read_value=False)
    return Saveable(variable, "VARIABLE_VALUE", [("", variable.dtype.base_dtype)], lambda: [variable.value()], restore, variable._shared_name)


def of_iterator(owner, resource):
    """Returns the Saveable of a dataset iterator."""
    return Saveable(owner, "ITERATOR", [("_STATE", dtypes.variant)], lambda: [raw_ops.SerializeIterator(resource_handle=resource)],
                    lambda tensors: raw_ops.DeserializeIterator(resource_handle=resource, serialized=tensors[0]))


def variable_in(value):
    """Returns the variable that an object is, or that an object of a library's class stands for; None if there is none."""
    if getattr(type(value), "_should_act_as_resource_variable", False):
        value = value.value
    return value if isinstance(value, variables.Variable) else None


def saveable_of(value):
    """Returns the Saveable of an object, or None."""
    variable = variable_in(value)
    if variable is not None:
        return _of_variable(variable)
    make = getattr(type(value), "_saveable", None)
    return make(value) if make is not None else None


def flat(saveables):
    """Returns (names, dtypes) of all tensors of {key: Saveable}."""
    return ([name for key, saveable in saveables.items() for name in saveable.names(key)],
            [dtype for saveable in saveables.values() for dtype in saveable.dtypes])


def restored(saveables, tensors):
    """Returns the operations that restore `tensors`, in the order of `flat`."""
    rest = iter(tensors)
    return [saveable.restore([next(rest) for _ in saveable.suffixes]) for saveable in saveables.values()]
