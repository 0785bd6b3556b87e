"""tensorflow.python.tpu.tpu_function: how many shards a computation has on TPUs, of which there are none."""

import contextlib


class TpuContext:
    """The context of a computation; outside of TPUs the number of shards is None."""

    def __init__(self):
        self._number_of_shards = None

    @property
    def number_of_shards(self):
        return self._number_of_shards

    def set_number_of_shards(self, number_of_shards):
        self._number_of_shards = number_of_shards


_CONTEXT = TpuContext()


def get_tpu_context():
    """The context, one for the program."""
    return _CONTEXT


@contextlib.contextmanager
def tpu_shard_context(number_of_shards):
    """In it, a computation has so many shards."""
    if _CONTEXT.number_of_shards is not None:
        raise NotImplementedError("tpu_shard_context cannot be nested.")
    _CONTEXT.set_number_of_shards(number_of_shards)
    try:
        yield
    finally:
        _CONTEXT.set_number_of_shards(None)
