#!/usr/bin/env python3
"""Clusters of Runnel and stock TensorFlow tasks, driven by stock's Python client: stock_test.py RUNNEL

Every mix of the two trains a model whose variables are on two parameter servers, passes large
tensors, runs a loop whose body is on both, reports an error as stock does, runs steps in pieces and
as callables, collects statistics of all tasks, and keeps the state of sessions apart or together.
"""

import json
import os
import re
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.stock import Server, servers  # noqa: E402

servers()
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402
from support.ports import free_ports  # noqa: E402
from tensorflow.core.protobuf import config_pb2  # noqa: E402

tf = stock.compat.v1
RUNNEL = sys.argv[1]
TASKS = (("worker", 0), ("ps", 0), ("ps", 1))
PS0, PS1 = "/job:ps/task:0", "/job:ps/task:1"


class Cluster:
    """Three tasks, each of the kind that |kinds| says."""

    def __init__(self, kinds):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
        cluster = json.dumps({"worker": addresses[:1], "ps": addresses[1:]})
        self.target = "grpc://" + addresses[0]
        self.tasks = []
        for (job, index), kind in zip(TASKS, kinds):
            if kind == "runnel":
                command = [RUNNEL, "server", "--cluster", cluster, "--job", job, "--task", str(index)]
                self.tasks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
            else:
                self.tasks.append(Server(cluster, job, index))

    def __enter__(self):
        for task in self.tasks:
            assert task.stdout.readline().startswith("grpc://"), "a task did not start"
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            task.terminate()
        for task in self.tasks:
            try:
                task.wait(10)
            except subprocess.TimeoutExpired:
                task.kill()


def train(session, x):
    with tf.device(PS0):
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=False)
    with tf.device(PS1):
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer(), use_resource=True)
    loss = tf.reduce_sum(tf.square(v * x - 2) + tf.square(w * x - 1))
    step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = [session.run([step, loss], {x: [1, 2, 3]})[1] for _ in range(20)]
    want_v, want_w, inputs = np.ones(3, "f"), np.ones(3, "f"), np.array([1, 2, 3], "f")
    for _ in range(20):
        want_v -= 0.05 * 2 * (want_v * inputs - 2) * inputs
        want_w -= 0.05 * 2 * (want_w * inputs - 1) * inputs
    np.testing.assert_allclose(session.run(v), want_v, rtol=1e-5)
    np.testing.assert_allclose(session.run(w), want_w, rtol=1e-5)
    assert losses[-1] < losses[0] / 50


def loop_over_tasks(session):
    def body(i, a):
        with tf.device(PS0):
            a = a + 1.0
        with tf.device(PS1):
            a = a * 2.0
        return i + 1, a

    result = tf.while_loop(lambda i, a: i < 5, body, [tf.constant(0), tf.constant(1.0)])
    assert session.run(result) == (5, 94.0)


def what_masters_fuse(session):
    """A stock master sends one node for a product, a bias and a function, or for a chain of functions."""
    def build(device):
        r = np.random.RandomState(0)
        with tf.device(device):
            a, image = (tf.constant(r.randn(*shape), tf.float32) + tf.placeholder_with_default(0.0, [])
                        for shape in ((5, 6), (2, 6, 6, 3)))
            w, f, d = (tf.constant(r.randn(*shape), tf.float32) for shape in ((6, 4), (3, 3, 3, 5), (3, 3, 3, 1)))
            b, c, scale, shift, mean = (tf.constant(r.randn(n), tf.float32) for n in (4, 5, 5, 5, 5))
            for act in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.tanh, tf.sigmoid, lambda x: tf.nn.leaky_relu(x, 0.3)):
                yield act(tf.nn.bias_add(tf.matmul(a, w), b))
                yield act(tf.nn.bias_add(tf.nn.conv2d(image, f, 1, "SAME"), c))
            yield tf.matmul(a, w) + b
            yield tf.nn.relu(tf.nn.fused_batch_norm(tf.nn.conv2d(image, f, 2, "VALID"), scale, shift, mean, tf.square(c) + 1,
                                                    is_training=False)[0])
            y, batch_mean, variance = tf.nn.fused_batch_norm(tf.nn.conv2d(image, f, 1, "SAME"), scale, shift)
            yield from (tf.nn.relu(y), batch_mean + 1.0, variance + 1.0)
            yield tf.nn.relu6(tf.nn.bias_add(tf.nn.depthwise_conv2d(image, d, [1, 1, 1, 1], "SAME"), b[:3]))
            yield tf.exp(tf.sqrt(tf.tanh(tf.abs(a))))
            yield tf.log1p(tf.square(tf.sin(tf.cos(a))))

    values = session.run(list(build(PS0)))
    with tf.Graph().as_default(), tf.Session() as local:
        for value, expected in zip(values, local.run(list(build(None))), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)


def large_tensors(session):
    with tf.device(PS0):
        large = tf.fill([1000, 1000], 2.0)
    with tf.device(PS1):
        large = tf.square(large)
    assert session.run(tf.reduce_sum(large)) == 4e6
    fed = tf.placeholder(tf.float32, [None, 512])
    value = np.random.RandomState(1).rand(3000, 512).astype("f")
    with tf.device(PS1):
        doubled = fed * 2
    np.testing.assert_array_equal(session.run(doubled, {fed: value}), value * 2)


def queue_and_strings(session):
    with tf.device(PS0):
        queue = tf.FIFOQueue(3, [tf.string], [[2]])
    session.run(queue.enqueue([tf.constant(["a", "b\0c"])]))
    assert list(session.run(queue.dequeue())) == [b"a", b"b\0c"]


def error_names_the_node(session, x):
    with tf.device(PS0):
        checked = tf.check_numerics(x, "out of range", name="checked")
    try:
        session.run(checked, {x: [1, np.inf, 2]})
    except tf.errors.InvalidArgumentError as error:
        assert "out of range" in str(error) and "checked" in str(error), str(error)
        assert error.op.name == "checked"
    else:
        raise AssertionError("no error came")


def step_in_pieces(session, x):
    with tf.device(PS0):
        a = x + 1.0
    b = tf.placeholder(tf.float32, [3])
    with tf.device(PS1):
        c = a * b
    try:
        session.partial_run_setup([], [x])
    except tf.errors.InvalidArgumentError as error:
        assert "specify at least one target to fetch or execute." in str(error), str(error)
    else:
        raise AssertionError("a step of nothing was set up")
    handle = session.partial_run_setup([a, c], [x, b])
    first = session.partial_run(handle, a, {x: [1, 2, 3]})
    np.testing.assert_array_equal(first, [2, 3, 4])
    np.testing.assert_array_equal(session.partial_run(handle, c, {b: first}), [4, 9, 16])


def state_and_containers(cluster):
    """Who shares state, and what a reset takes away."""
    with tf.device(PS0):
        v = tf.get_variable("state", [], initializer=tf.ones_initializer(), use_resource=False)
        with tf.container("box"):
            w = tf.get_variable("boxed", [], initializer=tf.ones_initializer(), use_resource=True)
    add = tf.assign_add(v, 1.0)

    def value(session, fetch):
        try:
            return session.run(fetch)
        except tf.errors.FailedPreconditionError:
            return None

    def values():
        with tf.Session(cluster.target) as session:
            return value(session, v), value(session, w)

    apart = tf.ConfigProto(isolate_session_state=True)
    with tf.Session(cluster.target) as a, tf.Session(cluster.target, config=apart) as b:
        a.run([v.initializer, w.initializer])
        a.run(add)
        assert value(b, v) is None
        b.run(v.initializer)
        assert (value(a, v), value(b, v)) == (2, 1)
    assert values() == (2, 1)
    tf.Session.reset(cluster.target, ["box"])
    assert values() == (2, None)
    with tf.Session(cluster.target) as session:
        session.run(w.initializer)
    tf.Session.reset(cluster.target, ["ps"])  # the default container has the job's name
    assert values() == (None, 1)
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)
    tf.Session.reset(cluster.target)
    assert values() == (None, 1)


def callables(session, x):
    with tf.device(PS1):
        y = x * 3.0
    double = session._make_callable_from_options(
        config_pb2.CallableOptions(feed=[x.name], fetch=[y.name]))
    for i in range(3):
        np.testing.assert_array_equal(double(np.array([i, 1, 2], "f"))[0], [3 * i, 3, 6])
    del double


def statistics(session, x):
    with tf.device(PS0):
        a = tf.square(x, name="stat_a")
    with tf.device(PS1):
        b = tf.negative(a, name="stat_b")
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = tf.RunMetadata()
    session.run(b, {x: [1, 2, 3]}, options=options, run_metadata=metadata)
    found = {node.node_name: device.device for device in metadata.step_stats.dev_stats
             for node in device.node_stats}
    assert found["stat_a"] == "/job:ps/replica:0/task:0/device:CPU:0", found
    assert found["stat_b"] == "/job:ps/replica:0/task:1/device:CPU:0", found
    # Masters name the nodes that receive a value differently; all name the value.
    labels = {node.node_name: node.timeline_label for device in metadata.step_stats.dev_stats
              for node in device.node_stats}
    assert re.fullmatch(r"stat_a = Square\([^ ,]*Placeholder[^ ,]*\)", labels["stat_a"]), labels
    assert re.fullmatch(r"stat_b = Neg\([^ ,]*stat_a[^ ,]*\)", labels["stat_b"]), labels
    assert not any("_Recv(" in label or "_Send(" in label for label in labels.values()), labels
    graphs = [{node.name for node in graph.node} for graph in metadata.partition_graphs]
    assert sum("stat_a" in names for names in graphs) == 1, graphs
    assert sum("stat_b" in names for names in graphs) == 1, graphs
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
    session.run(b, {x: [1, 2, 3]}, options=options, run_metadata=metadata)
    assert not metadata.step_stats.dev_stats
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(tf.constant(1.0), options=options, run_metadata=metadata)
    nodes = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert "_SOURCE" in nodes, nodes  # also where the master has computed everything


def check(kinds):
    with Cluster(kinds) as cluster, tf.Graph().as_default():
        config = tf.ConfigProto(operation_timeout_in_ms=30000)
        with tf.Session(cluster.target, config=config) as session:
            x = tf.placeholder(tf.float32, [3])
            train(session, x)
            loop_over_tasks(session)
            what_masters_fuse(session)
            large_tensors(session)
            queue_and_strings(session)
            error_names_the_node(session, x)
            step_in_pieces(session, x)
            callables(session, x)
            statistics(session, x)
            assert len(session.list_devices()) >= 3
        state_and_containers(cluster)


def main():
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    mixes = (("runnel", "runnel", "runnel"), ("runnel", "stock", "runnel"), ("stock", "runnel", "stock"),
             ("stock", "runnel", "runnel"), ("stock", "stock", "runnel"), ("runnel", "stock", "stock"))
    for kinds in mixes:
        check(kinds)
        print("ok:", *kinds, flush=True)
    print(f"{len(mixes)} passed, 0 failed")


if __name__ == "__main__":
    main()
