"""Runs ours.py on tasks whose collectives run by MPI: by_mpi.py RUNNEL COUNT CHAIN TURNS."""

import json
import os
import socket
import subprocess
import sys

TASKS = 4
sockets = [socket.socket() for _ in range(TASKS)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
addresses = ["127.0.0.1:%d" % one.getsockname()[1] for one in sockets]
for one in sockets:
    one.close()
server = "exec %s server --cluster 'worker=%s' --job worker --task $OMPI_COMM_WORLD_RANK --collectives mpi" % (
    sys.argv[1], "|".join(addresses),
)
command = ["mpirun", "--oversubscribe", "-n", str(TASKS), "sh", "-c", server]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
    for _ in range(TASKS):
        assert job.stdout.readline()
    config = json.dumps({"cluster": {"worker": addresses}})
    environment = dict(os.environ, TF_CONFIG=config, RUNNEL_TARGET="grpc://" + addresses[0])
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ours.py")
    subprocess.run([sys.executable, script, *sys.argv[2:]], env=environment)
    job.terminate()
