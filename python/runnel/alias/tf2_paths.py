"""Which modules stand for the inner paths of TensorFlow 2: eager execution, functions, tf.data, ragged tensors, checkpoints.

The same form as the tables of inner_paths.py: "path: modules", or the path alone where only public names are found there.
"""

# Folders of TensorFlow's tests: what they hold comes with the tests, or not at all.
TEST_PACKAGES = ("python.autograph.tests", "python.ops.numpy_ops.tests", "python.saved_model.tests")

PACKAGES = TEST_PACKAGES + tuple("""core.function core.function.capture core.function.polymorphism core.config core.distributed_runtime
core.distributed_runtime.preemption python.checkpoint.sharding python.data.experimental.kernel_tests python.data.experimental.service
python.eager.polymorphic_function python.ops.numpy_ops python.ops.parallel_for python.ops.structured python.profiler
python.saved_model.pywrap_saved_model python.saved_model.model_utils python.training.saving python.types python.util.protobuf
dtensor dtensor.python python.compiler python.compiler.xla python.ops.signal python.grappler python.dlpack
tools.compatibility python.distribute.coordinator python.distribute.v1""".split())

_NUMPY = """experimental_numpy.promotion experimental_numpy.creation experimental_numpy.elementwise experimental_numpy.shapes
experimental_numpy.reductions experimental_numpy.indexing experimental_numpy.products experimental_numpy.names experimental_numpy.behavior""".split()
_LINALG = """linalg.linear_operator linalg.linear_operator_kinds linalg.linear_operator_made linalg.linear_operator_blocks
linalg.linear_operator_circulant linalg.linear_operator_rows""".split()
_RAGGED = """ragged.ragged_arrays ragged.ragged_gather ragged.ragged_tensor ragged.ragged_functions ragged.ragged_ops ragged.ragged_strings
ragged.ragged_matmul ragged.row_partition ragged.row_partition_spec""".split()

_TYPES = "functions.trace_type functions.trace_values functions.trace_structures functions.serialization".split()

PATHS = {}
for _row in """
core.function.trace_type: TYPES
core.function.trace_type.default_types: TYPES
core.function.trace_type.custom_nest_trace_type: TYPES
core.function.trace_type.trace_type_builder: TYPES
core.function.trace_type.serialization: TYPES
core.function.capture.capture_container: eager.function_captures
core.function.capture.free_vars_detect: autograph.free_variables
core.function.polymorphism.function_type: functions.function_type functions.signatures
core.function.polymorphism.function_cache: functions.dispatch_table
core.function.polymorphism.type_dispatch: functions.dispatch_table
core.config.flags: alias.util.build_flags
python.compat.compat: compat
python.compat.v2_compat: core.v2_switches
python.checkpoint.checkpoint: train.checkpoint checkpoint.trackable_saver checkpoint.statuses checkpoint.restoring ops.template alias.checkpoint_names
python.checkpoint.checkpoint_adapter: checkpoint.resharding
python.checkpoint.checkpoint_context: checkpoint.checkpoint_context
python.checkpoint.checkpoint_management: train.checkpoint_manager train.checkpoint_management
python.checkpoint.checkpoint_options: train.checkpoint_options
python.checkpoint.checkpoint_view: checkpoint.checkpoint_view
python.checkpoint.functional_saver: checkpoint.multi_device_saver
python.checkpoint.graph_view: checkpoint.object_graph
python.checkpoint.restore: checkpoint.restoring checkpoint.checkpoint_view alias.checkpoint_names
python.checkpoint.save_util: checkpoint.object_graph
python.checkpoint.save_util_v1: checkpoint.object_graph
python.checkpoint.util: checkpoint.object_graph
python.checkpoint.saveable_compat: checkpoint.saveable_compat
python.checkpoint.sharding.sharding_policies: checkpoint.sharding
python.checkpoint.sharding.sharding_util: checkpoint.sharding
python.checkpoint.tensor_callable: checkpoint.saveable
python.checkpoint.trackable_view: checkpoint.object_graph
python.checkpoint.async_checkpoint_helper: alias.checkpoint_names
python.data.experimental.ops.batching: data.experimental
python.data.experimental.ops.cardinality: alias.data_names data.experimental
python.data.experimental.ops.compression_ops: alias.data_names
python.data.experimental.ops.counter: data.experimental
python.data.experimental.ops.data_service_ops: data.service
python.data.experimental.service.server_lib: data.service_servers
python.data.experimental.ops.distribute: data.sharding data.experimental
python.data.ops.rebatch_op: data.padding
python.data.ops.readers: data.file_datasets alias.data_names
python.data.experimental.ops.enumerate_ops: data.experimental
python.data.experimental.ops.error_ops: data.experimental
python.data.experimental.ops.from_list: data.experimental
python.data.experimental.ops.get_single_element: data.experimental
python.data.experimental.ops.global_shuffle_op: data.indexed
python.data.experimental.ops.grouping: data.experimental
python.data.experimental.ops.index_flat_map_op: data.indexed
python.data.experimental.ops.interleave_ops: data.experimental
python.data.experimental.ops.io: data.experimental
python.data.experimental.ops.iterator_model_ops: data.experimental
python.data.experimental.ops.iterator_ops: data.experimental
python.data.experimental.ops.lookup_ops: data.tables
python.data.experimental.ops.map_defun: alias.data_names
python.data.experimental.ops.matching_files: alias.data_names
python.data.experimental.ops.pad_to_cardinality: data.experimental
python.data.experimental.ops.parsing_ops: data.readers
python.data.experimental.ops.prefetching_ops: alias.data_names data.experimental
python.data.experimental.ops.random_access: data.experimental
python.data.experimental.ops.random_ops: data.experimental
python.data.experimental.ops.readers: data.readers
python.data.experimental.ops.resampling: data.experimental
python.data.experimental.ops.scan_ops: data.experimental
python.data.experimental.ops.shuffle_ops: data.indexed data.experimental
python.data.experimental.ops.snapshot: alias.data_names data.experimental
python.data.experimental.ops.take_while_ops: data.experimental
python.data.experimental.ops.testing: alias.data_names
python.data.experimental.ops.unique: data.experimental
python.data.experimental.ops.weighted_flat_map_op: data.indexed
python.data.experimental.ops.writers: data.experimental
python.data.ops.dataset_ops: alias.data_names data.dataset data.iterators data
python.data.ops.debug_mode: data.debug_mode
python.data.ops.from_generator_op: alias.for_keras.source_dataset_names
python.data.ops.from_sparse_tensor_slices_op: alias.for_keras.source_dataset_names
python.data.ops.from_tensor_slices_op: alias.for_keras.source_dataset_names
python.data.ops.from_tensors_op: alias.for_keras.source_dataset_names
python.data.ops.range_op: alias.for_keras.source_dataset_names
python.data.ops.iterator_ops: alias.data_names data.iterators data.owned_iterator data.experimental data
python.data.ops.map_op: alias.data_names
python.data.ops.multi_device_iterator_ops
python.data.ops.optional_ops: data.optional alias.data_names
python.data.ops.options: data.options
python.data.ops.prefetch_op: alias.data_names
python.data.ops.scan_op
python.data.ops.test_mode: data.debug_mode
python.data.util.convert: alias.data_names
python.data.util.nest: data.structure_nest
python.data.util.options: data.options_base
python.data.util.random_seed: alias.data_names
python.data.util.sparse: alias.data_sparse_names
python.data.util.structure: data.structure
python.data.util.traverse: alias.data_names
python.distribute.central_storage_strategy: distribute.central_storage
python.distribute.cluster_resolver: distribute.cluster_resolver
python.distribute.cluster_resolver.cluster_resolver: alias.distribute_names distribute.cluster_resolver.base distribute.cluster_resolver
python.distribute.cluster_resolver.gce_cluster_resolver: distribute.cluster_resolver
python.distribute.cluster_resolver.kubernetes_cluster_resolver: distribute.cluster_resolver.kubernetes
python.distribute.cluster_resolver.sagemaker_cluster_resolver: distribute.cluster_resolver.environment
python.distribute.cluster_resolver.slurm_cluster_resolver: alias.distribute_names distribute.cluster_resolver.environment
python.distribute.cluster_resolver.tfconfig_cluster_resolver: alias.distribute_names distribute.cluster_resolver.environment
python.distribute.cluster_resolver.tpu_cluster_resolver: distribute.cluster_resolver
python.distribute.collective_all_reduce_strategy: alias.distribute_names distribute.multi_worker
python.distribute.collective_util: alias.distribute_names distribute.multi_worker
python.distribute.coordinator.cluster_coordinator: distribute.coordinator
python.distribute.coordinator.coordinator_context: distribute.coordinator
python.distribute.coordinator.remote_value: distribute.coordinator
python.distribute.coordinator.values: distribute.coordinator
python.distribute.cross_device_ops: distribute.cross_device distribute.reductions
python.distribute.cross_device_utils: distribute.reductions
python.distribute.device_util: distribute.device_util
python.distribute.distribute_coordinator: distribute.worker_context distribute.standard_server alias.distribute_names
python.distribute.distribute_coordinator_context: distribute.worker_context
python.distribute.distribute_lib: alias.distribute_names distribute.contexts distribute.strategy distribute.extended distribute.options distribute
python.distribute.distribute_utils: distribute.values distribute.strategy alias.distribute_names
python.distribute.input_ops: alias.distribute_names data.sharding
python.distribute.input_lib: alias.distribute_names distribute.input_data
python.distribute.mirrored_strategy: distribute.strategies
python.distribute.multi_worker_util: distribute.cluster_roles
python.distribute.one_device_strategy: distribute.strategies
python.distribute.parameter_server_strategy: alias.distribute_names distribute.parameter_server
python.distribute.parameter_server_strategy_v2: alias.distribute_names distribute.parameter_server
python.distribute.reduce_util: distribute.options
python.distribute.sharded_variable: distribute.sharded_variable distribute.partitioners
python.distribute.shared_variable_creator: distribute.shared_variable_creator
python.distribute.tpu_strategy: alias.distribute_names
python.distribute.tpu_values: alias.distribute_names
python.distribute.v1.input_lib: distribute.graph_iterators
python.distribute.ps_values: distribute.central_storage distribute
python.distribute.values: distribute.values distribute.variable distribute
python.eager.backprop: eager.backprop alias.gradient_names compat.v2.internal
python.eager.backprop_util: alias.gradient_names eager.backprop
python.eager.benchmarks_test_base
python.eager.cancellation: alias.eager_names
python.eager.context: alias.eager_names eager.contexts eager.context config alias.test_util compat.v2.internal
python.eager.core: alias.eager_names
python.eager.custom_device_testutil
python.eager.def_function: eager.def_function config
python.eager.execute: alias.eager_names
python.eager.executor: alias.eager_names
python.eager.forwardprop: alias.gradient_names eager.forward
python.eager.forwardprop_util: eager.forward
python.eager.function: eager.def_function eager.concrete
python.eager.graph_only_ops: alias.eager_names
python.eager.lift_to_graph: alias.eager_names eager.wrap_function
python.eager.monitoring: alias.monitoring_names estimator.estimator_names
python.eager.profiler
python.eager.profiler_client
python.eager.record: alias.gradient_names alias.eager_names eager.backprop
python.eager.remote: alias.remote_names config
python.eager.tape: eager.backprop
python.eager.test: test
python.eager.polymorphic_function.atomic_function: eager.atomic_function
python.eager.polymorphic_function.attributes: alias.eager_names
python.eager.polymorphic_function.compiler_ir
python.eager.polymorphic_function.concrete_function: eager.concrete_function
python.eager.polymorphic_function.eager_function_run: config
python.eager.polymorphic_function.function_type_utils: functions.signatures
python.eager.polymorphic_function.polymorphic_function: eager.def_function config
python.eager.polymorphic_function.tracing_compilation: eager.tracing_compilation
python.framework.c_api_util: alias.util.api_definitions
python.framework.combinations: alias.combinations
python.framework.test_combinations: alias.combinations
python.framework.memory_checker: alias.combinations
python.framework.function_def_to_graph: alias.util.function_graphs
python.framework.graph_to_function_def: alias.util.function_graphs
python.framework.op_callbacks: eager.op_callbacks
python.debug.lib.check_numerics_callback: eager.check_numerics
python.framework.config: alias.eager_names config
python.framework.ops: OPS graph.gradient_registry core.framework core.gradients_impl core.meta_graph estimator.estimator_names
python.framework.sparse_tensor: alias.framework_names core.framework
python.framework.tensor_util: alias.framework_names core.tensor_util core.convert
python.framework.stack: core.session
python.framework.versions: core.versions
python.framework.flexible_dtypes: experimental_numpy.promotion_modes
python.framework.weak_tensor: experimental_numpy.weak_tensor
python.ops.weak_tensor_ops: alias.weak_names experimental_numpy.weak_functions
python.framework.test_util: alias.test_util alias.test_decorators
python.framework.type_utils: alias.type_names
python.framework.test_ops
python.framework.extension_type: extension_types.extension_type extension_types.packing extension_types.anonymous
python.framework.auto_control_deps: eager.effect_order eager.control_dependencies
python.framework.load_library: core.plugins
python.framework.extension_type_field: extension_types.fields
python.framework.composite_tensor_gradient: alias.gradient_names
python.framework.kernels
python.framework.op_def_library: alias.util.op_library_names alias.eager_names
python.framework.op_def_library_pybind
python.keras.saving.saving_utils: alias.for_keras.saving_utils
python.grappler.tf_optimizer: graph.grappler
python.module.module: core.module
python.platform._pywrap_tf2: alias.tf2
python.training.experimental.mixed_precision: train.loss_scale_optimizer train
python.training.checkpoint_utils: train.checkpoint_reader train
python.training.experimental.mixed_precision_global_state: alias.util.mixed_precision_state
python.ops.math_ops: alias.gradient_names ops.math_ops
python.ops.bincount_ops: alias.bincount_names
python.ops.sparse_ops: alias.bincount_names ops.sparse_ops sparse
python.ops.control_flow_grad
python.ops.control_flow_util_v2: ops.control_flow
python.ops.critical_section_ops
python.ops.data_flow_grad
python.ops.distributions.*: distributions
python.ops.gen_stateless_random_ops_v2: raw_ops
python.ops.handle_data_util: ops.resource_variable
python.ops.check_ops: ops.check_ops ops.shape_checks
python.ops.lookup_ops: ops.lookup_ops ops.dense_table
python.ops.control_flow_util: alias.flow_names flow.control_flow_util
python.ops.linalg.linear_operator: alias.linalg_names LINALG
python.ops.linalg.linear_operator_adjoint: LINALG
python.ops.linalg.linear_operator_block_diag: LINALG
python.ops.linalg.linear_operator_block_lower_triangular: LINALG
python.ops.linalg.linear_operator_circulant: LINALG
python.ops.linalg.linear_operator_composition: LINALG
python.ops.linalg.linear_operator_diag: LINALG
python.ops.linalg.linear_operator_full_matrix: LINALG
python.ops.linalg.linear_operator_householder: LINALG
python.ops.linalg.linear_operator_identity: LINALG
python.ops.linalg.linear_operator_inversion: LINALG
python.ops.linalg.linear_operator_kronecker: LINALG
python.ops.linalg.linear_operator_low_rank_update: LINALG
python.ops.linalg.linear_operator_lower_triangular: LINALG
python.ops.linalg.linear_operator_permutation: LINALG
python.ops.linalg.linear_operator_toeplitz: LINALG
python.ops.linalg.linear_operator_tridiag: LINALG
python.ops.linalg.linear_operator_zeros: LINALG
python.ops.linalg.sparse.conjugate_gradient: linalg.iterative
python.ops.linalg.sparse.sparse_csr_matrix_grad
python.ops.losses.util: losses.losses_impl
python.ops.map_ops: raw_ops
python.ops.parsing_config: io.parsing_ops
python.ops.random_crop_ops: image
python.ops.random_grad
python.ops.rnn_grad
python.ops.shape_util: core.tensor_util
python.ops.signal.dct_ops: signal ops.spectral_ops
python.ops.signal.mel_ops: signal ops.spectral_ops
python.ops.signal.mfcc_ops: signal ops.spectral_ops
python.ops.signal.reconstruction_ops: signal ops.spectral_ops
python.ops.signal.shape_ops: signal ops.spectral_ops
python.ops.signal.spectral_ops: signal ops.spectral_ops
python.ops.signal.fft_ops: signal ops.spectral_ops
python.ops.signal.window_ops: signal
python.ops.sparse_grad
python.ops.stateful_random_ops: ops.generators
python.ops.string_ops: ops.string_ops alias.ragged_names
python.ops.parallel_for.control_flow_ops: ops.vectorized
python.ops.parallel_for: ops.vectorized
python.ops.resource_variables_toggle: ops.variables
python.ops.tensor_getitem_override: ops.array_ops alias.util.util_names
python.ops.structured.structured_tensor: ragged.structured_tensor alias.ragged_names
python.tpu.tpu_embedding_v2_utils: tpu.embedding_config tpu.embedding_optimizers
python.tpu.tpu_embedding_v2: tpu.embedding
python.tpu.tpu_embedding_for_serving: tpu.embedding tpu.embedding_lookup
python.tpu.tpu_embedding_base: tpu.embedding
python.ops.structured.structured_array_ops: ragged.structured_arrays alias.ragged_names
python.ops.structured.structured_tensor_dynamic: alias.ragged_names
python.ops.numpy_ops.np_array_ops: NUMPY
python.ops.numpy_ops.np_arrays: NUMPY
python.ops.numpy_ops.np_config: alias.numpy_names experimental_numpy.behavior
python.ops.numpy_ops.np_dtypes: alias.numpy_names NUMPY
python.ops.numpy_ops.np_math_ops: alias.numpy_names NUMPY
python.ops.numpy_ops.np_random: experimental_numpy.random_numbers
python.ops.numpy_ops.np_utils: alias.numpy_names NUMPY
python.ops.ragged.dynamic_ragged_shape: ragged.dynamic_ragged_shape ragged.ragged_broadcast alias.ragged_names
python.ops.ragged.ragged_tensor_shape: ragged.ragged_tensor_shape
python.ops.ragged.ragged_autograph
python.ops.ragged.ragged_config
python.ops.ragged.ragged_array_ops: RAGGED ragged.dynamic_ragged_shape
python.ops.ragged.ragged_batch_gather_ops: RAGGED
python.ops.ragged.ragged_batch_gather_with_default_op: RAGGED
python.ops.ragged.ragged_bincount_ops: RAGGED
python.ops.ragged.ragged_check_ops: RAGGED
python.ops.ragged.ragged_concat_ops: RAGGED
python.ops.ragged.ragged_conversion_ops: alias.ragged_names RAGGED
python.ops.ragged.ragged_dispatch: alias.ragged_names RAGGED
python.ops.ragged.ragged_embedding_ops: RAGGED
python.ops.ragged.ragged_factory_ops: RAGGED
python.ops.ragged.ragged_functional_ops: RAGGED
python.ops.ragged.ragged_gather_ops: RAGGED
python.ops.ragged.ragged_getitem: RAGGED
python.ops.ragged.ragged_image_ops: RAGGED
python.ops.ragged.ragged_map_ops: RAGGED
python.ops.ragged.ragged_math_ops: alias.ragged_names RAGGED
python.ops.ragged.ragged_operators: RAGGED
python.ops.ragged.ragged_ops: RAGGED
python.ops.ragged.ragged_squeeze_op: RAGGED
python.ops.ragged.ragged_string_ops: alias.ragged_names RAGGED
python.ops.ragged.ragged_tensor: alias.ragged_names RAGGED
python.ops.ragged.ragged_tensor_value: RAGGED
python.ops.ragged.ragged_util: alias.ragged_names RAGGED
python.ops.ragged.ragged_where_op: RAGGED
python.ops.ragged.row_partition: RAGGED
python.ops.ragged.segment_id_ops: RAGGED
dtensor.python.api: alias.for_keras.dtensor_names
dtensor.python.config: alias.for_keras.dtensor_names
dtensor.python.layout: alias.for_keras.dtensor_names
dtensor.python.d_variable: alias.for_keras.dtensor_names
dtensor.python.mesh_util: alias.for_keras.dtensor_names
python.ops.script_ops: alias.data_script_names ops.script_ops eager.eager_script
python.platform.benchmark: test
python.profiler.profiler_v2: alias.monitoring_names
python.profiler.trace: alias.monitoring_names
python.pywrap_tfe: alias.eager_names alias.gradient_names
python.util.variable_utils: alias.for_keras.variable_utils
python.pywrap_sanitizers: alias.data_names
python.saved_model.fingerprinting: saved_model.fingerprinting
python.saved_model.fingerprinting_utils: saved_model.fingerprinting
python.saved_model.load_options: saved_model.options
python.saved_model.load_v1_in_v2: saved_model.graph_loading
python.saved_model.main_op: saved_model.meta_graphs
python.saved_model.method_name_updater: saved_model.method_names
python.saved_model.nested_structure_coder: saved_model.structured_value
python.framework.immutable_dict: alias.framework_names
python.saved_model.registration: saved_model.registration
python.saved_model.revived_types: saved_model.revived_types
python.saved_model.save_context: saved_model.save_context
python.saved_model.save_options: saved_model.options
python.saved_model.tracing_utils: saved_model.saving_functions
python.saved_model.load: saved_model.object_loading saved_model
python.saved_model.save: saved_model.object_saving saved_model.writing saved_model
python.saved_model.pywrap_saved_model.metrics: saved_model.metrics
python.saved_model.pywrap_saved_model.fingerprinting: saved_model.fingerprinting
python.saved_model.pywrap_saved_model.constants: saved_model.fingerprinting saved_model.signature_defs
python.trackable.asset: saved_model.asset
python.trackable.base_delegate: core.base_delegate
python.trackable.base: core.trackable checkpoint.saveable
python.trackable.converter: checkpoint.object_graph
python.trackable.constants: core.trackable
python.trackable.python_state: core.python_state
python.trackable.resource: core.trackable_resource
python.trackable.trackable_utils: checkpoint.keys
python.training.saving.saveable_object: checkpoint.saveable
python.training.py_checkpoint_reader: train.checkpoint_reader
python.training.checkpoint_ops: train.checkpoint_ops
python.training.saver_test_utils: alias.saver_test_utils
python.lib.io.file_io: alias.file_names io.file_io
python.training.summary_io: alias.summary_io
python.lib.io.tf_record: python_io io.record_io
python.training.saving.saveable_object_util: checkpoint.saveables checkpoint.saveable
python.types.core: core.tensor_type core.type_checkers
python.types.trace: TYPES
tools.docs.doc_controls: alias.doc_controls
python.types.internal: alias.framework_names core.type_spec
python.training.optimizer: train.optimizer alias.gradient_names
python.util.compat: compat alias.framework_names alias.util.util_names
python.util.serialization: alias.serialization
python.util.lock_util: alias.small_utils
python.util.dispatch: core.fallbacks core.dispatch alias.util.util_names
python.framework.convert_to_constants: eager.freezing
python.framework.strict_mode: alias.util.strict_names
python.util.traceback_utils: config
python.util.decorator_utils: alias.util.deprecation_names
python.framework.smart_cond: alias.graph_names ops.control_flow
python.framework.common_shapes: alias.graph_names core.tensor_shape
python.framework.graph_util: alias.graph_names graph_util
python.framework.tensor: core.framework core.type_spec core.composite_specs alias.graph_names
python.framework._dtypes: dtypes
python.util.variable_utils: alias.small_utils
python.util.type_annotations: extension_types.annotations
python.framework.registry: alias.small_utils
python.framework.traceable_stack: alias.small_utils
python.framework.immutable_dict: extension_types.fields
python.util.tf_stack: alias.util.tf_stack
python.util.fast_module_type: alias.util.module_wrappers
python.util.module_wrapper: alias.util.module_wrappers
tools.compatibility.all_renames_v2: alias.util.module_wrappers
python.framework.subscribe: graph.subscriptions
python.framework.error_interpolation: alias.util.error_interpolation
python.util.nest: nest core.nest_up_to alias.for_keras.nest_names
python.util.nest_util: core.nest_up_to nest alias.small_utils
python.util.custom_nest_protocol: alias.small_utils
""".strip().splitlines():
    _path, _, _homes = _row.partition(":")
    PATHS[_path] = [home for word in _homes.split() for home in {
        "NUMPY": _NUMPY, "RAGGED": _RAGGED, "LINALG": _LINALG, "TYPES": _TYPES,
        "OPS": ["graph.node_defs",
                "experimental_numpy.promotion_modes", "core.trackable_resource", "alias.framework_names", "alias.small_utils"]}.get(word, [word])]
