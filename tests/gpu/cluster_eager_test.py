#!/usr/bin/env python3
"""Stock TensorFlow's eager client and a task with an emulated GPU: cluster_eager_test.py RUNNEL

The client runs ops and functions on the GPU, copies values to and from it, and trains a variable that is on it.
"""

import json
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_ports  # noqa: E402

EMULATED = {name: os.environ.pop(name) for name in ("RUNNEL_CUDA_PATH", "RUNNEL_CUDA_PART", "RUNNEL_CACHE_DIR")}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

PS, CPU, GPU = "/job:ps/task:0/cpu:0", "/job:worker/task:0/cpu:0", "/job:worker/task:0/gpu:0"


def start(cluster, job, *options):
    command = [sys.argv[1], "server", "--cluster", json.dumps(cluster), "--job", job, *options]
    task = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, **EMULATED))
    assert task.stdout.readline().startswith("grpc://"), "a task did not start"
    return task


def is_on_gpu(value):
    return value.device.endswith("/job:worker/replica:0/task:0/device:GPU:0")


def ops():
    with tf.device(GPU):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        y = tf.matmul(x, x)
        assert is_on_gpu(y), y.device
        np.testing.assert_array_equal(y.numpy(), [[7, 10], [15, 22]])
        shape = tf.shape(y)  # in host memory
        np.testing.assert_array_equal(tf.reshape(y, tf.reverse(shape, [0]) * [1, 1]).numpy(), [[7, 10], [15, 22]])
    for device in (PS, CPU, GPU):
        with tf.device(device):
            np.testing.assert_array_equal((y + 1).numpy(), [[8, 11], [16, 23]])
    with tf.device(PS):
        z = tf.ones([2, 2])
    with tf.device(GPU):
        np.testing.assert_array_equal((y + z).numpy(), [[8, 11], [16, 23]])
    np.testing.assert_array_equal((y + 2).numpy(), [[9, 12], [17, 24]])


def functions():
    @tf.function
    def square(x):
        return tf.matmul(x, x), tf.reduce_sum(x)

    @tf.function
    def spread(x):
        with tf.device(GPU):
            y = tf.matmul(x, x)
        with tf.device(PS):
            return y + 1.0

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        with tf.device(GPU):
            y, total = square(x)
        assert is_on_gpu(y), y.device
        np.testing.assert_array_equal(y.numpy(), [[7, 10], [15, 22]])
        assert total.numpy() == 10
        with tf.device(PS):
            here = tf.identity(x)
            np.testing.assert_array_equal(spread(here).numpy(), [[8, 11], [16, 23]])


def training():
    with tf.device(GPU):
        w = tf.Variable([[0.0], [0.0]])
        x, y = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([[5.0], [1.0]])
        for _ in range(60):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(tf.matmul(x, w) - y))
            w.assign_sub(0.05 * tape.gradient(loss, w))
    np.testing.assert_allclose(w.numpy(), [[1], [2]], atol=1e-3)


ports = free_ports(2)
cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
tasks = [start(cluster, "ps", "--gpus", "0", "--allow", "all"), start(cluster, "worker", "--allow", "all")]
try:
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster))
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    assert names == ["/job:worker/replica:0/task:0/device:GPU:0"], names
    ops()
    functions()
    training()
finally:
    for task in tasks:
        task.kill()
        task.wait()
print("ok", flush=True)
os._exit(0)  # the client's threads would wait for the tasks
