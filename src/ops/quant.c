// Shape functions of quantization and quantized arithmetic.
#include "framework/uniform_conv.h"
#include "ops/shapes.h"

rn_status_t rn_shape_fn_fake_quant_vars(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  return rn_shape_fn_unchanged(ctx);
}

rn_status_t rn_shape_fn_fake_quant_vars_grad(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0)));
  rn_shape_t limits;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 0, &limits));
  RN_TRY(rn_shape_merge(ctx, limits, rn_shape_in(ctx, 3), &limits));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = RN_SHAPE_SCALAR;
  return RN_OK;
}

// One pair of limits per channel; channels are the last axis.
rn_status_t rn_shape_fn_fake_quant_channels(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  int64_t channels = rn_shape_dim(in, -1);
  for (int i = 1; i < 3; i++) {
    rn_shape_t limits;
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &limits));
    RN_TRY(rn_dim_merge(channels, limits.dims[0], &channels));
  }
  *rn_shape_out(ctx, 0) = in;
  return RN_OK;
}

rn_status_t rn_shape_fn_fake_quant_channels_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  RN_TRY(rn_shape_with_rank_at_most(ctx, in, 4, &in));
  RN_TRY(rn_shape_merge(ctx, in, rn_shape_in(ctx, 1), &in));
  rn_shape_t limits;
  RN_TRY(rn_shape_vector(ctx, rn_shape_dim(in, -1), &limits));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 2), limits, &limits));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 3), limits, &limits));
  *rn_shape_out(ctx, 0) = in;
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = limits;
  return RN_OK;
}

// Checks that inputs |first| to |last| are scalar limits, and sets the two outputs after output 0
// to scalars.
static rn_status_t with_limits(rn_shape_ctx_t* ctx, int first, int last) {
  if (last >= first) RN_TRY(rn_ops_check_scalars(ctx, first, last));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_quantized_same(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return with_limits(ctx, 1, 2);
}
rn_status_t rn_shape_fn_quantized_relux(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return with_limits(ctx, 2, 3);
}
rn_status_t rn_shape_fn_requantize(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return with_limits(ctx, 1, 4);
}
rn_status_t rn_shape_fn_requantization_range(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  *rn_shape_out(ctx, 0) = *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}
rn_status_t rn_shape_fn_quantized_two(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_broadcast2(ctx));
  return with_limits(ctx, 2, 5);
}
rn_status_t rn_shape_fn_quantized_mul(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_broadcast2(ctx));
  return with_limits(ctx, 1, 0);
}
rn_status_t rn_shape_fn_quantized_matmul(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_matmul(ctx));
  return with_limits(ctx, 2, 5);
}
rn_status_t rn_shape_fn_quantized_bias_add(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_bias_add_v1(ctx));
  return with_limits(ctx, 2, 5);
}
rn_status_t rn_shape_fn_quantized_conv2d(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_conv2d(ctx));
  return with_limits(ctx, 2, 5);
}
rn_status_t rn_shape_fn_quantized_avg_pool(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_avg_pool(ctx));
  return with_limits(ctx, 1, 2);
}
rn_status_t rn_shape_fn_quantized_max_pool(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_max_pool(ctx));
  return with_limits(ctx, 1, 2);
}
// The next two read values of inputs, so the checks that need none come first.
rn_status_t rn_shape_fn_quantized_reshape(rn_shape_ctx_t* ctx) {
  RN_TRY(with_limits(ctx, 2, 3));
  return rn_shape_fn_reshape(ctx);
}
rn_status_t rn_shape_fn_quantized_concat(rn_shape_ctx_t* ctx) {
  int parts = (ctx->input_count - 1) / 3;
  RN_TRY(with_limits(ctx, parts + 1, 3 * parts));
  return rn_ops_concat(ctx, 1, parts, 0);
}

// Inputs: an image, then vectors of its depth; two limits follow each.
rn_status_t rn_shape_fn_quantized_batch_norm(rn_shape_ctx_t* ctx) {
  rn_shape_t in, vector;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  int64_t depth = in.dims[3];
  for (int i = 3; i <= 12; i += 3) {
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &vector));
    RN_TRY(rn_dim_merge(depth, vector.dims[0], &depth));
  }
  RN_TRY(rn_shape_replace_dim(ctx, in, 3, depth, rn_shape_out(ctx, 0)));
  return with_limits(ctx, 1, 0);
}

// Checks the limits: scalars if |axis| is -1, else vectors along that axis.
static rn_status_t limits_of_axis(rn_shape_ctx_t* ctx, int64_t axis, rn_shape_t* out) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  int64_t size = RN_UNKNOWN;
  if (axis < -1) return rn_invalid_argument("axis should be at least -1, got %" PRId64, axis);
  if (axis >= RN_MAX_RANK) return rn_invalid_argument("axis is too large: %" PRId64, axis);
  for (int i = 1; i < 3; ++i) RN_TRY(rn_ops_check_rank(ctx, i, axis == -1 ? 0 : 1));
  *out = RN_SHAPE_SCALAR;
  if (axis == -1) return RN_OK;
  RN_TRY(rn_shape_with_rank_at_least(ctx, in, (int)axis + 1, &in));
  for (int i = 1; i < 3; ++i)
    RN_TRY(rn_dim_merge(rn_shape_dim(rn_shape_in(ctx, i), 0), rn_shape_dim(in, (int)axis), &size));
  return rn_shape_vector(ctx, size, out);
}

rn_status_t rn_shape_fn_quantize_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t limits;
  RN_TRY(limits_of_axis(ctx, rn_ops_int(ctx, "axis"), &limits));
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = limits;
  return RN_OK;
}

rn_status_t rn_shape_fn_dequantize(rn_shape_ctx_t* ctx) {
  rn_shape_t limits, in = rn_shape_in(ctx, 0);
  int64_t axis = rn_ops_int(ctx, "axis");
  RN_TRY(limits_of_axis(ctx, axis, &limits));
  // TensorFlow requires a known rank.
  if (axis >= in.rank && axis != -1)
    return rn_invalid_argument("Axis must be less than input dimension(%d), got %" PRId64, in.rank,
                               axis);
  *rn_shape_out(ctx, 0) = in;
  return RN_OK;
}

rn_status_t rn_shape_fn_quantize_and_dequantize_v4_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t limits;
  RN_TRY(rn_ops_check_limits(ctx, rn_shape_in(ctx, 0), 2, rn_ops_int(ctx, "axis"), &limits));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = limits;
  return RN_OK;
}

// Layers of 8-bit levels. The limits of the filter may be given per channel, and so are those of
// the result then.

// Inputs |first| to |last| must be scalars; those |channels| on, two of them, may be vectors.
static rn_status_t layer_limits(rn_shape_ctx_t* ctx, int first, int last, int channels) {
  rn_shape_t limits;
  for (int i = first; i <= last; ++i) {
    bool may_be_many = channels >= 0 && (i == channels || i == channels + 1);
    if (may_be_many)
      RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, i), 1, &limits));
    else
      RN_TRY(rn_ops_check_rank(ctx, i, 0));
  }
  return RN_OK;
}

static rn_status_t layer(rn_shape_ctx_t* ctx, rn_status_t (*product)(rn_shape_ctx_t*)) {
  const char* name = ctx->op->name;
  bool has_bias = strstr(name, "Bias");
  bool is_frozen = strstr(name, "Requantize") || strstr(name, "Dequantize");
  bool is_matmul = strstr(name, "MatMul");
  // Stock checks these of MatMul only, and of a few convolutions.
  bool may_be_many = !is_matmul && strcmp(name, "QuantizedConv2DAndRequantize") != 0 &&
                     strcmp(name, "QuantizedConv2DAndRelu") != 0;
  int first = has_bias ? 3 : 2;
  RN_TRY(product(ctx));
  RN_TRY(layer_limits(ctx, first, first + 3, may_be_many ? first + 2 : -1));
  if (is_frozen) RN_TRY(layer_limits(ctx, first + 4, first + 5, first + 4));
  if (ctx->output_count < 3 || strstr(name, "Depthwise")) return RN_OK;
  rn_shape_t limits = RN_SHAPE_SCALAR;
  if (!is_frozen && may_be_many)
    RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, first + 2), rn_shape_in(ctx, first + 3), &limits));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 2) = limits;
  return RN_OK;
}

rn_status_t rn_shape_fn_quantized_layer_conv2d(rn_shape_ctx_t* ctx) {
  return layer(ctx, rn_shape_fn_conv2d);
}
rn_status_t rn_shape_fn_quantized_layer_depthwise(rn_shape_ctx_t* ctx) {
  return layer(ctx, rn_shape_fn_depthwise_conv2d);
}
rn_status_t rn_shape_fn_quantized_layer_matmul(rn_shape_ctx_t* ctx) {
  return layer(ctx, rn_shape_fn_matmul);
}

rn_status_t rn_shape_fn_quantized_concat_v2(rn_shape_ctx_t* ctx) {
  int parts = (ctx->input_count - 1) / 3;
  RN_TRY(with_limits(ctx, parts + 1, 3 * parts));
  return rn_ops_concat(ctx, 0, parts - 1, parts);
}
rn_status_t rn_shape_fn_quantized_instance_norm(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return with_limits(ctx, 1, 2);
}
rn_status_t rn_shape_fn_quantized_resize_bilinear(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  RN_TRY(with_limits(ctx, 2, 3));
  return rn_ops_resized(ctx, 1, in.dims[0], in.dims[3]);
}
rn_status_t rn_shape_fn_requantization_range_per_channel(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  RN_TRY(rn_ops_check_rank(ctx, 2, 1));
  *rn_shape_out(ctx, 0) = *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}
rn_status_t rn_shape_fn_requantize_per_channel(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  RN_TRY(rn_ops_check_rank(ctx, 2, 1));
  return with_limits(ctx, 3, 4);
}

rn_status_t rn_shape_fn_uniform_dot(rn_shape_ctx_t* ctx) {
  rn_shape_t lhs, rhs;
  int64_t inner;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &lhs));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &rhs));
  RN_TRY(rn_dim_merge(lhs.dims[1], rhs.dims[0], &inner));
  return rn_shape_matrix(ctx, lhs.dims[0], rhs.dims[1], rn_shape_out(ctx, 0));
}

static const rn_attr_value_t* attr_of(const void* from, const char* name) {
  return rn_shape_attr(from, name);
}

// Scales and zero points, inputs |at| and the next, are scalars or vectors.
static rn_status_t check_scales(rn_shape_ctx_t* ctx, int at, int most_rank) {
  rn_shape_t scales, zeros;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, at), most_rank, &scales));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, at + 1), most_rank, &zeros));
  return rn_shape_merge(ctx, scales, zeros, &scales);
}

// Convolutions with all scales, or (hybrid) those of rhs alone.
rn_status_t rn_shape_fn_uniform_conv(rn_shape_ctx_t* ctx) {
  rn_shape_t lhs = rn_shape_in(ctx, 0), rhs = rn_shape_in(ctx, 1);
  rn_uniform_conv_t conv;
  rn_uniform_geometry_t geometry;
  if (ctx->input_count > 4) RN_TRY(check_scales(ctx, 2, 0));
  RN_TRY(check_scales(ctx, ctx->input_count > 4 ? 4 : 2, 1));
  if (ctx->input_count > 4) RN_TRY(check_scales(ctx, 6, 1));
  if (!rn_shape_has_rank(lhs) && !rn_shape_has_rank(rhs)) return RN_OK;
  if (rn_shape_has_rank(lhs) && rn_shape_has_rank(rhs) && lhs.rank != rhs.rank)
    return rn_invalid_argument("lhs and rhs must have same rank.");
  RN_TRY(rn_uniform_conv_read(ctx, attr_of, &conv));
  if (!rn_shape_is_full(lhs) || !rn_shape_is_full(rhs))
    return rn_shape_of_rank(ctx, rn_shape_has_rank(lhs) ? lhs.rank : rhs.rank,
                            rn_shape_out(ctx, 0));
  RN_TRY(rn_uniform_conv_geometry(&conv, lhs, rhs, &geometry));
  return rn_shape_make(ctx, lhs.rank, geometry.dims, rn_shape_out(ctx, 0));
}
