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


def check_signature(signature, input_signature):
    """Raises TypeError unless a function's parameters and an input_signature fit together."""
    if signature is None:
        return
    left, kinds = len(input_signature), inspect.Parameter
    for p in signature.parameters.values():
        if p.kind is kinds.VAR_POSITIONAL:
            left = 0
        elif p.kind is kinds.KEYWORD_ONLY:
            if p.default is p.empty:
                raise TypeError("Since input_signature is defined, keyword-only parameter `%s` must have a default value" % p.name)
        elif p.kind is not kinds.VAR_KEYWORD and p.name != "self":
            if left == 0 and p.default is p.empty:
                raise TypeError("input_signature missing type constraint for %s" % p.name)
            left = max(left - 1, 0)
    if left:
        raise TypeError("input_signature contains %d extra type constraints." % left)


def named(signature, args, kwargs):
    """Returns (args, kwargs) in which TensorSpecs without a name have one of the parameter and of their place in its value."""
    if signature is None:
        return tuple(args), dict(kwargs)
    return _each_parameter(signature, args, kwargs, _by_place)


def of_parameters(signature, args, kwargs):
    """Returns (args, kwargs) in which TensorSpecs without a name have that of the parameter, however deep they are in its value."""
    if signature is None:
        return tuple(args), dict(kwargs)
    return _each_parameter(signature, args, kwargs, lambda name, value: nest.map_structure(lambda x: _with_name(x, name), value))


def _each_parameter(signature, args, kwargs, renamed):
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(renamed("%s_%d" % (name, i), x) for i, x in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: renamed(key, x) for key, x in value.items()}
        else:
            bound.arguments[name] = renamed(name, value)
    return bound.args, bound.kwargs


def _by_place(name, value):
    if isinstance(value, dict):
        return type(value)((key, _by_place("%s_%s" % (name, key), x)) for key, x in value.items())
    if isinstance(value, (list, tuple)):
        parts = [_by_place("%s_%d" % (name, i), x) for i, x in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return _with_name(value, name)


def _with_name(x, name):
    return TensorSpec(x.shape, x.dtype, x.name or name) if isinstance(x, TensorSpec) else x


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
