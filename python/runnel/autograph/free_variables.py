"""Which variables of their surroundings functions use: values that a traced function keeps, however they change later."""

import ast
import builtins
import collections
import functools
import inspect
import types

from runnel.autograph import liveness, source

FreeVar = collections.namedtuple("FreeVar", ["name", "is_function", "obj"])

_reported = set()  # (module, qualified name) of the functions that have been described once


def _unwrapped(function):
    """Returns the function behind decorators and partial applications."""
    while True:
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, (functools.partial, functools.partialmethod)):
            function = function.func
        else:
            return function


def _get_self_obj_from_closure(function):
    """Returns the object that `self` of the surrounding method is: the closed-over object of the class that the qualified name says."""
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    for name in reversed(function.__qualname__.split(".")):
        for value in values:
            if type(value).__name__ == name:
                return value
    return None


def _visible(function):
    """Returns the names that a function sees of its module and of the functions around it."""
    inner = getattr(function, "__func__", function)
    names = dict(inner.__globals__)
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            names[name] = None
    return names


def _candidates(function):
    """Yields (name, value) of all that a function reads and does not define: variables, and attributes of `self`."""
    try:
        node = source.parse(getattr(function, "__func__", function))
    except source.NoSource:
        return
    visible = _visible(function)
    for name in liveness.Activity(node).reads - set(vars(builtins)):
        if name != node.name or name in function.__code__.co_freevars:
            yield name, visible.get(name)
    owner = getattr(function, "__self__", None)
    if owner is None:
        owner = _get_self_obj_from_closure(function)
    if owner is None:
        return
    for attribute in ast.walk(node):
        if isinstance(attribute, ast.Attribute) and isinstance(attribute.value, ast.Name) and attribute.value.id == "self":
            yield "self." + attribute.attr, getattr(owner, attribute.attr, None)


def _search(function):
    """Returns the free variables of one function, sorted. Functions of other modules, modules and classes do not count."""
    found = {}
    for name, value in _candidates(function):
        if isinstance(value, (types.ModuleType, type)):
            continue
        is_function = inspect.isfunction(value) or inspect.ismethod(value)
        value = _unwrapped(value) if is_function else None
        if not is_function or value.__module__ == function.__module__:
            found[name] = FreeVar(name, is_function, value)
    return [found[name] for name in sorted(found)]


def _shown(function):
    """Returns the name by which a report calls a function: a lambda is called by what it is assigned to."""
    if inspect.ismethod(function):
        owner = function.__self__
        return "%s.%s" % ((owner if isinstance(owner, type) else type(owner)).__name__, function.__name__)
    if function.__name__ == "<lambda>":
        return inspect.getsource(function).partition("=")[0].strip()
    return function.__name__


def _detect_function_free_vars(function):
    """Returns {name of a function: its free variables} of a function and of those of its module that it reaches."""
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        raise TypeError("a Python function is expected, not %r" % (function,))
    found, waiting = {}, collections.deque([function])
    while waiting:
        current = _unwrapped(waiting.popleft())
        name = _shown(current)
        variables = None if name in found else _search(current)
        if variables:
            found[name] = variables
            waiting.extend(variable.obj for variable in variables if variable.is_function)
    return found


def generate_free_var_logging(function, fn_threshold=5, var_threshold=10):
    """Describes the free variables of a function and of those that it calls, once per function; None if there is nothing to say."""
    function = _unwrapped(function)
    key = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(function, (types.FunctionType, types.MethodType)) or key in _reported:
        return None
    _reported.add(key)
    found = _detect_function_free_vars(function)
    name = _shown(function)
    if name not in found:
        return None
    others = sorted(other for other in found if other != name)
    lines = ["%s in %s uses variables from outside. A tf.function keeps the values that they have when it is traced." % (name, function.__module__),
             "They are:"]
    for shown in [name, *others[:fn_threshold - 1]]:
        variables = [variable.name for variable in found[shown]]
        rest = "..." if len(variables) > var_threshold else ""
        lines.append("Inside function %s(): %s%s" % (shown, ", ".join(variables[:var_threshold]), rest))
    return "\n".join(lines + ["..."] * (len(others) > fn_threshold - 1))
