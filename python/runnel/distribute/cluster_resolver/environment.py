"""Resolvers that read the environment: TF_CONFIG, and the variables of SageMaker and of Slurm."""

import json
import os
import re

from runnel.distribute.cluster_resolver.base import ClusterResolver, as_target
from runnel.train.server_lib import ClusterSpec


class TFConfigClusterResolver(ClusterResolver):
    """Reads the variable TF_CONFIG: {"cluster": {job: [address]}, "task": {"type": job, "index": number}}. Arguments override it."""

    def __init__(self, task_type=None, task_id=None, rpc_layer=None, environment=None):
        self._task_type, self._task_id, self._rpc, self.environment = task_type, task_id, rpc_layer, environment

    def _config(self):
        return json.loads(os.environ.get("TF_CONFIG", "{}"))

    def _own(self, key, kind):
        task = self._config().get("task", {})
        return kind(task[key]) if key in task else None

    task_type = property(lambda self: self._own("type", str) if self._task_type is None else str(self._task_type), ClusterResolver._set_type)
    task_id = property(lambda self: self._own("index", int) if self._task_id is None else int(self._task_id), ClusterResolver._set_id)

    def _set_rpc(self, value):
        self._rpc = value
    rpc_layer = property(lambda self: self._config().get("rpc_layer") if self._rpc is None else self._rpc, _set_rpc)

    def cluster_spec(self):
        """Returns the cluster of TF_CONFIG; an empty one if it has none."""
        return ClusterSpec(self._config().get("cluster", {}))

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """Returns TF_CONFIG's "session_master", or the target of a task; "" in a cluster of one task."""
        given = self._config().get("session_master")
        if given is not None:
            return given
        cluster = self.cluster_spec()
        if not cluster.jobs or (len(cluster.jobs) == 1 and len(cluster.job_tasks(cluster.jobs[0])) == 1):
            return ""
        return as_target(cluster.task_address(self.task_type if task_type is None else task_type, self.task_id if task_id is None else task_id),
                         self.rpc_layer if rpc_layer is None else rpc_layer)


class SageMakerClusterResolver(TFConfigClusterResolver):
    """Reads the variables SM_HOSTS, a list of hosts that are all workers, and SM_CURRENT_HOST, which of them this one is."""

    def __init__(self, port=2223, task_type=None, task_id=None, rpc_layer=None, environment=None):
        super().__init__(task_type, task_id, rpc_layer, environment)
        self._port = port

    def _config(self):
        missing = [name for name in ("SM_HOSTS", "SM_CURRENT_HOST") if name not in os.environ]
        assert not missing, "Not a SageMaker Environment: %s is not set" % missing[0]
        hosts, own = sorted(json.loads(os.environ["SM_HOSTS"] or "[]")), os.environ["SM_CURRENT_HOST"]
        if own not in hosts:
            return {}
        return {"cluster": {"worker": ["%s:%s" % (host, self._port) for host in hosts]}, "task": {"type": "worker", "index": hosts.index(own)}}


# --- Slurm

def _slurm(name):
    try:
        return os.environ["SLURM_" + name]
    except KeyError:
        raise RuntimeError("SLURM_%s not found in environment. Not running inside a SLURM step?" % name) from None


def hosts_of(text):
    """Returns the hosts of a list such as "n[1-2],m5"."""
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        match = re.fullmatch(r"([^\[\]]*)(?:\[([-\d,]+)\])?", part)
        if match is None:
            raise ValueError("Invalid hostlist format \"%s\": Invalid part: %s" % (text, part))
        prefix, ranges = match.groups()
        for piece in ranges.split(",") if ranges else [""]:
            first, _, last = piece.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else [""]
            hosts += [prefix + str(number).zfill(len(first)) for number in numbers]
    return hosts


def tasks_of(text):
    """Returns the numbers of tasks of the nodes, of a list such as "3(x2),1"."""
    counts = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            raise ValueError("Invalid tasks-per-node list format \"%s\": %s" % (text, part))
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _gpus():
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
    from runnel import config
    return len(config.list_physical_devices("GPU"))


class SlurmClusterResolver(ClusterResolver):
    """Reads the variables of a Slurm step. Its tasks are divided into jobs, and the GPUs of a node among its tasks.

    Args:
      jobs: {job: number of tasks}; by default all are workers.
      port_base: the port of a node's first task; the next ones follow.
      gpus_per_node: by default those that are visible.
      gpus_per_task: by default as many as each task can have.
      tasks_per_node: a number, or {host: number}; by default Slurm says.
      auto_set_gpu: whether cluster_spec() sets CUDA_VISIBLE_DEVICES to the task's own.
      rpc_layer: of targets.
    """

    def __init__(self, jobs=None, port_base=8888, gpus_per_node=None, gpus_per_task=None, tasks_per_node=None, auto_set_gpu=True, rpc_layer="grpc"):
        self._rank = int(_slurm("PROCID"))
        self._jobs = {"worker": int(_slurm("STEP_NUM_TASKS"))} if jobs is None else jobs
        self._port = port_base
        if isinstance(tasks_per_node, dict):
            self._tasks = tasks_per_node
        else:
            hosts = hosts_of(_slurm("STEP_NODELIST"))
            counts = tasks_of(_slurm("STEP_TASKS_PER_NODE")) if tasks_per_node is None else [int(tasks_per_node)] * len(hosts)
            self._tasks = dict(zip(hosts, counts))
        most, total = max(self._tasks.values()), sum(self._tasks.values())
        self._per_node = _gpus() if gpus_per_node is None else gpus_per_node
        self._per_task = self._per_node // most if gpus_per_task is None else gpus_per_task
        self._sets_gpus, self.rpc_layer = auto_set_gpu, rpc_layer
        if most * self._per_task > self._per_node:
            raise RuntimeError("Requested more GPUs per node than available.")
        if sum(self._jobs.values()) != total:
            raise RuntimeError("Requested %d tasks but only %d were assigned." % (sum(self._jobs.values()), total))

    def cluster_spec(self):
        """Returns the cluster, and learns the place of this process in it."""
        rows = [(host, i) for host in sorted(self._tasks) for i in range(self._tasks[host])]
        addresses = ["%s:%d" % (host, self._port + i) for host, i in rows]
        cluster, first = {}, 0
        for job in sorted(self._jobs):
            cluster[job] = addresses[first:first + self._jobs[job]]
            if first <= self._rank < first + self._jobs[job]:
                self.task_type, self.task_id = job, self._rank - first
            first += self._jobs[job]
        if self._sets_gpus:
            begin = rows[self._rank][1] * self._per_task
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(i) for i in range(begin, begin + self._per_task))
        return ClusterSpec(cluster)

    def get_task_info(self):
        """Returns (job, number) of this process, after cluster_spec()."""
        return self.task_type, self.task_id

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Returns the GPUs of a task."""
        return {"GPU": self._per_task}
