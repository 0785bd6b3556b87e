"""Short ways through eager execution for what programs do most: operators, indices, and functions with small integers.

Each checks that nothing special is asked of it and else returns None, or calls the general function. A graph under construction
is special: there, nodes have names.
"""

from runnel import _core, raw_ops
from runnel.core import framework

_FLOATS = frozenset((1, 2, 14, 19))  # the numbers of float, double, bfloat16 and half
_INTEGERS = frozenset((3, 9))  # int32, int64
_KEPT = 4096  # the most vectors that are kept
_vectors: dict = {}


def vector(numbers):
    """Returns an int32 tensor of a tuple of integers, or of one integer. It is kept, because tensors do not change."""
    found = _vectors.get(numbers)
    if found is None:
        found = _core.eager_constant(list(numbers) if isinstance(numbers, tuple) else numbers, 3)
        if len(_vectors) < _KEPT:
            _vectors[numbers] = found
    return found


def number(value):
    """Returns an integer as a tensor that is kept; in a graph, and for anything else, the value itself."""
    return vector(value) if type(value) is int and _core.current() is None and -2**31 <= value < 2**31 else value


def _matches(x, y):
    """Tells whether an operator can take `y`, which is of the type of `x` or a number that becomes one."""
    number = x._dtype_number
    if isinstance(y, _core.EagerTensor):
        return y._dtype_number == number
    kind = type(y)
    return kind is float and number in _FLOATS or kind is int and (number in _FLOATS or number in _INTEGERS and -2**31 <= y < 2**31)


def _operator(name, op, types):
    general = "__%s__" % name

    def method(self, other):
        if self._dtype_number in types and _matches(self, other) and _core.current() is None:
            return op(self, other)
        return getattr(framework.Tensor, general)(self, other)
    method.__name__ = general
    return method


def operators():
    """Returns {name: method} of the operators of eager tensors."""
    numbers = _FLOATS | _INTEGERS
    return {"__%s__" % name: _operator(name, op, types) for name, op, types in (
        ("add", raw_ops.AddV2, numbers), ("sub", raw_ops.Sub, numbers), ("mul", raw_ops.Mul, numbers), ("truediv", raw_ops.RealDiv, _FLOATS),
        ("pow", raw_ops.Pow, _FLOATS), ("floordiv", raw_ops.FloorDiv, numbers))}


def part(tensor, begin, end, strides, masks):
    """Returns a slice of an eager tensor; the bounds are lists of integers."""
    return raw_ops.StridedSlice(tensor, vector(tuple(begin)), vector(tuple(end)), vector(tuple(strides)), **masks)
