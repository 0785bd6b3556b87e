"""A tf.function for one kind of arguments: a function of the library and how to call it."""

from runnel import nest, raw_ops
from runnel.autograph.conversion import traceable
from runnel.core import framework
from runnel.core.trackable import Trackable
from runnel.core.type_spec import TensorSpec
from runnel.eager.arguments import canonical, named, of_parameters, signature_of
from runnel.eager.effect_order import READS, is_stateful
from runnel.eager.tracing import trace


class Concrete:
    """A trace: the graph of a Python function for arguments that TypeSpecs describe."""

    def __init__(self, python_function, arguments, specs, autograph=True):
        from runnel.eager import backprop
        self.python_function = python_function
        self.signature = signature_of(python_function)
        self.given = arguments.described(specs)  # (args, kwargs)
        self.specs = specs
        self._structure = None
        self.has_effects = False  # it has side effects
        self.has_rules = False  # it calls functions with gradients of their own (tf.custom_gradient)

        def body(*tensors):
            args, kwargs = arguments.filled(specs, tensors)
            result = traceable(python_function, autograph, is_requested=True)(*args, **kwargs)
            self._structure = None if isinstance(result, framework.Operation) else result
            operations = framework.get_default_graph().get_operations()
            self.has_effects = any(is_stateful(op) and op.type not in READS for op in operations)
            self.has_rules = any(op.type == "IdentityN" and backprop._has_own_rule(op) for op in operations)
            return [x for x in nest.flatten(self._structure, expand_composites=True) if x is not None and not isinstance(x, framework.Operation)]

        self.inputs = named(self.signature, *self.given)
        flat = [(spec.dtype, spec.shape) for leaf in specs for spec in leaf._flat_specs()]
        leaves = nest.flatten(list(of_parameters(self.signature, *self.given)))
        names = [spec.name for leaf in leaves if hasattr(leaf, "_flat_specs") for spec in leaf._flat_specs()]
        stem = "__inference_%s" % getattr(python_function, "__name__", "function").strip("<>")
        with backprop.watch_variables() as self.variables:
            self.traced = trace(body, flat, stem, in_order=True, names=names, actual=arguments.tensors())
        self._op = raw_ops.StatefulPartitionedCall if self.traced.has_effects else raw_ops.PartitionedCall
        self._is_single = isinstance(self._structure, (framework.Tensor, int, float))

    def covers(self, specs):
        """Tells whether it takes arguments of these TypeSpecs."""
        return all(theirs.is_subtype_of(own._without_tensor_names()) for own, theirs in zip(self.specs, specs))

    def call_flat(self, tensors):
        """Returns the results as a flat list."""
        from runnel.eager import backprop
        for variable in self.variables:
            backprop._accessed(variable)
        traced = self.traced
        return self._op(args=list(tensors) + traced.captured, Tout=traced.dtypes, f=traced.name)

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
        from runnel.saved_model.object_saving import Captures
        traced = self.traced
        outputs = nest.map_structure(lambda x: x._without_tensor_names() if isinstance(x, TensorSpec) else x, self.outputs())
        return Captures(traced.name, traced.captured, self.inputs, outputs, None, traced.dtypes)

    @property
    def name(self):
        return self.traced.name

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


class ConcreteFunction(Trackable):
    """A function for one kind of arguments.

    It takes tensors by position, by the names of the arguments, or as a flat list.
    """

    def __init__(self, concrete):
        self._concrete = concrete
        self.described, self.call_flat = concrete.described, concrete.call_flat

    name = property(lambda self: self._concrete.name.encode())
    graph = property(lambda self: self._concrete.traced.graph)
    inputs = property(lambda self: self.graph.inputs)
    outputs = property(lambda self: self.graph.outputs)
    captured_inputs = property(lambda self: list(self._concrete.traced.captured))
    structured_input_signature = property(lambda self: self._concrete.inputs)
    structured_outputs = property(lambda self: self._concrete.outputs())
    output_dtypes = property(lambda self: nest.map_structure(lambda x: x.dtype, self.structured_outputs))
    output_shapes = property(lambda self: nest.map_structure(lambda x: x.shape, self.structured_outputs))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    @property
    def variables(self):
        """The variables that the function uses, in the order of their first use."""
        from runnel.ops.resource_variable import variable_of
        found = [variable_of(x) for x in self.captured_inputs]
        return tuple(v for v in found if v is not None)

    @property
    def function_def(self):
        """The FunctionDef."""
        from runnel.core.protobuf import message_class
        from runnel.eager.tracing import eager_functions
        return message_class("FunctionDef").FromString(eager_functions()[self._concrete.name])

    def pretty_printed_signature(self, verbose=True):
        """Returns the arguments and results as text."""
        return "Input Parameters:\n  %s\nOutput Type:\n  %s\nCaptures:\n  %s" % (
            self.structured_input_signature, self.structured_outputs, self.captured_inputs or None)

    def __repr__(self):
        return "<ConcreteFunction %s(%s) at 0x%X>" % (
            getattr(self._concrete.python_function, "__name__", "f"), ", ".join(
                "%s" % x.name for x in nest.flatten(list(self.structured_input_signature)) if isinstance(x, TensorSpec)), id(self))

    def __call__(self, *args, **kwargs):
        from runnel.saved_model.object_loading import match
        specs = self.structured_input_signature
        wanted = [x for x in nest.flatten(list(specs)) if isinstance(x, TensorSpec)]
        names = {spec.name for spec in wanted}
        if set(kwargs) <= names and len(args) + len(kwargs) == len(wanted):
            given = list(args) + [kwargs[spec.name] for spec in wanted[len(args):] if spec.name in kwargs]
            tensors = match(wanted, given)
        else:
            tensors = match(specs, canonical(self._concrete.signature, args, kwargs))
        if tensors is None:
            raise TypeError("%s takes %s, but got %r, %r" % (self._concrete.name, specs, args, kwargs))
        return self._concrete(tensors)
