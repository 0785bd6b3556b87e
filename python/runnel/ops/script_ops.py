"""Python functions as operations: py_func."""

import threading

from runnel import _core, dtypes, raw_ops as _ops
from runnel.core.framework import get_default_graph

_lock = threading.Lock()
_count = 0


def _register(function, graph, takes_list=False):
    """Returns the token of a function. The graph, or the one around a function body, keeps the function alive."""
    while getattr(graph, "outer", None) is not None:
        graph = graph.outer
    global _count
    with _lock:
        token = "pyfunc_%d" % _count
        _count += 1
    _core.py_func_register(token, function)
    import weakref
    if graph is not None:
        finalizer = weakref.finalize(graph, _core.py_func_register, token, None)
        finalizer.atexit = False
    return token


def _called(func, count, is_list):
    def call(arguments):
        answer = func(*arguments)
        if not is_list or not isinstance(answer, (list, tuple)):
            return [] if count == 0 else [answer]
        return answer
    return call


def py_func(func, inp, Tout, stateful=True, name=None):
    """Returns an operation that calls a Python function with arrays, in this process.

    Args:
      func: takes one array per tensor of `inp` and returns arrays or values of the types `Tout`.
      inp: a list of tensors.
      Tout: the type of the result, or a list of types.
      stateful: whether calling the function twice matters.
      name: name of the operation.

    Returns:
      A tensor, or a list of tensors if `Tout` is a list.
    """
    is_list = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t) for t in Tout] if is_list else [dtypes.as_dtype(Tout)]
    from runnel.core import framework
    if framework.executing_eagerly():
        from runnel.core.convert import convert_to_tensor
        answer = _called(func, len(types), is_list)([x.numpy() if hasattr(x, "numpy") else x for x in inp])
        results = [convert_to_tensor(value, dtype=t) for value, t in zip(answer, types)]
        return results if is_list else results[0]
    token = _register(_called(func, len(types), is_list), get_default_graph())
    op = _ops.PyFunc if stateful else _ops.PyFuncStateless
    results = op(list(inp), token=token, Tout=types, name=name)
    if not types:
        return results
    return results if is_list else results[0]


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """The same as py_func."""
    return py_func(func, inp, Tout, stateful=stateful, name=name)
