"""The import finder that makes `import tensorflow` find Runnel.

`tensorflow` is the API of 1.x (runnel) or of 2.x (runnel.v2). It and everything below are the modules of runnel under other
names: the same module objects, so there is one state. The paths behind the public names, such as `tensorflow.python.framework.ops`,
are views of them (inner_paths.py).
"""

import importlib
import importlib.machinery
import os
import sys


class _Finder:
    def __init__(self, is_v2):
        self.home = "runnel.v2" if is_v2 else "runnel"

    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow" or name.startswith("tensorflow."):
            from runnel.alias import test_tree
            return test_tree.find_spec(name) or importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        parts, home = spec.name.split(".")[1:], self.home
        while parts[:2] in (["compat", "v1"], ["compat", "v2"]):
            home = "runnel" if parts[1] == "v1" else self.home if self.home == "runnel.v2" else "runnel.compat.v2"
            parts = parts[2:]
        if parts[:1] in (["python"], ["core"], ["compiler"], ["tools"], ["dtensor"]):
            from runnel.alias import inner_paths
            return inner_paths.module(".".join(parts))
        if parts[:1] == ["contrib"] and parts[2:3] == ["python"]:
            from runnel.alias import inner_paths
            return inner_paths.contrib_module(parts)
        if parts[:1] == ["keras"] and home == "runnel.v2":
            return _keras_module(parts)
        real = ".".join([home] + parts)
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            module = self._attribute(home, parts, spec.name)
        return module

    @staticmethod
    def _attribute(home, parts, name):
        """Returns a namespace that is an attribute and not a file, such as tf.estimator.inputs."""
        value = importlib.import_module(home)
        for part in parts:
            value = getattr(value, part, None)
        if value is None:
            raise ModuleNotFoundError("No module named %r in Runnel: see doc/python.md" % name, name=name)
        return value

    def exec_module(self, module):
        pass


def _keras_module(parts):
    """Returns tensorflow.keras.layers: a module of Keras 3, which is a package of its own."""
    keras = importlib.import_module("runnel.v2").keras
    return importlib.import_module(".".join([keras.__name__, *parts[1:]]))


def install(is_v2=False):
    """Makes `import tensorflow` mean Runnel from now on: the API of 1.x, or that of 2.x."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return
    for name in [n for n in sys.modules if n == "tensorflow" or n.startswith("tensorflow.")]:
        raise ImportError("%s is already imported: call alias.install() first" % name)
    sys.meta_path.insert(0, _Finder(is_v2))
    if os.environ.get("RUNNEL_TEST_OPS"):  # the ops of TensorFlow's own tests (tests/python/test_ops.c)
        from runnel.core import plugins
        plugins.load_library(os.environ["RUNNEL_TEST_OPS"])
