"""tf.Module: an object that owns the variables in its attributes."""

import re

from runnel.core.trackable import AutoTrackable


class Module(AutoTrackable):
    """The base of models and layers: finds the variables and modules in its attributes."""

    def __init__(self, name=None):
        from runnel.compat.v2 import scopes
        from runnel.core.framework import name_scope
        if name is None:
            name = re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        elif not re.match(r"^[A-Za-z_]\w*$", name):
            raise ValueError("%r is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class "
                             "name)." % name)
        self._name = name
        with name_scope(name, skip_on_eager=False) as scope:
            self._scope_name = scope
        self._name_scope = scopes.name_scope(scope)

    @property
    def name(self):
        """The module's name."""
        return self._name

    @property
    def name_scope(self):
        """A context manager that gives operations the module's name as prefix."""
        return self._name_scope

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
    _TF_MODULE_IGNORED_PROPERTIES = frozenset((
        "_name", "_scope_name", "_name_scope", "_self_unconditional_checkpoint_dependencies", "_self_unconditional_dependency_names",
        "_self_unconditional_deferred_dependencies", "_self_name_based_restores", "_self_update_uid", "_self_setattr_tracking"))

    def _parts(self, order, expand_composites):
        """Yields (attribute, path in it, object) for everything in the attributes."""
        from runnel import nest
        for key in sorted(vars(self), key=order):
            if key in self._TF_MODULE_IGNORED_PROPERTIES:
                continue
            value = vars(self)[key]
            try:
                rows = nest.flatten_with_tuple_paths(value)
            except Exception as error:  # such as a dict whose keys cannot be sorted
                raise ValueError("Error processing property %r of %r" % (key, value)) from error
            for place, leaf in rows:
                yield from _components(key, place, leaf) if expand_composites else ((key, place, leaf),)

    def _flatten(self, recursive=True, predicate=None, attribute_traversal_key=None, with_path=False, expand_composites=False):
        """Yields the objects in attributes for which `predicate` is true, and those of nested modules.

        With paths, an object appears once per path.
        """
        if predicate is None:
            predicate = lambda _: True  # noqa: E731
        return self._walk(recursive, predicate, attribute_traversal_key, with_path, expand_composites, (), {id(self)}, [])

    def _walk(self, recursive, predicate, order, with_path, expand_composites, path, seen, above):
        inside = []
        recursive = recursive and id(self) not in above
        for key, place, leaf in self._parts(order, expand_composites):
            if not with_path:
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
            where = path + (key,) + place
            if predicate(leaf):
                yield (where, leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                inside.append((where, leaf))
        above.append(id(self))
        for where, leaf in inside:
            yield from leaf._walk(recursive, predicate, order, with_path, expand_composites, where, seen, above)
        above.pop()

    @property
    def variables(self):
        """All variables, including those of nested modules."""
        return tuple(self._flatten(predicate=_is_variable, expand_composites=True))

    @property
    def trainable_variables(self):
        """The trainable variables."""
        return tuple(self._flatten(predicate=lambda leaf: _is_variable(leaf) and leaf.trainable, expand_composites=True))

    @property
    def non_trainable_variables(self):
        """The variables that are not trainable."""
        return tuple(self._flatten(predicate=lambda leaf: _is_variable(leaf) and not leaf.trainable, expand_composites=True))

    @property
    def submodules(self):
        """All nested modules."""
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Module)))


def _is_variable(leaf):
    from runnel.ops.variables import Variable
    return isinstance(leaf, Variable)


def _components(key, place, leaf):
    """Yields the rows of a composite tensor's components; of anything else, the row itself."""
    spec = getattr(leaf, "_type_spec", None)
    if _is_variable(leaf) or spec is None or isinstance(leaf, type) or not getattr(leaf, "_is_composite", False):
        yield key, place, leaf
        return
    from runnel import nest
    for inner, part in nest.flatten_with_tuple_paths(spec._to_components(leaf)):
        yield from _components(key, place + (type(leaf).__name__, *inner), part)
