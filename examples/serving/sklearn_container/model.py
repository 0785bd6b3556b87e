"""A classifier of irises, with scikit-learn."""

import joblib

from runnel.serving import signature

classifier = joblib.load("classifier.joblib")


@signature(inputs={"x": ("float32", [None, 4])},
           outputs={"class": ("int64", [None]), "probabilities": ("float32", [None, 3])}, pure=True)
def predict(inputs):
    probabilities = classifier.predict_proba(inputs["x"])
    return {"class": probabilities.argmax(axis=1), "probabilities": probabilities}
