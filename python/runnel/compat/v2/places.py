"""Where the names of TensorFlow 2 are implemented.

A name is looked for in HOMES, then it is the name of 1.x: the same path, or that in ELSEWHERE, with the parameters of
signatures.py. Only the names of names.py exist.
"""

import importlib
import sys
import types

from runnel.compat.v2.names import NAMES
from runnel.compat.v2.signatures import PARAMETERS, RENAMED, with_parameters

VERSION = "2.21.0"  # of the API
PAGE = "doc/python_names_v2.md"

# Names of their own: "module: names", or "module @ namespace: names"; "here=there" renames.
HOMES = {}
for _row in """
compat.v2.functions: ones_like zeros_like random_normal_initializer random_uniform_initializer
compat.v2.functions: zeros_initializer ones_initializer constant_initializer inside_function cond while_loop
compat.v2.variable: Variable
compat.v2.image_functions @ image: extract_glimpse sample_distorted_bounding_box stateless_random_flip_left_right stateless_random_flip_up_down
compat.v2.image_functions @ image: stateless_random_brightness stateless_random_contrast stateless_random_hue stateless_random_saturation
compat.v2.image_functions @ image: stateless_random_crop stateless_sample_distorted_bounding_box
compat.v2.io_functions @ io: decode_raw
compat.v2.nn_functions @ nn: dilation2d erosion2d fractional_avg_pool fractional_max_pool
compat.v2.test_functions @ test: compute_gradient
compat.v2.scopes: name_scope get_current_name_scope
compat.v2.string_functions @ strings: reduce_join
ragged.ragged_strings @ strings: split
ops.generators @ random: Algorithm Generator create_rng_state get_global_generator set_global_generator
ops.generators @ random.experimental: Algorithm Generator create_rng_state get_global_generator set_global_generator
compat.v2.places: __version__=VERSION version.VERSION=VERSION
core.type_spec @ __internal__: CompositeTensor
eager.context @ __internal__: EagerTensor
eager.func_graph @ __internal__: FuncGraph
core.framework @ __internal__: SymbolicTensor=Tensor
compat.v2.internal @ __internal__: get_enclosing_xla_context get_name_scope is_tfrt_enabled execute_fn_for_device register_load_model_function
compat.v2.internal @ __internal__: register_call_context_function register_clear_session_function register_get_session_function
alias.util_names @ __internal__.decorator: make_decorator unwrap
alias.util_names @ __internal__.dispatch: add_dispatch_support
compat.v2.internal @ __internal__.distribute: strategy_supports_no_merge_call
compat.v2.internal @ __internal__.distribute.interim: maybe_merge_call
compat.v2.internal @ __internal__.eager_context: eager_mode get_config get_device_name set_soft_device_placement
eager.def_function @ __internal__.function: Function
compat.v2.internal @ __internal__.mixed_precision: register_loss_scale_wrapper
compat.v2.internal @ __internal__.monitoring: BoolGauge
nest @ __internal__.nest: flatten_up_to map_structure_up_to yield_flat_paths=yield_flattened_paths
ops.weights_broadcast_ops @ __internal__.ops: broadcast_weights
compat.v2.internal @ __internal__.ops: is_resource_variable
saved_model.structured_value @ __internal__.saved_model: encode_structure=encode decode_proto=decode
compat.v2.internal @ __internal__.smart_cond: smart_cond
alias.tf2 @ __internal__.tf2: enabled
core.trackable @ __internal__.tracking: AutoTrackable Trackable TrackableReference no_automatic_dependency_tracking sticky_attribute_assignment
core.data_structures @ __internal__.tracking: TrackableDataStructure=_Container wrap=wrap_or_unwrap
train.moving_averages @ __internal__.train: assign_moving_average
train.checkpoint_management @ __internal__.train: update_checkpoint_state
compat.v2.internal @ __internal__.train: is_mixed_precision_graph_rewrite_enabled set_using_mixed_precision_policy
core.tensor_type @ __internal__.types: Tensor
data.dataset @ __internal__.types.data: Dataset
data.options @ data: ThreadingOptions
data.owned_iterator @ data: Iterator=OwnedIterator IteratorSpec NumpyIterator
data.dataset @ data: DatasetSpec
data.debug_mode @ data.experimental: enable_debug_mode
data.experimental @ data.experimental: dense_to_ragged_batch
train.checkpoint_options @ train: CheckpointOptions
data.optional: OptionalSpec
data.optional @ experimental: Optional
data.options @ data.experimental: AutoShardPolicy AutotuneAlgorithm AutotuneOptions DistributeOptions ExternalStatePolicy OptimizationOptions ThreadingOptions
core.trackable @ train: TrackableView
core.extension_type @ experimental: BatchableExtensionType ExtensionType ExtensionTypeBatchEncoder ExtensionTypeSpec
core.extension_type @ experimental.extension_type: as_dict
core.dispatch @ experimental: dispatch_for_api dispatch_for_binary_elementwise_apis dispatch_for_binary_elementwise_assert_apis
core.dispatch @ experimental: dispatch_for_unary_elementwise_apis unregister_dispatch_for
config @ config.experimental: enable_op_determinism
compat.v2.functions: einsum
compat.v2.functions @ linalg: einsum
experimental_numpy.promotion @ experimental.numpy: array asanyarray asarray ascontiguousarray promote_types result_type
experimental_numpy.elementwise @ experimental.numpy: abs absolute add allclose angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around
experimental_numpy.elementwise @ experimental.numpy: bitwise_and bitwise_not bitwise_or bitwise_xor cbrt ceil clip conj conjugate cos cosh deg2rad
experimental_numpy.elementwise @ experimental.numpy: divide divmod equal exp exp2 expm1 fabs fix float_power floor floor_divide gcd greater
experimental_numpy.elementwise @ experimental.numpy: greater_equal heaviside hypot imag isclose iscomplex iscomplexobj isfinite isinf isnan isneginf
experimental_numpy.elementwise @ experimental.numpy: isposinf isreal isrealobj lcm less less_equal log log10 log1p log2 logaddexp logaddexp2
experimental_numpy.elementwise @ experimental.numpy: logical_and logical_not logical_or logical_xor maximum minimum mod multiply negative nextafter
experimental_numpy.elementwise @ experimental.numpy: not_equal positive power rad2deg real reciprocal remainder round sign signbit sin sinc sinh sqrt
experimental_numpy.elementwise @ experimental.numpy: square subtract tan tanh true_divide
experimental_numpy.creation @ experimental.numpy: arange copy diag diag_indices diagflat empty empty_like eye full full_like geomspace identity
experimental_numpy.creation @ experimental.numpy: linspace logspace meshgrid ones ones_like tri vander zeros zeros_like
experimental_numpy.shapes @ experimental.numpy: append atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to concatenate dsplit dstack
experimental_numpy.shapes @ experimental.numpy: expand_dims flatten flip fliplr flipud hsplit hstack moveaxis ndim pad ravel repeat reshape roll rot90
experimental_numpy.shapes @ experimental.numpy: shape size split squeeze stack swapaxes tile transpose vsplit vstack
experimental_numpy.reductions @ experimental.numpy: all amax amin any argmax argmin argsort average count_nonzero cumprod cumsum diff max mean min
experimental_numpy.reductions @ experimental.numpy: nanmean nanprod nansum prod ptp sort std sum var
experimental_numpy.products @ experimental.numpy: cross diagonal dot einsum inner kron matmul outer polyval tensordot trace tril triu vdot
experimental_numpy.indexing @ experimental.numpy: array_equal compress ix_ nonzero select take take_along_axis where
experimental_numpy.random_numbers @ experimental.numpy.random: poisson rand randint randn random seed standard_normal uniform
experimental_numpy.names @ experimental.numpy: bool_ complex128 complex64 complex_ e finfo float16 float32 float64 float_ iinfo inexact inf int16 int32 int64
experimental_numpy.names @ experimental.numpy: int8 int_ isscalar issubdtype ndarray newaxis object_ pi string_ uint16 uint32 uint64 uint8 unicode_
experimental_numpy.behavior @ experimental.numpy: experimental_enable_numpy_behavior
eager.forward @ autodiff: ForwardAccumulator
image.resizing_v2 @ image: ResizeMethod resize resize_with_pad
linalg.linalg_ops: eig eigvals
linalg.linalg_ops @ linalg: eig eigvals
nn.nn_v2 @ nn: convolution ctc_loss embedding_lookup gelu pool safe_embedding_lookup_sparse sigmoid_cross_entropy_with_logits
nn.nn_v2 @ nn.experimental: stateless_dropout
ops.sparse_v2 @ math: bincount=dense_bincount
ops.sparse_v2 @ sparse: add bincount map_values reduce_max reduce_sum
ops.stateless_random @ random: stateless_binomial=stateless_random_binomial stateless_gamma=stateless_random_gamma
ops.vectorized: vectorized_map
ragged.row_partition @ experimental: RowPartition
ragged.ragged_arrays @ ragged: cross cross_hashed
ragged.ragged_strings @ strings: split
saved_model.object_saving @ saved_model: save
eager.def_function @ types.experimental: GenericFunction=Function
ops.mdct_ops @ signal: inverse_mdct kaiser_bessel_derived_window mdct vorbis_window
ops.fft_nd @ signal: fftnd ifftnd irfftnd rfftnd
ops.stateless_random @ random: fold_in split stateless_parameterized_truncated_normal stateless_poisson=stateless_random_poisson
ops.stateless_random @ random.experimental: index_shuffle stateless_fold_in=fold_in stateless_shuffle stateless_split=split
eager.critical_section: CriticalSection
nn.sequence_labels @ nn: collapse_repeated ctc_unique_labels isotonic_regression
nn.sequence_labels @ nn.experimental: general_dropout
linalg.iterative @ linalg: banded_triangular_solve eigh_tridiagonal
linalg.iterative @ linalg.experimental: conjugate_gradient
config @ config.experimental: disable_mlir_bridge enable_mlir_bridge enable_tensor_float_32_execution reset_memory_stats tensor_float_32_execution_enabled
config @ debugging: disable_traceback_filtering enable_traceback_filtering get_log_device_placement is_traceback_filtering_enabled set_log_device_placement
config @ test.experimental: sync_devices
distribute @ types.experimental.distributed: Mirrored PerReplica
distribute @ distribute: CrossDeviceOps HierarchicalCopyAllReduce InputOptions NcclAllReduce OneDeviceStrategy ReductionToOneDevice RunOptions
distribute @ distribute: experimental_set_strategy
distribute @ distribute.experimental: ValueContext TPUStrategy
distribute.cluster_resolver @ distribute.cluster_resolver: ClusterResolver GCEClusterResolver KubernetesClusterResolver KubernetesExecutableLocation
distribute.cluster_resolver @ distribute.cluster_resolver: SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver TPUClusterResolver UnionResolver
distribute.multi_worker @ distribute.experimental: CollectiveCommunication=CommunicationImplementation CollectiveHints CommunicationImplementation
distribute.multi_worker @ distribute.experimental: CommunicationOptions MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy
distribute.central_storage @ distribute.experimental: CentralStorageStrategy
distribute.parameter_server @ distribute: ParameterServerStrategy
distribute.parameter_server @ distribute.experimental: ParameterServerStrategy
distribute.partitioners @ distribute.experimental.partitioners: FixedShardsPartitioner MaxSizePartitioner MinSizePartitioner Partitioner
distribute.coordinator @ distribute.coordinator: ClusterCoordinator PerWorkerValue=PerWorkerValues RemoteValue experimental_get_current_worker_index
distribute.coordinator @ distribute.experimental.coordinator: ClusterCoordinator PerWorkerValues RemoteValue
distribute.multi_worker @ distribute: MultiWorkerMirroredStrategy
core.trackable @ saved_model.experimental: TrackableResource
saved_model.object_loading @ saved_model: load
signal @ signal: kaiser_window
summary.kinds @ summary: histogram image scalar text
summary.writers @ summary: SummaryWriter create_file_writer create_noop_writer flush graph record_if should_record_summaries write
summary.writers @ summary.experimental: get_step set_step summary_scope write_raw_pb
""".strip().splitlines():
    _home, _, _names = _row.partition(": ")
    _module, _, _space = _home.partition(" @ ")
    for _name in _names.split():
        _here, _, _there = _name.partition("=")
        HOMES[_space and _space + "." + _here or _here] = (_module, _there or _here.rpartition(".")[2])

# Names that are in another place in 1.x.
ELSEWHERE = dict(item.split("=") for item in """
batch_to_space=batch_to_space_nd space_to_batch=space_to_batch_nd nn.space_to_batch=space_to_batch_nd
where=where_v2 nn.avg_pool=nn.avg_pool_v2 nn.max_pool=nn.max_pool_v2 random.set_seed=set_random_seed
nn.softmax_cross_entropy_with_logits=nn.softmax_cross_entropy_with_logits_v2
nn.ctc_beam_search_decoder=nn.ctc_beam_search_decoder_v2 nn.ctc_loss=nn.ctc_loss_v2
autodiff.GradientTape=GradientTape
""".split())

# Packages of their own, and modules that both faces share.
_KERAS = frozenset("losses metrics optimizers initializers".split())
_SHARED = {"raw_ops": "runnel.raw_ops", "compat": "runnel.compat"}

SPACES = {"", "experimental.dtensor"}  # every namespace, also those without names of their own
for _space in NAMES:
    _parts = _space.split(".")
    SPACES.update(".".join(_parts[:_i]) for _i in range(1, len(_parts) + 1))


def find(path):
    """Returns what "nn.dropout" is in 2.x. Raises AttributeError if it is absent."""
    if path in SPACES:
        return _namespace(path)
    if path in HOMES:
        module, name = HOMES[path]
        return getattr(importlib.import_module("runnel." + module), name)
    if path in _SHARED:
        return importlib.import_module(_SHARED[path])
    if path == "keras" or path in _KERAS:
        keras = _keras()
        return keras if path == "keras" else importlib.import_module("%s.%s" % (keras.__name__, path))
    space, _, name = path.rpartition(".")
    if name not in NAMES.get(space, ()):
        raise AttributeError(_why_absent(path))
    try:
        value = _of_v1(ELSEWHERE.get(path, path))
    except (AttributeError, ImportError):
        raise AttributeError("tf.%s of TensorFlow 2 is not in Runnel: %s lists the names" % (path, PAGE)) from None
    return with_parameters(value, name, PARAMETERS[path], RENAMED.get(path)) if path in PARAMETERS else value


def _of_v1(path):
    value = importlib.import_module("runnel")
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _why_absent(path):
    try:
        _of_v1(path)
    except (AttributeError, ImportError):
        return "TensorFlow 2 has no tf.%s: %s lists the names" % (path, PAGE)
    return "TensorFlow 2 has no tf.%s; tf.compat.v1.%s is of 1.x. %s lists the names" % (path, path, PAGE)


def _keras():
    """Returns Keras 3, which is a package of its own that imports tensorflow."""
    from runnel.alias import finder
    try:
        finder.install(is_v2=True)
        return importlib.import_module("keras._tf_keras.keras")
    except ModuleNotFoundError as error:
        raise ImportError("tf.keras is the package Keras 3 (pip install keras): %s" % error) from None


class _Namespace(types.ModuleType):
    """A module such as tf.nn."""

    def __init__(self, path):
        super().__init__("runnel.compat.v2." + path, "tf.%s of TensorFlow 2." % path)
        self.__path__ = []
        self._find, self._names = access(self, path)

    def __getattr__(self, name):
        return self._find(name)

    def __dir__(self):
        return self._names()


def _namespace(path):
    name = "runnel.compat.v2." + path
    if name not in sys.modules:
        sys.modules[name] = _Namespace(path)
    return sys.modules[name]


_found: list = []  # (module, name) of what was looked up


def forget_found():
    """Makes the modules look names up again: functions have been replaced by others that can do more."""
    for module, name in _found:
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
            delattr(module, name)
    _found.clear()


def _with_dispatch(value):
    dispatch = sys.modules.get("runnel.core.dispatch")
    return value if dispatch is None else dispatch.replacement(value)


def replace_found(function, wrapper):
    """Puts a wrapper in place of a function in the modules that have it."""
    for module, name in _found:
        if vars(module).get(name) is function:
            setattr(module, name, wrapper)


def access(module, space):
    """Returns (__getattr__, __dir__) of a module for the names of a namespace. Names that are found stay in the module."""
    prefix = space and space + "."
    inner = {s[len(prefix):] for s in SPACES if s.startswith(prefix) and s != space and "." not in s[len(prefix):]}
    more = {"keras", *_KERAS, *_SHARED} if not space else set()

    def __getattr__(name):
        if name == "__all__":
            return [known for known in __dir__() if not known.startswith("_")]
        if name.startswith("__") and name not in inner and prefix + name not in HOMES:
            raise AttributeError(name)
        value = _with_dispatch(find(prefix + name))
        setattr(module, name, value)
        _found.append((module, name))
        return value

    def __dir__():
        return sorted(set(vars(module)) | NAMES.get(space, set()) | inner | more)

    return __getattr__, __dir__
