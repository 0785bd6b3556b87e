"""tensorflow.python.eager.monitoring: counters, gauges and samplers of a process, and profiler traces."""

import contextlib
import functools
import math
import time


class _CounterCell:
    def __init__(self):
        self._value = 0

    def increase_by(self, value):
        """Adds a number."""
        self._value += value

    def set(self, value):  # noqa: A003
        """Sets the value."""
        self._value = value

    def value(self):
        """Returns the value."""
        return self._value


class _SamplerCell:
    def __init__(self, limits):
        self._limits, self._counts, self._sum, self._squares, self._range = limits, [0] * (len(limits) + 1), 0.0, 0.0, (math.inf, -math.inf)

    def add(self, value):
        """Adds a sample."""
        place = sum(1 for limit in self._limits if value >= limit)
        self._counts[place] += 1
        self._sum, self._squares = self._sum + value, self._squares + value * value
        self._range = min(self._range[0], value), max(self._range[1], value)

    def value(self):
        """Returns the HistogramProto."""
        from runnel.core.protobuf import HistogramProto
        made = HistogramProto()
        made.num, made.sum, made.sum_squares = sum(self._counts), self._sum, self._squares
        if made.num:
            made.min, made.max = self._range
        made.bucket_limit.extend([*self._limits, 1.7976931348623157e308])
        made.bucket.extend(self._counts)
        return made


class _Metric:
    """Cells by labels."""

    _cell = _CounterCell

    def __init__(self, name, description, *labels):
        self._name, self._labels, self._cells = name, labels, {}

    def _made(self):
        return self._cell()

    def get_cell(self, *labels):
        """Returns the cell of some values of the labels."""
        if labels not in self._cells:
            self._cells[labels] = self._made()
        return self._cells[labels]


class Counter(_Metric):
    """A number that grows."""

    def __init__(self, name, description, *labels):
        super().__init__(name, description, *labels)


class IntGauge(_Metric):
    """A number that is set."""


class StringGauge(_Metric):
    """A text that is set."""


class BoolGauge(_Metric):
    """A truth value that is set."""


class ExponentialBuckets:
    """The limits of a histogram: scale, scale * factor, and so on."""

    def __init__(self, scale, growth_factor, bucket_count):
        self.limits = [scale * growth_factor ** i for i in range(bucket_count)]


Buckets = ExponentialBuckets


class Sampler(_Metric):
    """A histogram of samples."""

    def __init__(self, name, buckets, description, *labels):
        super().__init__(name, description, *labels)
        self._limits = buckets.limits

    def _made(self):
        return _SamplerCell(self._limits)


MonitoredTimerSections: list = []  # the names of the sections that timers are in, the outermost first


class MonitoredTimer:
    """A context manager that adds the microseconds of its body to a cell.

    With `avoid_repetitive_counting`, a timer inside a timer of the same section counts nothing.
    """

    def __init__(self, cell, monitored_section_name=None, avoid_repetitive_counting=False):
        self._cell, self._section, self._once = cell, monitored_section_name, avoid_repetitive_counting
        self._counts = True

    def __enter__(self):
        self._counts = not (self._once and self._section and self._section in MonitoredTimerSections)
        if self._section and self._counts:
            MonitoredTimerSections.append(self._section)
        self._start = time.time()
        return self

    def __exit__(self, *unused):
        if self._counts:
            self._cell.increase_by(int((time.time() - self._start) * 1000000))
            if self._section:
                MonitoredTimerSections.remove(self._section)


def monitored_timer(metric, monitored_section_name=None, avoid_repetitive_counting=False):
    """A decorator that adds the microseconds of calls to a cell."""
    def decorate(function):
        @functools.wraps(function)
        def timed(*args, **kwargs):
            with MonitoredTimer(metric, monitored_section_name, avoid_repetitive_counting):
                return function(*args, **kwargs)
        return timed
    return decorate


class Trace(contextlib.AbstractContextManager):
    """A named span of a profile; it records nothing here."""

    def __init__(self, name, **kwargs):
        pass

    def __exit__(self, *unused):
        return None

    def set_metadata(self, **kwargs):
        """Does nothing."""


def trace_wrapper(trace_name=None, **trace_kwargs):
    """A decorator that changes nothing."""
    return trace_name if callable(trace_name) else lambda function: function
