"""Runs cases in one library: worker.py LIBRARY [--optimize] [--memory GIB] [--verbose]

Reads pickled requests from standard input and writes pickled answers: ("ops",) returns the OpList and
the kernels of every op, ("run", cases) one result per case. It loads the library once and runs every
batch in a fork of this process, so a crash or a hang costs only the current case.
"""

import argparse
import os
import pickle
import resource
import select
import signal
import struct
import tempfile

from capi import Library


def send(fd, value):
    data = pickle.dumps(value, protocol=4)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


def read_exactly(fd, n):
    data = bytearray()
    while len(data) < n:
        more = os.read(fd, n - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def receive(fd, timeout=None):
    """The next value; TimeoutError if its first byte does not come in time."""
    if timeout is not None and not select.select([fd], [], [], timeout)[0]:
        raise TimeoutError
    return pickle.loads(read_exactly(fd, struct.unpack("<Q", read_exactly(fd, 8))[0]))


def child(library, cases, out, memory):
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in cases:
        send(out, library.run(case))
    os._exit(0)


def run(library, cases, memory, timeout):
    answers = []
    while len(answers) < len(cases):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                child(library, cases[len(answers) :], write, memory)
            finally:
                os._exit(70)  # a bug of this program
        os.close(write)
        last = None
        try:
            while len(answers) < len(cases):
                answers.append(receive(read, timeout))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            last = ("hang",)
        except EOFError:
            pass
        os.close(read)
        status = os.waitpid(pid, 0)[1]
        if len(answers) < len(cases):
            how = "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "exit %d" % (status >> 8)
            answers.append(last or ("crash", how))
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--optimize", action="store_true")
    parser.add_argument("--memory", type=float, default=6)
    parser.add_argument("--timeout", type=float, default=8)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    out = os.dup(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if not args.verbose:
        os.dup2(quiet, 2)
    library = Library(args.library, args.optimize)
    with tempfile.TemporaryDirectory() as folder:  # relative paths of cases end up here
        os.chdir(folder)
        while True:
            try:
                request = receive(0)
            except EOFError:
                return
            if request[0] == "ops":
                names = request[1]
                send(out, (library.op_list(), {n: library.kernels(n) for n in names}))
            else:
                send(out, run(library, request[1], int(args.memory * 2**30), args.timeout))


if __name__ == "__main__":
    main()
