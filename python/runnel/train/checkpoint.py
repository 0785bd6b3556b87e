"""tf.train.Checkpoint: saves objects and what they hold, by the names of their attributes.

Beside the values, a checkpoint has a TrackableObjectGraph: which object holds which under which name. Restoring
follows these names from the root, so variables may have other names by then.
"""

import copy
import glob
import inspect
import os
import time
import types
import weakref

from runnel import dtypes, errors
from runnel.checkpoint import asynchronous, checkpoint_context
from runnel.checkpoint.multi_device_saver import MultiDeviceSaver
from runnel.checkpoint.object_graph import ObjectGraphView
from runnel.checkpoint.statuses import NameBasedSaverStatus, get_session
from runnel.checkpoint.trackable_saver import TrackableSaver, inside_function
from runnel.core import convert, framework
from runnel.core.data_structures import NoDependency
from runnel.core.trackable import AutoTrackable, Trackable, TrackableReference, WeakTrackableReference, is_function
from runnel.io import any_files
from runnel.ops import variables
from runnel.saved_model import metrics
from runnel.train import checkpoint_management
from runnel.train.checkpoint_options import CheckpointOptions

_clock = types.SimpleNamespace(last_write=None)  # the time of the last write, or of the first Checkpoint


def _default_getter(name, shape, dtype, initializer=None, partition_info=None, **kwargs):
    """Makes a variable, the way tf.get_variable does, without scopes."""
    from runnel.core import tensor_shape
    from runnel.ops import variable_scopes
    dtype = dtypes.as_dtype(dtype)
    with framework.init_scope():
        if initializer is None:
            initializer = variable_scopes._default_initializer(name, dtype)
        value = initializer
        if callable(initializer):
            if isinstance(initializer, type):
                initializer = initializer(dtype=dtype)
            shape = None if shape is None else tensor_shape.as_shape(shape).as_list()

            def value():
                return initializer(shape, dtype=dtype)
        elif shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        return variables.Variable(initial_value=value, name=name, dtype=dtype.base_dtype, use_resource=True, **kwargs)


def add_variable(trackable, name, shape=None, dtype=dtypes.float32, initializer=None, trainable=True):
    """Makes a variable that an object holds. If a checkpoint was restored into the object, the variable starts with the value there."""
    return trackable._add_variable_with_custom_getter(name=name, shape=shape, dtype=dtype, initializer=initializer, getter=_default_getter,
                                                      trainable=trainable)


def _check_trackable(obj, name):
    if not isinstance(obj, Trackable) and not is_function(obj):
        raise ValueError("`Checkpoint` was expecting %s to be a trackable object (an object derived from `Trackable`), got %s. If you believe "
                         "this object should be trackable (i.e. it is part of the TensorFlow Python API and manages state), please open an "
                         "issue." % (name, obj))


def _microseconds(start, end):
    return max(0, round((end - start) * 1e6))


class Checkpoint(AutoTrackable):
    """Saves objects together: variables, optimizers, models, mutable tables, dataset iterators, lists and dicts of them.

        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
        path = checkpoint.save("run/ckpt")
        checkpoint.restore(tf.train.latest_checkpoint("run"))

    `restore` also restores objects that are made later and held by these. With `root`, the names are those of the root's attributes.
    """

    _label = "checkpoint_v2"

    def __init__(self, root=None, **kwargs):
        super().__init__()
        if _clock.last_write is None:
            _clock.last_write = time.time()
        self._root = root
        self._save_counter = self._save_assign_op = self._writer = None
        attached, top = None, None
        if root is not None and (isinstance(root, Trackable) or root):
            top = root() if isinstance(root, weakref.ref) else root
            _check_trackable(top, "root")
            attached = []
            kwargs["root"] = root
            self._save_counter = NoDependency(top._lookup_dependency("save_counter"))
        for name, value in sorted(kwargs.items()):
            setattr(self, name, value)
            held = getattr(self, name)
            held = held() if isinstance(held, weakref.ref) else held
            _check_trackable(held, name)
            if top is not None:
                child = top._lookup_dependency(name)
                if child is None:
                    attached.append(WeakTrackableReference(name, held))
                elif child is not held:
                    raise ValueError("Cannot create a Checkpoint with keyword argument %s if root.%s already exists." % (name, name))
        self._saver = NoDependency(TrackableSaver(ObjectGraphView(self if top is None else root, attached)))
        self._attached_dependencies = NoDependency(attached)

    def _maybe_create_save_counter(self):
        if self._save_counter is not None:
            return
        with framework.device("/cpu:0"):
            self._save_counter = NoDependency(add_variable(self, "save_counter", initializer=0, dtype=dtypes.int64, trainable=False))
        if self._attached_dependencies is not None:
            self._attached_dependencies.append(TrackableReference("save_counter", self._save_counter))
            root = self._saver._graph_view.root
            for position in root._deferred_dependencies.pop("save_counter", ())[:1]:
                position.restore(self._save_counter)

    @property
    def save_counter(self):
        """The variable that counts calls of `save`."""
        self._maybe_create_save_counter()
        return self._save_counter

    def write(self, file_prefix, options=None, session=None):
        """Writes a checkpoint at exactly this path. `options` is a CheckpointOptions; a session may stand in its place."""
        options, session = _options_and_session(options, session)
        return self._write(_path(file_prefix), options, session)

    def _write(self, file_prefix, options=None, session=None):
        options = options or CheckpointOptions()
        if options.experimental_enable_async_checkpoint:
            from runnel import logging
            self.sync()
            if checkpoint_context.in_preemption_save_context():
                logging.warning("Switching to regular sync checkpoint for preemption checkpoint.")
            elif framework.executing_eagerly():
                return self._write_later(file_prefix, options)
            else:
                logging.warning("Saving async checkpoint in graph mode is currently not supported; switching to regular sync checkpoint instead.")
        start = time.time()
        path = _as_text(self._saver.save(file_prefix, session=session, options=options))
        self._finish(path, options)
        metrics.AddCheckpointWriteDuration(api_label=self._label, microseconds=_microseconds(start, time.time()))
        return path

    def _write_later(self, file_prefix, options):
        start = time.time()
        if self._writer is None:
            self._writer = NoDependency(asynchronous.AsyncWriter())
        any_files.makedirs(os.path.dirname(file_prefix) or ".")
        tensors, _, registered, _ = self._saver._gather_serialized_tensors()
        saver = MultiDeviceSaver(asynchronous.frozen(tensors), registered)

        def write():
            begin = time.time()
            saver.save(convert.constant(file_prefix), options=options)
            self._finish(file_prefix, options, "async_checkpoint")
            metrics.AddAsyncCheckpointWriteDuration(api_label="async_checkpoint", microseconds=_microseconds(begin, time.time()))
        self._writer.start(write)
        metrics.AddCheckpointWriteDuration(api_label="async_checkpoint", microseconds=_microseconds(start, time.time()))
        return file_prefix

    def _finish(self, path, options, label=None):
        """Does what follows a write."""
        for callback in options.experimental_write_callbacks or ():
            callback(*[path][:len(inspect.signature(callback).parameters)])
        now = time.time()
        metrics.AddTrainingTimeSaved(api_label=label or self._label, microseconds=_microseconds(_clock.last_write, now))
        _clock.last_write = now
        if isinstance(path, str):
            size = sum(metrics.CalculateFileSize(file) for file in glob.glob(glob.escape(path) + "*"))
            metrics.RecordCheckpointSize(api_label=label or self._label, filesize=size)

    def sync(self):
        """Waits until the last checkpoint that was saved asynchronously is written."""
        if self._writer is not None:
            self._writer.wait()

    def save(self, file_prefix, options=None, session=None):
        """Writes a checkpoint "<file_prefix>-<number>" and makes it the newest of its folder."""
        options, session = _options_and_session(options, session)
        options = copy.copy(options) or CheckpointOptions()
        if inside_function():
            raise NotImplementedError("Calling tf.train.Checkpoint.save() from a function is not supported, as save() modifies saving metadata in "
                                      "ways not supported by TensorFlow Operations. Consider using tf.train.Checkpoint.write(), a lower-level "
                                      "API which does not update metadata. tf.train.latest_checkpoint and related APIs will not see this "
                                      "checkpoint.")
        if framework.executing_eagerly():
            number = int(self.save_counter.assign_add(1).numpy())
        else:
            session = get_session() if session is None else session
            if self._save_counter is None:
                session.run(self.save_counter.initializer)
            if self._save_assign_op is None:
                self._save_assign_op = NoDependency(self.save_counter.assign_add(1, read_value=True))
            number = int(session.run(self._save_assign_op))
        options.experimental_write_callbacks = [*(options.experimental_write_callbacks or ()), _update_state]
        return self._write("%s-%d" % (_path(file_prefix), number), options, session)

    def read(self, save_path, options=None):
        """Restores the objects from a checkpoint that `write` made."""
        start = time.time()
        self.sync()
        status = self._saver.restore(_path(save_path), options=options)
        metrics.AddCheckpointReadDuration(api_label=self._label, microseconds=_microseconds(start, time.time()))
        return status

    def restore(self, save_path, options=None):
        """Restores the objects from a checkpoint, or from that of a SavedModel. With None, restores nothing.

        In a graph, the values are restored when run_restore_ops() or initialize_or_restore() of the result is called.
        """
        path = _path(save_path)
        if isinstance(path, str) and any_files.isdir(path) and any(
                any_files.exists(os.path.join(path, name)) for name in ("saved_model.pb", "saved_model.pbtxt")):
            path = os.path.join(path, "variables", "variables")
        try:
            status = self.read(path, options)
        except errors.NotFoundError as error:
            raise errors.NotFoundError(
                None, None, "Error when restoring from checkpoint or SavedModel at %s: %s\nPlease double-check that the path is correct. You may "
                "be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1')." % (save_path, error.message)) from None
        self._maybe_create_save_counter()
        if isinstance(status, NameBasedSaverStatus):
            status.add_to_optionally_restored(self.save_counter)
        return status


class CheckpointV1(Checkpoint):
    """tf.train.Checkpoint of 1.x, whose `save` and `write` take a session after the path."""

    _label = "checkpoint_v1"

    def __init__(self, **kwargs):
        root = kwargs.pop("root", None)
        super().__init__(**kwargs)
        if root is not None:
            self.root = root

    def write(self, file_prefix, session=None, options=None):
        return super().write(file_prefix, options, session)

    def save(self, file_prefix, session=None, options=None):
        return super().save(file_prefix, options, session)


def _path(path):
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _as_text(path):
    """Returns a path that is a tensor of eager execution, or bytes, as str; a tensor of a graph unchanged."""
    if isinstance(path, framework.Tensor):
        if not framework.executing_eagerly():
            return path
        path = path.numpy()
    return path.decode() if isinstance(path, bytes) else path


def _update_state(path):
    checkpoint_management.update_checkpoint_state_internal(os.path.dirname(path), path, [path], save_relative_paths=True)


def _options_and_session(options, session):
    """Returns (the options, the session); a session may have been given where the options are."""
    return (options, session) if options is None or isinstance(options, CheckpointOptions) else (None, options)
