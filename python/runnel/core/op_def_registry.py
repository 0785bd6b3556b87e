"""The definitions of ops by name (tensorflow.python.framework.op_def_registry)."""

import functools

from runnel import _core
from runnel.core.protobuf import message_class


@functools.lru_cache(None)
def get(name):
    """Returns the OpDef of an op, or None if there is no such op."""
    data = _core.op_def(name)
    return message_class("OpDef").FromString(data) if data else None


@functools.lru_cache(None)
def get_registered_ops():
    """Returns {name: OpDef} of all ops."""
    from runnel import raw_ops
    return {name: get(name) for name in dir(raw_ops) if name[:1].isupper() and get(name) is not None}


def sync():
    """Does nothing: the registry is always complete."""
