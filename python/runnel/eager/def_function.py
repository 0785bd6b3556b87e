"""tf.function: turns a Python function into library functions, one per kind of arguments.

The function is traced as autograph converts it: control flow over tensors becomes part of the graph. In a graph a call is a node; if the
function makes variables in a plain graph, its operations become part of that graph. Variables may be created in the first trace only; they outlive it.
"""

import contextlib
import functools
import inspect
import threading
import weakref

from runnel import _core, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.trackable import Trackable
from runnel.core.type_spec import TensorSpec
from runnel.eager import taped, tracing
from runnel.eager.arguments import Arguments
from runnel.eager.concrete import Concrete, function_name
from runnel.eager.concrete_function import ConcreteFunction, UnknownArgument
from runnel.eager.effect_order import EffectOrder, is_ordered
from runnel.eager.func_graph import FuncGraph
from runnel.eager.retracing import detector_of
from runnel.functions.dispatch_table import FunctionCache, FunctionContext
from runnel.functions.signatures import FunctionSpec, bind_function_inputs, is_same_structure, make_canonicalized_monomorphic_type, make_function_type
from runnel.functions.trace_type import Weakref
from runnel.functions.trace_values import from_value
from runnel.ops import variables

__all__ = ["ConcreteFunction", "Function", "TensorSpec", "function"]
run_eagerly = False  # tf.config.run_functions_eagerly


def _inlined(python_function, args, kwargs):
    """Calls the function so that its operations become part of the current graph.

    Its side effects are ordered, and happen before its result is available; without a result, it returns an operation.
    """
    graph = framework.get_default_graph()
    if is_ordered(graph):
        return nest.map_structure(_value_now, python_function(*args, **kwargs))
    with EffectOrder(graph) as order:
        result = nest.map_structure(_as_tensor, python_function(*args, **kwargs))
    if not order.last:
        return result
    if result is None or isinstance(result, framework.Operation):
        with framework.control_dependencies(order.last):
            return raw_ops.NoOp()
    flat = nest.flatten(result)
    held = iter(order.after_all([x for x in flat if isinstance(x, framework.Tensor)]))
    return nest.pack_sequence_as(result, [next(held) if isinstance(x, framework.Tensor) else x for x in flat])


def _takes_calls(graph):
    """Tells whether calls of functions become nodes of a graph: in functions, unless variables have copies per replica."""
    from runnel.distribute.contexts import has_strategy
    return not tracing.is_symbolic(graph) and not has_strategy()


def _value_now(x):
    """Returns the current value of a variable; other values unchanged."""
    return convert_to_tensor(x) if isinstance(x, variables.Variable) else x


def _as_tensor(x):
    return convert_to_tensor(x) if isinstance(x, (variables.Variable, bool, int, float)) else x


_ANYWHERE = FunctionContext()


def _here():
    """Returns where a trace belongs: to a plain graph or eager execution, and to the key of tracing.traces_apart."""
    graph = _core.current()
    while isinstance(graph, FuncGraph):
        graph = graph._graph_outside
    key = tracing.apart_key() if tracing.apart_count[0] else None
    return _ANYWHERE if graph is None and key is None else FunctionContext(graph, key)


class Function(Trackable):
    """The result of tf.function.

    Args:
      python_function: the function.
      input_signature: TypeSpecs of the arguments; then there is one trace.
      autograph: whether control flow over tensors is converted.
      reduce_retracing: whether a new shape makes a trace for more shapes than that one.
      jit_compile: kept; functions run the same way.
    """

    def __init__(self, python_function, name=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False,
                 experimental_implements=None, experimental_autograph_options=None, experimental_attributes=None):
        self.python_function = self._python_function = python_function
        self._function_type, self._default_values = make_function_type(python_function, input_signature)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        attributes = dict(experimental_attributes or {})
        if experimental_implements is not None:
            attributes["_implements"] = experimental_implements
        self._options = {"autograph": autograph, "reduce_retracing": reduce_retracing, "jit_compile": jit_compile, "name": name,
                         "attributes": attributes, "autograph_options": experimental_autograph_options}
        kinds = [p.kind for p in self._function_type.parameters.values()]
        is_plain = all(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
        self._plain_count = len(kinds) if is_plain else None  # of arguments, if all are positional
        self._by_tensors = {}  # the types and shapes of arguments that are tensors -> Concrete
        self._cache = {}  # key of arguments -> Concrete
        self._traces, self._lock = FunctionCache(), threading.Lock()
        self._typed = {}  # key -> function of what is captured by reference, whose type decides which trace is used
        self._may_create = True  # variables
        self._is_pure = "_implements" in attributes  # takes variables for their values, and captures nothing
        self._count = 0  # of traces
        self._detector = detector_of(python_function)
        functools.update_wrapper(self, python_function)

    @property
    def jit_compile(self):
        """What tf.function was given."""
        return self._options["jit_compile"]

    _jit_compile = jit_compile
    function_type = property(lambda self: self._function_type)

    @property
    def function_spec(self):
        """The description of the arguments."""
        return FunctionSpec(self._function_type, self._default_values, name=function_name(self._python_function), jit_compile=self.jit_compile)

    _function_spec = function_spec
    _autograph = property(lambda self: self._options["autograph"])
    _reduce_retracing = property(lambda self: self._options["reduce_retracing"])
    _attributes = property(lambda self: self._options["attributes"])
    _experimental_autograph_options = property(lambda self: self._options["autograph_options"])

    @property
    def _name(self):
        return self._options["name"] or function_name(self._python_function)

    def _clone(self, python_function):
        """Returns another function with the same options and no traces."""
        return _like(self._python_function if python_function is None else python_function, self.input_signature, self._options)

    def _decorate(self, decorator):
        """Replaces the Python function by `decorator` of it, before it is traced."""
        if self._count:
            raise ValueError("Functions cannot be decorated after they have been traced.")
        self.python_function = self._python_function = decorator(self._python_function)
        self._function_type, self._default_values = make_function_type(self._python_function, self.input_signature)

    def __tf_tracing_type__(self, context):
        return Weakref(weakref.ref(self))

    def __reduce__(self):
        return _like, (self._python_function, self.input_signature, self._options)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        bound = instance.__dict__.setdefault("_tf_functions", {})
        if self not in bound:
            bound[self] = _like(self._python_function.__get__(instance, owner), self.input_signature, self._options)
        return bound[self]

    def __call__(self, *args, **kwargs):
        if run_eagerly and framework.executing_eagerly():
            return self._python_function(*args, **kwargs)
        if self._is_pure:
            args, kwargs = [convert_to_tensor(x) for x in args], {key: convert_to_tensor(x) for key, x in kwargs.items()}
        if not framework.executing_eagerly():
            return self._in_graph(args, kwargs)
        before = self._count
        if not kwargs and not tracing.apart_count[0] and all(isinstance(x, framework.Tensor) for x in args):
            # The common case, tensors only: no need to flatten nested arguments.
            key = tuple([(x._dtype_number, x._dims()) for x in args])
            concrete = self._by_tensors.get(key)
            if concrete is None:
                concrete, tensors = self._concrete(args, kwargs)
                if len(tensors) == len(args) and all(a is b for a, b in zip(tensors, args)) and not self._typed:
                    self._by_tensors[key] = concrete
            else:
                tensors = args
        else:
            concrete, tensors = self._concrete(args, kwargs)
        if self._count == before:
            self._detector.calls += 1
        else:
            self._detector.note_trace(self._python_function)
        if (concrete.has_effects or concrete.has_rules) and self._is_taped():
            results = taped.call(concrete, tensors)
            if results is not None:
                return concrete.structured(results)
            # Op by op. The gradient of a call runs parts of it again: it would draw other random numbers and update
            # variables twice. Also, only a tape of single ops calls the gradient functions of tf.custom_gradient.
            return self._python_function(*args, **kwargs)
        return concrete(tensors)

    def _in_graph(self, args, kwargs):
        """Calls the function in a graph: in another function as a node that calls it, elsewhere as operations of the graph."""
        bound = bind_function_inputs(args, kwargs, self._function_type, self._default_values)
        graph = framework.get_default_graph()
        if not run_eagerly and _takes_calls(graph) and not any(hasattr(x, "_as_flow") for x in nest.flatten([bound.args, bound.kwargs])):
            try:
                with contextlib.nullcontext() if graph._building_function else tracing.called_by_plain_graph():
                    concrete, tensors = self._concrete(args, kwargs)
                if not concrete.is_inlined:
                    return concrete(tensors)
            except tracing.MakesVariables:
                if graph._building_function:
                    raise
        return _inlined(traceable(self._python_function, self._options["autograph"], True, self._options["autograph_options"]), bound.args, bound.kwargs)

    @staticmethod
    def _is_taped():
        from runnel.eager import backprop
        return bool(backprop._active.tapes)

    def _concrete(self, args, kwargs):
        """Returns (the trace for these arguments, their tensors)."""
        key = None
        if self.input_signature is None:
            if kwargs or len(args) != self._plain_count:
                bound = bind_function_inputs(args, kwargs, self._function_type, self._default_values)
                args, kwargs = bound.args, bound.kwargs
            arguments = Arguments(args, kwargs)
            key = None if arguments.is_special or self._typed or _here() is not _ANYWHERE else arguments.key()
            concrete = self._cache.get(key)
            if concrete is not None:
                return concrete, arguments.tensors()
        concrete, bound = self._found(args, kwargs)
        if key is not None and not self._typed and not concrete.is_first:
            self._cache[key] = concrete
        return concrete, concrete.unpacked(bound)

    def _found(self, args, kwargs):
        """Returns (the trace for these arguments, the arguments as those of its type)."""
        bound = bind_function_inputs(args, kwargs, self._function_type, self._default_values)
        args, kwargs = bound.args, bound.kwargs
        if self.input_signature is not None:
            described = (*self.input_signature, *args[len(self.input_signature):])
        else:
            described = args
        captures = {key: from_value(closure()) for key, closure in self._typed.items()}
        wanted, context = make_canonicalized_monomorphic_type(described, kwargs, captures, self._function_type)
        where = _here()
        with self._lock:
            concrete = self._traces.lookup(wanted, where)
        if concrete is None:
            with tracing.exclusive():
                with self._lock:
                    concrete = self._traces.lookup(wanted, where)
                if concrete is None:
                    if self._options["reduce_retracing"] and self.input_signature is None:
                        wanted = self._traces.generalize(where, wanted)
                    concrete = self._traced(wanted, context, args, kwargs)
                    if not concrete.is_first:
                        with self._lock:
                            self._traces.add(concrete, where)
        return concrete, concrete.parameters.bind(*args, **kwargs)

    def _traced(self, wanted, context, args, kwargs):
        bound, before = wanted.bind(*args, **kwargs), tracing.created_count()
        with tracing.creation_of_variables(self._may_create) as created:
            concrete = self._trace_once(wanted, context, bound)
        concrete.is_first = tracing.created_count() > before  # in the trace of a caller, which traces again
        if created:  # the variables exist now: trace what the next calls will do
            with tracing.creation_of_variables(False):
                concrete = self._trace_once(wanted, context, bound)
        self._may_create = False
        for one in concrete.traced.deferred:
            if one.is_typed:
                self._typed[one.key] = one.closure
        return concrete

    def _trace_once(self, wanted, context, bound):
        self._count += 1
        concrete = Concrete(self._python_function, wanted, context, bound, self._options)
        if self._is_pure and concrete.traced.graph.num_captures:
            raise AssertionError(
                "Function %s has \"experimental_implements\" and thus can not depend on any tensors outside of its signature or modify variables."
                "\n\nNote: variables are always captured and cause function re-tracing for every variable called. To pass a variable to such a "
                "function use variable.read_value()." % self._name)
        return concrete

    def get_concrete_function(self, *args, **kwargs):
        """Returns the function for arguments of these types: tensors, or TypeSpecs for them."""
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        with tracing.exclusive():
            return self._found(args, kwargs)[0].face

    def experimental_get_tracing_count(self):
        """Returns how often the function was traced."""
        return self._count

    def pretty_printed_concrete_signatures(self, verbose=True):
        """Returns the arguments and results of all traces as text."""
        return "\n\n".join(c.face.pretty_printed_signature(verbose) for c in self._traces.values())

    def _list_all_concrete_functions(self):
        return [c.face for c in self._traces.values()]

    def _list_all_concrete_functions_for_serialization(self):
        """Returns the traces that a SavedModel can describe; of those with the same arguments, one."""
        if self.input_signature is not None:
            return [self.get_concrete_function()]
        seen = []
        for function in self._list_all_concrete_functions():
            signature = function.structured_input_signature
            if not any(isinstance(x, UnknownArgument) for x in nest.flatten(list(signature))) and not any(
                    is_same_structure(signature, other, check_values=True) for other in seen):
                seen.append(signature)
        return [self.get_concrete_function(*args, **kwargs) for args, kwargs in seen]

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Returns the traces, which a SavedModel has and a checkpoint has not."""
        return {} if save_type == "checkpoint" else {
            "trace_%d" % i: f for i, f in enumerate(self._list_all_concrete_functions_for_serialization())}

    def experimental_get_compiler_ir(self, *args, **kwargs):
        """Not supported: there is no XLA compiler."""
        raise NotImplementedError("experimental_get_compiler_ir: Runnel has no XLA compiler")

    def __repr__(self):
        return "<runnel.eager.def_function.Function for %r>" % (self._python_function,)


def _like(python_function, input_signature, options):
    """Returns a function with the options of another one: a clone, a method, or what was pickled. It has no traces."""
    return Function(python_function, options["name"], input_signature, options["autograph"], options["jit_compile"], options["reduce_retracing"],
                    None, options["autograph_options"], options["attributes"])


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, experimental_implements=None,
             experimental_autograph_options=None, experimental_attributes=None, experimental_relax_shapes=None, experimental_compile=None,
             experimental_follow_type_hints=None):
    """A decorator: calls of the function run as a graph, which is traced once per kind of arguments.

    Args:
      func: the function; without it, returns a decorator.
      input_signature: a list of TypeSpecs; then there is one trace.
      autograph: whether Python's control flow over tensors becomes part of the graph.
      jit_compile: has no effect: functions run the same way.
      reduce_retracing: whether a second shape of an argument makes a trace for all such shapes.
    """
    if func is None:
        return lambda f: function(f, input_signature, autograph, jit_compile, reduce_retracing, experimental_implements,
                                  experimental_autograph_options, experimental_attributes, experimental_relax_shapes)
    reduces = reduce_retracing if experimental_relax_shapes is None else experimental_relax_shapes
    return Function(func, None, input_signature, autograph, jit_compile, reduces, experimental_implements, experimental_autograph_options,
                    experimental_attributes)
