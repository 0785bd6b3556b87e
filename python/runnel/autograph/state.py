"""The state of converted blocks: values of names, of which some may be undefined."""

import contextlib

from runnel import dtypes, nest, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor


class Undefined:
    """The value of a name before it is assigned. Converted code reads names with `load`, which complains."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "<undefined %s>" % self.name


def is_defined(value):
    """Tells whether a value is not Undefined."""
    return not isinstance(value, Undefined)


def known(read, name):
    """Returns what `read` returns, or Undefined if the place does not exist yet."""
    try:
        return read()
    except (NameError, AttributeError, KeyError, IndexError):
        return Undefined(name)


def load(value):
    """Returns a value that is about to be used. Raises UnboundLocalError if it is undefined."""
    if isinstance(value, Undefined):
        raise UnboundLocalError("'%s' is used before assignment" % value.name)
    return value


def is_tensor(value):
    """Tells whether a value is only known when the graph runs."""
    if isinstance(value, framework.Tensor):
        return True
    from runnel.ops.variables import Variable
    return isinstance(value, Variable)


def as_condition(value, what):
    """Converts a condition with exactly one element to a scalar tensor. Raises ValueError for anything else."""
    value = convert_to_tensor(value)
    if value.dtype.base_dtype != dtypes.bool:
        raise ValueError("condition of %s expected to be `tf.bool` scalar, got %s; to use as boolean Tensor, use `tf.cast`; to check for None, use "
                         "`is not None`" % (what, value))
    if value.shape.rank == 0:
        return value
    if value.shape.is_fully_defined() and value.shape.num_elements() != 1:
        raise ValueError("condition of %s expected to be `tf.bool` scalar, got %s" % (what, value))
    return raw_ops.Reshape(tensor=value, shape=convert_to_tensor([], dtype=dtypes.int32))


def builds_graph():
    """Tells whether operations become nodes."""
    return not framework.executing_eagerly()


def is_flow_value(value):
    """Tells whether a leaf of the state is a value that loops and branches carry: a tensor, or what becomes one."""
    from runnel.ops.tensor_array import TensorArray
    if is_tensor(value) or isinstance(value, (bool, int, float, complex, str, bytes, TensorArray)) or getattr(value, "_is_composite", False):
        return True
    return type(value).__module__ == "numpy"


def as_flow(value):
    """Returns a leaf as it is carried: a tensor, a TensorArray or a composite."""
    from runnel.ops.tensor_array import TensorArray
    if isinstance(value, TensorArray) or getattr(value, "_is_composite", False):
        return value
    return convert_to_tensor(value)


def spec_of(value):
    """Returns (type, shape) of a carried leaf; None for those that are not tensors."""
    return (value.dtype.base_dtype, value.shape) if isinstance(value, framework.Tensor) else None


class Layout:
    """How a state is made of leaves that are carried, and of other objects that stay what they are."""

    def __init__(self, values):
        self.values = list(values)
        self.leaves = [nest.flatten(v) if is_defined(v) else [v] for v in self.values]
        self.flat = [leaf for row in self.leaves for leaf in row]
        self.carried = [i for i, leaf in enumerate(self.flat) if is_flow_value(leaf)]

    def fill(self, carried):
        """Returns the values of the state with these leaves in place of the carried ones."""
        flat = list(self.flat)
        for i, leaf in zip(self.carried, carried):
            flat[i] = leaf
        leaves = iter(flat)
        filled = []
        for value, row in zip(self.values, self.leaves):
            own = [next(leaves) for _ in row]
            filled.append(nest.pack_sequence_as(value, own) if is_defined(value) and nest.is_nested(value) else own[0])
        return tuple(filled)

    def name_of(self, index, names):
        """Returns the name of the value that a leaf belongs to."""
        for name, row in zip(names, self.leaves):
            if index < len(row):
                return name
            index -= len(row)
        raise IndexError(index)


@contextlib.contextmanager
def scratch_graph():
    """A context manager: what is built inside is thrown away."""
    from runnel.eager.func_graph import FuncGraph
    with FuncGraph("state", outer=framework.get_default_graph()).as_default():
        yield
