"""Values of several replicas: one per replica, or equal ones."""

from runnel import nest
from runnel.core.type_spec import CompositeTensor, TypeSpec, type_spec_from_value
from runnel.distribute.contexts import current_replica


class DistributedValues:
    """Values of several replicas, one each: `values`."""

    def __init__(self, values):
        self._values = tuple(values)

    values = property(lambda self: self._values)

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


class Mirrored(DistributedValues):
    """Values that are the same in every replica."""


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


def of_replica(replica, structure):
    """Returns a structure with the values of one replica in place of distributed ones."""
    def one(value):
        if not isinstance(value, DistributedValues) or hasattr(value, "_component_of_replica"):
            return value
        return value.values[replica]
    return nest.map_structure(one, structure)


def regrouped(structures):
    """Returns the structure of the replicas' values together."""
    first = structures[0]
    if nest.is_nested(first) and all(nest.is_nested(other) and len(other) == len(first) for other in structures):
        if isinstance(first, dict):
            return type(first)((key, regrouped([other[key] for other in structures])) for key in first)
        parts = [regrouped(items) for items in zip(*structures)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if all(other is first for other in structures):
        return first
    containers = [getattr(value, "_distributed_container", None) for value in structures]
    if all(container is not None for container in containers) and containers[0]() is not None:
        return containers[0]()
    if not _is_value(first) and all(type(other) is type(first) and other == first for other in structures):
        return first
    return PerReplica(structures)


def _is_value(value):
    from runnel.core import framework
    return isinstance(value, framework.Tensor) or getattr(value, "_is_composite", False)
