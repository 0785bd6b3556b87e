"""tf.compat.v1.wrap_function: a function that builds a graph in the style of 1.x, as a function of tensors.

The function is built once. Variables that it creates live as long as the result. Operations run only if the result depends
on them. `prune` makes other functions of the same graph.
"""

import itertools

from runnel import _core, nest, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.eager import tracing
from runnel.eager.concrete_function import ConcreteFunction, structured
from runnel.eager.effect_order import is_stateful
from runnel.eager.func_graph import FuncGraph
from runnel.functions.function_type import FunctionType, Parameter
from runnel.functions.signatures import from_structured_signature, sanitize_arg_name
from runnel.functions.trace_values import InternalPlaceholderContext, InternalTracingContext, from_value
from runnel.ops.resource_variable import variable_of

_numbers = itertools.count()


class UnliftableError(Exception):
    """A function cannot be cut out of a graph: it depends on a placeholder that is not fed."""


class VariableHolder:
    """Keeps the variables that a function creates, by name.

    Args:
      fn: the function, which `call_with_variable_creator_scope` calls.
      share_variables: whether a name that is taken stands for the variable that has it.
    """

    def __init__(self, fn=None, share_variables=False):
        self._fn, self._share = fn, share_variables
        self.variables = {}

    def variable_creator_scope(self, next_creator, **kwargs):
        """Creates a variable, or finds it."""
        graph = framework.get_default_graph()
        with framework.name_scope(kwargs.get("name"), "Variable") as scope:
            own = scope[:-1]
        if self._share and own in self.variables:
            return self.variables[own]
        collections = kwargs.pop("collections", None)
        with framework.name_scope(None):
            variable = next_creator(**{**kwargs, "name": own})
        self.variables[own] = variable
        keys = [framework.GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if kwargs.get("trainable", True) is not False and framework.GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(framework.GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(keys, variable)
        return variable

    def call_with_variable_creator_scope(self, fn):
        """Returns `fn` so that the variables that it creates are kept here."""
        from runnel.ops.variable_scopes import variable_creator_scope

        def wrapped(*args, **kwargs):
            with variable_creator_scope(self.variable_creator_scope):
                return fn(*args, **kwargs)
        return wrapped

    def __call__(self, *args, **kwargs):
        return self.call_with_variable_creator_scope(self._fn)(*args, **kwargs)


class _Built:
    """A function of a graph: what ConcreteFunction needs to know of it."""

    def __init__(self, graph, arguments, results, function_type=None, name="wrapped"):
        flat = nest.flatten(results, expand_composites=True)
        self._structure = results
        self._operations = [x for x in flat if isinstance(x, framework.Operation)]
        self.variables = [v for v in map(variable_of, graph.captured) if v is not None]
        outputs = [x for x in flat if isinstance(x, framework.Tensor)]
        self._body, graph.control_outputs = graph, self._operations
        with graph.as_default():
            made = [raw_ops.Identity(input=x) if x.op.type == "Placeholder" else x for x in outputs]
            if self._operations:  # a result that waits for the operations
                with graph.control_dependencies(self._operations):
                    made.append(raw_ops.Identity(input=convert_to_tensor(False)))
        self.arguments = graph.arguments = list(arguments)
        graph.inputs, graph.outputs = list(arguments) + graph.standing, outputs
        own = "__wrapped_%s_%d" % (name, next(_numbers))
        self._results = made
        self._define(tracing._eager_library(), own, graph)
        tracing._share()
        has_effects = any(is_stateful(op) for op in graph.get_operations())
        self.traced = tracing.Traced(own, graph, results, made, has_effects)
        self._count = len(outputs)
        self._op = raw_ops.StatefulPartitionedCall if has_effects else raw_ops.PartitionedCall
        self.function_type = function_type or from_structured_signature(
            (tuple(TensorSpec(x.shape, x.dtype) for x in arguments), {}), None)
        self.inputs = structured(self.function_type)

    def _define(self, library, name, graph):
        """Defines the function, after those that it calls, in a graph."""
        for definition in _core.functions_of(graph).values():
            _core.add_function_def(library, definition)
        _core.define_function(library, name, graph, graph.inputs, self._results, None)

    def describe_arguments(self, signature):
        """Says how the function is called: `signature` is (TensorSpecs by position, {name: TensorSpec})."""
        args, kwargs = signature
        results = nest.map_structure(lambda x: TensorSpec(x.shape, x.dtype) if isinstance(x, framework.Tensor) else x, self._structure)
        context = InternalTracingContext()
        parameters = [Parameter("arg_%d" % i, Parameter.POSITIONAL_ONLY, False, from_value(x, context)) for i, x in enumerate(args)]
        parameters += [Parameter(sanitize_arg_name(name), Parameter.POSITIONAL_OR_KEYWORD, False, from_value(x, context)) for name, x in kwargs.items()]
        captures = {id(x): from_value(x) for x in self.traced.captured}
        self.function_type = FunctionType(parameters, captures, return_annotation=from_value(results, context))
        self.inputs = signature

    name = property(lambda self: self.traced.name)

    def unpacked(self, bound):
        return self.function_type.unpack_inputs(bound)

    def call_flat(self, tensors):
        from runnel.eager import backprop
        graph = _core.current()
        if graph is not None:
            self._add_to(graph)
        for variable in self.variables:
            if variable.trainable:
                backprop._accessed(variable)
        if not framework.executing_eagerly():
            graph = framework.get_default_graph()
            defined = graph._scopes.setdefault(__name__, set())
            if self.traced.name not in defined:
                defined.add(self.traced.name)
                self._define(graph, self.traced.name, self._body)
        return self._op(args=list(tensors) + self.traced.captured, Tout=self.traced.dtypes, f=self.traced.name)

    def _add_to(self, graph):
        """Adds the function, and those that it calls, to a graph that calls it."""
        known = _core.functions_of(graph)
        if self.name in known:
            return
        for name, definition in {**_core.functions_of(self.traced.graph), self.name: tracing.eager_functions()[self.name]}.items():
            if name not in known:
                _core.add_function_def(graph, definition)

    def __call__(self, tensors):
        results = self.call_flat(tensors)
        leaves = iter(results[:self._count])
        flat = [next(leaves) if isinstance(x, framework.Tensor) else None for x in nest.flatten(self._structure, expand_composites=True)]
        if nest.is_nested(self._structure) or hasattr(self._structure, "_is_composite"):
            return nest.pack_sequence_as(self._structure, flat, expand_composites=True)
        return flat[0]

    def outputs(self):
        return nest.map_structure(lambda x: TensorSpec(x.shape, x.dtype) if isinstance(x, framework.Tensor) else None, self._structure)

    def described(self):
        from runnel.saved_model.captures import Captures
        return Captures(self.traced.name, self.traced.captured, self.inputs, self.outputs(), None, self.traced.dtypes)


class WrappedFunction(ConcreteFunction):
    """A function of a graph in the style of 1.x."""

    def __init__(self, built, variable_holder):
        super().__init__(built)
        self._variable_holder = variable_holder

    def __call__(self, *args, **kwargs):
        names = self._arg_keywords
        if not kwargs and len(args) == len(names):  # tensors, or values that become tensors
            return self._concrete([convert_to_tensor(x, like.dtype) if not isinstance(x, framework.Tensor) else x
                                   for x, like in zip(args, self.inputs)])
        return super().__call__(*args, **kwargs)

    def run_operations(self, *tensors):
        """Calls the function for what it does, not for its results. Returns the call; None in eager execution."""
        results = self._concrete.call_flat(tensors)
        return None if framework.executing_eagerly() else results[-1].op

    def prune(self, feeds, fetches, name=None, input_signature=None):
        """Returns a function from `feeds` to `fetches`, tensors or operations of the graph, which may be given by name."""
        graph = self.graph

        def element(x):
            x = getattr(x, "name", x) if type(x).__name__ == "TensorInfo" else x
            return graph.as_graph_element(x) if isinstance(x, str) else x
        wanted = nest.map_structure(element, fetches)
        for x in nest.flatten([feeds, wanted], expand_composites=True):
            if isinstance(x, framework.Tensor) and x._graph is not graph:
                raise ValueError("All function feeds and fetches must be in the graph of the wrapped function: %s" % (x,))
        given = [element(x) for x in nest.flatten(feeds, expand_composites=True)]
        standing = {x.name for x in graph.standing}
        built = _pruned(graph, [x for x in given if x.name not in standing], wanted, name or "pruned")
        if input_signature is not None:
            built.describe_arguments(input_signature)
        made = WrappedFunction(built, self._variable_holder)
        made._arg_keywords = [x.op.name if own.startswith("tensor_arg") else own for own, x in zip(made._arg_keywords, built.arguments)]
        return made


def _pruned(graph, feeds, fetches, name):
    """Returns the part of a graph from feeds to fetches as a function."""
    from runnel.core.graph_io import import_graph_def
    from runnel.graph_util import extract_sub_graph
    flat = nest.flatten(fetches, expand_composites=True)
    fed = {x.op.name for x in feeds + graph.standing}
    stops, seen, todo = {x.name for x in feeds}, set(), [x if isinstance(x, framework.Operation) else x.op for x in flat if x is not None]
    todo = [op for op, x in zip(todo, [x for x in flat if x is not None]) if isinstance(x, framework.Operation) or x.name not in stops]
    while todo:
        op = todo.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type == "Placeholder" and op.name not in fed:
            raise UnliftableError("Unable to lift tensor %r because it depends transitively on placeholder %r via at least one path" % (
                next(iter(flat), None), op))
        todo += [x.op for x in op.inputs if x.name not in stops] + list(op.control_inputs)
    read = {x.name for op in seen for x in op.inputs}
    part = FuncGraph(name, outer=graph.outer)
    part.variables = graph.variables
    seen.update(x.op for x in feeds + graph.standing if x.op.type == "Placeholder")
    with part.as_default():
        mapping = {x.name: raw_ops.Placeholder(dtype=x.dtype, shape=x.shape, name="feed") for x in feeds if x.op not in seen}
        names = {op.name for op in seen}
        definition = extract_sub_graph(graph.as_graph_def(), sorted(names)) if names else graph.as_graph_def()
        for i in reversed(range(len(definition.node))):
            if definition.node[i].name not in names:
                del definition.node[i]
        _forget_places_beside(definition, names)
        import_graph_def(definition, input_map={key: x for key, x in mapping.items() if key in read}, name="")

    def inside(x):
        if isinstance(x, framework.Operation):
            return part.get_operation_by_name(x.name)
        return mapping[x.name] if x.name in mapping else part.get_tensor_by_name(x.name)
    arguments = [inside(x) for x in feeds]
    part.standing, part.captured = [inside(x) for x in graph.standing], list(graph.captured)
    if not flat:
        return _Built(part, arguments, fetches, name=name)
    made = nest.pack_sequence_as(fetches, [None if x is None else inside(x) for x in flat], expand_composites=True) if nest.is_nested(
        fetches) or hasattr(fetches, "_is_composite") else None if fetches is None else inside(fetches)
    return _Built(part, arguments, made, name=name)


def _forget_places_beside(definition, names):
    """Nodes no longer have to be on the devices of nodes that are not in `names`."""
    for node in definition.node:
        if "_class" in node.attr:
            rows = [row for row in node.attr["_class"].list.s if not row.startswith(b"loc:@") or row[5:].decode() in names]
            if rows:
                node.attr["_class"].list.s[:] = rows
            else:
                del node.attr["_class"]


def _built(fn, signature, holder, graph, name):
    """Returns `fn` as a function of a graph, which it fills."""
    function_type = from_structured_signature((tuple(signature), {}), None)
    with graph.as_default(), tracing.creation_of_variables(True):
        bound = function_type.placeholder_arguments(InternalPlaceholderContext(graph))
        arguments = function_type.unpack_inputs(bound)
        result = holder.call_with_variable_creator_scope(fn)(*bound.args)
        result = nest.map_structure(lambda x: x if x is None or isinstance(x, framework.Operation) or hasattr(x, "_is_composite")
                                    else _inside(graph, convert_to_tensor(x)), result)
    graph.variables = tuple(holder.variables.values())
    graph.arguments = list(arguments)
    graph.inputs = graph.arguments + graph.standing
    graph.outputs = [x for x in nest.flatten(result, expand_composites=True) if isinstance(x, framework.Tensor)]
    built = _pruned(graph, arguments, result, name)  # only what the results depend on runs
    built.function_type, built.inputs, built.traced.graph = function_type, structured(function_type), graph
    return built


def _inside(graph, x):
    return x if x._graph is graph else graph.capture(x)


def wrap_function(fn, signature, name=None):
    """Returns `fn`, which builds a graph in the style of 1.x, as a function of the arguments that `signature` describes."""
    holder = VariableHolder(fn)
    own = name or getattr(fn, "__name__", "function").strip("<>")
    with framework.init_scope():
        return WrappedFunction(_built(fn, signature, holder, FuncGraph(own), own), holder)


def function_from_graph_def(graph_def, inputs, outputs, captures=None):
    """Returns a function of a GraphDef, from tensors to tensors, which are given by name."""
    from runnel.core.graph_io import import_graph_def

    def importer():
        import_graph_def(graph_def, name="")
    wrapped = wrap_function(importer, [])
    graph = wrapped.graph
    return wrapped.prune(nest.map_structure(graph.as_graph_element, inputs), nest.map_structure(graph.as_graph_element, outputs))


class WrappedGraph:
    """Functions in the style of 1.x that share variables and collections."""

    def __init__(self, variable_holder=None, **kwargs):
        self._variable_holder = variable_holder or VariableHolder(share_variables=True)
        self.graph = FuncGraph(kwargs.pop("name", "wrapped_function_graph"), **kwargs)
        self.functions = {}

    @property
    def variables(self):
        """{name: variable}."""
        return self._variable_holder.variables

    def wrap_function(self, fn, signature, name=None):
        """Returns `fn` as a function; its graph begins with the collections of this one."""
        own = name or getattr(fn, "__name__", "function").strip("<>")
        with framework.init_scope():
            graph = FuncGraph(own)
            graph._collections.update({key: list(items) for key, items in self.graph._collections.items()})
            graph._scopes.update({key: value for key, value in self.graph._scopes.items() if "variable" in key})
            wrapped = WrappedFunction(_built(fn, signature, self._variable_holder, graph, own), self._variable_holder)
        self.graph._collections = {key: list(items) for key, items in graph._collections.items()}
        self.graph._scopes.update({key: value for key, value in graph._scopes.items() if "variable" in key})
        self.functions[own] = wrapped
        return wrapped
