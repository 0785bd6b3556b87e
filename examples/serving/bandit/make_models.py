"""Trains three classifiers of the same data, each with other features, and writes them: python3 make_models.py FOLDER

FOLDER also gets models.pbtxt, the list of them for `runnel serve --model_config_file`, and queries.npz, data that no model has
seen.
"""

import os
import shutil
import sys

import numpy as np

FEATURES = {"two_features": 2, "five_features": 5, "all_features": 10}


def draw(random, centres, count):
    labels = random.integers(len(centres), size=count)
    return (centres[labels] + random.normal(size=(count, 10))).astype(np.float32), labels


def main(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    random = np.random.default_rng(7)
    centres = random.normal(size=(4, 10)) * 1.1
    x, labels = draw(random, centres, 4000)
    for name, count in FEATURES.items():
        version = os.path.join(folder, name, "1")
        os.makedirs(version)
        weights = np.zeros((10, 4), np.float32)
        weights[:count] = np.linalg.lstsq(x[:, :count], np.eye(4)[labels], rcond=None)[0]
        np.save(os.path.join(version, "weights.npy"), weights)
        shutil.copy(os.path.join(here, "model.py"), version)
        shutil.copy(os.path.join(here, "container.pbtxt"), version)  # last: the server looks for it
    x, labels = draw(random, centres, 10000)
    np.savez(os.path.join(folder, "queries.npz"), x=x, labels=labels)
    with open(os.path.join(folder, "models.pbtxt"), "w") as out:
        out.write("model_config_list {\n")
        for name in FEATURES:
            base = os.path.join(os.path.abspath(folder), name)
            out.write('  config { name: "%s" base_path: "%s" model_platform: "tensorflow" }\n' % (name, base))
        out.write("}\n")


if __name__ == "__main__":
    main(sys.argv[1])
