"""The default graph of a thread, or eager execution, which is the default graph None."""

from runnel import _core
from runnel.core import attr_values
from runnel.graph.graph import Graph
from runnel.graph.graph_stack import _stack
from runnel.graph.graph_tensor import Tensor
from runnel.graph.operation import Operation

_default_graph = None
_eager_enabled = False


def _global_graph():
    global _default_graph
    if _eager_enabled:
        return None
    if _default_graph is None:
        _default_graph = Graph()
    return _default_graph


def executing_eagerly():
    """Tells whether operations run when they are called."""
    if not _eager_enabled and not _stack.graphs:
        return False  # without making the default graph
    return _core.current() is None


def get_default_graph():
    """Returns the graph in which this thread creates operations."""
    graph = _core.current()
    if graph is None:
        # A program that executes eagerly may still build a graph.
        global _default_graph
        if _default_graph is None:
            _default_graph = Graph()
        return _default_graph
    return graph


def has_default_graph():
    """Tells whether this thread is inside `with graph.as_default()`."""
    return bool(_stack.graphs)


def reset_default_graph():
    """Forgets the default graph: the next use makes a new, empty one."""
    global _default_graph
    if _stack.graphs:
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs. If you "
                             "need a cleared graph, exit the nesting and create a new graph.")
    _default_graph = None


def _get_graph_from_inputs(op_input_list, graph=None):
    """Returns the graph of an operation's inputs, which must be `graph` if given; the default graph if they have none."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("Input graph needs to be a Graph: %s" % (graph,))
    first = None
    for value in op_input_list:
        element = value if isinstance(value, (Operation, Tensor)) else getattr(value, "_as_graph_element", lambda: None)()
        if element is None:
            continue
        if graph is None:
            first, graph = element, getattr(element, "graph", None)
        elif getattr(element, "graph", None) is not graph:
            if first is None:
                raise ValueError("%s is not from the passed-in graph." % (element,))
            raise ValueError("%s must be from the same graph as %s (graphs are %s and %s)." % (element, first, element.graph, graph))
    return get_default_graph() if graph is None else graph


_core.register(operation_class=Operation, tensor_class=Tensor, default_graph=_global_graph,
               as_attr=attr_values.to_bytes)
