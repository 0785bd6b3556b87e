// Shape functions of Conv, and of convolutions that first resize or pad their images.
#include "ops/shapes.h"

// Conv: any number of batch axes, then those of Conv2D or Conv3D.

typedef struct conv_axes_t {
  int batch;     // leading axes
  int rank;      // of the filter: spatial axes and two more
  int channels;  // axis of the channels, the batch being one axis
  int space;     // the first spatial axis
} conv_axes_t;

static rn_status_t check_ranks(rn_shape_ctx_t* ctx, rn_shape_t in, rn_shape_t filter,
                               conv_axes_t* out) {
  int64_t batch = rn_ops_int(ctx, "batch_dims");
  if (batch < 0) return rn_invalid_argument("Batch dims must be non-negative.");
  int64_t rank = in.rank - batch + 1;
  if (rank != 4 && rank != 5)
    return rn_invalid_argument(
        "Input tensor must be rank 4 or 5, excluding extra batch dimensions, but got: %" PRId64,
        rank);
  if (rank != filter.rank)
    return rn_invalid_argument("Input tensor rank must be the same as filter rank.");
  bool is_first = rn_str_is(rn_shape_attr(ctx, "data_format")->s, "CHANNELS_FIRST");
  *out = (conv_axes_t){(int)batch, (int)rank, is_first ? 1 : (int)rank - 1, is_first ? 2 : 1};
  return RN_OK;
}

static rn_status_t check_lists(const rn_shape_ctx_t* ctx, const conv_axes_t* axes) {
  const rn_attr_value_t *strides = rn_shape_attr(ctx, "strides"),
                        *dilations = rn_shape_attr(ctx, "dilations"),
                        *paddings = rn_shape_attr(ctx, "explicit_paddings");
  if (strides->count != axes->rank)
    return rn_invalid_argument("Stride attribute should contain %d values, but got: %d", axes->rank,
                               strides->count);
  if (dilations->count && dilations->count != axes->rank)
    return rn_invalid_argument(
        "Conv requires the dilation attribute to contain %d values, but got: %d", axes->rank,
        dilations->count);
  bool is_explicit = rn_str_is(rn_shape_attr(ctx, "padding")->s, "EXPLICIT");
  if (!is_explicit && paddings->count)
    return rn_invalid_argument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  if (is_explicit && paddings->count != 2 * axes->rank)
    return rn_invalid_argument("explicit_paddings attribute must contain %d values, but got: %d",
                               2 * axes->rank, paddings->count);
  for (int i = 0; i < paddings->count; ++i) {
    if (paddings->list_i[i] < 0)
      return rn_invalid_argument("All elements of explicit_paddings must be nonnegative");
    if (paddings->list_i[i] && (i / 2 == 0 || i / 2 == axes->channels))
      return rn_invalid_argument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  return RN_OK;
}

static rn_status_t check_depths(const rn_shape_ctx_t* ctx, int64_t depth, int64_t filter_depth,
                                int64_t out_depth) {
  int64_t groups = rn_ops_int(ctx, "groups");
  if (groups < 1) return rn_invalid_argument("Groups attribute should be a positive integer");
  if (depth != RN_UNKNOWN && depth % groups)
    return rn_invalid_argument("Number of groups should divide input depth");
  if (out_depth != RN_UNKNOWN && out_depth % groups)
    return rn_invalid_argument("Number of groups should divide output depth");
  if (depth == RN_UNKNOWN || filter_depth == RN_UNKNOWN) return RN_OK;
  if (filter_depth == 0) return rn_invalid_argument("Depth of filter must not be 0");
  if (depth % filter_depth)
    return rn_invalid_argument("Depth of input (%" PRId64
                               ") is not a multiple of input depth of filter (%" PRId64 ")",
                               depth, filter_depth);
  if (depth / filter_depth != groups)
    return rn_invalid_argument(
        "Input depth divided by filter input depth does not match with groups parameter (%" PRId64
        ")",
        groups);
  return RN_OK;
}

rn_status_t rn_shape_fn_conv(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), filter = rn_shape_in(ctx, 1);
  if (!rn_shape_has_rank(in) || !rn_shape_has_rank(filter)) return RN_OK;
  conv_axes_t axes;
  RN_TRY(check_ranks(ctx, in, filter, &axes));
  RN_TRY(check_lists(ctx, &axes));
  const int64_t *strides = rn_shape_attr(ctx, "strides")->list_i,
                *dilations = rn_shape_attr(ctx, "dilations")->list_i,
                *paddings = rn_shape_attr(ctx, "explicit_paddings")->list_i;
  int64_t dims[RN_MAX_RANK];
  // Axis |a| of the filter's order is axis a + shift of the input.
  int shift = axes.batch - 1;
  memcpy(dims, in.dims, (size_t)in.rank * sizeof *dims);
  RN_TRY(check_depths(ctx, dims[axes.channels + shift], filter.dims[axes.rank - 2],
                      filter.dims[axes.rank - 1]));
  for (int i = 0; i < axes.rank - 2; ++i) {
    int axis = axes.space + i;
    bool has_dilations = rn_shape_attr(ctx, "dilations")->count > 0;
    bool has_paddings = rn_shape_attr(ctx, "explicit_paddings")->count > 0;
    RN_TRY(rn_ops_window(in.dims[axis + shift], filter.dims[i], has_dilations ? dilations[axis] : 1,
                         strides[axis], rn_shape_attr(ctx, "padding")->s,
                         has_paddings ? paddings[2 * axis] : 0,
                         has_paddings ? paddings[2 * axis + 1] : 0, &dims[axis + shift]));
  }
  dims[axes.channels + shift] = filter.dims[axes.rank - 1];
  return rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0));
}

// Resizing, padding, Conv2D. Values are read after all checks, so that only what depends on them
// prints them.

// Adds the paddings in input |i| to the sizes |dims| of images.
static rn_status_t add_paddings(rn_shape_ctx_t* ctx, int i, int64_t dims[4]) {
  const rn_tensor_t* value = rn_shape_input_value(ctx, i);
  for (int d = 0; d < 4; ++d) {
    if (!value) {
      dims[d] = RN_UNKNOWN;
      continue;
    }
    int64_t before = rn_tensor_int(value, 2 * d), after = rn_tensor_int(value, 2 * d + 1);
    if (before < 0 || after < 0) return rn_invalid_argument("Paddings must be non-negative");
    RN_TRY(rn_ops_add(dims[d], before, &dims[d]));
    RN_TRY(rn_ops_add(dims[d], after, &dims[d]));
  }
  return RN_OK;
}

static rn_status_t padded_conv(rn_shape_ctx_t* ctx, bool resizes) {
  int at = resizes ? 2 : 1;  // of the paddings
  rn_shape_t in, two, paddings, pairs, filter;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  RN_TRY(rn_shape_vector(ctx, 2, &two));
  if (resizes) RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 1), two, &two));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, at), 2, &paddings));
  int64_t rank = paddings.dims[0];
  if (rank != RN_UNKNOWN)
    RN_TRY(rn_shape_with_rank(ctx, in, rank > RN_MAX_RANK ? RN_MAX_RANK + 1 : (int)rank, &in));
  RN_TRY(rn_shape_matrix(ctx, 4, 2, &pairs));
  RN_TRY(rn_shape_merge(ctx, paddings, pairs, &paddings));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, at + 1), 4, &filter));
  const rn_attr_value_t* strides = rn_shape_attr(ctx, "strides");
  if (strides->count != 4)
    return rn_invalid_argument(
        "Operation requires the stride attribute to contain 4 values, but got: %d", strides->count);
  for (int i = 1; i < 3; ++i)
    if (strides->list_i[i] <= 0)
      return rn_invalid_argument("Stride must be > 0, but got %" PRId64, strides->list_i[i]);
  int64_t dims[4], depth;
  memcpy(dims, in.dims, sizeof dims);
  const rn_tensor_t* size = resizes ? rn_shape_input_value(ctx, 1) : NULL;
  for (int i = 0; resizes && i < 2; ++i) dims[i + 1] = size ? rn_tensor_int(size, i) : RN_UNKNOWN;
  RN_TRY(add_paddings(ctx, at, dims));
  RN_TRY(rn_dim_merge(dims[3], filter.dims[2], &depth));
  for (int i = 1; i < 3; ++i)
    RN_TRY(rn_ops_window(dims[i], filter.dims[i - 1], 1, strides->list_i[i],
                         rn_shape_attr(ctx, "padding")->s, 0, 0, &dims[i]));
  dims[3] = filter.dims[3];
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_fused_pad_conv2d(rn_shape_ctx_t* ctx) { return padded_conv(ctx, false); }
rn_status_t rn_shape_fn_fused_resize_pad_conv2d(rn_shape_ctx_t* ctx) {
  return padded_conv(ctx, true);
}

// Gradients whose result has the shape of an input.
rn_status_t rn_shape_fn_conv3d_backprop_input_like(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 5, rn_shape_out(ctx, 0));
}
rn_status_t rn_shape_fn_conv3d_backprop_filter_like(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 5, rn_shape_out(ctx, 0));
}
