"""The functions of tf.__internal__ that have no public name."""

import contextlib

from runnel.core import framework
from runnel.flow.branches import checked_smart_cond as smart_cond  # noqa: F401


@contextlib.contextmanager
def eager_mode():
    """A context manager in which operations run when they are called, also while a function is traced."""
    with framework._DefaultGraph(None):
        yield


def get_config():
    """Returns the ConfigProto of eager execution, with everything that tf.config sets."""
    from runnel import config
    return config.context_config()


def get_device_name():
    """Returns the device of eager operations, "" if none is set."""
    from runnel import _core
    before = _core.eager_device(None)
    _core.eager_device(before)
    return before or ""


def set_soft_device_placement(enable):
    """The same as tf.config.set_soft_device_placement."""
    from runnel import config
    config.set_soft_device_placement(enable)


def is_resource_variable(var):
    """Tells whether an object is a resource variable."""
    from runnel.ops.resource_variable import ResourceVariable
    return isinstance(var, ResourceVariable) or bool(getattr(var, "_should_act_as_resource_variable", False))


def maybe_merge_call(fn, strategy, *args, **kwargs):
    """Calls `fn(strategy, ...)` in the cross-replica context, if a strategy needs that; else where it is."""
    if strategy_supports_no_merge_call():
        return fn(strategy, *args, **kwargs)
    from runnel import distribute
    return distribute.get_replica_context().merge_call(fn, args=args, kwargs=kwargs)


def strategy_supports_no_merge_call():
    """Tells whether updates of variables need no cross-replica context, because there is one replica."""
    from runnel import distribute
    return distribute.get_strategy().num_replicas_in_sync == 1


@contextlib.contextmanager
def load_context(load_options):
    """A context manager in which a model is loaded with these options."""
    _load_options.append(load_options)
    try:
        yield
    finally:
        _load_options.pop()


_load_options: list = []


@contextlib.contextmanager
def variable_sync_on_read_context():
    """A context manager in which replicas update variables that are summed when they are read."""
    yield


def get_name_scope():
    """Returns the current name scope."""
    return framework.get_default_graph().get_name_scope()


def get_enclosing_xla_context():
    """Returns None: functions run the ordinary way."""


def is_tfrt_enabled():
    """Returns False."""
    return False


def execute_fn_for_device(device_branch_fns, default_fn, name="execute_fn"):
    """Calls the function for the current kind of device."""
    from runnel import config
    for kind in config.list_physical_devices():
        found = device_branch_fns.get(kind.device_type)
        if found is not None and kind.device_type != "CPU":
            return found()
    return device_branch_fns.get("CPU", default_fn)()


_given: dict = {}  # what Keras registered


def _registering(name):
    def register(func):
        _given[name] = func
    register.__name__ = "register_%s" % name
    register.__doc__ = "Keeps a function of Keras that others ask for."
    return register


register_call_context_function = _registering("call_context_function")
register_clear_session_function = _registering("clear_session_function")
register_get_session_function = _registering("get_session_function")
register_load_model_function = _registering("load_model_function")


def record_gradient(op_name, inputs, attrs, outputs):
    """Programs tell of operations that they add to a graph themselves. Tapes find them in the graph, so there is nothing to do."""


class BoolGauge:
    """A named flag, of which nothing is reported."""

    def __init__(self, name, description, *labels):
        self._cells = {}

    def get_cell(self, *labels):
        """Returns the cell of these labels, with `set` and `value`."""
        return self._cells.setdefault(labels, _Cell())


class _Cell:
    def __init__(self):
        self._value = False

    def set(self, value):  # noqa: A003
        """Sets the flag."""
        self._value = value

    def value(self):
        """Returns the flag."""
        return self._value
