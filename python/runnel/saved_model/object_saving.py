"""tf.saved_model.save: writes an object, what it holds and its functions as a SavedModel.

The file has an object graph: objects and variables by attribute names, functions with the objects they read, one
function per signature. The checkpoint beside it is that of tf.train.Checkpoint, with the same names.
"""

import os

from runnel import _core, dtypes, raw_ops
from runnel.checkpoint import keys
from runnel.checkpoint.object_graph import Listing, ObjectGraphView, get_checkpoint_factories_and_keys
from runnel.checkpoint.trackable_saver import TrackableSaver, inside_function
from runnel.core import convert, framework
from runnel.core.framework import Graph
from runnel.core.identity import ObjectIdentityDictionary
from runnel.core.meta_graph import strip_defaults
from runnel.core.protobuf import message_class
from runnel.core.tensor_util import make_tensor_proto
from runnel.core.trackable import Trackable, TrackableReference, is_function
from runnel.core.trackable_resource import CapturableResource
from runnel.core.type_spec import TensorSpec
from runnel.eager.def_function import Function
from runnel.eager.tracing import visible_functions
from runnel.io import any_files
from runnel.ops import variables
from runnel.saved_model import fingerprinting, metrics, registration, revived_types, save_context, saving_functions, signatures as signatures_, structured_value
from runnel.saved_model.asset import Asset
from runnel.saved_model.constants_held import TrackableConstant
from runnel.saved_model.function_specs import full_arg_spec
from runnel.saved_model.options import SaveOptions
from runnel.saved_model.writing import constant_of, names_of, reachable, replace_file, safe_name, tell_of_untraced, untracked, verify_ops
from runnel.train.checkpoint_options import CheckpointOptions

_INIT = "__saved_model_init_op"
_SAVE_V2_LABEL = "save_v2"  # in metrics


def variable_in(value):
    """Returns the variable that an object is, or that an object of a library's class stands for; None if there is none."""
    if getattr(type(value), "_should_act_as_resource_variable", False):
        value = value.value
    return value if isinstance(value, variables.Variable) else None


class _View(ObjectGraphView):
    """The objects of a model. The children of each are listed once, because listing may trace functions."""

    def __init__(self, root):
        super().__init__(root)
        self._lists, self._cache = ObjectIdentityDictionary(), ObjectIdentityDictionary()
        self._assets = {}  # path -> the Asset that stands for it

    def list_children(self, obj, save_type="savedmodel", **kwargs):
        if obj not in self._lists:
            found = []
            if not is_function(obj) and variable_in(obj) is None:
                found = super().list_children(obj, "savedmodel", cache=self._cache)
            self._lists[obj] = [TrackableReference(child.name, self._merged(child.ref)) for child in found]
        return self._lists[obj]

    def _merged(self, obj):
        """Returns the one object that stands for all Assets with the same tensor."""
        return self._assets.setdefault(id(obj.asset_path), obj) if isinstance(obj, Asset) else obj

    def add(self, name, obj):
        """Gives the root another child."""
        self._lists[self.root] = [child for child in self.list_children(self.root) if child.name != name] + [TrackableReference(name, obj)]


def _concretes(function):
    """Returns the traces of a tf.function that a file can describe."""
    found = []
    for concrete in function._list_all_concrete_functions_for_serialization():
        captures = concrete.described()
        try:
            structured_value.encode(captures.inputs)
            structured_value.encode(captures.outputs)
        except structured_value.NotEncodable:
            continue
        found.append(captures)
    return found


class _Writer:
    def __init__(self, root, signatures, options):
        self._options = options
        self._view = view = _View(root)
        children = view.children(root)
        self._signatures = signatures_.canonicalize(root, children, signatures)
        held = children.get("signatures")
        if held is not None and not isinstance(held, signatures_._SignatureMap):
            raise ValueError("Exporting an object %s which has an attribute named 'signatures'. This is a reserved attribute used to store "
                             "SavedModel signatures in objects which come from `tf.saved_model.load`. Delete this attribute (e.g. `del "
                             "obj.signatures`) before saving if this shadowing is acceptable." % (root,))
        shown = signatures_._SignatureMap({key: signatures_.SignatureFunction(captures) for key, captures in self._signatures.items()})
        view._lists[shown] = [TrackableReference(key, value) for key, value in shown.items()]
        view.add("signatures", shown)
        self._graph = message_class("SavedObjectGraph")()
        self._by_handle = {}  # id of a captured tensor -> number of the object it belongs to
        self._functions = {}  # name -> Captures
        self._kept = []       # references that keep those ids valid
        self._listing = Listing(view)
        self.objects, self._ids = list(self._listing.objects), self._listing.ids
        self._saving = ObjectIdentityDictionary()  # object -> {attribute: (save, restore)}, Captures
        self._factories, registered = get_checkpoint_factories_and_keys(self._listing.names)
        self._savers = {id(obj): name for name, objects in registered.items() for obj in objects.values()}
        self._add_nodes()

    # The object graph

    def _add_nodes(self):
        for number, obj in enumerate(self.objects):
            node = self._graph.nodes.add()
            for slot in self._listing.slots.get(obj, ()):
                node.slot_variables.add().CopyFrom(slot)
            for child in self._view.list_children(obj):
                node.children.add(node_id=self._ids[child.ref], local_name=child.name)
            for name, other in obj._deserialization_dependencies(self._view.children(obj)).items():
                if not isinstance(other, Trackable):
                    raise TypeError("The dependency of type %s is not an instance `Trackable`, and can't be saved to SavedModel. Please check the "
                                    "implementation of `_deserialization_dependencies` in the parent object %s." % (type(other), obj))
                if other not in self._ids:
                    raise ValueError("Found an untracked dependency. Object %s depends on %s, but this dependency isn't listed as a child. Please "
                                     "track this child by overriding `_trackable_children` or use `._track_trackable`." % (
                                         self._path(number), other))
                node.dependencies.add(node_id=self._ids[other], local_name=name)
            self._note_handle(number, obj)
        self._check_dependencies()
        for captures in self._signatures.values():
            for tensor in captures.captured:
                self._object_of(tensor, captures)
        for number in range(len(self._listing.objects)):
            self._describe(number)

    def _path(self, number):
        name = self._listing.names.get(self.objects[number], "")
        return "root." + name.replace("/", ".") if name else "root object"

    def _check_dependencies(self):
        try:
            list(keys.order_by_dependency({n: [d.node_id for d in node.dependencies] for n, node in enumerate(self._graph.nodes)}))
        except keys.CyclicDependencyError as error:
            rows = error.leftover_dependency_map.items()
            raise ValueError(
                "There is one or more dependency cycle in the saved Trackable object. Saving cannot continue until this cycle is resolved.\n>> "
                "Unresolved nodes:\n%s\n>> Unresolved cyclic dependencies:\n%s" % (
                    "\n".join("\tNode %d = %s (type %s)" % (n, self._path(n), type(self.objects[n])) for n, _ in rows),
                    "\n".join("\tNode %d depends on nodes %s" % row for row in rows))) from None

    def _note_handle(self, number, obj):
        variable = variable_in(obj)
        if variable is not None:
            self._by_handle.setdefault(id(variable.handle), number)
            for copy in getattr(variable, "_values", ()):
                self._by_handle.setdefault(id(copy.handle), number)
        elif isinstance(obj, CapturableResource) and obj.resource_handle is not None:
            self._by_handle.setdefault(id(obj.resource_handle), number)
        elif isinstance(obj, Asset):
            self._by_handle.setdefault(id(obj.asset_path), number)
        elif isinstance(obj, TrackableConstant):
            self._by_handle.setdefault(id(obj.capture), number)

    def _describe(self, number):
        obj, node = self.objects[number], self._graph.nodes[number]
        variable = variable_in(obj)
        if variable is not None:
            self._describe_variable(variable, node.variable)
        elif isinstance(obj, Asset):
            node.asset.SetInParent()
            node.asset.asset_file_def_index = sum(isinstance(other, Asset) for other in self.objects[:number])
        elif isinstance(obj, signatures_.SignatureFunction):
            self._describe_bare(obj.captures, node.bare_concrete_function)
        elif isinstance(obj, Function):
            self._describe_function(node.function, _concretes(obj), obj)
        elif hasattr(obj, "_saved_function"):
            obj._saved_function(self, node.function)
        elif is_function(obj):
            captures = obj.described()
            if captures.keywords is None:
                captures.keywords = signatures_.argument_names(obj, captures)
            self._describe_bare(captures, node.bare_concrete_function, obj.function_type)
        elif isinstance(obj, TrackableConstant):
            node.constant.SetInParent()
        else:
            if isinstance(obj, CapturableResource):
                node.resource.SetInParent()
                node.resource.device = getattr(obj, "_resource_device", "") or ""
            else:
                self._describe_user_object(obj, node)
            self._describe_saveables(obj, node)
        name = registration.get_registered_class_name(obj) or getattr(obj, "_registered_name", "")
        if name:
            node.registered_name = name
            message = obj._serialize_to_proto(object_proto=node)
            if message is not None:
                node.serialized_user_proto.Pack(message)

    @staticmethod
    def _describe_user_object(obj, node):
        message = revived_types.serialize(obj)
        if message is None:
            message = message_class("SavedUserObject")(identifier=obj._object_identifier)
            message.version.producer = message.version.min_consumer = 1
        node.user_object.CopyFrom(message)

    def _describe_saveables(self, obj, node):
        if id(obj) in self._savers:
            node.registered_saver = self._savers[id(obj)]
            return
        rows = self._factories.get(obj, ())
        found = saving_functions.of(obj, rows) if rows else {}
        for name, functions in found.items():
            self._saving.setdefault(obj, {})[name] = functions
            out = node.saveable_objects[name]
            out.save_function, out.restore_function = (self._add_bare(captures) for captures in functions)

    def _add_bare(self, captures):
        """Returns the number of a function that is not an attribute of any object."""
        function = signatures_.SignatureFunction(captures)
        self._ids[function] = number = len(self.objects)
        self.objects.append(function)
        self._describe_bare(captures, self._graph.nodes.add().bare_concrete_function)
        return number

    @staticmethod
    def _describe_variable(variable, out):
        out.dtype = variable.dtype.base_dtype.as_datatype_enum
        out.shape.CopyFrom(variable.shape.as_proto())
        out.trainable = bool(variable.trainable)
        out.name = variable._shared_name
        out.synchronization, out.aggregation = int(variable.synchronization), int(variable.aggregation)
        policy = save_context.get_save_options().experimental_variable_policy
        if policy._save_variable_devices():
            out.device = variable.device or ""
        if policy._expand_distributed_variables():
            for copy in getattr(variable, "_values", ()):
                part = out.experimental_distributed_variable_components.add()
                _Writer._describe_variable(copy, part)

    def _describe_bare(self, captures, out, function_type=None):
        self.add_function(captures)
        out.concrete_function_name = captures.name
        out.argument_keywords.extend(captures.keywords)
        if function_type is not None:
            out.allowed_positional_arguments = len(captures.keywords)
            spec = full_arg_spec(function_type)
        elif captures.inputs[0]:
            out.allowed_positional_arguments = len(captures.keywords)
            spec = full_arg_spec(lambda: None)._replace(args=list(captures.keywords))
        else:
            out.allowed_positional_arguments = int(len(captures.keywords) == 1)
            spec = full_arg_spec(lambda: None)._replace(kwonlyargs=list(captures.keywords))
        structured_value.encode(spec, out.function_spec.fullargspec)
        structured_value.encode(None, out.function_spec.input_signature)

    def _describe_function(self, out, captures, function):
        for one in captures:
            self.add_function(one)
            out.concrete_functions.append(one.name)
        python_function = function.python_function
        structured_value.encode(full_arg_spec(python_function), out.function_spec.fullargspec)
        structured_value.encode(function.input_signature, out.function_spec.input_signature)
        if function.jit_compile is not None:
            out.function_spec.jit_compile = 1 if function.jit_compile else 2

    def add_function(self, captures):
        """Writes a library function, and the objects it reads."""
        if captures.name in self._functions:
            return
        self._functions[captures.name] = captures
        out = self._graph.concrete_functions[captures.name]
        for tensor in captures.captured:
            out.bound_inputs.append(self._object_of(tensor, captures))
        structured_value.encode(captures.inputs, out.canonicalized_input_signature)
        structured_value.encode(captures.outputs, out.output_signature)

    def _object_of(self, tensor, captures):
        number = self._by_handle.get(id(tensor))
        if number is None:
            if tensor.dtype in (dtypes.resource, dtypes.variant):
                raise untracked(captures, tensor)
            constant = TrackableConstant(tensor)
            self._ids[constant] = number = len(self.objects)
            self.objects.append(constant)
            self._graph.nodes.add().constant.SetInParent()
            self._by_handle[id(tensor)] = number
            self._kept.append(tensor)
        return number

    # The graph

    def meta_graph(self):
        """Returns the MetaGraphDef; `assets` then has {file name in the model: path}."""
        self.assets = {}
        meta = message_class("MetaGraphDef")()
        definitions, graph = reachable(self._functions, visible_functions()), Graph()
        for definition in definitions.values():
            _core.add_function_def(graph, definition)
        with graph.as_default():
            self._build(meta, graph)
        meta.graph_def.CopyFrom(graph.as_graph_def(add_shapes=False))
        meta.object_graph_def.CopyFrom(self._graph)
        verify_ops(meta.graph_def, self._options.namespace_whitelist)
        from runnel.core import versions
        meta.meta_info_def.tags.extend(["serve", *(self._options.extra_tags or ())])
        meta.meta_info_def.tensorflow_version = versions.VERSION
        meta.meta_info_def.tensorflow_git_version = versions.GIT_VERSION
        strip_defaults(meta)
        for alias, function in self._options.function_aliases.items():
            for name in names_of(function):
                meta.meta_info_def.function_aliases[name] = alias
        return meta

    def checkpoint(self, path):
        """Writes the values of the objects."""
        options = CheckpointOptions(experimental_io_device=self._options.experimental_io_device,
                                    experimental_sharding_callback=self._options.experimental_sharding_callback)
        TrackableSaver(self._view).save(path, options=options)

    def _build(self, meta, graph):
        self._asset_assigns = []  # operations that set the paths of assets
        self._nodes = nodes = {}  # number of an object -> the tensor that stands for it in the graph
        for number, obj in enumerate(self.objects):
            variable = variable_in(obj)
            if variable is not None:
                name = graph.unique_name(variable._shared_name.split(":")[0])  # programs name variables "total:0", too
                is_placed = self._options.experimental_variable_policy._save_variable_devices()
                with framework.device(variable.device if is_placed else None):
                    nodes[number] = raw_ops.VarHandleOp(dtype=variable.dtype, shape=variable.shape, shared_name=name, name=name + "/")
            elif isinstance(obj, CapturableResource) and obj.resource_handle is not None:
                nodes[number] = obj._create_resource()
                if isinstance(nodes[number], (list, tuple)):
                    nodes[number] = nodes[number][0]
            elif isinstance(obj, Asset):
                nodes[number] = self._add_asset(meta, obj, graph)
            elif isinstance(obj, TrackableConstant):
                nodes[number] = convert.constant(constant_of(obj.capture), dtype=obj.capture.dtype)
                self._graph.nodes[number].constant.operation = nodes[number].op.name
        for key, captures in sorted(self._signatures.items()):
            self._add_signature(meta.signature_def[key], key, captures)
        self._add_init(meta)
        if not self._options.experimental_skip_saver:
            self._add_saver(meta.saver_def)

    def call(self, captures, arguments):
        """Calls a function with its captures in the graph."""
        bound = self._graph.concrete_functions[captures.name].bound_inputs
        results = raw_ops.StatefulPartitionedCall(args=list(arguments) + [self._nodes[n] for n in bound], Tout=captures.dtypes, f=captures.name)
        return [] if isinstance(results, framework.Operation) else results

    def _add_asset(self, meta, asset, graph):
        """Returns the path in the graph: a variable that the initialization sets to what loaders feed."""
        path = asset.file()
        names = [name for name, known in self.assets.items() if known == path]
        base = names[0] if names else os.path.basename(path)
        number = 0
        while not names and base in self.assets:
            number += 1
            base = "%s_%d" % (os.path.basename(path), number)
        self.assets[base] = path
        tensor = raw_ops.Placeholder(dtype=dtypes.string, shape=(), name="asset_path_initializer")
        meta.asset_file_def.add(filename=base).tensor_info.name = tensor.name
        name = graph.unique_name("asset_path")
        handle = raw_ops.VarHandleOp(dtype=dtypes.string, shape=(), shared_name=name, name=name)
        self._asset_assigns.append(raw_ops.AssignVariableOp(resource=handle, value=tensor))
        return raw_ops.ReadVariableOp(resource=handle, dtype=dtypes.string)

    def _add_signature(self, out, key, captures):
        from runnel.saved_model.meta_graphs import PREDICT_METHOD_NAME, build_tensor_info
        arguments = []
        for name, spec in sorted(captures.inputs[1].items()):
            where, default = safe_name("%s_%s" % (key, name)), captures.defaults.get(name)
            if default is None:
                arguments.append(raw_ops.Placeholder(dtype=spec.dtype, shape=spec.shape, name=where))
            else:
                arguments.append(raw_ops.PlaceholderWithDefault(input=constant_of(default), shape=spec.shape, name=where))
                out.defaults[name].CopyFrom(make_tensor_proto(constant_of(default)))
            out.inputs[name].CopyFrom(build_tensor_info(arguments[-1]))
        tensors = iter(self.call(captures, arguments))
        for name, spec in sorted(captures.outputs.items()):
            parts = []
            for part in spec._flat_specs():
                parts.append(next(tensors))
                parts[-1].set_shape(part.shape)
            out.outputs[name].CopyFrom(build_tensor_info(parts[0] if isinstance(spec, TensorSpec) else spec._from_tensors(parts)))
        out.method_name = PREDICT_METHOD_NAME

    def _add_init(self, meta):
        calls, paths = [], {n: self._nodes[n] for n, obj in enumerate(self.objects) if isinstance(obj, Asset)}
        with framework.control_dependencies(self._asset_assigns):
            for number in paths:  # read after they are set
                self._nodes[number] = raw_ops.ReadVariableOp(resource=paths[number].op.inputs[0], dtype=dtypes.string)
            for number, obj in enumerate(self.objects):
                for child in self._graph.nodes[number].children if isinstance(obj, CapturableResource) else ():
                    if child.local_name == "_initialize":
                        for name in self._graph.nodes[child.node_id].function.concrete_functions:
                            calls += self.call(self._functions[name], [])
        self._nodes.update(paths)
        with framework.control_dependencies([*self._asset_assigns, *calls]):
            op = raw_ops.NoOp(name="init_objects")
        meta.collection_def["saved_model_main_op"].node_list.value.append(op.name)
        info = meta.signature_def[_INIT].outputs[_INIT]
        info.name = op.name
        info.tensor_shape.unknown_rank = True

    def _add_saver(self, out):
        from runnel.checkpoint.object_graph import mark_values
        rows = []  # (key, slice, dtype, function that reads, function that restores)
        tree = self._listing.proto()
        for obj, path in self._listing.names.items():
            node, variable = tree.nodes[self._ids[obj]], variable_in(obj)
            if variable is not None:
                handle, key = self._nodes[self._ids[obj]], keys.checkpoint_key(path, "VARIABLE_VALUE")
                rows.append(([key], [variable.dtype.base_dtype],
                             lambda handle=handle, dtype=variable.dtype.base_dtype: [raw_ops.ReadVariableOp(resource=handle, dtype=dtype)],
                             lambda tensors, handle=handle: raw_ops.AssignVariableOp(resource=handle, value=tensors[0])))
                node.attributes.add(name="VARIABLE_VALUE", checkpoint_key=key, full_name=variable._shared_name)
            for name, (save, restore) in self._saving.get(obj, {}).items():
                rows.append(saving_functions.in_graph(self, path, name, save, restore, node))
        mark_values(tree)
        filename = raw_ops.Placeholder(dtype=dtypes.string, shape=(), name="saver_filename")
        names = [key for row in rows for key in row[0]]
        types = [dtype for row in rows for dtype in row[1]]
        reads = [tensor for row in rows for tensor in row[2]()]
        save = raw_ops.SaveV2(prefix=filename, tensor_names=[*names, "_CHECKPOINTABLE_OBJECT_GRAPH"], shape_and_slices=[""] * (len(names) + 1),
                              tensors=[*reads, convert.constant(tree.SerializeToString())])
        with framework.control_dependencies([save]):
            saved = raw_ops.Identity(filename, name="saved")
        done = []
        if names:
            values = iter(raw_ops.RestoreV2(prefix=filename, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=types))
            done = [row[3]([next(values) for _ in row[0]]) for row in rows]
        with framework.control_dependencies([op for op in done if op is not None]):
            restore = raw_ops.NoOp(name="restore_all")
        out.filename_tensor_name, out.save_tensor_name, out.restore_op_name = filename.name, saved.name, restore.name
        out.version = 2


def save(obj, export_dir, signatures=None, options=None):
    """Writes an object (a tf.Module, a model, a tf.train.Checkpoint) as a SavedModel.

    Args:
      obj: the object, saved with all variables, functions, tables and objects in its attributes.
      export_dir: the folder.
      signatures: a tf.function with an input_signature, a concrete function, or a dict of them; by default the one
        function of `obj` that has an input_signature, if there is exactly one.
      options: SaveOptions.
    """
    metrics.IncrementWriteApi(_SAVE_V2_LABEL)
    save_and_return_nodes(obj, export_dir, signatures, options)
    metrics.IncrementWrite(write_version="2")


def save_and_return_nodes(obj, export_dir, signatures=None, options=None, experimental_skip_checkpoint=False):
    """The same as `save`. Returns (the objects by number, {object: the references that lead to it})."""
    folder = os.fspath(export_dir)
    writer, meta = _prepare(obj, signatures, options or SaveOptions())
    any_files.makedirs(folder)
    if not experimental_skip_checkpoint:
        any_files.makedirs(os.path.join(folder, "variables"))
        writer.checkpoint(os.path.join(folder, "variables", "variables"))
    for name, path in writer.assets.items():
        any_files.makedirs(os.path.join(folder, "assets"))
        any_files.copyfile(path, os.path.join(folder, "assets", name))
    model = message_class("SavedModel")()
    model.saved_model_schema_version = 1
    model.meta_graphs.add().CopyFrom(meta)
    replace_file(os.path.join(folder, "saved_model.pb"), model.SerializeToString())
    fingerprinting.write_fingerprint(folder, model)
    metrics.SetWritePath(saved_model_path=folder)
    return writer.objects, writer._view.breadth_first_traversal()[1]


def export_meta_graph(obj, filename, signatures=None, options=None):
    """Writes the MetaGraphDef of an object to a file."""
    replace_file(os.fspath(filename), _prepare(obj, signatures, options or SaveOptions())[1].SerializeToString())


def _prepare(obj, signatures, options):
    if inside_function():
        raise AssertionError("`tf.saved_model.save` is not supported inside a traced @tf.function. Move the call to the outer eagerly-executed "
                             "context.")
    if not isinstance(obj, Trackable):
        raise ValueError("Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for export. "
                         "Got %s with type %s." % (obj, type(obj)))
    with save_context.save_context(options):
        writer = _Writer(obj, signatures, options)
        tell_of_untraced(writer.objects)
        return writer, writer.meta_graph()


