"""Switches of tf.compat.v1 between the behaviour of 1.x and that of 2.x."""


def disable_v2_behavior():
    """Nothing: this is the API of 1.x."""


disable_v2_tensorshape = disable_tensor_equality = disable_control_flow_v2 = disable_v2_behavior


def enable_v2_tensorshape():
    raise NotImplementedError("the API here is that of 1.x: see doc/python.md")


enable_tensor_equality = enable_v2_tensorshape


def enable_control_flow_v2():
    """Nothing: conditionals and loops are the same to a program, however they are built."""


def control_flow_v2_enabled():
    """Whether conditionals and loops are functions: they are Switch, Merge and Enter nodes."""
    return False


def enable_v2_behavior():
    """Eager execution, and variables that are resources."""
    import runnel
    runnel.enable_eager_execution()
    runnel.enable_resource_variables()
