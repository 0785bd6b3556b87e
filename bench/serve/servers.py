"""Servers under measurement: started, asked until they answer, loaded by `runnel load`, ended."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.ports import free_port  # noqa: E402


def processes_of(root):
    """|root| and its descendants."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def megabytes(process, field):
    """|field| (Rss or Pss) of a process, in MB; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field + ":")) / 1000
    except OSError:
        return 0


class Server:
    """A server on a free port of this machine. |command| has "{port}" and "{second}" for its ports."""

    def __init__(self, command, path, body, seconds=60):
        self.port, self.second, self.path, self.body = free_port(), free_port(), path, body
        self.log = tempfile.TemporaryFile("w+")
        command = [str(word).format(port=self.port, second=self.second) for word in command]
        begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)
        try:
            while not self.answers():
                if self.process.poll() is not None or time.monotonic() > begun + seconds:
                    raise RuntimeError("does not answer: " + self.said())
                time.sleep(0.001)
        except BaseException:
            self.end()
            raise
        self.ready_ms = (time.monotonic() - begun) * 1000

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def said(self):
        self.log.seek(0)
        return " / ".join(self.log.read().strip().splitlines()[-3:])

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def answers(self):
        try:
            return self.ask(self.path, self.body)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def serves(self, model):
        return self.ask(f"/v1/models/{model}")[1].find(b'"AVAILABLE"') >= 0

    def memory(self):
        """MB of the server and its processes; pages that they share count once."""
        return sum(megabytes(process, "Pss") for process in processes_of(self.process.pid))

    def end(self):
        """SIGTERM, and SIGKILL for what is left of its processes."""
        all_of_it = processes_of(self.process.pid)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        for process in all_of_it:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def load(runnel, port, model, *flags, seconds=3.0, warmup=1.0, begin_only=False):
    """What `runnel load` measured; with |begin_only|, its process, whose output is that as JSON."""
    command = [str(runnel), "load", f"127.0.0.1:{port}", model, "--seconds", str(seconds), "--warmup", str(warmup), "--json",
               *map(str, flags)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process if begin_only else result_of(process)


def result_of(process):
    out, error = process.communicate(timeout=120)
    if process.returncode:
        raise RuntimeError("runnel load: " + error.strip())
    return json.loads(out)


def find_runnel(build):
    program = pathlib.Path(build).resolve() / "cli" / "runnel"
    return program if program.exists() else sys.exit(f"no cli/runnel in {build}")


def make_models(stock, folder, *names):
    """The models of models.py that |folder| lacks."""
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        subprocess.run([stock, HERE / "models.py", folder, *missing], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def ours(runnel, folder, model, *flags):
    """The command that serves |model|: REST at {port}, gRPC at {second}."""
    return [runnel, "serve", "--host=127.0.0.1", "--rest_api_port={port}", "--port={second}", f"--model_name={model}",
            f"--model_base_path={folder / model}", *flags]
