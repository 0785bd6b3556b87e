"""tensorflow.python.util.tf_should_use: results that are reported if nothing uses them."""

import functools
import traceback
import types

from runnel import logging as tf_logging
from runnel.core import framework
from runnel.core.framework import Tensor
from runnel.graph import stack_trace

_OWN = frozenset(("mark_used", "_report", "__del__"))


class _Report:
    """What is to be said of a value, unless it is used."""

    def __init__(self, value, stack, is_error):
        self.value, self.stack, self.is_error, self.is_used = value, stack, is_error, False

    def text(self):
        """Says what was not used and where it comes from."""
        return "Object was never used (type %s): %s. To mark it as used, call its mark_used(). It was made here:\n%s" % (
            type(self.value), self.value, "".join(traceback.format_list(self.stack)))

    def at_the_end(self):
        """Raises an error at the end of a function's trace."""
        if not self.is_used:
            self.is_used = True
            raise RuntimeError(self.text())

    def forgotten(self):
        """Logs when the value is collected."""
        if not self.is_used and not self.is_error:
            self.is_used = True
            tf_logging.error("%s", self.text())


def _forward(name):
    def method(self, *args, **kwargs):
        report = object.__getattribute__(self, "_report")
        report.is_used = True
        return getattr(report.value, name)(*args, **kwargs)
    method.__name__ = name
    return method


def _proxy_class(kind):
    """Returns the class of what stands for values of a class: any access but `mark_used` goes to the value and uses it."""
    def get(self, name):
        report = object.__getattribute__(self, "_report")
        if name in _OWN:
            return object.__getattribute__(self, name)
        report.is_used = True
        return getattr(report.value, name)

    def mark_used(self):
        self._report.is_used = True

    def forgotten(self):
        self._report.forgotten()
    body = {"__getattribute__": get, "mark_used": mark_used, "__del__": forgotten}
    special = [name for name in dir(kind) if name.startswith("__") and callable(getattr(kind, name))]
    left = ("__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__",
            "__del__", "__class_getitem__", "__reduce__", "__reduce_ex__", "__getstate__", "__sizeof__", "__dir__")
    body.update((name, _forward(name)) for name in special if name not in left)
    return types.new_class("Should_use_" + kind.__name__, (), {}, lambda namespace: namespace.update(body))


_proxy_class = functools.lru_cache(None)(_proxy_class)


def _add_should_use_warning(x, error_in_function=False, warn_in_eager=False):
    """Returns what stands for a value and reports if it was not used: an error at the end of a function's trace, or a line in the log."""
    if x is None or framework.executing_eagerly() and not warn_in_eager:
        return x
    graph = framework.get_default_graph()
    is_error = error_in_function and hasattr(graph, "add_exit_callback")
    proxy = object.__new__(_proxy_class(Tensor if isinstance(x, Tensor) else type(x)))
    report = _Report(x, stack_trace.extract_stack(2), is_error)
    object.__setattr__(proxy, "_report", report)
    if is_error:
        graph.add_exit_callback(report.at_the_end)
    return proxy


def should_use_result(fn=None, warn_in_eager=False, error_in_function=False):
    """A decorator: what the function returns is reported if it is not used."""
    def decorated(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            return _add_should_use_warning(function(*args, **kwargs), error_in_function, warn_in_eager)
        return run
    return decorated if fn is None else decorated(fn)
