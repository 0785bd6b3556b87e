"""Tensors by UCX beside ucx_perftest (Debian's ucx-utils), by turns: run.py [TURNS], with BUILD in the environment.

Prints the best of all turns: of the wire alone, between two processes, and of steps that move a tensor between two tasks,
beside the ordinary connection. Steps need the Python client of BUILD (RUNNEL_BUILD is set).
"""

import os
import shutil
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build", "release")))
LARGE = 100_000_000
TRANSPORTS = ("tcp", "shm,self", "posix,self")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environment(transports):
    return {**os.environ, "UCX_TLS": transports, "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}


def perftest(transports, *options):
    """The fields of the last line: the latency in us is [3], the bandwidth in MiB per s [5]."""
    command = ["ucx_perftest", "-f", "-v", "-p", str(free_port()), *options]
    with subprocess.Popen(command, env=environment(transports), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(0.5)
        run = subprocess.run([*command, "127.0.0.1"], env=environment(transports), capture_output=True, text=True, check=True)
        server.wait()
    return [float(field) for field in run.stdout.strip().splitlines()[-1].split(",")]


def ours(transports, *arguments):
    program = os.path.join(BUILD, "bench", "wires", "bench_wires")
    run = subprocess.run([program, *map(str, arguments)], env=environment(transports), capture_output=True, text=True, check=True)
    return float(run.stdout)


def step(transports, *options):
    """MB per s of a step whose only work is to move a variable."""
    import runnel as tf

    ports = [free_port() for _ in range(2)]
    cluster = "worker=" + "|".join("127.0.0.1:%d" % port for port in ports)
    command = [os.path.join(BUILD, "cli", "runnel"), "server", "--cluster", cluster, "--job", "worker", "--no-loans", *options]
    tasks = [
        subprocess.Popen([*command, "--task", str(i)], env=environment(transports), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for i in range(2)
    ]
    for task in tasks:
        task.stdout.readline()
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:1/cpu:0"):
            there = tf.get_variable("v", [LARGE // 4], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0/cpu:0"):
            here = tf.raw_ops.Identity(input=there)
        with tf.Session("grpc://127.0.0.1:%d" % ports[0]) as session:
            session.run(there.initializer)
            best = 1e9
            for _ in range(12):
                before = time.perf_counter()
                session.run(here.op)
                best = min(best, time.perf_counter() - before)
    for task in tasks:
        task.terminate()
    for task in tasks:
        task.wait()
    return LARGE / best / 1e6


def main():
    if not shutil.which("ucx_perftest"):
        print("run.py needs ucx_perftest (Debian: ucx-utils)", file=sys.stderr)
        sys.exit(77)
    os.environ["RUNNEL_BUILD"] = BUILD
    sys.path.insert(0, os.path.join(ROOT, "python"))
    rates, waits, steps = {}, {}, {}

    def better(table, key, value, choose):
        table[key] = choose(table[key], value) if key in table else value

    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        for transports in TRANSPORTS:
            large = ("-t", "tag_bw", "-s", str(LARGE), "-n", "10", "-w", "2")
            small = ("-t", "tag_lat", "-s", "8", "-n", "10000", "-w", "1000")
            better(rates, (transports, "UCX"), perftest(transports, *large)[5] * 1.048576, max)
            better(rates, (transports, "ours"), ours(transports, LARGE, 12), max)
            better(waits, (transports, "UCX"), perftest(transports, *small)[3], min)
            better(waits, (transports, "UCX asleep"), perftest(transports, *small, "-E", "sleep")[3], min)
            better(waits, (transports, "ours"), ours(transports, 8, 10000), min)
            better(steps, transports, step(transports, "--wire", "ucx"), max)
        better(steps, "grpc", step("tcp"), max)
    for transports in TRANSPORTS:
        ucx, own = rates[transports, "UCX"], rates[transports, "ours"]
        print("%-10s 100 MB: ucx_perftest %6.0f MB/s, ours %6.0f, ratio %.2f" % (transports, ucx, own, own / ucx))
        spins, sleeps, own = (waits[transports, who] for who in ("UCX", "UCX asleep", "ours"))
        print(
            "%-10s 8 bytes: ucx_perftest %.2f us (asleep %.2f), ours %.2f, ratios %.2f and %.2f"
            % (transports, spins, sleeps, own, own / spins, own / sleeps)
        )
        print("%-10s steps of 100 MB: %.0f MB/s" % (transports, steps[transports]))
    print("grpc       steps of 100 MB: %.0f MB/s" % steps["grpc"])


main()
