"""ClusterCoordinator: runs functions on the workers of a ParameterServerStrategy, and again elsewhere if a worker fails.

Each worker has a thread, which takes calls from one queue. A call that ends because its worker was lost goes back into the queue; the
thread then waits until the worker answers again, and makes what the worker had: its iterators.
"""

import collections
import threading
import weakref

from runnel import errors, nest
from runnel.core import framework
from runnel.core.type_spec import CompositeTensor, TypeSpec
from runnel.distribute import remote

_POLL_SECONDS = 1.0
# What a task says that has restarted, and does not know what it once had.
_FORGOTTEN = ("Unable to find a context_id", "Unable to find the relevant tensor remote_handle")


class _Where(threading.local):
    worker = None


_where = _Where()


def current_worker():
    """Returns the number of the worker that the running call is for; None outside of calls."""
    return _where.worker


def experimental_get_current_worker_index():
    """Returns the number of the worker that the running function of `schedule` or `create_per_worker_dataset` is for."""
    if _where.worker is None:
        raise RuntimeError("Cannot get worker index. `experimental_get_current_worker_index()` must be called inside a function run by the coordinator.")
    return _where.worker


class RemoteValue:
    """A value that a worker computes, perhaps later."""

    def fetch(self):
        """Waits for the value and returns it as arrays. Raises the error of the function."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def get(self):
        """Waits for the value and returns it as tensors. Raises the error of the function."""
        raise NotImplementedError("Must be implemented in subclasses.")


class _Result(RemoteValue):
    def __init__(self):
        self._done, self._value, self._error = threading.Event(), None, None

    def _set(self, value):
        self._value, self._error = value, None
        self._done.set()

    def _fail(self, error):
        self._error = error
        self._done.set()

    def _renew(self):
        self._done.clear()

    def there(self):
        """Waits for the value and returns it as it is on its worker. Raises the error of the function."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def get(self):
        """Waits for the value and returns it as tensors of this process. Raises the error of the function."""
        from runnel.eager import context
        here = context.list_devices()[0][0]
        return nest.map_structure(lambda x: x._copy_to(here) if isinstance(x, framework.Tensor) else x, self.there())

    def fetch(self):
        """Waits for the value and returns it as arrays. Raises the error of the function."""
        return nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, self.there())


class PerWorkerValues(CompositeTensor):
    """A value per worker. The function of a call gets that of its worker."""

    _counts_as_tensor = False

    def __init__(self, values):
        self._values = tuple(values)

    @property
    def _type_spec(self):
        return PerWorkerValuesSpec(len(self._values))


class PerWorkerValuesSpec(TypeSpec):
    """The TypeSpec of values per worker, which never enter a function together."""

    def __init__(self, count):
        self._count = count

    value_type = property(lambda self: PerWorkerValues)
    _component_specs = ()

    def _serialize(self):
        return (self._count,)

    def _to_components(self, value):
        raise errors.UnimplementedError(None, None, "Values per worker cannot be the arguments of a function; schedule() passes those of its worker")

    def _from_components(self, components):
        raise errors.UnimplementedError(None, None, "Values per worker cannot be the arguments of a function; schedule() passes those of its worker")


class _PerWorkerDataset:
    """A dataset per worker, which a function makes there."""

    def __init__(self, dataset_fn, coordinator, spec=None):
        self._fn, self._coordinator, self._spec = dataset_fn, coordinator, spec

    def __iter__(self):
        owner = self

        def make():
            dataset = owner._fn()
            owner._spec = dataset.element_spec
            return iter(dataset)
        made = self._coordinator._create_per_worker_resources(make)
        made.__class__ = _PerWorkerIterator
        return made

    @property
    def element_spec(self):
        """The TypeSpecs of an element."""
        if self._spec is None:
            raise NotImplementedError("The element_spec of a dataset per worker is known after iter() has made one")
        return self._spec


def _rebuilt(dataset):
    """Returns a function that makes a dataset again, from its graph, on the worker for which it is called."""
    from runnel import raw_ops
    from runnel.data import Dataset
    from runnel.data.options import ExternalStatePolicy
    graph_def = dataset._as_serialized_graph(strip_device_assignment=True, external_state_policy=ExternalStatePolicy.WARN)
    return lambda: Dataset(raw_ops.DatasetFromGraph(graph_def=graph_def), dataset.element_spec)


class _PerWorkerIterator(PerWorkerValues):
    def __next__(self):
        return self.get_next()

    def get_next(self, name=None):
        """Raises NotImplementedError: a scheduled function calls it."""
        raise NotImplementedError("Iterating over a distributed iterator of a ParameterServerStrategy is only possible inside a scheduled function")


class _Call:
    """A function with its arguments, and its result."""

    def __init__(self, fn, args, kwargs):
        self.fn, self.args, self.kwargs, self.result = fn, args, kwargs, _Result()

    def run(self, worker):
        """Calls the function on a worker. Returns its value."""
        args, kwargs = nest.map_structure(worker.own_value, (self.args, self.kwargs))
        with worker.inside():
            return self.fn(*args, **kwargs)


def _lost_worker(error):
    """Tells whether an error means that the worker of a call, and no parameter server, was lost."""
    text = str(error)
    is_gone = any(phrase in text for phrase in _FORGOTTEN)
    if not is_gone and not isinstance(error, (errors.UnavailableError, errors.AbortedError)):
        return False
    return "/job:ps/" not in text and all(remote.is_alive(task) for task in remote.tasks("ps"))


class _Inside:
    """The context of code that runs for a worker."""

    def __init__(self, worker):
        self._worker, self._device = worker, framework.device(worker.device)

    def __enter__(self):
        self._before, _where.worker = _where.worker, self._worker.number
        self._scope = self._worker.strategy.scope()
        self._scope.__enter__()
        self._device.__enter__()

    def __exit__(self, *error):
        self._device.__exit__(*error)
        self._scope.__exit__(*error)
        _where.worker = self._before


class _Worker:
    """A worker: its thread, and the resources that were made on it."""

    def __init__(self, strategy, queue, number):
        self.strategy, self.number, self._queue = strategy, number, queue
        self.task = "/job:worker/replica:0/task:%d" % number
        self.device = self.task + "/device:CPU:0"
        self._resources: list = []  # weak references of (call, result) in the order of their making
        self._lock = threading.Lock()  # held while the worker does something
        threading.Thread(target=self._serve, daemon=True).start()

    def inside(self):
        """A context manager for code that runs for this worker."""
        return _Inside(self)

    def own_value(self, value):
        """Returns what an argument of a call means on this worker."""
        if isinstance(value, PerWorkerValues):
            value = value._values[self.number]
        if isinstance(value, RemoteValue):
            return value.there()
        return value

    def make_resource(self, call):
        """Makes a resource now, and again each time that the worker comes back."""
        with self._lock:
            self._resources.append(weakref.ref(call.result))
            call.result._call = call
            self._make(call)

    def _make(self, call):
        try:
            call.result._set(call.run(self))
        except errors.OpError as error:
            if not _lost_worker(error):
                call.result._fail(error)  # a lost worker makes it when it comes back
        except BaseException as error:  # the calls that need the resource raise it
            call.result._fail(error)

    def _serve(self):
        while True:
            queue = self._queue()
            if queue is None:
                return
            call = queue.take(_POLL_SECONDS)
            if call is not None:
                self._run(queue, call)
            del queue, call

    def _run(self, queue, call):
        try:
            with self._lock:
                value = call.run(self)
        except errors.OpError as error:
            if not _lost_worker(error):
                queue.failed(call, error)
                return
            queue.put_back(call)
            self._recover()
        except BaseException as error:  # join() or schedule() raises it
            queue.failed(call, error)
        else:
            call.result._set(value)
            queue.ended()

    def _recover(self):
        """Waits until the worker answers again, and makes its resources anew."""
        pause = threading.Event()
        with self._lock:
            while self._queue() is not None:
                if remote.is_alive(self.task):
                    try:
                        remote.reconnect()
                        break
                    except errors.OpError:
                        pass
                pause.wait(_POLL_SECONDS)
            self._resources = [row for row in self._resources if row() is not None]
            for row in self._resources:
                result = row()
                if result is not None:
                    result._renew()
                    self._make(result._call)


class _Queue:
    """Calls that wait for a worker, and how many have not ended."""

    def __init__(self):
        self._calls: collections.deque = collections.deque()
        self._open, self._error = 0, None
        self._changed = threading.Condition()

    def put(self, call):
        """Adds a call. Raises the error of an earlier one."""
        with self._changed:
            self._raise()
            self._calls.append(call)
            self._open += 1
            self._changed.notify_all()

    def put_back(self, call):
        """Adds a call again, to be the next."""
        with self._changed:
            self._calls.appendleft(call)
            self._changed.notify_all()

    def take(self, seconds):
        """Returns the next call, or None if there is none for some time."""
        with self._changed:
            if not self._calls:
                self._changed.wait(seconds)
            return self._calls.popleft() if self._calls else None

    def ended(self):
        """Counts off a call."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def failed(self, call, error):
        """Notes the first error, and cancels the calls that wait."""
        with self._changed:
            call.result._fail(error)
            self._open -= 1
            if self._error is None:
                self._error = error
            while self._calls:
                self._calls.popleft().result._fail(errors.CancelledError(None, None, "The corresponding function is cancelled. Please reschedule it."))
                self._open -= 1
            self._changed.notify_all()

    def _raise(self):
        if self._error is None:
            return
        while self._open:  # calls that are under way may fail as well
            self._changed.wait()
        error, self._error = self._error, None
        raise error

    def join(self):
        """Waits until all calls have ended. Raises the error of the first that failed."""
        with self._changed:
            while self._open and self._error is None:
                self._changed.wait()
            self._raise()

    def is_done(self):
        """Tells whether all calls have ended. Raises the error of the first that failed."""
        with self._changed:
            self._raise()
            return self._open == 0


class ClusterCoordinator:
    """Runs functions on the workers of a strategy. There is one coordinator per strategy.

    `schedule` returns at once. A call whose worker is lost runs again on another; it may so run more than once. A parameter server that is
    lost is an UnavailableError, of schedule or join: restore a checkpoint.

    Args:
      strategy: a tf.distribute.ParameterServerStrategy.
    """

    def __new__(cls, strategy):
        from runnel.distribute.parameter_server import ParameterServerStrategy
        if not isinstance(strategy, ParameterServerStrategy):
            raise ValueError("Only `tf.distribute.experimental.ParameterServerStrategy` is supported to work with "
                             "`tf.distribute.experimental.coordinator.ClusterCoordinator` currently.")
        if strategy._coordinator is None:
            strategy._coordinator = super().__new__(cls)
        return strategy._coordinator

    def __init__(self, strategy):
        if getattr(self, "_strategy", None) is strategy:
            return
        strategy._used_with_coordinator = True
        self._strategy, self._queue = strategy, _Queue()
        self._workers = [_Worker(strategy, weakref.ref(self._queue), i) for i in range(strategy._num_workers)]

    @property
    def strategy(self):
        """The strategy."""
        return self._strategy

    def schedule(self, fn, args=None, kwargs=None):
        """Calls a function on a worker, later. Returns a RemoteValue of its result. Raises the error of an earlier call."""
        if not callable(fn):
            raise TypeError("Expect `fn` to be a callable, got %r" % (fn,))
        call = _Call(fn, tuple(args or ()), dict(kwargs or {}))
        self._queue.put(call)
        return call.result

    def join(self):
        """Waits until all calls have ended. Raises the error of the first that failed; the calls after it are cancelled."""
        self._queue.join()

    def done(self):
        """Tells whether all calls have ended. Raises the error of the first that failed."""
        return self._queue.is_done()

    def create_per_worker_dataset(self, dataset_fn):
        """Returns datasets, one per worker, which a function makes there, or copies of a dataset. iter() of it is an argument for `schedule`."""
        from runnel.data import Dataset
        if isinstance(dataset_fn, Dataset):
            return _PerWorkerDataset(_rebuilt(dataset_fn), self, dataset_fn.element_spec)
        if not callable(dataset_fn):
            raise TypeError("create_per_worker_dataset takes a dataset or a function that makes one, not %r" % (dataset_fn,))
        return _PerWorkerDataset(dataset_fn, self)

    def _create_per_worker_resources(self, fn, args=None, kwargs=None):
        """Returns the values of a function, called on each worker now and each time that it comes back."""
        calls = [_Call(fn, tuple(args or ()), dict(kwargs or {})) for _ in self._workers]
        threads = [threading.Thread(target=worker.make_resource, args=(call,)) for worker, call in zip(self._workers, calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return PerWorkerValues([call.result for call in calls])

    def fetch(self, val):
        """Returns a structure with the values of RemoteValues as arrays in their place."""
        return nest.map_structure(lambda x: x.fetch() if isinstance(x, RemoteValue) else x, val)
