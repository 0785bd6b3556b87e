"""Libraries on top of the API of TensorFlow 2, unchanged: short programs reach stock's numbers. Each is skipped without its package."""

import functools
import importlib.util
import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

SCRIPTS = {
    "deepxde": "poisson heat".split(),
    "gpflow": "regression sparse classes".split(),
    "keras_rs": "interactions retrieval embeddings measures".split(),
    "sonnet": "perceptron convolution recurrent saved".split(),
    "spektral": "convolution attention isomorphism".split(),
    "tensorflow_gnn": "messages trained".split(),
    "tensorflow_hub": "called layer".split(),
    "tensorflow_probability": "distributions bijectors joint hamiltonian no_u_turn surrogate minimizers integration series".split(),
    "tensorflow_recommenders": "ratings crossed tables".split(),
    "tf_keras": "dense operations_of_tensors lstm convolution saved own_step saved_folders generators".split(),
}
CASES = [(package, name) for package, names in SCRIPTS.items() for name in names]


def numbers(text):
    return {line.split()[0]: [float(word) for word in line.split()[1:]] for line in text.splitlines()}


def script(package):
    return os.path.join(HERE, "%s_script.py" % package)


@functools.lru_cache(None)
def ours(package):
    done = subprocess.run(
        [sys.executable, "-m", "runnel", "--v2", script(package)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "python")] + sys.path)))
    assert done.returncode == 0, done.stderr
    return numbers(done.stdout)


@functools.lru_cache(None)
def wanted(package):
    return numbers(stock.printed("%s_script" % package, script(package)))


@pytest.mark.parametrize(("package", "name"), CASES)
def test_numbers(package, name):
    if importlib.util.find_spec(package) is None:
        pytest.skip("%s is not installed" % package)
    assert ours(package)[name] == pytest.approx(wanted(package)[name], rel=2e-6, abs=1e-6)
