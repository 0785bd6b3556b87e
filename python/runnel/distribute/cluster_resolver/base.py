"""Resolvers: the interface, one that is told everything, and one that joins others."""

from runnel.train.server_lib import ClusterSpec


def as_target(address, rpc_layer=None):
    """Returns the target of a session: "grpc://host:port"."""
    return "%s://%s" % (rpc_layer, address) if rpc_layer else address


class ClusterResolver:
    """Says which tasks a cluster has, and which one this process is."""

    environment = ""
    rpc_layer = None
    _task_type = _task_id = None

    def _set_type(self, value):
        self._task_type = value

    def _set_id(self, value):
        self._task_id = value

    task_type = property(lambda self: self._task_type, _set_type, doc="The job of this process, such as \"worker\".")
    task_id = property(lambda self: self._task_id, _set_id, doc="The number of this process in its job.")

    def cluster_spec(self):
        """Returns the tf.train.ClusterSpec of the cluster."""
        raise NotImplementedError

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """Returns the target for sessions with a task, by default this one; "" if there is none."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return as_target(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Returns {type of device: number} of the accelerators of a task."""
        from runnel import config
        counts: dict = {}
        for device in config.list_logical_devices():
            if device.device_type in ("GPU", "TPU"):
                counts[device.device_type] = counts.get(device.device_type, 0) + 1
        return counts


class SimpleClusterResolver(ClusterResolver):
    """A resolver that is told the cluster, the target of sessions, and the place of this process."""

    def __init__(self, cluster_spec, master="", task_type=None, task_id=None, environment="", num_accelerators=None, rpc_layer=None):
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self._task_type, self._task_id = task_type, task_id
        self.environment, self.rpc_layer = environment, rpc_layer

    def cluster_spec(self):
        """Returns the ClusterSpec that was given."""
        return self._spec

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """Returns the target of a task, or the one that was given."""
        is_asked = task_type is not None and task_id is not None
        return as_target(self._spec.task_address(task_type, task_id) if is_asked else self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Returns what was given."""
        return {} if self._accelerators is None else self._accelerators


class UnionResolver(ClusterResolver):
    """Joins the clusters of several resolvers; all else is what the first one says."""

    def __init__(self, *args, **kwargs):
        self._rpc, self._task_type, self._task_id = (kwargs.pop(name, None) for name in ("rpc_layer", "task_type", "task_id"))
        if kwargs:
            raise ValueError("Unexpected kwargs provided %r" % (kwargs,))
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        if not all(isinstance(resolver, ClusterResolver) for resolver in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = args

    _first = property(lambda self: self._resolvers[0])
    task_type = property(lambda self: self._task_type or self._first.task_type, ClusterResolver._set_type)
    task_id = property(lambda self: self._task_id or self._first.task_id, ClusterResolver._set_id)
    environment = property(lambda self: self._first.environment)

    def _set_rpc(self, value):
        self._rpc = value
    rpc_layer = property(lambda self: self._rpc or self._first.rpc_layer, _set_rpc)

    def cluster_spec(self):
        """Returns all tasks. Those of a job are numbered anew if no resolver numbers them, else their numbers must differ."""
        parts = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        joined: dict = {}
        for job in dict.fromkeys(job for part in parts for job in part):
            given = [part[job] for part in parts if job in part]
            if all(isinstance(tasks, list) for tasks in given):
                joined[job] = [address for tasks in given for address in tasks]
                continue
            joined[job] = {}
            for tasks in given:
                numbered = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
                twice = set(numbered) & set(joined[job])
                if twice:
                    raise KeyError("Duplicate keys detected when merging two ClusterSpecs: %r" % (twice,))
                joined[job].update(numbered)
        return ClusterSpec(joined)

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """Returns the target of a task, or that of the first resolver."""
        if task_type is None or task_id is None:
            return self._first.master(rpc_layer=rpc_layer)
        return as_target(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Returns what the first resolver says."""
        return self._first.num_accelerators(task_type, task_id, config_proto)
