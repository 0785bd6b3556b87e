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
            raise AttributeError("%s has no %r: see doc/python_names.md" % (
                module_name.replace("runnel", "tf", 1), name))
        home, source = table[name]
        if home == "submodules":
            return importlib.import_module("%s.%s" % (module_name, name))
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
