"""Lets `import runnel.data.experimental` find what `tf.data.experimental` is.

The parts of `tf` are files, and their own parts mostly attributes. Python asks two finders: the first
makes a package of each public file, so that Python looks for modules below it; the second, which
comes after all others, gives attributes as such modules.
"""

import importlib.abc
import importlib.machinery
import sys

from runnel._names import SUBMODULES


class _Files(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        head, _, tail = name.partition(".")
        if head != "runnel" or tail not in SUBMODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.submodule_search_locations is None:
            spec.submodule_search_locations = []
        return spec


class _Attributes(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        parent, _, tail = name.rpartition(".")
        if not parent.startswith("runnel."):
            return None
        value = getattr(sys.modules[parent], tail, None)
        if value is None or isinstance(value, type) or callable(value):
            return None
        return importlib.machinery.ModuleSpec(name, _Given(value), is_package=True)


class _Given(importlib.abc.Loader):
    def __init__(self, value):
        self._value, self._spec = value, getattr(value, "__spec__", None)

    def create_module(self, spec):
        return self._value

    def exec_module(self, module):
        if self._spec is not None:
            module.__spec__ = self._spec  # it stays the module that it was


def install():
    sys.meta_path.insert(0, _Files())
    sys.meta_path.append(_Attributes())
