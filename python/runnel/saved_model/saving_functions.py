"""Functions of a model that save and restore objects other than variables: tables, and classes with tensors of their own.

An object with _serialize_to_tensors has a function without arguments that returns {name: tensor}, and one that takes such a
dict. Older classes, whose values are SaveableObjects, have a function from the key to [{name, slice_spec, tensor}], and one that
takes the tensors.
"""

from runnel import dtypes, raw_ops
from runnel.checkpoint import keys, saveable_compat
from runnel.checkpoint.saveables import as_text, saveable_objects_for_op
from runnel.checkpoint.saveable import NoRestoreSaveable, SaveableObject
from runnel.core import convert, framework
from runnel.core.python_state import PythonState
from runnel.eager.concrete_function import ConcreteFunction
from runnel.eager.def_function import Function, TensorSpec, function
from runnel.eager.tracing import trace
from runnel.saved_model.captures import Captures


def done(*operations):
    """Returns 1 after the operations have run."""
    with framework.control_dependencies([op for op in operations if op is not None]):
        return raw_ops.Identity(convert.constant(1, dtype=dtypes.int32))


def _bare(stem, build, specs, inputs, outputs):
    """Returns a function with named arguments, like those that save and restore an object."""
    traced = trace(build, [(spec.dtype, spec.shape) for spec in specs], "__inference_%s" % stem)
    return Captures(traced.name, traced.captured, inputs, outputs(traced.dtypes), [spec.name for spec in specs], traced.dtypes)


def _value(spec_or_tensor):
    from runnel.checkpoint.saveable import SaveSpec
    return spec_or_tensor.tensor if isinstance(spec_or_tensor, SaveSpec) else spec_or_tensor


def of(obj, factories):
    """Returns {attribute: (function that saves, function that restores)} of an object, given its Factories."""
    if factories[0].name == keys.SERIALIZE_TO_TENSORS_NAME:
        return {factories[0].name: _of_tensors(obj)}
    if isinstance(obj, PythonState):
        from runnel import logging
        logging.warn("Note that object %s stores python values into the checkpoint. These values will not be restored when loading the "
                     "SavedModel into python." % (obj,))
        return {}
    return {row.name: functions for row, functions in ((row, _of_saveables(row)) for row in factories) if functions is not None}


def _of_tensors(obj):
    from runnel.checkpoint.saveable import Callable
    with framework.init_scope():
        found = obj._serialize_to_tensors()
    if any(isinstance(value, Callable) for value in found.values()):
        raise NotImplementedError("Unable to export objects that return tf.train.Callable objects from `_serialize_to_tensors` to SavedModel: "
                                  "%s" % (obj,))
    legacy = saveable_compat.get_saveable_name(obj) or ""
    names = sorted(found)
    types = {name: dtypes.as_dtype(found[name].dtype).base_dtype for name in names}
    specs = [TensorSpec(None, types[name], legacy + name) for name in names]

    def save():
        tensors = obj._serialize_to_tensors()
        return [raw_ops.Identity(_value(tensors[name])) for name in names]

    def restore(*tensors):
        return done(*_operations(obj._restore_from_tensors(dict(zip(names, tensors)))))
    return (_bare("save_fn", save, [], ((), {}), lambda _: {spec.name: spec for spec in specs}),
            _bare("restore_fn", restore, specs, (({spec.name: spec for spec in specs},), {}), lambda _: TensorSpec((), dtypes.int32, "unknown")))


def trace_save_and_restore(obj):
    """Returns concrete functions that save an object to {name: tensor} and restore it; those that the object has, if they are such."""
    save, restore = obj._serialize_to_tensors, obj._restore_from_tensors
    if not isinstance(save, (ConcreteFunction, Function)):
        save = function(lambda: {name: _value(tensor) for name, tensor in obj._serialize_to_tensors().items()})
    if isinstance(save, Function):
        save = save.get_concrete_function()
    if not isinstance(restore, (ConcreteFunction, Function)):
        restore = function(obj._restore_from_tensors)
    if isinstance(restore, Function):
        restore = restore.get_concrete_function(save.structured_outputs)
    return save, restore


def _operations(result):
    from runnel import nest
    return [x if isinstance(x, framework.Operation) else x.op for x in nest.flatten(result) if isinstance(x, (framework.Tensor, framework.Operation))]


def _of_saveables(factory):
    def made(key):
        found = factory.factory(name=key) if callable(factory.factory) else factory.factory
        return [found] if isinstance(found, SaveableObject) else list(saveable_objects_for_op(found, key))
    with framework.init_scope():
        first = made("")
    if any(isinstance(saveable, NoRestoreSaveable) for saveable in first):
        return None
    specs = [spec for saveable in first for spec in saveable.specs]

    def save(key):
        rows = [spec for saveable in made("") for spec in saveable.specs]
        return [{"name": raw_ops.StringJoin(inputs=[key, convert.constant(as_text(spec.name))]),
                 "slice_spec": convert.constant(as_text(spec.slice_spec)), "tensor": raw_ops.Identity(spec.tensor)} for spec in rows]

    def saved(_):
        return [{"name": TensorSpec((), dtypes.string, "tensor_%d_name" % i), "slice_spec": TensorSpec((), dtypes.string, "tensor_%d_slice_spec" % i),
                 "tensor": TensorSpec(None, dtypes.as_dtype(spec.dtype).base_dtype, "tensor_%d_tensor" % i)} for i, spec in enumerate(specs)]

    def restore(*tensors):
        rest, operations = iter(tensors), []
        for saveable in made(""):
            operations += _operations(saveable.restore([next(rest) for _ in saveable.specs], None))
        return done(*operations)
    key = [TensorSpec((), dtypes.string, "checkpoint_key")]
    tensors = [TensorSpec(None, dtypes.as_dtype(spec.dtype).base_dtype, "restored_tensors_%d" % i) for i, spec in enumerate(specs)]
    functions = (_bare("save_fn", save, key, (tuple(key), {}), saved),
                 _bare("restore_fn", restore, tensors, (tuple(tensors), {}), lambda _: TensorSpec((), dtypes.int32, "unknown")))
    functions[0].suffixes = [as_text(spec.name) for spec in specs]
    return functions


def in_graph(writer, path, name, save, restore, node):
    """Returns (keys, dtypes, function that reads, function that restores) of an object in a model's graph; describes it in `node`."""
    if name == keys.SERIALIZE_TO_TENSORS_NAME:
        names = sorted(save.outputs)
        found = [keys.checkpoint_key(path, local) for local in names]
        for local, key in zip(names, found):
            node.attributes.add(name=local, checkpoint_key=key)
        return (found, list(save.dtypes), lambda: list(writer.call(save, [])), lambda tensors: writer.call(restore, tensors)[0])
    key = keys.checkpoint_key(path, name)
    node.attributes.add(name=name, checkpoint_key=key)
    suffixes = save.suffixes if hasattr(save, "suffixes") else [""]
    return ([key + suffix for suffix in suffixes], list(save.dtypes)[2::3], lambda: list(writer.call(save, [convert.constant("")]))[2::3],
            lambda tensors: writer.call(restore, tensors)[0])
