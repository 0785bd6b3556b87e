"""doc/python_names.md is up to date; `--names` finds the absent names of a script."""

import os
import subprocess
import sys

from both import ROOT


def test_page_is_up_to_date():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "python", "tools", "make_names_doc.py"), "--check"], stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == 0, done.stdout


def test_names_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import numpy as np\nimport tensorflow as tf\nfrom tensorflow import errors, tpu_less\nimport tensorflow.compat.v1 as t1\n"
                      "x = tf.constant(np.zeros(3))\ny = tf.no_such(x)\nz = t1.nn.no_more(y)\ntf.nn.relu(x)\n")
    done = subprocess.run([sys.executable, "-m", "runnel", "--names", str(script)], stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == 1
    assert [line.split(":")[1] + line.split(":")[2] for line in done.stdout.splitlines()] == ["3 tf.tpu_less", "6 tf.no_such", "7 tf.nn.no_more"]
