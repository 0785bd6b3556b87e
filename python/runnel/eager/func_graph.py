"""FuncGraph: the graph of a function under construction.

Tensors that its operations read from outside become arguments that stand for them. What is captured by value is passed
at each call; what is captured by a closure (`capture_call_time_value`) is computed at each call.
"""

from runnel import dtypes, errors, raw_ops
from runnel.core.framework import Graph, executing_eagerly, get_default_graph
from runnel.functions.trace_values import InternalCastContext, InternalPlaceholderContext, InternalTracingContext, from_value


class FuncGraph(Graph):
    """A graph that captures tensors of the surrounding graph as arguments.

    Args:
      name: the function's name.
      outer: the surrounding graph; by default the default graph, or the library of eager execution.
    """

    def __init__(self, name, collections=None, capture_by_value=None, structured_input_signature=None, structured_outputs=None, outer=None):
        super().__init__()
        from runnel.eager import tracing
        if outer is None:
            outer = tracing._eager_library() if executing_eagerly() else get_default_graph()
        self.name, self.outer = name, outer
        self.captured = []  # tensors of the surrounding graph
        self.standing = []  # the arguments of this graph that stand for them
        self._inner = {}    # id of a captured tensor -> the argument that stands for it
        self.deferred = {}  # key -> Deferred
        self.arguments = []
        self.actual = []    # the tensors for which they stand in the first call
        self.saving_errors = []  # why the function cannot be part of a SavedModel
        self._exits = []    # functions to call when the trace has ended
        self.original = None  # the graph that this one is a copy of
        self.seed = outer.seed
        creators = get_default_graph()._scopes.get("variable_creators")
        if creators:
            self._scopes["variable_creators"] = creators
        self._building_function = True
        self._graph_outside = None if tracing.is_library(outer) else outer
        self._capture = self._take
        self.inputs, self.outputs, self.control_outputs, self.variables = [], [], [], ()
        self.structured_input_signature, self.structured_outputs = structured_input_signature, structured_outputs
        if collections is None:
            collections = {key: outer.get_collection(key) for key in outer.get_all_collection_keys()}
        for key, items in collections.items():
            self.get_collection_ref(key).extend(items)

    @property
    def outer_graph(self):
        """The graph around the function; a plain graph if eager execution is."""
        return self.outer

    def __str__(self):
        return "FuncGraph(name=%s, id=%s)" % (self.name, id(self))

    def _take(self, tensor, name=None):
        if tensor._graph is self:
            return tensor
        if tensor._graph is self.original and tensor._graph is not None:
            return self.get_tensor_by_name(tensor.name)
        found = self._inner.get(id(tensor))
        if found is None:
            outside = tensor
            if tensor._graph is not self.outer and tensor.op is not None:
                self._check_in_scope(tensor)
                if isinstance(self.outer, FuncGraph):
                    outside = self.outer._take(tensor)
            with self.as_default(), self.control_dependencies(None):
                found = raw_ops.Placeholder(dtype=tensor.dtype.base_dtype, shape=tensor.shape, name=name or "captured_%d" % len(self.captured))
            if tensor.dtype in (dtypes.resource, dtypes.variant):
                describe_handle(found, tensor)
            self.stand_for(outside, found)
            self._inner[id(tensor)] = found
        return found

    def _as_control_input(self, op, item):
        """Operations outside of a function have run when it is called."""
        return op if op.graph is self else None

    def stand_for(self, tensor, standing):
        """Makes a Placeholder of this graph stand for a captured tensor."""
        self._inner[id(tensor)] = standing
        self.standing.append(standing)
        self.captured.append(tensor)

    def _check_in_scope(self, tensor):
        """Raises an error if `tensor` belongs to another function, whose values cannot reach this one."""
        graph = self
        while graph is not None:
            if graph is tensor.graph:
                return
            graph = graph._graph_outside
        if isinstance(tensor.graph, FuncGraph):
            graph = tensor.graph
            while graph is not None and graph is not self:
                graph = graph._graph_outside
            raise self.out_of_scope(tensor, TypeError if graph is None else errors.InaccessibleTensorError)

    def out_of_scope(self, tensor, kind):
        """Returns the error, of class `kind`, for a tensor whose value cannot reach this graph."""
        return kind(
            "%s is out of scope and cannot be used here. Use return values, explicit Python locals or TensorFlow collections to access it.\n"
            "Please see https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values for more information.\n\n"
            "%s was defined here:\n%s\n\nThe tensor %s cannot be accessed from %s, because it was defined in %s, which is out of scope." % (
                tensor, tensor, "\n".join("    %s" % (row,) for row in tensor.op.traceback), tensor, self, tensor.graph))

    def as_argument(self, tensor):
        """Makes the argument that stands for a captured tensor an explicit one, which the caller passes. Returns it."""
        found = self._take(tensor)
        for i, own in enumerate(self.standing):
            if own is found:
                del self.standing[i], self.captured[i]
        return found

    # As stock spells it

    def capture(self, tensor, name=None, shape=None):
        """Returns the argument that stands for a tensor of the surrounding graph."""
        return self._take(tensor, name)

    @property
    def external_captures(self):
        """The captured tensors."""
        return list(self.captured)

    @property
    def internal_captures(self):
        """The arguments that stand for the captured tensors."""
        return list(self.standing)

    @property
    def captures(self):
        """[(captured tensor, the argument that stands for it)]."""
        return list(zip(self.captured, self.standing))

    @property
    def function_captures(self):
        """The captures as FunctionCaptures, as they are now."""
        from runnel.eager import function_captures
        return function_captures.captures_of(self)

    @property
    def num_captures(self):
        """The number of captures."""
        return len(self.captured) + len(self.deferred)

    @property
    def trainable_variables(self):
        """The trainable ones of `variables`."""
        return tuple(v for v in self.variables if v.trainable)

    def replace_capture_with_deferred_capture(self, tensor, closure, spec, placeholder=None, default_value=None):
        """Makes each call compute what was captured as `tensor`: `closure` does, and `spec` describes its result."""
        place = next((i for i, x in enumerate(self.captured) if x is tensor), None)
        if place is not None:
            check_substitute(tensor, spec)
            placeholder = self.standing[place] if placeholder is None else placeholder
            del self.captured[place], self.standing[place], self._inner[id(tensor)]
        kind = from_value(spec, InternalTracingContext(is_legacy_signature=True))
        self.deferred[id(tensor)] = Deferred(self, closure, kind, id(tensor), default_value, placeholder)

    def capture_call_time_value(self, closure, spec, key=None, default_value=None, placeholder=None):
        """Returns what stands for the result of `closure`, which each call computes; `spec` describes it.

        Captures with the same key are one, whose closure is the first.
        """
        key = object() if key is None else key
        if key not in self.deferred:
            kind = from_value(spec, InternalTracingContext(is_legacy_signature=True))
            self.deferred[key] = Deferred(self, closure, kind, key, default_value, placeholder)
        return self.deferred[key].placeholder

    def _experimental_capture_side_input_by_ref(self, identifier, func):
        """Returns what stands for the result of `func`; if that has another type in a later call, the function is traced again."""
        if identifier not in self.deferred:
            value = func()
            kind = from_value(value)
            if not kind.flatten():
                from runnel.core.convert import convert_to_tensor
                inner, func = func, lambda: convert_to_tensor(inner())
                kind = from_value(func())
            self.deferred[identifier] = Deferred(self, func, kind, identifier)
            self.deferred[identifier].is_typed = True
        return self.deferred[identifier].placeholder

    @property
    def deferred_external_captures(self):
        """Functions that compute what is captured by closures."""
        return [one.closure for one in self.deferred.values()]

    @property
    def deferred_internal_captures(self):
        """What stands for the results of closures."""
        return [one.placeholder for one in self.deferred.values()]

    def mark_as_unsaveable(self, error_message):
        """Makes saving a model with this function, or with one that calls it, an error with this text."""
        self.saving_errors += [error_message] if isinstance(error_message, str) else list(error_message)

    @property
    def saveable(self):
        """Whether the function may be part of a SavedModel."""
        return not self.saving_errors

    def add_exit_callback(self, fn):
        """Calls `fn` when the trace has ended."""
        if not callable(fn):
            raise TypeError("fn is not callable")
        self._exits.append(fn)

    def run_exit_callbacks(self):
        """Calls what add_exit_callback was given, the latest first."""
        while self._exits:
            self._exits.pop()()


class Deferred:
    """What a closure captures: `tensors` stand for those of its result."""

    is_typed = False  # whether the type of the result decides which trace a call uses

    def __init__(self, graph, closure, kind, key, default_value=None, placeholder=None):
        self.closure, self.kind, self.key, self.default_value = closure, kind, key, default_value
        self.placeholder = kind.placeholder_value(InternalPlaceholderContext(graph)) if placeholder is None else placeholder
        self.tensors = kind.to_tensors(self.placeholder)

    def now(self):
        """Returns the tensors of the current result, for a call."""
        if executing_eagerly():
            value = self.closure()
        else:
            graph = get_default_graph()
            value = graph.capture_call_time_value(self.closure, self.kind, self.key, self.default_value)
        return self.kind.to_tensors(self.kind.cast(value, InternalCastContext()))


def check_substitute(tensor, spec):
    """Raises ValueError if a closure with results of `spec` cannot compute what was captured as `tensor`."""
    own = from_value(tensor)
    if not spec.is_compatible_with(own):
        raise ValueError("Attempting to substitute closure with spec %s that's incompatible with the original callsite spec %s" % (spec, own))


def describe_handle(standing, handle):
    """Tells shape functions and gradient rules what is behind the argument that stands for a handle."""
    from runnel.core.protobuf import message_class
    if handle.op is not None:
        data = handle._handle_data()
        if data:
            standing._set_handle_data(data)
        return
    from runnel.ops.resource_variable import variable_of
    variable = variable_of(handle)
    if variable is None or variable.shape.ndims is None:
        return
    data = message_class("CppShapeInferenceResult")().handle_data
    data.is_set = True
    data.shape_and_type.add(dtype=variable.dtype.as_datatype_enum, shape=variable.shape.as_proto())
    standing._set_handle_data(data.SerializeToString())
