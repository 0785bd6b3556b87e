"""Types of objects that SavedModels make again by an identifier and a version."""

import operator

from runnel.core import data_structures
from runnel.core.protobuf import message_class


class VersionedTypeRegistration:
    """One version of a type.

    Args:
      object_factory: a function from a SavedUserObject to the object.
      version: the number of the version.
      min_producer_version: the oldest version of files that it can load.
      min_consumer_version: the oldest version that can load its files.
      bad_consumers: versions that cannot, although they are newer.
      setter: a function of (object, name, child) that gives an object a child.
    """

    def __init__(self, object_factory, version, min_producer_version, min_consumer_version, bad_consumers=None, setter=setattr):
        self.setter, self.version, self.identifier = setter, version, None
        self._object_factory = object_factory
        self._min_producer, self._min_consumer, self._bad_consumers = min_producer_version, min_consumer_version, bad_consumers or []

    def to_proto(self):
        """Returns the SavedUserObject of new files."""
        made = message_class("SavedUserObject")(identifier=self.identifier)
        made.version.producer, made.version.min_consumer = self.version, self._min_consumer
        made.version.bad_consumers.extend(self._bad_consumers)
        return made

    def from_proto(self, proto):
        """Returns the object of a SavedUserObject."""
        return self._object_factory(proto)

    def should_load(self, proto):
        """Tells whether this version can load a SavedUserObject."""
        return (proto.identifier == self.identifier and self.version >= proto.version.min_consumer
                and proto.version.producer >= self._min_producer and self.version not in proto.version.bad_consumers)


_registry: dict = {}  # identifier -> (predicate, versions, the newest first)


def register_revived_type(identifier, predicate, versions):
    """Registers a type: `predicate` tells which objects are of it, `versions` are VersionedTypeRegistrations."""
    if not versions:
        raise AssertionError("Need at least one version of a registered type.")
    versions.sort(key=lambda version: version.version, reverse=True)
    seen = set()
    for version in versions:
        version.identifier = identifier
        if version.version in seen:
            raise AssertionError("Got multiple registrations with version %s for type %s." % (version.version, identifier))
        seen.add(version.version)
    _registry[identifier] = predicate, versions


def registered_identifiers():
    """Returns the identifiers that are registered."""
    return _registry.keys()


def serialize(obj):
    """Returns the SavedUserObject of an object of a registered type, or None."""
    return next((versions[0].to_proto() for predicate, versions in _registry.values() if predicate(obj)), None)


def _version_of(proto):
    _, versions = _registry.get(proto.identifier, (None, ()))
    return next((version for version in versions if version.should_load(proto)), None)


def deserialize(proto):
    """Returns (object, setter) of a SavedUserObject, or None if no version can load it."""
    version = _version_of(proto)
    return None if version is None else (version.from_proto(proto), version.setter)


def get_setter(proto):
    """Returns the setter of a SavedUserObject, or None."""
    version = _version_of(proto)
    return None if version is None else version.setter


for _name, _class, _make, _setter in (
        ("trackable_dict_wrapper", data_structures._DictWrapper, lambda proto: data_structures._DictWrapper({}), operator.setitem),
        ("trackable_list_wrapper", data_structures.ListWrapper, lambda proto: data_structures.ListWrapper([]), data_structures.set_list_item),
        ("trackable_tuple_wrapper", data_structures._TupleWrapper, lambda proto: data_structures.ListWrapper([]),
         data_structures.set_tuple_item)):
    register_revived_type(_name, lambda obj, cls=_class: isinstance(obj, cls), [VersionedTypeRegistration(
        object_factory=_make, version=1, min_producer_version=1, min_consumer_version=1, setter=_setter)])
