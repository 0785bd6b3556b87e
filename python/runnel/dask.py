"""Clusters in Dask: every task is a computation of `distributed` that lasts until the cluster is closed. See doc/cluster.md.

    from distributed import Client
    import runnel as tf
    from runnel.dask import cluster

    with Client("scheduler:8786") as client, cluster(client, ps=2, workers=4) as tasks:
        target, config = tasks.session_arguments()
        with tf.Session(target, config=config) as sess: ...

When a worker of Dask is lost, the scheduler runs its computations again on another one. `session_creator` of the cluster
makes training go on from the last checkpoint.
"""

import uuid

from runnel.distribute.launch import Cluster, Task, check_counts, port_of


_END_SECONDS = 10.0


def _run(stop, address, job, index, port, environment):
    """Runs a task on a worker of Dask until an event is set. `stop` and `address` name the event and a variable."""
    from urllib.parse import urlsplit

    from distributed import Event, Variable, get_worker, secede
    task = Task(job, index, urlsplit(get_worker().address).hostname, port, environment)
    secede()  # the worker's threads stay free for other computations
    Variable(address).set(task.address())
    Event(stop).wait()


class _Computations:
    """The engine of `Cluster`."""

    def __init__(self, client, jobs, port_base, environment, options):
        from distributed import Event, Variable
        name = "runnel-" + uuid.uuid4().hex
        self._stop = Event(name, client=client)
        self._futures, self._addresses = {}, {}
        hosts = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not hosts:
            raise RuntimeError("Dask has no workers")
        for job, count in jobs.items():
            for index in range(count):
                key = "%s-%s-%d" % (name, job, index)
                # Dask chooses another worker if this one is lost.
                place = {"workers": [hosts[len(self._futures) % len(hosts)]], "allow_other_workers": True}
                self._futures[job, index] = client.submit(
                    _run, name, key, job, index, port_of(jobs, job, index, port_base), environment, key=key,
                    pure=False, **{**place, **options[job]})
                self._addresses[job, index] = Variable(key, client=client)

    def address(self, job, index, timeout):
        future = self._futures[job, index]
        if future.status == "error":  # it could not start, or was lost more often than Dask allows
            raise future.exception()
        return self._addresses[job, index].get(timeout=timeout)

    def close(self):
        from distributed import wait
        self._stop.set()
        wait(list(self._futures.values()), timeout=_END_SECONDS)
        for variable in self._addresses.values():
            variable.delete()


def cluster(client, ps=0, workers=1, *, timeout=60.0, port_base=None, environment=None, ps_options=None, worker_options=None):
    """Starts a cluster on the workers of Dask.

    Args:
      client: a `distributed.Client`.
      ps, workers: the number of tasks of the jobs "ps" and "worker".
      timeout: how many seconds a client waits for tasks that start, or start again.
      port_base: the first port; the tasks have consecutive ports. By default every task has a free one.
      environment: environment variables of the tasks.
      ps_options, worker_options: arguments of `client.submit`, such as `resources` or `workers`. By default the tasks are
        spread over the workers.

    Returns:
      A `runnel.distribute.launch.Cluster`.
    """
    jobs = check_counts(ps=ps, worker=workers)
    options = {"ps": ps_options or {}, "worker": worker_options or {}}
    return Cluster(_Computations(client, jobs, port_base, environment, options), jobs, timeout)
