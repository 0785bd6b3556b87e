"""tensorflow.python.data.util.nest: tf.nest for elements of datasets, where lists and sparse values are leaves."""

import collections.abc

from runnel import nest as _nest
from runnel.core.composite import SparseTensorValue


def is_nested(structure):
    """Tells whether a value is a tuple, a dict, or an object that is made of parts like one."""
    if isinstance(structure, (list, SparseTensorValue)) or hasattr(structure, "ragged_rank"):
        return False
    return _nest.is_nested(structure)


def flatten(structure):
    """Returns the leaves of a structure as a list."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _nest._children(structure) for leaf in flatten(child)]


def assert_same_structure(nest1, nest2, check_types=True):
    """Raises ValueError if two structures differ, and TypeError if their types do."""
    message = "The two structures don't have the same nested structure. First structure: %s, second structure: %s." % (nest1, nest2)
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(message)
    if not is_nested(nest1):
        return
    both_named = _nest._is_namedtuple(nest1) and _nest._is_namedtuple(nest2) and nest1._fields == nest2._fields
    both_mapped = isinstance(nest1, collections.abc.Mapping) and isinstance(nest2, collections.abc.Mapping)
    if check_types and type(nest1) is not type(nest2) and not both_named and not both_mapped:
        raise TypeError("The two structures don't have the same sequence type. First structure has type %s, while second structure has type %s." % (
            type(nest1), type(nest2)))
    if both_mapped and set(nest1) != set(nest2):
        raise ValueError("The two dictionaries don't have the same set of keys. First structure has keys %s, while second structure has keys %s." % (
            list(nest1), list(nest2)))
    first, second = _nest._children(nest1), _nest._children(nest2)
    if len(first) != len(second):
        raise ValueError(message)
    for one, two in zip(first, second):
        try:
            assert_same_structure(one, two, check_types)
        except ValueError as error:
            raise ValueError("%s %s" % (message, error)) from None


def pack_sequence_as(structure, flat_sequence):
    """Returns a structure like `structure` with the leaves of `flat_sequence`."""
    if not isinstance(flat_sequence, (list, tuple)):
        raise TypeError("Argument `flat_sequence` must be a sequence but is of type %s" % type(flat_sequence))
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError("Argument `structure` is a scalar but `len(flat_sequence)`=%d > 1" % len(flat_sequence))
        return flat_sequence[0]
    wanted = len(flatten(structure))
    if wanted != len(flat_sequence):
        raise ValueError("Could not pack sequence. Argument `structure` had %d elements, but argument `flat_sequence` had %d elements. Received "
                         "structure: %s, flat_sequence: %s." % (wanted, len(flat_sequence), structure, flat_sequence))
    return _packed(structure, iter(flat_sequence))


def _packed(structure, leaves):
    if not is_nested(structure):
        return next(leaves)
    return _nest._rebuild(structure, [_packed(child, leaves) for child in _nest._children(structure)])


def map_structure(func, *structure, **check_types_dict):
    """Applies `func` to the leaves of structures. Returns the results in the same structure."""
    if not callable(func):
        raise TypeError("Argument `func` must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = check_types_dict.pop("check_types", True)
    if check_types_dict:
        raise ValueError("Only valid keyword argument for `check_types_dict` is \'check_types\'. Got %s." % check_types_dict)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*row) for row in zip(*(flatten(one) for one in structure))])


def assert_shallow_structure(shallow_tree, input_tree, check_types=True):
    """Raises an error unless `shallow_tree` is a prefix of `input_tree`."""
    if not is_nested(shallow_tree):
        return
    if not is_nested(input_tree):
        raise TypeError("If shallow structure is a sequence, input must also be a sequence. Input has type: \'%s\'." % type(input_tree).__name__)
    both_mapped = isinstance(shallow_tree, collections.abc.Mapping) and isinstance(input_tree, collections.abc.Mapping)
    if check_types and not isinstance(input_tree, type(shallow_tree)) and not both_mapped:
        raise TypeError("The two structures don't have the same sequence type. Input structure has type \'%s\', while shallow structure has type "
                        "\'%s\'." % (type(input_tree).__name__, type(shallow_tree).__name__))
    inner, outer = _nest._children(input_tree), _nest._children(shallow_tree)
    if len(inner) != len(outer):
        raise ValueError("The two structures don't have the same sequence length. Input structure has length %d, while shallow structure has "
                         "length %d." % (len(inner), len(outer)))
    if check_types and both_mapped and set(input_tree) != set(shallow_tree):
        raise ValueError("The two structures don't have the same keys. Input structure has keys %s, while shallow structure has keys %s." % (
            list(input_tree), list(shallow_tree)))
    for one, two in zip(outer, inner):
        assert_shallow_structure(one, two, check_types)


def flatten_up_to(shallow_tree, input_tree):
    """Returns the parts of `input_tree` at the leaves of `shallow_tree`."""
    assert_shallow_structure(shallow_tree, input_tree)
    return _up_to(shallow_tree, input_tree)


def _up_to(shallow_tree, input_tree):
    if not is_nested(shallow_tree):
        return [input_tree]
    return [leaf for one, two in zip(_nest._children(shallow_tree), _nest._children(input_tree)) for leaf in _up_to(one, two)]


def map_structure_up_to(shallow_tree, func, *inputs):
    """Like map_structure, down to the leaves of `shallow_tree` only."""
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    for one in inputs:
        assert_shallow_structure(shallow_tree, one)
    return pack_sequence_as(shallow_tree, [func(*row) for row in zip(*(_up_to(shallow_tree, one) for one in inputs))])
