"""Datasets in files: snapshots and saved datasets."""
import os

import numpy as np
import tensorflow.compat.v1 as tf

from recorder import FILES, D, as_written, case, defun

STRINGS = np.array([b"", b"a", b"long enough to be on the heap, and more of it"])


def identity(n):
    """The shards, |n| of them at once."""
    @defun(tf.variant)
    def read(shards):
        @defun(tf.variant)
        def one(shard):
            return tf.identity(shard)
        return tf.raw_ops.InterleaveDataset(
            input_dataset=shards, other_arguments=[], cycle_length=n, block_length=1, f=one,
            output_types=[tf.int64], output_shapes=[[]])
    return read


def by_rest(n):
    @defun(tf.int64)
    def shard(x):
        return x % n
    return shard


INT = dict(output_types=[tf.int64], output_shapes=[[]])


def walk(c, dataset, feed, times=1, types=(tf.int64,), shapes=((),), repeat=40):
    dataset = as_written(dataset, list(types), [list(s) for s in shapes])
    it = tf.raw_ops.IteratorV2(shared_name="", container="", output_types=list(types),
                               output_shapes=[list(s) for s in shapes])
    make = tf.raw_ops.MakeIterator(dataset=dataset, iterator=it)
    element = tf.raw_ops.IteratorGetNext(iterator=it, output_types=list(types),
                                         output_shapes=[list(s) for s in shapes])
    for _ in range(times):
        c.run(target=[make], feed=feed)
        c.run(fetch=element, repeat=repeat)
    return make, element, it


def load(path, compression="", n=2):
    return tf.raw_ops.LoadDataset(path=path, reader_func_other_args=[], reader_func=identity(n),
                                  compression=compression, **INT)


@case
def snapshot(c):
    for compression in (None, "GZIP", "SNAPPY", "AUTO"):
        p = tf.placeholder(tf.string, [])
        d = D.range(9).map(lambda x: x * x).snapshot(p, compression)
        it = tf.data.make_initializable_iterator(d)
        e = it.get_next()
        for _ in range(2):  # written, then read
            c.run(target=[it.initializer], feed={p: "$TMP/s%s" % compression})
            c.run(fetch=[e], repeat=20)


@case
def snapshot_components(c):
    p = tf.placeholder(tf.string, [])
    d = D.from_tensor_slices((STRINGS, np.arange(6, dtype=np.float32).reshape(3, 2),
                              np.array([True, False, True])))
    it = tf.data.make_initializable_iterator(d.snapshot(p))
    e = it.get_next()
    for _ in range(2):
        c.run(target=[it.initializer], feed={p: "$TMP/s/deep"})
        c.run(fetch=list(e), repeat=5)


@case
def snapshot_in_part(c):
    """A walk that did not come to its end has kept nothing."""
    p = tf.placeholder(tf.string, [])
    it = tf.data.make_initializable_iterator(D.range(6).snapshot(p))
    e = it.get_next()
    for repeat in (2, 9, 9):
        c.run(target=[it.initializer], feed={p: "$TMP/s"})
        c.run(fetch=[e], repeat=repeat)


@case
def snapshot_by_hash(c):
    """Two pipelines with one number are one snapshot; other numbers are others."""
    p = tf.placeholder(tf.string, [])
    for stop, number in ((4, 17), (9, 17), (9, -3)):
        r = tf.raw_ops.RangeDataset(start=0, stop=stop, step=1, **INT)
        walk(c, tf.raw_ops.SnapshotDatasetV2(
            input_dataset=r, path=p, reader_func_other_args=[], shard_func_other_args=[],
            reader_func=identity(2), shard_func=by_rest(2), hash_valid=True, hash=number, **INT),
            {p: "$TMP/s"})


@case
def snapshot_changed(c):
    """Another pipeline over the same folder does not get what was kept of the first."""
    p = tf.placeholder(tf.string, [])
    for i in range(3):
        d = D.range(4).map(lambda x: x + i) if i < 2 else D.range(5)
        it = tf.data.make_initializable_iterator(d.snapshot(p))
        c.run(target=[it.initializer], feed={p: "$TMP/s"})
        c.run(fetch=[it.get_next()], repeat=9)


@case
def snapshot_bad(c):
    @defun(tf.int64)
    def vector(x):
        return tf.stack([x, x])

    @defun(tf.int64)
    def fails(x):
        with tf.control_dependencies([tf.debugging.Assert(x < 2, ["too many"])]):
            return tf.identity(x)

    p = tf.placeholder(tf.string, [])
    for shard in (vector, fails):
        r = tf.raw_ops.RangeDataset(start=0, stop=4, step=1, **INT)
        walk(c, tf.raw_ops.SnapshotDatasetV2(
            input_dataset=r, path=p, reader_func_other_args=[], shard_func_other_args=[],
            reader_func=identity(2), shard_func=shard, **INT), {p: "$TMP/s"})


@case
def save_and_load(c):
    p = tf.placeholder(tf.string, [])
    for i, (compression, n) in enumerate((("", 1), ("GZIP", 2), ("SNAPPY", 3))):
        folder = {p: "$TMP/s%d" % i}
        r = tf.raw_ops.RangeDataset(start=0, stop=10, step=1, **INT)
        save = tf.raw_ops.SaveDataset(input_dataset=r, path=p, shard_func_other_args=[],
                                      shard_func=by_rest(n), compression=compression)
        c.run(target=[save], feed=folder)
        loaded = load(p, compression, 1 if n == 1 else 2)
        c.run(fetch=[tf.raw_ops.DatasetCardinality(input_dataset=loaded)], feed=folder)
        walk(c, loaded, folder)
        # Saved over: the newer one is loaded.
        r = tf.raw_ops.RangeDataset(start=20, stop=23, step=1, **INT)
        c.run(target=[tf.raw_ops.SaveDataset(
            input_dataset=r, path=p, shard_func_other_args=[], shard_func=by_rest(n),
            use_shard_func=False, compression=compression)], feed=folder)
        walk(c, load(p, compression), folder)


@case
def save_as_dataset(c):
    p = tf.placeholder(tf.string, [])
    r = tf.raw_ops.RangeDataset(start=0, stop=5, step=1, **INT)
    walk(c, tf.raw_ops.SaveDatasetV2(input_dataset=r, path=p, shard_func_other_args=[],
                                     shard_func=by_rest(2), **INT), {p: "$TMP/s"})
    walk(c, load(p), {p: "$TMP/s"})
    empty = tf.raw_ops.RangeDataset(start=0, stop=0, step=1, **INT)
    c.run(target=[tf.raw_ops.SaveDataset(input_dataset=empty, path=p, shard_func_other_args=[],
                                         shard_func=by_rest(2))], feed={p: "$TMP/e"})
    walk(c, load(p), {p: "$TMP/e"})


@case
def load_bad(c):
    p = tf.placeholder(tf.string, [])
    walk(c, load(p), {p: "$TMP/none"})


@case
def load_stocks(c):
    """What stock wrote, once."""
    p = tf.placeholder(tf.string, [])
    for compression in ("", "GZIP", "SNAPPY"):
        name = "kept_" + (compression or "NONE")
        if not os.path.exists(os.path.join(FILES, name)):
            r = tf.raw_ops.RangeDataset(start=0, stop=40, step=1, **INT)
            save = tf.raw_ops.SaveDataset(input_dataset=r, path=os.path.join(FILES, name),
                                          shard_func_other_args=[], shard_func=by_rest(3),
                                          compression=compression)
            with tf.Session() as s:
                s.run(save)
        walk(c, load(p, compression, 3), {p: "$DIR/" + name}, repeat=60)


def saved(c, make, any_first):
    """Half way the state is saved; the walk goes on from it a second time."""
    from tensorflow.python.ops import gen_dataset_ops as ops
    p = tf.placeholder(tf.string, [])
    make_it, element, it = walk(c, make(p), {p: "$TMP/s"}, times=any_first)
    state = ops.serialize_iterator(it)
    queue = tf.FIFOQueue(2, [tf.variant], name="states")
    put, restore = queue.enqueue(state), ops.deserialize_iterator(it, queue.dequeue())
    c.run(target=[make_it], feed={p: "$TMP/s"})
    c.run(fetch=element, repeat=3)
    c.run(target=[put])
    c.run(fetch=element, repeat=20)
    c.run(target=[make_it], feed={p: "$TMP/s"})
    c.run(fetch=element, repeat=1)
    c.run(target=[restore])
    c.run(fetch=element, repeat=20)


@case
def saved_load(c):
    p = tf.placeholder(tf.string, [])
    r = tf.raw_ops.RangeDataset(start=0, stop=10, step=1, **INT)
    c.run(target=[tf.raw_ops.SaveDataset(input_dataset=r, path=p, shard_func_other_args=[],
                                         shard_func=by_rest(3))], feed={p: "$TMP/s"})
    saved(c, lambda path: load(path, n=3), 0)


@case
def saved_save(c):
    def make(path):
        r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INT)
        return tf.raw_ops.SaveDatasetV2(input_dataset=r, path=path, shard_func_other_args=[],
                                        shard_func=by_rest(1), **INT)
    saved(c, make, 0)
    p = tf.placeholder(tf.string, [])
    walk(c, load(p), {p: "$TMP/s"}, repeat=7)  # the eighth is an error of stock's: a second file


def first_version(path, start=0, stop=9, **attrs):
    r = tf.raw_ops.RangeDataset(start=start, stop=stop, step=1, **INT)
    return tf.raw_ops.SnapshotDataset(input_dataset=r, path=path, **INT, **attrs)


@case
def first_snapshots(c):
    """Written by the first walk, read by the second; the third reads what another pipeline wrote."""
    p = tf.placeholder(tf.string, [])
    for compression in ("", "GZIP", "SNAPPY"):
        name = dict(compression=compression, snapshot_name="n" + compression)
        walk(c, first_version(p, **name), {p: "$TMP/s"}, times=2)
        walk(c, first_version(p, start=40, stop=41, **name), {p: "$TMP/s"})
        walk(c, tf.raw_ops.SnapshotDatasetReader(
            shard_dir=tf.strings.join([p, "/custom-n%s/custom" % compression]), start_index=3, compression=compression,
            version=1, **INT), {p: "$TMP/s"})


@case
def first_snapshot_components(c):
    p = tf.placeholder(tf.string, [])
    types = [tf.string, tf.float32, tf.bool]
    shapes = [[], [2], []]
    for compression in ("", "GZIP", "SNAPPY"):
        d = tf.raw_ops.TensorSliceDataset(components=[
            STRINGS, np.arange(6, dtype=np.float32).reshape(3, 2), np.array([True, False, True])], output_shapes=shapes)
        walk(c, tf.raw_ops.SnapshotDataset(input_dataset=d, path=p, compression=compression, output_types=types,
                                           output_shapes=shapes), {p: "$TMP/s"}, times=2, types=types, shapes=shapes)


@case
def first_snapshot_modes(c):
    p = tf.placeholder(tf.string, [])
    for mode in ("passthrough", "read", "write", "read", "auto", "append"):
        walk(c, first_version(p, mode=mode, snapshot_name="m"), {p: "$TMP/s"})
    walk(c, first_version(p, stop=0, snapshot_name="empty"), {p: "$TMP/s"}, times=2)
    walk(c, first_version(p, compression="ZLIB"), {p: "$TMP/s"})
    walk(c, first_version(p, pending_snapshot_expiry_seconds=0), {p: "$TMP/s"})


@case
def first_snapshot_in_part(c):
    """A walk that did not come to its end leaves a snapshot that others pass by."""
    p = tf.placeholder(tf.string, [])
    make, element, _ = walk(c, first_version(p), {p: "$TMP/s"}, repeat=2)
    for _ in range(2):
        c.run(target=[make], feed={p: "$TMP/s"})
        c.run(fetch=element, repeat=20)


@case
def saved_first_snapshot(c):
    """While it is written; while it is read, stock begins again."""
    saved(c, first_version, 0)


@case
def shards_bad(c):
    p = tf.placeholder(tf.string, [])
    for version in (1, 2):
        walk(c, tf.raw_ops.SnapshotDatasetReader(shard_dir=p, start_index=0, version=version, **INT), {p: "$TMP/none"})
    walk(c, tf.raw_ops.SnapshotDatasetReader(shard_dir=p, start_index=0, version=3, **INT), {p: "$TMP/none"})


@case
def chunks_of_snapshots(c):
    p = tf.placeholder(tf.string, [])
    names = ["chunk_0_0_3", "chunk_1_0_2", "chunk_0_1_3", "chunk_10_0_1", "chunk_0_10_1", "chunk_2_3_-1", "junk"]
    files = [tf.raw_ops.WriteFile(filename=tf.strings.join([p, "/chunks/" + n]), contents="") for n in names]
    c.run(target=files, feed={p: "$TMP/s"})
    end = tf.raw_ops.WriteFile(filename=tf.strings.join([p, "/DONE"]), contents="")
    c.run(target=[end], feed={p: "$TMP/s"})
    c.run(target=[end], feed={p: "$TMP/empty"})
    chunks = tf.raw_ops.ListSnapshotChunksDataset(snapshot_path=p, output_types=[tf.string], output_shapes=[[]])
    length = tf.raw_ops.MapDataset(
        input_dataset=chunks, other_arguments=[], f=base_name, output_types=[tf.string], output_shapes=[[]])
    for folder in ("s", "empty"):
        walk(c, length, {p: "$TMP/" + folder}, types=(tf.string,))
    walk(c, chunks, {p: ""}, types=(tf.string,))
    for compression in ("", "GZIP", "SNAPPY"):
        kept = "kept_" + (compression or "NONE")
        run, = [n for n in os.listdir(os.path.join(FILES, kept)) if "." not in n]
        walk(c, tf.raw_ops.SnapshotChunkDataset(chunk_file=p, compression=compression, **INT),
             {p: "$DIR/%s/%s/00000001.shard/00000000.snapshot" % (kept, run)}, repeat=30)


@defun(tf.string)
def base_name(path):
    return tf.strings.regex_replace(path, ".*/", "")
