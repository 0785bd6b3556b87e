"""The command `runnel` as an operator uses it, for tests that are called as TEST.py RUNNEL PART.

A part that cannot run here says why and ends with 77.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support

RUNNEL, PART = os.path.abspath(sys.argv[1]), sys.argv[2]
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


def need(condition, why):
    if not condition:
        print(why)
        sys.exit(77)


def wait_for(condition, *what):
    """Until the condition holds: a busy machine takes its time."""
    deadline = time.time() + 60
    while not condition():
        check(time.time() < deadline, *what)
        time.sleep(0.05)


def run_part(parts):
    """Runs the part that was asked for, and ends all that it started."""
    code = 0
    try:
        parts["part_" + PART]()
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
