"""Runs an example of examples/serving as a container, and compares its answers with the model's own.

usage: container_examples_test.py SOURCE NAME [PROGRAM]    77: a package is missing

NAME is "numpy", "sklearn", "torch", "onnx", "xgboost", or "c" with the PROGRAM that examples/serving/container.c became.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)
from container_peer import Failed, Peer

SOURCE, NAME = os.path.abspath(sys.argv[1]), sys.argv[2]
PACKAGES = {"numpy": [], "c": [], "sklearn": ["sklearn", "joblib"], "torch": ["torch"], "onnx": ["onnx", "onnxruntime"], "xgboost": ["xgboost"]}
WIDTHS = {"numpy": 3, "sklearn": 4, "torch": 2, "onnx": 8, "xgboost": 5, "c": 7}


def command(folder):
    """What container.pbtxt says, with this interpreter and this tree's package."""
    line = next(line for line in open(os.path.join(folder, "container.pbtxt")) if line.startswith("command:"))
    words = eval(line.split(":", 1)[1])  # noqa: S307: a file of this tree, a list of strings
    assert words[:3] == ["python3", "-m", "runnel.serving"]
    return [sys.executable, "-B", os.path.join(SOURCE, "python", "runnel", "serving", "container.py")] + words[3:]


def own_answers(folder, x):
    """What model.py computes in a process without the protocol."""
    script = ("import sys, numpy as np\n"
              "sys.path[:0] = [%r, '.']\n"
              "import container\n"
              "sys.modules['runnel.serving'] = container\n"
              "import model\n"
              "outputs = model.predict({'x': np.load('x.npy')})\n"
              "np.savez('y.npz', **outputs)\n" % os.path.join(SOURCE, "python", "runnel", "serving"))
    np.save(os.path.join(folder, "x.npy"), x)
    subprocess.run([sys.executable, "-B", "-c", script], cwd=folder, check=True)
    return dict(np.load(os.path.join(folder, "y.npz")))


def check(peer, x, expected):
    for rows in (len(x), 1):  # together and one by one
        for start in range(0, len(x), rows) if rows > 1 else range(5):
            answers = peer.predict({"x": x[start:start + rows]})
            assert set(answers) == set(expected)
            for name, values in answers.items():
                np.testing.assert_allclose(values, expected[name][start:start + rows], rtol=1e-4, atol=1e-5)


def main():
    if any(importlib.util.find_spec(package) is None for package in PACKAGES[NAME]):
        sys.exit(77)
    x = np.random.default_rng(2).normal(size=(4000, WIDTHS[NAME])).astype(np.float32)
    with tempfile.TemporaryDirectory() as base:
        folder = os.path.join(base, "1")
        if NAME == "c":
            os.makedirs(folder)
            peer = Peer([os.path.abspath(sys.argv[3])], folder)
            expected = {"largest": x.max(axis=1), "mean": x.mean(axis=1)}
        else:
            make = os.path.join(SOURCE, "examples", "serving", NAME + "_container", "make_model.py")
            subprocess.run([sys.executable, "-B", make, base], check=True)
            peer = Peer(command(folder), folder)
            expected = own_answers(folder, x)
        check(peer, x, expected)
        peer.share(1 << 20)
        check(peer, x, expected)
        try:
            peer.predict({"x": np.zeros((1, 0), np.float32)})
        except Failed as error:
            assert error.args[1], "an error says why"
        check(peer, x[:10], {name: values[:10] for name, values in expected.items()})
        assert peer.drain() == 0


main()
