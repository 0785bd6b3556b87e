"""tensorflow.python.autograph.core.function_wrappers: what surrounds the body of a converted function."""

from runnel import nest
from runnel.autograph.core import ag_ctx
from runnel.autograph.experimental import Feature
from runnel.autograph.operators import variables
from runnel.core import framework
from runnel.core.convert import convert_to_tensor


class FunctionScope:
    """A context manager for the body of a function: its scope of names, the order of its side effects, the options for what it calls."""

    def __init__(self, function_name, scope_name, options):
        self.name, self.scope_name, self.options = scope_name, scope_name, options
        self.callopts = options.call_options()
        self.autograph_ctx = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED, options) if options.user_requested else ag_ctx.NullCtx()
        self._name_scope = self._effects = None
        if options.uses(Feature.NAME_SCOPES):
            self._name_scope = framework.name_scope(self._sanitize(function_name))
        if options.uses(Feature.AUTO_CONTROL_DEPS):
            from runnel.eager.control_dependencies import AutomaticControlDependencies
            self._effects = AutomaticControlDependencies()

    @staticmethod
    def _sanitize(name):
        """Returns a name as scopes may have it."""
        return "fn" + name if name and name.startswith("_") else name or "fn"

    def _contexts(self):
        return [context for context in (self.autograph_ctx, self._name_scope, self._effects) if context is not None]

    def __enter__(self):
        for context in self._contexts():
            context.__enter__()
        return self

    def __exit__(self, *error):
        for context in reversed(self._contexts()):
            context.__exit__(*error)

    def ret(self, value, did_return):
        """Returns what the function returns, after its side effects; `value` does not count unless `did_return`."""
        if isinstance(value, variables.UndefinedReturnValue):
            return None
        if self._effects is None:
            return value
        return nest.map_structure(lambda x: self._effects.mark_as_return(convert_to_tensor(x)) if framework.is_tensor(x) else x, value)


def with_function_scope(thunk, scope_name, options):
    """Returns thunk(scope) of the body of a lambda."""
    with FunctionScope("lambda_", scope_name, options) as scope:
        return thunk(scope)
