"""tensorflow.python.autograph.core.ag_ctx: whether the code that runs now is to be converted."""

import enum

from runnel.autograph import conversion

INSPECT_SOURCE_SUPPORTED = True


class Status(enum.Enum):
    """Whether functions are converted."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A context manager: inside, functions are converted, or run as they are."""

    def __init__(self, status, options=None):
        self.status, self.options = status, options
        self._before = []

    def __enter__(self):
        self._before.append(conversion.set_status(self, self.status is Status.DISABLED))
        return self

    def __exit__(self, *unused):
        conversion.restore_status(self._before.pop())

    def __repr__(self):
        return "%s[status=%s, options=%s]" % (type(self).__name__, self.status, self.options)


class NullCtx:
    """A context manager that changes nothing."""

    def __enter__(self):
        pass

    def __exit__(self, *unused):
        pass


def control_status_ctx():
    """Returns the innermost ControlStatusCtx, or one that says what holds without any."""
    found = conversion.status()
    if found is not None:
        return found
    return ControlStatusCtx(Status.UNSPECIFIED if conversion.is_enabled() else Status.DISABLED)
