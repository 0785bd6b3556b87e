"""OneDeviceStrategy and MirroredStrategy."""

from runnel import nest
from runnel.core import framework
from runnel.core.device_spec import canonical_name
from runnel.distribute import contexts, input_data, replicas, variable
from runnel.distribute.strategy import InputContext, ReduceOp, Strategy, StrategyExtended, ValueContext, _sum, as_reduce_op
from runnel.distribute.values import DistributedValues, Mirrored, of_replica, regrouped


def _device(name):
    return canonical_name(name if str(name).startswith("/") else "/" + str(name))


class _OneDeviceExtended(StrategyExtended):
    def __init__(self, strategy, device):
        super().__init__(strategy)
        self._device = device
        self.worker_devices = self.parameter_devices = (device,)

    def devices_of_replica(self, replica):
        return (self._device,)

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        with contexts.ReplicaContext(self._strategy, 0), framework.device(self._device):
            return fn(*args, **(kwargs or {}))

    def create_variable(self, make, kwargs):
        with framework.device(self._device):
            return make(**kwargs)

    def update(self, var, fn, args=(), kwargs=None, group=True):
        with framework.device(self._device), contexts.updating(0):
            return fn(var, *args, **(kwargs or {}))


class OneDeviceStrategy(Strategy):
    """Puts variables and computations on one device."""

    def __init__(self, device):
        self._device = _device(device)
        super().__init__(_OneDeviceExtended(self, self._device))

    def _placed(self):
        return framework.device(self._device)

    def experimental_distribute_values_from_function(self, value_fn):
        """Returns the value of a function from a ValueContext."""
        return value_fn(ValueContext(0, 1))


class _MirroredExtended(StrategyExtended):
    def __init__(self, strategy, devices):
        super().__init__(strategy)
        self._devices = tuple(devices)
        self.worker_devices = self.parameter_devices = self._devices

    def devices_of_replica(self, replica):
        return (self._devices[replica],)

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        return replicas.call_for_each(self._strategy, self._devices, fn, args, kwargs)

    def create_variable(self, make, kwargs):
        replica = contexts.get_replica_context()
        if replica is None:
            return variable.create(self._strategy, self._devices, make, kwargs)
        return replica.shared_variable(kwargs.get("name"), lambda: variable.create(self._strategy, self._devices, make, kwargs))

    def reduce_to(self, reduce_op, value, destinations, options=None):
        reduce_op = as_reduce_op(reduce_op)
        return nest.map_structure(lambda leaf: self._reduced(reduce_op, leaf), value)

    def _reduced(self, reduce_op, value):
        if isinstance(value, Mirrored):
            return value if isinstance(value, variable.DistributedVariable) else value._get()
        if not isinstance(value, DistributedValues):
            is_zero = isinstance(value, (int, float)) and value == 0
            if is_zero or reduce_op is ReduceOp.MEAN or self._strategy.num_replicas_in_sync == 1:
                return value
            raise ValueError("A non-DistributedValues value %s cannot be reduced with the given reduce op %s." % (value, reduce_op))
        return self._combined(reduce_op, value.values)

    def _combined(self, reduce_op, values):
        """Returns the sum or the mean of the values of this process's replicas and, in a subclass, of the other processes'."""
        from runnel.core.composite import IndexedSlices
        from runnel.core.convert import convert_to_tensor
        count = self._strategy.num_replicas_in_sync
        with framework.device(self._devices[0]):
            if isinstance(values[0], IndexedSlices):
                return _joined(self, values, count if reduce_op is ReduceOp.MEAN else 1)
            total = self.sum_of_processes(_sum([convert_to_tensor(x) for x in values]))
            return total / count if reduce_op is ReduceOp.MEAN else total

    def initial_value(self, kwargs):
        """Returns the initial value of the first copy of a variable that is created with `kwargs`."""
        return kwargs.get("initial_value")

    def update(self, var, fn, args=(), kwargs=None, group=True):
        results = []
        for i, copy in enumerate(var.values if isinstance(var, DistributedValues) else [var]):
            with framework.device(copy.device), contexts.updating(i):
                results.append(fn(copy, *of_replica(i, args), **of_replica(i, kwargs or {})))
        if not group:
            return regrouped(results)
        from runnel.ops.control_flow import group as grouped
        return None if framework.executing_eagerly() else grouped(*[x for x in nest.flatten(results) if x is not None])

    def broadcast_to(self, tensor, destinations):
        return Mirrored([tensor] * len(self._devices))


def _joined(extended, slices, divisor):
    """Returns the sum of IndexedSlices of all processes, divided by a number."""
    from runnel.core.composite import IndexedSlices
    from runnel.ops import array_ops
    values = extended.rows_of_processes(array_ops.concat([s.values for s in slices], 0), 0)
    indices = extended.rows_of_processes(array_ops.concat([s.indices for s in slices], 0), 0)
    return IndexedSlices(values / divisor if divisor != 1 else values, indices, slices[0].dense_shape)


class MirroredStrategy(Strategy):
    """A replica per device of this machine; variables have equal copies on all of them.

    Args:
      devices: names such as "CPU:0"; by default all GPUs, or the CPU.
      cross_device_ops: kept; values are combined on the first device.
    """

    def __init__(self, devices=None, cross_device_ops=None):
        if devices is None:
            from runnel import config
            devices = [d.name for d in config.list_logical_devices("GPU")] or ["/device:CPU:0"]
        devices = [_device(name) for name in devices]
        if not devices:
            raise ValueError("Got an empty `devices` list and at least one is required.")
        if len(set(devices)) != len(devices):
            raise AssertionError("No duplicates allowed in `devices` argument: %s" % devices)  # as in stock
        self._devices, self._cross_device_ops = devices, cross_device_ops
        super().__init__(_MirroredExtended(self, devices))

    num_replicas_in_sync = property(lambda self: len(self._devices))

    def experimental_local_results(self, value):
        """Returns the values of the replicas as a tuple."""
        return value.values if isinstance(value, DistributedValues) else (value,) * 1

    def experimental_distribute_dataset(self, dataset, options=None):
        """Returns a dataset whose batches are divided among the replicas."""
        if getattr(self, "num_replicas_in_sync", 1) == 1:
            return dataset
        return input_data.divided(dataset, self.num_replicas_in_sync)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """Returns a distributed dataset of a function from an InputContext to the dataset of one replica's batches."""
        dataset = dataset_fn(InputContext(1, 0, self.num_replicas_in_sync))
        return dataset if self.num_replicas_in_sync == 1 else input_data.per_replica(dataset, self.num_replicas_in_sync)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """Returns the values of a function from a ValueContext, one per replica."""
        count = self.num_replicas_in_sync
        values = [value_fn(ValueContext(i, count)) for i in range(count)]
        return values[0] if count == 1 else regrouped(values)


class CrossDeviceOps:
    """The base of how values are combined. All kinds are the same here: on the first device."""

    def reduce(self, reduce_op, per_replica_value, destinations, options=None):
        """Returns values combined."""
        return contexts.get_strategy().extended.reduce_to(reduce_op, per_replica_value, destinations)


class ReductionToOneDevice(CrossDeviceOps):
    """Combines values on one device."""

    def __init__(self, reduce_to_device=None, accumulation_fn=None):
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Combines values on the first device."""

    def __init__(self, num_packs=1):
        self.num_packs = num_packs


class NcclAllReduce(HierarchicalCopyAllReduce):
    """Combines values on the first device."""
