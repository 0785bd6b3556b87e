"""Prints the public Python names with their signatures and docstrings, as JSON.

usage: PYTHONPATH=python python3 tools/docs/python_names.py

Public names are those of python/tools/stock_names.txt that exist here, and those that the packages runnel.keras
and runnel.contrib export. An object with several names is described under the first; the others refer to it.
"""
import inspect
import json
import os
import pkgutil
import sys
import types

import runnel

HERE = os.path.dirname(os.path.abspath(__file__))
STOCK_NAMES = os.path.join(HERE, "..", "..", "python", "tools", "stock_names.txt")


def resolve(name):
    value = runnel
    for part in name.split(".") if name else ():
        value = getattr(value, part)
    return value


def signature(value):
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"


def members(cls):
    """Returns the public methods and properties that the class itself defines."""
    rows = []
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(plain, property):
            rows.append({"kind": "property", "name": name, "doc": inspect.getdoc(plain) or ""})
        elif inspect.isfunction(plain):
            rows.append({"kind": "method", "name": name, "signature": signature(plain), "doc": inspect.getdoc(plain) or ""})
    return rows


def describe(name, value):
    if inspect.isclass(value):
        return {"kind": "class", "name": name, "signature": signature(value), "doc": inspect.getdoc(value) or "", "members": members(value)}
    if callable(value):
        return {"kind": "function", "name": name, "signature": signature(value), "doc": inspect.getdoc(value) or ""}
    return {"kind": "data", "name": name, "doc": ""}


def packaged(package):
    """Returns the names that runnel.<package> and its modules export, the package's own first."""
    names, root = [], resolve(package)
    modules = [(package, root)]
    for _, path, _ in pkgutil.walk_packages(root.__path__, "runnel." + package + "."):
        public = path[len("runnel."):]
        try:
            modules.append((public, resolve(public)))
        except (AttributeError, ImportError):
            continue
    for path, module in modules:
        if not isinstance(module, types.ModuleType):
            continue
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            if name.startswith("_"):
                continue
            value = getattr(module, name, None)
            if inspect.isclass(value) or inspect.isfunction(value):
                names.append(path + "." + name)
    return names


def main():
    with open(STOCK_NAMES, encoding="utf-8") as stream:
        names = [line.strip() for line in stream if line.strip()]
    names += [name for package in ("keras", "contrib") for name in packaged(package)]
    rows, seen, done = [], {}, set()
    for name in sorted(set(names), key=lambda name: (name.count("."), name)):
        try:
            value = resolve(name)
        except (AttributeError, ImportError):
            continue
        if isinstance(value, types.ModuleType) or name in done:
            continue
        done.add(name)
        is_shared = inspect.isclass(value) or callable(value)
        if is_shared and id(value) in seen:
            rows.append({"kind": "alias", "name": name, "of": seen[id(value)]})
            continue
        seen[id(value)] = name
        rows.append(describe(name, value))
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
