"""tf.__internal__.dispatch: what stands in for a function that refuses its arguments.

A dispatchable function that raises TypeError or ValueError asks its own dispatchers (OpDispatcher), then the global ones
(GlobalOpDispatcher), and raises the error if none of them handles the arguments. Keras builds functional models this way. The public
functions become dispatchable when the first global dispatcher is registered: programs without one pay nothing.
"""

import contextlib
import functools
import inspect
import sys

from runnel import _core

_LIST = "_tf_fallback_dispatchers"
_global: list = []
_GLOBAL_DISPATCHERS = _global  # its name in TensorFlow
_wrappers: dict = {}  # id of a public function -> (the function, what makes it dispatchable)

# Namespaces whose functions are operations.
_SPACES = frozenset("""__operators__ audio bitwise dtypes debugging image io linalg math math.special nn nn.experimental quantization ragged random
random.experimental sets signal sparse strings linalg.experimental""".split())
_NO_OPERATIONS = frozenset("""control_dependencies custom_gradient device executing_eagerly function get_current_name_scope get_logger
get_static_value grad_pass_through import_graph_def init_scope inside_function is_symbolic_tensor is_tensor load_library load_op_library
make_ndarray make_tensor_proto no_gradient nondifferentiable_batch_function numpy_function print py_function recompute_grad
register_tensor_conversion_function type_spec_from_value variable_creator_scope vectorized_map""".split())


class OpDispatcher:
    """Handles the arguments of one function that the function itself refuses."""

    NOT_SUPPORTED = object()

    def handle(self, args, kwargs):
        """Returns the result for these arguments, or NOT_SUPPORTED."""
        return self.NOT_SUPPORTED

    def register(self, op):
        """Registers the dispatcher for `op`, a public function or one that `add_dispatch_support` decorates."""
        dispatchers = getattr(op, _LIST, None)
        if dispatchers is None:
            dispatchers = getattr(_made_dispatchable(op), _LIST)
        dispatchers.append(self)


class GlobalOpDispatcher:
    """Handles the arguments of any public function that the function itself refuses."""

    NOT_SUPPORTED = OpDispatcher.NOT_SUPPORTED

    def handle(self, op, args, kwargs):
        """Returns the result of `op` for these arguments, or NOT_SUPPORTED."""
        return self.NOT_SUPPORTED

    def register(self):
        """Registers the dispatcher for all functions."""
        _global.append(self)
        if len(_global) == 1:
            from runnel.compat.v2 import places
            places.forget_found()


class _TypeDispatcher(OpDispatcher):
    """Calls a function in place of another if an argument, or an item of a list, is of one of the types."""

    def __init__(self, target, types):
        self._target, self._types = target, types

    def handle(self, args, kwargs):
        for value in (*args, *kwargs.values()):
            items = value if isinstance(value, (list, tuple)) else (value,)
            if any(isinstance(item, self._types) for item in items):
                return self._target(*args, **kwargs)
        return self.NOT_SUPPORTED


def dispatch_for_types(op, *types):
    """A decorator of a function with the parameters of `op`: it is called for arguments of these types that `op` refuses."""
    def decorate(target):
        own, theirs = inspect.signature(target), inspect.signature(op)
        if _without_defaults(own) != _without_defaults(theirs):
            raise AssertionError("The decorated function's non-default arguments must be identical to that of the overridden op. func has %s. "
                                 "op has %s." % tuple([name for name, _ in _without_defaults(each)] for each in (own, theirs)))
        missing = [name for name in theirs.parameters if name not in own.parameters]
        _TypeDispatcher(_refusing(target, theirs, missing) if missing else target, types).register(op)
        return target
    return decorate


def _without_defaults(signature):
    return [(p.name, p.kind) for p in signature.parameters.values() if p.default is p.empty]


def _refusing(target, signature, missing):
    """Returns a function that calls `target` without the parameters that it lacks, if they have their defaults."""
    def without(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        for name in missing:
            if name in bound.arguments and bound.arguments.pop(name) is not signature.parameters[name].default:
                raise AssertionError("Dispatched op is called with argument `%s` set to a non-default value, which is not supported by the "
                                     "decorated function" % name)
        return target(*bound.args, **bound.kwargs)
    return without


def add_dispatch_support(target=None, iterable_parameters=None):
    """A decorator that makes a function dispatchable."""
    if iterable_parameters is not None and not (
            isinstance(iterable_parameters, (list, tuple)) and all(isinstance(name, str) for name in iterable_parameters)):
        raise TypeError("iterable_parameters should be a list or tuple of string.")
    if target is None:
        return functools.partial(add_dispatch_support, iterable_parameters=iterable_parameters)

    @functools.wraps(target)
    def dispatchable(*args, **kwargs):
        entry = dispatchable.__dict__.get("_tf_type_based_dispatcher")
        chosen = entry and entry.rows and entry.target(args, kwargs)
        if chosen:
            return chosen(*args, **kwargs)
        try:
            return target(*args, **kwargs)
        except (TypeError, ValueError):
            return in_place_of(dispatchable, args, kwargs)
    setattr(dispatchable, _LIST, [])
    with contextlib.suppress(TypeError, ValueError):  # a callable without a signature
        dispatchable.__signature__ = inspect.signature(target)
        from runnel.core import dispatch as by_types
        by_types.add_type_based_api_dispatcher(dispatchable)
    return dispatchable


def dispatch(op, args, kwargs):
    """Returns what the first dispatcher returns that handles the arguments, or NOT_SUPPORTED."""
    for dispatcher in getattr(op, _LIST, ()):
        result = dispatcher.handle(args, kwargs)
        if result is not OpDispatcher.NOT_SUPPORTED:
            return result
    for dispatcher in _global:
        result = dispatcher.handle(op, args, kwargs)
        if result is not OpDispatcher.NOT_SUPPORTED:
            return result
    return OpDispatcher.NOT_SUPPORTED


def in_place_of(op, args, kwargs):
    """Returns what a dispatcher makes of the arguments. Raises the error that is being handled if none does."""
    result = dispatch(op, args, kwargs)
    if result is OpDispatcher.NOT_SUPPORTED:
        raise  # noqa: PLE0704  callers handle the error of the function
    return result


def applied(function, *args, **kwargs):
    """Returns what dispatchers make of a function for these arguments; without one, or for a tensor, what the function returns."""
    if isinstance(args[0], _core.Tensor):
        return function(*args, **kwargs)
    result = dispatch(function, args, kwargs)
    return function(*args, **kwargs) if result is OpDispatcher.NOT_SUPPORTED else result


def operator(path, *args, otherwise=None, **kwargs):
    """Returns what a global dispatcher makes of an operator of tensors; `path` is the public name of its function.

    If none does, returns `otherwise`, or raises the error that is being handled if that is None.
    """
    result = OpDispatcher.NOT_SUPPORTED
    if _global:
        value = sys.modules["runnel.v2" if "runnel.v2" in sys.modules else "runnel.compat.v2"]
        for part in path.split("."):
            value = getattr(value, part)
        result = dispatch(value, args, kwargs)
    if result is not OpDispatcher.NOT_SUPPORTED:
        return result
    if otherwise is None:
        raise  # noqa: PLE0704
    return otherwise


def dispatchable_function(path, value):
    """Returns a public function in a dispatchable form, if there is a global dispatcher and it is an operation."""
    space, _, name = path.rpartition(".")
    if not _global or isinstance(value, type) or not callable(value) or hasattr(value, _LIST):
        return value
    if space not in _SPACES if space else name in _NO_OPERATIONS:
        return value
    return _wrapped(value, path)


def _wrapped(value, path):
    found = _wrappers.get(id(value))
    if found is None:
        wrapper = add_dispatch_support(value)
        wrapper._tf_api_path = path
        found = _wrappers[id(value)] = (value, wrapper)
    return found[1]


def _made_dispatchable(op):
    """Puts a dispatchable form of a class method, or of a function of 1.x, in its place. Returns it."""
    owner, name = getattr(op, "__self__", None), getattr(op, "__name__", None)
    if isinstance(owner, type):
        found = inspect.getattr_static(owner, name).__func__
        if not hasattr(found, _LIST):
            found = add_dispatch_support(found)
            setattr(owner, name, classmethod(found))
        return found
    v1 = sys.modules["runnel"]
    if getattr(v1, name or "", None) is op:
        wrapper = _wrapped(op, "compat.v1." + name)
        setattr(v1, name, wrapper)
        return wrapper
    if getattr(sys.modules.get("runnel.compat.v2"), name or "", None) is not op:
        raise AssertionError("Dispatching not enabled for %s" % (op,))
    from runnel.compat.v2 import places
    wrapper = _wrapped(op, name)
    places.replace_found(op, wrapper)
    inner_paths = sys.modules.get("runnel.alias.inner_paths")
    if inner_paths is not None:
        inner_paths.replace_found(op, wrapper)
    return wrapper
