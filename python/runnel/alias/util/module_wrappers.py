"""tensorflow.python.util.module_wrapper and fast_module_type: modules whose names are imported late and warn if they are old."""

import importlib
import inspect
import types

from runnel import logging

_PER_MODULE_WARNING_LIMIT = 1  # how many old names of a module are reported
symbol_renames: dict = {}  # old name -> new name: tensorflow.tools.compatibility.all_renames_v2


class FastModuleType(types.ModuleType):
    """A module whose lookups of names may be replaced, for each module."""

    def __getattribute__(self, name):
        lookup = types.ModuleType.__getattribute__(self, "__dict__").get("_getattribute_callback")
        if lookup is None or name == "__dict__":
            return types.ModuleType.__getattribute__(self, name)
        return lookup(self, name)

    def __getattr__(self, name):
        lookup = self.__dict__.get("_getattr_callback")
        if lookup is None:
            raise AttributeError("module '%s' has no attribute '%s'" % (self.__name__, name))
        return lookup(self, name)

    def set_getattribute_callback(self, callback):
        """Makes `callback(module, name)` look up all names."""
        self.__dict__["_getattribute_callback"] = callback

    def set_getattr_callback(self, callback):
        """Makes `callback(module, name)` look up the names that are not found."""
        self.__dict__["_getattr_callback"] = callback

    def _fastdict_insert(self, name, value):
        self.__dict__[name] = value

    def _fastdict_key_in(self, name):
        return name in self.__dict__ or hasattr(type(self), name)

    def _fastdict_get(self, name):
        if name not in self.__dict__:
            raise KeyError("module has no attribute '%s'" % name)
        return self.__dict__[name]


def get_fast_module_type_class():
    """Returns FastModuleType."""
    return FastModuleType


class TFModuleWrapper(FastModuleType):
    """A module in place of another one: it imports the names of `public_apis`, {name: (module, name there)}, when they are used.

    With `deprecation`, it warns about names that symbol_renames has. With `has_lite`, the name `lite` is always that of `public_apis`.
    """

    compat_v1_usage_recorded = False

    def __init__(self, wrapped, module_name, public_apis=None, deprecation=True, has_lite=False):
        super().__init__(wrapped.__name__)
        own = {name: value for name, value in vars(wrapped).items() if not (has_lite and name == "lite")}
        self.__dict__.update(own)
        self._tfmw_wrapped_module, self._tfmw_module_name = wrapped, module_name
        self._tfmw_public_apis, self._tfmw_print_deprecation_warnings = public_apis or {}, deprecation
        self._tfmw_warned: set = set()
        public = own.get("__all__", ())
        self.__all__ = [*public, *(name for name in self._tfmw_public_apis if name not in public)]
        if deprecation:
            FastModuleType.set_getattribute_callback(self, TFModuleWrapper._found_and_checked)

    def _found_and_checked(self, name):
        value = types.ModuleType.__getattribute__(self, name)
        if not name.startswith(("_", "set_getattr")):
            self._tfmw_add_deprecation_warning(name)
        return value

    def _tfmw_add_deprecation_warning(self, name):
        """Warns about an old name, once, and about few names of a module."""
        full = "tf.%s.%s" % (self._tfmw_module_name, name) if self._tfmw_module_name else "tf." + name
        if full in symbol_renames and full not in self._tfmw_warned and len(self._tfmw_warned) < _PER_MODULE_WARNING_LIMIT:
            self._tfmw_warned.add(full)
            frame = inspect.currentframe().f_back.f_back.f_back
            logging.warning("From %s:%d: The name %s is deprecated. Please use %s instead.\n", frame.f_code.co_filename, frame.f_lineno, full,
                            symbol_renames[full])

    def __getattr__(self, name):
        apis = self.__dict__.get("_tfmw_public_apis", {})
        if name not in apis:
            raise AttributeError("module '%s' has no attribute '%s'" % (self.__name__, name))
        module, there = apis[name]
        value = getattr(importlib.import_module(module), there) if module else importlib.import_module(there)
        if self.__name__.endswith("compat.v1"):
            TFModuleWrapper.compat_v1_usage_recorded = True
        setattr(self, name, value)
        return value

    def __setattr__(self, name, value):
        if not name.startswith("_"):
            setattr(self._tfmw_wrapped_module, name, value)
            if name not in self.__all__:
                self.__all__.append(name)
        self.__dict__[name] = value

    def __delattr__(self, name):
        delattr(self._tfmw_wrapped_module, name)
        self.__dict__.pop(name, None)

    def __dir__(self):
        return list(dict.fromkeys([*dir(self._tfmw_wrapped_module), *self.__all__]))

    def __repr__(self):
        return repr(self._tfmw_wrapped_module)

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)
