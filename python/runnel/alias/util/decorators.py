"""tensorflow.python.util's tf_decorator and tf_inspect: decorators that can be unwrapped, and inspect for decorated functions."""

import collections
import contextlib
import functools
import inspect
import types

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
FullArgSpec = inspect.FullArgSpec


class TFDecorator:
    """Describes what a decorator wrapped around a function; it is the function's `_tf_decorator`."""

    def __init__(self, decorator_name, target, decorator_doc="", decorator_argspec=None):
        self._decorator_name, self._decorated_target, self._decorator_doc = decorator_name, target, decorator_doc
        self._decorator_argspec = decorator_argspec
        for name in ("__name__", "__qualname__", "__module__"):
            if hasattr(target, name):
                setattr(self, name, getattr(target, name))
        self.__doc__ = decorator_doc or getattr(target, "__doc__", None) or ""
        if decorator_argspec is not None:
            self.__signature__ = fullargspec_to_signature(decorator_argspec)
        elif callable(target):
            with contextlib.suppress(TypeError, ValueError):  # a builtin without a signature
                self.__signature__ = inspect.signature(target)

    def __get__(self, instance, owner):
        get = getattr(self._decorated_target, "__get__", None)
        return self._decorated_target if get is None else get(instance, owner)

    def __call__(self, *args, **kwargs):
        return self._decorated_target(*args, **kwargs)

    @property
    def decorated_target(self):
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target):
        self._decorated_target = target

    decorator_name = property(lambda self: self._decorator_name)
    decorator_doc = property(lambda self: self._decorator_doc)
    decorator_argspec = property(lambda self: self._decorator_argspec)


def fullargspec_to_signature(fullargspec):
    """Returns the Signature of a FullArgSpec."""
    kinds, empty = inspect.Parameter, inspect.Parameter.empty
    notes = fullargspec.annotations or {}
    defaults = dict(zip(reversed(fullargspec.args), reversed(fullargspec.defaults or ())))
    found = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=defaults.get(name, empty), annotation=notes.get(name, empty))
             for name in fullargspec.args]
    if fullargspec.varargs:
        found.append(kinds(fullargspec.varargs, kinds.VAR_POSITIONAL))
    only = fullargspec.kwonlydefaults or {}
    found += [kinds(name, kinds.KEYWORD_ONLY, default=only.get(name, empty), annotation=notes.get(name, empty))
              for name in fullargspec.kwonlyargs]
    if fullargspec.varkw:
        found.append(kinds(fullargspec.varkw, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


def make_decorator(target, decorator_func, decorator_name=None, decorator_doc="", decorator_argspec=None):
    """Makes `decorator_func` look like the function `target` that it calls, and returns it."""
    if decorator_name is None:
        decorator_name = inspect.currentframe().f_back.f_code.co_name
    decorator = TFDecorator(decorator_name, target, decorator_doc, decorator_argspec)
    decorator_func._tf_decorator = decorator
    for name in ("__name__", "__qualname__", "__module__"):
        if hasattr(target, name):
            setattr(decorator_func, name, getattr(target, name))
    for name, value in getattr(target, "__dict__", {}).items():
        if not hasattr(decorator_func, name):
            setattr(decorator_func, name, value)
    decorator_func.__doc__ = decorator.__doc__
    decorator_func.__wrapped__ = target
    if hasattr(decorator, "__signature__"):
        decorator_func.__signature__ = decorator.__signature__
    if decorator_argspec is None and "self" in getattr(getattr(decorator, "__signature__", None), "parameters", ()):
        owner = _owner_of(target)
        if owner is not None:  # a method whose decorator states `self` among its arguments
            parameters = list(decorator.__signature__.parameters.values())
            decorator_func.__self__, decorator_func.__signature__ = owner, inspect.Signature(parameters[1:])
    return decorator_func


def _owner_of(target):
    """Returns the object whose method is among the decorated functions, or None."""
    for decorator in unwrap(target)[0]:
        if inspect.ismethod(decorator.decorated_target):
            return decorator.decorated_target.__self__
    return None


def unwrap(maybe_tf_decorator):
    """Returns (decorators of a function from the outermost, the innermost function)."""
    decorators = []
    current = maybe_tf_decorator
    while True:
        decorator = current if isinstance(current, TFDecorator) else getattr(current, "_tf_decorator", None)
        if hasattr(current, "python_function") and hasattr(current, "get_concrete_function"):
            decorator = TFDecorator("tf.function", current.python_function)
        if not isinstance(decorator, TFDecorator):
            return decorators, current
        decorators.append(decorator)
        current = decorator.decorated_target


def rewrap(decorator_func, previous_target, new_target):
    """Replaces the function that `decorator_func` decorates, at the end of its decorators, where it is `previous_target`."""
    current, innermost = decorator_func, None
    while True:
        decorator = current if isinstance(current, TFDecorator) else getattr(current, "_tf_decorator", None)
        if decorator is None or current is previous_target:
            break
        innermost = current, decorator
        current = decorator.decorated_target
    if innermost is None:
        return
    function, decorator = innermost
    decorator.decorated_target = new_target
    if function is not decorator:
        function.__wrapped__ = new_target


def _target(obj):
    return unwrap(obj)[1]


def _of_target(name):
    function = getattr(inspect, name)

    def of_target(object):  # noqa: A002
        return function(_target(object))
    of_target.__name__, of_target.__doc__ = name, "Like inspect.%s, of the function inside decorators." % name
    return of_target


getfile, getsource, getsourcefile, getsourcelines, getmodule = map(
    _of_target, ("getfile", "getsource", "getsourcefile", "getsourcelines", "getmodule"))
getdoc = inspect.getdoc
isclass, isfunction, isframe, isgenerator, isgeneratorfunction, ismethod, ismodule, isroutine = map(
    _of_target, ("isclass", "isfunction", "isframe", "isgenerator", "isgeneratorfunction", "ismethod", "ismodule", "isroutine"))


def isanytargetmethod(obj):
    """Tells whether an object, or a function inside its decorators and partial calls, is a method, or has a method `__call__`."""
    decorators, target = unwrap(obj)
    for decorator in decorators:
        if inspect.ismethod(decorator.decorated_target):
            return True
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, (types.FunctionType, type)) or not callable(target):
        return False
    return inspect.ismethod(target) or inspect.ismethod(getattr(target, "__call__", None))  # noqa: B004  the method itself


def signature(obj, *, follow_wrapped=True):
    """Like inspect.signature, of the outermost decorator that gives arguments, or the function inside."""
    return inspect.signature(obj, follow_wrapped=follow_wrapped)


def getfullargspec(obj):
    """Like inspect.getfullargspec, of the function inside decorators unless a decorator gives its arguments."""
    decorators, target = unwrap(obj)
    for decorator in decorators:
        if decorator.decorator_argspec is not None:
            return decorator.decorator_argspec
    return inspect.getfullargspec(target)


def getcallargs(*func_and_positional, **named):
    """Like inspect.getcallargs, with the arguments of `getfullargspec`."""
    func, positional = func_and_positional[0], func_and_positional[1:]
    spec = getfullargspec(func)
    args = list(spec.args)
    bound = getattr(func, "__self__", None)
    found = dict(zip(reversed(args), reversed(spec.defaults or ())))
    found.update(spec.kwonlydefaults or {})
    if inspect.ismethod(func) and bound is not None and args:
        positional = (bound, *positional)
    found.update(zip(args, positional))
    found.update(named)
    return found


def getargspec(obj):
    """Returns the arguments of a callable in the form of older Pythons' inspect.getargspec."""
    if isinstance(obj, functools.partial):
        return _partial_argspec(obj)
    for decorator in unwrap(obj)[0]:
        if decorator.decorator_argspec is not None:
            return decorator.decorator_argspec
    target = _target(obj)
    if not inspect.isfunction(target) and not inspect.ismethod(target) and callable(target):
        if isinstance(target, type):
            target = target.__init__ if target.__init__ is not object.__init__ else target.__new__
        else:
            target = type(target).__call__
    found = inspect.getfullargspec(target)
    defaults = (found.defaults or ()) + tuple((found.kwonlydefaults or {}).values())
    return ArgSpec(found.args + found.kwonlyargs, found.varargs, found.varkw, defaults or None)


def _partial_argspec(obj):
    """Returns the arguments that a partial call leaves. Raises ValueError if some of them can only be given by name."""
    found = getargspec(obj.func)
    args = found.args[len(obj.args):]
    defaults = dict(zip(found.args[len(found.args) - len(found.defaults or ()):], found.defaults or ()))
    defaults.update(obj.keywords or {})
    first = next((i for i, arg in enumerate(args) if arg in defaults), len(args))
    if any(arg not in defaults for arg in args[first:]):
        raise ValueError("%s has some keyword-only arguments, which are not supported: %s." % (
            obj, [arg for arg in args[first:] if arg not in defaults]))
    return ArgSpec(args, found.varargs, found.keywords, tuple(defaults[arg] for arg in args if arg in defaults) or None)
