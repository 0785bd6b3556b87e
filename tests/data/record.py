#!/usr/bin/env python3
"""Records what stock TensorFlow's input pipelines give.

  record.py [--only NAME]        writes cases.jsonl (or, with --only, prints these cases)

A case is one line: {"name", "graph" (a GraphDef, base64), "steps"}. A step is one Run:
{"feed": {tensor: value}, "fetch": [tensor], "target": [op]} and what came of it: "expect", a list
of values, or "error", a code and the beginning of the message. "again" repeats a step that gives
the same kind of answer: a list of expects, then perhaps an error. "any_order" says that elements
come in any order (they are compared as a set over all repetitions). $DIR in a fed string is the folder
of the files beside this script. "beyond" says that stock fails where the library may succeed.
Values are as in tests/ops.
"""
import argparse
import base64
import gzip
import json
import os
import re
import struct
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np  # noqa: E402
import tensorflow as tf2  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "tools"))
import record_cases  # noqa: E402

from tensorflow.python.framework import error_interpolation  # noqa: E402

tf.disable_eager_execution()
error_interpolation.interpolate_graph = lambda message, graph: message
FILES = os.path.join(here, "files")
CASES = []


def case(fn):
    CASES.append(fn)
    return fn


def value(a):
    a = np.asarray(a)
    if a.dtype.kind in "OSU":
        flat = [v if isinstance(v, bytes) else str(v).encode() for v in a.ravel()]
        out = {"dtype": "string", "shape": list(a.shape), "values": []}
        for v in flat:
            try:
                out["values"].append(v.decode())
            except UnicodeDecodeError:
                out["values"].append({"b64": base64.b64encode(v).decode()})
        return out
    names = {"float32": "float", "float64": "double", "float16": "half"}
    return {"dtype": names.get(a.dtype.name, a.dtype.name), "shape": list(a.shape),
            "values": [record_cases.value_out(x) for x in a.ravel()]}


class Case:
    """A graph under construction and the steps that are run on it."""

    def __init__(self, name):
        self.name, self.steps, self.session = name, [], None

    def run(self, fetch=(), target=(), feed=None, repeat=1, any_order=False, beyond=False):
        """One Run, or as many as come before an error (at most |repeat|)."""
        if self.session is None:
            self.session = tf.Session(graph=tf.get_default_graph(), config=tf.ConfigProto(
                inter_op_parallelism_threads=2, intra_op_parallelism_threads=2))
        step = {}
        if fetch:
            step["fetch"] = [t.name for t in fetch]
        if target:
            step["target"] = [t.name for t in target]
        if feed:
            step["feed"] = {t.name: value(v) for t, v in feed.items()}
        real = {t: np.vectorize(lambda s: s.replace("$DIR", FILES))(np.asarray(v))
                if np.asarray(v).dtype.kind == "U" else v for t, v in (feed or {}).items()}
        if any_order:
            step["any_order"] = True
        if beyond:
            step["beyond"] = True
        answers = []
        for _ in range(repeat):
            try:
                got = self.session.run([list(fetch), list(target)], real)
                answers.append({"expect": [value(v) for v in got[0]]})
            except tf.errors.OpError as e:
                message = re.sub(r"^Error in user-defined function .*? with iterator: \S+: ", "",
                                 e.message)
                message = message.split("\n")[0].split(" [[")[0].split("' failed with")[0]
                message = message.replace(FILES, "$DIR")
                answers.append({"error": {"code": tf.errors.error_code_from_exception_type(type(e)),
                                          "message": message}})
                break
        step["again"] = answers
        self.steps.append(step)
        if answers and "error" in answers[-1]:
            return None
        return got[0]

    def all(self, dataset, repeat=40, init=None, any_order=False):
        """Every element of |dataset| through an iterator that is initialised."""
        iterator = tf.data.make_initializable_iterator(dataset)
        element = tf.nest.flatten(iterator.get_next())
        self.run(target=[iterator.initializer])
        self.run(fetch=element, repeat=repeat, any_order=any_order)

    def line(self):
        graph = tf.get_default_graph().as_graph_def()
        for node in graph.node:
            for key in ("_output_shapes", "metadata"):
                if key in node.attr:
                    del node.attr[key]
        for f in graph.library.function:
            for node in f.node_def:
                for key in ("_output_shapes", "metadata"):
                    if key in node.attr:
                        del node.attr[key]
            for key in ("_construction_context",):
                if key in f.attr:
                    del f.attr[key]
        raw = base64.b64encode(graph.SerializeToString()).decode()
        return json.dumps({"name": self.name, "graph": raw, "steps": self.steps})


D = tf.data.Dataset


def raw(c, dataset, types, shapes, repeat=40):
    """Every element of the variant |dataset|, without stock's rewriting."""
    dataset = as_written(dataset, types, shapes)
    it = tf.raw_ops.IteratorV2(shared_name="", container="", output_types=types,
                               output_shapes=shapes)
    make = tf.raw_ops.MakeIterator(dataset=dataset, iterator=it)
    c.run(target=[make])
    c.run(fetch=tf.raw_ops.IteratorGetNext(iterator=it, output_types=types, output_shapes=shapes),
          repeat=repeat)


def no_rewriting():
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    return options


def as_written(dataset, types, shapes):
    return tf.raw_ops.OptionsDataset(
        input_dataset=dataset, serialized_options=no_rewriting()._to_proto().SerializeToString(),
        output_types=types, output_shapes=shapes)


def plain(dataset):
    """|dataset| as it is written, without stock's rewriting."""
    return dataset.with_options(no_rewriting())


# Sources.
@case
def range_all(c):
    c.all(D.range(5))
    c.all(D.range(10, 3, -3))
    c.all(D.range(3, 3))


@case
def range_float(c):
    c.all(D.range(0, 4, 1, output_type=tf.float32))


@case
def range_zero_step(c):
    step = tf.placeholder(tf.int64, [])
    it = tf.data.make_initializable_iterator(D.range(0, 4, step))
    c.run(target=[it.initializer], feed={step: np.int64(0)})


@case
def tensors(c):
    c.all(D.from_tensors((np.float32([1, 2]), np.array([b"a", b"b"]))))


@case
def slices(c):
    c.all(D.from_tensor_slices((np.arange(6, dtype=np.int32).reshape(3, 2),
                                np.array([b"x", b"long enough to be on the heap", b""]))))


@case
def slices_large(c):
    c.all(D.from_tensor_slices(np.arange(2048 * 2, dtype=np.float32).reshape(2, 2048)).map(
        lambda x: tf.reduce_sum(x)))


@case
def sparse_slices(c):
    d = tf.raw_ops.SparseTensorSliceDataset(
        indices=np.int64([[0, 1], [0, 3], [2, 0]]), values=np.float32([1, 2, 3]),
        dense_shape=np.int64([4, 5]))
    raw(c, d, [tf.int64, tf.float32, tf.int64], [[None, 1], [None], [1]])


@case
def random_seeded(c):
    c.all(tf.data.experimental.RandomDataset(seed=7).take(6))


# Simple transformations.
@case
def take_skip_repeat(c):
    c.all(D.range(5).take(2))
    c.all(D.range(5).take(-1))
    c.all(D.range(5).skip(3))
    c.all(D.range(5).skip(-1))
    c.all(D.range(3).repeat(2))
    c.all(D.range(3).repeat().take(7))
    c.all(D.range(0).repeat())
    c.all(D.range(3).repeat(0))


@case
def shard(c):
    c.all(D.range(10).shard(3, 1))


@case
def concatenate_zip(c):
    c.all(D.range(3).concatenate(D.range(10, 12)))
    c.all(D.zip((D.range(3), D.range(10, 20).batch(2))))


@case
def choose(c):
    c.all(tf.data.experimental.choose_from_datasets(
        [D.range(3), D.range(10, 13)], D.from_tensor_slices(np.int64([0, 1, 1, 0, 1, 1, 0, 0]))))


@case
def cardinality(c):
    cases = [D.range(5), D.range(5).repeat(), D.range(5).repeat(3), D.range(7).batch(2),
             D.range(7).batch(2, drop_remainder=True), D.range(7).filter(lambda x: x > 3),
             D.range(7).take(3), D.range(7).skip(3), D.range(7).shard(3, 0),
             D.zip((D.range(3), D.range(2))), D.range(3).concatenate(D.range(4)),
             D.range(5).map(lambda x: x), D.range(7).window(3, 2), D.range(5).shuffle(3),
             D.range(5).prefetch(2), D.range(5).cache(), D.range(9, 0, -2)]
    c.run(fetch=[tf.data.experimental.cardinality(d) for d in cases])


@case
def assert_cardinality(c):
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(3)))
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(5)))
    c.all(D.range(3).apply(tf.data.experimental.assert_cardinality(2)))


@case
def unique(c):
    c.all(D.from_tensor_slices(np.int64([3, 1, 3, 2, 1])).apply(tf.data.experimental.unique()))
    c.all(D.from_tensor_slices(np.array([b"a", b"b", b"a"])).apply(tf.data.experimental.unique()))


# Functions.
@case
def map_captures(c):
    t = tf.constant(np.int64(100))
    c.all(D.range(4).map(lambda x: (x + t, x * x)))


@case
def map_error(c):
    c.all(D.range(4).map(lambda x: tf.debugging.check_numerics(
        1.0 / tf.cast(x, tf.float32) if False else tf.math.log(tf.cast(x, tf.float32) - 1.0),
        "bad value")))


@case
def map_errors_ignored(c):
    d = D.from_tensor_slices(np.float32([1, 0, 4, 0, 5])).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "bad"))
    c.all(d.apply(tf.data.experimental.ignore_errors()))


@case
def map_parallel(c):
    c.all(D.range(20).map(lambda x: x * 3, num_parallel_calls=4))
    c.all(D.range(6).map(lambda x: x * 3, num_parallel_calls=tf.data.experimental.AUTOTUNE))


@case
def map_parallel_error(c):
    c.all(D.from_tensor_slices(np.float32([1, 0, 4, 5])).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "bad"), num_parallel_calls=3))


@case
def map_parallel_any_order(c):
    options = tf.data.Options()
    options.deterministic = False
    c.all(D.range(30).map(lambda x: x * 3, num_parallel_calls=4, deterministic=False)
          .with_options(options), any_order=True)


@case
def map_variable(c):
    v = tf.get_variable("v", initializer=np.int64(5), use_resource=True)
    it = tf.data.make_initializable_iterator(plain(D.range(3).map(lambda x: x + v)))
    e = it.get_next()
    c.run(target=[v.initializer])
    c.run(target=[it.initializer])
    c.run(fetch=[e], repeat=2)
    c.run(target=[v.assign(np.int64(50)).op])
    c.run(fetch=[e], repeat=2)


@case
def filters(c):
    c.all(D.range(10).filter(lambda x: tf.equal(x % 3, 1)))
    c.all(D.range(10).apply(tf.data.experimental.take_while(lambda x: x < 4)))


@case
def scan(c):
    c.all(D.range(6).apply(tf.data.experimental.scan(
        np.int64(10), lambda s, x: (s + x, (s, s * x)))))


@case
def flat_map(c):
    c.all(D.range(4).flat_map(lambda x: D.from_tensors(x).repeat(x)))


@case
def interleave(c):
    c.all(D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=2,
                                   block_length=2))
    c.all(D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=3))


@case
def interleave_parallel(c):
    for cycle, block in ((2, 2), (3, 1), (4, 3)):
        c.all(D.range(1, 7).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=cycle,
                                       block_length=block, num_parallel_calls=2))


# Datasets of all lengths, none among them, over more and fewer places than there are of them.
@case
def interleave_uneven(c):
    for cycle, block, calls in ((1, 1, tf.data.AUTOTUNE), (3, 2, 3), (5, 1, 2), (7, 4, tf.data.AUTOTUNE),
                                (20, 2, 8), (2, 1, 3)):
        c.all(D.range(12).interleave(lambda x: D.from_tensors(x).repeat(x * 5 % 4), cycle_length=cycle,
                                     block_length=block, num_parallel_calls=calls))


@case
def reduce(c):
    c.run(fetch=[D.range(10).reduce(np.int64(0), lambda s, x: s + x)])
    a, b = D.range(4).reduce((np.int64(0), np.float32(1)),
                             lambda s, x: (s[0] + x, s[1] * 2))
    c.run(fetch=[a, b])


@case
def single_element(c):
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(3, 4))])
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(0))])
    c.run(fetch=[tf.data.experimental.get_single_element(D.range(2))])


# Batches.
@case
def batches(c):
    c.all(D.range(7).batch(3))
    c.all(D.range(7).batch(3, drop_remainder=True))
    c.all(D.range(3).batch(100000000))
    c.all(D.from_tensor_slices((np.arange(10, dtype=np.float32).reshape(5, 2),
                                np.array([b"a", b"bb", b"a string that is on the heap", b"", b"e"]))
                               ).batch(2))


@case
def batch_parallel(c):
    c.all(D.range(7).batch(3, num_parallel_calls=2))


@case
def batch_uneven(c):
    c.all(plain(D.range(1, 4).map(lambda x: tf.fill([x], x)).batch(2)))


@case
def batch_zero(c):
    size = tf.placeholder(tf.int64, [])
    it = tf.data.make_initializable_iterator(D.range(7).batch(size))
    c.run(target=[it.initializer], feed={size: np.int64(0)})


@case
def batch_padded(c):
    d = D.range(1, 6).map(lambda x: tf.fill([x], x))
    c.all(d.padded_batch(2, [None]))
    c.all(d.padded_batch(2, [7], padding_values=np.int64(-1)))
    c.all(d.padded_batch(3, [None], drop_remainder=True))
    c.all(d.padded_batch(2, [3]))
    c.all(D.from_tensor_slices(np.array([b"ab", b"c d"])).map(
        lambda s: tf.string_split([s]).values).padded_batch(2, [None], padding_values="pad"))


@case
def map_and_batch(c):
    c.all(D.range(7).apply(tf.data.experimental.map_and_batch(lambda x: x * 2, 3)))


@case
def unbatch(c):
    c.all(D.range(7).batch(3).apply(tf.data.experimental.unbatch()))
    c.all(D.from_tensor_slices((np.array([[b"a", b"b"], [b"c", b"d"]]), np.eye(2)))
          .apply(tf.data.experimental.unbatch()))


@case
def rebatch(c):
    c.all(D.range(10).batch(4).rebatch([3, 2]))
    c.all(D.range(10).batch(4).rebatch(3, drop_remainder=True))


@case
def windows(c):
    for size, shift, stride, drop in ((3, 2, 1, False), (3, 1, 2, True), (2, 4, 1, False),
                                      (3, None, 1, False)):
        c.all(D.range(7).window(size, shift, stride, drop).flat_map(lambda w: w.batch(10)))


@case
def windows_of_two(c):
    c.all(D.zip((D.range(4), D.range(10, 14))).window(2).flat_map(
        lambda a, b: D.zip((a.batch(2), b.batch(2)))))


@case
def group_by_window(c):
    c.all(D.range(10).apply(tf.data.experimental.group_by_window(
        lambda x: x % 3, lambda k, d: d.batch(2), window_size=2)))


@case
def bucket(c):
    c.all(D.range(1, 8).map(lambda x: tf.fill([x], x)).apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])))


# Numbers that make no sense.
@case
def bad_numbers(c):
    n = tf.placeholder(tf.int64, None)
    bad = [(lambda: D.range(7).batch(n), 0), (lambda: D.range(7).shuffle(n, 1), 0),
           (lambda: D.range(7).prefetch(n), -3), (lambda: D.range(7).shard(n, 0), 0),
           (lambda: D.range(7).shard(3, n), 3), (lambda: D.range(7).take(n), [1, 2]),
           (lambda: D.range(7).repeat(n), [1, 2]), (lambda: D.range(7).window(n), 0),
           (lambda: D.range(7).window(1, n), 0), (lambda: D.range(7).window(1, 1, n), 0),
           (lambda: D.range(7).interleave(D.from_tensors, n, 1), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 1, n), 0),
           (lambda: D.range(7).interleave(D.from_tensors, n, 1, num_parallel_calls=2), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 2, n, num_parallel_calls=2), 0),
           (lambda: D.range(7).interleave(D.from_tensors, 2, 1, num_parallel_calls=n), -5),
           (lambda: D.range(7).map(lambda x: x, num_parallel_calls=n), 0),
           (lambda: D.range(7).padded_batch(n, []), 0)]
    for make, number in bad:
        it = tf.data.make_initializable_iterator(plain(make()))
        c.run(target=[it.initializer], feed={n: np.int64(number)})


# Order.
@case
def shuffle(c):
    for size, seed in ((3, 1), (10, 2), (100, 3)):
        c.all(D.range(10).shuffle(size, seed=seed))


@case
def shuffle_epochs(c):
    c.all(D.range(5).shuffle(3, seed=4).repeat(3))
    c.all(D.range(5).shuffle(3, seed=4, reshuffle_each_iteration=False).repeat(3))


@case
def shuffle_again(c):
    it = tf.data.make_initializable_iterator(D.range(6).shuffle(6, seed=9))
    e = it.get_next()
    for _ in range(3):
        c.run(target=[it.initializer])
        c.run(fetch=[e], repeat=9)


@case
def shuffle_graph_seed(c):
    tf.set_random_seed(42)
    c.all(D.range(6).shuffle(6))


@case
def shuffle_and_repeat(c):
    c.all(D.range(5).apply(tf.data.experimental.shuffle_and_repeat(3, count=3, seed=5)))
    c.all(D.range(2).apply(tf.data.experimental.shuffle_and_repeat(10, seed=5)).take(12))


@case
def shuffle_unbounded(c):
    c.all(D.range(20).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=11))


@case
def sample(c):
    c.all(tf.data.experimental.sample_from_datasets(
        [D.range(5), D.range(100, 105)], [0.3, 0.7], seed=3))


@case
def prefetch(c):
    c.all(D.range(10).prefetch(3))
    c.all(D.range(5).prefetch(0))
    c.all(D.range(30).map(lambda x: x + 1).prefetch(4).batch(7).prefetch(1))
    c.all(D.range(6).prefetch(2).repeat(2).prefetch(tf.data.experimental.AUTOTUNE))


@case
def cache(c):
    c.all(D.range(3).cache().repeat(3))
    c.all(D.range(5).shuffle(5, seed=1).cache().repeat(2))


# Files.
def files_case(c, dataset, names):
    it = tf.data.make_initializable_iterator(dataset)
    c.run(target=[it.initializer], feed=names)
    c.run(fetch=tf.nest.flatten(it.get_next()), repeat=40)


@case
def tfrecord(c):
    for compression, name in ((None, "a.tfrecord"), ("GZIP", "a.tfrecord.gz"),
                              ("ZLIB", "a.tfrecord.z")):
        p = tf.placeholder(tf.string, [None])
        files_case(c, tf.data.TFRecordDataset(p, compression), {p: ["$DIR/" + name]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TFRecordDataset(p).batch(4), {p: ["$DIR/a.tfrecord", "$DIR/a.tfrecord"]})


@case
def tfrecord_bad(c):
    p = tf.placeholder(tf.string, [None])
    d = tf.data.TFRecordDataset(p)
    files_case(c, d, {p: ["$DIR/cut.tfrecord"]})
    files_case(c, d, {p: ["$DIR/bad.tfrecord"]})
    files_case(c, d, {p: ["$DIR/not there"]})


@case
def tfrecord_parallel(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, D.from_tensor_slices(p).interleave(
        tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2),
        {p: ["$DIR/a.tfrecord", "$DIR/a.tfrecord", "$DIR/a.tfrecord"]})


@case
def text_lines(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TextLineDataset(p), {p: ["$DIR/a.txt", "$DIR/b.txt"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.TextLineDataset(p, "GZIP"), {p: ["$DIR/a.txt.gz"]})


@case
def csv(c):
    none, seven = tf.int32, np.int32([7])
    real, text = np.float32([1.5]), np.array(["d"])
    p = tf.placeholder(tf.string, [None])
    for name, defaults, more in (
            ("a.csv", [seven, real, text], {}),
            ("a.csv", [seven, real, text], dict(header=True)),
            ("a.csv", [seven, text], dict(header=True, select_cols=[0, 2])),
            ("a.csv", [seven, text], dict(header=True, exclude_cols=[1])),
            ("a.csv", [none, real, text], dict(header=True)),
            ("a.csv", [seven, real], dict(header=True)),
            ("a.csv", [seven, real, text, text], dict(header=True)),
            ("b.csv", [seven, text], dict(field_delim=";", na_value="NA")),
            ("b.csv", [seven, text], dict(field_delim=";", na_value="NA",
                                          use_quote_delim=False))):
        d = tf2.data.experimental.CsvDataset(p, defaults, **more)
        files_case(c, plain(d), {p: ["$DIR/" + name]})


@case
def fixed_records(c):
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 4, 2, 3), {p: ["$DIR/fixed.bin"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 4, 2, 3, compression_type="GZIP"),
               {p: ["$DIR/fixed.bin.gz"]})
    p = tf.placeholder(tf.string, [None])
    files_case(c, tf.data.FixedLengthRecordDataset(p, 5, 2, 3), {p: ["$DIR/fixed.bin"]})


# Iterators.
@case
def one_shot(c):
    e = tf.data.make_one_shot_iterator(D.range(3).map(lambda x: x * 2)).get_next()
    c.run(fetch=[e], repeat=5)


@case
def reinitializable(c):
    it = tf.data.Iterator.from_structure(tf.int64, [])
    a, b = it.make_initializer(D.range(3)), it.make_initializer(D.range(10, 20))
    e = it.get_next()
    c.run(fetch=[e])
    c.run(target=[a])
    c.run(fetch=[e], repeat=2)
    c.run(target=[b])
    c.run(fetch=[e], repeat=3)
    c.run(target=[a])
    c.run(fetch=[e], repeat=5)


@case
def wrong_elements(c):
    it = tf.data.Iterator.from_structure(tf.int64, [None])
    d = D.range(3).batch(2).map(lambda x: tf.cast(x, tf.int32))
    from tensorflow.python.ops import gen_dataset_ops
    c.run(target=[gen_dataset_ops.make_iterator(d._variant_tensor, it._iterator_resource)])
    d = D.range(3)
    c.run(target=[gen_dataset_ops.make_iterator(d._variant_tensor, it._iterator_resource)])


@case
def feedable(c):
    a = tf.data.make_initializable_iterator(D.range(3))
    b = tf.data.make_one_shot_iterator(D.range(100, 110))
    c.run(target=[a.initializer])
    # The texts of handles are the library's own: they are fetched and fed in one step.
    got = tf.data.Iterator.from_string_handle(a.string_handle(), tf.int64, []).get_next()
    c.run(fetch=[got], repeat=2)
    got = tf.data.Iterator.from_string_handle(b.string_handle(), tf.int64, []).get_next()
    c.run(fetch=[got], repeat=2)
    h = tf.raw_ops.IteratorFromStringHandle(string_handle=a.string_handle(),
                                            output_types=[tf.int32], output_shapes=[[]])
    c.run(fetch=tf.raw_ops.IteratorGetNext(iterator=h, output_types=[tf.int32],
                                           output_shapes=[[]]))


@case
def optional_next(c):
    it = tf.data.make_initializable_iterator(D.range(2).map(lambda x: (x, tf.as_string(x))))
    o = tf.data.experimental.get_next_as_optional(it)
    c.run(target=[it.initializer])
    c.run(fetch=[o.has_value()])
    c.run(fetch=list(o.get_value()))
    c.run(fetch=[o.has_value()])


@case
def optionals(c):
    o = tf.experimental.Optional.from_value((np.float32([1, 2]), "s"))
    n = tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32))
    c.run(fetch=[o.has_value(), n.has_value()] + list(o.get_value()))
    c.run(fetch=[n.get_value()])


@case
def nested(c):
    inner = D.range(3).map(lambda x: x + 1)
    c.all(D.range(3).flat_map(lambda x: inner.map(lambda y: x * 10 + y)))


@case
def long_pipeline(c):
    d = D.range(50).filter(lambda x: tf.equal(x % 2, 0)).map(lambda x: x * x, num_parallel_calls=3)
    d = d.shuffle(7, seed=2).batch(4).map(lambda x: tf.reduce_sum(x)).prefetch(2).repeat(2)
    c.all(d)


@case
def filter_parallel_fails(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=6, step=1, **INTS)

    @defun(tf.int64)
    def divides(x):
        return tf.equal(12 % (x - 3), 0)

    @defun(tf.int64)
    def vector(x):
        return tf.fill([2], True)

    for predicate in (divides, vector):
        ints(c, tf.raw_ops.ParallelFilterDataset(input_dataset=r, other_arguments=[], predicate=predicate,
                                                 num_parallel_calls=2, **INTS), repeat=9)


# Ops of older graphs, and ops that Python adds elsewhere.
def defun(*types):
    from tensorflow.python.framework import function
    return function.Defun(*types)


INTS = dict(output_types=[tf.int64], output_shapes=[[]])
VECTORS = dict(output_types=[tf.int64], output_shapes=[[None]])


def ints(c, dataset, repeat=40):
    raw(c, dataset, [tf.int64], [[]], repeat)


@case
def old_batches(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)
    raw(c, tf.raw_ops.BatchDataset(input_dataset=r, batch_size=3, **VECTORS), [tf.int64], [[None]])
    raw(c, tf.raw_ops.PaddedBatchDataset(
        input_dataset=tf.raw_ops.BatchDataset(input_dataset=r, batch_size=3, **VECTORS),
        batch_size=2, padded_shapes=[np.int64([4])], padding_values=[np.int64(9)],
        output_shapes=[[None, 4]]), [tf.int64], [[None, 4]])


@case
def old_maps(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)

    @defun(tf.int64, tf.int64)
    def add(x, y):
        return x + y

    @defun(tf.int64)
    def odd(x):
        return tf.equal(x % 2, 1)

    @defun(tf.int64)
    def row(x):
        return tf.raw_ops.RepeatDataset(input_dataset=tf.raw_ops.TensorDataset(
            components=[x], output_shapes=[[]]), count=x, **INTS)

    ints(c, tf.raw_ops.ParallelMapDataset(input_dataset=r, other_arguments=[np.int64(5)],
                                          num_parallel_calls=2, f=add, **INTS))
    ints(c, tf.raw_ops.MapDataset(input_dataset=r, other_arguments=[np.int64(5)], f=add, **INTS))
    ints(c, tf.raw_ops.ParallelFilterDataset(input_dataset=r, other_arguments=[], predicate=odd,
                                             num_parallel_calls=2, **INTS))
    # The variant of a dataset cannot be returned by all functions of old; those that can are here.
    for op, more in ((tf.raw_ops.ParallelInterleaveDatasetV2, dict(num_parallel_calls=2)),
                     (tf.raw_ops.ParallelInterleaveDatasetV3, dict(num_parallel_calls=2)),
                     (tf.raw_ops.LegacyParallelInterleaveDatasetV2,
                      dict(buffer_output_elements=1, prefetch_input_elements=0,
                           deterministic="true"))):
        ints(c, op(input_dataset=r, other_arguments=[], cycle_length=2, block_length=1, f=row,
                   **more, **INTS))


@case
def old_records(c):
    p = tf.placeholder(tf.string, [None])
    d = tf.raw_ops.FixedLengthRecordDataset(filenames=p, header_bytes=2, record_bytes=4,
                                            footer_bytes=3, buffer_size=0)
    it = tf.raw_ops.IteratorV2(shared_name="", container="", output_types=[tf.string],
                               output_shapes=[[]])
    d = as_written(d, [tf.string], [[]])
    c.run(target=[tf.raw_ops.MakeIterator(dataset=d, iterator=it)], feed={p: ["$DIR/fixed.bin"]})
    c.run(fetch=tf.raw_ops.IteratorGetNextSync(iterator=it, output_types=[tf.string],
                                               output_shapes=[[]]), repeat=9)
    d = tf.raw_ops.TFRecordDatasetV2(filenames=p, compression_type="", buffer_size=0,
                                     byte_offsets=np.int64([21]))
    it = tf.raw_ops.Iterator(shared_name="", container="", output_types=[tf.string],
                             output_shapes=[[]])
    d = as_written(d, [tf.string], [[]])
    c.run(target=[tf.raw_ops.MakeIterator(dataset=d, iterator=it)], feed={p: ["$DIR/a.tfrecord"]})
    c.run(fetch=tf.raw_ops.IteratorGetNext(iterator=it, output_types=[tf.string],
                                           output_shapes=[[]]), repeat=9)


@case
def shared_seeds(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=7, step=1, **INTS)
    for changes in (True, False):
        h, d = tf.raw_ops.AnonymousSeedGenerator(seed=3, seed2=4, reshuffle=changes)
        s2 = tf.raw_ops.ShuffleDatasetV2(input_dataset=r, buffer_size=4, seed_generator=h, **INTS)
        s3 = tf.raw_ops.ShuffleDatasetV3(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                         seed_generator=h, **INTS)
        s4 = tf.raw_ops.ShuffleAndRepeatDatasetV2(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                                  count=2, seed_generator=h, **INTS)
        both = tf.raw_ops.ConcatenateDataset(input_dataset=s2, another_dataset=s3, **INTS)
        both = tf.raw_ops.ConcatenateDataset(input_dataset=both, another_dataset=s4, **INTS)
        with tf.control_dependencies([both]):
            end = tf.raw_ops.DeleteSeedGenerator(handle=h, deleter=d)
        ints(c, tf.raw_ops.RepeatDataset(input_dataset=both, count=2, **INTS), repeat=60)
        del end
    s3 = tf.raw_ops.ShuffleDatasetV3(input_dataset=r, buffer_size=4, seed=3, seed2=4,
                                     seed_generator=tf.raw_ops.DummySeedGenerator(), **INTS)
    ints(c, tf.raw_ops.RepeatDataset(input_dataset=s3, count=3, **INTS))


@case
def caches(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    for handle in (tf.raw_ops.DummyMemoryCache(), tf.raw_ops.AnonymousMemoryCache()[0]):
        d = tf.raw_ops.CacheDatasetV2(input_dataset=r, filename="", cache=handle, **INTS)
        ints(c, tf.raw_ops.RepeatDataset(input_dataset=d, count=2, **INTS))
    d = tf.raw_ops.CacheDataset(input_dataset=r, filename="", **INTS)
    ints(c, tf.raw_ops.RepeatDataset(input_dataset=d, count=2, **INTS))


@case
def deleted(c):
    h, d = tf.raw_ops.AnonymousMemoryCache()
    c.run(target=[tf.raw_ops.DeleteMemoryCache(handle=h, deleter=d)], beyond=True)
    h, d = tf.raw_ops.AnonymousRandomSeedGenerator(seed=1, seed2=2)
    c.run(target=[tf.raw_ops.DeleteRandomSeedGenerator(handle=h, deleter=d)], beyond=True)


@case
def nameless(c):
    r = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    one = tf.raw_ops.AnonymousIterator(**INTS)
    two = tf.raw_ops.AnonymousIteratorV2(**INTS)
    three = tf.raw_ops.AnonymousIteratorV3(**INTS)
    for h in (one, two.handle, three):
        with tf.control_dependencies([tf.raw_ops.MakeIterator(dataset=r, iterator=h)]):
            a = tf.raw_ops.IteratorGetNext(iterator=h, **INTS)[0]
        with tf.control_dependencies([a]):
            b = tf.raw_ops.IteratorGetNext(iterator=h, **INTS)[0]
        fetch = [a, b]
        if h is two.handle:
            with tf.control_dependencies([b]):
                end = tf.raw_ops.DeleteIterator(handle=h, deleter=two.deleter)
            c.run(fetch=fetch, target=[end])
        c.run(fetch=fetch, repeat=2)


@case
def multi_device(c):
    def make(h, count):
        return tf.raw_ops.MultiDeviceIteratorInit(
            dataset=as_written(tf.raw_ops.RangeDataset(start=0, stop=count, step=1, **INTS),
                               [tf.int64], [[]]), multi_device_iterator=h, max_buffer_size=3)

    devices = ["/cpu:0", "/cpu:1"]
    h = tf.raw_ops.MultiDeviceIterator(devices=devices, shared_name="m", container="", **INTS)
    shard = tf.placeholder(tf.int32, [])
    incarnation = tf.placeholder(tf.int64, [])
    e = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
        multi_device_iterator=h, shard_num=shard, incarnation_id=incarnation, **INTS)
    text = tf.raw_ops.MultiDeviceIteratorToStringHandle(multi_device_iterator=h)
    e2 = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
        multi_device_iterator=tf.raw_ops.MultiDeviceIteratorFromStringHandle(
            string_handle=text, **INTS), shard_num=shard, incarnation_id=incarnation, **INTS)
    start = make(h, 9)
    c.run(fetch=[start])
    for n, fetch in ((0, e), (1, e), (1, e2), (1, e), (0, e2), (0, e), (0, e), (0, e), (0, e),
                     (1, e), (1, e), (1, e)):
        c.run(fetch=fetch, feed={shard: np.int32(n), incarnation: np.int64(1)})
    c.run(fetch=e, feed={shard: np.int32(0), incarnation: np.int64(7)})
    c.run(fetch=[start])
    c.run(fetch=e, feed={shard: np.int32(0), incarnation: np.int64(2)})
    for h in (tf.raw_ops.AnonymousMultiDeviceIterator(devices=devices, **INTS).handle,
              tf.raw_ops.AnonymousMultiDeviceIteratorV3(devices=devices, **INTS)):
        a = tf.raw_ops.MultiDeviceIteratorGetNextFromShard(
            multi_device_iterator=h, shard_num=0, incarnation_id=make(h, 4), **INTS)
        c.run(fetch=a, repeat=2)
    h, d = tf.raw_ops.AnonymousMultiDeviceIterator(devices=devices, **INTS)
    c.run(target=[tf.raw_ops.DeleteMultiDeviceIterator(multi_device_iterator=h, iterators=[],
                                                       deleter=d)], beyond=True)


@case
def unchanged(c):
    d = tf.raw_ops.RangeDataset(start=0, stop=3, step=1, **INTS)
    d = tf.raw_ops.OptionsDataset(input_dataset=d, serialized_options="", **INTS)
    d = tf.raw_ops.ModelDataset(input_dataset=d, **INTS)
    d = tf.raw_ops.OptimizeDataset(input_dataset=d, optimizations=[], **INTS)
    d = tf.raw_ops.OptimizeDatasetV2(input_dataset=d, optimizations_enabled=[],
                                     optimizations_disabled=[], optimizations_default=[], **INTS)
    d = tf.raw_ops.FinalizeDataset(input_dataset=d, **INTS)
    d = tf.raw_ops.UnwrapDatasetVariant(input_handle=tf.raw_ops.WrapDatasetVariant(input_handle=d))
    c.run(fetch=[tf.raw_ops.DatasetCardinality(input_dataset=d)])
    c.run(fetch=[tf.raw_ops.GetOptions(input_dataset=d)])
    ints(c, d)


@case
def generator(c):
    v = tf.get_variable("v", initializer=np.int64(0), use_resource=True)

    @defun()
    def init():
        return tf.constant(np.int64(10))

    @defun(tf.int64, tf.resource)
    def following(state, handle):
        n = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
        with tf.control_dependencies([n]):
            step = tf.raw_ops.AssignAddVariableOp(resource=handle, value=np.int64(1))
        with tf.control_dependencies([step]):
            return state + n

    @defun(tf.int64)
    def last(state):
        return state

    d = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[], next_func_other_args=[v.handle], finalize_func_other_args=[],
        init_func=init, next_func=following, finalize_func=last, **INTS)
    c.run(target=[v.initializer])
    ints(c, tf.raw_ops.TakeDataset(input_dataset=d, count=4, **INTS))


@case
def generator_of_queue(c):
    """It ends when the queue that it takes from is closed."""
    queue = tf.FIFOQueue(9, [tf.int64], [[]], name="q")

    @defun()
    def init():
        return tf.constant(np.int64(0))

    @defun(tf.int64, tf.resource)
    def following(state, handle):
        return state + tf.raw_ops.QueueDequeueV2(handle=handle, component_types=[tf.int64])[0]

    @defun(tf.int64)
    def last(state):
        return state

    d = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[], next_func_other_args=[queue.queue_ref],
        finalize_func_other_args=[], init_func=init, next_func=following, finalize_func=last, **INTS)
    c.run(target=[queue.enqueue_many([np.int64([4, 5, 6])])])
    c.run(target=[queue.close()])
    ints(c, d)


# Iterators whose state is saved, and who go on from there. The state is the library's own.
SAVED = {
    "range": lambda: D.range(8),
    "map": lambda: D.range(8).map(lambda x: x * x),
    "parallel_map": lambda: D.range(12).map(lambda x: x * x, num_parallel_calls=3),
    "batch": lambda: D.range(14).batch(2),
    "padded": lambda: D.range(1, 9).map(lambda x: tf.fill([x], x)).padded_batch(2, [None]),
    "shuffle": lambda: D.range(12).shuffle(5, seed=3),
    "shuffle_repeat": lambda: D.range(5).shuffle(3, seed=3).repeat(3),
    "repeat": lambda: D.range(3).repeat(4),
    "prefetch": lambda: D.range(9).prefetch(3),
    "interleave": lambda: D.range(1, 6).interleave(lambda x: D.from_tensors(x).repeat(x), 2, 2),
    "interleave_parallel": lambda: D.range(1, 6).interleave(
        lambda x: D.from_tensors(x).repeat(x), 3, 2, num_parallel_calls=2),
    "flat_map": lambda: D.range(5).flat_map(lambda x: D.range(x)),
    "zip": lambda: D.zip((D.range(9), D.range(20, 30).take(8))),
    "concatenate": lambda: D.range(3).concatenate(D.range(10, 15)),
    "filter": lambda: D.range(20).filter(lambda x: tf.equal(x % 2, 0)),
    "scan": lambda: D.range(9).apply(tf.data.experimental.scan(
        np.int64(1), lambda s, x: (s + x, s))),
    "cache": lambda: D.range(3).cache().repeat(3),
    "window": lambda: D.range(14).window(3, 2).flat_map(lambda w: w.batch(3)),
    "unbatch": lambda: D.range(9).batch(4).apply(tf.data.experimental.unbatch()),
    "skip_take": lambda: D.range(20).skip(2).take(9).shard(2, 0),
    "slices": lambda: D.from_tensor_slices(np.array([b"a", b"b", b"c", b"d", b"e", b"f"])),
    "unique": lambda: D.from_tensor_slices(np.int64([1, 2, 1, 3, 4, 2, 5, 6])).apply(
        tf.data.experimental.unique()),
    "take_while": lambda: D.range(9).apply(tf.data.experimental.take_while(lambda x: x < 7)),
    "random": lambda: tf.data.experimental.RandomDataset(seed=7).take(8),
    "pipeline": lambda: D.range(40).map(lambda x: x + 1, num_parallel_calls=2).shuffle(6, seed=8)
                         .batch(3).prefetch(2),
}


def saved_case(name, make):
    def record(c):
        from tensorflow.python.ops import gen_dataset_ops as ops
        it = tf.data.make_initializable_iterator(make())
        e = tf.nest.flatten(it.get_next())
        handle = it._iterator_resource
        state = ops.serialize_iterator(handle)
        queue = tf.FIFOQueue(2, [tf.variant], name="states")
        put, got = queue.enqueue(state), queue.dequeue()
        restore = ops.deserialize_iterator(handle, got)
        c.run(target=[it.initializer])
        c.run(fetch=e, repeat=3)
        c.run(target=[put])
        c.run(fetch=e, repeat=20)
        c.run(target=[it.initializer])
        c.run(fetch=e, repeat=1)
        c.run(target=[restore])
        c.run(fetch=e, repeat=20)
    record.__name__ = "saved_" + name
    case(record)


for _name, _make in SAVED.items():
    saved_case(_name, _make)


def write_files():
    """The files that cases read; the same bytes each time."""
    records = [b"first", b"", b"third record", bytes(range(256)), b"last" * 20]

    def masked(data):
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff

    out = b""
    for r in records:
        head = struct.pack("<Q", len(r))
        out += head + struct.pack("<I", masked(head)) + r + struct.pack("<I", masked(r))
    bad = bytearray(out)
    bad[16 + 5 + 16 + 14] ^= 1
    lines = b"one\ntwo\r\n\nfour\rfive\nno newline"
    fixed = b"hd" + b"".join(b"r%03d" % i for i in range(4)) + b"foo"
    files = {"a.tfrecord": out, "a.tfrecord.gz": gzip.compress(out, 9, mtime=0),
             "a.tfrecord.z": zlib.compress(out, 9), "cut.tfrecord": out[:60],
             "bad.tfrecord": bytes(bad), "a.txt": lines, "b.txt": b"other\n",
             "a.csv": b'n,x,t\n1,2.5,a\r\n,,"b ""q"",\n c"\n3,-1e3,\n4,5,last',
             "b.csv": b'1;x"y\nNA;"quoted"\n"3";NA\n',
             "a.txt.gz": gzip.compress(lines, 9, mtime=0), "fixed.bin": fixed,
             "fixed.bin.gz": gzip.compress(fixed, 9, mtime=0)}
    os.makedirs(FILES, exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(FILES, name), "wb") as f:
            f.write(data)


def crc32c(data):
    crc = 0xffffffff
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def list_ops(lines):
    """The ops that the cases have, for tests/ops/elsewhere.txt."""
    from tensorflow.core.framework import graph_pb2
    ops = set()
    for line in lines:
        graph = graph_pb2.GraphDef.FromString(base64.b64decode(json.loads(line)["graph"]))
        for nodes in [graph.node] + [f.node_def for f in graph.library.function]:
            ops.update(n.op for n in nodes)
    return sorted(o for o in ops if re.search("Dataset|Iterator|Option|Seed|Cache", o))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    args = parser.parse_args()
    write_files()
    lines = []
    for fn in CASES:
        if args.only and args.only not in fn.__name__:
            continue
        with tf.Graph().as_default():
            c = Case(fn.__name__)
            try:
                fn(c)
                lines.append(c.line())
            except Exception as e:  # a case that stock cannot even build is a mistake of the case
                print("FAILED %s: %s: %s" % (fn.__name__, type(e).__name__, str(e)[:300]), file=sys.stderr)
            if c.session:
                c.session.close()
    if args.only:
        print("\n".join(lines))
    else:
        with open(os.path.join(here, "cases.jsonl"), "w") as f:
            f.write("\n".join(lines) + "\n")
        with open(os.path.join(here, "..", "ops", "elsewhere.txt")) as f:
            others = [l for l in f.read().splitlines() if not l.endswith(" tests/data")]
        with open(os.path.join(here, "..", "ops", "elsewhere.txt"), "w") as f:
            f.write("\n".join(sorted(others + [o + " tests/data" for o in list_ops(lines)])) + "\n")
        print("%d cases" % len(lines))


if __name__ == "__main__":
    main()
