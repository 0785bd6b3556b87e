"""Lists, dicts and tuples whose trackable items checkpoints reach: what attributes of a tf.Module become."""

import copy

from runnel.core.trackable import Trackable


class NoDependency:
    """A value that is not to be tracked when it is assigned to an attribute."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def wrap_or_unwrap(value):
    """Returns a list or dict as one that tracks its items; all else unchanged."""
    if isinstance(value, NoDependency):
        return value.value
    if isinstance(value, Trackable):
        return value
    if type(value) is list:
        return ListWrapper(value)
    if type(value) is dict:
        return _DictWrapper(value)
    if isinstance(value, tuple) and any(isinstance(item, (Trackable, list, dict)) for item in value):
        return _wrapped_tuple(value)
    return value


class _Container(Trackable):
    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        rows = {name: _held(item) for name, item in self._named_items()}
        return {name: item for name, item in rows.items() if isinstance(item, Trackable)}

    def _lookup_dependency(self, name, cached_dependencies=None):
        return self._trackable_children().get(name)

    def __reduce__(self):
        return self._plain_type, (self._plain(),)

    def __deepcopy__(self, memo):
        return type(self)(copy.deepcopy(self._plain(), memo))

    def __copy__(self):
        return type(self)(copy.copy(self._plain()))


def _held(item):
    return wrap_or_unwrap(item) if isinstance(item, (list, dict, tuple)) else item


class ListWrapper(_Container, list):
    """A list that tracks its items."""

    _plain_type = list
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, wrapped_list=()):
        list.__init__(self, [wrap_or_unwrap(item) for item in wrapped_list])

    _object_identifier = "trackable_list_wrapper"  # type: ignore[assignment]

    def _plain(self):
        return list(self)

    def _named_items(self):
        return [(str(i), item) for i, item in enumerate(self)]

    def append(self, value):
        list.append(self, wrap_or_unwrap(value))

    def insert(self, index, value):
        list.insert(self, index, wrap_or_unwrap(value))

    def extend(self, values):
        list.extend(self, [wrap_or_unwrap(value) for value in values])

    def __iadd__(self, values):  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, key, value):
        list.__setitem__(self, key, [wrap_or_unwrap(v) for v in value] if isinstance(key, slice) else wrap_or_unwrap(value))

    def __repr__(self):
        return "ListWrapper(%s)" % list.__repr__(self)

    def copy(self):
        return ListWrapper(self)


List = ListWrapper


class _DictWrapper(_Container, dict):
    """A dict that tracks its values."""

    _plain_type = dict
    __hash__ = None  # type: ignore[assignment]
    _object_identifier = "trackable_dict_wrapper"  # type: ignore[assignment]

    def __init__(self, wrapped_dict=(), **kwargs):
        dict.__init__(self)
        self.update(wrapped_dict, **kwargs)

    def _plain(self):
        return dict(self)

    def _named_items(self):
        return [(str(key), item) for key, item in self.items()]

    def __setitem__(self, key, value):
        dict.__setitem__(self, key, wrap_or_unwrap(value))

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __repr__(self):
        return "DictWrapper(%s)" % dict.__repr__(self)

    def copy(self):
        return _DictWrapper(self)


Mapping = _DictWrapper
_tuple_classes: dict = {}  # class of tuples -> the class of those that track their items


class _TupleItems(_Container):
    _object_identifier = "trackable_tuple_wrapper"  # type: ignore[assignment]

    def _named_items(self):
        return [(str(i), item) for i, item in enumerate(self)] + list(zip(getattr(self, "_fields", ()), self))

    def _plain(self):
        return self._plain_type(*self) if hasattr(self, "_fields") else self._plain_type(self)

    def __reduce__(self):
        return self._plain_type, tuple(self) if hasattr(self, "_fields") else (tuple(self),)

    def __deepcopy__(self, memo):
        return wrap_or_unwrap(copy.deepcopy(self._plain(), memo))

    def __copy__(self):
        return self


def _wrapped_tuple(value):
    """Returns a tuple, or a namedtuple, that tracks its items."""
    plain = type(value)
    made = _tuple_classes.get(plain)
    if made is None:
        made = _tuple_classes[plain] = type(plain.__name__, (_TupleItems, plain), {"_plain_type": plain})
    items = [wrap_or_unwrap(item) for item in value]
    return made(*items) if hasattr(plain, "_fields") else made(items)
