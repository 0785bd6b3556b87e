"""tf.saved_model.save: writes an object, what it holds and its functions as a SavedModel.

The file has an object graph: objects and variables by attribute names, functions with the objects they read, one
function per signature. The checkpoint beside it is that of tf.train.Checkpoint, with the same names.
"""

import inspect
import os
import shutil

from runnel import _core, dtypes, nest, raw_ops
from runnel.core import convert, framework
from runnel.core.framework import Graph
from runnel.core.protobuf import message_class
from runnel.core.trackable import Trackable
from runnel.eager.def_function import ConcreteFunction, Function, TensorSpec
from runnel.eager.tracing import eager_functions, trace
from runnel.io import any_files
from runnel.ops import variables
from runnel.saved_model import structured_value
from runnel.train.saveable import ATTRIBUTES, Saveable, flat, restored, saveable_of, variable_in

_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_INIT = "__saved_model_init_op"


class Asset:
    """A file that is copied into the model."""

    def __init__(self, path):
        self._path = os.fspath(path)
        self.asset_path = convert.constant(self._path)

    @property
    def path(self):
        """The path, as a tensor that functions may read."""
        return self.asset_path


class SaveOptions:
    """Options for saving. Only `function_aliases` has an effect: it is written."""

    def __init__(self, namespace_whitelist=None, save_debug_info=False, function_aliases=None, **_):
        self.namespace_whitelist = list(namespace_whitelist or ())
        self.save_debug_info = save_debug_info
        self.function_aliases = dict(function_aliases or {})


class LoadOptions:
    """Options for loading. Those of checkpoints and devices have no effect; `function_aliases` of the root is optional."""

    def __init__(self, allow_partial_checkpoint=False, experimental_io_device=None, experimental_load_function_aliases=False, **_):
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_load_function_aliases = experimental_load_function_aliases
        self.experimental_io_device = experimental_io_device


class _Constant:
    """A value that a function reads."""

    def __init__(self, tensor):
        self.tensor = tensor


class _Signatures(dict):
    """The functions for serving: from keyword arguments to dicts."""


class Captures:
    """A library function as objects hold it: its name, what it captures, its arguments and results.

    The arguments are ((positional), {keyword}) with TensorSpecs; the results are a structure.
    """

    def __init__(self, name, captured, inputs, outputs, keywords=None, result_types=None):
        self.name, self.captured = name, captured
        self.inputs, self.outputs = inputs, outputs
        self.keywords = keywords  # the arguments' names, if the file describes this as a SavedBareConcreteFunction; else None
        self.dtypes = result_types if result_types is not None else [x.dtype for x in nest.flatten(outputs) if x is not None]


def is_table(value):
    """Tells whether `value` is a table."""
    return hasattr(value, "resource_handle") and hasattr(value, "_saved_methods")


def is_function(value):
    """Tells whether `value` is a tf.function."""
    return isinstance(value, Function) or hasattr(value, "_saved_function")


def _is_tracked(value):
    if isinstance(value, Trackable):
        return True
    if isinstance(value, (list, tuple)):
        return any(_is_tracked(item) for item in value)
    if isinstance(value, dict):
        return any(_is_tracked(item) for item in value.values())
    return (isinstance(value, (variables.Variable, Asset, Captures, _Constant)) or is_function(value) or is_table(value)
            or hasattr(type(value), "trainable_variables") or hasattr(value, "_saved_children")
            or hasattr(type(value), "_checkpoint_children"))


def _methods(value):
    """Returns [(name, function)] of the methods that an object's classes decorate with tf.function."""
    found = {}
    for cls in reversed(type(value).__mro__):
        for name, member in vars(cls).items():
            if isinstance(member, Function):
                found[name] = getattr(value, name)
    return sorted(found.items())


def children(value):
    """Returns [(name, object)] of what an object holds."""
    if isinstance(value, (variables.Variable, Asset, Captures, _Constant)) or is_function(value):
        return []
    own = getattr(value, "_saved_children", None)
    if own is not None:
        return own()
    if is_table(value):
        rows = []
    elif isinstance(value, Trackable):
        rows = list(value._trackable_children("savedmodel").items())
    elif isinstance(value, (list, tuple)):
        rows = [(str(i), item) for i, item in enumerate(value)]
    elif isinstance(value, dict):
        rows = [(str(key), item) for key, item in value.items()]
    else:
        rows = held_by(value)
    return [(name, item) for name, item in rows if _is_tracked(item)]


def held_by(value):
    """Returns [(name, object)] of the attributes and functions of an object."""
    held = getattr(value, "_checkpoint_children", None)
    # Private attributes of Runnel's own classes are not part of the model.
    is_ours = type(value).__module__.startswith("runnel.")
    rows = held() if held is not None else [
        (name, item) for name, item in vars(value).items() if name != "_tf_functions" and not (is_ours and name.startswith("_"))]
    return [(name, item) for name, item in rows + _methods(value) if _is_tracked(item)]


def _full_arg_spec(python_function):
    """Returns the FullArgSpec of a function from its signature."""
    import collections
    kinds = inspect.Parameter
    parameters = list(inspect.signature(python_function).parameters.values())
    plain = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind == kinds.KEYWORD_ONLY]

    def value(default):
        try:
            structured_value.encode(default)
        except structured_value.NotEncodable:
            return None
        return default

    def rest(kind):
        return next((p.name for p in parameters if p.kind == kind), None)
    defaults = tuple(value(p.default) for p in plain if p.default is not kinds.empty)
    full = collections.namedtuple("FullArgSpec", "args varargs varkw defaults kwonlyargs kwonlydefaults annotations")
    return full([p.name for p in plain], rest(kinds.VAR_POSITIONAL), rest(kinds.VAR_KEYWORD), defaults or None,
                [p.name for p in named], {p.name: value(p.default) for p in named if p.default is not kinds.empty} or None, {})


def _concretes(function):
    """Returns the traces of a tf.function that a file can describe."""
    if function.input_signature is not None and not function._cache:
        function.get_concrete_function()
    found = []
    for concrete in dict.fromkeys(function._cache.values()):
        captures = concrete.described()
        try:
            structured_value.encode(captures.inputs)
            structured_value.encode(captures.outputs)
        except structured_value.NotEncodable:
            continue
        found.append(captures)
    return found


def method(stem, build):
    """Returns a function without arguments that returns the scalar that `build` builds."""
    traced = trace(build, [], "__inference_%s" % stem)
    return Captures(traced.name, traced.captured, ((), {}), TensorSpec((), traced.dtypes[0], "unknown"))


def _bare(stem, build, specs, outputs):
    """Returns a function with named arguments, like those that save and restore an object."""
    traced = trace(build, [(spec.dtype, spec.shape) for spec in specs], "__inference_%s" % stem)
    return Captures(traced.name, traced.captured, (tuple(specs), {}), outputs(traced.dtypes), [spec.name for spec in specs], traced.dtypes)


def saving_functions(saveable):
    """Returns (save, restore) of a Saveable.

    `save` maps the key to a list of {name, slice_spec, tensor}; `restore` takes tensors and returns nothing.
    """
    def save(key):
        rows = zip(saveable.suffixes, saveable.read())
        return [{"name": raw_ops.StringJoin(inputs=[key, convert.constant(suffix)]), "slice_spec": convert.constant(""), "tensor": tensor}
                for suffix, tensor in rows]

    def saved(_):
        return [{"name": TensorSpec((), dtypes.string, "tensor_%d_name" % i), "slice_spec": TensorSpec((), dtypes.string, "tensor_%d_slice_spec" % i),
                 "tensor": TensorSpec(None, dtype, "tensor_%d_tensor" % i)} for i, dtype in enumerate(saveable.dtypes)]
    tensors = [TensorSpec(None, dtype, "restored_tensors_%d" % i) for i, dtype in enumerate(saveable.dtypes)]
    return (_bare("save_fn", save, [TensorSpec((), dtypes.string, "checkpoint_key")], saved),
            _bare("restore_fn", lambda *args: done(saveable.restore(args)), tensors, lambda _: TensorSpec((), dtypes.int32, "unknown")))


def done(*operations):
    """Returns 1 after the operations have run."""
    with framework.control_dependencies(operations):
        return raw_ops.Identity(convert.constant(1, dtype=dtypes.int32))


class _Writer:
    def __init__(self, root, signatures, options):
        self._options = options or SaveOptions()
        self._signatures = _as_signatures(root, signatures)
        self._graph = message_class("SavedObjectGraph")()
        self._tree = message_class("TrackableObjectGraph")()
        self._objects, self._paths, self._ids = [], [], {}
        self._by_handle = {}  # id of a captured tensor -> number of the object it belongs to
        self._kept = []       # references that keep those ids valid
        self._functions = {}  # name -> Captures
        self._values = {}     # key -> Saveable
        self._saving = {}     # id of a table -> the functions that save and restore it
        self._collect(root)

    # Objects

    def _number(self, value, path):
        number = self._ids.get(id(value))
        if number is None:
            number = self._ids[id(value)] = len(self._objects)
            self._objects.append(value)
            self._kept.append(value)
            self._paths.append(path)
            self._graph.nodes.add()
            self._tree.nodes.add()
        return number

    def _link(self, above, name, value):
        escaped = name.replace(".", "..").replace("/", ".S")
        number = self._number(value, "/".join(p for p in (self._paths[above], escaped) if p))
        self._graph.nodes[above].children.add(node_id=number, local_name=name)
        self._tree.nodes[above].children.add(node_id=number, local_name=name)
        return number

    def _collect(self, root):
        self._number(root, "")
        at = 0
        while at < len(self._objects):
            value = self._objects[at]
            for name, child in children(value):
                if not (at == 0 and name == "signatures"):
                    self._link(at, name, child)
            if at == 0:
                self._link(0, "signatures", self._signatures)
            if is_table(value):
                for name, method in value._saved_methods():
                    if isinstance(method, Asset):
                        self._link(at, name, method)
                    else:
                        self._link(at, name, _Method(method))
            at += 1
        for number, value in enumerate(self._objects):
            if variable_in(value) is not None:
                self._by_handle.setdefault(id(value.handle), number)
            elif is_table(value):
                self._by_handle[id(value.resource_handle)] = number
            elif isinstance(value, Asset):
                self._by_handle[id(value.asset_path)] = number
        for number in range(len(self._objects)):
            self._describe(number)

    def _describe(self, number):
        value, node = self._objects[number], self._graph.nodes[number]
        saveable = saveable_of(value)
        if saveable is not None:
            key = self._paths[number] + ATTRIBUTES + saveable.attribute
            self._tree.nodes[number].attributes.add(name=saveable.attribute, full_name=saveable.full_name, checkpoint_key=key)
            self._values[key] = saveable
        if variable_in(value) is not None:
            self._describe_variable(variable_in(value), node.variable)
        elif isinstance(value, _Signatures):
            _user_object(node, "signature_map")
        elif isinstance(value, Asset):
            node.asset.SetInParent()
            node.asset.asset_file_def_index = sum(isinstance(v, Asset) for v in self._objects[:number])
        elif isinstance(value, Captures):
            self._describe_bare(value, node.bare_concrete_function)
        elif isinstance(value, _Method):
            self._describe_function(node.function, [value.captures], None)
        elif isinstance(value, Function):
            self._describe_function(node.function, _concretes(value), value)
        elif is_function(value):
            value._saved_function(self, node.function)
        elif is_table(value):
            node.resource.SetInParent()
            if value._registered_name:
                node.registered_name = value._registered_name
            self._describe_saveables(value, node)
        elif isinstance(value, (list, tuple)):
            _user_object(node, "trackable_list_wrapper" if isinstance(value, list) else "trackable_tuple_wrapper")
        elif isinstance(value, dict):
            _user_object(node, "trackable_dict_wrapper")
        else:
            _user_object(node, "_generic_user_object")

    def _describe_saveables(self, table, node):
        saveable = saveable_of(table)
        if saveable is None:
            return
        functions = self._saving[id(table)] = table._saving_functions()
        out = node.saveable_objects[saveable.attribute]
        out.save_function, out.restore_function = (self._function_object(captures) for captures in functions)

    def _function_object(self, captures):
        """Returns the number of a function that is not an attribute of any object."""
        number = self._number(captures, "")
        self._describe(number)
        return number

    def _describe_variable(self, variable, out):
        out.dtype = variable.dtype.base_dtype.as_datatype_enum
        out.shape.CopyFrom(variable.shape.as_proto())
        out.trainable = bool(variable.trainable)
        out.name = variable._shared_name

    def _describe_bare(self, captures, out):
        self.add_function(captures)
        out.concrete_function_name = captures.name
        out.argument_keywords.extend(captures.keywords)
        spec = _full_arg_spec(lambda: None)
        if captures.inputs[0]:
            out.allowed_positional_arguments = len(captures.keywords)
            spec = spec._replace(args=list(captures.keywords))
        else:
            out.allowed_positional_arguments = int(len(captures.keywords) == 1)
            spec = spec._replace(kwonlyargs=list(captures.keywords))
        structured_value.encode(spec, out.function_spec.fullargspec)
        structured_value.encode(None, out.function_spec.input_signature)

    def _describe_function(self, out, captures, function):
        for one in captures:
            self.add_function(one)
            out.concrete_functions.append(one.name)
        python_function = (lambda: None) if function is None else function.python_function
        signature = () if function is None else function.input_signature
        structured_value.encode(_full_arg_spec(python_function), out.function_spec.fullargspec)
        structured_value.encode(signature, out.function_spec.input_signature)

    def add_function(self, captures):
        """Writes a library function, and the objects it reads."""
        if captures.name in self._functions:
            return
        self._functions[captures.name] = captures
        out = self._graph.concrete_functions[captures.name]
        for tensor in captures.captured:
            out.bound_inputs.append(self._object_of(tensor, captures.name))
        structured_value.encode(captures.inputs, out.canonicalized_input_signature)
        structured_value.encode(captures.outputs, out.output_signature)

    def _object_of(self, tensor, name):
        number = self._by_handle.get(id(tensor))
        if number is None:
            if tensor.dtype == dtypes.resource:
                raise AssertionError(
                    "Tried to export a function which references an 'untracked' resource. TensorFlow objects (e.g. tf.Variable) captured by "
                    "functions must be 'tracked' by assigning them to an attribute of a tracked object or assigned to an attribute of the main "
                    "object directly. See the information below:\n\tFunction name = %s" % name)
            number = self._number(_Constant(tensor), "")
            self._graph.nodes[number].constant.SetInParent()
            self._by_handle[id(tensor)] = number
            self._kept.append(tensor)
        return number

    # The graph

    def write(self, folder):
        os.makedirs(os.path.join(folder, "variables"), exist_ok=True)
        meta = message_class("MetaGraphDef")()
        graph = Graph()
        for definition in _reachable(self._functions):
            _core.add_function_def(graph, definition)
        with graph.as_default():
            self._build(meta, graph, folder)
        meta.graph_def.CopyFrom(graph.as_graph_def(add_shapes=False))
        meta.object_graph_def.CopyFrom(self._graph)
        meta.meta_info_def.tags.append("serve")
        meta.meta_info_def.tensorflow_version = "2.21.0"
        for alias, function in self._options.function_aliases.items():
            for captures in _concretes(function):
                meta.meta_info_def.function_aliases[captures.name] = alias
        names, _ = flat(self._values)
        raw_ops.SaveV2(prefix=os.path.join(folder, "variables", "variables"), tensor_names=names + [_GRAPH_KEY],
                       shape_and_slices=[""] * (len(names) + 1),
                       tensors=[tensor for saveable in self._values.values() for tensor in saveable.read()] + [
                           convert.constant(self._tree.SerializeToString())])
        model = message_class("SavedModel")()
        model.saved_model_schema_version = 1
        model.meta_graphs.add().CopyFrom(meta)
        replace_file(os.path.join(folder, "saved_model.pb"), model.SerializeToString())

    def _build(self, meta, graph, folder):
        nodes = {}  # number of an object -> the tensor that stands for it in the graph
        for number, value in enumerate(self._objects):
            variable = variable_in(value)
            if variable is not None:
                name = graph.unique_name(variable._shared_name)
                nodes[number] = raw_ops.VarHandleOp(dtype=variable.dtype, shape=variable.shape, shared_name=name, name=name)
            elif is_table(value):
                nodes[number] = value._make()
            elif isinstance(value, Asset):
                nodes[number] = self._add_asset(meta, value, folder)
            elif isinstance(value, _Constant):
                nodes[number] = convert.constant(value.tensor.numpy(), dtype=value.tensor.dtype)
                self._graph.nodes[number].constant.operation = nodes[number].op.name
        for key, captures in self._signatures.items():
            self._add_signature(meta.signature_def[key], key, captures, nodes)
        self._add_init(meta, nodes)
        self._add_saver(meta.saver_def, nodes)

    def _call(self, captures, arguments, nodes):
        bound = self._graph.concrete_functions[captures.name].bound_inputs
        return raw_ops.StatefulPartitionedCall(args=arguments + [nodes[n] for n in bound], Tout=captures.dtypes, f=captures.name)

    def _add_asset(self, meta, asset, folder):
        os.makedirs(os.path.join(folder, "assets"), exist_ok=True)
        taken = {definition.filename for definition in meta.asset_file_def}
        base, number = os.path.basename(asset._path), 0
        while base in taken:
            number += 1
            base = "%s_%d" % (os.path.basename(asset._path), number)
        shutil.copyfile(asset._path, os.path.join(folder, "assets", base))
        tensor = raw_ops.Placeholder(dtype=dtypes.string, shape=(), name="asset_path_initializer")
        meta.asset_file_def.add(filename=base).tensor_info.name = tensor.name
        return tensor

    def _add_signature(self, out, key, captures, nodes):
        from runnel.saved_model.meta_graphs import PREDICT_METHOD_NAME, build_tensor_info
        arguments = []
        for name, spec in sorted(captures.inputs[1].items()):
            arguments.append(raw_ops.Placeholder(dtype=spec.dtype, shape=spec.shape, name="%s_%s" % (key, name)))
            out.inputs[name].CopyFrom(build_tensor_info(arguments[-1]))
        results = self._call(captures, arguments, nodes)
        results = [] if isinstance(results, framework.Operation) else results  # without outputs
        for (name, spec), tensor in zip(sorted(captures.outputs.items()), results):
            tensor.set_shape(spec.shape)
            out.outputs[name].CopyFrom(build_tensor_info(tensor))
        out.method_name = PREDICT_METHOD_NAME

    def _add_init(self, meta, nodes):
        calls = []
        for number, value in enumerate(self._objects):
            for child in self._graph.nodes[number].children if is_table(value) else ():
                if child.local_name == "_initialize":
                    calls += self._call(self._objects[child.node_id].captures, [], nodes)
        with framework.control_dependencies(calls):
            op = raw_ops.NoOp(name="init_objects")
        meta.collection_def["saved_model_main_op"].node_list.value.append(op.name)
        info = meta.signature_def[_INIT].outputs[_INIT]
        info.name = op.name
        info.tensor_shape.unknown_rank = True

    def _in_graph(self, saveable, nodes):
        """Returns the same Saveable for the object's node in the graph."""
        owner = saveable.owner
        if isinstance(owner, variables.Variable):
            handle = nodes[self._by_handle[id(owner.handle)]]
            return Saveable(owner, saveable.attribute, [("", saveable.dtypes[0])],
                            lambda: [raw_ops.ReadVariableOp(resource=handle, dtype=saveable.dtypes[0])],
                            lambda tensors: raw_ops.AssignVariableOp(resource=handle, value=tensors[0]))
        save, restore = self._saving[id(owner)]
        return Saveable(owner, saveable.attribute, list(zip(saveable.suffixes, saveable.dtypes)),
                        lambda: self._call(save, [convert.constant("")], nodes)[2::3],  # name, slice_spec, tensor
                        lambda tensors: self._call(restore, tensors, nodes)[0])

    def _add_saver(self, out, nodes):
        filename = raw_ops.Placeholder(dtype=dtypes.string, shape=(), name="saver_filename")
        here = {key: self._in_graph(saveable, nodes) for key, saveable in self._values.items()}
        names, types = flat(here)
        reads = [tensor for saveable in here.values() for tensor in saveable.read()]
        save = raw_ops.SaveV2(prefix=filename, tensor_names=names + [_GRAPH_KEY], shape_and_slices=[""] * (len(types) + 1),
                              tensors=reads + [convert.constant(self._tree.SerializeToString())])
        with framework.control_dependencies([save]):
            saved = raw_ops.Identity(filename, name="saved")
        assigns = []
        if types:
            values = raw_ops.RestoreV2(prefix=filename, tensor_names=names, shape_and_slices=[""] * len(types), dtypes=types)
            assigns = restored(here, values)
        with framework.control_dependencies(assigns):
            restore = raw_ops.NoOp(name="restore_all")
        out.filename_tensor_name, out.save_tensor_name, out.restore_op_name = filename.name, saved.name, restore.name
        out.version = 2


class _Method:
    """One of the functions of a table."""

    def __init__(self, captures):
        self.captures = captures
        self._saved_function = None


def _user_object(node, identifier):
    node.user_object.identifier = identifier
    node.user_object.version.producer = 1
    node.user_object.version.min_consumer = 1


def replace_file(path, data):
    """Writes a file atomically: readers see the old one or the new one."""
    if any_files.has_scheme(path):
        with any_files.open(path, "wb") as file:
            file.write(data)
        return
    temporary = path + ".tmp%d" % os.getpid()
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _called(definition):
    """Returns the names of the functions that a FunctionDef's nodes call."""
    for node in definition.node_def:
        for key in node.attr:
            value = node.attr[key]
            if value.WhichOneof("value") == "func":
                yield value.func.name
            for function in value.list.func:
                yield function.name


def _reachable(names):
    """Returns the serialized FunctionDefs of functions and of those they call."""
    known, order, waiting = eager_functions(), {}, list(names)
    while waiting:
        name = waiting.pop()
        if name in order or name not in known:
            continue
        order[name] = known[name]
        waiting += _called(message_class("FunctionDef").FromString(known[name]))
    return list(order.values())


# Signatures


def _as_signatures(root, signatures):
    """Returns {name: Captures} of the requested signatures; by default the one function with an input_signature."""
    if signatures is None:
        signatures = _default_signature(root)
    if signatures is None:
        signatures = {}
    if not isinstance(signatures, dict):
        signatures = {"serving_default": signatures}
    return _Signatures((key, _as_signature(key, function)) for key, function in signatures.items())


def _default_signature(root):
    """Returns the function that an object names, or else the only one with an input_signature and results, or None."""
    try:
        default = getattr(root, "_default_save_signature", None)
    except Exception:  # noqa: BLE001  a property of a library's class may fail in its own way
        default = None
    if default is not None:
        return default if isinstance(default, (Function, ConcreteFunction)) else default()
    fit = [child for _, child in children(root) if isinstance(child, ConcreteFunction)
           or isinstance(child, Function) and child.input_signature is not None]
    fit = [child for child in fit if any(isinstance(x, TensorSpec) for x in nest.flatten(
        (child if isinstance(child, ConcreteFunction) else child.get_concrete_function()).structured_outputs))]
    return fit[0] if len(fit) == 1 else None


def _as_signature(key, function):
    if isinstance(function, Captures):
        return function
    if isinstance(function, Function):
        if function.input_signature is None and len(set(function._cache.values())) != 1:
            raise ValueError("Expected a TensorFlow function for which to generate a signature, but got %r. Only `tf.functions` with an input "
                             "signature or concrete functions can be used as a signature." % function)
        function = function.get_concrete_function() if function.input_signature is not None else next(iter(function._cache.values()))
    if not hasattr(function, "described"):
        raise ValueError("Expected a TensorFlow function for which to generate a signature, but got %r. Only `tf.functions` with an input "
                         "signature or concrete functions can be used as a signature." % function)
    inside = function.described()
    names = _argument_names(function, inside)
    specs = dict(zip(names, [x for x in nest.flatten(list(inside.inputs)) if isinstance(x, TensorSpec)]))
    outputs = inside.outputs
    if isinstance(outputs, TensorSpec):
        outputs = {"output_0": outputs}
    elif isinstance(outputs, (list, tuple)):
        outputs = {"output_%d" % i: x for i, x in enumerate(outputs)}
    if outputs is None:
        outputs = {}
    if not isinstance(outputs, dict) or not all(isinstance(x, TensorSpec) for x in outputs.values()):
        raise ValueError("Got a non-Tensor value in the outputs of the signature %r: %r" % (key, outputs))
    order, results = sorted(specs), sorted(outputs)

    def wrapped(*tensors):
        given = dict(zip(order, tensors))
        flat = function.call_flat([given[name] for name in names])
        by_name = dict(zip(sorted(outputs) if isinstance(inside.outputs, dict) else list(outputs), flat))
        return [raw_ops.Identity(by_name[name]) for name in results]
    traced = trace(wrapped, [(specs[n].dtype, specs[n].shape) for n in order], "__inference_signature_wrapper_%s" % key)
    return Captures(traced.name, traced.captured,
                    ((), {n: TensorSpec(specs[n].shape, specs[n].dtype, n) for n in order}),
                    {n: TensorSpec(outputs[n].shape, outputs[n].dtype, n) for n in results}, order)


def _argument_names(function, inside):
    """Returns a name for each tensor that a function takes."""
    graph = getattr(function, "graph", None)
    if graph is not None:
        return [x.op.name for x in graph.arguments]
    names, taken = [], set()
    for spec in nest.flatten(list(inside.inputs)):
        if not isinstance(spec, TensorSpec):
            continue
        name = spec.name or "args_%d" % len(names)
        while name in taken:
            name += "_1"
        taken.add(name)
        names.append(name)
    return names


def save(obj, export_dir, signatures=None, options=None):
    """Writes an object (a tf.Module, a model, a tf.train.Checkpoint) as a SavedModel.

    Args:
      obj: the object, saved with all variables, functions, tables and objects in its attributes.
      export_dir: the folder.
      signatures: a tf.function with an input_signature, a concrete function, or a dict of them; by default the one
        function of `obj` that has an input_signature, if there is exactly one.
      options: SaveOptions.
    """
    if not framework.executing_eagerly():
        raise RuntimeError("tf.saved_model.save needs eager execution (tf.enable_eager_execution()); in a graph use tf.saved_model.simple_save")
    if not _is_tracked(obj):
        raise ValueError("Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for export. "
                         "Got %r with type %s." % (obj, type(obj)))
    _Writer(obj, signatures, options).write(os.fspath(export_dir))
