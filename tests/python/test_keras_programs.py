"""Keras 3, unchanged, on top of the API of TensorFlow 2: whole programs reach stock's losses in every epoch."""

import functools
import importlib.util
import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

SCRIPT = os.path.join(HERE, "keras_script.py")
NAMES = "cnn transformer lstm masked_gru datasets text own_step many_inputs mixed_precision saved callbacks".split()
LOOSE = {"mixed_precision": 1e-3}  # products of 16-bit floats are rounded in another order
STOCK_READS = """
import os, sys
import numpy as np, tensorflow as tf
data = np.load(os.path.join(sys.argv[1], "predicted.npz"))
model = tf.saved_model.load(os.path.join(sys.argv[1], "model"))
print(float(abs(model.serve(data["x"]).numpy() - data["y"]).max()))
"""

needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras 3 is not installed")


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "runnel", "--v2", SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "python")] + sys.path)))
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(text):
    return {line.split()[0]: [float(word) for word in line.split()[1:]] for line in text.splitlines()}


@functools.lru_cache(None)
def ours():
    return losses(run())


@functools.lru_cache(None)
def wanted():
    return losses(stock.printed("keras_script", SCRIPT))


@needs_keras
@pytest.mark.parametrize("name", NAMES)
def test_losses(name):
    assert ours()[name] == pytest.approx(wanted()[name], rel=LOOSE.get(name, 1e-6))


def test_all_programs_are_compared():
    assert list(wanted()) == NAMES


@needs_keras
def test_stock_reads_what_we_export(tmp_path):
    if not stock.is_there():
        pytest.skip("stock TensorFlow is not installed")
    run("cnn", "export=%s" % tmp_path)
    assert float(stock.run(STOCK_READS, str(tmp_path))) < 1e-5
