"""tensorflow.python.util: decorators, deprecation and small containers that packages import from there."""

import collections
import contextlib
import functools
import importlib
import inspect
import sys
import types

from runnel.autograph import do_not_convert  # noqa: F401


# Decorators that can be unwrapped.

class TFDecorator:
    """Describes what a decorator wrapped around a function; it is the function's `_tf_decorator`."""

    def __init__(self, decorator_name, target, decorator_doc="", decorator_argspec=None):
        self._name, self._target, self._doc = decorator_name, target, decorator_doc
        self._argspec = decorator_argspec
        functools.update_wrapper(self, target, ("__name__", "__qualname__", "__module__"), ())
        self.__doc__ = getattr(target, "__doc__", None) or decorator_doc

    def __call__(self, *args, **kwargs):
        return self._target(*args, **kwargs)

    @property
    def decorated_target(self):
        return self._target

    @decorated_target.setter
    def decorated_target(self, target):
        self._target = target

    decorator_name = property(lambda self: self._name)
    decorator_doc = property(lambda self: self._doc)
    decorator_argspec = property(lambda self: self._argspec)


def make_decorator(target, decorator_func, decorator_name=None, decorator_doc="", decorator_argspec=None):
    """Makes `decorator_func` look like the function `target` that it calls, and returns it."""
    if decorator_name is None:
        decorator_name = inspect.currentframe().f_back.f_code.co_name
    functools.update_wrapper(decorator_func, target)
    if decorator_argspec is not None:
        decorator_func.__dict__.pop("__wrapped__", None)
    decorator_func._tf_decorator = TFDecorator(decorator_name, target, decorator_doc, decorator_argspec)
    return decorator_func


def unwrap(maybe_tf_decorator):
    """Returns (decorators of a function from the outermost, the innermost function)."""
    decorators = []
    current = maybe_tf_decorator
    while True:
        decorator = current if isinstance(current, TFDecorator) else getattr(current, "_tf_decorator", None)
        if not isinstance(decorator, TFDecorator):
            return decorators, current
        decorators.append(decorator)
        current = decorator.decorated_target


def rewrap(decorator_func, previous_target, new_target):
    """Replaces the function that `decorator_func` decorates."""
    for decorator in unwrap(decorator_func)[0]:
        if decorator.decorated_target is previous_target:
            decorator.decorated_target = new_target
    return decorator_func


def contextmanager(target):
    """Python's contextlib.contextmanager, as a TFDecorator."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")


# inspect for decorated functions.

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
FullArgSpec = inspect.FullArgSpec


def getfullargspec(obj):
    """Like inspect.getfullargspec, of the function inside decorators unless a decorator gives its arguments."""
    decorators, target = unwrap(obj)
    for decorator in decorators:
        if decorator.decorator_argspec is not None:
            return decorator.decorator_argspec
    return inspect.getfullargspec(target)


def getargspec(obj):
    """Returns the arguments of a function in the form of older Pythons' inspect.getargspec."""
    if isinstance(obj, functools.partial):
        return _partial_argspec(obj)
    if not inspect.isfunction(obj) and not inspect.ismethod(obj) and not unwrap(obj)[0] and callable(obj):
        obj = obj.__init__ if isinstance(obj, type) else type(obj).__call__
    found = getfullargspec(obj)
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def _partial_argspec(obj):
    found = getargspec(obj.func)
    args = found.args[len(obj.args):]
    defaults = dict(zip(found.args[len(found.args) - len(found.defaults or ()):], found.defaults or ()))
    defaults.update(obj.keywords or {})
    first = next((i for i, arg in enumerate(args) if arg in defaults), len(args))
    without = [arg for arg in args[first:] if arg not in defaults]
    if without:
        raise ValueError("Some arguments %s do not have default value, but they are positioned after those with "
                         "default values. This can not be expressed with ArgSpec." % without)
    return ArgSpec(args, found.varargs, found.keywords, tuple(defaults[arg] for arg in args[first:]) or None)


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
    """Returns the name of a function, or the text form of a callable without one."""
    _, func = unwrap(func)
    if not callable(func):
        raise ValueError("Argument `func` must be a callable. Received func=%s (of type %s)" % (func, type(func)))
    if inspect.isfunction(func) or inspect.ismethod(func):
        return func.__name__
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return str(type(func))


def get_func_code(func):
    """Returns the code of a function, or None for another callable."""
    _, func = unwrap(func)
    return getattr(func.func if isinstance(func, functools.partial) else func, "__code__", None)


def keyword_args_only(func):
    """A decorator: the function refuses positional arguments."""
    @functools.wraps(func)
    def by_keyword(*args, **kwargs):
        if args:
            raise ValueError("The function %s only accepts keyword arguments. Do not pass positional arguments. "
                             "Received the following positional arguments: %s" % (func.__name__, args))
        return func(**kwargs)
    return by_keyword


# Deprecation: warns in the log, once per calling line.

class DeprecatedNamesAlreadySetError(Exception):
    """The deprecated names of a symbol were set twice."""

    pass


_state = types.SimpleNamespace(silent=0, said=set())


@contextlib.contextmanager
def silence():
    """A context manager without deprecation warnings."""
    _state.silent += 1
    try:
        yield
    finally:
        _state.silent -= 1


def _say(key, once, message, *values):
    if _state.silent or once and key in _state.said:
        return
    _state.said.add(key)
    from runnel import logging
    frame = inspect.currentframe().f_back.f_back
    logging.warning("From %s:%d: " + message, frame.f_code.co_filename, frame.f_lineno, *values)


def _when(date):
    return "in a future version" if date is None else "after %s" % date


def _check(date, instructions):
    import re
    if date is not None and not re.match(r"20\d\d-[01]\d-[0123]\d", date):
        raise ValueError("Date must be in format YYYY-MM-DD. Received: %s" % date)
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions! Specify the `instructions` argument.")


def _full_name(func):
    return "%s (from %s)" % (getattr(func, "__qualname__", func), getattr(func, "__module__", "?"))


def deprecated(date, instructions, warn_once=True):
    """A decorator: the function or class warns at its first call that it is deprecated."""
    _check(date, instructions)

    def decorate(func_or_class):
        is_class = isinstance(func_or_class, type)
        func = func_or_class.__init__ if is_class else func_or_class

        @functools.wraps(func)
        def called(*args, **kwargs):
            _say(func, warn_once, "%s is deprecated and will be removed %s.\nInstructions for updating:\n%s",
                 _full_name(func_or_class), _when(date), instructions)
            return func(*args, **kwargs)

        if is_class:
            func_or_class.__init__ = make_decorator(func, called, "deprecated")
            return func_or_class
        return make_decorator(func, called, "deprecated")
    return decorate


def deprecated_alias(deprecated_name, name, func_or_class, warn_once=True):
    """Returns a function or class under an old name, which warns at its first call."""
    def say():
        _say(deprecated_name, warn_once, "The name %s is deprecated. Please use %s instead.\n", deprecated_name, name)

    if isinstance(func_or_class, type):
        class Alias(func_or_class):
            def __init__(self, *args, **kwargs):
                say()
                super().__init__(*args, **kwargs)
        Alias.__name__, Alias.__doc__ = func_or_class.__name__, func_or_class.__doc__
        return Alias

    def called(*args, **kwargs):
        say()
        return func_or_class(*args, **kwargs)
    return make_decorator(func_or_class, called, "deprecated")


def deprecated_endpoints(*args):
    """A decorator that records the old public names of a function."""
    def decorate(func):
        if "_tf_deprecated_api_names" in func.__dict__:
            raise DeprecatedNamesAlreadySetError("Cannot set deprecated names for %s to %s. Deprecated names are already "
                                                 "set to %s." % (func.__name__, str(args), func._tf_deprecated_api_names))
        func._tf_deprecated_api_names = args
        return func
    return decorate


def _decorate_arguments(date, instructions, warn_once, old_of):
    """A decorator; `old_of(names, bound)` returns the deprecated arguments of a call, as texts."""
    _check(date, instructions)

    def decorate(func):
        spec = getfullargspec(func)

        def called(*args, **kwargs):
            bound = dict(zip(spec.args, args), **kwargs)
            for text in old_of(spec, bound):
                _say((func, text), warn_once, "calling %s with %s is deprecated and will be removed %s.\n"
                     "Instructions for updating:\n%s", _full_name(func), text, _when(date), instructions)
            return func(*args, **kwargs)
        return make_decorator(func, called, "deprecated")
    return decorate


def deprecated_args(date, instructions, *deprecated_arg_names_or_tuples, **kwargs):
    """A decorator: arguments of these names are deprecated; ("name", value) allows that value."""
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    harmless = dict(x if isinstance(x, tuple) else (x, _state) for x in deprecated_arg_names_or_tuples)

    def old_of(spec, bound):
        missing = [name for name in harmless
                   if name not in spec.args + spec.kwonlyargs + [spec.varargs, spec.varkw]]
        if missing:
            raise ValueError("The following deprecated arguments are not present in the function signature: %s. Expected "
                             "arguments from the following list: %s." % (missing, spec.args))
        return [name for name in harmless if name in bound and not _same(bound[name], harmless[name])]
    return _decorate_arguments(date, instructions, kwargs.get("warn_once", True), old_of)


def deprecated_arg_values(date, instructions, warn_once=True, **deprecated_kwargs):
    """A decorator: these values of arguments are deprecated."""
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")
    return _decorate_arguments(date, instructions, warn_once, lambda spec, bound: [
        "%s=%s" % (name, value) for name, value in deprecated_kwargs.items() if name in bound and _same(bound[name], value)])


def _same(a, b):
    if a is b:
        return True
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def deprecated_argument_lookup(new_name, new_value, old_name, old_value):
    """Returns the value of an argument that also has an old name. Raises ValueError if both are given."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError("Cannot specify both '%s' and '%s'." % (old_name, new_name))
    return old_value


def rewrite_argument_docstring(old_doc, old_argument, new_argument):
    """Returns a docstring with an argument renamed."""
    return old_doc.replace("`%s`" % old_argument, "`%s`" % new_argument).replace("%s:" % old_argument, "%s:" % new_argument)


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


class api_export:
    """A decorator that does nothing: public names are in tables."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, func):
        return func

    def export_constant(self, module_name, name):
        pass


tf_export = keras_export = estimator_export = api_export


def kwarg_only(f):
    """A decorator that does nothing."""
    return keyword_args_only(f)


def add_dispatch_support(target=None, iterable_parameters=None):
    """A decorator that does nothing: composite types are handled by core/convert.py."""
    return target if target is not None else lambda func: func


register_unary_elementwise_api = register_binary_elementwise_api = add_fallback_dispatch_list = add_dispatch_support


def should_use_result(fn=None, warn_in_eager=False, error_in_function=False):
    """A decorator that does nothing: unused results are not reported."""
    return fn if fn is not None else lambda func: func


class LazyLoader(types.ModuleType):
    """A module that is imported when one of its names is first used."""

    def __init__(self, local_name, parent_module_globals, name, **_):
        super().__init__(name)
        self._local_name, self._parent = local_name, parent_module_globals

    def __getattr__(self, item):
        module = importlib.import_module(self.__name__)
        self._parent[self._local_name] = module
        return getattr(module, item)

    def __dir__(self):
        return dir(importlib.import_module(self.__name__))


# Containers that compare by identity.

class Reference:
    """A reference by identity: a key for objects with their own ==."""

    __slots__ = ("_wrapped", "__weakref__")

    def __init__(self, wrapped):
        self._wrapped = wrapped

    @property
    def unwrapped(self):
        return self._wrapped

    def deref(self):
        return self._wrapped

    def __eq__(self, other):
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __hash__(self):
        return id(self._wrapped)

    def __repr__(self):
        return "<Reference wrapping %r>" % (self._wrapped,)


class ObjectIdentityDictionary(collections.abc.MutableMapping):
    """A dict that compares keys by identity."""

    def __init__(self, *args, **kwargs):
        self._storage = {}
        self.update(dict(*args, **kwargs))

    def __getitem__(self, key):
        return self._storage[Reference(key)]

    def __setitem__(self, key, value):
        self._storage[Reference(key)] = value

    def __delitem__(self, key):
        del self._storage[Reference(key)]

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return (key.unwrapped for key in list(self._storage))

    def __repr__(self):
        return "ObjectIdentityDictionary(%r)" % (list(self.items()),)


class ObjectIdentitySet(collections.abc.MutableSet):
    """A set that compares elements by identity."""

    def __init__(self, *args):
        self._storage = {Reference(x): None for x in (args[0] if args else ())}

    def __contains__(self, key):
        return Reference(key) in self._storage

    def add(self, key):
        self._storage[Reference(key)] = None

    def discard(self, key):
        self._storage.pop(Reference(key), None)

    def update(self, items):
        for item in items:
            self.add(item)

    def clear(self):
        self._storage.clear()

    def intersection(self, items):
        return ObjectIdentitySet([x for x in items if x in self])

    def difference(self, items):
        others = ObjectIdentitySet(items)
        return ObjectIdentitySet([x for x in self if x not in others])

    def __len__(self):
        return len(self._storage)

    def __iter__(self):
        return (key.unwrapped for key in list(self._storage))


ObjectIdentityWeakKeyDictionary, ObjectIdentityWeakSet = ObjectIdentityDictionary, ObjectIdentitySet
