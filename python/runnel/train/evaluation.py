"""Evaluation of checkpoints: the counter of evaluations, hooks that stop after some, and the loop."""

import time

from runnel import dtypes, logging
from runnel.core.framework import GraphKeys, control_dependencies, get_default_graph
from runnel.ops.array_ops import identity
from runnel.ops.math_ops import cast
from runnel.ops.state_ops import assign_add
from runnel.train.basic_session_run_hooks import FinalOpsHook
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook


def _get_or_create_eval_step():
    """Returns the variable that counts evaluations; it is local and in the collection EVAL_STEP."""
    from runnel.ops.init_ops import zeros_initializer
    from runnel.ops.variable_scopes import get_variable
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    return found[0] if found else get_variable(
        "eval_step", shape=[], dtype=dtypes.int64, initializer=zeros_initializer(), trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP])


def _get_latest_eval_step_value(update_ops):
    """Returns the count after `update_ops`, a list or a dict of operations, have run."""
    if isinstance(update_ops, dict):
        update_ops = list(update_ops.values())
    with control_dependencies(update_ops):
        return identity(_get_or_create_eval_step().read_value())


def get_or_create_steps_per_run_variable():
    """Returns the variable with the number of iterations per step."""
    from runnel.ops.init_ops import ones_initializer
    from runnel.ops.variable_scopes import AUTO_REUSE, get_variable, variable_scope
    found = get_default_graph().get_collection("hooks_steps_per_run")
    if len(found) > 1:
        raise RuntimeError("Multiple steps_per_run_var in collection.")
    if found:
        return found[0]
    with variable_scope("hooks", reuse=AUTO_REUSE):
        return get_variable("steps_per_run", initializer=ones_initializer(), shape=[], dtype=dtypes.int32, trainable=False,
                            collections=["hooks_steps_per_run", GraphKeys.LOCAL_VARIABLES], use_resource=True)


class _CountingHook(SessionRunHook):
    """Fetches the count of evaluations in each step."""

    def __init__(self, num_evals):
        self._num_evals, self._evals_completed = num_evals, None

    def _set_evals_completed_tensor(self, updated_eval_step):
        self._evals_completed = updated_eval_step

    def before_run(self, run_context):
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def _count(self, run_context, run_values, logged):
        done = run_values.results["evals_completed"]
        if logged(done):
            if self._num_evals is None:
                logging.info("Evaluation [%d]", done)
            else:
                logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()
        return done


class _StopAfterNEvalsHook(_CountingHook):
    """Stops after `num_evals` evaluations, or at the end of the input if that is None."""

    def __init__(self, num_evals, log_progress=True):
        super().__init__(num_evals)
        self._log_progress = log_progress
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else num_evals // 10

    def after_run(self, run_context, run_values):
        self._count(run_context, run_values, lambda done: self._log_progress and (
            self._num_evals is None or done % self._log_frequency == 0 or done == self._num_evals))


class _MultiStepStopAfterNEvalsHook(_CountingHook):
    """Like _StopAfterNEvalsHook, for steps of `steps_per_run` evaluations, which a variable tells the graph."""

    def __init__(self, num_evals, steps_per_run=1):
        super().__init__(num_evals)
        self._steps_per_run_initial_value = steps_per_run

    def begin(self):
        self._steps_per_run_variable = get_or_create_steps_per_run_variable()

    def _load(self, left, session):
        steps = self._steps_per_run_initial_value
        self._steps_per_run_variable.load(steps if left is None else min(steps, left), session=session)

    def after_create_session(self, session, coord):
        self._load(self._num_evals, session)

    def after_run(self, run_context, run_values):
        done = self._count(run_context, run_values, lambda done: True)
        self._load(None if self._num_evals is None else self._num_evals - done, run_context.session)


def _counted(eval_ops, hooks):
    """Adds the counter to the operations of a step, and tells the hooks about it."""
    step = _get_or_create_eval_step()
    if eval_ops is None:
        return None
    many = any(isinstance(hook, _MultiStepStopAfterNEvalsHook) for hook in hooks)
    update = assign_add(step, cast(get_or_create_steps_per_run_variable(), step.dtype) if many else 1, use_locking=True)
    if isinstance(eval_ops, dict):
        eval_ops["update_eval_step"] = update
    else:
        eval_ops = (list(eval_ops) if isinstance(eval_ops, (tuple, list)) else [eval_ops]) + [update]
    value = _get_latest_eval_step_value(eval_ops)
    for hook in hooks:
        if isinstance(hook, _CountingHook):
            hook._set_evals_completed_tensor(value)
    return eval_ops


def _evaluate_once(checkpoint_path, master="", scaffold=None, eval_ops=None, feed_dict=None, final_ops=None,
                   final_ops_feed_dict=None, hooks=None, config=None):
    """Runs `eval_ops` on a checkpoint until a hook stops it. Returns the values of `final_ops`."""
    from runnel.train.monitored_session import ChiefSessionCreator, MonitoredSession
    hooks = list(hooks or [])
    eval_ops = _counted(eval_ops, hooks)
    logging.info("Starting evaluation at " + time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime()))
    start = time.time()
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master,
                                  config=config)
    with MonitoredSession(session_creator=creator, hooks=hooks + [last]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    logging.info("Inference Time : %0.5fs" % (time.time() - start))
    logging.info("Finished evaluation at " + time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
    return last.final_ops_values
