"""MultiWorkerMirroredStrategy: replicas in several processes, which exchange values by collectives."""

import enum

from runnel import errors, nest
from runnel.core.convert import convert_to_tensor
from runnel.distribute import collectives, device_util, input_data
from runnel.distribute.options import InputContext, ReduceOp
from runnel.distribute.strategies import MirroredExtended, MirroredStrategy
from runnel.distribute.strategy import Strategy
from runnel.distribute.values import DistributedValues, Mirrored
from runnel.eager.context import executing_eagerly_outside_functions


class CommunicationImplementation(enum.Enum):
    """How processes exchange values: NCCL is for those with GPUs, from card to card; the others are the same here."""

    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


class CommunicationOptions:
    """Options of collectives.

    Args:
      bytes_per_pack: kept; the library decides how tensors are divided.
      timeout_seconds: a collective fails if the other workers have not joined it after this many seconds.
      implementation: a CommunicationImplementation, or its name.
    """

    def __init__(self, bytes_per_pack=0, timeout_seconds=None, implementation=CommunicationImplementation.AUTO):
        if bytes_per_pack < 0:
            raise ValueError("Argument `bytes_per_pack` must be >=0, Received %s." % bytes_per_pack)
        if isinstance(implementation, str):
            implementation = CommunicationImplementation(implementation.upper())
        if not isinstance(implementation, CommunicationImplementation):
            raise ValueError("Argument `implementation` must be instance of `tf.distribute.experimental.CommunicationImplementation`.")
        self.bytes_per_pack, self.timeout_seconds, self.implementation = bytes_per_pack, timeout_seconds, implementation


class CollectiveHints(CommunicationOptions):
    """The older form of CommunicationOptions."""

    def __init__(self, bytes_per_pack=0, timeout_seconds=None):
        super().__init__(bytes_per_pack, timeout_seconds)


class _Place:
    """The place of this process among those of a cluster that train."""

    def __init__(self, resolver):
        self.type, self.id = resolver.task_type, resolver.task_id
        self.cluster = resolver.cluster_spec()
        jobs = self.cluster.as_dict() if self.cluster else {}
        trains = [(job, i) for job in ("chief", "worker") for i in range(len(jobs.get(job, ())))]
        if jobs and (self.type is None or self.id is None):
            raise ValueError("When `cluster_spec` is given, you must also specify `task_type` and `task_id`.")
        self.is_alone = (self.type, self.id) not in trains  # an evaluator, or there is no cluster
        if jobs and self.is_alone and self.type not in ("evaluator", "ps"):
            raise ValueError("The cluster has no task %s of job %r that trains: %s" % (self.id, self.type, jobs))
        self.count = 1 if self.is_alone else len(trains)
        self.rank = 0 if self.is_alone else trains.index((self.type, self.id))
        self.is_chief = self.rank == 0
        self.name = "" if self.is_alone else "/job:%s/replica:0/task:%d" % (self.type, self.id)
        self.leader = "/job:%s/replica:0/task:%d" % trains[0] if trains else ""


class MultiWorkerExtended(MirroredExtended):
    """The part of a MultiWorkerMirroredStrategy that libraries use."""

    experimental_between_graph = _saves_everywhere = True

    def __init__(self, container_strategy, resolver, options):
        place = self._place = _Place(resolver)
        self._cluster_resolver, self._communication = resolver, options
        if not place.is_alone and place.count > 1:
            if not executing_eagerly_outside_functions():
                raise errors.UnimplementedError(
                    None, None, "MultiWorkerMirroredStrategy over several processes needs eager execution, with which TensorFlow 2 starts")
            collectives.join(place.cluster, place.type, place.id, place.leader, resolver.rpc_layer)
        elif not place.is_alone:
            place.name = ""
        super().__init__(container_strategy, [place.name + name for name in _local_devices(place.name)])
        by_nccl = options.implementation is CommunicationImplementation.NCCL and "GPU" in self._devices[0]
        self._group = collectives.Group(self._devices[0] if by_nccl else place.name + "/device:CPU:0", place.count, place.rank,
                                        options.timeout_seconds or 0, "nccl" if by_nccl else "auto")
        self.first_replica = place.rank * len(self._devices)
        self._is_chief = place.is_chief

    should_checkpoint = should_save_summary = property(lambda self: self._is_chief)
    experimental_should_init = True  # variables of the chief are not seen by others
    _num_replicas_in_sync = property(lambda self: len(self._devices) * self._place.count)
    _num_workers = property(lambda self: self._place.count)

    def _in_multi_worker_mode(self):
        return self._place.count > 1

    def sum_of_processes(self, tensor):
        """Returns the sum of the tensors that the processes of this strategy have."""
        return tensor if self._place.count == 1 else self._group.sum(tensor)

    def rows_of_processes(self, tensor, axis):
        """Returns the tensors that the processes of this strategy have, joined along an axis."""
        return tensor if self._place.count == 1 else self._group.rows(convert_to_tensor(tensor), axis)

    def all_reduced(self, reduce_op, value):
        """Returns what all_reduce gives every replica."""
        return super().all_reduced(reduce_op, value) if self._place.count == 1 else self.reduce_to(reduce_op, value, None)

    def _reduced(self, reduce_op, value, destinations):
        if self._place.count == 1:
            return super()._reduced(reduce_op, value, destinations)
        if isinstance(value, Mirrored) and reduce_op is not ReduceOp.MEAN:
            raise ValueError("Values that are the same in every replica cannot be summed: %s" % (value,))
        if isinstance(value, DistributedValues):
            return super()._reduced(reduce_op, value, None)
        return self._combined(reduce_op, [value] * len(self._devices))

    def _gather_to_implementation(self, value, destinations, axis, options):
        return super()._gather_to_implementation(value, destinations if self._place.count == 1 else None, axis, options)

    def initial_value(self, kwargs):
        """The first process decides, so that all have the same."""
        value, dtype = kwargs.get("initial_value"), kwargs.get("dtype")
        if self._place.count == 1:
            return value

        def received():
            own = value() if callable(value) else value
            return self._group.broadcast(convert_to_tensor(getattr(own, "wrapped_value", own), dtype))
        return received

    def _experimental_distribute_dataset(self, dataset, options):
        if self._place.count == 1:
            return super()._experimental_distribute_dataset(dataset, options)
        own = input_data.of_process(dataset, self._num_replicas_in_sync, self._place.count, self._place.rank)
        return input_data.synchronized(own, self._devices, self._strategy, self._group)

    def _distribute_datasets_from_function(self, dataset_fn, options):
        if self._place.count == 1:
            return super()._distribute_datasets_from_function(dataset_fn, options)
        own = dataset_fn(InputContext(self._place.count, self._place.rank, self._num_replicas_in_sync))
        return input_data.synchronized(own, self._devices, self._strategy, self._group)


class MultiWorkerMirroredStrategy(MirroredStrategy):
    """Replicas on the devices of several processes; variables have equal copies in all of them.

    Every process runs the same program, with its own place in the cluster. Create the strategy before any operation runs.

    Args:
      cluster_resolver: says which processes there are and which one this is; by default TF_CONFIG does. With the `rpc_layer`
        "grpc+ucx", large tensors travel by UCX.
      communication_options: a tf.distribute.experimental.CommunicationOptions.
    """

    def __init__(self, cluster_resolver=None, communication_options=None):
        from runnel.distribute.cluster_resolver import TFConfigClusterResolver
        options = communication_options or CommunicationOptions()
        Strategy.__init__(self, MultiWorkerExtended(self, cluster_resolver or TFConfigClusterResolver(), options))

    @classmethod
    def _from_local_devices(cls, devices, communication_options=None):
        """Returns a strategy of this process alone, with a replica on each of some devices."""
        made = cls(communication_options=communication_options)
        made.extended._set_devices([device_util.resolve(device) for device in devices])
        return made

    def _reduced_over_axis(self, reduce_op, value, axis):
        # Keras reduces scalars along axis 0, which stock rejects: they have the axis of the replicas only.
        scalars = [leaf for leaf in nest.flatten(value) for part in self.experimental_local_results(leaf) if getattr(part, "shape", None) is not None
                   and part.shape.rank == 0]
        return self._extended.reduce_to(reduce_op, value, None) if scalars else super()._reduced_over_axis(reduce_op, value, axis)

    _num_workers = property(lambda self: self._extended._num_workers)


def _local_devices(task):
    """The names of this process's GPUs, or of its CPU; `task` is its own in a cluster, or empty."""
    from runnel import config
    gpus = [device for device in config.list_logical_devices("GPU")
            if "/job:" not in device.name or "localhost" in device.name or task and device.name.startswith(task + "/")]
    return ["/device:GPU:%d" % i for i in range(len(gpus))] or ["/device:CPU:0"]


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """The older name, which takes the communication first."""

    def __init__(self, communication=CommunicationImplementation.AUTO, cluster_resolver=None):
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))
