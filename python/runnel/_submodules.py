"""Lets `import runnel.data.experimental` find what `tf.data.experimental` is, and `runnel.framework` its file.

The parts of `tf` are files or folders, and some of their own parts are attributes. Python asks two
finders: the first makes a package of each public file, so that Python looks for modules below it; the
second, which comes after all others, finds attributes as such modules. It also finds a file of a package
by its own name: `runnel.framework` is runnel/core/framework.py. Pickles made before there were packages,
and the paths of tensorflow.python.*, name files that way.
"""

import functools
import importlib
import importlib.machinery
import os
import sys

from runnel._names import SUBMODULES

_NAMED_BY_PATH = ("compat", "contrib", "examples", "keras")  # packages whose files have the names of others


class _Files:
    def find_spec(self, name, path=None, target=None):
        head, _, tail = name.partition(".")
        if head != "runnel" or tail not in SUBMODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.submodule_search_locations is None:
            spec.submodule_search_locations = []
        return spec


class _Attributes:
    def find_spec(self, name, path=None, target=None):
        parent, _, tail = name.rpartition(".")
        if parent == "runnel":
            place = _places().get(tail)
            value = place and importlib.import_module("runnel.%s.%s" % (place, tail))
        elif parent.startswith("runnel."):
            value = getattr(sys.modules[parent], tail, None)
        else:
            return None
        if value is None or isinstance(value, type) or callable(value):
            return None
        return importlib.machinery.ModuleSpec(name, _Given(value), is_package=True)


@functools.lru_cache(None)
def _places():
    """Returns {file name: package} for the files in packages."""
    home = os.path.dirname(os.path.abspath(__file__))
    return {file[:-3]: package for package in sorted(os.listdir(home))
            if package not in _NAMED_BY_PATH and os.path.exists(os.path.join(home, package, "__init__.py"))
            for file in os.listdir(os.path.join(home, package)) if file.endswith(".py") and file != "__init__.py"}


class _Given:
    def __init__(self, value):
        self._value, self._spec = value, getattr(value, "__spec__", None)

    def create_module(self, spec):
        return self._value

    def exec_module(self, module):
        if self._spec is not None:
            module.__spec__ = self._spec  # the module keeps the spec of its own path


def install():
    """Adds the two finders."""
    sys.meta_path.insert(0, _Files())
    sys.meta_path.append(_Attributes())
