#!/usr/bin/env python3
"""Trains on a cluster whose tasks are killed, stopped and cut off: chaos.py DIGITS [--seconds N] [--seed N]

The tasks are those of examples/cluster/digits: parameter servers and workers; the first worker is the
chief and saves checkpoints. Every few seconds a random failure hits one of them: it is killed and
restarted, stopped for a while, or, with --netns, cut off from the others or made to lose packets. The
loss must keep falling. At the end the program prints how long training stood still after each
failure, and how many steps were lost.

    chaos.py build/rel/examples/cluster/digits                    twenty seconds
    chaos.py build/rel/examples/cluster/digits --seconds 600      ten minutes
    chaos.py build/rel/examples/cluster/digits --netns            each task in a network of its own
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LEASE = 2.0
SETTLE = 8 * LEASE  # the longest that training may stand still after a blow has ended


class Network:
    """All tasks on loopback."""

    def __init__(self, digits, count):
        ports = subprocess.run([digits, "--ports", str(count)], check=True, capture_output=True, text=True)
        self.addresses = [f"127.0.0.1:{port}" for port in ports.stdout.split()]

    def command(self, _task):
        return []

    def blows(self):
        return []

    def close(self):
        pass


class Namespaces(Network):
    """Each task in a network namespace, all joined by a bridge."""

    def __init__(self, _digits, count):
        self.prefix = f"rn{os.getpid() % 10000}"
        self.names = [f"{self.prefix}n{i}" for i in range(count)]
        self.bridge = f"{self.prefix}b"
        self.addresses = [f"10.213.0.{i + 2}:2222" for i in range(count)]
        self.run("ip", "link", "add", self.bridge, "type", "bridge")
        self.run("ip", "link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            outer, inner = f"{self.prefix}o{i}", f"{self.prefix}i{i}"
            self.run("ip", "netns", "add", name)
            self.run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
            self.run("ip", "link", "set", inner, "netns", name)
            self.run("ip", "link", "set", outer, "master", self.bridge, "up")
            self.inside(i, "ip", "addr", "add", f"10.213.0.{i + 2}/24", "dev", inner)
            self.inside(i, "ip", "link", "set", inner, "up")
            self.inside(i, "ip", "link", "set", "lo", "up")

        self.has_netem = self.tries_netem()
        if not self.has_netem:
            print("no netem here: packets are not lost one by one")

    def tries_netem(self):
        try:
            self.disturb(0)()
        except subprocess.CalledProcessError:
            return False
        return True

    @staticmethod
    def run(*command):
        subprocess.run(command, check=True, capture_output=True)

    def inside(self, task, *command):
        self.run("ip", "netns", "exec", self.names[task], *command)

    def command(self, task):
        return ["ip", "netns", "exec", self.names[task]]

    def cut(self, task):
        self.run("ip", "link", "set", f"{self.prefix}o{task}", "down")
        return lambda: self.run("ip", "link", "set", f"{self.prefix}o{task}", "up")

    def disturb(self, task):
        device = f"{self.prefix}o{task}"
        self.run("tc", "qdisc", "add", "dev", device, "root", "netem", "delay", "20ms", "20ms", "loss", "5%")
        return lambda: self.run("tc", "qdisc", "del", "dev", device, "root")

    def blows(self):
        cut = [("is cut off", self.cut)]
        return cut + ([("loses packets", self.disturb)] if self.has_netem else cut)

    def close(self):
        for i, name in enumerate(self.names):
            subprocess.run(["ip", "link", "del", f"{self.prefix}o{i}"], capture_output=True)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)


class Chaos:
    def __init__(self, arguments, network, folder):
        self.arguments, self.network, self.folder = arguments, network, folder
        self.random = random.Random(arguments.seed)
        servers = arguments.ps
        self.jobs = [("ps", i) for i in range(servers)] + [("worker", i) for i in range(arguments.workers)]
        addresses = network.addresses
        self.cluster = "ps=" + "|".join(addresses[:servers]) + ",worker=" + "|".join(addresses[servers:])
        self.processes = {}
        self.ended = []  # (until, undo)
        self.read = 0
        self.log = []  # (time, step, loss) as the chief said it
        self.chief_logs = []

    def start(self, task):
        job, index = self.jobs[task]
        path = os.path.join(self.folder, f"{job}{index}.{time.time():.3f}.log")
        command = [*self.network.command(task), self.arguments.digits, "--cluster", self.cluster, "--job", job,
                   "--task", str(index), "--dir", self.folder, "--steps", "100000000",
                   *(["--sync"] if self.arguments.sync else [])]
        environment = dict(os.environ, RUNNEL_LEASE=str(LEASE))
        self.processes[task] = subprocess.Popen(command, stdout=open(path, "wb"), stderr=subprocess.STDOUT,
                                                env=environment, start_new_session=True)
        if (job, index) == ("worker", 0):
            self.chief_logs.append(path)
            self.read = 0

    def signal(self, task, number):
        try:
            os.killpg(self.processes[task].pid, number)
        except ProcessLookupError:
            pass

    def look(self):
        """What the chief has said since the last look."""
        with open(self.chief_logs[-1], "rb") as file:
            file.seek(self.read)
            text = file.read()
            self.read += len(text)
        for step, loss in re.findall(rb"step +(\d+) +loss ([0-9.]+)", text):
            self.log.append((time.time(), int(step), float(loss)))

    def strike(self):
        """Something befalls a task; when it ends, it is undone."""
        task = self.random.randrange(len(self.jobs))
        blows = [("is killed", self.kill), ("is killed", self.kill), ("is stopped", self.stop), *self.network.blows()]
        name, blow = self.random.choice(blows)
        lasts = self.random.uniform(0.2, 2 * LEASE)
        undo = blow(task)
        print(f"{time.time() - self.began:7.1f} s  {self.jobs[task][0]} {self.jobs[task][1]} {name} for {lasts:.1f} s",
              flush=True)
        return time.time() + lasts, undo

    def kill(self, task):
        self.signal(task, signal.SIGKILL)
        self.processes[task].wait()
        return lambda: self.start(task)

    def stop(self, task):
        self.signal(task, signal.SIGSTOP)
        return lambda: self.signal(task, signal.SIGCONT)

    def wait(self, seconds, until=lambda: False):
        end = time.time() + seconds
        while time.time() < end and not until():
            time.sleep(0.1)
            self.look()

    def settle(self, what):
        """Training has to go on: the chief says a step that it has not said before the blow."""
        before, said = time.time(), len(self.log)
        self.wait(SETTLE, lambda: len(self.log) > said)
        if len(self.log) == said:
            raise AssertionError(f"nothing was learned in {SETTLE:.0f} s after {what}")
        return time.time() - before

    def run(self):
        self.began = time.time()
        for task in range(len(self.jobs)):
            self.start(task)
        self.wait(30, lambda: len(self.log) > 2)
        assert len(self.log) > 2, "the training has not begun"
        first = self.log[0][2]
        recoveries, lost = [], 0
        while time.time() - self.began < self.arguments.seconds:
            self.wait(self.random.uniform(0.5, 2))
            highest = self.log[-1][1]
            until, undo = self.strike()
            self.wait(until - time.time())
            undo()
            said = len(self.log)
            recoveries.append(self.settle("a blow"))
            lost += max(0, highest - self.log[said][1]) if len(self.log) > said else 0
        self.wait(2)
        last = sorted(loss for _, _, loss in self.log[-7:])[3]
        steps = self.log[-1][1]
        print(f"{len(recoveries)} blows; back after {sum(recoveries) / len(recoveries):.2f} s in the mean, "
              f"{max(recoveries):.2f} s at most; {lost} steps lost of {steps}; loss {first:.3f} to {last:.3f}")
        assert last < first / 3, f"the loss has not fallen: {first} to {last}"

    def close(self):
        for task in self.processes:
            self.signal(task, signal.SIGKILL)
        for process in self.processes.values():
            process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("digits")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--netns", action="store_true")
    parser.add_argument("--sync", action="store_true", help="one gradient of each worker makes an update")
    arguments = parser.parse_args()
    kind = Namespaces if arguments.netns else Network
    network = None
    try:
        network = kind(arguments.digits, arguments.ps + arguments.workers)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        detail = getattr(error, "stderr", b"") or b""
        print("skipped: no network namespaces here:", detail.decode().strip() or error)
        return 77
    folder = tempfile.mkdtemp(prefix="chaos")
    chaos = Chaos(arguments, network, folder)
    try:
        chaos.run()
    except AssertionError as error:
        print("failed:", error)
        print("logs are in", folder)
        return 1
    finally:
        chaos.close()
        network.close()
    shutil.rmtree(folder)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
