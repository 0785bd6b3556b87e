"""SessionManager: creates sessions whose variables are ready, by initializing, restoring or waiting."""

import time

from runnel import errors, logging
from runnel.core import framework, session as session_lib
from runnel.train import checkpoint_management


class SessionManager:
    """Creates sessions whose variables are ready.

    Args:
      local_init_op: an operation that each session runs.
      ready_op: returns the names of what is not ready; empty if all is.
      ready_for_local_init_op: the same for what local_init_op needs.
      graph: the graph; by default the default graph.
      recovery_wait_secs: the time between two checks.
      local_init_run_options, local_init_feed_dict: for local_init_op.
    """

    def __init__(self, local_init_op=None, ready_op=None, ready_for_local_init_op=None, graph=None,
                 recovery_wait_secs=30, local_init_run_options=None, local_init_feed_dict=None):
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = framework.get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._target = None
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def _restore_checkpoint(self, master, saver=None, checkpoint_dir=None,
                            checkpoint_filename_with_path=None, wait_for_checkpoint=False,
                            max_wait_secs=7200, config=None):
        """Returns (session, whether something was restored)."""
        self._target = master
        sess = session_lib.Session(master, graph=self._graph, config=config)
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return sess, False
        if checkpoint_filename_with_path:
            saver.restore(sess, checkpoint_filename_with_path)
            return sess, True
        waited = 0.0
        state = checkpoint_management.get_checkpoint_state(checkpoint_dir)
        while not state or not state.model_checkpoint_path:
            if not wait_for_checkpoint or waited >= max_wait_secs:
                return sess, False
            logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = checkpoint_management.get_checkpoint_state(checkpoint_dir)
        saver.restore(sess, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return sess, True

    def prepare_session(self, master, init_op=None, saver=None, checkpoint_dir=None,
                        checkpoint_filename_with_path=None, wait_for_checkpoint=False,
                        max_wait_secs=7200, config=None, init_feed_dict=None, init_fn=None):
        """Returns a session with all variables: from the newest checkpoint, else by `init_op` and `init_fn(session)`."""
        sess, is_restored = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config)
        if not is_restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError("Model is not initialized and no init_op or init_fn or "
                                   "local_init_op was given")
            if init_op is not None:
                sess.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(sess)
        done, message = self._try_run_local_init_op(sess)
        if not done:
            raise RuntimeError("Init operations did not make model ready for local_init.  Init op: %s, "
                               "init fn: %s, local_init_op: %s, error: %s" % (
                                   _name(init_op), init_fn, self._local_init_op, message))
        ready, message = self._model_ready(sess)
        if not ready:
            raise RuntimeError("Init operations did not make model ready.  Init op: %s, init fn: %s, "
                               "local_init_op: %s, error: %s" % (
                                   _name(init_op), init_fn, self._local_init_op, message))
        return sess

    def recover_session(self, master, saver=None, checkpoint_dir=None,
                        checkpoint_filename_with_path=None, wait_for_checkpoint=False,
                        max_wait_secs=7200, config=None):
        """Returns (session, whether it is ready), using a checkpoint only."""
        sess, is_restored = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config)
        done, message = self._try_run_local_init_op(sess)
        if not is_restored:
            return sess, False
        if not done:
            logging.info("Restoring model from %s did not make model ready for local init: %s",
                      checkpoint_dir or checkpoint_filename_with_path, message)
            return sess, False
        ready, message = self._model_ready(sess)
        if not ready:
            logging.info("Restoring model from %s did not make model ready: %s",
                      checkpoint_dir or checkpoint_filename_with_path, message)
        return sess, ready

    def wait_for_session(self, master, config=None, max_wait_secs=float("inf")):
        """Returns a session once another process has made the variables ready."""
        self._target = master
        end = time.time() + (max_wait_secs if max_wait_secs is not None else float("inf"))
        while True:
            sess = session_lib.Session(master, graph=self._graph, config=config)
            done, message = self._try_run_local_init_op(sess)
            ready = done and self._model_ready(sess)
            if done and ready[0]:
                return sess
            self._safe_close(sess)
            if time.time() + self._recovery_wait_secs >= end:
                raise errors.DeadlineExceededError(
                    None, None, "Session was not ready after waiting %d secs." % (max_wait_secs,))
            logging.info("Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
                      message, ready[1] if ready else None)
            time.sleep(self._recovery_wait_secs)

    def _safe_close(self, sess):
        try:
            sess.close()
        except Exception:  # a broken session need not be closed
            logging.debug("a session could not be closed")

    def _model_ready(self, sess):
        return _ready(self._ready_op, sess, "Model not ready")

    def _model_ready_for_local_init(self, sess):
        return _ready(self._ready_for_local_init_op, sess, "Model not ready for local init")

    def _try_run_local_init_op(self, sess):
        """Runs the local init op. Returns (whether it ran or there is none, why not)."""
        if self._local_init_op is None:
            return True, None
        ready, message = self._model_ready_for_local_init(sess)
        if not ready:
            return False, message
        logging.info("Running local_init_op.")
        sess.run(self._local_init_op, feed_dict=self._local_init_feed_dict,
                 options=self._local_init_run_options)
        logging.info("Done running local_init_op.")
        return True, None


def _name(op):
    return "None" if op is None else getattr(op, "name", op)


def _ready(op, sess, message):
    """Returns (whether everything is ready, what is missing)."""
    if op is None:
        return True, None
    try:
        missing = sess.run(op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            raise
        return False, str(error)
    if missing is None or missing.size == 0 or str(missing.dtype) == "int32":  # values of variables, not names of missing ones
        return True, None
    names = b", ".join(missing.reshape(-1).tolist()).decode("utf-8", "replace")
    return False, "Variables not initialized: " + names
