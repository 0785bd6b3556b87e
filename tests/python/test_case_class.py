"""tf.test.TestCase: the same number of tests of case_script.py passes in stock and here."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

SCRIPT = os.path.join(HERE, "case_script.py")


def outcome(text):
    """What unittest reports."""
    ran, skipped = re.search(r"Ran (\d+) tests", text), re.search(r"skipped=(\d+)", text)
    assert ran, text
    return "%s tests, %s skipped" % (ran.group(1), skipped.group(1) if skipped else 0)


def test_case_class():
    if importlib.util.find_spec("absl") is None:
        pytest.skip("absl, which has parameterized tests, is not installed")
    done = subprocess.run([sys.executable, "-m", "runnel", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "python")] + sys.path)))
    assert done.returncode == 0, done.stdout
    wanted = stock.recorded("case_script", stock.digest(SCRIPT), lambda: outcome(stock.run(SCRIPT, errors=True)))
    assert outcome(done.stdout) == wanted == "21 tests, 1 skipped"  # test_session is called like a test, and is none
