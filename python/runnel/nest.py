"""Nested structures: lists, tuples, namedtuples and dicts of anything (tf.nest).

Dicts are walked in the order of their keys. Strings, arrays and tensors are leaves.
"""

import collections.abc


def is_nested(structure):
    """Whether it is a list, a tuple or a dict."""
    return isinstance(structure, (list, tuple, collections.abc.Mapping))


def _is_namedtuple(structure):
    return isinstance(structure, tuple) and hasattr(structure, "_fields")


def _children(structure):
    if isinstance(structure, collections.abc.Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    return list(structure)


def _sorted_keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _rebuild(like, children):
    """A structure as `like` of other children, given in the order of `_children`."""
    if isinstance(like, collections.abc.Mapping):
        found = dict(zip(_sorted_keys(like), children))
        pairs = [(key, found[key]) for key in like]
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, pairs)
        return type(like)(pairs)
    if _is_namedtuple(like):
        return type(like)(*children)
    return type(like)(children)


def flatten(structure, expand_composites=False):
    """The leaves as a list."""
    if not is_nested(structure):
        if expand_composites and getattr(structure, "_is_composite", False):
            return _components(structure)
        return [structure]
    leaves = []
    for child in _children(structure):
        leaves.extend(flatten(child, expand_composites))
    return leaves


def _components(value):
    from runnel.composite import SparseTensor
    if isinstance(value, SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    parts = [value.values, value.indices]
    return parts if value.dense_shape is None else parts + [value.dense_shape]


def _from_components(like, parts):
    from runnel.composite import IndexedSlices, SparseTensor
    if isinstance(like, SparseTensor):
        return SparseTensor(*parts)
    return IndexedSlices(*parts)


def _pack(structure, leaves, expand_composites):
    if not is_nested(structure):
        if expand_composites and getattr(structure, "_is_composite", False):
            return _from_components(structure, [next(leaves) for _ in _components(structure)])
        return next(leaves)
    return _rebuild(structure, [_pack(child, leaves, expand_composites)
                                for child in _children(structure)])


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """A structure as `structure` with the leaves of `flat_sequence`."""
    flat = list(flat_sequence)
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat):
        raise ValueError("Could not pack sequence. Structure had %d elements, but flat_sequence had "
                         "%d elements. Structure: %s, flat_sequence: %s." % (
                             wanted, len(flat), structure, flat))
    return _pack(structure, iter(flat), expand_composites)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises ValueError unless both are nested alike, TypeError if their types differ."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError("The two structures don't have the same nested structure.\n\n"
                         "First structure: %s\n\nSecond structure: %s" % (nest1, nest2))
    if not is_nested(nest1):
        if expand_composites and (getattr(nest1, "_is_composite", False)
                                  != getattr(nest2, "_is_composite", False)):
            raise TypeError("The two structures don't have the same nested structure: %s and %s" % (
                nest1, nest2))
        return
    if check_types and type(nest1) is not type(nest2) and not (
            _is_namedtuple(nest1) and _is_namedtuple(nest2) and nest1._fields == nest2._fields):
        raise TypeError("The two structures don't have the same sequence type. First structure has "
                        "type %s, while second structure has type %s." % (
                            type(nest1).__name__, type(nest2).__name__))
    if isinstance(nest1, collections.abc.Mapping) and set(nest1) != set(nest2):
        raise ValueError("The two dictionaries don't have the same set of keys: %s and %s" % (
            sorted(nest1), sorted(nest2)))
    first, second = _children(nest1), _children(nest2)
    if len(first) != len(second):
        raise ValueError("The two structures don't have the same number of elements: %s and %s" % (
            nest1, nest2))
    for one, two in zip(first, second):
        assert_same_structure(one, two, check_types, expand_composites)


def map_structure(func, *structure, check_types=True, expand_composites=False):
    """A structure of `func`'s results for the leaves of structures that are nested alike."""
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    rows = zip(*(flatten(one, expand_composites) for one in structure))
    return pack_sequence_as(structure[0], [func(*row) for row in rows], expand_composites)


def flatten_up_to(shallow, structure):
    """The parts of `structure` that stand where `shallow` has leaves."""
    if not is_nested(shallow):
        return [structure]
    if not is_nested(structure) or len(_children(shallow)) != len(_children(structure)):
        raise ValueError("The shallow structure %s does not fit %s" % (shallow, structure))
    parts = []
    for one, two in zip(_children(shallow), _children(structure)):
        parts.extend(flatten_up_to(one, two))
    return parts


def map_structure_up_to(shallow, func, *structure):
    """As map_structure, down to the leaves of `shallow`."""
    rows = zip(*(flatten_up_to(shallow, one) for one in structure))
    return pack_sequence_as(shallow, [func(*row) for row in rows])
