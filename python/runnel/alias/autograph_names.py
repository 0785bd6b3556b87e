"""tensorflow.python.autograph: names of its implementation that tests of tf.function import."""

import enum

from runnel.autograph import do_not_convert  # noqa: F401


class Status(enum.Enum):
    """Whether functions are converted."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A context manager that has a status and changes nothing."""

    def __init__(self, status, options=None):
        self.status, self.options = status, options

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None


def control_status_ctx():
    """Returns the status: unspecified."""
    return ControlStatusCtx(Status.UNSPECIFIED)
