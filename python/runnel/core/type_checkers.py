"""Which arguments fit the type annotations by which functions are chosen (core/dispatch.py)."""

import collections.abc
import functools
import types
import typing

from runnel.core.type_spec import TypeSpec

_dispatchable: set = set()


@typing.runtime_checkable
class TensorProtocol(typing.Protocol):
    """Objects that convert to a tensor by themselves."""

    def __tf_tensor__(self, dtype=None, name=None):
        """Returns the tensor."""


def register_dispatchable_type(cls):
    """A decorator of classes without TypeSpecs, such as namedtuples, for which functions may be chosen."""
    _dispatchable.add(cls)
    return cls


class TypeChecker:
    """Tells whether a value fits an annotation. `classes` are those that the annotation names."""

    def __init__(self, annotation, classes, fits):
        self.annotation, self.classes, self.fits = annotation, classes, fits

    def __repr__(self):
        return "<TypeChecker %s>" % (self.annotation,)


@functools.cache
def make_type_checker(annotation):
    """Returns the TypeChecker of an annotation: a class, None, or a Union or List of annotations. Raises ValueError for others."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None:
        annotation = type(None)
    if origin is typing.Union or isinstance(annotation, types.UnionType):
        parts = [make_type_checker(arg) for arg in args]
        return TypeChecker(annotation, _together(parts), lambda value: any(part.fits(value) for part in parts))
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        item = make_type_checker(args[0])
        return TypeChecker(annotation, item.classes, lambda value: isinstance(value, (list, tuple)) and len(value) > 0
                           and all(item.fits(part) for part in value))
    if isinstance(annotation, TypeSpec):
        return TypeChecker(annotation, {annotation.value_type}, annotation.is_compatible_with)
    if isinstance(annotation, type) and origin is None:
        return TypeChecker(annotation, {annotation}, lambda value: isinstance(value, annotation))
    raise ValueError("Type annotation %s is not currently supported by dispatch.  Supported annotations: type objects,  List[...], and "
                     "Union[...]"
                     % (annotation,))


def _together(parts):
    return {kind for part in parts for kind in part.classes}


def __getattr__(name):
    if name != "TensorLike":
        raise AttributeError(name)
    import numpy

    from runnel.core.tensor_type import Tensor
    value = typing.Union[Tensor, TensorProtocol, int, float, bool, str, bytes, complex, tuple, list, numpy.ndarray, numpy.generic]
    globals()[name] = value
    return value
