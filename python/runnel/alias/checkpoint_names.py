"""Names of tensorflow.python.checkpoint that only its own paths have."""

import copy
import glob
import weakref

from runnel.checkpoint.keys import attributes_prefix as _extract_saveable_name  # noqa: F401
from runnel.checkpoint.restoring import CheckpointRestoreCoordinator as _CheckpointRestoreCoordinator  # noqa: F401
from runnel.checkpoint.restoring import NameBasedRestoreCoordinator as _NameBasedRestoreCoordinator  # noqa: F401
from runnel.saved_model import metrics
from runnel.train.checkpoint import Checkpoint, CheckpointV1
from runnel.train.checkpoint_options import CheckpointOptions

_CHECKPOINT_V1, _CHECKPOINT_V2, _ASYNC_CHECKPOINT = CheckpointV1._label, Checkpoint._label, "async_checkpoint"


def _get_checkpoint_size(prefix):
    """Returns the size of a checkpoint's files in megabytes."""
    return sum(metrics.CalculateFileSize(file) for file in glob.glob(prefix + "*"))


class AsyncCheckpointHelper:
    """A checkpoint, of the class `checkpointer_impl`, that is always written asynchronously."""

    def __init__(self, checkpointer_impl, root=None, **kwargs):
        if checkpointer_impl is None:
            raise AttributeError("checkpointer_impl cannot be None for AsyncCheckpointHelper.")
        if root is not None:
            kwargs["root"] = root() if isinstance(root, weakref.ref) else root
        self._checkpoint = checkpointer_impl(**kwargs)

    def checkpointer(self):
        """Returns the checkpoint."""
        return self._checkpoint

    save_counter = property(lambda self: self._checkpoint.save_counter)

    @staticmethod
    def _asynchronous(options):
        made = copy.copy(options) or CheckpointOptions()
        made.experimental_enable_async_checkpoint = True
        return made

    def write(self, save_path, options=None, session=None):
        """Writes a checkpoint at exactly this path."""
        return self._checkpoint._write(save_path, self._asynchronous(options))

    _write = write

    def save(self, save_path, options=None):
        """Writes a checkpoint with a number behind the path."""
        return self._checkpoint.save(save_path, self._asynchronous(options))

    def restore(self, save_path, options=None):
        """Restores the objects."""
        return self._checkpoint.restore(save_path, options)

    read = restore

    def sync(self):
        """Waits until the last checkpoint is written."""
        self._checkpoint.sync()
