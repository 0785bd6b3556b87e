"""tensorflow.python.util: decorators, deprecation and small containers that packages import from there."""

import collections.abc as collections_abc  # noqa: F401  tensorflow.python.util.compat
import contextlib
import functools
import importlib
import inspect
import sys
import types

from runnel.alias.util.decorators import getfullargspec, make_decorator, unwrap
from runnel.alias.util.deprecation_names import deprecated, deprecated_arg_values, deprecated_args  # noqa: F401
from runnel.autograph import do_not_convert  # noqa: F401


def contextmanager(target):
    """Python's contextlib.contextmanager, as a TFDecorator."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")


def fn_args(fn):
    """Returns the names of a callable's arguments, without self."""
    if isinstance(fn, functools.partial):
        names = list(fn_args(fn.func))[len(fn.args):]
        return tuple(name for name in names if name not in (fn.keywords or {}))
    if not inspect.isfunction(fn) and not inspect.ismethod(fn) and callable(fn) and not unwrap(fn)[0]:
        fn = fn.__init__ if isinstance(fn, type) else fn.__call__
    names = getfullargspec(fn).args
    if names and (inspect.ismethod(unwrap(fn)[1]) or names[0] == "self" and inspect.ismethod(fn)):
        names = names[1:]
    return tuple(names)


def has_kwargs(fn):
    """Tells whether a callable takes any keyword."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    elif not inspect.isfunction(fn) and not inspect.ismethod(fn) and callable(fn) and not unwrap(fn)[0]:
        fn = fn.__call__
    elif not callable(fn):
        raise TypeError("Argument `fn` should be a callable. Received: fn=%s (of type %s)" % (fn, type(fn)))
    return getfullargspec(fn).varkw is not None


def get_func_name(func):
    """Returns the name of a function with that of its class, or the text form of another callable."""
    _, func = unwrap(func)
    if not callable(func):
        raise ValueError("Argument `func` must be a callable. Received func=%s (of type %s)" % (func, type(func)))
    if inspect.isfunction(func) or inspect.ismethod(func):
        return func.__qualname__.rpartition("<locals>.")[2]
    return str(type(func))


def get_func_code(func):
    """Returns the code of a function, or of the method `__call__` of an object; None if there is none."""
    _, func = unwrap(func)
    if not callable(func):
        raise ValueError("Argument `func` must be a callable. Received func=%s (of type %s)" % (func, type(func)))
    if inspect.isfunction(func) or inspect.ismethod(func):
        return func.__code__
    return getattr(type(func).__call__, "__code__", None)


def keyword_args_only(func):
    """A decorator: the function refuses positional arguments."""
    @functools.wraps(func)
    def by_keyword(*args, **kwargs):
        if args:
            raise ValueError("The function %s only accepts keyword arguments. Do not pass positional arguments. "
                             "Received the following positional arguments: %s" % (func.__name__, args))
        return func(**kwargs)
    return by_keyword


# Lists of names.

_hidden: dict = {}


def make_all(module_name, doc_string_modules=None):
    """Returns the public names that docstrings of modules mention as "@@name"."""
    import re
    modules = [sys.modules[module_name]] if doc_string_modules is None else doc_string_modules
    found = set()
    for module in modules:
        found.update(re.findall(r"^\s*@@([a-zA-Z0-9_]+)\s*$", module.__doc__ or "", re.MULTILINE))
    own = vars(sys.modules[module_name])
    return [name for name in own if name in found and not name.startswith("_")]


def remove_undocumented(module_name, allowed_exception_list=None, doc_string_modules=None):
    """Removes names from a module that its docstring does not mention and that are not allowed."""
    module = sys.modules[module_name]
    keep = set(make_all(module_name, doc_string_modules)) | set(allowed_exception_list or ())
    for name in [n for n in vars(module) if n not in keep and not n.startswith("_")]:
        _hidden["%s.%s" % (module_name, name)] = (module, getattr(module, name))
        delattr(module, name)


def reveal_undocumented(symbol_name, target_module=None):
    """Restores a name that `remove_undocumented` removed."""
    if symbol_name not in _hidden:
        raise LookupError("Symbol %s is not a hidden symbol" % symbol_name)
    module, value = _hidden[symbol_name]
    setattr(target_module or module, symbol_name.rpartition(".")[2], value)


def kwarg_only(f):
    """A decorator that does nothing."""
    return keyword_args_only(f)


class LazyLoader(types.ModuleType):
    """A module that is imported when one of its names is first used or set; `warning` is logged then."""

    def __init__(self, local_name, parent_module_globals, name, warning=None, **_):
        super().__init__(name)
        self.__dict__.update(_local_name=local_name, _parent=parent_module_globals, _warning=warning)

    def _load(self):
        own = self.__dict__
        module = importlib.import_module(self.__name__)
        own["_parent"][own["_local_name"]] = module
        if own["_warning"]:
            from runnel import logging
            logging.warning(own["_warning"])
            own["_warning"] = None
        return module

    def __getattr__(self, item):
        if item == "__wrapped__":  # tools that unwrap functions do not import it
            raise AttributeError(item)
        return getattr(self._load(), item)

    def __setattr__(self, item, value):
        setattr(self._load(), item, value)

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)

    def __dir__(self):
        return dir(self._load())
