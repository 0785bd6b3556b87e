#!/usr/bin/env python3
"""Leases between Runnel and stock TensorFlow tasks: failure_stock_test.py RUNNEL

A step that takes several lease periods is not a failure: the master probes the tasks that run it, and tasks
of both kinds answer. A stopped stock parameter server is a failure. A Runnel server that is killed and
restarted takes part in the next steps of the same session.
"""

import concurrent.futures
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
import tensorflow as stock  # noqa: E402
from support.ports import free_ports  # noqa: E402

tf = stock.compat.v1
RUNNEL = sys.argv[1]
LEASE = 1
PS = "/job:ps/task:0"
CONFIG = tf.ConfigProto(operation_timeout_in_ms=30000)


class Cluster:
    """A worker, which is the master, and a parameter server, each of the make that is said."""

    def __init__(self, worker, ps):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self.spec = json.dumps({"worker": addresses[:1], "ps": addresses[1:]})
        self.target = "grpc://" + addresses[0]
        self.makes = {"worker": worker, "ps": ps}
        self.tasks = {}

    def start(self, job):
        if self.makes[job] == "runnel":
            command = [RUNNEL, "server", "--cluster", self.spec, "--job", job, "--task", "0", "--lease", str(LEASE)]
            self.tasks[job] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        else:
            self.tasks[job] = Server(self.spec, job, 0)

    def __enter__(self):
        for job in self.makes:
            self.start(job)
        for task in self.tasks.values():
            assert task.stdout.readline().startswith("grpc://"), "a task did not start"
        return self

    def kill(self, job):
        self.tasks[job].kill()
        self.tasks[job].wait()

    def __exit__(self, *_):
        for task in self.tasks.values():
            task.send_signal(signal.SIGCONT)
            task.kill()
            task.wait()


def waits_for_long(worker, ps):
    """A dequeue that waits for eight leases, then gets its element."""
    with Cluster(worker, ps) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            queue = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="queue")
        put, get = queue.enqueue([7.0]), queue.dequeue() + 1
        with tf.Session(cluster.target, config=CONFIG) as session, tf.Session(cluster.target, config=CONFIG) as other:
            timer = threading.Timer(8 * LEASE, lambda: other.run(put))
            timer.start()
            began = time.time()
            assert session.run(get) == 8.0
            assert time.time() - began > 6 * LEASE, "it did not wait"
            timer.join()


def stops(ps):
    """A parameter server that is stopped: the error names it within the lease."""
    with Cluster("runnel", ps) as cluster, tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            y = x + 1
        with tf.Session(cluster.target, config=CONFIG) as session:
            assert session.run(y, {x: 1}) == 2
            cluster.tasks["ps"].send_signal(signal.SIGSTOP)
            time.sleep(0.1)  # until all of its threads have stopped
            began = time.time()
            try:
                session.run(y, {x: 1})
                raise AssertionError("a step ran on a stopped task")
            except tf.errors.UnavailableError as error:
                assert "/job:ps/replica:0/task:0" in str(error), error
            took = time.time() - began
            assert took < 10 * LEASE, f"heard after {took:.2f} s"  # not after the time-out of the call
            cluster.tasks["ps"].send_signal(signal.SIGCONT)
            time.sleep(0.5)
            assert session.run(y, {x: 2}) == 3
            return took


def comes_back(ps):
    """Killed and started again: an error or two, then the same session goes on."""
    with Cluster("runnel", ps) as cluster, tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            y = x + 1
        with tf.Session(cluster.target, config=CONFIG) as session:
            assert session.run(y, {x: 1}) == 2
            cluster.kill("ps")
            cluster.start("ps")
            assert cluster.tasks["ps"].stdout.readline().startswith("grpc://")
            errors = 0
            while True:
                try:
                    assert session.run(y, {x: 5}) == 6
                    break
                except (tf.errors.AbortedError, tf.errors.UnavailableError):
                    errors += 1
                    assert errors < 3, "the session does not go on"


def main():
    tf.disable_eager_execution()
    # These mostly wait, each for its own cluster: together.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        makes = (("runnel", "stock"), ("stock", "runnel"), ("runnel", "runnel"))
        for (worker, ps), waiting in [(pair, pool.submit(waits_for_long, *pair)) for pair in makes]:
            waiting.result()
            print("ok: a step that waits,", worker, ps, flush=True)
    for ps in ("stock", "runnel"):
        print(f"ok: {ps} stopped, heard after {stops(ps):.2f} s", flush=True)
        comes_back(ps)
        print(f"ok: {ps} started again", flush=True)


if __name__ == "__main__":
    main()
