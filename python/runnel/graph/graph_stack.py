"""The stack of default graphs of a thread."""

import threading

from runnel import _core


class _Stack(threading.local):
    def __init__(self):
        self.graphs = []


_stack = _Stack()


class _DefaultGraph:
    """A context manager that makes a graph the default; None means eager execution."""

    __slots__ = ("_graph",)

    def __init__(self, graph):
        self._graph = graph

    def __enter__(self):
        _stack.graphs.append(self._graph)
        _core.set_current(self._graph)
        return self._graph

    def __exit__(self, *exc):
        graphs = _stack.graphs
        if graphs:  # empty if a test's setUp cleared it meanwhile
            if graphs[-1] is not self._graph:
                raise AssertionError("Nesting violated for default stack of graphs")
            graphs.pop()
        _core.set_current(graphs[-1] if graphs else False)
