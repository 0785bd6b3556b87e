"""Trains trees on a function of five numbers and writes version 1 of a model: python3 make_model.py FOLDER"""

import os
import shutil
import sys

import numpy as np
import xgboost

here = os.path.dirname(os.path.abspath(__file__))
version = os.path.join(sys.argv[1], "1")
os.makedirs(version)
random = np.random.default_rng(1)
x = random.uniform(size=(2000, 5)).astype(np.float32)
y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(x, y), num_boost_round=50)
booster.save_model(os.path.join(version, "trees.json"))
shutil.copy(os.path.join(here, "model.py"), version)
# The server looks for this file: it comes last.
shutil.copy(os.path.join(here, "container.pbtxt"), version)
