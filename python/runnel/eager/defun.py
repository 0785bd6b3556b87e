"""Defun: Python functions as functions of a graph, in the style of 1.x (tensorflow.python.framework.function).

A call is a node that calls the function. Its gradient is the function's own, or one that is given:
`python_grad_func(op, *grads)`, or `grad_func`, a Defun of the inputs and the incoming gradients.
"""

import itertools

from runnel import dtypes, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.gradients_impl import RegisterGradient
from runnel.eager.effect_order import is_stateful
from runnel.eager.tracing import trace

_numbers = itertools.count()


class Defun:
    """A decorator: @Defun(tf.float32, func_name="f")."""

    def __init__(self, *input_types, **kwargs):
        self._input_types = [dtypes.as_dtype(kind) for kind in input_types]
        self._options = {key: kwargs.get(key) for key in ("func_name", "grad_func", "python_grad_func", "shape_func")}

    def __call__(self, func):
        if not callable(func):
            raise ValueError("Function %s must be a callable." % (func,))
        import inspect
        parameters = list(inspect.signature(func).parameters.values())
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        is_open = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        if any(p.kind == p.VAR_KEYWORD for p in parameters):
            raise ValueError("Functions with keyword arguments not supported.")
        if self._input_types and (len(self._input_types) < len(positional) or len(self._input_types) > len(positional) and not is_open):
            raise ValueError("The function has fewer arguments than the number of specified input types."
                             if len(self._input_types) > len(positional) else
                             "The number of input types does not match the number of arguments: %d, %d." % (
                                 len(self._input_types), len(positional)))
        return _Defined(func, self._input_types, **self._options)


class _Defined:
    """The result of the decorator."""

    def __init__(self, func, input_types, func_name, grad_func, python_grad_func, shape_func):
        self._func, self._types = func, input_types
        self._func_name = func_name or getattr(func, "__name__", None) or "func"
        self._shape_func, self._made = shape_func, {}
        if grad_func is not None and python_grad_func is not None:
            raise ValueError("Gradient defined twice for function %s" % self._func_name)
        self._rule = None
        if python_grad_func is not None:
            self._register(lambda op, *grads: python_grad_func(op, *grads))
        elif grad_func is not None:
            self._register(lambda op, *grads: grad_func(*op.inputs, *grads))

    @property
    def name(self):
        return self._func_name

    @property
    def declared_input_types(self):
        return self._types

    def _register(self, function):
        def rule(op, *grads):
            given = function(op, *grads)
            given = list(given) if isinstance(given, (list, tuple)) else [given]
            return given + [None] * (len(op.inputs) - len(given))

        self._rule = "Defun_%s_%d" % (self._func_name, next(_numbers))
        RegisterGradient(self._rule)(rule)

    def _traced(self, graph, tensors):
        key = (graph, tuple((t.dtype.base_dtype, str(t.shape)) for t in tensors))
        if key not in self._made:
            stateful = []

            def body(*arguments):
                result = self._func(*arguments)
                if result is None or isinstance(result, framework.Operation):
                    result = []
                stateful[:] = [op for op in framework.get_default_graph().get_operations() if is_stateful(op)]
                return list(result) if isinstance(result, (list, tuple)) else [result]

            specs = [(t.dtype.base_dtype, t.shape) for t in tensors]
            self._made[key] = trace(body, specs, self._func_name), bool(stateful)
        return self._made[key]

    def __call__(self, *args, **kwargs):
        name = kwargs.pop("name", None)
        if kwargs:
            raise ValueError("Unknown keyword arguments: %s" % list(kwargs))
        if self._types and len(args) != len(self._types):
            raise ValueError("Expected number of arguments: %d, received: %d" % (len(self._types), len(args)))
        kinds = self._types or [None] * len(args)
        tensors = [convert_to_tensor(value, dtype=kind) for value, kind in zip(args, kinds)]
        graph = framework.get_default_graph()
        traced, has_effects = self._traced(graph, tensors)
        call = "StatefulPartitionedCall" if has_effects else "PartitionedCall"
        overrides = {call: self._rule} if self._rule else {}
        with graph.gradient_override_map(overrides):
            results = getattr(raw_ops, call)(args=tensors + traced.captured, Tout=traced.dtypes, f=traced.name,
                                             name=name or self._func_name)
        results = list(results) if isinstance(results, (list, tuple)) else [results] if traced.dtypes else []
        if not results:
            return graph.get_operations()[-1] if not framework.executing_eagerly() else None
        shapes = self._shape_func(results[0].op) if self._shape_func and results[0].op is not None else traced.shapes
        for result, shape in zip(results, shapes):
            result.set_shape(shape)
        return results[0] if len(results) == 1 else tuple(results)
