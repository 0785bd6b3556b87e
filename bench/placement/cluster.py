#!/usr/bin/env python3
"""Placement by cost over two tasks that talk over the loopback interface.

    PYTHONPATH=python python3 bench/placement/cluster.py [--steps N]

Both servers are in this process, and nodes sleep, as in emulated.py. Measures the link, places each graph
for it, and prints a step on the first task, cut evenly, as placed, and as the forecast says.
"""

import argparse
import socket
import statistics
import sys
import tempfile
import time

import emulated
import runnel as tf
from runnel import placement

TASKS = 2
CASES = {
    "two chains": lambda: emulated.chains([4, 4]),
    "short chains": lambda: emulated.chains([1, 1], 10),
    "training": lambda: emulated.training(6),
}


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def device(task):
    return "/job:worker/replica:0/task:%d/device:CPU:0" % task


def start():
    cluster = tf.train.ClusterSpec({"worker": [free_address() for _ in range(TASKS)]})
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=TASKS)
    return [tf.train.Server(cluster, job_name="worker", task_index=i, config=config) for i in range(TASKS)]


def timed(target, graph_def, fetch, steps):
    times = []
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.Session(target, graph=graph) as session:
            session.run(fetch)
            for _ in range(steps):
                begin = time.perf_counter()
                session.run(fetch)
                times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def measure_link(target, steps):
    """Microseconds and megabytes per second: steps that send a little and a lot, less those that do not."""
    extra = []
    for count in (1, 1 << 20):
        with tf.Graph().as_default() as graph:
            with tf.device(device(0)):
                values = tf.fill([count], tf.random_uniform([]))
                near = tf.reduce_sum(values)
            with tf.device(device(1)):
                far = tf.reduce_sum(values)
        both = [timed(target, graph.as_graph_def(), fetch.name, steps) for fetch in (near, far)]
        extra.append(both[1] - both[0])
    # The first task tells the other to begin, is asked, sends, and is told of the end.
    latency = max(extra[0] * 1e3 / 4, 20)
    return latency, 4.2 / max((extra[1] - extra[0]) / 1e3, 1e-4)


def copy_with(graph, choose):
    copy = graph.as_graph_def()
    for node in copy.node:
        node.device = choose(node.name)
    return copy


def run_case(target, name, link, steps):
    with tf.Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        fetch = CASES[name]()
        order = [op.name for op in graph.get_operations() if op.type == "PyFunc"]
        with tf.Session(graph=graph, config=emulated.config(1)) as session:
            costs = placement.measure(session, fetch, steps=7, folder=folder)
        placed, found = placement.place(graph, fetch, [device(i) for i in range(TASKS)], costs, link=link)
    halves = {one: device(i * TASKS // len(order)) for i, one in enumerate(order)}
    graphs = [copy_with(graph, lambda _: device(0)), copy_with(graph, lambda one: halves.get(one, "")), placed]
    times = [timed(target, one, fetch.name, steps) for one in graphs]
    forecast = found["found_ns"] / 1e6
    return times + [forecast, 100 * (forecast / times[2] - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=9)
    steps = parser.parse_args().steps
    servers = start()  # they stop when they are dropped
    target = servers[0].target
    link = measure_link(target, steps)
    print("link: %.0f us, %.0f MB/s" % link)
    print("%-18s %8s %8s %8s %9s %7s" % ("ms per step", "one task", "even cut", "placed", "forecast", "error"))
    for name in CASES:
        print("%-18s %8.1f %8.1f %8.1f %9.1f %6.1f%%" % tuple([name] + run_case(target, name, link, steps)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
