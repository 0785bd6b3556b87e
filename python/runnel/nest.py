"""tf.nest: nested structures of sequences, namedtuples, dicts, attrs objects and dataclasses that can be flattened.

Dicts are walked in the order of their keys. Strings, arrays and tensors are leaves. A dataclass can be flattened if it has the
methods `__tf_flatten__`, which returns (metadata, components), and `__tf_unflatten__(metadata, components)`.
"""

import collections.abc
import functools


def is_nested(structure):
    """Tells whether `structure` is a sequence, a dict, a view of one, or an object that is made of parts like one. Strings are leaves."""
    return _is_nested_type(type(structure))


@functools.lru_cache(maxsize=4096)
def _is_nested_type(kind):
    if issubclass(kind, (list, tuple, collections.abc.Mapping, collections.abc.MappingView)) or _is_kind_of_object(kind):
        return True
    return issubclass(kind, collections.abc.Sequence) and not issubclass(kind, (str, bytes))


def _is_object(structure):
    """Tells whether a value is an attrs object, or a dataclass that can be flattened."""
    return _is_kind_of_object(type(structure))


@functools.lru_cache(maxsize=1024)
def _is_kind_of_object(kind):
    return hasattr(kind, "__attrs_attrs__") or hasattr(kind, "__tf_flatten__") and hasattr(kind, "__dataclass_fields__")


def _type(structure):
    """Returns the type of a structure; of the wrappers that attributes of a tf.Module become, the type of what they wrap."""
    return getattr(type(structure), "_plain_type", type(structure))


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
        return _type(like)(pairs)
    if _is_namedtuple(like):
        return _type(like)(*children)
    if _is_object(like):
        if hasattr(type(like), "__attrs_attrs__"):
            return type(like)(*children)
        return like.__tf_unflatten__(like.__tf_flatten__()[0], tuple(children))
    return list(children) if isinstance(like, (collections.abc.MappingView, range)) else _type(like)(children)


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
    if isinstance(flat_sequence, (str, bytes)):
        raise TypeError("Attempted to pack value:\n  %s\ninto a structure, but found incompatible type `%s` instead." % (
            flat_sequence, type(flat_sequence)))
    flat = list(flat_sequence)
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(flat):
        if not is_nested(structure) and not (expand_composites and _is_made_of_parts(structure)):
            raise ValueError(
                "The target structure is of type `%s`\n  %s\nHowever the input is a sequence (%s) of length %d.\n  %s\nnest cannot guarantee that it "
                "is safe to map one to the other." % (type(structure), structure, type(flat_sequence), len(flat), flat_sequence))
        raise ValueError("Could not pack sequence. Structure had %d atoms, but flat_sequence had %d items.  Structure: %s, flat_sequence: %s." % (
            wanted, len(flat), structure, flat_sequence))
    return _pack(structure, iter(flat), expand_composites)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises ValueError if two structures differ, and TypeError if their types do."""
    check_types, expand_composites = bool(check_types), bool(expand_composites)
    kind, why = _difference(nest1, nest2, check_types, expand_composites)
    if kind is not None:
        whole = "\nEntire first structure:\n%s\nEntire second structure:\n%s" % (_dots(nest1), _dots(nest2))
        raise kind("The two structures don't have the same nested structure.\n\nFirst structure: %s\n\nSecond structure: %s\n\n"
                   "More specifically: %s%s" % (_shown(nest1), _shown(nest2), why, whole))


def _shown(value):
    return "type=%s str=%s" % (type(value).__name__, value)


def _dots(structure):
    """Returns a structure as text, with dots for its leaves."""
    class Dot:
        def __repr__(self):
            return "."
    return str(pack_sequence_as(structure, [Dot()] * len(flatten(structure))))


def _difference(one, two, check_types, expand_composites):
    """Returns (the kind of error, what differs), or (None, None) if two structures are the same."""
    both = [is_nested(x) or expand_composites and _is_made_of_parts(x) for x in (one, two)]
    if both[0] != both[1]:
        inner, leaf = (one, two) if both[0] else (two, one)
        return ValueError, "Substructure \"%s\" is a sequence, while substructure \"%s\" is not" % (_shown(inner), _shown(leaf))
    if not both[0]:
        return None, None
    if not is_nested(one) or not is_nested(two):
        return _difference_of_composites(one, two)
    is_mapping = isinstance(one, collections.abc.Mapping) and isinstance(two, collections.abc.Mapping)
    if check_types and _type(one) is not _type(two) and not is_mapping:
        named = _is_namedtuple(one) and _is_namedtuple(two)
        if not named or type(one).__name__ != type(two).__name__ or one._fields != two._fields:
            return TypeError, ("The two namedtuples don't have the same sequence type. First structure %s has type %s, while second structure %s has "
                               "type %s" % (_shown(one), type(one).__name__, _shown(two), type(two).__name__))
    if check_types and is_mapping and set(one) != set(two):
        return ValueError, ("The two dictionaries don't have the same set of keys. First structure has keys %s, while second structure has keys "
                            "%s" % (_shown(list(one)), _shown(list(two))))
    first, second = _children(one), _children(two)
    if len(first) != len(second):
        return ValueError, "The two structures don't have the same number of elements. First structure: %s. Second structure: %s" % (
            _shown(one), _shown(two))
    for a, b in zip(first, second):
        found = _difference(a, b, check_types, expand_composites)
        if found[0] is not None:
            return found
    return None, None


def _difference_of_composites(one, two):
    """Returns what differs between composite tensors or their TypeSpecs, as `_difference` does."""
    if is_nested(one) or is_nested(two):
        return TypeError, "%s is a composite tensor, and %s is not" % ((two, one) if is_nested(one) else (one, two))
    specs = [x if getattr(x, "_is_type_spec", False) else x._type_spec for x in (one, two)]
    if specs[0]._without_tensor_names().most_specific_common_supertype([specs[1]._without_tensor_names()]) is None:
        return ValueError, "Incompatible CompositeTensor TypeSpecs: %s vs. %s" % tuple(map(_shown, specs))
    return None, None


def map_structure(func, *structure, check_types=True, expand_composites=False, **kwargs):
    """Applies `func` to the leaves of structures. Returns the results in the same structure."""
    if kwargs:
        raise ValueError("Only valid keyword arguments are `check_types` and `expand_composites`, not: `%s`" % "`, `".join(kwargs))
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    rows = zip(*(flatten(one, expand_composites) for one in structure))
    return pack_sequence_as(structure[0], [func(*row) for row in rows], expand_composites)


is_sequence = is_nested


def flatten_with_tuple_paths(structure, expand_composites=False):
    """Returns [(path, leaf)]; a path is a tuple of keys and indices."""
    from runnel.core.nest_up_to import _walked
    return list(_walked(structure, structure, expand_composites))


def flatten_with_joined_string_paths(structure, separator="/", expand_composites=False):
    """Returns [(path, leaf)]; a path is a string."""
    return [(separator.join(str(part) for part in path), leaf)
            for path, leaf in flatten_with_tuple_paths(structure, expand_composites)]


def yield_flattened_paths(nest, expand_composites=False):
    """Yields the paths of the leaves."""
    return [path for path, _ in flatten_with_tuple_paths(nest, expand_composites)]


def map_structure_with_tuple_paths(func, *structure, **kwargs):
    """Like map_structure; `func` gets the path of the leaf, a tuple, first."""
    from runnel.core.nest_up_to import map_structure_with_tuple_paths_up_to
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, kwargs.get("check_types", True), kwargs.get("expand_composites", False))
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func, *structure, **kwargs):
    """Like map_structure; `func` gets the path of the leaf, a string, first."""
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(str(part) for part in path), *leaves), *structure, **kwargs)


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
