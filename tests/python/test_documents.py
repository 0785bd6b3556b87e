"""Runs the Python programs of the documents unchanged; tests/house/commands.py runs the shell commands."""

import os
import re
import subprocess
import sys

import pytest
from both import ROOT

BUILD = os.path.join(ROOT, os.environ.get("RUNNEL_BUILD", "build/release"))


def blocks(document, kind):
    with open(os.path.join(ROOT, document), encoding="utf-8") as stream:
        return [text for what, text in re.findall(r"^```(\w*)\n(.*?)^```$", stream.read(), re.M | re.S) if what == kind]


def run(command, cwd=ROOT, **more):
    path = os.pathsep.join([os.path.dirname(sys.executable), os.path.join(BUILD, "cli"), os.environ["PATH"]])
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          env=dict(os.environ, PATH=path, RUNNEL_BUILD=BUILD, **more))
    assert done.returncode == 0 and "Traceback" not in done.stdout, "%s\n%s" % (command, done.stdout)
    return done.stdout


@pytest.mark.parametrize("program", blocks("doc/python.md", "python"))
def test_program(program, tmp_path):
    (tmp_path / "script.py").write_text(program)
    assert float(run(["python3", "script.py"], tmp_path, PYTHONPATH=os.path.join(ROOT, "python"))) < 0.1


def test_scripts_from_elsewhere(tmp_path):
    (tmp_path / "script.py").write_text("import tensorflow as tf\nprint(tf.Session().run(tf.constant(1) + 2))\n")
    assert run(["python3", "-m", "runnel", "script.py"], tmp_path, PYTHONPATH=os.path.join(ROOT, "python")) == "3\n"
    assert "all 2 names are supported" in run(["runnel", "python-compat", "script.py"], tmp_path)


def test_training_that_survives_its_own_death(tmp_path):
    """The lines at the head of restart_digits.py, with time to write a checkpoint before the kill."""
    folder = os.path.join(ROOT, "examples", "python")
    with open(os.path.join(folder, "restart_digits.py"), encoding="utf-8") as stream:
        lines = [line.strip().replace("/tmp/", "%s/" % tmp_path) for line in stream.read().split('"""')[1].splitlines() if line.startswith("    ")]
    script = "\n".join([lines[0], "for _ in $(seq 300); do [ -e %s/run/checkpoint ] && break; sleep 0.1; done" % tmp_path] + lines[1:])
    run(["bash", "-c", script], folder, PYTHONPATH=os.path.join(ROOT, "python"))
