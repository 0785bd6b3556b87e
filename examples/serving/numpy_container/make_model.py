"""Fits a line by least squares and writes version 1 of a model: python3 make_model.py FOLDER"""

import os
import shutil
import sys

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
version = os.path.join(sys.argv[1], "1")
os.makedirs(version)
random = np.random.default_rng(1)
x = random.normal(size=(200, 3)).astype(np.float32)
y = x @ np.array([1.0, -2.0, 0.5], np.float32) + 3
weights = np.linalg.lstsq(np.c_[x, np.ones(len(x), np.float32)], y, rcond=None)[0]
np.save(os.path.join(version, "weights.npy"), weights.astype(np.float32))
shutil.copy(os.path.join(here, "model.py"), version)
# The server looks for this file: it comes last.
shutil.copy(os.path.join(here, "container.pbtxt"), version)
