"""Whether a model is being saved in this thread, and with which options."""

import contextlib
import threading


class _State(threading.local):
    is_saving, options = False, None


_state = _State()


@contextlib.contextmanager
def save_context(options):
    """A context manager: a model is being saved with `options`."""
    if _state.is_saving:
        raise ValueError("Already in a SaveContext.")
    _state.is_saving, _state.options = True, options
    try:
        yield
    finally:
        _state.is_saving, _state.options = False, None


def in_save_context():
    """Tells whether a model is being saved."""
    return _state.is_saving


def get_save_options():
    """Returns the options with which a model is being saved."""
    if not _state.is_saving:
        raise ValueError("Not in a SaveContext.")
    return _state.options
