"""Full names of devices."""

from runnel.core.device_spec import DeviceSpec, canonical_name


def canonicalize(d, default=None):
    """Returns the full name of a device. What `d` lacks is taken from `default`, then from this process and its first CPU."""
    from runnel import config
    from runnel.eager.context import executing_eagerly_outside_functions
    spec = DeviceSpec.from_string(getattr(d, "name", d))
    result = DeviceSpec(replica=0, task=0, device_type="CPU", device_index=0)
    if executing_eagerly_outside_functions():
        here = DeviceSpec.from_string(config.list_logical_devices("CPU")[0].name)
        result = result.make_merged_spec(here if here.job else DeviceSpec(job="localhost"))
    if default:
        result = result.make_merged_spec(DeviceSpec.from_string(default))
    return result.make_merged_spec(spec).to_string()


def canonicalize_without_job_and_task(d):
    """Returns the full name of a device without its job and task."""
    return DeviceSpec.from_string(canonicalize(d)).replace(job=None, task=None, replica=0).to_string()


def resolve(d):
    """Returns the full name of a device. What `d` lacks is taken from the current device."""
    return canonicalize(d, default=current())


def current():
    """Returns the name of the device of the surrounding tf.device, which may be partial."""
    from runnel.core import framework
    from runnel.eager.context import executing_eagerly_outside_functions
    if executing_eagerly_outside_functions():
        from runnel.eager import contexts
        return contexts.context().device_name
    op = _Placed()
    framework.get_default_graph()._apply_device_functions(op)
    return op.device


class _Placed:
    """Stands for an operation that device functions place."""

    device = name = type = ""

    def __init__(self):
        self.node_def = self

    def _set_device(self, device):
        self.device = canonical_name(device)


def get_host_for_device(device):
    """Returns the name of the first CPU of a device's task."""
    return DeviceSpec.from_string(device).replace(device_type="CPU", device_index=0).to_string()


def local_devices_from_num_gpus(num_gpus):
    """Returns the names of this many GPUs, or of the CPU if there is none."""
    return tuple("/device:GPU:%d" % i for i in range(num_gpus)) or ("/device:CPU:0",)
