"""tf.Module: an object that owns the variables in its attributes."""

import re

from runnel.core.trackable import AutoTrackable


class Module(AutoTrackable):
    """The base of models and layers: finds the variables and modules in its attributes."""

    def __init__(self, name=None):
        from runnel.core.framework import executing_eagerly, name_scope
        if name is None:
            name = re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        elif not re.match(r"^[A-Za-z_]\w*$", name):
            raise ValueError("%r is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class "
                             "name)." % name)
        self._name = name
        if executing_eagerly():
            from runnel.compat.v2.scopes import name_scope
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self):
        """The module's name."""
        return self._name

    @property
    def name_scope(self):
        """A context manager that gives operations the module's name as prefix."""
        from runnel.compat.v2.scopes import name_scope
        return name_scope(self._scope_name)

    @staticmethod
    def with_name_scope(method):
        """A decorator of methods: their operations get the module's name as prefix."""
        import functools

        @functools.wraps(method)
        def run(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)
        return run

    # Attributes without variables.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(("_name", "_scope_name", "_self_unconditional_dependency_names", "_self_setattr_tracking", "_self_deferred"))

    def _parts(self, order=None):
        """Yields (attribute, path in it, object) for everything in the attributes."""
        from runnel import nest
        for key in sorted(vars(self), key=order):
            if key in self._TF_MODULE_IGNORED_PROPERTIES:
                continue
            try:
                yield from ((key, *place) for place in nest.flatten_with_tuple_paths(vars(self)[key]))
            except Exception:  # such as a dict whose keys cannot be sorted: treat it as one object
                yield key, (), vars(self)[key]

    def _flatten(self, recursive=True, predicate=None, attribute_traversal_key=None, with_path=False):
        """Yields the objects in attributes for which `predicate` is true, and those of nested modules."""
        if predicate is None:
            predicate = lambda _: True  # noqa: E731
        return self._walk(recursive, predicate, attribute_traversal_key, with_path, (), {id(self)})

    def _walk(self, recursive, predicate, order, with_path, path, seen):
        inside = []
        for key, place, leaf in self._parts(order):
            if id(leaf) in seen:
                continue
            seen.add(id(leaf))
            where = path + (key,) + place
            if predicate(leaf):
                yield (where, leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                inside.append((where, leaf))
        for where, leaf in inside:
            yield from leaf._walk(recursive, predicate, order, with_path, where, seen)

    @staticmethod
    def _is_variable(leaf):
        return hasattr(leaf, "initializer") and hasattr(leaf, "trainable")

    @property
    def variables(self):
        """All variables, including those of nested modules."""
        return tuple(self._flatten(predicate=self._is_variable))

    @property
    def trainable_variables(self):
        """The trainable variables."""
        return tuple(self._flatten(predicate=lambda leaf: self._is_variable(leaf) and leaf.trainable))

    @property
    def non_trainable_variables(self):
        """The variables that are not trainable."""
        return tuple(self._flatten(predicate=lambda leaf: self._is_variable(leaf) and not leaf.trainable))

    @property
    def submodules(self):
        """All nested modules."""
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Module)))
