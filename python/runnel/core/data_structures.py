"""Lists, dicts and tuples whose trackable items checkpoints reach: what attributes of a tf.Module become.

Restoring an object that is made later needs a name that does not change. So only appending to a list, and adding keys to a dict, leaves it
possible to save them. A wrapper passes each change on to the list or dict that it was made of, and notices changes made there.
"""

import collections
import copy

from runnel.core.trackable import SaveType, Trackable, is_function, sticky_attribute_assignment  # noqa: F401
from runnel.core.tracked_containers import List, Mapping, NoDependency, TrackableDataStructure  # noqa: F401


def _wants_wrapper(items):
    return any(isinstance(item, (NoDependency, Trackable)) or type(item) in (dict, collections.OrderedDict, list) or
               isinstance(item, tuple) and _wants_wrapper(item) for item in items)


def wrap_or_unwrap(value):
    """Returns a list, dict or tuple as one that tracks its items; what is inside a NoDependency; all else unchanged."""
    if isinstance(value, NoDependency):
        return value.value
    if isinstance(value, Trackable):
        return value
    if type(value) in (dict, collections.OrderedDict):
        return _DictWrapper(value)
    if type(value) is list:
        return ListWrapper(value)
    if isinstance(value, tuple) and _wants_wrapper(value):
        return _TupleWrapper(value)
    return value


wrap = wrap_or_unwrap


def _same(a, b):
    """Tells whether two lists or dicts have the same items: identical ones, or equal ones without a == of their own."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same_item(a[key], b[key]) for key in a)
    return len(a) == len(b) and all(_same_item(x, y) for x, y in zip(a, b))


def _same_item(x, y):
    return x is y or isinstance(x, (bool, int, float, str, bytes, type(None), list, tuple, dict)) and type(x) is type(y) and x == y


class ListWrapper(List, list):
    """A list that tracks its items as long as items are only appended."""

    _plain_type = list
    __hash__ = None  # type: ignore[assignment]
    _object_identifier = "trackable_list_wrapper"  # type: ignore[assignment]

    def __init__(self, wrapped_list=()):
        self._non_append_mutation = False     # an item was replaced, removed or moved
        self._external_modification = False   # the wrapped list was changed behind the wrapper's back
        self._wrapped = wrapped_list if type(wrapped_list) is list else list(wrapped_list)
        list.__init__(self)
        for i, item in enumerate(self._wrapped):
            list.append(self, self._track_any(item, str(i)))
        self._keep()

    _storage = property(lambda self: self)  # type: ignore[assignment]

    def _keep(self):
        """Makes the wrapped list the same again, after a change."""
        if not self._external_modification:
            self._wrapped[:] = list(self)

    def _check_external_modification(self):
        if not self._non_append_mutation and not self._external_modification and not _same(self._wrapped, list(self)):
            self._external_modification = True
            list.__setitem__(self, slice(None), self._wrapped)

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        self._check_external_modification()
        if self._non_append_mutation:
            raise ValueError(
                "Unable to save the object %s (a list wrapper constructed to track trackable TensorFlow objects). A list element was replaced "
                "(__setitem__, __setslice__), deleted (__delitem__, __delslice__), or moved (sort). In order to support restoration on object "
                "creation, tracking is exclusively for append-only data structures.\n\nIf you don't need this list checkpointed, wrap it in a "
                "non-trackable object; it will be subsequently ignored." % (self,))
        if self._external_modification:
            raise ValueError(
                "Unable to save the object %s (a list wrapper constructed to track trackable TensorFlow objects). The wrapped list was modified "
                "outside the wrapper (its final value was %s, its value when a checkpoint dependency was added was %s), which breaks restoration "
                "on object creation.\n\nIf you don't need this list checkpointed, wrap it in a NoDependency object; it will be subsequently "
                "ignored." % (self, self._wrapped, None))
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == SaveType.SAVEDMODEL:
            children.update({str(i): item for i, item in enumerate(self) if is_function(item)})
        return children

    def _mutate(self, change, *added):
        """Makes a change other than appending."""
        self._check_external_modification()
        if any(isinstance(item, Trackable) for item in (*self, *added)):
            self._non_append_mutation = True
        out = change()
        self._keep()
        return out

    def append(self, value):
        self._check_external_modification()
        list.append(self, self._track_any(value, str(len(self))))
        self._keep()

    def insert(self, index, value):
        self._mutate(lambda: list.insert(self, index, value), value)

    def sort(self, **kwargs):
        self._mutate(lambda: list.sort(self, **kwargs))

    def reverse(self):
        self._mutate(lambda: list.reverse(self))

    def pop(self, index=-1):
        return self._mutate(lambda: list.pop(self, index))

    def remove(self, value):
        self._mutate(lambda: list.remove(self, value))

    def clear(self):
        self._mutate(lambda: list.clear(self))

    def __delitem__(self, key):
        self._mutate(lambda: list.__delitem__(self, key))

    def __setitem__(self, key, value):
        self._check_external_modification()
        before = list(self)
        list.__setitem__(self, key, value)
        for i in range(max(len(before), len(self))):
            old = before[i] if i < len(before) else None
            new = list.__getitem__(self, i) if i < len(self) else None
            if new is old and i < len(self):
                continue
            if isinstance(old, Trackable):
                self._non_append_mutation = True
            if i < len(self):
                list.__setitem__(self, i, self._track_any(new, str(i)))
        self._keep()

    def __imul__(self, n):
        if n <= 0:
            self._mutate(lambda: list.clear(self))
            return self
        return super().__imul__(n)

    __getitem__, __len__, __iter__, __contains__ = list.__getitem__, list.__len__, list.__iter__, list.__contains__
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = list.__eq__, list.__ne__, list.__lt__, list.__le__, list.__gt__, list.__ge__
    index, count, __reversed__ = list.index, list.count, list.__reversed__

    def __add__(self, other):
        return list(self) + list(other)

    def __radd__(self, other):
        return list(other) + list(self)

    def __mul__(self, n):
        return list(self) * n

    __rmul__ = __mul__

    def _copied(self, items):
        made = type(self)(items)
        made._non_append_mutation, made._external_modification = self._non_append_mutation, self._external_modification
        return made

    def copy(self):
        return self._copied(list(self))

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self._copied(copy.deepcopy(list(self), memo))

    def __reduce_ex__(self, protocol):
        return type(self), (list(self),)

    def __repr__(self):
        return "ListWrapper(%s)" % list.__repr__(self)


class _DictWrapper(TrackableDataStructure, dict):
    """A dict that tracks its values as long as their keys are strings."""

    _plain_type = dict
    __hash__ = None  # type: ignore[assignment]
    _object_identifier = "trackable_dict_wrapper"  # type: ignore[assignment]

    def __init__(self, wrapped_dict=None, **kwargs):
        self._self_non_string_key = False
        self._self_external_modification = False
        wrapped = dict(wrapped_dict or ()) if not isinstance(wrapped_dict, dict) else wrapped_dict
        wrapped.update(kwargs)
        self._self_wrapped = wrapped
        dict.__init__(self)
        for key, value in wrapped.items():
            dict.__setitem__(self, key, self._tracked(key, value))
        self._keep()

    _values = property(lambda self: [self[key] for key in sorted(self, key=str)])

    def _tracked(self, key, value):
        if isinstance(key, str):
            return self._track_any(value, key)
        is_free = isinstance(value, NoDependency)
        value = wrap_or_unwrap(value)
        if not is_free and isinstance(value, Trackable):
            self._self_non_string_key = True
        return value

    def _keep(self):
        if not self._self_external_modification:
            self._self_wrapped.clear()
            self._self_wrapped.update(self)

    def _check_self_external_modification(self):
        if not self._self_external_modification and not self._self_non_string_key and not _same(self._self_wrapped, dict(self)):
            self._self_external_modification = True
            dict.clear(self)
            dict.update(self, self._self_wrapped)

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        self._check_self_external_modification()
        if self._self_non_string_key:
            raise ValueError(
                "Unable to save the object %s (a dictionary wrapper constructed automatically on attribute assignment). The wrapped dictionary "
                "contains a non-string key which maps to a trackable object or mutable data structure.\n\nIf you don't need this dictionary "
                "checkpointed, wrap it in a non-trackable object; it will be subsequently ignored." % (self,))
        if self._self_external_modification:
            raise ValueError(
                "Unable to save the object %s (a dictionary wrapper constructed automatically on attribute assignment). The wrapped dictionary "
                "was modified outside the wrapper (its final value was %s, its value when a checkpoint dependency was added was %s), which "
                "breaks restoration on object creation.\n\nIf you don't need this dictionary checkpointed, wrap it in a non-trackable object; "
                "it will be subsequently ignored." % (self, self, None))
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == SaveType.SAVEDMODEL:
            children.update({key: value for key, value in self.items() if is_function(value)})
        return children

    def __setitem__(self, key, value):
        self._check_self_external_modification()
        dict.__setitem__(self, key, self._tracked(key, value))
        self._keep()

    def __delitem__(self, key):
        self._check_self_external_modification()
        dict.__delitem__(self, key)
        self._keep()

    def pop(self, key, *default):
        self._check_self_external_modification()
        out = dict.pop(self, key, *default)
        self._keep()
        return out

    def popitem(self):
        self._check_self_external_modification()
        out = dict.popitem(self)
        self._keep()
        return out

    def clear(self):
        self._check_self_external_modification()
        dict.clear(self)
        self._keep()

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other):  # type: ignore[misc]
        self.update(other)
        return self

    __eq__, __ne__ = dict.__eq__, dict.__ne__

    def _copied(self, items):
        made = _DictWrapper(items)
        made._self_non_string_key, made._self_external_modification = self._self_non_string_key, self._self_external_modification
        return made

    def _plain(self):
        return type(self._self_wrapped)(self)

    def copy(self):
        return self._copied(self._plain())

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self._copied(copy.deepcopy(self._plain(), memo))

    def __reduce_ex__(self, protocol):
        return _DictWrapper, (self._plain(),)

    def __repr__(self):
        return "DictWrapper(%r)" % (self._plain(),)


_tuple_classes: dict = {}  # class of tuples -> the class of those that track their items


class _TupleWrapper(TrackableDataStructure):
    """A tuple, or a namedtuple, that tracks its items. Its class is a subclass of the tuple's own."""

    _object_identifier = "trackable_tuple_wrapper"  # type: ignore[assignment]

    _plain_type = tuple

    def __new__(cls, wrapped=()):
        if not isinstance(wrapped, tuple):
            wrapped = cls._plain_type(wrapped)
        plain = type(wrapped)
        made = _tuple_classes.get(plain)
        if made is None:
            made = _tuple_classes[plain] = type(plain.__name__, (_TupleWrapper, plain), {"_plain_type": plain})
        self = tuple.__new__(made, [wrap_or_unwrap(item) for item in wrapped])
        self._wrap(wrapped)
        return self

    def __init__(self, wrapped=()):
        pass

    def _wrap(self, wrapped):
        self._self_tuple_is_constructable = True
        names = [str(i) for i in range(len(wrapped))]
        fields = getattr(self._plain_type, "_fields", None)
        if fields is not None:
            try:
                self._plain_type(**dict(zip(fields, self)))
            except TypeError:
                self._self_tuple_is_constructable = False
                return
            names = list(fields) + names
        for name, given, item in zip(names, tuple(wrapped) * 2, tuple(self) * 2):
            if not isinstance(given, NoDependency):
                self._track_any(item, name)

    _values = property(lambda self: self)

    def _plain(self):
        return tuple.__new__(self._plain_type, tuple(self))

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        if not self._self_tuple_is_constructable:
            raise ValueError(
                "Unable to save because the namedtuple %s is not constructable from its _fields (i.e. __new__ is overridden). Expected keyword "
                "arguments %s. If you do not need to save this object, consider wrapping it in a custom object that does not inherit from "
                "tuple." % (self._plain(), self._plain_type._fields))
        return super()._trackable_children(save_type, **kwargs)

    def __eq__(self, other):
        return tuple.__eq__(self, other)

    def __ne__(self, other):
        return tuple.__ne__(self, other)

    def __hash__(self):
        return hash(tuple(self))

    def __copy__(self):
        return _TupleWrapper(self._plain())

    def __deepcopy__(self, memo):
        return _TupleWrapper(tuple.__new__(self._plain_type, copy.deepcopy(tuple(self), memo)))

    def __reduce_ex__(self, protocol):
        return _TupleWrapper, (self._plain(),)

    def __repr__(self):
        return "_TupleWrapper(%r)" % (self._plain(),)


def set_list_item(list_object, index_string, value):
    """Sets an item of a list that is loaded, which grows if it must."""
    index = int(index_string)
    if len(list_object) <= index:
        list_object.extend([None] * (1 + index - len(list_object)))
    list_object[index] = value


def set_tuple_item(list_object, index_string, value):
    """The same for a tuple, of whose items' names the fields of a namedtuple are left out."""
    if index_string.isdigit():
        set_list_item(list_object, index_string, value)
