"""tensorflow.python.tpu.tpu_function: the number of shards of a computation on TPUs, which are not supported."""

import contextlib


class TpuContext:
    """The context of a computation; the number of shards is None outside of TPUs."""

    def __init__(self):
        self._number_of_shards = None

    @property
    def number_of_shards(self):
        return self._number_of_shards

    def set_number_of_shards(self, number_of_shards):
        self._number_of_shards = number_of_shards


_CONTEXT = TpuContext()


def get_tpu_context():
    """Returns the program's context."""
    return _CONTEXT


@contextlib.contextmanager
def tpu_shard_context(number_of_shards):
    """A context manager that sets the number of shards."""
    if _CONTEXT.number_of_shards is not None:
        raise NotImplementedError("tpu_shard_context cannot be nested.")
    _CONTEXT.set_number_of_shards(number_of_shards)
    try:
        yield
    finally:
        _CONTEXT.set_number_of_shards(None)
