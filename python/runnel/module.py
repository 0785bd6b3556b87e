"""tf.Module: an object that owns variables, by its attributes."""

import re


class Module:
    """The base of models and layers: finds the variables and modules among its attributes."""

    def __init__(self, name=None):
        from runnel.framework import name_scope
        if name is None:
            name = re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        elif not re.match(r"^[A-Za-z_]\w*$", name):
            raise ValueError("%r is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class "
                             "name)." % name)
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self):
        return self._name

    @property
    def name_scope(self):
        """A context in which operations get the name of the module."""
        from runnel.framework import name_scope
        return name_scope(self._scope_name)

    @staticmethod
    def with_name_scope(method):
        """A decorator of methods: what they build is in the module's scope."""
        import functools

        @functools.wraps(method)
        def run(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)
        return run

    def _parts(self):
        from runnel import nest
        for key in sorted(vars(self)):
            if key in ("_name", "_scope_name"):
                continue
            yield from nest.flatten(vars(self)[key])

    def _walk(self, seen):
        """Everything that is owned, each once: (object, whether it is a module)."""
        for leaf in self._parts():
            if id(leaf) in seen:
                continue
            if isinstance(leaf, Module):
                seen.add(id(leaf))
                yield leaf, True
            elif hasattr(leaf, "initializer") and hasattr(leaf, "trainable"):
                seen.add(id(leaf))
                yield leaf, False
        for leaf in self._parts():
            if isinstance(leaf, Module) and leaf is not self:
                key = ("walked", id(leaf))
                if key not in seen:
                    seen.add(key)
                    yield from leaf._walk(seen)

    @property
    def variables(self):
        """All variables, those of modules inside too."""
        return tuple(leaf for leaf, is_module in self._walk({id(self)}) if not is_module)

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        """All modules inside."""
        return tuple(leaf for leaf, is_module in self._walk({id(self)}) if is_module)
