"""Functions of loaded models: they call the traces that the file has."""

import inspect

from runnel import _core, dtypes, nest, raw_ops
from runnel.core import convert, framework
from runnel.core.protobuf import message_class
from runnel.core.trackable import Trackable
from runnel.core.composite_specs import VariableSpec
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.saved_model import structured_value
from runnel.eager.concrete_function import ConcreteFunction
from runnel.eager.function_bodies import function_def_to_graph
from runnel.functions.function_type import FunctionType, Parameter
from runnel.functions.signatures import canonicalize_to_monomorphic, from_structured_signature, sanitize_arg_name
from runnel.functions.trace_values import InternalTracingContext, from_value
from runnel.saved_model.captures import Captures
from runnel.saved_model.signatures import tensor_specs
from runnel.saved_model.writing import reachable


class Concrete(ConcreteFunction):
    """A function of a model, for one kind of arguments."""

    _is_restored_function = True
    captured_inputs = variables = structured_input_signature = structured_outputs = None  # each function's own

    def __init__(self, name, captured, inputs, outputs, result_types, library, read=()):
        self._name, self.captured_inputs = name, captured
        self.variables = list(read)
        self.structured_input_signature = inputs
        self.structured_outputs = outputs
        self._dtypes, self._library = result_types, library
        self._keywords = self._positional = self._graph = self._spec = None

    name = property(lambda self: self._name.encode())
    _captured_inputs = property(lambda self: self.captured_inputs)
    _num_positional_args = property(lambda self: len(self._arg_keywords) if self._positional is None else self._positional)

    @property
    def _arg_keywords(self):
        return self._keywords if self._keywords is not None else [spec.name for spec in tensor_specs(self.structured_input_signature)]

    @property
    def function_def(self):
        """The FunctionDef."""
        return message_class("FunctionDef").FromString(self._library[self._name])

    @property
    def graph(self):
        """The graph of the function, which is built when it is first asked for."""
        if self._graph is None:
            with framework.init_scope():
                self._graph = function_def_to_graph(
                    self.function_def, reachable([self._name], self._library), self._name, self.captured_inputs,
                    [spec.shape for spec in tensor_specs(self.structured_input_signature)])
            self._graph.structured_input_signature, self._graph.structured_outputs = self.structured_input_signature, self.structured_outputs
            for result, spec in zip(self._graph.outputs, self._result_specs()):
                result.set_shape(spec.shape)
            self._graph.variables = tuple(self.variables)
        return self._graph

    @property
    def function_type(self):
        """The FunctionType, with the parameters of the Python function if the file describes them."""
        context = InternalTracingContext()
        captures = {id(x): from_value(x, context) for x in self.captured_inputs}
        if self._spec is None:
            return from_structured_signature(self.structured_input_signature, self.structured_outputs, captures)
        args, kwargs = self.structured_input_signature
        parameters = [Parameter(p.name, p.kind, p.default is not p.empty, None) for p in _python_signature(self._spec).parameters.values()]
        known, _ = canonicalize_to_monomorphic(args, {sanitize_arg_name(key): value for key, value in kwargs.items()}, {}, {}, FunctionType(parameters))
        return FunctionType(known.parameters.values(), captures, return_annotation=from_value(self.structured_outputs, context))

    def add_to_graph(self, g=None, overwrite=False):
        """Adds the function and those that it calls to a graph, the current one by default."""
        graph = _core.current() if g is None else g
        known = {} if graph is None else _core.functions_of(graph)
        for name, data in reachable([self._name], self._library).items() if graph is not None else ():
            if name not in known:
                _core.add_function_def(graph, data)

    def described(self):
        return Captures(self._name, self.captured_inputs, self.structured_input_signature, self.structured_outputs,
                        self._keywords, self._dtypes)

    def call_flat(self, tensors):
        """Returns the results as a flat list."""
        from runnel.eager import backprop
        for variable in self.variables:
            backprop._accessed(variable)
        if not framework.executing_eagerly():
            self.add_to_graph(framework.get_default_graph())
        results = raw_ops.StatefulPartitionedCall(args=list(tensors) + self.captured_inputs, Tout=self._dtypes, f=self._name)
        if not framework.executing_eagerly():
            if isinstance(results, framework.Operation):  # it has no results
                return []
            for result, spec in zip(results, self._result_specs()):
                result.set_shape(spec.shape)
        return results

    def _result_specs(self):
        return [x for leaf in nest.flatten(self.structured_outputs) if isinstance(leaf, TypeSpec) for x in leaf._flat_specs()]

    def call(self, tensors):
        """Returns the results in their structure."""
        flat = iter(self.call_flat(tensors))

        def packed(leaf):
            if isinstance(leaf, TensorSpec):
                return next(flat)
            return leaf._from_tensors([next(flat) for _ in leaf._flat_specs()]) if isinstance(leaf, TypeSpec) else leaf
        structure = self.structured_outputs
        if not nest.is_nested(structure):
            return packed(structure) if isinstance(structure, TypeSpec) else None
        return nest.pack_sequence_as(structure, [packed(x) for x in nest.flatten(structure)])

    def __call__(self, *args, **kwargs):
        """Takes the arguments as traced, or tensors by the names of the flat arguments."""
        tensors = match(self.structured_input_signature, (args, kwargs)) if self._keywords is None or args else None
        if tensors is not None:
            return self.call(tensors)
        keywords = self._keywords
        if keywords is None:
            keywords = self._arg_keywords
            if set(kwargs) - set(keywords) or len(args) + len(kwargs) != len(keywords):
                raise TypeError("%s takes %s, but got %r" % (self._name, self.structured_input_signature, (args, kwargs)))
        shown = "signature_wrapper(%s)" % ", ".join(keywords)
        most = len(keywords) if self._positional is None else self._positional
        if len(args) > most:
            raise TypeError("%s takes %d positional arguments but %d were given" % (shown, most, len(args)))
        for name, value in zip(keywords, args):
            if name in kwargs:
                raise TypeError("%s got two values for %s" % (shown, name))
            kwargs = {**kwargs, name: value}
        missing = [name for name in keywords if name not in kwargs]
        if missing:
            raise TypeError("%s missing required arguments: %s." % (shown, ", ".join(sorted(missing))))
        unknown = [name for name in kwargs if name not in keywords]
        if unknown:
            raise TypeError("%s got unexpected keyword arguments: %s." % (shown, ", ".join(sorted(unknown))))
        specs = dict(zip(keywords, tensor_specs(self.structured_input_signature)))
        checks_shape = not framework.executing_eagerly()  # as in stock, of tensors that are given by name
        return self.call([_as_tensor(specs[name], kwargs[name], checks_shape) for name in keywords])


def _as_tensor(spec, value, checks_shape=True):
    if spec.dtype == dtypes.resource and isinstance(getattr(value, "handle", None), framework.Tensor):
        return value.handle
    if not isinstance(value, framework.Tensor):
        value = convert.convert_to_tensor(value, dtype=spec.dtype)
    if not (spec.is_compatible_with(value) if checks_shape else spec.dtype == value.dtype):
        raise TypeError("%r is not a %r" % (value, spec))
    return value


def match(wanted, given):
    """Returns the flat tensors of `given` if it has the structure of `wanted`, else None."""
    if isinstance(wanted, VariableSpec):
        return [given.handle] if hasattr(given, "handle") and wanted.shape.is_compatible_with(given.shape) and wanted.dtype == given.dtype else None
    if isinstance(wanted, TensorSpec):
        if given is None or isinstance(given, (str, bytes)) and wanted.dtype != dtypes.string:
            return None
        try:
            return [_as_tensor(wanted, given)]
        except (TypeError, ValueError):
            return None
    if isinstance(wanted, TypeSpec):
        return wanted._to_tensors(given) if given is not None and wanted.is_compatible_with(given) else None
    if isinstance(wanted, dict):
        if not isinstance(given, dict) or set(wanted) != set(given):
            return None
        parts = [match(wanted[key], given[key]) for key in sorted(wanted)]
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(wanted) != len(given):
            return None
        parts = [match(a, b) for a, b in zip(wanted, given)]
    else:
        return [] if type(given) in (type(wanted), int, float, bool, str) and wanted == given else None
    return None if any(part is None for part in parts) else [x for part in parts for x in part]


class RestoredFunction(Trackable):
    """A tf.function of a model: calls the trace that fits the arguments."""

    _is_restored_function = True

    def __init__(self, concretes, spec):
        self._concretes, self._spec = concretes, spec
        self._signature = self.__signature__ = _python_signature(spec)
        self.input_signature = structured_value.decode(spec.input_signature)

    @property
    def concrete_functions(self):
        return list(self._concretes)

    _jit_compile = property(lambda self: {1: True, 2: False}.get(self._spec.jit_compile))

    @property
    def function_spec(self):
        """The names of the arguments and the input signature, for which tf_keras looks here."""
        import types
        return types.SimpleNamespace(arg_names=list(self._signature.parameters), input_signature=self.input_signature)

    def _list_all_concrete_functions_for_serialization(self):
        return list(self._concretes)

    _list_all_concrete_functions = _list_all_concrete_functions_for_serialization

    def get_concrete_function(self, *args, **kwargs):
        """Returns the trace for arguments of these kinds: tensors, or TypeSpecs for them."""
        if len(self._concretes) == 1 and not args and not kwargs:
            return self._concretes[0]
        given = self._bound(args, kwargs)
        found = next((concrete for concrete in self._concretes if _is_for(concrete.structured_input_signature, given)), None)
        if found is None:
            raise ValueError(self._no_match(*given))
        return found

    def _bound(self, args, kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _no_match(self, args, kwargs):
        return (
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n  Positional arguments (%d total):\n    * %s\n"
            "  Keyword arguments: %s\n\n Expected these arguments to match one of the following %d option(s):\n\n%s" % (
                len(args), "\n    * ".join(repr(x) for x in args), kwargs, len(self._concretes),
                "\n\n".join("Option %d:\n  %s" % (i + 1, c.structured_input_signature) for i, c in enumerate(self._concretes))))

    def _saved_function(self, writer, out):
        for concrete in self._concretes:
            writer.add_function(concrete.described())
            out.concrete_functions.append(concrete._name)
        out.function_spec.CopyFrom(self._spec)

    def __call__(self, *args, **kwargs):
        given = self._bound(args, kwargs)
        for concrete in self._concretes:
            tensors = match(concrete.structured_input_signature, given)
            if tensors is not None:
                return concrete.call(tensors)
        if not self._concretes:
            raise ValueError("Found zero restored functions for caller function.")
        if self.input_signature is not None:
            raise TypeError("Binding inputs to tf.function failed due to: %s" % self._no_match(*given))
        raise ValueError(self._no_match(*given))


def _is_for(wanted, given):
    """Tells whether arguments, which may be TypeSpecs, are those of a trace."""
    if isinstance(wanted, TypeSpec):
        return wanted.is_compatible_with(given) if isinstance(given, TypeSpec) else match(wanted, given) is not None
    if isinstance(wanted, dict):
        return isinstance(given, dict) and set(wanted) == set(given) and all(_is_for(wanted[key], given[key]) for key in wanted)
    if isinstance(wanted, (list, tuple)):
        return isinstance(given, (list, tuple)) and len(wanted) == len(given) and all(_is_for(a, b) for a, b in zip(wanted, given))
    return match(wanted, given) is not None


def _python_signature(spec):
    """Returns the inspect.Signature of a FunctionSpec."""
    full = structured_value.decode(spec.fullargspec)
    parameter = inspect.Parameter
    names = list(full.args)
    defaults = list(full.defaults or ())
    if spec.is_method and names:
        names = names[1:]
    first = len(names) - len(defaults)
    rows = [parameter(name, parameter.POSITIONAL_OR_KEYWORD, default=defaults[i - first] if i >= first else parameter.empty)
            for i, name in enumerate(names)]
    if full.varargs:
        rows.append(parameter(full.varargs, parameter.VAR_POSITIONAL))
    for name in full.kwonlyargs or ():
        rows.append(parameter(name, parameter.KEYWORD_ONLY, default=(full.kwonlydefaults or {}).get(name, parameter.empty)))
    if full.varkw:
        rows.append(parameter(full.varkw, parameter.VAR_KEYWORD))
    return inspect.Signature(rows)
