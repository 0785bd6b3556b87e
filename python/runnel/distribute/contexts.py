"""Which strategy is current in a thread, and whether the code is inside one replica, outside of all, or updates a variable."""

import contextlib
import threading

from runnel.autograph.conversion import traceable_in_graph


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
        require_replica(self)
        return self._merge_call(traceable_in_graph(merge_fn), args, kwargs or {})

    def _merge_call(self, merge_fn, args, kwargs):
        with cross_replica(self._strategy):
            return merge_fn(self._strategy, *args, **kwargs)

    def all_reduce(self, reduce_op, value, options=None):
        """Returns the sums or means over all replicas of tensors. Its gradient is the same reduction of the gradients."""
        from runnel import nest
        from runnel.eager.backprop import custom_gradient
        from runnel.distribute.options import as_reduce_op
        reduce_op, flat = as_reduce_op(reduce_op), nest.flatten(value)

        def reduced(tensors):
            return self._strategy.extended._replica_ctx_all_reduce(reduce_op, list(tensors), options)

        def with_gradient(*tensors):
            return reduced(tensors), lambda *gradients: reduced(gradients)
        if not flat or any(getattr(x, "_is_composite", False) for x in flat):
            results = reduced(flat)
        else:
            results = custom_gradient(with_gradient)(*flat)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        return nest.pack_sequence_as(value, results) if nest.is_nested(value) else results[0]

    def all_gather(self, value, axis, options=None):
        """Returns the tensors of all replicas, joined along an axis. The gradient of a part is the sum of what the replicas have for it."""
        from runnel import nest
        from runnel.core.composite import IndexedSlices
        from runnel.eager.backprop import custom_gradient
        if any(isinstance(x, IndexedSlices) for x in nest.flatten(value)):
            raise NotImplementedError("all_gather does not support IndexedSlices")

        def together(x):
            return self.merge_call(lambda strategy, x: strategy.gather(x, axis), args=(x,))

        def gathered(x):
            return together(x), lambda gradient: self._own_part(self.all_reduce("SUM", gradient), x, axis)
        return nest.map_structure(lambda x: custom_gradient(gathered)(x), value)

    def _own_part(self, whole, own, axis):
        """Returns the part of a joined tensor that came from this replica."""
        from runnel.ops import array_ops, math_ops
        size = array_ops.shape(own)
        sizes = self.merge_call(lambda strategy, x: strategy.gather(x, 0), args=(size[axis:axis + 1] if axis != -1 else size[-1:],))
        number = self._id if isinstance(self._id, int) else 0
        rank = array_ops.rank(own)
        first = array_ops.one_hot(axis % rank, rank, on_value=math_ops.reduce_sum(sizes[:number]), off_value=0)
        return array_ops.slice(whole, first, size)

    def _update(self, var, fn, args=(), kwargs=None, group=True):
        return self._strategy.extended._replica_ctx_update(var, fn, args, kwargs or {}, group)


class Scope:
    """The context manager of Strategy.scope: makes the strategy current, unless it is, and sets its device."""

    def __init__(self, strategy):
        self._strategy, self._again, self._device, self._before = strategy, 0, None, None

    def __enter__(self):
        if has_strategy():
            require_cross_replica(self._strategy)
            self._again += 1
            return self._strategy
        contexts.stack.append((self._strategy, None))
        self._before = _surroundings()
        self._device = self._strategy.extended._default_device_scope()
        if self._device is not None:
            self._device.__enter__()
        return self._strategy

    def __exit__(self, *error):
        if self._again:
            self._again -= 1
            return
        if self._device is not None:
            try:
                self._device.__exit__(*error)
            except RuntimeError as wrong:
                raise _nesting("Device") from wrong
            self._device = None
        creators, variable_scope = _surroundings()
        if creators != self._before[0]:
            raise _nesting("Variable creator")
        contexts.stack.pop()
        if variable_scope != self._before[1]:
            raise _nesting("Variable")


def _nesting(what):
    return RuntimeError("%s scope nesting error: move call to tf.distribute.set_strategy() out of `with` scope." % what)


def _surroundings():
    """Returns the current creators of variables and variable scope; a scope that ends must find those that it began with."""
    from runnel.core import framework
    from runnel.ops import variable_scopes
    creators = framework.get_default_graph()._scopes.get("variable_creators", ())
    return creators, None if framework.executing_eagerly() else variable_scopes.get_variable_scope().name


class DefaultScope:
    """The scope of the default strategy, in which no other may create variables."""

    def __init__(self, strategy):
        self._strategy, self._creators = strategy, contextlib.ExitStack()

    def __enter__(self):
        from runnel.ops.variable_scopes import variable_creator_scope
        if has_strategy():
            raise RuntimeError("Must not nest tf.distribute.Strategy scopes.")

        def creator(next_creator, **kwargs):
            require_strategy(self._strategy)
            return next_creator(**kwargs)
        self._creators.enter_context(variable_creator_scope(creator))
        return self._strategy

    def __exit__(self, *error):
        self._creators.pop_all().__exit__(*error)


def _wrong_scope(strategy):
    if not has_strategy():
        return RuntimeError('Need to be inside "with strategy.scope()" for %s' % (strategy,))
    return RuntimeError("Mixing different tf.distribute.Strategy objects: %s is not %s" % (get_strategy(), strategy))


def require_strategy(strategy):
    """Raises RuntimeError if another strategy is current."""
    if get_strategy() is not strategy:
        raise _wrong_scope(strategy)


def require_cross_replica(strategy):
    """Raises RuntimeError in replicas, and if another strategy than the default one is current."""
    if not contexts.stack:
        return
    current, replica = contexts.stack[-1]
    if current is not strategy:
        raise _wrong_scope(strategy)
    if replica is not None:
        raise RuntimeError("Method requires being in cross-replica context, use get_replica_context().merge_call()")


def require_replica(replica):
    """Raises RuntimeError if the caller is not in this replica."""
    current = get_replica_context()
    if current is replica:
        return
    if current is None:
        raise RuntimeError("Need to be inside `call_for_each_replica()`")
    if get_strategy() is replica.strategy:
        raise RuntimeError("Mismatching ReplicaContext.")
    raise RuntimeError("Mismatching tf.distribute.Strategy objects: %s is not %s." % (get_strategy(), replica.strategy))


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


def default_strategy():
    """Returns the strategy that is current where no other one is."""
    from runnel.distribute import strategy
    return strategy.default()


def default_replica():
    """Returns the only replica of the default strategy."""
    from runnel.distribute import strategy
    return strategy.default_replica()


def get_strategy():
    """Returns the current strategy."""
    return contexts.stack[-1][0] if contexts.stack else default_strategy()


def get_replica_context():
    """Returns the context of the current replica; None outside of replicas, inside a strategy's scope."""
    return contexts.stack[-1][1] if contexts.stack else default_replica()


def get_cross_replica_context():
    """Returns the current strategy outside of replicas, and None in one."""
    return contexts.stack[-1][0] if contexts.stack and contexts.stack[-1][1] is None else None


def has_strategy():
    """Tells whether a strategy other than the default is current."""
    return bool(contexts.stack) and contexts.stack[-1][0] is not default_strategy()  # replicas of the default one count as none


def in_cross_replica_context():
    """Tells whether the caller is outside of replicas, inside a strategy's scope."""
    return bool(contexts.stack) and contexts.stack[-1][1] is None and contexts.update_replica is None


_global: list = []


def experimental_set_strategy(strategy):
    """Makes a strategy current from now on; None ends that."""
    while _global:
        _global.pop().__exit__(None, None, None)
    if has_strategy():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _global.append(scope)
