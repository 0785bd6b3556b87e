"""Functions that share their variables between calls: make_template."""

from runnel.core.framework import get_default_graph


def make_template(name_, func_, create_scope_now_=False, unique_name_=None, custom_getter_=None, **kwargs):
    """Returns a function whose first call creates variables and whose later calls reuse them."""
    if unique_name_ and create_scope_now_:
        raise ValueError("unique_name_ and create_scope_now_ cannot both be set")
    template = Template(name_, func_, unique_name_, custom_getter_, kwargs)
    if create_scope_now_:
        template._enter()
    return template


class Template:
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
        with variable_scope(scope, reuse=self._made):
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
