"""Datasets in files, exchanged with stock in both directions: caches, saved datasets, snapshots."""

import filecmp
import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

PROGRAM = """
folder, what = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)
D = tf.data.Dataset
def show(dataset):
    rows = []
    for x in dataset:
        flat = [x[k] for k in sorted(x)] if isinstance(x, dict) else list(x) if isinstance(x, tuple) else [x]
        rows.append([y.numpy().tolist() if y.dtype != tf.string else y.numpy() for y in flat])
    return rows
def parts(n, more=0):
    return D.range(n).map(lambda i: (i + more, tf.strings.as_string(i), tf.cast(i, tf.float32) * tf.ones([2])))
def wide(n):
    return D.range(n).map(lambda i: tuple(i + j for j in range(11)))
named = D.range(6).map(lambda i: {"a": i, "b": tf.strings.as_string(i)})
if what == "write":
    assert len(show(parts(12).cache(folder + "/cache"))) == 12
    show(wide(3).cache(folder + "/wide"))
    show(parts(0).cache(folder + "/empty"))
    named.save(folder + "/named")
    named.save(folder + "/shards", compression="GZIP", shard_func=lambda x: x["a"] % 2)
    D.range(4).map(lambda x: (x, x * x)).save(folder + "/pairs")
    # One writes, others wait; what is given up leaves nothing.
    one = iter(parts(3).cache(folder + "/busy"))
    next(one)
    assert os.path.exists(folder + "/busy_0.lockfile")
    try:
        next(iter(parts(3).cache(folder + "/busy")))
    except tf.errors.AlreadyExistsError as error:
        assert "There appears to be a concurrent caching iterator running" in str(error)
    else:
        raise SystemExit("two wrote one cache")
    del one
    assert not [name for name in os.listdir(folder) if name.startswith("busy")]
# What is in the files, not what the datasets before would give.
assert show(parts(3, 100).cache(folder + "/cache")) == [[i, b"%d" % i, [i, i]] for i in range(12)]
assert show(wide(1).cache(folder + "/wide")) == [[i + j for j in range(11)] for i in range(3)]
assert show(parts(3).cache(folder + "/empty")) == []
try:
    show(D.range(3).map(lambda x: tf.cast(x, tf.float32)).cache(folder + "/wide"))
except tf.errors.InvalidArgumentError as error:
    assert "Data type mismatch at component 0: expected float but got int64" in str(error)
else:
    raise SystemExit("read numbers of another type")
loaded = D.load(folder + "/named")
assert sorted(loaded.element_spec) == ["a", "b"] and loaded.element_spec["b"].dtype == tf.string
assert show(loaded) == [[i, b"%d" % i] for i in range(6)]
assert sorted(show(D.load(folder + "/shards", compression="GZIP"))) == [[i, b"%d" % i] for i in range(6)]
assert show(D.load(folder + "/pairs", reader_func=lambda shards: shards.flat_map(lambda x: x))) == [[i, i * i] for i in range(4)]
for _ in range(2):
    assert sorted(show(D.range(5).snapshot(folder + "/snapshot"))) == [[i] for i in range(5)]
try:
    D.load(folder + "/nothing")
except tf.errors.NotFoundError as error:
    assert "element_spec file not found" in str(error)
else:
    raise SystemExit("loaded nothing")
"""


def _ours(folder, what):
    head = "import os, sys; sys.path[:0] = %r; import runnel as tf; tf.enable_eager_execution()\n" % [os.path.join(ROOT, "python")]
    subprocess.run([sys.executable, "-c", head + PROGRAM, folder, what], check=True, cwd=HERE)


def _stocks(folder, what):
    stock.run("import os, sys; import tensorflow as tf\n" + PROGRAM, folder, what)


def test_here(tmp_path):
    _ours(str(tmp_path / "ours"), "write")


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
def test_there_and_back(tmp_path):
    ours, stocks = str(tmp_path / "ours"), str(tmp_path / "stocks")
    _ours(ours, "write")
    _stocks(stocks, "write")
    for name in ("cache", "wide"):
        for end in (".index", ".data-00000-of-00001"):
            assert filecmp.cmp("%s/%s%s" % (ours, name, end), "%s/%s%s" % (stocks, name, end), shallow=False), name + end
    _stocks(ours, "read")
    _ours(stocks, "read")


def test_in_a_graph(tmp_path):
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.data.Dataset.range(3).save(str(tmp_path / "saved")))
        element = tf.data.Dataset.load(str(tmp_path / "saved")).make_one_shot_iterator().get_next()
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
