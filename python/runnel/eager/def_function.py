"""tf.function: turns a Python function into library functions, one per signature.

The function is traced as autograph converts it: control flow over tensors becomes part of the graph. Called in a graph, its
operations become part of that graph.
"""

import functools
import inspect

from runnel import nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.trackable import Trackable
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.eager.effect_order import EffectOrder, READS, is_ordered, is_stateful
from runnel.eager.tracing import trace
from runnel.ops import variables

run_eagerly = False  # tf.config.run_functions_eagerly


class _Concrete:
    """A function for one signature."""

    def __init__(self, python_function, specs, call, stem, autograph=True):
        from runnel.eager import backprop
        self._python_function = python_function
        self.given = None  # (arguments, keywords) with TensorSpecs for tensors
        self._structure = None
        self.has_effects = False  # it has side effects
        self.has_rules = False  # it calls functions with gradients of their own (tf.custom_gradient)

        def body(*tensors):
            result = call(traceable(python_function, autograph), tensors)
            self._structure = None if isinstance(result, framework.Operation) else result
            operations = framework.get_default_graph().get_operations()
            self.has_effects = any(is_stateful(op) and op.type not in READS for op in operations)
            self.has_rules = any(op.type == "IdentityN" and backprop._has_own_rule(op) for op in operations)
            return [x for x in nest.flatten(self._structure, expand_composites=True) if x is not None and not isinstance(x, framework.Operation)]

        with backprop.watch_variables() as self.variables:
            self._traced = trace(body, specs, stem, in_order=True)
        self._op = raw_ops.StatefulPartitionedCall if self._traced.has_effects else raw_ops.PartitionedCall
        self._is_single = isinstance(self._structure, (framework.Tensor, int, float))

    def call_flat(self, tensors):
        """Returns the results as a flat list."""
        from runnel.eager import backprop
        for variable in self.variables:
            backprop._accessed(variable)
        traced = self._traced
        return self._op(args=list(tensors) + traced.captured, Tout=traced.dtypes, f=traced.name)

    def described(self):
        """Returns the description of the function for a SavedModel."""
        from runnel.saved_model.object_saving import Captures
        traced = self._traced
        leaves = iter(TensorSpec(shape, dtype) for shape, dtype in zip(traced.shapes, traced.dtypes))
        if self._is_single:
            outputs = next(leaves)
        else:
            flat = [_spec_of(x, leaves) for x in nest.flatten(self._structure)]
            outputs = nest.pack_sequence_as(self._structure, flat) if nest.is_nested(self._structure) else flat[0] if flat else None
        return Captures(traced.name, traced.captured, _canonical(self._python_function, *self.given), outputs, None, traced.dtypes)

    @property
    def name(self):
        return self._traced.name

    def __call__(self, tensors):
        results = self.call_flat(tensors)
        if self._is_single:
            return results[0]
        leaves = iter(results)
        flat = [None if x is None or isinstance(x, framework.Operation) else next(leaves)
                for x in nest.flatten(self._structure, expand_composites=True)]
        if nest.is_nested(self._structure) or hasattr(self._structure, "_is_composite"):
            return nest.pack_sequence_as(self._structure, flat, expand_composites=True)
        return flat[0]


def _spec_of(value, leaves):
    """Returns the description of a result; `leaves` are those of its tensors."""
    if value is None or isinstance(value, framework.Operation):
        return None
    if hasattr(value, "_is_composite"):
        spec = value._type_spec
        for _ in spec._flat_specs():
            next(leaves)
        return spec
    return next(leaves)


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


def _canonical(python_function, args, kwargs):
    """Returns (positional arguments, {keyword-only arguments}) with defaults; TensorSpecs get the arguments' names."""
    try:
        bound = inspect.signature(python_function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return tuple(args), dict(kwargs)
    bound.apply_defaults()

    def named(stem, value):
        leaves = nest.flatten(value)
        names = [stem] if len(leaves) == 1 and not nest.is_nested(value) else ["%s_%d" % (stem, i) for i in range(len(leaves))]
        renamed = [TensorSpec(x.shape, x.dtype, x.name or n) if isinstance(x, TensorSpec) else x for x, n in zip(leaves, names)]
        return nest.pack_sequence_as(value, renamed) if nest.is_nested(value) else renamed[0]
    for name in bound.arguments:
        bound.arguments[name] = named(name, bound.arguments[name])
    return bound.args, bound.kwargs


class ConcreteFunction(Trackable):
    """A function for one kind of arguments.

    It takes tensors by position, by the names of the arguments, or as a flat list.
    """

    def __init__(self, concrete):
        self._concrete = concrete
        self.described, self.call_flat = concrete.described, concrete.call_flat

    name = property(lambda self: self._concrete.name)
    captured_inputs = property(lambda self: list(self._concrete._traced.captured))
    structured_input_signature = property(lambda self: self.described().inputs)
    structured_outputs = property(lambda self: self.described().outputs)

    def __call__(self, *args, **kwargs):
        from runnel.saved_model.object_loading import match
        specs = self.structured_input_signature
        wanted = [x for x in nest.flatten(list(specs)) if isinstance(x, TensorSpec)]
        names = {spec.name for spec in wanted}
        if set(kwargs) <= names and len(args) + len(kwargs) == len(wanted):
            given = list(args) + [kwargs[spec.name] for spec in wanted[len(args):] if spec.name in kwargs]
            tensors = match(wanted, given)
        else:
            tensors = match(specs, _canonical(self._concrete._python_function, args, kwargs))
        if tensors is None:
            raise TypeError("%s takes %s, but got %r, %r" % (self.name, specs, args, kwargs))
        return self._concrete(tensors)


def _leaf_key(x):
    if isinstance(x, framework.Tensor):
        return ("tensor", x.dtype, x._dims())
    if _is_composite(x):
        return ("composite", _spec_of_argument(x))
    if isinstance(x, TensorSpec):
        return ("spec", x.dtype, str(x.shape))
    try:
        hash(x)
    except TypeError:
        return ("object", id(x))
    if isinstance(x, (int, float, str, bytes, bool, type(None), complex)):
        return (type(x), x)
    return ("object", id(x))


def _is_composite(x):
    """Tells whether an argument is a composite tensor, or the TypeSpec of one."""
    return hasattr(x, "_is_composite") or isinstance(x, TypeSpec) and not isinstance(x, TensorSpec)


def _spec_of_argument(x):
    return x if isinstance(x, TypeSpec) else x._type_spec


class Function(Trackable):
    """The result of tf.function."""

    def __init__(self, python_function, input_signature=None, autograph=True):
        self._python_function = python_function
        self._autograph = autograph
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._cache = {}
        self._by_tensors = {}
        functools.update_wrapper(self, python_function)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        bound = instance.__dict__.setdefault("_tf_functions", {})
        if self not in bound:
            bound[self] = Function(self._python_function.__get__(instance, owner), self.input_signature, self._autograph)
        return bound[self]

    def __call__(self, *args, **kwargs):
        if run_eagerly and framework.executing_eagerly():
            return self._python_function(*args, **kwargs)
        if not framework.executing_eagerly():
            return _inlined(traceable(self._python_function, self._autograph), args, kwargs)
        if not kwargs and self.input_signature is None and all(isinstance(x, framework.Tensor) for x in args):
            # The common case, tensors only: no need to flatten nested arguments.
            key = tuple([(x._dtype_number, x._dims()) for x in args])
            concrete = self._by_tensors.get(key)
            if concrete is None:
                concrete = self._by_tensors[key] = self._concrete(args, kwargs)[0]
            tensors = args
        else:
            concrete, tensors = self._concrete(args, kwargs)
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
        specs = None
        if self.input_signature is not None:
            args, specs = self._signed(args, kwargs)
            kwargs = {}
        given = [args, kwargs]
        leaves = [self._tensor_or_value(x) for x in nest.flatten(given)]
        places = [i for i, x in enumerate(leaves) if isinstance(x, (framework.Tensor, TensorSpec)) or _is_composite(x)]
        tensors = [tensor for i in places for tensor in _tensors_of(leaves[i])]
        if specs is None:
            specs = [(x.dtype, x.shape) for x in tensors]
            key = (str(nest.map_structure(lambda _: 0, given)), tuple(_leaf_key(x) for x in leaves))
        else:
            key = "signed"
        concrete = self._cache.get(key)
        if concrete is None:
            def call(function, inside):
                filled, rest = list(leaves), iter(inside)
                for place in places:
                    if _is_composite(leaves[place]):
                        spec = _spec_of_argument(leaves[place])
                        filled[place] = spec._from_tensors([next(rest) for _ in spec._flat_specs()])
                    else:
                        filled[place] = next(rest)
                arguments, keywords = nest.pack_sequence_as(given, filled)
                return function(*arguments, **keywords)
            stem = "__inference_%s" % getattr(self._python_function, "__name__", "function").strip("<>")
            concrete = self._cache[key] = _Concrete(self._python_function, specs, call, stem, self._autograph)
            described, named = list(leaves), nest.flatten(list(self.input_signature or ()))
            rest = iter(specs)
            for number, place in enumerate(places):
                if _is_composite(leaves[place]):
                    described[place] = _spec_of_argument(leaves[place])
                    for _ in described[place]._flat_specs():
                        next(rest)
                    continue
                dtype, shape = next(rest)
                name = named[number].name if named else getattr(leaves[place], "name", None) if isinstance(
                    leaves[place], TensorSpec) else None
                described[place] = TensorSpec(shape, dtype, name)
            concrete.given = nest.pack_sequence_as(given, described)
        return concrete, tensors

    def get_concrete_function(self, *args, **kwargs):
        """Returns the function for arguments of these kinds: tensors, or TensorSpecs for them."""
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        return ConcreteFunction(self._concrete(args, kwargs)[0])

    @staticmethod
    def _tensor_or_value(x):
        return convert_to_tensor(x) if type(x).__module__ == "numpy" else x

    def _signed(self, args, kwargs):
        """Returns the arguments as tensors and their (type, shape), according to the signature."""
        if kwargs:
            import inspect
            bound = inspect.signature(self._python_function).bind(*args, **kwargs)
            args = bound.args
        if len(args) != len(self.input_signature):
            raise TypeError("%r takes %d arguments by its input_signature, but got %d" % (
                getattr(self._python_function, "__name__", "f"), len(self.input_signature), len(args)))
        tensors = _as_specs(list(self.input_signature), list(args))
        for tensor, spec in zip(nest.flatten(tensors), nest.flatten(list(self.input_signature))):
            if not spec.is_compatible_with(tensor):
                raise TypeError("Python inputs incompatible with input_signature: %r, %r" % (tensor, spec))
        return tuple(tensors), [(s.dtype, s.shape) for s in nest.flatten(list(self.input_signature), expand_composites=True)]


def _tensors_of(x):
    """Returns the tensors of an argument, or their TensorSpecs."""
    if not _is_composite(x):
        return [x]
    return x._flat_specs() if isinstance(x, TypeSpec) else x._type_spec._to_tensors(x)


def _as_specs(specs, value):
    """Converts the leaves of `value` to tensors, in the structure of `specs`."""
    if _is_composite(specs):
        return value
    if isinstance(specs, TensorSpec):
        if isinstance(value, TensorSpec):
            return value
        return convert_to_tensor(value, dtype=None if isinstance(value, framework.Tensor) else specs.dtype)
    if isinstance(specs, dict):
        return {key: _as_specs(spec, value[key]) for key, spec in specs.items()}
    if len(specs) != len(value):
        raise TypeError("%r does not have the structure of the input_signature %r" % (value, specs))
    parts = [_as_specs(spec, item) for spec, item in zip(specs, value)]
    return type(specs)(*parts) if hasattr(specs, "_fields") else type(specs)(parts)


def function(func=None, input_signature=None, autograph=True, experimental_autograph_options=None,
             experimental_relax_shapes=False, reduce_retracing=False, jit_compile=None, **_):
    """A decorator: calls of the function run as a graph, which is traced once per signature of the arguments.

    `input_signature`, a list of TensorSpecs, fixes a single signature.
    """
    if func is None:
        return lambda f: Function(f, input_signature, autograph)
    return Function(func, input_signature, autograph)
