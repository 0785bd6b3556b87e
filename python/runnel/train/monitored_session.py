"""Monitored sessions: initialized or restored, with hooks, and created again after a failure of the cluster."""

import inspect
import time

from runnel import errors, logging, raw_ops
from runnel.core import framework
from runnel.core.framework import GraphKeys
from runnel.distribute.worker_context import get_current_worker_context
from runnel.ops import control_flow, variables
from runnel.train import basic_session_run_hooks as hooks_lib, coordinator, queue_runner, saver as saver_lib, session_manager
from runnel.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunValues

_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)
USE_DEFAULT = object()


def _no_names():
    """Returns an empty vector of strings: no resource needs to be initialized."""
    from runnel import dtypes
    from runnel.core import convert
    with framework.name_scope("report_uninitialized_resources"), framework.device("/cpu:0"):
        return convert.constant([], dtype=dtypes.string)


def _missing(var_list=None):
    names = variables.report_uninitialized_variables(var_list)
    return raw_ops.ConcatV2(values=[names, _no_names()], axis=0, name="concat")


class Scaffold:
    """The parts of a graph that a session needs; `finalize` creates those that are not given.

    Args:
      init_op: initializes the variables, with `init_feed_dict`.
      init_fn: is called after it with (scaffold, session).
      ready_op: returns the names of variables that are not ready.
      ready_for_local_init_op: the same, checked before local_init_op.
      local_init_op: initializes local variables and tables, with `local_init_feed_dict`.
      summary_op: merges all summaries.
      saver: a Saver.
      copy_from_scaffold: a Scaffold to take the parts from that are not given.
    """

    _PIECES = ("init_op", "init_feed_dict", "ready_op", "ready_for_local_init_op", "local_init_op",
               "local_init_feed_dict", "summary_op", "saver")

    def __init__(self, init_op=None, init_feed_dict=None, init_fn=None, ready_op=None,
                 ready_for_local_init_op=None, local_init_op=None, summary_op=None, saver=None,
                 copy_from_scaffold=None, local_init_feed_dict=None):
        given = dict(init_op=init_op, init_feed_dict=init_feed_dict, ready_op=ready_op,
                     ready_for_local_init_op=ready_for_local_init_op, local_init_op=local_init_op,
                     local_init_feed_dict=local_init_feed_dict, summary_op=summary_op, saver=saver)
        if copy_from_scaffold is not None:
            if not isinstance(copy_from_scaffold, Scaffold):
                raise TypeError("copy_from_scaffold is not a Scaffold instance.")
            if init_fn is None:
                init_fn = copy_from_scaffold._user_init_fn
        for name in self._PIECES:
            value = given[name]
            if value is None and copy_from_scaffold is not None:
                value = getattr(copy_from_scaffold, name)
            setattr(self, "_" + name, value)
        self._user_init_fn = init_fn
        self._init_fn = (lambda sess: init_fn(self, sess)) if init_fn else None

    @property
    def init_fn(self):
        return self._init_fn

    def finalize(self):
        """Creates what is missing, and makes the graph read-only."""
        self._make("init_op", GraphKeys.INIT_OP, lambda: control_flow.group(
            variables.global_variables_initializer(), control_flow.no_op("init"),
            *framework.get_collection("saved_model_initializers")))
        self._make("ready_op", GraphKeys.READY_OP, _missing)
        self._make("ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP,
                   lambda: _missing(variables.global_variables()))
        self._make("local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
        self._make("summary_op", GraphKeys.SUMMARY_OP, _merge_all)
        if self._saver is None:
            self._saver = saver_lib._get_saver_or_default()
        self._saver.build()
        framework.get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    def _make(self, name, key, default):
        if getattr(self, "_" + name) is None:
            setattr(self, "_" + name, Scaffold.get_or_default(name, key, default))

    @staticmethod
    def get_or_default(arg_name, collection_key, default_constructor):
        """Returns the single value of a collection, or adds the result of `default_constructor` to it."""
        found = framework.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError("More than one item in the collection \"%s\". Please indicate which one "
                               "to use by passing it to the tf.Scaffold constructor as:  "
                               "tf.Scaffold(%s=item to use)" % (collection_key, arg_name))
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            framework.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op():
        """Returns an operation that initializes local variables and tables."""
        from runnel.ops.lookup_ops import tables_initializer
        return control_flow.group(variables.local_variables_initializer(), tables_initializer(),
                                  control_flow.no_op("init"))


def _piece(name):
    def get(self):
        return getattr(self, "_" + name)
    return property(get)


for _name in Scaffold._PIECES:
    setattr(Scaffold, _name, _piece(_name))


def _merge_all():
    summaries = framework.get_collection(GraphKeys.SUMMARIES)
    if not summaries:
        return None
    with framework.name_scope(None, "Merge", summaries):
        return raw_ops.MergeSummary(inputs=summaries)


# --- Making sessions

class SessionCreator:
    """The base of objects that create a session: create_session()."""

    def create_session(self):
        raise NotImplementedError("create_session is not implemented for %s." % self)


class ChiefSessionCreator(SessionCreator):
    """Creates the chief's session: initializes or restores."""

    def __init__(self, scaffold=None, master="", config=None, checkpoint_dir=None,
                 checkpoint_filename_with_path=None):
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master = master
        self._config = config

    def _manager(self, **kwargs):
        if self._session_manager is None:
            self._session_manager = session_manager.SessionManager(
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=framework.get_default_graph(), **kwargs)
        return self._session_manager

    def create_session(self):
        self._scaffold.finalize()
        return self._manager().prepare_session(
            self._master, saver=self._scaffold.saver, checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path, config=self._config,
            init_op=self._scaffold.init_op, init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn)


class WorkerSessionCreator(ChiefSessionCreator):
    """Creates a worker's session: waits for the chief."""

    def __init__(self, scaffold=None, master="", config=None, max_wait_secs=30 * 60):
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self):
        self._scaffold.finalize()
        return self._manager(recovery_wait_secs=1).wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs)


def MonitoredTrainingSession(  # noqa: N802
        master="", is_chief=True, checkpoint_dir=None, scaffold=None, hooks=None,
        chief_only_hooks=None, save_checkpoint_secs=USE_DEFAULT, save_summaries_steps=USE_DEFAULT,
        save_summaries_secs=USE_DEFAULT, config=None, stop_grace_period_secs=120,
        log_step_count_steps=100, max_wait_secs=7200, save_checkpoint_steps=USE_DEFAULT,
        summary_dir=None, save_graph_def=True):
    """Creates a session for training, with hooks that save checkpoints and summaries.

        with tf.train.MonitoredTrainingSession(checkpoint_dir="run",
                                               hooks=[tf.train.StopAtStepHook(last_step=1000)]) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    Args:
      master: the server; "" for this process.
      is_chief: whether this process initializes, saves and restores; others wait.
      checkpoint_dir: folder of the checkpoints.
      scaffold: a Scaffold.
      hooks, chief_only_hooks: more hooks.
      save_checkpoint_secs, save_checkpoint_steps: how often to save; by default every 600 seconds.
      save_summaries_steps, save_summaries_secs: how often to write summaries; by default every 100 steps.
      config: a ConfigProto.
      stop_grace_period_secs: how long threads may take to stop.
      log_step_count_steps: how often to log the speed.
      max_wait_secs: how long a worker waits.
      summary_dir: folder of the summaries; by default checkpoint_dir.
      save_graph_def: whether to write the graph with checkpoints.
    """
    save_summaries_steps, save_summaries_secs = _steps_or_seconds(
        save_summaries_steps, save_summaries_secs, 100, None)
    save_checkpoint_steps, save_checkpoint_secs = _steps_or_seconds(
        save_checkpoint_steps, save_checkpoint_secs, None, 600)
    scaffold = scaffold or Scaffold()
    context = get_current_worker_context()
    if context is not None:
        is_chief = context.is_chief
        creator = context.session_creator(scaffold, config=config, checkpoint_dir=checkpoint_dir, max_wait_secs=max_wait_secs)
    elif is_chief:
        creator = ChiefSessionCreator(scaffold=scaffold, checkpoint_dir=checkpoint_dir, master=master, config=config)
    else:
        creator = WorkerSessionCreator(scaffold=scaffold, master=master, config=config, max_wait_secs=max_wait_secs)
        return MonitoredSession(creator, hooks or [], stop_grace_period_secs)
    summary_dir = summary_dir or checkpoint_dir
    if context is not None:
        summary_dir = context.folder(summary_dir, context.should_save_summary)
        checkpoint_dir = context.folder(checkpoint_dir, context.should_checkpoint)
    all_hooks = list(chief_only_hooks or []) if is_chief else []
    if summary_dir and (log_step_count_steps or 0) > 0:
        all_hooks.append(hooks_lib.StepCounterHook(output_dir=summary_dir,
                                                   every_n_steps=log_step_count_steps))
    if summary_dir and ((save_summaries_steps or 0) > 0 or (save_summaries_secs or 0) > 0):
        all_hooks.append(hooks_lib.SummarySaverHook(
            scaffold=scaffold, save_steps=save_summaries_steps, save_secs=save_summaries_secs,
            output_dir=summary_dir))
    if checkpoint_dir and ((save_checkpoint_secs or 0) > 0 or (save_checkpoint_steps or 0) > 0):
        all_hooks.append(hooks_lib.CheckpointSaverHook(
            checkpoint_dir, save_steps=save_checkpoint_steps, save_secs=save_checkpoint_secs,
            scaffold=scaffold, save_graph_def=save_graph_def))
    all_hooks += hooks or []
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _steps_or_seconds(steps, seconds, default_steps, default_seconds):
    if steps is USE_DEFAULT and seconds is USE_DEFAULT:
        return default_steps, default_seconds
    return (None if steps is USE_DEFAULT else steps), (None if seconds is USE_DEFAULT else seconds)


# --- Layers of a session: hooks, a coordinator, recovery

class _WrappedSession:
    def __init__(self, sess):
        self._sess = sess

    @property
    def graph(self):
        return self._sess.graph

    @property
    def sess_str(self):
        return self._sess.sess_str

    def should_stop(self):
        if self._check_stop():
            return True
        if self._sess is None:
            return True
        return isinstance(self._sess, _WrappedSession) and self._sess.should_stop()

    def _check_stop(self):
        return False

    def close(self):
        if self._sess is None:
            return
        try:
            self._sess.close()
        except _PREEMPTION_ERRORS as error:
            logging.error("An error occurred when attempting to close the session: %s", error)
        finally:
            self._sess = None

    def run(self, *args, **kwargs):
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        return step_fn(_MonitoredSession.StepContext(raw_session, run_with_hooks or self.run))


class _RecoverableSession(_WrappedSession):
    """Creates a new session when the cluster has lost one."""

    def __init__(self, creator):
        self._creator = creator
        super().__init__(self._create())

    def _create(self):
        while True:
            try:
                return self._creator.create_session()
            except _PREEMPTION_ERRORS as error:
                logging.info("An error was raised while a session was being created. A new session will be "
                          "created. Error: %s", error)

    def _lost(self, error):
        logging.info("An error was raised. The current session will be closed and a new session will be "
                  "created. Error: %s", error)
        self.close()

    def _check_stop(self):
        try:
            return self._sess._check_stop() if self._sess is not None else True
        except _PREEMPTION_ERRORS as error:
            self._lost(error)
            self._sess = self._create()
            return False
        except Exception:  # whatever the error is, the session is over
            return True

    def _retry(self, action):
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create()
                return action()
            except _PREEMPTION_ERRORS as error:
                self._lost(error)

    def run(self, *args, **kwargs):
        return self._retry(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn, raw_session, run_with_hooks):
        return self._retry(
            lambda: self._sess.run_step_fn(step_fn, self._creator.tf_sess, self._sess.run))


class _CoordinatedSession(_WrappedSession):
    """Stops together with its threads, and raises what they report."""

    def __init__(self, sess, coord, stop_grace_period_secs=120):
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self):
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def _only_runners_left(self):
        """Tells whether, after a moment, only threads of queue runners are left.

        Their queues are closed by then, but their steps may still wait for something else, such as gradients.
        """
        end = time.monotonic() + 2.0
        while True:
            left = [t for t in self._coord._registered_threads if t.is_alive()]
            if not left or time.monotonic() > end:
                return bool(left) and all(t.name.startswith("QueueRunnerThread-") for t in left)
            left[0].join(0.1)

    def close(self):
        self._coord.request_stop()
        try:
            if self._only_runners_left():
                super().close()  # which cancels their steps
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs,
                             ignore_live_threads=True)
        finally:
            super().close()

    def run(self, *args, **kwargs):
        try:
            return self._sess.run(*args, **kwargs)
        except _PREEMPTION_ERRORS:
            raise
        except Exception as error:
            try:
                self._coord.raise_requested_exception()
            except _PREEMPTION_ERRORS:
                raise
            except Exception:  # the step's own error is more specific
                raise error from None
            raise


class _HookedSession(_WrappedSession):
    """Calls hooks around each step."""

    def __init__(self, sess, hooks):
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self):
        return self._should_stop

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        from runnel.core.protobuf import message_class
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        wanted = {"caller": fetches}
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        is_plain = options is None
        options = options or message_class("RunOptions")()
        feed_dict, has_options = self._ask_hooks(context, wanted, feed_dict, options)
        # Trace the step only if a hook wants it.
        is_plain = is_plain and not has_options and run_metadata is None
        metadata = run_metadata or message_class("RunMetadata")()
        if is_plain:
            values = self._sess.run(wanted, feed_dict=feed_dict)
        else:
            values = self._sess.run(wanted, feed_dict=feed_dict, options=options, run_metadata=metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(values.get(hook), options, metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return values["caller"]

    def _ask_hooks(self, context, wanted, user_feeds, options):
        feeds, has_options = {}, False
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                wanted[hook] = request.fetches
            if request.feed_dict:
                _check_apart(feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                feeds.update(request.feed_dict)
            if request.options:
                has_options = True
                _merge_options(options, request.options)
        if not feeds:
            return user_feeds, has_options
        if user_feeds:
            _check_apart(user_feeds, feeds, "Same tensor is fed by a SessionRunHook and user.")
            feeds.update(user_feeds)
        return feeds, has_options


def _check_apart(one, two, message):
    both = set(one) & set(two)
    if both:
        raise RuntimeError("%s Conflict(s): %s" % (message, list(both)))


def _merge_options(options, more):
    for field in ("trace_level", "timeout_in_ms", "inter_op_thread_pool"):
        setattr(options, field, max(getattr(options, field), getattr(more, field)))
    for field in ("output_partition_graphs", "report_tensor_allocations_upon_oom"):
        setattr(options, field, getattr(options, field) or getattr(more, field))
    options.debug_options.debug_tensor_watch_opts.extend(more.debug_options.debug_tensor_watch_opts)


class _MonitoredSession:
    """The base of monitored sessions."""

    def __init__(self, session_creator, hooks, should_recover, stop_grace_period_secs=120):
        self._graph_was_finalized = framework.get_default_graph().finalized
        self._hooks = hooks or []
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = self._CoordinatedSessionCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs)
        if should_recover:
            self._sess = _RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self):
        """The graph that the session runs."""
        return None if self._tf_sess() is None else self._tf_sess().graph

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs one step, with the hooks."""
        if self._sess is None:
            raise RuntimeError("Session is already closed.")
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn):
        """Calls `step_fn(step_context)`, which may run steps with and without hooks."""
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError("`step_fn` may either have one `step_context` argument, or `self` and "
                             "`step_context` arguments if it's an instance method. Got %s instead." % (
                                 names,))
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    class StepContext:
        """The argument of a step function: the session, and steps with hooks."""

        def __init__(self, session, run_with_hooks_fn):
            self._session = session
            self._run_with_hooks_fn = run_with_hooks_fn

        @property
        def session(self):
            return self._session

        def run_with_hooks(self, *args, **kwargs):
            return self._run_with_hooks_fn(*args, **kwargs)

        def request_stop(self):
            raise StopIteration("step_fn has requested the iterations to stop.")

    class _CoordinatedSessionCreator(SessionCreator):
        def __init__(self, session_creator, hooks, stop_grace_period_secs):
            self._session_creator = session_creator
            self._hooks = hooks
            self._stop_grace_period_secs = stop_grace_period_secs
            self.coord = None
            self.tf_sess = None

        def create_session(self):
            self.tf_sess = self._session_creator.create_session()
            self.coord = coordinator.Coordinator(clean_stop_exception_types=[])
            if framework.get_collection(GraphKeys.QUEUE_RUNNERS):
                queue_runner.start_queue_runners(sess=self.tf_sess, coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
            return _CoordinatedSession(_HookedSession(self.tf_sess, self._hooks), self.coord,
                                       self._stop_grace_period_secs)

    def should_stop(self):
        """Tells whether the training loop should end."""
        return self._sess is None or self._sess.should_stop()

    def close(self):
        """Calls the hooks' `end`, stops the threads and closes the session."""
        self._close_internal()

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception_value, traceback):
        if exception_type in (errors.OutOfRangeError, StopIteration):
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _close_internal(self, exception_type=None):
        try:
            if not exception_type:
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    framework.get_default_graph()._unsafe_unfinalize()

    def _is_closed(self):
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self):
        return self._coordinated_creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session with hooks, created again after a failure of the cluster."""

    StepContext = _MonitoredSession.StepContext

    def __init__(self, session_creator=None, hooks=None, stop_grace_period_secs=120):
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks that is not created again; raw_session() is the session itself."""

    def __init__(self, hooks=None, scaffold=None, master="", config=None, checkpoint_dir=None,
                 stop_grace_period_secs=120, checkpoint_filename_with_path=None):
        creator = ChiefSessionCreator(
            scaffold=scaffold, master=master, config=config, checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self):
        return self._tf_sess()
