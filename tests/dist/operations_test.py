#!/usr/bin/env python3
"""Tasks as an operator runs them: operations_test.py RUNNEL PART

Needs nothing but Python's own library, except for the parts "memory", "steps" and "traffic" (stock TensorFlow's
client).
A part that cannot run here says why and ends with 77.
"""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

from operator_tools import FOLDER, RUNNEL, Task, call, check, environment, exchange, kept, need, run_part, wait_for
from support.ports import free_ports

# Of an idle task, in bytes; a sanitizer has memory of its own.
MEMORY = 25 << 20 if "RUNNEL_SANITIZED" not in os.environ else 1 << 40


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
    check(code == 1 and "/job:worker/replica:0/task:0 is already running at localhost:" in errors,
          errors)
    # Wrong clusters and tasks.
    for arguments, message in (
            (["--cluster", "worker"], "neither a file nor a job with its tasks"),
            (["--cluster", "worker=nowhere"], "needs an address host:port"),
            (["--cluster", "worker=a:1|a:99999"], "needs an address host:port"),
            (["--cluster", '{"worker": ["a:1"]'], "invalid JSON"),
            (["--cluster", '{"worker": "a:1"}'], "not a list of addresses"),
            (["--cluster", cluster, "--task", "1"], "no task 1 of job worker, which has 1"),
            (["--cluster", cluster, "--job", "ps"], "no job ps"),
            (["--cluster", f"ps=localhost:1,{cluster}"], "--job must name"),
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


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def audited(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def part_roles():
    """Clients do not stop tasks, operators do, and the audit log has both."""
    tokens = {role: f"the-token-of-the-{role}" for role in ("client", "worker", "operator")}
    path = write("roles", "".join(f"{role} {token}\n" for role, token in tokens.items()))
    own = {role: write(role, token) for role, token in tokens.items()}
    log = os.path.join(FOLDER, "audit.log")
    ports = free_ports(2)
    cluster = f"ps=localhost:{ports[0]},worker=localhost:{ports[1]}"
    tasks = [Task(cluster, "--job", job, "--token", path, "--audit", log) for job in ("ps", "worker")]
    check(os.stat(log).st_mode & 0o077 == 0, "the audit log is open to all")
    code, output, errors = call("cluster", "status", "--cluster", cluster, "--token", own["client"])
    check(code == 0 and output.count("ready") == 2, output, errors)
    for role in ("client", "worker"):
        code, output, errors = call("cluster", "stop", "--cluster", cluster, "--token", own[role])
        check(code == 1 and "the role of an operator is needed" in errors, role, output, errors)
    check([task.process.poll() for task in tasks] == [None, None])
    code, output, errors = call("cluster", "stop", "--cluster", cluster, "--token", own["operator"])
    check(code == 0, output, errors)
    check([task.process.wait(60) for task in tasks] == [0, 0])
    found = {(row["task"], row["action"], row["role"], row["outcome"]) for row in audited(log)}
    check(found >= {(f"/job:{job}/replica:0/task:0", "stop", "operator", "OK") for job in ("ps", "worker")}, found)
    # The command asks workers first, and no other task once one has refused.
    check(found >= {("/job:worker/replica:0/task:0", "stop", role, "PERMISSION_DENIED") for role in ("client", "worker")}, found)
    code, _, errors = call("server", "--cluster", cluster, "--job", "ps", "--audit", "/no/folder/audit")
    check(code == 1 and "/no/folder/audit" in errors, errors)


def part_renewal():
    """Tokens, certificates and the audit log's file change while the task runs."""
    port = free_ports(1)[0]
    cluster = f"worker=localhost:{port}"
    certs, others = os.path.join(FOLDER, "certs"), os.path.join(FOLDER, "others")
    for folder in (certs, others):
        check(call("cert", "--dir", folder, "--cluster", cluster)[0] == 0)
    path, log = write("token", "the-first-token-of-all"), os.path.join(FOLDER, "audit.log")

    def flags(folder, name):
        return ["--tls-cert", os.path.join(folder, name + ".pem"), "--tls-key", os.path.join(folder, name + "-key.pem"),
                "--tls-ca", os.path.join(folder, "ca.pem")]

    def answers(folder, token):
        return call("cluster", "status", "--cluster", cluster, "--token", write("own", token), *flags(folder, "client"))[0] == 0

    task = Task(cluster, "--token", path, "--audit", log, *flags(certs, "worker-0"))
    check(answers(certs, "the-first-token-of-all"))
    # A file that is half written changes nothing.
    write("token", "short")
    task.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "the tokens: not renewed" in task.logged(), task.logged())
    check(answers(certs, "the-first-token-of-all"))
    write("token", "the-other-token-of-all")
    os.rename(log, log + ".1")
    for name in ("worker-0.pem", "worker-0-key.pem", "ca.pem"):
        shutil.copy(os.path.join(others, name), os.path.join(certs, name))
    task.process.send_signal(signal.SIGHUP)
    wait_for(lambda: answers(others, "the-other-token-of-all"), "nothing is renewed: " + task.logged())
    check(not answers(others, "the-first-token-of-all"), "the old token is still good")
    check("worker-0.pem: renewed" in task.logged() and "the tokens: renewed" in task.logged(), task.logged())
    check(os.path.exists(log), "the audit log was not opened again")
    task.end()


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
    check(out.count("it uses TLS: give --tls-cert, --tls-key and --tls-ca") == 2, out)
    code, out, errors = call("cluster", "stop", "--cluster", cluster)
    check(code == 1 and f"localhost:{second}: it uses TLS" in errors, errors)
    plain = Task(f"worker=localhost:{free_ports(1)[0]}")
    code, out, errors = call("cluster", "status", "--cluster",
                             "worker=" + plain.target.split("//")[1], *flags("client"))
    check(code == 1 and "it does not use TLS: omit the certificates" in out, out, errors)
    code, out, errors = call("cluster", "stop", "--cluster", cluster, *flags("client"))
    check(code == 0 and out == "2 of 2 tasks have ended\n", out, errors)
    check([task.process.wait(10) for task in tasks] == [0, 0])
    # A local cluster with certificates.
    script = f"case $RUNNEL_TARGET in grpcs://*) exec {RUNNEL} cluster status;; esac"
    code, out, errors = call("cluster", "up", "--tls", "--", "sh", "-c", script)
    check(code == 0 and out.startswith("TASK") and out.count(" ready ") == 2, code, out, errors)


def part_memory():
    """A task gives the memory of closed sessions back: variables, blocks of steps, messages."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as stock
    tf = stock.compat.v1
    task = Task(f"worker=localhost:{free_ports(1)[0]}")

    def resident():
        return task.status()["memory"]["resident"]

    def use(batch):
        with tf.Graph().as_default():
            x = h = tf.placeholder(tf.float32, [None, 1024])
            for i in range(6):
                h = tf.nn.relu(h @ tf.get_variable(f"w{i}", [1024, 1024]))
            step = tf.train.AdamOptimizer().minimize(tf.reduce_mean(h))
            with tf.Session(task.target) as session:
                session.run(tf.global_variables_initializer())
                for i in range(3):
                    session.run(step, {x: np.ones([batch + 64 * i, 1024], np.float32)})
                used = resident()
                session.run(tf.identity(x), {x: np.ones([8192, 1024], np.float32)})
        tf.Session.reset(task.target)
        return used

    use(1)
    wait_for(lambda: resident() < 64 << 20, "after the first use there are", resident())
    for _ in range(3):
        used = use(512)
        check(used > 128 << 20, "it used no memory:", used)
        # Buffers of messages stay for a moment.
        wait_for(lambda: resident() < 48 << 20, "of", used, "bytes there stay", resident())
    task.end()


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


if __name__ == "__main__":
    run_part(globals())
