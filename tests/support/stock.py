"""Stock TensorFlow, for tests that compare with it or exchange files with it.

Importing it takes longer than most programs run. So a test process imports it once, in a child that forks for each program (run), and
records what a program prints if that does not depend on our code (printed, recorded).
"""

import atexit
import ctypes
import functools
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
# A server of a cluster: arguments are the cluster as JSON, the job and the task; it prints its target when it is ready.
SERVER = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
server = tf.distribute.Server(tf.train.ClusterSpec(json.loads(sys.argv[1])), sys.argv[2], int(sys.argv[3]))
print(server.target, flush=True)
server.join()
"""
PR_SET_PDEATHSIG = 1  # prctl
_ASKING = threading.Lock()
TEXTS = os.path.join(ROOT, "tests", "python", "recorded", "texts.json")


def is_there():
    return os.path.exists(PYTHON)


@functools.lru_cache(None)
def _server(environment):
    """A process that has imported TensorFlow and runs programs in children. It starts without our PYTHONPATH."""
    variables = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", **dict(environment))
    variables.pop("PYTHONPATH", None)
    server = subprocess.Popen([PYTHON, os.path.abspath(__file__)], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    atexit.register(server.stdin.close)
    return server


def run(program, *arguments, cwd=None, errors=False, **environment):
    """Runs a program (its text, or the path of a script) in a process of its own and returns what it prints.

    With errors=True, standard error too, where unittest reports. Fails if the program fails.
    """
    server = _server(tuple(sorted(environment.items())))
    server.stdin.write(json.dumps([program, arguments, cwd or os.getcwd()]) + "\n")
    server.stdin.flush()
    code, out, err = json.loads(server.stdout.readline())
    assert code == 0, "stock: exit status %d\n%s\n%s" % (code, out[-3000:], err[-5000:])
    return out + err if errors else out


@functools.lru_cache(None)
def servers():
    """A process that has imported TensorFlow and forks the Servers; call this first, so that it imports while the test does."""
    here, there = socket.socketpair()
    subprocess.Popen([PYTHON, os.path.abspath(__file__), str(there.fileno())], env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"),
                     stderr=subprocess.DEVNULL, pass_fds=[there.fileno()])
    there.close()
    return here


class Server:
    """A server of a cluster, used like a Popen of SERVER. It starts at once, where SERVER first imports TensorFlow.

    config: a ConfigProto as text.
    """

    def __init__(self, cluster, job, task, config=""):
        end, theirs = os.pipe()  # the server holds its end as long as it lives
        with _ASKING:
            socket.send_fds(servers(), [json.dumps([cluster, job, task, config]).encode()], [theirs])
            self.pid = int(servers().recv(16))
        os.close(theirs)
        self.stdout = os.fdopen(end)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        if not select.select([self.stdout], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a stock server", timeout)


def _fork_servers(asked):
    import tensorflow as tf
    from google.protobuf import text_format
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(asked, 1 << 16, 1)
        if not message:
            return  # the test has ended
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # no server outlives its test
            cluster, job, task, config = json.loads(message)
            options = text_format.Parse(config, tf.compat.v1.ConfigProto())
            server = tf.distribute.Server(tf.train.ClusterSpec(json.loads(cluster)), job, task, config=options)
            os.write(fds[0], (server.target + "\n").encode())
            server.join()
        os.close(fds[0])
        asked.send(str(child).encode())


def digest(program, *arguments):
    text = open(program, encoding="utf-8").read() if os.path.exists(program) else program
    return hashlib.sha256("\0".join([text, *arguments]).encode()).hexdigest()[:16]


def recorded(name, key, ask):
    """The text recorded under a name if it was recorded with this key, a digest; what ask() returns otherwise.

    RUNNEL_RECORD=1 keeps what ask() returned.
    """
    try:
        with open(TEXTS, encoding="utf-8") as stream:
            texts = json.load(stream)
    except FileNotFoundError:
        texts = {}
    if name in texts and texts[name]["digest"] == key:
        return texts[name]["printed"]
    printed_now = ask()
    if os.environ.get("RUNNEL_RECORD"):
        texts[name] = {"digest": key, "printed": printed_now}
        with open(TEXTS, "w", encoding="utf-8") as stream:
            json.dump(texts, stream, indent=1, sort_keys=True)
            stream.write("\n")
    return printed_now


def printed(name, program, *arguments, **environment):
    """What a program prints, recorded under a name."""
    return recorded(name, digest(program, *arguments), lambda: run(program, *arguments, **environment))


def _run_here(program, arguments, cwd, out, err):
    """In a child of the server."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    os.chdir(cwd)
    is_path = os.path.exists(program)
    sys.argv = [program if is_path else "-c", *arguments]
    sys.path[0] = os.path.dirname(program) if is_path else ""
    code = 1
    try:
        text = open(program, encoding="utf-8").read() if is_path else program
        main = type(sys)("__main__")  # unittest looks for its tests there
        main.__file__ = program if is_path else None
        sys.modules["__main__"] = main
        exec(compile(text, program if is_path else "<program>", "exec"), main.__dict__)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve():
    import tensorflow  # noqa: F401
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                _run_here(*json.loads(line), out, err)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _fork_servers(socket.socket(fileno=int(sys.argv[1])))
    else:
        _serve()
