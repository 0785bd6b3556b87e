"""tf.config: devices and threads of the process.

Placement, thread counts, visible GPUs and their parts apply to sessions created afterwards without a ConfigProto, and
to eager execution if it has not started. Of the settings of the optimizer, auto_mixed_precision and its kinds for
CPUs apply to eager execution; the others are stored and returned, and have no effect.
"""

import collections
import copy
import re

PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = collections.namedtuple("LogicalDevice", ["name", "device_type"])


class LogicalDeviceConfiguration(collections.namedtuple("LogicalDeviceConfiguration", [
        "memory_limit", "experimental_priority", "experimental_device_ordinal"])):
    """The configuration of a logical device, a part of a physical one."""

    def __new__(cls, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        return super().__new__(cls, memory_limit, experimental_priority, experimental_device_ordinal)


_state: dict = {"soft_device_placement": None, "inter": 0, "intra": 0, "jit": None, "options": {}, "visible": None,
                "logical": {}, "growth": {}, "physical": None, "run_eagerly": False, "is_deterministic": False, "policy": None, "async": False}
_POLICIES = ("explicit", "warn", "silent", "silent_for_int32")  # by number


def _devices():
    from runnel.eager import context as eager
    return eager.list_devices()


def _physical():
    """Returns {PhysicalDevice: description} of this machine. A session without settings tells; it is asked once."""
    if _state["physical"] is None:
        from runnel.core import framework, session
        from runnel.core.protobuf import message_class
        with session.Session(graph=framework.Graph(), config=message_class("ConfigProto")()) as probe:
            rows = probe.list_devices()
        kinds, found = {}, {}
        for row in rows:
            number = kinds[row.device_type] = kinds.get(row.device_type, -1) + 1
            name = "/physical_device:%s:%d" % (row.device_type, number)
            found[PhysicalDevice(name, row.device_type)] = row.physical_device_desc
        _state["physical"] = found
    return _state["physical"]


def forget_physical_devices():
    """Plug-ins have brought devices: ask again."""
    _state["physical"] = None


def list_physical_devices(device_type=None):
    """Returns the devices of this machine."""
    return [row for row in _physical() if device_type in (None, row.device_type)]


def list_logical_devices(device_type=None):
    """Returns the devices that programs see."""
    kinds, rows = {}, []
    devices = _devices()
    own = devices[0][0].rpartition("/device:")[0] if devices else ""
    for name, kind in devices:
        if own and not name.startswith(own + "/device:"):  # of another task
            rows.append(LogicalDevice(name, kind))
            continue
        rows.append(LogicalDevice("/device:%s:%d" % (kind, kinds.get(kind, 0)), kind))
        kinds[kind] = kinds.get(kind, 0) + 1
    return [row for row in rows if device_type in (None, row.device_type)]


def get_visible_devices(device_type=None):
    """Returns the devices given to set_visible_devices, or all."""
    rows = list_physical_devices() if _state["visible"] is None else _state["visible"]
    return [row for row in rows if device_type in (None, row.device_type)]


def set_visible_devices(devices, device_type=None):
    """Sets which GPUs later sessions use, and eager execution if it has not started."""
    devices = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    known = list_physical_devices()
    for device in devices:
        if device not in known:
            raise ValueError("Unrecognized device: %r" % (device,))
    if device_type is not None and any(device.device_type != device_type for device in devices):
        raise ValueError("Unrecognized device: %r are not all of type %s" % (devices, device_type))
    rest = [row for row in get_visible_devices() if device_type is not None and row.device_type != device_type]
    visible = rest + devices
    if visible != get_visible_devices():
        _check_not_started("Visible devices")
    _state["visible"] = visible


def _check_not_started(what):
    from runnel.eager import context as eager
    if eager.is_started():
        raise RuntimeError("%s cannot be modified after being initialized" % what)


def get_logical_device_configuration(device):
    """Returns how a device is split, or None if it is not."""
    return _state["logical"].get(device)


def set_logical_device_configuration(device, logical_devices):
    """Splits a GPU into logical devices with memory limits, or makes several logical devices of the CPU."""
    logical_devices = list(logical_devices)
    if getattr(device, "device_type", None) == "GPU":
        _known(device)
    elif any(part.memory_limit is not None for part in logical_devices):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if _state["logical"].get(device) != logical_devices:
        _check_not_started("Virtual devices")
    _state["logical"][device] = logical_devices


def _write_cpus(config):
    """Writes into a ConfigProto how many logical devices the CPU has. Returns whether that was set."""
    for device, parts in _state["logical"].items():
        if device.device_type == "CPU" and len(parts) != 1:
            config.device_count["CPU"] = len(parts)
            return True
    return False


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
    """Adds the devices of a task, or of several, to eager execution: their addresses are "host:port"."""
    from runnel.train.server_lib import ClusterSpec
    if not remote_host:
        raise ValueError("Must provide at least one remote_host")
    hosts = [str(host).replace("grpc://", "") for host in ([remote_host] if isinstance(remote_host, str) else remote_host)]
    experimental_connect_to_cluster(ClusterSpec({job_name: hosts}))


def experimental_connect_to_cluster(cluster_spec_or_resolver, job_name="localhost", task_index=0, protocol=None, make_master_device_default=True,
                                    cluster_device_filters=None):
    """Adds the devices of the tasks of a cluster to eager execution; tf.device("/job:worker/task:0") then runs operations there.

    Args:
      cluster_spec_or_resolver: a ClusterSpec or a ClusterResolver.
      job_name, task_index: what this process is in the cluster.
      protocol: "grpc" or None.
      make_master_device_default: whether operations run on the resolver's master unless a device is given; kept, they run here.
      cluster_device_filters: kept; all tasks see each other.
    """
    from runnel.distribute import remote
    from runnel.train.server_lib import ClusterSpec
    if protocol not in (None, "grpc"):
        raise ValueError("The protocol %r is not supported" % (protocol,))
    if isinstance(cluster_spec_or_resolver, ClusterSpec):
        cluster = cluster_spec_or_resolver
    elif hasattr(cluster_spec_or_resolver, "cluster_spec"):
        cluster = cluster_spec_or_resolver.cluster_spec()
    else:
        raise ValueError("`cluster_spec_or_resolver` must be a `ClusterSpec` or a `ClusterResolver`.")
    remote.connect(cluster, job_name, task_index)


class _Part:
    """A namespace below tf.config."""

    def __init__(self, place, **names):
        self.__dict__.update(names, _place=place)

    def __getattr__(self, name):
        from runnel._namespace import absence
        raise AttributeError(absence("tf.config." + self._place, name))


def get_inter_op_parallelism_threads():
    """Returns the number of threads that run operations; 0 lets the library choose."""
    return _state["inter"]


def set_inter_op_parallelism_threads(num_threads):
    """Sets the number of threads that run operations. Raises RuntimeError once eager execution has started with another one."""
    if int(num_threads) != _state["inter"]:
        _check_not_started("Inter op parallelism")
    _state["inter"] = int(num_threads)


def get_intra_op_parallelism_threads():
    """Returns the number of threads within an operation; 0 lets the library choose."""
    return _state["intra"]


def set_intra_op_parallelism_threads(num_threads):
    """Sets the number of threads within an operation. Raises RuntimeError once eager execution has started with another one."""
    if int(num_threads) != _state["intra"]:
        _check_not_started("Intra op parallelism")
    _state["intra"] = int(num_threads)


def get_jit():
    """Returns the setting of set_jit."""
    return _state["jit"] or ""


def set_jit(enabled):
    """Stores a setting that has no effect: there is no just-in-time compiler."""
    _state["jit"] = "autoclustering" if enabled is True else enabled or ""


def get_experimental_options():
    """Returns the options of set_experimental_options."""
    return {**_state["options"], **{name: _state["options"].get(name, False) for name in ("disable_model_pruning", "disable_meta_optimizer")}}


def set_experimental_options(options):
    """Stores options of the graph optimizer. Those of mixed precision apply to functions in eager execution."""
    _state["options"].update(options)


threading = _Part(
    "threading",
    get_inter_op_parallelism_threads=get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads=get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads=set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads=set_intra_op_parallelism_threads)
optimizer = _Part(
    "optimizer",
    get_jit=get_jit, set_jit=set_jit,
    get_experimental_options=get_experimental_options, set_experimental_options=set_experimental_options)


def _known(device):
    if device not in _physical():
        raise ValueError("Unrecognized device: %s" % (device,))
    return device


def get_memory_growth(device):
    """Returns the setting of set_memory_growth for a GPU, or None."""
    if _known(device).device_type != "GPU":
        raise KeyError(device)
    return _state["growth"].get(device)


def set_memory_growth(device, enable):
    """Stores a setting that has no effect: memory is always taken as it is needed."""
    if _known(device).device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    if enable and device in _state["logical"]:
        raise ValueError("Cannot set memory growth on device when virtual devices configured")
    if _state["growth"].get(device) != enable:
        _check_not_started("Physical devices")
    _state["growth"][device] = enable


def get_device_details(device):
    """Returns the name and the compute capability of a GPU; {} for other devices."""
    if not isinstance(device, PhysicalDevice):
        raise ValueError("device must be a tf.config.PhysicalDevice, but got: %s" % (device,))
    if device not in _physical():
        raise ValueError("The PhysicalDevice must be one obtained from calling `tf.config.list_physical_devices`, but "
                         "got: %s" % (device,))
    found = re.search(r"name: (.*), pci bus id: .*, compute capability: (\d+)\.(\d+)", _physical()[device])
    if not found:
        return {}
    return {"device_name": found.group(1), "compute_capability": (int(found.group(2)), int(found.group(3)))}


def enable_op_determinism():
    """Asks for the same results in every run, as CPUs give them anyway; random numbers need a seed."""
    _state["is_deterministic"] = True


def disable_op_determinism():
    """Takes back enable_op_determinism."""
    _state["is_deterministic"] = False


def is_op_determinism_enabled():
    """Tells whether determinism was asked for."""
    return _state["is_deterministic"]


def get_memory_info(device):
    """Returns {"current": bytes in use, "peak": the most that were} of a device such as "GPU:0"."""
    from runnel import _core
    found = re.fullmatch(r"((?:/(?:job|replica|task):[^/]+)*)/?(?:device:)?([A-Za-z]\w*):(\d+)", device)
    if not found:
        raise ValueError("Failed parsing device name: '%s'. Note a valid device string should at least contain a "
                         "device type and a device index, like \"GPU:0\"." % device)
    name = "/device:%s:%s" % (found.group(2).upper(), found.group(3))
    task = re.findall(r"/[^/]+", found.group(1))
    if not any(full.endswith(name) and all(part + "/" in full for part in task) for full, _ in _devices()):
        raise ValueError("No matching devices found for '%s'" % device)
    current, peak = _core.eager_memory(name) if "GPU" in name else (0, 0)
    return {"current": current, "peak": peak}


def get_memory_usage(device):
    """Returns the bytes in use of a device such as "GPU:0"."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device):
    """Checks the name of a device. The peak of get_memory_info is that of the whole process."""
    get_memory_info(device)


def enable_tensor_float_32_execution(enabled):
    """Sets what tensor_float_32_execution_enabled returns; products of float32 are computed in float32."""
    _state["tf32"] = bool(enabled)


def tensor_float_32_execution_enabled():
    """Returns what was given to enable_tensor_float_32_execution, by default True."""
    return _state.get("tf32", True)


def enable_mlir_bridge():
    """Sets a flag of the context's ConfigProto that has no effect: there is no such bridge."""
    _state["mlir"] = True


def disable_mlir_bridge():
    """Takes back enable_mlir_bridge."""
    _state["mlir"] = False


def set_log_device_placement(enabled):
    """Sets whether the sessions and contexts that are made from now on log where operations run."""
    _state["log_placement"] = bool(enabled)


def get_log_device_placement():
    """Returns what was given to set_log_device_placement."""
    return _state.get("log_placement", False)


def enable_traceback_filtering():
    """Sets what is_traceback_filtering_enabled returns; tracebacks have few frames of this package anyway."""
    _state["filters"] = True


def disable_traceback_filtering():
    """Takes back enable_traceback_filtering."""
    _state["filters"] = False


def is_traceback_filtering_enabled():
    """Returns what was set, by default True."""
    return _state.get("filters", True)


def sync_devices():
    """Waits until all operations have run."""
    from runnel.eager import context
    context.async_wait()


def get_synchronous_execution():
    """Tells whether eager operations have run when they return."""
    return not _state["async"]


def set_synchronous_execution(enable):
    """Sets whether eager operations have run when they return. It has an effect before eager execution starts."""
    _state["async"] = not enable


def get_device_policy():
    """Returns what happens to inputs on other devices: "explicit", "warn", "silent" or "silent_for_int32"."""
    return _state["policy"] or "silent"


def set_device_policy(device_policy):
    """Sets what happens to inputs on other devices, before eager execution starts; None is "silent"."""
    if device_policy not in (None, *_POLICIES):
        raise ValueError("Invalid argument `device_policy`: %r. Please refer to https://www.tensorflow.org/api_docs/python/tf/config/experimental/"
                         "set_device_policy for valid `device_policy` arguments." % (device_policy,))
    _state["policy"] = device_policy


def device_policy_number():
    """Returns get_device_policy as one of DEVICE_PLACEMENT_*."""
    return _POLICIES.index(get_device_policy())


_OF_CONTEXT: dict = {"soft_device_placement": None, "inter": 0, "intra": 0, "jit": None, "policy": None, "mlir": None, "log_placement": False,
                     "async": False, "visible": None, "options": {}, "logical": {}}  # the settings that each eager context has


def exchange_settings(other):
    """The eager context is another one: `other` is what this function returned for it, or None for the settings at the start."""
    before = {name: copy.copy(_state.get(name, value)) for name, value in _OF_CONTEXT.items()}
    _state.update({name: copy.copy(value) for name, value in (other or _OF_CONTEXT).items()})
    return before


experimental = _Part(
    "experimental",
    list_physical_devices=list_physical_devices, list_logical_devices=list_logical_devices,
    get_visible_devices=get_visible_devices, set_visible_devices=set_visible_devices,
    get_memory_growth=get_memory_growth, set_memory_growth=set_memory_growth, get_device_details=get_device_details,
    get_memory_info=get_memory_info, get_memory_usage=get_memory_usage,
    get_virtual_device_configuration=get_logical_device_configuration,
    set_virtual_device_configuration=set_logical_device_configuration,
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    get_synchronous_execution=get_synchronous_execution, set_synchronous_execution=set_synchronous_execution,
    get_device_policy=get_device_policy, set_device_policy=set_device_policy)

# Their names in tensorflow.python.framework.config
get_optimizer_jit, set_optimizer_jit = get_jit, set_jit
get_optimizer_experimental_options, set_optimizer_experimental_options = get_experimental_options, set_experimental_options


def session_config():
    """Returns the ConfigProto for a session that was given none, or None if nothing was set."""
    changes_gpus = any(device.device_type == "GPU" for device in _state["logical"]) or _state["visible"] is not None
    changes_others = _state["soft_device_placement"] is not None or _state["inter"] or _state["intra"] or get_log_device_placement()
    from runnel.core.protobuf import message_class
    config = message_class("ConfigProto")()
    if not _write_cpus(config) and not changes_gpus and not changes_others:
        return None
    if changes_others:
        config.allow_soft_placement = get_soft_device_placement()
        config.log_device_placement = get_log_device_placement()
    config.inter_op_parallelism_threads = _state["inter"]
    config.intra_op_parallelism_threads = _state["intra"]
    if changes_gpus:
        gpu_options(config)
    return config


def context_config():
    """Returns the ConfigProto of eager execution with every setting, also those that are at their defaults."""
    from runnel.core.protobuf import message_class
    config = eager_config() or message_class("ConfigProto")()
    if not config.device_count:
        for kind in ("CPU", "GPU"):
            config.device_count[kind] = len(list_physical_devices(kind))
    config.allow_soft_placement = get_soft_device_placement()
    config.log_device_placement = get_log_device_placement()
    config.inter_op_parallelism_threads = _state["inter"]
    config.intra_op_parallelism_threads = _state["intra"]
    if _state.get("mlir") is not None:
        config.experimental.enable_mlir_bridge = _state["mlir"]
        config.experimental.mlir_bridge_rollout = 1 if _state["mlir"] else 2
    return config


def eager_config():
    """Returns the ConfigProto for eager execution that was given none, or None if nothing was set that it needs."""
    changes_gpus = _state["visible"] is not None or any(device.device_type == "GPU" for device in _state["logical"])
    toggles = {name: value for name, value in _state["options"].items() if name.startswith("auto_mixed_precision")}
    from runnel.core.protobuf import message_class
    config = message_class("ConfigProto")()
    is_soft = _state["soft_device_placement"] is not False
    if not _write_cpus(config) and not changes_gpus and not toggles and is_soft:
        return None
    config.allow_soft_placement = is_soft
    if changes_gpus:
        gpu_options(config)
    for name, value in toggles.items():
        setattr(config.graph_options.rewrite_options, name, 1 if value else 2)  # ON, OFF
    return config


def gpu_options(config):
    """Writes which GPUs are visible, and how they are split, into a ConfigProto."""
    gpus = list_physical_devices("GPU")
    visible = get_visible_devices("GPU")
    if gpus and not visible:
        config.device_count["GPU"] = 0
        return
    if visible != gpus:
        config.gpu_options.visible_device_list = ",".join(str(gpus.index(gpu)) for gpu in visible)
    if any(gpu in _state["logical"] for gpu in visible):
        for gpu in visible:
            card = config.gpu_options.experimental.virtual_devices.add()
            card.memory_limit_mb.extend(
                part.memory_limit for part in _state["logical"].get(gpu, []) if part.memory_limit is not None)
