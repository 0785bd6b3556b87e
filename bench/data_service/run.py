#!/usr/bin/env python3
"""Elements per second of the tf.data service: our servers and stock's, with our client and stock's.

    bench/data_service/run.py [--build build/release] [--seconds 3] [--rounds 3]

One dispatcher and one worker on loopback. `small`: scalars; `large`: float vectors of 256 KiB, without compression;
`compressed`: the same with compression. Prints the median of the rounds, which take turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
parser = argparse.ArgumentParser()
parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
parser.add_argument("--stock", default=os.path.join(ROOT, "build", "venv", "bin", "python"))
parser.add_argument("--seconds", type=float, default=3)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--client", help="for its own processes")
parser.add_argument("--target", help="for its own processes")
options = parser.parse_args()
CASES = ("small", "large", "compressed")


def client():
    """Reads from the service for some seconds per case and prints elements per second."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if options.client == "ours":
        import runnel.v2 as tf
    else:
        import tensorflow as tf
    for case in CASES:
        made = tf.data.Dataset.range(1 << 40)
        if case != "small":
            made = tf.data.Dataset.from_tensors(tf.zeros([1 << 16])).repeat()
        distribute = tf.data.experimental.service.distribute
        read = iter(made.apply(distribute("parallel_epochs", options.target, compression="AUTO" if case == "compressed" else None)))
        for _ in range(20):
            next(read)
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < options.seconds:
            for _ in range(10):
                next(read)
            count += 10
        print(case, count / (time.perf_counter() - begun), flush=True)
        del read


STOCK_SERVERS = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
s = tf.data.experimental.service
d = s.DispatchServer()
w = s.WorkerServer(s.WorkerConfig(d.target.split("://")[1]))
print(d.target, flush=True)
sys.stdin.read()
"""


def servers(which):
    """Starts a dispatcher and a worker; returns the target and the processes."""
    if which == "stock":
        process = subprocess.Popen([options.stock, "-c", STOCK_SERVERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        return process.stdout.readline().strip(), [process]
    runnel = os.path.join(options.build, "cli", "runnel")
    first = subprocess.Popen([runnel, "data-server"], stdout=subprocess.PIPE, text=True)
    address = first.stdout.readline().strip()
    second = subprocess.Popen([runnel, "data-server", "--dispatcher", address], stdout=subprocess.PIPE, text=True)
    second.stdout.readline()
    return "grpc://" + address, [second, first]


def measure(server, reader):
    target, processes = servers(server)
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), RUNNEL_BUILD=os.path.abspath(options.build))
    command = [options.stock, os.path.abspath(__file__), "--client", reader, "--target", target, "--seconds", str(options.seconds)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    for process in processes:
        process.terminate()
        process.wait()
    if out.returncode != 0:
        sys.exit(out.stderr[-3000:])
    return {line.split()[0]: float(line.split()[1]) for line in out.stdout.splitlines()}


def main():
    pairs = [(server, reader) for server in ("stock", "ours") for reader in ("stock", "ours")]
    found = {pair: {case: [] for case in CASES} for pair in pairs}
    for _ in range(options.rounds):
        for pair in pairs:
            for case, rate in measure(*pair).items():
                found[pair][case].append(rate)
    print("%-12s %-12s" % ("servers", "client"), *("%12s" % case for case in CASES))
    for pair, rates in found.items():
        print("%-12s %-12s" % pair, *("%12.0f" % statistics.median(rates[case]) for case in CASES))


client() if options.client else main()
