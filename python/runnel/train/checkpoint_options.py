"""tf.train.CheckpointOptions."""

import inspect


class CheckpointOptions:
    """How a checkpoint is written and read. Writing is never asynchronous here: it is done when `save` returns.

    Args:
      experimental_io_device: the device that reads and writes files.
      experimental_write_callbacks: functions, of the path or of nothing, that are called after each save.
      experimental_sharding_callback: how tensors are divided among files; all go into one.
    """

    def __init__(self, experimental_io_device=None, experimental_enable_async_checkpoint=False, experimental_write_callbacks=None,
                 enable_async=False, experimental_skip_slot_variables=False, experimental_sharding_callback=None):
        self.experimental_io_device = experimental_io_device
        self.enable_async = experimental_enable_async_checkpoint or enable_async
        self.experimental_enable_async_checkpoint = self.enable_async
        self.experimental_write_callbacks = experimental_write_callbacks
        for callback in experimental_write_callbacks or ():
            if len(inspect.signature(callback).parameters) > 1:
                raise AssertionError("`experimental_write_callbacks` must take at most one argument, the path of the checkpoint")
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback

    def _wrote(self, path):
        for callback in self.experimental_write_callbacks or ():
            callback(*[path][:len(inspect.signature(callback).parameters)])
