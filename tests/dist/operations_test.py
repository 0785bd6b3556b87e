#!/usr/bin/env python3
"""The commands that run a cluster, as an operator uses them: operations_test.py RUNNEL PART

Needs nothing but Python's own library, except for the part "steps" (stock TensorFlow's client).
A part that cannot run here says why and ends with 77.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_ports  # noqa: E402

RUNNEL, PART = os.path.abspath(sys.argv[1]), sys.argv[2]
# Of an idle task, in bytes; a sanitizer has memory of its own.
MEMORY = 25 << 20 if "RUNNEL_SANITIZED" not in os.environ else 1 << 40
FOLDER = tempfile.mkdtemp(prefix="runnel-operations-")
processes = []
kept = []  # sessions of stock's: closing one would wait for its master, which is gone


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(each) for each in what))


def environment(**more):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("SLURM_", "OMPI_", "RUNNEL_", "TF_CONFIG"))}
    clean.update(more)
    return clean


def call(*arguments, env=None, timeout=60):
    """Runs the command: its exit status, output and errors."""
    done = subprocess.run([RUNNEL, *arguments], capture_output=True, text=True, timeout=timeout,
                          env=env or environment())
    return done.returncode, done.stdout, done.stderr


class Task:
    """runnel server, until it is ready."""

    def __init__(self, cluster, *arguments, env=None):
        self.log = open(os.path.join(FOLDER, f"task{len(processes)}.log"), "w+")
        self.process = subprocess.Popen([RUNNEL, "server", "--cluster", cluster, *arguments],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=env or environment())
        processes.append(self.process)
        self.target = self.process.stdout.readline().strip()
        check(self.target.startswith("grpc"), "the task has not started:", self.logged())
        self.port = int(self.target.rsplit(":", 1)[1])

    def logged(self):
        self.log.flush()
        with open(self.log.name) as file:
            return file.read()

    def get(self, path, method="GET", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def status(self):
        return json.loads(self.get("/statusz?format=json")[1])

    def end(self, expected=0):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        check(code == expected, "ended with", code, self.logged())


def exchange(port, data, wait=8):
    """What comes back for |data|."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as stream:
        stream.sendall(data)
        got = b""
        try:
            while piece := stream.recv(65536):
                got += piece
        except (ConnectionResetError, socket.timeout):
            pass
        return got


def part_pages():
    task = Task(f"worker=localhost:{free_ports(1)[0]}")
    check(task.get("/healthz") == (200, "ok\n"))
    check(task.get("/readyz") == (200, "ready\n"))
    status = task.status()
    check(status["task"] == "/job:worker/replica:0/task:0" and status["state"] == "ready", status)
    check(status["memory"]["resident"] < MEMORY, "an idle task has", status["memory"])
    check(status["threads"] <= 8, "an idle task has", status["threads"], "threads")
    for line in task.get("/metrics")[1].splitlines():
        name, _, value = line.rpartition(" ")
        check(line.startswith("# ") or (name.startswith("runnel_") and float(value) >= 0), line)
    check("<title>/job:worker/replica:0/task:0</title>" in task.get("/statusz")[1])
    check(task.get("/stop", "POST")[0] == 403, "a stop without the header")
    check(task.get("/stop")[0] == 405)
    check(task.get("/healthz", headers={"X-Filler": "x" * 9000})[0] == 431)
    check(task.get("/stop", "POST", {"X-Runnel": "stop"})[0] == 202)
    check(task.process.wait(10) == 0)


def part_v6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            port = probe.getsockname()[1]
    except OSError:
        need(False, "there is no IPv6 here")
    task = Task(f"worker=[::1]:{port}")
    check(task.target == f"grpc://[::1]:{port}", task.target)
    code, out, errors = call("cluster", "status", "--cluster", f"worker=[::1]:{port}")
    check(code == 0 and " ready " in out, out, errors)
    task.end()


def part_signals():
    start = time.time()
    task = Task(f"worker=localhost:{free_ports(1)[0]}")
    check(time.time() - start < 2, "slow to start")
    start = time.time()
    task.end()
    check(time.time() - start < 2, "slow to end")
    check("ending after SIGTERM" in task.logged(), task.logged())


def part_bad():
    port, other = free_ports(2)
    cluster = f"worker=localhost:{port}"
    task = Task(cluster)
    # Garbage: refused, logged, and the task lives on.
    check(exchange(port, b"\x00\x01\x02garbage").startswith(b"HTTP/1.1 400 "))
    check(exchange(port, b"\x16\x03\x01\x00\xa5").startswith(b"HTTP/1.1 400 "))
    check(exchange(port, b"GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\nsomething").startswith(
        b"HTTP/1.1 413 "))
    exchange(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5000)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port)) as stream:
            stream.sendall(b"\x00" * 10)
            check(stream.recv(12) == b"HTTP/1.1 400")
    lines = [line for line in task.logged().splitlines() if "refused" in line]
    check(len(lines) == 1 and "neither HTTP/2 nor HTTP/1" in lines[0], lines)
    check(task.status()["port"]["refused"] == 53, task.status())
    # Slow: nothing said, and half a request.
    start = time.time()
    check(exchange(port, b"GET /healthz HT") == b"")
    check(4 < time.time() - start < 7, "a slow client was held", time.time() - start)
    # A peer that asks and does not read: its answers wait, within bounds, and others are served.
    stuck = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for each in stuck:
        each.sendall(b"GET /statusz HTTP/1.1\r\n\r\n")
    check(task.get("/healthz")[0] == 200)
    for each in stuck:
        each.close()
    # The port is taken; a second task claims the name of the first.
    code, _, errors = call("server", "--cluster", cluster)
    check(code == 1 and "Address already in use" in errors and
          "/job:worker/replica:0/task:0 of a Runnel cluster answers there" in errors, errors)
    code, _, errors = call("server", "--cluster", cluster, "--port", str(other))
    check(code == 1 and "/job:worker/replica:0/task:0 runs already, at localhost:" in errors,
          errors)
    # Wrong clusters and tasks.
    for arguments, message in (
            (["--cluster", "worker"], "neither a file nor a job with its tasks"),
            (["--cluster", "worker=nowhere"], "no address host:port"),
            (["--cluster", "worker=a:1|a:99999"], "no address host:port"),
            (["--cluster", '{"worker": ["a:1"]'], "invalid JSON"),
            (["--cluster", '{"worker": "a:1"}'], "not a list of addresses"),
            (["--cluster", cluster, "--task", "1"], "no task 1 of job worker, which has 1"),
            (["--cluster", cluster, "--job", "ps"], "no job ps"),
            (["--cluster", f"ps=localhost:1,{cluster}"], "--job must say"),
            (["--cluster", "worker=10.0.0.1:2222"], "--insecure"),
            (["--cluster", cluster, "--port", "70000"], "65535"),
            (["--cluster", cluster, "--tls-cert", "x"], "go together"),
            (["--cluster", cluster, "--tls-cert", "/no/x", "--tls-key", "/no/y", "--tls-ca",
              "/no/z"],
             "/no/x"),
            ([], "TF_CONFIG")):
        code, _, errors = call("server", *arguments)
        check(code in (1, 2) and message in errors and errors.count("\n") == 1, arguments, errors)
    check(task.get("/healthz")[0] == 200)
    task.end()


def frame(kind, flags, stream, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)


def head(stream):
    """The beginning of a call of HTTP/2: its headers."""
    path = b"/tensorflow.WorkerService/RegisterGraph"
    return frame(1, 4, stream, b"\x83\x86\x01\x01x\x04" + bytes([len(path)]) + path)


def connect_many(port, count, data=b""):
    """Connections that say |data| and nothing more; those that are refused do not count."""
    streams = []
    for _ in range(count):
        try:
            stream = socket.create_connection(("127.0.0.1", port), timeout=5)
            stream.sendall(data)
            streams.append(stream)
        except OSError:
            pass
    return streams


def used_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS:"))


def health(task):
    """It answers, within the time-out of Task.get."""
    check(task.get("/healthz") == (200, "ok\n"))


def wait_for(condition, *what):
    """Until the condition holds: a busy machine takes its time."""
    deadline = time.time() + 60
    while not condition():
        check(time.time() < deadline, *what)
        time.sleep(0.05)


def part_flood():
    """Connections that say nothing, or announce more than they send."""
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))

    # 2,000 that say nothing: more than may be, and health is told all the while.
    task = Task(f"worker=localhost:{free_ports(1)[0]}")
    silent = []
    for _ in range(10):
        silent += connect_many(task.port, 200)
        health(task)
    check(task.status()["port"]["doors"] <= 1025, task.status()["port"])
    for each in silent:
        each.close()
    # As many that speak HTTP/2 and make no calls: the oldest go.
    task.end()
    task = Task(f"worker=localhost:{free_ports(1)[0]}", "--max-connections", "100")
    silent = []
    for _ in range(10):
        silent += connect_many(task.port, 100, PREFACE)
        health(task)
    wait_for(lambda: task.status()["port"]["connections"] <= 110, "too many connections stay")
    # With calls under way none goes, and new ones are refused.
    for each in silent:
        each.close()
    busy = connect_many(task.port, 150, PREFACE + head(1))
    wait_for(lambda: 90 <= task.status()["port"]["connections"] <= 100, "not as many connections as may be")
    check(busy[0].recv(9), "the first one is still there")
    health(task)
    lines = task.logged().splitlines()
    check(len(lines) < 10, lines)
    task.end()

    # Lengths that are announced and not sent cost nothing.
    task = Task(f"worker=localhost:{free_ports(1)[0]}", "--max-memory", "1000000")
    health(task)
    before = memory_of(task.process.pid)
    count = 40 if "RUNNEL_SANITIZED" not in os.environ else 4
    calls = b"".join(head(stream) + frame(0, 0, stream, b"\0\x7f\xff\xff\xff" + b"\x0a" * 300)
                     for stream in range(1, 200, 2))
    kept_open = connect_many(task.port, count, PREFACE + calls)
    check(len(kept_open) == count)
    wait_for(lambda: task.status()["port"]["calls"] == 100 * count, "not as many calls as were made")
    cost = memory_of(task.process.pid) - before
    check(cost < 150 << 20 or "RUNNEL_SANITIZED" in os.environ, f"{cost >> 20} MiB for",
          f"{count * len(calls) >> 10} KiB that were sent")
    for each in kept_open:
        each.close()
    health(task)
    task.end()


def part_refused():
    """Calls that are too large end with a status that says so, in the client of gRPC, too."""
    import grpc
    task = Task(f"worker=localhost:{free_ports(1)[0]}", "--max-message", "1", "--max-memory", "2")
    path = "/tensorflow.WorkerService/GetStatus"
    with grpc.insecure_channel(f"localhost:{task.port}", [("grpc.max_send_message_length", -1)]) as channel:
        status = channel.unary_unary(path, lambda x: x, lambda x: x)
        padding = b"\xfa\x3f"  # field 1023, which no request has
        for size, code in ((1 << 10, None), ((1 << 20) + 1, "RESOURCE_EXHAUSTED"), (200 << 20, "RESOURCE_EXHAUSTED")):
            length = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
            try:
                status(padding + length + b"x" * size, timeout=60)
                check(code is None, "a call of", size, "bytes was taken")
            except grpc.RpcError as error:
                check(error.code().name == code and "larger than max" in error.details(), error)
        check(status(b"", timeout=60), "the connection goes on")
    task.end()


def part_starved():
    """A task without descriptors is quiet, tells its health, and recovers."""
    import resource
    task = Task(f"worker=localhost:{free_ports(1)[0]}", "--max-connections", "1000")
    resource.prlimit(task.process.pid, resource.RLIMIT_NOFILE, (48, 48))
    streams = connect_many(task.port, 120, PREFACE + head(1))  # calls under way: none can be shown out
    wait_for(lambda: len(os.listdir(f"/proc/{task.process.pid}/fd")) >= 45, "descriptors are left")
    time.sleep(1)
    used, said = used_seconds(task.process.pid), len(task.logged())
    time.sleep(3)
    used, said = used_seconds(task.process.pid) - used, len(task.logged()) - said
    check(used < 0.5, "seconds of processor in 3 s:", used)
    check(said < 1000 and "Too many open files" in task.logged(), said)
    for each in streams[60:]:
        each.close()  # those that wait to be accepted
    answered = 0
    for _ in range(20):
        try:
            answered += task.get("/healthz") == (200, "ok\n")
        except OSError:
            pass
    check(answered >= 10, "of 20 health checks were answered:", answered)
    for each in streams:
        each.close()
    wait_for(lambda: task.status()["port"]["connections"] == 0, "connections that are closed stay")
    health(task)
    check(len(task.logged().splitlines()) < 12, task.logged())
    task.end()


def part_token():
    """Tasks of a cluster share a token, and those who have it run steps and the commands."""
    path = os.path.join(FOLDER, "token")
    with open(path, "w") as file:
        file.write("0123456789abcdef0123456789abcdef\n")
    ports = free_ports(2)
    cluster = f"ps=localhost:{ports[0]},worker=localhost:{ports[1]}"
    tasks = [Task(cluster, "--job", job, "--token", path) for job in ("ps", "worker")]
    code, _, errors = call("cluster", "status", "--cluster", cluster)
    check(code == 1, errors)
    known = environment(RUNNEL_TOKEN=path)
    code, output, errors = call("cluster", "status", "--cluster", cluster, env=known)
    check(code == 0 and output.count("ready") == 2, output, errors)
    wrong = environment(RUNNEL_TOKEN="/no/token")
    for command in (("cluster", "status"), ("top", "--once")):  # the option counts, whatever the variable says
        code, output, errors = call(*command, "--cluster", cluster, "--token", path, env=wrong)
        check(code == 0 and output.count("ready") == 2, output, errors)
    code, output, errors = call("cluster", "status", "--cluster", cluster, "--token", "/no/token", env=known)
    check(code == 1 and "/no/token" in output + errors, output, errors)
    code, _, errors = call("cluster", "stop", "--cluster", cluster)
    check(code == 1 and tasks[0].process.poll() is None, errors)
    code, _, errors = call("cluster", "stop", "--cluster", cluster, "--token", path)
    check(code == 0, errors)
    for task in tasks:
        check(task.process.wait(60) == 0)
    code, _, errors = call("server", "--cluster", cluster, "--job", "ps", "--token", "/no/token")
    check(code == 1 and "/no/token" in errors, errors)


def part_cluster():
    folder = os.path.join(FOLDER, "c")
    script = ("import json, os, subprocess, sys\n"
              "cluster = json.loads(os.environ['TF_CONFIG'])['cluster']\n"
              "assert len(cluster['ps']) == 2 and len(cluster['worker']) == 3, cluster\n"
              "assert os.environ['RUNNEL_TARGET'] == 'grpc://' + cluster['worker'][0]\n"
              f"out = subprocess.run([{RUNNEL!r}, 'cluster', 'status'], check=True,\n"
              "                     capture_output=True, text=True).stdout\n"
              "rows = out.splitlines()\n"
              "assert len(rows) == 6 and all(' ready ' in row for row in rows[1:]), out\n"
              f"out = subprocess.run([{RUNNEL!r}, 'top', '--once'], check=True,\n"
              "                     capture_output=True, text=True).stdout\n"
              "assert 'STEPS/S' in out and 'QUEUED' in out, out\n"
              "sys.exit(7)\n")
    code, out, errors = call("cluster", "up", "--ps", "2", "--workers", "3", "--dir", folder, "--",
                             sys.executable, "-c", script)
    check(code == 7, "ended with", code, out, errors)
    with open(os.path.join(folder, "cluster.json")) as file:
        cluster = json.load(file)
    for pid in cluster["pids"].values():
        check(not os.path.exists(f"/proc/{pid}"), "task", pid, "has not ended")
    check(sorted(name for name in os.listdir(folder) if name.endswith(".log")) ==
          ["ps-0.log", "ps-1.log", "worker-0.log", "worker-1.log", "worker-2.log"])
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "5 of 5 tasks are down" in errors and out.count(" down ") == 5, out, errors)
    code, _, errors = call("cluster", "stop", "--dir", folder)
    check(code == 1 and "no task of the cluster answers" in errors, errors)
    # In the foreground until it is told to end; a task that dies is named, the others go on.
    up = subprocess.Popen([RUNNEL, "cluster", "up", "--ps", "1", "--workers", "2", "--dir", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment())
    processes.append(up)
    check(up.stdout.readline().startswith("The cluster is up"))
    with open(os.path.join(folder, "cluster.json")) as file:
        cluster = json.load(file)
    os.kill(cluster["pids"]["worker:1"], signal.SIGKILL)
    check("task 1 of job worker has ended (signal 9)" in up.stderr.readline())
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "1 of 3 tasks are down" in errors and out.count(" ready ") == 2, out,
          errors)
    os.kill(cluster["pids"]["worker:0"], signal.SIGSTOP)
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "2 of 3 tasks are down" in errors and "it does not answer" in out and
          out.count(" ready ") == 1, out, errors)
    code, out, errors = call("cluster", "stop", "--dir", folder)
    check(code == 1 and out == "1 of 3 tasks have ended\n" and "does not answer" in errors, out, errors)
    os.kill(cluster["pids"]["worker:0"], signal.SIGCONT)
    check(up.wait(10) == 0)
    # With --restart a task that dies comes back, as another process at the same address.
    up = subprocess.Popen([RUNNEL, "cluster", "up", "--ps", "1", "--workers", "1", "--dir", folder, "--restart"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    processes.append(up)
    check(up.stdout.readline().startswith("The cluster is up"))

    def pid_of(task):
        with open(os.path.join(folder, "cluster.json")) as file:
            return json.load(file)["pids"][task]

    for _ in range(2):
        first = pid_of("worker:0")
        os.kill(first, signal.SIGKILL)
        check("task 0 of job worker has ended (signal 9) and is started again" in up.stderr.readline())
        deadline = time.time() + 20
        while call("cluster", "status", "--dir", folder)[0] != 0:
            check(time.time() < deadline, "the task does not come back")
        check(pid_of("worker:0") != first)
    code, out, errors = call("cluster", "stop", "--dir", folder)
    check(code == 0 and out == "2 of 2 tasks have ended\n" and up.wait(10) == 0, out, errors)
    # The command's own fate, and a folder that goes away.
    code, _, errors = call("cluster", "up", "--", "sh", "-c", "kill -9 $$")
    check(code == 137 and "logs of the tasks are in" in errors, code, errors)
    shutil.rmtree(errors.strip().rsplit(" ", 1)[1])
    code, _, errors = call("cluster", "up", "--", "/no/such/command")
    check(code == 127 and "cannot run /no/such/command" in errors, code, errors)
    shutil.rmtree(errors.strip().rsplit(" ", 1)[1])
    check(call("cluster", "up", "--", "true")[0] == 0)
    code, _, errors = call("cluster", "up", "true")
    check(code == 2 and "put -- before" in errors, errors)
    check(call("cluster", "sideways")[0] == 2)
    check(call("cluster", "status")[0] == 2)


def show(env, *arguments):
    return call("server", "--show", *arguments, env=environment(**env))


def part_launch():
    slurm = {"SLURM_STEP_NODELIST": "rack[1-2]n[08-10],login,gpu[1,3]",
             "SLURM_STEP_TASKS_PER_NODE": "2(x3),1(x6)", "SLURM_STEP_NUM_TASKS": "12",
             "SLURM_PROCID": "6", "SLURM_LOCALID": "0"}
    code, out, errors = show(slurm, "--cluster", "slurm", "--jobs", "ps=2,worker", "--port-base",
                             "3000")
    check(code == 0, errors)
    hosts = ["rack1n08:3000", "rack1n08:3001", "rack1n09:3000", "rack1n09:3001", "rack1n10:3000",
             "rack1n10:3001", "rack2n08:3000", "rack2n09:3000", "rack2n10:3000", "login:3000",
             "gpu1:3000", "gpu3:3000"]
    names = ["ps:0", "ps:1"] + [f"worker:{i}" for i in range(10)]
    expected = "".join(f"{'* ' if i == 6 else '  '}{name} {host}\n"
                       for i, (name, host) in enumerate(zip(names, hosts)))
    lines = out.splitlines(keepends=True)
    check("".join(lines[:-1]) == expected, out)
    check(json.loads(lines[-1]) == {"ps": hosts[:2], "worker": hosts[2:]}, out)
    batch = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_NTASKS": "4",
             "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    code, out, errors = show(batch, "--cluster", "slurm", "--jobs", "ps=1,worker")
    check(json.loads(out.splitlines()[-1]) == {
        "ps": ["n1:8888"], "worker": ["n1:8889", "n2:8888", "n2:8889"]}, out, errors)
    for change, message in (
            ({"SLURM_STEP_NODELIST": "a[1-"}, "not a list of nodes"),
            ({"SLURM_STEP_NODELIST": "a[3-1]"}, "not a list of nodes"),
            ({"SLURM_STEP_NODELIST": "a[1-999999999]"}, "not a list of nodes"),
            ({"SLURM_STEP_TASKS_PER_NODE": "2(y3)"}, "tasks per node"),
            ({"SLURM_STEP_TASKS_PER_NODE": "2(x3)"}, "does not describe"),
            ({"SLURM_STEP_NUM_TASKS": "0"}, "SLURM_STEP_NUM_TASKS"),
            ({"SLURM_STEP_NUM_TASKS": "13"}, "no slot for rank 12"),
            ({"SLURM_PROCID": "12"}, "rank 12 of 12"),
            ({"SLURM_LOCALID": "1"}, "in blocks"),
            ({"SLURM_PROCID": ""}, "SLURM_PROCID")):
        code, _, errors = show({**slurm, **change}, "--cluster", "slurm")
        check(code == 1 and message in errors, change, errors)
    for jobs, message in (("ps=2,worker=9", "needs 11 tasks"), ("ps=12,worker", "one more"),
                          ("ps=x", "--jobs is"), ("a,b", "--jobs is")):
        code, _, errors = show(slurm, "--cluster", "slurm", "--jobs", jobs)
        check(code == 1 and message in errors, jobs, errors)
    mpi = {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2",
           "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}
    code, out, errors = show(mpi, "--cluster", "mpi", "--jobs", "ps=1,worker")
    check(out == "  ps:0 localhost:8888\n  worker:0 localhost:8889\n* worker:1 localhost:8890\n"
          '{"ps": ["localhost:8888"], "worker": ["localhost:8889", "localhost:8890"]}\n', out,
          errors)
    hosts = os.path.join(FOLDER, "hosts")
    with open(hosts, "w") as file:
        file.write("# two machines\nnode1 slots=2\n\nnode2:4 # the large one\n")
    code, out, errors = show({**mpi, "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, "--cluster", "mpi",
                             "--hosts", hosts)
    expected = "  worker:0 node1:8888\n  worker:1 node1:8889\n* worker:2 node2:8888\n{"
    check(out.startswith(expected), out, errors)
    code, _, errors = show({**mpi, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "--cluster", "mpi")
    check(code == 1 and "--hosts must name the file" in errors, errors)
    check(show({}, "--cluster", "slurm")[0] == 1)
    check(show({}, "--cluster", "mpi")[0] == 1)


def free_block(count):
    """The first of |count| ports in a row that are free."""
    for first in range(20000 + os.getpid() % 10000, 65000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for i, each in enumerate(sockets):
                each.bind(("0.0.0.0", first + i))
            return first
        except OSError:
            pass
        finally:
            for each in sockets:
                each.close()
    raise AssertionError("no free ports")


def launch_three(launcher, kind, host, more=()):
    """One parameter server and two workers under |launcher|: they meet, and they end."""
    base = free_block(3)
    job = subprocess.Popen([*launcher, RUNNEL, "server", "--cluster", kind, "--jobs", "ps=1,worker",
                            "--port-base", str(base), *more], stdout=subprocess.PIPE, text=True,
                           env=environment(**{k: v for k, v in os.environ.items()
                                              if k == "SLURM_CONF"}))
    processes.append(job)
    targets = sorted(job.stdout.readline().strip() for _ in range(3))
    check(targets == [f"grpc://{host}:{base + i}" for i in range(3)], targets)
    cluster = f"ps={host}:{base},worker={host}:{base + 1}|{host}:{base + 2}"
    code, out, errors = call("cluster", "status", "--cluster", cluster)
    check(code == 0 and out.count(" ready ") == 3 and "but it says" not in out, out, errors)
    code, out, errors = call("cluster", "stop", "--cluster", cluster)
    check(code == 0 and out == "3 of 3 tasks have ended\n", out, errors)
    check(job.wait(30) == 0, "the launcher ended with", job.returncode)


def need(condition, why):
    if not condition:
        print(why)
        sys.exit(77)


def part_mpi():
    need(shutil.which("mpirun"), "mpirun is missing (Debian: openmpi-bin)")
    launch_three(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"], "mpi",
                 "localhost")


def part_slurm():
    """A cluster of Slurm's on this machine, without authentication, for this test alone."""
    os.environ["PATH"] += ":/usr/sbin"
    need(all(map(shutil.which, ("slurmctld", "slurmd", "srun"))),
         "Slurm is missing (Debian: slurm-wlm)")
    need(os.geteuid() == 0, "slurmd wants to be root")
    host, ports = socket.gethostname().split(".")[0], free_ports(2)
    os.makedirs(os.path.join(FOLDER, "state"))
    os.makedirs(os.path.join(FOLDER, "spool"))
    os.environ["SLURM_CONF"] = os.path.join(FOLDER, "slurm.conf")
    with open(os.environ["SLURM_CONF"], "w") as file:
        file.write(f"""ClusterName=runnel
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdPidFile={FOLDER}/slurmd.pid
StateSaveLocation={FOLDER}/state
SlurmdSpoolDir={FOLDER}/spool
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE
""")
    for daemon in ("slurmctld", "slurmd"):
        with open(os.path.join(FOLDER, daemon + ".log"), "w") as log:
            processes.append(subprocess.Popen([daemon, "-D"], stdout=log, stderr=log))
    deadline = time.time() + 30
    while "idle" not in subprocess.run(["sinfo", "-h"], capture_output=True, text=True).stdout:
        need(time.time() < deadline, "Slurm does not start here")
        time.sleep(0.2)
    launch_three(["srun", "-n", "3", "--overcommit"], "slurm", host, ["--insecure"])


def part_streams():
    h2load = shutil.which("h2load")
    need(h2load, "h2load is missing (Debian: nghttp2-client)")
    task = Task(f"worker=localhost:{free_ports(1)[0]}")
    body = os.path.join(FOLDER, "empty")
    with open(body, "wb") as file:
        file.write(b"\0" * 5)  # an empty message, as gRPC frames it
    out = subprocess.run(
        [h2load, "-n", "40000", "-c", "4", "-m", "2500", "-d", body, "-H",
         "content-type: application/grpc", "-H", "te: trailers",
         f"http://127.0.0.1:{task.port}/tensorflow.WorkerService/GetStatus"],
        capture_output=True, text=True, timeout=120).stdout
    check("40000 succeeded, 0 failed, 0 errored, 0 timeout" in out, out)
    counts = {each["name"]: each for each in task.status()["methods"]}
    check(counts["GetStatus"]["ended"] == 40000 and counts["GetStatus"]["failed"] == 0, counts)
    print(next(line for line in out.splitlines() if line.startswith("finished")))
    task.end()


def part_tls():
    first, second = free_ports(2)
    cluster = f"ps=localhost:{first},worker=localhost:{second}"
    certs = os.path.join(FOLDER, "certs")
    check(call("cert", "--dir", certs, "--cluster", cluster)[0] == 0)
    check(os.stat(os.path.join(certs, "ca-key.pem")).st_mode & 0o077 == 0, "the key is open to all")
    check(call("cert", "--dir", os.path.join(FOLDER, "other"))[0] == 0)
    check(call("cert", "--dir", certs, "--client", "a/b")[0] == 2)

    def names(name):
        return (os.path.join(certs, name + ".pem"), os.path.join(certs, name + "-key.pem"),
                os.path.join(certs, "ca.pem"))

    def flags(name):
        cert, key, ca = names(name)
        return ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca]

    tasks = [Task(cluster, "--job", job, *flags(f"{job}-0")) for job in ("ps", "worker")]
    check(tasks[0].target == f"grpcs://localhost:{first}", tasks[0].target)

    def ask(cert, path="/statusz?format=json", host="localhost", port=first):
        context = ssl.create_default_context(cafile=os.path.join(certs, "ca.pem"))
        context.set_alpn_protocols(["h2", "http/1.1"])
        if cert:
            context.load_cert_chain(*cert[:2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname=host) as stream:
                check(stream.version() == "TLSv1.3" and stream.selected_alpn_protocol() == "h2")
                stream.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                got = b""
                while piece := stream.recv(65536):
                    got += piece
                return got

    answer = ask(names("client"))
    status = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    check(status["tls"] and status["memory"]["resident"] < MEMORY, status["memory"])
    for wrong in (None, [os.path.join(FOLDER, "other", n) for n in ("client.pem",
                                                                    "client-key.pem")]):
        try:
            ask(wrong)
            check(False, "a client without a certificate of ours was answered")
        except (ssl.SSLError, ConnectionError):
            pass
    try:
        ask(names("client"), host="elsewhere")
        check(False, "the certificate is good for any host")
    except ssl.SSLCertVerificationError:
        pass
    check(exchange(first, b"GET /healthz HTTP/1.1\r\n\r\n")[:5] != b"HTTP/",
          "an answer without TLS")
    cert, key, ca = names("client")
    env = environment(RUNNEL_TLS_CERT=cert, RUNNEL_TLS_KEY=key, RUNNEL_TLS_CA=ca,
                      RUNNEL_CLUSTER=cluster)
    code, out, errors = call("cluster", "status", env=env)
    check(code == 0 and out.count(" ready ") == 2, out, errors)
    code, out, errors = call("cluster", "status", "--cluster", cluster)
    check(code == 1 and out.count(" down ") == 2, out, errors)
    check(out.count("it speaks TLS: give --tls-cert, --tls-key and --tls-ca") == 2, out)
    code, out, errors = call("cluster", "stop", "--cluster", cluster)
    check(code == 1 and f"localhost:{second}: it speaks TLS" in errors, errors)
    plain = Task(f"worker=localhost:{free_ports(1)[0]}")
    code, out, errors = call("cluster", "status", "--cluster",
                             "worker=" + plain.target.split("//")[1], *flags("client"))
    check(code == 1 and "it does not speak TLS: leave the certificates out" in out, out, errors)
    code, out, errors = call("cluster", "stop", "--cluster", cluster, *flags("client"))
    check(code == 0 and out == "2 of 2 tasks have ended\n", out, errors)
    check([task.process.wait(10) for task in tasks] == [0, 0])
    # A local cluster with certificates.
    script = f"case $RUNNEL_TARGET in grpcs://*) exec {RUNNEL} cluster status;; esac"
    code, out, errors = call("cluster", "up", "--tls", "--", "sh", "-c", script)
    check(code == 0 and out.startswith("TASK") and out.count(" ready ") == 2, code, out, errors)


def part_steps():
    """What happens to steps when a task is told to end."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import threading
    import tensorflow as stock
    tf = stock.compat.v1
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.int32, [], "x")
        quick = x + 1
        pipe = os.path.join(FOLDER, "pipe")
        os.mkfifo(pipe)
        read = tf.io.read_file(pipe)  # waits until somebody has written it
        queue = tf.FIFOQueue(1, tf.float32)
        taken = queue.dequeue()

    def run_later(session, fetch, feeds=None):
        result = []

        def body():
            try:
                result.append(session.run(fetch, feeds))
            except tf.errors.OpError as error:
                result.append(error)
        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread, result

    def steps_of(task):
        rows = [each for each in task.status()["methods"] if each["name"] == "RunStep"]
        return rows[0]["started"] - rows[0]["ended"] if rows else 0

    # A step that runs ends; nothing new is taken meanwhile; then the task ends by itself.
    task = Task(f"worker=localhost:{free_ports(1)[0]}", "--drain", "60")
    # Stock's client tries again for as long as a call may take, so these have a time-out.
    brief = tf.ConfigProto(operation_timeout_in_ms=1500)
    session = tf.Session(task.target, graph)
    other = tf.Session(task.target, graph, config=brief)
    kept.extend((session, other))
    session.run(quick, {x: 1})
    other.run(quick, {x: 1})
    thread, result = run_later(session, read)
    wait_for(lambda: steps_of(task) == 1, "the step does not begin")
    task.process.send_signal(signal.SIGTERM)
    wait_for(lambda: task.get("/healthz") == (503, "draining\n"), "the task does not drain")
    try:
        other.run(quick, {x: 1})
        check(False, "a step was begun")
    except (tf.errors.UnavailableError, tf.errors.DeadlineExceededError):
        pass
    counts = {each["name"]: each for each in task.status()["methods"]}
    check(counts["RunStep"]["failed"] >= 1 and task.status()["port"]["refused_calls"] >= 1, counts)
    check(task.process.poll() is None, "it did not wait")
    with open(pipe, "w") as file:
        file.write("text")
    thread.join(60)
    check(result == [b"text"], result)
    check(task.process.wait(60) == 0)
    # A step that does not end is cut short after the time that it has; a second signal is faster.
    for seconds, signals, least, most, expected in (("1", 1, 0.9, 30, 0), ("60", 2, 0, 50, 1)):
        task = Task(f"worker=localhost:{free_ports(1)[0]}", "--drain", seconds)
        session = tf.Session(task.target, graph)
        kept.append(session)
        thread, result = run_later(session, taken)
        wait_for(lambda: steps_of(task) == 1, "the step does not begin")
        start = time.time()
        task.process.send_signal(signal.SIGTERM)
        if signals == 2:
            wait_for(lambda: task.get("/healthz")[0] == 503, "the task does not drain")
            task.process.send_signal(signal.SIGTERM)
        code = task.process.wait(60)
        check(code == expected and least <= time.time() - start <= most, code, time.time() - start)
        if signals == 1:
            thread.join(10)
            check(len(result) == 1 and isinstance(result[0], tf.errors.OpError), result)


def part_traffic():
    """What is shown of a cluster that works."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import threading
    import tensorflow as stock
    tf = stock.compat.v1
    first, second = free_ports(2)
    cluster = f"ps=localhost:{first},worker=localhost:{second}"
    ps, worker = Task(cluster, "--job", "ps"), Task(cluster, "--job", "worker")
    check(worker.status()["peers"][0]["state"] == "unused", worker.status())
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            variable = tf.get_variable("v", [1 << 18], use_resource=False)
        with tf.device("/job:worker/task:0"):
            total = tf.reduce_sum(variable)
            start = variable.initializer
            queue = tf.FIFOQueue(10, tf.float32, shared_name="examples")
            put = queue.enqueue_many([[1.0, 2.0, 3.0]])
    session = tf.Session(worker.target, graph)
    kept.append(session)
    session.run((start, put))
    is_over = []

    def work():
        while not is_over:
            session.run(total)
    thread = threading.Thread(target=work)
    thread.start()
    code, out, errors = call("top", "--cluster", cluster, "--once")
    is_over.append(True)
    thread.join()
    check(code == 0, out, errors)
    rows = {row.split()[0]: row.split() for row in out.splitlines() if row.strip()}
    check(float(rows["worker:0"][7]) > 1 and rows["worker:0"][5] == "1", out)
    check(float(rows["ps:0"][7]) > 1, out)
    check(out.splitlines()[-1].split()[1:] == ["examples", "3"], "the queue:", out)
    check(worker.status()["queues"] == [{"container": "localhost", "name": "examples", "size": 3}])
    check('runnel_queue_elements{container="localhost",queue="examples"} 3' in
          worker.get("/metrics")[1] and "<td>examples<td>3" in worker.get("/statusz")[1])
    pair = next(row.split() for row in out.splitlines() if "task:0 /job:ps" in row)
    check(pair[1] == "/job:ps/replica:0/task:0" and pair[2] == "up" and float(pair[3]) > 5, out)
    check(float(pair[5]) > 100 and float(pair[6]) > 100, "bytes a second:", out)
    peer = worker.status()["peers"][0]
    check(peer["state"] == "up" and peer["losses"] == 0 and peer["lease_left_s"] > 5, peer)
    check('runnel_peer_up{task="/job:ps/replica:0/task:0"} 1' in worker.get("/metrics")[1])
    check("/job:ps/replica:0/task:0" in worker.get("/statusz")[1])
    steps = {each["name"]: each for each in worker.status()["methods"]}["RunStep"]
    check(steps["ended"] == steps["started"] and steps["failed"] == 0 and steps["seconds"] > 0,
          steps)
    session.close()
    check(worker.status()["sessions"] == 0, worker.status())
    worker.end()
    ps.end()
    # Two tasks that were told different things about the cluster: said to the client, logged once.
    first, second = free_ports(2)
    other = Task(f"ps=localhost:1|localhost:{first},worker=localhost:{second}", "--job", "ps",
                 "--task", "1")
    worker = Task(f"ps=localhost:{first},worker=localhost:{second}", "--job", "worker")
    for _ in range(3):
        session = tf.Session(worker.target, graph)
        kept.append(session)
        try:
            session.run(start)
            check(False, "a step ran on the wrong task")
        except tf.errors.OpError as error:
            check("/job:ps/replica:0/task:1" in str(error), error)
    lines = [line for line in other.logged().splitlines() if "clusters differ" in line]
    check(len(lines) == 1, other.logged())
    check(other.get("/healthz")[0] == 200 and worker.get("/healthz")[0] == 200)


def main():
    code = 0
    try:
        globals()["part_" + PART]()
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: B902 - also what stops a test
        traceback.print_exc()
        code = 1
        kept.append(error)
    for process in reversed(processes):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    shutil.rmtree(FOLDER, ignore_errors=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


main()
