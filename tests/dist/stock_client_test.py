#!/usr/bin/env python3
"""Our C client on stock TensorFlow's servers, on ours, and on both together: stock_client_test.py RUNNEL CLIENT

CLIENT is bench/cluster/client.c built with our library: it runs a kind of step on a target, again and again, and
checks each answer. The graphs are written by stock TensorFlow.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stock_test  # noqa: E402

tf = stock_test.tf
CLIENT = sys.argv[2]
PS0, PS1 = stock_test.PS0, stock_test.PS1
LARGE = 300000  # floats: more than a frame, and enough to be lent


def variables(_):
    with tf.device(PS0):
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=False)
    with tf.device(PS1):
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer(), use_resource=True)
    up, down = tf.assign_add(v, [1.0, 2.0, 3.0]), tf.assign_sub(w, [1.0, 2.0, 3.0])
    with tf.control_dependencies([up, down]):
        with tf.device(PS0):  # elsewhere the value might be sent before it is changed
            new_v = v.read_value()
        return tf.reduce_sum(new_v + w.read_value()), 6


def training(_):
    with tf.device(PS0):
        v = tf.get_variable("t", [4], initializer=tf.ones_initializer(), use_resource=True)
    loss = tf.reduce_sum(tf.square(v - 3.0))
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.5).minimize(loss)]):
        return tf.reduce_sum(v.read_value()), 12  # one step is enough


def loop(_):
    def body(i, a):
        with tf.device(PS0):
            a = a + 1.0
        with tf.device(PS1):
            a = a * 2.0
        return i + 1, a

    return tf.while_loop(lambda i, a: i < 5, body, [tf.constant(0), tf.constant(1.0)])[1], 94


def large(feeds):
    x = tf.placeholder(tf.float32, [None], "x")
    feeds["x"] = LARGE
    with tf.device(PS0):
        y = x * 2.0
    with tf.device(PS1):
        return tf.reverse(y + 1.0, [0]), 3


def queue(_):
    with tf.device(PS1):
        q = tf.FIFOQueue(10, [tf.float32], [[]])
        with tf.control_dependencies([q.enqueue([7.0])]):
            return q.dequeue(), 7


def broken(feeds):
    x = tf.placeholder(tf.float32, [None], "x")
    feeds["x"] = 4
    with tf.device(PS0):
        return tf.check_numerics(tf.log(x - 1.0), "out of range", name="checked"), None


def write(make, folder):
    feeds = {}
    with tf.Graph().as_default() as graph:
        result, expect = make(feeds)
        tf.identity(result, "result")
        tf.group(*[v.initializer for v in tf.global_variables()], name="init")
        path = os.path.join(folder, make.__name__ + ".pb")
        with open(path, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
    arguments = [path, "--fetch", "result", "--init", "init", "--seconds", "0.2"]
    for name, count in feeds.items():
        arguments += ["--feed", name, str(count)]
    return arguments + (["--expect", str(expect)] if expect is not None else [])


def run(target, arguments):
    return subprocess.run([CLIENT, target, *arguments], capture_output=True, text=True, timeout=120, check=False)


def check(kinds, jobs):
    with stock_test.Cluster(kinds) as cluster:
        for name, arguments in jobs.items():
            done = run(cluster.target, arguments)
            if name == "broken":
                assert done.returncode == 1, (kinds, name)
                for words in ("out of range", "{{node checked}}", "From /job:"):
                    assert words in done.stderr, (kinds, words, done.stderr)
                continue
            assert done.returncode == 0, (kinds, name, done.stderr)
            assert float(done.stdout.split()[1]) >= 3, (kinds, name, done.stdout)


def main():
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    mixes = (("stock", "stock", "stock"), ("runnel", "runnel", "runnel"), ("stock", "runnel", "stock"),
             ("runnel", "stock", "runnel"))
    with tempfile.TemporaryDirectory() as folder:
        jobs = {make.__name__: write(make, folder)
                for make in (variables, training, loop, large, queue, broken)}
        for kinds in mixes:
            check(kinds, jobs)
            print("ok:", *kinds, flush=True)
    print(f"{len(mixes)} passed, 0 failed")


if __name__ == "__main__":
    main()
