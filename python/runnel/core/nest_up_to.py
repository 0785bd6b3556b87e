"""Structures walked as deep as another, shallower one: flatten_up_to, map_structure_up_to and others of tensorflow.python.util.nest."""

import collections.abc

from runnel import nest

STRUCTURES_HAVE_MISMATCHING_TYPES = (
    "The two structures don't have the same sequence type. Input structure has type {input_type}, while shallow structure has type {shallow_type}.")
STRUCTURES_HAVE_MISMATCHING_LENGTHS = (
    "The two structures don't have the same sequence length. Input structure has length {input_length}, while shallow structure has length "
    "{shallow_length}.")
SHALLOW_TREE_HAS_INVALID_KEYS = (
    "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the following keys that are not in the input_tree: {}.")
IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ = "If shallow structure is a sequence, input must also be a sequence. Input has type: {}."


def is_namedtuple(instance, strict=False):
    """Tells whether a value is a namedtuple; with `strict`, of a class made by collections.namedtuple itself."""
    if strict and type(instance).__base__ is not tuple:
        return False
    return isinstance(instance, tuple) and isinstance(getattr(instance, "_fields", None), collections.abc.Sequence) and all(
        isinstance(field, str) for field in instance._fields)


def same_namedtuples(nest1, nest2):
    """Tells whether two namedtuples are of classes with the same name and fields."""
    return type(nest1).__name__ == type(nest2).__name__ and nest1._fields == nest2._fields


def _is_attrs(value):
    return hasattr(type(value), "__attrs_attrs__")


def _is_inner(value, expand_composites):
    """Tells whether a value has parts to walk."""
    return nest.is_nested(value) or expand_composites and nest._is_made_of_parts(value)


def _rows(value, expand_composites):
    """Returns [(key, part)] of a value that has parts."""
    if not nest.is_nested(value):
        kind = value.value_type if getattr(value, "_is_type_spec", False) else type(value)
        return [(kind.__name__, nest._parts(value))]
    if isinstance(value, collections.abc.Mapping):
        return [(key, value[key]) for key in nest._sorted_keys(value)]
    if _is_attrs(value):
        return [(a.name, getattr(value, a.name)) for a in type(value).__attrs_attrs__]
    keys = value._fields if nest._is_namedtuple(value) else None
    parts = nest._children(value)
    return list(zip(keys, parts)) if keys else list(enumerate(parts))


def assert_shallow_structure(shallow_tree, input_tree, check_types=True, expand_composites=False):
    """Raises an error unless `shallow_tree` is a prefix of `input_tree`."""
    if not _is_inner(shallow_tree, expand_composites):
        return
    if not _is_inner(input_tree, expand_composites):
        raise TypeError(IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ.format(type(input_tree)))
    is_composite = not nest.is_nested(shallow_tree)
    if is_composite:
        _assert_same_composites(shallow_tree, input_tree)
    elif check_types and not isinstance(input_tree, nest._type(shallow_tree)) and not _are_of_one_kind(shallow_tree, input_tree):
        raise TypeError(STRUCTURES_HAVE_MISMATCHING_TYPES.format(input_type=type(input_tree), shallow_type=type(shallow_tree)))
    shallow, given = _rows(shallow_tree, expand_composites), _rows(input_tree, expand_composites)
    if len(shallow) != len(given):
        raise ValueError(STRUCTURES_HAVE_MISMATCHING_LENGTHS.format(input_length=len(given), shallow_length=len(shallow)))
    if isinstance(shallow_tree, collections.abc.Mapping):
        absent = set(shallow_tree) - set(input_tree)
        if absent:
            raise ValueError(SHALLOW_TREE_HAS_INVALID_KEYS.format(sorted(absent)))
    for (_, one), (_, two) in zip(shallow, given):
        assert_shallow_structure(one, two, check_types, expand_composites)


def _are_of_one_kind(one, two):
    if nest._is_namedtuple(one) and nest._is_namedtuple(two):
        return same_namedtuples(one, two)
    return isinstance(one, collections.abc.Mapping) and isinstance(two, collections.abc.Mapping)


def _assert_same_composites(shallow, given):
    specs = [x if getattr(x, "_is_type_spec", False) else getattr(x, "_type_spec", None) for x in (shallow, given)]
    if specs[1] is None or nest.is_nested(given):
        raise TypeError(STRUCTURES_HAVE_MISMATCHING_TYPES.format(input_type=type(given), shallow_type=type(shallow)))
    if specs[0]._without_tensor_names().most_specific_common_supertype([specs[1]._without_tensor_names()]) is None:
        raise ValueError("Incompatible CompositeTensor TypeSpecs: %s vs. %s" % tuple(specs))


def _walked(shallow, given, expand_composites, path=()):
    if not _is_inner(shallow, expand_composites):
        yield path, given
        return
    for (key, one), (_, two) in zip(_rows(shallow, expand_composites), _rows(given, expand_composites)):
        yield from _walked(one, two, expand_composites, (*path, key))


def flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types=True, expand_composites=False):
    """Returns [(path, part)] of the parts of `input_tree` at the leaves of `shallow_tree`."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return list(_walked(shallow_tree, input_tree, expand_composites))


def flatten_up_to(shallow_tree, input_tree, check_types=True, expand_composites=False):
    """Returns the parts of `input_tree` at the leaves of `shallow_tree`."""
    return [part for _, part in flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites)]


def map_structure_with_tuple_paths_up_to(shallow_tree, func, *inputs, **kwargs):
    """Like map_structure_up_to; `func` gets the path, a tuple, first."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    expand = kwargs.get("expand_composites", False)
    rows = [flatten_with_tuple_paths_up_to(shallow_tree, x, kwargs.get("check_types", True), expand) for x in inputs]
    results = [func(row[0][0], *[part for _, part in row]) for row in zip(*rows)]
    return nest.pack_sequence_as(shallow_tree, results, expand)


def map_structure_up_to(shallow_tree, func, *inputs, **kwargs):
    """Like map_structure, down to the leaves of `shallow_tree` only."""
    return map_structure_with_tuple_paths_up_to(shallow_tree, lambda _, *parts: func(*parts), *inputs, **kwargs)


def yield_flat_paths(structure, expand_composites=False):
    """Yields the paths of the leaves."""
    for path, _ in _walked(structure, structure, expand_composites):
        yield path


def get_traverse_shallow_structure(traverse_fn, structure, expand_composites=False):
    """Returns a structure of bools: True where `traverse_fn` says to walk on, or where a leaf is."""
    answer = traverse_fn(structure)
    if not _is_inner(structure, expand_composites):
        if not isinstance(answer, bool):
            raise TypeError("traverse_fn returned structure: %s for non-structure: %s" % (answer, structure))
        return answer
    parts = [part for _, part in _rows(structure, expand_composites)]
    if isinstance(answer, bool):
        if not answer:
            return False
        return nest._rebuild(structure, [get_traverse_shallow_structure(traverse_fn, part, expand_composites) for part in parts])
    if not nest.is_nested(answer):
        raise TypeError("traverse_fn returned a non-bool scalar: %s for input: %s" % (answer, structure))
    assert_shallow_structure(answer, structure, expand_composites=expand_composites)
    made = []
    for flag, part in zip([x for _, x in _rows(answer, False)], parts):
        if not isinstance(flag, bool):
            raise TypeError("traverse_fn didn't return a depth=1 structure of bools.  saw: %s  for structure: %s" % (answer, structure))
        made.append(get_traverse_shallow_structure(traverse_fn, part, expand_composites) if flag else False)
    return nest._rebuild(structure, made)


def list_to_tuple(structure):
    """Returns a structure with tuples in place of lists."""
    if not nest.is_nested(structure):
        return structure
    parts = [list_to_tuple(part) for part in nest._children(structure)]
    return tuple(parts) if isinstance(structure, list) else nest._rebuild(structure, parts)
