"""Variables with a copy on each replica."""

import weakref

from runnel.core.convert import convert_to_tensor
from runnel.distribute import contexts as contexts_
from runnel.distribute.values import DistributedValues, Mirrored
from runnel.ops.resource_variable import ResourceVariable
from runnel.ops.variables import VariableAggregation, VariableSynchronization

class DistributedVariable(ResourceVariable, DistributedValues):
    """A variable with a copy on each replica. Inside a replica it is that replica's copy, outside the first one."""

    def __init__(self, strategy, copies, synchronization, aggregation):
        own = {"_handle", "_destroyer"}
        self.__dict__.update({name: value for name, value in copies[0].__dict__.items() if name not in own})
        self._values, self._distribute_strategy = tuple(copies), strategy
        self._synchronization, self._aggregation = synchronization, aggregation
        for replica, copy in enumerate(copies):
            copy._distributed_container, copy._replica = weakref.ref(self), replica

    _handle = property(lambda self: self._get()._handle)
    distribute_strategy = property(lambda self: self._distribute_strategy)
    _primary = property(lambda self: self._values[0])

    @property
    def device(self):
        """The device of this replica's copy."""
        return self._get().device

    def _changed_by(self, method, value, *args, **kwargs):
        """Calls a method of the copies that should change."""
        from runnel.distribute.values import of_replica
        replica = contexts_.contexts.stack[-1][1] if contexts_.contexts.stack else None
        if contexts_.contexts.update_replica is not None:
            return getattr(self._get(), method)(value, *args, **kwargs)
        if replica is None:
            return self._all(method, value, args, kwargs)
        if self._aggregation == VariableAggregation.NONE:  # as in stock, the copies part
            return getattr(self._get(), method)(value, *args, **kwargs)

        def together(strategy_, values):
            if self._aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
                values = of_replica(0, values)
            else:
                from runnel.distribute.strategy import ReduceOp
                values = strategy_.extended.reduce_to(ReduceOp.from_variable_aggregation(self._aggregation), values, self)
            return self._all(method, values, args, kwargs)
        if not getattr(value, "_is_composite", False):
            value = convert_to_tensor(value, self._dtype)
        return replica.merge_call(together, args=(value,))

    def _all(self, method, value, args, kwargs):
        from runnel.core import framework
        from runnel.distribute.values import of_replica
        results = []
        for i, copy in enumerate(self._values):
            with contexts_.updating(i), framework.device(copy.device):
                results.append(getattr(copy, method)(of_replica(i, value), *args, **kwargs))
        return self if framework.executing_eagerly() else results[0]

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Sets the value of the copies."""
        return self._changed_by("assign", value, use_locking, name, read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the copies."""
        return self._changed_by("assign_add", delta, use_locking, name, read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Subtracts from the copies."""
        return self._changed_by("assign_sub", delta, use_locking, name, read_value)

    def _scatter(self, op, sparse_delta, use_locking, name):
        return self._changed_by("_scatter_values", sparse_delta, op, use_locking, name)

    __repr__, __str__ = DistributedValues.__repr__, DistributedValues.__str__

    def __reduce__(self):
        raise NotImplementedError("A distributed variable cannot be pickled")


class MirroredVariable(DistributedVariable, Mirrored):
    """A variable whose copies are kept equal."""


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies change on their own; outside of replicas its value is their aggregate."""

    def _changed_by(self, method, value, *args, **kwargs):
        if contexts_.current_replica() is not None:
            return getattr(self._get(), method)(value, *args, **kwargs)
        if self._aggregation == VariableAggregation.SUM:
            if method != "assign":
                raise ValueError("SyncOnReadVariable does not support `%s` in cross-replica context when aggregation is set to "
                                 "`tf.VariableAggregation.SUM`." % method)
            replicas = self._distribute_strategy.num_replicas_in_sync
            value = value / replicas if self._dtype.is_floating else value // replicas
        return self._all(method, value, args, kwargs)

    def _read(self):
        if contexts_.current_replica() is not None or self._aggregation == VariableAggregation.NONE:
            return super()._read()
        values = [copy._read() for copy in self._values]
        if self._aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
            return values[0]
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

    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        value = self._read()
        if dtype is not None and not value.dtype.is_compatible_with(dtype):
            raise ValueError("Incompatible type conversion requested to type %s for variable of type %s" % (dtype.name, value.dtype.name))
        return value

    def numpy(self):
        """Returns the value as an array."""
        return self._read().numpy()


def create(strategy, devices, make, kwargs):
    """Creates a variable with a copy on each device; `make` creates one of them."""
    from runnel.core import framework
    synchronization = kwargs.get("synchronization") or VariableSynchronization.AUTO
    aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
    if synchronization == VariableSynchronization.NONE:
        raise ValueError("`NONE` variable synchronization mode is not supported with %s. Please change the `synchronization` for variable: %s" % (
            type(strategy).__name__, kwargs.get("name")))
    if synchronization == VariableSynchronization.AUTO:
        synchronization = VariableSynchronization.ON_WRITE
    copies = []
    for i, device in enumerate(devices):
        own = dict(kwargs)
        if not i:
            own["initial_value"] = strategy.extended.initial_value(own)
        else:
            first = copies[0]
            own["initial_value"] = lambda first=first: first.read_value()
            own["name"] = "%s/replica_%d" % (first.name.split(":")[0], i)
            own["dtype"] = own["shape"] = None
        with framework.init_scope(), framework.device(device):
            copies.append(make(**own))
    kind = SyncOnReadVariable if synchronization == VariableSynchronization.ON_READ else MirroredVariable
    return kind(strategy, copies, synchronization, aggregation)
