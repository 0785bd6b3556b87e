"""Checkpoints that a thread writes: `save` takes the values at once and returns before they are in a file."""

import threading

from runnel.checkpoint.saveable import SaveSpec
from runnel.core import framework
from runnel.core.identity import ObjectIdentityDictionary


class AsyncWriter:
    """Writes one checkpoint at a time. An error of the thread is raised by the next call."""

    def __init__(self):
        self._thread = self._error = None

    def wait(self):
        """Waits until the last checkpoint is written, or has failed."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def start(self, write):
        """Calls `write` in a thread."""
        self.wait()

        def run():
            try:
                write()
            except Exception as error:  # noqa: BLE001  whatever it is, the program gets it
                self._error = error
        self._thread = threading.Thread(target=run, name="async checkpoint")
        self._thread.start()


def frozen(tensors):
    """Returns {object: {key: tensor}} with the values of now, where SaveSpecs would have read them later."""
    out = ObjectIdentityDictionary()
    for obj, rows in tensors.items():
        out[obj] = {key: {part: _value(x) for part, x in value.items()} if isinstance(value, dict) else _value(value)
                    for key, value in rows.items()}
        out[obj] = {key: value for key, value in out[obj].items() if value is not None}
    return out


def _value(value):
    if not isinstance(value, SaveSpec):
        return value
    with framework.device(value.device if isinstance(value.device, str) else None):
        return value.tensor
