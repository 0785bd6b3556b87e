"""`runnel serve` as its users start it, for tests that are called as TEST.py RUNNEL PART."""

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

RUNNEL = os.path.abspath(sys.argv[1])
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
FOLDER = tempfile.mkdtemp(prefix="runnel-serve-")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(each) for each in what))


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def wait_until(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < until, what)
        time.sleep(0.02)


class Server:
    """A server on free ports of this machine, until it has printed them."""

    all = []

    def __init__(self, *flags, is_ready=True, scheme="http", context=None):
        self.scheme, self.context = scheme, context
        self.log = os.path.join(FOLDER, f"serve{len(Server.all)}.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([RUNNEL, "serve", "--host=127.0.0.1", "--any_port", *flags],
                                            stderr=log, stdout=log)
        Server.all.append(self)
        wait_until(lambda: "REST at port" in self.logged().split("gRPC and ")[-1].split("\n", 1)[-1] or
                   self.process.poll() is not None, "the server does not start")
        check(self.process.poll() is None, "the server has ended:", self.logged())
        self.port = int(re.search(r"gRPC and REST at port (\d+)", self.logged()).group(1))
        self.rest = int(re.search(r"^REST at port (\d+)", self.logged(), re.M).group(1))
        if is_ready:
            wait_until(lambda: "\nready\n" in self.logged() or self.process.poll() is not None,
                       "the models do not load: " + self.logged())
            check(self.process.poll() is None, "the server has ended:", self.logged())

    def logged(self):
        with open(self.log) as file:
            return file.read()

    def ask(self, path, body=None, headers=None, port=None):
        """Status, headers and text of the answer."""
        kind = http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        more = {"context": self.context} if self.scheme == "https" else {}
        connection = kind("127.0.0.1", port or self.rest, timeout=60, **more)
        connection.request("GET" if body is None else "POST", path,
                           body if body is None or isinstance(body, (str, bytes)) else json.dumps(body),
                           headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def predict(self, model, instances, headers=None):
        code, _, text = self.ask(f"/v1/models/{model}:predict", {"instances": instances}, headers)
        check(code == 200, code, text)
        return json.loads(text)["predictions"]

    def end(self):
        """What it returned after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def context_of(ca):
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    return context


def run(parts):
    """Runs the part that the command line names."""
    try:
        parts[sys.argv[2]]()
    finally:
        for server in Server.all:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
        shutil.rmtree(FOLDER, ignore_errors=True)
