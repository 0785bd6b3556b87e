"""Collectives over tasks of ours: collective_test.py RUNNEL [mpi|gpu|nccl], with RUNNEL_BUILD in the environment.

Every kind between three processes, one of which is killed, stopped and started again; or by MPI between three processes
that mpirun starts, where it is installed; or between the GPUs of three processes, through host memory or by NCCL.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python"))
sys.path.append(os.path.dirname(HERE))

import runnel as tf
from support.ports import free_ports

raw = tf.raw_ops
LEASE = 2
N = 3
BY_NCCL = sys.argv[2:] == ["nccl"]
DEVICE = "gpu:0" if BY_NCCL or sys.argv[2:] == ["gpu"] else "cpu:0"


class Cluster:
    rtol = 0  # sums are made in the order of tasks

    def __init__(self, runnel):
        self.runnel = runnel
        self.ports = free_ports(N)
        self.tasks = [None] * N
        for i in range(N):
            self.start(i)

    def start(self, i, **variables):
        cluster = "worker=" + "|".join("127.0.0.1:%d" % port for port in self.ports)
        command = [self.runnel, "server", "--cluster", cluster, "--job", "worker", "--task", str(i), "--lease", str(LEASE)]
        # Cards of different machines, if they are emulated.
        environment = dict(os.environ, RN_EMULATED_MACHINE=chr(ord("a") + i), **variables)
        self.tasks[i] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        assert self.tasks[i].stdout.readline()

    def kill(self, i):
        self.tasks[i].kill()
        self.tasks[i].wait()

    def target(self, i=0):
        return "grpc://127.0.0.1:%d" % self.ports[i]

    def close(self):
        for task in self.tasks:
            task.send_signal(signal.SIGCONT)
            task.kill()
            task.wait()


class NcclCluster(Cluster):
    rtol = 1e-6  # NCCL chooses the order


class MpiCluster(Cluster):
    """Tasks that are the ranks of an MPI job."""

    rtol = 1e-6  # MPI chooses the order

    def __init__(self, runnel):
        self.ports = free_ports(N)
        cluster = "worker=" + "|".join("127.0.0.1:%d" % port for port in self.ports)
        server = '%s server --cluster "%s" --job worker --task $OMPI_COMM_WORLD_RANK --collectives mpi' % (runnel, cluster)
        command = ["mpirun", "--oversubscribe", "-n", str(N), "sh", "-c", "exec " + server]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        for _ in range(N):
            assert self.job.stdout.readline()

    def close(self):
        self.job.terminate()
        try:
            self.job.wait(20)
        finally:
            self.job.kill()


def run(cluster, build, members=range(N), **options):
    with tf.Graph().as_default():
        outs = []
        for i in members:
            with tf.device("/job:worker/task:%d/%s" % (i, DEVICE)):
                outs.append(build(i))
        with tf.Session(cluster.target(), config=tf.ConfigProto(**options)) as session:
            session.run(outs)
            return session.run(outs)


def keys(group, instance):
    hint = "nccl" if BY_NCCL else "auto"
    return {"group_size": N, "group_key": group, "instance_key": instance, "communication_hint": hint}


def reduce(x, group, instance, merge="Add", final="Id"):
    return raw.CollectiveReduceV2(
        input=x, ordering_token=[], merge_op=merge, final_op=final, **keys(group, instance)
    )


def test_kinds(cluster):
    merges = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}
    # One element, less than one per task, one round, two rounds, parts that are not full, pieces of values of GPUs.
    for n in (1, 2, 1000, 16383, 16384, 100001, 700000, 3000001):
        for merge, function in merges.items():
            xs = [np.random.RandomState(i).uniform(0.5, 2, n).astype("float32") for i in range(N)]
            want = function(function(xs[0], xs[1]), xs[2])
            for one in run(cluster, lambda i: reduce(tf.constant(xs[i]), 1, n, merge)):
                np.testing.assert_allclose(one, want, rtol=cluster.rtol)
    for dtype in ("float64", "int32", "int64", "float16"):
        xs = [(np.arange(40000) % 50 * (i + 1)).astype(dtype) for i in range(N)]
        want = (xs[0] + xs[1] + xs[2]) // N if dtype.startswith("int") else (xs[0] + xs[1] + xs[2]) / np.array(N, dtype)
        for one in run(cluster, lambda i: reduce(tf.constant(xs[i]), 1, 7, final="Div")):
            np.testing.assert_array_equal(one, want.astype(dtype))
    for rows, columns in ((6, 5), (3, 40000), (3, 800001)):
        xs = [np.random.RandomState(i).rand(rows, columns).astype("float32") for i in range(N)]
        for one in run(cluster, lambda i: raw.CollectiveGatherV2(input=xs[i], ordering_token=[], **keys(1, 1))):
            np.testing.assert_array_equal(one, np.concatenate(xs))
        parts = run(
            cluster,
            lambda i: raw.CollectiveReduceScatterV2(
                input=xs[i], ordering_token=[], merge_op="Add", final_op="Id", **keys(1, 2)
            ),
        )
        np.testing.assert_allclose(np.concatenate(parts), xs[0] + xs[1] + xs[2], rtol=cluster.rtol)
        ys = [x[:N] for x in xs]
        for i, one in enumerate(
            run(cluster, lambda i: raw.CollectiveAllToAllV2(input=ys[i], ordering_token=[], **keys(1, 3)))
        ):
            np.testing.assert_array_equal(one, np.stack([y[i] for y in ys]))
        for source in range(N):

            def build(i):
                if i == source:
                    return raw.CollectiveBcastSendV2(input=xs[i], **keys(1, 4))
                return raw.CollectiveBcastRecvV2(T=tf.float32, shape=[rows, columns], **keys(1, 4))

            for one in run(cluster, build):
                np.testing.assert_array_equal(one, xs[source])


def fails(function, error, *parts):
    start = time.monotonic()
    try:
        function()
    except error as e:
        for part in parts:
            assert part in str(e), str(e)
        return time.monotonic() - start
    raise AssertionError("it did not fail")


def test_disagreement(cluster):
    fails(lambda: run(cluster, lambda i: reduce(tf.zeros([i + 2]), 1, 1)), tf.errors.InvalidArgumentError, "Shape mismatch")
    # Some of one piece, some of several; the same number of pieces.
    for first, step in ((900000, 400000), (4000000, 1)):
        fails(
            lambda: run(cluster, lambda i: reduce(tf.zeros([first + i * step]), 1, 2)),
            tf.errors.InvalidArgumentError,
            "Shape mismatch",
        )
    fails(
        lambda: run(
            cluster,
            lambda i: raw.CollectiveReduceV2(
                input=tf.zeros([2]), ordering_token=[], merge_op="Add", final_op="Id", group_size=N + i % 2,
                group_key=9, instance_key=1,
            ),
        ),
        tf.errors.InternalError,
        "but that group has size",
    )


def wait_in_thread(cluster, members, instance):
    """Members come to a collective whose last member does not; how it ends is in the list."""
    ended = []

    def wait():
        try:
            run(cluster, lambda i: reduce(tf.constant([1.0]), 1, instance), members)
            ended.append((time.monotonic(), None))
        except tf.errors.OpError as e:
            ended.append((time.monotonic(), e))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.7)
    assert not ended
    return thread, ended


def test_failures(cluster):
    run(cluster, lambda i: reduce(tf.constant([1.0]), 1, 1))  # the group is known
    for stop, restart in ((cluster.kill, True), (lambda i: cluster.tasks[i].send_signal(signal.SIGSTOP), False)):
        thread, ended = wait_in_thread(cluster, (0, 1), 50)
        start = time.monotonic()
        stop(2)
        thread.join(LEASE * 4)
        assert ended and isinstance(ended[0][1], tf.errors.UnavailableError), ended
        assert "/job:worker/replica:0/task:2" in str(ended[0][1]), ended
        assert ended[0][0] - start < LEASE + 1
        if restart:
            cluster.start(2)
        else:
            cluster.tasks[2].send_signal(signal.SIGCONT)
        # All members find each other again.
        for attempt in range(10):
            try:
                out = run(cluster, lambda i: reduce(tf.constant([float(i)]), 1, 51))
                break
            except tf.errors.OpError:
                time.sleep(0.3)
        for one in out:
            np.testing.assert_array_equal(one, [3.0])


def runs_by_nccl():
    """How many operations the emulated NCCL has run in all tasks."""
    return os.path.getsize(os.environ["EMULATED_NCCL_COUNT"])


def test_nccl(cluster):
    """All kinds go by NCCL. A member that is lost while the others wait for it in an operation ends that by name."""
    before = runs_by_nccl()
    for one in run(cluster, lambda i: reduce(tf.constant([float(i)]), 1, 70)):
        np.testing.assert_array_equal(one, [3.0])
    assert runs_by_nccl() == before + 2 * N, (before, runs_by_nccl())
    cluster.kill(2)
    cluster.start(2, EMULATED_NCCL_STALL="2")
    for _ in range(10):
        try:
            thread, ended = wait_in_thread(cluster, range(N), 71)
            break
        except AssertionError:  # a step that finds out that the task has restarted
            time.sleep(0.3)
    start = time.monotonic()
    cluster.kill(2)
    thread.join(LEASE * 4)
    assert ended and isinstance(ended[0][1], tf.errors.UnavailableError), ended
    assert "/job:worker/replica:0/task:2" in str(ended[0][1]), ended
    assert ended[0][0] - start < LEASE + 1
    cluster.start(2)
    before = runs_by_nccl()
    for _ in range(20):
        try:
            out = run(cluster, lambda i: reduce(tf.constant([float(i)]), 1, 72))
            if runs_by_nccl() > before:
                break
        except tf.errors.OpError:
            time.sleep(0.3)
    for one in out:
        np.testing.assert_array_equal(one, [3.0])
    assert runs_by_nccl() > before


def test_cancelled(cluster):
    """A step that is given up ends its collectives; the next one works."""
    took = fails(
        lambda: run(cluster, lambda i: reduce(tf.constant([1.0]), 1, 60), (0, 2), operation_timeout_in_ms=800),
        (tf.errors.DeadlineExceededError, tf.errors.CancelledError),
    )
    assert took < 3
    for one in run(cluster, lambda i: reduce(tf.constant([1.0]), 1, 60)):
        np.testing.assert_array_equal(one, [3.0])


def main():
    by_mpi = sys.argv[2:] == ["mpi"]
    if by_mpi and not shutil.which("mpirun"):
        sys.exit(77)
    cluster = (MpiCluster if by_mpi else NcclCluster if BY_NCCL else Cluster)(sys.argv[1])
    tests = (test_kinds, test_disagreement, test_cancelled)
    try:
        for test in tests if by_mpi else (*tests, *[test_nccl][: BY_NCCL], test_failures):
            start = time.monotonic()
            test(cluster)
            print("%s: %.1f s" % (test.__name__, time.monotonic() - start), flush=True)
    finally:
        cluster.close()


main()
