#!/usr/bin/env python3
"""Replicated training with stock TensorFlow's client: replicas_test.py RUNNEL DIGITS DIGITS_STOCK FOLDER

Workers of stock and ours train one model together, with either as the chief. Checkpoints of our chief have
the names of stock's graph. If a parameter server is killed and restarted, stock's MonitoredTrainingSession
and ours lose only the time to restore it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402
from support.ports import free_ports  # noqa: E402

tf = stock.compat.v1
RUNNEL, DIGITS, DIGITS_STOCK, FOLDER = sys.argv[1:5]


class Cluster:
    """Processes of a cluster, ended when the block is left."""

    def __init__(self, servers, workers):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(servers + workers)]
        self.text = f"ps={'|'.join(addresses[:servers])},worker={'|'.join(addresses[servers:])}"
        self.processes = []

    def start(self, command, **options):
        process = subprocess.Popen(command, text=True, **options)
        self.processes.append(process)
        return process

    def serve(self, job, task):
        process = self.start([RUNNEL, "server", "--cluster", self.text, "--job", job, "--task",
                              str(task), "--lease", "3"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        assert process.stdout.readline().startswith("grpc://"), f"{job} {task} did not start"
        return process

    def ours(self, task, *options):
        return self.start([DIGITS, "--cluster", self.text, "--job", "worker", "--task", str(task),
                           *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stocks(self, task, *options):
        return self.start([sys.executable, DIGITS_STOCK, "--cluster", self.text, "--task",
                           str(task), *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def finish(process, seconds=120):
    output, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, f"exit {process.returncode}: {output[-2000:]}"
    return output


def together(mode, chief):
    """A worker of each kind; |chief| says whose is task 0."""
    folder = os.path.join(FOLDER, "together")
    shutil.rmtree(folder, ignore_errors=True)
    with Cluster(2, 2) as cluster:
        for task in range(2):
            cluster.serve("ps", task)
        stock_task = 0 if chief == "stock" else 1
        cluster.serve("worker", stock_task)  # ours serves itself
        theirs = cluster.stocks(stock_task, "--dir", folder, "--steps", "600", *mode)
        ours = cluster.ours(1 - stock_task, "--dir", folder, "--steps", "600", *mode)
        outputs = finish(theirs), finish(ours)
    assert "learned" in outputs[0 if chief == "stock" else 1], outputs
    return folder


def sparse_and_synchronous():
    """Stock's synchronous optimizer over a table in parts: gradients of rows, on our servers."""
    with Cluster(2, 1) as cluster, tf.Graph().as_default():
        for job, task in (("ps", 0), ("ps", 1), ("worker", 0)):
            cluster.serve(job, task)
        target = "grpc://" + cluster.text.split("worker=")[1]
        with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:0")):
            step = tf.train.get_or_create_global_step()
            table = tf.get_variable("table", [10, 2], initializer=tf.ones_initializer(),
                                    partitioner=tf.fixed_size_partitioner(2))
            rows = tf.nn.embedding_lookup(table, [1, 7, 7], partition_strategy="div")
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.5), 1, 1)
            train = optimizer.minimize(tf.reduce_sum(rows), global_step=step)
            whole = tf.identity(tf.convert_to_tensor(table))
        hook = optimizer.make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(target, hooks=[hook],
                                               stop_grace_period_secs=2) as session:
            for _ in range(4):
                session.run(train)
            # The chief's thread may just be applying what has come: then step and value do not agree yet.
            deadline = time.time() + 60
            while True:
                at, value = session.run([step, whole])
                want = np.ones((10, 2), "f")
                want[1] -= 0.5 * at
                want[7] -= at
                if at >= 1 and (value == want).all() or time.time() > deadline:
                    break
                time.sleep(0.05)
        assert 1 <= at <= 4, at
        np.testing.assert_array_equal(value, want)


def names_agree(folder):
    found = {name for name, _ in stock.train.list_variables(stock.train.latest_checkpoint(folder))}
    weights = [f"{layer}/{part}" for layer in ("hidden", "out") for part in ("kernel", "bias")]
    slots = [f"{name}/{slot}" for name in weights for slot in ("Adam", "Adam_1")]
    assert found == {"global_step", "beta1_power", "beta2_power", *weights, *slots}, found


def wait_for_checkpoint(folder, seconds=60):
    """Until there is one that is not of the first step."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        names = os.listdir(folder) if os.path.isdir(folder) else []
        steps = [int(name[11:-6]) for name in names if name.endswith(".index")]
        if steps and max(steps) > 1:
            return
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


def lost_server(kind, mode, steps):
    """A parameter server is killed in the middle, and started again."""
    folder = os.path.join(FOLDER, f"lost_{kind}")
    shutil.rmtree(folder, ignore_errors=True)
    with Cluster(2, 2) as cluster:
        servers = [cluster.serve("ps", task) for task in range(2)]
        start = cluster.ours if kind == "ours" else cluster.stocks
        if kind == "stock":
            for task in range(2):
                cluster.serve("worker", task)
        options = ("--dir", folder, "--steps", str(steps), *mode)
        workers = [start(task, *options) for task in range(2)]
        wait_for_checkpoint(folder)
        servers[1].send_signal(signal.SIGKILL)
        servers[1].wait()
        time.sleep(1)
        for worker in workers:
            assert worker.poll() is None, f"a worker ended: {worker.communicate()}"
        cluster.serve("ps", 1)
        begin = time.time()
        outputs = [finish(worker) for worker in workers]
        assert "learned" in outputs[0], outputs
    return time.time() - begin


def main():
    tf.disable_eager_execution()
    os.makedirs(FOLDER, exist_ok=True)
    sparse_and_synchronous()
    print("ok: sparse gradients, synchronous, stock's client", flush=True)
    names_agree(together((), "ours"))
    print("ok: ours is the chief, asynchronous", flush=True)
    names_agree(together(("--sync",), "ours"))
    print("ok: ours is the chief, synchronous", flush=True)
    together(("--sync",), "stock")
    print("ok: stock's is the chief, synchronous", flush=True)
    for kind, mode, steps in (("ours", (), 8000), ("ours", ("--sync",), 4000),
                              ("stock", (), 4000)):
        seconds = lost_server(kind, mode, steps)
        print(f"ok: a lost parameter server, {kind} {' '.join(mode)}: done after {seconds:.1f} s",
              flush=True)
    print("7 passed, 0 failed")


if __name__ == "__main__":
    main()
