"""tensorflow.python.util.nest: functions over nested structures that have no public name."""

import collections.abc

from runnel import nest
from runnel.core.nest_up_to import _rows
from runnel.nest import _rebuild as sequence_like  # noqa: F401

_sequence_like = sequence_like


def is_mapping(obj):
    """Tells whether a value is a mapping."""
    return isinstance(obj, collections.abc.Mapping)


def is_attrs(obj):
    """Tells whether a value is an attrs object."""
    return hasattr(type(obj), "__attrs_attrs__")


def _yield_value(iterable):
    """Yields the children of a structure, in order."""
    yield from nest._children(iterable)


def _yield_sorted_items(iterable):
    """Yields (key, child) of a structure; keys are those of dicts, the names of fields, or indices."""
    yield from _rows(iterable, False)
