"""tensorflow.python.* and tensorflow.core.* in TensorFlow 2: a program prints the same here as it does in stock."""

import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
SCRIPTS = ["inner_paths_v2_script.py", "inner_paths_v2_graphs_script.py", "inner_paths_v2_helpers_script.py",
           "inner_paths_v2_messages_script.py", "inner_paths_v2_autograph_script.py", "inner_paths_v2_pyct_script.py",
           "inner_paths_v2_contexts_script.py", "inner_paths_v2_converters_script.py", "inner_paths_v2_ragged_script.py"]
BUILD = os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release"))
ENVIRONMENT.setdefault("RUNNEL_TEST_OPS", os.path.join(BUILD, "tests", "python", "libpython_test_ops.so"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name):
    script = os.path.join(HERE, name)
    done = subprocess.run([sys.executable, "-m", "runnel", "--v2", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = stock.recorded(name.removesuffix(".py"), stock.digest(script), lambda: stock.run(script))
    assert done.stdout.splitlines() == expected.splitlines()


@pytest.mark.parametrize("name", ["inner_paths_v2_pyct_script", "inner_paths_v2_converters_script"])
def test_trees_without_gast(name):
    """The tools of pyct have nodes of their own where the packages gast and astunparse are missing; the latter writes more parentheses."""
    script = os.path.join(HERE, name + ".py")
    program = "import runpy, sys; sys.modules.update(gast=None, astunparse=None); from runnel import alias; alias.install(True); runpy.run_path(%r)"
    done = subprocess.run([sys.executable, "-c", program % script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    expected = stock.recorded(name, stock.digest(script), lambda: stock.run(script))
    without = str.maketrans("", "", "()")
    assert done.stdout.translate(without).splitlines() == expected.translate(without).splitlines()
