"""tf.distribute: the default strategy, which is one replica on the devices that the program chooses.

Libraries ask it for the number of replicas and for reductions over them. For clusters, use tf.train.Server and
replica_device_setter.
"""

import contextlib
import enum

from runnel.core import framework


class ReduceOp(enum.Enum):
    """How values of replicas are combined."""

    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """Returns the ReduceOp of a tf.VariableAggregation."""
        from runnel.ops.variables import VariableAggregation
        known = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in known:
            raise ValueError("Could not convert from `tf.VariableAggregation` %s to`tf.distribute.ReduceOp` type" % aggregation)
        return known[aggregation]


class InputReplicationMode(enum.Enum):
    """How input is divided among workers."""

    PER_WORKER, PER_REPLICA = "PER_WORKER", "PER_REPLICA"


class InputContext:
    """Which part of the input a pipeline should produce."""

    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        """Returns the batch size of one replica."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError("The `global_batch_size` %r is not divisible by `num_replicas_in_sync` %r " % (
                global_batch_size, self.num_replicas_in_sync))
        return global_batch_size // self.num_replicas_in_sync


class StrategyExtended:
    """The part of a strategy that libraries use."""

    experimental_between_graph = False
    experimental_should_init = True
    experimental_require_static_shapes = False
    should_checkpoint = should_save_summary = True
    steps_per_run = 1
    worker_devices = parameter_devices = ()

    def __init__(self, strategy):
        self._strategy = strategy

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        with ReplicaContext(self._strategy, 0):
            return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op, value, destinations, options=None):
        return value

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        return [value for value, _ in value_destination_pairs]

    def broadcast_to(self, tensor, destinations):
        return tensor

    def update(self, var, fn, args=(), kwargs=None, group=True):
        with framework.colocate_with(var):
            return fn(var, *args, **(kwargs or {}))

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        return fn(*args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable):
        return framework.colocate_with(colocate_with_variable)

    def variable_created_in_scope(self, v):
        return True

    def read_var(self, var):
        from runnel.ops.array_ops import identity
        return identity(var)

    def value_container(self, value):
        return value

    def non_slot_devices(self, var_list):
        return min(var_list, key=lambda variable: variable.name)


class Strategy:
    """A single replica: everything runs where the caller says."""

    num_replicas_in_sync = 1
    cluster_resolver = None

    def __init__(self):
        self._extended = StrategyExtended(self)

    @property
    def extended(self):
        """The part of the strategy that libraries use."""
        return self._extended

    @contextlib.contextmanager
    def scope(self):
        """A context manager that makes this the current strategy."""
        yield self

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls `fn`."""
        return self._extended.call_for_each_replica(fn, args, kwargs)

    experimental_run_v2 = run

    def reduce(self, reduce_op, value, axis=None):
        """Reduces over the batch dimension if `axis` is given; with one replica there is nothing else to combine."""
        if axis is None:
            return value
        from runnel import nest
        from runnel.ops import math_ops
        reduced = math_ops.reduce_mean if ReduceOp(getattr(reduce_op, "value", reduce_op)) is ReduceOp.MEAN else math_ops.reduce_sum
        return nest.map_structure(lambda x: reduced(x, axis), value)

    def experimental_local_results(self, value):
        return (value,)

    unwrap = experimental_local_results

    def group(self, value, name=None):
        from runnel.ops.control_flow import group
        return group(value, name=name)

    def experimental_distribute_dataset(self, dataset, options=None):
        return dataset

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        from runnel import data
        return data.Dataset.from_tensor_slices(numpy_input)

    def make_dataset_iterator(self, dataset):
        from runnel import data
        return data.make_initializable_iterator(dataset)

    def make_input_fn_iterator(self, input_fn, replication_mode=InputReplicationMode.PER_WORKER):
        return self.make_dataset_iterator(input_fn(InputContext()))

    def update_config_proto(self, config_proto):
        return config_proto


class MirroredStrategy(Strategy):
    """Not supported. It exists because packages check whether a strategy is one."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.MirroredStrategy is not supported")


class MultiWorkerMirroredStrategy(Strategy):
    """Not supported. It exists because packages check whether a strategy is one."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.MultiWorkerMirroredStrategy is not supported")


class TPUStrategy(Strategy):
    """Not supported: there are no TPUs. It exists because packages check whether a strategy is one."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.TPUStrategy is not supported: there are no TPUs")


class DistributedValues:
    """Values of several replicas, one each: `values`."""

    def __init__(self, values):
        self._values = tuple(values)

    values = property(lambda self: self._values)


class DistributedDataset:
    """The base of datasets that are divided among replicas."""


class DistributedIterator:
    """The base of iterators over such datasets."""


class ReplicaContext:
    """The context of code inside a replica."""

    replica_id_in_sync_group = 0

    def __init__(self, strategy, replica_id_in_sync_group):
        self._strategy = strategy

    strategy = property(lambda self: self._strategy)
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    devices = property(lambda self: ("",))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def merge_call(self, merge_fn, args=(), kwargs=None):
        return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op, value, options=None):
        return value


_default = Strategy()
_context = ReplicaContext(_default, 0)


def get_strategy():
    """Returns the current strategy."""
    return _default


def get_replica_context():
    """Returns the context of the current replica."""
    return _context


def has_strategy():
    """Tells whether a strategy other than the default is current."""
    return False


def in_cross_replica_context():
    """Tells whether the caller is outside of a replica."""
    return False


def get_loss_reduction():
    """Returns how losses of replicas are combined."""
    return ReduceOp.MEAN


def should_run_distribute_coordinator(config):
    """Tells whether an estimator's configuration asks for a strategy over several processes."""
    return False


def init_run_config(config, train_distribute, eval_distribute, remote_cluster=None):
    """Sets the strategies of a tf.estimator.RunConfig. Raises NotImplementedError for any other than the default."""
    for strategy in (train_distribute, eval_distribute):
        if strategy is not None and type(strategy) is not Strategy:
            raise NotImplementedError("%s is not supported" % type(strategy).__name__)
    config._train_distribute, config._eval_distribute = train_distribute, eval_distribute
    config._distribute_coordinator_mode = None


def __getattr__(name):
    if name == "Server":
        from runnel.train.server_lib import Server
        return Server
    raise AttributeError("tf.distribute has no %r: see doc/python_names.md" % name)
