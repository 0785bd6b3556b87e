"""tf.experimental.numpy.experimental_enable_numpy_behavior: NumPy's rules for all tensors of the process."""

import runnel as tf
from runnel.experimental_numpy import promotion_modes
from runnel.core.framework import Tensor
from runnel.experimental_numpy import indexing, products, promotion, reductions, shapes
from runnel.experimental_numpy.elementwise import FUNCTIONS, around, clip
from runnel.ops import array_ops
from runnel.ops.variables import Variable

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "div": "true_divide", "floordiv": "floor_divide",
    "mod": "mod", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _both_ways(function):
    return (lambda self, other: function(self, other)), (lambda self, other: function(other, self))


def _methods():
    found = {"__%s__" % name: FUNCTIONS[other] for name, other in _COMPARISONS.items()}
    for name, function in [(name, FUNCTIONS[other]) for name, other in _OPERATORS.items()] + [("matmul", products.matmul)]:
        found["__%s__" % name], found["__r%s__" % name] = _both_ways(function)
    found["__getitem__"] = lambda self, spec: indexing.indexed(self, spec, array_ops._slice_helper)
    found["__round__"] = lambda self, decimals=0: around(self, decimals or 0)
    found["T"] = property(shapes.transpose)
    found["ndim"] = property(shapes.ndim)
    found["size"] = property(shapes.size)
    found["data"] = property(lambda self: self)
    found["astype"] = lambda self, dtype: tf.cast(self, promotion.numpy_type(dtype))
    found["tolist"] = lambda self: self.numpy().tolist()
    found["transpose"] = shapes.transpose
    found["reshape"] = _reshape
    for function in (shapes.ravel, shapes.flatten, clip, reductions.max, reductions.min, reductions.sum, reductions.mean):
        found[function.__name__] = function
    return found


def _reshape(self, *newshape, **kwargs):
    if len(newshape) == 1 and not isinstance(newshape[0], int):
        newshape = newshape[0]
    return shapes.reshape(self, kwargs.pop("newshape", newshape), **kwargs)


def experimental_enable_numpy_behavior(prefer_float32=False, dtype_conversion_mode="legacy"):
    """Makes the operators of tensors promote types as NumPy does, and adds NumPy's methods and indices to tensors.

    Args:
      prefer_float32: whether Python's floats become float32 instead of float64.
      dtype_conversion_mode: "legacy": NumPy's promotion. "safe", "all": promotion with weak types (promotion_modes.py).
    """
    promotion_modes.set_dtype_conversion_mode(dtype_conversion_mode)
    promotion.set_prefer_float32(prefer_float32)
    skipped = {"__%s%s__" % (r, n) for r in ("", "r") for n in _OPERATORS} if dtype_conversion_mode != "legacy" else ()
    for name, value in _methods().items():
        if name not in skipped:
            setattr(Tensor, name, value)
    for cls in (Variable, *_subclasses(Variable)):
        for name, value in _methods().items():
            if name in vars(cls) and name not in skipped and name != "size":
                setattr(cls, name, value)


def _subclasses(cls):
    return [found for child in cls.__subclasses__() for found in (child, *_subclasses(child))]
