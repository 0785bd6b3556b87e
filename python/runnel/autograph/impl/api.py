"""tensorflow.python.autograph.impl.api: conversions of functions, and the compiler made of `converters`."""

import functools
import importlib
import os
import types

from runnel.autograph import branches, conversion as _conversion
from runnel.autograph.conversion import do_not_convert, to_code, to_graph  # noqa: F401
from runnel.autograph.core import ag_ctx, converter, function_wrappers, unsupported_features_checker
from runnel.autograph.core.ag_ctx import ControlStatusCtx, Status, control_status_ctx  # noqa: F401
from runnel.autograph.pyct import anno, cfg, errors, inspect_utils, qual_names, transpiler
from runnel.autograph.pyct.static_analysis import activity, reaching_definitions


class AutoGraphError(errors.PyCTError):
    """The base of these errors."""


class ConversionError(AutoGraphError):
    """A function cannot be converted."""


class StagingError(AutoGraphError):
    """A converted function failed."""


def is_autograph_strict_conversion_mode():
    """Tells whether functions that cannot be converted are errors."""
    return int(os.environ.get("AUTOGRAPH_STRICT_CONVERSION", "0")) > 0


_OPERATORS = "conditional_expressions control_flow data_structures exceptions logical py_builtins slices variables".split()


@functools.lru_cache(None)
def _runtime():
    """Returns the module that generated code calls `ag__`."""
    made = types.ModuleType("autograph")
    for name in _OPERATORS:
        operators = importlib.import_module("runnel.autograph.operators." + name)
        made.__dict__.update({key: value for key, value in vars(operators).items() if not key.startswith("_")})
    special = importlib.import_module("runnel.autograph.lang.special_functions")
    made.__dict__.update(vars(special), utils=importlib.import_module("runnel.autograph.utils"))
    made.__dict__.update(
        ConversionOptions=converter.ConversionOptions, Feature=converter.Feature, STD=converter.STANDARD_OPTIONS, converted_call=converted_call,
        FunctionScope=function_wrappers.FunctionScope, with_function_scope=function_wrappers.with_function_scope,
        autograph_artifact=autograph_artifact)
    return made


_STEPS = ("functions directives break_statements asserts continue_statements return_statements lists slices call_trees control_flow "
          "conditional_expressions logical_expressions variables").split()
_OPTIONAL_STEPS = {"asserts": converter.Feature.ASSERT_STATEMENTS, "lists": converter.Feature.LISTS, "slices": converter.Feature.LISTS}


class PyToTF(transpiler.PyToPy):
    """The compiler whose steps are the modules of `converters`. tf.function uses a faster one, runnel.autograph.conversion."""

    def get_transformed_name(self, node):
        return "tf__" + super().get_transformed_name(node)

    def get_extra_locals(self):
        return {"ag__": _runtime()}

    def get_caching_key(self, ctx):
        return ctx.options

    def initial_analysis(self, node, ctx):
        """Notes names, scopes and definitions in a tree."""
        graphs = cfg.build(node)
        node = qual_names.resolve(node)
        node = activity.resolve(node, ctx, None)
        node = reaching_definitions.resolve(node, ctx, graphs)
        anno.dup(node, {anno.Static.DEFINITIONS: anno.Static.ORIG_DEFINITIONS})
        return node

    def transform_ast(self, node, ctx):
        unsupported_features_checker.verify(node)
        node = self.initial_analysis(node, ctx)
        for name in _STEPS:
            if name not in _OPTIONAL_STEPS or ctx.user.options.uses(_OPTIONAL_STEPS[name]):
                node = importlib.import_module("runnel.autograph.converters." + name).transform(node, ctx)
        return node


def autograph_artifact(entity, extras=None):
    """Marks a function as made by a conversion. Returns it."""
    entity.ag_module = None
    for key, value in (extras or {}).items():
        setattr(entity, key, value)
    return _conversion.is_converted(entity)


def is_autograph_artifact(entity):
    """Tells whether a conversion made a function."""
    return getattr(entity, "_ag_as_it_is", False)


def converted_call(f, args, kwargs, caller_fn_scope=None, options=None):
    """Calls a function in its converted form, with options that are given or those of the scope of the caller."""
    options = options or getattr(caller_fn_scope, "callopts", None) or converter.STANDARD_OPTIONS
    wanted = branches.callee(f) if options.internal_convert_user_code or inspect_utils.isbuiltin(f) else f
    if options.user_requested and wanted is f and not is_autograph_artifact(f):
        wanted = _conversion.convert(f, True)
    return wanted(*args, **(kwargs or {}))


def tf_convert(f, ctx, convert_by_default=True, user_requested=False):
    """Returns a function in its converted form, unless the status says not to convert or it is converted already."""
    if is_autograph_artifact(f):
        return f
    if ctx.status is Status.UNSPECIFIED and not convert_by_default:
        return call_with_unspecified_conversion_status(f)
    wanted = ctx.status is not Status.DISABLED
    return functools.update_wrapper(_conversion.traceable(f, wanted, user_requested), getattr(f, "__func__", f), updated=())


def call_with_unspecified_conversion_status(func):
    """A decorator: the function runs as if nothing had been said about conversions."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        with ag_ctx.ControlStatusCtx(Status.UNSPECIFIED):
            return func(*args, **kwargs)
    return autograph_artifact(run)


def convert(recursive=False, optional_features=None, user_requested=True, conversion_ctx=None):
    """A decorator that converts a function, also in graphs that no tf.function builds."""
    del recursive
    context = conversion_ctx if conversion_ctx is not None else ag_ctx.NullCtx()

    def decorate(function):
        from runnel.alias.util.decorators import make_decorator
        run = _conversion.traceable(function, True, user_requested, optional_features)

        def wrapper(*args, **kwargs):
            with context, ag_ctx.ControlStatusCtx(Status.ENABLED):
                return run(*args, **kwargs)
        return autograph_artifact(make_decorator(function, wrapper))
    return decorate
