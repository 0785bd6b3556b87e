"""tf.config: devices and threads of the process.

Placement and thread counts apply to sessions created afterwards without a ConfigProto. Settings of visible
devices, memory and the optimizer are stored and returned, and have no effect.
"""

import collections

PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = collections.namedtuple("LogicalDevice", ["name", "device_type"])


class LogicalDeviceConfiguration(collections.namedtuple("LogicalDeviceConfiguration", [
        "memory_limit", "experimental_priority", "experimental_device_ordinal"])):
    """The configuration of a logical device, a part of a physical one."""

    def __new__(cls, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        return super().__new__(cls, memory_limit, experimental_priority, experimental_device_ordinal)


_state: dict = {"soft_device_placement": None, "inter": 0, "intra": 0, "jit": None, "options": {}, "visible": None,
                "logical": {}, "run_eagerly": False}


def _devices():
    from runnel.eager import context as eager
    return eager.list_devices()


def list_physical_devices(device_type=None):
    """Returns the devices of this machine."""
    kinds, rows = {}, []
    for _, kind in _devices():
        rows.append(PhysicalDevice("/physical_device:%s:%d" % (kind, kinds.get(kind, 0)), kind))
        kinds[kind] = kinds.get(kind, 0) + 1
    return [row for row in rows if device_type in (None, row.device_type)]


def list_logical_devices(device_type=None):
    """Returns the devices that programs see."""
    kinds, rows = {}, []
    for _, kind in _devices():
        rows.append(LogicalDevice("/device:%s:%d" % (kind, kinds.get(kind, 0)), kind))
        kinds[kind] = kinds.get(kind, 0) + 1
    return [row for row in rows if device_type in (None, row.device_type)]


def get_visible_devices(device_type=None):
    """Returns the devices given to set_visible_devices, or all."""
    rows = list_physical_devices() if _state["visible"] is None else _state["visible"]
    return [row for row in rows if device_type in (None, row.device_type)]


def set_visible_devices(devices, device_type=None):
    """Sets the result of get_visible_devices. It does not change the devices of sessions."""
    devices = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    known = list_physical_devices()
    for device in devices:
        if device not in known:
            raise ValueError("Unrecognized device: %r" % (device,))
    if device_type is not None and any(device.device_type != device_type for device in devices):
        raise ValueError("Unrecognized device: %r are not all of type %s" % (devices, device_type))
    rest = [row for row in get_visible_devices() if device_type is not None and row.device_type != device_type]
    _state["visible"] = rest + devices


def get_logical_device_configuration(device):
    """Returns how a device is split, or None if it is not."""
    return _state["logical"].get(device)


def set_logical_device_configuration(device, logical_devices):
    """Accepts one logical device per physical device; more are not supported."""
    if len(logical_devices) != 1:
        raise NotImplementedError("Splitting a device is not supported: ConfigProto(device_count={'CPU': n}) gives a "
                                  "session several CPUs")
    _state["logical"][device] = list(logical_devices)


def get_soft_device_placement():
    """Tells whether operations move to another device if theirs cannot run them."""
    from runnel.core import framework
    value = _state["soft_device_placement"]
    return framework.executing_eagerly() if value is None else value


def set_soft_device_placement(enabled):
    """Sets whether operations move to another device if theirs cannot run them."""
    _state["soft_device_placement"] = bool(enabled)


def functions_run_eagerly():
    """Tells whether a tf.function runs op by op."""
    return _state["run_eagerly"]


def run_functions_eagerly(run_eagerly):
    """Sets whether a tf.function runs op by op."""
    _state["run_eagerly"] = bool(run_eagerly)
    from runnel.eager import def_function
    def_function.run_eagerly = bool(run_eagerly)


experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly


def experimental_connect_to_host(remote_host=None, job_name="worker"):
    """Raises NotImplementedError: use tf.Session("grpc://...") instead."""
    raise NotImplementedError("Eager execution on a cluster is not supported: use tf.Session('grpc://...') to run graphs there")


experimental_connect_to_cluster = experimental_connect_to_host


class _Part:
    """A namespace below tf.config."""

    def __init__(self, **names):
        self.__dict__.update(names)

    def __getattr__(self, name):
        raise AttributeError("tf.config has no %r: see doc/python_names.md" % name)


def get_inter_op_parallelism_threads():
    """Returns the number of threads that run operations; 0 lets the library choose."""
    return _state["inter"]


def set_inter_op_parallelism_threads(num_threads):
    """Sets the number of threads that run operations."""
    _state["inter"] = int(num_threads)


def get_intra_op_parallelism_threads():
    """Returns the number of threads within an operation; 0 lets the library choose."""
    return _state["intra"]


def set_intra_op_parallelism_threads(num_threads):
    """Sets the number of threads within an operation."""
    _state["intra"] = int(num_threads)


def get_jit():
    """Returns the setting of set_jit."""
    return _state["jit"] or ""


def set_jit(enabled):
    """Stores a setting that has no effect: there is no just-in-time compiler."""
    _state["jit"] = "autoclustering" if enabled is True else enabled or ""


def get_experimental_options():
    """Returns the options of set_experimental_options."""
    return dict(_state["options"])


def set_experimental_options(options):
    """Stores options of the graph optimizer, which have no effect."""
    _state["options"].update(options)


threading = _Part(
    get_inter_op_parallelism_threads=get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads=get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads=set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads=set_intra_op_parallelism_threads)
optimizer = _Part(
    get_jit=get_jit, set_jit=set_jit,
    get_experimental_options=get_experimental_options, set_experimental_options=set_experimental_options)


def _memory_growth(device):
    return False


experimental = _Part(
    list_physical_devices=list_physical_devices, list_logical_devices=list_logical_devices,
    get_visible_devices=get_visible_devices, set_visible_devices=set_visible_devices,
    get_memory_growth=_memory_growth, set_memory_growth=lambda device, enable: None,
    get_virtual_device_configuration=get_logical_device_configuration,
    set_virtual_device_configuration=set_logical_device_configuration,
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    get_synchronous_execution=lambda: True, set_synchronous_execution=lambda enable: None,
    get_device_policy=lambda: "silent", set_device_policy=lambda policy: None)


def session_config():
    """Returns the ConfigProto for a session that was given none, or None if nothing was set."""
    if _state["soft_device_placement"] is None and not _state["inter"] and not _state["intra"]:
        return None
    from runnel.core.protobuf import message_class
    config = message_class("ConfigProto")()
    config.allow_soft_placement = get_soft_device_placement()
    config.inter_op_parallelism_threads = _state["inter"]
    config.intra_op_parallelism_threads = _state["intra"]
    return config
