"""Values of several replicas: one per replica, or equal ones."""

import collections.abc
import operator

from runnel import nest
from runnel.core import convert
from runnel.core.type_spec import CompositeTensor, TypeSpec, type_spec_from_value
from runnel.distribute.contexts import current_replica


class DistributedValues:
    """Values of several replicas, one each: `values`."""

    def __init__(self, values):
        self._values = tuple(values)

    values = property(lambda self: self._values)
    _primary = property(lambda self: self._values[0])

    @property
    def _devices(self):
        """The full names of the devices of the values."""
        from runnel.distribute import device_util
        return tuple(device_util.canonicalize(value.device) for value in self._values)

    def _get(self):
        """Returns the value of the current replica, or of the first outside of replicas."""
        return self._values[current_replica() or 0]

    def __repr__(self):
        return self._text("  %d: %r")

    def __str__(self):
        return self._text("  %d: %s")

    def _text(self, form):
        return "%s:{\n%s\n}" % (type(self).__name__, ",\n".join(form % row for row in enumerate(self._values)))


class PerReplica(DistributedValues, CompositeTensor):
    """Values that differ from replica to replica. Functions take and return them."""

    _counts_as_tensor = False

    @property
    def _type_spec(self):
        return PerReplicaSpec(*[type_spec_from_value(value) for value in self._values])

    def __hash__(self):
        return id(self)


class DistributedDelegate(DistributedValues):
    """Distributed values that act as the one of the current replica, or as the first: they have its attributes and operators."""

    def __getattr__(self, name):
        if name.startswith(("__", "_values", "_self_", "_distributed_container")):
            raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))
        return getattr(self._get(), name)


def _own(value):
    return value._get() if isinstance(value, DistributedDelegate) else value


def _delegate_operators():
    def binary(function):
        return lambda self, other: function(_own(self), _own(other))

    def reflected(function):
        return lambda self, other: function(_own(other), _own(self))

    def unary(function):
        return lambda self: function(_own(self))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
        function = getattr(operator, "__%s__" % name)
        setattr(DistributedDelegate, "__%s__" % name, binary(function))
        setattr(DistributedDelegate, "__r%s__" % name, reflected(function))
    for name in ("lt", "le", "gt", "ge", "getitem", "matmul"):
        setattr(DistributedDelegate, "__%s__" % name, binary(getattr(operator, "__%s__" % name)))
    for name in ("neg", "abs", "invert"):
        setattr(DistributedDelegate, "__%s__" % name, unary(getattr(operator, "__%s__" % name)))
    DistributedDelegate.__pow__ = lambda self, other, modulo=None: pow(_own(self), _own(other)) if modulo is None else pow(
        _own(self), _own(other), modulo)
    DistributedDelegate.__rpow__ = lambda self, other: pow(_own(other), _own(self))


_delegate_operators()


class Mirrored(DistributedDelegate):
    """Values that are the same in every replica.

    `devices` says where they are, if they are not there yet.
    """

    def __init__(self, values, devices=None):
        super().__init__(values)
        self._places = devices

    @property
    def _devices(self):
        """The full names of the devices of the values."""
        return self._places or super()._devices

    def _as_graph_element(self):
        return self._get()


convert.register_tensor_conversion_function(
    Mirrored, lambda value, dtype=None, name=None, as_ref=False: convert.convert_to_tensor(value._get(), dtype, name=name))


class PerReplicaSpec(TypeSpec):
    """The TypeSpec of PerReplica."""

    def __init__(self, *value_specs):
        self._value_specs = tuple(value_specs)

    value_type = property(lambda self: PerReplica)

    def _serialize(self):
        return self._value_specs

    @property
    def _component_specs(self):
        return self._value_specs

    def _to_components(self, value):
        return value._values

    def _from_components(self, components):
        return PerReplica(components)


def regroup(values, wrap_class=PerReplica, always_wrap=False):
    """Returns the structure of the replicas' values together: `wrap_class` of those that differ, or of all if `always_wrap`."""
    first = values[0]
    if isinstance(first, (list, tuple)):
        for other in values[1:]:
            if not isinstance(other, (list, tuple)) or len(other) != len(first):
                raise AssertionError("Values of replicas differ in their structure: %s and %s" % (first, other))
        parts = [regroup(tuple(items), wrap_class, always_wrap) for items in zip(*values)]
        if isinstance(first, list):
            return parts
        return first._make(parts) if hasattr(first, "_fields") else tuple(parts)
    if isinstance(first, collections.abc.Mapping):
        for other in values[1:]:
            if not isinstance(other, collections.abc.Mapping) or set(other) != set(first):
                raise AssertionError("Values of replicas differ in their keys: %s and %s" % (first, other))
        return type(first)({key: regroup(tuple(value[key] for value in values), wrap_class, always_wrap) for key in first})
    container = value_container(first)
    if all(other is first for other in values[1:]) and (is_distributed_variable(first) or not always_wrap and container is first):
        return first
    if container is not first and not getattr(first, "_is_update", False):
        return container
    return wrap_class(values)


def value_container(value):
    """Returns the distributed variable of which a variable is a copy; other values are returned as they are."""
    if is_distributed_variable(value):
        return value
    reference = getattr(value, "_distributed_container", None)
    container = None if reference is None else reference()
    return value if container is None else container


def select_replica(replica_id, structured):
    """Returns a structure with the values of one replica in place of distributed ones; distributed variables stay."""
    return nest.map_structure(
        lambda value: value.values[replica_id] if isinstance(value, DistributedValues) and not is_distributed_variable(value) else value, structured)


def select_replica_mirrored(replica_id, structured):
    """Returns the values of one replica. Raises TypeError if those of the replicas may differ."""
    for value in nest.flatten(structured):
        if isinstance(value, DistributedValues) and not is_mirrored(value):
            raise TypeError("Expected value to be mirrored across replicas: %s in %s." % (value, structured))
    return select_replica(replica_id, structured)


def is_distributed_variable(value):
    """Tells whether a value is a variable with copies on replicas."""
    return getattr(value, "is_distributed_variable", False)


def is_distributed_table(value):
    """Tells whether a value is a table with copies on workers."""
    return getattr(value, "is_distributed_table", False)


def is_mirrored(value):
    """Tells whether a value is kept the same in all replicas."""
    return isinstance(value, Mirrored)


def is_sync_on_read(value):
    """Tells whether the replicas' values may differ."""
    return not is_mirrored(value)
