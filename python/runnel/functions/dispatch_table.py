"""The traces of a function, found by type."""

import collections
from typing import Any, NamedTuple

_MOST_REQUESTS = 1024  # the most answers that a table keeps


class TypeDispatchTable:
    """A list of function types. A request gets the closest type that takes all that the request takes; of several, the first added."""

    def __init__(self):
        self._targets = collections.OrderedDict()
        self._answers = collections.OrderedDict()  # request -> another type, the latest last

    @property
    def targets(self):
        """The types, in the order in which they were added."""
        return self._targets.keys()

    def add_target(self, target):
        """Adds a type."""
        self._targets[target] = None
        for request, answer in self._answers.items():
            if request.is_supertype_of(target) and target.is_supertype_of(answer):
                self._answers[request] = target

    def delete(self, target):
        """Removes a type, if it is there."""
        if self._targets.pop(target, self) is None:
            self._answers = collections.OrderedDict((r, a) for r, a in self._answers.items() if a != target)

    def clear(self):
        """Removes all types."""
        self._targets.clear()
        self._answers.clear()

    def dispatch(self, request):
        """Returns the closest type for a request, or None."""
        if request in self._targets:
            return request
        if request in self._answers:
            self._answers.move_to_end(request)
            return self._answers[request]
        best = None
        for target in self._targets:
            if request.is_supertype_of(target) and (best is None or target.is_supertype_of(best)):
                best = target
        if best is not None:
            if len(self._answers) >= _MOST_REQUESTS:
                self._answers.popitem(last=False)
            self._answers[request] = best
        return best

    def try_generalizing_function_type(self, target):
        """Returns a type that takes what `target` takes and, where possible, what the types of the table take."""
        for other in self._targets:
            target = target.most_specific_common_subtype([other]) or target
        return target


class FunctionContext(NamedTuple):
    """Where a function is called: traces are found only in the context in which they were made."""

    context: Any = None
    scope_type: Any = None


class FunctionCache:
    """Functions by context and type."""

    __slots__ = ("_functions", "_tables")

    def __init__(self):
        self._functions, self._tables = collections.OrderedDict(), {}

    def lookup(self, function_type, context=None):
        """Returns the function for a type, or None."""
        context = context or FunctionContext()
        table = self._tables.get(context)
        found = table and table.dispatch(function_type)
        return self._functions[context, found] if found else None

    def add(self, fn, context=None):
        """Adds a function by its `function_type`."""
        context = context or FunctionContext()
        self._functions[context, fn.function_type] = fn
        self._tables.setdefault(context, TypeDispatchTable()).add_target(fn.function_type)

    def delete(self, function_type, context=None):
        """Removes a function. Tells whether it was there."""
        context = context or FunctionContext()
        if self._functions.pop((context, function_type), None) is None:
            return False
        self._tables[context].delete(function_type)
        return True

    def generalize(self, context, function_type):
        """Returns a more general type than `function_type`, if the functions of the context suggest one."""
        table = self._tables.get(context)
        return table.try_generalizing_function_type(function_type) if table else function_type

    def clear(self):
        """Removes all functions."""
        self._functions.clear()
        self._tables.clear()

    def values(self):
        """Returns the functions."""
        return list(self._functions.values())

    def __len__(self):
        return len(self._functions)
