"""Eager execution: operations run when they are called, and tensors hold values.

The C part is python/ext/eager.c; op functions go there if no graph is being built. This file has the class of eager
tensors, the switch, seeds and devices.
"""

import contextlib
import random
import sys

from runnel import _core, dtypes, errors, raw_ops
from runnel.core import framework, tensor_shape
from runnel.eager import quick
from runnel.graph import default_graph

DEVICE_PLACEMENT_EXPLICIT, DEVICE_PLACEMENT_WARN, DEVICE_PLACEMENT_SILENT = 0, 1, 2
DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3
SYNC, ASYNC = 0, 1
_is_started = False
_SOFT_PLACEMENT = b"\x38\x01"  # a ConfigProto with allow_soft_placement


def _text(tensor, function):
    if tensor.dtype in (dtypes.resource, dtypes.variant):
        return "<unprintable>"
    value = tensor._value()
    if not isinstance(value, bytes) and not value.shape:
        function = str  # repr() of a NumPy scalar would show its type
    text = function(value)
    return "\n" + text if "\n" in text else text


_HANDLES = (20, 21)  # the numbers of resource and variant


class EagerTensor(_core.EagerTensor, framework.Tensor):
    """A tensor that holds a value: `numpy()`, `shape`, `dtype`, `device`."""

    def numpy(self):
        """Returns the value as a new array, or as a scalar."""
        if self._dtype_number in _HANDLES:
            raise errors.InvalidArgumentError(None, None, "Cannot convert a Tensor of dtype %s to a NumPy array." % self.dtype.name)
        value = self._value()
        return value.copy() if getattr(value, "shape", None) else value

    _numpy = numpy

    @property
    def name(self):
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")

    @property
    def graph(self):
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    @property
    def ndim(self):
        return len(self._dims())

    def set_shape(self, shape):
        """Checks that the tensor has this shape."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError("Tensor's shape %s is not compatible with supplied shape %s" % (
                self.shape, tensor_shape.as_shape(shape)))

    def eval(self, feed_dict=None, session=None):
        raise NotImplementedError("eval is not supported when eager execution is enabled, is .numpy() "
                                  "what you're looking for?")

    def consumers(self):
        raise NotImplementedError("consumers not supported when eager execution is enabled.")

    def cpu(self):
        """Returns the tensor in the CPU's memory."""
        return self._copy_to("/device:CPU:0")

    def gpu(self, gpu_index=0):
        """Returns a copy on a GPU."""
        return self._copy_to("/device:GPU:%d" % gpu_index)

    def _constant_value(self):
        return self._value()

    # Python's protocols for numbers and arrays

    def __repr__(self):
        return "<tf.Tensor: shape=%s, dtype=%s, numpy=%s>" % (self.shape, self.dtype.name, _text(self, repr))

    def __str__(self):
        return "tf.Tensor(%s, shape=%s, dtype=%s)" % (_text(self, str), self.shape, self.dtype.name)

    def __format__(self, spec):
        return self._value().__format__(spec)

    def __bool__(self):
        return bool(self._value())

    __nonzero__ = __bool__

    def __int__(self):
        return int(self._value())

    def __float__(self):
        return float(self._value())

    def __complex__(self):
        return complex(self._value())

    def __index__(self):
        return self._value().__index__()

    def __round__(self, digits=None):
        return round(self._value(), digits)

    def __len__(self):
        dims = self._dims()
        if not dims:
            raise TypeError("Scalar tensor has no `len()`")
        return dims[0]

    def __iter__(self):
        dims = self._dims()
        if not dims:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(dims[0]))

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return np.array(self._value(), dtype=dtype, copy=True)

    def __hash__(self):
        return id(self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return _core.eager_constant(self._value(), self._dtype_number)

    def __reduce__(self):
        return constant, (self.numpy(),)


for _name, _method in quick.operators().items():
    setattr(EagerTensor, _name, _method)


def constant(value, dtype=None, shape=None):
    """Returns an eager tensor of a value."""
    if isinstance(value, framework.Tensor):
        if dtype is not None and value.dtype != dtype:
            raise TypeError("Expected tensor %r with dtype %r, but got dtype %r." % (value, dtype, value.dtype))
        return value
    tensor = _core.eager_constant(value, 0 if dtype is None else dtype._number)
    return tensor if shape is None else raw_ops.Reshape(tensor, list(shape))


def capture_constant(tensor):
    """Returns the tensor that stands for an eager tensor in the graph under construction."""
    graph = framework.get_default_graph()
    if graph._capture is not None:
        return graph._capture(tensor)
    if tensor.dtype in (dtypes.resource, dtypes.variant):
        raise TypeError("An eager resource handle cannot be used in a graph: %r" % (tensor,))
    return _core.constant(graph, tensor._value(), tensor._dtype_number, "Const", None)


# --- The switch

def enable_eager_execution(config=None, device_policy=None, execution_mode=None):
    """Makes operations run when they are called. Call it at the start of the program.

    Args:
      config: a ConfigProto.
      device_policy: what happens if an input is on another device: one of DEVICE_PLACEMENT_*.
      execution_mode: SYNC, or ASYNC: operations may return before they have run.
    """
    if default_graph._eager_enabled:
        return
    if default_graph._default_graph is not None:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    _core.eager_start_later(lambda: start(config, device_policy, execution_mode))
    default_graph._eager_enabled = True


def enable_eager_execution_internal(config=None, device_policy=None, execution_mode=None, server_def=None):
    """Like enable_eager_execution, also after a graph has been built."""
    if not default_graph._eager_enabled:
        _core.eager_start_later(lambda: start(config, device_policy, execution_mode))
        default_graph._eager_enabled = True


def start(config=None, device_policy=None, execution_mode=None):
    """Creates the eager context, unless there is one."""
    global _is_started
    settings = sys.modules.get("runnel.config")
    if config is None and settings is not None and not _is_started:
        config = settings.eager_config()
    if settings is not None:
        device_policy = settings.device_policy_number() if device_policy is None else device_policy
        execution_mode = (SYNC if settings.get_synchronous_execution() else ASYNC) if execution_mode is None else execution_mode
    _is_started = True
    _core.eager_start(EagerTensor, _SOFT_PLACEMENT if config is None else config.SerializeToString(),
                      DEVICE_PLACEMENT_SILENT if device_policy is None else device_policy,
                      execution_mode == ASYNC)


def is_started():
    """Tells whether the eager context exists, so that its devices are what they are."""
    return _is_started


def async_wait():
    """Waits for the operations of asynchronous execution. Raises the error of the first that failed."""
    _core.eager_wait()


def disable_eager_execution():
    """Makes operations build a graph again. Call it at the start of the program."""
    default_graph._eager_enabled = False


def executing_eagerly_outside_functions():
    """Tells whether operations run when they are called, disregarding functions under construction."""
    with framework.init_scope():
        return framework.executing_eagerly()


# --- Seeds

_seed = None
_seeds = random.Random()


def set_seed(seed):
    """Sets the seed for the operations that follow. Random generators in use restart."""
    global _seed, _seeds
    _seed = seed
    _seeds = random.Random(seed)
    _core.eager_clear_caches()


def seed_state():
    """Returns (seed, generator of the seeds of operations without one)."""
    return _seed, lambda: _seeds.randint(0, 2**31 - 1)


# --- Devices

@contextlib.contextmanager
def device(name):
    """A context manager that sets the device of operations, by its name or as a LogicalDevice."""
    name = getattr(name, "name", name)
    if callable(name):
        raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
    from runnel.core.device_spec import canonical_name
    inside = canonical_name(name) if name else None
    before = _core.eager_device(inside)
    try:
        yield
    finally:
        now = _core.eager_device(before)
        if (now or None) != (inside or None):
            _core.eager_device(now)
            raise RuntimeError("Exiting device scope without proper scope nesting")


def list_devices():
    """Returns [(name, type)] of the devices."""
    start()
    return _core.eager_devices()
