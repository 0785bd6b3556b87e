"""StrategyExtended: what a strategy does, for libraries and for subclasses.

The public methods check where they are called, then call the method of the same name with an underscore, which a strategy overrides.
"""

from runnel import nest
from runnel.autograph.conversion import traceable_in_graph
from runnel.core import framework
from runnel.distribute import contexts as contexts_
from runnel.distribute.contexts import ReplicaContext
from runnel.distribute.options import InputContext, InputReplicationMode, ValueContext, as_reduce_op


class StrategyExtended:
    """The part of a strategy that libraries use. This one is that of a single replica."""

    experimental_between_graph = False
    experimental_should_init = True
    experimental_require_static_shapes = False
    should_checkpoint = should_save_summary = True
    _saves_everywhere = False  # whether saving needs collectives, so that all tasks save
    steps_per_run = 1
    _global_batch_size = True  # a dataset's batches are those of all replicas together
    _default_device = None  # of what the scope contains
    experimental_enable_get_next_as_optional = True  # whether replicas get tensors without rows when a last batch has too few for them
    _cluster_resolver = None
    worker_devices = parameter_devices = ()
    first_replica = 0  # the number, in the sync group, of the first replica of this process

    def __init__(self, container_strategy):
        self._strategy = container_strategy

    def _container_strategy(self):
        """Returns the strategy of which this is the inner part."""
        return self._strategy

    _num_replicas_in_sync = property(lambda self: len(self.worker_devices) or 1)

    def devices_of_replica(self, replica):
        """Returns the devices of a replica."""
        return ("",)

    def _scope(self, strategy):
        """Returns the context manager of Strategy.scope."""
        return contexts_.Scope(strategy)

    def _default_device_scope(self):
        """Returns a context manager that sets the device of what the scope contains, or None."""
        return framework.device(self._default_device) if self._default_device else None

    # --- Functions in replicas

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        """Calls a function in each replica. Returns the results together."""
        contexts_.require_cross_replica(self._strategy)
        with self._strategy.scope():
            return self._call_for_each_replica(fn, args, kwargs or {})

    def _call_for_each_replica(self, fn, args, kwargs):
        with ReplicaContext(self._strategy, 0):
            return fn(*args, **kwargs)

    def experimental_run_steps_on_iterator(self, fn, iterator, iterations=1, initial_loop_values=None):
        """Calls `fn(context, inputs)` a number of times with the elements of an iterator, and a function of 1.x adds the last values."""
        contexts_.require_cross_replica(self._strategy)
        with self._strategy.scope():
            return self._experimental_run_steps_on_iterator(fn, iterator, iterations, initial_loop_values or {})

    def _experimental_run_steps_on_iterator(self, fn, iterator, iterations, initial_loop_values=None):
        raise NotImplementedError("must be implemented in descendants")

    # --- Variables

    def create_variable(self, make, kwargs):
        """Creates a variable in the strategy's scope; `make` creates an ordinary one."""
        contexts_.require_strategy(self._strategy)
        return self._create_variable(make, **{**kwargs, "use_resource": True, "distribute_strategy": self._strategy})

    def _create_variable(self, next_creator, **kwargs):
        return next_creator(**kwargs)

    def variable_created_in_scope(self, v):
        """Tells whether a variable belongs to this strategy."""
        return getattr(v, "_distribute_strategy", None) == self._strategy

    def read_var(self, v):
        """Returns the value of a variable."""
        from runnel.ops.array_ops import identity
        return identity(v)

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Calls `fn(variable, ...)` to update a variable; in a replica, for the replicas together."""
        kwargs = kwargs or {}
        if contexts_.get_replica_context() not in (None, contexts_.default_replica()):
            return self._replica_ctx_update(var, fn, args, kwargs, group)
        with self._strategy.scope():
            return self._update(var, traceable_in_graph(fn), args, kwargs, group)

    def _update(self, var, fn, args, kwargs, group):
        return self._update_non_slot(var, fn, (var, *args), kwargs, group)

    def _replica_ctx_update(self, var, fn, args=(), kwargs=None, group=True):
        replica = contexts_.get_replica_context()
        if replica is None:
            raise ValueError("`StrategyExtended._replica_ctx_update` must be called in a replica context.")
        return replica.merge_call(lambda strategy, *args, **kwargs: self.update(var, fn, args, kwargs, group=group), args=args, kwargs=kwargs)

    def update_non_slot(self, colocate_with, fn, args=(), kwargs=None, group=True):
        """Calls a function that updates other state."""
        contexts_.require_cross_replica(self._strategy)
        with self._strategy.scope():
            return self._update_non_slot(colocate_with, traceable_in_graph(fn), args, kwargs or {}, group)

    def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
        with contexts_.updating(0):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def non_slot_devices(self, var_list):
        """Returns where state that belongs to no variable lives."""
        return min(var_list, key=lambda variable: variable.name)

    def colocate_vars_with(self, colocate_with_variable):
        """A context manager that creates variables where another one is."""
        contexts_.require_strategy(self._strategy)
        self._validate_colocate_with_variable(colocate_with_variable)
        return framework.colocate_with(colocate_with_variable)

    def _validate_colocate_with_variable(self, colocate_with_variable):
        """Raises ValueError if variables cannot be created where this one is."""

    def value_container(self, value):
        """Returns the distributed value that a replica's value belongs to."""
        from runnel.distribute.values import value_container
        return value_container(value)

    # --- Values of replicas together

    def reduce_to(self, reduce_op, value, destinations, options=None):
        """Returns the values of the replicas combined."""
        contexts_.require_cross_replica(self._strategy)
        return self._reduce_to(as_reduce_op(reduce_op), value, destinations, options)

    def _reduce_to(self, reduce_op, value, destinations, options):
        return value

    def _reduce(self, reduce_op, value):
        """Returns a structure of values of replicas combined, as Strategy.reduce does."""
        return self.reduce_to(reduce_op, value, None)

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        """Returns several values combined."""
        contexts_.require_cross_replica(self._strategy)
        return self._batch_reduce_to(as_reduce_op(reduce_op), value_destination_pairs, options)

    def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
        return [self.reduce_to(reduce_op, value, destination, options) for value, destination in value_destination_pairs]

    def all_reduced(self, reduce_op, value):
        """Returns what all_reduce gives every replica. A tensor that all replicas share stays as it is, as in stock."""
        from runnel.distribute.values import DistributedValues
        return self.reduce_to(reduce_op, value, None) if isinstance(value, DistributedValues) else value

    def _replica_ctx_all_reduce(self, reduce_op, value, options=None):
        """Returns the tensors of a replica's structure, combined with those of the others."""
        flat = nest.flatten(value)
        replica = contexts_.get_replica_context()
        assert replica is not None, "`StrategyExtended._replica_ctx_all_reduce` must be called in a replica context"
        reduce_op = as_reduce_op(reduce_op)
        reduced = replica.merge_call(lambda strategy, *together: [self.all_reduced(reduce_op, x) for x in together], args=tuple(flat))
        return nest.pack_sequence_as(value, reduced)

    def _gather_to(self, value, destinations, axis, options=None):
        """Returns the tensors of the replicas, joined along an axis."""
        contexts_.require_cross_replica(self._strategy)
        return self._gather_to_implementation(value, destinations, axis, options)

    def _gather_to_implementation(self, value, destinations, axis, options):
        return value

    def sum_of_processes(self, tensor):
        """Returns the sum of the tensors that the processes of this strategy have."""
        return tensor

    def rows_of_processes(self, tensor, axis):
        """Returns the tensors that the processes of this strategy have, joined along an axis."""
        return tensor

    def broadcast_to(self, tensor, destinations):
        """Returns a value on other devices."""
        contexts_.require_cross_replica(self._strategy)
        return self._broadcast_to(tensor, destinations)

    def _broadcast_to(self, tensor, destinations):
        return tensor

    def _local_results(self, value):
        """Returns the values of this process's replicas as a tuple."""
        from runnel.distribute.values import DistributedValues, select_replica
        if isinstance(value, DistributedValues):
            return value.values
        if nest.is_nested(value):
            return tuple(select_replica(i, value) for i in range(len(self.worker_devices) or 1))
        return (value,)

    def _group(self, value, name=None):
        """Returns an operation that runs after the values of all replicas."""
        from runnel.ops.control_flow import group
        values = nest.flatten(self._local_results(value))
        if len(values) != 1 or name is not None:
            return group(values, name=name)
        return getattr(values[0], "op", values[0])

    # --- Input

    def _experimental_distribute_dataset(self, dataset, options):
        return dataset

    def _distribute_datasets_from_function(self, dataset_fn, options):
        return dataset_fn(InputContext())

    def _experimental_distribute_values_from_function(self, value_fn):
        return value_fn(ValueContext())

    def _make_dataset_iterator(self, dataset):
        from runnel.distribute.graph_iterators import DefaultInputIterator
        return DefaultInputIterator(dataset)

    def _make_input_fn_iterator(self, input_fn, replication_mode=InputReplicationMode.PER_WORKER):
        return self._make_dataset_iterator(input_fn(InputContext()))

    def experimental_make_numpy_dataset(self, numpy_input, session=None):
        """Returns the dataset of the rows of arrays."""
        contexts_.require_cross_replica(self._strategy)
        return self._experimental_make_numpy_dataset(numpy_input, session)

    def _experimental_make_numpy_dataset(self, numpy_input, session):
        from runnel import data
        return data.Dataset.from_tensor_slices(numpy_input)

    # --- Clusters

    def _configure(self, session_config=None, cluster_spec=None, task_type=None, task_id=None):
        """Takes over what a cluster's configuration says."""

    def _update_config_proto(self, config_proto):
        from runnel.core.protobuf import message_class
        copy = message_class("ConfigProto")()
        copy.CopyFrom(config_proto)
        return copy

    def _in_multi_worker_mode(self):
        """Tells whether replicas are in several processes; Keras asks."""
        return False

    def _use_merge_call(self):
        """Tells whether replicas wait for each other in Python; Keras asks."""
        return True

    def _get_local_replica_id(self, replica_id_in_sync_group):
        return replica_id_in_sync_group

    def _get_replica_id_in_sync_group(self, replica_id):
        return replica_id


class DefaultExtended(StrategyExtended):
    """That of the default strategy, which leaves everything where the caller says."""

    worker_devices = property(lambda self: _refuse("worker_devices"))
    parameter_devices = property(lambda self: _refuse("parameter_devices"))
    _num_replicas_in_sync = 1

    def _scope(self, strategy):
        return contexts_.DefaultScope(strategy)

    def create_variable(self, make, kwargs):
        """Creates an ordinary variable, which belongs to no strategy."""
        contexts_.require_strategy(self._strategy)
        return make(**kwargs)

    def variable_created_in_scope(self, v):
        """Tells whether a variable belongs to no other strategy."""
        return getattr(v, "_distribute_strategy", None) is None

    def _broadcast_to(self, tensor, destinations):
        if destinations is not None:
            raise NotImplementedError("The default strategy has one place: broadcast_to takes no destinations")
        return tensor

    def _local_results(self, value):
        return (value,)

    def value_container(self, value):
        """Returns the value."""
        return value


def _refuse(name):
    raise RuntimeError("%s() method unsupported by default tf.distribute.Strategy." % name)
