#!/usr/bin/env python3
"""Stock TensorFlow's Python client and a cluster with an emulated GPU: cluster_stock_test.py RUNNEL

The parameter server has no GPU, the worker has one. The client lists it, places nodes on it, trains
with it, and loses the worker in the middle of a step.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_ports  # noqa: E402

# Stock must not find the emulated driver.
EMULATED = {name: os.environ.pop(name) for name in ("RUNNEL_CUDA_PATH", "RUNNEL_CUDA_PART", "RUNNEL_CACHE_DIR")}
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_eager_execution()
RUNNEL = sys.argv[1]
GPU = "/job:worker/replica:0/task:0/device:GPU:0"


def start(cluster, job, environment, *options):
    command = [RUNNEL, "server", "--cluster", json.dumps(cluster), "--job", job, "--lease", "3", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **environment))


class Cluster:
    """The parameter server has the CUDA part, for placing nodes, unless |part| says another file. It has no driver."""

    def __init__(self, *worker_options, part=EMULATED["RUNNEL_CUDA_PART"]):
        ports = free_ports(2)
        cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
        self.tasks = [start(cluster, "ps", {"RUNNEL_CUDA_PART": part}), start(cluster, "worker", EMULATED, *worker_options)]
        self.targets = ["grpc://" + cluster[job][0] for job in ("ps", "worker")]

    def __enter__(self):
        for task in self.tasks:
            assert task.stdout.readline().startswith("grpc://"), "a task did not start"
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            task.kill()
            task.wait()


def gpus(session):
    return [device for device in session.list_devices() if device.device_type == "GPU"]


def lists_the_gpu(cluster):
    for target in cluster.targets:
        with tf.Session(target) as session:
            found = gpus(session)
            assert [device.name for device in found] == [GPU], found
            assert found[0].memory_limit_bytes > 0 and found[0].incarnation


def trains(cluster):
    values = np.random.RandomState(1).randn(8, 3).astype("f")
    wanted = values @ np.array([[1.0], [-2.0], [0.5]], "f")

    def build(state, work):
        x, y = tf.placeholder(tf.float32, [8, 3], name="x"), tf.placeholder(tf.float32, [8, 1], name="y")
        with tf.device(state):
            w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer(), use_resource=False)
            b = tf.get_variable("b", [1], initializer=tf.zeros_initializer(), use_resource=True)
        with tf.device(work):
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
            grads = tf.gradients(loss, [w, b])
        with tf.device(state):
            step = tf.train.MomentumOptimizer(0.1, 0.5).apply_gradients(zip(grads, [w, b]))
        return {x: values, y: wanted}, step, [w, b, loss]

    def run(target, state, work):
        with tf.Graph().as_default():
            feeds, step, results = build(state, work)
            with tf.Session(target) as session:
                session.run(tf.global_variables_initializer())
                for _ in range(20):
                    session.run(step, feeds)
                return session.run(results, feeds)

    expected = run("", None, None)
    for target in cluster.targets:
        for got, want in zip(run(target, "/job:ps/task:0/cpu:0", "/job:worker/task:0/gpu:0"), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def places(cluster):
    """A trace says where nodes ran, and that the values between the tasks are few."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            a = tf.get_variable("a", [4, 4], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):  # its GPU is preferred
            b = tf.matmul(a, a, name="product")
            c = tf.reshape(b, [2, 8], name="shaped")
        with tf.Session(cluster.targets[0]) as session:
            session.run(a.initializer)
            metadata = tf.RunMetadata()
            value = session.run(c, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True),
                                run_metadata=metadata)
            np.testing.assert_array_equal(value, np.full((2, 8), 4, "f"))
            where = {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}
            assert where["product"] == GPU and where["shaped"] == GPU, where
            ran = {node.node_name for device in metadata.step_stats.dev_stats if device.device == GPU for node in device.node_stats}
            assert "product" in ran, ran


def without_a_gpu():
    with Cluster("--gpus", "0") as cluster, tf.Graph().as_default():
        with tf.device("/job:worker/task:0/gpu:0"):
            x = tf.constant([1.0, 2.0]) * 2.0
        with tf.Session(cluster.targets[0], config=tf.ConfigProto(allow_soft_placement=True)) as session:
            np.testing.assert_array_equal(session.run(x), [2, 4])
            assert not gpus(session)
        try:
            with tf.Session(cluster.targets[0], config=tf.ConfigProto(allow_soft_placement=False)) as session:
                session.run(x)
            raise AssertionError("a node ran on a GPU that is not there")
        except tf.errors.InvalidArgumentError as error:
            assert "explicitly assigned to /job:worker/task:0/device:GPU:0" in str(error), error


def loses_the_worker(cluster):
    """The worker is killed while its GPU computes; the client learns which task is gone, and the parameter server goes on."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0/cpu:0"):
            v = tf.get_variable("v", [64, 64], initializer=tf.ones_initializer())
            total = tf.reduce_sum(v)
        with tf.device("/job:worker/task:0/gpu:0"):
            _, product = tf.while_loop(lambda i, a: i < 1000000, lambda i, a: (i + 1, tf.matmul(a, v) / 64), [tf.constant(0), v])
        with tf.device("/job:ps/task:0/cpu:0"):
            step = v.assign(product)
        with tf.Session(cluster.targets[0], config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(v.initializer)
            threading.Timer(1.5, lambda: cluster.tasks[1].send_signal(signal.SIGKILL)).start()
            begun = time.time()
            try:
                session.run(step)
                raise AssertionError("the step ended although its worker was killed")
            except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
                assert "/job:worker/replica:0/task:0" in str(error), error
            assert time.time() - begun < 30
            assert session.run(total) == 64 * 64


def without_the_part():
    """A master that does not know the kernels of GPUs says so once, and uses CPUs."""
    with Cluster(part="/nowhere") as cluster, tf.Graph().as_default():
        with tf.device("/job:worker/task:0"):
            x = tf.constant([1.0, 2.0]) * 2.0
        for _ in range(2):
            with tf.Session(cluster.targets[0]) as session:
                np.testing.assert_array_equal(session.run(x), [2, 4])
                assert len(gpus(session)) == 1
        cluster.tasks[0].terminate()
        said = cluster.tasks[0].communicate(timeout=30)[1]
        assert said.count("GPUs of other tasks are not used") == 1 and "/nowhere" in said, said


with Cluster() as cluster:
    lists_the_gpu(cluster)
    trains(cluster)
    places(cluster)
    loses_the_worker(cluster)
without_a_gpu()
without_the_part()
print("ok")
