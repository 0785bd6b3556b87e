"""ParameterServerStrategy of TensorFlow 2: variables on the tasks of job "ps"; a ClusterCoordinator runs functions on the workers."""

from runnel import errors
from runnel.core import framework
from runnel.distribute import contexts
from runnel.distribute.extended import StrategyExtended
from runnel.distribute.options import InputContext
from runnel.distribute.strategy import Strategy


class ParameterServerExtended(StrategyExtended):
    """The part of a ParameterServerStrategy that libraries use."""

    _num_replicas_in_sync = 1

    def __init__(self, strategy, cluster, partitioner):
        super().__init__(strategy)
        counts = {job: len(cluster.task_indices(job)) for job in cluster.jobs}
        self._num_ps, self._num_workers = counts["ps"], counts["worker"]
        self._partitioner, self._created = partitioner, 0
        self.parameter_devices = tuple("/job:ps/replica:0/task:%d/device:CPU:0" % i for i in range(self._num_ps))
        self.worker_devices = tuple("/job:worker/replica:0/task:%d/device:CPU:0" % i for i in range(self._num_workers))

    def _in_multi_worker_mode(self):
        return True

    def devices_of_replica(self, replica):
        """Returns the devices of a replica."""
        from runnel.distribute import coordinator
        worker = coordinator.current_worker()
        return (self.worker_devices[worker],) if worker is not None else ("",)

    def _next_device(self):
        device = self.parameter_devices[self._created % self._num_ps]
        self._created += 1
        return device

    def _create_variable(self, make, **kwargs):
        if self._partitioner is not None:
            made = self._in_parts(make, kwargs)
            if made is not None:
                return made
        return self._on(self._next_device(), make, kwargs)

    @staticmethod
    def _on(device, make, kwargs):
        """Creates a variable on a device. Its initial value is computed here."""
        value = kwargs.get("initial_value")
        with framework.init_scope():
            if callable(value):
                value = value()
            with framework.device(device):
                return make(**{**kwargs, "initial_value": value})

    def _in_parts(self, make, kwargs):
        """Returns a variable in parts, or None if the partitioner wants one part."""
        from runnel.core.convert import convert_to_tensor
        from runnel.distribute.sharded_variable import ShardedVariable
        value = kwargs.get("initial_value")
        if value is None:
            raise ValueError("It looks like you are using `ParameterServerStrategy` with a `variable_partitioner`, and trying to create a variable "
                             "without specifying `initial_value`. This is not allowed. Please specify the `initial_value`.")
        with framework.init_scope():
            value = convert_to_tensor(value() if callable(value) else value, kwargs.get("dtype"))
        kwargs["initial_value"] = value
        if not value.shape.rank:
            return None
        counts = self._partitioner(shape=value.shape, dtype=value.dtype)
        if not counts or any(n > 1 for n in counts[1:]):
            raise ValueError("The partitioner must split along the first axis only; it wants %s" % (counts,))
        parts = counts[0]
        if parts < 1:
            raise ValueError("Got a partition number of %d, which must be positive" % parts)
        if parts == 1:
            return None
        rows = value.shape.as_list()[0]
        name, made, start = kwargs.get("name") or "Variable", [], 0
        for i in range(parts):
            size = rows // parts + (i < rows % parts)
            own = {**kwargs, "initial_value": value[start:start + size], "name": "%s/part_%d" % (name, i), "shape": None}
            made.append(self._on(self._next_device(), make, own))
            start += size
        return ShardedVariable(made, name)

    def _call_for_each_replica(self, fn, args, kwargs):
        if not self._strategy._used_with_coordinator:
            raise NotImplementedError("`tf.distribute.experimental.ParameterServerStrategy` must be used with "
                                      "`tf.distribute.experimental.coordinator.ClusterCoordinator` in a custom training loop.")
        with contexts.ReplicaContext(self._strategy, 0):
            return fn(*args, **kwargs)

    def _update(self, var, fn, args, kwargs, group):
        with framework.colocate_with(var), contexts.updating(0):
            return fn(var, *args, **kwargs)

    def _experimental_distribute_dataset(self, dataset, options):
        _check_place()
        return dataset

    def _distribute_datasets_from_function(self, dataset_fn, options):
        _check_place()
        return dataset_fn(InputContext())


class ParameterServerStrategy(Strategy):
    """Variables on parameter servers, in turn; functions on workers, each on its own: see ClusterCoordinator.

    Args:
      cluster_resolver: the cluster, with jobs "worker" and "ps". This process is its "chief".
      variable_partitioner: a tf.distribute.experimental.partitioners.Partitioner.
    """

    def __init__(self, cluster_resolver, variable_partitioner=None):
        from runnel.distribute import remote
        from runnel.eager.context import executing_eagerly_outside_functions
        if not executing_eagerly_outside_functions():
            raise errors.UnimplementedError(None, None, "ParameterServerStrategy of TensorFlow 2 needs eager execution; in graphs use "
                                            "tf.train.replica_device_setter")
        cluster = cluster_resolver.cluster_spec()
        for job, most in (("chief", 1), ("worker", None), ("ps", None)):
            count = len(cluster.task_indices(job)) if job in cluster.jobs else 0
            if job != "chief" and not count:
                raise ValueError("The cluster must have at least one %s defined, but it has %s." % (job, cluster.as_dict()))
            if most is not None and count > most:
                raise ValueError("The cluster must have at most one %s, but it has %s." % (job, cluster.as_dict()))
        self._used_with_coordinator, self._coordinator = False, None
        remote.connect(cluster, "chief", 0)
        super().__init__(ParameterServerExtended(self, cluster, variable_partitioner))
        self._extended._cluster_resolver = cluster_resolver

    _num_workers = property(lambda self: self._extended._num_workers)


def _check_place():
    from runnel.distribute import coordinator
    if coordinator.current_worker() is None:
        raise ValueError("The `experimental_distribute_dataset` or `distribute_datasets_from_function` of ParameterServerStrategy must be called "
                         "inside of the function passed to `ClusterCoordinator.create_per_worker_dataset`.")
