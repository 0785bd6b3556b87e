#!/usr/bin/env python3
"""Placement by cost on emulated devices: nodes that sleep, so that a busy machine does not matter.

    PYTHONPATH=python python3 bench/placement/emulated.py [--steps N] [NAME ...]

Every case is a graph of nodes that sleep for a known time, on virtual CPUs of one process. A node sleeps
longer on a slower device. Prints per case: the step on one device, cut evenly, as placed by cost, as the
forecast says, and the error of the forecast.
"""

import argparse
import statistics
import sys
import tempfile
import time

import numpy as np
import runnel as tf
from runnel import placement

SPEEDS = {}  # by node: of the device that it is on now


def sleeper(name, ms):
    def run(*_):
        time.sleep(ms / SPEEDS.get(name, 1.0) / 1e3)
        return np.float32(1)

    return run


def node(name, ms, *inputs):
    return tf.py_func(sleeper(name, ms), list(inputs) or [tf.constant(1.0)], tf.float32, name=name)


def chains(lengths, ms=20):
    """Independent chains between a first and a last node."""
    first = node("first", 5)
    ends = []
    for c, length in enumerate(lengths):
        end = first
        for i in range(length):
            end = node("c%d_%d" % (c, i), ms, end)
        ends.append(end)
    return node("last", 5, *ends)


def bag(times):
    """Independent nodes of different lengths."""
    return node("last", 2, *[node("n%d" % i, ms) for i, ms in enumerate(times)])


def training(layers, forward=8, backward=16, update=8):
    """Layers forward and back; the updates of the layers do not wait for each other."""
    values, updates = [node("input", 2)], []
    for i in range(layers):
        values.append(node("forward%d" % i, forward, values[-1]))
    gradient = node("loss", 4, values[-1])
    for i in reversed(range(layers)):
        updates.append(node("weights%d" % i, backward / 2, gradient, values[i]))
        updates.append(node("update%d" % i, update, updates[-1]))
        gradient = node("backward%d" % i, backward / 2, gradient)
    return node("step", 1, gradient, *updates)


CASES = {
    "two chains": (lambda: chains([4, 4]), [1, 1]),
    "four chains": (lambda: chains([3, 3, 3, 3]), [1, 1, 1, 1]),
    "unequal chains": (lambda: chains([6, 2, 2, 2]), [1, 1]),
    "bag": (lambda: bag([40, 35, 30, 25, 20, 15, 15, 10, 10, 5]), [1, 1, 1]),
    "training": (lambda: training(6), [1, 1]),
    "training, 3 CPUs": (lambda: training(8), [1, 1, 1]),
    "half speed": (lambda: bag([20] * 9), [1, 0.5]),
    "three speeds": (lambda: chains([2] * 7, 15), [1, 0.7, 0.4]),
}


def config(devices):
    made = tf.ConfigProto(device_count={"CPU": devices})
    made.intra_op_parallelism_threads = 1
    made.inter_op_parallelism_threads = devices
    return made


def find_devices(session, fetch):
    """Which device each node runs on, by a traced step."""
    metadata = tf.RunMetadata()
    session.run(fetch, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    found = {}
    for device in metadata.step_stats.dev_stats:
        for entry in device.node_stats:
            found[entry.node_name] = int(device.device.rpartition(":")[2])
    return found


def timed(session, fetch, speeds, steps):
    SPEEDS.clear()
    for name, device in find_devices(session, fetch).items():
        SPEEDS[name] = speeds[device]
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        session.run(fetch)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def cut_evenly(graph, order, count):
    """A copy of the graph with equal numbers of nodes per device, along the step."""
    copy = graph.as_graph_def()
    place = {name: i * count // len(order) for i, name in enumerate(order)}
    for one in copy.node:
        if one.name in place:
            one.device = "/device:CPU:%d" % place[one.name]
    return copy


def run_case(name, steps):
    build, speeds = CASES[name]
    SPEEDS.clear()
    with tf.Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        fetch = build()
        order = [op.name for op in graph.get_operations() if op.type == "PyFunc"]
        with tf.Session(graph=graph, config=config(1)) as session:
            costs = placement.measure(session, fetch, steps=7, folder=folder)
            single = timed(session, fetch, speeds, steps)
        even_def = cut_evenly(graph, order, len(speeds))
        with tf.Graph().as_default() as even_graph:
            tf.import_graph_def(even_def, name="")
            with tf.Session(graph=even_graph, config=config(len(speeds))) as session:
                even = timed(session, even_graph.get_tensor_by_name(fetch.name), speeds, steps)
        devices = ["CPU:%d*%g" % (i, speed) for i, speed in enumerate(speeds)]
        _, found = placement.place(graph, fetch, devices, costs, apart=True)
        asked = placement.options(config(len(speeds)), fetch, costs, threads=1, apart=True, speeds=speeds)
        with tf.Session(graph=graph, config=asked) as session:
            placed = timed(session, fetch, speeds, steps)
    forecast = found["found_ns"] / 1e6
    return single, even, placed, forecast, 100 * (forecast / placed - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    print("%-18s %8s %8s %8s %9s %7s" % ("ms per step", "one CPU", "even cut", "placed", "forecast", "error"))
    worst = 0.0
    for name in arguments.names or CASES:
        row = run_case(name, arguments.steps)
        worst = max(worst, abs(row[-1]))
        print("%-18s %8.1f %8.1f %8.1f %9.1f %6.1f%%" % ((name,) + row), flush=True)
    print("largest error: %.1f %%" % worst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
