"""tensorflow.python.framework: names without a public name that TensorFlow's own tests of 2.x import."""

from runnel import _core, raw_ops
from runnel.core import framework
from runnel.core.composite import SparseTensor, SparseTensorValue
from runnel.core.framework import is_tensor as is_tf_type  # noqa: F401
from runnel.eager import context as _eager
from runnel.eager.context import enable_eager_execution_internal  # noqa: F401
from runnel.extension_types.fields import ImmutableDict  # noqa: F401


class _EagerTensorType(type):
    """The class of eager tensors as TensorFlow's tests call it: EagerTensor(value, device, dtype)."""

    def __instancecheck__(cls, value):
        return isinstance(value, _eager.EagerTensor)

    def __call__(cls, value, device=None, dtype=None):
        if device is not None and not isinstance(device, str):
            raise ValueError("Error parsing device argument to CopyToDevice: %r" % (device,))
        import numpy
        from runnel import dtypes
        kind = None if dtype is None else dtypes.as_dtype(dtype)
        if isinstance(value, _eager.EagerTensor):
            return value if kind is None or kind == value.dtype else raw_ops.Cast(x=value, DstT=kind)
        if kind is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "fiub":
            value = numpy.asarray(value).astype(kind.as_numpy_dtype)
        return _eager.constant(value, kind)


class EagerTensor(metaclass=_EagerTensorType):
    """Makes eager tensors, and recognizes them."""


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


def set_dtype_conversion_mode(dtype_conversion_mode):
    """Sets how types are promoted: by NumPy's rules ("legacy") or not at all ("off")."""
    if str(dtype_conversion_mode).lower() == "legacy":
        from runnel.experimental_numpy.behavior import experimental_enable_numpy_behavior
        experimental_enable_numpy_behavior()
    elif str(dtype_conversion_mode).lower() != "off":
        raise NotImplementedError("set_dtype_conversion_mode(%r): 'legacy' and 'off' are supported" % (dtype_conversion_mode,))


def is_auto_dtype_conversion_enabled():
    """Returns False: modes that convert more than NumPy does are not supported."""
    return False


def try_evaluate_constant(tensor):
    """Returns the value of a tensor that depends on constants only, or None."""
    from runnel.core.convert import evaluated_value
    return evaluated_value(tensor)


class NullContextmanager:
    """A context manager that does nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return None

    def __exit__(self, *unused):
        return False


def name_from_scope_name(name):
    """Returns the name of an operation from the name of its scope, which ends with a slash."""
    return name.removesuffix("/")


def convert_to_tensor_or_composite(value, dtype=None, name=None):
    """Returns composite values unchanged, and others as tensors."""
    from runnel.core.convert import convert_to_tensor
    from runnel.core.type_spec import CompositeTensor
    return value if isinstance(value, CompositeTensor) else convert_to_tensor(value, dtype, name=name)
