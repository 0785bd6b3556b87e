"""tf.experimental.dtensor: tensors that are sharded over a mesh of devices, which Runnel lacks.

What asks about the process answers for a process without a mesh. Everything that would make one says UNIMPLEMENTED.
"""

from runnel import config, errors
from runnel.core.device_spec import DeviceSpec

MATCH, UNSHARDED = "match", "unsharded"
_JOB = "localhost/replica:0/task:0"


def _refuse(name):
    raise errors.UnimplementedError(None, None, "tf.experimental.dtensor.%s is not in Runnel: tf.distribute has strategies for several devices" % name)


def _absent_class(name):
    return type(name, (), {"__new__": lambda cls, *args, **kwargs: _refuse(name), "__module__": __name__,
                           "__doc__": "Not supported: no object is of this class."})


def _absent_function(name):
    def absent(*args, **kwargs):
        _refuse(name)
    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = "Not supported: raises UnimplementedError."
    return absent


DTensorCheckpoint, DTensorDataset, DVariable, Mesh = map(_absent_class, ("DTensorCheckpoint", "DTensorDataset", "DVariable", "Mesh"))


class Layout(_absent_class("Layout")):  # type: ignore[misc]
    """Not supported: no object is of this class."""

    replicated = staticmethod(_absent_function("Layout.replicated"))
    batch_sharded = staticmethod(_absent_function("Layout.batch_sharded"))
    inner_sharded = staticmethod(_absent_function("Layout.inner_sharded"))
    from_string = staticmethod(_absent_function("Layout.from_string"))


(barrier, call_with_layout, check_layout, copy_to_mesh, create_distributed_mesh, create_mesh, create_tpu_mesh, default_mesh, device_name,
 enable_save_as_bf16, fetch_layout, initialize_accelerator_system, initialize_multi_client, initialize_tpu_system, name_based_restore,
 name_based_save, pack, relayout, relayout_like, run_on, sharded_save, shutdown_accelerator_system, shutdown_tpu_system, unpack,
 ) = map(_absent_function, """barrier call_with_layout check_layout copy_to_mesh create_distributed_mesh create_mesh create_tpu_mesh default_mesh device_name
 enable_save_as_bf16 fetch_layout initialize_accelerator_system initialize_multi_client initialize_tpu_system name_based_restore
 name_based_save pack relayout relayout_like run_on sharded_save shutdown_accelerator_system shutdown_tpu_system unpack""".split())


def is_dtensor(tensor):
    """Tells whether a tensor is sharded over a mesh: none is."""
    return False


def get_default_mesh():
    """Returns the mesh of operations without one: None."""


def client_id():
    """Returns the number of this process among the clients of a mesh."""
    return 0


def num_clients():
    """Returns how many processes share a mesh."""
    return 1


def job_name():
    """Returns the job of this process."""
    return _JOB.partition("/")[0]


def full_job_name(task_id=None):
    """Returns the job, replica and task of this process."""
    if task_id:
        raise ValueError("Unexpected task ID when running local: %s" % task_id)
    return _JOB


def jobs():
    """Returns the addresses of the processes of a mesh: there are none."""
    return []


def heartbeat_enabled():
    """Tells whether the processes of a mesh watch each other."""
    return False


def local_devices(device_type, for_client_id=None):
    """Returns DeviceSpecs of this process' devices of a type."""
    count = len(config.list_logical_devices(device_type))
    return [DeviceSpec(job="localhost", replica=0, task=0, device_type=device_type, device_index=i) for i in range(count)]


def num_local_devices(device_type):
    """Returns how many devices of a type this process has."""
    return len(local_devices(device_type))


num_global_devices = num_local_devices


def preferred_device_type():
    """Returns the type of device that a mesh should be of."""
    return "GPU" if config.list_physical_devices("GPU") else "CPU"
