// Attributes, checks and sizes of pooling: see pooling.h.
#include "kernels/cpu/nn/pooling.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"

static rn_status_t check_batch(const rn_pooling_attrs_t* state) {
  if (state->ksize[0] != 1 || state->attrs.strides[0] != 1)
    return rn_unimplemented("Pooling is not yet supported on the batch dimension.");
  return RN_OK;
}

static rn_status_t check_max_sizes(const int64_t* ksize) {
  for (int i = 0; i < 4; ++i)
    if (ksize[i] <= 0)
      return rn_invalid_argument(
          "Sliding window ksize must be positive. The specified or inferred ksize is: %" PRId64
          ",%" PRId64 ",%" PRId64 ",%" PRId64,
          ksize[0], ksize[1], ksize[2], ksize[3]);
  return RN_OK;
}

static rn_status_t read_attrs(const rn_kernel_init_t* init, rn_pooling_attrs_t* state,
                              const char* kernel) {
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", &state->attrs));
  if (state->attrs.is_nchw && init->is_host)
    return rn_invalid_argument("Default %s only supports NHWC on device type CPU", kernel);
  const rn_attr_value_t* ksize = rn_init_attr(init, "ksize");
  if (ksize->count != 4)
    return rn_invalid_argument("Sliding window ksize field must specify 4 dimensions");
  rn_window_order(state->attrs.is_nchw, ksize->list_i, state->ksize);
  return RN_OK;
}

static rn_status_t max_init_as(const rn_kernel_init_t* init, void* state, const char* kernel) {
  rn_pooling_attrs_t* pooling = state;
  RN_RETURN_IF_ERROR(read_attrs(init, pooling, kernel));
  RN_RETURN_IF_ERROR(check_max_sizes(pooling->ksize));
  if (rn_op_attr_index(init->op, RN_STR("include_batch_in_index")) >= 0)
    pooling->include_batch = rn_init_bool(init, "include_batch_in_index");
  return check_batch(pooling);
}
rn_status_t rn_pooling_max_init(const rn_kernel_init_t* init, void* state) {
  return max_init_as(init, state, "MaxPoolingOp");
}
rn_status_t rn_pooling_no_depth(const rn_pooling_attrs_t* state, const char* kernel) {
  if (state->ksize[3] == 1 && state->attrs.strides[3] == 1) return RN_OK;
  return rn_unimplemented("%s is not yet supported on the depth dimension.", kernel);
}
rn_status_t rn_pooling_max_gradient_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(max_init_as(init, state, "MaxPoolingGradOp"));
  return rn_pooling_no_depth(state, "MaxPoolingGrad");
}
rn_status_t rn_pooling_argmax_gradient_init(const rn_kernel_init_t* init, void* state) {
  return max_init_as(init, state, "MaxPoolingGradOp");
}
rn_status_t rn_pooling_max_second_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(max_init_as(init, state, "MaxPoolingGradGradOp"));
  return rn_pooling_no_depth(state, "MaxPoolingGradGrad");
}
// Window and strides are inputs.
static rn_status_t max_v2_init_as(const rn_kernel_init_t* init, void* state, const char* kernel) {
  rn_pooling_attrs_t* pooling = state;
  RN_RETURN_IF_ERROR(rn_window_init(init, NULL, &pooling->attrs));
  if (pooling->attrs.is_nchw && init->is_host)
    return rn_invalid_argument("Default %s only supports NHWC on device type CPU", kernel);
  return RN_OK;
}
rn_status_t rn_pooling_max_v2_init(const rn_kernel_init_t* init, void* state) {
  return max_v2_init_as(init, state, "MaxPoolingOp");
}
rn_status_t rn_pooling_max_second_v2_init(const rn_kernel_init_t* init, void* state) {
  return max_v2_init_as(init, state, "MaxPoolingGradGradOp");
}

static rn_status_t average_init_as(const rn_kernel_init_t* init, void* state, const char* kernel) {
  rn_pooling_attrs_t* pooling = state;
  RN_RETURN_IF_ERROR(read_attrs(init, pooling, kernel));
  for (int i = 0; i < 4; ++i)
    if (pooling->ksize[i] <= 0 || pooling->ksize[i] > INT32_MAX)
      return rn_invalid_argument("ksize must be a positive int32 value, got:%" PRId64,
                                 pooling->ksize[i]);
  return check_batch(pooling);
}
rn_status_t rn_pooling_average_init(const rn_kernel_init_t* init, void* state) {
  return average_init_as(init, state, "AvgPoolingOp");
}
rn_status_t rn_pooling_average_gradient_init(const rn_kernel_init_t* init, void* state) {
  return average_init_as(init, state, "AvgPoolingGradOp");
}

// Reads the window and strides of MaxPoolV2 from its inputs.
rn_status_t rn_pooling_read_v2(const rn_kernel_ctx_t* ctx, int ksize_at, rn_pooling_attrs_t* out) {
  *out = *(const rn_pooling_attrs_t*)ctx->state;
  const rn_tensor_t *ksize = rn_in(ctx, ksize_at), *strides = rn_in(ctx, ksize_at + 1);
  if (ksize->count != 4)
    return rn_invalid_argument("Sliding window ksize field must specify 4 dimensions");
  if (strides->count != 4)
    return rn_invalid_argument("Sliding window stride field must specify 4 dimensions");
  int64_t sizes[4], steps[4];
  for (int i = 0; i < 4; ++i) {
    sizes[i] = RN_DATA(ksize, const int32_t)[i];
    steps[i] = RN_DATA(strides, const int32_t)[i];
    if (steps[i] <= 0) return rn_invalid_argument("Stride must be > 0, but got %" PRId64, steps[i]);
  }
  rn_window_order(out->attrs.is_nchw, sizes, out->ksize);
  rn_window_order(out->attrs.is_nchw, steps, out->attrs.strides);
  RN_RETURN_IF_ERROR(check_max_sizes(out->ksize));
  return check_batch(out);
}

static rn_status_t check_pads(const rn_pooling_attrs_t* state) {
  if (state->attrs.padding != RN_PADDING_EXPLICIT) return RN_OK;
  static const char* const names[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
  for (int axis = 1; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side)
      if (state->attrs.pads[axis][side] >= state->ksize[axis])
        return rn_invalid_argument(
            "%s padding %" PRId64 " needs to be smaller than the window size %" PRId64,
            names[axis - 1][side], state->attrs.pads[axis][side], state->ksize[axis]);
  return RN_OK;
}

// The geometry over an image of |dims| (batch, rows, columns, channels).
static rn_status_t measure(const rn_pooling_attrs_t* state, const int64_t* dims,
                           rn_pooling_t* out) {
  RN_RETURN_IF_ERROR(check_pads(state));
  RN_RETURN_IF_ERROR(rn_window_axis(&state->attrs, 1, dims[1], state->ksize[1], &out->rows));
  RN_RETURN_IF_ERROR(rn_window_axis(&state->attrs, 2, dims[2], state->ksize[2], &out->columns));
  if (dims[2] && dims[1] > INT32_MAX / dims[2])
    return rn_invalid_argument("An image of %" PRId64 " by %" PRId64 " is too large to pool",
                               dims[1], dims[2]);
  out->depth = dims[3];
  out->in_size = dims[1] * dims[2] * dims[3];
  out->out_size = out->rows.out * out->columns.out * out->depth;
  return RN_OK;
}

// Dims with channels last in the order of the data format.
static void native(const rn_pooling_attrs_t* state, const int64_t dims[4], int64_t out[4]) {
  static const int places[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}};
  for (int i = 0; i < 4; ++i) out[i] = dims[places[state->attrs.is_nchw][i]];
}

static rn_status_t check_image(const rn_tensor_t* x) {
  if (x->rank == 4) return RN_OK;
  return rn_invalid_argument("tensor_in_shape must have 2 spatial dimensions. %d 0", x->rank);
}

// Pooling across channels is pooling across the columns of an image of one channel.
static rn_status_t max_over_depth(const rn_pooling_attrs_t* state, const int64_t* dims,
                                  rn_pooling_t* out) {
  if (state->ksize[1] != 1 || state->ksize[2] != 1)
    return rn_unimplemented(
        "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
  if (dims[3] % state->ksize[3])
    return rn_unimplemented(
        "Depthwise max pooling requires the depth window to evenly divide the input depth");
  if (state->attrs.strides[3] != state->ksize[3])
    return rn_unimplemented(
        "Depthwise max pooling requires the depth window to equal the depth stride");
  int64_t pixels = dims[1] * dims[2], k = state->ksize[3];
  out->rows =
      (rn_window_axis_t){.in = pixels, .filter = 1, .stride = 1, .dilation = 1, .out = pixels};
  out->columns = (rn_window_axis_t){
      .in = dims[3], .filter = k, .stride = k, .dilation = 1, .out = dims[3] / k};
  out->depth = 1;
  out->in_size = pixels * dims[3];
  out->out_size = pixels * (dims[3] / k);
  return RN_OK;
}

// Pooling in space or across channels; |y_dims| are those of the output.
static rn_status_t measure_max(const rn_pooling_attrs_t* state, const int64_t* dims,
                               rn_pooling_t* out, int64_t y_dims[4]) {
  bool over_depth = state->ksize[3] != 1;
  RN_RETURN_IF_ERROR(over_depth ? max_over_depth(state, dims, out) : measure(state, dims, out));
  y_dims[0] = dims[0];
  y_dims[1] = over_depth ? dims[1] : out->rows.out;
  y_dims[2] = over_depth ? dims[2] : out->columns.out;
  y_dims[3] = over_depth ? out->columns.out : out->depth;
  return RN_OK;
}

rn_status_t rn_pooling_max_sizes(const rn_pooling_attrs_t* state, const rn_tensor_t* x,
                                 rn_pooling_t* out, int64_t y_dims[4]) {
  int64_t dims[4], pooled[4];
  RN_RETURN_IF_ERROR(check_image(x));
  rn_window_order(state->attrs.is_nchw, rn_tensor_dims(x), dims);
  RN_RETURN_IF_ERROR(measure_max(state, dims, out, pooled));
  native(state, pooled, y_dims);
  return RN_OK;
}

rn_status_t rn_pooling_average_sizes(const rn_pooling_attrs_t* state, const rn_tensor_t* x,
                                     rn_pooling_t* out, int64_t y_dims[4]) {
  int64_t dims[4];
  RN_RETURN_IF_ERROR(check_image(x));
  if (state->ksize[3] != 1)
    return rn_unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
  rn_window_order(state->attrs.is_nchw, rn_tensor_dims(x), dims);
  RN_RETURN_IF_ERROR(measure(state, dims, out));
  int64_t pooled[4] = {dims[0], out->rows.out, out->columns.out, out->depth};
  native(state, pooled, y_dims);
  return RN_OK;
}

static rn_status_t expect_shape(const char* what, const rn_tensor_t* tensor,
                                const int64_t dims[4]) {
  if (memcmp(rn_tensor_dims(tensor), dims, 4 * sizeof *dims) == 0) return RN_OK;
  return rn_invalid_argument("Expected %s shape to be [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                             "], but got %s",
                             what, dims[0], dims[1], dims[2], dims[3], rn_text_of(tensor).text);
}

rn_status_t rn_pooling_gradient_sizes(const rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state,
                                      bool second, rn_pooling_t* out) {
  static const char* const names[3] = {"tensor_in", "tensor_out", "out_backprop"};
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank != 4) return rn_invalid_argument("%s must be 4-dimensional", names[i]);
  int64_t dims[4], y_dims[4];
  rn_window_order(state->attrs.is_nchw, rn_tensor_dims(rn_in(ctx, 0)), dims);
  RN_RETURN_IF_ERROR(measure(state, dims, out));
  int64_t pooled[4] = {dims[0], out->rows.out, out->columns.out, out->depth};
  native(state, pooled, y_dims);
  RN_RETURN_IF_ERROR(expect_shape("orig_output", rn_in(ctx, 1), y_dims));
  return expect_shape("grad", rn_in(ctx, 2), second ? rn_tensor_dims(rn_in(ctx, 0)) : y_dims);
}

rn_status_t rn_pooling_average_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                              const rn_pooling_attrs_t* state, int64_t dims[4],
                                              rn_pooling_t* out) {
  const rn_tensor_t *sizes = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  if (sizes->rank != 1 || sizes->count != 4)
    return rn_invalid_argument("out_backprop must be 1-dimensional and 4 elements");
  if (dy->rank != 4) return rn_invalid_argument("out_backprop must be 4-dimensional");
  for (int i = 0; i < 4; ++i) {
    dims[i] = RN_DATA(sizes, const int32_t)[i];
    if (dims[i] < 0)
      return rn_invalid_argument("Expected a non-negative size, got %" PRId64, dims[i]);
  }
  if (!dims[0] || !dims[1] || !dims[2] || !dims[3]) return RN_OK;
  if (state->ksize[3] != 1)
    return rn_unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
  int64_t x[4], y[4];
  rn_window_order(state->attrs.is_nchw, dims, x);
  rn_window_order(state->attrs.is_nchw, rn_tensor_dims(dy), y);
  RN_RETURN_IF_ERROR(measure(state, x, out));
  for (int d = 1; d < 3; ++d)
    if (y[d] > 1 && y[d] - 1 > x[d] / state->attrs.strides[d])
      return rn_invalid_argument("index * stride must be less than or equal to input size");
  if (dy->count == 0) return RN_OK;
  if (y[3] != x[3]) return rn_invalid_argument("out_backprop must have the depth of the input");
  if (y[0] > x[0])
    return rn_invalid_argument("Output only has %" PRId64
                               " elements but computation requested would use element with "
                               "index=%" PRId64,
                               x[0] * out->in_size, (y[0] - 1) * out->in_size);
  out->rows.out = y[1];
  out->columns.out = y[2];
  out->out_size = y[1] * y[2] * out->depth;
  return RN_OK;
}

// As in stock, a window over channels is checked and then ignored: the output equals
// the input. That is a known bug which clients may rely on.
static rn_status_t measure_argmax(const rn_pooling_attrs_t* state, const int64_t* dims,
                                  rn_pooling_t* out, int64_t y_dims[4]) {
  RN_RETURN_IF_ERROR(measure_max(state, dims, out, y_dims));
  if (state->ksize[3] == 1) return RN_OK;
  *out = (rn_pooling_t){0};
  RN_RETURN_IF_ERROR(measure(state, dims, out));
  y_dims[1] = out->rows.out, y_dims[2] = out->columns.out, y_dims[3] = out->depth;
  return RN_OK;
}

rn_status_t rn_pooling_argmax_sizes(const rn_pooling_attrs_t* state, const rn_tensor_t* x,
                                    rn_pooling_t* out, int64_t y_dims[4]) {
  RN_RETURN_IF_ERROR(check_image(x));
  if (x->count == 0) return rn_invalid_argument("tensor_in must not be empty (2)");
  return measure_argmax(state, rn_tensor_dims(x), out, y_dims);
}

rn_status_t rn_pooling_argmax_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                             const rn_pooling_attrs_t* state, rn_pooling_t* out) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 1), *argmax = rn_in(ctx, 2);
  int64_t y_dims[4];
  RN_RETURN_IF_ERROR(check_image(x));
  RN_RETURN_IF_ERROR(measure_argmax(state, rn_tensor_dims(x), out, y_dims));
  if (dy->rank != 4 || argmax->rank != 4)
    return rn_invalid_argument("grad_in and argmax must be 4-dimensional");
  RN_RETURN_IF_ERROR(expect_shape("grad", dy, y_dims));
  return expect_shape("argmax", argmax, y_dims);
}
