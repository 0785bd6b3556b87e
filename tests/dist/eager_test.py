#!/usr/bin/env python3
"""Eager clusters of Runnel and stock TensorFlow: eager_test.py RUNNEL CLIENT PART

PART is "stock": stock's client on our servers; "ours": CLIENT (eager_run.c) on stock's servers; "mixed": both clients on
one server of each kind; "strategy": stock's ParameterServerStrategy on our servers; or "limits": how a server answers
invalid messages, and closes contexts that are no longer used.
"""

import json
import os
import signal
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_ports  # noqa: E402
from support.stock import Server  # noqa: E402

RUNNEL, CLIENT, PART, SPANS = sys.argv[1:5]
W0, W1 = "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"


class Cluster:
    """Two tasks of job worker, each of a kind: "runnel" or "stock"."""

    def __init__(self, *kinds):
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self.tasks = [self.start(i, kind) for i, kind in enumerate(kinds)]
        for task in self.tasks:
            task.stdout.readline()  # it is ready

    def start(self, index, kind):
        if kind == "runnel":
            # The client is no task of the cluster, and functions over several tasks fetch from it.
            command = [RUNNEL, "server", "--cluster", "worker=" + "|".join(self.addresses), "--job", "worker",
                       "--task", str(index), "--allow", "all"]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return Server(json.dumps({"worker": self.addresses}), "worker", index)

    def close(self):
        for task in self.tasks:
            task.send_signal(signal.SIGKILL)
            task.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(cluster):
    import tensorflow as tf
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({"worker": cluster.addresses}))
    return tf


def check_ops(tf):
    import numpy as np
    names = [device.name for device in tf.config.list_logical_devices()]
    assert names == ["/device:CPU:0", W0 + "/device:CPU:0", W1 + "/device:CPU:0"], names
    with tf.device(W0):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        b = a @ a
    assert b.device == W0 + "/device:CPU:0" and (b.numpy() == [[7, 10], [15, 22]]).all()
    with tf.device(W1):
        c = b + 1.0  # from task to task
    assert c.device == W1 + "/device:CPU:0" and (c.numpy() == b.numpy() + 1).all()
    large = np.arange(1 << 20, dtype=np.float32)
    with tf.device(W1):
        assert (tf.reverse(tf.constant(large) * 2.0, [0]).numpy() == large[::-1] * 2).all()
        assert (tf.strings.join([tf.constant(["a", "b"]), "c"]).numpy() == [b"ac", b"bc"]).all()
        assert (tf.concat([tf.range(3), tf.shape(c)], 0).numpy() == [0, 1, 2, 2, 2]).all()
        parts = tf.split(tf.range(6), 3)
    assert [part.numpy().tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert (b - c).numpy().tolist() == [[-1, -1], [-1, -1]]  # here


def check_variables(tf):
    with tf.device(W1):
        v = tf.Variable([1.0, 2.0])
    assert v.device == W1 + "/device:CPU:0", v.device
    v.assign_add([1.0, 1.0])
    assert v.numpy().tolist() == [2, 3]
    with tf.device(W0):
        assert (v * 2.0).numpy().tolist() == [4, 6]
    with tf.GradientTape() as tape:
        with tf.device(W1):
            loss = tf.reduce_sum(v * v)
    v.assign_sub(0.5 * tape.gradient(loss, v))
    assert v.numpy().tolist() == [0, 0]
    return v


def check_functions(tf, v):
    @tf.function
    def here(x):
        return tf.nn.relu(x) + v

    v.assign([1.0, 2.0])
    with tf.device(W1):
        result = here(tf.constant([-1.0, 2.0]))
    assert result.numpy().tolist() == [1, 4] and result.device == W1 + "/device:CPU:0"

    @tf.function
    def over_tasks(x):
        with tf.device(W0):
            y = x * 2.0
        with tf.device(W1):
            return y + v

    assert over_tasks(tf.constant([1.0, 2.0])).numpy().tolist() == [3, 6]  # the client cuts it

    @tf.function
    def loop(n):
        total = tf.constant(0.0)
        while tf.cast(n, tf.float32) > total:
            v.assign_add([1.0, 1.0])
            total += 1.0
        return total

    with tf.device(W1):
        assert loop(tf.constant(5)).numpy() == 5
    assert v.numpy().tolist() == [6, 7]
    for i in range(20):  # each is another function, registered and removed
        with tf.device(W0):
            assert tf.function(lambda x, i=i: x + float(i))(tf.constant(1.0)).numpy() == 1 + i


def check_functions_of_tasks(tf, v):
    """A task that is asked to run a function over several tasks cuts it itself."""
    @tf.function
    def over_tasks(x):
        with tf.device(W0):
            y = x * 2.0
        with tf.device(W1):
            z = y + v
        return z * 10.0

    v.assign([1.0, 2.0])
    for _ in range(3):
        with tf.device(W0):
            assert over_tasks(tf.constant([1.0, 2.0])).numpy().tolist() == [30, 60]

    @tf.function
    def train(x):  # what a parameter server's client asks a worker for
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v - x) ** 2)
        v.assign_sub(0.5 * tape.gradient(loss, v))
        return loss

    @tf.function
    def loop(n):
        for i in tf.range(n):
            v.assign_add([1.0, tf.cast(i, tf.float32)])
        return v.read_value()

    with tf.device(W0):
        v.assign([0.0, 0.0])
        assert loop(tf.constant(4)).numpy().tolist() == [4, 6]
        v.assign([1.0, 2.0])
        assert train(tf.constant([3.0, 3.0])).numpy() == 5
        assert train(tf.constant([3.0, 3.0])).numpy() == 0
    assert v.numpy().tolist() == [3, 3]


def check_errors(tf):
    for bad in (lambda: tf.linalg.inv(tf.zeros([2, 2])), lambda: tf.zeros([2, 3]) @ tf.zeros([2, 3])):
        try:
            with tf.device(W0):
                bad().numpy()
            raise AssertionError("no error")
        except tf.errors.InvalidArgumentError as error:
            words = ("not invertible", "size-incompatible", "Dimensions must be equal")  # the last are its own
            assert any(word in str(error) for word in words), error
        with tf.device(W0):
            assert tf.constant(1.0).numpy() + 1 == 2  # the context goes on


def stock():
    with Cluster("runnel", "runnel") as cluster:
        tf = connect(cluster)
        check_ops(tf)
        v = check_variables(tf)
        check_functions(tf, v)
        check_errors(tf)
        check_functions_of_tasks(tf, v)
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({"worker": cluster.addresses}))
        check_ops(tf)  # a second time, in new contexts


def run_ours(cluster, *more, client=CLIENT, **environment):
    done = subprocess.run([client, *cluster.addresses, *more], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, **environment))
    assert done.returncode == 0, done.stderr


def ours():
    for kind in ("stock", "runnel"):
        with Cluster(kind, kind) as cluster:
            run_ours(cluster)
            run_ours(cluster, client=SPANS)


def mixed():
    for kinds in (("runnel", "stock"), ("stock", "runnel")):
        with Cluster(*kinds) as cluster:
            run_ours(cluster)
            run_ours(cluster, client=SPANS)
            if kinds[0] == "runnel":
                tf = connect(cluster)
                check_ops(tf)
                v = check_variables(tf)
                check_functions(tf, v)
                check_functions_of_tasks(tf, v)


def strategy():
    """Functions that a coordinator has workers run, with variables on parameter servers."""
    import json
    jobs = {"worker": 2, "ps": 2, "chief": 1}
    addresses = iter([f"127.0.0.1:{port}" for port in free_ports(5)])
    spec = {job: [next(addresses) for _ in range(count)] for job, count in jobs.items()}
    tasks = [(job, index) for job in ("worker", "ps") for index in range(2)]
    servers = [subprocess.Popen([RUNNEL, "server", "--cluster", json.dumps(spec), "--job", job, "--task", str(index)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for job, index in tasks]
    for server in servers:
        server.stdout.readline()
    os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": {"type": "chief", "index": 0}})
    try:
        import tensorflow as tf
        parameters = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        coordinator = tf.distribute.coordinator.ClusterCoordinator(parameters)
        with parameters.scope():
            v, scale = tf.Variable([0.0, 0.0]), tf.Variable(1.0)
        assert v.device != scale.device and "/job:ps/" in v.device

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((v - x) ** 2) * scale
            v.assign_sub(0.1 * tape.gradient(loss, v))

        for _ in range(40):
            coordinator.schedule(step, args=(tf.constant([1.0, 2.0]),))
        coordinator.join()
        for _ in range(20):  # one by one: the last of those may have added a gradient of long ago
            coordinator.schedule(step, args=(tf.constant([1.0, 2.0]),))
            coordinator.join()
        assert abs(v.numpy() - [1, 2]).max() < 0.01, v.numpy()
        elements = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(10).repeat()))
        element = tf.function(lambda it: next(it))  # pylint: disable=unnecessary-lambda
        values = [coordinator.schedule(element, args=(elements,)).fetch() for _ in range(6)]
        assert set(values) <= set(range(6)) and values.count(0) <= 2, values
    finally:
        for server in servers:
            server.kill()


def limits():
    import grpc

    def number(field, value):  # fixed64
        return bytes([field << 3 | 1]) + value.to_bytes(8, "little")

    def nested(field, data):
        length, out = len(data), b""
        while length >= 128:
            out += bytes([length & 127 | 128])
            length >>= 7
        return bytes([field << 3 | 2]) + out + bytes([length]) + data

    with Cluster("runnel", "runnel") as cluster:
        channel = grpc.insecure_channel(cluster.addresses[0])

        def call(method, data):
            ask = channel.unary_unary("/tensorflow.eager.EagerService/" + method, lambda x: x, lambda x: x)
            try:
                return ask(data, timeout=10), None
            except grpc.RpcError as error:
                return None, error

        def expect(code, method, data):
            error = call(method, data)[1]
            assert error and error.code() == code, (method, error)
            return error

        expect(grpc.StatusCode.ABORTED, "Enqueue", number(1, 99))
        expect(grpc.StatusCode.ABORTED, "KeepAlive", number(1, 99))
        expect(grpc.StatusCode.UNIMPLEMENTED, "NoSuchMethod", b"")
        assert call("CreateContext", number(7, 5) + bytes([3 << 3, 0xd8, 4]))[0]  # kept for 600 s
        assert call("KeepAlive", number(1, 5))[1] is None
        for junk in (b"\xff", b"\x1a\x7f", nested(3, b"\x12\x05\x0a"), nested(3, nested(2, b"\x52\x03\x0a\x7f"))):
            assert call("Enqueue", number(1, 5) + junk)[1] is not None, junk
        operation = nested(2, b"Nonsense")
        expect(grpc.StatusCode.NOT_FOUND, "Enqueue", number(1, 5) + nested(3, nested(2, operation)))
        # A Send that lacks everything, a packed handle, a part of no function.
        expect(grpc.StatusCode.INVALID_ARGUMENT, "Enqueue",
               number(1, 5) + nested(3, nested(2, nested(2, b"_Send"))))
        expect(grpc.StatusCode.INVALID_ARGUMENT, "Enqueue", number(1, 5) + nested(3, nested(7, b"")))
        expect(grpc.StatusCode.INTERNAL, "RunComponentFunction", number(1, 5) + nested(2, nested(2, b"none")))
        assert call("KeepAlive", number(1, 5))[1] is None
        # A context that nobody asks for goes; so does one whose client waits in it.
        keep = bytes([3 << 3, 1])  # a second
        assert call("CreateContext", number(7, 4) + keep)[0]
        stream = channel.stream_stream("/tensorflow.eager.EagerService/StreamingEnqueue", lambda x: x, lambda x: x)
        assert call("CreateContext", number(7, 6) + keep)[0]
        answers = stream(iter([number(1, 6) + nested(3, nested(6, b""))]))
        assert next(answers) == b"\x0a\x00"
        for context in (4, 6):
            for seconds in (2.5, 5, 10, 20):  # asking keeps it, so a busy server is left alone for longer each time
                time.sleep(seconds)
                error = call("KeepAlive", number(1, context))[1]
                if error:
                    break
            assert error and error.code() == grpc.StatusCode.ABORTED, error
        assert call("CloseContext", number(1, 5))[1] is None
        started = time.time()
        cluster.tasks[0].send_signal(signal.SIGTERM)
        cluster.tasks[0].wait(timeout=20)
        assert time.time() - started < 10
    with Cluster("runnel", "runnel") as cluster:  # a task that is stopped
        run_ours(cluster, str(cluster.tasks[1].pid), RUNNEL_LEASE="1")


if __name__ == "__main__":
    {"stock": stock, "ours": ours, "mixed": mixed, "strategy": strategy, "limits": limits}[PART]()
    print("ok", flush=True)
    os._exit(0)  # stock's client waits for servers that are gone
