"""Measures the overhead of the Python layer, here and in stock.

    RUNNEL_BUILD=build/release PYTHONPATH=python build/venv/bin/python tests/python/bench.py [stock] [eager]
"""

import sys
import time

start = time.perf_counter()
if "stock" in sys.argv[1:]:
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
else:
    import runnel as tf
imported = time.perf_counter() - start

import numpy as np  # noqa: E402


def show(what, seconds):
    print("%-40s %12.2f us" % (what, seconds * 1e6))


def each(function, count):
    """The best of three of the mean of many."""
    function()
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def once(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def steps():
    x = tf.placeholder(tf.float32, [None, 2])
    y = x + 1.0
    nothing = tf.no_op()
    one = tf.constant(1.0)
    data = np.ones((2, 2), np.float32)
    with tf.Session() as sess:
        show("run of no_op", each(lambda: sess.run(nothing), 3000))
        show("run with one feed and one fetch", each(lambda: sess.run(y, {x: data}), 3000))
        show("run of a nest", each(lambda: sess.run([y, {"a": one}, (x,)], {x: data}), 1000))
        call = sess.make_callable(y, [x])
        show("callable", each(lambda: call(data), 3000))


def feeds():
    x = tf.placeholder(tf.float32, [2000, 2000])
    y = x[0, 0]
    memory = np.zeros(16000000 + 128, np.uint8)
    place = -memory.ctypes.data % 64
    with tf.Session() as sess:
        for what, offset in (("feed of 16 MB, aligned", place), ("feed of 16 MB, not aligned", place + 16)):
            data = memory[offset:offset + 16000000].view(np.float32).reshape(2000, 2000)
            show(what, each(lambda data=data: sess.run(y, {x: data}), 20))


def additions():
    with tf.Graph().as_default():
        a = tf.constant(1.0)
        for _ in range(10000):
            a = a + a


def gradients():
    with tf.Graph().as_default() as graph:
        a = first = tf.constant(1.0)
        for _ in range(3000):
            a = a * 1.01
        show("gradients of 3,000 nodes", once(lambda: tf.gradients(a, first)))
        show("GraphDef of them", once(graph.as_graph_def))


def eager():
    tf.enable_eager_execution()
    a, b, m = tf.constant(2.0), tf.constant(3.0), tf.ones([10, 10])
    v = tf.Variable(1.0)

    def tape():
        with tf.GradientTape() as recorded:
            y = v * v * a
        return recorded.gradient(y, v)
    square = tf.function(lambda x: x * x + a)
    show("op by its raw name", each(lambda: tf.raw_ops.AddV2(x=a, y=b), 3000))
    show("a + b", each(lambda: a + b, 3000))
    show("matmul of 10 by 10", each(lambda: tf.matmul(m, m), 3000))
    show("constant", each(lambda: tf.constant(1.0), 3000))
    show("numpy()", each(a.numpy, 3000))
    show("assign_add", each(lambda: v.assign_add(1.0), 3000))
    show("tape of two products", each(tape, 300))
    show("call of a tf.function", each(lambda: square(b), 1000))


def main():
    show("import", imported)
    if "eager" in sys.argv[1:]:
        eager()
        return
    steps()
    feeds()
    show("10,000 additions", once(additions))
    gradients()


if __name__ == "__main__":
    main()
