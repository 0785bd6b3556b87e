#!/usr/bin/env python3
"""The batch scripts of deploy/slurm, with an srun that starts the ranks here: slurm_test.py RUNNEL"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

RUNNEL = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/slurm")
RANKS = 3

# Starts a process per rank, as srun does, waits for all of them, and passes SIGTERM on to them: again and again, because a
# process that is still becoming another program loses it.
SRUN = """#!/bin/bash
ended=
trap 'ended=1; while [[ $(jobs -pr) ]]; do kill -TERM $(jobs -pr) 2> /dev/null; sleep 0.1; done' TERM
while [[ $1 == --* ]]; do shift; done
for ((i = 0; i < SLURM_NTASKS; i++)); do
  [[ $ended ]] && break
  SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
done
until wait; do :; done
"""
SCONTROL = '#!/bin/bash\necho "$@" >> "$SCONTROL_LOG"\n'


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def free_base():
    """A port with free ones after it."""
    for base in range(20000 + os.getpid() % 10000, 60000, RANKS):
        try:
            for port in range(base, base + RANKS):
                with socket.socket() as each:
                    each.bind(("127.0.0.1", port))
            return base
        except OSError:
            continue
    raise OSError("there are no free ports")


def environment(folder, train):
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
    os.symlink(RUNNEL, os.path.join(folder, "runnel"))
    return dict(os.environ, PATH=folder + ":" + os.environ["PATH"], SLURM_JOB_NODELIST="localhost", SLURM_TASKS_PER_NODE=str(RANKS),
                SLURM_NTASKS=str(RANKS), SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_JOB_ID="17", SLURM_SUBMIT_DIR=FOLDER,
                SCONTROL_LOG=os.path.join(folder, "log"), JOBS="ps=1,worker", PORT_BASE=str(free_base()), TRAIN=train, RUNS=folder)


def run(script, train, end=None):
    """Runs a script; `end` is called with its process when the program has printed "ready". Returns its status and texts."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, train)
        env["SLURM_ARRAY_TASK_ID"] = "4"
        process = subprocess.Popen(["bash", os.path.join(FOLDER, script)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        text = ""
        for line in process.stdout:
            text += line
            if end and line.startswith("ready"):
                end(process)
        code = process.wait(timeout=60)
        log = os.path.join(folder, "log")
        return code, text, open(log).read() if os.path.exists(log) else ""


def main():
    status = "runnel cluster status && echo $TF_CONFIG"
    code, text, log = run("cluster.sbatch", f"bash -c '{status}'")
    check(code == 0 and log == "", code, text)
    config = json.loads(next(line for line in text.splitlines() if line.startswith('{"cluster"')))
    check([len(config["cluster"][job]) for job in ("ps", "worker")] == [1, 2], config)
    code, text, _ = run("cluster.sbatch", "false")
    check(code == 1, "the script hides that the program failed", code, text)
    code, text, log = run("cluster.sbatch", "bash -c 'echo ready; exec sleep 60'", lambda process: process.send_signal(signal.SIGTERM))
    check(code == 0 and log == "requeue 17\n", code, text, log)
    code, text, _ = run("array.sbatch", "echo element")
    check(code == 0 and "--seed 4" in text and "/4 " in text, code, text)


main()
