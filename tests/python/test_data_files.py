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
def first(dataset, name, compression, **attrs):
    # A snapshot of the first version.
    spec = dataset.element_spec
    return tf.data.experimental.from_variant(tf.raw_ops.SnapshotDataset(
        input_dataset=tf.data.experimental.to_variant(dataset), path=folder + "/first", compression=compression,
        snapshot_name=name + compression, output_types=[s.dtype for s in spec], output_shapes=[s.shape for s in spec], **attrs), spec)
named = D.range(6).map(lambda i: {"a": i, "b": tf.strings.as_string(i)})
if what == "write":
    assert len(show(parts(12).cache(folder + "/cache"))) == 12
    show(wide(3).cache(folder + "/wide"))
    show(parts(0).cache(folder + "/empty"))
    for compression in ("", "GZIP", "SNAPPY"):
        assert len(show(first(parts(12), "one", compression))) == 12
        assert len(show(first(parts(70), "many", compression, shard_size_bytes=100))) == 70
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
for compression in ("", "GZIP", "SNAPPY"):
    assert show(first(parts(3), "one", compression)) == [[i, b"%d" % i, [i, i]] for i in range(12)]
    assert show(first(parts(3), "many", compression, mode="read")) == [[i, b"%d" % i, [i, i]] for i in range(70)]
try:
    show(first(D.range(3).map(lambda x: (x, x)), "one", ""))
except tf.errors.InternalError as error:
    assert "Expected number of dtypes: 2 but number in snapshot: 3" in str(error)
else:
    raise SystemExit("read elements of another width")
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


def test_first_snapshots(tmp_path):
    program = """
folder = sys.argv[1]
D, from_variant, to_variant = tf.data.Dataset, tf.data.experimental.from_variant, tf.data.experimental.to_variant
spec = tf.TensorSpec([], tf.int64)
attrs = dict(output_types=[tf.int64], output_shapes=[[]])
def snapshot(dataset, **more):
    return from_variant(tf.raw_ops.SnapshotDataset(input_dataset=to_variant(dataset), path=folder, **attrs, **more), spec)
def values(dataset):
    return [int(x) for x in dataset]
# Four files at a time, each element in one of them; another order with each seed.
assert values(snapshot(D.range(40), snapshot_name="four", num_writer_threads=4)) == list(range(40))
assert sorted(os.listdir(folder + "/custom-four/custom")) == ["%08d.snapshot" % i for i in range(4)]
read = values(snapshot(D.range(1), snapshot_name="four"))
assert read != list(range(40)) and sorted(read) == list(range(40))
orders = [values(snapshot(D.range(1), snapshot_name="four", shuffle_on_read=True, seed=seed, seed2=1)) for seed in (1, 1, 2, 3, 4)]
assert orders[0] == orders[1] and len(set(map(tuple, orders))) > 2
# A prefix for the writer, which its reader needs too.
prefix = dict(snapshot_name="far", writer_path_prefix=folder + "/far")
assert values(snapshot(D.range(3), **prefix)) == [0, 1, 2]
assert os.listdir(folder + "/far" + folder + "/custom-far/custom") == ["00000000.snapshot"]
# The files of a run that was interrupted are cut where the state was saved; a state of a reader goes on.
for mode, count in (("write", 20), ("read", 20)):
    dataset = snapshot(D.range(count), snapshot_name="kept", mode=mode, shard_size_bytes=20)
    iterator = iter(dataset)
    assert [int(next(iterator)) for _ in range(7)] == list(range(7))
    path = tf.train.Checkpoint(iterator=iterator).save(folder + "/state")
    assert [int(x) for x in iterator] == list(range(7, 20))
    iterator = iter(dataset)
    tf.train.Checkpoint(iterator=iterator).restore(path)
    assert [int(x) for x in iterator] == list(range(7, 20))
assert values(snapshot(D.range(1), snapshot_name="kept")) == list(range(20))
# Another pipeline of the same name of a file is another snapshot; a shuffle is the same one whatever its seeds.
for n in (3, 4):
    assert values(snapshot(D.range(n))) == list(range(n))
assert len([name for name in os.listdir(folder) if len(name) == 16]) == 2
orders = [values(snapshot(D.range(9).shuffle(9))) for _ in range(2)]
assert orders[0] == orders[1] and sorted(orders[0]) == list(range(9))
assert len([name for name in os.listdir(folder) if name.endswith("-graph.pbtxt")]) >= 3
nested = tf.raw_ops.SnapshotNestedDatasetReader(inputs=[to_variant(D.range(n)) for n in (2, 3)], output_types=[tf.variant], output_shapes=[[]])
nested = from_variant(nested, tf.data.DatasetSpec(spec))
assert values(nested.flat_map(lambda shard: shard)) == [0, 1, 0, 1, 2]
for bad in (dict(output_types=[tf.int64]), dict(output_types=[tf.int64, tf.variant], output_shapes=[[], []])):
    try:
        tf.raw_ops.SnapshotNestedDatasetReader(inputs=[to_variant(D.range(2))] * 2, **{"output_shapes": [[]], **bad})
    except tf.errors.InvalidArgumentError:
        pass
    else:
        raise SystemExit("took datasets for numbers")
"""
    head = "import os, sys; sys.path[:0] = %r; import runnel as tf; tf.enable_eager_execution(); from runnel.compat import v2\n" % [os.path.join(ROOT, "python")]
    folder = tmp_path / "first"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", head + program, str(folder)], check=True, cwd=HERE)


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
def test_distributed_snapshots(tmp_path):
    """What stock's tf.data service writes, loaded here; also before it is complete."""
    stock.run("""
import os, sys, time
import tensorflow as tf
service, folder = tf.data.experimental.service, sys.argv[1]
dispatcher = service.DispatchServer(service.DispatcherConfig(work_dir=folder + "/work", fault_tolerant_mode=True))
workers = [service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])) for _ in range(2)]
for compression in (None, "SNAPPY"):
    path = folder + "/%s" % compression
    dataset = tf.data.Dataset.range(50).map(lambda i: {"n": i, "text": tf.strings.as_string(i)})
    tf.data.experimental.distributed_save(dataset, path, dispatcher.target.split("://")[1], compression)
    while not os.path.exists(path + "/DONE"):
        time.sleep(0.05)
""", str(tmp_path))
    program = """
import threading, time
folder = sys.argv[1]
def elements(dataset):
    return sorted((int(x["n"]), x["text"].numpy()) for x in dataset)
want = sorted((i, b"%d" % i) for i in range(50))
for compression in ("None", "SNAPPY"):
    path = folder + "/" + compression
    dataset = tf.data.Dataset.load(path)
    assert elements(dataset) == want
    assert elements(tf.data.Dataset.load(path, reader_func=lambda chunks: chunks.flat_map(lambda x: x))) == want
    for wrong in (dict(element_spec=tf.TensorSpec([], tf.int64)), dict(compression="GZIP")):
        try:
            tf.data.Dataset.load(path, **wrong)
        except ValueError as error:
            assert "Failed to load tf.data snapshot at" in str(error)
        else:
            raise SystemExit("loaded with %r" % wrong)
# Chunks that come later; the state of a walk; an error that the writers left.
path = folder + "/None"
chunks = sorted(os.listdir(path + "/chunks"))
os.rename(path + "/DONE", path + "/later")
os.rename(path + "/chunks/" + chunks[-1], path + "/last")
def complete():
    time.sleep(0.5)
    os.rename(path + "/last", path + "/chunks/" + chunks[-1])
    os.rename(path + "/later", path + "/DONE")
thread = threading.Thread(target=complete)
thread.start()
assert elements(tf.data.Dataset.load(path)) == want
thread.join()
spec = tf.TensorSpec([], tf.string)
names = tf.data.experimental.from_variant(tf.raw_ops.ListSnapshotChunksDataset(
    snapshot_path=path, output_types=[tf.string], output_shapes=[[]]), spec)
everything = [x.numpy() for x in names]
assert len(everything) == len(chunks) > 1
iterator = iter(names)
first = next(iterator).numpy()
state = tf.train.Checkpoint(iterator=iterator).save(folder + "/state")
iterator = iter(names)
tf.train.Checkpoint(iterator=iterator).restore(state)
assert [first] + [x.numpy() for x in iterator] == everything
with open(path + "/ERROR", "w") as file:
    file.write('code: RESOURCE_EXHAUSTED message: "no room"')
try:
    list(names)
except tf.errors.ResourceExhaustedError as error:
    assert "no room" in str(error)
else:
    raise SystemExit("listed what failed")
try:
    tf.data.Dataset.load(path)
except ValueError as error:
    assert "The save job failed to write it." in str(error)
else:
    raise SystemExit("loaded what failed")
"""
    head = "import os, sys; sys.path[:0] = %r; import runnel as tf; tf.enable_eager_execution()\n" % [os.path.join(ROOT, "python")]
    subprocess.run([sys.executable, "-c", head + program, str(tmp_path)], check=True, cwd=HERE)
