"""What the graph of a function captures: by value, passed at each call, and by reference, computed at each call."""

import collections

from runnel.functions.trace_values import from_value


class MutationAwareDict(collections.OrderedDict):
    """A dict that knows whether it has changed since `mutated` was set to False."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mutated = True

    def __setitem__(self, key, value):
        self.mutated = True
        super().__setitem__(key, value)

    def __delitem__(self, key):
        self.mutated = True
        super().__delitem__(key)

    def pop(self, key, default=None):
        """Removes a key and returns its value, or the default."""
        self.mutated = True
        return super().pop(key, default)

    def clear(self):
        """Removes everything."""
        self.mutated = True
        super().clear()


class FunctionCaptures:
    """The captures of a function by keys: what is outside, what stands for it inside, and its type."""

    def __init__(self):
        self.by_val_external, self.by_val_internal, self.by_val_tracetype = MutationAwareDict(), MutationAwareDict(), MutationAwareDict()
        self.by_ref_external, self.by_ref_internal, self.by_ref_tracetype = MutationAwareDict(), MutationAwareDict(), MutationAwareDict()

    def _dicts(self, is_by_ref):
        if is_by_ref:
            return self.by_ref_external, self.by_ref_internal, self.by_ref_tracetype
        return self.by_val_external, self.by_val_internal, self.by_val_tracetype

    def add_or_replace(self, key, external, internal, tracetype=None, is_by_ref=False):
        """Adds a capture; one with the same key is replaced."""
        tracetype = from_value(external) if tracetype is None and not is_by_ref else tracetype
        for mapping, value in zip(self._dicts(is_by_ref), (external, internal, tracetype)):
            mapping[key] = value

    def pop(self, key, is_by_ref=False):
        """Removes a capture. Returns (external, internal, type)."""
        return tuple(mapping.pop(key) for mapping in self._dicts(is_by_ref))

    def reset_captures(self, tensors, placeholders):
        """Replaces what is captured by value."""
        for mapping in self._dicts(False):
            mapping.clear()
        for external, internal in zip(tensors, placeholders):
            self.add_or_replace(id(external), external, internal)

    def clear(self):
        """Removes all captures."""
        for mapping in (*self._dicts(False), *self._dicts(True)):
            mapping.clear()

    def merge_by_ref_with(self, other):
        """Adds the captures by reference that only `other` has."""
        for key, external in other.by_ref_external.items():
            if key not in self.by_ref_external:
                self.by_ref_external[key], self.by_ref_tracetype[key] = external, other.by_ref_tracetype[key]

    def get_by_ref_snapshot(self):
        """Returns {key: current value} of what is captured by reference, or its type where it cannot be computed now."""
        found = {}
        for key, external in self.by_ref_external.items():
            try:
                found[key] = external()
            except (AttributeError, RuntimeError):
                found[key] = self.by_ref_tracetype[key]
        return found

    @property
    def capture_types(self):
        """{key: type} of all captures, those by value first."""
        return collections.OrderedDict([*self.by_val_tracetype.items(), *self.by_ref_tracetype.items()])

    @property
    def by_val_capture_tuples(self):
        """[(external, internal)] of the captures by value."""
        return [(external, self.by_val_internal[key]) for key, external in self.by_val_external.items()]


def captures_of(graph):
    """Returns the captures of a function's graph."""
    found = FunctionCaptures()
    for external, internal in zip(graph.captured, graph.standing):
        found.add_or_replace(id(external), external, internal)
    for key, one in graph.deferred.items():
        found.add_or_replace(key, one.closure, one.placeholder, one.kind, is_by_ref=True)
    return found
