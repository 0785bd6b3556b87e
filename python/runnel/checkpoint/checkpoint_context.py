"""Whether a checkpoint is written because the process is about to be stopped."""

import contextlib
import threading


class _State(threading.local):
    saves_before_stop = False


_state = _State()


@contextlib.contextmanager
def preemption_save_context():
    """A context manager: checkpoints inside it are written at once, even if they were to be written asynchronously."""
    _state.saves_before_stop = True
    try:
        yield
    finally:
        _state.saves_before_stop = False


def in_preemption_save_context():
    """Tells whether a preemption_save_context is open in this thread."""
    return _state.saves_before_stop
