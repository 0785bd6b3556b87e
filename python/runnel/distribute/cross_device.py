"""tf.distribute.CrossDeviceOps: how the values of the replicas of a process are combined, and put on devices."""

import numpy as np

from runnel.core import framework
from runnel.core.composite import IndexedSlices
from runnel.distribute import device_util
from runnel.distribute.options import ReduceOp
from runnel.distribute.reductions import aggregate_tensors_or_indexed_slices, copy_tensor_or_indexed_slices_to_device
from runnel.distribute.reductions import divide_by_n_tensors_or_indexed_slices
from runnel.distribute.values import DistributedValues, Mirrored, PerReplica, regroup


def _has_place(destinations):
    return isinstance(destinations, DistributedValues) or bool(destinations if isinstance(destinations, str) else getattr(destinations, "device", None))


def validate_destinations(destinations):
    """Raises ValueError for what says no device: neither a distributed value nor a variable, a tensor or a device name."""
    from runnel.ops.resource_variable import ResourceVariable
    if not isinstance(destinations, (DistributedValues, framework.Tensor, IndexedSlices, str, ResourceVariable)):
        raise ValueError("destinations must be one of a `DistributedValues` object, a tf.Variable object, or a device string.")
    if not _has_place(destinations):
        raise ValueError("destinations can not be empty")


def get_devices_from(destinations, canonicalize_devices=True):
    """Returns the devices of a distributed value, a variable, a tensor or a device name."""
    if isinstance(destinations, DistributedValues):
        return destinations._devices
    full = device_util.resolve if canonicalize_devices else device_util.canonicalize_without_job_and_task
    return (full(destinations if isinstance(destinations, str) else destinations.device),)


def _devices_match(left, right, canonicalize_devices=True):
    return left is right or set(get_devices_from(left, canonicalize_devices)) == set(get_devices_from(right, canonicalize_devices))


def simple_broadcast(value, destinations, always_mirrored=False, canonicalize_devices=True):
    """Returns copies of a value on the devices of `destinations`: a tensor for one, Mirrored for several or if `always_mirrored`."""
    devices = get_devices_from(destinations, canonicalize_devices)
    copies = [copy_tensor_or_indexed_slices_to_device(value, device) for device in devices]
    return copies[0] if len(copies) == 1 and not always_mirrored else regroup(copies, Mirrored)


def reduce_non_distributed_value(reduce_op, value, destinations, num_replicas_in_graph, canonicalize_devices=True):
    """Returns what a value that is the same in each replica gives; its sum is defined for zero and for one replica only."""
    if isinstance(value, DistributedValues):
        raise ValueError("You are passing a `DistributedValues` to `reduce_non_distributed_value`, which is not allowed.")
    if not framework.is_tensor(value) and np.all(value == 0):
        return np.zeros_like(value)
    if reduce_op is ReduceOp.MEAN:
        return value
    if num_replicas_in_graph != 1:
        raise ValueError("A non-DistributedValues value %s cannot be reduced with the given reduce op %s." % (value, reduce_op))
    validate_destinations(destinations)
    return simple_broadcast(value, destinations, canonicalize_devices=canonicalize_devices)


def _as_per_replica(value):
    from runnel.core.convert import convert_to_tensor
    if isinstance(value, DistributedValues):
        return value
    return PerReplica((value if framework.is_tensor(value) else convert_to_tensor(value),))


def _simple_reduce(per_replica_value, reduce_to_device, accumulation_fn, reduce_op):
    """Returns the sum or the mean of the values of a distributed one, computed on a device."""
    values = per_replica_value.values
    if not values:
        raise ValueError("`per_replica_value` must be non-empty")
    with framework.device(reduce_to_device):
        total = aggregate_tensors_or_indexed_slices(values, accumulation_fn)
        if reduce_op is ReduceOp.MEAN:
            return divide_by_n_tensors_or_indexed_slices(total, len(values))
    if reduce_op is not ReduceOp.SUM:
        raise ValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")
    return total


class CrossDeviceOps:
    """The base of the ways to combine values. Subclasses override the methods that end in "implementation"."""

    _canonicalize_devices = True
    _num_between_graph_workers = 1

    def reduce(self, reduce_op, per_replica_value, destinations, options=None):
        """Returns the values of the replicas combined, on the devices of `destinations`."""
        value = _as_per_replica(per_replica_value)
        validate_destinations(destinations)
        if self._is_there(value, destinations):
            return self._copy_there(value)
        return self.reduce_implementation(reduce_op, value, destinations, options)

    def batch_reduce(self, reduce_op, value_destination_pairs, options=None):
        """Returns several values combined. The pairs are (value, destinations)."""
        pairs = list(value_destination_pairs)
        if not all(isinstance(pair, tuple) for pair in pairs):
            raise ValueError("Each element of `value_destination_pairs` should be a tuple.")
        if not all(len(pair) == 2 for pair in pairs):
            raise ValueError("Each element of `value_destination_pairs` should be a tuple of size 2.")
        pairs = [(_as_per_replica(value), destination) for value, destination in pairs]
        for _, destination in pairs:
            validate_destinations(destination)
        if all(self._is_there(value, destination) for value, destination in pairs):
            return [regroup(value.values, Mirrored) for value, _ in pairs]
        return self.batch_reduce_implementation(reduce_op, pairs, options)

    def broadcast(self, tensor, destinations):
        """Returns copies of a tensor on the devices of `destinations`."""
        validate_destinations(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def _gather(self, per_replica_value, destinations, axis, options=None):
        """Returns the tensors of the replicas, joined along an axis, on the devices of `destinations`."""
        if isinstance(per_replica_value, IndexedSlices):
            raise NotImplementedError("gather/all_gather does not support IndexedSlices")
        value = _as_per_replica(per_replica_value)
        validate_destinations(destinations)
        if self._is_there(value, destinations):
            return self._copy_there(value)
        return self._gather_implementation(value, destinations, axis, options)

    def _is_there(self, value, destinations):
        return self._num_between_graph_workers == 1 and len(value.values) == 1 and _devices_match(value, destinations, self._canonicalize_devices)

    @staticmethod
    def _copy_there(value):
        copy = copy_tensor_or_indexed_slices_to_device(value.values[0], value.values[0].device)
        return regroup((copy,), Mirrored)

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        """Combines the values of a DistributedValues."""
        raise NotImplementedError("_reduce method must be implemented in descendants.")

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        """Combines several values."""
        return [self.reduce_implementation(reduce_op, value, destinations=destination, options=options)
                for value, destination in value_destination_pairs]

    def broadcast_implementation(self, tensor, destinations):
        """Copies a tensor to devices."""
        return simple_broadcast(tensor, destinations, always_mirrored=True, canonicalize_devices=self._canonicalize_devices)

    def _gather_implementation(self, per_replica_value, destinations, axis, options):
        raise NotImplementedError("_gather method must be implemented in descendants.")


class ReductionToOneDevice(CrossDeviceOps):
    """Combines values on one device and copies the result to the others.

    Args:
      reduce_to_device: where; by default the first device of the destinations.
      accumulation_fn: a function from a list of tensors to their sum; by default tf.add_n.
    """

    def __init__(self, reduce_to_device=None, accumulation_fn=None):
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn

    def _place(self, value, destinations):
        return self.reduce_to_device or get_devices_from(destinations if _has_place(destinations) else value, self._canonicalize_devices)[0]

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        """Combines the values of a DistributedValues."""
        place = self._place(per_replica_value, destinations)
        return self.broadcast(_simple_reduce(per_replica_value, place, self.accumulation_fn, reduce_op), destinations)

    def _gather_implementation(self, per_replica_value, destinations, axis, options):
        from runnel.ops import array_ops
        with framework.device(self._place(per_replica_value, destinations)):
            joined = array_ops.concat(per_replica_value.values, axis)
        return self.broadcast(joined, destinations)


class AllReduceCrossDeviceOps(ReductionToOneDevice):
    """Combines values so that each device has the result. In one process they are summed on the first device.

    Args:
      all_reduce_alg: kept.
      num_packs: kept; it must not be negative.
    """

    def __init__(self, all_reduce_alg="nccl", num_packs=1):
        if num_packs < 0:
            raise ValueError("NCCL all-reduce requires num_packs >= 0, but %d is specified" % num_packs)
        super().__init__()
        self._all_reduce_alg, self._num_packs = all_reduce_alg, num_packs


class NcclAllReduce(AllReduceCrossDeviceOps):
    """Combines values on the first device."""

    def __init__(self, num_packs=1):
        super().__init__("nccl", num_packs)


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """Combines values on the first device."""

    def __init__(self, num_packs=1):
        if num_packs < 0:
            raise ValueError("HierarchicalCopy requires num_packs >= 0, but %d is specified" % num_packs)
        super().__init__("hierarchical_copy", num_packs)
