"""tf.function: turns a Python function into library functions, one per kind of arguments.

The function is traced as autograph converts it: control flow over tensors becomes part of the graph. Called in a graph, its
operations become part of that graph. Variables may be created in the first trace only; they outlive it.
"""

import functools
import logging

from runnel import nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.trackable import Trackable
from runnel.core.type_spec import TensorSpec
from runnel.eager import tracing
from runnel.eager.arguments import Arguments, as_signed, canonical, check_signature, signature_of
from runnel.eager.concrete import Concrete, ConcreteFunction
from runnel.eager.effect_order import EffectOrder, is_ordered
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


def _value_now(x):
    """Returns the current value of a variable; other values unchanged."""
    return convert_to_tensor(x) if isinstance(x, variables.Variable) else x


def _as_tensor(x):
    return convert_to_tensor(x) if isinstance(x, (variables.Variable, bool, int, float)) else x


_log = logging.getLogger("tensorflow")
_WATCHED, _MANY = 5, 4  # a warning comes if more than _MANY of the last _WATCHED calls were traced


class Function(Trackable):
    """The result of tf.function.

    Args:
      python_function: the function.
      input_signature: TypeSpecs of the arguments; then there is one trace.
      autograph: whether control flow over tensors is converted.
      reduce_retracing: whether a new shape makes a trace for more shapes than that one.
      jit_compile: kept; functions run the same way.
    """

    def __init__(self, python_function, input_signature=None, autograph=True, reduce_retracing=False, jit_compile=None, name=None,
                 attributes=None, autograph_options=None):
        self.python_function = self._python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._options = {"autograph": autograph, "reduce_retracing": reduce_retracing, "jit_compile": jit_compile, "name": name,
                         "attributes": dict(attributes or {}), "autograph_options": autograph_options}
        self._signature = signature_of(python_function)
        if input_signature is not None:
            check_signature(self._signature, self.input_signature)
        self._by_tensors = {}  # the types and shapes of arguments that are tensors -> Concrete
        self._cache = {}  # key of arguments with all TypeSpecs -> Concrete
        self._by_key = {}  # key of arguments -> [Concrete], the newest last
        self._may_create = True  # variables
        self._count = self._calls = 0  # of traces, and of calls that needed a look at their arguments
        self._recent, self._is_warned = [], False  # calls that were traced
        functools.update_wrapper(self, python_function)

    @property
    def jit_compile(self):
        """What tf.function was given."""
        return self._options["jit_compile"]

    _jit_compile = jit_compile
    _autograph = property(lambda self: self._options["autograph"])
    _reduce_retracing = property(lambda self: self._options["reduce_retracing"])
    _attributes = property(lambda self: self._options["attributes"])
    _experimental_autograph_options = property(lambda self: self._options["autograph_options"])

    @property
    def _name(self):
        return self._options["name"] or getattr(self._python_function, "__name__", "tf_function")

    def _clone(self, python_function):
        """Returns another function with the same options and no traces."""
        return Function(python_function, self.input_signature, **self._options)

    def __reduce__(self):
        return _unpickled, (self._python_function, self.input_signature, self._options)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        bound = instance.__dict__.setdefault("_tf_functions", {})
        if self not in bound:
            bound[self] = Function(self._python_function.__get__(instance, owner), self.input_signature, **self._options)
        return bound[self]

    def __call__(self, *args, **kwargs):
        if run_eagerly and framework.executing_eagerly():
            return self._python_function(*args, **kwargs)
        if not framework.executing_eagerly():
            return _inlined(traceable(self._python_function, self._options["autograph"], is_requested=True), args, kwargs)
        if not kwargs and self.input_signature is None and all(isinstance(x, framework.Tensor) for x in args):
            # The common case, tensors only: no need to flatten nested arguments.
            key = tuple([(x._dtype_number, x._dims()) for x in args])
            concrete = self._by_tensors.get(key)
            if concrete is None:
                concrete = self._concrete(args, kwargs)[0]
                if len(concrete.specs) == len(args):
                    self._by_tensors[key] = concrete
            tensors = args
        else:
            concrete, arguments = self._concrete(args, kwargs)
            tensors = arguments.tensors()
        if (concrete.has_effects or concrete.has_rules) and self._is_taped():
            # Under a tape, run the function op by op. The gradient of a call runs parts of it again: it
            # would draw other random numbers and update variables twice. Also, only a tape of single ops
            # calls the gradient functions of tf.custom_gradient.
            return self._python_function(*args, **kwargs)
        return concrete(tensors)

    @staticmethod
    def _is_taped():
        from runnel.eager import backprop
        return bool(backprop._active.tapes)

    def _concrete(self, args, kwargs):
        """Returns (the trace for these arguments, the arguments)."""
        if self.input_signature is not None:
            arguments, specs = self._signed(args, kwargs)
        else:
            arguments = Arguments(*canonical(self._signature, args, kwargs))
            specs = arguments.specs()
        key = arguments.key()
        self._calls += 1
        concrete = self._cache.get((key, tuple(specs)))
        if concrete is None:
            self._warn_of_traces()
            with tracing.exclusive():
                concrete = self._cache.get((key, tuple(specs))) or self._found_or_traced(arguments, key, specs)
                self._cache[key, tuple(specs)] = concrete
        return concrete, arguments

    def _found_or_traced(self, arguments, key, specs):
        known = self._by_key.setdefault(key, [])
        for concrete in known:
            if concrete.covers(specs):
                return concrete
        if known and self._options["reduce_retracing"]:
            specs = [spec.most_specific_common_supertype([other._without_tensor_names()]) or spec for spec, other in zip(specs, known[-1].specs)]
        concrete = self._traced(arguments, specs)
        known.append(concrete)
        return concrete

    def _traced(self, arguments, specs):
        with tracing.creation_of_variables(self._may_create) as created:
            concrete = self._trace_once(arguments, specs)
        if created:  # the variables exist now: trace what the next calls will do
            with tracing.creation_of_variables(False):
                concrete = self._trace_once(arguments, specs)
        self._may_create = False
        return concrete

    def _warn_of_traces(self):
        """Warns if more than four of the last calls were traced."""
        self._recent = [number for number in self._recent if number > self._calls - _WATCHED] + [self._calls]
        if len(self._recent) > _MANY and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "%d out of the last %d calls to %r triggered tf.function retracing. Tracing is expensive and the excessive number of tracings could be "
                "due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python objects instead "
                "of tensors. For (1), please define your @tf.function outside of the loop. For (2), @tf.function has reduce_retracing=True option that "
                "can avoid unnecessary retracing.", len(self._recent), min(self._calls, _WATCHED), self._python_function)

    def _trace_once(self, arguments, specs):
        self._count += 1
        return Concrete(self._python_function, arguments, specs, self._options["autograph"])

    def get_concrete_function(self, *args, **kwargs):
        """Returns the function for arguments of these kinds: tensors, or TypeSpecs for them."""
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        return ConcreteFunction(self._concrete(args, kwargs)[0])

    def experimental_get_tracing_count(self):
        """Returns how often the function was traced."""
        return self._count

    def pretty_printed_concrete_signatures(self, verbose=True):
        """Returns the arguments and results of all traces as text."""
        return "\n\n".join(ConcreteFunction(c).pretty_printed_signature(verbose) for c in self._cache.values())

    def _list_all_concrete_functions(self):
        return [ConcreteFunction(c) for c in dict.fromkeys(self._cache.values())]

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Returns the traces, which a SavedModel has and a checkpoint has not."""
        return {} if save_type == "checkpoint" else {"trace_%d" % i: f for i, f in enumerate(self._list_all_concrete_functions())}

    def experimental_get_compiler_ir(self, *args, **kwargs):
        """Not supported: there is no XLA compiler."""
        raise NotImplementedError("experimental_get_compiler_ir: Runnel has no XLA compiler")

    def __repr__(self):
        return "<runnel.eager.def_function.Function for %r>" % (self._python_function,)

    def _signed(self, args, kwargs):
        """Returns (arguments as tensors, their TypeSpecs), according to the signature."""
        if self._signature is not None:
            args, kwargs = canonical(self._signature, args, kwargs)
        wanted = list(self.input_signature)
        if len(args) > len(wanted) and all(not isinstance(x, framework.Tensor) for x in args[len(wanted):]):
            wanted += list(args[len(wanted):])  # arguments with defaults that the signature does not mention
        if len(args) != len(wanted):
            raise TypeError("%r takes %d arguments by its input_signature, but got %d" % (
                getattr(self._python_function, "__name__", "f"), len(self.input_signature), len(args)))
        tensors = as_signed(wanted, list(args))
        arguments, specs = Arguments(tuple(tensors), {}), Arguments(tuple(wanted), {}).specs()
        for own, spec in zip(arguments.specs(), specs):
            if not spec._without_tensor_names().is_compatible_with(own._without_tensor_names()):
                raise TypeError("Binding inputs to tf.function failed due to `Can not cast %r to %r`. Received args: %s and kwargs: %s for signature: %s." % (
                    own, spec, tuple(args), kwargs, self.input_signature))
        return arguments, specs


def _unpickled(python_function, input_signature, options):
    """Returns a pickled function: it has no traces."""
    return Function(python_function, input_signature, **options)


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
    attributes = dict(experimental_attributes or {})
    if experimental_implements is not None:
        attributes["api_implements"] = experimental_implements
    reduces = reduce_retracing if experimental_relax_shapes is None else experimental_relax_shapes
    return Function(func, input_signature, autograph, reduces, jit_compile, attributes=attributes,
                    autograph_options=experimental_autograph_options)
