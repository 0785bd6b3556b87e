"""Which modules stand for the inner paths of TensorFlow 2: eager execution, functions, tf.data, ragged tensors, checkpoints.

The same form as the tables of inner_paths.py: "path: modules", or the path alone where only public names are found there.
"""

# Folders of TensorFlow's tests: what they hold comes with the tests, or not at all.
TEST_PACKAGES = ("python.autograph.tests", "python.ops.numpy_ops.tests", "python.saved_model.tests")

PACKAGES = TEST_PACKAGES + tuple("""core.function core.function.capture core.function.polymorphism core.config core.distributed_runtime
core.distributed_runtime.preemption python.checkpoint.sharding python.data.experimental.kernel_tests python.data.experimental.service
python.eager.polymorphic_function python.ops.numpy_ops python.ops.parallel_for python.ops.structured python.profiler
python.saved_model.pywrap_saved_model python.saved_model.model_utils python.training.saving python.types python.util.protobuf
python.compiler python.compiler.xla python.ops.signal python.grappler python.dlpack""".split())

_NUMPY = """experimental_numpy.promotion experimental_numpy.creation experimental_numpy.elementwise experimental_numpy.shapes
experimental_numpy.reductions experimental_numpy.indexing experimental_numpy.products experimental_numpy.names experimental_numpy.behavior""".split()
_RAGGED = """ragged.ragged_arrays ragged.ragged_gather ragged.ragged_tensor ragged.ragged_functions ragged.ragged_ops ragged.ragged_strings
ragged.row_partition""".split()

PATHS = {}
for _row in """
core.function.trace_type
core.function.capture.capture_container
core.function.polymorphism.function_type
core.function.polymorphism.function_cache
core.config.flags
python.autograph.core.converter: autograph.experimental alias.autograph_names
python.autograph.core.ag_ctx: alias.autograph_names
python.autograph.impl.api: alias.autograph_names autograph.conversion autograph
python.autograph.lang.directives: autograph.experimental
python.compat.compat: compat
python.compat.v2_compat: core.v2_switches
python.checkpoint.checkpoint: train.checkpoint
python.checkpoint.checkpoint_options: train.checkpoint_options
python.checkpoint.checkpoint_view: train.checkpoint
python.checkpoint.functional_saver
python.checkpoint.graph_view
python.checkpoint.restore
python.checkpoint.save_util
python.checkpoint.save_util_v1
python.checkpoint.saveable_compat
python.checkpoint.sharding.sharding_policies
python.checkpoint.sharding.sharding_util
python.checkpoint.tensor_callable
python.checkpoint.trackable_view: train.checkpoint
python.checkpoint.async_checkpoint_helper
python.data.experimental.ops.batching: data.experimental
python.data.experimental.ops.cardinality: alias.data_names data.experimental
python.data.experimental.ops.compression_ops: alias.data_names
python.data.experimental.ops.counter: data.experimental
python.data.experimental.ops.data_service_ops
python.data.experimental.ops.distribute: data.experimental
python.data.ops.rebatch_op: alias.data_names
python.data.experimental.ops.enumerate_ops: data.experimental
python.data.experimental.ops.error_ops: data.experimental
python.data.experimental.ops.from_list: data.experimental
python.data.experimental.ops.get_single_element: data.experimental
python.data.experimental.ops.global_shuffle_op: alias.data_names
python.data.experimental.ops.grouping: data.experimental
python.data.experimental.ops.index_flat_map_op
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
python.data.experimental.ops.shuffle_ops: alias.data_names data.experimental
python.data.experimental.ops.snapshot: alias.data_names data.experimental
python.data.experimental.ops.take_while_ops: data.experimental
python.data.experimental.ops.testing: alias.data_names
python.data.experimental.ops.unique: data.experimental
python.data.experimental.ops.weighted_flat_map_op: alias.data_names
python.data.experimental.ops.writers: data.experimental
python.data.ops.dataset_ops: alias.data_names data.dataset data.iterators data
python.data.ops.debug_mode: data.debug_mode
python.data.ops.from_generator_op
python.data.ops.iterator_ops: alias.data_names data.iterators data.owned_iterator data.experimental data
python.data.ops.map_op
python.data.ops.multi_device_iterator_ops
python.data.ops.optional_ops: data.optional alias.data_names
python.data.ops.options: data.options
python.data.ops.prefetch_op
python.data.ops.scan_op
python.data.ops.test_mode: data.debug_mode
python.data.util.convert: alias.data_names
python.data.util.nest: data.structure_nest
python.data.util.options: data.options
python.data.util.random_seed: alias.data_names
python.data.util.sparse: alias.data_sparse_names
python.data.util.structure: data.structure
python.data.util.traverse: alias.data_names
python.eager.backprop: eager.backprop alias.gradient_names
python.eager.backprop_util: eager.backprop
python.eager.benchmarks_test_base
python.eager.cancellation: alias.eager_names
python.eager.context: alias.eager_names eager.context config alias.test_util
python.eager.core: alias.eager_names
python.eager.custom_device_testutil
python.eager.def_function: eager.def_function config
python.eager.execute: alias.eager_names
python.eager.executor: alias.eager_names
python.eager.forwardprop: eager.forward
python.eager.forwardprop_util
python.eager.function: eager.def_function eager.concrete
python.eager.graph_only_ops: alias.eager_names
python.eager.lift_to_graph: alias.eager_names
python.eager.monitoring: alias.monitoring_names estimator.estimator_names
python.eager.profiler
python.eager.profiler_client
python.eager.record: alias.eager_names eager.backprop
python.eager.remote: config
python.eager.tape: eager.backprop
python.eager.test: test
python.eager.polymorphic_function.atomic_function
python.eager.polymorphic_function.attributes: alias.eager_names
python.eager.polymorphic_function.compiler_ir
python.eager.polymorphic_function.concrete_function: eager.concrete
python.eager.polymorphic_function.eager_function_run: config
python.eager.polymorphic_function.function_type_utils
python.eager.polymorphic_function.polymorphic_function: eager.def_function config
python.eager.polymorphic_function.tracing_compilation
python.framework.combinations: alias.combinations
python.framework.test_combinations: alias.combinations
python.framework.memory_checker: alias.combinations
python.framework.op_callbacks
python.framework.config: alias.eager_names config
python.framework.ops: alias.framework_names core.framework core.gradients_impl core.meta_graph estimator.estimator_names
python.framework.sparse_tensor: alias.framework_names core.framework
python.framework.tensor_util: alias.framework_names core.tensor_util core.convert
python.framework.stack: core.session
python.framework.versions: core.versions
python.framework.type_utils
python.framework.test_ops
python.framework.extension_type: core.extension_type
python.framework.auto_control_deps: eager.effect_order
python.module.module: core.module
python.ops.bincount_ops: alias.bincount_names
python.ops.sparse_ops: alias.bincount_names ops.sparse_ops sparse
python.ops.critical_section_ops
python.ops.parallel_for.control_flow_ops: ops.vectorized
python.ops.parallel_for: ops.vectorized
python.ops.resource_variables_toggle: ops.variables
python.ops.tensor_getitem_override: alias.util_names
python.ops.structured.structured_tensor
python.ops.numpy_ops.np_array_ops: NUMPY
python.ops.numpy_ops.np_arrays: NUMPY
python.ops.numpy_ops.np_config: experimental_numpy.behavior
python.ops.numpy_ops.np_dtypes: alias.numpy_names NUMPY
python.ops.numpy_ops.np_math_ops: alias.numpy_names NUMPY
python.ops.numpy_ops.np_random: experimental_numpy.random_numbers
python.ops.numpy_ops.np_utils: alias.numpy_names NUMPY
python.ops.ragged.dynamic_ragged_shape
python.ops.ragged.ragged_tensor_shape
python.ops.ragged.ragged_autograph
python.ops.ragged.ragged_config
python.ops.ragged.ragged_array_ops: RAGGED
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
python.platform.benchmark: test
python.profiler.trace: alias.monitoring_names
python.pywrap_tfe: alias.eager_names
python.pywrap_sanitizers: alias.data_names
python.saved_model.fingerprinting
python.saved_model.fingerprinting_utils
python.saved_model.load_context
python.saved_model.load_options: saved_model
python.saved_model.load_v1_in_v2: saved_model.graph_loading
python.saved_model.main_op: saved_model
python.saved_model.method_name_updater
python.saved_model.nested_structure_coder: saved_model.structured_value
python.saved_model.registration
python.saved_model.revived_types
python.saved_model.save_context
python.saved_model.save_options: saved_model
python.saved_model.tracing_utils
python.saved_model.load: saved_model.object_loading saved_model
python.saved_model.save: saved_model.object_saving saved_model
python.saved_model.pywrap_saved_model.metrics
python.saved_model.pywrap_saved_model.fingerprinting
python.saved_model.pywrap_saved_model.constants
python.trackable.asset: saved_model core.trackable
python.trackable.base_delegate
python.trackable.constants: core.trackable
python.trackable.python_state: core.trackable
python.trackable.resource: core.trackable
python.trackable.trackable_utils: core.trackable
python.training.saving.saveable_object: train.saveable
python.training.saving.saveable_object_util: train.saveable
python.types.core
tools.docs.doc_controls: alias.doc_controls
python.types.internal: alias.framework_names core.type_spec
python.util.compat: compat alias.framework_names
python.util.serialization
""".strip().splitlines():
    _path, _, _homes = _row.partition(":")
    PATHS[_path] = [home for word in _homes.split() for home in {"NUMPY": _NUMPY, "RAGGED": _RAGGED}.get(word, [word])]
