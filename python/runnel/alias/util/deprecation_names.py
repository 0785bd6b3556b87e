"""tensorflow.python.util's deprecation and decorator_utils: functions and arguments that warn in the log that they are deprecated."""

import contextlib
import functools
import inspect
import re
import types
import warnings  # noqa: F401  programs look for it here

from runnel.alias.util import decorators, strict_names


class DeprecatedNamesAlreadySetError(Exception):
    """The deprecated names of a symbol were set twice."""


# Docstrings

_KINDS = ("Deprecated", "Warning", "Caution", "Important", "Note")


def get_qualified_name(function):
    """Returns the name of a function with that of its class."""
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", str(function))


def add_notice_to_docstring(doc, instructions, no_doc_str, suffix_str, notice, notice_type="Warning"):
    """Returns a docstring with a notice below its first line, which ends with `suffix_str`.

    Args:
      doc: the docstring, or None.
      instructions: the last line of the notice.
      no_doc_str: the first line if there is no docstring.
      suffix_str: what to add to the first line of a docstring.
      notice: the lines of the notice.
      notice_type: the word before the notice.
    """
    if notice_type not in _KINDS:
        raise ValueError("Unrecognized notice type. Should be one of: %s" % (_KINDS,))
    if not notice:
        raise ValueError("The `notice` arg must not be empty.")
    lines = inspect.cleandoc(doc).strip().splitlines() if doc else []
    first = "%s %s" % (lines[0], suffix_str) if lines else no_doc_str
    rest = [first, "", "%s: %s" % (notice_type, notice[0]), *notice[1:], instructions]
    if len(lines) > 1 and lines[1].strip():
        rest.append("")
    return "\n".join(rest + lines[1:])


def validate_callable(func, decorator_name):
    """Raises ValueError if a decorator was given something else than a function."""
    if not callable(func):
        raise ValueError("%s is not a function. If this is a property, make sure @property appears before @%s in your source code:\n\n"
                         "@property\n@%s\ndef method(...)" % (func, decorator_name, decorator_name))


class classproperty:  # noqa: N801
    """A property of a class."""

    def __init__(self, func):
        self._func = func

    def __get__(self, owner_self, owner_cls):
        return self._func(owner_cls)


class cached_classproperty:  # noqa: N801
    """A property of a class that is computed once per class. Instances cannot change it."""

    def __init__(self, func):
        self._func, self._cache = func, {}

    def __get__(self, obj, objtype):
        if objtype not in self._cache:
            self._cache[objtype] = self._func(objtype)
        return self._cache[objtype]

    def __set__(self, obj, value):
        raise AttributeError("property %s is read-only" % self._func.__name__)

    def __delete__(self, obj):
        raise AttributeError("property %s is read-only" % self._func.__name__)


# Warnings

_state = types.SimpleNamespace(silent=0, said=set())


@contextlib.contextmanager
def silence():
    """A context manager without deprecation warnings."""
    _state.silent += 1
    try:
        yield
    finally:
        _state.silent -= 1


def _location(frame):
    """Returns "file:line" of the innermost frame outside of this file."""
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)


def _say(key, once, message, *values):
    if _state.silent or once and key in _state.said:
        return
    if once:
        _state.said.add(key)
    values = (_location(inspect.currentframe()), *values)
    if strict_names.is_strict():
        raise RuntimeError("This behavior has been deprecated, which raises an error in strict mode: " + ("From %s: " + message) % values)
    from runnel import logging
    logging.warning("From %s: " + message, *values)


def _when(date):
    return "in a future version" if date is None else "after %s" % date


def _check(date, instructions):
    if date is not None and not re.match(r"20\d\d-[01]\d-[0123]\d", date):
        raise ValueError("Date must be in format YYYY-MM-DD. Received: %s" % date)
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions! Specify the `instructions` argument.")


def _noted(doc, kind, suffix, what, date, instructions):
    """Returns a docstring with the notice "`what` will be removed after `date`"."""
    return add_notice_to_docstring(doc, instructions, "DEPRECATED " + kind, "(deprecated%s)" % suffix,
                                   ["%s will be removed %s." % (what, _when(date)), "Instructions for updating:"], notice_type="Deprecated")


def deprecated(date, instructions, warn_once=True):
    """A decorator: the function or class warns when it is called that it is deprecated, and its docstring says so."""
    _check(date, instructions)

    def decorate(func_or_class):
        is_class = isinstance(func_or_class, type)
        func, makes = func_or_class, None
        if is_class:
            makes = "__init__" if func_or_class.__new__ is object.__new__ else "__new__"
            func = getattr(func_or_class, makes)
        else:
            validate_callable(func, "deprecated")

        @functools.wraps(func)
        def called(*args, **kwargs):
            _say(func, warn_once, "%s (from %s) is deprecated and will be removed %s.\nInstructions for updating:\n%s",
                 get_qualified_name(func), getattr(func, "__module__", None) or getattr(func_or_class, "__module__", "?"), _when(date), instructions)
            return func(*args, **kwargs)

        doc = _noted(func_or_class.__doc__, "FUNCTION", "", "THIS FUNCTION IS DEPRECATED. It", date, instructions)
        if not is_class:
            return decorators.make_decorator(func, called, "deprecated", doc)
        called = decorators.make_decorator(func, called, "deprecated")
        setattr(func_or_class, makes, called if makes == "__init__" else staticmethod(called))
        func_or_class.__doc__ = doc
        return func_or_class
    return decorate


def deprecated_alias(deprecated_name, name, func_or_class, warn_once=True):
    """Returns a function or class under an old name, which warns at its first call."""
    def say():
        _say((deprecated_name, name), warn_once, "The name %s is deprecated. Please use %s instead.\n", deprecated_name, name)

    if isinstance(func_or_class, type):
        class Alias(func_or_class):
            __doc__ = func_or_class.__doc__
            __module__ = func_or_class.__module__

            def __init__(self, *args, **kwargs):
                say()
                super().__init__(*args, **kwargs)
        Alias.__name__ = func_or_class.__name__
        Alias.__init__ = decorators.make_decorator(func_or_class.__init__, Alias.__init__, "deprecated")
        return Alias

    def called(*args, **kwargs):
        say()
        return func_or_class(*args, **kwargs)
    return decorators.make_decorator(func_or_class, functools.wraps(func_or_class)(called), "deprecated")


def deprecated_endpoints(*args):
    """A decorator that records the old public names of a function."""
    def decorate(func):
        if "_tf_deprecated_api_names" in func.__dict__:
            raise DeprecatedNamesAlreadySetError("Cannot set deprecated names for %s to %s. Deprecated names are already "
                                                 "set to %s." % (func.__name__, str(args), func._tf_deprecated_api_names))
        func._tf_deprecated_api_names = args
        return func
    return decorate


def _decorate_arguments(date, instructions, warn_once, kind, shown, old_of):
    """A decorator; `old_of(spec, args, kwargs)` returns the deprecated arguments of a call, as texts."""
    def decorate(func):
        validate_callable(func, "deprecated_args")
        spec = decorators.getfullargspec(func)
        old_of(func, spec, None, None)

        @functools.wraps(func)
        def called(*args, **kwargs):
            if not _state.silent:
                for text in old_of(func, spec, args, kwargs):
                    _say((func, text), warn_once, "calling %s (from %s) with %s is deprecated and will be removed %s.\n"
                         "Instructions for updating:\n%s", get_qualified_name(func), getattr(func, "__module__", "?"), text, _when(date),
                         instructions)
            return func(*args, **kwargs)
        doc = _noted(func.__doc__, "FUNCTION " + kind, " " + kind.lower(), "SOME %s ARE DEPRECATED: `(%s)`. They" % (kind, shown), date,
                     instructions)
        return decorators.make_decorator(func, called, "deprecated", doc)
    return decorate


def deprecated_args(date, instructions, *deprecated_arg_names_or_tuples, **kwargs):
    """A decorator: arguments of these names are deprecated; ("name", value) allows that value."""
    _check(date, instructions)
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    harmless = dict(x if isinstance(x, tuple) else (x, _state) for x in deprecated_arg_names_or_tuples)

    def is_given(func, spec, name, args, named):
        if name == spec.varargs:
            return len(args) > len(spec.args)
        if name == spec.varkw:
            return bool(named.keys() - set(spec.args) - set(spec.kwonlyargs))
        if name in spec.args and spec.args.index(name) < len(args):
            return not _same(args[spec.args.index(name)], harmless[name])
        return name in named and not _same(named[name], harmless[name])

    def old_of(func, spec, args, named):
        if args is None:
            missing = [name for name in harmless if name not in [*spec.args, *spec.kwonlyargs, spec.varargs, spec.varkw]]
            if missing:
                raise ValueError("The following deprecated arguments are not present in the function signature: %s. Expected "
                                 "arguments from the following list: %s." % (missing, [*spec.args, spec.varargs, spec.varkw]))
            return []
        from runnel.core.framework import executing_eagerly
        if executing_eagerly():  # as in stock, where it would slow eager programs down
            return []
        return [name for name in harmless if is_given(func, spec, name, args, named)]
    shown = ", ".join(sorted(harmless))
    return _decorate_arguments(date, instructions, kwargs.get("warn_once", True), "ARGUMENTS", shown, old_of)


def deprecated_arg_values(date, instructions, warn_once=True, **deprecated_kwargs):
    """A decorator: these values of arguments are deprecated."""
    _check(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def old_of(func, spec, args, named):
        if args is None:
            return []
        bound = decorators.getcallargs(func, *args, **named)
        return ["%s=%s" % (name, value) for name, value in deprecated_kwargs.items() if name in bound and _same(bound[name], value)]
    shown = ", ".join("%s=%r" % pair for pair in sorted(deprecated_kwargs.items()))
    return _decorate_arguments(date, instructions, warn_once, "ARGUMENT VALUES", shown, old_of)


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


def deprecate_moved_module(deprecated_name, new_module, deletion_version):
    """Returns the function `__getattr__` of a module whose names are in another module now."""
    def getter(name):
        if name == "__path__":
            raise AttributeError(name)
        _say(("module", deprecated_name), True,
             "Please fix your imports. Module %s has been moved to %s. The old module will be deleted in version %s.",
             deprecated_name, new_module.__name__, deletion_version)
        return getattr(new_module, name)
    return getter
