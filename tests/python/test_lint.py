"""ruff and mypy report nothing about the package."""

import importlib.util
import subprocess
import sys

import pytest
from both import ROOT


def run(*command):
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(command[0] + " is not installed")
    done = subprocess.run([sys.executable, "-m"] + list(command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_ruff():
    run("ruff", "check", "--no-cache", "python", "tests/python", "tests/support", "examples/python")


def test_mypy():
    run("mypy", "--cache-dir", "build/mypy")
