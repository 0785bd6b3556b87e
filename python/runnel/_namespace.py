"""Faces: modules that only list names and import nothing until one is used.

    __getattr__, __dir__, __all__ = namespace(
        __name__,
        "add subtract top_k=nn.top_k",
        "ops.special_ops: xlogy erfinv=ndtri_erfinv",
        "submodules: special")

A row without a module lists names of `tf`: "add" is tf.add, "top_k=nn.top_k" is tf.nn.top_k. A row
"module: names" lists names of runnel.module; "here=there" renames. "submodules" are files of the package.
"""

import importlib
import sys
import types


def absence(module, name):
    """Returns why a module of tf has no such name, and where the list of names is."""
    text = "%s has no %r: see doc/python_names.md" % (module, name)
    if not name.startswith("__"):
        from runnel.compat.v2.names import NAMES
        if name in NAMES.get(module.removeprefix("tf").removeprefix("."), ()):
            text += "; TensorFlow 2 has it, try runnel.v2 (doc/python_names_v2.md)"
    return text


def explain_absence(module):
    """Makes a module without lazy names say where the list of names is when one is absent."""
    if "__getattr__" not in vars(module):
        def __getattr__(name):
            raise AttributeError(absence(module.__name__.replace("runnel", "tf", 1), name))
        module.__getattr__ = __getattr__


def namespace(module_name, *rows):
    """Returns (__getattr__, __dir__, __all__) for a module with these names."""
    table = {}
    for row in rows:
        home, _, items = row.rpartition(":")
        for item in items.split():
            name, _, source = item.partition("=")
            table[name] = (home, source or name)

    def __getattr__(name):
        if name not in table:
            raise AttributeError(absence(module_name.replace("runnel", "tf", 1), name))
        home, source = table[name]
        if home == "submodules":
            module = importlib.import_module("%s.%s" % (module_name, name))
            explain_absence(module)
            return module
        value = importlib.import_module("runnel." + home if home else "runnel")
        for part in source.split("."):
            value = getattr(value, part)
        if isinstance(value, types.FunctionType) and value.__module__.startswith(module_name + "."):
            value.__module__ = module_name  # help() names the public module
        setattr(sys.modules[module_name], name, value)
        return value

    def __dir__():
        return sorted(table)

    return __getattr__, __dir__, sorted(table)
