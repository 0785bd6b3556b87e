"""The eager context as a client of a cluster: connecting to its tasks, and asking for them again after a failure."""

import threading

from runnel import errors

_state: dict = {"def": None}
_lock = threading.Lock()


def connect(cluster, job_name="localhost", task_index=0, timeout_ms=0):
    """Adds the devices of all tasks of a cluster. This process is the given task of it, or an additional one."""
    from runnel import _core
    from runnel.core.protobuf import message_class
    from runnel.eager import context
    from runnel.train.server_lib import ClusterSpec
    jobs = {job: dict(enumerate(tasks)) if isinstance(tasks, list) else dict(tasks) for job, tasks in cluster.as_dict().items()}
    jobs.setdefault(job_name, {}).setdefault(task_index, "localhost:0")
    server = message_class("ServerDef")(cluster=ClusterSpec(jobs).as_cluster_def(), job_name=job_name, task_index=task_index, protocol="grpc")
    context.start()
    with _lock:
        _core.eager_connect(server.SerializeToString(), False, timeout_ms)
        _state["def"] = server


def tasks(job):
    """Returns the names of the tasks of a job of the cluster."""
    rows = [row for row in _state["def"].cluster.job if row.name == job] if _state["def"] is not None else []
    return ["/job:%s/replica:0/task:%d" % (job, index) for row in rows for index in sorted(row.tasks)]


def is_alive(task):
    """Tells whether a task of the cluster, "/job:worker/replica:0/task:0", answers."""
    from runnel import _core
    try:
        return _core.eager_is_alive(task)
    except errors.InvalidArgumentError:
        return False


def reconnect():
    """Opens contexts on tasks that have restarted. Those that do not answer are left out until the next time."""
    from runnel import _core
    with _lock:
        server = type(_state["def"])()
        server.CopyFrom(_state["def"])
        own = (server.job_name, server.task_index)
        for job in server.cluster.job:
            for index in list(job.tasks):
                if (job.name, index) != own and not is_alive("/job:%s/replica:0/task:%d" % (job.name, index)):
                    del job.tasks[index]
        _core.eager_connect(server.SerializeToString(), True, 0)
