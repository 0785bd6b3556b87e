#!/usr/bin/env python3
"""Measures clusters of stock TensorFlow servers and of ours by turns, with stock's Python client and with our C client.

Prints the table with its bars and writes build/bench/cluster.tsv. All tasks are on this machine, one process each.
A figure is the median of the steps of its case, the best of the rounds; figures of memory are those of the process.
"""

import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compare

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from support.ports import free_ports  # noqa: E402
from support.stock import SERVER  # noqa: E402
from support.wire import field  # noqa: E402

MB = 1000 * 1000


class Cluster:
    """One worker, which is the master, and |ps| parameter servers, of stock or of ours."""

    def __init__(self, kind, options, ps=1):
        ports = free_ports(ps + 1)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.spec = json.dumps({"worker": addresses[:1], "ps": addresses[1:]})
        self.target = "grpc://" + addresses[0]
        self.tasks, self.start_seconds = [], 0.0
        for job, index in [("worker", 0)] + [("ps", i) for i in range(ps)]:
            if kind != "stock":
                command = [options.runnel, "server", "--cluster", self.spec, "--job", job, "--task", str(index)]
                command += ["--no-loans"] if kind == "tcp" else []
            else:
                command = [options.python, "-c", SERVER, self.spec, job, str(index)]
            begin = time.monotonic()
            self.tasks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
            if len(self.tasks) == 1:  # alone: how long a task takes to start
                self.expect(self.tasks[0])
                self.start_seconds = time.monotonic() - begin
        for task in self.tasks[1:]:
            self.expect(task)

    @staticmethod
    def expect(task):
        if not task.stdout.readline().startswith("grpc://"):
            sys.exit("cluster.py: a task did not start")

    def worker(self):
        return self.tasks[0].pid

    def ps(self, index=0):
        return self.tasks[1 + index].pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self.tasks:
            task.send_signal(signal.SIGTERM)
        for task in self.tasks:
            try:
                task.wait(10)
            except subprocess.TimeoutExpired:
                task.kill()
                task.wait()


def memory_mib(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


# Graphs, written by stock TensorFlow in a process of its own. Each is a file and what to do with it.


GRAPHS = [f"{kind}_{ps}" for kind in ("null", "dense", "sparse") for ps in (1, 4, 16)] + ["recv", "fetch", "feed", "big"]


def build_graphs(folder, names, quick):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as stock
    stock.compat.v1.disable_eager_execution()
    for name in names:
        build_graph(stock.compat.v1, name, folder, quick)


def build_graph(tf, name, folder, quick):
    kind, _, number = name.partition("_")
    count = int(number or 1)
    scale = 16 if quick else 1
    job = {"name": name, "init": "init", "fetch": "result", "feed": "", "feed_count": 0, "expect": None}
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            with tf.variable_scope(name):  # state belongs to the servers: each case has its own
                result = globals()["graph_" + kind](tf, count, scale, job)
            tf.identity(result, "result")
        tf.group(*[v.initializer for v in tf.global_variables()], name="init")
        job["graph"] = os.path.join(folder, name + ".pb")
        with open(job["graph"], "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
    with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as file:
        json.dump(job, file)


def variable(tf, name, shape, ps):
    with tf.device(f"/job:ps/task:{ps}"):
        return tf.get_variable(name, shape, initializer=tf.ones_initializer(), use_resource=False)


def first(tf, tensor):
    return tf.reshape(tf.slice(tensor, [0], [1]), [])


def graph_null(tf, count, _, job):
    job["expect"] = count
    return tf.add_n([variable(tf, f"v{i}", [], i) for i in range(count)])


def graph_dense(tf, count, scale, job):
    job["expect"] = 16
    size = 25 * MB // 16 // scale
    return tf.add_n([first(tf, variable(tf, f"v{i}", [size], i % count).read_value()) for i in range(16)])


def graph_sparse(tf, count, scale, job):
    job["expect"] = 32
    rows = 2097152 // count // scale
    parts = []
    for i in range(count):
        table = variable(tf, f"t{i}", [rows, 128], i)
        ids = tf.random_uniform([32 // count], 0, rows, tf.int32)
        with tf.device(f"/job:ps/task:{i}"):
            parts.append(tf.gather(table, ids))
    return tf.reduce_sum(tf.concat(parts, 0)[:, 0])


def graph_recv(tf, _, scale, job):
    job["expect"] = 1
    return first(tf, variable(tf, "v", [25 * MB // scale], 0).read_value())


def graph_fetch(tf, _, scale, job):
    job["expect"] = 1
    return tf.get_variable("v", [(32 << 20) // scale], initializer=tf.ones_initializer(), use_resource=False)


def graph_feed(tf, _, scale, job):
    job.update(expect=1, feed="feed/x", feed_count=(32 << 20) // scale, init="")
    return first(tf, tf.placeholder(tf.float32, [None], "x"))


def graph_big(tf, _, scale, job):
    job["expect"] = 1
    return first(tf, variable(tf, "v", [250 * MB // scale], 0).read_value())


# Stock's Python client, in a process of its own: one line of JSON per case.


def python_client(target, seconds, paths):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as stock
    tf = stock.compat.v1
    tf.disable_eager_execution()
    for path in paths:
        with open(path, encoding="ascii") as file:
            job = json.load(file)
        with tf.Graph().as_default() as graph:
            definition = tf.GraphDef()
            with open(job["graph"], "rb") as file:
                definition.ParseFromString(file.read())
            tf.import_graph_def(definition, name="")
            feeds = {job["feed"] + ":0": np.ones(job["feed_count"], "f")} if job["feed"] else None
            with tf.Session(target) as session:
                if job["init"]:
                    session.run(graph.get_operation_by_name(job["init"]))
                fetch = graph.get_tensor_by_name(job["fetch"] + ":0")
                for _ in range(3):
                    session.run(fetch, feeds)
                times, start = [], time.perf_counter()
                last = start
                while len(times) < 3 or last - start < seconds:
                    value = session.run(fetch, feeds)
                    now = time.perf_counter()
                    times.append(now - last)
                    last = now
                value = float(np.ravel(value)[0])
                assert job["expect"] is None or abs(value - job["expect"]) < 1e-3, (job["name"], value)
        times.sort()
        print(json.dumps({"case": job["name"], "us": times[len(times) // 2] * 1e6,
                          "rate": len(times) / (last - start)}), flush=True)


def reset(target):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as stock
    stock.compat.v1.Session.reset(target)


# The measuring.


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="runnel-bench-")
        self.figures = {}  # (case, kind, client) -> best

    def job(self, name):
        path = os.path.join(self.folder, name + ".json")
        if not os.path.exists(path):
            self.python("--build-graphs", self.folder, *GRAPHS)
        return path

    def python(self, *arguments):
        command = [self.options.python, os.path.abspath(__file__), *arguments]
        if self.options.quick:
            command.append("--quick")
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout

    def put(self, case, kind, client, value, better=min):
        key = (case, kind, client)
        self.figures[key] = better(self.figures[key], value) if key in self.figures else value
        print(f"  {case} {kind} {client}: {value:.6g}", flush=True)

    def wants(self, *cases):
        return any(fnmatch.fnmatch(case, self.options.case) for case in cases)

    def run_c(self, target, path, count=1):
        """Median µs of each of |count| clients at once, and their steps per second together."""
        with open(path, encoding="ascii") as file:
            job = json.load(file)
        command = [self.options.client, target, job["graph"], "--fetch", job["fetch"],
                   "--seconds", str(self.options.seconds)]
        if job["init"] and count == 1:
            command += ["--init", job["init"]]
        if job["feed"]:
            command += ["--feed", job["feed"], str(job["feed_count"])]
        if job["expect"] is not None:
            command += ["--expect", str(job["expect"])]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(count)]
        lines = []
        for each in running:
            out, err = each.communicate(timeout=300)
            if each.returncode != 0:
                raise RuntimeError(err[-1000:])
            lines.append([float(field) for field in out.split()])
        return lines[0][0], sum(line[1] / line[2] for line in lines)

    def run_python(self, target, paths):
        out = self.python("--client", target, "--seconds", str(self.options.seconds), *paths)
        return [json.loads(line) for line in out.splitlines()]

    def steps(self, kind, ps, names):
        """Cases of one cluster, by both clients."""
        names = [name for name in names if self.wants(name)]
        if not names:
            return
        paths = [self.job(name) for name in names]
        with Cluster(kind, self.options, ps) as cluster:
            for line in self.run_python(cluster.target, paths):
                self.put(line["case"], kind, "python", line["us"] / 1000)
            if kind != "stock" or self.options.c_client_of_stock:
                for name, path in zip(names, paths):
                    self.put(name, kind, "c", self.run_c(cluster.target, path)[0] / 1000)

    def clients(self, kind):
        counts = [n for n in (1, 2, 4, 8) if self.wants(f"clients_{n}")]
        if not counts:
            return
        path = self.job("null_1")
        with Cluster(kind, self.options, 1) as cluster:
            self.run_python(cluster.target, [path])
            for count in counts:
                running = [subprocess.Popen([self.options.python, os.path.abspath(__file__), "--client", cluster.target,
                                             "--seconds", str(max(2, self.options.seconds)), path],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                           for _ in range(count)]
                rate = sum(json.loads(each.communicate(timeout=300)[0])["rate"] for each in running)
                self.put(f"clients_{count}", kind, "python", rate, max)
                if kind == "ours":
                    self.put(f"clients_{count}", kind, "c", self.run_c(cluster.target, path, count)[1], max)

    def idle(self, kind):
        if not self.wants("idle_rss", "idle_threads", "start_time"):
            return
        with Cluster(kind, self.options, 1) as cluster:
            time.sleep(0.5)
            self.put("idle_rss", kind, "python", memory_mib(cluster.ps()))
            self.put("idle_threads", kind, "python", threads(cluster.ps()))
            self.put("start_time", kind, "python", cluster.start_seconds * 1000)

    def memory(self, kind):
        """A large variable: what serving it costs, and what is left of it after a reset."""
        if not self.wants("serve_1gb", "after_reset"):
            return
        path = self.job("big")
        size = (1000 * MB // (16 if self.options.quick else 1)) / (1 << 20)
        with Cluster(kind, self.options, 1) as cluster:
            self.run_python(cluster.target, [self.job("null_1")])  # code that was used once stays
            self.python("--reset", cluster.target)
            time.sleep(1.5)
            idle = memory_mib(cluster.ps())
            self.run_python(cluster.target, [path])
            self.put("serve_1gb", kind, "python", (memory_mib(cluster.ps(), "VmHWM") - idle) / size)
            self.python("--reset", cluster.target)
            time.sleep(2.5)
            self.put("after_reset", kind, "python", memory_mib(cluster.ps()) / idle)

    def subgraphs(self, kind):
        """RunGraph calls a second on one worker, by h2load."""
        if not self.wants("subgraphs") or not shutil.which("h2load"):
            return
        with Cluster(kind, self.options, 1) as cluster:
            body = os.path.join(self.folder, "rungraph.bin")
            address = json.loads(cluster.spec)["ps"][0]
            self.python("--register-graph", address, body)
            count = 5000 if self.options.quick else 100000 if kind == "ours" else 20000
            done = subprocess.run(
                ["h2load", "-n", str(count), "-c", "2", "-m", "100", "-d", body, "-H", "content-type: application/grpc",
                 "-H", "te: trailers", f"http://{address}/tensorflow.WorkerService/RunGraph"],
                capture_output=True, text=True, check=False, timeout=120)
            for line in done.stdout.splitlines():
                if line.startswith("finished in"):
                    self.put("subgraphs", kind, "python", float(line.split(",")[1].split()[0]), max)
                if line.startswith("requests:") and f"{count} succeeded" not in line:
                    raise RuntimeError(line)

    def raw_socket(self):
        if not self.wants("raw_socket"):
            return
        done = subprocess.run([self.options.client, "--raw-socket", str(100 * MB // (16 if self.options.quick else 1)),
                               "--seconds", str(self.options.seconds)], capture_output=True, text=True, check=True)
        self.put("raw_socket", "ours", "c", float(done.stdout.split()[0]) / 1000)

    def run(self):
        for _ in range(self.options.rounds):
            self.raw_socket()
            for ps in (1, 4, 16):
                if ps > self.options.max_ps:
                    continue
                for kind in self.options.kinds:
                    names = [f"{case}_{ps}" for case in ("null", "dense", "sparse")]
                    if ps == 1:
                        names += ["recv", "fetch", "feed"]
                    self.steps(kind, ps, names)
                if self.options.only != "stock":  # without loans
                    self.steps("tcp", ps, [f"dense_{ps}"] + (["recv"] if ps == 1 else []))
            for kind in self.options.kinds:
                self.clients(kind)
                self.idle(kind)
                self.memory(kind)
                self.subgraphs(kind)
        shutil.rmtree(self.folder)


def register_graph(address, body_path):
    """Registers a small graph with a worker and writes the request that runs it."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import grpc
    import tensorflow as stock
    tf = stock.compat.v1
    with tf.Graph().as_default() as graph, tf.device("/job:ps/replica:0/task:0/device:CPU:0"):
        tf.add(tf.constant(1.0), tf.constant(2.0), name="sum")
    channel = grpc.insecure_channel(address)

    def call(method, request):
        return channel.unary_unary("/tensorflow.WorkerService/" + method)(request)

    session = "0123456789abcdef"
    call("CreateWorkerSession", field(1, session) + field(2, field(2, "ps") + field(5, "grpc")))
    answer = call("RegisterGraph", field(1, session) + field(2, graph.as_graph_def().SerializeToString()) + field(6, 1))
    message = (field(1, answer[2:]) + field(2, 1) + field(8, session) + field(9, 1) + field(10, 1))
    answer = call("RunGraph", message)
    assert b"not found" not in answer, answer
    with open(body_path, "wb") as file:
        file.write(b"\0" + len(message).to_bytes(4, "big") + message)


# The table.


def read_bars():
    with open(os.path.join(compare.BENCH, "cluster", "bars.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def judge(row, stock, value):
    """Whether |value| meets the bar of |row|, and the bar in words; None if there is no bar."""
    if row["of"] == "none" or value is None:
        return None, ""
    bar = float(row["bar"])
    sign = ">=" if row["better"] == "higher" else "<="
    if row["of"] == "value":
        figure, text = value, f"{sign} {bar:g} {row['unit']}"
    elif not stock:
        return None, ""
    else:
        figure, text = value / stock, f"{sign} {bar:g}x"
    return (figure >= bar if sign == ">=" else figure <= bar), text


def report(bench):
    raw, received = (bench.figures.get(key) for key in (("raw_socket", "ours", "c"), ("recv", "tcp", "c")))
    if raw and received:
        bench.figures["recv_of_raw", "ours", "c"] = raw / received
    lines = ["| case | client | unit | stock | ours | ratio | bar |", "|---|---|---|---|---|---|---|"]
    missed = 0
    with open(os.path.join(compare.OUT, "cluster.tsv"), "w", encoding="utf-8") as file:
        file.write("case\tclient\tunit\tstock\tours\tbar\tmet\n")
        for row in read_bars():
            case, client = row["case"], row["client"]
            kind = "ours"
            if case.endswith("_tcp"):
                case, kind = case[:-4], "tcp"
            ours = bench.figures.get((case, kind, client))
            stock = bench.figures.get((case, "stock", client), bench.figures.get((case, "stock", "python")))
            if ours is None and stock is None:
                continue
            met, text = judge(row, stock, ours)
            missed += met is False
            if met is False:
                text += " (missed)"
            show = [f"{value:.4g}" if value is not None else "" for value in (stock, ours)]
            ratio = f"{ours / stock:.3g}x" if ours is not None and stock else ""
            case = row["case"]
            lines.append(f"| {case} | {client} | {row['unit']} | {show[0]} | {show[1]} | {ratio} | {text} |")
            file.write(f"{case}\t{client}\t{row['unit']}\t{show[0]}\t{show[1]}\t{text}\t{met}\n")
    print("\n".join(lines))
    return missed


def find_runnel(library):
    folder = os.path.dirname(library)
    for path in (os.path.join(folder, "cli", "runnel"), os.path.join(folder, "runnel")):
        if os.path.exists(path):
            return path
    sys.exit(f"cluster.py: no runnel beside {library}")


def build_client(options, stock):
    client = os.path.join(compare.OUT, "cluster_client")
    folder = os.path.dirname(options.library)
    command = [os.environ.get("CC", "cc"), *compare.CFLAGS, "-isystem", os.path.join(stock, "include"), "-o", client,
               os.path.join(compare.BENCH, "cluster", "client.c"), "-L" + folder, "-Wl,-rpath," + folder,
               "-l:" + os.path.basename(options.library), "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    return client


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", help="our library or its build folder")
    parser.add_argument("--case", default="*", help="only the cases that match")
    parser.add_argument("--quick", action="store_true", help="small tensors and short runs: a smoke test")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a timed run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--max-ps", type=int, default=16)
    parser.add_argument("--only", choices=("stock", "ours"), help="one kind of servers")
    parser.add_argument("--c-client-of-stock", action="store_true", help="our C client against stock's servers too")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--build-graphs", help=argparse.SUPPRESS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--reset", help=argparse.SUPPRESS)
    parser.add_argument("--register-graph", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build_graphs:
        return build_graphs(options.build_graphs, options.paths, options.quick)
    if options.client:
        return python_client(options.client, options.seconds, options.paths)
    if options.reset:
        return reset(options.reset)
    if options.register_graph:
        return register_graph(*options.register_graph)
    if options.quick:
        options.seconds = min(options.seconds, 0.3)
    os.makedirs(compare.OUT, exist_ok=True)
    venv = os.path.join(compare.ROOT, "build", "venv")
    stock = compare.find_stock(venv)
    options.python = os.path.join(venv, "bin", "python")
    options.library = compare.find_ours(options.ours)
    options.runnel = find_runnel(options.library)
    options.client = build_client(options, stock)
    options.kinds = [options.only] if options.only else ["stock", "ours"]
    bench = Bench(options)
    bench.run()
    missed = report(bench)
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
