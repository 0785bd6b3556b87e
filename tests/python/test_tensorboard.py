"""TensorBoard, in a browser, shows the event files that a program wrote.

Leaves its screenshots in build/tensorboard; those of doc/tensorboard come from this test.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
import urllib.request

import pytest
from both import ROOT
from browser import CHROMIUM, Browser
from support.ports import free_port

PICTURES = os.path.join(ROOT, "build", "tensorboard")
STEPS = range(0, 100, 5)


def scalar_at(step):
    return 2.0 - step / 100


def write(folder):
    """A run with some of everything: known numbers, pictures, a text, a graph on two devices and what a step of it took."""
    import numpy as np

    import runnel as tf
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 64], name="x")
        value = tf.placeholder(tf.float32, [], name="value")
        with tf.device("/cpu:0"), tf.name_scope("hidden"):
            w = tf.Variable(tf.random_normal([64, 256], stddev=0.1), name="weights")
            hidden = tf.nn.relu(tf.matmul(x, w), name="out")
        with tf.device("/cpu:1"), tf.name_scope("softmax"):
            v = tf.Variable(tf.random_normal([256, 10], stddev=0.1), name="weights")
            y = tf.nn.softmax(tf.matmul(hidden, v), name="out")
        with tf.name_scope("loss"):
            loss = -tf.reduce_mean(tf.log(y[:, 0]))
        with tf.name_scope("train"):
            train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        picture = np.zeros([1, 8, 24, 3], np.uint8)
        picture[0, :, :8, 0] = picture[0, :, 8:16, 1] = picture[0, :, 16:, 2] = 255
        tf.summary.scalar("metrics/falls", value)
        tf.summary.histogram("weights", v)
        tf.summary.image("colours", tf.constant(picture))
        tf.summary.text("note", tf.constant("trained **by the test**"))
        merged = tf.summary.merge_all()
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
            writer = tf.summary.FileWriter(folder, sess.graph)
            sess.run(tf.global_variables_initializer())
            for step in STEPS:
                feed = {x: np.random.RandomState(step).rand(32, 64), value: scalar_at(step)}
                _, summary = sess.run([train, merged], feed)
                writer.add_summary(summary, step)
            metadata = tf.RunMetadata()
            sess.run(train, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
            writer.add_run_metadata(metadata, "last step", 100)
            writer.close()


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def tensorboard(folder):
    """Serves a folder of logs; gives the address once the logs were read."""
    port = free_port()
    address = "http://localhost:%d/" % port
    process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", os.path.basename(folder), "--port", str(port), "--load_fast=false"], cwd=os.path.dirname(folder),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, PYTHONPATH="", TF_CPP_MIN_LOG_LEVEL="3"))
    try:
        for _ in range(240):
            assert process.poll() is None, process.stdout.read().decode()
            with contextlib.suppress(OSError):
                if "note" in fetch(address + "data/plugin/text/tags"):
                    break
            time.sleep(0.5)
        else:
            raise AssertionError("TensorBoard does not come up")
        yield address
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no chromium to show pages with")
    if any(importlib.util.find_spec(name) is None for name in ("tensorboard", "werkzeug", "markdown")):
        pytest.skip("TensorBoard is not installed (pip install tensorboard)")
    logs = tmp_path_factory.mktemp("board") / "logs"
    write(str(logs / "run"))
    os.makedirs(PICTURES, exist_ok=True)
    with tensorboard(str(logs)) as address, Browser(1280, 700) as browser:
        browser.address = address
        yield browser


def look(page, tab):
    page.open(page.address + "#" + tab)


def keep(page, name):
    time.sleep(1)  # transitions
    page.picture(os.path.join(PICTURES, name + ".png"))


def test_scalars(page):
    look(page, "scalars")
    assert "metrics/falls" in page.wait("all('tf-scalar-card').map(card => card.tag).join(' ')")
    rows = page.wait("(() => { const data = all('vz-line-chart2').map(c => c._chart || c.chart).filter(c => c && c.datasets);"
                     " const sets = data.flatMap(c => Object.values(c.datasets)).map(s => s.data()).filter(d => d.length);"
                     " return sets.length ? sets[0].map(d => [d.step, d.scalar]) : null; })()")
    assert [row[0] for row in rows] == list(STEPS)
    assert [row[1] for row in rows] == pytest.approx([scalar_at(step) for step in STEPS], rel=1e-6)
    keep(page, "scalars")


def test_histograms(page):
    look(page, "histograms")
    assert page.wait("inside('vz-histogram-timeseries', 'path').length") >= len(STEPS)
    assert "weights" in page.value("all('tf-histogram-loader').map(h => h.tag).join(' ')")
    keep(page, "histograms")


def test_images(page):
    look(page, "images")
    size = page.wait("inside('tf-image-loader', 'img').filter(i => i.complete && i.naturalWidth).map(i => [i.naturalWidth, i.naturalHeight])")
    assert size == [[24, 8]]
    colours = page.value("(() => { const i = inside('tf-image-loader', 'img')[0]; const c = document.createElement('canvas'); c.width = 24; c.height = 8;"
                         " const g = c.getContext('2d'); g.drawImage(i, 0, 0); return [2, 10, 20].map(x => [...g.getImageData(x, 4, 1, 1).data]); })()")
    assert colours == [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255]]
    assert "colours/image" in page.value("all('tf-image-loader').map(i => i.tag).join(' ')")
    keep(page, "images")


def test_text(page):
    look(page, "text")
    page.wait("inside('tf-text-loader', 'strong').length >= %d" % min(len(STEPS), 10))
    assert set(page.value("inside('tf-text-loader', 'strong').map(e => e.textContent)")) == {"by the test"}
    assert "trained" in page.value("words()")
    keep(page, "text")


def choose(page, label):
    page.wait("all('paper-radio-button').some(b => !b.disabled && b.textContent.trim() === %r)" % label)
    page.value("all('paper-radio-button').filter(b => b.textContent.trim() === %r)[0].click()" % label)


def test_graph(page):
    look(page, "graphs")
    page.wait("all('g.node').some(n => n.getAttribute('data-name') === 'softmax')")
    assert {"x", "hidden", "softmax", "loss", "train"} <= set(page.value("all('g.node').map(n => n.getAttribute('data-name'))"))
    keep(page, "graph")
    choose(page, "Device")
    devices = page.wait("(p => p && p.device)(all('tf-graph-controls')[0].colorByParams)")
    assert {row["device"].lower()[-5:] for row in devices} >= {"cpu:0", "cpu:1"}
    assert len({row["color"] for row in devices}) == len(devices)
    keep(page, "graph_devices")


def test_run_time_statistics(page):
    look(page, "graphs")
    page.wait("all('g.node').length > 4")
    page.value("all('paper-item').filter(e => e.textContent.trim() === 'last step')[0].click()")
    choose(page, "Compute time")
    page.wait("all('tf-graph-controls').some(c => c.colorBy === 'compute_time' && c.colorByParams && c.colorByParams.compute_time)")
    limits = page.value("all('tf-graph-controls')[0].colorByParams.compute_time")
    assert limits["maxValue"] > limits["minValue"] >= 0
    text = page.wait("/\\d \u00b5s/.test(words()) && words()")
    assert "Devices included in stats" in text
    keep(page, "graph_times")
