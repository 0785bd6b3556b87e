"""FunctionType: the parameters of a function with the types that their arguments have, its captures and its result."""

import collections
import inspect

from runnel.functions.trace_type import TraceType
from runnel.functions.trace_values import InternalCastContext


class CapturedDefaultValue:
    """Stands for the default value of a parameter, which is kept beside the type."""

    def __repr__(self):
        return "<captured_default_value>"


CAPTURED_DEFAULT_VALUE = CapturedDefaultValue()

# The numbers of the kinds of parameters in messages.
PY_TO_PROTO_ENUM = {kind: number for number, kind in enumerate((
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD), 1)}
PROTO_TO_PY_ENUM = {number: kind for kind, number in PY_TO_PROTO_ENUM.items()}
_PARTIAL = "Can not determine relationship between partially specified types."


class Parameter(inspect.Parameter):
    """A parameter: its name and kind, whether it has a default, and the type of its argument or None."""

    def __init__(self, name, kind, optional, type_constraint):
        is_variable = kind in (self.VAR_POSITIONAL, self.VAR_KEYWORD)
        if optional and is_variable:
            raise ValueError("Parameter %s is optional and its kind must be one of {POSITIONAL_ONLY, KEYWORD_ONLY, "
                             "POSITIONAL_OR_KEYWORD}. Got: %s" % (name, kind))
        if type_constraint and is_variable:
            raise TypeError("Variable args/kwargs can not have type constraints.")
        if type_constraint is not None and not isinstance(type_constraint, TraceType):
            raise TypeError("Type constraints can only be an instance of a TraceType but got type_constraint=%s for Parameter %s" % (
                type_constraint, name))
        super().__init__(name, kind, default=CAPTURED_DEFAULT_VALUE if optional else self.empty,
                         annotation=self.empty if type_constraint is None else type_constraint)

    @property
    def optional(self):
        """Whether there is a default."""
        return self.default is not self.empty

    @property
    def type_constraint(self):
        """The type of the argument, or None."""
        return None if self.annotation is self.empty else self.annotation

    @classmethod
    def from_proto(cls, proto):
        """Returns the parameter that a message holds."""
        from runnel.functions import serialization
        constraint = serialization.deserialize(proto.type_constraint) if proto.HasField("type_constraint") else None
        return cls(proto.name, PROTO_TO_PY_ENUM[proto.kind], proto.is_optional, constraint)

    def to_proto(self):
        """Returns a message that holds the parameter."""
        from runnel.core.protobuf import message_class
        from runnel.functions import serialization
        return message_class("Parameter")(
            name=self.name, kind=PY_TO_PROTO_ENUM[self.kind], is_optional=self.optional,
            type_constraint=serialization.serialize(self.type_constraint) if self.type_constraint else None)

    def _form(self):
        return self.name, self.kind, self.optional

    def is_subtype_of(self, other):
        """Tells whether it is the same parameter, of a subtype."""
        if not self.type_constraint or not other.type_constraint:
            raise TypeError(_PARTIAL)
        return self._form() == other._form() and self.type_constraint.is_subtype_of(other.type_constraint)

    def most_specific_common_supertype(self, others):
        """Returns the parameter of the narrowest type that covers all, or None."""
        if not self.type_constraint or any(not other.type_constraint for other in others):
            raise TypeError(_PARTIAL)
        if any(self._form() != other._form() for other in others):
            return None
        common = self.type_constraint.most_specific_common_supertype([other.type_constraint for other in others])
        return Parameter(*self._form(), common) if common else None

    def __eq__(self, other):
        if not isinstance(other, Parameter):
            return NotImplemented
        return (*self._form(), self.type_constraint) == (*other._form(), other.type_constraint)

    def __hash__(self):
        return hash((*self._form(), self.type_constraint))

    def __repr__(self):
        return "Parameter(name=%s, kind=%s, optional=%r, type_constraint=%r)" % (*self._form(), self.type_constraint)

    def __reduce__(self):
        return type(self), (*self._form(), self.type_constraint)


class FunctionType(inspect.Signature):
    """The type of a function. A *monomorphic* one, of a trace, has a type for every parameter."""

    def __init__(self, parameters, captures=None, **kwargs):
        super().__init__(parameters, **kwargs)
        self._captures = captures if captures else collections.OrderedDict()

    @property
    def captures(self):
        """{key: type} of what the function captures."""
        return self._captures

    @property
    def output(self):
        """The type of the result, or None."""
        return None if self.return_annotation is self.empty else self.return_annotation

    @classmethod
    def from_callable(cls, obj, *, follow_wrapped=True):
        """Returns the type of a Python function, without types of parameters."""
        signature = super().from_callable(obj, follow_wrapped=follow_wrapped)
        return cls([Parameter(p.name, p.kind, p.default is not p.empty, None) for p in signature.parameters.values()])

    @classmethod
    def get_default_values(cls, obj, *, follow_wrapped=True):
        """Returns {name: default} of a Python function."""
        signature = inspect.Signature.from_callable(obj, follow_wrapped=follow_wrapped)
        return {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}

    @classmethod
    def from_proto(cls, proto):
        """Returns the type that a message holds."""
        from runnel.functions import serialization
        return cls([Parameter.from_proto(p) for p in proto.parameters],
                   collections.OrderedDict((c.name, serialization.deserialize(c.type_constraint)) for c in proto.captures))

    def to_proto(self):
        """Returns a message that holds the type, without that of the result."""
        from runnel.core.protobuf import message_class
        from runnel.functions import serialization
        return message_class("FunctionType")(
            parameters=[p.to_proto() for p in self.parameters.values()],
            captures=[message_class("Capture")(name=name, type_constraint=serialization.serialize(kind))
                      for name, kind in self.captures.items()])

    def bind_with_defaults(self, args, kwargs, default_values):
        """Returns the BoundArguments of a call: with defaults, and cast to the types of the parameters."""
        bound = self.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = collections.OrderedDict()
        for name, value in bound.arguments.items():
            value = default_values[name] if value is CAPTURED_DEFAULT_VALUE else value
            kind = self.parameters[name].type_constraint
            arguments[name] = kind.cast(value, InternalCastContext(allow_specs=True)) if kind else value
        return inspect.BoundArguments(self, arguments)

    def is_supertype_of(self, other):
        """Tells whether a function of type `other` may be called where one of this type is: it takes all that this one takes."""
        if len(self.parameters) != len(other.parameters):
            return False
        if not all(mine.is_subtype_of(theirs) for mine, theirs in zip(self.parameters.values(), other.parameters.values())):
            return False
        return all(name in other.captures and kind.is_subtype_of(other.captures[name]) for name, kind in self.captures.items())

    def most_specific_common_subtype(self, others):
        """Returns the type of a function that takes what each of these types takes, or None."""
        parameters = []
        for mine, *theirs in zip(self.parameters.values(), *[other.parameters.values() for other in others]):
            common = mine.most_specific_common_supertype(theirs)
            if common is None:
                return None
            parameters.append(common)
        captures, everyone = collections.OrderedDict(), [self, *others]
        for name in dict.fromkeys(name for one in everyone for name in one.captures):
            first, *rest = [one.captures[name] for one in everyone if name in one.captures]
            captures[name] = first.most_specific_common_supertype(rest)
            if captures[name] is None:
                return None
        return FunctionType(parameters, captures)

    def placeholder_arguments(self, placeholder_context):
        """Returns the BoundArguments with which the function is traced."""
        arguments = collections.OrderedDict()
        for p in self.parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise ValueError("Can not generate placeholder values for variable length function type.")
            if not p.type_constraint:
                raise ValueError("Can not generate placeholder value for partially defined function type.")
            placeholder_context.update_naming_scope(p.name)
            arguments[p.name] = p.type_constraint.placeholder_value(placeholder_context)
        return inspect.BoundArguments(self, arguments)

    def _in_order(self):
        """Returns the parameters in the order of their tensors: keyword-only ones last, by name."""
        found = self.__dict__.get("_ordered")
        if found is None:
            parameters = list(self.parameters.values())
            only = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
            found = self._ordered = [p for p in parameters if p.kind is not p.KEYWORD_ONLY] + sorted(only, key=lambda p: p.name)
        return found

    @property
    def flat_inputs(self):
        """The TensorSpecs of the arguments."""
        return [spec for p in self._in_order() for spec in p.type_constraint.flatten()]

    def unpack_inputs(self, bound_parameters):
        """Returns the tensors of bound arguments; a variable that is given twice only once."""
        found, seen = [], set()
        for p in self._in_order():
            tensors, specs = p.type_constraint.to_tensors(bound_parameters.arguments[p.name]), p.type_constraint.flatten()
            for tensor, spec in zip(tensors, specs):
                number = getattr(spec, "alias_id", None)
                if number is None or number not in seen:
                    found.append(tensor)
                if number is not None:
                    seen.add(number)
        return found

    @property
    def flat_captures(self):
        """The TensorSpecs of the captures."""
        return [spec for kind in self.captures.values() for spec in kind.flatten()]

    def unpack_captures(self, captures):
        """Returns the tensors of captured values."""
        flat = [tensor for value, kind in zip(captures, self.captures.values()) for tensor in kind.to_tensors(value)]
        if len(flat) != len(self.flat_captures):
            raise TypeError("Flattening captures %s with type %r produced %d tensors instead of %d" % (
                captures, self, len(flat), len(self.flat_captures)))
        return flat

    @property
    def flat_outputs(self):
        """The TensorSpecs of the result."""
        return self.output.flatten()

    def pack_output(self, flat_values):
        """Returns the result of the given tensors."""
        if self.output is None:
            raise ValueError("Can not pack outputs for undefined output type.")
        return self.output.from_tensors(iter(flat_values or []))

    def __eq__(self, other):
        if not isinstance(other, FunctionType):
            return NotImplemented
        return (self.parameters, self.captures) == (other.parameters, other.captures)

    def __hash__(self):
        return hash((tuple(self.parameters.items()), tuple(self.captures.items())))

    def __repr__(self):
        lines = ["Input Parameters:"]
        lines += ["  %s (%s): %s" % (p.name, p.kind, p.type_constraint) for p in self.parameters.values()]
        lines += ["Output Type:", "  %s" % (self.output,), "Captures:"]
        lines += ["  %s: %s" % pair for pair in self.captures.items()] or ["  None"]
        return "\n".join(lines)
