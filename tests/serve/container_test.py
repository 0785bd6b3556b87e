"""`runnel serve` with containers, from a request over REST to the end of the last process.

usage: container_test.py RUNNEL SOURCE PART    77: NumPy is missing

PART is "crash" (a crash costs one model its own requests), "isolate" (SavedModels in processes of their own) or "end" (no process
outlives the server, and a model that does not start says why).
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit(77)

RUNNEL, SOURCE, PART = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
HALF = os.path.join(SOURCE, "tests", "serve", "models", "half_plus_two", "00000123")
CONTAINER = os.path.join(SOURCE, "python", "runnel", "serving", "container.py")
MODEL = """
import os
from runnel.serving import signature
@signature(inputs={"x": ("float32", [None])}, outputs={"y": ("float32", [None])})
def predict(inputs):
    if (inputs["x"] == 666).any():
        os.abort()
    return {"y": 2 * inputs["x"]}
"""


class Server:
    started = []

    def __init__(self, models, *more):
        """`models`: names and base paths."""
        self.folder = tempfile.mkdtemp()
        config = os.path.join(self.folder, "models.pbtxt")
        with open(config, "w") as file:
            file.write("model_config_list {%s}" % "".join(
                'config { name: "%s" base_path: "%s" model_platform: "tensorflow" }' % model for model in models.items()))
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.process = subprocess.Popen([RUNNEL, "serve", "--model_config_file", config, "--any_port", "--host", "127.0.0.1", *more],
                                        stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        Server.started.append(self.process)
        self.port = None
        for _ in range(600):
            found = re.search(r"gRPC and REST at port (\d+)", self.text())
            if found:
                self.port = int(found.group(1))
                break
            time.sleep(0.1)
        assert self.port, self.text()

    def text(self):
        return open(self.log.name).read()

    def ask(self, path, body=None):
        """The status and the reply."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/v1/models/%s" % (self.port, path), data, timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def predict(self, model, *rows):
        return self.ask(model + ":predict", {"instances": rows})

    def wait_for(self, model, row, answer):
        """Seconds until the model answers."""
        begun = time.monotonic()
        for _ in range(3000):
            if self.predict(model, row) == (200, {"predictions": [answer]}):
                return time.monotonic() - begun
            time.sleep(0.02)
        raise AssertionError("no answer: %s\n%s" % (self.predict(model, row), self.text()))

    def children(self):
        pids = []
        for task in os.listdir("/proc/%d/task" % self.process.pid):
            pids += map(int, open("/proc/%d/task/%s/children" % (self.process.pid, task)).read().split())
        return sorted(pids)

    def stop(self, how=signal.SIGTERM):
        """Ends the server; no process that it has started may be left."""
        children = self.children()
        self.process.send_signal(how)
        self.process.wait(60)
        for _ in range(600):
            if not any(os.path.exists("/proc/%d" % pid) for pid in children):
                break
            time.sleep(0.1)
        else:
            raise AssertionError("%s are left" % children)
        shutil.rmtree(self.folder)


def make_container(base, model=MODEL, more=""):
    """Version 1 of a model: a container around the source of a module."""
    folder = os.path.join(base, "1")
    os.makedirs(folder)
    with open(os.path.join(folder, "model.py"), "w") as file:
        file.write(model)
    with open(os.path.join(folder, "container.pbtxt"), "w") as file:
        file.write('command: ["%s", "-B", "%s", "model:predict"]\n%s' % (sys.executable, CONTAINER, more))
    return base


class Client(threading.Thread):
    """Asks a model all the time, and keeps what went wrong."""

    def __init__(self, server, model, row, answer):
        super().__init__(daemon=True)
        self.server, self.model, self.row, self.answer = server, model, row, answer
        self.bad, self.count, self.is_over = [], 0, False
        self.start()

    def run(self):
        while not self.is_over:
            reply = self.server.predict(self.model, self.row)
            self.count += 1
            if reply != (200, {"predictions": [self.answer]}):
                self.bad.append(reply)
            time.sleep(0.005)

    def end(self):
        self.is_over = True
        self.join()
        assert self.count and not self.bad, self.bad[:3]


def crash(base):
    server = Server({"twice": make_container(base + "/twice"), "half": os.path.dirname(HALF)})
    server.wait_for("half", [1.0], [2.5])
    server.wait_for("twice", 21.0, 42.0)
    client = Client(server, "half", [1.0], [2.5])
    for _ in range(3):
        code, reply = server.predict("twice", 666.0)
        assert code == 503 and "Model 'twice'" in reply["error"], (code, reply)
        print("answered again after %.2f s" % server.wait_for("twice", 21.0, 42.0))
    client.end()
    assert server.ask("twice")[1]["model_version_status"][0]["state"] == "AVAILABLE"
    server.stop()


def isolate(base):
    folder = base + "/alone/1"
    shutil.copytree(HALF, folder)
    with open(folder + "/container.pbtxt", "w") as file:
        file.write("isolate: true")
    server = Server({"alone": base + "/alone", "half": os.path.dirname(HALF)})
    server.wait_for("half", [1.0], [2.5])
    server.wait_for("alone", [1.0], [2.5])
    client = Client(server, "half", [1.0], [2.5])
    for i in range(3):
        before = server.children()
        assert len(before) == 1
        os.kill(before[0], signal.SIGABRT)  # as an abort in a kernel would
        while server.children() == before:
            time.sleep(0.005)
        # New numbers each time: the cache would answer the old ones.
        print("answered again after %.2f s" % server.wait_for("alone", [10.0 + 2 * i], [7.0 + i]))
    client.end()
    server.stop()


def end(base):
    for how in (signal.SIGTERM, signal.SIGKILL):
        folder = base + "/%d" % how
        server = Server({"twice": make_container(folder, more="replicas: 2")})
        server.wait_for("twice", 21.0, 42.0)
        assert len(server.children()) == 2
        server.stop(how)
    bad = make_container(base + "/bad", "import no_such_module\n")
    server = Server({"bad": bad, "half": os.path.dirname(HALF)}, "--max_num_load_retries", "0")
    server.wait_for("half", [1.0], [2.5])
    for _ in range(600):
        status = server.ask("bad")[1]["model_version_status"][0]
        if status["state"] == "END":
            break
        time.sleep(0.1)
    assert "exited with status 1: ModuleNotFoundError: No module named 'no_such_module'" in status["status"]["error_message"], status
    server.stop()


with tempfile.TemporaryDirectory() as base:
    try:
        {"crash": crash, "isolate": isolate, "end": end}[PART](base)
    finally:
        for process in Server.started:
            if process.poll() is None:
                process.kill()
