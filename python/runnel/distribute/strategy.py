"""Strategy, the base of strategies, and the default one: a single replica on the devices that the program chooses."""

import contextlib

from runnel import nest
from runnel.autograph.conversion import traceable_in_graph
from runnel.distribute import contexts
from runnel.distribute.extended import DefaultExtended
from runnel.distribute.options import InputReplicationMode, ReduceOp, as_reduce_op


class Strategy:
    """How a computation is divided among devices. The `extended` part of a strategy says how."""

    _scale_loss_for_estimator = False
    _should_use_with_coordinator = False  # the legacy Keras asks

    def __init__(self, extended):
        self._extended = extended

    extended = property(lambda self: self._extended)
    num_replicas_in_sync = property(lambda self: self._extended._num_replicas_in_sync)
    cluster_resolver = property(lambda self: self._extended._cluster_resolver)

    def scope(self):
        """A context manager that makes this the current strategy."""
        return self._extended._scope(self)

    @contextlib.contextmanager
    def _scale_loss_for_estimator_enabled(self):
        """A context manager in which optimizers of 1.x divide losses by the number of replicas."""
        self._scale_loss_for_estimator = True
        try:
            yield
        finally:
            self._scale_loss_for_estimator = False

    def colocate_vars_with(self, colocate_with_variable):
        """A context manager that creates variables where another one is."""
        return self._extended.colocate_vars_with(colocate_with_variable)

    def experimental_run(self, fn, input_iterator=None):
        """Calls `fn` in each replica, with the next element of an iterator if there is one."""
        with self.scope():
            return self.run(fn, args=() if input_iterator is None else (input_iterator.get_next(),))

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls `fn` in each replica, with the values of that replica in place of distributed ones."""
        if not isinstance(args, (list, tuple)):
            raise ValueError("positional args must be a list or tuple, got %s" % type(args))
        with self.scope():
            return self._extended.call_for_each_replica(traceable_in_graph(fn), tuple(args), kwargs)

    experimental_run_v2 = run

    def reduce(self, reduce_op, value, axis=None):
        """Combines the values of the replicas; with `axis`, over that axis as well."""
        reduce_op = as_reduce_op(reduce_op)
        if axis is None:
            return self._extended._reduce(reduce_op, value)
        return self._reduced_over_axis(reduce_op, value, axis)

    def _reduced_over_axis(self, reduce_op, value, axis):
        from runnel import dtypes
        from runnel.ops import array_ops, math_ops

        def rows(x):
            sizes = array_ops.gather(array_ops.shape(x, out_type=dtypes.int64), axis)
            return math_ops.reduce_prod(sizes) if isinstance(axis, (list, tuple)) else sizes

        def one(leaf):
            parts = self.experimental_local_results(leaf)
            total = self._extended.sum_of_processes(_sum([math_ops.reduce_sum(x, axis) for x in parts]))
            if reduce_op is ReduceOp.SUM:
                return total
            count = self._extended.sum_of_processes(_sum([rows(x) for x in parts]))
            return math_ops.truediv(total, math_ops.cast(count, total.dtype))
        return nest.map_structure(one, value)

    def experimental_local_results(self, value):
        """Returns the values of this process's replicas as a tuple."""
        return self._extended._local_results(value)

    unwrap = experimental_local_results

    def gather(self, value, axis):
        """Returns the tensors of the replicas, joined along an axis."""
        return nest.map_structure(lambda leaf: self._extended._gather_to(leaf, None, axis), value)

    def group(self, value, name=None):
        """Returns an operation that runs after the values of all replicas."""
        return self._extended._group(value, name)

    def experimental_distribute_dataset(self, dataset, options=None):
        """Returns a dataset whose batches are divided among the replicas."""
        return self._extended._experimental_distribute_dataset(dataset, options)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """Returns a distributed dataset of a function from an InputContext to the dataset of one replica's batches."""
        return self._extended._distribute_datasets_from_function(dataset_fn, options)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """Returns the values of a function from a ValueContext, one per replica."""
        return self._extended._experimental_distribute_values_from_function(value_fn)

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        """Returns the dataset of the rows of arrays."""
        return self._extended.experimental_make_numpy_dataset(numpy_input, session)

    def make_dataset_iterator(self, dataset):
        """Returns an iterator of 1.x."""
        return self._extended._make_dataset_iterator(dataset)

    def make_input_fn_iterator(self, input_fn, replication_mode=InputReplicationMode.PER_WORKER):
        """Returns an iterator of 1.x over the dataset of a function."""
        if replication_mode != InputReplicationMode.PER_WORKER:
            raise ValueError("Input replication mode not supported: %r" % replication_mode)
        with self.scope():
            return self._extended._make_input_fn_iterator(input_fn, replication_mode=replication_mode)

    def configure(self, session_config=None, cluster_spec=None, task_type=None, task_id=None):
        """Takes over what a cluster's configuration says."""
        return self._extended._configure(session_config, cluster_spec, task_type, task_id)

    def update_config_proto(self, config_proto):
        """Returns the ConfigProto for sessions."""
        return self._extended._update_config_proto(config_proto)

    def __copy__(self):
        raise RuntimeError("Must only deepcopy DistributionStrategy.")

    def __deepcopy__(self, memo):
        return self


class StrategyV1(Strategy):
    """A strategy of 1.x."""


def _sum(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


_made: dict = {}


class DefaultStrategy(StrategyV1):
    """The strategy that is current where no other one is: one replica, which is where the caller says."""

    def __init__(self):
        super().__init__(DefaultExtended(self))


def default():
    """Returns the default strategy."""
    if not _made:
        _made["default"] = DefaultStrategy()
        _made["replica"] = contexts.ReplicaContext(_made["default"], 0)
    return _made["default"]


def default_replica():
    """Returns the only replica of the default strategy."""
    default()
    return _made["replica"]


def get_loss_reduction():
    """Returns how losses of replicas are combined by an optimizer of 1.x: their mean where an estimator asks, their sum elsewhere."""
    return ReduceOp.MEAN if contexts.get_strategy()._scale_loss_for_estimator else ReduceOp.SUM


def should_run_distribute_coordinator(config):
    """Tells whether an estimator's configuration asks for a strategy over several processes."""
    return False


def init_run_config(config, train_distribute, eval_distribute, remote_cluster=None):
    """Sets the strategies of a tf.estimator.RunConfig. Raises NotImplementedError for any other than the default."""
    for strategy in (train_distribute, eval_distribute):
        if strategy is not None and type(strategy) is not DefaultStrategy:
            raise NotImplementedError("%s is not supported" % type(strategy).__name__)
    config._train_distribute, config._eval_distribute = train_distribute, eval_distribute
    config._distribute_coordinator_mode = None


def _absent(name, why):
    def __init__(self, *args, **kwargs):
        from runnel.errors import UnimplementedError
        raise UnimplementedError(None, None, "tf.distribute.%s is not supported: %s" % (name, why))
    doc = "Not supported: %s. It exists because packages check whether a strategy is one." % why
    return type(name, (Strategy,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


TPUStrategy = _absent("TPUStrategy", "there are no TPUs")
ParameterServerStrategyV1 = _absent("experimental.ParameterServerStrategy", "use that of tf.compat.v2.distribute, or tf.train.replica_device_setter")
