"""Which strategy is current in a thread, and whether the code is inside one replica, outside of all, or updates a variable."""

import contextlib
import threading


class _Contexts(threading.local):
    def __init__(self):
        self.stack = []  # (strategy, ReplicaContext or None)
        self.update_replica = None  # the replica whose copy of a variable is being updated


contexts = _Contexts()


class ReplicaContext:
    """The context of code inside a replica."""

    def __init__(self, strategy, replica_id_in_sync_group, number=None):
        self._strategy, self._id = strategy, replica_id_in_sync_group
        self.number = replica_id_in_sync_group if number is None else number  # among the replicas of this process

    strategy = property(lambda self: self._strategy)
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    replica_id_in_sync_group = property(lambda self: self._id)
    devices = property(lambda self: self._strategy.extended.devices_of_replica(self.number))

    def __enter__(self):
        contexts.stack.append((self._strategy, self))
        return self

    def __exit__(self, *error):
        contexts.stack.pop()

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """Calls `merge_fn(strategy, ...)` once for all replicas, outside of them, with their arguments together."""
        with cross_replica(self._strategy):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op, value, options=None):
        """Returns the sums or means over all replicas of tensors."""
        return self._strategy.extended.all_reduced(reduce_op, value)

    def all_gather(self, value, axis, options=None):
        """Returns the tensors of all replicas, joined along an axis."""
        return self._strategy.gather(value, axis)


@contextlib.contextmanager
def cross_replica(strategy):
    """A context manager for code outside of the replicas of a strategy."""
    contexts.stack.append((strategy, None))
    try:
        yield strategy
    finally:
        contexts.stack.pop()


@contextlib.contextmanager
def updating(replica):
    """A context manager in which distributed variables stand for the copy of one replica."""
    before, contexts.update_replica = contexts.update_replica, replica
    try:
        yield
    finally:
        contexts.update_replica = before


def current_replica():
    """Returns the number, in this process, of the replica that the code belongs to, or None outside of them."""
    if contexts.update_replica is not None:
        return contexts.update_replica
    replica = contexts.stack[-1][1] if contexts.stack else None
    return None if replica is None else replica.number


def get_strategy():
    """Returns the current strategy."""
    if contexts.stack:
        return contexts.stack[-1][0]
    from runnel.distribute import strategy
    return strategy.default()


def get_replica_context():
    """Returns the context of the current replica; None outside of replicas, inside a strategy's scope."""
    if contexts.stack:
        return contexts.stack[-1][1]
    from runnel.distribute import strategy
    return strategy.default_replica()


def has_strategy():
    """Tells whether a strategy other than the default is current."""
    if not contexts.stack:
        return False
    from runnel.distribute import strategy
    return contexts.stack[-1][0] is not strategy.default()  # replicas of the default one count as none


def in_cross_replica_context():
    """Tells whether the caller is outside of replicas, inside a strategy's scope."""
    return bool(contexts.stack) and contexts.stack[-1][1] is None and contexts.update_replica is None


_global: list = []


def experimental_set_strategy(strategy):
    """Makes a strategy current from now on; None ends that."""
    while _global:
        _global.pop().__exit__(None, None, None)
    if strategy is not None:
        if contexts.stack:
            raise RuntimeError("experimental_set_strategy cannot be called within a strategy scope")
        scope = strategy.scope()
        scope.__enter__()
        _global.append(scope)
