"""FullArgSpecs of functions, as SavedModels describe them."""

import inspect

from runnel.saved_model import structured_value


def full_arg_spec(python_function):
    """Returns the FullArgSpec of a function, or of a signature."""
    import collections
    kinds = inspect.Parameter
    signature = python_function if isinstance(python_function, inspect.Signature) else inspect.signature(python_function)
    parameters = list(signature.parameters.values())
    plain = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind == kinds.KEYWORD_ONLY]

    def value(default):
        try:
            structured_value.encode(default)
        except structured_value.NotEncodable:
            return None
        return default

    def rest(kind):
        return next((p.name for p in parameters if p.kind == kind), None)
    defaults = tuple(value(p.default) for p in plain if p.default is not kinds.empty)
    full = collections.namedtuple("FullArgSpec", "args varargs varkw defaults kwonlyargs kwonlydefaults annotations")
    return full([p.name for p in plain], rest(kinds.VAR_POSITIONAL), rest(kinds.VAR_KEYWORD), defaults or None,
                [p.name for p in named], {p.name: value(p.default) for p in named if p.default is not kinds.empty} or None, {})
