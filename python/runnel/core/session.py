"""Sessions, which run steps of a graph."""

import functools
import sys
import threading
import types

from runnel import _core
from runnel.core import framework
from runnel.core.composite import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from runnel.core.framework import Operation, Tensor


class _Stack(threading.local):
    def __init__(self):
        self.sessions = []


_stack = _Stack()


def get_default_session():
    """Returns the innermost default session of this thread, or None."""
    sessions = _stack.sessions
    return sessions[-1] if sessions else None


def default_session(session):
    """A context manager that makes a session the default one; None hides the current one."""
    return _DefaultSession(session)


class _DefaultSession:
    __slots__ = ("_session",)

    def __init__(self, session):
        self._session = session

    def __enter__(self):
        _stack.sessions.append(self._session)
        return self._session

    def __exit__(self, *exc):
        del _stack.sessions[len(_stack.sessions) - 1 - _stack.sessions[::-1].index(self._session)]


# --- Fetches

_fetch_types: list = []  # (type, fetch function, feed function, feed function for partial runs)


def register_session_run_conversion_functions(tensor_type, fetch_function, feed_function=None,
                                              feed_function_for_partial_run=None):
    """Makes objects of a type fetchable and feedable.

    `fetch_function(obj)` returns ([elements], contract), where `contract([values])` is the result of run.
    `feed_function(obj, value)` returns [(element, value)].
    """
    _fetch_types.insert(0, (tensor_type, fetch_function, feed_function, feed_function_for_partial_run))


def _slices_fetch(value):
    parts = [value.values, value.indices]
    if value.dense_shape is not None:
        parts.append(value.dense_shape)
    return parts, lambda v: IndexedSlicesValue(v[0], v[1], v[2] if len(v) > 2 else None)


def _slices_feed(value, feed):
    rows = [(value.values, feed[0]), (value.indices, feed[1])]
    if value.dense_shape is not None:
        rows.append((value.dense_shape, feed[2]))
    return rows


def _sparse_parts(value):
    return [value.indices, value.values, value.dense_shape]


_fetch_types.append((SparseTensor, lambda v: (_sparse_parts(v), lambda r: SparseTensorValue(*r)),
                     lambda v, feed: list(zip(_sparse_parts(v), feed)), _sparse_parts))
_fetch_types.append((IndexedSlices, _slices_fetch, _slices_feed, None))


class _Plan:
    """The elements that a nest of fetches needs, and how their values are put back into the nest."""

    __slots__ = ("graph", "session", "fetches", "targets", "places", "build")

    def __init__(self, session, fetches):
        self.graph, self.session = session._graph, session
        self.fetches = []
        self.targets = []
        self.places = {}
        self.build = self._compile(fetches)
        self.session = None

    def _element(self, element):
        """Returns a function that picks the value of one tensor or operation from the results of a step."""
        if isinstance(element, Operation):
            if element not in self.places:
                self.places[element] = None
                self.targets.append(element)
            return _nothing
        if element.dtype.base_dtype.name in ("resource", "variant"):
            self._element(element.op)  # an error of the step comes first
            return functools.partial(_refuse_handle, element.name)
        place = self.places.get(element)
        if place is None:
            place = self.places[element] = len(self.fetches)
            self.fetches.append(element)
        if element.op.type == "GetSessionHandle":
            from runnel.graph.session_handles import fetched
            return fetched(lambda results: results[place], element, self.session)
        return lambda results: results[place]

    def _compile(self, fetch):
        if isinstance(fetch, (Tensor, Operation)):
            return self._element(self._check(fetch))
        if fetch is None:
            raise TypeError("Argument `fetch` = None has invalid type NoneType. Cannot be None")
        if isinstance(fetch, dict):
            keys = list(fetch)
            parts = [self._compile(fetch[key]) for key in keys]
            make = type(fetch) if type(fetch) in (dict,) or _is_ordered(fetch) else dict
            return lambda results: make((key, part(results)) for key, part in zip(keys, parts))
        if isinstance(fetch, list):
            parts = [self._compile(item) for item in fetch]
            return lambda results: [part(results) for part in parts]
        if isinstance(fetch, tuple):
            parts = [self._compile(item) for item in fetch]
            if hasattr(fetch, "_fields"):
                make = type(fetch)
                return lambda results: make(*[part(results) for part in parts])
            return lambda results: tuple([part(results) for part in parts])
        for kind, expand, _, _ in _fetch_types:
            if isinstance(fetch, kind):
                elements, contract = expand(fetch)
                parts = [self._compile(element) for element in elements]
                return lambda results: contract([part(results) for part in parts])
        return self._element(self._check(fetch))

    def _check(self, fetch):
        try:
            element = self.graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError("Argument `fetch` = %r has invalid type %s. Must be a string or Tensor. "
                            "(%s)" % (fetch, type(fetch).__name__, error)) from None
        except (ValueError, KeyError) as error:
            raise ValueError("Argument `fetch` = %r cannot be interpreted as a Tensor. (%s)" % (
                fetch, error.args[0])) from None
        if not self.graph.is_fetchable(element):
            raise ValueError("Operation %s has been marked as not fetchable. Typically this happens when it is "
                             "defined in another function or code block. Use return values, explicit Python "
                             "locals or TensorFlow collections to access it." % getattr(element, "op", element).name)
        return element


def _refuse_handle(name, results):
    raise TypeError("Tensor %s is a resource handle and cannot be fetched" % name)


def _nothing(results):
    return None


def _is_ordered(value):
    import collections
    return type(value) is collections.OrderedDict


# --- Feeds

def _feeds(graph, feed_dict):
    """Returns ([tensor], [value])."""
    tensors, values = [], []
    for key, value in feed_dict.items():
        if type(key) is Tensor and not isinstance(value, Tensor):
            if key.graph is not graph:
                raise TypeError("Cannot interpret feed_dict key as Tensor: Tensor %s is not an "
                                "element of this graph." % key)
            tensors.append(key)
            values.append(value)
            continue
        for tensor, part in _expand_feed(graph, key, value):
            tensors.append(tensor)
            values.append(part)
    if graph._unfeedable:
        for tensor in tensors:
            if tensor in graph._unfeedable:
                raise ValueError("Tensor %s may not be fed." % tensor.name)
    return tensors, values


def _expand_feed(graph, key, value):
    for kind, _, feed, _ in _fetch_types:
        if isinstance(key, kind):
            if feed is None:
                raise TypeError("A %s cannot be fed" % kind.__name__)
            if isinstance(value, (SparseTensor, IndexedSlices)):
                break
            return feed(key, value)
    if isinstance(key, tuple) and isinstance(value, (tuple, list)) and len(key) == len(value):
        return [row for k, v in zip(key, value) for row in _expand_feed(graph, k, v)]
    try:
        tensor = graph.as_graph_element(key, allow_operation=False)
    except Exception as error:
        raise TypeError("Cannot interpret feed_dict key as Tensor: %s" % error.args[0]) from None
    if isinstance(value, (Tensor, SparseTensor)) and getattr(value, "op", None) is not None:
        raise TypeError("The value of a feed cannot be a tf.Tensor object. Acceptable feed values "
                        "include Python scalars, strings, lists, numpy ndarrays, or TensorHandles. "
                        "For reference, the tensor object was %s which was passed to the argument "
                        "`feed_dict` with key %s." % (value, key))
    return [(tensor, value)]


_ELEMENTS = frozenset((Tensor, Operation))
_MOST_PLANS = 1000


def _bytes_of(message):
    if message is None:
        return b""
    return message if isinstance(message, bytes) else message.SerializeToString()


# Set by enable_mixed_precision_graph_rewrite; whether there were other sessions before; whether Keras computes in several types.
mixed_precision = types.SimpleNamespace(is_enabled=False, has_other_sessions=False, has_policy=False)
_ON, _OFF = 1, 2  # RewriterConfig.Toggle


def _with_mixed_precision(config):
    """Returns the ConfigProto `config`, or one with auto_mixed_precision if that is enabled and not turned off."""
    toggle = config.graph_options.rewrite_options.auto_mixed_precision if config is not None else 0
    if not mixed_precision.is_enabled or toggle == _OFF:
        mixed_precision.has_other_sessions |= toggle != _ON
        return config
    from runnel.core.protobuf import message_class
    changed = message_class("ConfigProto")()
    if config is not None:
        changed.CopyFrom(config)
    changed.graph_options.rewrite_options.auto_mixed_precision = _ON
    return changed


class BaseSession:
    """The base of sessions: `run`, `make_callable`, `partial_run`, `close`."""

    def __init__(self, target="", graph=None, config=None):
        if graph is None:
            graph = framework.get_default_graph()
        elif not isinstance(graph, framework.Graph):
            raise TypeError("Argument `graph` must be a tf.Graph, but got \"%s\"" % type(graph).__name__)
        if config is not None and not hasattr(config, "SerializeToString"):
            raise TypeError("Argument `config` must be a tf.ConfigProto, but got \"%s\"" % (
                type(config).__name__))
        if isinstance(target, bytes):
            target = target.decode()
        self._target = target or ""
        if config is None and "runnel.config" in sys.modules:
            config = sys.modules["runnel.config"].session_config()
        config = _with_mixed_precision(config)
        self._config = config
        self._session = _core.Session(graph, self._target, _bytes_of(config))
        self._graph = graph
        self._closed = False
        self._plans = {}
        self._handles = None  # state of graph.session_handles
        self._scope = None

    @property
    def graph(self):
        """The graph that the session runs."""
        return self._graph

    @property
    def graph_def(self):
        """The GraphDef of that graph."""
        return self._graph.as_graph_def(add_shapes=False)

    @property
    def sess_str(self):
        """The session's target."""
        return self._target

    def as_default(self):
        """A context manager that makes this the default session."""
        return _DefaultSession(self)

    def list_devices(self):
        """Returns the devices of the session."""
        return [_DeviceAttributes(*row) for row in self._session._devices()]

    def close(self):
        """Frees what the session holds. Running steps are cancelled."""
        if not self._closed:
            self._closed = True
            self._session._close()

    def _check_open(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def _plan(self, fetches):
        """Returns the plan of `fetches`; plans of single fetches and flat lists are cached, because loops repeat them."""
        key = None
        if type(fetches) in _ELEMENTS:
            key = fetches
        elif type(fetches) is list and all(type(fetch) in _ELEMENTS for fetch in fetches):
            key = tuple(fetches)
        plan = self._plans.get(key) if key is not None else None
        if plan is None:
            plan = _Plan(self, fetches)
            if key is not None and key != ():
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        return plan

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs one step.

        Args:
          fetches: a tensor, an operation, a name, or a nest of them in lists, tuples, named tuples and dicts.
          feed_dict: {tensor or name: value that replaces it}.
          options: a RunOptions.
          run_metadata: a RunMetadata to fill.

        Returns:
          The nest with values instead of fetches: arrays, NumPy scalars, bytes, and None for operations.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if not self._plans and not self._graph._last_id:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling "
                               "run().")
        plan = self._plan(fetches)
        if self._handles is not None:
            feed_dict = self._handles.before_step(self, feed_dict)
        tensors, values = _feeds(self._graph, feed_dict) if feed_dict else ((), ())
        for tensor in tensors:
            if tensor in plan.places:
                return self._run_fed(plan, tensors, values)
        if not plan.fetches and not plan.targets:
            return plan.build(())
        if options is None and run_metadata is None:
            return plan.build(self._session._run(plan.fetches, plan.targets, tensors, values))
        answer = self._session._run(plan.fetches, plan.targets, tensors, values,
                                    None if options is None else _bytes_of(options),
                                    run_metadata is not None)
        if run_metadata is not None:
            answer, metadata = answer
            run_metadata.ParseFromString(metadata)
        return plan.build(answer)

    def _run_fed(self, plan, tensors, values):
        """Runs a step in which some fetches are fed; those are returned as arrays."""
        import numpy as np
        results = self._session._run(plan.fetches, plan.targets, tensors, values)
        for tensor, value in zip(tensors, values):
            place = plan.places.get(tensor)
            if place is not None:
                results[place] = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
        return plan.build(results)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """Returns a function that runs one step of these fetches; its arguments are the values of `feed_list`."""
        self._check_open()
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("Argument `feed_list` must be a list or tuple.")
        plan = self._plan(fetches)
        feeds = [self._graph.as_graph_element(f, allow_operation=False) for f in feed_list or ()]
        run, build, targets, wanted = self._session._run, plan.build, plan.targets, plan.fetches

        def call(*values, **kwargs):
            if len(values) != len(feeds):
                raise TypeError("Expected %d arguments, one per element of feed_list, got %d" % (
                    len(feeds), len(values)))
            if kwargs:
                options, metadata = kwargs.get("options"), kwargs.get("run_metadata")
                return self.run(fetches, dict(zip(feeds, values)), options, metadata)
            self._check_open()
            return build(run(wanted, targets, feeds, values))

        return call

    def _make_callable_from_options(self, callable_options):
        from runnel.alias.for_keras.callable_options import make_callable
        return make_callable(self, callable_options)

    def partial_run_setup(self, fetches, feeds=None):
        """Sets up a step that is fed and fetched in parts. Returns the handle for `partial_run`."""
        self._check_open()
        plan = _Plan(self, fetches)
        tensors = []
        for feed in feeds or ():
            for kind, _, _, partial in _fetch_types:
                if isinstance(feed, kind) and partial is not None:
                    tensors += partial(feed)
                    break
            else:
                tensors.append(self._graph.as_graph_element(feed, allow_operation=False))
        return self._session._partial_setup(plan.fetches, plan.targets, tensors)

    def partial_run(self, handle, fetches, feed_dict=None):
        """Runs a part of a step that was set up."""
        self._check_open()
        plan = _Plan(self, fetches)
        tensors, values = _feeds(self._graph, feed_dict or {})
        return plan.build(self._session._partial_run(handle, plan.fetches, plan.targets,
                                                     list(tensors), list(values)))

    def _extend_graph(self):
        pass

    def __repr__(self):
        return "<tf.%s of %r%s>" % (type(self).__name__, self._graph,
                                    " at " + self._target if self._target else "")


class Session(BaseSession):
    """Runs operations of a graph.

        with tf.Session() as sess:
            print(sess.run(loss, {x: data}))

    Args:
      target: where it runs: "" in this process, "grpc://host:port" in a cluster.
      graph: the graph; by default the default graph.
      config: a ConfigProto.
    """

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        self._contexts = []

    def __enter__(self):
        graph = self._graph.as_default()
        session = self.as_default()
        graph.__enter__()
        session.__enter__()
        self._contexts.append((graph, session))
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        graph, session = self._contexts.pop()
        session.__exit__(exc_type, exc_value, traceback)
        graph.__exit__(exc_type, exc_value, traceback)
        self.close()

    @staticmethod
    def reset(target, containers=None, config=None):
        """Clears the state (variables, queues and other resources) kept at `target`."""
        _core.reset(target, list(containers or []), _bytes_of(config))


class InteractiveSession(BaseSession):
    """A session that is the default from its creation until it is closed."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        self._default_session = self.as_default()
        self._default_session.__enter__()
        self._explicit_graph = graph
        if graph is not None:
            self._default_graph = graph.as_default()
            self._default_graph.__enter__()

    def close(self):
        """Closes the session, and restores the default session from before."""
        if not self._closed:
            super().close()
            self._default_session.__exit__(None, None, None)
            if self._explicit_graph is not None:
                self._default_graph.__exit__(None, None, None)


class _DeviceAttributes:
    """A device of a session."""

    def __init__(self, name, device_type, memory_limit_bytes, incarnation, physical_device_desc=None):
        self.physical_device_desc = physical_device_desc or ""
        self.name = name
        self.device_type = device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = incarnation

    def __repr__(self):
        return "_DeviceAttributes(%s, %s, %d, %d)" % (
            self.name, self.device_type, self.memory_limit_bytes, self.incarnation)


__all__ = ["InteractiveSession", "Session", "get_default_session"]


def list_local_devices(session_config=None):
    """Returns the devices of this process; a device has a name without its task."""
    with Session(graph=framework.Graph(), config=session_config) as session:
        devices = session.list_devices()
    for device in devices:
        device.name = "/device:" + device.name.split("/device:")[-1]
        device.memory_limit = device.memory_limit_bytes
    return devices
