"""Default arguments of functions, by scope: slim's arg_scope.

    with arg_scope([conv2d], padding="SAME"):
        net = conv2d(inputs, 64, [3, 3])
"""

import contextlib
import functools
import inspect
import threading

_local = threading.local()
_takes = {}  # key of a function: names of its arguments that have defaults


def _stack():
    if not hasattr(_local, "stack"):
        _local.stack = [{}]
    return _local.stack


def arg_scope_func_key(op):
    """Returns the key of a function in scopes."""
    return getattr(op, "_key_op", str(op))


def current_arg_scope():
    """Returns {key of a function: {argument: value}}."""
    return _stack()[-1]


def has_arg_scope(func):
    """Tells whether a function uses scopes."""
    return arg_scope_func_key(func) in _takes


def arg_scoped_arguments(func):
    """Returns the names of the arguments that scopes may set for a function."""
    return _takes[arg_scope_func_key(func)]


@contextlib.contextmanager
def arg_scope(list_ops_or_scope, **kwargs):
    """A context manager that sets default arguments of functions, or enters a scope again."""
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling adictionary, kwargs must be "
                             "empty.")
        scope = dict(list_ops_or_scope)
    elif isinstance(list_ops_or_scope, (list, tuple)):
        scope = dict(current_arg_scope())
        for op in list_ops_or_scope:
            if not has_arg_scope(op):
                raise ValueError("%s is not decorated with @add_arg_scope",
                                 (op.__module__, op.__name__))
            key = arg_scope_func_key(op)
            scope[key] = {**scope.get(key, {}), **kwargs}
    else:
        raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
    _stack().append(scope)
    try:
        yield scope
    finally:
        _stack().pop()


def add_arg_scope(func):
    """A decorator that makes a function use scopes."""
    key = arg_scope_func_key(func)

    @functools.wraps(func)
    def scoped(*args, **kwargs):
        return func(*args, **{**current_arg_scope().get(key, {}), **kwargs})

    _takes[key] = tuple(name for name, parameter in inspect.signature(func).parameters.items()
                        if parameter.default is not parameter.empty)
    scoped._key_op = key
    return scoped
