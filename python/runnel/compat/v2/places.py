"""Where the names of TensorFlow 2 are implemented.

A name is looked for in HOMES, then it is the name of 1.x: the same path, or that in ELSEWHERE, with the parameters of
signatures.py. Only the names of names.py exist.
"""

import importlib
import os
import sys
import types

from runnel.compat.v2.names import NAMES
from runnel.compat.v2.signatures import PARAMETERS, RENAMED, with_parameters
from runnel.core import fallbacks

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
alias.util.decorators @ __internal__.decorator: make_decorator unwrap
alias.util.strict_names @ experimental: enable_strict_mode
core.fallbacks @ __internal__.dispatch: GlobalOpDispatcher OpDispatcher add_dispatch_support
compat.v2.operator_functions @ __operators__: add eq getitem ne ragged_getitem
compat.v2.internal @ __internal__.distribute: strategy_supports_no_merge_call
compat.v2.internal @ __internal__.distribute.interim: maybe_merge_call
compat.v2.internal @ __internal__.eager_context: eager_mode get_config get_device_name set_soft_device_placement
eager.def_function @ __internal__.function: Function
train.loss_scale_optimizer @ __internal__.mixed_precision: register_loss_scale_wrapper
compat.v2.internal @ __internal__.monitoring: BoolGauge
core.nest_up_to @ __internal__.nest: flatten_up_to get_traverse_shallow_structure list_to_tuple map_structure_up_to yield_flat_paths
alias.for_keras.nest_names @ __internal__.nest: is_attrs is_mapping sequence_like
autograph.impl.api @ __internal__.autograph: control_status_ctx tf_convert
alias.combinations @ __internal__.test.combinations: NamedObject OptionalParameter ParameterModifier TestCombination combine generate times
distribute.sharded_variable @ __internal__.distribute: ShardedVariable
compat.v2.internal @ __internal__: load_context record_gradient
graph.node_defs @ __internal__: create_c_op
alias.for_keras.dtensor_names @ experimental.dtensor: DTensorCheckpoint DTensorDataset DVariable Layout MATCH Mesh UNSHARDED barrier call_with_layout
alias.for_keras.dtensor_names @ experimental.dtensor: check_layout client_id copy_to_mesh create_distributed_mesh create_mesh create_tpu_mesh default_mesh
alias.for_keras.dtensor_names @ experimental.dtensor: device_name enable_save_as_bf16 fetch_layout full_job_name get_default_mesh heartbeat_enabled
alias.for_keras.dtensor_names @ experimental.dtensor: initialize_accelerator_system initialize_multi_client initialize_tpu_system is_dtensor job_name
alias.for_keras.dtensor_names @ experimental.dtensor: jobs local_devices name_based_restore name_based_save num_clients num_global_devices
alias.for_keras.dtensor_names @ experimental.dtensor: num_local_devices pack preferred_device_type relayout relayout_like run_on sharded_save
alias.for_keras.dtensor_names @ experimental.dtensor: shutdown_accelerator_system shutdown_tpu_system unpack
alias.monitoring_names @ profiler.experimental: Trace
feature_column.state_manager @ __internal__.feature_column: SequenceDenseColumn StateManager
feature_column.feature_models @ __internal__.feature_column: DenseColumn FeatureColumn FeatureTransformationCache
compat.v2.internal @ __internal__.distribute: variable_sync_on_read_context
ops.weights_broadcast_ops @ __internal__.ops: broadcast_weights
compat.v2.internal @ __internal__.ops: is_resource_variable
saved_model.structured_value @ __internal__.saved_model: encode_structure=encode decode_proto=decode
saved_model.object_loading @ __internal__.saved_model: load_partial
saved_model.meta_graphs @ __internal__.saved_model: parse_saved_model SavedModelBuilder
saved_model.revived_types @ __internal__.saved_model.load: VersionedTypeRegistration get_setter register_revived_type registered_identifiers
saved_model.options @ saved_model.experimental: VariablePolicy
saved_model.fingerprinting @ saved_model.experimental: Fingerprint read_fingerprint
alias.eager_names @ experimental: async_clear_error async_scope function_executor_type
feature_column.feature_columns @ feature_column: shared_embeddings=shared_embedding_columns
core.trackable @ __internal__.tracking: CheckpointInitialValue CheckpointInitialValueCallable TrackableReference sticky_attribute_assignment
core.base_delegate @ __internal__.tracking: DelegatingTrackableMixin
checkpoint.object_graph @ __internal__.tracking: ObjectGraphView
core.data_structures @ __internal__.tracking: TrackableDataStructure wrap
checkpoint.statuses @ __internal__.tracking: register_session_provider streaming_restore
checkpoint.saveables @ __internal__.tracking: saveable_objects_from_trackable
compat.v2.internal @ __internal__.smart_cond: smart_cond
alias.tf2 @ __internal__.tf2: enabled
core.trackable @ __internal__.tracking: AutoTrackable Trackable no_automatic_dependency_tracking
train.moving_averages @ __internal__.train: assign_moving_average
train.checkpoint_management @ __internal__.train: update_checkpoint_state=update_checkpoint_state_internal
alias.util.mixed_precision_state @ __internal__.train: is_mixed_precision_graph_rewrite_enabled set_using_mixed_precision_policy
core.tensor_type @ __internal__.types: Tensor
data.dataset @ __internal__.types.data: Dataset
data.options @ data: ThreadingOptions
data.owned_iterator @ data: Iterator=OwnedIterator IteratorSpec NumpyIterator
data.dataset @ data: DatasetSpec
data.debug_mode @ data.experimental: enable_debug_mode
data.experimental @ data.experimental: dense_to_ragged_batch
data.service @ data.experimental.service: CrossTrainerCache DispatchServer DispatcherConfig ShardingPolicy WorkerConfig WorkerServer distribute
data.service @ data.experimental.service: from_dataset_id register_dataset
train.checkpoint_options @ train: CheckpointOptions
data.optional: OptionalSpec
core.device_spec: DeviceSpec=DeviceSpecV2
data.optional @ experimental: Optional
data.options @ data.experimental: AutoShardPolicy AutotuneAlgorithm AutotuneOptions DistributeOptions ExternalStatePolicy OptimizationOptions ThreadingOptions
checkpoint.object_graph @ train: TrackableView
checkpoint.checkpoint_view @ train: CheckpointView
checkpoint.sharding @ train.experimental: MaxShardSizePolicy ShardByTaskPolicy ShardableTensor ShardingCallback
core.python_state @ train.experimental: PythonState
extension_types.extension_type @ experimental: BatchableExtensionType ExtensionType ExtensionTypeBatchEncoder ExtensionTypeSpec
extension_types.extension_type @ experimental.extension_type: as_dict
dtypes @ dtypes.experimental: float4_e2m1fn float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int2 int4 uint2 uint4
dtypes @ experimental: float4_e2m1fn float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int2 int4 uint2 uint4
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
tpu.systems @ tpu: XLAOptions
tpu.systems @ tpu.experimental: DeviceAssignment DeviceOrderMode HardwareFeature TPUSystemMetadata Topology initialize_tpu_system shutdown_tpu_system
tpu.embedding @ tpu.experimental.embedding: TPUEmbedding TPUEmbeddingForServing TPUEmbeddingV0 TPUEmbeddingV2
tpu.embedding_config @ tpu.experimental.embedding: FeatureConfig QuantizationConfig RowIdInitializer SparseCoreEmbeddingConfig TableConfig
tpu.embedding_lookup @ tpu.experimental.embedding: serving_embedding_lookup
tpu.embedding_optimizers @ tpu.experimental.embedding: Adagrad AdagradMomentum Adam CustomCombiner CustomOptimizer FTRL SGD
ragged.row_partition @ experimental: RowPartition
ragged.dynamic_ragged_shape @ experimental: DynamicRaggedShape
ragged.structured_tensor @ experimental: StructuredTensor
ragged.ragged_arrays @ ragged: cross cross_hashed
ops.shape_checks @ debugging: assert_shapes=assert_shapes_v2
ops.late_ops @ io: decode_proto encode_proto
ops.late_ops @ sparse: sampled_addmm
ops.late_ops @ image: stateless_random_jpeg_quality
ops.late_ops @ experimental.dlpack: from_dlpack to_dlpack
ops.dense_table @ lookup.experimental: DenseHashTable
ragged.ragged_strings @ strings: split
saved_model.object_saving @ saved_model: save
eager.def_function @ types.experimental: GenericFunction=Function PolymorphicFunction=Function Callable=Function ConcreteFunction
functions.function_type @ types.experimental: FunctionType
functions.trace_type @ types.experimental: TraceType SupportsTracingProtocol
core.type_checkers @ types.experimental: TensorLike
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
core.trackable_resource @ saved_model.experimental: TrackableResource
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
        keras = keras_package()
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


def is_keras_legacy():
    """Tells whether tf.keras is the package tf_keras."""
    return os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")


def keras_package(api="v2"):
    """Returns Keras 3, or an API of Keras 2 if TF_USE_LEGACY_KERAS asks for it. Each is a package of its own that imports tensorflow."""
    from runnel.alias import finder
    try:
        finder.install(is_v2=True)
        return importlib.import_module("tf_keras.api._%s.keras" % api if is_keras_legacy() else "keras._tf_keras.keras")
    except ModuleNotFoundError as error:
        raise ImportError("tf.keras is the package %s: %s" % (
            "tf_keras, because TF_USE_LEGACY_KERAS is set (pip install tf_keras)" if is_keras_legacy() else "Keras 3 (pip install keras)",
            error)) from None


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
    found, _found[:] = list(_found), []
    for module, name in found:  # twice, if two threads looked it up
        value = vars(module).get(name)
        if callable(value) and not isinstance(value, type):
            vars(module).pop(name, None)


def _with_dispatch(path, value):
    dispatch = sys.modules.get("runnel.core.dispatch")
    weak_functions = sys.modules.get("runnel.experimental_numpy.weak_functions")
    if weak_functions is not None:
        value = weak_functions.public(path, value)
    return fallbacks.dispatchable_function(path, value if dispatch is None else dispatch.replacement(value))


def path_of(value):
    """Returns the public name of a function or class that was looked up, or None."""
    for module, name in _found:
        if vars(module).get(name) is value:
            return "%s.%s" % (module.__name__, name).removeprefix("runnel.v2.").removeprefix("runnel.compat.v2.")
    return None


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
        value = _with_dispatch(prefix + name, find(prefix + name))
        setattr(module, name, value)
        _found.append((module, name))
        return value

    def __dir__():
        return sorted(set(vars(module)) | NAMES.get(space, set()) | inner | more)

    return __getattr__, __dir__
