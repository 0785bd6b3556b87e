"""tf.contrib.slim.learning: training loops."""

import time

from runnel import errors, logging, raw_ops, summary
from runnel.core.composite import IndexedSlices
from runnel.core.framework import GraphKeys, get_collection, get_default_graph, name_scope
from runnel.ops import clip_ops, math_ops
from runnel.ops.control_flow import group, with_dependencies
from runnel.ops.variables import trainable_variables
from runnel.train.training_util import get_or_create_global_step

_USE_GLOBAL_STEP = 0


def clip_gradient_norms(gradients_to_variables, max_norm):
    """Clips each gradient to a norm of at most `max_norm`."""
    return [(clip_ops.clip_by_norm(g, max_norm) if g is not None else None, v)
            for g, v in gradients_to_variables]


def multiply_gradients(grads_and_vars, gradient_multipliers):
    """Multiplies gradients by {variable or its name: factor}."""
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    result = []
    for grad, var in grads_and_vars:
        key = var if var in gradient_multipliers else var.op.name
        if key in gradient_multipliers:
            if grad is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = math_ops.cast(gradient_multipliers[key], grad.dtype)
            if isinstance(grad, IndexedSlices):
                grad = IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
            else:
                grad *= factor
        result.append((grad, var))
    return result


def add_gradients_summaries(grads_and_vars):
    """Adds summaries of gradients and their norms."""
    made = []
    for grad, var in grads_and_vars:
        if grad is None:
            logging.info("Var %s has no gradient", var.op.name)
            continue
        values = getattr(grad, "values", grad)
        made.append(summary.histogram(var.op.name + "_gradient", values))
        made.append(summary.scalar(var.op.name + "_gradient_norm", clip_ops.global_norm([values])))
    return made


def create_train_op(total_loss, optimizer, global_step=_USE_GLOBAL_STEP, update_ops=None,
                    variables_to_train=None, clip_gradient_norm=0, summarize_gradients=False,
                    gate_gradients=1, aggregation_method=None, colocate_gradients_with_ops=False,
                    gradient_multipliers=None, check_numerics=True):
    """Returns a tensor that runs a training step and has the value of the loss."""
    if global_step is _USE_GLOBAL_STEP:
        global_step = get_or_create_global_step()
    updates = list(dict.fromkeys(get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops))
    if updates:
        total_loss = with_dependencies([group(*updates, name="update_barrier")], total_loss)
    grads = optimizer.compute_gradients(
        total_loss, trainable_variables() if variables_to_train is None else variables_to_train,
        gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops)
    if gradient_multipliers:
        grads = multiply_gradients(grads, gradient_multipliers)
    if clip_gradient_norm > 0:
        grads = clip_gradient_norms(grads, clip_gradient_norm)
    if summarize_gradients:
        add_gradients_summaries(grads)
    applied = optimizer.apply_gradients(grads, global_step=global_step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = raw_ops.CheckNumerics(
                tensor=total_loss, message="LossTensor is inf or nan")
        train_op = with_dependencies([applied], total_loss)
    if train_op not in get_collection(GraphKeys.TRAIN_OP):
        get_default_graph().add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op


def train_step(sess, train_op, global_step, train_step_kwargs):
    """Runs one step. Returns (loss, whether to stop)."""
    start = time.time()
    loss, step = sess.run([train_op, global_step])
    if train_step_kwargs.get("should_log") is not None and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, time.time() - start)
    stop = train_step_kwargs.get("should_stop")
    return loss, bool(sess.run(stop)) if stop is not None else False


def train(train_op, logdir, train_step_fn=train_step, train_step_kwargs=None, log_every_n_steps=1,
          graph=None, master="", is_chief=True, global_step=None, number_of_steps=None, init_op=0,
          init_feed_dict=None, local_init_op=None, init_fn=None, ready_op=None, summary_op=0,
          save_summaries_secs=600, summary_writer=None, startup_delay_steps=0, saver=None,
          save_interval_secs=600, sync_optimizer=None, session_config=None, session_wrapper=None,
          trace_every_n_steps=None, ignore_live_threads=False):
    """Trains until a step stops or `number_of_steps` is reached. Returns the last loss.

    Checkpoints and summaries are in `logdir`; calling it again continues from there.
    """
    from runnel.ops.lookup_ops import tables_initializer
    from runnel.ops.variables import (global_variables_initializer, local_variables_initializer)
    from runnel.train.saver import Saver
    from runnel.train.supervisor import Supervisor
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None and (summary_op not in (0, None) or saver is not None):
        raise ValueError("Cannot provide summary_op or saver because logdir=None")
    with (graph or get_default_graph()).as_default() as graph:
        step = global_step if global_step is not None else get_or_create_global_step()
        if init_op == 0:
            init_op = global_variables_initializer()
        if local_init_op is None:
            local_init_op = group(local_variables_initializer(), tables_initializer())
        if summary_op == 0:
            summary_op = summary.merge_all() if logdir else None
        if train_step_kwargs is None:
            train_step_kwargs = {}
            if number_of_steps:
                train_step_kwargs["should_stop"] = step >= number_of_steps
            if log_every_n_steps > 0:
                train_step_kwargs["should_log"] = math_ops.equal(
                    step % log_every_n_steps, 0)
        supervisor = Supervisor(
            graph=graph, is_chief=is_chief, logdir=logdir, init_op=init_op, init_feed_dict=init_feed_dict,
            local_init_op=local_init_op, ready_op=ready_op if ready_op is not None else Supervisor.USE_DEFAULT,
            summary_op=None, global_step=step, saver=saver or Saver(), save_summaries_secs=0,
            save_model_secs=save_interval_secs if logdir else 0, init_fn=init_fn,
            **({"summary_writer": summary_writer} if summary_writer is not None else {}))
        loss, written = None, 0.0
        with supervisor.managed_session(master, start_standard_services=False,
                                        config=session_config) as sess:
            if session_wrapper is not None:
                sess = session_wrapper(sess)
            threads = supervisor.start_queue_runners(sess)
            try:
                while not supervisor.should_stop():
                    loss, stop = train_step_fn(sess, train_op, step, train_step_kwargs)
                    if summary_op is not None and time.time() - written >= save_summaries_secs:
                        written = time.time()
                        supervisor.summary_computed(sess, sess.run(summary_op))
                    if stop:
                        break
            except errors.OutOfRangeError:
                logging.info("Caught OutOfRangeError. Stopping Training.")
            if logdir and is_chief:
                supervisor.saver.save(sess, supervisor.save_path, global_step=supervisor.global_step)
            supervisor.stop(threads, close_summary_writer=True, ignore_live_threads=ignore_live_threads)
        return loss
