"""tf.nest: nested structures of lists, tuples, namedtuples, dicts, attrs objects and dataclasses that can be flattened.

Dicts are walked in the order of their keys. Strings, arrays and tensors are leaves. A dataclass can be flattened if it has the
methods `__tf_flatten__`, which returns (metadata, components), and `__tf_unflatten__(metadata, components)`.
"""

import collections.abc
import functools


def is_nested(structure):
    """Tells whether `structure` is a list, a tuple, a dict, or an object that is made of parts like one."""
    return isinstance(structure, (list, tuple, collections.abc.Mapping)) or _is_object(structure)


def _is_object(structure):
    """Tells whether a value is an attrs object, or a dataclass that can be flattened."""
    return _is_kind_of_object(type(structure))


@functools.lru_cache(maxsize=1024)
def _is_kind_of_object(kind):
    return hasattr(kind, "__attrs_attrs__") or hasattr(kind, "__tf_flatten__") and hasattr(kind, "__dataclass_fields__")


def _is_namedtuple(structure):
    return isinstance(structure, tuple) and hasattr(structure, "_fields")


def _children(structure):
    if isinstance(structure, collections.abc.Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    if _is_object(structure):
        if hasattr(type(structure), "__attrs_attrs__"):
            return [getattr(structure, attribute.name) for attribute in type(structure).__attrs_attrs__]
        return list(structure.__tf_flatten__()[1])
    return list(structure)


def _sorted_keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _rebuild(like, children):
    """Returns a structure like `like` with other children, in the order of `_children`."""
    if isinstance(like, collections.abc.Mapping):
        found = dict(zip(_sorted_keys(like), children))
        pairs = [(key, found[key]) for key in like]
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, pairs)
        return type(like)(pairs)
    if _is_namedtuple(like):
        return type(like)(*children)
    if _is_object(like):
        if hasattr(type(like), "__attrs_attrs__"):
            return type(like)(*children)
        return like.__tf_unflatten__(like.__tf_flatten__()[0], tuple(children))
    return type(like)(children)


def flatten(structure, expand_composites=False):
    """Returns the leaves of a structure as a list."""
    if not is_nested(structure):
        if expand_composites and _is_made_of_parts(structure):
            return _components(structure)
        return [structure]
    leaves = []
    for child in _children(structure):
        leaves.extend(flatten(child, expand_composites))
    return leaves


def _is_made_of_parts(value):
    """Tells whether a value is a composite tensor, or the TypeSpec of one."""
    if getattr(value, "_is_composite", False):
        return True
    return getattr(value, "_is_type_spec", False) and value._component_specs is not value


def _parts(value):
    if getattr(value, "_is_type_spec", False):
        return value._component_specs
    return value._type_spec._to_components(value)


def _components(value):
    return flatten(_parts(value), expand_composites=True)


def _from_components(like, leaves):
    parts = _pack(_parts(like), leaves, True)
    if getattr(like, "_is_type_spec", False):
        return like._from_components(parts)
    return like._type_spec._without_shape()._from_components(parts)


def _pack(structure, leaves, expand_composites):
    if not is_nested(structure):
        if expand_composites and _is_made_of_parts(structure):
            return _from_components(structure, leaves)
        return next(leaves)
    return _rebuild(structure, [_pack(child, leaves, expand_composites)
                                for child in _children(structure)])


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """Returns a structure like `structure` with the leaves of `flat_sequence`."""
    flat = list(flat_sequence)
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat):
        raise ValueError("Could not pack sequence. Structure had %d elements, but flat_sequence had "
                         "%d elements. Structure: %s, flat_sequence: %s." % (
                             wanted, len(flat), structure, flat))
    return _pack(structure, iter(flat), expand_composites)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises ValueError if two structures differ, and TypeError if their types do."""
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
    """Applies `func` to the leaves of structures. Returns the results in the same structure."""
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    rows = zip(*(flatten(one, expand_composites) for one in structure))
    return pack_sequence_as(structure[0], [func(*row) for row in rows], expand_composites)


def flatten_up_to(shallow, structure):
    """Returns the parts of `structure` at the leaves of `shallow`."""
    if not is_nested(shallow):
        return [structure]
    if not is_nested(structure) or len(_children(shallow)) != len(_children(structure)):
        raise ValueError("The shallow structure %s is not a prefix of %s" % (shallow, structure))
    parts = []
    for one, two in zip(_children(shallow), _children(structure)):
        parts.extend(flatten_up_to(one, two))
    return parts


def map_structure_up_to(shallow, func, *structure):
    """Like map_structure, down to the leaves of `shallow` only."""
    rows = zip(*(flatten_up_to(shallow, one) for one in structure))
    return pack_sequence_as(shallow, [func(*row) for row in rows])


is_sequence = is_nested


def flatten_with_tuple_paths(structure, expand_composites=False):
    """Returns [(path, leaf)]; a path is a tuple of keys and indices."""
    if not is_nested(structure):
        return [((), structure)]
    if isinstance(structure, collections.abc.Mapping):
        keys = _sorted_keys(structure)
    else:
        keys = structure._fields if _is_namedtuple(structure) else range(len(structure))
    return [((key, *path), leaf) for key, child in zip(keys, _children(structure))
            for path, leaf in flatten_with_tuple_paths(child)]


def flatten_with_joined_string_paths(structure, separator="/", expand_composites=False):
    """Returns [(path, leaf)]; a path is a string."""
    return [(separator.join(str(part) for part in path), leaf)
            for path, leaf in flatten_with_tuple_paths(structure)]


def yield_flattened_paths(nest, expand_composites=False):
    """Yields the paths of the leaves."""
    return [path for path, _ in flatten_with_tuple_paths(nest)]


def map_structure_with_tuple_paths(func, *structure, **kwargs):
    """Like map_structure; `func` gets the path of the leaf, a tuple, first."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other, kwargs.get("check_types", True))
    paths = yield_flattened_paths(structure[0])
    rows = zip(paths, *(flatten(one) for one in structure))
    return pack_sequence_as(structure[0], [func(*row) for row in rows])


def map_structure_with_paths(func, *structure, **kwargs):
    """Like map_structure; `func` gets the path of the leaf, a string, first."""
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(str(part) for part in path), *leaves), *structure, **kwargs)


def assert_shallow_structure(shallow_tree, input_tree, check_types=True, expand_composites=False):
    """Raises an error unless `shallow_tree` is a prefix of `input_tree`."""
    if not is_nested(shallow_tree):
        return
    if not is_nested(input_tree):
        raise TypeError("If shallow structure is a sequence, input must also be a sequence. Input has type: %s." % (
            type(input_tree),))
    if check_types and not isinstance(input_tree, type(shallow_tree)) and not (
            _is_namedtuple(shallow_tree) and _is_namedtuple(input_tree)) and not (
            isinstance(shallow_tree, collections.abc.Mapping) and isinstance(input_tree, collections.abc.Mapping)):
        raise TypeError("The two structures don't have the same sequence type. Input structure has type %s, while "
                        "shallow structure has type %s." % (type(input_tree), type(shallow_tree)))
    if len(input_tree) != len(shallow_tree):
        raise ValueError("The two structures don't have the same sequence length. Input structure has length %s, while "
                         "shallow structure has length %s." % (len(input_tree), len(shallow_tree)))
    if isinstance(shallow_tree, collections.abc.Mapping) and set(input_tree) != set(shallow_tree):
        raise ValueError("The two structures don't have the same keys. Input structure has keys %s, while shallow "
                         "structure has keys %s." % (list(input_tree), list(shallow_tree)))
    for one, two in zip(_children(shallow_tree), _children(input_tree)):
        assert_shallow_structure(one, two, check_types)


def flatten_dict_items(dictionary):
    """Flattens a dict whose keys and values are structures into a dict of leaves."""
    if not isinstance(dictionary, collections.abc.Mapping):
        raise TypeError("input must be a dictionary")
    flat = {}
    for key, value in dictionary.items():
        if not is_nested(key):
            pairs = [(key, value)]
        else:
            keys, values = flatten(key), flatten(value)
            if len(keys) != len(values):
                raise ValueError("Could not flatten dictionary. Key had %d elements, but value had %d elements. Key: %s, "
                                 "value: %s." % (len(keys), len(values), keys, values))
            pairs = zip(keys, values)
        for one, two in pairs:
            if one in flat:
                raise ValueError("Could not flatten dictionary: key %s is not unique." % (one,))
            flat[one] = two
    return flat
