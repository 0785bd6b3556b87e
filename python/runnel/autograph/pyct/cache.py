"""What has been made of functions, as long as they live."""

import weakref


class _TransformedFnCache:
    """{function: {key: what was made}}, with weak references to the functions."""

    def __init__(self):
        self._cache = weakref.WeakKeyDictionary()

    def _get_key(self, entity):
        raise NotImplementedError("subclasses say what identifies a function")

    def has(self, entity, subkey):
        """Tells whether there is a value."""
        return subkey in self._cache.get(self._get_key(entity), ())

    def __getitem__(self, entity):
        return self._cache.setdefault(self._get_key(entity), {})

    def __len__(self):
        return len(self._cache)


class CodeObjectCache(_TransformedFnCache):
    """The same for all functions with the same code."""

    def _get_key(self, entity):
        return getattr(entity, "__code__", entity)


class UnboundInstanceCache(_TransformedFnCache):
    """The same for the bound methods of all objects."""

    def _get_key(self, entity):
        return getattr(entity, "__func__", entity)
