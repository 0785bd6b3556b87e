"""Containers of trackable objects to which one can only add, and the base of those that attributes of a tf.Module become."""

import collections.abc
import copy

from runnel.core.trackable import Trackable, sticky_attribute_assignment


class NoDependency:
    """A value that is not to be tracked when it is assigned to an attribute."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class _UntrackableError(ValueError):
    def __init__(self, value):
        super().__init__("Only trackable objects (such as Layers or Optimizers) may be stored in a List object. Got %s, which does not "
                         "inherit from Trackable." % (value,))


class TrackableDataStructure(Trackable):
    """The base of containers: they have the variables of their items."""

    _self_trainable = True

    @property
    def trainable(self):
        """Whether the items are trained."""
        return self._self_trainable

    @trainable.setter
    def trainable(self, value):
        self._self_trainable = value

    def _track_value(self, value, name):
        """Tracks an item, which must be trackable. Returns what the container holds instead of it."""
        value = sticky_attribute_assignment(self, name, value)
        if not isinstance(value, Trackable):
            raise _UntrackableError(value)
        return value

    def _track_any(self, value, name):
        """Tracks an item if it is trackable. Returns what the container holds instead of it."""
        return sticky_attribute_assignment(self, name, value)

    @property
    def _values(self):
        raise NotImplementedError("Abstract method")

    @property
    def _layers(self):
        return [item for item in self._values if isinstance(item, TrackableDataStructure) or hasattr(item, "_is_layer")
                or hasattr(type(item), "trainable_weights")]

    @property
    def layers(self):
        """The layers among the items, and those in containers."""
        found = []
        for item in self._layers:
            found += item.layers if isinstance(item, TrackableDataStructure) else [item]
        return found

    def _own_variables(self):
        from runnel.ops.variables import Variable
        return [item for item in self._values if isinstance(item, Variable)]

    def _of_items(self, name):
        return [variable for item in self._values if isinstance(item, Trackable) for variable in getattr(item, name, ())]

    @property
    def trainable_weights(self):
        """The variables of the items that are trained."""
        if not self._self_trainable:
            return []
        return self._of_items("trainable_variables") + [v for v in self._own_variables() if v.trainable]

    @property
    def non_trainable_weights(self):
        """The variables of the items that are not trained."""
        fixed = [v for v in self._own_variables() if not v.trainable]
        if self._self_trainable:
            return self._of_items("non_trainable_variables") + fixed
        return (self._of_items("trainable_variables") + [v for v in self._own_variables() if v.trainable] +
                self._of_items("non_trainable_variables") + fixed)

    @property
    def weights(self):
        """The variables of the items."""
        return self.trainable_weights + self.non_trainable_weights

    trainable_variables = property(lambda self: self.trainable_weights)
    non_trainable_variables = property(lambda self: self.non_trainable_weights)
    variables = property(lambda self: self.weights)

    @property
    def updates(self):
        """What the layers among the items update."""
        return [x for layer in self.layers for x in getattr(layer, "updates", ())]

    @property
    def losses(self):
        """The losses of the layers among the items."""
        return [x for layer in self.layers for x in getattr(layer, "losses", ())]

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


class List(TrackableDataStructure, collections.abc.Sequence):
    """A list of trackable objects to which one can only append."""

    def __init__(self, *args, **kwargs):
        self._storage = [self._track_value(item, str(i)) for i, item in enumerate(list(*args, **kwargs))]

    _values = property(lambda self: self)

    def append(self, value):
        """Adds an item."""
        self._storage.append(self._track_value(value, str(len(self._storage))))

    def extend(self, values):
        """Adds items."""
        for value in values:
            self.append(value)

    def __iadd__(self, values):
        self.extend(values)
        return self

    def __add__(self, other):
        return self._storage + getattr(other, "_storage", other)

    def __radd__(self, other):
        return other + self._storage

    def __mul__(self, n):
        return self._storage * n

    __rmul__ = __mul__

    def __imul__(self, n):
        if n <= 0:
            raise ValueError("List only supports append, multiplying in place by %s removes elements." % n)
        for item in self._storage * (n - 1):
            self.append(item)
        return self

    def copy(self):
        """Returns a list of the same items."""
        return type(self)(copy.copy(self._storage))

    __copy__ = copy

    def __deepcopy__(self, memo):
        return type(self)(copy.deepcopy(self._storage, memo))

    def __getitem__(self, key):
        return self._storage[key]

    def __len__(self):
        return len(self._storage)

    def __repr__(self):
        return "List(%r)" % (self._storage,)


class Mapping(TrackableDataStructure, collections.abc.Mapping):
    """A dict of trackable objects whose values do not change."""

    def __init__(self, *args, **kwargs):
        self._storage = {}
        self.update(*args, **kwargs)

    @property
    def _values(self):
        return [self._storage[key] for key in sorted(self._storage)]

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError("Mapping accepts only string keys, but got a key %r." % (key,))
        value = self._track_value(value, key)
        held = self._storage.setdefault(key, value)
        if held is not value:
            raise ValueError("Mappings are an append-only data structure. Tried to overwrite the key '%s' with value %s, but it already "
                             "contains %s" % (key, value, held))

    def update(self, *args, **kwargs):
        """Adds items."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __copy__(self):
        return type(self)(copy.copy(self._storage))

    def __deepcopy__(self, memo):
        return type(self)(copy.deepcopy(self._storage, memo))

    def __getitem__(self, key):
        return self._storage[key]

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return iter(self._storage)

    def __repr__(self):
        return "Mapping(%r)" % (self._storage,)
