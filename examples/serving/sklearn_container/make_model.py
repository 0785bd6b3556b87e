"""Trains a classifier of irises and writes version 1 of a model: python3 make_model.py FOLDER"""

import os
import shutil
import sys

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

here = os.path.dirname(os.path.abspath(__file__))
version = os.path.join(sys.argv[1], "1")
os.makedirs(version)
data = load_iris()
classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
classifier.fit(data.data, data.target)
joblib.dump(classifier, os.path.join(version, "classifier.joblib"))
shutil.copy(os.path.join(here, "model.py"), version)
# The server looks for this file: it comes last.
shutil.copy(os.path.join(here, "container.pbtxt"), version)
