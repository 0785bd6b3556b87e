// Conv: a convolution over two or three spatial axes, with any number of batch axes. Conv2D and
// Conv3D do the work.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/nn/conv.h"
#include "kernels/cpu/nn/conv3d.h"
#include "kernels/kernel_rows.h"

// A list attribute: batch, spatial axes, channels. Of a longer list only the count is kept.
#define MOST_VALUES 10
typedef struct conv_any_list_t {
  int32_t count;
  int64_t values[MOST_VALUES];
} conv_any_list_t;

typedef struct conv_any_t {
  rn_padding_t padding;
  int64_t batch_dims;
  conv_any_list_t strides, dilations, paddings;
  bool is_first;  // channels before the spatial axes
  rn_conv_cache_t cache;
  bool has_cache;
} conv_any_t;

static conv_any_list_t read_list(const rn_kernel_init_t* init, const char* name) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  conv_any_list_t out = {.count = list->count};
  if (list->count > 0 && list->count <= MOST_VALUES)
    memcpy(out.values, list->list_i, (size_t)list->count * sizeof *out.values);
  return out;
}

static rn_status_t any_init(const rn_kernel_init_t* init, void* state) {
  conv_any_t* any = state;
  if (rn_init_int(init, "groups") != 1)
    return rn_unimplemented("Grouped/Depthwise Convolutions are not supported yet.");
  rn_str_t padding = rn_init_string(init, "padding");
  any->padding = rn_str_is(padding, "SAME")       ? RN_PADDING_SAME
                 : rn_str_is(padding, "EXPLICIT") ? RN_PADDING_EXPLICIT
                                                  : RN_PADDING_VALID;
  any->batch_dims = rn_init_int(init, "batch_dims");
  any->is_first = rn_str_is(rn_init_string(init, "data_format"), "CHANNELS_FIRST");
  any->strides = read_list(init, "strides");
  any->dilations = read_list(init, "dilations");
  any->paddings = read_list(init, "explicit_paddings");
  rn_conv_cache_init(&any->cache);
  any->has_cache = true;
  return RN_OK;
}

static void any_destroy(void* state) {
  conv_any_t* any = state;
  if (any->has_cache) rn_conv_cache_clear(&any->cache);
}

// Checks the lists for |space| spatial axes, channels last.
static rn_status_t check_lists(const conv_any_t* any, int space) {
  int rank = space + 2;
  if (any->strides.count != rank)
    return rn_invalid_argument("Sliding window strides field must specify %d dimensions", rank);
  const int64_t* strides = any->strides.values;
  if (strides[0] != 1 || strides[rank - 1] != 1)
    return rn_invalid_argument(
        "Current implementation does not support strides in the batch and depth dimensions.");
  for (int i = 1; i <= space; ++i)
    if (strides[i] <= 0) return rn_invalid_argument("Spatial strides should be larger than 0.");
  if (any->dilations.count) {
    const int64_t* dilations = any->dilations.values;
    if (any->dilations.count != rank)
      return rn_invalid_argument("Dilation rates field must specify%ddimensions", rank);
    if (dilations[0] != 1 || dilations[rank - 1] != 1)
      return rn_invalid_argument(
          "Current implementation does not support dilation rates in the batch and depth "
          "dimensions.");
    for (int i = 1; i <= space; ++i)
      if (dilations[i] <= 0) return rn_invalid_argument("Dilated rates should be larger than 0.");
  }
  if (any->padding != RN_PADDING_EXPLICIT && any->paddings.count)
    return rn_invalid_argument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  if (any->padding == RN_PADDING_EXPLICIT && any->paddings.count != 2 * rank)
    return rn_invalid_argument("explicit_paddings attribute must contain %d values, but got: %d",
                               2 * rank, any->paddings.count);
  for (int i = 0; i < any->paddings.count; ++i) {
    int64_t padding = any->paddings.values[i];
    if (padding < 0)
      return rn_invalid_argument("All elements of explicit_paddings must be nonnegative");
    if (padding > 0 && (i / 2 == 0 || i / 2 == rank - 1))
      return rn_invalid_argument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
    if (padding > INT32_MAX)
      return rn_invalid_argument("explicit_paddings: %" PRId64 " is too large", padding);
  }
  return RN_OK;
}

// The geometry of spatial axis |i|.
static rn_status_t find_axis(const conv_any_t* any, int i, int64_t in, int64_t filter,
                             rn_window_axis_t* out) {
  rn_window_attrs_t attrs = {.padding = any->padding};
  attrs.strides[1] = any->strides.values[i + 1];
  attrs.dilations[1] = any->dilations.count ? any->dilations.values[i + 1] : 1;
  for (int side = 0; any->padding == RN_PADDING_EXPLICIT && side < 2; ++side)
    attrs.pads[1][side] = any->paddings.values[2 * (i + 1) + side];
  return rn_window_axis(&attrs, 1, in, filter, out);
}

// Checks the call and works out its sizes; |*out_space| is the number of spatial axes.
static rn_status_t measure(const rn_kernel_ctx_t* ctx, int* out_space, rn_conv3d_t* out) {
  const conv_any_t* any = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  int64_t space = x->rank - 1 - any->batch_dims;
  if (space != 2 && space != 3)
    return rn_invalid_argument("The input must have 2 or 3 spatial dimensions but got %" PRId64,
                               space);
  if (any->batch_dims < 0) return rn_invalid_argument("Batch dims must be non-negative.");
  if (w->rank != 4 && w->rank != 5)
    return rn_invalid_argument("The filter must be rank 4 or 5 but got %d", w->rank);
  RN_RETURN_IF_ERROR(check_lists(any, (int)space));
  if (any->is_first && space == 2)
    return rn_unimplemented(
        "The Conv2D op currently only supports the NHWC tensor format on the CPU. The op was given "
        "the format: NCHW");
  if (any->is_first)
    return rn_invalid_argument(
        "CPU implementation of Conv3D currently only supports the NHWC tensor format.");
  const int64_t *in = rn_tensor_dims(x) + any->batch_dims, *filter = rn_tensor_dims(w);
  int64_t depth = filter[w->rank - 2];
  if (w->count == 0)
    return rn_invalid_argument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  if (in[space] != depth)
    return rn_invalid_argument("Input depth must be equal to filter depth: %" PRId64 " vs %" PRId64,
                               in[space], depth);
  if (w->rank != space + 2)
    return rn_invalid_argument("Number of channels in filter (%" PRId64
                               ") must match last dimension of input (%" PRId64 ")",
                               filter[space], in[space]);
  *out_space = (int)space;
  *out = (rn_conv3d_t){.batch = 1, .in_depth = depth, .out_depth = filter[w->rank - 1]};
  for (int64_t i = 0; i < any->batch_dims; ++i)
    if (!rn_mul_i64_ok(out->batch, rn_tensor_dim(x, (int)i), &out->batch))
      return rn_invalid_argument("The batch is too large");
  for (int i = 0; i < space; ++i)
    RN_RETURN_IF_ERROR(find_axis(any, i, in[i], filter[i], &out->axes[i]));
  return RN_OK;
}

static rn_status_t any_compute(rn_kernel_ctx_t* ctx) {
  conv_any_t* any = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  rn_conv3d_t sizes;
  int space = 0;
  RN_RETURN_IF_ERROR(measure(ctx, &space, &sizes));
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(x), x->rank * sizeof *dims);
  for (int i = 0; i < space; ++i) dims[any->batch_dims + i] = sizes.axes[i].out;
  dims[x->rank - 1] = sizes.out_depth;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){x->rank, dims}, &y));
  if (space == 3) return rn_conv3d_forward(ctx, &any->cache, &sizes, x, w, y);
  if (y->count == 0) return RN_OK;
  if (x->count == 0) {
    memset(y->data, 0, rn_tensor_bytes(y));
    return RN_OK;
  }
  rn_conv_t conv = {.kind = RN_CONV_FORWARD,
                    .batch = sizes.batch,
                    .in_depth = sizes.in_depth,
                    .out_depth = sizes.out_depth,
                    .groups = 1,
                    .rows = sizes.axes[0],
                    .columns = sizes.axes[1]};
  return rn_conv_run(ctx, &any->cache, x->dtype, &conv,
                     (rn_conv_data_t){x->data, w->data, y->data});
}

static const rn_kernel_def_t rows[] = {
    {.op = "Conv",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS | RN_T(INT32)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(conv_any_t),
     .init = any_init,
     .destroy = any_destroy,
     .compute = any_compute},
};
RN_KERNEL_FAMILY(cpu_conv_any, rows);
