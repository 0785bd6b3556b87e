"""Feeds, fetches, partial runs, errors."""

import collections
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from both import both

Pair = collections.namedtuple("Pair", "a b")


@both
def test_nested_fetches(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = x * 2
    s = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    slices = tf.IndexedSlices(y, tf.constant([0, 1]), tf.constant([4]))
    nest = [y, (x, y), {"k": y, "o": y.op}, Pair(x, [y]), "x:0", "mul", s, slices, [], y]
    with tf.Session() as sess:
        return sess.run(nest, {x: [1, 2]})


@both
def test_feeds(tf, np):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    i = tf.placeholder(tf.int32, name="i")
    t = tf.placeholder(tf.string, name="t")
    b = tf.placeholder(tf.bool, [], name="b")
    s = tf.sparse_placeholder(tf.float32)
    d = tf.placeholder_with_default([1.0], [None], name="d")
    y = x + 1
    with tf.Session() as sess:
        return [sess.run(y, {x: np.ones((3, 2))}), sess.run(y, {"x:0": [[1, 2]]}), sess.run(y, {x: np.ones((3, 2), np.int64)[::2]}),
                sess.run(i, {i: 5}), sess.run(i, {i: np.int64(7)}), sess.run(t, {t: "text"}), sess.run(t, {t: ["a", b"\xff"]}), sess.run(t, {t: np.array([["u", "vv"]])}),
                sess.run(b, {b: True}), sess.run(s, {s: ([[0, 1]], [2.0], [2, 3])}), sess.run(s, {s: tf.SparseTensorValue([[0, 1]], [2.0], [2, 3])}),
                sess.run(d), sess.run(d, {d: [5, 6]}), sess.run(y, {y: [[9.0, 9.0]]}), sess.run(x, {x: np.zeros((0, 2))})]


@both
def test_callables(tf, np):
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:
        f = sess.make_callable([x * 2, tf.reduce_sum(x)], [x])
        return [f([1, 2]), f(np.array([3, 4], np.float32)), sess.make_callable(tf.constant(5))()]


@both
def test_partial_run(tf, np):
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    r1 = a + b
    r2 = r1 * c
    with tf.Session() as sess:
        handle = sess.partial_run_setup([r1, r2], [a, b, c])
        first = sess.partial_run(handle, r1, {a: 1, b: 2})
        return [first, sess.partial_run(handle, r2, {c: 3})]


@both
def test_defaults(tf, np):
    x = tf.constant(2.0)
    rows = []
    with tf.Session():
        rows.append(x.eval())
        rows.append(tf.get_default_session() is not None)
    rows.append(tf.get_default_session() is None)
    sess = tf.InteractiveSession()
    rows.append((x + 1).eval())
    sess.close()
    return rows


@both
def test_metadata(tf, np):
    x = tf.placeholder(tf.float32, name="x")
    y = tf.matmul(x, x, name="y")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        value = sess.run(y, {x: np.ones((2, 2))}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return [value, len(metadata.step_stats.dev_stats) > 0]


@both
def test_config(tf, np):
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 2}, inter_op_parallelism_threads=1)
    config.gpu_options.allow_growth = True
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    with tf.device("/cpu:1"):
        x = tf.constant(1) + tf.constant(2)
    with tf.Session(config=config) as sess:
        names = sorted(d.name for d in sess.list_devices() if d.device_type == "CPU")
        return [sess.run(x), names, x.op.device, str(tf.ConfigProto.FromString(config.SerializeToString()))]


def _failing(program):
    return both(program, raises=True)


@_failing
def test_wrong_feed_shape(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.Session().run(x, {x: [1, 2, 3]})


@_failing
def test_feed_of_none(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.Session().run(x, {x: None})


@_failing
def test_feed_of_tensor(tf, np):
    x = tf.placeholder(tf.float32, name="x")
    tf.Session().run(x, {x: tf.constant(1.0)})


@_failing
def test_missing_feed(tf, np):
    tf.Session().run(tf.placeholder(tf.float32, name="x") + 1)


@_failing
def test_unknown_fetch(tf, np):
    tf.constant(1)
    tf.Session().run("nothing:0")


@_failing
def test_fetch_of_none(tf, np):
    tf.constant(1)
    tf.Session().run(None)


@_failing
def test_fetch_of_number(tf, np):
    tf.constant(1)
    tf.Session().run(1.5)


@_failing
def test_other_graph(tf, np):
    with tf.Graph().as_default():
        x = tf.constant(1)
    tf.constant(2)
    tf.Session().run(x)


@_failing
def test_empty_graph(tf, np):
    tf.Session().run("x")


@_failing
def test_closed(tf, np):
    sess = tf.Session()
    x = tf.constant(1)
    sess.close()
    sess.run(x)


@_failing
def test_failed_step(tf, np):
    x = tf.placeholder(tf.float32, name="x")
    with tf.Session() as sess:
        sess.run(tf.matmul(x, x), {x: np.ones((2, 3))})


@_failing
def test_no_session(tf, np):
    tf.constant(1).eval()


def test_error_names_the_line():
    import runnel as tf
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, name="x")
        y = tf.matmul(x, x, name="product")  # this very line
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(y, {x: [[1, 2, 3]]})
    assert caught.value.op is y.op
    assert caught.value.node_def.name == "product"
    assert caught.value.error_code == tf.errors.INVALID_ARGUMENT
    text = str(caught.value)
    assert "test_session.py" in text and "# this very line" in text


def test_feeds_are_not_copied_when_aligned():
    import numpy as np
    import runnel as tf
    memory = np.zeros(1 << 20 | 64, np.uint8)
    start = -memory.ctypes.data % 64 + 16  # where most allocators put arrays
    array = memory[start:start + (1 << 20) - 64].view(np.float32)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.identity(x)
        with tf.Session() as sess:
            sess.run(y, {x: array})
            before = sys.getrefcount(array)
            for _ in range(5):
                result = sess.run(y, {x: array})
            assert sys.getrefcount(array) == before
            result[0] = 5  # ours alone
            assert array[0] == 0


PEAK = """
import resource, numpy as np, runnel as tf
x = tf.placeholder(tf.float32, [None])
y = x[0]
sess = tf.Session()
data = np.ones(64 << 20, np.float32)
sess.run(y, {x: data[:1000]})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sess.run(y, {x: data})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_large_feeds_take_no_memory():
    done = subprocess.run([sys.executable, "-c", PEAK], stdout=subprocess.PIPE, text=True, check=True,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert int(done.stdout) < 64 << 10, "KiB more for a feed of 256 MiB: " + done.stdout


def test_fetched_constants_are_copies():
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant([1.0, 2.0])
        sess.run(x)[0] = 9
        assert sess.run(x).tolist() == [1.0, 2.0]


def test_threads():
    import numpy as np
    import runnel as tf
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 64])
        y = tf.reduce_sum(tf.matmul(x, x, transpose_b=True))
        sess = tf.Session()
        wrong = []

        def work(k):
            data = np.full((32, 64), k, np.float32)
            for _ in range(50):
                if sess.run(y, {x: data}) != k * k * 64 * 32 * 32:
                    wrong.append(k)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


BLOCKED = """
import runnel as tf
from runnel import raw_ops
queue = raw_ops.FIFOQueueV2(component_types=[tf.float32], capacity=1)
item = raw_ops.QueueDequeueV2(handle=queue, component_types=[tf.float32])
put = raw_ops.QueueEnqueueV2(handle=queue, components=[tf.constant(1.0)])
sess = tf.Session()
try:
    print("ready", flush=True)
    sess.run(item)
except KeyboardInterrupt:
    print("stopped", flush=True)
sess.run(put)
print([float(v) for v in sess.run(item)])
"""


def test_interrupt():
    process = subprocess.Popen([sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)  # time to begin the step
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "stopped\n[1.0]\n"
    assert process.returncode == 0


FORKED = """
import os, runnel as tf
x = tf.constant(2.0) * 3
old = tf.Session()
assert old.run(x) == 6
child = os.fork()
if child == 0:
    try:
        old.run(x)
    except RuntimeError as error:
        assert "forked" in str(error)
    else:
        os._exit(2)
    old.close()
    del old
with tf.Graph().as_default():
    y = tf.reduce_sum(tf.ones([300, 300]) @ tf.ones([300, 300]))
    value = tf.Session().run(y)
if child == 0:
    os._exit(0 if value == 300 ** 3 else 1)
assert value == 300 ** 3
print(os.waitpid(child, 0)[1])
"""


def test_fork():
    done = subprocess.run([sys.executable, "-c", FORKED], stdout=subprocess.PIPE, text=True, timeout=60,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout == "0\n"


@both
def test_bent_feeds(tf, np):
    i = tf.placeholder(tf.int32, name="i")
    f = tf.placeholder(tf.float32, name="f")
    b = tf.placeholder(tf.bool, name="b")
    t = tf.placeholder(tf.string, name="t")
    with tf.Session() as sess:
        return [sess.run(i + 0, {i: [1.7, 2.2]}), sess.run(i + 0, {i: True}), sess.run(f + 0, {f: [True, False]}), sess.run(f + 0, {f: "1.5"}), sess.run(f + 0, {f: [np.float64(2), 3]}), sess.run(tf.identity(b), {b: [0, 2]}),
                sess.run(i + 0, {i: np.array([1.0, 2.0])}), sess.run(tf.identity(t), {t: [b"a"]}), sess.run(f + 0, {f: [np.ones(2), np.zeros(2)]})]


@_failing
def test_ragged_feed(tf, np):
    f = tf.placeholder(tf.float32, name="f")
    tf.Session().run(f + 1, {f: [[1, 2], [3]]})


@_failing
def test_text_for_a_number(tf, np):
    f = tf.placeholder(tf.float32, name="f")
    tf.Session().run(f + 1, {f: "word"})


@_failing
def test_too_large_feed(tf, np):
    i = tf.placeholder(tf.int32, name="i")
    tf.Session().run(i + 1, {i: 2**40})


@_failing
def test_feed_of_no_tensor(tf, np):
    f = tf.placeholder(tf.float32, name="f")
    tf.Session().run(f + 1, {"nothing:0": 1.0})


@_failing
def test_feed_of_another_graph(tf, np):
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32)
    f = tf.constant(1.0)
    tf.Session().run(f + 1, {other: 1.0})
