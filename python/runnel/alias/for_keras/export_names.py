"""tensorflow.python.util.tf_export: the public names of functions and classes, of TensorFlow and of Keras."""

import functools
import importlib
import sys

from runnel.alias.util.decorators import unwrap
from runnel.alias.util.util_names import keyword_args_only as kwarg_only  # noqa: F401

TENSORFLOW_API_NAME, KERAS_API_NAME = "tensorflow", "keras"
_PREFIXES = {TENSORFLOW_API_NAME: "_tf_api_", KERAS_API_NAME: "_keras_api_", "estimator": "_estimator_api_"}
_symbols: dict = {}  # public name -> what was exported under it


class InvalidSymbolNameError(Exception):
    """A symbol is exported under a name that belongs to another package."""


class api_export:
    """A decorator that gives a function or class its public names, the first of which is the canonical one."""

    def __init__(self, *args, api_name=TENSORFLOW_API_NAME, v1=None, allow_multiple_exports=True):
        self._names, self._names_v1 = args, args if v1 is None else v1
        self._prefix = _PREFIXES[api_name]
        every = {*self._names, *self._names_v1}
        if api_name == TENSORFLOW_API_NAME and any(name.startswith(KERAS_API_NAME) for name in every):
            raise InvalidSymbolNameError("@tf_export is not allowed to export symbols under %s.*" % KERAS_API_NAME)
        if api_name != TENSORFLOW_API_NAME and not all(name.startswith(api_name) for name in every):
            raise InvalidSymbolNameError("Can only export symbols under package name of component.")

    def __call__(self, func):
        inner = unwrap(func)[1]
        setattr(inner, self._prefix + "names", self._names)
        setattr(inner, self._prefix + "names_v1", self._names_v1)
        _symbols.update(dict.fromkeys(self._names, func))
        _symbols.update(("compat.v1." + name, func) for name in self._names_v1)
        return func

    def export_constant(self, module_name, name):
        """Gives a constant of a module its public names."""
        known = vars(sys.modules[module_name])
        for suffix, names in (("constants", self._names), ("constants_v1", self._names_v1)):
            known.setdefault(self._prefix + suffix, []).append((names, name))


tf_export = api_export
keras_export = functools.partial(api_export, api_name=KERAS_API_NAME)
estimator_export = functools.partial(api_export, api_name="estimator")


def _names(symbol, suffix):
    inner = unwrap(symbol)[1]
    known = getattr(inner, "__dict__", {})
    return [name for prefix in _PREFIXES.values() for name in known.get(prefix + suffix, ())]


def get_v1_names(symbol):
    """Returns the names of a symbol in the API of 1.x."""
    return _names(symbol, "names_v1")


def get_v2_names(symbol):
    """Returns the names of a symbol in the API of 2.x."""
    return _names(symbol, "names")


def get_v1_constants(module):
    """Returns the exported constants of a module, [(names, name in the module)]."""
    return [row for prefix in _PREFIXES.values() for row in getattr(module, prefix + "constants_v1", ())]


def get_v2_constants(module):
    """Returns the exported constants of a module, [(names, name in the module)]."""
    return [row for prefix in _PREFIXES.values() for row in getattr(module, prefix + "constants", ())]


def get_canonical_name(api_names, deprecated_api_names):
    """Returns the first name that is not deprecated, the first one if all are, None without names."""
    return next((name for name in api_names if name not in deprecated_api_names), api_names[0] if api_names else None)


def get_canonical_name_for_symbol(symbol, api_name=TENSORFLOW_API_NAME, add_prefix_to_v1_names=False):
    """Returns the first public name of a function or class, or None if it has none."""
    if not hasattr(symbol, "__dict__"):
        return None
    inner = unwrap(symbol)[1]
    known = getattr(inner, "__dict__", {})
    prefix = _PREFIXES[api_name]
    if prefix + "names" in known:
        old = known.get("_tf_deprecated_api_names", ())
        found = get_canonical_name(known[prefix + "names"], old)
        if found is not None:
            return found
        found = get_canonical_name(known[prefix + "names_v1"], old)
        return "compat.v1.%s" % found if add_prefix_to_v1_names else found
    if api_name != TENSORFLOW_API_NAME:
        return None
    path = _own_path(symbol)
    return path if path is None or add_prefix_to_v1_names else path.removeprefix("compat.v1.")


def _own_path(symbol):
    """Returns the public name of something of Runnel's, or None."""
    from runnel.compat.v2 import places
    from runnel.compat.v2.canonical import canonical_name
    path = getattr(symbol, "_tf_api_path", None) or places.path_of(symbol)
    return path and canonical_name(path)


def get_symbol_from_name(name):
    """Returns what has a public name, or None."""
    if name in _symbols:
        return _symbols[name]
    value = importlib.import_module("runnel.v2")
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
