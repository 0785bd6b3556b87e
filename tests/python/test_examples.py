"""The programs of examples/python reach their goals, here and, with only the import changed, in stock."""

import ast
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

import pytest
from both import ROOT
from support.stock import PYTHON, recorded

FOLDER = os.path.join(ROOT, "examples", "python")
IMPORT = "import runnel as tf\n"
STOCK_IMPORT = "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"


def environment(**more):
    return dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), PYTHONDONTWRITEBYTECODE="1", **more)


def here(name, *arguments):
    """What an example prints."""
    done = subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py"), *arguments], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def sources():
    return {name: open(os.path.join(FOLDER, name), encoding="utf-8").read() for name in sorted(os.listdir(FOLDER)) if name.endswith(".py")}


def stock(name, *arguments):
    """What it prints in stock; recorded as long as the example, and what it imports, are the same."""
    files = sources()
    parts = [files[name + ".py"]] + [files[other] for other in ("digits_data.py", "networks.py", "device.py") if "from " + other[:-3] in files[name + ".py"]]
    key = hashlib.sha256("\0".join(parts + list(arguments)).encode()).hexdigest()[:16]
    return recorded(" ".join(["examples/" + name, *arguments]), key, lambda: run_in_stock(name, arguments))


def run_in_stock(name, arguments):
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "python"))
        os.symlink(os.path.join(ROOT, "examples", "data"), os.path.join(root, "data"))
        for other, text in sources().items():
            with open(os.path.join(root, "python", other), "w", encoding="utf-8") as stream:
                stream.write(text.replace(IMPORT, STOCK_IMPORT))
        variables = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1", CUDA_VISIBLE_DEVICES="")
        variables.pop("PYTHONPATH", None)
        done = subprocess.run([PYTHON, os.path.join(root, "python", name + ".py"), *arguments], env=variables,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == 0, "stock: " + done.stderr[-3000:]
        return done.stdout


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


def last(text):
    return text.strip().splitlines()[-1]


def test_sizes():
    for name, text in sources().items():
        assert len(text.splitlines()) <= 80, name
        assert ast.get_docstring(ast.parse(text)), name
        assert IMPORT in text or "tf." not in text or "import tensorflow.compat.v1 as tf" in text, name


def test_all_are_tested_and_explained():
    tests = "".join(open(os.path.join(ROOT, "tests", "python", name), encoding="utf-8").read()
                    for name in ("test_examples.py", "test_cluster.py", "test_engines.py"))
    readme = open(os.path.join(FOLDER, "README.md"), encoding="utf-8").read()
    for name in sources():
        assert name[:-3] in tests, name
        assert "`%s`" % name in readme, name


def test_all_have_a_picture():
    """Each program is shown in examples/README.md; the pictures are made by python/tools/make_example_pictures.py."""
    shown = open(os.path.join(ROOT, "examples", "README.md"), encoding="utf-8").read()
    for name in sorted(sources().keys() - {"digits_data.py", "networks.py", "device.py"}):
        assert "(python/%s)" % name in shown, name
        assert 'src="pictures/%s.svg"' % name[:-3] in shown, name
        ElementTree.parse(os.path.join(ROOT, "examples", "pictures", name[:-3] + ".svg"))


def test_two_layers():
    text = here("two_layers")
    assert "h = [[5.5, 7.5], [0.0, 0.5]]\ny = [80.5, 5.0]\n" in text
    assert "dy/dx = [[-9.0, 2.0, 30.0], [-10.0, 0.0, 30.0]]" in text
    assert text == stock("two_layers")


def test_perceptrons():
    text = here("perceptrons")
    assert [line[-14:] for line in text.splitlines()] == [", 4 of 4 right", ", 4 of 4 right", ", 0 of 4 right", ", 4 of 4 right"]
    assert numbers(text) == pytest.approx(numbers(stock("perceptrons")), abs=0.002)


def test_linear_regression():
    slope, offset, loss = numbers(last(here("linear_regression")))
    assert slope == pytest.approx(0.1, abs=0.005)
    assert offset == pytest.approx(0.3, abs=0.005)
    assert [slope, offset, loss] == pytest.approx(numbers(last(stock("linear_regression"))), abs=2e-4)


# name, arguments, the least that the first number of the last line may be, or the most, and how far stock's may be from it
LEARNED = [
    ("softmax_digits", [], 95, None, 0.7),
    ("convnet_digits", [], 95, None, 2.5),
    ("language_model", [], None, 5.5, 0.5),
    ("language_model", ["--softmax", "sampled"], None, 6.5, 0.8),
    ("transformer", [], None, 5.5, 0.5),
    ("keras_digits", [], 95, None, 3),
    ("dataset_digits", [], 95, None, 2),
    ("restart_digits", [], 95, None, 2.5),
    ("reinforce", [], 180, None, 20),
]


@pytest.mark.parametrize("name, arguments, least, most, off", LEARNED, ids=lambda v: "-".join(v).strip("-") if isinstance(v, list) else v if isinstance(v, str) else "")
def test_learned(name, arguments, least, most, off):
    value = numbers(last(here(name, *arguments)))[0]
    assert least is None or value >= least
    assert most is None or value <= most
    assert value == pytest.approx(numbers(last(stock(name, *arguments)))[0], abs=off)


def test_serve_digits():
    for text in here("serve_digits"), stock("serve_digits"):
        assert len(text.splitlines()) == 7
        right, _ = numbers(last(text))
        assert right >= 95


def test_word2vec():
    for line in last(here("word2vec")), last(stock("word2vec")):
        assert numbers(line.split(":", 1)[1])[0] >= 95
        assert line.endswith("4 shards, the first is embeddings/part_0:0")


def test_gan():
    for line in last(here("gan")), last(stock("gan")):
        left, _, right, _ = numbers(line)
        assert left >= 25
        assert right >= 25
        assert left + right >= 85


# The published numbers of parameters.
NETWORKS = {"alexnet": 62378344, "overfeat": 145920872, "vgg_a": 132863336, "googlenet": 6998552, "inception_v3": 23817352, "resnet18": 11689512,
            "resnet50": 25557032}


@pytest.mark.parametrize("net", NETWORKS)
def test_image_networks(net):
    count = here("image_networks", "--net", net, "--width", "1", "--large", "--steps", "0")
    assert count.startswith("%s: %d parameters" % (net, NETWORKS[net]))
    line = here("image_networks", "--net", net)
    losses = numbers(line.split("losses")[1])
    assert min(losses) < losses[0] - 0.2
    other = stock("image_networks", "--net", net)
    assert line.split("losses")[0] == other.split("losses")[0]
    # Batches of 32 numbers are normalised in the last layers of Inception: one ReLU that opens by a rounding is 4 % of a gradient.
    same = 1 if net == "inception_v3" else 2
    assert losses[:same] == pytest.approx(numbers(other.split("losses")[1])[:same], rel=1e-3)


def test_device():
    assert here("transformer", "--steps", "1", "--device", "cpu") == here("transformer", "--steps", "1")
    done = subprocess.run([sys.executable, os.path.join(FOLDER, "transformer.py"), "--device", "gpu"], stderr=subprocess.PIPE, text=True,
                          env=environment(CUDA_VISIBLE_DEVICES="", RUNNEL_CUDA_PART="none"), timeout=300)
    assert done.returncode == 1
    assert done.stderr == "--device gpu: there is none\n"


def test_restart_after_a_kill(tmp_path):
    command = [sys.executable, os.path.join(FOLDER, "restart_digits.py"), "--folder", str(tmp_path), "--steps", "200"]
    with subprocess.Popen([*command, "--slowly", "0.01"], env=environment(), stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "begins at step 0\n"
        seen = ""
        while not seen.startswith("step 60,"):
            seen = first.stdout.readline()
            assert seen, "it ended by itself"
        time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0
    begins = int(re.match(r"begins at step (\d+)\n", done.stdout).group(1))
    assert 40 <= begins < 200
    accuracy, _, step = numbers(last(done.stdout))
    assert accuracy >= 93
    assert step == 200
