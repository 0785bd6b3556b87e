"""Names of `tf` that are imported when they are first used.

LAZY: name -> module. SUBMODULES: modules that are names themselves: tf.nn is runnel/nn/__init__.py.
A row "module: names" lists names of one module; a module may have several rows.
"""

_NAMES = """
core.gradients_impl: gradients hessians AggregationMethod UnconnectedGradients RegisterGradient NoGradient
core.gradients_impl: NotDifferentiable no_gradient
core.graph_io: import_graph_def GraphDef ConfigProto RunOptions RunMetadata GPUOptions GraphOptions OptimizerOptions
core.graph_io: NodeDef AttrValue MetaGraphDef NameAttrList TensorInfo Event Summary SummaryMetadata HistogramProto
core.graph_io: LogMessage SessionLog make_tensor_proto make_ndarray MakeNdarray
core.module: Module
core.plugins: load_file_system_library load_library load_op_library load_pluggable_device_library
graph.session_handles: delete_session_tensor get_session_handle get_session_tensor
core.tensor_util: get_static_value is_symbolic_tensor
core.v2_switches: control_flow_v2_enabled disable_control_flow_v2 disable_tensor_equality disable_v2_behavior
core.v2_switches: disable_v2_tensorshape enable_control_flow_v2 enable_tensor_equality enable_v2_behavior
core.v2_switches: enable_v2_tensorshape
core.composite_specs: IndexedSlicesSpec RaggedTensorSpec SparseTensorSpec TensorArraySpec VariableSpec
core.type_spec: NoneTensorSpec TensorSpec TypeSpec type_spec_from_value
core.versions: GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER CXX11_ABI_FLAG
core.versions: CXX_VERSION MONOLITHIC_BUILD
eager.backprop: GradientTape custom_gradient recompute_grad grad_pass_through
eager.context: enable_eager_execution disable_eager_execution executing_eagerly_outside_functions
eager.def_function: function
eager.wrap_function: wrap_function
eager.eager_script: py_function
io.io_ops: LMDBReader ReaderBase WholeFileReader TextLineReader FixedLengthRecordReader TFRecordReader IdentityReader
io.parsing_ops: VarLenFeature FixedLenFeature FixedLenSequenceFeature SparseFeature parse_example parse_single_example
io.parsing_ops: parse_single_sequence_example decode_raw decode_csv parse_tensor serialize_tensor
linalg.linalg_ops: cholesky_solve svd self_adjoint_eig self_adjoint_eigvals matrix_solve_ls
logging: get_logger
nn.nn_dilation: required_space_to_batch_paddings
ops.batching: nondifferentiable_batch_function
ops.check_ops: assert_equal assert_none_equal assert_less assert_less_equal assert_greater assert_greater_equal
ops.check_ops: assert_positive assert_negative assert_non_negative assert_non_positive assert_near assert_type
ops.check_ops: assert_rank assert_rank_at_least assert_rank_in assert_integer assert_scalar assert_same_float_dtype
ops.check_ops: assert_proper_iterable is_non_decreasing is_strictly_increasing is_numeric_tensor ensure_shape
ops.clip_ops: clip_by_norm clip_by_global_norm clip_by_average_norm global_norm
ops.control_flow: cond case switch_case while_loop group tuple no_op Assert
ops.data_flow: QueueBase FIFOQueue RandomShuffleQueue PaddingFIFOQueue PriorityQueue ConditionalAccumulator
ops.data_flow: ConditionalAccumulatorBase SparseConditionalAccumulator
ops.fft_ops: fft ifft fft2d ifft2d fft3d ifft3d fftnd ifftnd rfftnd irfftnd
ops.functional_ops: map_fn foldl foldr scan
ops.init_ops: zeros_initializer ones_initializer constant_initializer random_uniform_initializer
ops.init_ops: random_normal_initializer truncated_normal_initializer uniform_unit_scaling_initializer
ops.init_ops: variance_scaling_initializer glorot_uniform_initializer glorot_normal_initializer
ops.init_ops: orthogonal_initializer
ops.lookup_ops: initialize_all_tables tables_initializer
ops.old_names: select inv complex_abs listdiff scalar_summary histogram_summary image_summary merge_summary
ops.old_names: merge_all_summaries
ops.partitioned_variables: fixed_size_partitioner min_max_variable_partitioner variable_axis_size_partitioner
ops.random_ops: random_uniform random_normal truncated_normal random_shuffle random_crop multinomial random_gamma
ops.random_ops: random_poisson set_random_seed get_seed
ops.script_ops: py_func numpy_function
ops.sparse_ops: sparse_add sparse_concat sparse_reorder sparse_reshape sparse_split sparse_slice sparse_to_dense
ops.sparse_ops: sparse_tensor_to_dense sparse_to_indicator sparse_merge sparse_retain sparse_reset_shape
ops.sparse_ops: sparse_fill_empty_rows sparse_tensor_dense_matmul sparse_softmax sparse_maximum sparse_minimum
ops.sparse_ops: sparse_reduce_sum sparse_reduce_max sparse_reduce_sum_sparse sparse_reduce_max_sparse
ops.sparse_ops: sparse_transpose sparse_mask serialize_sparse serialize_many_sparse deserialize_many_sparse
ops.special_ops: sort argsort histogram_fixed_width histogram_fixed_width_bins confusion_matrix lbeta
ops.special_ops: unravel_index norm verify_tensor_all_finite add_check_numerics_ops Print timestamp
ops.special_ops: tensor_scatter_nd_max tensor_scatter_nd_min fingerprint random_index_shuffle
ops.special_ops: ragged_fill_empty_rows ragged_fill_empty_rows_grad
ops.state_ops: assign assign_add assign_sub scatter_update scatter_add scatter_sub scatter_mul scatter_div
ops.state_ops: scatter_min scatter_max scatter_nd_update scatter_nd_add scatter_nd_sub batch_scatter_update
ops.state_ops: count_up_to
ops.string_ops: string_split string_join reduce_join substr string_strip regex_replace string_to_number as_string
ops.string_ops: string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong
ops.template: make_template
ops.tensor_array: TensorArray
ops.variable_scopes: AUTO_REUSE VariableScope variable_scope variable_op_scope get_variable get_local_variable
ops.variable_scopes: get_variable_scope no_regularizer variable_creator_scope create_partitioned_variables
ops.variables: Variable VariableV1 VariableSynchronization VariableAggregation global_variables local_variables
ops.variables: model_variables moving_average_variables trainable_variables all_variables variables_initializer
ops.variables: global_variables_initializer local_variables_initializer initialize_variables
ops.variables: initialize_all_variables initialize_local_variables is_variable_initialized
ops.variables: assert_variables_initialized report_uninitialized_variables enable_resource_variables
ops.variables: disable_resource_variables resource_variables_enabled
ragged.ragged_tensor: RaggedTensor
eager.critical_section: CriticalSection
ops.vectorized: vectorized_map
data.optional: OptionalSpec
"""

LAZY = {}
for _row in _NAMES.strip().splitlines():
    _module, _, _listed = _row.partition(":")
    LAZY.update(dict.fromkeys(_listed.split(), _module))
SUBMODULES = frozenset("""
app audio autograph bitwise compat config contrib data debugging distribute distributions dtypes errors estimator experimental
feature_column flags gfile graph_util image initializers io keras layers linalg logging lookup losses manip math
metrics mixed_precision nest nn python_io quantization queue ragged random raw_ops resource_loader saved_model sets signal sparse
spectral strings summary sysconfig test train user_ops version
""".split())
