"""The recorder: builds cases as graphs, runs steps on them, and writes them to a file.

A case is one line: {"name", "graph" (a GraphDef, base64), "steps"}. A step is one Run:
{"feed": {tensor: value}, "fetch": [tensor], "target": [op]} and its result: "expect", a list of
values, or "error", a code and the beginning of the message. "again" repeats a step: it has a list of
expects, optionally followed by an error. "any_order" means that elements may come in any order (they
are compared as a set over all repetitions). In fed strings, $DIR is the folder of the files next to
this script, and $TMP a folder that is empty when the case begins. "beyond" means that stock fails but
the library may succeed. Values are as in tests/ops.
"""
import argparse
import base64
import gzip
import json
import os
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np  # noqa: E402
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
    a = np.asarray(a, object if isinstance(a, bytes) else None)  # an array of bytes loses zeros at their end
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
        self.folder = tempfile.mkdtemp()

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
        real = {t: np.vectorize(lambda s: s.replace("$DIR", FILES).replace("$TMP", self.folder))(np.asarray(v))
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
                message = message.replace(FILES, "$DIR").replace(self.folder, "$TMP")
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


def defun(*types):
    from tensorflow.python.framework import function
    return function.Defun(*types)


INTS = dict(output_types=[tf.int64], output_shapes=[[]])
VECTORS = dict(output_types=[tf.int64], output_shapes=[[None]])


def ints(c, dataset, repeat=40):
    raw(c, dataset, [tf.int64], [[]], repeat)


def files_case(c, dataset, names):
    it = tf.data.make_initializable_iterator(dataset)
    c.run(target=[it.initializer], feed=names)
    c.run(fetch=tf.nest.flatten(it.get_next()), repeat=40)


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
    # Other versions of SQLite write other bytes, so an existing file stays.
    path = os.path.join(FILES, "a.sqlite")
    if os.path.exists(path):
        return
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (id INTEGER, name TEXT, a INTEGER, b INTEGER, x REAL, flag INTEGER)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)",
                       [(1, "Ada", 7, 8, 1.5, 1), (2, "", -7, 1 << 40, -2e300, 0), (3, None, 300, 70000, 0, 2),
                        (4, "\u00e4\u00f6", None, -1, None, None)])


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
    return sorted(o for o in ops if re.search("Dataset|Iterator|Option|Seed|Cache|Element|BatchSize|Counter|Stats|ThreadPool|Defun|WindowOp", o))


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
            shutil.rmtree(c.folder)
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
