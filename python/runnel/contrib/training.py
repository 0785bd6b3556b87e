"""tf.contrib.training: hyperparameters, and names that moved to the core API."""

import json
import re

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, "get_or_create_eval_step=evaluation.get_or_create_eval_step",
    "StopAfterNEvalsHook=evaluation.StopAfterNEvalsHook checkpoints_iterator=train.checkpoints_iterator")


class HParams:
    """Named values: hparams.learning_rate, hparams.parse("learning_rate=0.1,sizes=[1,2]")."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        if hparam_def is not None:
            raise NotImplementedError("HParams from a protocol buffer are not supported")
        self._types, self._model_structure = {}, model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        """Adds a value; a list's first element determines the type of its elements."""
        if getattr(self, name, None) is not None:
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError("Multi-valued hyperparameters cannot be empty: %s" % name)
        self._types[name] = (type(value[0]) if is_list else type(value), is_list)
        setattr(self, name, list(value) if is_list else value)

    def set_hparam(self, name, value):
        """Sets a value of the same type."""
        kind, is_list = self._types[name]
        if isinstance(value, list) != is_list:
            raise ValueError("Must pass a list for multi-valued parameter: %s." % name if is_list else
                             "Must not pass a list for single-valued parameter: %s" % name)
        setattr(self, name, [_cast(name, kind, v) for v in value] if is_list else _cast(name, kind, value))

    def del_hparam(self, name):
        """Removes a value."""
        if hasattr(self, name):
            delattr(self, name)
            del self._types[name]

    def parse(self, values):
        """Sets values from text: "name=value,list=[1,2],list[0]=3". Returns self."""
        return self.override_from_dict(parse_values(values, {n: t[0] for n, t in self._types.items()}))

    def override_from_dict(self, values_dict):
        """Sets several values. Returns self."""
        for name, value in values_dict.items():
            if isinstance(value, dict):  # elements of a list, by number
                changed = list(getattr(self, name))
                for index, item in value.items():
                    changed[index] = item
                value = changed
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def set_model_structure(self, model_structure):
        """Attaches an object."""
        self._model_structure = model_structure

    def get_model_structure(self):
        """Returns the attached object."""
        return self._model_structure

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """Returns all values that are not functions as JSON."""
        return json.dumps({k: v for k, v in self.values().items() if not callable(v)}, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json):
        """Sets values from a JSON object. Returns self."""
        return self.override_from_dict(json.loads(values_json))

    def values(self):
        """Returns {name: value}."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key, default=None):
        """Returns a value, or `default`, which must have its type."""
        if key not in self._types:
            return default
        kind, is_list = self._types[key]
        if default is not None:
            given = isinstance(default, list)
            if given != is_list:
                raise ValueError("Hparam '%s' of type '%s' is incompatible with default=%s" % (
                    key, kind, default))
            for item in default if is_list else [default]:
                _cast(key, kind, item)
        return getattr(self, key)

    def __contains__(self, key):
        return key in self._types

    def __str__(self):
        return str(sorted(self.values().items()))

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, self)


def _cast(name, kind, value):
    fails = ValueError("Could not cast hparam '%s' of type '%s' from value %r" % (name, kind, value))
    if kind is type(None) or isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if isinstance(value, str) or issubclass(kind, str) or isinstance(value, bool) != issubclass(kind, bool):
        raise fails
    if issubclass(kind, int) and isinstance(value, float) and not value.is_integer():
        raise fails
    return kind(value)


_ITEM = re.compile(r"\s*(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
                   r"((?P<list>\[[^\]]*\])|(?P<value>[^,\[]*))\s*(,|$)")


def _of_text(name, kind, text):
    text = text.strip()
    try:
        if kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return text if kind is type(None) else kind(text)
    except (ValueError, KeyError):
        raise ValueError("Could not parse hparam '%s' of type '%s' with value '%s'" % (
            name, kind.__name__, text)) from None


def parse_values(values, type_map, ignore_unknown=False):
    """Parses "name=value,list=[1,2],list[0]=3" to {name: value}; elements by index give {index: value}."""
    results, at = {}, 0
    while at < len(values):
        match = _ITEM.match(values, at)
        if match is None:
            raise ValueError("Malformed hyperparameter value: %s" % values[at:])
        at, name = match.end(), match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError("Unknown hyperparameter type for %s" % name)
        kind = type_map[name]
        if match["index"] is not None:
            if match["list"] is not None:
                raise ValueError("Assignment of a list to a list index.")
            slot = results.setdefault(name, {})
            if not isinstance(slot, dict) or int(match["index"]) in slot:
                raise ValueError("Multiple assignments to variable '%s' in %s" % (name, values))
            slot[int(match["index"])] = _of_text(name, kind, match["value"])
            continue
        if name in results:
            raise ValueError("Multiple assignments to variable '%s' in %s" % (name, values))
        if match["list"] is not None:
            inner = match["list"][1:-1]
            results[name] = [_of_text(name, kind, item) for item in inner.split(",")] if inner.strip() else []
        else:
            results[name] = _of_text(name, kind, match["value"])
    return results
