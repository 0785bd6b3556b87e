"""Switches between the behaviour of 1.x and that of 2.x.

In the API of 1.x they are off. `import runnel.v2` turns them all on.
"""

from runnel import _core, raw_ops
from runnel.core import framework, tensor_shape

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
        kind.__eq__, kind.__ne__ = _equal, _not_equal


def disable_tensor_equality():
    """Makes `==` and `!=` compare tensors and variables as objects."""
    for kind in _comparable():
        kind.__eq__, kind.__ne__ = _same, _not_same


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
    if _core.current() is not None and not framework.get_default_graph()._building_function or not framework._eager_enabled:
        return (x is y) != of_different
    return getattr(raw_ops, op)(x, y, incompatible_shape_error=False)


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
    _state["all"] = True


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
    _state["all"] = False


def v2_behavior_enabled():
    """Tells whether the behaviour of 2.x is on."""
    return _state["all"]
