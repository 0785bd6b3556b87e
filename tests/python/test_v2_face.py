"""runnel.v2 and `python -m runnel --v2`: the names of TensorFlow 2, and what an absent name says."""

import os
import subprocess
import sys

import pytest

from both import ROOT

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "runnel", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, **options)


def test_import_tensorflow_is_the_face(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import tensorflow as tf
import tensorflow.compat.v1 as tf1
import tensorflow.compat.v2 as tf2
from tensorflow.nn import relu
from tensorflow.python.framework import ops
import runnel.v2
assert runnel.v2 is tf is tf2 and tf.compat.v1 is tf1 and relu is tf.nn.relu
assert tf.executing_eagerly() and tf.__version__ == tf.version.VERSION == "2.21.0" and tf.__internal__.tf2.enabled()
x = tf.constant([[1, 2, 3]])
assert list(x.shape) == [1, 3] and isinstance(x.shape[0], int) and str(tf.TensorShape([None, 2])) == "(None, 2)"
assert (x == x).numpy().all() and (x != None) is True and not (x == [[1, 5, 3]])[0, 1]
print("fine", relu(-1.0).numpy())
""")
    module = tmp_path / "themodule.py"
    module.write_text(script.read_text())
    for arguments in ([str(script)], ["-m", "themodule"], ["-c", script.read_text()]):
        done = run("--v2", *arguments, cwd=tmp_path)
        assert done.stdout == "fine 0.0\n", done.stderr


def test_faces_in_one_process():
    text = """
import runnel
assert not runnel.executing_eagerly() and isinstance(runnel.TensorShape([2])[0], runnel.Dimension)
x = runnel.compat.v2.constant(1)
assert x.op.type == "Const"
"""
    assert run("-c", text).returncode == 0
    done = run("--v2", "-c", "import tensorflow as tf; tf.compat.v1.disable_v2_behavior()\n"
               "x = tf.compat.v1.placeholder(tf.float32, [3]); assert (x == x) is True and x.shape[0].value == 3")
    assert done.returncode == 0, done.stderr


def test_options():
    assert run("--v2", "--version").stdout.startswith("runnel ") and "TensorFlow 2.21.0" in run("--v2", "--version").stdout
    for arguments in (["nofile.py"], ["--v2", "nofile.py"]):
        done = run(*arguments)
        assert done.returncode == 2 and done.stderr == "python -m runnel: cannot read 'nofile.py': No such file or directory\n"
    assert run("--version").returncode == run("--help").returncode == 0
    assert run("--v2").returncode == 2


@pytest.mark.parametrize("face, path, text", [
    ("v2", "placeholder", "TensorFlow 2 has no tf.placeholder; tf.compat.v1.placeholder is of 1.x. doc/python_names_v2.md lists the names"),
    ("v2", "nn.no_such", "TensorFlow 2 has no tf.nn.no_such: doc/python_names_v2.md lists the names"),
    ("v2", "profiler.experimental.client.monitor", "tf.profiler.experimental.client.monitor of TensorFlow 2 is not in Runnel: doc/python_names_v2.md lists the names"),
    ("v1", "no_such", "tf has no 'no_such': see doc/python_names.md"),
    ("v1", "signal.no_such", "tf.signal has no 'no_such': see doc/python_names.md"),
])
def test_absent_names(face, path, text):
    done = run("-c", "import runnel.v2 as tf\ntf.%s" % path if face == "v2" else "import runnel as tf\ntf.%s" % path)
    assert done.stderr.splitlines()[-1] == "AttributeError: " + text


def test_names_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import tensorflow as tf\ntf.placeholder\ntf.nn.relu\n")
    done = run("--v2", "--names", str(script))
    assert done.stdout == "%s:2: tf.placeholder\n" % script and done.returncode == 1
