// Shape functions of convolutions and pooling.
#include "ops/shapes.h"

// The axes of channels and space in a tensor; the batch is axis 0.
typedef struct rn_layout_t {
  int rank, channels, space;  // |rank| - 2 spatial axes from |space| on
} rn_layout_t;

// Ops without the attribute use NHWC.
static rn_str_t format_of(const rn_shape_ctx_t* ctx) {
  if (rn_op_attr_index(ctx->op, RN_STR("data_format")) < 0) return RN_STR("NHWC");
  return rn_shape_attr(ctx, "data_format")->s;
}

static rn_layout_t layout_of(const rn_shape_ctx_t* ctx, int rank) {
  rn_str_t format = format_of(ctx);
  bool first = format.size > 1 && format.data[1] == 'C';
  return (rn_layout_t){rank, first ? 1 : rank - 1, first ? 2 : 1};
}

// The explicit paddings before and after each axis, checked; NULL if there are none.
static rn_status_t check_paddings(const rn_shape_ctx_t* ctx, rn_layout_t layout,
                                  const int64_t** out_paddings) {
  *out_paddings = NULL;
  if (rn_op_attr_index(ctx->op, RN_STR("explicit_paddings")) < 0) return RN_OK;
  const rn_attr_value_t* paddings = rn_shape_attr(ctx, "explicit_paddings");
  if (!rn_str_is(rn_shape_attr(ctx, "padding")->s, "EXPLICIT")) {
    if (!paddings->count) return RN_OK;
    return rn_invalid_argument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (paddings->count != 2 * layout.rank) {
    return rn_invalid_argument("explicit_paddings attribute must contain %d values, but got: %d",
                               2 * layout.rank, paddings->count);
  }
  for (int i = 0; i < paddings->count; i++) {
    if (paddings->list_i[i] < 0) {
      return rn_invalid_argument("All elements of explicit_paddings must be nonnegative");
    }
    bool in_space = i / 2 != 0 && i / 2 != layout.channels;
    if (!in_space && paddings->list_i[i]) {
      return rn_invalid_argument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
  }
  *out_paddings = paddings->list_i;
  return RN_OK;
}

// Computes the spatial dims of the output: slides |windows|, one per spatial axis, over |in|.
static rn_status_t slide(rn_shape_ctx_t* ctx, rn_layout_t layout, rn_shape_t in,
                         const int64_t* windows, const int64_t* strides, const int64_t* dilations,
                         int64_t* out_dims) {
  const int64_t* paddings;
  RN_TRY(check_paddings(ctx, layout, &paddings));
  rn_str_t padding = rn_shape_attr(ctx, "padding")->s;
  for (int i = 0; i < layout.rank - 2; i++) {
    int axis = layout.space + i;
    RN_TRY(rn_ops_window(in.dims[axis], windows[i], dilations ? dilations[axis] : 1, strides[axis],
                         padding, paddings ? paddings[2 * axis] : 0,
                         paddings ? paddings[2 * axis + 1] : 0, &out_dims[axis]));
  }
  return RN_OK;
}

// Convolutions.

static rn_status_t check_conv_attrs(const rn_shape_ctx_t* ctx, int rank) {
  const rn_attr_value_t *strides = rn_shape_attr(ctx, "strides"),
                        *dilations = rn_shape_attr(ctx, "dilations");
  rn_str_t format = format_of(ctx);
  const char* name = rank == 4 ? "Conv2D" : "Conv3D";
  if (dilations->count != rank) {
    return rn_invalid_argument(
        "%s requires the dilation attribute to contain %d values, but got: %d", name, rank,
        dilations->count);
  }
  if (strides->count != rank && rank == 4) {
    return rn_invalid_argument(
        "Conv2D on data format %.*s requires the stride attribute to contain 4 values, but got: %d",
        RN_STR_ARGS(format), strides->count);
  }
  if (strides->count != rank) {
    return rn_invalid_argument(
        "Conv3D requires the stride attribute to contain 5 values, but got: %d", strides->count);
  }
  return RN_OK;
}

static rn_status_t check_groups(int64_t depth, int64_t filter_depth, int64_t out_depth) {
  if (depth == RN_UNKNOWN || filter_depth == RN_UNKNOWN) return RN_OK;
  if (filter_depth <= 0) {
    return rn_invalid_argument("Depth of filter must not be 0");
  }
  if (depth % filter_depth) {
    return rn_invalid_argument("Depth of input (%" PRId64
                               ") is not a multiple of input depth of filter (%" PRId64 ")",
                               depth, filter_depth);
  }
  int64_t groups = depth / filter_depth;
  if (groups == 0) return rn_invalid_argument("Number of groups must not be 0");
  if (groups > 1 && out_depth != RN_UNKNOWN && out_depth % groups) {
    return rn_invalid_argument("Depth of output (%" PRId64
                               ") is not a multiple of the number of groups (%" PRId64 ")",
                               out_depth, groups);
  }
  return RN_OK;
}

static rn_status_t conv(rn_shape_ctx_t* ctx, int rank) {
  rn_shape_t in, filter;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), rank, &in));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), rank, &filter));
  RN_TRY(check_conv_attrs(ctx, rank));
  rn_layout_t layout = layout_of(ctx, rank);
  int64_t dims[5], out_depth = filter.dims[rank - 1];
  RN_TRY(check_groups(in.dims[layout.channels], filter.dims[rank - 2], out_depth));
  RN_TRY(slide(ctx, layout, in, filter.dims, rn_shape_attr(ctx, "strides")->list_i,
               rn_shape_attr(ctx, "dilations")->list_i, dims));
  dims[0] = in.dims[0];
  dims[layout.channels] = out_depth;
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_conv2d(rn_shape_ctx_t* ctx) { return conv(ctx, 4); }
rn_status_t rn_shape_fn_conv3d(rn_shape_ctx_t* ctx) { return conv(ctx, 5); }

rn_status_t rn_shape_fn_conv2d_backprop_input(rn_shape_ctx_t* ctx) {
  rn_shape_t to, dy, filter;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 4, &filter));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 4, &dy));
  RN_TRY(rn_shape_from_input(ctx, 0, &to));
  rn_layout_t layout = layout_of(ctx, 4);
  int64_t unused;
  RN_TRY(rn_dim_merge(dy.dims[layout.channels], filter.dims[3], &unused));
  int64_t dims[4] = {RN_UNKNOWN, RN_UNKNOWN, RN_UNKNOWN, RN_UNKNOWN};
  if (to.rank == 2) {
    // input_sizes holds only the spatial sizes.
    dims[layout.space] = to.dims[0];
    dims[layout.space + 1] = to.dims[1];
    dims[layout.channels] = filter.dims[2];
  } else if (to.rank == 4) {
    memcpy(dims, to.dims, sizeof dims);
  } else if (rn_shape_has_rank(to)) {
    return rn_invalid_argument(
        "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: %d",
        to.rank);
  }
  RN_TRY(rn_dim_merge(dims[0], dy.dims[0], &dims[0]));
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

// Sets output 0 to the shape in input |i|, which must have this rank.
static rn_status_t sized(rn_shape_ctx_t* ctx, int i, int rank) {
  rn_shape_t to;
  RN_TRY(rn_shape_from_input(ctx, i, &to));
  return rn_shape_with_rank(ctx, to, rank, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_conv2d_backprop_filter(rn_shape_ctx_t* ctx) { return sized(ctx, 1, 4); }
rn_status_t rn_shape_fn_conv2d_backprop_filter_v2(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 4, rn_shape_out(ctx, 0));
}
rn_status_t rn_shape_fn_conv2d_backprop_input_v2(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, rn_shape_out(ctx, 0));
}
rn_status_t rn_shape_fn_conv3d_backprop_filter(rn_shape_ctx_t* ctx) { return sized(ctx, 1, 5); }
rn_status_t rn_shape_fn_conv3d_backprop_input(rn_shape_ctx_t* ctx) { return sized(ctx, 0, 5); }
rn_status_t rn_shape_fn_depthwise_backprop_filter(rn_shape_ctx_t* ctx) { return sized(ctx, 1, 4); }
rn_status_t rn_shape_fn_depthwise_backprop_input(rn_shape_ctx_t* ctx) { return sized(ctx, 0, 4); }

rn_status_t rn_shape_fn_depthwise_conv2d(rn_shape_ctx_t* ctx) {
  rn_shape_t in, filter;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 4, &filter));
  const rn_attr_value_t *strides = rn_shape_attr(ctx, "strides"),
                        *dilations = rn_shape_attr(ctx, "dilations");
  if (strides->count != 4) {
    return rn_invalid_argument(
        "DepthwiseConv2D requires the stride attribute to contain 4 values, but got: %d",
        strides->count);
  }
  if (dilations->count != 4) {
    return rn_invalid_argument(
        "DepthwiseConv2D requires the dilation attribute to contain 4 values, but got: %d",
        dilations->count);
  }
  rn_layout_t layout = layout_of(ctx, 4);
  int64_t dims[4], depth;
  RN_TRY(rn_dim_merge(in.dims[layout.channels], filter.dims[2], &depth));
  RN_TRY(rn_ops_multiply(depth, filter.dims[3], &dims[layout.channels]));
  RN_TRY(slide(ctx, layout, in, filter.dims, strides->list_i, dilations->list_i, dims));
  dims[0] = in.dims[0];
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

// The number of windows that fit. Unlike in other ops, a window larger than the image by less than
// a stride gives 0 instead of an error.
static rn_status_t dilation_windows(int64_t size, int64_t filter, int64_t rate, int64_t stride,
                                    rn_str_t padding, int64_t* out) {
  int64_t reach, span;
  bool is_valid = rn_str_is(padding, "VALID") && size != RN_UNKNOWN && filter != RN_UNKNOWN &&
                  stride > 0 && rate > 0 && !__builtin_sub_overflow(filter, 1, &reach) &&
                  rn_mul_i64_ok(reach, rate, &reach) && rn_add_i64_ok(reach, 1, &reach) &&
                  reach > size && !__builtin_sub_overflow(size, reach, &span);
  if (!is_valid) return rn_ops_window(size, filter, rate, stride, padding, 0, 0, out);
  *out = (span + stride) / stride;
  if (*out >= 0) return RN_OK;
  return rn_invalid_argument("Computed output size would be negative: %" PRId64
                             " [input_size: %" PRId64 ", effective_filter_size: %" PRId64
                             ", stride: %" PRId64 "]",
                             *out, size, reach, stride);
}

rn_status_t rn_shape_fn_dilation2d(rn_shape_ctx_t* ctx) {
  rn_shape_t in, filter;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &filter));
  const rn_attr_value_t *strides = rn_shape_attr(ctx, "strides"),
                        *rates = rn_shape_attr(ctx, "rates");
  if (strides->count != 4 || rates->count != 4) {
    return rn_invalid_argument(
        "Dilation2D requires the stride attribute to contain 4 values, but got: %d",
        strides->count != 4 ? strides->count : rates->count);
  }
  int64_t dims[4] = {in.dims[0], 0, 0, 0};
  RN_TRY(rn_dim_merge(in.dims[3], filter.dims[2], &dims[3]));
  for (int i = 1; i < 3; i++) {
    RN_TRY(dilation_windows(in.dims[i], filter.dims[i - 1], rates->list_i[i], strides->list_i[i],
                            rn_shape_attr(ctx, "padding")->s, &dims[i]));
  }
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

// Pooling.

// |ksize| and |strides| have |rank| values. If |depth_too|, windows may span channels.
static rn_status_t pool(rn_shape_ctx_t* ctx, int rank, const int64_t* ksize, const int64_t* strides,
                        bool depth_too) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), rank, &in));
  rn_layout_t layout = layout_of(ctx, rank);
  int64_t dims[5];
  RN_TRY(slide(ctx, layout, in, ksize + layout.space, strides, NULL, dims));
  dims[0] = in.dims[0];
  dims[layout.channels] = in.dims[layout.channels];
  if (depth_too) {
    RN_TRY(rn_ops_window(in.dims[layout.channels], ksize[layout.channels], 1,
                         strides[layout.channels], rn_shape_attr(ctx, "padding")->s, 0, 0,
                         &dims[layout.channels]));
  }
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}

static rn_status_t pool_by_attrs(rn_shape_ctx_t* ctx, const char* name, int rank, bool depth_too) {
  const rn_attr_value_t *ksize = rn_shape_attr(ctx, "ksize"),
                        *strides = rn_shape_attr(ctx, "strides");
  if (rn_op_attr_index(ctx->op, RN_STR("data_format")) >= 0 &&
      rn_str_is(rn_shape_attr(ctx, "data_format")->s, "NCHW_VECT_C")) {
    // NCHW_VECT_C, a format of GPU kernels, splits the channels into two axes.
    RN_TRY(rn_ops_check_rank(ctx, 0, 5));
    return rn_shape_of_rank(ctx, 5, rn_shape_out(ctx, 0));
  }
  if (strides->count != rank) {
    return rn_invalid_argument("%s requires the stride attribute to contain %d values, but got: %d",
                               name, rank, strides->count);
  }
  if (ksize->count != rank) {
    return rn_invalid_argument("%s requires the ksize attribute to contain %d values, but got: %d",
                               name, rank, ksize->count);
  }
  return pool(ctx, rank, ksize->list_i, strides->list_i, depth_too);
}

rn_status_t rn_shape_fn_avg_pool(rn_shape_ctx_t* ctx) {
  return pool_by_attrs(ctx, "AvgPool", 4, false);
}
rn_status_t rn_shape_fn_max_pool(rn_shape_ctx_t* ctx) {
  return pool_by_attrs(ctx, "MaxPool", 4, true);
}
rn_status_t rn_shape_fn_pool3d(rn_shape_ctx_t* ctx) {
  return pool_by_attrs(ctx, "Pool3D", 5, false);
}

rn_status_t rn_shape_fn_max_pool_with_argmax(rn_shape_ctx_t* ctx) {
  // The op has no data format; it uses NHWC.
  RN_TRY(pool_by_attrs(ctx, "MaxPool", 4, true));
  // The kernel ignores windows over channels, as in TensorFlow.
  rn_shape_t* out = rn_shape_out(ctx, 0);
  if (rn_shape_attr(ctx, "ksize")->list_i[3] != 1 && rn_shape_has_rank(*out))
    RN_TRY(rn_shape_replace_dim(ctx, *out, 3, RN_UNKNOWN, out));
  *rn_shape_out(ctx, 1) = *out;
  return RN_OK;
}

// Windows and strides are inputs |at| and the next.
static rn_status_t pool_by_inputs(rn_shape_ctx_t* ctx, int at) {
  const rn_partial_t* values[2];
  RN_TRY(rn_ops_check_rank(ctx, 0, 4));
  for (int i = 0; i < 2; i++) {
    RN_TRY(rn_ops_check_vector(ctx, at + i, 4));
    values[i] = rn_shape_in_partial(ctx, at + i);
    rn_shape_input_value(ctx, at + i);  // so that errors print it
  }
  for (int i = 0; i < 2; i++) {
    if (!values[i]->is_known || values[i]->count != 4) return RN_OK;
    for (int j = 0; j < 4; j++) {
      if (values[i]->values[j] == RN_UNKNOWN_VALUE) return RN_OK;
    }
  }
  return pool(ctx, 4, values[0]->values, values[1]->values, true);
}
rn_status_t rn_shape_fn_max_pool_v2(rn_shape_ctx_t* ctx) { return pool_by_inputs(ctx, 1); }

rn_status_t rn_shape_fn_max_pool_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, rn_shape_out(ctx, 0));
}
rn_status_t rn_shape_fn_max_pool_3d_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 5, rn_shape_out(ctx, 0));
}
rn_status_t rn_shape_fn_avg_pool_grad(rn_shape_ctx_t* ctx) { return sized(ctx, 0, 4); }
rn_status_t rn_shape_fn_avg_pool_3d_grad(rn_shape_ctx_t* ctx) { return sized(ctx, 0, 5); }

static rn_status_t pool_second(rn_shape_ctx_t* ctx, rn_status_t status) {
  rn_shape_t unused;
  RN_TRY(status);
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 2), &unused));
  return rn_shape_merge(ctx, rn_shape_in(ctx, 1), *rn_shape_out(ctx, 0), &unused);
}
rn_status_t rn_shape_fn_max_pool_grad_grad(rn_shape_ctx_t* ctx) {
  return pool_second(ctx, rn_shape_fn_max_pool(ctx));
}
rn_status_t rn_shape_fn_max_pool_grad_grad_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 2), &unused));
  return pool_second(ctx, pool_by_inputs(ctx, 3));
}
rn_status_t rn_shape_fn_max_pool_3d_grad_grad(rn_shape_ctx_t* ctx) {
  return pool_second(ctx, rn_shape_fn_pool3d(ctx));
}

rn_status_t rn_shape_fn_fractional_pool(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  const rn_attr_value_t* ratio = rn_shape_attr(ctx, "pooling_ratio");
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  if (ratio->count != 4) {
    return rn_invalid_argument("pooling_ratio field must specify 4 dimensions");
  }
  int64_t dims[4];
  for (int i = 0; i < 4; i++) {
    if (!(ratio->list_f[i] >= 1)) {
      return rn_invalid_argument("pooling_ratio cannot be smaller than 1, got: %g",
                                 (double)ratio->list_f[i]);
    }
    // Computed in float, like the kernel: 6 / 1.2f is 5.
    dims[i] =
        in.dims[i] == RN_UNKNOWN ? RN_UNKNOWN : (int64_t)((float)in.dims[i] / ratio->list_f[i]);
  }
  RN_TRY(rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0)));
  // There is one more edge than cells, but TensorFlow infers the number of cells.
  for (int i = 1; i < 3; i++) {
    int64_t edges = dims[i] == RN_UNKNOWN ? RN_UNKNOWN : dims[i] + 1;
    RN_TRY(rn_shape_vector(ctx, edges, rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_fractional_avg_pool_grad(rn_shape_ctx_t* ctx) {
  if (!rn_shape_in_partial(ctx, 0)->is_known) return rn_shape_of_rank(ctx, 4, rn_shape_out(ctx, 0));
  return sized(ctx, 0, 4);
}
rn_status_t rn_shape_fn_fractional_pool_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, rn_shape_out(ctx, 0));
}
