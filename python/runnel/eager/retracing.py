"""Warnings that a tf.function is traced again and again.

What counts are the traces among the last calls of a piece of Python code, also if each call makes another tf.function of it.
"""

import logging
import weakref

_WATCHED, _MANY = 10, 5  # a warning comes if _MANY of the last _WATCHED calls or fewer were traced
_MOST_WARNINGS = 2       # per piece of code
_log = logging.getLogger("tensorflow")
_detectors: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


class Detector:
    """The calls of one piece of code in eager execution. `calls` are those since the last trace."""

    def __init__(self):
        self.calls = 0
        self._earlier = []  # for each trace that still counts: it, and the calls before the next one
        self._warnings = 0

    def note_trace(self, python_function):
        """Called for a call that is traced. Warns if there were many lately."""
        if self.calls:
            self._earlier = self._earlier or [0]
            self._earlier[-1] += self.calls
            self.calls = 0
        self._earlier.append(1)
        while sum(self._earlier) - self._earlier[0] > _WATCHED:
            del self._earlier[0]
        if self._warnings >= _MOST_WARNINGS or len(self._earlier) < _MANY:
            return
        self._warnings += 1
        _log.warning(
            "%d out of the last %d calls to %r triggered tf.function retracing. Tracing is expensive and the excessive number of tracings could be "
            "due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python objects instead "
            "of tensors. For (1), please define your @tf.function outside of the loop. For (2), @tf.function has reduce_retracing=True option that "
            "can avoid unnecessary retracing. For (3), please refer to https://www.tensorflow.org/guide/function#controlling_retracing and "
            "https://www.tensorflow.org/api_docs/python/tf/function for  more details.", len(self._earlier), sum(self._earlier), python_function)


def detector_of(python_function):
    """Returns the Detector of a Python function's code."""
    while hasattr(python_function, "__wrapped__"):
        python_function = python_function.__wrapped__
    python_function = getattr(python_function, "__func__", python_function)
    key = getattr(python_function, "__code__", python_function)
    try:
        return _detectors.setdefault(key, Detector())
    except TypeError:  # it takes no weak references
        return Detector()
