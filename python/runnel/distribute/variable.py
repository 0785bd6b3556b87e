"""Variables with a copy on each replica."""

import weakref

from runnel import _core
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.distribute import contexts as contexts_
from runnel.distribute.options import ReduceOp
from runnel.distribute.values import DistributedValues, Mirrored, select_replica
from runnel.ops.resource_variable import ResourceVariable
from runnel.ops.variables import VariableAggregation, VariableSynchronization
from runnel.saved_model.save_context import in_save_context, is_saving_non_distributed


class DistributedVariable(ResourceVariable, DistributedValues):
    """A variable with a copy on each replica. Inside a replica it is that replica's copy, outside the first one."""

    is_distributed_variable = True
    _policy = None
    _packed_var = None

    def __init__(self, strategy, copies, aggregation, synchronization=None):
        own = {"_handle", "_destroyer"}
        self.__dict__.update({name: value for name, value in copies[0].__dict__.items() if name not in own})
        self._values, self._distribute_strategy = tuple(copies), strategy
        self._aggregation = aggregation
        if synchronization is not None:
            self._synchronization = synchronization
        for replica, copy in enumerate(copies):
            copy._distributed_container, copy._replica = weakref.ref(self), replica
        if self._in_graph_mode and len(copies) > 1:
            from runnel.ops.control_flow import group
            self._initializer_op = group(*[copy.initializer for copy in copies])

    _handle = property(lambda self: self._get()._handle)
    distribute_strategy = property(lambda self: self._distribute_strategy)

    @property
    def device(self):
        """The device of this replica's copy."""
        return self._get().device

    def is_initialized(self, name=None):
        """Returns a bool tensor: whether all copies have a value."""
        from runnel.ops.math_ops import logical_and
        result = self._values[0].is_initialized()
        for copy in self._values[1:-1]:
            result = logical_and(result, copy.is_initialized())
        return result if len(self._values) == 1 else logical_and(result, self._values[-1].is_initialized(), name=name)

    def _as_graph_element(self):
        return self._get()._as_graph_element()

    # --- Changes

    def _changed_by(self, change, value):
        """Calls `change(copy, value)` for the copies that should change. In a replica, values of all replicas are aggregated first."""
        replica = contexts_.contexts.stack[-1][1] if contexts_.contexts.stack else None
        if contexts_.contexts.update_replica is not None or is_saving_non_distributed():
            return change(self._get(), value)
        if replica is None or replica.strategy is not self._distribute_strategy:
            return self._all(change, value)
        if self._aggregation == VariableAggregation.NONE:  # as in stock, the copies part
            return change(self._get(), value)

        def together(strategy_, values):
            if self._aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
                values = select_replica(0, values)
            else:
                values = strategy_.extended.reduce_to(ReduceOp.from_variable_aggregation(self._aggregation), values, self)
            return self._all(change, values)
        if not getattr(value, "_is_composite", False):
            value = convert_to_tensor(value, self._dtype)
        return replica.merge_call(together, args=(value,))

    def _all(self, change, value):
        mark_unsaveable()
        if contexts_.in_cross_replica_context() and contexts_.get_strategy() is self._distribute_strategy:
            return self._updated(change, value)
        with self._distribute_strategy.scope() if not contexts_.has_strategy() else contexts_.cross_replica(self._distribute_strategy):
            return self._updated(change, value)

    def _updated(self, change, value):
        return self._distribute_strategy.extended._update(self, change, (value,), {}, True)

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Sets the value of the copies."""
        return self._changed_by(lambda copy, value: copy.assign(value, use_locking, name, read_value), value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the copies."""
        return self._changed_by(lambda copy, value: copy.assign_add(value, use_locking, name, read_value), delta)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Subtracts from the copies."""
        return self._changed_by(lambda copy, value: copy.assign_sub(value, use_locking, name, read_value), delta)

    def _scatter(self, op, sparse_delta, use_locking, name):
        return self._changed_by(lambda copy, value: copy._scatter(op, value, use_locking, name), sparse_delta)

    # --- Values

    def _get_replica(self, replica_id):
        return self._values[replica_id]

    def _get_cross_replica(self):
        return self._values[0]

    def __deepcopy__(self, memo):
        import copy
        memo[id(self)] = made = type(self)(self._distribute_strategy, copies_of(self._values, memo, copy.deepcopy), self._aggregation,
                                           self._synchronization)
        return made

    __repr__, __str__ = DistributedValues.__repr__, DistributedValues.__str__

    def __reduce__(self):
        raise NotImplementedError("A distributed variable cannot be pickled")


def copies_of(variables, memo, deepcopy):
    """Returns deep copies of variables, each on the device of its original."""
    made = []
    for variable in variables:
        with framework.device(variable.device):
            made.append(deepcopy(variable, memo))
    return made


class MirroredVariable(DistributedVariable, Mirrored):
    """A variable whose copies are kept equal."""

    _places = None


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies change on their own; outside of replicas its value is their aggregate."""

    def _changed_by(self, change, value):
        if not self._is_aggregated():
            return change(self._get(), value)
        return self._all(change, value)

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Sets the value: in a replica its own, outside that of all copies, so that their aggregate is the value."""
        if self._is_aggregated() and self._aggregation == VariableAggregation.SUM:
            value = convert_to_tensor(value, self._dtype)
            replicas = self._distribute_strategy.num_replicas_in_sync
            value = value / replicas if self._dtype.is_floating or self._dtype.is_complex else value // replicas
        return super().assign(value, use_locking, name, read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the value."""
        self._check_change("assign_add")
        return super().assign_add(delta, use_locking, name, read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Subtracts from the value."""
        self._check_change("assign_sub")
        return super().assign_sub(delta, use_locking, name, read_value)

    def _check_change(self, method):
        if self._is_aggregated() and self._aggregation == VariableAggregation.SUM:
            raise ValueError("SyncOnReadVariable does not support `%s` in cross-replica context when aggregation is set to "
                             "`tf.VariableAggregation.SUM`." % method)

    @staticmethod
    def _is_aggregated():
        """Tells whether the value here is that of all replicas together."""
        return contexts_.current_replica() is None and not is_saving_non_distributed()

    def _scatter(self, op, sparse_delta, use_locking, name):
        if is_saving_non_distributed():
            return super()._scatter(op, sparse_delta, use_locking, name)
        raise NotImplementedError("scatter_%s is not implemented for variables that are synchronized when they are read" % op.removeprefix("Scatter").lower())

    def _read(self):
        if contexts_.current_replica() is not None or self._aggregation == VariableAggregation.NONE or is_saving_non_distributed():
            return super()._read()
        if self._aggregation == VariableAggregation.SUM:
            mark_unsaveable()
        return self._get_cross_replica()

    def _get_cross_replica(self):
        if self._aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
            return self._values[0]._read()
        values = [copy._read() for copy in self._values]
        total = values[0]
        for value in values[1:]:
            total = total + value
        total = self._distribute_strategy.extended.sum_of_processes(total)
        return total / self._distribute_strategy.num_replicas_in_sync if self._aggregation == VariableAggregation.MEAN else total

    def value(self):
        """Returns the value: in a replica its own, outside the aggregate."""
        return self._read()

    def read_value(self):
        """Returns the value: in a replica its own, outside the aggregate."""
        return self._read()

    def _as_graph_element(self):
        if contexts_.current_replica() is not None:
            return super()._as_graph_element()
        with framework.control_dependencies(None):
            return convert_to_tensor(self._read())

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        value = self._read()
        if dtype is not None and not value.dtype.is_compatible_with(dtype):
            raise ValueError("Incompatible type conversion requested to type %s for variable of type %s" % (dtype.name, value.dtype.name))
        return value

    def numpy(self):
        """Returns the value as an array."""
        return self._read().numpy()


def mark_unsaveable():
    """Notes that the function under construction does what a model, in which variables have one copy, cannot do."""
    graph = None if in_save_context() else _core.current()
    if graph is not None and graph._building_function:
        graph._scopes["unsaveable"] = True


AGGREGATIONS = (VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN, VariableAggregation.ONLY_FIRST_REPLICA)
_SYNCHRONIZATIONS = (VariableSynchronization.AUTO, VariableSynchronization.ON_READ, VariableSynchronization.ON_WRITE)


def settings(kwargs):
    """Returns the synchronization and the aggregation that a variable is created with. Raises ValueError for others than strategies know."""
    synchronization = kwargs.get("synchronization") or VariableSynchronization.AUTO
    aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
    name = kwargs.get("name")
    if synchronization == VariableSynchronization.NONE:
        raise ValueError("`NONE` variable synchronization mode is not supported with tf.distribute strategy. "
                         "Please change the `synchronization` for variable: " + str(name))
    if synchronization not in _SYNCHRONIZATIONS:
        raise ValueError("Invalid variable synchronization mode: %s for variable: %s" % (synchronization, name))
    if aggregation not in AGGREGATIONS:
        raise ValueError("Invalid variable aggregation mode: %s for variable: %s" % (aggregation, name))
    return VariableSynchronization.ON_WRITE if synchronization == VariableSynchronization.AUTO else synchronization, aggregation


def create(strategy, devices, make, kwargs):
    """Creates a variable with a copy on each device; `make` creates one of them."""
    from runnel.eager.backprop import stop_recording
    kwargs = dict(kwargs)
    kwargs.pop("caching_device", None)
    synchronization, aggregation = settings(kwargs)
    kwargs["synchronization"] = synchronization
    collections = list(kwargs.pop("collections", None) or [framework.GraphKeys.GLOBAL_VARIABLES])
    kwargs["collections"] = []
    copies = []
    for i, device in enumerate(devices):
        own = dict(kwargs)
        if not i:
            own["initial_value"] = strategy.extended.initial_value(own)
        else:
            own["initial_value"] = _same_as(copies[0], device)
            own["name"] = "%s/replica_%d/" % (copies[0].name.split(":")[0], i)
            own["dtype"] = own["shape"] = None
        with framework.init_scope(), framework.device(device), stop_recording():
            copies.append(make(**own))
    kind = SyncOnReadVariable if synchronization == VariableSynchronization.ON_READ else MirroredVariable
    made = kind(strategy, copies, aggregation, synchronization)
    _collect(made, collections)
    return made


def _same_as(first, device):
    from runnel.ops.array_ops import identity

    def value():
        if not first._in_graph_mode:
            return identity(first.value())
        with framework.device(device):
            return identity(first.initial_value)
    return value


def _collect(made, collections):
    """Puts a variable, instead of its copies, into the collections of the graph."""
    graph = framework.get_default_graph()
    if not made._in_graph_mode:
        if framework.GraphKeys.GLOBAL_STEP in collections:
            graph.add_to_collections([framework.GraphKeys.GLOBAL_STEP], made)
        return
    if made.trainable:
        trainable = graph.get_collection_ref(framework.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = [variable for variable in trainable if not any(variable is copy for copy in made.values)]
        if framework.GraphKeys.TRAINABLE_VARIABLES not in collections:
            collections.append(framework.GraphKeys.TRAINABLE_VARIABLES)
    graph.add_to_collections(collections, made)


def check_of_strategy(variable, strategy):
    """Raises ValueError if a variable does not belong to a strategy."""
    if not isinstance(variable, DistributedVariable):
        raise ValueError("`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not: %r" % (variable,))
    if variable.distribute_strategy is not strategy:
        raise ValueError("`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not %s created in scope: %s"
                         % (variable, variable.distribute_strategy))
