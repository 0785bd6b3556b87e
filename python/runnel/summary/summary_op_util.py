"""Helpers for summary ops of other packages (tensorflow.python.ops.summary_op_util)."""

import contextlib

from runnel.core.framework import add_to_collections
from runnel.summary.summary_ops import _clean as clean_tag, _scope


def collect(val, collections, default_collections):
    """Adds a summary to collections, or to the default ones."""
    add_to_collections(default_collections if collections is None else collections, val)


def skip_summary():
    """Returns False: there is one replica, and it makes the summaries."""
    return False


@contextlib.contextmanager
def summary_scope(name, family=None, default_name=None, values=None):
    """A context manager: (tag, name scope) of a summary."""
    with _scope(name, family, default_name, values or []) as pair:
        yield pair


__all__ = ["clean_tag", "collect", "skip_summary", "summary_scope"]
