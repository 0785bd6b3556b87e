"""The import finder that makes `import tensorflow` find Runnel.

`tensorflow`, `tensorflow.compat.v1` and everything below them are the modules of runnel under other names: the same
module objects, so there is one state. The paths behind the public names, such as `tensorflow.python.framework.ops`,
are views of them (inner_paths.py).
"""

import importlib
import importlib.machinery
import sys


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow" or name.startswith("tensorflow."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        parts = spec.name.split(".")[1:]
        if parts[:2] == ["compat", "v1"]:
            parts = parts[2:]
        if parts[:1] in (["python"], ["core"]):
            from runnel.alias import inner_paths
            return inner_paths.module(".".join(parts))
        if parts[:1] == ["contrib"] and parts[2:3] == ["python"]:
            from runnel.alias import inner_paths
            return inner_paths.contrib_module(parts)
        real = ".".join(["runnel"] + parts)
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            module = self._attribute(parts, spec.name)
        return module

    @staticmethod
    def _attribute(parts, name):
        """Returns a namespace that is an attribute and not a file, such as tf.estimator.inputs."""
        value = importlib.import_module("runnel")
        for part in parts:
            value = getattr(value, part, None)
        if value is None:
            raise ModuleNotFoundError("No module named %r in Runnel: see doc/python.md" % name, name=name)
        return value

    def exec_module(self, module):
        pass


def install():
    """Makes `import tensorflow` mean Runnel from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        for name in [n for n in sys.modules if n == "tensorflow" or n.startswith("tensorflow.")]:
            raise ImportError("%s is already imported: call alias.install() first" % name)
        sys.meta_path.insert(0, _Finder())
