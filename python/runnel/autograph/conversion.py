"""Converts functions: which ones, once each, and what the converted code calls as `ag__`."""

import ast
import contextlib
import functools
import inspect
import sys
import threading
import types

from runnel.autograph import ag_logging, flow, source

_state = threading.local()  # .is_off: whether nothing is converted; .decider: who said so; .features: names of optional features
_templates: dict = {}  # code of a function -> the converted code, or None if it cannot be converted
_converting = threading.RLock()  # CPython 3.11 mixes up the depths of two threads that parse at the same time, and raises SystemError
converted_codes: dict = {}  # converted code -> name of the function that it belongs to

# Libraries whose functions run as they are: they know what they do with tensors, or have nothing to do with them.
LIBRARIES = frozenset("""runnel tensorflow numpy keras tf_keras absl six wrapt tensorboard tensorflow_probability tensorflow_datasets h5py pytest
_pytest pandas PIL matplotlib sklearn scipy google h5py""".split())
STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) - {"__main__", "this", "antigravity"}


def is_enabled():
    """Tells whether the code that runs now is to be converted."""
    return not getattr(_state, "is_off", False)


@contextlib.contextmanager
def disabled():
    """A context manager in which nothing is converted."""
    before = set_status(None, True)
    try:
        yield
    finally:
        restore_status(before)


def status():
    """Returns who decides whether code is converted, as set_status got it; None without any."""
    return getattr(_state, "decider", None)


def set_status(decider, is_off):
    """Sets whether code is converted from now on, and who decides it. Returns what restore_status takes."""
    before = status(), getattr(_state, "is_off", False)
    _state.decider, _state.is_off = decider, is_off
    return before


def restore_status(before):
    """Sets what held before a call of set_status."""
    _state.decider, _state.is_off = before


def do_not_convert(func=None):
    """A decorator for a function that is to run as it is, with all that it calls."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def run(*args, **kwargs):
        with disabled():
            return func(*args, **kwargs)
    run._ag_as_it_is = True
    return run


def is_converted(function):
    """Marks a function as converted. It is what converted code calls for the functions that it makes."""
    with contextlib.suppress(AttributeError):
        function._ag_as_it_is = True
    return function


def convert(function, is_requested=False):
    """Returns the converted function, or the function itself if it is to run as it is.

    A function of a library is converted only if its author asked for it (`is_requested`), by tf.function.
    """
    if getattr(function, "_ag_as_it_is", False):
        return function
    if isinstance(function, types.MethodType):
        inner = convert(function.__func__, is_requested)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = convert(function.func, is_requested)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, types.FunctionType):
        return function if _is_of_library(function, is_requested) else _converted(function)
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, types.FunctionType) and not isinstance(function, type) and not _is_of_library(call, is_requested):
        inner = convert(call, is_requested)
        return function if inner is call else types.MethodType(inner, function)
    return function


@contextlib.contextmanager
def features(options):
    """A context manager: converted code has these optional features, a Feature or several of them; None changes nothing."""
    before = optional_features()
    _state.features = before if options is None else frozenset(f.name for f in (options if isinstance(options, (list, tuple, set)) else [options]))
    try:
        yield
    finally:
        _state.features = before


def optional_features():
    """Returns the names of the optional features that are on."""
    return getattr(_state, "features", frozenset())


def traceable(function, autograph=True, is_requested=False, options=None):
    """Returns a function as it is to be traced: converted, and with errors that name the lines of the user's code."""
    if autograph and is_requested and inspect.isgeneratorfunction(getattr(function, "__func__", function)):
        raise NotImplementedError("generators are not supported by AutoGraph: %r" % (function,))
    converted = convert(function, is_requested) if autograph else function

    def run(*args, **kwargs):
        with features(options) if autograph else disabled():
            try:
                return converted(*args, **kwargs)
            except Exception as error:
                from runnel.autograph.user_errors import with_lines
                new = with_lines(error)
                if new is error:
                    raise
                raise new from None
    run._ag_as_it_is = True
    return run


def traceable_in_graph(function):
    """Returns a function that an op such as tf.map_fn calls: traceable, unless it runs eagerly, is traced by itself, or nothing is converted."""
    from runnel.core import framework
    if framework.executing_eagerly() or not is_enabled() or hasattr(function, "get_concrete_function"):
        return function
    return traceable(function)


def _is_of_library(function, is_requested=False):
    config = sys.modules.get("runnel.autograph.core.config")
    if config is not None and config.are_changed() and not is_requested:
        return config.action_for(getattr(function, "__module__", None)) is config.Action.DO_NOT_CONVERT
    module = (getattr(function, "__module__", None) or "").partition(".")[0]
    if is_requested:
        return module in ("runnel", "tensorflow")
    return module in LIBRARIES or module in STANDARD


def _converted(function):
    code = function.__code__
    if code not in _templates:
        with _converting:
            if code not in _templates:
                _templates[code] = _template(function)
    made = _templates[code]
    if made is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells["ag__"] = _runtime_cell()
    converted = types.FunctionType(made, function.__globals__, function.__name__, function.__defaults__, tuple(
        cells[name] if name in cells else types.CellType() for name in made.co_freevars))
    converted.__kwdefaults__ = function.__kwdefaults__
    converted.__dict__.update(function.__dict__)
    converted.__module__, converted.__qualname__, converted.__doc__ = function.__module__, function.__qualname__, function.__doc__
    converted._ag_as_it_is = True  # type: ignore[attr-defined]
    converted._ag_original = function  # type: ignore[attr-defined]
    return converted


@functools.lru_cache(None)
def _runtime_cell():
    from runnel.autograph import runtime
    return types.CellType(runtime)


def _template(function):
    """Returns the converted code of a function; None, with a warning, if its source is not there."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    try:
        module, name = _module(function)
    except source.NoSource as error:
        if code.co_name != "<lambda>" or ag_logging.has_verbosity(1):
            ag_logging.warning("AutoGraph could not transform %r and will run it as-is.\nCause: %s", function, error)
        return None
    ag_logging.log(1, "Converted %r", function)
    if ag_logging.has_verbosity(10):
        ag_logging.log(10, "%s", ast.unparse(module))
    scope: dict = {}
    exec(compile(module, code.co_filename, "exec"), function.__globals__, scope)
    made = next(c for c in scope["ag__factory"].__code__.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    made = made.replace(co_name=code.co_name)
    _note(made, code.co_name)
    return made


def _note(code, name):
    """Remembers the code of a converted function and of its blocks."""
    converted_codes[code] = name
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _note(inner, name if inner.co_name.startswith(("ag__", "<")) else inner.co_name)


def _module(function):
    """Returns (a module with the converted function, in a function that has its free variables; name)."""
    node = source.mangle(source.parse(function), function.__code__)
    if not flow.can_convert(node):
        raise source.NoSource("it is a generator")
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    node.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in node.args.defaults]
    node.args.kw_defaults = [None if d is None else ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    flow.convert(node)
    names = ["ag__", *function.__code__.co_freevars]
    free = [ast.Assign(targets=[ast.Name(id=n, ctx=ast.Store())], value=ast.Constant(None)) for n in names]
    if node.name not in names:  # a function of a module that reads its own name reads the module's
        free.insert(0, ast.Global(names=[node.name]))
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    factory = ast.FunctionDef(name="ag__factory", args=arguments, decorator_list=[], returns=None, type_params=[], body=[*free, node])
    module = ast.Module(body=[ast.copy_location(factory, node)], type_ignores=[])
    return ast.fix_missing_locations(module), node.name


# --- tf.autograph

def to_graph(entity, recursive=True, experimental_optional_features=None):
    """Converts a Python function into one that builds a graph."""
    function = entity.python_function if hasattr(entity, "python_function") else entity
    converted = convert(function)
    if converted is function and not getattr(function, "_ag_as_it_is", False):
        raise ValueError("%r cannot be converted: its source is not there, or it belongs to a library" % (entity,))

    from runnel.autograph.core import ag_ctx

    @functools.wraps(converted)
    def run(*args, **kwargs):
        with ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED):  # also where nothing is to be converted
            return converted(*args, **kwargs)
    run._ag_as_it_is, run._ag_original = True, getattr(converted, "_ag_original", function)  # type: ignore[attr-defined]
    return run


def to_code(entity, recursive=True, experimental_optional_features=None):
    """Returns the source of the converted function."""
    function = entity.python_function if hasattr(entity, "python_function") else entity
    function = getattr(function, "__func__", function)
    return ast.unparse(_module(getattr(function, "_ag_original", function))[0].body[0].body[-1]) + "\n"


def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
    """As the first statement of a loop: sets options of the tf.while_loop that it becomes. Does nothing if it stays in Python."""
