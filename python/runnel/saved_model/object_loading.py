"""Loading of SavedModels with objects.

Variables get the values of the checkpoint. Functions accept the arguments for which they were traced. `signatures`
has functions from keyword arguments to dicts. A loaded model can be saved again.
"""

import itertools
import os

from runnel import dtypes, errors
from runnel.checkpoint import keys, saveables
from runnel.checkpoint.object_graph import ObjectGraphView
from runnel.checkpoint.restoring import CheckpointPosition, node_names
from runnel.checkpoint.trackable_saver import TrackableSaver
from runnel.core import convert, framework
from runnel.core.data_structures import TrackableDataStructure
from runnel.core.trackable import AutoTrackable, Trackable
from runnel.core.trackable_resource import CapturableResource, RestoredResource
from runnel.eager.tracing import add_functions
from runnel.ops import variables
from runnel.ops.control_flow import group
from runnel.ops.resource_variable import UninitializedVariable
from runnel.saved_model import fingerprinting, metrics, registration, revived_types, signatures, structured_value  # noqa: F401  signatures registers its type
from runnel.saved_model.asset import Asset
from runnel.saved_model.names_of_loads import rename_calls
from runnel.saved_model.options import LoadOptions
from runnel.saved_model.restored_functions import Concrete, RestoredFunction
from runnel.train.checkpoint_options import CheckpointOptions

_LOAD_V2_LABEL = "load_v2"  # in metrics
_loads = itertools.count()


def _user_object():
    """Makes an object with a class of its own, because its class determines whether an object is callable."""
    return type("_UserObject", (AutoTrackable,), {})()


class Loader:
    """A model that is being loaded. `filters` are the paths of the nodes that are wanted, or {path: object to use}; None for all."""

    def __init__(self, meta, folder, options, filters=None):
        self._meta, self._folder, self._options = meta, folder, options
        self._graph = meta.object_graph_def
        self._number = next(_loads)
        self._objects, self._setters = {}, {}
        self._concretes, self._making = {}, set()
        self._constants = {node.name: node for node in meta.graph_def.node if node.op == "Const"}
        self._load_functions()
        self._slots = {slot.slot_variable_node_id: (number, slot) for number, node in enumerate(self._graph.nodes) for slot in node.slot_variables}
        wanted = self._wanted(filters)
        self._order = sorted(range(len(self._graph.nodes)) if wanted is None else wanted)
        self._allowed = wanted
        for number in self._order:
            self._get(number)
        if 0 not in self._objects:
            self._objects[0], self._setters[0] = _user_object(), setattr
        self._connect()
        self._place_filtered(filters, wanted)
        self._set_saving()
        if not options.experimental_skip_checkpoint:
            self._restore()
        for number in self._order:
            if isinstance(self._objects[number], CapturableResource):
                done = self._objects[number]._initialize()
                if not framework.executing_eagerly():
                    framework.add_to_collection(framework.GraphKeys.TABLE_INITIALIZERS, done)

    @property
    def root(self):
        return self._objects[0]

    def get(self, path):
        """Returns the object at a path such as "root.layer"."""
        return self._objects[self._paths[path]]

    # Parts of a model

    def _wanted(self, filters):
        """Returns the numbers of the nodes to load; None for all."""
        if filters is None:
            return None
        self._paths = {path: self._find(path) for path in filters}
        given = {}
        if isinstance(filters, dict):
            for path, obj in filters.items():
                obj, setter = obj if isinstance(obj, tuple) else (obj, setattr)
                if obj is not None:
                    given[self._paths[path]] = obj
                    if not isinstance(obj, Trackable):
                        raise TypeError("Error when processing dictionary values passed to nodes_to_load.Object at %s is expected to be a "
                                        "checkpointable (i.e. 'trackable') TensorFlow object (e.g. tf.Variable, tf.Module or Keras layer)." % path)
                    self._objects[self._paths[path]], self._setters[self._paths[path]] = obj, setter
        order = list(dict.fromkeys(self._paths.values()))
        for number in order:
            above = self._objects.get(number)
            for child in self._graph.nodes[number].children:
                if above is not None and child.node_id not in self._objects:
                    held = above._lookup_dependency(child.local_name)
                    if isinstance(held, TrackableDataStructure):
                        self._objects[child.node_id], self._setters[child.node_id] = held, lambda *args: None
                if child.node_id not in order:
                    order.append(child.node_id)
        return None if 0 in order else set(order)

    def _find(self, path):
        if not isinstance(path, str):
            raise TypeError("Elements in node_filters must be strings.")
        names = path.split(".")
        if names[0] != "root":
            raise ValueError("When passing string identifiers to node_filters, the first name must be root. Received %s." % names[0])
        number = 0
        for i, name in enumerate(names[1:]):
            found = [child.node_id for child in self._graph.nodes[number].children if child.local_name == name]
            if not found:
                raise ValueError("Unable to find node %s." % ".".join(names[:i + 2]))
            number = found[0]
        return number

    def _place_filtered(self, filters, wanted):
        """Gives the root, which is not loaded, the attributes that lead to the nodes that are."""
        for path in filters if wanted is not None else ():
            names, above = path.split("."), self.root
            for name in names[1:-1]:
                if not hasattr(above, name):
                    setattr(above, name, _user_object())
                above = getattr(above, name)
            if not hasattr(above, names[-1]):
                setattr(above, names[-1], self._objects[self._paths[path]])

    # Functions

    def _new_name(self, name):
        return "%s_load_%d" % (name, self._number)

    def _load_functions(self):
        library = self._meta.graph_def.library
        names = {function.signature.name for function in library.function}
        self._result_types = {}
        self._library = {}  # name -> serialized FunctionDef
        for function in library.function:
            self._result_types[function.signature.name] = [dtypes.as_dtype(arg.type) for arg in function.signature.output_arg]
            function.signature.name = self._new_name(function.signature.name)
            rename_calls(function.node_def, names, self._new_name)
            self._library[function.signature.name] = function.SerializeToString()
        add_functions(self._library.values())

    def _concrete(self, name):
        if name not in self._concretes:
            saved = self._graph.concrete_functions[name]
            bound = [self._get(number) for number in saved.bound_inputs]
            self._concretes[name] = Concrete(
                self._new_name(name), [self._tensor(obj, number) for obj, number in zip(bound, saved.bound_inputs)],
                structured_value.decode(saved.canonicalized_input_signature), structured_value.decode(saved.output_signature),
                self._result_types[name], self._library, [obj for obj in bound if isinstance(obj, variables.Variable)])
        return self._concretes[name]

    def _tensor(self, obj, number):
        if isinstance(obj, variables.Variable):
            return obj.handle
        if isinstance(obj, CapturableResource):
            return obj.resource_handle
        if isinstance(obj, Asset):
            return obj.asset_path
        if isinstance(obj, framework.Tensor):
            return obj
        raise NotImplementedError("A function that reads %s of the object graph is not supported" % self._graph.nodes[number].WhichOneof("kind"))

    def _bare(self, message):
        concrete = self._concrete(message.concrete_function_name)
        concrete._keywords = list(message.argument_keywords)
        concrete._positional = message.allowed_positional_arguments
        if message.HasField("function_spec"):
            concrete._spec = message.function_spec
        return concrete

    def aliases(self):
        """Returns {alias: function, or traces} of the functions to which SaveOptions gave other names."""
        found = {}
        for name, alias in self._meta.meta_info_def.function_aliases.items():
            if name in self._graph.concrete_functions:
                found.setdefault(alias, []).append(name)
        functions = [(set(node.function.concrete_functions), self._objects.get(number)) for number, node in enumerate(self._graph.nodes)
                     if node.WhichOneof("kind") == "function"]
        out = {}
        for alias, names in found.items():
            whole = next((f for held, f in functions if f is not None and held == set(names)), None)
            out[alias] = whole if whole is not None else [self._concrete(name) for name in names]
        return out

    # Objects

    def _get(self, number):
        """Returns the object of a node, which is made with those that it needs."""
        if number in self._objects:
            return self._objects[number]
        if self._allowed is not None and number not in self._allowed:
            raise ValueError("Unable to partially load SavedModel since the specified filter does not include all required objects for loading "
                             "(e.g. variables used in functions or deserialization dependencies). Please include this path in the filter: %s" % (
                                 node_names(self._graph).get(number)))
        if number in self._making:
            raise ValueError("Encountered a cycle in the deserialization dependenciesin the SavedModel. This is extremely unexpected, pleasefile a "
                             "bug and make sure you are not manually modifying the SavedModel.")
        self._making.add(number)
        self._objects[number], self._setters[number] = self._make(number, self._graph.nodes[number])
        self._making.discard(number)
        return self._objects[number]

    def _make(self, number, node):
        kind = node.WhichOneof("kind")
        if number in self._slots and hasattr(self._get(self._slots[number][0]), "add_slot"):
            optimizer, slot = self._slots[number]
            return self._get(optimizer).add_slot(var=self._get(slot.original_variable_node_id), slot_name=slot.slot_name), setattr
        registered = registration.get_registered_class(node.registered_name) if node.registered_name else None
        if registered is None:
            registered = {"asset": Asset, "resource": RestoredResource}.get(kind)
        if registered is not None:
            needed = {child.local_name: self._get(child.node_id) for child in node.dependencies}
            if kind == "resource":
                needed.update({child.local_name: self._get(child.node_id) for child in node.children if child.local_name == "_create_resource"})
            made = registered._deserialize_from_proto(
                proto=node.serialized_user_proto, object_proto=node, dependencies=needed, export_dir=self._folder,
                asset_file_def=self._meta.asset_file_def, operation_attributes={name: x.attr for name, x in self._constants.items()})
            return made, type(made)._add_trackable_child if isinstance(made, Trackable) else setattr
        if kind == "user_object":
            return revived_types.deserialize(node.user_object) or (_user_object(), setattr)
        if kind == "function":
            return RestoredFunction([self._concrete(name) for name in node.function.concrete_functions], node.function.function_spec), setattr
        if kind == "bare_concrete_function":
            return self._bare(node.bare_concrete_function), setattr
        if kind == "variable":
            return self._variable(node.variable), setattr
        if kind == "constant":
            from runnel.core.tensor_util import make_ndarray
            proto = self._constants[node.constant.operation].attr["value"].tensor
            return convert.constant(make_ndarray(proto), dtype=dtypes.as_dtype(proto.dtype)), setattr
        raise ValueError("Unknown SavedObject type: %s. Expected one of %s." % (kind, [
            "user_object", "function", "bare_concrete_function", "variable", "constant", "asset", "resource"]))

    def _variable(self, saved):
        """Returns a variable without a value, or what the program's creator scopes make of it."""
        policy = self._options.experimental_variable_policy
        with framework.device(saved.device if saved.device and policy._save_variable_devices() else None):
            return variables.created(UninitializedVariable, {
                "shape": structured_value._shape(saved.shape), "dtype": dtypes.as_dtype(saved.dtype), "name": saved.name or None,
                "trainable": saved.trainable, "synchronization": saved.synchronization, "aggregation": saved.aggregation})

    def _connect(self):
        for number in self._order:
            obj, setter = self._objects[number], self._setters[number]
            for child in self._graph.nodes[number].children:
                setter(obj, child.local_name, self._objects[child.node_id])
                if child.local_name == "__call__" and not callable(obj):
                    type(obj).__call__ = _call

    def _set_saving(self):
        """Gives the objects with values of their own the functions that save and restore them."""
        for number in self._order:
            rows, obj = self._graph.nodes[number].saveable_objects, self._objects[number]
            functions = {name: (self._get(rows[name].save_function), self._get(rows[name].restore_function)) for name in rows}
            if set(functions) == {keys.SERIALIZE_TO_TENSORS_NAME}:
                obj._serialize_to_tensors, obj._restore_from_tensors = functions[keys.SERIALIZE_TO_TENSORS_NAME]
            elif functions:
                obj._self_saveable_object_factories = saveables.recreate_saveable_objects(functions)

    def _restore(self):
        path = os.path.join(self._folder, "variables", "variables")
        options = CheckpointOptions(experimental_io_device=self._options.experimental_io_device)
        saver = TrackableSaver(ObjectGraphView(self.root))
        saver.set_restore_path(path)
        status = saver.restore(path, options)
        if self._options.allow_partial_checkpoint:
            status.expect_partial()
            status.assert_nontrivial_match()
        else:
            status.assert_existing_objects_matched()
            status.expect_partial()
        if not framework.executing_eagerly():
            _initialize_from(status._checkpoint)


def _initialize_from(checkpoint):
    """In a graph: makes the operations that restore objects their initializers, so that initializing the graph restores them."""
    for number, obj in checkpoint.object_by_proto_id.items():
        position = CheckpointPosition(checkpoint, number)
        saver = position.get_registered_saver_name()
        if saver:
            raise NotImplementedError("Loading a SavedModel that uses registered checkpoint saver is not supported in graph mode. The loaded object "
                                      "%s uses the saver registered with the name %s." % (obj, saver))
        done = position.restore_ops()
        if not done:
            continue
        if isinstance(obj, variables.Variable):
            obj._initializer_op = done[0] if len(done) == 1 else group(*done)
        elif isinstance(obj, CapturableResource):
            framework.add_to_collection(framework.GraphKeys.TABLE_INITIALIZERS, done)
        else:
            raise NotImplementedError("Unable to restore state of object %s from the checkpoint." % (obj,))


def _call(self, *args, **kwargs):
    return vars(self)["__call__"](*args, **kwargs)


def load(export_dir, tags=None, options=None):
    """Returns the object that a SavedModel was made from, as far as the files describe it."""
    return load_partial(export_dir, None, tags, options)["root"]


def load_partial(export_dir, filters, tags=None, options=None):
    """Returns {path: object} of the nodes that `filters` names, or {"root": object} if it is None."""
    from runnel.saved_model.meta_graphs import _find, _parse
    options = options or LoadOptions()
    folder = os.fspath(export_dir)
    model = _parse(folder)
    if isinstance(tags, str):
        tags = [tags]
    meta, loader = model.meta_graphs[0] if model.meta_graphs else None, None
    if len(model.meta_graphs) == 1 and meta.object_graph_def.nodes:
        metrics.IncrementReadApi(_LOAD_V2_LABEL)
        if tags is not None and set(tags) != set(meta.meta_info_def.tags):
            raise ValueError("Got an incompatible argument to `tags`: %s. The SavedModel at %s has one MetaGraph with tags %s. You may omit the "
                             "argument, pass 'None', or pass matching tags." % (tags, folder, list(meta.meta_info_def.tags)))
        with framework.init_scope():
            try:
                loader = Loader(meta, folder, options, filters)
            except errors.NotFoundError as error:
                raise FileNotFoundError("%s\n You may be trying to load on a different device from the computational device. Consider setting the "
                                        "`experimental_io_device` option in `tf.saved_model.LoadOptions` to the io_device such as "
                                        "'/job:localhost'." % error) from None
        root = loader.root
        _describe_root(root, meta)
        metrics.IncrementRead(write_version="2")
        if options.experimental_load_function_aliases:
            if hasattr(root, "function_aliases"):
                raise ValueError("Could not load with experimental_load_function_aliases option because the top-level object already has an "
                                 "attributed with name 'function_aliases'")
            root.function_aliases = loader.aliases()
    else:
        if filters:
            raise ValueError("SavedModels saved from Tensorflow 1.x) cannot be loaded with node filters.")
        from runnel.saved_model.graph_loading import load as load_graph
        if tags is None and len(model.meta_graphs) != 1:
            raise ValueError("Importing a SavedModel with `tf.saved_model.load` requires a `tags=` argument if there is more than one MetaGraph. Got "
                             "`tags=None`, but there are %d MetaGraphs in the SavedModel with tag sets: %s. Pass a `tags=` argument to load this "
                             "SavedModel." % (len(model.meta_graphs), [list(one.meta_info_def.tags) for one in model.meta_graphs]))
        meta = meta if tags is None else _find(model, tags, folder)
        root = load_graph(meta, folder)
        _describe_root(root, meta)
    metrics.SetReadPath(saved_model_path=folder)
    fingerprinting.note_read(folder)
    return {path: loader.get(path) for path in filters} if filters and loader is not None else {"root": root}


def _describe_root(root, meta):
    if isinstance(root, Trackable):
        root.tensorflow_version = meta.meta_info_def.tensorflow_version
        root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
