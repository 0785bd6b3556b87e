"""Containers that compare by identity, for objects with their own ==, such as variables."""

import collections.abc
import weakref


class Reference:
    """A reference by identity: a key for objects with their own ==."""

    __slots__ = ("_wrapped", "__weakref__")

    def __init__(self, wrapped):
        self._wrapped = wrapped

    @property
    def unwrapped(self):
        return self._wrapped

    def deref(self):
        return self._wrapped

    def __eq__(self, other):
        if other is None:
            return False
        self._check(other)
        return self._wrapped is other._wrapped

    def __lt__(self, other):
        self._check(other)
        return id(self._wrapped) < id(other._wrapped)

    def __gt__(self, other):
        self._check(other)
        return id(self._wrapped) > id(other._wrapped)

    @staticmethod
    def _check(other):
        if not isinstance(other, Reference):
            raise TypeError("Cannot compare wrapped object with unwrapped object. Expect the object to be `_ObjectIdentityWrapper`. Got: %s"
                            % (other,))

    def __hash__(self):
        return id(self._wrapped)

    def __repr__(self):
        return "<Reference wrapping %r>" % (self._wrapped,)


class ObjectIdentityDictionary(collections.abc.MutableMapping):
    """A dict that compares keys by identity."""

    def __init__(self, *args, **kwargs):
        self._storage = {}
        self.update(dict(*args, **kwargs))

    def __getitem__(self, key):
        return self._storage[Reference(key)]

    def __setitem__(self, key, value):
        self._storage[Reference(key)] = value

    def __delitem__(self, key):
        del self._storage[Reference(key)]

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return (key.unwrapped for key in list(self._storage))

    def __repr__(self):
        return "ObjectIdentityDictionary(%r)" % (list(self.items()),)


class ObjectIdentityWeakKeyDictionary(collections.abc.MutableMapping):
    """A dict that compares keys by identity and forgets keys that nothing else holds."""

    def __init__(self):
        self._storage = {}  # id of the key -> (weak reference to the key, value)

    def __getitem__(self, key):
        return self._storage[id(key)][1]

    def __setitem__(self, key, value):
        number, storage = id(key), self._storage
        self._storage[number] = weakref.ref(key, lambda _: storage.pop(number, None)), value

    def __delitem__(self, key):
        del self._storage[id(key)]

    def __contains__(self, key):
        return id(key) in self._storage

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        found = [row[0]() for row in list(self._storage.values())]
        return iter([key for key in found if key is not None])


class ObjectIdentitySet(collections.abc.MutableSet):
    """A set that compares elements by identity."""

    def __init__(self, *args):
        self._storage = {Reference(x): None for x in (args[0] if args else ())}

    def __contains__(self, key):
        return Reference(key) in self._storage

    def add(self, key):
        self._storage[Reference(key)] = None

    def discard(self, key):
        self._storage.pop(Reference(key), None)

    def update(self, items):
        for item in items:
            self.add(item)

    def clear(self):
        self._storage.clear()

    def intersection(self, items):
        return ObjectIdentitySet([x for x in items if x in self])

    def difference(self, items):
        others = ObjectIdentitySet(items)
        return ObjectIdentitySet([x for x in self if x not in others])

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return (key.unwrapped for key in list(self._storage))


class ObjectIdentityWeakSet(collections.abc.MutableSet):
    """A set that compares elements by identity and forgets those that nothing else holds."""

    def __init__(self, items=()):
        self._storage = ObjectIdentityWeakKeyDictionary()
        for item in items:
            self.add(item)

    def __contains__(self, key):
        return key in self._storage

    def add(self, key):
        self._storage[key] = None

    def discard(self, key):
        self._storage.pop(key, None)

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return iter(self._storage)


_ObjectIdentityWrapper = Reference  # its name in TensorFlow
