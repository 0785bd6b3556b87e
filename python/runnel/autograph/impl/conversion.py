"""tensorflow.python.autograph.impl.conversion: which functions run as they are."""

import functools
import inspect
import types

from runnel.autograph.core import config
from runnel.autograph.pyct import cache, inspect_utils

_ALLOWLIST_CACHE = cache.UnboundInstanceCache()


def is_unsupported(o):
    """Tells whether an object cannot be converted: constructors, functions in C, wrappers of caches, generators."""
    if inspect_utils.isconstructor(o) or inspect_utils.isbuiltin(o) or isinstance(o, (types.MethodWrapperType, functools._lru_cache_wrapper)):
        return True
    return inspect.isgeneratorfunction(o) or inspect.iscoroutinefunction(o)


def is_allowlisted(o, check_call_override=True, allow_namedtuple_subclass=False):
    """Tells whether a function, class, object or module runs as it is: by the rules of core.config, and those of its class."""
    if isinstance(o, functools.partial):
        name = functools.__name__
    else:
        name = o.__name__ if isinstance(o, types.ModuleType) else getattr(o, "__module__", None)
    action = config.action_for(name)
    if action is not config.Action.NONE:
        return action is config.Action.DO_NOT_CONVERT
    if inspect.isgeneratorfunction(o):
        return True
    if check_call_override and not inspect.isclass(o) and not inspect.isroutine(o) and callable(o) and is_allowlisted(type(o).__call__):
        return True
    owner = inspect_utils.getmethodclass(o) if inspect.ismethod(o) else None
    if owner is not None:
        defining = inspect_utils.getdefiningclass(o, owner)
        if is_allowlisted(defining, check_call_override=False, allow_namedtuple_subclass=True):
            return True
    if inspect_utils.isnamedtuple(o):  # its code is generated
        return not allow_namedtuple_subclass or not any(inspect_utils.isnamedtuple(base) for base in o.__bases__)
    return False


def is_in_allowlist_cache(entity, options):
    """Tells whether a function was found to run as it is."""
    try:
        return _ALLOWLIST_CACHE.has(entity, options)
    except TypeError:  # it has no hash, or no weak references
        return False


def cache_allowlisted(entity, options):
    """Remembers that a function runs as it is."""
    try:
        _ALLOWLIST_CACHE[entity][options] = True
    except TypeError:
        pass
