"""A tf.function for one type of arguments: a function of the library and how to call it."""

import functools

from runnel import dtypes, errors, nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.eager.concrete_function import ConcreteFunction, structured
from runnel.eager.body_shapes import inferred_shapes
from runnel.eager.error_places import note_call, with_place
from runnel.eager.effect_order import READS, is_stateful
from runnel.eager.func_graph import FuncGraph, describe_handle
from runnel.eager.function_attributes import function_attributes
from runnel.eager.tracing import make_callable, trace_typed
from runnel.functions.function_type import FunctionType
from runnel.functions.signatures import is_same_structure
from runnel.functions.trace_values import from_value


class Concrete:
    """A trace: the graph of a Python function for arguments of a FunctionType."""

    def __init__(self, python_function, function_type, context, bound=None, options=None):
        from runnel.eager import backprop
        self.python_function = python_function
        self.options = options or {}
        self._structure = self._face = None
        self.has_effects = False  # it has side effects
        self.has_rules = False  # it calls functions with gradients of their own (tf.custom_gradient)
        autograph = self.options.get("autograph", True)
        in_order = not (self.options.get("attributes") or {}).get("_disable_acd", False)

        def body(given):
            args, kwargs = given.args, given.kwargs
            before = _copied(args), _copied(kwargs)
            result = traceable(python_function, autograph, True, self.options.get("autograph_options"))(*args, **kwargs)
            _check_unchanged(python_function, before, (args, kwargs))
            result = _as_results(python_function, result)
            self._structure = None if isinstance(result, framework.Operation) else result
            graph = framework.get_default_graph()
            operations = graph.get_operations()
            self.has_effects = any(is_stateful(op) and op.type not in READS for op in operations)
            self.has_rules = any(op.type == "IdentityN" and backprop._has_own_rule(op) for op in operations)
            return [x for x in nest.flatten(self._structure, expand_composites=True) if x is not None and not isinstance(x, framework.Operation)]

        variables = context.get_placeholder_mapping()
        name = self.options.get("name") or function_name(python_function)
        stem = "__inference_%s" % name.strip("<>")
        with backprop.watch_variables() as read:
            self.traced = trace_typed(body, function_type, variables, stem, _actual(function_type, bound), in_order,
                                      function_attributes(self.options.get("attributes") or {}))
        given = list(variables.values())
        # The gradient functions of tf.custom_gradient read this trace, and a TensorArray belongs to one graph: callers trace again.
        self.is_inlined = self.has_rules or any(hasattr(x, "_as_flow") for x in nest.flatten(self._structure))
        self.variables = [v for v in read if not any(v is one for one in given)]
        full_type = FunctionType(
            function_type.parameters.values(), self._capture_types(), return_annotation=from_value(_described(self._structure), context))
        self._settle(full_type, function_type, bool(given))
        graph = self.traced.graph
        graph.name = name
        graph.structured_input_signature, graph.structured_outputs = self.signature_structure, self._structure
        graph.variables = tuple(dict.fromkeys(self._captured_variables()))

    @classmethod
    def of_atomic(cls, atomic):
        """Returns the trace that an AtomicFunction is."""
        made = cls.__new__(cls)
        made.python_function, made.options, made._face = None, {}, None
        made.has_effects, made.has_rules, made.is_inlined = atomic.call_options.is_stateful, False, False
        made.traced, kind = atomic._traced, atomic.function_type
        made._structure = kind.pack_output(list(atomic.graph.outputs))
        made.variables = made._captured_variables()
        made._settle(kind, FunctionType(kind.parameters.values()), False)
        return made

    def _settle(self, full_type, parameters, takes_variables):
        """Notes the type of the function, and decides how it is called."""
        self.is_first = False  # its trace has created variables: a later call does something else
        self.taped = None  # how a tape calls it, if as one step: see taped.py
        self._takes_variables = takes_variables
        self.function_type, self.parameters = full_type, parameters
        self.signature_structure = self.inputs = structured(parameters)
        self._op = raw_ops.StatefulPartitionedCall if self.has_effects or self.traced.has_effects else raw_ops.PartitionedCall
        self._is_single = isinstance(self._structure, framework.Tensor)

    def _capture_types(self):
        traced = self.traced
        types = {id(x): from_value(x) for x in traced.captured}
        types.update({one.key: one.kind for one in traced.deferred})
        return types

    def _captured_variables(self):
        from runnel.ops.resource_variable import variable_of
        found = [variable_of(x) for x in self.traced.captured]
        return [v for v in found if v is not None]

    def unpacked(self, bound):
        """Returns the tensors of bound arguments, after having told tapes of the variables among them."""
        if self._takes_variables:
            from runnel.eager import backprop
            from runnel.ops.resource_variable import variable_of
            tensors = self.function_type.unpack_inputs(bound)
            for x in tensors:
                variable = variable_of(x)
                if variable is not None and variable.trainable:
                    backprop._accessed(variable)
            return tensors
        return self.function_type.unpack_inputs(bound)

    def call_flat(self, tensors):
        """Returns the results as a flat list."""
        from runnel.eager import backprop
        for variable in self.variables:
            backprop._accessed(variable)
        traced = self.traced
        if framework.executing_eagerly():
            traced.share()
        else:
            make_callable(framework.get_default_graph(), traced)
            note_call(framework.get_default_graph(), traced.name, traced.graph)
            if traced.graph.saving_errors and isinstance(framework.get_default_graph(), FuncGraph):
                framework.get_default_graph().saving_errors += traced.graph.saving_errors
        args = list(tensors) + traced.captured
        if traced.deferred:
            args += [x for one in traced.deferred for x in (one() if callable(one) else one.now())]
        try:
            results = self._op(args=args, Tout=traced.dtypes, f=traced.name)
        except errors.OpError as error:
            raise with_place(error, traced.graph) from None
        if framework.executing_eagerly():
            return results
        results = [] if isinstance(results, framework.Operation) else results
        for result, shape, inside in zip(results, inferred_shapes(traced, args), traced.graph.outputs):
            result.set_shape(shape)
            if result.dtype in (dtypes.resource, dtypes.variant):
                describe_handle(result, inside)
        return results

    def outputs(self):
        """Returns the TypeSpecs of the results, in their structure."""
        traced = self.traced
        leaves = iter(TensorSpec(shape, dtype, name="Identity" if i == 0 else "Identity_%d" % i)
                      for i, (shape, dtype) in enumerate(zip(traced.shapes, traced.dtypes)))
        if self._is_single:
            return next(leaves)
        flat = [_spec_of(x, leaves) for x in nest.flatten(self._structure)]
        return nest.pack_sequence_as(self._structure, flat) if nest.is_nested(self._structure) else flat[0] if flat else None

    def described(self):
        """Returns the description of the function for a SavedModel."""
        from runnel.saved_model.captures import Captures
        traced = self.traced
        if traced.graph.saving_errors:
            raise ValueError("Unable to save function %s for the following reason(s):\n%s" % (traced.name, "\n".join(traced.graph.saving_errors)))
        return Captures(traced.name, traced.captured, self.inputs, _named_by_path(self.outputs()), None, traced.dtypes)

    @property
    def name(self):
        return self.traced.name

    @property
    def face(self):
        """The ConcreteFunction that the program sees, always the same one."""
        if self._face is None:
            self._face = ConcreteFunction(self)
        return self._face

    def __call__(self, tensors):
        return self.structured(self.call_flat(tensors))

    def structured(self, results):
        """Returns flat results as what the function returned."""
        return results[0] if self._is_single else self.packed(results)

    def packed(self, results):
        """Returns flat results in the structure of what the function returned."""
        leaves = iter(results)
        flat = [None if x is None or isinstance(x, framework.Operation) else next(leaves)
                for x in nest.flatten(self._structure, expand_composites=True)]
        if nest.is_nested(self._structure) or hasattr(self._structure, "_is_composite"):
            return nest.pack_sequence_as(self._structure, flat, expand_composites=True)
        return flat[0]


def function_name(python_function):
    """Returns the name of a Python function."""
    while isinstance(python_function, functools.partial):
        python_function = python_function.func
    return getattr(python_function, "__name__", "tf_function")


def _copied(value):
    """Returns the same structure of the same leaves."""
    return nest.map_structure(lambda x: x, value)


def _check_unchanged(python_function, before, after):
    """Raises ValueError if the function has changed a list or dict among its arguments."""
    text = "%s() should not modify its Python input arguments. Check if it modifies any lists or dicts passed as arguments. Modifying a copy is allowed."
    name = getattr(python_function, "__name__", repr(python_function))
    for old, new in zip(before, after):
        if not is_same_structure(old, new):
            raise ValueError(text % name)
        if any(a is not b for a, b in zip(nest.flatten(old), nest.flatten(new))):
            raise ValueError(text % name)


def _as_results(python_function, result):
    """Returns a function's results with tensors in place of variables, numbers and arrays."""
    if isinstance(result, framework.Operation):
        return result

    def one(x):
        if x is None or isinstance(x, (framework.Tensor, framework.Operation)) or hasattr(x, "_is_composite") or hasattr(x, "_as_flow"):
            return x
        try:
            return convert_to_tensor(x)
        except (ValueError, TypeError):
            raise TypeError(
                "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or None values; in "
                "compilation of %s, found return value of type %s, which is not a Tensor or ExtensionType." % (
                    python_function, type(x).__name__)) from None
    return nest.map_structure(one, result)


def _described(structure):
    """Returns results with TypeSpecs in place of tensors."""
    def one(x):
        if isinstance(x, framework.Tensor):
            return TensorSpec(x.shape, x.dtype)
        return None if isinstance(x, framework.Operation) else x._type_spec if hasattr(x, "_is_composite") else x
    return nest.map_structure(one, structure)


def _named_by_path(outputs):
    """Returns results with the names that a SavedModel gives to tensors: where they are in the structure."""
    def one(path, x):
        if not isinstance(x, TensorSpec):
            return x
        name = "_".join(str(part) for part in path)
        name = "".join(c if c.isalnum() else "_" for c in name.lower()) or "unknown"
        return TensorSpec(x.shape, x.dtype, name if name[0].isalpha() else "tensor_" + name)
    if not nest.is_nested(outputs):
        return one((), outputs)
    return nest.pack_sequence_as(outputs, [one(path, x) for path, x in nest.flatten_with_tuple_paths(outputs)])


def _actual(function_type, bound):
    """Returns the tensors of the call for which a function is traced; TypeSpecs where there are none."""
    if bound is None:
        return []
    found = []
    for p in function_type._in_order():
        value = bound.arguments.get(p.name)
        try:
            found += p.type_constraint.to_tensors(value)
        except Exception:  # TypeSpecs in place of tensors
            found += p.type_constraint.flatten()
    return found


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
