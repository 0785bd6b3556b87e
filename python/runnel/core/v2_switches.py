"""Switches between the behaviour of 1.x and that of 2.x.

In the API of 1.x they are off. `import runnel.v2` turns them all on.
"""

from runnel import _core, raw_ops
from runnel.core import fallbacks, framework, tensor_shape
from runnel.graph import default_graph

_state = {"control_flow": False, "all": False}


def enable_v2_tensorshape():
    """Makes the elements of shapes ints and Nones, not Dimensions."""
    tensor_shape.TensorShape._holds_sizes = True


def disable_v2_tensorshape():
    """Makes the elements of shapes Dimensions."""
    tensor_shape.TensorShape._holds_sizes = False


def enable_tensor_equality():
    """Makes `==` and `!=` compare the elements of tensors and variables."""
    for kind in _comparable():
        kind.__eq__, kind.__ne__, kind._USE_EQUALITY = _equal, _not_equal, True


def disable_tensor_equality():
    """Makes `==` and `!=` compare tensors and variables as objects."""
    for kind in _comparable():
        kind.__eq__, kind.__ne__, kind._USE_EQUALITY = _same, _not_same, False


def _comparable():
    from runnel.ops.variables import Variable
    return framework.Tensor, Variable


def _equal(self, other):
    return _compared(self, other, "Equal", False)


def _not_equal(self, other):
    return _compared(self, other, "NotEqual", True)


def _same(self, other):
    return self is other


def _not_same(self, other):
    return self is not other


def _compared(x, y, op, of_different):
    if y is None:
        return of_different
    if _core.current() is not None and not framework.get_default_graph()._building_function or not default_graph._eager_enabled:
        return (x is y) != of_different
    graph = getattr(x, "graph", None)  # symbolic values of libraries have none
    if graph is not None and not graph._building_function:  # a tensor of a graph of 1.x, compared outside it
        return (x is y) != of_different
    try:
        return getattr(raw_ops, op)(x, y, incompatible_shape_error=False)
    except (TypeError, ValueError):
        return fallbacks.operator("__operators__.ne" if of_different else "__operators__.eq", x, y)


def enable_control_flow_v2():
    """Does nothing else: both forms of control flow are the same to a program."""
    _state["control_flow"] = True


def disable_control_flow_v2():
    """Does nothing else: both forms of control flow are the same to a program."""
    _state["control_flow"] = False


def control_flow_v2_enabled():
    """Tells whether control flow of 2.x was asked for."""
    return _state["control_flow"]


def enable_v2_behavior():
    """Enables eager execution, resource variables, and what else 2.x does otherwise. Call it at the start of the program."""
    import runnel
    runnel.enable_eager_execution()
    runnel.enable_resource_variables()
    enable_v2_tensorshape()
    enable_tensor_equality()
    enable_control_flow_v2()
    _state["all"] = framework.Graph._begins_per_thread = True


def disable_v2_behavior():
    """Restores the behaviour of 1.x. Call it at the start of the program."""
    if not _state["all"]:
        return
    import runnel
    runnel.disable_eager_execution()
    runnel.disable_resource_variables()
    disable_v2_tensorshape()
    disable_tensor_equality()
    disable_control_flow_v2()
    _state["all"] = framework.Graph._begins_per_thread = False


def v2_behavior_enabled():
    """Tells whether the behaviour of 2.x is on."""
    return _state["all"]
