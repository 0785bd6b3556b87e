"""tf.train.CheckpointOptions."""

import copy
import inspect

from runnel.checkpoint.sharding import ShardingCallback


class CheckpointOptions:
    """How a checkpoint is written and read.

    Args:
      experimental_io_device: the device that reads and writes files.
      experimental_enable_async_checkpoint, enable_async: whether a thread writes the file after `save` has returned.
      experimental_write_callbacks: functions, of the path or of nothing, that are called after each save.
      experimental_skip_slot_variables: whether the slots of optimizers are not restored.
      experimental_sharding_callback: a ShardingCallback, which divides tensors among files; by default there is one file per task.
    """

    __slots__ = ("experimental_io_device", "experimental_enable_async_checkpoint", "experimental_write_callbacks", "enable_async",
                 "experimental_sharding_callback", "experimental_skip_slot_variables")

    def __init__(self, experimental_io_device=None, experimental_enable_async_checkpoint=False, experimental_write_callbacks=None,
                 enable_async=False, experimental_skip_slot_variables=False, experimental_sharding_callback=None):
        self.experimental_io_device = experimental_io_device
        self.enable_async = experimental_enable_async_checkpoint or enable_async
        self.experimental_enable_async_checkpoint = self.enable_async
        for callback in experimental_write_callbacks or ():
            if len(inspect.signature(callback).parameters) > 1:
                raise AssertionError("`experimental_write_callbacks` must take at most one argument, the path of the checkpoint")
        self.experimental_write_callbacks = experimental_write_callbacks
        if experimental_sharding_callback is not None and not isinstance(experimental_sharding_callback, ShardingCallback):
            raise ValueError("The experimental_sharding_callback checkpoint optionmust be of type ShardingCallback. The option providedwas of "
                             "type %s." % type(experimental_sharding_callback))
        self.experimental_sharding_callback = experimental_sharding_callback
        self.experimental_skip_slot_variables = experimental_skip_slot_variables

    def __copy__(self):
        made = CheckpointOptions()
        for name in CheckpointOptions.__slots__:
            setattr(made, name, copy.copy(getattr(self, name)))
        return made
