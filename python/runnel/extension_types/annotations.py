"""Questions about type annotations: is it a union, a tuple, a mapping of given types?"""

import collections.abc
import types
import typing


def is_generic_union(tp):
    """Tells whether an annotation is a union."""
    return tp is not typing.Union and (typing.get_origin(tp) is typing.Union or isinstance(tp, types.UnionType))


def is_generic_tuple(tp):
    """Tells whether an annotation is a tuple of given types."""
    return tp not in (tuple, typing.Tuple) and typing.get_origin(tp) in (tuple, typing.Tuple)  # noqa: UP006


def is_generic_list(tp):
    """Tells whether an annotation is a list of a given type."""
    return tp not in (list, typing.List) and typing.get_origin(tp) in (list, typing.List)  # noqa: UP006


def is_generic_mapping(tp):
    """Tells whether an annotation is a mapping of given types."""
    return tp not in (collections.abc.Mapping, typing.Mapping) and typing.get_origin(tp) in (collections.abc.Mapping, typing.Mapping)


def is_forward_ref(tp):
    """Tells whether an annotation names a type that is defined later."""
    return isinstance(tp, (str, typing.ForwardRef))


def get_generic_arg_values(tp):
    """Returns the types that a generic type is given."""
    return typing.get_args(tp)


get_generic_type_args = get_generic_arg_values
