"""Gradient-boosted trees, with XGBoost."""

import xgboost

from runnel.serving import signature

booster = xgboost.Booster({"nthread": 1}, model_file="trees.json")


@signature(inputs={"x": ("float32", [None, 5])}, outputs={"y": ("float32", [None])}, pure=True)
def predict(inputs):
    return {"y": booster.inplace_predict(inputs["x"])}
