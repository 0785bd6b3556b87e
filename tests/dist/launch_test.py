#!/usr/bin/env python3
"""Clusters that are started together, by `runnel cluster up`, MPI or Slurm: launch_test.py RUNNEL PART

Needs nothing but Python's own library. A part that cannot run here says why and ends with 77.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from operator_tools import FOLDER, RUNNEL, call, check, environment, need, processes, run_part
from support.ports import free_block, free_ports


def part_cluster():
    folder = os.path.join(FOLDER, "c")
    script = ("import json, os, subprocess, sys\n"
              "cluster = json.loads(os.environ['TF_CONFIG'])['cluster']\n"
              "assert len(cluster['ps']) == 2 and len(cluster['worker']) == 3, cluster\n"
              "assert os.environ['RUNNEL_TARGET'] == 'grpc://' + cluster['worker'][0]\n"
              f"out = subprocess.run([{RUNNEL!r}, 'cluster', 'status'], check=True,\n"
              "                     capture_output=True, text=True).stdout\n"
              "rows = out.splitlines()\n"
              "assert len(rows) == 6 and all(' ready ' in row for row in rows[1:]), out\n"
              f"out = subprocess.run([{RUNNEL!r}, 'top', '--once'], check=True,\n"
              "                     capture_output=True, text=True).stdout\n"
              "assert 'STEPS/S' in out and 'QUEUED' in out, out\n"
              "sys.exit(7)\n")
    code, out, errors = call("cluster", "up", "--ps", "2", "--workers", "3", "--dir", folder, "--",
                             sys.executable, "-c", script)
    check(code == 7, "ended with", code, out, errors)
    with open(os.path.join(folder, "cluster.json")) as file:
        cluster = json.load(file)
    for pid in cluster["pids"].values():
        check(not os.path.exists(f"/proc/{pid}"), "task", pid, "has not ended")
    check(sorted(name for name in os.listdir(folder) if name.endswith(".log")) ==
          ["ps-0.log", "ps-1.log", "worker-0.log", "worker-1.log", "worker-2.log"])
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "5 of 5 tasks are down" in errors and out.count(" down ") == 5, out, errors)
    code, _, errors = call("cluster", "stop", "--dir", folder)
    check(code == 1 and "no task of the cluster answers" in errors, errors)
    # In the foreground until it is told to end; a task that dies is named, the others go on.
    up = subprocess.Popen([RUNNEL, "cluster", "up", "--ps", "1", "--workers", "2", "--dir", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment())
    processes.append(up)
    check(up.stdout.readline().startswith("The cluster is up"))
    with open(os.path.join(folder, "cluster.json")) as file:
        cluster = json.load(file)
    os.kill(cluster["pids"]["worker:1"], signal.SIGKILL)
    check("task 1 of job worker has ended (signal 9)" in up.stderr.readline())
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "1 of 3 tasks are down" in errors and out.count(" ready ") == 2, out,
          errors)
    os.kill(cluster["pids"]["worker:0"], signal.SIGSTOP)
    code, out, errors = call("cluster", "status", "--dir", folder)
    check(code == 1 and "2 of 3 tasks are down" in errors and "it does not answer" in out and
          out.count(" ready ") == 1, out, errors)
    code, out, errors = call("cluster", "stop", "--dir", folder)
    check(code == 1 and out == "1 of 3 tasks have ended\n" and "does not answer" in errors, out, errors)
    os.kill(cluster["pids"]["worker:0"], signal.SIGCONT)
    check(up.wait(10) == 0)
    # With --restart a task that dies comes back, as another process at the same address.
    up = subprocess.Popen([RUNNEL, "cluster", "up", "--ps", "1", "--workers", "1", "--dir", folder, "--restart"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    processes.append(up)
    check(up.stdout.readline().startswith("The cluster is up"))

    def pid_of(task):
        with open(os.path.join(folder, "cluster.json")) as file:
            return json.load(file)["pids"][task]

    for _ in range(2):
        first = pid_of("worker:0")
        os.kill(first, signal.SIGKILL)
        check("task 0 of job worker has ended (signal 9) and is started again" in up.stderr.readline())
        deadline = time.time() + 20
        while call("cluster", "status", "--dir", folder)[0] != 0:
            check(time.time() < deadline, "the task does not come back")
        check(pid_of("worker:0") != first)
    code, out, errors = call("cluster", "stop", "--dir", folder)
    check(code == 0 and out == "2 of 2 tasks have ended\n" and up.wait(10) == 0, out, errors)
    # The command's own fate, and a folder that goes away.
    code, _, errors = call("cluster", "up", "--", "sh", "-c", "kill -9 $$")
    check(code == 137 and "logs of the tasks are in" in errors, code, errors)
    shutil.rmtree(errors.strip().rsplit(" ", 1)[1])
    code, _, errors = call("cluster", "up", "--", "/no/such/command")
    check(code == 127 and "cannot run /no/such/command" in errors, code, errors)
    shutil.rmtree(errors.strip().rsplit(" ", 1)[1])
    check(call("cluster", "up", "--", "true")[0] == 0)
    code, _, errors = call("cluster", "up", "true")
    check(code == 2 and "put -- before" in errors, errors)
    check(call("cluster", "sideways")[0] == 2)
    check(call("cluster", "status")[0] == 2)


def show(env, *arguments):
    return call("server", "--show", *arguments, env=environment(**env))


def part_launch():
    slurm = {"SLURM_STEP_NODELIST": "rack[1-2]n[08-10],login,gpu[1,3]",
             "SLURM_STEP_TASKS_PER_NODE": "2(x3),1(x6)", "SLURM_STEP_NUM_TASKS": "12",
             "SLURM_PROCID": "6", "SLURM_LOCALID": "0"}
    code, out, errors = show(slurm, "--cluster", "slurm", "--jobs", "ps=2,worker", "--port-base",
                             "3000")
    check(code == 0, errors)
    hosts = ["rack1n08:3000", "rack1n08:3001", "rack1n09:3000", "rack1n09:3001", "rack1n10:3000",
             "rack1n10:3001", "rack2n08:3000", "rack2n09:3000", "rack2n10:3000", "login:3000",
             "gpu1:3000", "gpu3:3000"]
    names = ["ps:0", "ps:1"] + [f"worker:{i}" for i in range(10)]
    expected = "".join(f"{'* ' if i == 6 else '  '}{name} {host}\n"
                       for i, (name, host) in enumerate(zip(names, hosts)))
    lines = out.splitlines(keepends=True)
    check("".join(lines[:-1]) == expected, out)
    check(json.loads(lines[-1]) == {"ps": hosts[:2], "worker": hosts[2:]}, out)
    batch = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_NTASKS": "4",
             "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    code, out, errors = show(batch, "--cluster", "slurm", "--jobs", "ps=1,worker")
    check(json.loads(out.splitlines()[-1]) == {
        "ps": ["n1:8888"], "worker": ["n1:8889", "n2:8888", "n2:8889"]}, out, errors)
    for change, message in (
            ({"SLURM_STEP_NODELIST": "a[1-"}, "not a list of nodes"),
            ({"SLURM_STEP_NODELIST": "a[3-1]"}, "not a list of nodes"),
            ({"SLURM_STEP_NODELIST": "a[1-999999999]"}, "not a list of nodes"),
            ({"SLURM_STEP_TASKS_PER_NODE": "2(y3)"}, "tasks per node"),
            ({"SLURM_STEP_TASKS_PER_NODE": "2(x3)"}, "does not describe"),
            ({"SLURM_STEP_NUM_TASKS": "0"}, "SLURM_STEP_NUM_TASKS"),
            ({"SLURM_STEP_NUM_TASKS": "13"}, "no slot for rank 12"),
            ({"SLURM_PROCID": "12"}, "rank 12 of 12"),
            ({"SLURM_LOCALID": "1"}, "in blocks"),
            ({"SLURM_PROCID": ""}, "SLURM_PROCID")):
        code, _, errors = show({**slurm, **change}, "--cluster", "slurm")
        check(code == 1 and message in errors, change, errors)
    for jobs, message in (("ps=2,worker=9", "needs 11 tasks"), ("ps=12,worker", "one more"),
                          ("ps=x", "--jobs must be like"), ("a,b", "--jobs must be like")):
        code, _, errors = show(slurm, "--cluster", "slurm", "--jobs", jobs)
        check(code == 1 and message in errors, jobs, errors)
    mpi = {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2",
           "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}
    code, out, errors = show(mpi, "--cluster", "mpi", "--jobs", "ps=1,worker")
    check(out == "  ps:0 localhost:8888\n  worker:0 localhost:8889\n* worker:1 localhost:8890\n"
          '{"ps": ["localhost:8888"], "worker": ["localhost:8889", "localhost:8890"]}\n', out,
          errors)
    hosts = os.path.join(FOLDER, "hosts")
    with open(hosts, "w") as file:
        file.write("# two machines\nnode1 slots=2\n\nnode2:4 # the large one\n")
    code, out, errors = show({**mpi, "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, "--cluster", "mpi",
                             "--hosts", hosts)
    expected = "  worker:0 node1:8888\n  worker:1 node1:8889\n* worker:2 node2:8888\n{"
    check(out.startswith(expected), out, errors)
    code, _, errors = show({**mpi, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "--cluster", "mpi")
    check(code == 1 and "--hosts must name the file" in errors, errors)
    check(show({}, "--cluster", "slurm")[0] == 1)
    check(show({}, "--cluster", "mpi")[0] == 1)


def launch_three(launcher, kind, host, more=()):
    """One parameter server and two workers under |launcher|: they meet, and they end."""
    base = free_block(3)
    job = subprocess.Popen([*launcher, RUNNEL, "server", "--cluster", kind, "--jobs", "ps=1,worker",
                            "--port-base", str(base), *more], stdout=subprocess.PIPE, text=True,
                           env=environment(**{k: v for k, v in os.environ.items()
                                              if k == "SLURM_CONF"}))
    processes.append(job)
    targets = sorted(job.stdout.readline().strip() for _ in range(3))
    check(targets == [f"grpc://{host}:{base + i}" for i in range(3)], targets)
    cluster = f"ps={host}:{base},worker={host}:{base + 1}|{host}:{base + 2}"
    code, out, errors = call("cluster", "status", "--cluster", cluster)
    check(code == 0 and out.count(" ready ") == 3 and "but it says" not in out, out, errors)
    code, out, errors = call("cluster", "stop", "--cluster", cluster)
    check(code == 0 and out == "3 of 3 tasks have ended\n", out, errors)
    check(job.wait(30) == 0, "the launcher ended with", job.returncode)


def part_mpi():
    need(shutil.which("mpirun"), "mpirun is missing (Debian: openmpi-bin)")
    launch_three(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"], "mpi",
                 "localhost")


def part_slurm():
    """A cluster of Slurm's on this machine, without authentication, for this test alone."""
    os.environ["PATH"] += ":/usr/sbin"
    need(all(map(shutil.which, ("slurmctld", "slurmd", "srun"))),
         "Slurm is missing (Debian: slurm-wlm)")
    need(os.geteuid() == 0, "slurmd wants to be root")
    host, ports = socket.gethostname().split(".")[0], free_ports(2)
    os.makedirs(os.path.join(FOLDER, "state"))
    os.makedirs(os.path.join(FOLDER, "spool"))
    os.environ["SLURM_CONF"] = os.path.join(FOLDER, "slurm.conf")
    with open(os.environ["SLURM_CONF"], "w") as file:
        file.write(f"""ClusterName=runnel
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdPidFile={FOLDER}/slurmd.pid
StateSaveLocation={FOLDER}/state
SlurmdSpoolDir={FOLDER}/spool
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE
""")
    for daemon in ("slurmctld", "slurmd"):
        with open(os.path.join(FOLDER, daemon + ".log"), "w") as log:
            processes.append(subprocess.Popen([daemon, "-D"], stdout=log, stderr=log))
    deadline = time.time() + 30
    while "idle" not in subprocess.run(["sinfo", "-h"], capture_output=True, text=True).stdout:
        need(time.time() < deadline, "Slurm does not start here")
        time.sleep(0.2)
    launch_three(["srun", "-n", "3", "--overcommit"], "slurm", host, ["--insecure"])


if __name__ == "__main__":
    run_part(globals())
