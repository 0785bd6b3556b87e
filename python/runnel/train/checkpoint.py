"""tf.train.Checkpoint: saves objects and what they hold, by the names of their attributes.

Beside the values, a checkpoint has a TrackableObjectGraph: which object holds which under which name. Restoring
follows these names from the root, so variables may have other names by then.
"""

import logging
import os
import time

from runnel import _core, dtypes, raw_ops
from runnel.core import convert, framework
from runnel.core.trackable import AutoTrackable, Trackable
from runnel.ops import variables
from runnel.train import checkpoint_management
from runnel.train.checkpoint_options import CheckpointOptions
from runnel.train.optimizer import Optimizer
from runnel.train.saveable import ATTRIBUTES, flat, restored, saveable_of

_log = logging.getLogger("tensorflow")
_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


def _escaped(name):
    return name.replace(".", "..").replace("/", ".S")


def _is_tracked(value):
    if isinstance(value, (list, tuple)):
        return any(_is_tracked(item) for item in value)
    if isinstance(value, dict):
        return any(_is_tracked(item) for item in value.values())
    return isinstance(value, Trackable) or hasattr(
        type(value), "trainable_variables") or hasattr(type(value), "_checkpoint_children") or hasattr(type(value), "_saveable")


def _children(value):
    """Returns [(name, object)] of what an object holds."""
    if saveable_of(value) is not None:
        return []
    own = getattr(value, "_checkpoint_children", None)
    if own is not None:
        return own()
    if isinstance(value, Optimizer):
        return sorted((name, v) for (name, _), v in value._non_slot_dict.items())
    if isinstance(value, Trackable):
        return list(value._trackable_children("checkpoint").items())
    if isinstance(value, (list, tuple)):
        rows = [(str(i), item) for i, item in enumerate(value)]
    elif isinstance(value, dict):
        rows = [(str(key), item) for key, item in value.items()]
    else:
        # Private attributes of Runnel's own classes are not saved.
        is_ours = type(value).__module__.startswith("runnel.")
        rows = [(name, item) for name, item in vars(value).items()
                if not (is_ours and name.startswith("_"))]
    return [(name, item) for name, item in rows if _is_tracked(item)]


class _View:
    """The objects below a root: their numbers, paths, TrackableObjectGraph and values."""

    def __init__(self, root):
        from runnel.core.protobuf import message_class
        self.objects, self.paths, ids = [root], [""], {id(root): 0}
        self.proto = message_class("TrackableObjectGraph")()
        self.values = {}  # key -> Saveable
        self.proto.nodes.add()
        at = 0
        while at < len(self.objects):
            for name, child in _children(self.objects[at]):
                number = ids.get(id(child))
                if number is None:
                    number = ids[id(child)] = len(self.objects)
                    self.objects.append(child)
                    prefix = self.paths[at]
                    self.paths.append(prefix + "/" + _escaped(name) if prefix else _escaped(name))
                    self.proto.nodes.add()
                self.proto.nodes[at].children.add(node_id=number, local_name=name)
            at += 1
        for number, item in list(enumerate(self.objects)):
            self._add_value(number, item, self.paths[number])
        for number, item in list(enumerate(self.objects)):
            if isinstance(item, Optimizer):
                self._add_slots(number, item)

    def _add_value(self, number, item, path):
        saveable = saveable_of(item)
        if saveable is not None:
            key = path + ATTRIBUTES + saveable.attribute
            self.proto.nodes[number].attributes.add(name=saveable.attribute, full_name=saveable.full_name, checkpoint_key=key)
            self.values[key] = saveable

    def _add_slots(self, number, optimizer):
        for slot_name in optimizer.get_slot_names():
            for original, variable in list(enumerate(self.objects)):
                if not isinstance(variable, variables.Variable):
                    continue
                slot = optimizer.get_slot(variable, slot_name)
                if slot is None:
                    continue
                path = "%s/.OPTIMIZER_SLOT/%s/%s" % (self.paths[original], self.paths[number], _escaped(slot_name))
                slot_number = len(self.proto.nodes)
                self.proto.nodes.add()
                self._add_value(slot_number, slot, path)
                self.proto.nodes[number].slot_variables.add(
                    original_variable_node_id=original, slot_name=slot_name,
                    slot_variable_node_id=slot_number)


class _Status:
    """The result of a restore."""

    def __init__(self, checkpoint, path, matched, missing, unused):
        self._checkpoint, self._path = checkpoint, path
        self._matched = matched    # {key: Saveable}
        self._missing = missing    # {key: Saveable} of what the checkpoint does not have
        self._unused = unused      # keys without an object
        self._ops = None

    def assert_consumed(self):
        """Raises an error if a value of the checkpoint or an object was left over."""
        self.assert_existing_objects_matched()
        if self._unused:
            raise AssertionError("Unresolved object in checkpoint: %s" % ", ".join(sorted(self._unused)))
        return self

    def assert_existing_objects_matched(self):
        """Raises an error if an object has no value in the checkpoint."""
        if self._path is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")
        if self._missing:
            raise AssertionError("Found Python objects which were not bound to checkpointed values, "
                                 "likely due to changes in the Python program: %s" % (
                                     ", ".join(getattr(s.owner, "name", key) for key, s in self._missing.items())))
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def expect_partial(self):
        """Allows values and objects to be left over."""
        return self

    def run_restore_ops(self, session=None):
        """In a graph: restores the variables."""
        if _core.current() is None or not self._matched:
            return
        if self._ops is None:
            self._ops = _restore(self._path, self._matched)
        _session(session).run(self._ops)

    def initialize_or_restore(self, session=None):
        """Restores the variables, and initializes those without a value."""
        if _core.current() is None:
            return
        if self._missing:
            _session(session).run([s.owner.initializer for s in self._missing.values() if isinstance(s.owner, variables.Variable)])
        self.run_restore_ops(session)


def _restore(path, saveables):
    """Returns the operations that restore the objects."""
    names, types = flat(saveables)
    with framework.name_scope("restore"), framework.device("/cpu:0"):
        tensors = raw_ops.RestoreV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=types)
    return restored(saveables, tensors)


def _session(session):
    if session is None:
        from runnel.core.session import get_default_session
        session = get_default_session()
    if session is None:
        raise ValueError("A session is needed: pass one, or use `with sess.as_default()`")
    return session


class Checkpoint(AutoTrackable):
    """Saves objects together: variables, optimizers, models, mutable tables, dataset iterators, lists and dicts of them.

        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
        path = checkpoint.save("run/ckpt")
        checkpoint.restore(tf.train.latest_checkpoint("run"))

    `restore` does not restore objects created later: call it again.
    """

    def __init__(self, root=None, **kwargs):
        self._root = root  # the checkpoint holds what this object holds, and the other arguments
        self._save_counter = None
        self._writers = {}
        for name, value in sorted(kwargs.items()):
            if not _is_tracked(value) and not isinstance(value, (list, dict)):
                raise ValueError("`Checkpoint` was expecting %s to be a trackable object (an object "
                                 "derived from `Trackable`), got %s." % (name, value))
            setattr(self, name, value)

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        found = dict(self._checkpoint_children())
        if save_type != "checkpoint":  # a SavedModel has its functions too
            found.update(super()._trackable_children(save_type, **kwargs))
        return found

    def _checkpoint_children(self):
        rows = [] if self._root is None else list(_children(self._root))
        rows += [(name, item) for name, item in vars(self).items()
                 if not name.startswith("_") and _is_tracked(item)]
        if self._save_counter is not None:
            rows.append(("save_counter", self._save_counter))
        return rows

    @property
    def save_counter(self):
        """The variable that counts calls of `save`."""
        return self._counter()

    def _counter(self):
        if self._save_counter is None:
            with framework.init_scope():
                zero = convert.constant(0, dtype=dtypes.int64)
            self._save_counter = variables.Variable(
                zero, name="save_counter", trainable=False, dtype=dtypes.int64, use_resource=True)
        return self._save_counter

    def write(self, file_prefix, options=None, session=None):
        """Writes a checkpoint at exactly this path. `options` is a CheckpointOptions; a session may stand in its place."""
        options, session = _options_and_session(options, session)
        path = self._write(os.fspath(file_prefix), session)
        if options is not None:
            options._wrote(path)
        return path

    def _write(self, file_prefix, session):
        view = _View(self)
        graph_bytes = view.proto.SerializeToString()
        values = dict(sorted(view.values.items()))
        keys = flat(values)[0]

        def tensors():
            return [tensor for saveable in values.values() for tensor in saveable.read()] + [convert.constant(graph_bytes)]
        if _core.current() is None:
            os.makedirs(os.path.dirname(file_prefix) or ".", exist_ok=True)
            raw_ops.SaveV2(prefix=file_prefix, tensor_names=keys + [_GRAPH_KEY],
                           shape_and_slices=[""] * (len(keys) + 1), tensors=tensors())
            return file_prefix
        signature = (framework.get_default_graph(), tuple(keys), graph_bytes)
        if signature not in self._writers:
            prefix = raw_ops.Placeholder(dtype=dtypes.string, shape=())
            save = raw_ops.SaveV2(
                prefix=prefix, tensor_names=keys + [_GRAPH_KEY],
                shape_and_slices=[""] * (len(keys) + 1), tensors=tensors())
            self._writers[signature] = (prefix, save)
        prefix, save = self._writers[signature]
        _session(session).run(save, {prefix: file_prefix})
        return file_prefix

    def save(self, file_prefix, options=None, session=None):
        """Writes a checkpoint "<file_prefix>-<number>" and makes it the newest of its folder."""
        options, session = _options_and_session(options, session)
        file_prefix = os.fspath(file_prefix)
        counter = self.save_counter
        if _core.current() is None:
            counter.assign_add(1)
            number = int(counter.numpy())
        else:
            session = _session(session)
            if "count" not in self._writers:
                self._writers["count"] = counter.assign_add(1, read_value=False)
                self._writers["ready"] = counter.is_initialized()
            if not session.run(self._writers["ready"]):
                session.run(counter.initializer)
            session.run(self._writers["count"])
            number = int(session.run(counter))
        path = self._write("%s-%d" % (file_prefix, number), session)
        checkpoint_management.update_checkpoint_state(
            os.path.dirname(path), path, [path])
        if options is not None:
            options._wrote(path)
        return path

    def read(self, save_path, options=None):
        """Restores the objects from a checkpoint that `write` made."""
        return self.restore(save_path, options)

    def restore(self, save_path, options=None):
        """Restores the objects from a checkpoint. With None, restores nothing.

        In a graph, the values are restored when run_restore_ops() or initialize_or_restore() of the result is called.
        """
        if save_path is None:
            return _Status(self, None, {}, _View(self).values, [])
        from runnel.core.protobuf import message_class
        from runnel.train.checkpoint_reader import NewCheckpointReader
        reader = NewCheckpointReader(save_path)
        if not reader.has_tensor(_GRAPH_KEY):
            raise ValueError("%s was not written by tf.train.Checkpoint: use tf.train.Saver" % save_path)
        graph = reader.get_tensor(_GRAPH_KEY)
        proto = message_class("TrackableObjectGraph").FromString(
            graph if isinstance(graph, bytes) else graph.item())
        if any(c.local_name == "save_counter" for c in proto.nodes[0].children):
            self._counter()
        matched = _match(self, proto, save_path)
        found = {id(saveable.owner) for saveable in matched.values()}
        missing = {key: s for key, s in _View(self).values.items() if id(s.owner) not in found}
        keys = {a.checkpoint_key for node in proto.nodes for a in node.attributes}
        if _core.current() is None and matched:
            _restore(save_path, matched)
        return _Status(self, save_path, matched, missing, keys - set(matched))


def _number(value):
    """Returns the value of a variable or a tensor; anything else unchanged."""
    if hasattr(value, "numpy"):
        return value.numpy()
    return _session(None).run(value) if hasattr(value, "graph") or hasattr(value, "handle") else value


def _options_and_session(options, session):
    """Returns (the options, the session); a session may have been given where the options are."""
    return (options, session) if options is None or isinstance(options, CheckpointOptions) else (None, options)


def _match(root, proto, path, start=0):
    """Returns {key: Saveable}, by following the names from the root, which is node `start`.

    What the objects do not hold yet is restored when they do: see Trackable._handle_deferred_dependencies.
    """
    matched, objects = {}, {start: root}
    order = [start]
    for number in order:
        children = dict(_children(objects[number]))
        for child in proto.nodes[number].children:
            if child.local_name not in children:
                _defer(objects[number], child.local_name, (proto, path, child.node_id))
            elif child.node_id not in objects:
                objects[child.node_id] = children[child.local_name]
                order.append(child.node_id)
    for number in order:
        node, item = proto.nodes[number], objects[number]
        if isinstance(item, Optimizer):
            for row in node.slot_variables:
                original = objects.get(row.original_variable_node_id)
                slot = item.get_slot(original, row.slot_name) if isinstance(
                    original, variables.Variable) else None
                if slot is not None:
                    objects[row.slot_variable_node_id] = slot
    for number, item in objects.items():
        saveable = saveable_of(item)
        for attribute in proto.nodes[number].attributes:
            if saveable is not None and attribute.name == saveable.attribute:
                matched[attribute.checkpoint_key] = saveable
    return matched


def _defer(item, name, what):
    if isinstance(item, Trackable) and framework.executing_eagerly():
        waiting = item.__dict__.setdefault("_self_deferred", {})
        waiting[name] = what


def restore_deferred(item, proto, path, number):
    """Restores an object that is node `number` of a checkpoint, now that another object holds it."""
    matched = _match(item, proto, path, number)
    if matched:
        _restore(path, matched)


class CheckpointManager:
    """Keeps the newest checkpoints of a folder.

    Args:
      checkpoint: a Checkpoint.
      directory: the folder.
      max_to_keep: how many to keep; None for all.
      keep_checkpoint_every_n_hours: keeps one checkpoint per this many hours for good.
      checkpoint_name: the name of checkpoints, without the number.
      step_counter, checkpoint_interval: `save` does nothing before the variable `step_counter` has grown by `checkpoint_interval`.
      init_fn: called by `restore_or_initialize` if there is no checkpoint.
    """

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None,
                 checkpoint_name="ckpt", step_counter=None, checkpoint_interval=None, init_fn=None):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError("Expected a positive integer or `None` for `max_to_keep`, got %s." % (
                max_to_keep,))
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed when `checkpoint_interval` is not None.")
        self._step_counter, self._step_interval, self._last_step, self._init_fn = step_counter, checkpoint_interval, None, init_fn
        self._checkpoint = checkpoint
        self._directory = directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._every_hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(directory, checkpoint_name)
        self._kept = []  # (path, time), the oldest first
        self._last_preserved = time.time()
        state = checkpoint_management.get_checkpoint_state(directory)
        if state:
            times = list(state.all_model_checkpoint_timestamps)
            paths = list(state.all_model_checkpoint_paths)
            self._kept = list(zip(paths, times if len(times) == len(paths) else [0.0] * len(paths)))
            self._last_preserved = state.last_preserved_timestamp or self._last_preserved

    @property
    def directory(self):
        return self._directory

    @property
    def latest_checkpoint(self):
        """The path of the newest checkpoint, or None."""
        return self._kept[-1][0] if self._kept else None

    @property
    def checkpoints(self):
        """The paths, the oldest first."""
        return [path for path, _ in self._kept]

    @property
    def checkpoint(self):
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self):
        """By how much `step_counter` must grow between checkpoints, or None."""
        return self._step_interval

    def restore_or_initialize(self):
        """Restores the newest checkpoint and returns its path. Without one, calls `init_fn` and returns None."""
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
            if self._step_interval is not None:
                self._last_step = int(_number(self._step_counter))
            return self.latest_checkpoint
        if self._init_fn is not None:
            self._init_fn()
        return None

    def save(self, checkpoint_number=None, session=None, check_interval=True, options=None):
        """Saves a checkpoint and removes old ones. Returns the new path, or None if it is too early by `step_counter`."""
        if check_interval and self._step_interval is not None:
            step = int(_number(self._step_counter))
            if self._last_step is not None and step < self._last_step + self._step_interval:
                return None
            self._last_step = step
        os.makedirs(self._directory, exist_ok=True)
        if checkpoint_number is None:
            path = self._checkpoint.save(self._prefix, options, session)
        else:
            path = self._checkpoint.write("%s-%d" % (self._prefix, int(_number(checkpoint_number))), options, session)
        self._kept = [row for row in self._kept if row[0] != path] + [(path, time.time())]
        removed = []
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            old, made = self._kept.pop(0)
            if self._every_hours and made - self._every_hours * 3600 >= self._last_preserved:
                self._last_preserved = made
            else:
                removed.append(old)
        checkpoint_management.update_checkpoint_state(
            self._directory, path, self.checkpoints, None, [made for _, made in self._kept],
            self._last_preserved)
        for old in removed:
            checkpoint_management.remove_checkpoint(old)
        return path
