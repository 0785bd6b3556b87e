"""What a task is in its cluster: its number among those that train, whether it is the chief, who leads."""

_KNOWN = ("chief", "worker", "evaluator", "ps", None)


def normalize_cluster_spec(cluster_spec):
    """Returns the tf.train.ClusterSpec of a dict, a ClusterDef or a ClusterSpec."""
    from runnel.core.protobuf import message_class
    from runnel.train.server_lib import ClusterSpec
    if isinstance(cluster_spec, (dict, message_class("ClusterDef"))):
        return ClusterSpec(cluster_spec)
    if not isinstance(cluster_spec, ClusterSpec):
        raise ValueError("`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a `tf.train.ClusterDef` object")
    return cluster_spec


def task_count(cluster_spec, task_type):
    """Returns how many tasks of a job a cluster has."""
    return cluster_spec.num_tasks(task_type) if task_type in cluster_spec.jobs else 0


def _validate_cluster_spec(cluster_spec, task_type, task_id):
    """Raises ValueError if a cluster has other jobs than known ones or several chiefs, or if it does not have the task."""
    cluster = normalize_cluster_spec(cluster_spec)
    if any(job not in _KNOWN for job in cluster.jobs):
        raise ValueError("Disallowed task type found in cluster spec. Allowed types are %s and the cluster spec is %s." % (_KNOWN, cluster))
    if task_type not in _KNOWN:
        raise ValueError("Unrecognized task_type: %s, valid task types are: %s" % (task_type, _KNOWN))
    if task_type and task_type not in cluster.jobs and task_type != "evaluator":
        raise ValueError("`task_type` %r not found in cluster_spec." % task_type)
    for job in ("chief", "evaluator"):
        if task_count(cluster, job) > 1:
            raise ValueError("There must be at most one '%s' job." % job)
    if task_type in cluster.jobs and task_id >= task_count(cluster, task_type):
        raise ValueError("The `task_id` %d exceeds the maximum id of %s." % (task_id, task_type))


def is_chief(cluster_spec=None, task_type=None, task_id=None):
    """Tells whether a task is the chief: job "chief", the first worker where there is none, or an evaluator."""
    _validate_cluster_spec(cluster_spec, task_type, task_id)
    if task_type in ("chief", "evaluator"):
        return True
    return "chief" not in normalize_cluster_spec(cluster_spec).jobs and task_type == "worker" and task_id == 0


def collective_leader(cluster_spec, task_type, task_id):
    """Returns the name of the task that leads collectives, or "" if there is no other task."""
    cluster = normalize_cluster_spec(cluster_spec)
    if not cluster.as_dict():
        return ""
    _validate_cluster_spec(cluster, task_type, task_id)
    if task_type == "evaluator":
        return ""
    return "/job:%s/replica:0/task:0" % ("chief" if "chief" in cluster.jobs else "worker")


def coordination_leader(cluster_spec):
    """Returns the name of the task that runs the coordination service, or "" if there is no cluster."""
    cluster = normalize_cluster_spec(cluster_spec)
    for job in ("ps", "chief", "worker"):
        if job in cluster.jobs:
            return "/job:%s/replica:0/task:0" % job
    return ""


def worker_count(cluster_spec, task_type):
    """Returns how many tasks train together with one of this job; evaluators count for themselves."""
    _validate_cluster_spec(cluster_spec, task_type, task_id=0)
    cluster = normalize_cluster_spec(cluster_spec)
    if task_type not in ("chief", "worker", "evaluator"):
        raise ValueError("Unexpected `task_type` %r" % task_type)
    if task_type == "evaluator":
        return task_count(cluster, "evaluator")
    return task_count(cluster, "chief") + task_count(cluster, "worker")


def id_in_cluster(cluster_spec, task_type, task_id):
    """Returns the number of a task among those that train: the chief is the first."""
    _validate_cluster_spec(cluster_spec, task_type, task_id)
    if task_type == "chief":
        return 0
    if task_type == "worker":
        return task_id + task_count(normalize_cluster_spec(cluster_spec), "chief")
    if task_type == "evaluator":
        return task_id
    raise ValueError("There is no id for task_type %r" % task_type)
