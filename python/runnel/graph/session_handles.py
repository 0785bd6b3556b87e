"""Tensors that a session keeps between steps: tf.get_session_handle and others.

A step that fetches a handle returns a TensorHandle. Its text names the tensor and the device that keeps it.
"""

from runnel import dtypes, raw_ops as _ops
from runnel.core import framework
from runnel.core.device_spec import canonical_name

_MOST_DEAD = 10  # handles that wait to be deleted together


class TensorHandle:
    """A tensor that a session keeps. The session deletes it after the last reference to this object is gone."""

    def __init__(self, handle, dtype, session):
        self._handle = handle.decode() if isinstance(handle, bytes) else str(handle)
        self._dtype = dtype
        self._session = session
        self._auto_gc_enabled = True

    def __del__(self):
        if self._auto_gc_enabled:
            _state(self._session).dead.append(self._handle)

    def __str__(self):
        return self._handle

    def __array__(self, dtype=None, copy=None):
        import numpy as np
        return np.asarray(self.eval(), dtype=dtype)

    @property
    def handle(self):
        """The handle as text."""
        return self._handle

    def _check(self):
        if not self._auto_gc_enabled:
            raise TypeError("Persistent tensor %s may have already been deleted." % self._handle)

    def eval(self):
        """Returns the value of the tensor."""
        self._check()
        holder, reader = _reader(self._session.graph, self._handle, self._dtype)
        return self._session.run(reader, feed_dict={holder: self._handle})

    def delete(self):
        """Deletes the tensor."""
        self._check()
        self._auto_gc_enabled = False
        _delete(self._session, [self._handle])

    def get_raw_handle(self):
        """Returns the handle as text. The caller then has to delete the tensor."""
        self._auto_gc_enabled = False
        return self._handle


class _SessionState:
    def __init__(self):
        self.dead = []  # handles whose objects are gone

    def before_step(self, session, feed_dict):
        """Deletes tensors whose handles are gone, once there are enough of them. Returns the feeds of the step."""
        if len(self.dead) >= _MOST_DEAD:
            dead, self.dead = self.dead, []
            _delete(session, dead)
        return feed_dict and _moved(session, feed_dict)


class _GraphNodes:
    """The nodes of a graph that read, move and delete tensors of handles."""

    def __init__(self):
        self.types = {}  # name of the placeholder of a handle -> type of its tensor
        self.readers, self.movers, self.deleters = {}, {}, {}


def _state(session):
    if session._handles is None:
        session._handles = _SessionState()
    return session._handles


def _nodes(graph):
    return graph._scopes.setdefault(__name__, _GraphNodes())


def _device(handle):
    return canonical_name(handle.split(";")[-1])


def _text(handle):
    return handle.decode() if isinstance(handle, bytes) else str(handle)


def _on_device(graph, device):
    """A context manager: new nodes are in `graph`, on a device."""
    import contextlib
    stack = contextlib.ExitStack()
    stack.enter_context(graph.as_default())
    stack.enter_context(graph.device(device))
    return stack


def _reader(graph, handle, dtype):
    """Returns (placeholder, tensor of the handle that is fed)."""
    parts, known = handle.split(";"), _nodes(graph).readers
    key = (parts[0], parts[-1])
    if key not in known:
        with _on_device(graph, _device(handle)):
            known[key] = _held(dtype, None)
    return known[key]


def _held(dtype, name):
    from runnel.ops.array_ops import placeholder
    holder = placeholder(dtypes.string)
    _nodes(holder.graph).types[holder.op.name] = dtype
    return holder, _ops.GetSessionTensor(handle=holder, dtype=dtype, name=name)


def _delete(session, handles):
    """Deletes tensors on the devices that keep them."""
    from runnel.ops.array_ops import placeholder
    graph = session.graph
    known, feeds, targets = _nodes(graph).deleters, {}, []
    for number, handle in enumerate(handles):
        key = (number, _device(handle))
        if key not in known:
            with _on_device(graph, key[1]):
                holder = placeholder(dtypes.string)
                known[key] = holder, _ops.DeleteSessionTensor(handle=holder)
        holder, deleter = known[key]
        feeds[holder] = handle
        targets.append(deleter)
    session.run(targets, feed_dict=feeds)


def fetched(pick, tensor, session):
    """Returns a function that makes the TensorHandle of what `pick` finds in the results of a step."""
    dtype = tensor.op.inputs[0].dtype.base_dtype
    return lambda results: TensorHandle(pick(results), dtype, session)


def _moved(session, feed_dict):
    """Returns the feeds of a step; a handle of a tensor on another device becomes that of a copy on the device of its placeholder."""
    graph = session.graph
    nodes, changed = _nodes(graph), None
    for holder, value in feed_dict.items():
        dtype = nodes.types.get(holder.op.name) if isinstance(holder, framework.Tensor) and holder.graph is graph else None
        if dtype is None or not isinstance(value, (str, bytes)) or holder.op.device == _device(_text(value)):
            continue
        handle = _text(value)
        reader, tensor = _reader(graph, handle, dtype)
        if reader is holder:
            continue
        key = (holder.op.name, reader.op.name)
        if key not in nodes.movers:
            with _on_device(graph, holder.op.device):
                nodes.movers[key] = _ops.GetSessionHandle(value=tensor)
        changed = changed or dict(feed_dict)
        copy = session.run(nodes.movers[key], feed_dict={reader: handle})
        changed[holder] = copy.get_raw_handle()
        _state(session).dead.append(copy.handle)
    return changed or feed_dict


def get_session_handle(data, name=None):
    """Keeps a tensor in the session. Fetching the result gives a TensorHandle."""
    if not isinstance(data, framework.Tensor):
        raise TypeError("`data` must be of type Tensor.")
    with framework.colocate_with(data):
        return _ops.GetSessionHandle(value=data, name=name)


def get_session_tensor(handle, dtype, name=None):
    """Returns (placeholder for a handle, the tensor that the session keeps under it)."""
    with framework.device(_device(_text(handle))):
        return _held(dtype, name)


def delete_session_tensor(handle, name=None):
    """Returns (placeholder for a handle, operation that deletes its tensor)."""
    from runnel.ops.array_ops import placeholder
    with framework.device(_device(_text(handle))):
        holder = placeholder(dtypes.string)
        return holder, _ops.DeleteSessionTensor(handle=holder, name=name)
