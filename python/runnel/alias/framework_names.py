"""tensorflow.python.framework: names without a public name that TensorFlow's own tests of 2.x import."""

from runnel import _core
from runnel.core import framework
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.framework import is_tensor as is_tf_type  # noqa: F401
from runnel.eager.context import EagerTensor  # noqa: F401


class NativeObject:
    """A type that operations take: no other than tensors."""


def inside_function():
    """Tells whether a tf.function is being traced."""
    return not framework.executing_eagerly() and _core.current() is not None and framework.get_default_graph()._building_function


def is_sparse(x):
    """Tells whether a value is a sparse tensor."""
    return isinstance(x, (SparseTensor, SparseTensorValue))


def device_v2(device_name):
    """A context manager that sets the device of operations."""
    import runnel
    return runnel.device(device_name)
