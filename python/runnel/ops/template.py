"""Functions that share their variables between calls: make_template."""

import contextlib

from runnel.core.framework import executing_eagerly, get_default_graph
from runnel.core.trackable import Trackable


def make_template(name_, func_, create_scope_now_=False, unique_name_=None, custom_getter_=None, **kwargs):
    """Returns a function whose first call creates variables and whose later calls reuse them."""
    if unique_name_ and create_scope_now_:
        raise ValueError("unique_name_ and create_scope_now_ cannot both be set")
    template = Template(name_, func_, unique_name_, custom_getter_, kwargs)
    if create_scope_now_:
        template._enter()
    return template


@contextlib.contextmanager
def capture_dependencies(template):
    """A context manager: variables that are made inside it, under the template's scope, are tracked by it under their names there."""
    from runnel.ops.variable_scopes import variable_creator_scope
    scope = template.variable_scope.name

    def creator(following, name=None, initial_value=None, **kwargs):
        if name is None or not name.startswith(scope):
            return following(name=name, initial_value=initial_value, **kwargs)
        inner = _templates[-1] if _templates else template
        if inner is not template:  # a template inside this one has made it: track that
            template._track_trackable(inner, inner.variable_scope.name[len(scope) + 1:], overwrite=True)
            return following(name=name, initial_value=initial_value, **kwargs)

        def make(name, shape, dtype, initializer, **rest):
            return following(name=scope + "/" + name, initial_value=initializer, **rest)
        return template._add_variable_with_custom_getter(name=name[len(scope) + 1:], initializer=initial_value, getter=make, overwrite=True,
                                                         **kwargs)
    with variable_creator_scope(creator):
        _templates.append(template)
        try:
            yield
        finally:
            _templates.pop()


_templates: list = []  # those whose functions are running, the innermost last


class Template(Trackable):
    """The function that make_template returns."""

    def __init__(self, name, func, unique_name, custom_getter, kwargs):
        self._name, self._func, self._unique_name = name, func, unique_name
        self._custom_getter, self._kwargs = custom_getter, kwargs
        self._scope = None
        self._made = False
        self.__name__ = getattr(func, "__name__", name)
        self.__doc__ = func.__doc__

    def _enter(self):
        from runnel.ops.variable_scopes import variable_scope
        if self._scope is None:
            with variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter) as scope:
                self._scope = scope
        return self._scope

    def __call__(self, *args, **kwargs):
        from runnel.ops.variable_scopes import variable_scope
        scope = self._enter()
        merged = dict(self._kwargs)
        merged.update(kwargs)
        with variable_scope(scope, reuse=self._made), capture_dependencies(self):
            before = len(get_default_graph().get_collection("trainable_variables"))
            result = self._func(*args, **merged)
            if self._made and len(get_default_graph().get_collection("trainable_variables")) != before:
                raise ValueError("Trainable variable created when calling a template after the first time, perhaps you used "
                                 "tf.Variable when you meant tf.get_variable")
        self._made = True
        return result

    @property
    def name(self):
        """The template's name."""
        return self._name

    @property
    def func(self):
        """The function that it wraps."""
        return self._func

    @property
    def variable_scope(self):
        """The variable scope, or None before the first call."""
        return self._scope

    @property
    def var_scope(self):
        """The same as variable_scope."""
        return self._scope

    @property
    def variable_scope_name(self):
        """The name of the variable scope, or None before the first call."""
        return self._scope.name if self._scope is not None else None

    @property
    def variables(self):
        """The variables that the function created."""
        return self.global_variables + self.local_variables

    def _collected(self, key):
        if executing_eagerly():
            found = [v for child in self._trackable_children().values()
                     for v in ([child] if hasattr(child, "initializer") else getattr(child, "global_variables", ()))]
            return [] if key == "local_variables" else [v for v in found if key == "variables" or v.trainable]
        return get_default_graph().get_collection(key, self._scope.name + "/") if self._scope is not None else []

    @property
    def trainable_variables(self):
        """The trainable ones among them."""
        return self._collected("trainable_variables")

    @property
    def global_variables(self):
        """The global ones among them."""
        return self._collected("variables")

    @property
    def local_variables(self):
        """The local ones among them."""
        return self._collected("local_variables")
