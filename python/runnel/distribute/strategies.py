"""OneDeviceStrategy and MirroredStrategy."""

from runnel import nest
from runnel.core import framework
from runnel.distribute import contexts, cross_device, device_util, input_data, replicas, variable
from runnel.distribute.extended import StrategyExtended
from runnel.distribute.options import InputContext, InputReplicationMode, ReduceOp, ValueContext
from runnel.distribute.strategy import Strategy, StrategyV1, _sum
from runnel.distribute.values import DistributedValues, Mirrored, select_replica, regroup


class OneDeviceExtended(StrategyExtended):
    """The part of a OneDeviceStrategy that libraries use."""

    def __init__(self, container_strategy, device):
        super().__init__(container_strategy)
        self._device = device_util.resolve(device)
        self.worker_devices = self.parameter_devices = (self._device,)

    def devices_of_replica(self, replica):
        """Returns the devices of a replica."""
        return (self._device,)

    def _call_for_each_replica(self, fn, args, kwargs):
        with contexts.ReplicaContext(self._strategy, 0), framework.device(self._device):
            return fn(*args, **kwargs)

    def _create_variable(self, next_creator, **kwargs):
        colocate_with = kwargs.pop("colocate_with", None)
        with framework.device(self._device) if colocate_with is None else framework.colocate_with(colocate_with):
            return next_creator(**kwargs)

    def _broadcast_to(self, tensor, destinations):
        return tensor

    def _gather_to_implementation(self, value, destinations, axis, options):
        from runnel.core.composite import IndexedSlices
        if isinstance(value, IndexedSlices):
            raise NotImplementedError("gather/all_gather does not support IndexedSlices")
        return value

    def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
        with framework.device(self._device), contexts.updating(0):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def value_container(self, value):
        """Returns the value."""
        return value

    def non_slot_devices(self, var_list):
        """Returns the device."""
        return self._device

    def _experimental_distribute_dataset(self, dataset, options):
        input_data.check_mode(options, "OneDeviceStrategy")
        return input_data.of_one_device(dataset, self._device, self._strategy)

    def _distribute_datasets_from_function(self, dataset_fn, options):
        input_data.check_mode(options, "OneDeviceStrategy")
        return input_data.of_one_device(dataset_fn(InputContext()), self._device, self._strategy)


class OneDeviceStrategy(Strategy):
    """Puts variables and computations on one device."""

    def __init__(self, device):
        super().__init__(OneDeviceExtended(self, device))


class OneDeviceStrategyV1(StrategyV1):
    """OneDeviceStrategy of 1.x."""

    def __init__(self, device):
        super().__init__(OneDeviceExtended(self, device))


class MirroredExtended(StrategyExtended):
    """The part of a MirroredStrategy that libraries use."""

    def __init__(self, container_strategy, devices=None, cross_device_ops=None):
        super().__init__(container_strategy)
        self._cross_device_ops = cross_device_ops
        self._set_devices(tuple(device_util.resolve(device) for device in (all_local_devices() if devices is None else devices)))

    def _set_devices(self, devices):
        if not devices:
            raise ValueError("Got an empty `devices` list and at least one is required.")
        if len(set(devices)) != len(devices):
            raise AssertionError("No duplicates allowed in `devices` argument: %s" % (devices,))  # as in stock
        self._devices = self.worker_devices = self.parameter_devices = tuple(devices)

    def devices_of_replica(self, replica):
        """Returns the devices of a replica."""
        return (self._devices[replica],)

    def _call_for_each_replica(self, fn, args, kwargs):
        return replicas.call_for_each(self._strategy, self._devices, fn, args, kwargs)

    # --- Variables

    def _create_variable(self, next_creator, **kwargs):
        replica = contexts.get_replica_context()
        if replica is None:
            return self._created(next_creator, kwargs)
        if len(self._devices) == 1:
            with contexts.cross_replica(self._strategy):
                return self._created(next_creator, kwargs)
        return replica.shared_variable(kwargs.get("name"), lambda: self._created(next_creator, kwargs))

    def _created(self, make, kwargs):
        colocate_with = kwargs.pop("colocate_with", None)
        if colocate_with is None:
            devices = self._devices
        elif isinstance(colocate_with, DistributedValues):
            devices = colocate_with._devices
        else:
            with framework.device(colocate_with.device):
                return make(**kwargs)
        return variable.create(self._strategy, devices, make, kwargs)

    def _validate_colocate_with_variable(self, colocate_with_variable):
        variable.check_of_strategy(colocate_with_variable, self._strategy)

    def colocate_vars_with(self, colocate_with_variable):
        """A context manager that creates variables on the devices of another one."""
        from runnel.ops.variable_scopes import variable_creator_scope
        contexts.require_strategy(self._strategy)
        self._validate_colocate_with_variable(colocate_with_variable)
        return variable_creator_scope(lambda next_creator, **kwargs: next_creator(**{**kwargs, "colocate_with": colocate_with_variable}))

    def initial_value(self, kwargs):
        """Returns the initial value of the first copy of a variable that is created with `kwargs`."""
        return kwargs.get("initial_value")

    def read_var(self, v):
        """Returns the value of a variable: outside of replicas, the aggregate."""
        from runnel.ops import array_ops
        if isinstance(v, variable.SyncOnReadVariable):
            return v._get_cross_replica()
        return array_ops.identity(v._get() if isinstance(v, DistributedValues) else v)

    def _update(self, var, fn, args, kwargs, group):
        copies = var.values if isinstance(var, DistributedValues) else [var]
        return self._updates(enumerate(copies), lambda copy: copy.device, lambda copy, args: fn(copy, *args[0], **args[1]), (args, kwargs), group)

    def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
        devices = (colocate_with,) if isinstance(colocate_with, str) else tuple(colocate_with)
        return self._updates(enumerate(devices), lambda device: device, lambda device, args: fn(*args[0], **args[1]), (args, kwargs), group)

    def _updates(self, numbered, device_of, call, args, group):
        results = []
        for i, place in numbered:
            name = "update" if not i else "update_%d" % i
            with framework.device(device_of(place)), contexts.updating(i), framework.name_scope(name):
                results.append(call(place, select_replica(i, args)))
        return _regrouped_updates(self, results, group)

    def non_slot_devices(self, var_list):
        """Returns the devices."""
        return self._devices

    # --- Values of replicas together

    def _ops_for(self, value):
        if self._cross_device_ops is None:
            self._cross_device_ops = cross_device.ReductionToOneDevice()
        return self._cross_device_ops

    def _reduce(self, reduce_op, value):
        here = device_util.current() or self._default_device or "/device:CPU:0"
        return nest.map_structure(lambda leaf: self._local_results(self.reduce_to(reduce_op, leaf, here))[0], value)

    def _reduce_to(self, reduce_op, value, destinations, options):
        return nest.map_structure(lambda leaf: self._reduced(reduce_op, leaf, destinations), value)

    def _reduced(self, reduce_op, value, destinations):
        if isinstance(value, Mirrored) and reduce_op is ReduceOp.MEAN:
            return value
        assert not isinstance(value, Mirrored), "Values that are the same in every replica cannot be summed: %s" % (value,)
        if not isinstance(value, DistributedValues):
            place = self._devices[0] if destinations is None else destinations
            return cross_device.reduce_non_distributed_value(reduce_op, value, place, self._num_replicas_in_sync)
        if destinations is None:
            return self._combined(reduce_op, value.values)
        return self._ops_for(value).reduce(reduce_op, value, destinations)

    def _combined(self, reduce_op, values):
        """Returns the sum or the mean of the values of this process's replicas and, in a subclass, of the other processes'."""
        from runnel.core.composite import IndexedSlices
        from runnel.core.convert import convert_to_tensor
        count = self._num_replicas_in_sync
        with framework.device(self._devices[0]):
            if isinstance(values[0], IndexedSlices):
                return _joined(self, values, count if reduce_op is ReduceOp.MEAN else 1)
            total = self.sum_of_processes(_sum([convert_to_tensor(x) for x in values]))
            return total / count if reduce_op is ReduceOp.MEAN else total

    def _gather_to_implementation(self, value, destinations, axis, options):
        from runnel.ops import array_ops
        if destinations is not None and isinstance(value, DistributedValues):
            return self._ops_for(value)._gather(value, destinations, axis)
        parts = [_dense(part) for part in self._local_results(value)]
        with framework.device(self._devices[0]):
            return self.rows_of_processes(array_ops.concat(parts, axis) if len(parts) > 1 else parts[0], axis)

    def _broadcast_to(self, tensor, destinations):
        if isinstance(tensor, (int, float)):
            return tensor  # stock leaves numbers as they are
        return self._ops_for(tensor).broadcast(tensor, destinations or Mirrored([tensor], self._devices))

    # --- Input

    def _experimental_distribute_dataset(self, dataset, options):
        if input_data.is_per_replica(options):
            raise NotImplementedError("InputReplicationMode.PER_REPLICA is only supported in `distribute_datasets_from_function`.")
        return input_data.divided(dataset, self._devices, self._strategy)

    def _distribute_datasets_from_function(self, dataset_fn, options):
        if input_data.is_per_replica(options):
            count = len(self._devices)
            return input_data.of_replicas([dataset_fn(InputContext(1, 0, count)) for _ in range(count)], self._devices, self._strategy)
        return input_data.per_replica(dataset_fn(InputContext(1, 0, self._num_replicas_in_sync)), self._devices, self._strategy)

    def _make_dataset_iterator(self, dataset):
        from runnel.distribute.graph_iterators import DividedInputIterator
        return DividedInputIterator(dataset, self._devices, True)

    def _make_input_fn_iterator(self, input_fn, replication_mode=InputReplicationMode.PER_WORKER):
        from runnel.distribute.graph_iterators import DividedInputIterator
        return DividedInputIterator(input_fn(InputContext(1, 0, self._num_replicas_in_sync)), self._devices, False)

    def _experimental_distribute_values_from_function(self, value_fn):
        count, first = self._num_replicas_in_sync, self.first_replica
        return regroup([value_fn(ValueContext(first + i, count)) for i in range(len(self._devices))], always_wrap=True)


def _dense(value):
    from runnel.core.composite import IndexedSlices
    if isinstance(value, IndexedSlices):
        raise NotImplementedError("gather/all_gather does not support IndexedSlices")
    return value


def _regrouped_updates(extended, results, group):
    """Returns what an update gives: with `group` something that runs all updates, otherwise the results of the replicas."""
    if not group:
        return nest.map_structure(extended._local_results, regroup(results, Mirrored))

    def grouped(values):
        from runnel.ops import array_ops
        from runnel.ops.control_flow import group as group_op
        if len(values) == 1:
            return Mirrored(values)
        if framework.executing_eagerly():
            return Mirrored(values) if all(framework.is_tensor(value) for value in values) else None
        together = group_op(*[value for value in values if value is not None])
        if not all(framework.is_tensor(value) for value in values):
            return together
        after = []
        for value in values:
            with framework.device(value.device), framework.control_dependencies([together]):
                after.append(array_ops.identity(value))
        return Mirrored(after)
    return regroup(results, grouped)


def _joined(extended, slices, divisor):
    """Returns the sum of IndexedSlices of all processes, divided by a number."""
    from runnel.core.composite import IndexedSlices
    from runnel.ops import array_ops
    values = extended.rows_of_processes(array_ops.concat([s.values for s in slices], 0), 0)
    indices = extended.rows_of_processes(array_ops.concat([s.indices for s in slices], 0), 0)
    return IndexedSlices(values / divisor if divisor != 1 else values, indices, slices[0].dense_shape)


def all_local_devices(num_gpus=None):
    """Returns this process's GPUs, or its CPUs if it has none."""
    from runnel import config
    return config.list_logical_devices("GPU")[:num_gpus] or config.list_logical_devices("CPU")


class MirroredStrategy(Strategy):
    """A replica per device of this machine; variables have equal copies on all of them.

    Args:
      devices: names such as "CPU:0"; by default all GPUs, or the CPU.
      cross_device_ops: a tf.distribute.CrossDeviceOps; by default values are combined on their destination.
    """

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(MirroredExtended(self, devices, cross_device_ops))

    _collective_key_base = 0  # kept: programs of 1.x set it
    _devices = property(lambda self: self._extended._devices)


class MirroredStrategyV1(StrategyV1):
    """MirroredStrategy of 1.x."""

    _collective_key_base = 0

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(MirroredExtended(self, devices, cross_device_ops))
