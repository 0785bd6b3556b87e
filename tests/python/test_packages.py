"""The package's layout: folders of limited size, faces that import nothing, files that import on their own, old paths."""

import os
import pickle
import subprocess
import sys

import pytest

from both import ROOT

PACKAGE = os.path.join(ROOT, "python", "runnel")
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
MOST_FILES = 42


def folders():
    for folder, names, files in os.walk(PACKAGE):
        names[:] = sorted(name for name in names if name != "__pycache__")
        yield folder, sorted(name for name in files if name.endswith(".py"))


def modules():
    for folder, files in folders():
        path = os.path.relpath(folder, os.path.dirname(PACKAGE)).replace(os.sep, ".")
        for file in files:
            if file != "__main__.py":
                yield path if file == "__init__.py" else "%s.%s" % (path, file[:-3])


def test_folders_are_small():
    assert {folder: len(files) for folder, files in folders() if len(files) > MOST_FILES} == {}


def run(script, *arguments):
    return subprocess.run([sys.executable, "-c", script, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT).stdout


FACES = """
import importlib, sys
import runnel
from runnel import _names
assert "numpy" not in sys.modules
before = set(sys.modules)
for name in sorted(_names.SUBMODULES):
    module = importlib.import_module("runnel." + name)
    if module.__file__.endswith("__init__.py"):
        print(name, *sorted(n for n in set(sys.modules) - before if n.startswith("runnel.%s." % name)))
"""


def test_faces_import_nothing():
    """The __init__.py of a package lists names; compat alone has functions of its own, and names itself as compat.v1."""
    loaded = dict(line.partition(" ")[::2] for line in run(FACES).splitlines())
    assert len(loaded) > 15
    assert {name: files for name, files in loaded.items() if files and name != "compat"} == {}


ALONE = """
import importlib, os, sys
import runnel
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
            os._exit(0)
        except BaseException as error:
            print(name, repr(error), flush=True)
            os._exit(1)
    os.waitpid(child, 0)
"""


def test_every_module_can_be_the_first():
    """No cycle of imports works in one order only."""
    assert run(ALONE, *modules()) == ""


@pytest.mark.parametrize("path, name", [("runnel.tensor_shape", "TensorShape"), ("runnel.server_lib", "ClusterSpec"), ("runnel.parsing_ops", "FixedLenFeature"),
                                        ("runnel.losses", "Reduction"), ("runnel.saved_model", "Builder"), ("runnel.data", "Options")])
def test_pickles_of_the_flat_package_load(path, name):
    found = pickle.loads(b"c%s\n%s\n." % (path.encode(), name.encode()))
    assert found.__name__ == name and found.__module__.startswith("runnel.")


def test_one_module_under_both_names():
    from runnel.core import framework
    import runnel.framework
    assert runnel.framework is framework and framework.__spec__.name == framework.__name__ == "runnel.core.framework"


def test_help_names_the_public_module():
    import runnel as tf
    for space in ("nn", "losses", "image", "metrics", "train"):
        module = getattr(tf, space)
        functions = [getattr(module, name) for name in dir(module)]
        assert [f for f in functions if getattr(f, "__module__", "").startswith("runnel.%s." % space) and not isinstance(f, type)] == []
