"""tensorflow.python.autograph: names of its implementation that tests of tf.function import."""

import enum
import functools

from runnel.autograph import conversion, do_not_convert  # noqa: F401


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
    """Returns the status: disabled inside do_not_convert, else unspecified."""
    return ControlStatusCtx(Status.UNSPECIFIED if conversion.is_enabled() else Status.DISABLED)


def tf_convert(f, ctx, convert_by_default=True, user_requested=False):
    """Returns a function in its converted form, unless the status says not to convert or it is converted already."""
    if getattr(f, "_ag_as_it_is", False):
        return f
    wanted = ctx.status is Status.ENABLED or ctx.status is Status.UNSPECIFIED and convert_by_default
    return functools.update_wrapper(conversion.traceable(f, wanted, user_requested), getattr(f, "__func__", f), updated=())
