"""From calls and signatures to function types and back."""

import functools
import inspect

from runnel.functions.function_type import CAPTURED_DEFAULT_VALUE, FunctionType, Parameter
from runnel.functions.trace_values import InternalPlaceholderContext, InternalTracingContext, from_value

_MOST_WARNINGS = 5
_warned: list = []  # names that were not valid


def sanitize_arg_name(name):
    """Returns a name that a parameter can have."""
    swapped = "".join(c if c.isalnum() else "_" for c in name)
    result = swapped if swapped[0].isalpha() else "arg_" + swapped
    if name != result and len(_warned) < _MOST_WARNINGS:
        import logging
        logging.getLogger("absl").warning("`%s` is not a valid tf.function parameter name. Sanitizing to `%s`.", name, result)
        _warned.append(name)
    return result


def canonicalize_to_monomorphic(args, kwargs, default_values, capture_types, polymorphic_type):
    """Returns (the type of a trace for a call, the context in which it was made)."""
    bound = polymorphic_type.bind(*args, **kwargs)
    if default_values:
        bound.apply_defaults()
    context = InternalTracingContext()
    has_rest = any(p.kind is p.VAR_POSITIONAL for p in polymorphic_type.parameters.values())
    parameters = []

    def add(name, value, kind, wanted):
        found = from_value(value, context)
        if wanted and not found.is_subtype_of(wanted):
            raise TypeError("Parameter `%s` was expected to be of type %s but is %s" % (name, wanted, found))
        parameters.append(Parameter(name, kind, False, found))

    for name, value in bound.arguments.items():
        p = polymorphic_type.parameters[name]
        value = default_values[name] if value is CAPTURED_DEFAULT_VALUE else value
        if p.kind is p.VAR_POSITIONAL:
            for i, item in enumerate(value):
                add("%s_%d" % (name, i), item, p.POSITIONAL_ONLY, p.type_constraint)
        elif p.kind is p.VAR_KEYWORD:
            for key in sorted(value):
                add(key, value[key], p.KEYWORD_ONLY, p.type_constraint)
        else:
            kind = p.POSITIONAL_ONLY if has_rest and p.kind is p.POSITIONAL_OR_KEYWORD else p.kind
            add(name, value, kind, p.type_constraint)
    return FunctionType(parameters, capture_types), context


def add_type_constraints(function_type, input_signature, default_values):
    """Returns a function type whose parameters have the types of an input_signature."""
    context = InternalTracingContext(is_legacy_signature=True)
    left = [from_value(x, context) for x in input_signature]
    given = function_type.parameters.values()
    has_rest = any(p.kind is p.VAR_POSITIONAL for p in given)
    parameters = []
    for p in given:
        kind = p.POSITIONAL_ONLY if has_rest and p.kind is p.POSITIONAL_OR_KEYWORD else p.kind
        if p.name == "self":
            parameters.append(Parameter("self", kind, p.optional, None))
        elif p.kind is p.VAR_POSITIONAL:
            parameters += [Parameter("%s_%d" % (p.name, i), p.POSITIONAL_ONLY, False, x) for i, x in enumerate(left)]
            left = []
        elif p.kind is not p.VAR_KEYWORD:
            if p.kind is p.KEYWORD_ONLY and p.name not in default_values:
                raise TypeError("Since input_signature is defined, keyword-only parameter `%s` must have a default value" % p.name)
            if not left and p.name not in default_values:
                raise TypeError("input_signature missing type constraint for %s" % p.name)
            parameters.append(Parameter(p.name, kind, p.optional, left.pop(0) if left else from_value(default_values[p.name])))
    if left:
        raise TypeError("input_signature contains %d extra type constraints." % len(left))
    return FunctionType(parameters)


def from_structured_signature(input_signature=None, output_signature=None, capture_types=None, are_keyword_args_also_positional=False):
    """Returns the function type of a signature (args, kwargs) of TypeSpecs, and the structure of its results."""
    args, kwargs = input_signature or ((), {})

    def made(name, kind, value):
        return Parameter(name, kind, False, from_value(value, InternalTracingContext(is_legacy_signature=True)))

    kind = Parameter.POSITIONAL_OR_KEYWORD if are_keyword_args_also_positional else Parameter.KEYWORD_ONLY
    parameters = [made("arg_%d" % i, Parameter.POSITIONAL_ONLY, value) for i, value in enumerate(args)]
    parameters += [made(sanitize_arg_name(name), kind, value) for name, value in kwargs.items()]
    output = from_value(output_signature, InternalTracingContext(is_legacy_signature=True))
    return FunctionType(parameters, capture_types or {}, return_annotation=output)


def to_structured_signature(function_type):
    """Returns ((args, kwargs), results) of a function type, with TypeSpecs in place of tensors."""
    def described(kind):
        if kind is None:
            raise TypeError("Can not generate structured signature if FunctionType is not fully specified. Received %s" % (function_type,))
        return kind.placeholder_value(InternalPlaceholderContext(unnest_only=True))

    args, kwargs = [], {}
    for p in function_type.parameters.values():
        if p.kind is p.POSITIONAL_ONLY:
            args.append(described(p.type_constraint))
        else:
            kwargs[p.name] = described(p.type_constraint)
    return (tuple(args), kwargs), described(function_type.output)


def check_input_signature(signature):
    """Raises TypeError unless `signature` is a structure of TensorSpecs, or None."""
    if signature is None:
        return
    from runnel import nest
    from runnel.core.composite_specs import VariableSpec
    from runnel.core.type_spec import TensorSpec
    if not isinstance(signature, (tuple, list)):
        raise TypeError("input_signature must be either a tuple or a list, got %s." % type(signature))
    variables = [x for x in nest.flatten(signature) if isinstance(x, VariableSpec)]
    if variables:
        raise TypeError("input_signature doesn't support VariableSpec, got %s" % variables)
    bad = [x for x in nest.flatten(signature, expand_composites=True) if not isinstance(x, TensorSpec)]
    if bad:
        raise TypeError("input_signature must be a possibly nested sequence of TensorSpec objects, got invalid args %s with types %s." % (
            bad, [type(x) for x in bad]))


def make_function_type(python_function, input_signature):
    """Returns (the type of a Python function, {name: default})."""
    check_input_signature(input_signature)
    found = FunctionType.from_callable(python_function)
    defaults = FunctionType.get_default_values(python_function)
    if input_signature is not None:
        found = add_type_constraints(found, tuple(input_signature), defaults)
    return found, defaults


def bind_function_inputs(args, kwargs, function_type, default_values):
    """Returns the BoundArguments of a call. Raises TypeError if they do not fit the function."""
    clean = {sanitize_arg_name(name): value for name, value in kwargs.items()}
    if len(clean) != len(kwargs):
        raise ValueError("Name collision after sanitization. Please rename tf.function input parameters. Original: %s, Sanitized: %s" % (
            sorted(kwargs), sorted(clean)))
    try:
        return function_type.bind_with_defaults(args, clean, default_values)
    except Exception as error:
        raise TypeError("Binding inputs to tf.function failed due to `%s`. Received args: %s and kwargs: %s for signature: %s." % (
            error, args, clean, function_type)) from error


def canonicalize_function_inputs(args, kwargs, function_type, default_values=None, is_pure=False):
    """Returns the BoundArguments of a call. A pure function takes tensors for variables."""
    if is_pure:
        from runnel.core.convert import convert_to_tensor
        from runnel.core.type_spec import TensorSpec
        made = [x if isinstance(x, TensorSpec) else convert_to_tensor(x) for x in [*args, *kwargs.values()]]
        args, kwargs = tuple(made[:len(args)]), dict(zip(kwargs, made[len(args):]))
    return bind_function_inputs(args, kwargs, function_type, default_values or {})


def make_canonicalized_monomorphic_type(args, kwargs, capture_types, polymorphic_type):
    """Returns (the type of a trace for bound arguments, the context in which it was made)."""
    clean = {sanitize_arg_name(name): value for name, value in kwargs.items()}
    return canonicalize_to_monomorphic(args, clean, {}, capture_types, polymorphic_type)


def is_same_structure(structure1, structure2, check_values=False):
    """Tells whether two structures are alike; with `check_values`, whether their leaves are the same, too."""
    from runnel import nest
    try:
        nest.assert_same_structure(structure1, structure2, expand_composites=True)
    except (ValueError, TypeError):
        return False
    if not check_values:
        return True
    ones, twos = (nest.flatten(x, expand_composites=True) for x in (structure1, structure2))
    return all(type(a) is type(b) and (a is b or a == b) for a, b in zip(ones, twos))


def to_arg_names(function_type):
    """Returns the names of positional parameters."""
    return [p.name for p in function_type.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def to_input_signature(function_type):
    """Returns the input_signature of a function type, or None if it has none."""
    from runnel import nest
    from runnel.core.type_spec import TensorSpec
    names = list(function_type.parameters)
    if names[:1] == ["self"]:
        names.pop(0)
    if not names:
        return ()
    found = []
    for name in names:
        kind = function_type.parameters[name].type_constraint
        if not kind:
            continue
        spec = kind.placeholder_value(InternalPlaceholderContext(unnest_only=True))
        if any(not isinstance(x, TensorSpec) for x in nest.flatten([spec], expand_composites=True)):
            return tuple(found)
        found.append(spec)
    return tuple(found) or None


class FunctionSpec:
    """A function type with default values and a name, as SavedModels describe functions."""

    def __init__(self, function_type, default_values, is_pure=False, name=None, jit_compile=None):
        self.function_type, self.default_values = function_type, default_values
        self.is_pure, self.jit_compile, self._name = is_pure, jit_compile, name or "f"
        self.input_signature = to_input_signature(function_type)

    @classmethod
    def from_function_and_signature(cls, python_function, input_signature, is_pure=False, jit_compile=None):
        """Returns the description of a Python function."""
        found, defaults = make_function_type(python_function, input_signature)
        while isinstance(python_function, functools.partial):
            python_function = python_function.func
        return cls(found, defaults, is_pure, getattr(python_function, "__name__", "f"), jit_compile)

    @classmethod
    def from_fullargspec_and_signature(cls, fullargspec, input_signature, is_pure=False, name=None, jit_compile=None):
        """Returns the description of a function of which there is only a FullArgSpec."""
        found, defaults = to_function_type(fullargspec)
        if input_signature:
            check_input_signature(tuple(input_signature))
            found = add_type_constraints(found, tuple(input_signature), defaults)
        return cls(found, defaults, is_pure, name, jit_compile)

    @property
    def fullargspec(self):
        """The FullArgSpec."""
        return to_fullargspec(self.function_type, self.default_values)

    @property
    def flat_input_signature(self):
        """The TensorSpecs of the input_signature."""
        from runnel import nest
        return tuple(nest.flatten(self.input_signature, expand_composites=True))

    @property
    def arg_names(self):
        """The names of positional parameters."""
        return to_arg_names(self.function_type)

    def signature_summary(self, default_values=False):
        """Returns the function type, and with `default_values` the defaults, as text."""
        text = repr(self.function_type)
        if default_values:
            text += "\nDefaults:" + ("".join("\n  %s: %r" % pair for pair in self.default_values.items()) or "\n  None")
        return text


def to_fullargspec(function_type, default_values):
    """Returns the FullArgSpec of a function type."""
    kinds = {kind: [p for p in function_type.parameters.values() if p.kind is kind] for kind in inspect._ParameterKind}
    plain = kinds[Parameter.POSITIONAL_ONLY] + kinds[Parameter.POSITIONAL_OR_KEYWORD]
    only = kinds[Parameter.KEYWORD_ONLY]
    rest, rest_by_name = ([p.name for p in kinds[kind]] for kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD))
    return inspect.FullArgSpec(
        [p.name for p in plain], rest[0] if rest else None, rest_by_name[0] if rest_by_name else None,
        tuple(default_values[p.name] for p in plain if p.optional) or None, [p.name for p in only],
        {p.name: default_values[p.name] for p in only if p.optional} or None, annotations={})


def to_function_type(fullargspec):
    """Returns (the function type of a FullArgSpec, {name: default})."""
    defaults = dict(zip(reversed(fullargspec.args), reversed(fullargspec.defaults or ())))
    defaults = {sanitize_arg_name(name): value for name, value in {**dict(reversed(defaults.items())), **(fullargspec.kwonlydefaults or {})}.items()}
    rows = [(sanitize_arg_name(name), Parameter.POSITIONAL_OR_KEYWORD) for name in fullargspec.args]
    rows += [(name, Parameter.VAR_POSITIONAL) for name in [fullargspec.varargs] if name is not None]
    rows += [(sanitize_arg_name(name), Parameter.KEYWORD_ONLY) for name in fullargspec.kwonlyargs]
    rows += [(name, Parameter.VAR_KEYWORD) for name in [fullargspec.varkw] if name is not None]
    return FunctionType([Parameter(name, kind, name in defaults, None) for name, kind in rows]), defaults
