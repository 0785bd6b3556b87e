"""The wheel: packed from the build, installed into a folder of its own, used from there."""

import os
import subprocess
import sys

import pytest
from both import ROOT

PROGRAM = """
import runnel as tf, sys
assert tf.__file__.startswith(sys.argv[1]), tf.__file__
assert tf._core.__file__.startswith(sys.argv[1])
assert "Matrix product" in tf.raw_ops.MatMul.__doc__
print(tf.Session().run(tf.matmul([[2.0]], [[3.0]])).tolist())
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libtensorflow" in line]
assert all(path.startswith(sys.argv[1]) for path in loaded) and loaded, loaded
"""


def test_wheel(tmp_path):
    target = str(tmp_path / "site")
    build = os.environ.get("RUNNEL_BUILD", "build/release")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--target", target, ROOT], check=True,
                   env=dict(os.environ, RUNNEL_BUILD=build))
    environment = {key: value for key, value in os.environ.items() if key != "RUNNEL_BUILD"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, target], check=True, stdout=subprocess.PIPE, text=True, cwd=str(tmp_path),
                          env=dict(environment, PYTHONPATH=target))
    assert done.stdout == "[[6.0]]\n"


def test_module_runs_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nimport tensorflow as tf\nfrom tensorflow.compat.v1 import errors\nimport tensorflow.compat.v1 as tf1\n"
                      "assert tf1 is tf and tf.compat.v1 is tf\nprint(sys.argv[1], tf.Session().run(tf.constant(1) + 2), __name__)\n")
    done = subprocess.run([sys.executable, "-m", "runnel", str(script), "argument"], check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stdout == "argument 3 __main__\n"


TYPED = """
import runnel as tf
x = tf.placeholder(tf.float32, [None, 2])
reveal_type(tf.raw_ops.MatMul(x, x, transpose_b=True))
tf.raw_ops.MatMul(x, x, transpose_b="no")
tf.sin(x)
tf.nn.relu(x)
"""


def test_stubs(tmp_path):
    pytest.importorskip("mypy")
    build = os.environ.get("RUNNEL_BUILD", "build/release")
    subprocess.run(["ninja", "-C", os.path.join(ROOT, build), "runnel_python_stubs"], check=True, stdout=subprocess.DEVNULL)
    target = str(tmp_path / "site")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--target", target, ROOT], check=True,
                   env=dict(os.environ, RUNNEL_BUILD=build))
    script = tmp_path / "user.py"
    script.write_text(TYPED)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--ignore-missing-imports", "--follow-imports=silent", str(script)],
                          stdout=subprocess.PIPE, text=True, env=dict(os.environ, MYPYPATH=target), cwd=str(tmp_path))
    lines = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    assert len(lines) == 2, done.stdout
    assert 'Revealed type is "runnel.framework.Tensor"' in lines[0]
    assert 'transpose_b' in lines[1] and 'expected "bool"' in lines[1]
