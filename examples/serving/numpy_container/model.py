"""A line through points, in NumPy."""

import numpy as np

from runnel.serving import signature

weights = np.load("weights.npy")


@signature(inputs={"x": ("float32", [None, 3])}, outputs={"y": ("float32", [None])}, pure=True)
def predict(inputs):
    return {"y": inputs["x"] @ weights[:3] + weights[3]}
