"""tensorflow.python.* and tensorflow.core.*: the paths behind the public names.

Scripts import them (`from tensorflow.python.framework import ops`), and TensorFlow's own tests import nothing else. A
module there is a view: it looks for a name in the modules that implement the path here, then among the public names,
then among the ops. A name that is found nowhere is absent.
"""

import importlib.util
import inspect
import sys
import types

from runnel.alias import tf2_paths

# Which modules of runnel stand for a path's last part, where that is not a file of the same name.
_HOMES = {}
for _row in """
ops: core.framework core.gradients_impl core.meta_graph estimator.estimator_names
constant_op: core.convert
errors_impl: errors
random_seed: ops.random_ops
importer: core.graph_io
indexed_slices: core.framework
sparse_tensor: core.framework
tensor: core.framework core.type_spec core.composite_specs
composite_tensor: core.type_spec
type_spec: core.type_spec
type_spec_registry: core.type_spec
tensor_spec: core.type_spec core.composite_specs alias.for_keras.spec_names
tensor_conversion: core.convert
tensor_conversion_registry: core.convert
device: core.device_spec
googletest: test
benchmark: test
tf_logging: logging
array_ops_stack: ops.array_ops
control_flow_ops: ops.control_flow
cond: ops.control_flow
control_flow_case: alias.flow_names ops.control_flow
control_flow_switch_case: ops.control_flow
control_flow_assert: ops.check_ops
while_loop: ops.control_flow
control_flow_v2_toggles: ops.control_flow
map_fn: ops.functional_ops
while_v2: alias.flow_names ops.control_flow
resource_variable_ops: ops.resource_variable
ref_variable: ops.variables
variables: ops.variables ops.variable_scopes
variable_v1: ops.variables
variable_scope: ops.variable_scopes
variable_spec: ops.variables
partitioned_variables: ops.partitioned_variables ops.variable_scopes
data_flow_ops: ops.data_flow
stateless_random_ops: ops.stateless_random
candidate_sampling_ops: nn.nn_sampling
ctc_ops: nn
nn_impl: nn
nn_fused_batch_norm_grad: nn
nn_grad: nn
nn_ops: nn.nn_ops nn.nn_conv nn
rnn_cell_impl: nn.rnn_cell
image_ops: image
image_ops_impl: image
linalg_ops_impl: linalg
linalg_ops: linalg.linalg_ops linalg
linalg_impl: linalg linalg.linalg_ops
linear_operator_util: alias.linalg_names linalg.linear_operator
linear_operator_addition: linalg.linear_operator_made
bitwise_ops: bitwise
collective_ops: ops.collective_ops
sets_impl: sets
manip_ops: manip
metrics_impl: metrics.metrics_impl metrics.metrics_at_k
losses_impl: losses.losses_impl
losses_util: losses.losses_impl
logging_ops: ops.special_ops
special_math_ops: ops.special_ops linalg.linalg_ops
histogram_ops: ops.special_ops
tensor_array_ops: ops.tensor_array
tensor_array_grad: ops.tensor_array
gradient_checker: test
gradient_checker_v2: alias.gradient_checker_v2
gradients: core.gradients_impl
gradients_util: core.gradients_impl
unconnected_gradients: core.gradients_impl
custom_gradient: core.gradients_impl
proto_ops: io
list_ops: alias.list_ops raw_ops
bincount_ops: ops.math_ops
session_ops: core.session
common_shapes: core.tensor_shape
checkpoint_utils: train
inplace_ops: ops.array_ops
confusion_matrix: ops.special_ops ops.weights_broadcast_ops
sort_ops: ops.special_ops
numerics: ops.special_ops
ragged_factory_ops: ragged
segment_id_ops: ragged
standard_ops: ops.array_ops
state_grad: ops.state_ops
math_grad: ops.math_ops
array_grad: ops.array_ops
init_ops_v2: initializers ops.init_ops
gradient_descent: train
adam: train
adagrad: train
adagrad_da: train
adadelta: train
ftrl: train
momentum: train
rmsprop: train
proximal_adagrad: train
proximal_gradient_descent: train
training_ops: raw_ops
input: train.train_input
queue_runner_impl: train.queue_runner
training: train
checkpoint_state_pb2: core.graph_io
device_lib: core.session
context: eager.context alias.test_util
function: eager.def_function
polymorphic_function: eager.def_function
module: eager.def_function
dataset_ops: data.dataset data.iterators data
iterator_ops: data.iterators data
readers: data.file_datasets data
tf_record: python_io
tf_export: alias.for_keras.export_names
tf_decorator: alias.util.decorators
tf_contextlib: alias.util.util_names
tf_should_use: alias.util.should_use
function_utils: alias.util.util_names
keyword_args: alias.util.util_names
numpy_compat: alias.numpy_compat
object_identity: core.identity
lazy_loader: alias.util.util_names
all_util: alias.util.util_names
dispatch: core.fallbacks core.dispatch alias.util.util_names
deprecation: alias.util.deprecation_names alias.util.util_names core.deprecation
builder: saved_model.meta_graphs saved_model
builder_impl: saved_model.meta_graphs saved_model
loader: saved_model.meta_graphs saved_model
loader_impl: saved_model.meta_graphs saved_model
load: saved_model.meta_graphs saved_model
save: saved_model.meta_graphs saved_model
signature_constants: saved_model.meta_graphs saved_model
signature_def_utils: saved_model.meta_graphs saved_model
signature_def_utils_impl: saved_model.meta_graphs saved_model
tag_constants: saved_model.meta_graphs saved_model
simple_save: saved_model.meta_graphs saved_model
utils: saved_model.meta_graphs saved_model
writer: summary.event_writer summary.summary_ops summary.plugin_asset summary
writer_cache: summary.event_writer summary.summary_ops summary
plugin_asset: summary.plugin_asset
base: layers.core
input_spec: layers.core
base_layer: keras.layers
tf_utils: keras.graph_utils
conv_utils: keras.conv_utils
generic_utils: keras.utils
feature_column_v2: feature_column.feature_columns feature_column.feature_kinds
core: layers.core
convolutional: layers.core
normalization: layers.core
pooling: layers.core
""".strip().splitlines():
    _path, _, _modules = _row.partition(":")
    _HOMES[_path] = _modules.split()

# The same for whole paths, where the last part alone is ambiguous.
_PATHS = {}
for _row in """
python.keras.engine.training: keras.models
compiler.tf2xla.python.xla: ops.xla_ops
python.trackable.autotrackable: core.trackable
python.trackable.data_structures: core.data_structures
python.data.experimental.ops.distribute: data.sharding data.experimental
python.framework.config: config
python.ops.linalg.sparse.sparse_csr_matrix_ops: raw_ops
python.tpu.tpu_function: alias.tpu_function
python.autograph: autograph.impl.api autograph autograph.experimental
python.autograph.utils.ag_logging: autograph.ag_logging
python.layers.utils: keras.conv_utils keras.graph_utils
python.keras.engine.base_layer: keras.layers
python.keras.utils.losses_utils: keras.losses_utils
python.keras.optimizer_v2.*: keras.optimizers estimator.estimator_names
python.keras.layers.*: keras.layers
python.feature_column.feature_column: feature_column.feature_models feature_column.feature_columns feature_column.feature_kinds
python.feature_column.feature_column_v2: feature_column.feature_models feature_column.feature_columns feature_column.feature_kinds
python.feature_column.feature_column_lib: feature_column.feature_models feature_column.feature_columns feature_column.feature_kinds
python.feature_column.dense_features: keras.layers
python.feature_column.dense_features_v2: keras.layers
python.feature_column.utils: feature_column.feature_models
python.saved_model.constants: saved_model.meta_graphs saved_model
python.saved_model.utils_impl: saved_model.meta_graphs saved_model
python.saved_model.model_utils: saved_model.export_outputs
python.saved_model.model_utils.export_output: saved_model.export_outputs
python.saved_model.model_utils.export_utils: saved_model.export_outputs
python.saved_model.model_utils.mode_keys: saved_model.export_outputs
python.distribute.*: distribute
python.summary.summary_iterator: train.training_util
python.training.basic_loops: train.supervisor
python.training.device_setter: train.server_lib
python.training.warm_starting_util: train.warm_starting
python.training.tracking.*: core.module train.checkpoint
python.util.compat_internal: compat
python.util.deprecation: alias.util.deprecation_names alias.util.util_names core.deprecation estimator.estimator_names
python.eager.monitoring: estimator.estimator_names
python.eager.wrap_function: eager.wrap_function
python.framework.function: eager.defun
python.framework.tensor_util: core.tensor_util core.convert
python.framework.smart_cond: alias.graph_names ops.control_flow
python.framework.func_graph: eager.func_graph eager.concrete_function estimator.estimator_names eager.tracing eager.def_function
python.ops.summary_ops_v2: summary.graph_writers summary.writers summary.summary_ops summary
python.ops.cond_v2: ops.control_flow
python.ops.control_flow_ops: ops.control_flow compat.v2.internal estimator.estimator_names
python.ops.resource_variable_ops: ops.resource_variable alias.for_keras.variable_names estimator.estimator_names
python.platform.test: test
python.tpu.tensor_tracer: estimator.estimator_names
""".strip().splitlines():
    _path, _, _modules = _row.partition(":")
    _PATHS[_path] = _modules.split()

# Folders of modules that Runnel lacks. Packages that import from them work as long as they do not call what they import.
_ABSENT_FOLDERS = tuple("""compiler.xla core.kernels core.kernels.boosted_trees core.protobuf.tpu
python.autograph.impl.testing python.keras.saving python.tpu python.tpu.ops""".split())
_ABSENT = tuple("""compiler.xla core.kernels core.protobuf.tpu python.autograph.impl.testing python.keras.saving python.ops.batch_ops
python.ops.boosted_trees_ops python.ops.clustering_ops python.ops.gen_sdca_ops python.tpu""".split())

# Namespaces in which a public name is looked for, in this order.
_PUBLIC = ("", "nn", "math", "linalg", "strings", "image", "sparse", "random", "io", "train", "losses",
           "metrics", "data", "summary", "debugging", "errors", "test", "initializers", "layers",
           "saved_model", "compat", "raw_ops")

_PUBLIC_V2 = tuple("compat.v2" + place for place in ("", ".nn", ".math", ".strings", ".image", ".sparse", ".summary", ".debugging", ".data", ".io"))

_PACKAGES = ("python", "core", "python.framework", "python.ops", "python.platform", "python.training",
             "python.client", "python.eager", "python.util", "python.lib", "python.lib.io",
             "python.lib.core", "python.saved_model", "python.data", "python.data.ops",
             "python.data.kernel_tests", "python.data.util", "python.layers", "python.keras",
             "python.keras.engine", "python.keras.utils", "python.keras.layers", "python.feature_column", "python.debug.wrappers",
             "python.debug.lib",
             "python.summary", "python.summary.writer", "python.compat", "python.tools",
             "python.module", "python.debug", "python.eager.polymorphic_function",
             "python.trackable", "python.checkpoint", "python.ops.losses", "python.ops.linalg",
             "python.ops.distributions", "python.ops.ragged", "python.profiler",
             "python.keras.optimizer_v2", "python.distribute",
             "python.training.tracking",
             "core.framework", "core.protobuf", "core.example", "core.util", "core.lib",
             "compiler", "compiler.xla", "compiler.xla.service", "compiler.tf2xla", "compiler.tf2xla.python",
             "python.ops.linalg.sparse", "python.data.experimental",
             "python.data.experimental.ops", "tools", "tools.docs", *tf2_paths.PACKAGES)
_PATHS.update({path: homes for path, homes in tf2_paths.PATHS.items() if path not in _PATHS or homes})


def _find(names, name):
    """Returns (whether the name was found, its value). Modules of runnel do not count: they have paths of their own."""
    for home in names:
        value = getattr(importlib.import_module("runnel." + home if home else "runnel"), name, _find)
        if value is not _find and not (isinstance(value, types.ModuleType) and value.__name__.startswith("runnel")):
            from runnel.ragged import ragged_functions, ragged_tensor  # noqa: F401  teaches the functions
            return True, ragged_functions.taught(value)
    return False, None


class _View(types.ModuleType):
    """A module whose names are found elsewhere, and then cached.

    "name_v1" is the public name here; the ops "Sum" and "Abs" are "_sum" and "_abs".
    """

    def __init__(self, path, homes):
        super().__init__("tensorflow." + path)
        self.__path__ = []
        self._homes = homes
        self._patched = {}  # name -> (module, value) of what a test has replaced

    def __setattr__(self, name, value):
        """Replaces a name where it is implemented, too: tests replace functions of a module to see that they are called."""
        if (name == "__version__" or not name.startswith("__")) and "_patched" in self.__dict__ and not name.startswith("tensorflow"):
            for home in self._homes:
                module = importlib.import_module("runnel." + home if home else "runnel")
                if name in vars(module) and not isinstance(value, types.ModuleType):
                    self._patched.setdefault(name, (module, vars(module)[name]))
                    setattr(module, name, value)
                    break
        super().__setattr__(name, value)

    def __delattr__(self, name):
        super().__delattr__(name)
        if name in self._patched:
            module, value = self._patched.pop(name)
            setattr(module, name, value)

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__version__", "__git_version__", "__compiler_version__") or name in ("_homes", "_patched"):
            raise AttributeError(name)
        for known in (name, name.removesuffix("_v1"), name.removeprefix("_")):
            found, value = _find(self._homes, known)
            if found:
                return self._found(name, value)
        for known in dict.fromkeys((name.removesuffix("_v2"), name)):  # what only TensorFlow 2 has comes last
            found, value = _find(_PUBLIC_V2, known)
            if found:
                return self._found(name, value)
        found, value = _find(("alias.op_names",), name)
        if found:
            return value
        raise AttributeError("%s has no %r in Runnel: see doc/python.md" % (self.__name__, name))

    def _found(self, name, value):
        weak_functions = sys.modules.get("runnel.experimental_numpy.weak_functions")
        if weak_functions is not None:
            value = weak_functions.inner(self.__name__, name, value)
        dispatch = sys.modules.get("runnel.core.dispatch")
        if dispatch is not None:
            value = dispatch.inner(name, value)
        self.__dict__[name] = value
        return value


def forget_found():
    """Makes the views look functions up again: others have taken their places."""
    for view in list(sys.modules.values()):
        if isinstance(view, _View):
            for name, value in list(vars(view).items()):
                if not name.startswith("__") and name not in ("_homes", "_patched", *view._patched) and callable(value):
                    del view.__dict__[name]


def forget_named(names):
    """Makes the views look functions of these names up again."""
    for view in list(sys.modules.values()):
        if isinstance(view, _View):
            for name in names & vars(view).keys() - view._patched.keys():
                del view.__dict__[name]


def replace_found(function, wrapper):
    """Puts a wrapper in place of a function in the views that have it."""
    for view in list(sys.modules.values()):
        if isinstance(view, _View):
            view.__dict__.update([(name, wrapper) for name, value in vars(view).items() if value is function])


class _Package(types.ModuleType):
    """A folder of modules, which are imported when they are used."""

    def __init__(self, path):
        super().__init__("tensorflow." + path)
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return importlib.import_module("%s.%s" % (self.__name__, name))
        except ModuleNotFoundError as error:
            raise AttributeError(str(error)) from None


class _Absent(types.ModuleType):
    """A module of what Runnel lacks. Its names are classes without instances: `isinstance` is False, calls fail."""

    def __init__(self, path):
        super().__init__("tensorflow." + path)
        self.__path__ = []

    def __getattr__(self, name):
        where = "%s.%s" % (self.__name__, name)
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.removeprefix("tensorflow.") in _ABSENT_FOLDERS:
            return importlib.import_module(where)

        def refuse(cls, *args, **kwargs):
            raise NotImplementedError("%s is not in Runnel: see doc/python.md" % where)

        value = type(name, (), {"__new__": refuse, "__module__": self.__name__})
        setattr(self, name, value)
        return value


class _Messages(types.ModuleType):
    """tensorflow.core.protobuf.config_pb2 and others: message classes by name."""

    def __init__(self, path):
        super().__init__("tensorflow." + path)
        if "google.protobuf.descriptor_pool" in sys.modules:  # for files of other packages that import this one
            from runnel.core import message_descriptors
            message_descriptors.add_to_pool(path.rpartition(".")[2].removesuffix("_pb2"))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        from runnel.core import protobuf
        try:
            if name.startswith("DT_"):  # the values of an enumeration are names of its file
                return protobuf._enum_values("DataType")[name]
            if name.startswith("TFT_"):
                return protobuf._enum_values("FullTypeId")[name]
            value = getattr(protobuf, name)
        except (AttributeError, KeyError):
            raise AttributeError("%s has no %r in Runnel" % (self.__name__, name)) from None
        setattr(self, name, value)
        return value


class _Inspect(types.ModuleType):
    """Python's inspect, which also handles decorated functions."""

    def __init__(self, path):
        super().__init__("tensorflow." + path)

    def __getattr__(self, name):
        from runnel.alias.util import decorators
        return inspect if name == "_inspect" else decorators.__dict__.get(name) or getattr(inspect, name)


def module(path):
    """Returns the module of "python.framework.ops". Raises ModuleNotFoundError if nothing here stands for it."""
    leaf = path.rpartition(".")[2]
    if path.startswith("python.keras.") and path.count(".") == 2 and importlib.util.find_spec("runnel." + path[7:]):
        return _View(path, (path[7:],))
    if path in _PACKAGES:
        return _Package(path)
    is_test = any(path.startswith(package + ".") for package in tf2_paths.TEST_PACKAGES)
    if path not in _PATHS and not is_test and any(path == absent or path.startswith(absent + ".") for absent in _ABSENT):
        return _Absent(path)
    if path.startswith("python.autograph.") and path not in _PATHS and not is_test:
        found = importlib.util.find_spec("runnel." + path[7:])
        if found is not None:
            return _View(path, (path[7:],)) if found.submodule_search_locations is None else _Package(path)
    if leaf.endswith("_pb2"):
        return _Messages(path)
    if leaf == "tf_inspect":
        return _Inspect(path)
    if leaf.startswith("gen_") and leaf.endswith("_ops"):
        return _View(path, ("raw_ops",))
    homes = _PATHS[path] if path in _PATHS else _PATHS.get(path.rpartition(".")[0] + ".*") or _HOMES.get(leaf)
    if homes is None and importlib.util.find_spec("runnel." + leaf):
        homes = [leaf]
    if homes is None:
        raise ModuleNotFoundError("tensorflow.%s is private to TensorFlow, and Runnel has no "
                                  "counterpart" % path, name="tensorflow." + path)
    return _View(path, tuple(homes) + _PUBLIC)


def contrib_module(parts):
    """Returns the module of "contrib.layers.python.layers.utils", given as a list of parts."""
    known = ["contrib." + name for name in (parts[-1], "layer_util" if parts[1] == "layers" else None, parts[1]) if name]
    homes = tuple(home for home in known if importlib.util.find_spec("runnel." + home))
    if "contrib." + parts[1] not in homes:
        raise ModuleNotFoundError("No module named 'tensorflow.contrib.%s' in Runnel: see doc/python.md" % parts[1],
                                  name="tensorflow." + ".".join(parts))
    return _ContribFolder(".".join(parts), homes) if len(parts) < 5 else _View(".".join(parts), homes)


class _ContribFolder(_View):
    """A folder behind tf.contrib: modules of a name come before functions."""

    def __getattr__(self, name):
        if not name.startswith("__") and importlib.util.find_spec("runnel.contrib." + name):
            return importlib.import_module("%s.%s" % (self.__name__, name))
        return super().__getattr__(name)
