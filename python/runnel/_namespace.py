"""Modules that are lists of names: tf.math.add is tf.add.

    __getattr__, __dir__ = namespace(__name__, "add subtract", "top_k=nn.top_k")

A row is names that are those of `tf` itself, or "name=where": a name of tf, or "module.name" below.
"""

import importlib


def namespace(module_name, *rows):
    """(__getattr__, __dir__) of a module with these names."""
    table = {}
    for row in rows:
        for item in row.split():
            name, _, source = item.partition("=")
            table[name] = source or name

    def __getattr__(name):
        source = table.get(name)
        if source is None:
            raise AttributeError("%s has no %r: see the table of names in doc/python.md" % (
                module_name.replace("runnel", "tf", 1), name))
        value = importlib.import_module("runnel")
        for part in source.split("."):
            value = getattr(value, part)
        setattr(importlib.import_module(module_name), name, value)
        return value

    def __dir__():
        return sorted(table)

    return __getattr__, __dir__
