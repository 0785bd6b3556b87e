"""Switches of tf.compat.v1 between the behaviour of 1.x and that of 2.x."""


def disable_v2_behavior():
    """Does nothing: this is the API of 1.x."""


disable_v2_tensorshape = disable_tensor_equality = disable_control_flow_v2 = disable_v2_behavior


def enable_v2_tensorshape():
    """Raises NotImplementedError: this is the API of 1.x."""
    raise NotImplementedError("Runnel has the behaviour of 1.x only: see doc/python.md")


enable_tensor_equality = enable_v2_tensorshape


def enable_control_flow_v2():
    """Does nothing: both forms of control flow are the same to a program."""


def control_flow_v2_enabled():
    """Returns False: conditionals and loops are Switch, Merge and Enter nodes, not functions."""
    return False


def enable_v2_behavior():
    """Enables eager execution and resource variables."""
    import runnel
    runnel.enable_eager_execution()
    runnel.enable_resource_variables()
