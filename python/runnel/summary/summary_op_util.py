"""What ops of summaries that others write are made with."""

import contextlib

from runnel.core.framework import add_to_collections
from runnel.summary.summary_ops import _clean as clean_tag, _scope


def collect(val, collections, default_collections):
    """Notes a summary in collections, or in the default ones."""
    add_to_collections(default_collections if collections is None else collections, val)


def skip_summary():
    """Whether summaries are not made here: there is one replica, which makes them."""
    return False


@contextlib.contextmanager
def summary_scope(name, family=None, default_name=None, values=None):
    """(tag, name scope) of a summary."""
    with _scope(name, family, default_name, values or []) as pair:
        yield pair


__all__ = ["clean_tag", "collect", "skip_summary", "summary_scope"]
