"""Contexts of eager execution as objects: their devices, settings and functions.

One context is *live*: operations run in it, and tf.config sets what it does. What the others are asked about themselves is answered while
they are live for a moment. The library's part of a context stays until the process ends, because tensors of it may be in use.
"""

import contextlib
import functools

from runnel import _core
from runnel.core import framework
from runnel.eager import context as eager, quick, tracing
from runnel.eager.context import ASYNC, SYNC

def _settings():
    from runnel import config
    return config


def _setting(name):
    """Returns a property that is a setting of tf.config."""
    return property(lambda self: getattr(_settings(), "get_" + name)(), lambda self, value: getattr(_settings(), "set_" + name)(value))


class Context:
    """A context of eager execution.

    Args:
      config: its ConfigProto; by default what tf.config sets until it is first used.
      device_policy: what happens to inputs on other devices: one of DEVICE_PLACEMENT_*.
      execution_mode: SYNC or ASYNC.
      server_def: not used.
    """

    def __init__(self, config=None, device_policy=None, execution_mode=None, server_def=None):
        if execution_mode not in (None, SYNC, ASYNC):
            raise ValueError("execution_mode should be None/SYNC/ASYNC. Got %s" % execution_mode)
        self._given = config, device_policy, execution_mode
        self._state = None  # what `_exchange` keeps of a context that is not live

    def ensure_initialized(self):
        """Creates the library's part of the context, unless there is one."""
        eager.start(*self._given)

    @staticmethod
    def set_logical_device_configuration(dev, virtual_devices):
        """Divides a device into several."""
        _settings().set_logical_device_configuration(dev, virtual_devices)

    @property
    def config(self):
        """The ConfigProto of eager execution."""
        return _settings().context_config()

    @property
    def device_policy(self):
        """What happens to inputs on other devices: one of DEVICE_PLACEMENT_*."""
        return _settings().device_policy_number()

    @property
    def execution_mode(self):
        """SYNC or ASYNC."""
        return SYNC if _settings().get_synchronous_execution() else ASYNC

    @execution_mode.setter
    def execution_mode(self, mode):
        _settings().set_synchronous_execution(mode != ASYNC)

    @staticmethod
    def is_async():
        """Tells whether operations may return before they have run."""
        return not _settings().get_synchronous_execution()

    soft_device_placement = _setting("soft_device_placement")
    log_device_placement = _setting("log_device_placement")
    intra_op_parallelism_threads = _setting("intra_op_parallelism_threads")
    inter_op_parallelism_threads = _setting("inter_op_parallelism_threads")

    @staticmethod
    def get_optimizer_experimental_options():
        """Returns the options of the graph optimizer."""
        return _settings().get_experimental_options()

    @staticmethod
    def set_optimizer_experimental_options(options):
        """Sets options of the graph optimizer."""
        _settings().set_experimental_options(options)

    @staticmethod
    def get_memory_info(device):
        """Returns how much memory of a device is in use, and the most that was."""
        return _settings().get_memory_info(device)

    @staticmethod
    def reset_memory_stats(device):
        """Makes the most memory that was in use what is in use."""
        _settings().reset_memory_stats(device)

    @staticmethod
    def clear_kernel_cache():
        """Drops the cached kernels."""
        _core.eager_clear_caches()

    @staticmethod
    def executing_eagerly():
        """Tells whether operations run when they are called."""
        return framework.executing_eagerly()

    @property
    def device_spec(self):
        """The device that tf.device set, as a DeviceSpec."""
        from runnel.core.device_spec import DeviceSpec
        name = _core.eager_device(None)
        _core.eager_device(name)
        found = DeviceSpec.from_string(name or "")
        return found.replace(job=found.job or "localhost", replica=found.replica or 0, task=found.task or 0) if name else found

    @property
    def device_name(self):
        """The full name of the device that tf.device set, or an empty string."""
        return self.device_spec.to_string()

    @property
    def scope_name(self):
        """The name scope of eager execution, with its slash, or an empty string."""
        return framework.eager_scope.name

    @scope_name.setter
    def scope_name(self, name):
        framework.eager_scope.name = name

    @property
    def op_callbacks(self):
        """The functions that are told of every operation of this thread."""
        from runnel.eager import op_callbacks
        return op_callbacks.callbacks()

    @staticmethod
    def list_physical_devices(device_type=None):
        """Returns the devices of the machine."""
        return _settings().list_physical_devices(device_type)

    @staticmethod
    def list_logical_devices(device_type=None):
        """Returns the devices of the eager context."""
        return _settings().list_logical_devices(device_type)

    @staticmethod
    def devices():
        """Returns the names of the devices."""
        return [name for name, _ in eager.list_devices()]

    @staticmethod
    def num_gpus():
        """Returns the number of GPUs."""
        return sum(1 for _, kind in eager.list_devices() if kind == "GPU")

    @staticmethod
    def list_function_names():
        """Returns the names of the functions of the eager context."""
        return set(tracing.eager_functions())

    def has_function(self, name):
        """Tells whether the eager context has a function."""
        return (name.decode() if isinstance(name, bytes) else name) in self.list_function_names()

    @staticmethod
    def device(name):
        """A context manager that sets the device of operations."""
        return eager.device(name)

    @staticmethod
    def set_logical_cpu_devices(num_cpus, prefix=""):
        """Makes several logical devices of the CPU. They cannot be set twice."""
        settings = _settings()
        cpu = settings.list_physical_devices("CPU")[0]
        if settings.get_logical_device_configuration(cpu) is not None:
            raise RuntimeError("Virtual CPUs already set, cannot modify again.")
        settings.set_logical_device_configuration(cpu, [settings.LogicalDeviceConfiguration() for _ in range(num_cpus)])

    @staticmethod
    def _set_global_seed(seed):
        """Sets the seed of operations without one of their own."""
        eager.set_seed(None if seed is None else int(seed))


def _exchange(state):
    """Makes the context of a state live; None is a new one. Returns the state of the one that was."""
    settings = _settings()
    before = {"handle": _core.eager_swap(state["handle"] if state else None), "started": eager._is_started, "vectors": dict(quick._vectors),
              "library": tracing.exchange_library(state["library"] if state else None), "scope": framework.eager_scope.name,
              "settings": settings.exchange_settings(state["settings"] if state else None)}
    eager._is_started = bool(state and state["started"])
    quick._vectors.clear()
    quick._vectors.update(state["vectors"] if state else {})
    framework.eager_scope.name = state["scope"] if state else ""
    return before


_live = Context()


def context():
    """Returns the live context."""
    return _live


def _set_context(new):
    """Makes a context the live one."""
    global _live
    if new is _live:
        return
    _live._state = _exchange(new._state)
    new._state, _live = None, new
    _core.eager_start_later(lambda: eager.start(*new._given))


@contextlib.contextmanager
def _made_live(other):
    before = _live
    _set_context(other)
    try:
        yield
    finally:
        _set_context(before)


def _answered(function):
    """Returns a function of a context that runs while it is live."""
    @functools.wraps(function)
    def run(self, *args, **kwargs):
        if self is _live:
            return function(self, *args, **kwargs)
        with _made_live(self):
            return function(self, *args, **kwargs)
    return run


for _name, _value in list(vars(Context).items()):
    if isinstance(_value, staticmethod):
        setattr(Context, _name, _answered(lambda self, *args, _own=_value.__func__, **kwargs: _own(*args, **kwargs)))
    elif isinstance(_value, property):
        setattr(Context, _name, property(_answered(_value.fget), _value.fset and _answered(_value.fset), doc=_value.__doc__))
    elif callable(_value) and not _name.startswith("__"):
        setattr(Context, _name, _answered(_value))


def _reset_context():
    """For tests: the next operation creates a new eager context, with the devices that tf.config sets until then."""
    _set_context(Context(*_live._given))


def _reset_jit_compiler_flags():
    """For tests: does nothing, there is no compiler."""
