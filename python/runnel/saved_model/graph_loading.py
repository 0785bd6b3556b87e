"""SavedModels of graphs, without objects, in programs of TensorFlow 2: their signatures become functions of one graph, which share
variables and tables."""

import itertools
import os

from runnel import dtypes, nest
from runnel.core import convert, framework
from runnel.core.meta_graph import is_of_variables
from runnel.core.protobuf import message_class
from runnel.core.trackable import AutoTrackable
from runnel.core.trackable_resource import CapturableResource
from runnel.core.type_spec import TensorSpec
from runnel.eager.wrap_function import UnliftableError, wrap_function
from runnel.ops import variables
from runnel.saved_model import meta_graphs, metrics
from runnel.saved_model.asset import Asset
from runnel.saved_model.names_of_loads import renamed
from runnel.saved_model.signatures import _SignatureMap

_LOAD_V1_V2_LABEL = "load_v1_in_v2"
TRAIN_SIGNATURE = "__saved_model_train_op"
_numbers = itertools.count()


class _Initializer(CapturableResource):
    """Runs the initialization of a model, which fills tables, with the paths of its assets."""

    def __init__(self, function, assets):
        super().__init__()
        self._function, self._assets = function, assets

    def _create_resource(self):
        return convert.constant([], dtypes.float32)

    def _initialize(self):
        return self._function.run_operations(*[asset.asset_path for asset in self._assets])


class _Variables:
    """The variables of a MetaGraphDef: each is made once, without a value, and captured by the graph."""

    def __init__(self, meta):
        self.made = {}  # name of the handle in the graph -> variable
        self.local = []  # those that the model's own initialization gives values
        self._nodes = {node.name: node for node in meta.graph_def.node}
        version = meta.meta_info_def.tensorflow_version.split(".")[:2]
        self._has_trainable = not all(part.isdigit() for part in version) or [int(part) for part in version] >= [1, 9]
        keys = sorted(meta.collection_def, key=lambda key: (key != framework.GraphKeys.GLOBAL_VARIABLES, key))
        trainable = set(self._collection(meta, framework.GraphKeys.TRAINABLE_VARIABLES))
        for key in keys:
            if is_of_variables(key):
                for data in self._collection(meta, key):
                    self._make(message_class("VariableDef").FromString(data), data in trainable, key == framework.GraphKeys.LOCAL_VARIABLES)

    @staticmethod
    def _collection(meta, key):
        return list(meta.collection_def[key].bytes_list.value) if key in meta.collection_def else []

    def _make(self, proto, is_trainable, is_local):
        node = self._nodes.get(proto.variable_name.split(":")[0])
        if proto.variable_name in self.made or not proto.is_resource or node is None or "dtype" not in node.attr:
            return
        shape = node.attr["shape"].shape
        self.made[proto.variable_name] = variables.created(_uninitialized, {
            "shape": None if shape.unknown_rank else [None if d.size < 0 else d.size for d in shape.dim],
            "dtype": dtypes.as_dtype(node.attr["dtype"].type), "name": node.name,
            "trainable": proto.trainable if self._has_trainable else is_trainable,
            "synchronization": proto.synchronization, "aggregation": proto.aggregation})
        if is_local:
            self.local.append(self.made[proto.variable_name])


def _uninitialized(**kwargs):
    from runnel.ops.resource_variable import UninitializedVariable
    return UninitializedVariable(**kwargs)


def _initialize_by(operation, made, collection):
    """In a graph: initializing these variables runs the operation."""
    for variable in made:
        variable._initializer_op = operation
        framework.add_to_collection(collection, variable)


class _Loader:
    """One MetaGraphDef of a SavedModel, as functions."""

    def __init__(self, meta, folder):
        self._folder = os.fsdecode(folder)
        self._meta = renamed(meta, "_load_%d" % next(_numbers))
        self._variables = _Variables(self._meta)
        self._wrapped = wrap_function(self._fill, [], name="model")
        self._wrapped.graph.variables = tuple(self._variables.made.values())

    def _fill(self):
        from runnel.core.graph_io import import_graph_def
        graph = framework.get_default_graph()
        handles = {name: graph.capture(variable.handle) for name, variable in self._variables.made.items()}
        import_graph_def(self._meta.graph_def, name="", input_map={
            (name if ":" in name else name + ":0"): handle for name, handle in handles.items()} or None)

    def root(self):
        """Returns the model, with values in its variables and tables."""
        graph, root = self._wrapped.graph, AutoTrackable()
        restore = self._restore()
        if restore is not None:
            done = restore(os.path.join(self._folder, "variables", "variables"))
            if not framework.executing_eagerly():
                _initialize_by(done, [v for v in self._variables.made.values() if all(v is not local for local in self._variables.local)],
                               framework.GraphKeys.GLOBAL_VARIABLES)
            root.restore = restore
        feeds = meta_graphs._asset_feeds(self._meta, self._folder, None)
        assets = [Asset(path) for path in feeds.values()]
        root.asset_paths = assets
        op = self._init_op()
        if op is not None:
            initializer = _Initializer(self._wrapped.prune([graph.as_graph_element(name) for name in feeds], [op]), assets)
            done = initializer._initialize()
            if not framework.executing_eagerly():
                framework.add_to_collection(framework.GraphKeys.TABLE_INITIALIZERS, done)
                _initialize_by(done, self._variables.local, framework.GraphKeys.LOCAL_VARIABLES)
            root.initializer = initializer
        root.signatures = _SignatureMap(self._signatures())
        root.variables, root.graph, root.prune = list(self._variables.made.values()), graph, self._wrapped.prune
        return root

    def _init_op(self):
        with self._wrapped.graph.as_default():
            return meta_graphs._init_op(self._meta, None)

    def _restore(self):
        """Returns a function that restores a checkpoint, given its path; None if the graph restores nothing."""
        if not self._meta.HasField("saver_def"):
            return None
        graph, saver = self._wrapped.graph, self._meta.saver_def
        function = self._wrapped.prune([graph.as_graph_element(saver.filename_tensor_name)], [graph.as_graph_element(saver.restore_op_name)])

        def restore(path, options=None):
            return function.run_operations(convert.constant(os.fsdecode(path)))
        return restore

    def _signatures(self):
        found = {}
        for key, definition in self._meta.signature_def.items():
            if key not in (meta_graphs._INIT_SIGNATURE, TRAIN_SIGNATURE):
                try:
                    found[key] = self._signature(definition)
                except UnliftableError as error:
                    raise UnliftableError(
                        "A SavedModel signature needs an input for each placeholder the signature's outputs use. An output for signature '%s' "
                        "depends on a placeholder which is not an input (i.e. the placeholder is not fed a value).\n\n%s" % (key, error)) from None
        return found

    def _signature(self, definition):
        graph = self._wrapped.graph
        feeds, names = [], []
        for name, info in sorted(definition.inputs.items()):
            feed = meta_graphs.get_tensor_from_tensor_info(info, graph)
            parts = nest.flatten(feed, expand_composites=True)
            feeds += parts
            if info.WhichOneof("encoding") == "coo_sparse":
                names += ["%s_%s" % (name, part) for part in ("indices", "values", "dense_shape")]
            else:
                names += [name] if len(parts) == 1 else ["%s_component_%d" % (name, i) for i in range(len(parts))]
        fetches = {name: meta_graphs.get_tensor_from_tensor_info(info, graph) for name, info in sorted(definition.outputs.items())}
        made = self._wrapped.prune(
            feeds, fetches, input_signature=((), {name: TensorSpec(x.shape, x.dtype, name=name) for name, x in zip(names, feeds)}))
        made._arg_keywords = names
        for x, info in zip(made.graph.outputs, [info for _, info in sorted(definition.outputs.items())] if len(made.graph.outputs) == len(fetches) else ()):
            if info.WhichOneof("encoding") == "name" and not info.tensor_shape.unknown_rank:
                x.set_shape([None if d.size < 0 else d.size for d in info.tensor_shape.dim])  # what the file says may be more than what is inferred
        made._num_positional_args = 1 if len(names) == 1 else 0
        return made


def load(meta, folder):
    """Returns the model of a MetaGraphDef without objects: `signatures`, `variables`, `prune`, `graph`, `restore`."""
    metrics.IncrementReadApi(_LOAD_V1_V2_LABEL)
    with framework.init_scope():
        root = _Loader(meta, folder).root()
    metrics.IncrementRead(write_version="1")
    return root
