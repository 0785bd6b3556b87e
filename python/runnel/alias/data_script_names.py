"""tensorflow.python.ops.script_ops: functions under the names that TensorFlow's own tests use."""

from runnel.eager.eager_script import py_function as eager_py_func  # noqa: F401
