"""Names of `tf` that live in modules which are imported when they are first used.

LAZY: name -> module. SUBMODULES: modules that are names themselves, tf.nn being runnel/nn.py.
A section for each part of the library; in a section, a row "module: names" for each module.
"""

_BASE = """
gradients_impl: gradients hessians AggregationMethod UnconnectedGradients RegisterGradient NoGradient
gradients_impl: NotDifferentiable no_gradient
random_ops: random_uniform random_normal truncated_normal random_shuffle random_crop multinomial random_gamma
random_ops: random_poisson set_random_seed get_seed
graph_io: import_graph_def GraphDef ConfigProto RunOptions RunMetadata GPUOptions GraphOptions OptimizerOptions
graph_io: NodeDef AttrValue MetaGraphDef NameAttrList TensorInfo Event Summary SummaryMetadata HistogramProto
graph_io: LogMessage SessionLog make_tensor_proto make_ndarray MakeNdarray
special_ops: sort argsort histogram_fixed_width histogram_fixed_width_bins confusion_matrix lbeta unravel_index norm
special_ops: verify_tensor_all_finite add_check_numerics_ops Print timestamp tensor_scatter_nd_max tensor_scatter_nd_min
string_ops: string_split string_join reduce_join substr string_strip regex_replace string_to_number as_string
string_ops: string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong
sparse_ops: sparse_add sparse_concat sparse_reorder sparse_reshape sparse_split sparse_slice sparse_to_dense
sparse_ops: sparse_tensor_to_dense sparse_to_indicator sparse_merge sparse_retain sparse_reset_shape
sparse_ops: sparse_fill_empty_rows sparse_tensor_dense_matmul sparse_softmax sparse_maximum sparse_minimum
sparse_ops: sparse_reduce_sum sparse_reduce_max sparse_reduce_sum_sparse sparse_reduce_max_sparse sparse_transpose
sparse_ops: sparse_mask serialize_sparse serialize_many_sparse deserialize_many_sparse
linalg_ops: cholesky_solve svd self_adjoint_eig self_adjoint_eigvals
parsing_ops: VarLenFeature FixedLenFeature FixedLenSequenceFeature SparseFeature parse_example parse_single_example
parsing_ops: parse_single_sequence_example decode_raw decode_csv parse_tensor serialize_tensor
io_ops: ReaderBase WholeFileReader TextLineReader FixedLengthRecordReader TFRecordReader IdentityReader
lookup_ops: initialize_all_tables
ragged_tensor: RaggedTensor
template: make_template
old_names: select inv complex_abs listdiff scalar_summary histogram_summary image_summary merge_summary
old_names: merge_all_summaries
script_ops: py_func numpy_function
misc: GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER CXX11_ABI_FLAG CXX_VERSION
misc: MONOLITHIC_BUILD disable_v2_behavior disable_v2_tensorshape disable_tensor_equality disable_control_flow_v2
misc: enable_v2_tensorshape get_static_value is_symbolic_tensor load_op_library load_library
nn_dilation: required_space_to_batch_paddings
misc: load_file_system_library get_logger sparse_matmul quantize quantize_v2
misc: enable_tensor_equality enable_control_flow_v2 control_flow_v2_enabled enable_v2_behavior assert_proper_iterable
module: Module

"""
_BASE_MODULES = (
    "errors config raw_ops compat math linalg strings sparse random io dtypes bitwise sets manip quantization version queue debugging "
    "gfile python_io ragged app flags logging test graph_util resource_loader sysconfig lookup lookup_ops distributions "
    "ragged_strings special_functions special_ops string_ops sparse_ops linear_operator linear_operator_kinds "
    "linear_operator_made linalg_ops stateless_random random_ops")

# Variables, optimizers, savers, hooks, queues, clusters.
_TRAINING = """
variables: Variable VariableV1 VariableSynchronization VariableAggregation global_variables local_variables
variables: model_variables moving_average_variables trainable_variables all_variables variables_initializer
variables: global_variables_initializer local_variables_initializer initialize_variables initialize_all_variables
variables: initialize_local_variables is_variable_initialized assert_variables_initialized
variables: report_uninitialized_variables enable_resource_variables disable_resource_variables
variables: resource_variables_enabled
variable_scopes: AUTO_REUSE VariableScope variable_scope variable_op_scope get_variable get_local_variable
variable_scopes: get_variable_scope no_regularizer variable_creator_scope fixed_size_partitioner
variable_scopes: variable_axis_size_partitioner min_max_variable_partitioner create_partitioned_variables
state_ops: assign assign_add assign_sub scatter_update scatter_add scatter_sub scatter_mul scatter_div scatter_min
state_ops: scatter_max scatter_nd_update scatter_nd_add scatter_nd_sub batch_scatter_update count_up_to
init_ops: zeros_initializer ones_initializer constant_initializer random_uniform_initializer
init_ops: random_normal_initializer truncated_normal_initializer uniform_unit_scaling_initializer
init_ops: variance_scaling_initializer glorot_uniform_initializer glorot_normal_initializer orthogonal_initializer
clip_ops: clip_by_norm clip_by_global_norm clip_by_average_norm global_norm
data_flow: QueueBase FIFOQueue RandomShuffleQueue PaddingFIFOQueue PriorityQueue ConditionalAccumulator
data_flow: ConditionalAccumulatorBase SparseConditionalAccumulator
initializers: tables_initializer
"""
_TRAINING_MODULES = "initializers train"

# Layers, losses, metrics, recurrent cells, images, Keras.
_LAYERS = """
"""
_LAYERS_MODULES = "contrib feature_column keras layers losses metrics nn"

# Control flow, data, summaries, saved models, eager execution, functions.
_FLOW = """
control_flow: cond case switch_case while_loop group tuple no_op Assert
check_ops: assert_equal assert_none_equal assert_less assert_less_equal assert_greater assert_greater_equal
check_ops: assert_positive assert_negative assert_non_negative assert_non_positive assert_near assert_type assert_rank
check_ops: assert_rank_at_least assert_rank_in assert_integer assert_scalar assert_same_float_dtype
check_ops: is_non_decreasing is_strictly_increasing is_numeric_tensor ensure_shape
functional_ops: map_fn foldl foldr scan
eager: enable_eager_execution disable_eager_execution executing_eagerly_outside_functions
backprop: GradientTape custom_gradient recompute_grad grad_pass_through
def_function: function TensorSpec
eager_script: py_function
tensor_array: TensorArray
"""
_FLOW_MODULES = "autograph data distribute estimator image nest saved_model signal summary"

LAZY = {}
for _section in (_BASE, _TRAINING, _LAYERS, _FLOW):
    for _row in _section.strip().splitlines():
        _module, _, _listed = _row.partition(":")
        LAZY.update(dict.fromkeys(_listed.split(), _module))
SUBMODULES = frozenset(" ".join((_BASE_MODULES, _TRAINING_MODULES, _LAYERS_MODULES, _FLOW_MODULES)).split())
