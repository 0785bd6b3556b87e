"""Questions about functions, classes and their namespaces."""

import __future__
import builtins
import inspect
import itertools
import linecache
import sys
import types

_BUILTINS = frozenset(id(value) for value in vars(builtins).values())
_FEATURES = {name: getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}


def islambda(f):
    """Tells whether a function was written as a lambda, whatever it is called now."""
    code = getattr(f, "__code__", None)
    return isinstance(f, types.FunctionType) and code is not None and code.co_name == "<lambda>"


def isnamedtuple(f):
    """Tells whether a class looks like a named tuple."""
    fields = getattr(f, "_fields", None)
    return inspect.isclass(f) and issubclass(f, tuple) and isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


def isbuiltin(f):
    """Tells whether a function or class is one of Python's own, or written in C."""
    return id(f) in _BUILTINS or isinstance(f, types.BuiltinFunctionType) or inspect.isbuiltin(f)


def isconstructor(cls):
    """Tells whether calling an object makes an instance of it: a class whose metaclass does not say otherwise."""
    return inspect.isclass(cls) and type(cls).__call__ is type.__call__


def _defined(obj):
    """Returns what has the source of an object itself, not of what it wraps: its code, or the class."""
    if inspect.ismethod(obj):
        obj = obj.__func__
    return getattr(obj, "__code__", obj)


def getimmediatelines(obj):
    """Returns (lines, number of the first line) of the source of an object, not of what it wraps."""
    defined = _defined(obj)
    if isinstance(defined, types.CodeType):
        linecache.checkcache(defined.co_filename)
    return inspect.getsourcelines(defined)


def getimmediatesource(obj):
    """Returns the source of an object, not of what it wraps."""
    return "".join(getimmediatelines(obj)[0])


def getnamespace(f):
    """Returns {name: value} of what a function sees of its module and of the functions around it."""
    f = getattr(f, "__func__", f)
    names = dict(f.__globals__)
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            names.pop(name, None)
    return names


def getqualifiedname(namespace, object_, max_depth=5, visited=None):
    """Returns the shortest way to call an object in a namespace, through modules; None if there is none."""
    visited = set() if visited is None else visited
    level = [("", dict(namespace))]
    own, depth = getattr(object_, "__name__", None), 0
    while level and depth <= max_depth:
        deeper = []
        for prefix, names in level:
            for name, value in names.items():
                if value is object_:
                    return prefix + name
        for prefix, names in level:
            for name, value in list(names.items()):
                if not isinstance(value, types.ModuleType) or id(value) in visited:
                    continue
                visited.add(id(value))
                if own is not None and vars(value).get(own) is object_:
                    return "%s%s.%s" % (prefix, name, own)
                deeper.append(("%s%s." % (prefix, name), dict(vars(value))))
        level, depth = deeper, depth + 1
    return None


def getdefiningclass(m, owner_class):
    """Returns the class that defines a method, among a class and its bases."""
    m = getattr(m, "__func__", m)
    for cls in inspect.getmro(owner_class):
        found = vars(cls).get(m.__name__)
        if getattr(found, "__func__", found) is m:
            return cls
    return owner_class


def getmethodclass(m):
    """Returns the class of a method, bound or not, as seen from the caller; None for functions."""
    if not hasattr(m, "__name__"):
        return type(m) if callable(m) else None
    owner = getattr(m, "__self__", None)
    if owner is not None:
        return owner if inspect.isclass(owner) else type(owner)
    caller = sys._getframe(1)
    found = []
    for value in itertools.chain(caller.f_locals.values(), caller.f_globals.values()):
        if inspect.isclass(value) and value not in found:
            member = inspect.getattr_static(value, m.__name__, None)
            if member is m or getattr(member, "__func__", None) is m:
                found.append(value)
    for cls in found:
        if m.__name__ in vars(cls):
            return cls
    return found[0] if found else None


def getfutureimports(entity):
    """Returns the names from __future__ that change how a function was compiled."""
    entity = getattr(entity, "__func__", entity)
    code = getattr(entity, "__code__", None)
    return tuple(sorted(name for name, flag in _FEATURES.items() if code is not None and code.co_flags & flag))
