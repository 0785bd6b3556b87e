"""tf.nn: activations, convolutions, pooling, losses, embeddings and recurrent networks."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "nn.nn_ops: batch_norm_with_global_normalization batch_normalization bias_add compute_average_loss crelu ctc_beam_search_decoder "
    "ctc_beam_search_decoder_v2 ctc_greedy_decoder ctc_loss dropout elu fused_batch_norm approx_max_k approx_min_k in_top_k l2_loss l2_normalize leaky_relu "
    "local_response_normalization log_poisson_loss log_softmax lrn moments normalize_moments relu relu6 relu_layer "
    "scale_regularization_loss selu sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits "
    "softmax_cross_entropy_with_logits_v2 softplus softsign sparse_softmax_cross_entropy_with_logits sufficient_statistics swish "
    "top_k weighted_cross_entropy_with_logits weighted_moments xw_plus_b zero_fraction",
    "nn.nn_conv: atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d avg_pool3d avg_pool_v2 conv1d conv1d_transpose "
    "conv2d conv2d_backprop_filter conv2d_backprop_input conv2d_transpose conv3d conv3d_backprop_filter conv3d_backprop_filter_v2 "
    "conv3d_transpose conv_transpose convolution depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input "
    "depthwise_conv2d_native depthwise_conv2d_native_backprop_filter depthwise_conv2d_native_backprop_input dilation2d erosion2d "
    "fractional_avg_pool fractional_max_pool max_pool max_pool1d max_pool2d max_pool3d max_pool_v2 max_pool_with_argmax separable_conv2d",
    "nn.nn_dilation: pool with_space_to_batch",
    "nn.nn_sampling: all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler learned_unigram_candidate_sampler "
    "log_uniform_candidate_sampler nce_loss sampled_softmax_loss uniform_candidate_sampler",
    "nn.embedding_ops: embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse",
    "nn.rnn: bidirectional_dynamic_rnn dynamic_rnn raw_rnn static_bidirectional_rnn static_rnn static_state_saving_rnn",
    "submodules: rnn_cell",
    "linalg.linalg_ops: normalize",
    "ops.math_ops: sigmoid tanh",
    "ops.array_ops: depth_to_space space_to_batch space_to_depth",
    "raw_ops: quantized_avg_pool quantized_conv2d quantized_max_pool quantized_relu_x",
    "nn.sequence_labels: collapse_repeated ctc_unique_labels",
    "nn.nn_v2: ctc_loss_v2=ctc_loss",
)
