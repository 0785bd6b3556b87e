"""The parameters of functions that differ from 1.x, written as in a def.

A function of this table is that of 1.x with other parameters: the names say which is which, so no more is needed.
"""

import inspect

PARAMETERS = {}
for _row in """
config.experimental.set_device_policy: device_policy
device: device_name
fill: dims, value, name=None, layout=None
image.non_max_suppression_padded: boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float('-inf'), \
    pad_to_max_output_size=False, name=None, sorted_input=False, canonicalized_coordinates=False, tile_size=512
is_tensor: x
matmul linalg.matmul: a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, \
    a_is_sparse=False, b_is_sparse=False, output_type=None, grad_a=False, grad_b=False, name=None
nest.is_nested: seq
nn.max_pool2d: input, ksize, strides, padding, data_format='NHWC', name=None
nn.nce_loss: weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, remove_accidental_hits=False, name='nce_loss'
nn.sampled_softmax_loss: weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None, \
    remove_accidental_hits=True, seed=None, name='sampled_softmax_loss'
ones zeros: shape, dtype=float32, name=None, layout=None
reverse_sequence: input, seq_lengths, seq_axis=None, batch_axis=None, name=None
tensor_scatter_nd_add tensor_scatter_nd_max: tensor, indices, updates, bad_indices_policy='', name=None
tensor_scatter_nd_min tensor_scatter_nd_sub: tensor, indices, updates, bad_indices_policy='', name=None
argmax argmin math.argmax math.argmin: input, axis=None, output_type=int64, name=None
assert_equal assert_greater assert_less: x, y, message=None, summarize=None, name=None
debugging.assert_equal debugging.assert_greater debugging.assert_less: x, y, message=None, summarize=None, name=None
debugging.assert_greater_equal debugging.assert_less_equal: x, y, message=None, summarize=None, name=None
debugging.assert_none_equal: x, y, summarize=None, message=None, name=None
debugging.assert_near: x, y, rtol=None, atol=None, message=None, summarize=None, name=None
debugging.assert_negative debugging.assert_positive: x, message=None, summarize=None, name=None
debugging.assert_non_negative debugging.assert_non_positive: x, message=None, summarize=None, name=None
assert_rank debugging.assert_rank debugging.assert_rank_at_least: x, rank, message=None, name=None
debugging.assert_rank_in: x, ranks, message=None, name=None
debugging.assert_scalar: tensor, message=None, name=None
debugging.assert_all_finite: x, message, name=None
batch_to_space: input, block_shape, crops, name=None
space_to_batch nn.space_to_batch: input, block_shape, paddings, name=None
boolean_mask: tensor, mask, axis=None, name='boolean_mask'
constant: value, dtype=None, shape=None, name='Const'
convert_to_tensor: value, dtype=None, dtype_hint=None, name=None
expand_dims: input, axis, name=None
gather: params, indices, validate_indices=None, axis=None, batch_dims=0, name=None
gather_nd: params, indices, batch_dims=0, name=None, bad_indices_policy=''
gradients: ys, xs, grad_ys=None, name='gradients', gate_gradients=False, aggregation_method=None, stop_gradients=None, unconnected_gradients=NONE
hessians: ys, xs, gate_gradients=False, aggregation_method=None, name='hessians'
image.crop_and_resize: image, boxes, box_indices, crop_size, method='bilinear', extrapolation_value=0, name=None
image.draw_bounding_boxes: images, boxes, colors, name=None
io.decode_csv: records, record_defaults, field_delim=',', use_quote_delim=True, na_value='', select_cols=None, name=None
io.parse_example io.parse_single_example: serialized, features, example_names=None, name=None
io.serialize_many_sparse io.serialize_sparse: sp_input, out_type=string, name=None
math.confusion_matrix: labels, predictions, num_classes=None, weights=None, dtype=int32, name=None
math.count_nonzero: input, axis=None, keepdims=None, dtype=int64, name=None
math.in_top_k nn.in_top_k: targets, predictions, k, name=None
math.log_softmax math.softmax nn.log_softmax nn.softmax: logits, axis=None, name=None
nn.avg_pool2d: input, ksize, strides, padding, data_format='NHWC', name=None
nn.batch_norm_with_global_normalization: input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization, name=None
nn.conv1d: input, filters, stride, padding, data_format='NWC', dilations=None, name=None
nn.conv2d: input, filters, strides, padding, data_format='NHWC', dilations=None, name=None
nn.conv3d: input, filters, strides, padding, data_format='NDHWC', dilations=None, name=None
nn.conv2d_transpose: input, filters, output_shape, strides, padding='SAME', data_format='NHWC', dilations=None, name=None
nn.conv3d_transpose: input, filters, output_shape, strides, padding='SAME', data_format='NDHWC', dilations=None, name=None
nn.crelu: features, axis=-1, name=None
nn.depth_to_space nn.space_to_depth: input, block_size, data_format='NHWC', name=None
nn.depthwise_conv2d: input, filter, strides, padding, data_format=None, dilations=None, name=None
nn.dropout: x, rate, noise_shape=None, seed=None, name=None
nn.embedding_lookup_sparse: params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, allow_fast_lookup=False
nn.max_pool_with_argmax: input, ksize, strides, padding, data_format='NHWC', output_dtype=int64, include_batch_in_index=False, name=None
nn.moments nn.sufficient_statistics: x, axes, shift=None, keepdims=False, name=None
nn.weighted_moments: x, axes, frequency_weights, keepdims=False, name=None
nn.separable_conv2d: input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None
nn.softmax_cross_entropy_with_logits: labels, logits, axis=-1, name=None
nn.sparse_softmax_cross_entropy_with_logits: labels, logits, name=None
nn.weighted_cross_entropy_with_logits: labels, logits, pos_weight, name=None
norm linalg.norm: tensor, ord='euclidean', axis=None, keepdims=None, name=None
pad: tensor, paddings, mode='CONSTANT', constant_values=0, name=None
random.poisson: shape, lam, dtype=float32, seed=None, name=None
reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean: input_tensor, axis=None, keepdims=False, name=None
reduce_min reduce_prod reduce_sum math.reduce_all math.reduce_any: input_tensor, axis=None, keepdims=False, name=None
math.reduce_logsumexp math.reduce_max math.reduce_mean: input_tensor, axis=None, keepdims=False, name=None
math.reduce_min math.reduce_prod math.reduce_sum: input_tensor, axis=None, keepdims=False, name=None
shape size: input, out_type=int32, name=None
sparse.concat: axis, sp_inputs, expand_nonconcat_dims=False, name=None
sparse.split: sp_input=None, num_split=None, axis=None, name=None
sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum: data, indices, segment_ids, num_segments=None, name=None, sparse_gradient=False
squeeze: input, axis=None, name=None
strings.length: input, unit='BYTE', name=None
strings.substr: input, pos, len, unit='BYTE', name=None
strings.to_hash_bucket: input, num_buckets, name=None
strings.to_number: input, out_type=float32, name=None
transpose: a, perm=None, conjugate=False, name='transpose'
tuple: tensors, control_inputs=None, name=None
""".strip().splitlines():
    _functions, _, _parameters = _row.partition(": ")
    PARAMETERS.update(dict.fromkeys(_functions.split(), _parameters))


# Parameters that 1.x calls otherwise.
RENAMED = {
    "device": {"device_name": "device_name_or_function"},
    "is_tensor": {"x": "value"}, "nest.is_nested": {"seq": "structure"},
}


def with_parameters(function, name, parameters, renamed=None):
    """Returns a function `name` that takes these parameters and passes them on by name.

    It is compiled from text, because binding arguments at every call would cost more than a small op. What 1.x lacks may only have
    its default.
    """
    import runnel
    from runnel import dtypes
    scope = {**vars(dtypes), "NONE": runnel.UnconnectedGradients.NONE}
    signature = inspect.signature(eval("lambda %s: 0" % parameters, scope))
    known, renamed = inspect.signature(function).parameters, renamed or {}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in known.values())
    passed, lines = [], []
    for n, parameter in signature.parameters.items():
        if renamed.get(n, n) in known or takes_all:
            passed.append("%s=%s" % (renamed.get(n, n), n))
        else:
            if parameter.default is parameter.empty:
                raise TypeError("%s of 1.x has no parameter %s" % (name, n))
            test = "is not None" if parameter.default is None else "!= %r" % (parameter.default,)
            lines.append("    if %s %s:\n        raise NotImplementedError('%s: %s = %%r' %% (%s,))\n" % (n, test, name, n, n))
    text = "def %s(%s):\n%s    return _function(%s)\n" % (name, parameters, "".join(lines), ", ".join(passed))
    scope["_function"] = function
    exec(compile(text, __file__, "exec"), scope)
    made = scope[name]
    made.__doc__, made.__module__ = function.__doc__, __name__.rpartition(".")[0]
    return made
