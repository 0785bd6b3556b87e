"""tf.train.Checkpoint with objects other than variables: mutable tables and dataset iterators."""

import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

HEAD = """
import sys
sys.path[:0] = %r
if sys.argv[1] == "stock":
    import tensorflow as tf
else:
    import runnel as tf
    if sys.argv[1] == "eager":
        tf.enable_eager_execution()
where = sys.argv[2]
""" % [os.path.join(ROOT, "python")]

# Resource variables are stock's only kind.
TABLES = HEAD + """
counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
points = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
checkpoint = tf.train.Checkpoint(counts=counts, more=[points], v=tf.Variable(1.0, use_resource=True))
"""

SAVE_TABLES = """
counts.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
points.insert(tf.constant([7], tf.int64), tf.constant([[0.5, 1.5]]))
checkpoint.save(where + "/ckpt")
"""
LOAD_TABLES = """
counts.insert(tf.constant(["a", "c"]), tf.constant([9, 9], tf.int64))  # goes
checkpoint.restore(tf.train.latest_checkpoint(where)).assert_consumed()
assert counts.lookup(tf.constant(["a", "b", "c"])).numpy().tolist() == [1, 2, -1]
assert points.lookup(tf.constant([7, 8], tf.int64)).numpy().tolist() == [[0.5, 1.5], [0, 0]]
"""
LOAD_IN_GRAPH = """
with tf.Session() as session:
    checkpoint.restore(tf.train.latest_checkpoint(where)).assert_consumed().initialize_or_restore(session)
    assert session.run(counts.lookup(tf.constant(["a", "b", "c"]))).tolist() == [1, 2, -1]
    checkpoint.save(where + "_graph/ckpt", session)
"""

ITERATOR = HEAD + """
data = tf.data.Dataset.range(20).map(lambda x: 2 * x).shuffle(5, seed=1).batch(2)
iterator = iter(data)
checkpoint = tf.train.Checkpoint(position=iterator)
"""


def run(who, where, code):
    if who == "stock":
        return stock.run(code.replace(", use_resource=True", ""), who, where, cwd=HERE)
    return subprocess.run([sys.executable, "-c", code, who, where], check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout


@pytest.mark.parametrize("writer,reader", [("eager", "eager"), ("eager", "stock"), ("stock", "eager")])
def test_tables(tmp_path, writer, reader):
    if "stock" in (writer, reader) and not stock.is_there():
        pytest.skip("no stock TensorFlow")
    where = str(tmp_path / "tables")
    run(writer, where, TABLES + SAVE_TABLES)
    run(reader, where, TABLES + LOAD_TABLES)


def test_tables_in_graph(tmp_path):
    where = str(tmp_path / "tables")
    run("eager", where, TABLES + SAVE_TABLES)
    run("graph", where, TABLES + LOAD_IN_GRAPH)
    run("eager", where + "_graph", TABLES + LOAD_TABLES)


def test_iterators(tmp_path):
    where = str(tmp_path / "position")
    wanted = run("eager", where, ITERATOR + """
next(iterator), next(iterator)
checkpoint.write(where)
print([x.numpy().tolist() for x in iterator])
""")
    assert wanted.count("[") == 9, wanted
    assert wanted == run("eager", where, ITERATOR + """
checkpoint.read(where).assert_consumed()
print([x.numpy().tolist() for x in iterator])
""")


def test_iterators_in_graph(tmp_path):
    assert run("graph", str(tmp_path / "position"), HEAD + """
iterator = tf.data.Dataset.range(5).make_initializable_iterator()
checkpoint, element = tf.train.Checkpoint(position=iterator), iterator.get_next()
with tf.Session() as session:
    session.run(iterator.initializer)
    session.run(element), session.run(element)
    checkpoint.write(where, session)
with tf.Session() as session:
    session.run(iterator.initializer)
    checkpoint.read(where).assert_consumed().run_restore_ops(session)
    print(session.run(element))
""") == "2\n"


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
def test_iterators_of_stock(tmp_path):
    """States are of pipelines as they were rewritten: the error says so, and the iterator stays where it is."""
    where = str(tmp_path / "position")
    run("stock", where, ITERATOR + "next(iterator), next(iterator), checkpoint.write(where)")
    run("eager", where, ITERATOR + """
first = next(iterator)
try:
    checkpoint.restore(where)
except tf.errors.UnimplementedError as error:
    assert "saved by another implementation of TensorFlow" in str(error), error
else:
    raise AssertionError("restored")
assert len(list(iterator)) == 9
""")
