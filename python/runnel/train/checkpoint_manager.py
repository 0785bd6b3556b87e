"""tf.train.CheckpointManager: keeps the newest checkpoints of a folder."""

import copy
import glob
import os
import time

from runnel.checkpoint.statuses import get_session
from runnel.core import framework
from runnel.io import any_files
from runnel.train import checkpoint_management
from runnel.train.checkpoint_options import CheckpointOptions


def _number(value):
    """Returns the value of a variable or a tensor; anything else unchanged."""
    if hasattr(value, "numpy") and framework.executing_eagerly():
        return int(value.numpy())
    return int(get_session().run(value)) if hasattr(value, "graph") or hasattr(value, "handle") else value


class CheckpointManager:
    """Keeps the newest checkpoints of a folder.

    Args:
      checkpoint: a Checkpoint.
      directory: the folder.
      max_to_keep: how many to keep; None for all.
      keep_checkpoint_every_n_hours: keeps one checkpoint per this many hours for good.
      checkpoint_name: the name of checkpoints, without the number.
      step_counter, checkpoint_interval: `save` does nothing before the variable `step_counter` has grown by `checkpoint_interval`.
      init_fn: called by `restore_or_initialize` if there is no checkpoint.
      last_checkpoint_step: the value of `step_counter` at the last checkpoint, if the program knows it.
    """

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt", step_counter=None,
                 checkpoint_interval=None, init_fn=None, last_checkpoint_step=None):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError("Expected a positive integer or `None` for `max_to_keep`, got %d." % (max_to_keep,))
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval, self._last_step = step_counter, checkpoint_interval, last_checkpoint_step
        self._init_fn = init_fn
        self._count = None        # in a graph: the operation that counts saves
        self._kept = {}           # path -> time, the oldest first
        now = time.time()
        state = checkpoint_management.get_checkpoint_state(self._directory)
        self._latest, self._last_preserved = None, now - 1.0
        if state is None:
            return
        self._latest, self._last_preserved = state.model_checkpoint_path, state.last_preserved_timestamp
        if now < self._last_preserved:
            from runnel import logging
            logging.warning("time.time() returned a value %f seconds behind the last preserved checkpoint timestamp." % (
                self._last_preserved - now,))
            self._last_preserved = now
        paths = list(state.all_model_checkpoint_paths)
        for path, made in zip(paths, list(state.all_model_checkpoint_timestamps) or [self._last_preserved] * len(paths)):
            if min(made, now) > self._last_preserved:
                self._kept[path] = min(made, now)

    _latest_checkpoint = property(lambda self: self._latest)

    @property
    def directory(self):
        """The folder."""
        return self._directory

    @property
    def latest_checkpoint(self):
        """The path of the newest checkpoint, or None."""
        return self._latest

    @property
    def checkpoints(self):
        """The paths, the oldest first."""
        return list(self._kept)

    @property
    def checkpoint(self):
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self):
        """By how much `step_counter` must grow between checkpoints, or None."""
        return self._interval

    def restore_or_initialize(self):
        """Restores the newest checkpoint and returns its path. Without one, calls `init_fn` and returns None."""
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._interval is not None:
                self._last_step = _number(self._step_counter)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def save(self, checkpoint_number=None, session=None, check_interval=True, options=None):
        """Saves a checkpoint and removes old ones. Returns the new path, or None if it is too early by `step_counter`."""
        if self._interval is not None:
            step = _number(self._step_counter)
            if self._last_step is not None and (step == self._last_step or check_interval and step < self._last_step + self._interval):
                return None
            self._last_step = step
        counter = self._counted(session)
        options = copy.copy(options) or CheckpointOptions()
        options.experimental_write_callbacks = [*(options.experimental_write_callbacks or ()), self._record]
        number = _number(counter if checkpoint_number is None else checkpoint_number)
        return self._checkpoint._write("%s-%d" % (self._prefix, number), options=options, session=session)

    def _counted(self, session):
        """Adds 1 to the checkpoint's counter of saves, and returns it."""
        if framework.executing_eagerly():
            self._checkpoint.save_counter.assign_add(1)
            return self._checkpoint.save_counter
        session = get_session() if session is None else session
        is_new = self._checkpoint._save_counter is None
        counter = self._checkpoint.save_counter
        if is_new:
            session.run(counter.initializer)
        if self._count is None:
            self._count = counter.assign_add(1, read_value=False)
        session.run(self._count)
        return counter

    def _record(self, path):
        """Notes that a checkpoint was written, and removes old ones."""
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest = path
        self._write_state()  # before files are removed, so that the state never names one that is gone
        while self._max_to_keep and len(self._kept) > self._max_to_keep:
            old = next(iter(self._kept))
            made = self._kept.pop(old)
            if self._hours and made - self._hours * 3600.0 >= self._last_preserved:
                self._last_preserved = made
                continue
            for pattern in (".index", ".data-?????-of-?????"):
                for file in any_files.glob(glob.escape(old) + pattern):
                    any_files.remove(file)
        self._write_state()

    def _write_state(self):
        checkpoint_management.update_checkpoint_state_internal(
            self._directory, self._latest, list(self._kept), save_relative_paths=True,
            all_model_checkpoint_timestamps=list(self._kept.values()), last_preserved_timestamp=self._last_preserved)

    def sync(self):
        """Waits until the last checkpoint that was saved asynchronously is written."""
        self._checkpoint.sync()
