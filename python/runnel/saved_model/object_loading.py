"""Loading of SavedModels with objects.

Variables get the values of the checkpoint. Functions accept the arguments for which they were traced. `signatures`
has functions from keyword arguments to dicts. A loaded model can be saved again.
"""

import inspect
import itertools
import os

from runnel import dtypes, nest, raw_ops
from runnel.core import convert, framework
from runnel.core.protobuf import message_class
from runnel.eager.def_function import TensorSpec
from runnel.eager.tracing import add_eager_functions
from runnel.ops import variables
from runnel.saved_model import structured_value
from runnel.saved_model.object_saving import Asset, Captures
from runnel.train.saveable import Saveable, flat, restored

_loads = itertools.count()


class Concrete:
    """A function of a model, for one kind of arguments."""

    def __init__(self, name, captured, inputs, outputs, result_types, read=()):
        self.name, self.captured_inputs = name, captured
        self.variables = list(read)
        self.structured_input_signature = inputs
        self.structured_outputs = outputs
        self._dtypes = result_types
        self._keywords = None

    @property
    def trainable_variables(self):
        return [v for v in self.variables if v.trainable]

    def described(self):
        return Captures(self.name, self.captured_inputs, self.structured_input_signature, self.structured_outputs,
                        self._keywords, self._dtypes)

    def call_flat(self, tensors):
        """Returns the results as a flat list."""
        from runnel.eager import backprop
        for variable in self.variables:
            backprop._accessed(variable)
        results = raw_ops.StatefulPartitionedCall(args=list(tensors) + self.captured_inputs, Tout=self._dtypes, f=self.name)
        if not framework.executing_eagerly() and not isinstance(results, framework.Operation):
            specs = [x for x in nest.flatten(self.structured_outputs) if isinstance(x, TensorSpec)]
            for result, spec in zip(results, specs):
                result.set_shape(spec.shape)
        return results

    def call(self, tensors):
        """Returns the results in their structure."""
        flat = iter(self.call_flat(tensors))
        structure = self.structured_outputs
        if isinstance(structure, TensorSpec):
            return next(flat)
        if not nest.is_nested(structure):
            return None
        return nest.pack_sequence_as(structure, [next(flat) if isinstance(x, TensorSpec) else x for x in nest.flatten(structure)])

    def __call__(self, *args, **kwargs):
        """Takes keyword arguments; also a single positional argument, or the arguments as traced."""
        if self._keywords is None:
            tensors = match(self.structured_input_signature, (args, kwargs))
            if tensors is None:
                raise TypeError("%s takes %s, but got %r" % (self.name, self.structured_input_signature, (args, kwargs)))
            return self.call(tensors)
        if args and len(self._keywords) == 1 and len(args) == 1:
            kwargs = {self._keywords[0]: args[0], **kwargs}
        elif args:
            raise TypeError("signature_wrapper(%s) takes 0 positional arguments but %d were given" % (", ".join(self._keywords), len(args)))
        for name in self._keywords:
            if name not in kwargs:
                raise TypeError("signature_wrapper(%s) missing required arguments: %s." % (", ".join(self._keywords), name))
        for name in kwargs:
            if name not in self._keywords:
                raise TypeError("signature_wrapper(%s) got unexpected keyword arguments: %s." % (", ".join(self._keywords), name))
        specs = dict(zip(self._keywords, [x for x in nest.flatten(list(self.structured_input_signature)) if isinstance(x, TensorSpec)]))
        return self.call([_as_tensor(specs[name], kwargs[name]) for name in self._keywords])


def _as_tensor(spec, value):
    if not isinstance(value, framework.Tensor):
        value = convert.convert_to_tensor(value, dtype=spec.dtype)
    if not spec.is_compatible_with(value):
        raise TypeError("%r is not a %r" % (value, spec))
    return value


def match(wanted, given):
    """Returns the flat tensors of `given` if it has the structure of `wanted`, else None."""
    if isinstance(wanted, TensorSpec):
        if given is None or isinstance(given, (str, bytes)) and wanted.dtype != dtypes.string:
            return None
        try:
            return [_as_tensor(wanted, given)]
        except (TypeError, ValueError):
            return None
    if isinstance(wanted, dict):
        if not isinstance(given, dict) or set(wanted) != set(given):
            return None
        parts = [match(wanted[key], given[key]) for key in sorted(wanted)]
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(wanted) != len(given):
            return None
        parts = [match(a, b) for a, b in zip(wanted, given)]
    else:
        return [] if type(given) in (type(wanted), int, float, bool, str) and wanted == given else None
    return None if any(part is None for part in parts) else [x for part in parts for x in part]


class RestoredFunction:
    """A tf.function of a model: calls the trace that fits the arguments."""

    def __init__(self, concretes, spec):
        self._concretes, self._spec = concretes, spec
        self._signature = _python_signature(spec)
        self.input_signature = structured_value.decode(spec.input_signature)

    @property
    def concrete_functions(self):
        return list(self._concretes)

    def get_concrete_function(self, *args, **kwargs):
        if len(self._concretes) == 1 and not args and not kwargs:
            return self._concretes[0]
        for concrete in self._concretes:
            wanted = [x for x in nest.flatten(list(concrete.structured_input_signature)) if isinstance(x, TensorSpec)]
            given = [x for x in nest.flatten([list(args), kwargs]) if isinstance(x, TensorSpec)]
            if len(wanted) == len(given) and all(a.is_compatible_with(b) for a, b in zip(wanted, given)):
                return concrete
        raise ValueError("Could not find a concrete function for %r, %r" % (args, kwargs))

    def _saved_function(self, writer, out):
        for concrete in self._concretes:
            writer.add_function(concrete.described())
            out.concrete_functions.append(concrete.name)
        out.function_spec.CopyFrom(self._spec)

    def __call__(self, *args, **kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = (bound.args, bound.kwargs)
        for concrete in self._concretes:
            tensors = match(concrete.structured_input_signature, given)
            if tensors is not None:
                return concrete.call(tensors)
        if not self._concretes:
            raise ValueError("Found zero restored functions for caller function.")
        raise ValueError(
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n  Positional arguments (%d total):\n    * %s\n"
            "  Keyword arguments: %s\n\n Expected these arguments to match one of the following %d option(s):\n\n%s" % (
                len(bound.args), "\n    * ".join(repr(x) for x in bound.args), bound.kwargs, len(self._concretes),
                "\n\n".join("Option %d:\n  %s" % (i + 1, c.structured_input_signature) for i, c in enumerate(self._concretes))))


def _python_signature(spec):
    """Returns the inspect.Signature of a FunctionSpec."""
    full = structured_value.decode(spec.fullargspec)
    parameter = inspect.Parameter
    names = list(full.args)
    defaults = list(full.defaults or ())
    if spec.is_method and names:
        names = names[1:]
    first = len(names) - len(defaults)
    rows = [parameter(name, parameter.POSITIONAL_OR_KEYWORD, default=defaults[i - first] if i >= first else parameter.empty)
            for i, name in enumerate(names)]
    if full.varargs:
        rows.append(parameter(full.varargs, parameter.VAR_POSITIONAL))
    for name in full.kwonlyargs or ():
        rows.append(parameter(name, parameter.KEYWORD_ONLY, default=(full.kwonlydefaults or {}).get(name, parameter.empty)))
    if full.varkw:
        rows.append(parameter(full.varkw, parameter.VAR_KEYWORD))
    return inspect.Signature(rows)


class RestoredTable:
    """A table of a model, filled by the model's own functions."""

    def __init__(self, registered_name):
        self._registered_name = registered_name
        self.resource_handle = None
        self._methods = []
        self._contents = self._functions = None  # the Saveable of its contents; the functions that save and restore it

    def _saveable(self):
        return self._contents

    def _saving_functions(self):
        return [function.described() for function in self._functions]

    def _set_saving(self, attribute, save, restore):
        self._functions = save, restore

        def rows():
            return save.call([convert.constant("")])
        suffixes = [row["name"].numpy().decode() for row in rows()]
        types = [spec.dtype for spec in nest.flatten(restore.structured_input_signature)]
        self._contents = Saveable(self, attribute, list(zip(suffixes, types)), lambda: [row["tensor"] for row in rows()],
                                  lambda tensors: restore.call_flat(tensors)[0])

    def _saved_methods(self):
        return [(name, m.described()) for name, m in self._methods]

    def _make(self):
        return next(m for name, m in self._methods if name == "_create_resource").call_flat([])[0]


class Restored:
    """An object of a model, with the attributes that it had when it was saved."""

    _names = ()

    def _saved_children(self):
        return [(name, getattr(self, name)) for name in self._names]


def _make_class():
    """Makes a class per object, because its class determines whether an object is callable."""
    return type("_UserObject", (Restored,), {})


class _Loader:
    def __init__(self, meta, folder):
        self._meta, self._folder = meta, folder
        self._graph = meta.object_graph_def
        self._number = next(_loads)
        self._objects = [None] * len(self._graph.nodes)
        self._concretes = {}
        self._signatures = {}
        self._load_functions()
        self._make_values()
        self._make_tables()
        for number in range(len(self._objects)):
            self._make(number)
        self._connect()

    @property
    def root(self):
        return self._objects[0]

    # Functions

    def _new_name(self, name):
        return "%s_load_%d" % (name, self._number)

    def _load_functions(self):
        library = self._meta.graph_def.library
        names = {function.signature.name for function in library.function}
        self._result_types = {}
        definitions = []
        for function in library.function:
            self._result_types[function.signature.name] = [dtypes.as_dtype(arg.type) for arg in function.signature.output_arg]
            function.signature.name = self._new_name(function.signature.name)
            for node in function.node_def:
                if node.op in names:
                    node.op = self._new_name(node.op)
                for key in node.attr:
                    value = node.attr[key]
                    functions = [value.func] if value.WhichOneof("value") == "func" else list(value.list.func)
                    for called in functions:
                        if called.name in names:
                            called.name = self._new_name(called.name)
                if "_gradient_op_type" in node.attr:
                    del node.attr["_gradient_op_type"]
            definitions.append(function.SerializeToString())
        add_eager_functions(definitions)

    def _concrete(self, name):
        if name not in self._concretes:
            saved = self._graph.concrete_functions[name]
            self._concretes[name] = Concrete(
                self._new_name(name), [self._tensor(n) for n in saved.bound_inputs],
                structured_value.decode(saved.canonicalized_input_signature), structured_value.decode(saved.output_signature),
                self._result_types[name], [self._objects[n] for n in saved.bound_inputs if isinstance(self._objects[n], variables.Variable)])
        return self._concretes[name]

    def _tensor(self, number):
        value = self._objects[number]
        if isinstance(value, variables.Variable):
            return value.handle
        if isinstance(value, RestoredTable):
            return value.resource_handle
        if isinstance(value, Asset):
            return value.asset_path
        if isinstance(value, framework.Tensor):
            return value
        raise NotImplementedError("A function that reads %s of the object graph is not supported" % self._graph.nodes[number].WhichOneof("kind"))

    def aliases(self):
        """Returns {alias: function} of the functions to which SaveOptions gave other names."""
        found = {}
        for name, alias in self._meta.meta_info_def.function_aliases.items():
            found.setdefault(alias, []).append(name)
        functions = [(set(node.function.concrete_functions), self._objects[n]) for n, node in enumerate(self._graph.nodes)
                     if node.WhichOneof("kind") == "function"]
        return {alias: next(f for held, f in functions if held >= set(names)) for alias, names in found.items()
                if any(held >= set(names) for held, _ in functions)}

    # Objects

    def _make_values(self):
        from runnel.train.checkpoint_reader import NewCheckpointReader
        prefix = os.path.join(self._folder, "variables", "variables")
        self._checkpoint_keys, reader = {}, None
        if os.path.exists(prefix + ".index"):
            reader = NewCheckpointReader(prefix)
            self._checkpoint_keys = self._keys(reader)
        nodes = {node.name: node for node in self._meta.graph_def.node}
        for number, node in enumerate(self._graph.nodes):
            kind = node.WhichOneof("kind")
            if kind == "variable":
                key = self._checkpoint_keys.get((number, "VARIABLE_VALUE"))
                if key is None:
                    raise ValueError("The checkpoint of the model in %s has no value for the variable %r" % (self._folder, node.variable.name))
                self._objects[number] = variables.Variable(
                    reader.get_tensor(key), trainable=node.variable.trainable, name=node.variable.name or None,
                    dtype=dtypes.as_dtype(node.variable.dtype), shape=structured_value._shape(node.variable.shape))
            elif kind == "asset":
                name = self._meta.asset_file_def[node.asset.asset_file_def_index].filename
                self._objects[number] = Asset(os.path.join(self._folder, "assets", name))
            elif kind == "constant":
                from runnel.core.tensor_util import make_ndarray
                proto = nodes[node.constant.operation].attr["value"].tensor
                self._objects[number] = convert.constant(make_ndarray(proto), dtype=dtypes.as_dtype(proto.dtype))
            elif kind == "resource":
                self._objects[number] = RestoredTable(node.registered_name)

    def _keys(self, reader):
        """Returns {(number of an object, attribute): key in the checkpoint}, by following attribute names from the root."""
        from runnel.saved_model.object_saving import _GRAPH_KEY
        data = reader.get_tensor(_GRAPH_KEY)
        tree = message_class("TrackableObjectGraph").FromString(data if isinstance(data, bytes) else data.item())
        places, order = {0: 0}, [0]
        for number in order:
            there = {child.local_name: child.node_id for child in tree.nodes[places[number]].children}
            for child in self._graph.nodes[number].children:
                if child.local_name in there and child.node_id not in places:
                    places[child.node_id] = there[child.local_name]
                    order.append(child.node_id)
        for number in order:
            slots = {(s.slot_name, s.original_variable_node_id): s.slot_variable_node_id for s in tree.nodes[places[number]].slot_variables}
            for slot in self._graph.nodes[number].slot_variables:
                found = slots.get((slot.slot_name, places.get(slot.original_variable_node_id)))
                if found is not None:
                    places.setdefault(slot.slot_variable_node_id, found)
        return {(number, attribute.name): attribute.checkpoint_key for number, place in places.items() for attribute in tree.nodes[place].attributes}

    def _make_tables(self):
        tables = [(n, t) for n, t in enumerate(self._objects) if isinstance(t, RestoredTable)]
        methods = {n: {c.local_name: c.node_id for c in self._graph.nodes[n].children} for n, _ in tables}

        def method(number, name):
            function = self._graph.nodes[methods[number][name]].function
            return self._concrete(function.concrete_functions[0]) if function.concrete_functions else None
        for number, table in tables:
            if "_create_resource" not in methods[number]:
                raise NotImplementedError("The resource %s of the model has no function that creates it" % self._path(number))
            table.resource_handle = method(number, "_create_resource").call_flat([])[0]
        for number, table in tables:
            for name in ("_create_resource", "_initialize", "_destroy_resource"):
                found = method(number, name) if name in methods[number] else None
                if found is not None:
                    table._methods.append((name, found))
                if found is not None and name == "_initialize":
                    found.call_flat([])
            self._fill_table(number, table)

    def _fill_table(self, number, table):
        """Restores a table from the checkpoint."""
        for attribute, functions in self._graph.nodes[number].saveable_objects.items():
            save, restore = (self._bare(n) for n in (functions.save_function, functions.restore_function))
            table._set_saving(attribute, save, restore)
            key = self._checkpoint_keys.get((number, attribute))
            if key is None:
                raise ValueError("The checkpoint of the model in %s has no values for the table %s" % (self._folder, self._path(number)))
            saveables = {key: table._contents}
            names, types = flat(saveables)
            prefix = os.path.join(self._folder, "variables", "variables")
            restored(saveables, raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=types))

    def _path(self, number):
        for parent, node in enumerate(self._graph.nodes):
            for child in node.children:
                if child.node_id == number:
                    return child.local_name if parent == 0 else "%s.%s" % (self._path(parent), child.local_name)
        return str(number)

    def _bare(self, number):
        function = self._graph.nodes[number].bare_concrete_function
        concrete = self._concrete(function.concrete_function_name)
        concrete._keywords = list(function.argument_keywords)
        return concrete

    def _make(self, number):
        node = self._graph.nodes[number]
        kind = node.WhichOneof("kind")
        if kind == "user_object":
            name = node.user_object.identifier
            self._objects[number] = [] if name == "trackable_list_wrapper" else {} if name in (
                "trackable_dict_wrapper", "signature_map") else _make_class()()
        elif kind == "function":
            self._objects[number] = RestoredFunction([self._concrete(name) for name in node.function.concrete_functions], node.function.function_spec)
        elif kind == "bare_concrete_function":
            self._objects[number] = self._bare(number)

    def _connect(self):
        for number, node in enumerate(self._graph.nodes):
            value = self._objects[number]
            rows = [(child.local_name, self._objects[child.node_id]) for child in node.children]
            if isinstance(value, list):
                value += [item for _, item in sorted(rows, key=lambda row: int(row[0]) if row[0].isdigit() else -1)]
            elif isinstance(value, dict):
                value.update(rows)
            elif isinstance(value, Restored):
                value._names = [name for name, item in rows if item is not None]
                for name, item in rows:
                    if name == "__call__":
                        type(value).__call__ = lambda self, *args, _f=item, **kwargs: _f(*args, **kwargs)
                    value.__dict__[name] = item
        root = self._objects[0]
        if isinstance(root, Restored):
            signatures = root.__dict__.setdefault("signatures", {})
            root._default_save_signature = lambda: {key: c.described() for key, c in signatures.items()}


def load(export_dir, tags=None, options=None):
    """Returns the object that a SavedModel was made from, as far as the files describe it."""
    from runnel.saved_model.meta_graphs import _find, _parse
    if not framework.executing_eagerly():
        raise RuntimeError("tf.saved_model.load of a folder alone needs eager execution (tf.enable_eager_execution()); "
                           "in a graph it is tf.saved_model.load(session, tags, folder)")
    folder = os.fspath(export_dir)
    model = _parse(folder)
    if isinstance(tags, str):
        tags = [tags]
    if tags is None and len(model.meta_graphs) == 1:
        meta = model.meta_graphs[0]
    else:
        meta = _find(model, ["serve"] if tags is None else tags, folder)
    if not meta.object_graph_def.nodes:
        from runnel.saved_model.graph_loading import GraphModel
        return GraphModel(meta, folder)
    loader = _Loader(meta, folder)
    root = loader.root
    if options is not None and options.experimental_load_function_aliases:
        if hasattr(root, "function_aliases"):
            raise ValueError("Could not load with experimental_load_function_aliases option because the top-level object already has an "
                             "attribute with name 'function_aliases'")
        root.function_aliases = loader.aliases()
    if isinstance(root, Restored):
        root.tensorflow_version = meta.meta_info_def.tensorflow_version
        root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
    return root
