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


class _State(threading.local):
    writer = None
    step = None
    is_recording = True  # a bool, a tensor, or a function that returns one


_state = _State()


def get_step():
    """Returns the default step, or None."""
    return _state.step


def set_step(step):
    """Sets the default step: a number or a variable."""
    _state.step = step


def should_record_summaries():
    """Returns whether summaries are recorded: a bool, or a boolean tensor."""
    if _state.writer is None:
        return convert_to_tensor(False)
    condition = _state.is_recording
    return condition() if callable(condition) else condition


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

    def __init__(self, handle=None):
        self._handle = handle
        self._is_closed = False
        self._finalizer = weakref.finalize(self, _close, handle) if handle is not None else None

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
        """Does nothing in eager execution: a writer is open from the start."""

    def _check_open(self):
        if self._is_closed:
            raise RuntimeError("SummaryWriter is already closed")

    def flush(self):
        """Writes what is pending to the file."""
        if self._handle is not None and not self._is_closed:
            raw_ops.FlushSummaryWriter(writer=self._handle)

    def close(self):
        """Writes what is pending and closes the file."""
        if self._handle is not None and not self._is_closed and self._finalizer is not None:
            with framework.init_scope():
                self.flush()
            self._finalizer()
        self._is_closed = True


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None, experimental_trackable=False,
                       experimental_mesh=None):
    """Returns a writer of an event file in the folder `logdir`."""
    import os
    with framework.init_scope():
        if not framework.executing_eagerly():
            raise NotImplementedError("tf.summary.create_file_writer needs eager execution; in a graph use tf.summary.FileWriter")
        logdir = os.fspath(logdir) if hasattr(logdir, "__fspath__") else logdir
        handle = raw_ops.SummaryWriter(shared_name="runnel_writer_%d" % next(_numbers))
        raw_ops.CreateSummaryFileWriter(
            writer=handle, logdir=convert_to_tensor(logdir, dtypes.string), max_queue=convert_to_tensor(10 if max_queue is None else max_queue),
            flush_millis=convert_to_tensor(2 * 60 * 1000 if flush_millis is None else flush_millis),
            filename_suffix=convert_to_tensor(".v2" if filename_suffix is None else filename_suffix))
        return SummaryWriter(handle)


def create_noop_writer():
    """Returns a writer that records nothing."""
    return SummaryWriter()


def flush(writer=None, name=None):
    """Writes what is pending in a writer, by default the current one."""
    writer = _state.writer if writer is None else writer
    if writer is not None:
        writer.flush()


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
        operation = build(writer._handle, math_ops.cast(number, dtypes.int64))
        with framework.control_dependencies([operation] if operation is not None else []):
            return convert_to_tensor(True) if operation is None else raw_ops.Identity(input=convert_to_tensor(True))
    condition = should_record_summaries()
    known = evaluated_value(condition) if isinstance(condition, framework.Tensor) else condition
    if known is None:
        return control_flow.cond(condition, record, lambda: convert_to_tensor(False))
    return record() if known else convert_to_tensor(False)


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
