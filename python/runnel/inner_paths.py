"""tensorflow.python.* and tensorflow.core.*: the paths behind the public names.

Scripts import them (`from tensorflow.python.framework import ops`), and TensorFlow's own tests import
nothing else. A module there is a view: a name is looked for in the module of ours that the path is
about, then among the public names, then among the ops. What is not found there is absent here.
"""

import importlib.util
import inspect
import types

# Which modules of runnel stand for a path's last part, where that is not a module of the same name.
_HOMES = {}
for _row in """
ops: framework gradients_impl
constant_op: convert
errors_impl: errors
random_seed: random_ops
importer: graph_io
indexed_slices: framework
sparse_tensor: framework
tensor: framework
tensor_spec: def_function
tensor_conversion: convert
tensor_conversion_registry: convert
device: device_spec
googletest: test
tf_logging: logging
array_ops_stack: array_ops
control_flow_ops: control_flow
cond: control_flow
control_flow_case: control_flow
control_flow_switch_case: control_flow
control_flow_assert: check_ops
while_loop: control_flow
control_flow_v2_toggles: control_flow
map_fn: functional_ops
while_v2: control_flow
resource_variable_ops: resource_variable
ref_variable: variables
variable_v1: variables
variable_scope: variable_scopes
variable_spec: variables
partitioned_variables: variable_scopes
data_flow_ops: data_flow
stateless_random_ops: stateless_random
candidate_sampling_ops: nn_sampling
ctc_ops: nn
nn_impl: nn
nn_fused_batch_norm_grad: nn
nn_grad: nn
nn_ops: nn_ops nn_conv nn
rnn_cell_impl: rnn_cell
image_ops: image
image_ops_impl: image
linalg_ops_impl: linalg
linalg_ops: linalg_ops linalg
linalg_impl: linalg
bitwise_ops: bitwise
sets_impl: sets
manip_ops: manip
metrics_impl: metrics
losses_impl: losses
losses_util: losses
logging_ops: special_ops
special_math_ops: special_ops linalg_ops
histogram_ops: special_ops
tensor_array_ops: tensor_array
tensor_array_grad: tensor_array
gradient_checker: test
gradient_checker_v2: test_util
gradients: gradients_impl
gradients_util: gradients_impl
unconnected_gradients: gradients_impl
custom_gradient: gradients_impl
proto_ops: io
list_ops: raw_ops
bincount_ops: math_ops
session_ops: session
common_shapes: tensor_shape
checkpoint_utils: train
inplace_ops: array_ops
confusion_matrix: special_ops
weights_broadcast_ops: metrics
sort_ops: special_ops
numerics: special_ops
standard_ops: array_ops
state_grad: state_ops
math_grad: math_ops
array_grad: array_ops
init_ops_v2: initializers
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
input: train_input
queue_runner_impl: queue_runner
training: train
checkpoint_state_pb2: graph_io
device_lib: session
timeline: tracing
context: eager test_util
function: def_function
polymorphic_function: def_function
module: def_function
dataset_ops: data
iterator_ops: data
readers: data
tf_record: python_io
tf_export: deprecation
tf_decorator: deprecation
builder: saved_model
builder_impl: saved_model
loader: saved_model
loader_impl: saved_model
load: saved_model
save: saved_model
signature_constants: saved_model
signature_def_utils: saved_model
signature_def_utils_impl: saved_model
tag_constants: saved_model
simple_save: saved_model
utils: saved_model
writer: summary
writer_cache: summary
plugin_asset: summary
base: layers
core: layers
convolutional: layers
normalization: layers
pooling: layers
""".strip().splitlines():
    _path, _, _modules = _row.partition(":")
    _HOMES[_path] = _modules.split()

# Where public names are, in the order in which they are asked.
_PUBLIC = ("", "nn", "math", "linalg", "strings", "image", "sparse", "random", "io", "train", "losses",
           "metrics", "data", "summary", "debugging", "errors", "test", "initializers", "layers",
           "saved_model", "compat", "raw_ops")

_PACKAGES = ("python", "core", "python.framework", "python.ops", "python.platform", "python.training",
             "python.client", "python.eager", "python.util", "python.lib", "python.lib.io",
             "python.lib.core", "python.saved_model", "python.data", "python.data.ops",
             "python.data.kernel_tests", "python.data.util", "python.layers", "python.keras",
             "python.summary", "python.summary.writer", "python.compat", "python.tools",
             "python.module", "python.debug", "python.eager.polymorphic_function",
             "python.trackable", "python.checkpoint", "python.ops.losses", "python.ops.linalg",
             "python.ops.distributions", "python.ops.ragged", "python.profiler",
             "core.framework", "core.protobuf", "core.example", "core.util", "core.lib")


def _find(names, name):
    """(whether there is such a name, what it is). Modules do not count: they have paths."""
    for home in names:
        value = getattr(importlib.import_module("runnel." + home if home else "runnel"), name, _find)
        if value is not _find and not isinstance(value, types.ModuleType):
            return True, value
    return False, None


class _View(types.ModuleType):
    """A module whose names are found elsewhere, and kept once they were found.

    "name_v1" is what the public name is here; the ops "Sum" and "Abs" are called "_sum" and "_abs".
    """

    def __init__(self, path, homes):
        super().__init__("tensorflow." + path)
        self.__path__ = []
        self._homes = homes

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        for known in (name, name.removesuffix("_v1"), name.removeprefix("_")):
            found, value = _find(self._homes, known)
            if found:
                setattr(self, name, value)
                return value
        raise AttributeError("%s has no %r in Runnel: see doc/python.md" % (self.__name__, name))


class _Package(types.ModuleType):
    """A folder of modules: they are imported as they are named."""

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


class _Messages(types.ModuleType):
    """tensorflow.core.protobuf.config_pb2 and its like: message classes, found by their names."""

    def __init__(self, path):
        super().__init__("tensorflow." + path)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        from runnel import protobuf
        try:
            value = getattr(protobuf, name)
        except (AttributeError, KeyError):
            raise AttributeError("%s has no %r in Runnel" % (self.__name__, name)) from None
        setattr(self, name, value)
        return value


def module(path):
    """The module of "python.framework.ops"; ModuleNotFoundError if nothing here stands for it."""
    leaf = path.rpartition(".")[2]
    if path in _PACKAGES:
        return _Package(path)
    if leaf.endswith("_pb2"):
        return _Messages(path)
    if leaf == "tf_inspect":
        return inspect
    if leaf.startswith("gen_") and leaf.endswith("_ops"):
        return _View(path, ("raw_ops",))
    homes = _HOMES.get(leaf) or ([leaf] if importlib.util.find_spec("runnel." + leaf) else None)
    if homes is None:
        raise ModuleNotFoundError("tensorflow.%s is private to TensorFlow, and nothing in Runnel "
                                  "stands for it" % path, name="tensorflow." + path)
    return _View(path, tuple(homes) + _PUBLIC)
