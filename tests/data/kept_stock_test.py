#!/usr/bin/env python3
"""Saved datasets and snapshots, exchanged between this library and stock TensorFlow in both directions.

  kept_stock_test.py RUNNEL

Stock builds the graphs, and RUNNEL, the command, runs them: each loads what the other saved.
"""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

RUNNEL = sys.argv[1]
v1 = tf.compat.v1
COUNT = 3000
SPEC = (tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string), tf.TensorSpec([7], tf.float32))
TYPES = dict(output_types=[s.dtype for s in SPEC], output_shapes=[s.shape for s in SPEC])


def elements(count=COUNT):
    """Numbers, strings that repeat and strings that do not, floats."""
    rng = np.random.RandomState(3)
    text = [rng.bytes(i % 90) if i % 2 else b"again and " * (i % 40) for i in range(count)]
    return (np.arange(count, dtype=np.int64), np.array(text, object),
            rng.rand(count, 7).astype(np.float32))


def check(what, got, want):
    if got != want:
        sys.exit("%s: %.400r is not %.400r" % (what, got, want))


def ours(folder, build):
    """Runs the graph that |build| makes: its op is a target, its tensor is fetched."""
    with v1.Graph().as_default() as graph:
        result = build()
    path = os.path.join(folder, "graph.pb")
    with open(path, "wb") as f:
        f.write(graph.as_graph_def().SerializeToString())
    is_op = isinstance(result, v1.Operation)
    out = os.path.join(folder, "out.npy")
    args = ["--target", result.name] if is_op else ["--save", "%s=%s" % (result.name, out)]
    done = subprocess.run([RUNNEL, "run", path] + args, capture_output=True, text=True)
    if done.returncode:
        sys.exit("runnel run: %s" % done.stderr)
    return None if is_op else np.load(out)


@function.Defun(tf.variant)
def one_shard(shard):
    return tf.identity(shard)


@function.Defun(tf.variant)
def in_turn(shards):
    return tf.raw_ops.InterleaveDataset(input_dataset=shards, other_arguments=[], cycle_length=3,
                                        block_length=1, f=one_shard, **TYPES)


@function.Defun(tf.int64, tf.string, tf.float32)
def by_rest(n, text, x):
    return n % 3


def load(path, compression):
    """A digest of what is in |path|: a row of numbers for each element."""
    data = tf.raw_ops.LoadDataset(path=path, reader_func_other_args=[], reader_func=in_turn,
                                  compression=compression, **TYPES)

    @function.Defun(tf.float64, tf.int64, tf.string, tf.float32)
    def add(rows, n, text, x):
        bucket = tf.strings.to_hash_bucket_fast(text, 1 << 40)
        row = tf.stack([tf.cast(n, tf.float64), tf.cast(bucket, tf.float64),
                        tf.reduce_sum(tf.cast(x, tf.float64))])
        return tf.concat([rows, row[None]], 0)
    return tf.raw_ops.ReduceDataset(
        input_dataset=data, initial_state=[tf.zeros([0, 3], tf.float64)], other_arguments=[], f=add,
        output_types=[tf.float64], output_shapes=[[None, 3]])[0]


def digest(rows):
    n, text, x = zip(*rows)
    bucket = tf.strings.to_hash_bucket_fast(np.array(text, object), 1 << 40).numpy()
    return np.stack([np.array(n, float), bucket.astype(float),
                     np.array(x, np.float64).reshape(len(n), 7).sum(1)], 1)


def both_ways(folder, compression):
    data = elements()
    want = list(tf.data.Dataset.from_tensor_slices(data).as_numpy_iterator())
    name = compression or "plain"
    theirs = os.path.join(folder, "stock_" + name)
    with v1.Graph().as_default(), v1.Session() as s:
        parts = tf.raw_ops.TensorSliceDataset(components=list(data), output_shapes=TYPES["output_shapes"])
        save = tf.raw_ops.SaveDataset(input_dataset=parts, path=theirs, shard_func_other_args=[],
                                      shard_func=by_rest, compression=compression)
        s.run(save)
    got = ours(folder, lambda: load(theirs, compression))
    if not np.allclose(got, digest(want), rtol=1e-12):
        sys.exit("what stock saved, %s" % name)

    mine = os.path.join(folder, "ours_" + name)

    def save():
        parts = tf.raw_ops.TensorSliceDataset(components=list(data), output_shapes=TYPES["output_shapes"])
        return tf.raw_ops.SaveDataset(input_dataset=parts, path=mine, shard_func_other_args=[],
                                      shard_func=by_rest, compression=compression)
    ours(folder, save)
    loaded = tf.data.Dataset.load(mine, element_spec=SPEC, compression=compression or None,
                                  reader_func=lambda shards: shards.interleave(
                                      lambda s: s, cycle_length=3, num_parallel_calls=1))
    check("cardinality, " + name, int(loaded.cardinality()), COUNT)
    got = list(loaded.as_numpy_iterator())
    check("elements that we saved, " + name, [(int(n), t) for n, t, _ in got],
          [(int(n), t) for n, t, _ in want])
    if not np.array_equal(np.array([x for _, _, x in got]), np.array([x for _, _, x in want])):
        sys.exit("floats that we saved, " + name)
    if not compression:
        for shard in sorted(os.listdir(only(theirs))):
            files = [os.path.join(only(p), shard, "00000000.snapshot") for p in (theirs, mine)]
            check("the bytes of " + shard, *[open(f, "rb").read() for f in files])


def only(folder):
    """The one run that is in it."""
    runs = [os.path.join(folder, n) for n in os.listdir(folder) if n != "snapshot.metadata"]
    check("runs", len(runs), 1)
    return runs[0]


with tempfile.TemporaryDirectory() as folder:
    for compression in ("", "GZIP", "SNAPPY"):
        both_ways(folder, compression)
print("saved datasets both ways")
