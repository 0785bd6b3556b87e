#!/usr/bin/env python3
"""Runs models that make_models.py made and compares with stock's answers: check.py RUNNEL FOLDER [NAME ...]

Each is run as it is, then frozen, then frozen with its batch norms folded. Needs NumPy.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


def files(model, kind):
    return {name[len(kind):-4]: os.path.join(model, name) for name in sorted(os.listdir(model))
            if name.startswith(kind) and name.endswith(".npy")}


def run(runnel, graph, model, folder):
    args, outs = [runnel, "run", graph], files(model, "out_")
    for key, path in files(model, "in_").items():
        args += ["--feed", f"{key}=@{path}"]
    for key in outs:
        args += ["--save", f"{key}={os.path.join(folder, key + '.npy')}"]
    subprocess.run(args, check=True)
    worst = 0.0
    for key, path in outs.items():
        ours, stock = np.load(os.path.join(folder, key + ".npy")), np.load(path)
        assert ours.shape == stock.shape and ours.dtype == stock.dtype, (ours.shape, stock.shape)
        assert np.isfinite(ours).all()
        worst = max(worst, float(np.abs(ours - stock).max() / np.abs(stock).max()))
    return worst


def main():
    runnel, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    failed = 0
    for name in names or sorted(os.listdir(folder)):
        model = os.path.join(folder, name)
        with tempfile.TemporaryDirectory() as temp:
            start, line = time.time(), []
            try:
                line.append(run(runnel, model, model, temp))
                for options in ([], ["--fold-batch-norms"]):
                    frozen = os.path.join(temp, "frozen.pb")
                    subprocess.run([runnel, "saved_model", "freeze", model, frozen, *options], check=True)
                    line.append(run(runnel, frozen, model, temp))
            except subprocess.CalledProcessError:
                line.append(float("inf"))
            bad = not line or max(line) > 1e-5
            failed += bad
            print(f"{'BAD ' if bad else 'good'} {name:14} differs by", ", ".join(f"{x:.1e}" for x in line),
                  f"({time.time() - start:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
