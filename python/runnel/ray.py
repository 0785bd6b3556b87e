"""Clusters in Ray: every task is an actor. See doc/cluster.md.

    import ray
    import runnel as tf
    from runnel.ray import cluster

    ray.init()
    with cluster(ps=2, workers=4) as tasks:
        target, config = tasks.session_arguments()
        with tf.Session(target, config=config) as sess: ...

Ray starts an actor again, on another node if need be, when its process or its node is lost. `session_creator` of the cluster
makes training go on from the last checkpoint.
"""

from runnel.distribute.launch import Cluster, Task, check_counts, port_of


class _Actor(Task):
    """A task at the address of its node. Ray calls the constructor again when it starts the actor again."""

    def __init__(self, job, index, port, environment):
        import ray
        super().__init__(job, index, ray.util.get_node_ip_address(), port, environment)


class _Actors:
    """The engine of `Cluster`."""

    def __init__(self, jobs, port_base, environment, options):
        import ray
        kind = ray.remote(_Actor)
        self._actors = {
            (job, index): kind.options(max_restarts=-1, max_task_retries=-1, **options[job]).remote(
                job, index, port_of(jobs, job, index, port_base), environment)
            for job, count in jobs.items() for index in range(count)}

    def address(self, job, index, timeout):
        import ray
        try:
            return ray.get(self._actors[job, index].address.remote(), timeout=timeout)
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError(str(error)) from None
        except ray.exceptions.ActorUnavailableError:  # Ray has lost it, and starts it again
            return _NOWHERE

    def close(self):
        import ray
        for actor in self._actors.values():
            ray.kill(actor, no_restart=True)


_NOWHERE = "localhost:0"  # an address that does not answer


def cluster(ps=0, workers=1, *, timeout=60.0, port_base=None, environment=None, ps_options=None, worker_options=None):
    """Starts a cluster of actors.

    Args:
      ps, workers: the number of tasks of the jobs "ps" and "worker".
      timeout: how many seconds a client waits for tasks that start, or start again.
      port_base: the first port; the tasks have consecutive ports. By default every task has a free one.
      environment: environment variables of the tasks.
      ps_options, worker_options: options of the actors, such as `num_gpus` or `resources`. By default each task takes one
        CPU, and Ray spreads the tasks over the nodes.

    Returns:
      A `runnel.distribute.launch.Cluster`.
    """
    import ray
    jobs = check_counts(ps=ps, worker=workers)
    if not ray.is_initialized():
        ray.init()
    options = {job: {"num_cpus": 1, "scheduling_strategy": "SPREAD", **(more or {})}
               for job, more in (("ps", ps_options), ("worker", worker_options))}
    return Cluster(_Actors(jobs, port_base, environment, options), jobs, timeout)
