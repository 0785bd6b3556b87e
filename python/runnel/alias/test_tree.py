"""Helpers of TensorFlow's own tests, such as tensorflow.python.kernel_tests.signal.test_util.

They are files beside the tests, in TensorFlow's source tree, and no part of its library. A test that runs from such a tree finds them
there; everything else that it imports is Runnel's.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys

# What only tests import: a folder of tests with what lies in it, and single files by the ending of their name.
_FOLDER = re.compile(r"tensorflow\.python\.(\w+\.)*(kernel_tests|memory_tests|tests)(\.|$)")
_FILE = re.compile(r"tensorflow\.python\.(ops|eager)\.(\w+\.)*\w*(test_util|test_base|test_ops)$")


def _root():
    """Returns the folder that holds the folder "tensorflow" of the test that runs, or None."""
    script = os.path.abspath(sys.argv[0] if sys.argv else "")
    before, found, _ = script.rpartition(os.sep + os.path.join("tensorflow", "python") + os.sep)
    return before if found else None


def find_spec(name):
    """Returns where the helper module of this name is, or None if it is none or no test runs."""
    if not (_FOLDER.match(name) or _FILE.match(name)):
        return None
    root = _root()
    if root is None:
        return None
    path = os.path.join(root, *name.split("."))
    if os.path.isfile(path + ".py"):
        return importlib.util.spec_from_file_location(name, path + ".py")
    if not os.path.isdir(path):
        return None
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [path]
    return spec
