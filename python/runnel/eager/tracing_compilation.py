"""Tracing without tf.function: trace_function and call_function of tensorflow.python.eager.polymorphic_function.tracing_compilation."""

import contextlib
import dataclasses
from typing import Any

from runnel.core import framework
from runnel.eager import tracing
from runnel.eager.concrete import Concrete, function_name
from runnel.functions.dispatch_table import FunctionContext
from runnel.functions.signatures import (
    canonicalize_function_inputs, make_canonicalized_monomorphic_type, make_function_type, to_input_signature)


class ScopeType:
    """Where variables may be created."""

    NO_VARIABLE_CREATION, VARIABLE_CREATION, NO_SCOPE = range(3)


@dataclasses.dataclass
class TracingOptions:
    """How a Python function is traced."""

    python_function: Any = lambda *args, **kwargs: None
    name: str = "function"
    polymorphic_type: Any = None
    default_values: Any = None
    scope_type: Any = ScopeType.NO_SCOPE
    attributes: Any = None
    autograph: bool = True
    autograph_options: Any = None
    reduce_retracing: bool = False
    bind_graph_to_function: bool = False
    function_cache: Any = None
    function_captures: Any = None
    lock: Any = None

    def __post_init__(self):
        if self.attributes:
            for name, value in self.attributes.items():
                if not isinstance(value, (bool, int, float, str, bytes)):
                    raise ValueError("Tracing compilation does not support `%s` as an attribute: %r." % (name, value))
            unknown = [name for name in self.attributes if not _is_known(name)]
            if unknown:
                raise ValueError("Tracing compilation does not support `%s` as an attribute." % unknown[0])
        if not self.polymorphic_type or self.default_values is None:
            self.polymorphic_type, self.default_values = make_function_type(self.python_function, None)
        self._input_signature = to_input_signature(self.polymorphic_type)

    @property
    def is_pure(self):
        """Whether variables are taken for their values."""
        return bool(self.attributes) and "api_implements" in self.attributes

    @property
    def input_signature(self):
        """The input_signature, or None."""
        return self._input_signature


_KNOWN = ("api_implements", "api_preferred_device", "backward_function_name", "forward_function_name", "go_backwards", "shared_rendezvous")


def _is_known(name):
    return name in _KNOWN or name.startswith("_")


def trace_function(args=None, kwargs=None, tracing_options=None):
    """Returns the ConcreteFunction for these arguments, which may be TypeSpecs."""
    return _traced(args or (), kwargs or {}, tracing_options or TracingOptions())[0].face


def call_function(args=None, kwargs=None, tracing_options=None):
    """Traces a function if no trace fits the arguments, and calls it."""
    options = tracing_options or TracingOptions()
    concrete, bound = _traced(args or (), kwargs or {}, options)
    return concrete(concrete.unpacked(bound))


def _traced(args, kwargs, options):
    signature = options.input_signature
    with options.lock or contextlib.nullcontext():
        if signature and not args and not kwargs:
            args = signature
        bound = canonicalize_function_inputs(args, kwargs, options.polymorphic_type, options.default_values, options.is_pure)
        args, kwargs = bound.args, bound.kwargs
        described = args if signature is None else (*signature, *args[len(signature):])
        wanted, context = make_canonicalized_monomorphic_type(described, kwargs, {}, options.polymorphic_type)
        where = FunctionContext(None if framework.executing_eagerly() else framework.get_default_graph())
        cache = options.function_cache
        found = None if cache is None else cache.lookup(wanted, where)
        if found is None:
            if options.reduce_retracing and signature is None and cache is not None:
                wanted = cache.generalize(where, wanted)
            made = {"name": options.name or function_name(options.python_function), "autograph": options.autograph,
                    "attributes": options.attributes, "autograph_options": options.autograph_options}
            with tracing.exclusive():
                found = Concrete(options.python_function, wanted, context, wanted.bind(*args, **kwargs), made)
            if cache is not None:
                cache.add(found, where)
        return found, found.parameters.bind(*args, **kwargs)

