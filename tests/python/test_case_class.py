"""tf.test.TestCase: the tests of case_script.py pass in stock and here, as many of them."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from both import HERE, ROOT, STOCK

SCRIPT = os.path.join(HERE, "case_script.py")


def outcome(command, **environment):
    done = subprocess.run(command + [SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", **environment))
    found = re.search(r"Ran (\d+) tests", done.stdout)
    assert done.returncode == 0 and found, done.stdout
    skipped = re.search(r"skipped=(\d+)", done.stdout)
    return int(found.group(1)), int(skipped.group(1)) if skipped else 0


def test_case_class():
    if importlib.util.find_spec("absl") is None:
        pytest.skip("absl, which has parameterized tests, is not installed")
    ours = outcome([sys.executable, "-m", "runnel"], PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "python")] + sys.path))
    assert ours == (21, 1)  # test_session is called like a test, and is none
    if os.path.exists(STOCK):
        assert outcome([STOCK]) == ours
