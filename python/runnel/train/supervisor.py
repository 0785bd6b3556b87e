"""Supervisor: the old way to a session that initializes, restores and saves by itself."""

import contextlib
import os
import time

from runnel import logging
from runnel.core import framework
from runnel.core.framework import GraphKeys
from runnel.ops import control_flow, variables
from runnel.train import coordinator, saver as saver_lib, session_manager as session_manager_lib, training_util
from runnel.train.monitored_session import _merge_all


class Supervisor:
    """Manages a training program.

        sv = tf.train.Supervisor(logdir="run")
        with sv.managed_session() as sess:
            while not sv.should_stop():
                sess.run(train_op)

    Args:
      graph: the graph, which becomes read-only with the first session; by default the default graph.
      ready_op, ready_for_local_init_op: see SessionManager.
      is_chief: whether this process initializes, saves and restores; others wait.
      init_op, init_feed_dict, init_fn: how to initialize the variables.
      local_init_op: an operation that each session runs.
      logdir: folder of checkpoints and events; None for no files.
      summary_op: merges all summaries; None for no summaries.
      saver: a Saver; None to save nothing.
      global_step: the global step.
      save_summaries_secs, save_model_secs: how often to save; 0 for never.
      recovery_wait_secs: the time between two checks whether the variables are ready.
      stop_grace_secs: how long threads may take to stop.
      checkpoint_basename: name of the checkpoints.
      session_manager: a SessionManager.
      summary_writer: a FileWriter; None to write no events.
    """

    USE_DEFAULT = 0

    def __init__(self, graph=None, ready_op=USE_DEFAULT, ready_for_local_init_op=USE_DEFAULT,
                 is_chief=True, init_op=USE_DEFAULT, init_feed_dict=None, local_init_op=USE_DEFAULT,
                 logdir=None, summary_op=USE_DEFAULT, saver=USE_DEFAULT, global_step=USE_DEFAULT,
                 save_summaries_secs=120, save_model_secs=600, recovery_wait_secs=30,
                 stop_grace_secs=120, checkpoint_basename="model.ckpt", session_manager=None,
                 summary_writer=USE_DEFAULT, init_fn=None, local_init_run_options=None):
        self._graph = framework.get_default_graph() if graph is None else graph
        default = self._is_default
        with self._graph.as_default():
            self._ready_op = self._first_or(
                ready_op, GraphKeys.READY_OP, variables.report_uninitialized_variables)
            self._ready_for_local_init_op = None
            self._init_op = self._first_or(init_op, GraphKeys.INIT_OP,
                                           variables.global_variables_initializer)
            self._init_feed_dict = init_feed_dict
            if not default(ready_for_local_init_op):
                self._ready_for_local_init_op = ready_for_local_init_op
            self._local_init_op = self._first_or(local_init_op, GraphKeys.LOCAL_INIT_OP, _local_init)
            self._saver = self._first_or(saver, GraphKeys.SAVERS, _default_saver)
            self._summary_op = self._first_or(summary_op, GraphKeys.SUMMARY_OP, _merge_all)
            self._global_step = global_step
            if default(global_step):
                self._global_step = training_util.get_global_step(self._graph)
        self._is_chief = is_chief
        self._coord = coordinator.Coordinator()
        self._recovery_wait_secs = recovery_wait_secs
        self._stop_grace_secs = stop_grace_secs
        self._init_fn = init_fn
        self._local_init_run_options = local_init_run_options
        self._logdir = self._save_path = self._summary_writer = None
        self._save_model_secs = self._save_summaries_secs = None
        if is_chief:
            self._logdir = logdir
            self._save_summaries_secs = save_summaries_secs
            self._save_model_secs = save_model_secs
            if logdir:
                self._save_path = os.path.join(logdir, checkpoint_basename)
            if not default(summary_writer):
                self._summary_writer = summary_writer
            elif logdir:
                from runnel import summary
                self._summary_writer = summary.FileWriter(logdir)
            self._graph_added_to_summary = False
        self._session_manager = session_manager or session_manager_lib.SessionManager(
            local_init_op=self._local_init_op, ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op, graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options)
        self._graph.finalize()

    @classmethod
    def _is_default(cls, value):
        return isinstance(value, int) and not isinstance(value, bool) and value == cls.USE_DEFAULT

    def _first_or(self, value, key, make):
        """Returns the given value, else the first of a collection, else the result of `make`."""
        if not self._is_default(value):
            return value
        found = self._graph.get_collection(key)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    # Properties

    @property
    def is_chief(self):
        return self._is_chief

    @property
    def session_manager(self):
        return self._session_manager

    @property
    def coord(self):
        """The coordinator of its threads."""
        return self._coord

    @property
    def init_op(self):
        return self._init_op

    @property
    def init_feed_dict(self):
        return self._init_feed_dict

    @property
    def ready_op(self):
        return self._ready_op

    @property
    def ready_for_local_init_op(self):
        return self._ready_for_local_init_op

    @property
    def summary_writer(self):
        return self._summary_writer

    @property
    def summary_op(self):
        return self._summary_op

    @property
    def save_summaries_secs(self):
        return self._save_summaries_secs

    @property
    def global_step(self):
        return self._global_step

    @property
    def saver(self):
        return self._saver

    @property
    def save_model_secs(self):
        return self._save_model_secs

    @property
    def save_path(self):
        return self._save_path

    # Sessions

    def prepare_or_wait_for_session(self, master="", config=None, wait_for_checkpoint=False,
                                    max_wait_secs=7200, start_standard_services=True):
        """Returns a session that is ready: the chief initializes or restores, others wait."""
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            sess = self._session_manager.prepare_session(
                master, init_op=self._init_op, saver=self._saver, checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint, max_wait_secs=max_wait_secs, config=config,
                init_feed_dict=self._init_feed_dict, init_fn=self._init_fn)
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self._session_manager.wait_for_session(master, config=config,
                                                          max_wait_secs=max_wait_secs)
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    def _write_graph(self):
        if self._logdir:
            training_util.write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir,
                                      "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._graph_added_to_summary = True

    @contextlib.contextmanager
    def managed_session(self, master="", config=None, start_standard_services=True,
                        close_summary_writer=True):
        """A context manager: a session. At its end everything stops, and an exception of a thread is raised."""
        try:
            yield self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services)
        except Exception as error:  # stops the other threads; stop() raises it
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            except Exception:  # prefer the error of the `with` block
                self._coord.raise_requested_exception()
                raise

    def start_queue_runners(self, sess, queue_runners=None):
        """Starts queue runners, by default those of the graph. Returns their threads."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [thread for runner in queue_runners for thread in runner.create_threads(
            sess, coord=self._coord, daemon=True, start=True)]

    def start_standard_services(self, sess):
        """Starts the threads that save summaries, the speed and checkpoints."""
        if not self._is_chief:
            raise RuntimeError("Only chief supervisor can start standard services. Because only chief "
                               "supervisors can write events.")
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        threads = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(_SummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(_SpeedThread(self, sess))
        if self._saver and self._save_model_secs:
            threads.append(_SaveThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    # Stopping

    def should_stop(self):
        return self._coord.should_stop()

    def request_stop(self, ex=None):
        self._coord.request_stop(ex=ex)

    def wait_for_stop(self):
        self._coord.wait_for_stop()

    def stop_on_exception(self):
        """A context manager whose exceptions stop the supervisor."""
        return self._coord.stop_on_exception()

    def stop(self, threads=None, close_summary_writer=True, ignore_live_threads=False):
        """Stops the threads and closes the events."""
        self._coord.request_stop()
        try:
            self._coord.join(threads, stop_grace_period_secs=self._stop_grace_secs,
                             ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self._summary_writer:
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def loop(self, timer_interval_secs, target, args=None, kwargs=None):
        """Starts a thread that calls a function repeatedly."""
        return coordinator.LooperThread.loop(self._coord, timer_interval_secs, target=target,
                                             args=args, kwargs=kwargs)

    def summary_computed(self, sess, summary, global_step=None):
        """Writes a summary with the step."""
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = training_util.global_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _SummaryThread(coordinator.LooperThread):
    def __init__(self, supervisor, sess):
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor, self._sess = supervisor, sess

    def run_loop(self):
        supervisor = self._supervisor
        if supervisor.global_step is not None:
            summary, step = self._sess.run([supervisor.summary_op, supervisor.global_step])
        else:
            summary, step = self._sess.run(supervisor.summary_op), None
        if supervisor.summary_writer:
            supervisor.summary_writer.add_summary(summary, step)


class _SpeedThread(coordinator.LooperThread):
    def __init__(self, supervisor, sess):
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor, self._sess = supervisor, sess
        self._tag = "%s/sec" % supervisor.global_step.op.name

    def start_loop(self):
        self._time = time.time()
        self._step = training_util.global_step(self._sess, self._supervisor.global_step)

    def run_loop(self):
        from runnel.core.protobuf import message_class
        step = training_util.global_step(self._sess, self._supervisor.global_step)
        now = time.time()
        seconds = now - self._time
        rate = (step - self._step) / seconds if seconds > 0 else float("inf")
        self._time, self._step = now, step
        if self._supervisor.summary_writer:
            self._supervisor.summary_writer.add_summary(message_class("Summary")(
                value=[{"tag": self._tag, "simple_value": rate}]), step)
        logging.info("%s: %g", self._tag, rate)


class _SaveThread(coordinator.LooperThread):
    def __init__(self, supervisor, sess):
        super().__init__(supervisor.coord, supervisor.save_model_secs)
        self._supervisor, self._sess = supervisor, sess

    def run_loop(self):
        self._supervisor.saver.save(self._sess, self._supervisor.save_path,
                                    global_step=self._supervisor.global_step)


def _local_init():
    """Returns an operation that initializes local variables and tables, or None if there are none."""
    ops = []
    if variables.local_variables():
        ops.append(variables.local_variables_initializer())
    if framework.get_collection(GraphKeys.TABLE_INITIALIZERS):
        from runnel.ops.lookup_ops import tables_initializer
        ops.append(tables_initializer())
    return control_flow.group(*ops) if ops else None


def _default_saver():
    return saver_lib.Saver() if variables.global_variables() else None


def basic_train_loop(supervisor, train_step_fn, args=None, kwargs=None, master=""):
    """Calls `train_step_fn(sess, *args, **kwargs)` until the supervisor stops."""
    args = args or []
    kwargs = kwargs or {}
    should_retry = True
    from runnel import errors
    while should_retry:
        try:
            should_retry = False
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *args, **kwargs)
        except errors.AbortedError:
            # A task of the cluster has restarted: continue from the last checkpoint.
            should_retry = True
