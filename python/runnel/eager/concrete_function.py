"""ConcreteFunction: a tf.function for one type of arguments, as programs see it."""

import inspect

from runnel import _core, dtypes, nest
from runnel.core import framework
from runnel.core.tensor_shape import TensorShape
from runnel.core.trackable import Trackable
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.eager.func_graph import check_substitute
from runnel.functions.signatures import bind_function_inputs, sanitize_arg_name, to_arg_names
from runnel.functions.trace_values import InternalPlaceholderContext


class UnknownArgument:
    """Stands in a signature for an argument that is neither a tensor nor a number or string."""


def structured(function_type):
    """Returns (args, kwargs) of a function type: tensors are TensorSpecs, named by their parameter and their place in its argument."""
    context = InternalPlaceholderContext(unnest_only=True)
    bound = inspect.BoundArguments(function_type, {})
    for p in function_type.parameters.values():
        value = p.type_constraint.placeholder_value(context)
        bound.arguments[p.name] = value
    args, kwargs = list(bound.args), dict(bound.kwargs)
    names = to_arg_names(function_type)
    return (tuple(_named(value, names[i] if i < len(names) else str(i), names[i] if i < len(names) else str(i)) for i, value in enumerate(args)),
            {key: _named(value, key, key) for key, value in kwargs.items()})


def _named(value, parameter, path):
    """Returns an argument's description; `path` is the name of a tensor at this place."""
    if isinstance(value, dict):
        return type(value)((key, _named(x, parameter, "%s_%s" % (path, key))) for key, x in value.items())
    if isinstance(value, (list, tuple)):
        parts = [_named(x, parameter, "%s_%s" % (path, i)) for i, x in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is TensorSpec:
        own = value.name if value.name and value.name != parameter else path
        return TensorSpec(value.shape, value.dtype, own)
    if isinstance(value, (int, float, bool, str, type(None), dtypes.DType, TypeSpec)):
        return value
    return nest.map_structure(lambda x: _named(x, parameter, path), value) if nest.is_nested(value) else UnknownArgument()


def _in_parts(structure):
    """Returns results with the list of its tensors in place of each composite."""
    return nest.map_structure(lambda x: nest.flatten(x, expand_composites=True) if hasattr(x, "_is_composite") else x, structure)


class ConcreteFunction(Trackable):
    """A function for one type of arguments.

    It takes them as the Python function does (values that were not tensors may be left out), or tensors only, by position or by name.
    """

    def __init__(self, concrete):
        from runnel.eager.atomic_function import AtomicFunction
        if isinstance(concrete, AtomicFunction):
            from runnel.eager.concrete import Concrete
            concrete = Concrete.of_atomic(concrete)
        self._concrete = concrete
        self.described, self.call_flat = concrete.described, concrete.call_flat
        self._arg_keywords = _keywords(concrete.traced.graph)
        self._num_positional_args = len(self._arg_keywords)

    name = property(lambda self: self._concrete.name.encode())
    graph = property(lambda self: self._concrete.traced.graph)
    inputs = property(lambda self: self.graph.inputs)
    outputs = property(lambda self: self.graph.outputs)
    function_type = property(lambda self: self._concrete.function_type)
    structured_input_signature = property(lambda self: self._concrete.inputs)
    output_dtypes = property(lambda self: nest.map_structure(lambda x: None if x is None else x.dtype, _in_parts(self.structured_outputs)))
    output_shapes = property(lambda self: nest.map_structure(
        lambda x: TensorShape(None) if x is None else x.shape, _in_parts(self.structured_outputs)))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    @classmethod
    def from_func_graph(cls, graph, function_type, attrs=None, shared_func_graph=True):
        """Returns the function of a FuncGraph. `attrs` are the attributes of its FunctionDef."""
        from runnel.eager import atomic_function
        return cls(atomic_function.from_func_graph(None, graph, attrs, function_type))

    @property
    def _inference_function(self):
        """The function of the library that a call runs."""
        from runnel.eager.atomic_function import AtomicFunction
        concrete = self._concrete
        return AtomicFunction(concrete.traced, self.function_type, concrete.has_effects)

    inference_fn = _inference_function

    @property
    def structured_outputs(self):
        """The results as the Python function returned them: tensors of the graph, and composites of such tensors."""
        structure = self._concrete._structure
        if structure is None or isinstance(structure, framework.Operation):
            return None
        leaves = iter(self.graph.outputs)
        flat = [next(leaves) if isinstance(x, framework.Tensor) else None for x in nest.flatten(structure, expand_composites=True)]
        return nest.pack_sequence_as(structure, flat, expand_composites=True)

    @property
    def captured_inputs(self):
        """The captured tensors, with the current results of closures."""
        traced = self._concrete.traced
        return list(traced.captured) + [x for one in traced.deferred for x in (one() if callable(one) else one.now())]

    @property
    def _captured_inputs(self):
        traced = self._concrete.traced
        return list(traced.captured) + [one if callable(one) else one.now for one in traced.deferred]

    def set_external_captures(self, captures):
        """Replaces what the function captures, in order: tensors, or functions that each call calls."""
        traced = self._concrete.traced
        first = next((i for i, x in enumerate(captures) if callable(x)), len(captures))
        traced.captured, traced.deferred = list(captures[:first]), [_computed(x) for x in captures[first:]]
        self._concrete.variables = []

    def replace_capture_with_deferred_capture(self, tensor, closure, spec, placeholder=None, default_value=None):
        """Makes each call compute what was captured as `tensor`."""
        traced = self._concrete.traced
        places = [i for i, x in enumerate(traced.captured) if x is tensor]
        if not places:
            raise ValueError("Did not find %s among the captured inputs." % (tensor,))
        check_substitute(tensor, spec)
        values, first = self._captured_inputs, places[0]
        values[first] = closure
        traced.captured, traced.deferred = traced.captured[:first], [_computed(x) for x in values[first:]]

    @property
    def variables(self):
        """The variables that the function uses, in the order of their first use."""
        from runnel.ops.resource_variable import variable_of
        found = [variable_of(x) for x in self._concrete.traced.captured]
        return tuple(v for v in found if v is not None)

    @property
    def function_def(self):
        """The FunctionDef."""
        from runnel.core.protobuf import message_class
        from runnel.eager.tracing import eager_functions
        return message_class("FunctionDef").FromString(eager_functions()[self._concrete.name])

    def _flat_signature_summary(self):
        return "%s(%s)" % (self.graph.name, ", ".join(self._arg_keywords))

    def add_to_graph(self, g=None, overwrite=False):
        """Adds the function to a graph, the current one by default; the eager context has it."""
        from runnel.eager.tracing import eager_functions
        graph = _core.current() if g is None else g
        if graph is not None and self._concrete.name not in _core.functions_of(graph):
            _core.add_function_def(graph, eager_functions()[self._concrete.name])

    def add_gradient_functions_to_graph(self, g=None):
        """Adds the function, and the two that it is in when a tape records it, to a graph, the current one by default."""
        from runnel.eager import taped
        from runnel.eager.tracing import eager_functions
        self.add_to_graph(g)
        graph, parts = _core.current() if g is None else g, taped.parts_of(self._concrete)
        known = {} if graph is None else _core.functions_of(graph)
        for name in parts.names if parts and graph is not None else ():
            if name not in known:
                _core.add_function_def(graph, eager_functions()[name])

    def pretty_printed_signature(self, verbose=True):
        """Returns the arguments and results as text."""
        return repr(self.function_type) if verbose else str(self.function_type)

    def __repr__(self):
        return "<ConcreteFunction %s at 0x%X>" % (self.pretty_printed_signature(verbose=False), id(self))

    def __str__(self):
        return "ConcreteFunction %s" % self.pretty_printed_signature()

    def __call__(self, *args, **kwargs):
        try:
            return self._call_with_structured_signature(args, kwargs)
        except _NotBound as structured_error:
            try:
                tensors = self._flat_tensors(args, kwargs)
            except (TypeError, ValueError) as flat_error:
                raise TypeError("%s\nFallback to flat signature also failed due to: %s" % (structured_error, flat_error)) from None
        return self._concrete(tensors)

    def _call_with_structured_signature(self, args, kwargs):
        """Calls the function with arguments of the form in which the Python function takes them."""
        concrete = self._concrete
        try:
            bound = bind_function_inputs(args, kwargs, concrete.function_type, {})
            tensors = concrete.unpacked(bound)
        except TypeError as error:
            raise _NotBound(str(error)) from None
        return concrete(tensors)

    def _call_with_flat_signature(self, args, kwargs):
        """Calls the function with tensors, by position or by name."""
        return self._concrete(self._flat_tensors(args, kwargs))

    def _flat_tensors(self, args, kwargs):
        names, summary = self._arg_keywords, self._flat_signature_summary()
        if len(args) > self._num_positional_args:
            raise TypeError("%s takes %d positional arguments, got %d." % (summary, self._num_positional_args, len(args)))
        given, left = list(args), {sanitize_arg_name(key): value for key, value in kwargs.items()}
        for keyword in names[len(args):]:
            if sanitize_arg_name(keyword) not in left:
                missing = sorted(set(names) - set(names[:len(given)]) - set(left))
                raise TypeError("%s missing required arguments: %s." % (summary, ", ".join(missing)))
            given.append(left.pop(sanitize_arg_name(keyword)))
        for key in left:
            if key in names:
                raise TypeError("%s got two values for '%s'." % (summary, key))
        if left:
            raise TypeError("%s got unexpected keyword arguments: %s." % (summary, ", ".join(sorted(left))))
        tensors = []
        for i, value in enumerate(given):
            handle = getattr(value, "handle", None)
            if not isinstance(value, framework.Tensor) and not isinstance(handle, framework.Tensor):
                raise TypeError("%s: expected argument #%d(zero-based) to be a Tensor; got %s (%s)." % (summary, i, type(value).__name__, value))
            tensors.append(_for_argument(value, self.inputs[i]))
            shape, wanted = tensors[-1].shape, self.inputs[i].shape
            if not wanted.is_compatible_with(shape) and not framework.executing_eagerly():  # else kernels find out
                raise ValueError(
                    "The argument '%s' (value %s) is not compatible with the shape this function was traced with. Expected shape %s, but got shape "
                    "%s.\n\nIf you called get_concrete_function, you may need to pass a tf.TensorSpec(..., shape=...) with a less specific shape, "
                    "having None on axes which can vary." % (names[i], value, wanted, shape))
        return tensors


class _NotBound(TypeError):
    """Arguments do not have the form in which the Python function takes them."""


def _computed(value):
    """Returns a function that returns the tensors of a capture, which is a tensor or a function that computes it."""
    def now():
        found = value() if callable(value) else value
        return [framework_tensor(x) for x in found] if isinstance(found, (list, tuple)) else [framework_tensor(found)]
    return now


def framework_tensor(value):
    """Returns a value as a tensor."""
    from runnel.core.convert import convert_to_tensor
    return convert_to_tensor(value)


def _for_argument(value, argument):
    """Returns the tensor for an argument of the graph: of a variable, its handle or its value."""
    if isinstance(value, framework.Tensor):
        return value
    return value.handle if argument.dtype == dtypes.resource else framework_tensor(value)


def _keywords(graph):
    """Returns the names of arguments by which tensors can be given: those that the program gave, made unique."""
    found, counts = [], {}
    for argument in graph.arguments:
        try:
            own = argument.op.get_attr("_user_specified_name").decode()
        except ValueError:
            own = "tensor_arg"
        name = own
        while name in found:
            number = counts.get(own, 1)
            counts[own], name = number + 1, "%s_%d" % (own, number)
        found.append(name)
    return found
