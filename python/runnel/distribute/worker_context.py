"""The task that a thread works for, for monitored sessions: whether it initializes, saves and writes summaries."""

import copy
import os
import threading

from runnel.distribute import cluster_roles


class _Current(threading.local):
    context = None


_current = _Current()


def get_current_worker_context():
    """Returns the _WorkerContext of this thread, or None."""
    return _current.context


class _WorkerContext:
    """A context manager: this thread works for a task, whose strategy says what sessions write.

    Without a `cluster_spec`, it is the only task. With a `worker_barrier`, wait_for_other_workers waits at it.
    """

    def __init__(self, strategy, cluster_spec, task_type, task_id, session_config=None, rpc_layer="grpc", worker_barrier=None):
        self._strategy, self._cluster_spec, self.task_type, self.task_id = strategy, cluster_spec, task_type, task_id
        self._session_config, self._rpc_layer, self._worker_barrier = session_config, rpc_layer, worker_barrier
        self.master_target = self._target()

    def __enter__(self):
        if _current.context is not None:
            raise ValueError("You cannot run distribute coordinator in a `worker_fn`.")
        _current.context = self

    def __exit__(self, *error):
        _current.context = None

    def _target(self):
        if not self._cluster_spec or self.task_type == "evaluator":
            return ""
        job = self.task_type or ("chief" if "chief" in self._cluster_spec.jobs else "worker")
        address = self._cluster_spec.job_tasks(job)[self.task_id or 0]
        return "%s://%s" % (self._rpc_layer, address) if self._rpc_layer else address

    cluster_spec = property(lambda self: copy.deepcopy(self._cluster_spec))
    session_config = property(lambda self: copy.deepcopy(self._session_config))
    has_barrier = property(lambda self: self._worker_barrier is not None)
    distributed_mode = property(lambda self: bool(self._cluster_spec) and self.task_type != "evaluator")
    experimental_should_init = property(lambda self: self._strategy.extended.experimental_should_init)
    should_checkpoint = property(lambda self: self._strategy.extended.should_checkpoint)
    should_save_summary = property(lambda self: self._strategy.extended.should_save_summary)

    @property
    def is_chief(self):
        """Whether the task is the chief."""
        return not self._cluster_spec or self.task_type is None or cluster_roles.is_chief(self._cluster_spec, self.task_type, self.task_id)

    @property
    def num_workers(self):
        """The number of tasks that train."""
        if not self._cluster_spec:
            return 0
        return cluster_roles.task_count(self._cluster_spec, "chief") + cluster_roles.task_count(self._cluster_spec, "worker")

    def wait_for_other_workers(self):
        """Waits until all workers have called this, if there is a barrier."""
        if self._worker_barrier is not None:
            self._worker_barrier.wait()

    def session_creator(self, scaffold=None, config=None, checkpoint_dir=None, checkpoint_filename_with_path=None, max_wait_secs=7200):
        """Returns what creates the task's sessions: with initialization, or for a worker that waits for it."""
        from runnel.train import monitored_session
        merged = self._session_config
        if config is not None:
            merged = copy.deepcopy(config)
            if self._session_config is not None:
                merged.MergeFrom(self._session_config)
        if self._strategy is None or self._strategy.extended.experimental_should_init:
            return monitored_session.ChiefSessionCreator(scaffold, master=self.master_target, config=merged, checkpoint_dir=checkpoint_dir,
                                                         checkpoint_filename_with_path=checkpoint_filename_with_path)
        return monitored_session.WorkerSessionCreator(scaffold, master=self.master_target, config=merged, max_wait_secs=max_wait_secs)

    def folder(self, base, is_writer):
        """Returns where the task writes into a folder, or None. Where collectives are part of a save, all tasks save, most of them for nothing."""
        if is_writer or not base:
            return base
        if not getattr(self._strategy.extended, "_saves_everywhere", False):
            return None
        return os.path.join(base, "tmp_%s_%d" % (self.task_type, self.task_id) if self.task_type else "tmp")
