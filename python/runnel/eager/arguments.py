"""The arguments of tf.functions: which are tensors, and what the others are told apart by.

Arguments are a structure. Its leaves that are tensors (or composite tensors, arrays, TypeSpecs) become arguments of the graph;
any other leaf is part of the key by which a trace is found: numbers and strings by value, objects by identity.
"""

import inspect

from runnel import nest
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec, TypeSpec


def is_composite(x):
    """Tells whether an argument is a composite tensor, or the TypeSpec of one."""
    return hasattr(x, "_is_composite") or isinstance(x, TypeSpec) and not isinstance(x, TensorSpec)


def _spec_of(x):
    if isinstance(x, TypeSpec):
        return x
    return x._type_spec if is_composite(x) else TensorSpec(x.shape, x.dtype)


class Arguments:
    """The arguments of one call."""

    def __init__(self, args, kwargs):
        self.given = [args, kwargs]
        self.leaves = [convert_to_tensor(x) if type(x).__module__ == "numpy" else x for x in nest.flatten(self.given)]
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, (framework.Tensor, TypeSpec)) or hasattr(x, "_is_composite")]

    def tensors(self):
        """Returns the tensors, in the order in which the graph takes them; of TypeSpecs, TensorSpecs."""
        flat = []
        for i in self.places:
            x = self.leaves[i]
            if isinstance(x, TypeSpec):
                flat += x._flat_specs()
            else:
                flat += x._type_spec._to_tensors(x) if is_composite(x) else [x]
        return flat

    def specs(self):
        """Returns the TypeSpecs of the leaves that are tensors."""
        return [_spec_of(self.leaves[i]) for i in self.places]

    def key(self):
        """Returns what tells traces apart, besides the TypeSpecs: the structure, and the other leaves."""
        inside = set(self.places)
        return _structure_key(self.given), tuple([None if i in inside else _leaf_key(x) for i, x in enumerate(self.leaves)])

    def filled(self, specs, tensors):
        """Returns (args, kwargs) with other tensors, which the TypeSpecs describe."""
        leaves, rest = list(self.leaves), iter(tensors)
        for i, spec in zip(self.places, specs):
            leaves[i] = spec._from_tensors([next(rest) for _ in spec._flat_specs()])
        return nest.pack_sequence_as(self.given, leaves)

    def described(self, specs):
        """Returns (args, kwargs) with TypeSpecs in place of tensors."""
        leaves = list(self.leaves)
        for i, spec in zip(self.places, specs):
            own = leaves[i]
            is_named = isinstance(own, TensorSpec) and isinstance(spec, TensorSpec) and spec.name is None
            leaves[i] = TensorSpec(spec.shape, spec.dtype, own.name) if is_named else spec
        return nest.pack_sequence_as(self.given, leaves)


def _structure_key(value):
    if isinstance(value, dict):
        return type(value).__name__, tuple([(k, _structure_key(value[k])) for k in sorted(value, key=repr)])
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple([_structure_key(item) for item in value])
    return None


def _leaf_key(x):
    if isinstance(x, (int, float, str, bytes, bool, type(None), complex)):
        return type(x), x
    return "object", id(x)


def canonical(signature, args, kwargs):
    """Returns (positional arguments, {keyword-only arguments}) with defaults."""
    if signature is None:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def signature_of(function):
    """Returns the signature of a function, or None if it has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def named(signature, args, kwargs):
    """Returns (args, kwargs) in which TensorSpecs without a name have those of the parameters."""
    if signature is None:
        return tuple(args), dict(kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()

    def renamed(stem, value):
        leaves = nest.flatten(value)
        names = [stem] if len(leaves) == 1 and not nest.is_nested(value) else ["%s_%d" % (stem, i) for i in range(len(leaves))]
        new = [TensorSpec(x.shape, x.dtype, x.name or n) if isinstance(x, TensorSpec) else x for x, n in zip(leaves, names)]
        return nest.pack_sequence_as(value, new) if nest.is_nested(value) else new[0]
    for name in bound.arguments:
        bound.arguments[name] = renamed(name, bound.arguments[name])
    return bound.args, bound.kwargs


def as_signed(specs, value):
    """Converts the leaves of `value` to tensors, in the structure of `specs`."""
    if is_composite(specs):
        return value
    if isinstance(specs, TensorSpec):
        if isinstance(value, TensorSpec):
            return value
        return convert_to_tensor(value, dtype=None if isinstance(value, framework.Tensor) else specs.dtype)
    if isinstance(specs, dict):
        return {key: as_signed(spec, value[key]) for key, spec in specs.items()}
    if not isinstance(specs, (list, tuple)):
        return value
    if len(specs) != len(value):
        raise TypeError("%r does not have the structure of the input_signature %r" % (value, specs))
    parts = [as_signed(spec, item) for spec, item in zip(specs, value)]
    return type(specs)(*parts) if hasattr(specs, "_fields") else type(specs)(parts)
