"""Name scopes of 2.x. In eager execution they name the variables that are created inside."""

from runnel.core import framework


class name_scope:  # noqa: N801
    """A context manager: gives operations and variables the prefix "name/". A name with "/" at its end is a scope entered again."""

    def __init__(self, name, skip_on_eager=False):
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._inside = []  # what __exit__ undoes

    @property
    def name(self):
        """The name that was given."""
        return self._name

    def __enter__(self):
        if not framework.executing_eagerly():
            scope = framework.name_scope(self._name)
            self._inside.append(scope)
            return scope.__enter__()
        before = framework.eager_scope.name
        self._inside.append(before)
        framework.eager_scope.name = new = self._name if self._name.endswith("/") or not self._name else "%s%s/" % (before, self._name)
        return new

    def __exit__(self, *exc):
        inside = self._inside.pop()
        if isinstance(inside, str):
            framework.eager_scope.name = inside
        else:
            inside.__exit__(*exc)


def get_current_name_scope():
    """Returns the current name scope, without its last "/"."""
    if framework.executing_eagerly():
        return framework.eager_scope.name.rstrip("/")
    return framework.get_default_graph().get_name_scope()
