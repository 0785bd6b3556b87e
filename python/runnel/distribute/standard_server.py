"""The server of a task whose place in the cluster is in the environment variable TF_CONFIG."""

import json
import os
import threading

_running = threading.local()


def _run_std_server(cluster_spec=None, task_type=None, task_id=None, session_config=None, rpc_layer=None, environment=None):
    """Starts a server for a task of a tf.train.ClusterSpec. A thread that has started one gets it again, for the same arguments only."""
    from runnel.train.server_lib import ClusterSpec, Server
    wanted = (cluster_spec, task_type, task_id, repr(session_config), rpc_layer, environment)
    if getattr(_running, "server", None) is not None:
        assert _running.wanted == wanted, "This thread runs a server for %r already" % (_running.wanted[1:3],)
        return _running.server
    jobs = cluster_spec.as_dict()
    # Evaluators do not take part: one is a cluster of its own, and the others do not know it.
    jobs = {job: tasks for job, tasks in jobs.items() if (job == "evaluator") == (task_type == "evaluator")}
    server = Server(ClusterSpec(jobs), job_name=task_type, task_index=task_id, config=session_config, protocol=rpc_layer)
    server.start()
    _running.wanted, _running.server = wanted, server
    return server


def run_standard_tensorflow_server(session_config=None):
    """Starts a server for the task that TF_CONFIG describes, and returns it."""
    from runnel.core.protobuf import message_class
    from runnel.distribute.cluster_roles import normalize_cluster_spec
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    for key, inside in (("cluster", config), ("task", config)):
        if key not in inside:
            raise ValueError('"%s" is not found in TF_CONFIG.' % key)
    cluster, task = normalize_cluster_spec(config["cluster"]), config["task"]
    if "type" not in task:
        raise ValueError('"task_type" is not found in the `task` part of TF_CONFIG.')
    if not {"chief", "worker"} & set(cluster.jobs):
        raise ValueError("You must have `chief` or `worker` jobs in the `cluster_spec`.")
    session_config = session_config or message_class("ConfigProto")()
    session_config.experimental.collective_group_leader = "/job:%s/replica:0/task:0" % ("chief" if "chief" in cluster.jobs else "worker")
    return _run_std_server(cluster_spec=cluster, task_type=task["type"], task_id=int(task.get("index", 0)), session_config=session_config,
                           rpc_layer=config.get("rpc_layer", "grpc"))
