"""The hooks of tf.train."""

import os
import time

from runnel import errors, logging
from runnel.core import framework
from runnel.core.framework import GraphKeys
from runnel.train import training_util
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook


def _writer(folder):
    """Returns the event writer of a folder, which all writers to that folder share."""
    from runnel import summary
    return summary.FileWriterCache.get(folder)


def _step_read(what):
    found = training_util._get_or_create_global_step_read()
    if found is None:
        raise RuntimeError("Global step should be created to use %s." % what)
    return found


class SecondOrStepTimer:
    """Triggers every given number of seconds or steps."""

    def __init__(self, every_secs=None, every_steps=None):
        self.reset()
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps

    def reset(self):
        self._last_triggered_step = None
        self._last_triggered_time = None

    def should_trigger_for_step(self, step):
        """Tells whether to trigger at this step."""
        if self._last_triggered_step is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return step >= self._last_triggered_step + self._every_steps

    def update_last_triggered_step(self, step):
        """Records a trigger. Returns (seconds, steps) since the previous one, or Nones."""
        now = time.time()
        seconds = steps = None
        if self._last_triggered_time is not None:
            seconds, steps = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_time, self._last_triggered_step = now, step
        return seconds, steps

    def last_triggered_step(self):
        return self._last_triggered_step


class NeverTriggerTimer(SecondOrStepTimer):
    """Never triggers."""

    def __init__(self):
        self.reset()

    def should_trigger_for_step(self, step):
        return False

    def update_last_triggered_step(self, step):
        return None, None


def _element(obj):
    """Returns a tensor of the default graph, given itself or its name."""
    graph = framework.get_default_graph()
    if not isinstance(obj, str):
        if getattr(obj, "graph", None) is not graph:
            raise ValueError("Passed %s should have graph attribute that is equal to current graph %s." % (
                obj, graph))
        return obj
    if ":" in obj:
        return graph.as_graph_element(obj)
    element = graph.as_graph_element(obj + ":0")
    if len(element.op.outputs) > 1:
        raise ValueError("Name %s is ambiguous, as this `Operation` has multiple outputs (at least 2)." % (
            obj,))
    return element


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every given number of steps or seconds, or at the end.

    `tensors` is a list of tensors or names, or {tag: tensor}; `formatter` turns {tag: value} into text.
    """

    def __init__(self, tensors, every_n_iter=None, every_n_secs=None, at_end=False, formatter=None):
        only_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                             "provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError("invalid every_n_iter=%s." % every_n_iter)
        if isinstance(tensors, dict):
            self._tag_order = list(tensors)
        else:
            self._tag_order = list(tensors)
            tensors = {item: item for item in tensors}
        self._tensors = tensors
        self._formatter = formatter
        self._timer = (NeverTriggerTimer() if only_end else
                       SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter))
        self._log_at_end = at_end

    def begin(self):
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context):
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def _log_tensors(self, values):
        import numpy as np
        before = np.get_printoptions()
        np.set_printoptions(suppress=True)
        seconds, _ = self._timer.update_last_triggered_step(self._iter_count)
        if self._formatter:
            logging.info(self._formatter(values))
        else:
            text = ", ".join("%s = %s" % (tag, values[tag]) for tag in self._tag_order)
            if seconds is not None:
                text += " (%.3f sec)" % seconds
            logging.info("%s", text)
        np.set_printoptions(**before)

    def after_run(self, run_context, run_values):
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session):
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))


class StopAtStepHook(SessionRunHook):
    """Stops after a number of steps, or at a step."""

    def __init__(self, num_steps=None, last_step=None):
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self):
        self._global_step_tensor = _step_read("StopAtStepHook")

    def after_create_session(self, session, coord):
        if self._last_step is None:
            self._last_step = session.run(self._global_step_tensor) + self._num_steps

    def before_run(self, run_context):
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context, run_values):
        if run_values.results + 1 >= self._last_step:
            # The fetched value may be from before this step's update: read it again.
            step = run_context.session.run(self._global_step_tensor)
            if step >= self._last_step:
                run_context.request_stop()


class CheckpointSaverListener:
    """The base of listeners, which a CheckpointSaverHook tells about its checkpoints."""

    def begin(self):
        pass

    def before_save(self, session, global_step_value):
        pass

    def after_save(self, session, global_step_value):
        """Is called after a checkpoint was written. Returns True to stop training."""

    def end(self, session, global_step_value):
        pass


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints every given number of seconds or steps, at the start and at the end."""

    def __init__(self, checkpoint_dir, save_secs=None, save_steps=None, saver=None,
                 checkpoint_basename="model.ckpt", scaffold=None, listeners=None,
                 save_graph_def=True):
        logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = listeners or []
        self._steps_per_run = 1
        self._save_graph_def = save_graph_def

    def _set_steps_per_run(self, steps_per_run):
        self._steps_per_run = steps_per_run

    def begin(self):
        self._summary_writer = _writer(self._checkpoint_dir)
        self._global_step_tensor = _step_read("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session, coord):
        from runnel.core import meta_graph
        step = session.run(self._global_step_tensor)
        graph = framework.get_default_graph()
        graph_def = graph.as_graph_def(add_shapes=True)
        if self._save_graph_def:
            training_util.write_graph(graph_def, self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(meta_graph.create_meta_graph_def(
            graph_def=graph_def, saver_def=saver.saver_def if saver else None))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context):
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context, run_values):
        if self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session):
        step = session.run(self._global_step_tensor)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session, step):
        """Saves a checkpoint. Returns True if a listener wants to stop."""
        from runnel.core.protobuf import message_class
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        self._get_saver().save(session, self._save_path, global_step=int(step),
                               write_meta_graph=self._save_graph_def)
        log = message_class("SessionLog")
        self._summary_writer.add_session_log(
            log(status=log.CHECKPOINT, checkpoint_path=self._save_path), step)
        should_stop = False
        for listener in self._listeners:
            should_stop = bool(listener.after_save(session, step)) or should_stop
        return should_stop

    def _get_saver(self):
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = framework.get_collection(GraphKeys.SAVERS)
        if len(savers) != 1:
            raise RuntimeError(
                "No items in collection %s. Please add a saver to the collection or provide a saver or "
                "scaffold." % GraphKeys.SAVERS if not savers else
                "More than one item in collection %s. Please indicate which one to use by passing it "
                "to the constructor." % GraphKeys.SAVERS)
        self._saver = savers[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Logs and records the number of steps per second."""

    def __init__(self, every_n_steps=100, every_n_secs=None, output_dir=None, summary_writer=None):
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step = None
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run):
        self._steps_per_run = steps_per_run

    def begin(self):
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = _writer(self._output_dir)
        self._global_step_tensor = _step_read("StepCounterHook")
        self._summary_tag = training_util.get_global_step().op.name + "/sec"

    def before_run(self, run_context):
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context, run_values):
        before = run_values.results
        if self._timer.should_trigger_for_step(before + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None:
                    self._log_and_record(steps, seconds, step)
        if before == self._last_global_step:
            logging.log_first_n(logging.WARN, "It seems that global step (tf.train.get_global_step) has not been increased. "
                                "Current value: %s vs previous value: %s.", 5, before, self._last_global_step)
        self._last_global_step = before

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        from runnel.core.protobuf import message_class
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            self._summary_writer.add_summary(message_class("Summary")(
                value=[{"tag": self._summary_tag, "simple_value": rate}]), global_step)
        logging.info("%s: %g", self._summary_tag, rate)


class NanLossDuringTrainingError(RuntimeError):
    """The loss is NaN."""

    def __str__(self):
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Fails, or stops training, if the loss is NaN."""

    def __init__(self, loss_tensor, fail_on_nan_loss=True):
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context):
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context, run_values):
        import numpy as np
        if not np.isnan(run_values.results):
            return
        if self._fail_on_nan_loss:
            logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        logging.warning("Model diverged with loss = NaN.")
        run_context.request_stop()


class SummarySaverHook(SessionRunHook):
    """Writes summaries every given number of seconds or steps."""

    def __init__(self, save_steps=None, save_secs=None, output_dir=None, summary_writer=None,
                 scaffold=None, summary_op=None):
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self):
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = _writer(self._output_dir)
        self._next_step = None
        self._global_step_tensor = _step_read("SummarySaverHook")

    def _summary_ops(self):
        found = self._summary_op if self._summary_op is not None else self._scaffold.summary_op
        if found is None:
            return None
        return found if isinstance(found, list) else [found]

    def before_run(self, run_context):
        self._request_summary = (self._next_step is None or
                                 self._timer.should_trigger_for_step(self._next_step))
        requests = {"global_step": self._global_step_tensor}
        if self._request_summary and self._summary_ops() is not None:
            requests["summary"] = self._summary_ops()
        return SessionRunArgs(requests)

    def after_run(self, run_context, run_values):
        from runnel.core.protobuf import message_class
        if not self._summary_writer:
            return
        step = run_values.results["global_step"] + 1
        if self._next_step is None or self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            log = message_class("SessionLog")
            self._summary_writer.add_session_log(log(status=log.START), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session=None):
        if self._summary_writer:
            self._summary_writer.flush()


class GlobalStepWaiterHook(SessionRunHook):
    """Delays the first step until the global step reaches a value."""

    def __init__(self, wait_until_step):
        self._wait_until_step = wait_until_step

    def begin(self):
        self._worker_is_started = False
        self._global_step_tensor = _step_read("_GlobalStepWaiterHook")

    def before_run(self, run_context):
        if self._worker_is_started or self._wait_until_step <= 0:
            self._worker_is_started = True
            return None
        logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        while run_context.session.run(self._global_step_tensor) < self._wait_until_step:
            time.sleep(0.5)
        self._worker_is_started = True
        return None


class FinalOpsHook(SessionRunHook):
    """Evaluates tensors at the end of the session."""

    def __init__(self, final_ops, final_ops_feed_dict=None):
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values = None

    @property
    def final_ops_values(self):
        """The values of those tensors."""
        return self._final_ops_values

    def end(self, session):
        if self._final_ops is not None:
            try:
                self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
            except (errors.OutOfRangeError, StopIteration) as error:
                logging.warning("The final operations ran out of data. They probably have a dependency back to some input source, such as a "
                                "pipeline that has given all its elements: those that need no input can be computed at the end. %s", error)
                raise


class FeedFnHook(SessionRunHook):
    """Feeds each step with the result of a function."""

    def __init__(self, feed_fn):
        self.feed_fn = feed_fn

    def before_run(self, run_context):
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class ProfilerHook(SessionRunHook):
    """Writes timelines, timeline-<step>.json, for chrome://tracing."""

    def __init__(self, save_steps=None, save_secs=None, output_dir="", show_dataflow=True,
                 show_memory=False):
        self._output_file = os.path.join(output_dir, "timeline-%d.json")
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._file_writer = _writer(output_dir)

    def begin(self):
        self._next_step = None
        self._global_step_tensor = _step_read("ProfilerHook")

    def before_run(self, run_context):
        from runnel.core.protobuf import message_class
        self._request = (self._next_step is not None and
                         self._timer.should_trigger_for_step(self._next_step))
        options = message_class("RunOptions")
        return SessionRunArgs({"global_step": self._global_step_tensor},
                              options=options(trace_level=options.FULL_TRACE) if self._request else None)

    def after_run(self, run_context, run_values):
        step = run_values.results["global_step"] + 1
        if self._next_step is None:
            self._timer.update_last_triggered_step(step - 1)
        if self._request:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            with open(self._output_file % step, "w", encoding="utf-8") as stream:
                stream.write(_chrome_trace(run_values.run_metadata.step_stats))
            self._file_writer.add_run_metadata(run_values.run_metadata, "step_%d" % step)
        self._next_step = step + 1


def _chrome_trace(step_stats):
    """Converts a StepStats to the text that chrome://tracing reads."""
    import json
    events = []
    for process, device in enumerate(step_stats.dev_stats):
        events.append({"name": "process_name", "ph": "M", "pid": process,
                       "args": {"name": device.device}})
        for node in device.node_stats:
            events.append({
                "name": node.node_name, "cat": "Op", "ph": "X", "pid": process, "tid": node.thread_id,
                "ts": node.all_start_micros, "dur": max(node.all_end_rel_micros, 1),
                "args": {"name": node.node_name, "op": node.timeline_label}})
    return json.dumps({"traceEvents": events})
