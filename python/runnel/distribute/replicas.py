"""Replicas as threads, of which one runs at a time.

A replica runs until it ends or calls merge_call. When all have stopped, the function of merge_call runs once, and they go on.
"""

import threading

from runnel import _core
from runnel.core import framework
from runnel.distribute import contexts as contexts_
from runnel.distribute.values import select_replica, regroup

_GRAPH_STATE = ("_name_stack", "_control_stack", "_device_stack", "_colocation_stack", "_control_flow_context")


class _Stopped(BaseException):
    """Ends a replica's thread after another one has failed."""


def _saved(graph):
    if graph is None:
        return None
    return {name: list(value) if isinstance(value := getattr(graph, name), list) else value for name in _GRAPH_STATE}


def _restore(graph, state):
    if graph is not None:
        for name, value in state.items():
            setattr(graph, name, list(value) if isinstance(value, list) else value)
        graph._scopes_changed()


class Replica(contexts_.ReplicaContext):
    """A replica in a thread of its own."""

    def __init__(self, strategy, number, device):
        super().__init__(strategy, strategy.extended.first_replica + number, number)
        self._device = device
        self._may_run, self._has_paused = threading.Semaphore(0), threading.Semaphore(0)
        self.merge = self.result = self.error = self.state = None
        self.is_done = self.is_stopped = False
        self._created = {}  # name -> how many variables of that name this replica has created

    def start(self, fn, graph, state, variables):
        """Starts the thread, which waits. `variables` are those of the first replica, {name: [variable]}."""
        self._variables = variables
        from runnel.eager import tracing
        self._fn, self._graph, self.state = fn, graph, state
        self._creation, self._eager_name = tracing._creation.current, framework.eager_scope.name
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        from runnel.eager import tracing
        tracing.helper.is_one = True
        self._may_run.acquire()
        try:
            if not self.is_stopped:
                tracing._creation.current, framework.eager_scope.name = self._creation, self._eager_name
                self.result = self._in_graph()
        except _Stopped:
            pass
        except BaseException as error:  # the caller's thread raises it
            self.error = error
        self.is_done = True
        self._has_paused.release()

    def _in_graph(self):
        if self._graph is None:
            return self._placed()
        with framework._DefaultGraph(self._graph):
            return self._placed()

    def _placed(self):
        scope = framework.name_scope("replica_%d" % self.number) if self.number else framework.name_scope(None)
        with self, framework.device(self._device), scope:
            return self._fn()

    def proceed(self, graph, outer):
        """Runs the replica until it ends or waits for the others."""
        _restore(graph, self.state)
        self._may_run.release()
        self._has_paused.acquire()
        self.state = _saved(graph)
        _restore(graph, outer)

    def _merge_call(self, merge_fn, args, kwargs):
        if self._graph is not _core.current():
            raise RuntimeError(
                "`merge_call` called while defining a new graph or a tf.function. This can often happen if the function `fn` passed to "
                "`strategy.run()` contains a nested `@tf.function`, and the nested `@tf.function` contains a synchronization point, such as "
                "aggregating gradients (e.g, optimizer.apply_gradients), or if the function `fn` uses a control flow statement which contains a "
                "synchronization point in the body.")
        self.merge = (merge_fn, args, kwargs)
        self._has_paused.release()
        self._may_run.acquire()
        if self.is_stopped:
            raise _Stopped
        return self.result

    def shared_variable(self, name, create):
        """Returns a new variable in the first replica, and that variable in the others."""
        if self.number == 0:
            with contexts_.cross_replica(self._strategy):
                self._variables.setdefault(name, []).append(create())
            return self._variables[name][-1]
        number = self._created[name] = self._created.get(name, -1) + 1
        if number >= len(self._variables.get(name, ())):
            raise RuntimeError("Tried to create variable %s with mismatching name on device %d" % (name, self.number))
        return self._variables[name][number]


def call_for_each(strategy, devices, fn, args, kwargs):
    """Calls `fn` in a replica on each device. Returns the results together."""
    if len(devices) == 1:  # it need not wait for others
        with contexts_.ReplicaContext(strategy, strategy.extended.first_replica, 0), framework.device(devices[0]):
            return regroup([fn(*select_replica(0, args), **select_replica(0, kwargs or {}))])
    graph = _core.current()
    outer = _saved(graph)
    replicas = [Replica(strategy, i, device) for i, device in enumerate(devices)]
    variables = {}
    for i, replica in enumerate(replicas):
        own, named = select_replica(i, args), select_replica(i, kwargs or {})
        replica.start(lambda own=own, named=named: fn(*own, **named), graph, outer, variables)
    try:
        while not all(replica.is_done for replica in replicas):
            for replica in replicas:
                replica.merge = None
                replica.proceed(graph, outer)
                if replica.error is not None:
                    raise replica.error
            _merge(strategy, replicas)
    finally:
        for replica in replicas:
            if not replica.is_done:
                replica.is_stopped = True
                replica.proceed(graph, outer)
    return regroup([replica.result for replica in replicas])


def _merge(strategy, replicas):
    waiting = [replica for replica in replicas if not replica.is_done]
    if not waiting:
        return
    if len(waiting) != len(replicas):
        raise RuntimeError("Some replicas made a different number of replica_context().merge_call() calls.")
    fn = waiting[0].merge[0]
    args = [regroup(items) for items in zip(*(replica.merge[1] for replica in replicas))]
    kwargs = {key: regroup([replica.merge[2][key] for replica in replicas]) for key in waiting[0].merge[2]}
    with contexts_.cross_replica(strategy):
        result = fn(strategy, *args, **kwargs)
    for replica in replicas:
        replica.result = select_replica(replica.number, result)
