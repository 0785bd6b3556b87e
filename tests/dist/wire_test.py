"""Tensors between tasks by UCX: wire_test.py RUNNEL, with RUNNEL_BUILD in the environment.

Tasks with --wire ucx over UCX's own transports, with peers that have no UCX or cannot be reached by it, and with faults in
mid-transfer. That values really travel by UCX shows in the bytes of the ordinary connections. Exits with 77 without UCX.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python"))
sys.path.append(os.path.dirname(HERE))

import runnel as tf
from support.ports import free_ports

RUNNEL = sys.argv[1]
LEASE = 2
MB = 1 << 20


def status(port):
    with urllib.request.urlopen("http://127.0.0.1:%d/statusz?format=json" % port) as page:
        return json.load(page)


def received(port):
    """The bytes that the task at |port| has received from others over ordinary connections."""
    return sum(peer["in"] for peer in status(port)["peers"])


class Cluster:
    """Tasks on this machine; |each| has the options and environment of those that are not as all others."""

    def __init__(self, count, transports, each=None, options=("--wire", "ucx")):
        self.ports = free_ports(count)
        self.transports, self.options, self.each = transports, options, each or {}
        self.tasks, self.logs = [None] * count, [None] * count
        for i in range(count):
            self.start(i)

    def start(self, i):
        options, environment = self.each.get(i, (self.options, {}))
        cluster = "worker=" + "|".join("127.0.0.1:%d" % port for port in self.ports)
        command = [RUNNEL, "server", "--cluster", cluster, "--job", "worker", "--task", str(i), "--lease", str(LEASE), "--no-loans", *options]
        self.logs[i] = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "UCX_TLS": self.transports, **environment}
        self.tasks[i] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.logs[i], env=environment, text=True)
        assert self.tasks[i].stdout.readline().startswith("grpc"), self.log(i)

    def log(self, i):
        self.logs[i].seek(0)
        return self.logs[i].read()

    def bytes_in(self, i):
        return received(self.ports[i])

    def session(self, i=0, **options):
        return tf.Session("grpc://127.0.0.1:%d" % self.ports[i], **options)

    def kill(self, i):
        self.tasks[i].kill()
        self.tasks[i].wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for i, task in enumerate(self.tasks):
            task.send_signal(signal.SIGCONT)
            task.kill()
            task.wait()
            if error[0]:
                print("task %d:" % i, self.log(i), file=sys.stderr)


def on(task):
    return tf.device("/job:worker/task:%d/cpu:0" % task)


def crossing(size, back=False):
    """A variable of |size| bytes on task 1, and a step that needs it on task 0, then perhaps on task 1 again."""
    with on(1):
        start = tf.get_variable("v%d" % size, [size // 4], tf.int32, initializer=tf.zeros_initializer())
        fill = start.assign(tf.range(size // 4)).op
        value = start + 1
    with on(0):
        here = tf.raw_ops.Identity(input=value) * 2
    with on(1):
        there = tf.raw_ops.Identity(input=here) + 1
    end = there if back else here
    with on(1 if back else 0):
        sums = [end[0], end[-1], tf.reduce_sum(tf.cast(end, tf.int64))]
    numbers = (np.arange(size // 4, dtype=np.int64) + 1) * 2 + back
    return fill, sums, [numbers[0], numbers[-1], numbers.sum()]


def values_cross(transports, uses_ucx=True, each=None, size=24 * MB, **options):
    """Checks values, and which way they came. Returns the logs of both tasks."""
    with Cluster(2, transports, each, **options) as cluster, tf.Graph().as_default():
        fill, sums, wanted = crossing(size, back=True)
        with cluster.session() as session:
            session.run(fill)
            for _ in range(5):  # the first ones find the wire
                np.testing.assert_array_equal(session.run(sums), wanted)
                time.sleep(0.1)
            before = [cluster.bytes_in(i) for i in range(2)]
            for _ in range(3):
                np.testing.assert_array_equal(session.run(sums), wanted)
            came = [cluster.bytes_in(i) - b for i, b in enumerate(before)]
            if uses_ucx:
                assert max(came) < MB, (transports, came)
            else:
                assert min(came) > 3 * size, (transports, came)
        return [cluster.log(i) for i in range(2)]


def devices():
    """InfiniBand and RoCE, also soft-RoCE: rdma link add rxe0 type rxe netdev eth0."""
    folder = "/sys/class/infiniband"
    if not os.path.isdir(folder) or not os.listdir(folder):
        print("no device of InfiniBand or RoCE: not tested over one")
        return
    environment = {"UCX_NET_DEVICES": "all"}  # tasks on loopback use only that otherwise
    for transports in "rc,self", "ud,self":
        values_cross(transports, each=dict.fromkeys(range(2), (("--wire", "ucx"), environment)))


def small_values_stay_in_responses():
    with Cluster(2, "tcp") as cluster, tf.Graph().as_default():
        fill, sums, wanted = crossing(1024)
        with cluster.session() as session:
            session.run(fill)
            np.testing.assert_array_equal(session.run(sums), wanted)


def peers_without_it():
    """Every one is said once, by the task that wanted it, and values come all the same."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "libucp.so.0", "libucs.so.0":
            open(os.path.join(folder, name), "w").close()
        logs = values_cross("tcp", uses_ucx=False, each={1: (("--wire", "ucx"), {"LD_LIBRARY_PATH": folder})})
        assert logs[1].count("libucs.so.0 is missing (Debian: libucx0)") == 1, logs[1]
        assert logs[0].count("/task:1 has no wire by UCX: its tensors come over the ordinary connection") == 1, logs[0]
    logs = values_cross("tcp", uses_ucx=False, each={1: ((), {})})
    assert logs[0].count("has no wire by UCX") == 1 and "UCX" not in logs[1], logs
    logs = values_cross("tcp", uses_ucx=False, each={1: (("--wire", "ucx"), {"UCX_TLS": "posix"})})
    assert all(log.count("cannot be reached by UCX: its tensors come over the ordinary connection") == 1 for log in logs), logs
    logs = values_cross("tcp", uses_ucx=False, each={1: (("--wire", "ucx"), {"UCX_TLS": "nonsense"})})
    assert logs[1].count("tensors come over the ordinary connections") == 1, logs[1]


def long_step(cluster, seconds, act, transports):
    """Runs steps that move much until |act| makes one fail, and returns its error."""
    with tf.Graph().as_default():
        fill, sums, wanted = crossing(64 * MB)
        session = cluster.session()
        session.run(fill)
        for _ in range(3):
            np.testing.assert_array_equal(session.run(sums), wanted)
        timer = threading.Timer(0.3, act)
        timer.start()
        error, end = None, time.monotonic() + seconds
        while not error and time.monotonic() < end:
            try:
                np.testing.assert_array_equal(session.run(sums), wanted)
            except tf.errors.OpError as caught:
                error = caught
        timer.join()
        assert error, "%s: no step failed" % transports
        try:
            session.close()
        except tf.errors.OpError:
            pass  # the task is gone
        return error


def works_again(cluster):
    with tf.Graph().as_default():
        fill, sums, wanted = crossing(8 * MB)
        for attempt in range(20):
            try:
                with cluster.session() as session:
                    session.run(fill)
                    np.testing.assert_array_equal(session.run(sums), wanted)
                return
            except tf.errors.OpError:
                if attempt == 19:
                    raise
                time.sleep(0.5)


def peers_that_die(transports):
    """The sender is killed in mid-transfer, then stopped: steps end with its name, and when it is back, all goes on."""
    with Cluster(2, transports) as cluster:
        error = long_step(cluster, 60, lambda: cluster.kill(1), transports)
        assert isinstance(error, tf.errors.UnavailableError) and "/task:1" in str(error), error
        cluster.start(1)
        works_again(cluster)
        start = time.monotonic()
        error = long_step(cluster, 60, lambda: cluster.tasks[1].send_signal(signal.SIGSTOP), transports)
        assert isinstance(error, tf.errors.UnavailableError) and "/task:1" in str(error), error
        assert time.monotonic() - start < 10 * LEASE
        cluster.tasks[1].send_signal(signal.SIGCONT)
        works_again(cluster)
        # The receiver dies: its clients lose it, and the sender goes on.
        try:
            long_step(cluster, 60, lambda: cluster.kill(0), transports)
        except tf.errors.OpError:
            pass
        cluster.start(0)
        works_again(cluster)


def cancelled_steps(transports):
    """Steps whose time is over in mid-transfer leave nothing behind that disturbs others."""
    with Cluster(2, transports) as cluster, tf.Graph().as_default():
        fill, sums, wanted = crossing(64 * MB)
        with cluster.session() as session:
            session.run(fill)
            np.testing.assert_array_equal(session.run(sums), wanted)
            late = 0
            for milliseconds in 1, 2, 5, 10, 20, 40:
                try:
                    session.run(sums, options=tf.RunOptions(timeout_in_ms=milliseconds))
                except (tf.errors.DeadlineExceededError, tf.errors.CancelledError):
                    late += 1
            assert late, "no step was late"
            for _ in range(3):
                np.testing.assert_array_equal(session.run(sums), wanted)


def collectives(transports):
    count, tasks = 4 * MB, 3
    with Cluster(tasks, transports) as cluster, tf.Graph().as_default():
        ends = []
        for i in range(tasks):
            with on(i):
                x = tf.range(count) * (i + 1)
                x = tf.raw_ops.CollectiveReduce(
                    input=x, group_size=tasks, group_key=1, instance_key=1, merge_op="Add", final_op="Id", subdiv_offsets=[0]
                )
                ends.append(tf.reduce_sum(tf.cast(x, tf.int64)))
        with cluster.session() as session:
            for _ in range(4):
                assert session.run(ends) == [6 * (count * (count - 1) // 2)] * tasks
            before = cluster.bytes_in(0)
            session.run(ends)
            assert cluster.bytes_in(0) - before < MB


EAGER = """
import sys
import numpy as np
import runnel.v2 as tf

size, addresses = int(sys.argv[1]), sys.argv[2:]
tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({"worker": addresses}))
for _ in range(4):
    with tf.device("/job:worker/task:1"):
        x = tf.range(size // 4) + 1
    with tf.device("/job:worker/task:0"):
        total = tf.reduce_sum(tf.cast(x, tf.int64))
    assert int(total) == (size // 4) * (size // 4 + 1) // 2, total
"""


def eager_clients():
    """Contexts have connections of their own: how much goes over them shows in what the sender's port has sent."""
    size, sent = 16 * MB, {}
    for options in (), ("--wire", "ucx"):
        with Cluster(2, "tcp", options=options) as cluster:
            addresses = ["127.0.0.1:%d" % port for port in cluster.ports]
            subprocess.run([sys.executable, "-c", EAGER, str(size), *addresses], check=True, env={**os.environ, "PYTHONPATH": sys.path[0]})
            sent[options] = status(cluster.ports[1])["port"]["out"]
    # The first value finds the way.
    assert sent[()] > 4 * size and sent["--wire", "ucx"] < 3 * size, sent


STRATEGY = """
import runnel.v2 as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
for _ in range(3):
    total = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.ones([2 << 20])), axis=None)
    assert total.shape == [2 << 20] and float(total[-1]) == 2.0, total
"""


def strategies():
    """The rpc_layer of TF_CONFIG is the protocol of the servers of a strategy's processes."""
    for layer, is_known in ("grpc+ucx", True), ("grpc+pigeon", False):
        config = {"cluster": {"worker": ["127.0.0.1:%d" % port for port in free_ports(2)]}, "rpc_layer": layer}
        environments = [
            {**os.environ, "PYTHONPATH": sys.path[0], "TF_CONFIG": json.dumps({**config, "task": {"type": "worker", "index": i}})} for i in range(2)
        ]
        command = [sys.executable, "-c", STRATEGY]
        tasks = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for environment in environments]
        for task in tasks:
            errors = task.communicate()[1]
            assert (task.returncode == 0) == is_known and (is_known or "NotFoundError" in errors), errors


def clusters_with_certificates():
    with tempfile.TemporaryDirectory() as folder:
        cluster = "worker=127.0.0.1:%d" % free_ports(1)[0]
        subprocess.run([RUNNEL, "cert", "--dir", folder, "--cluster", cluster], check=True, stdout=subprocess.DEVNULL)
        files = ["--tls-cert", folder + "/worker-0.pem", "--tls-key", folder + "/worker-0-key.pem", "--tls-ca", folder + "/ca.pem"]
        for options, environment, said in (
            ([], {"RUNNEL_WIRE": "ucx"}, "RUNNEL_WIRE=ucx is ignored"),
            (["--wire", "ucx"], {}, "does not encrypt them"),
        ):
            command = [RUNNEL, "server", "--cluster", cluster, *files, *options]
            with subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as task:
                assert task.stdout.readline().startswith("grpcs://")
                task.terminate()
                log = task.communicate()[1]
            assert said in log, log


def options():
    run = subprocess.run([RUNNEL, "server", "--cluster", "worker=127.0.0.1:1", "--wire", "string"], capture_output=True, text=True)
    assert run.returncode and "--wire is grpc or ucx, not 'string'" in run.stderr, run
    logs = values_cross("tcp", options=(), each={i: ((), {"RUNNEL_WIRE": "ucx"}) for i in range(2)})
    for i, log in enumerate(logs):
        assert log.count("UCX") == 1 and "large tensors of /job:worker/replica:0/task:%d come by UCX" % (1 - i) in log, log


def servers_of_programs():
    """The protocol of a ServerDef: two servers in this process, one of which is the master."""
    os.environ["UCX_TLS"] = "tcp"
    ports = free_ports(2)
    spec = {"worker": ["127.0.0.1:%d" % port for port in ports]}
    servers = [tf.train.Server(spec, job_name="worker", task_index=i, protocol="grpc+ucx") for i in range(2)]
    with tf.Graph().as_default():
        fill, sums, wanted = crossing(8 * MB)
        with tf.Session(servers[0].target) as session:
            session.run(fill)
            for _ in range(5):
                np.testing.assert_array_equal(session.run(sums), wanted)
            before = received(ports[0])
            np.testing.assert_array_equal(session.run(sums), wanted)
            assert received(ports[0]) - before < MB
    del servers
    try:
        tf.train.Server(spec, job_name="worker", task_index=0, protocol="grpc+pigeon")
        raise AssertionError("an unknown protocol was accepted")
    except tf.errors.NotFoundError:
        pass


try:
    ctypes.CDLL("libucp.so.0")
except OSError as error:
    print("UCX is not installed (Debian: libucx0): %s" % error)
    sys.exit(77)

TESTS = {
    "values": lambda: [values_cross(transports) for transports in ("tcp", "shm,self", "posix,self", "all")],
    "devices": devices,
    "small": small_values_stay_in_responses,
    "options": options,
    "fallback": peers_without_it,
    "tls": clusters_with_certificates,
    "cancelled": lambda: [cancelled_steps(transports) for transports in ("tcp", "shm,self")],
    "collectives": lambda: [collectives(transports) for transports in ("tcp", "shm,self")],
    "eager": eager_clients,
    "strategies": strategies,
    "deaths": lambda: [peers_that_die(transports) for transports in ("tcp", "shm,self")],
    "servers": servers_of_programs,
}
for name in sys.argv[2:] or TESTS:
    start = time.monotonic()
    TESTS[name]()
    print("%s: %.1f s" % (name, time.monotonic() - start), flush=True)
