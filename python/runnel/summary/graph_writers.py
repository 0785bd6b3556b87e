"""tensorflow.python.ops.summary_ops_v2: the summaries that write themselves, in their first form.

tf.contrib.summary had them. A summary is an operation that a step runs. Writers of one name share a file in a session; the name is
that of the folder unless a program gives one.
"""

from runnel import dtypes, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.ops import control_flow, math_ops
from runnel.summary import writers
from runnel.summary.summary_ops import _scope
from runnel.summary.writers import record_if


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None):
    """Returns a writer of an event file in the folder `logdir`. One that records nothing if `logdir` is None."""
    if logdir is None:
        return writers.create_noop_writer()
    logdir = str(logdir)
    with framework.device("cpu:0"):
        handle = raw_ops.SummaryWriter(shared_name="logdir:" + logdir if name is None else name)

        return writers.SummaryWriter(handle, writers.opened(
            handle, convert_to_tensor(logdir), max_queue, None if flush_millis is None else int(flush_millis), filename_suffix))


def create_file_writer_v2(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None, experimental_trackable=False,
                          experimental_mesh=None):
    """The same as tf.summary.create_file_writer."""
    return writers.create_file_writer(logdir, max_queue, flush_millis, filename_suffix, name, experimental_trackable, experimental_mesh)


def always_record_summaries():
    """A context manager in which all summaries are recorded."""
    return record_if(True)


def never_record_summaries():
    """A context manager in which no summary is recorded."""
    return record_if(False)


def record_summaries_every_n_global_steps(n, global_step=None):
    """A context manager in which summaries are recorded in every n-th step."""
    if global_step is None:
        from runnel.train.training_util import get_or_create_global_step
        global_step = get_or_create_global_step()

    def is_due():
        with framework.device("cpu:0"):
            return math_ops.equal(global_step % n, 0)
    return record_if(is_due if framework.executing_eagerly() else is_due())


def _step(step):
    if step is None:
        from runnel.train.training_util import get_or_create_global_step
        step = get_or_create_global_step()
    return math_ops.cast(step, dtypes.int64)


def _written(name, tensor, family, build):
    """Adds `build(writer's handle, tag, scope)` as a summary that runs if summaries are recorded. Returns its operation."""
    handle = writers.current_handle()
    if handle is None:
        return control_flow.no_op()
    outer = "" if framework.executing_eagerly() else framework.get_default_graph().get_name_scope()

    def record():
        with framework.name_scope(outer + "/" if outer else None), _scope(name, family, None, [tensor]) as (tag, scope):
            operation = build(handle, tag, scope)
            return writers.after(operation)
    with framework.device("cpu:0"):
        return writers.recorded(record, writers.is_recording(by_default=False))


def generic(name, tensor, metadata=None, family=None, step=None):
    """Writes a tensor as a summary. `metadata` is a SummaryMetadata or its bytes."""
    data = b"" if metadata is None else metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
    return _written(name, tensor, family, lambda writer, tag, scope: raw_ops.WriteSummary(
        writer=writer, step=_step(step), tensor=raw_ops.Identity(input=convert_to_tensor(tensor)), tag=tag, summary_metadata=data, name=scope))


def scalar(name, tensor, family=None, step=None):
    """Writes one number."""
    return _written(name, tensor, family, lambda writer, tag, scope: raw_ops.WriteScalarSummary(
        writer=writer, step=_step(step), tag=tag, value=raw_ops.Identity(input=convert_to_tensor(tensor)), name=scope))


def histogram(name, tensor, family=None, step=None):
    """Writes the distribution of values."""
    return _written(name, tensor, family, lambda writer, tag, scope: raw_ops.WriteHistogramSummary(
        writer=writer, step=_step(step), tag=tag, values=raw_ops.Identity(input=convert_to_tensor(tensor)), name=scope))


def image(name, tensor, bad_color=None, max_images=3, family=None, step=None):
    """Writes images, [batch, height, width, channels]."""
    color = [255, 0, 0, 255] if bad_color is None else bad_color
    return _written(name, tensor, family, lambda writer, tag, scope: raw_ops.WriteImageSummary(
        writer=writer, step=_step(step), tag=tag, tensor=raw_ops.Identity(input=convert_to_tensor(tensor)),
        bad_color=convert_to_tensor(color, dtypes.uint8), max_images=max_images, name=scope))


def audio(name, tensor, sample_rate, max_outputs, family=None, step=None):
    """Writes sounds, [batch, frames(, channels)] in [-1, 1]."""
    return _written(name, tensor, family, lambda writer, tag, scope: raw_ops.WriteAudioSummary(
        writer=writer, step=_step(step), tag=tag, tensor=raw_ops.Identity(input=convert_to_tensor(tensor)), sample_rate=sample_rate,
        max_outputs=max_outputs, name=scope))


def import_event(tensor, name=None):
    """Writes a serialized Event."""
    return raw_ops.ImportEvent(writer=writers.current_handle(), event=tensor, name=name)


def eval_dir(model_dir, name=None):
    """Returns the folder of an evaluation's summaries, below the model's."""
    import os
    return os.path.join(model_dir, "eval" if not name else "eval_" + name)


create_summary_file_writer = create_file_writer
