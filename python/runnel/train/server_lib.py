"""Clusters: their tasks, and servers."""

import threading

from runnel.core.protobuf import Message, message_class


class ClusterSpec:
    """The tasks of a cluster: {job: [address, ...]}, {job: {number: address}}, or a ClusterDef."""

    def __init__(self, cluster):
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_cluster_def()
        if isinstance(cluster, dict):
            self._cluster_spec = {job: _tasks(job, tasks) for job, tasks in cluster.items()}
        elif isinstance(cluster, message_class("ClusterDef")):
            self._cluster_spec = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise TypeError("`cluster` must be a dictionary mapping one or more job names to lists of "
                            "network addresses, or a `ClusterDef` protocol buffer")
        self._cluster_def = message_class("ClusterDef")()
        for name in sorted(self._cluster_spec):
            if not isinstance(name, (str, bytes)):
                raise TypeError("Job name %r must be bytes or unicode" % (name,))
            job = self._cluster_def.job.add(name=name)
            for index, address in sorted(self._cluster_spec[name].items()):
                if not isinstance(address, (str, bytes)):
                    raise TypeError("Task address %r must be bytes or unicode" % (address,))
                job.tasks[index] = address

    def __bool__(self):
        return bool(self._cluster_spec)

    __nonzero__ = __bool__

    def __eq__(self, other):
        return self._cluster_spec == getattr(other, "_cluster_spec", other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        spec = self.as_dict()
        return "ClusterSpec({%s})" % ", ".join("%r: %r" % (key, spec[key]) for key in sorted(spec))

    def as_dict(self):
        """Returns {job: [address]}, or {job: {number: address}} if numbers are missing."""
        out = {}
        for job, tasks in self._cluster_spec.items():
            if not tasks:
                out[job] = {}
            elif max(tasks) + 1 == len(tasks):
                out[job] = self.job_tasks(job)
            else:
                out[job] = dict(sorted(tasks.items()))
        return out

    def as_cluster_def(self):
        """Returns the ClusterDef."""
        return self._cluster_def

    @property
    def jobs(self):
        """The names of the jobs."""
        return list(self._cluster_spec)

    def _job(self, job_name):
        try:
            return self._cluster_spec[job_name]
        except KeyError:
            raise ValueError("No such job in cluster: %r" % (job_name,)) from None

    def num_tasks(self, job_name):
        """Returns the number of tasks of a job."""
        return len(self._job(job_name))

    def task_indices(self, job_name):
        """Returns the numbers of a job's tasks."""
        return sorted(self._job(job_name))

    def task_address(self, job_name, task_index):
        """Returns the address of a task."""
        try:
            return self._job(job_name)[task_index]
        except KeyError:
            raise ValueError("No task with index %r in job %r" % (task_index, job_name)) from None

    def job_tasks(self, job_name):
        """Returns the addresses of a job's tasks, with None for missing numbers."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)]


def _tasks(job, tasks):
    if isinstance(tasks, (list, tuple)):
        return dict(enumerate(tasks))
    if isinstance(tasks, dict):
        return {int(index): address for index, address in tasks.items()}
    raise TypeError("The tasks for job %r must be a list or a dictionary from integers to strings." % (
        job,))


def _server_def(server_or_cluster_def, job_name, task_index, protocol, config):
    if isinstance(server_or_cluster_def, message_class("ServerDef")):
        out = message_class("ServerDef")()
        out.MergeFrom(server_or_cluster_def)
        for field, value in (("job_name", job_name), ("task_index", task_index),
                             ("protocol", protocol)):
            if value is not None:
                setattr(out, field, value)
    else:
        try:
            cluster = ClusterSpec(server_or_cluster_def)
        except TypeError:
            raise TypeError("Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or "
                            "`tf.train.ClusterSpec`.") from None
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        out = message_class("ServerDef")(cluster=cluster.as_cluster_def(), job_name=job_name,
                                         task_index=task_index, protocol=protocol or "grpc")
    if config is not None:
        out.default_session_config.MergeFrom(config)
    return out


class _Library:
    """The functions of the C API for servers, which _core is linked with."""

    _loaded = None

    def __init__(self):
        import ctypes

        from runnel import _core
        # Looking up symbols in _core also finds those of the libraries that it is linked with.
        self.lib = lib = ctypes.CDLL(_core.__file__)
        self.bytes = ctypes.c_char_p
        for name, result, arguments in (
                ("TF_NewStatus", ctypes.c_void_p, ()),
                ("TF_DeleteStatus", None, (ctypes.c_void_p,)),
                ("TF_GetCode", ctypes.c_int, (ctypes.c_void_p,)),
                ("TF_Message", ctypes.c_char_p, (ctypes.c_void_p,)),
                ("TF_NewServer", ctypes.c_void_p,
                 (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)),
                ("TF_ServerStart", None, (ctypes.c_void_p, ctypes.c_void_p)),
                ("TF_ServerStop", None, (ctypes.c_void_p, ctypes.c_void_p)),
                ("TF_ServerJoin", None, (ctypes.c_void_p, ctypes.c_void_p)),
                ("TF_ServerTarget", ctypes.c_char_p, (ctypes.c_void_p,)),
                ("TF_DeleteServer", None, (ctypes.c_void_p,))):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments

    @classmethod
    def get(cls):
        if cls._loaded is None:
            cls._loaded = cls()
        return cls._loaded

    def call(self, name, *args):
        """Calls a function whose last argument is a status, and raises its error."""
        from runnel import errors
        status = self.lib.TF_NewStatus()
        try:
            answer = getattr(self.lib, name)(*args, status)
            code = self.lib.TF_GetCode(status)
            if code:
                text = self.lib.TF_Message(status).decode("utf-8", "replace")
                raise errors.make_error(code, text)
            return answer
        finally:
            self.lib.TF_DeleteStatus(status)


class Server:
    """A task of a cluster, in this process.

        server = tf.train.Server({"ps": ["host:2222"], "worker": ["host:2223"]}, "worker", 0)
        with tf.Session(server.target) as sess: ...

    Args:
      server_or_cluster_def: a ClusterSpec, a value that converts to one, or a ServerDef.
      job_name, task_index: which task; may be omitted if there is only one.
      protocol: "grpc", or "grpc+ucx" for large tensors by UCX.
      config: a ConfigProto for its sessions.
      start: whether to start it at once.
    """

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
                 config=None, start=True):
        self._server = None
        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._library = _Library.get()
        data = self._server_def.SerializeToString()
        self._server = self._library.call("TF_NewServer", data, len(data))
        self._joined = None
        if start:
            self.start()

    def __del__(self):
        server, self._server = getattr(self, "_server", None), None
        if server and self._joined is None:
            self._library.lib.TF_DeleteServer(server)

    def start(self):
        """Starts the server."""
        self._library.call("TF_ServerStart", self._server)

    def stop(self):
        """Stops the server."""
        self._library.call("TF_ServerStop", self._server)

    def join(self):
        """Waits for the server, which runs until the process ends. Ctrl-C ends the wait."""
        failed = []

        def wait():
            try:
                self._library.call("TF_ServerJoin", self._server)
            except Exception as error:  # `join` raises it in the caller's thread
                failed.append(error)

        self._joined = threading.Thread(target=wait, daemon=True)
        self._joined.start()
        while self._joined.is_alive():
            self._joined.join(0.5)
        if failed:
            raise failed[0]

    @property
    def server_def(self):
        """The ServerDef."""
        return self._server_def

    @property
    def target(self):
        """The target for tf.Session: "grpc://host:port"."""
        return self._library.lib.TF_ServerTarget(self._server).decode()

    @staticmethod
    def create_local_server(config=None, start=True):
        """Creates a server that is a cluster of its own."""
        return Server({"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start)


# --- Where operations of a replica go

STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator",
    "DecisionTreeResource")


def replica_device_setter(ps_tasks=0, ps_device="/job:ps", worker_device="/job:worker",
                          merge_devices=True, cluster=None, ps_ops=None, ps_strategy=None):
    """Returns a function for tf.device that puts variables on the parameter servers in turn, and all else on the worker.

    Args:
      ps_tasks: the number of parameter servers, unless `cluster` is given; if it is 0, returns None.
      ps_device: the job of the parameter servers.
      worker_device: the device of the other operations.
      merge_devices: whether surrounding tf.device contexts also count.
      cluster: a ClusterSpec, or a value that converts to one.
      ps_ops: the ops that go to parameter servers; by default those that hold variables and tables.
      ps_strategy: a function of an operation that returns the number of a server; by default round-robin.
    """
    from runnel.core.device_spec import DeviceSpec
    if cluster is not None:
        spec = ClusterSpec(cluster).as_dict()
        job = DeviceSpec.from_string(ps_device).job
        if not spec.get(job):
            return None
        ps_tasks = len(spec[job])
    if ps_tasks == 0:
        return None
    ps_ops = STANDARD_PS_OPS if ps_ops is None else ps_ops
    if ps_strategy is None:
        import itertools
        numbers = itertools.cycle(range(ps_tasks))

        def ps_strategy(op):
            return next(numbers)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")

    def choose(op):
        if not merge_devices and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        kind = op.op if isinstance(op, Message) else op.type
        if not ps_device or kind not in ps_ops:
            return DeviceSpec.from_string(worker_device or "").make_merged_spec(current).to_string()
        server = DeviceSpec.from_string(ps_device)
        if server.job and current.job in (None, server.job):
            server = server.replace(task=ps_strategy(op))
        return server.make_merged_spec(current).to_string()

    return choose
