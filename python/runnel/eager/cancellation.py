"""Cancellation of functions that run eagerly."""

from runnel import _core


class CancellationManager:
    """Cancels the functions that run under it, also those that wait for others."""

    def __init__(self):
        self._manager = _core.cancellation_new()

    @property
    def is_cancelled(self):
        """Whether start_cancel was called."""
        return _core.cancellation_started(self._manager)

    def start_cancel(self):
        """Cancels what runs under this manager, and what will."""
        _core.cancellation_start(self._manager)

    def get_cancelable_function(self, concrete_function):
        """Returns the function so that it runs under this manager."""
        def cancellable(*args, **kwargs):
            before = _core.cancellation_enter(self._manager)
            try:
                return concrete_function(*args, **kwargs)
            finally:
                _core.cancellation_enter(before)
        return cancellable
