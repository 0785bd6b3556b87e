"""AtomicFunction: a function of the library and the type by which it is called.

It takes and returns flat lists of tensors, those that it captures last. A ConcreteFunction adds to it what it captures.
"""

import collections
import itertools

from runnel import _core, errors, raw_ops
from runnel.core import framework
from runnel.core.protobuf import message_class
from runnel.eager import tracing
from runnel.eager.error_places import with_place
from runnel.eager.function_attributes import function_attributes
from runnel.eager.function_bodies import function_def_to_graph
from runnel.functions.function_type import FunctionType
from runnel.functions.signatures import bind_function_inputs
from runnel.functions.trace_values import from_value

CallOptions = collections.namedtuple("CallOptions", "control_captures is_stateful")
_numbers = itertools.count()


class AtomicFunction:
    """A function of the eager context's library.

    Args:
      traced: the function, a tracing.Traced.
      function_type: the type of its arguments, captures and results.
      is_stateful: whether a call may have side effects.
    """

    def __init__(self, traced, function_type, is_stateful=True):
        self._traced, self._function_type = traced, function_type
        self._call_options = CallOptions(list(traced.graph.control_outputs), is_stateful)

    name = property(lambda self: self._traced.name.encode())
    function_type = property(lambda self: self._function_type)
    call_options = property(lambda self: self._call_options)
    cached_graph = graph = property(lambda self: self._traced.graph)

    @property
    def definition(self):
        """The FunctionDef."""
        return message_class("FunctionDef").FromString(tracing.eager_functions()[self._traced.name])

    function_def = definition
    attributes = property(lambda self: self.definition.attr)
    cached_definition = definition

    @property
    def children(self):
        """The names of the functions that it calls."""
        return sorted(self._traced.functions - {self._traced.name})

    def __call__(self, *args):
        """Returns the results of tensors, as a list."""
        traced = self._traced
        if framework.executing_eagerly():
            traced.share()
        else:
            tracing.make_callable(framework.get_default_graph(), traced)
        op = raw_ops.StatefulPartitionedCall if self._call_options.is_stateful else raw_ops.PartitionedCall
        try:
            results = op(args=list(args), Tout=traced.dtypes, f=traced.name)
        except errors.OpError as error:
            raise with_place(error, traced.graph) from None
        return [] if results is None or isinstance(results, framework.Operation) else list(results)

    call_flat = __call__

    def call_with_captures(self, args, kwargs, captures):
        """Returns the result of arguments of the function's type, and of the tensors that it captures, in its structure."""
        bound = bind_function_inputs(args, kwargs, self._function_type, {})
        flat = self._function_type.unpack_inputs(bound) + self._function_type.unpack_captures(captures)
        return self._function_type.pack_output(self(*flat))

    structured_call = call_with_captures

    def __str__(self):
        return "<AtomicFunction> %s%s" % (self._traced.name, self._function_type)

    def __repr__(self):
        return "AtomicFunction(\n  name=%r,\n  bound_context=%r,\n  function_type=%r,\n  children=%r,\n  call_options=%r,\n  cached_graph=%r)" % (
            self.name, tracing._eager_library(), self._function_type, self.children, self._call_options, self.graph)


def from_function_def(function_def, function_type):
    """Returns the function of a FunctionDef, which is added to the eager context."""
    name, library = function_def.signature.name, tracing.eager_functions()
    with framework.init_scope():
        if name not in library:
            tracing.add_functions([function_def.SerializeToString()])
        graph = function_def_to_graph(function_def, {key: data for key, data in library.items() if key != name}, name)
    traced = tracing.Traced(name, graph, None, graph.outputs, True, library)
    tracing._traced.add(name)
    return AtomicFunction(traced, function_type, function_def.signature.is_stateful)


def from_func_graph(name, graph, attrs, function_type=None):
    """Returns the function of a FuncGraph, which is defined by the name in the eager context."""
    if function_type is None:
        function_type = _type_of(graph)
    with graph.as_default():
        outputs = [raw_ops.Identity(input=x) if x.op.type == "Placeholder" else x for x in graph.outputs]
    library = tracing._eager_library()
    called = _core.functions_of(graph)
    for definition in called.values():
        _core.add_function_def(library, definition)
    name = name or "__inference_%s_graph_%d" % (graph.name, next(_numbers))
    _core.define_function(library, name, graph, graph.inputs, outputs, None, list(graph.control_outputs), function_attributes(attrs or {}))
    traced = tracing.Traced(name, graph, graph.structured_outputs, outputs, True, called)
    tracing._traced.update(traced.functions)
    return AtomicFunction(traced, function_type)


def _type_of(graph):
    """Returns the type of a graph's arguments, in the order of its inputs, and of its captures and results."""
    from runnel.functions.signatures import from_structured_signature
    captured = {id(x) for x in graph.standing}
    known = from_structured_signature((tuple(from_value(x) for x in graph.inputs if id(x) not in captured), {}), None)
    captures = collections.OrderedDict((id(x), from_value(x)) for x in graph.captured)
    return FunctionType(known.parameters.values(), captures, return_annotation=from_value(list(graph.outputs)))
