"""The base of strategies, and the default one: a single replica on the devices that the program chooses."""

import contextlib
import enum

from runnel.autograph.conversion import traceable_in_graph
from runnel.core import framework
from runnel.distribute.contexts import ReplicaContext, contexts, cross_replica


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


def as_reduce_op(reduce_op):
    """Returns the ReduceOp that a string such as "sum" or a ReduceOp of another face means."""
    return ReduceOp(str(getattr(reduce_op, "value", reduce_op)).upper())


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


class InputOptions:
    """Options of distributed datasets, which are kept."""

    def __init__(self, experimental_fetch_to_device=None, experimental_replication_mode=InputReplicationMode.PER_WORKER,
                 experimental_place_dataset_on_device=False, experimental_per_replica_buffer_size=1):
        self.experimental_fetch_to_device = experimental_fetch_to_device
        self.experimental_replication_mode = experimental_replication_mode
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size


class RunOptions:
    """Options of Strategy.run, which are kept: functions run the ordinary way."""

    def __init__(self, experimental_enable_dynamic_batch_size=True, experimental_bucketizing_dynamic_shape=False, experimental_xla_options=None):
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size
        self.experimental_bucketizing_dynamic_shape = experimental_bucketizing_dynamic_shape
        self.experimental_xla_options = experimental_xla_options


class ValueContext:
    """What the function of experimental_distribute_values_from_function is told."""

    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class StrategyExtended:
    """The part of a strategy that libraries use."""

    experimental_between_graph = False
    experimental_should_init = True
    experimental_require_static_shapes = False
    should_checkpoint = should_save_summary = True
    steps_per_run = 1
    _global_batch_size = True  # a dataset's batches are those of all replicas together
    worker_devices = parameter_devices = ()
    first_replica = 0  # the number, in the sync group, of the first replica of this process

    def __init__(self, strategy):
        self._strategy = strategy

    def devices_of_replica(self, replica):
        """Returns the devices of a replica."""
        return ("",)

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        """Calls a function in each replica. Returns the results together."""
        with ReplicaContext(self._strategy, 0):
            return fn(*args, **(kwargs or {}))

    def create_variable(self, make, kwargs):
        """Creates a variable in the strategy's scope; `make` creates an ordinary one."""
        return make(**kwargs)

    def reduce_to(self, reduce_op, value, destinations, options=None):
        """Returns the values of the replicas combined."""
        return value

    def all_reduced(self, reduce_op, value):
        """Returns what all_reduce gives every replica. A tensor that all replicas share stays as it is, as in stock."""
        from runnel.distribute.values import DistributedValues
        return self.reduce_to(reduce_op, value, None) if isinstance(value, DistributedValues) else value

    def sum_of_processes(self, tensor):
        """Returns the sum of the tensors that the processes of this strategy have."""
        return tensor

    def rows_of_processes(self, tensor, axis):
        """Returns the tensors that the processes of this strategy have, joined along an axis."""
        return tensor

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        """Returns several values combined."""
        return [self.reduce_to(reduce_op, value, destination, options) for value, destination in value_destination_pairs]

    def broadcast_to(self, tensor, destinations):
        """Returns a value on other devices."""
        return tensor

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Calls `fn(variable, ...)` to update a variable."""
        with framework.colocate_with(var):
            return fn(var, *args, **(kwargs or {}))

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        """Calls a function that updates other state."""
        return fn(*args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable):
        """A context manager that creates variables where another one is."""
        return framework.colocate_with(colocate_with_variable)

    def variable_created_in_scope(self, v):
        """Tells whether a variable belongs to this strategy."""
        return getattr(v, "_distribute_strategy", None) in (None, self._strategy)

    def read_var(self, var):
        """Returns the value of a variable."""
        from runnel.ops.array_ops import identity
        return identity(var)

    def value_container(self, value):
        """Returns the distributed value that a replica's value belongs to."""
        container = getattr(value, "_distributed_container", None)
        return value if container is None else container()

    def _in_multi_worker_mode(self):
        """Tells whether replicas are in several processes; Keras asks."""
        return False

    def non_slot_devices(self, var_list):
        """Returns where state that belongs to no variable lives."""
        return min(var_list, key=lambda variable: variable.name)


class Strategy:
    """How a computation is divided among devices. This one is a single replica; everything runs where the caller says."""

    num_replicas_in_sync = 1
    cluster_resolver = None
    _should_use_with_coordinator = False  # the legacy Keras asks

    def __init__(self, extended=None):
        self._extended = StrategyExtended(self) if extended is None else extended

    extended = property(lambda self: self._extended)

    @contextlib.contextmanager
    def scope(self):
        """A context manager that makes this the current strategy."""
        if self is _made.get("default"):
            yield self
            return
        if contexts.stack and contexts.stack[-1][0] is not self:
            raise RuntimeError("Cannot scope within strategy scope of another strategy: %r" % (contexts.stack[-1][0],))
        with cross_replica(self), self._placed():
            yield self

    def _placed(self):
        return contextlib.nullcontext()

    def experimental_run(self, fn, input_iterator=None):
        """Calls `fn` in each replica, with the next element of an iterator if there is one."""
        with self.scope():
            return self.run(fn, args=() if input_iterator is None else (input_iterator.get_next(),))

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls `fn` in each replica, with the values of that replica in place of distributed ones."""
        if not isinstance(args, (list, tuple)):
            raise ValueError("positional args must be a list or tuple, got %s" % type(args))
        if contexts.stack and contexts.stack[-1][1] is not None and contexts.stack[-1][0] is self:
            raise RuntimeError("Strategy.run cannot be called inside a replica")
        with self.scope():
            return self._extended.call_for_each_replica(traceable_in_graph(fn), tuple(args), kwargs)

    experimental_run_v2 = run

    def reduce(self, reduce_op, value, axis=None):
        """Combines the values of the replicas; with `axis`, over that axis as well."""
        reduce_op = as_reduce_op(reduce_op)
        if axis is None:
            return self._extended.reduce_to(reduce_op, value, None)
        return self._reduced_over_axis(reduce_op, value, axis)

    def _reduced_over_axis(self, reduce_op, value, axis):
        from runnel import dtypes, nest
        from runnel.ops import array_ops, math_ops

        def one(leaf):
            parts = self.experimental_local_results(leaf)
            total = self._extended.sum_of_processes(_sum([math_ops.reduce_sum(x, axis) for x in parts]))
            if reduce_op is ReduceOp.SUM:
                return total
            count = self._extended.sum_of_processes(_sum([array_ops.shape(x, out_type=dtypes.int64)[axis] for x in parts]))
            return math_ops.truediv(total, math_ops.cast(count, total.dtype))
        return nest.map_structure(one, value)

    def experimental_local_results(self, value):
        """Returns the values of the replicas as a tuple."""
        from runnel.distribute.values import DistributedValues
        return value.values if isinstance(value, DistributedValues) else (value,)

    unwrap = experimental_local_results

    def gather(self, value, axis):
        """Returns the tensors of the replicas, joined along an axis."""
        from runnel import nest
        from runnel.ops import array_ops

        def one(leaf):
            parts = list(self.experimental_local_results(leaf))
            return self._extended.rows_of_processes(array_ops.concat(parts, axis) if len(parts) > 1 else parts[0], axis)
        return nest.map_structure(one, value)

    def group(self, value, name=None):
        """Returns an operation that runs after the values of all replicas."""
        from runnel.ops.control_flow import group
        return group(*self.experimental_local_results(value), name=name)

    def experimental_distribute_dataset(self, dataset, options=None):
        """Returns a dataset whose batches are divided among the replicas."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """Returns a distributed dataset of a function from an InputContext to the dataset of one replica's batches."""
        return dataset_fn(InputContext(1, 0, self.num_replicas_in_sync))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """Returns the values of a function from a ValueContext, one per replica."""
        return value_fn(ValueContext(0, 1))

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        """Returns the dataset of the rows of arrays."""
        from runnel import data
        return data.Dataset.from_tensor_slices(numpy_input)

    def make_dataset_iterator(self, dataset):
        """Returns an iterator of 1.x."""
        from runnel import data
        return data.make_initializable_iterator(dataset)

    def make_input_fn_iterator(self, input_fn, replication_mode=InputReplicationMode.PER_WORKER):
        """Returns an iterator of 1.x over the dataset of a function."""
        return self.make_dataset_iterator(input_fn(InputContext()))

    def update_config_proto(self, config_proto):
        """Returns the ConfigProto for sessions."""
        return config_proto

    def __deepcopy__(self, memo):
        return self


def _sum(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


_made: dict = {}


def default():
    """Returns the default strategy."""
    if not _made:
        _made["default"] = Strategy()
        _made["replica"] = ReplicaContext(_made["default"], 0)
    return _made["default"]


def default_replica():
    """Returns the only replica of the default strategy."""
    default()
    return _made["replica"]


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


def _absent(name, why):
    def __init__(self, *args, **kwargs):
        from runnel.errors import UnimplementedError
        raise UnimplementedError(None, None, "tf.distribute.%s is not supported: %s" % (name, why))
    doc = "Not supported: %s. It exists because packages check whether a strategy is one." % why
    return type(name, (Strategy,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


TPUStrategy = _absent("TPUStrategy", "there are no TPUs")
ParameterServerStrategyV1 = _absent("experimental.ParameterServerStrategy", "use that of tf.compat.v2.distribute, or tf.train.replica_device_setter")
