#!/usr/bin/env python3
"""The batch scripts of deploy/slurm, with an srun that starts the ranks here: slurm_test.py RUNNEL"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from support.ports import free_block  # noqa: E402

RUNNEL = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(HERE, "../../deploy/slurm")
RANKS = 3

# Starts a process per rank, as srun does, waits for all of them, and passes SIGTERM on to them. A rank that fails ends the
# others, for --kill-on-bad-exit. The signal is blocked except where this waits for it, and so it is in the ranks until they
# unblock or await it: none can lose it while it becomes another program.
SRUN = f"""#!{sys.executable}
import os, signal, subprocess, sys
AWAITED = signal.SIGTERM, signal.SIGCHLD
signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
command = [word for word in sys.argv[1:] if not word.startswith("--kill-on-bad-exit")]
ranks = [subprocess.Popen(command, env=dict(os.environ, SLURM_PROCID=str(i), SLURM_LOCALID=str(i)))
         for i in range(int(os.environ["SLURM_NTASKS"]))]
is_told = False
while any(rank.poll() is None for rank in ranks):
    came = signal.sigwait(AWAITED)
    if not is_told and (came == signal.SIGTERM or any(rank.poll() for rank in ranks)):
        is_told = True
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
sys.exit(max(abs(rank.returncode) for rank in ranks))
"""
SCONTROL = '#!/bin/bash\necho "$@" >> "$SCONTROL_LOG"\n'


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def environment(folder, train, base):
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
    os.symlink(RUNNEL, os.path.join(folder, "runnel"))
    return dict(os.environ, PATH=folder + ":" + os.environ["PATH"], SLURM_JOB_NODELIST="localhost", SLURM_TASKS_PER_NODE=str(RANKS),
                SLURM_NTASKS=str(RANKS), SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_JOB_ID="17", SLURM_SUBMIT_DIR=FOLDER,
                SLURM_ARRAY_TASK_ID="4", SCONTROL_LOG=os.path.join(folder, "log"), JOBS="ps=1,worker", PORT_BASE=str(base), TRAIN=train,
                RUNS=folder)


def run(script, train, end_after=None, base=None):
    """Runs a script, and returns its status, its texts and what scontrol was told.

    |end_after|: SIGTERM goes to the script after so many seconds, or when the program has printed this line.
    """
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(["bash", os.path.join(FOLDER, script)], env=environment(folder, train, base or free_block(RANKS)),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if isinstance(end_after, float):
            time.sleep(end_after)
            process.send_signal(signal.SIGTERM)
        text = ""
        for line in process.stdout:
            text += line
            if line.rstrip() == end_after:
                process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
        log = os.path.join(folder, "log")
        return code, text, open(log).read() if os.path.exists(log) else ""


def check_signal_at_any_time():
    """Before the script listens to the signal it ends by it; afterwards it ends the job in order, whatever was just starting."""
    code, text, log = run("cluster.sbatch", "bash -c 'echo ready; exec sleep 60'", end_after="ready")
    check(code == 0 and log == "requeue 17\n", code, text, log)
    for i in range(6):
        start = time.monotonic()
        code, text, log = run("cluster.sbatch", "sleep 60", end_after=0.03 * i)
        check((code, log) in ((0, "requeue 17\n"), (-signal.SIGTERM, "")), i, code, text, log)
        check(time.monotonic() - start < 30, "the job took", time.monotonic() - start, "s to end:", text)


def check_port_in_use():
    """A server that has no port ends with a message, and so do the other tasks and the program."""
    with socket.socket() as other:
        base = free_block(RANKS)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", base + 1))
        other.listen()
        code, text, log = run("cluster.sbatch", "sleep 60", base=base)
    check(code == 1 and log == "", code, text, log)
    check("Address already in use" in text and "the tasks have ended before the program" in text, text)


def main():
    status = "until runnel cluster status; do sleep 0.2; done; echo $TF_CONFIG"
    code, text, log = run("cluster.sbatch", f"timeout 60 bash -c '{status}'")
    check(code == 0 and log == "", code, text)
    config = json.loads(next(line for line in text.splitlines() if line.startswith('{"cluster"')))
    check([len(config["cluster"][job]) for job in ("ps", "worker")] == [1, 2], config)
    code, text, _ = run("cluster.sbatch", "false")
    check(code == 1, "the script hides that the program failed", code, text)
    check_signal_at_any_time()
    check_port_in_use()
    code, text, _ = run("array.sbatch", "echo element")
    check(code == 0 and "--seed 4" in text and "/4 " in text, code, text)


main()
