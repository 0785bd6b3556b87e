"""tf.summary of 2.x: writers of event files, the current step, and when to record."""

import contextlib
import itertools
import threading
import weakref

from runnel import dtypes, errors, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor, evaluated_value
from runnel.core.framework import name_scope
from runnel.ops import control_flow, math_ops

_numbers = itertools.count()
_SUMMARY_OPS, _INIT_OPS = "_SUMMARY_V2", "_SUMMARY_WRITER_V2"  # collections of a graph


class _State(threading.local):
    writer = None
    step = None
    is_recording = None  # a bool, a tensor, or a function that returns one; None if record_if has not said


_state = _State()


def get_step():
    """Returns the default step, or None."""
    return _state.step


def set_step(step):
    """Sets the default step: a number or a variable."""
    _state.step = step


def should_record_summaries():
    """Returns whether summaries are recorded: a bool, or a boolean tensor."""
    return is_recording(by_default=True)


def is_recording(by_default):
    """Returns whether summaries are recorded, with what holds where record_if has not said."""
    if _state.writer is None:
        return convert_to_tensor(False)
    condition = by_default if _state.is_recording is None else _state.is_recording
    return condition() if callable(condition) else condition


def has_default_writer():
    """Tells whether there is a current writer."""
    return _state.writer is not None


def current_handle():
    """Returns the handle of the current writer, or None. A closed writer raises."""
    if _state.writer is None:
        return None
    _state.writer._check_open()
    return _state.writer._handle


@contextlib.contextmanager
def record_if(condition):
    """A context manager in which summaries are recorded if `condition` holds: a bool, a tensor, or a function."""
    before, _state.is_recording = _state.is_recording, condition
    try:
        yield
    finally:
        _state.is_recording = before


def _close(handle):
    """Closes the file of a writer that is no longer used; its folder may have been deleted by then."""
    with framework._DefaultGraph(None), contextlib.suppress(errors.OpError):
        raw_ops.CloseSummaryWriter(writer=handle)


class SummaryWriter:
    """A writer of summaries; create_file_writer creates it. `with writer.as_default():` makes it the current one."""

    def __init__(self, handle=None, init_op=None):
        self._handle, self._init_op = handle, init_op
        self._is_closed = False
        self._finalizer = weakref.finalize(self, _close, handle) if handle is not None and handle.op is None else None

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A context manager in which this is the current writer, and `step` the default step."""
        before = _state.writer, _state.step
        _state.writer = self if self._handle is not None else None
        if step is not None:
            _state.step = step
        try:
            yield self
            self.flush()
        finally:
            _state.writer, _state.step = before

    def set_as_default(self, step=None):
        """Makes this the current writer, and `step` the default step."""
        self._check_open()
        _state.writer = self if self._handle is not None else None
        if step is not None:
            _state.step = step

    def init(self):
        """Returns the operation of a graph that opens the file; None in eager execution, where a writer is open from the start."""
        self._check_open()
        return self._init_op

    def _check_open(self):
        if self._is_closed:
            raise RuntimeError("SummaryWriter is already closed")

    def flush(self):
        """Writes what is pending to the file. Returns the operation that does, if a graph is being built."""
        if self._handle is None or self._is_closed:
            return None
        return raw_ops.FlushSummaryWriter(writer=self._handle)

    def close(self):
        """Writes what is pending and closes the file. Returns the operation that does, if a graph is being built."""
        if self._init_op is not None:
            with framework.control_dependencies([self.flush()]):
                return raw_ops.CloseSummaryWriter(writer=self._handle)
        if self._handle is not None and not self._is_closed and self._finalizer is not None:
            with framework.init_scope():
                self.flush()
            self._finalizer()
        self._is_closed = True
        return None


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None, experimental_trackable=False,
                       experimental_mesh=None):
    """Returns a writer of an event file in the folder `logdir`. In a graph, a session must run its `init()` before it writes."""
    import os
    with framework.init_scope(), framework.name_scope(name, "create_file_writer") as scope:
        is_eager = framework.executing_eagerly()
        logdir = os.fspath(logdir) if hasattr(logdir, "__fspath__") else logdir
        handle = raw_ops.SummaryWriter(shared_name="runnel_writer_%d" % next(_numbers) if is_eager else scope[:-1])
        return SummaryWriter(handle, opened(handle, convert_to_tensor(logdir, dtypes.string), max_queue, flush_millis, filename_suffix))


def opened(handle, logdir, max_queue, flush_millis, filename_suffix):
    """Opens the file of a writer. Returns the operation that does in a graph, where it is remembered; None in eager execution."""
    operation = raw_ops.CreateSummaryFileWriter(
        writer=handle, logdir=logdir, max_queue=convert_to_tensor(10 if max_queue is None else max_queue),
        flush_millis=convert_to_tensor(2 * 60 * 1000 if flush_millis is None else flush_millis),
        filename_suffix=convert_to_tensor(".v2" if filename_suffix is None else filename_suffix))
    if framework.executing_eagerly():
        return None
    framework.get_default_graph().add_to_collection(_INIT_OPS, operation)
    return operation


def create_noop_writer():
    """Returns a writer that records nothing."""
    return SummaryWriter()


def flush(writer=None, name=None):
    """Writes what is pending in a writer, by default the current one. Returns the operation that does, if a graph is being built."""
    writer = _state.writer if writer is None else writer
    return None if writer is None else writer.flush()


def all_v2_summary_ops():
    """Returns the operations of the default graph that write summaries; None in eager execution."""
    return None if framework.executing_eagerly() else framework.get_default_graph().get_collection(_SUMMARY_OPS)


def summary_writer_initializer_op():
    """Returns the operations of the default graph that open the files of writers."""
    if framework.executing_eagerly():
        raise RuntimeError("tf.contrib.summary.summary_writer_initializer_op is only supported in graph mode.")
    return framework.get_default_graph().get_collection(_INIT_OPS)


def initialize(graph=None, session=None):
    """Opens the files of the writers of a graph, in a session, by default the default one. `graph` is written to the current writer."""
    if framework.executing_eagerly():
        return
    if _state.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    if session is None:
        from runnel.core.session import get_default_session
        session = get_default_session()
        if session is None:
            raise ValueError("Argument `session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        data = graph.as_graph_def(add_shapes=True).SerializeToString()
        fed = raw_ops.Placeholder(dtype=dtypes.string, shape=[])
        session.run(raw_ops.WriteGraphSummary(writer=_state.writer._handle, step=convert_to_tensor(0, dtypes.int64), tensor=fed),
                    feed_dict={fed: data})


@contextlib.contextmanager
def summary_scope(name, default_name="summary", values=None):
    """A context manager for a summary's name. Its value is (tag, name scope)."""
    name = name or default_name
    current = framework.get_default_graph().get_name_scope() if not framework.executing_eagerly() else _eager_scope()
    tag = current + "/" + name if current else name
    with name_scope(_legal(name) or "summary") as scope:
        yield tag, scope


def _eager_scope():
    from runnel.compat.v2.scopes import get_current_name_scope
    return get_current_name_scope()


def _legal(name):
    import re
    return re.sub(r"[^A-Za-z0-9.\\\-/]", "", name).lstrip("/")


def _recorded(step, build):
    """Runs `build(writer's handle, step)` if summaries are recorded. Returns whether it did, a boolean tensor."""
    writer = _state.writer
    if writer is None:
        return convert_to_tensor(False)
    writer._check_open()
    step = _state.step if step is None else step
    if step is None:
        raise ValueError("No step set. Please specify one either through the `step` argument or through tf.summary.experimental.set_step()")

    def record():
        number = step() if callable(step) and not hasattr(step, "dtype") else step
        return after(build(writer._handle, math_ops.cast(number, dtypes.int64)))
    return recorded(record, should_record_summaries())


def after(operation):
    """Returns True, a tensor, once an operation has run; `operation` is None where it has run already."""
    with framework.control_dependencies([operation] if operation is not None else []):
        return convert_to_tensor(True) if operation is None else raw_ops.Identity(input=convert_to_tensor(True))


def recorded(record, condition):
    """Calls or builds `record`, which writes a summary and returns True, if `condition` holds. Returns whether it did, a boolean tensor."""
    known = evaluated_value(condition) if isinstance(condition, framework.Tensor) else condition
    if known is None:
        result = control_flow.cond(condition, record, lambda: convert_to_tensor(False))
    else:
        result = record() if known else convert_to_tensor(False)
    if not framework.executing_eagerly():
        framework.get_default_graph().add_to_collection(_SUMMARY_OPS, result)
    return result


def write(tag, tensor, step=None, metadata=None, name=None):
    """Writes a tensor as a summary. Returns whether it was recorded.

    Args:
      tag: the summary's name.
      tensor: the tensor, or a function that returns it, called only if the summary is recorded.
      step: the step, by default that of set_step.
      metadata: a SummaryMetadata, or its bytes.
      name: name of the scope of the new operations.
    """
    data = b"" if metadata is None else metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
    with name_scope(name, "write_summary"):
        return _recorded(step, lambda writer, number: raw_ops.WriteSummary(
            writer=writer, step=number, tensor=convert_to_tensor(tensor() if callable(tensor) else tensor), tag=convert_to_tensor(tag),
            summary_metadata=convert_to_tensor(data)))


def write_raw_pb(tensor, step=None, name=None):
    """Writes serialized Summary protos."""
    with name_scope(name, "write_raw_pb"):
        return _recorded(step, lambda writer, number: raw_ops.WriteRawProtoSummary(writer=writer, step=number, tensor=tensor))


def graph(graph_data):
    """Writes a graph, or a GraphDef."""
    writer = _state.writer
    if writer is None:
        return False
    if not framework.executing_eagerly():
        raise ValueError("graph() cannot be invoked inside a graph context.")
    if not should_record_summaries():
        return False
    if hasattr(graph_data, "as_graph_def"):
        graph_data = graph_data.as_graph_def(add_shapes=True)
    elif not hasattr(graph_data, "node"):
        raise ValueError("Argument 'graph_data' is not tf.Graph (or tf.compat.v1.GraphDef). Received graph_data=%s of type %s." % (
            graph_data, type(graph_data).__name__))
    raw_ops.WriteGraphSummary(writer=writer._handle, step=convert_to_tensor(0, dtypes.int64),
                              tensor=convert_to_tensor(graph_data.SerializeToString()))
    return True


create_summary_file_writer = create_file_writer
