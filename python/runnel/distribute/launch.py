"""Clusters whose tasks another system starts and starts again: the part that `runnel.ray` and `runnel.dask` share.

Every task is a server that knows only itself. A client names the tasks of its session in `ConfigProto.cluster_def`, so a
task that comes back at another address needs no change of the other tasks: the client asks for the addresses again.
"""

import os
import socket
import time

from runnel.train.monitored_session import ChiefSessionCreator, SessionCreator

_PROBE_SECONDS = 2.0
_POLL_SECONDS = 0.1


class Task:
    """A task in this process, which an engine has started for it.

    Args:
      job, index: its name. Eager clients call its devices by that name.
      host: the address of this machine, as the other machines see it.
      port: the port; 0 for a free one.
      environment: variables that are set for the whole process before the server starts.
    """

    def __init__(self, job, index, host, port=0, environment=None):
        from runnel.train.server_lib import Server
        os.environ.update(environment or {})
        # Clients name the other tasks, so the server must be allowed to connect to them.
        os.environ.setdefault("RUNNEL_ALLOW", "all")
        host = "[%s]" % host if ":" in host else host
        self._server = Server({job: {index: "%s:%d" % (host, port)}}, job, index)

    def address(self):
        """Returns "host:port"."""
        return self._server.target.partition("://")[2]


class Cluster:
    """The tasks that an engine runs. Close it, or use it in a `with` statement, to end them.

    The engine has `address(job, index, timeout)`, which returns the address of a task as far as it is known, or raises
    TimeoutError, and `close()`.
    """

    def __init__(self, engine, jobs, timeout):
        self._engine = engine
        self._jobs = {job: count for job, count in jobs.items() if count}
        self._timeout = timeout

    def addresses(self):
        """Returns {job: [address]} of the running tasks.

        Waits for tasks that are being started, or started again. Raises DeadlineExceededError with the name of a task
        that does not answer in time.
        """
        deadline = time.monotonic() + self._timeout
        return {job: [self._address(job, index, deadline) for index in range(count)]
                for job, count in self._jobs.items()}

    def _address(self, job, index, deadline):
        from runnel import errors
        while True:
            left = deadline - time.monotonic()
            try:
                if left > 0:
                    address = self._engine.address(job, index, left)
                    if _answers(address, min(left, _PROBE_SECONDS)):
                        return address
            except TimeoutError:
                left = 0
            if left <= 0:
                raise errors.DeadlineExceededError(
                    None, None, "/job:%s/task:%d did not start within %g s; has the engine a free place for it?" % (job, index, self._timeout))
            time.sleep(_POLL_SECONDS)

    def spec(self):
        """Returns the ClusterSpec of the running tasks."""
        from runnel.train.server_lib import ClusterSpec
        return ClusterSpec(self.addresses())

    def resolver(self):
        """Returns a cluster resolver, for `tf.config.experimental_connect_to_cluster` and `tf.distribute`."""
        from runnel.distribute.cluster_resolver.base import SimpleClusterResolver
        return SimpleClusterResolver(self.spec(), rpc_layer="grpc")

    def session_arguments(self, config=None):
        """Returns the target and the ConfigProto of a session on the running tasks.

            target, config = cluster.session_arguments()
            with tf.Session(target, config=config) as sess: ...

        Args:
          config: a ConfigProto to extend; it is not changed.
        """
        from runnel.core.graph_io import ConfigProto
        spec = self.spec()
        out = ConfigProto()
        if config is not None:
            out.CopyFrom(config)
        out.cluster_def.CopyFrom(spec.as_cluster_def())
        master = "worker" if "worker" in self._jobs else next(iter(self._jobs))
        return "grpc://" + spec.task_address(master, 0), out

    def session_creator(self, config=None, **arguments):
        """Returns a session creator for `tf.train.MonitoredSession`, which joins the cluster again after a loss.

            creator = cluster.session_creator(checkpoint_dir="run")
            with tf.train.MonitoredSession(creator, hooks=[...]) as sess: ...

        When a step fails because a task is lost, MonitoredSession creates a new session. This creator then waits until the
        engine has started the task again, and restores the last checkpoint. Tasks write checkpoints, so the folder must
        be the same on all machines.

        Args:
          config: a ConfigProto.
          arguments: those of `tf.train.ChiefSessionCreator`, except `master`.
        """
        return _Rejoin(self, config, arguments)

    def close(self):
        """Ends all tasks."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Rejoin(SessionCreator):
    """Creates sessions on the tasks that run at that time."""

    def __init__(self, cluster, config, arguments):
        from runnel.train.monitored_session import Scaffold
        self._cluster, self._config = cluster, config
        self._arguments = dict(arguments, scaffold=arguments.get("scaffold") or Scaffold())

    def create_session(self):
        target, config = self._cluster.session_arguments(self._config)
        return ChiefSessionCreator(master=target, config=config, **self._arguments).create_session()


def _answers(address, seconds):
    """Tells whether a server accepts connections at the address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
        return True
    except OSError:
        return False


def check_counts(**jobs):
    """Returns {job: number of tasks}; raises ValueError if there are none."""
    for job, count in jobs.items():
        if count != int(count) or count < 0:
            raise ValueError("the number of tasks of job %r is %r" % (job, count))
    if not any(jobs.values()):
        raise ValueError("a cluster needs at least one task")
    return jobs


def port_of(job_counts, job, index, port_base):
    """Returns the port of a task: 0 for a free one, or `port_base` and the number of tasks before it."""
    if port_base is None:
        return 0
    before = 0
    for name, count in job_counts.items():
        if name == job:
            return port_base + before + index
        before += count
    raise ValueError("there is no job %r" % (job,))
