"""From objects to what is saved of them: SaveableObjects, which tf.train.Saver knows too, and dicts of tensors."""

import functools

from runnel import dtypes, nest, raw_ops
from runnel.checkpoint import keys, saveable_compat
from runnel.checkpoint.saveable import NoRestoreSaveable, ReferenceVariableSaveable, ResourceVariableSaveable, SaveableObject, SaveSpec
from runnel.core import convert, framework
from runnel.core.base_delegate import DelegatingTrackableMixin
from runnel.core.device_spec import DeviceSpec
from runnel.core.identity import ObjectIdentitySet, ObjectIdentityWeakKeyDictionary
from runnel.core.python_state import PYTHON_STATE, PythonState
from runnel.core.trackable import VARIABLE_VALUE_KEY, Trackable
from runnel.ops import variables

_REFERENCES = ("Variable", "VariableV2", "AutoReloadVariable")


def set_cpu0(device_string):
    """Returns the name of the first processor of a device's task."""
    return DeviceSpec.from_string(device_string or "").replace(device_type="CPU", device_index=0).to_string()


def trackable_has_serialize_to_tensor(obj):
    """Tells whether an object's class defines _serialize_to_tensors after the last _gather_saveables_for_checkpoint."""
    if "_serialize_to_tensors" in getattr(obj, "__dict__", ()):
        return True
    for cls in type(obj).__mro__:
        if cls is DelegatingTrackableMixin:
            return trackable_has_serialize_to_tensor(obj._trackable)
        if cls is Trackable:
            return False
        if "_serialize_to_tensors" in vars(cls):
            return True
        if "_gather_saveables_for_checkpoint" in vars(cls):
            return False
    return False


def saveable_objects_from_trackable(obj, tf1_saver=False):
    """Returns {attribute: SaveableObject, or a function from a name to one} of an object.

    With `tf1_saver`, what _gather_saveables_for_checkpoint returns comes first, because its names are those of tf.train.Saver.
    """
    if isinstance(obj, PythonState):
        return {PYTHON_STATE: functools.partial(PythonStringStateSaveable, state_callback=obj.serialize, restore_callback=obj.deserialize)}
    if tf1_saver:
        factories = obj._gather_saveables_for_checkpoint()
        if factories:
            return factories
    if not trackable_has_serialize_to_tensor(obj):
        return obj._gather_saveables_for_checkpoint()
    return {keys.SERIALIZE_TO_TENSORS_NAME: functools.partial(_saveable_of_tensors, obj)}


def _called(function, arguments, call_with_mapped_captures):
    from runnel.eager.def_function import ConcreteFunction
    if call_with_mapped_captures is not None and isinstance(function, ConcreteFunction):
        return call_with_mapped_captures(function, arguments)
    return function(*arguments)


def _saveable_of_tensors(obj, name="", call_with_mapped_captures=None):
    specs, local_names = [], []
    for local_name, value in _called(obj._serialize_to_tensors, [], call_with_mapped_captures).items():
        local_names.append(local_name)
        specs += _specs(value, name + keys.escape_local_name(local_name))
    return TrackableSaveable(obj, specs, name, local_names, saveable_compat.get_saveable_name(obj) or "", call_with_mapped_captures)


def _specs(value, name):
    """Returns the SaveSpecs of a tensor, of a SaveSpec, or of {slice: either}."""
    out = []
    for part, tensor in (value if isinstance(value, dict) else {"": value}).items():
        if isinstance(tensor, SaveSpec):
            tensor.name, tensor.slice_spec = name, part
            out.append(tensor)
        else:
            out.append(SaveSpec(tensor, part, name))
    return out


class TrackableSaveable(SaveableObject):
    """An object with _serialize_to_tensors as a SaveableObject."""

    def __init__(self, obj, specs, name, local_names, prefix, call_with_mapped_captures=None):
        self._trackable, self._local_names, self._prefix = obj, local_names, prefix
        self._call_with_mapped_captures = call_with_mapped_captures
        super().__init__(obj, specs, name)

    def restore(self, restored_tensors, restored_shapes):
        tensors = dict(zip(self._local_names, restored_tensors))
        done = _called(self._trackable._restore_from_tensors, [tensors], self._call_with_mapped_captures)
        return raw_ops.NoOp() if done is None else done

    def get_proto_names_and_checkpoint_keys(self):
        """Returns [(attribute in the object graph, key)]."""
        return [(self._prefix + name, spec.name) for name, spec in zip(self._local_names, self.specs)]


class PythonStringStateSaveable(SaveableObject):
    """A PythonState as a SaveableObject: a constant whose value is fed."""

    def __init__(self, name, state_callback, restore_callback):
        def state():
            with framework.init_scope():
                return state_callback()
        self._state_callback, self._restore_callback = state, restore_callback
        with framework.device("/cpu:0"):
            self._save_string = convert.constant("", dtype=dtypes.string)
        super().__init__(self._save_string, [SaveSpec(self._save_string, "", name, dtype=dtypes.string)], name)

    def feed_dict_additions(self):
        """Returns what must be fed when the checkpoint is written."""
        return {self._save_string: self._state_callback()}

    def freeze(self):
        """Returns a saveable that reads the state when the checkpoint is written."""
        return NoRestoreSaveable(lambda: convert.constant(self._state_callback(), dtype=dtypes.string), self.name, dtypes.string, "cpu:0")


def as_text(value):
    """Returns a constant tensor of a string, bytes or str as str."""
    from runnel.core.tensor_util import constant_value
    if isinstance(value, framework.Tensor):
        value = constant_value(value)
        value = value.item() if hasattr(value, "item") else value
    return value.decode() if isinstance(value, bytes) else value


class SaveableCompatibilityConverter(Trackable):
    """SaveableObjects as an object with _serialize_to_tensors."""

    def __init__(self, obj, saveables):
        self._obj, self._saveables = obj, saveables

    obj = property(lambda self: self._obj)
    saveables = property(lambda self: self._saveables)

    def _serialize_to_tensors(self):
        return saveable_object_to_tensor_dict(self._saveables)

    def _restore_from_tensors(self, restored_tensors):
        expected = [keys.extract_local_name(as_text(spec.name)) for saveable in self._saveables for spec in saveable.specs]
        if set(expected) != set(restored_tensors):
            raise ValueError("Could not restore object %s because not all expected tensors were in the checkpoint.\n\tExpected: %s\n\tGot: %s" % (
                self._obj, expected, list(restored_tensors)))
        return saveable_object_to_restore_fn(self._saveables)(restored_tensors)


def saveable_object_to_tensor_dict(saveables):
    """Returns {name: tensor, or {slice: tensor}} of SaveableObjects. A SaveSpec stands for the tensor that its function returns."""
    out = {}
    for spec in (spec for saveable in saveables for spec in saveable.specs):
        value = spec if callable(spec._tensor) else spec._tensor
        name, part = as_text(spec.name), as_text(spec.slice_spec)
        if part:
            out.setdefault(name, {})[part] = value
        else:
            out[name] = value
    return out


def saveable_object_to_restore_fn(saveables):
    """Returns a function that restores SaveableObjects from {local name: tensor, or {slice: tensor}}."""
    def restore(restored_tensors):
        done = {}
        for saveable in saveables:
            tensors = []
            for spec in saveable.specs:
                value = restored_tensors[keys.extract_local_name(as_text(spec.name))]
                tensors.append(value[as_text(spec.slice_spec)] if isinstance(value, dict) else value)
            done[saveable.name] = saveable.restore(tensors, restored_shapes=None)
        return done
    return restore


def serialized_tensors_to_saveable_cache(serialized_tensors):
    """Returns {object: {attribute: [SaveableObject]}} of {object: {key: tensor}}, for restoring in graphs without new nodes."""
    cache = ObjectIdentityWeakKeyDictionary()
    for obj, tensors in serialized_tensors.items():
        if not tensors or obj is None:
            continue
        if isinstance(obj, SaveableCompatibilityConverter):
            cache[obj.obj] = {keys.extract_local_name(saveable.name): [saveable] for saveable in obj.saveables}
            continue
        prefix = saveable_compat.get_saveable_name(obj) or ""
        specs = []
        for key, value in tensors.items():
            for part, tensor in (value if isinstance(value, dict) else {"": value}).items():
                specs.append(tensor if isinstance(tensor, SaveSpec) else SaveSpec(tensor, part, key))
        saveable = TrackableSaveable(obj, specs, keys.extract_object_name(next(iter(tensors))),
                                     [keys.extract_local_name(key, prefix) for key in tensors], prefix)
        cache[obj] = {keys.SERIALIZE_TO_TENSORS_NAME: [saveable]}
    return cache


def create_saveable_object(name, key, factory, call_with_mapped_captures):
    """Returns the SaveableObject of a factory. With `call_with_mapped_captures`, its functions are called through that."""
    if call_with_mapped_captures is None:
        return factory(name=key)
    if name == keys.SERIALIZE_TO_TENSORS_NAME:
        return factory(name=key, call_with_mapped_captures=call_with_mapped_captures)
    if is_factory_for_restored_saveable_object(factory):
        save, restore = factory.keywords["save_function"], factory.keywords["restore_function"]
        return factory(name=key, save_function=lambda x: call_with_mapped_captures(save, [x]),
                       restore_function=lambda *tensors: call_with_mapped_captures(restore, tensors))
    return factory(name=key)


# Objects of loaded models, which have functions that save and restore them.

class RestoredSaveableObject(SaveableObject):
    """What a loaded model's functions save and restore."""

    def __init__(self, names_and_slices, save_function, restore_function, name):
        self.save_function, self.restore_function = save_function, restore_function
        rows = save_function(name if isinstance(name, framework.Tensor) else convert.constant(name))
        specs = [SaveSpec(row["tensor"], part, name + suffix) for (suffix, part), row in zip(names_and_slices, rows)]
        super().__init__(None, specs, name)

    def restore(self, restored_tensors, restored_shapes):
        return self.restore_function(*restored_tensors[:len(self.specs)])


def recreate_saveable_objects(saveable_fn_by_name):
    """Returns {attribute: factory} of {attribute: (function that saves, function that restores)}."""
    out = {}
    for name, (save, restore) in saveable_fn_by_name.items():
        with framework.init_scope():
            rows = [(as_text(row["name"]), as_text(row["slice_spec"])) for row in save(convert.constant(""))]
        out[name] = functools.partial(RestoredSaveableObject, names_and_slices=rows, save_function=save, restore_function=restore)
    return out


def is_factory_for_restored_saveable_object(factory):
    """Tells whether a factory is of those that recreate_saveable_objects returns."""
    return isinstance(factory, functools.partial) and factory.func is RestoredSaveableObject


def validate_saveables_for_saved_model(saveables, obj):
    """Returns the SaveableObjects of an object that a SavedModel can have."""
    if isinstance(obj, PythonState):
        from runnel import logging
        logging.warn("Note that object %s stores python values into the checkpoint. These values will not be restored when loading the "
                     "SavedModel into python." % (obj,))
        return []
    return [] if any(isinstance(saveable, NoRestoreSaveable) for saveable in saveables) else saveables


# Variables and their names, for tf.train.Saver.

def _one(variable, slice_spec, name):
    """Returns the saveable of a variable, or of a variable's tensor."""
    if hasattr(variable, "handle"):
        value = variable._graph_element if variable._in_graph_mode and not slice_spec else variable
        return ResourceVariableSaveable(variable if value is None else value, slice_spec, name)
    if framework.executing_eagerly():
        raise ValueError("Can only save/restore ResourceVariables when executing eagerly, got type: %s." % type(variable))
    tensor = convert.internal_convert_to_tensor(variable, as_ref=True)
    if tensor.op.type == "ReadVariableOp":
        return ResourceVariableSaveable(tensor, slice_spec, name)
    if tensor.op.type not in _REFERENCES:
        raise TypeError("names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: %s" % tensor)
    # For a part of a variable the node reads its value; for a whole variable it takes the reference.
    return ReferenceVariableSaveable(tensor, slice_spec, name, variable.value() if slice_spec else None)


def saveable_objects_for_op(op, name):
    """Yields the saveables of a variable, of the parts of one, or of another object."""
    from runnel.ops.partitioned_variables import PartitionedVariable
    if not isinstance(name, str):
        raise TypeError("names_to_saveables must be a dict mapping string names to trackable operations. Name is not a string: %s" % (name,))
    if isinstance(op, SaveableObject):
        yield op
    elif isinstance(op, (list, tuple, PartitionedVariable)):
        yield from _saveables_of_parts(op, name)
    elif isinstance(op, Trackable) and not isinstance(op, variables.Variable):
        for attribute, factory in saveable_objects_from_trackable(op, tf1_saver=True).items():
            full = name if attribute in (VARIABLE_VALUE_KEY, keys.SERIALIZE_TO_TENSORS_NAME) else name + "_" + attribute
            made = factory(full) if callable(factory) else factory
            yield from saveable_objects_for_op(made, made.name)
    else:
        yield _one(op, "", name)


def _saveables_of_parts(parts, name):
    full_name = None
    for part in parts:
        if isinstance(part, SaveableObject):
            yield part
            continue
        if not isinstance(part, variables.Variable):
            raise ValueError("Slices must all be Variables: %s" % (part,))
        if not part._save_slice_info:
            raise ValueError("Slices must all be slices: %s" % (part,))
        if full_name not in (None, part._save_slice_info.full_name):
            raise ValueError("Slices must all be from the same tensor: %s != %s" % (full_name, part._save_slice_info.full_name))
        full_name = part._save_slice_info.full_name
        yield _one(part, part._save_slice_info.spec, name)


def op_list_to_dict(op_list, convert_variable_to_tensor=True):
    """Returns {name in checkpoints: variable} for a list of variables."""
    from runnel.ops.partitioned_variables import PartitionedVariable
    if not isinstance(op_list, (list, tuple, set)):
        raise TypeError("Variables to save should be passed in a dict or a list. Got %s" % (op_list,))
    out = {}
    for item in sorted(nest.flatten(list(op_list)), key=lambda v: v.name):
        if isinstance(item, variables.Variable) and getattr(item, "_save_slice_info", None):
            name = item._save_slice_info.full_name
            if not isinstance(out.setdefault(name, []), list):
                raise ValueError("Mixing slices and non-slices with the same name: %s" % name)
            out[name].append(item)
            continue
        if isinstance(item, (SaveableObject, PartitionedVariable)):
            name = item.name
        elif isinstance(item, Trackable) and not isinstance(item, variables.Variable):
            made = [factory() if callable(factory) else factory for factory in saveable_objects_from_trackable(item, tf1_saver=True).values()]
            out.update(op_list_to_dict(made))
            continue
        elif isinstance(item, variables.Variable):
            name = item._shared_name
            if not item._in_graph_mode and out.get(name, item) is not item:
                raise ValueError("Two different ResourceVariable objects with the same shared_name '%s' were passed to the Saver. This likely "
                                 "means that they were created in different Graphs or isolated contexts, and may not be checkpointed "
                                 "together." % name)
            if not item._in_graph_mode:
                out[name] = item
                continue
        else:
            tensor = convert.internal_convert_to_tensor(item, as_ref=True)
            op = tensor.op.inputs[0].op if tensor.op.type == "ReadVariableOp" else tensor.op
            if op.type not in (*_REFERENCES, "VarHandleOp"):
                raise TypeError("Variable to save is not a Variable: %s" % tensor)
            name = op.name
        if name in out:
            raise ValueError("At least two variables have the same name: %s" % name)
        out[name] = item
    return out


def validate_and_slice_inputs(names_to_saveables):
    """Returns the SaveableObjects of {name: variable, parts or object}, sorted by name."""
    out, seen = [], ObjectIdentitySet()
    for name in sorted(names_to_saveables, key=str):
        for saveable in saveable_objects_for_op(names_to_saveables[name], name):
            if saveable.op is not None and saveable.op in seen:
                raise ValueError("The same saveable will be restored with two names: %s" % saveable.name)
            seen.add(saveable.op)
            out.append(saveable)
    return out
