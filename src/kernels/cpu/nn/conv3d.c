// Conv3D and its gradients: attributes, checks and sizes; conv3d_run.c computes.
#include "kernels/cpu/nn/conv3d.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// State of the CPU's kernels. The functions that all devices share see its first part.
typedef struct conv3d_state_t {
  rn_conv3d_attrs_t attrs;
  rn_conv_cache_t cache;
  bool has_cache;
} conv3d_state_t;

static rn_status_t read_attrs(const rn_kernel_init_t* init, rn_conv3d_attrs_t* state,
                              const char* format) {
  const rn_attr_value_t *strides = rn_init_attr(init, "strides"),
                        *dilations = rn_init_attr(init, "dilations");
  bool has_format = rn_op_attr_index(init->op, RN_STR("data_format")) >= 0;
  state->is_ncdhw = has_format && !rn_str_is(rn_init_string(init, "data_format"), "NDHWC");
  if (state->is_ncdhw && init->is_host) return rn_invalid_argument("%s", format);
  if (strides->count != 5)
    return rn_invalid_argument("Sliding window strides field must specify 5 dimensions");
  int channels = state->is_ncdhw ? 1 : 4, first = state->is_ncdhw ? 2 : 1;
  if (strides->list_i[0] != 1 || strides->list_i[channels] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  if (dilations->count != 5)
    return rn_invalid_argument("Dilation rates field must specify 5 dimensions");
  if (dilations->list_i[0] != 1 || dilations->list_i[channels] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support dilation rates in the batch and depth "
        "dimensions.");
  for (int i = 0; i < 3; ++i) {
    state->strides[i] = strides->list_i[first + i];
    state->dilations[i] = dilations->list_i[first + i];
    if (state->strides[i] <= 0)
      return rn_invalid_argument("Spatial strides should be larger than 0.");
    if (state->dilations[i] <= 0)
      return rn_invalid_argument("Dilated rates should be larger than 0.");
  }
  state->padding =
      rn_str_is(rn_init_string(init, "padding"), "SAME") ? RN_PADDING_SAME : RN_PADDING_VALID;
  return RN_OK;
}

rn_status_t rn_conv3d_init(const rn_kernel_init_t* init, void* state) {
  return read_attrs(init, state,
                    "CPU implementation of Conv3D currently only supports the NHWC tensor format.");
}
rn_status_t rn_conv3d_gradient_init(const rn_kernel_init_t* init, void* state) {
  return read_attrs(init, state, "Conv3DBackprop on CPU only supports NDHWC.");
}

static rn_status_t forward_init(const rn_kernel_init_t* init, void* state_) {
  conv3d_state_t* state = state_;
  RN_RETURN_IF_ERROR(rn_conv3d_init(init, &state->attrs));
  rn_conv_cache_init(&state->cache);
  state->has_cache = true;
  return RN_OK;
}

static rn_status_t gradient_init(const rn_kernel_init_t* init, void* state_) {
  conv3d_state_t* state = state_;
  RN_RETURN_IF_ERROR(rn_conv3d_gradient_init(init, &state->attrs));
  rn_conv_cache_init(&state->cache);
  state->has_cache = true;
  return RN_OK;
}

static void destroy(void* state_) {
  conv3d_state_t* state = state_;
  if (state->has_cache) rn_conv_cache_clear(&state->cache);
}

// Computes 16-bit floats in float and rounds once.
static rn_status_t run(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_conv_kind_t kind,
                       rn_dtype_t dtype, const rn_conv3d_t* conv, rn_conv_data_t data) {
  if (dtype != RN_HALF && dtype != RN_BFLOAT16)
    return rn_conv3d_run(ctx, cache, kind, dtype, conv, data);
  const rn_vector_table_t* table = rn_vector_table();
  const bool is_half = dtype == RN_HALF;
  const int result = kind == RN_CONV_FORWARD ? 2 : kind == RN_CONV_INPUT ? 0 : 1;
  int64_t sizes[3] = {conv->batch * conv->in_depth, conv->in_depth * conv->out_depth,
                      conv->batch * conv->out_depth};
  for (int i = 0; i < 3; ++i) {
    sizes[0] *= conv->axes[i].in;
    sizes[1] *= conv->axes[i].filter;
    sizes[2] *= conv->axes[i].out;
  }
  const int64_t total = sizes[0] + sizes[1] + sizes[2];
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  void* narrow[3] = {data.x, data.w, data.y};
  float* wide[3] = {temp.data, (float*)temp.data + sizes[0],
                    (float*)temp.data + sizes[0] + sizes[1]};
  for (int i = 0; i < 3; ++i)
    if (i != result)
      (is_half ? table->widen_half : table->widen_bfloat16)(narrow[i], wide[i], sizes[i]);
  rn_status_t status =
      rn_conv3d_run(ctx, cache, kind, RN_FLOAT, conv, (rn_conv_data_t){wide[0], wide[1], wide[2]});
  if (rn_ok(status))
    (is_half ? table->narrow_half : table->narrow_bfloat16)(wide[result], narrow[result],
                                                            sizes[result]);
  rn_tensor_clear(&temp);
  return status;
}

// Reorders the dims of a tensor to channels last.
static void order(const rn_conv3d_attrs_t* attrs, const int64_t* dims, int64_t out[5]) {
  static const int places[2][5] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  for (int i = 0; i < 5; ++i) out[i] = dims[places[attrs->is_ncdhw][i]];
}

static rn_status_t measure(const rn_conv3d_attrs_t* attrs, const int64_t* x, const int64_t* w,
                           rn_conv3d_t* conv) {
  for (int i = 0; i < 3; ++i) {
    rn_window_attrs_t axis = {.padding = attrs->padding};
    axis.strides[1] = attrs->strides[i];
    axis.dilations[1] = attrs->dilations[i];
    RN_RETURN_IF_ERROR(rn_window_axis(&axis, 1, x[i + 1], w[i], &conv->axes[i]));
  }
  conv->batch = x[0];
  conv->in_depth = x[4];
  conv->out_depth = w[4];
  return RN_OK;
}

rn_status_t rn_conv3d_forward_sizes(const rn_kernel_ctx_t* ctx, rn_conv3d_t* out) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  if (x->rank != 5) return rn_invalid_argument("input must be 5-dimensional");
  if (w->rank != 5) return rn_invalid_argument("filter must be 5-dimensional");
  if (w->count == 0)
    return rn_invalid_argument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  int64_t dims[5];
  order(ctx->state, rn_tensor_dims(x), dims);
  if (dims[4] != rn_tensor_dim(w, 3))
    return rn_invalid_argument("Number of channels in filter (%" PRId64
                               ") must match last dimension of input (%" PRId64 ")",
                               rn_tensor_dim(w, 3), dims[4]);
  return measure(ctx->state, dims, rn_tensor_dims(w), out);
}

rn_status_t rn_conv3d_forward(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                              const rn_conv3d_t* sizes, const rn_tensor_t* x, const rn_tensor_t* w,
                              rn_tensor_t* y) {
  if (y->count == 0) return RN_OK;
  if (x->count == 0) {
    memset(y->data, 0, rn_tensor_bytes(y));
    return RN_OK;
  }
  return run(ctx, cache, RN_CONV_FORWARD, x->dtype, sizes,
             (rn_conv_data_t){x->data, w->data, y->data});
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  rn_conv3d_t sizes = {0};
  RN_RETURN_IF_ERROR(rn_conv3d_forward_sizes(ctx, &sizes));
  const rn_window_axis_t* axes = sizes.axes;
  int64_t dims[5] = {sizes.batch, axes[0].out, axes[1].out, axes[2].out, sizes.out_depth};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &y));
  return rn_conv3d_forward(ctx, &((conv3d_state_t*)ctx->state)->cache, &sizes, rn_in(ctx, 0),
                           rn_in(ctx, 1), y);
}

// Checks for both gradients: the sizes of x, w and y against each other, channels last.
static rn_status_t check_gradient(const rn_conv3d_attrs_t* attrs, const char* op, const int64_t* x,
                                  const int64_t* w, const rn_tensor_t* dy, rn_conv3d_t* conv) {
  if (dy->rank != 5) return rn_invalid_argument("out_backprop tensor must have 5 dimensions");
  int64_t y[5];
  order(attrs, rn_tensor_dims(dy), y);
  if (x[4] != w[3])
    return rn_invalid_argument(
        "input and filter_sizes must have the same number of channels. Got %" PRId64
        " for input and %" PRId64 " for filter_sizes",
        x[4], w[3]);
  if (y[4] != w[4])
    return rn_invalid_argument(
        "out_backprop and filter_sizes must have the same number of channels. Got %" PRId64
        " for out_backprop and %" PRId64 " for filter_sizes",
        y[4], w[4]);
  if (y[0] != x[0])
    return rn_invalid_argument(
        "%s: input and out_backprop must have the same batch size. Input batch: %" PRId64
        ", outbackprop batch: %" PRId64 ", batch_dim: 0",
        op, x[0], y[0]);
  RN_RETURN_IF_ERROR(measure(attrs, x, w, conv));
  for (int i = 0; i < 3; ++i) {
    const rn_window_axis_t* axis = &conv->axes[i];
    if (axis->out != y[i + 1])
      return rn_invalid_argument(
          "%s: Size of out_backprop doesn't match computed: actual = %" PRId64
          ", computed = %" PRId64 " spatial_dim: %d input: %" PRId64 " filter: %" PRId64
          " output: %" PRId64 " stride: %" PRId64 " dilation: %" PRId64,
          op, y[i + 1], axis->out, i + 1, axis->in, axis->filter, y[i + 1], axis->stride,
          axis->dilation);
  }
  return RN_OK;
}

static rn_status_t read_sizes(const rn_tensor_t* sizes, const char* name, int64_t out[5]) {
  if (sizes->count != 5) return rn_invalid_argument("%s tensor must have 5 dimensions", name);
  for (int i = 0; i < 5; ++i) {
    out[i] = rn_int_at(sizes, i);
    if (out[i] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", out[i]);
  }
  return RN_OK;
}

rn_status_t rn_conv3d_gradient_sizes(const rn_kernel_ctx_t* ctx, bool is_input, int64_t dims[5],
                                     rn_conv3d_t* out) {
  const rn_tensor_t *sizes = rn_in(ctx, is_input ? 0 : 1), *other = rn_in(ctx, is_input ? 1 : 0);
  const char* op = is_input ? "Conv3DBackpropInputOp" : "Conv3DBackpropFilterOp";
  int64_t ordered[5];
  if (sizes->dtype == other->dtype) {  // the first versions take a tensor of the result's shape
    if (rn_in(ctx, 0)->rank != 5) return rn_invalid_argument("input tensor must have 5 dimensions");
    if (rn_in(ctx, 1)->rank != 5)
      return rn_invalid_argument("filter_sizes tensor must have 5 dimensions");
    memcpy(dims, rn_tensor_dims(sizes), 5 * sizeof *dims);
    return check_gradient(ctx->state, op, rn_tensor_dims(rn_in(ctx, 0)),
                          rn_tensor_dims(rn_in(ctx, 1)), rn_in(ctx, 2), out);
  }
  if (sizes->rank != 1 && is_input)
    return rn_invalid_argument("shape must be a vector of {int32,int64}, got shape %s",
                               rn_text_of(sizes).text);
  if (sizes->rank != 1)
    return rn_invalid_argument("filter_sizes shape must be rank 1 but is rank %d", sizes->rank);
  RN_RETURN_IF_ERROR(read_sizes(sizes, is_input ? "input" : "filter_sizes", dims));
  if (other->rank != 5)
    return rn_invalid_argument("%s tensor must have 5 dimensions",
                               is_input ? "filter_sizes" : "input");
  order(ctx->state, is_input ? dims : rn_tensor_dims(other), ordered);
  return check_gradient(ctx->state, op, ordered, is_input ? rn_tensor_dims(other) : dims,
                        rn_in(ctx, 2), out);
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx, rn_conv_kind_t kind) {
  const bool is_input = kind == RN_CONV_INPUT;
  const rn_tensor_t *other = rn_in(ctx, is_input ? 1 : 0), *y = rn_in(ctx, 2);
  rn_conv3d_t sizes = {0};
  int64_t dims[5];
  RN_RETURN_IF_ERROR(rn_conv3d_gradient_sizes(ctx, is_input, dims, &sizes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){5, dims}, &out));
  if (out->count == 0) return RN_OK;
  if (y->count == 0 || other->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  void *x = is_input ? out->data : other->data, *w = is_input ? other->data : out->data;
  return run(ctx, &((conv3d_state_t*)ctx->state)->cache, kind, y->dtype, &sizes,
             (rn_conv_data_t){x, w, y->data});
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, RN_CONV_INPUT); }
static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, RN_CONV_FILTER); }

#define ROW(op_, init_, compute_)                                                                \
  {                                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_EXPENSIVE, \
    .host_args = RN_HOST_ARGS("input_sizes", "filter_sizes"),                                    \
    .state_size = sizeof(conv3d_state_t), .init = init_, .destroy = destroy, .compute = compute_ \
  }
static const rn_kernel_def_t rows[] = {
    ROW("Conv3D", forward_init, forward_compute),
    ROW("Conv3DBackpropInput", gradient_init, input_compute),
    ROW("Conv3DBackpropFilter", gradient_init, filter_compute),
    ROW("Conv3DBackpropInputV2", gradient_init, input_compute),
    ROW("Conv3DBackpropFilterV2", gradient_init, filter_compute),
};
RN_KERNEL_FAMILY(cpu_conv3d, rows);
