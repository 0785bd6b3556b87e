#!/usr/bin/env python3
"""Collectives over tasks of Runnel and of stock TensorFlow, driven by stock's Python client: collective_stock_test.py RUNNEL

Every kind in mixed clusters, with either as the leader, in one session for all tasks and in one session per task.
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
from support.stock import Server, servers  # noqa: E402

servers()
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402
from support.ports import free_ports  # noqa: E402

tf = stock.compat.v1
raw = stock.raw_ops
RUNNEL = sys.argv[1]
LEASE = 2
CONFIG = 'experimental { collective_group_leader: "/job:worker/replica:0/task:0" }'


class Cluster:
    """Tasks of the job worker, each of the kind that |kinds| says."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(len(kinds))]
        self.tasks = [self.start(i) for i in range(len(kinds))]

    def start(self, i):
        cluster = json.dumps({"worker": self.addresses})
        if self.kinds[i] == "stock":
            return Server(cluster, "worker", i, CONFIG)
        command = [RUNNEL, "server", "--cluster", cluster, "--job", "worker", "--task", str(i), "--lease", str(LEASE)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        for task in self.tasks:
            assert task.stdout.readline().startswith("grpc://"), "a task did not start"
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            try:
                task.kill()
            except ProcessLookupError:
                pass

    def target(self, i):
        return "grpc://" + self.addresses[i]


def members(cluster, build, which):
    outs = []
    for i in which:
        with tf.device("/job:worker/task:%d/cpu:0" % i):
            outs.append(build(i))
    return outs


def together(cluster, build, runs=2):
    """All members in one session."""
    with tf.Graph().as_default():
        outs = members(cluster, build, range(len(cluster.kinds)))
        with tf.Session(cluster.target(0)) as session:
            for _ in range(runs):
                got = session.run(outs)
            return got


def apart(cluster, build, runs=3):
    """Each member in a session of its own, on its own task."""
    got = [None] * len(cluster.kinds)

    def client(i):
        try:
            with tf.Graph().as_default():
                outs = members(cluster, build, [i])
                config = tf.ConfigProto(device_filters=["/job:worker/task:%d" % i])
                config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
                with tf.Session(cluster.target(i), config=config) as session:
                    for _ in range(runs):
                        got[i] = session.run(outs[0])
        except tf.errors.OpError as error:
            got[i] = error

    threads = [threading.Thread(target=client, args=(i,)) for i in range(len(got))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for one in got:
        if isinstance(one, Exception):
            raise one
        assert one is not None, "a member hangs"
    return got


def keys(cluster, group, instance):
    return {"group_size": len(cluster.kinds), "group_key": group, "instance_key": instance}


def check_kinds(cluster, run, group):
    n = len(cluster.kinds)
    instance = iter(range(group * 1000, group * 1000 + 1000))
    merges = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}
    for count, merge in ((1, "Add"), (2, "Mul"), (16 * n, "Max"), (1000, "Min"), (100001, "Add"), (700000, "Add")):
        xs = [np.random.RandomState(i).uniform(0.5, 2, count).astype("float32") for i in range(n)]
        want = xs[0]
        for x in xs[1:]:
            want = merges[merge](want, x)
        key = next(instance)
        reduce = lambda i: raw.CollectiveReduceV2(input=tf.constant(xs[i]), merge_op=merge, final_op="Id", ordering_token=[],
                                                  **keys(cluster, group, key))
        got = run(cluster, reduce)
        for one in got:
            np.testing.assert_allclose(one, want, rtol=1e-6)
            np.testing.assert_array_equal(one, got[0])  # the same bits everywhere
    for dtype in ("float64", "int32", "int64", "float16"):
        xs = [(np.arange(4000) % 50 * n * (i + 1)).astype(dtype) for i in range(n)]
        key = next(instance)
        mean = lambda i: raw.CollectiveReduce(input=tf.constant(xs[i]), merge_op="Add", final_op="Div", subdiv_offsets=[0],
                                              **keys(cluster, group, key))
        for one in run(cluster, mean):
            np.testing.assert_array_equal(one, sum(xs) / n)
    xs = [np.random.RandomState(i).rand(2 * n, 7).astype("float32") for i in range(n)]
    key = next(instance)
    gather = lambda i: raw.CollectiveGatherV2(input=xs[i], ordering_token=[], **keys(cluster, group, key))
    for one in run(cluster, gather):
        np.testing.assert_array_equal(one, np.concatenate(xs))
    ys = [x[:n] for x in xs]
    key = next(instance)
    other = next(instance)

    def exchange(i):
        # Stock's masters do not see that a graph with nothing but an all-to-all has collectives.
        first = raw.CollectiveGatherV2(input=xs[i], ordering_token=[], **keys(cluster, group, other))
        with tf.control_dependencies([first]):
            return raw.CollectiveAllToAllV2(input=ys[i], ordering_token=[], **keys(cluster, group, key))

    for i, one in enumerate(run(cluster, exchange)):
        np.testing.assert_array_equal(one, np.stack([y[i] for y in ys]))
    for source in range(n):
        key = next(instance)

        def broadcast(i):
            if i == source:
                return raw.CollectiveBcastSendV2(input=xs[i], **keys(cluster, group, key))
            return raw.CollectiveBcastRecvV2(T=tf.float32, shape=[2 * n, 7], **keys(cluster, group, key))

        for one in run(cluster, broadcast):
            np.testing.assert_array_equal(one, xs[source])


def check_death(cluster):
    """The last task is killed while the others wait for it, the first one directly; all learn its name."""
    n = len(cluster.kinds)
    build = lambda i: raw.CollectiveReduceV2(input=tf.constant([1.0]), merge_op="Add", final_op="Id", ordering_token=[],
                                             **keys(cluster, 9, 9))
    together(cluster, build)
    ended = []

    def wait():
        with tf.Graph().as_default():
            outs = members(cluster, build, range(n - 1))
            with tf.Session(cluster.target(0)) as session:
                try:
                    session.run(outs)
                except tf.errors.OpError as error:
                    ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(1)
    assert not ended, ended
    start = time.monotonic()
    os.kill(cluster.tasks[-1].pid, signal.SIGKILL)
    thread.join(30)
    assert ended and time.monotonic() - start < LEASE + 3, ended
    assert isinstance(ended[0], (tf.errors.UnavailableError, tf.errors.AbortedError)), ended
    assert "/job:worker/replica:0/task:%d" % (n - 1) in str(ended[0]), ended


def check_restart(cluster):
    """The leader is started again: after some steps that fail, the clients, which have sessions of their own, meet again."""
    build = lambda i: raw.CollectiveReduceV2(input=tf.constant([1.0]), merge_op="Add", final_op="Id", ordering_token=[],
                                             timeout_seconds=3, **keys(cluster, 9, 9))
    apart(cluster, build)
    cluster.tasks[0].kill()
    cluster.tasks[0].wait()
    cluster.tasks[0] = cluster.start(0)
    assert cluster.tasks[0].stdout.readline()
    for _ in range(10):
        try:
            got = apart(cluster, build)
            break
        except (tf.errors.OpError, AssertionError):
            continue
    for one in got:
        np.testing.assert_array_equal(one, [3.0])


def main():
    for kinds in (("runnel", "stock"), ("stock", "runnel"), ("runnel", "stock", "runnel"), ("stock", "runnel", "stock")):
        start = time.monotonic()
        with Cluster(kinds) as cluster:
            check_kinds(cluster, together, 1)
            check_kinds(cluster, apart, 2)
            if kinds[0] == "runnel":  # stock's tasks wait for ever
                check_death(cluster)
        print("%s: %.1f s" % (", ".join(kinds), time.monotonic() - start), flush=True)
    with Cluster(("runnel", "runnel", "runnel")) as cluster:
        check_kinds(cluster, apart, 1)
        check_restart(cluster)
    print("one session per task of ours", flush=True)


main()
