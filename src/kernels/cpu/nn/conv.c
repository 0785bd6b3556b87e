// Conv2D and its gradients: arguments and checks. conv_float.c, conv_bf16.c and
// conv_plain.c do the work.
#include "kernels/cpu/nn/conv.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef struct conv_state_t {
  rn_window_attrs_t attrs;
  rn_conv_cache_t cache;
  bool has_cache;
} conv_state_t;

static rn_status_t check_attrs(const rn_window_attrs_t* attrs) {
  if (attrs->strides[0] != 1 || attrs->strides[3] != 1)
    return rn_unimplemented(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  if (attrs->strides[1] <= 0 || attrs->strides[2] <= 0)
    return rn_invalid_argument("Row and column strides should be larger than 0.");
  if (attrs->dilations[0] != 1 || attrs->dilations[3] != 1)
    return rn_unimplemented(
        "Current implementation does not yet support dilations in the batch and depth "
        "dimensions.");
  if (attrs->dilations[1] <= 0 || attrs->dilations[2] <= 0)
    return rn_invalid_argument("Dilated rates should be larger than 0.");
  return RN_OK;
}

rn_status_t rn_conv_attrs(const rn_kernel_init_t* init, rn_window_attrs_t* out) {
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", out));
  return check_attrs(out);
}

static rn_status_t conv_init(const rn_kernel_init_t* init, void* state) {
  conv_state_t* conv = state;
  rn_conv_cache_init(&conv->cache);
  conv->has_cache = true;
  return rn_conv_attrs(init, &conv->attrs);
}

static void conv_destroy(void* state) {
  conv_state_t* conv = state;
  if (conv->has_cache) rn_conv_cache_clear(&conv->cache);
}

// Computes 16-bit floats in float and rounds once.
static rn_status_t run_narrow(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, bool is_half,
                              const rn_conv_t* conv, rn_conv_data_t data) {
  static const int results[] = {[RN_CONV_FORWARD] = 2, [RN_CONV_INPUT] = 0, [RN_CONV_FILTER] = 1};
  const rn_vector_table_t* table = rn_vector_table();
  const int64_t sizes[3] = {conv->batch * rn_conv_x_size(conv), rn_conv_w_size(conv),
                            conv->batch * rn_conv_y_size(conv)};
  void* narrow[3] = {data.x, data.w, data.y};
  float* wide[3];
  int64_t total = sizes[0] + sizes[1] + sizes[2];
  int result = results[conv->kind];
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  wide[0] = temp.data;
  wide[1] = wide[0] + sizes[0];
  wide[2] = wide[1] + sizes[1];
  for (int i = 0; i < 3; ++i)
    if (i != result)
      (is_half ? table->widen_half : table->widen_bfloat16)(narrow[i], wide[i], sizes[i]);
  rn_conv_data_t floats = {wide[0], wide[1], wide[2]};
  rn_status_t status = rn_conv_run(ctx, cache, RN_FLOAT, conv, floats);
  if (rn_ok(status))
    (is_half ? table->narrow_half : table->narrow_bfloat16)(wide[result], narrow[result],
                                                            sizes[result]);
  rn_tensor_clear(&temp);
  return status;
}

rn_status_t rn_conv_run(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_dtype_t dtype,
                        const rn_conv_t* conv, rn_conv_data_t data) {
  if (dtype == RN_BFLOAT16 && rn_conv_bf16_fits(conv))
    return rn_conv_bf16(ctx, cache, conv, data, NULL);
  if (dtype == RN_HALF || dtype == RN_BFLOAT16)
    return run_narrow(ctx, cache, dtype == RN_HALF, conv, data);
  bool done = false;
  if (dtype == RN_FLOAT) RN_RETURN_IF_ERROR(rn_conv_float(ctx, cache, conv, data, NULL, &done));
  return done ? RN_OK : rn_conv_plain(ctx, dtype, conv, data);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                       rn_conv_data_t data) {
  return rn_conv_run(ctx, &((conv_state_t*)ctx->state)->cache, dtype, conv, data);
}

// Converts between NCHW and NHWC: images with channels first are copied, convolved with channels
// last, and copied back. Stock does so with oneDNN; its plain kernels reject them.
static rn_status_t move_channels(rn_kernel_ctx_t* ctx, const rn_tensor_t* from, rn_tensor_t* to,
                                 bool makes_last) {
  const int64_t* last = rn_tensor_dims(makes_last ? to : from);
  int64_t rows = last[1], columns = last[2], depth = last[3], size = rows * columns;
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, last[0], size * depth, size * depth);
  rn_move_add(&move, size, makes_last ? 1 : depth, makes_last ? depth : 1);
  rn_move_add(&move, depth, makes_last ? size : 1, makes_last ? 1 : size);
  return rn_move_run(&move, rn_ctx_pool(ctx), from->dtype, from->data, to->data);
}

// |*out| is |image| with channels last: itself, or |temp|, which the caller clears.
static rn_status_t channels_last(rn_kernel_ctx_t* ctx, const rn_tensor_t* image, rn_tensor_t* temp,
                                 const rn_tensor_t** out) {
  *out = image;
  if (!((const conv_state_t*)ctx->state)->attrs.is_nchw || image->rank != 4) return RN_OK;
  int64_t dims[4];
  rn_window_order(true, rn_tensor_dims(image), dims);
  RN_RETURN_IF_ERROR(rn_temp(ctx, image->dtype, (rn_shape_t){4, dims}, temp));
  *out = temp;
  return move_channels(ctx, image, temp, true);
}

// Runs |conv| into |out|, an image whose dims with channels last are |dims|; |*image| is its field
// in |data|.
static rn_status_t run_into(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t* data,
                            void** image, rn_tensor_t* out, const int64_t dims[4]) {
  *image = out->data;
  if (!((const conv_state_t*)ctx->state)->attrs.is_nchw) return run(ctx, out->dtype, conv, *data);
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, out->dtype, (rn_shape_t){4, dims}, &temp));
  *image = temp.data;
  rn_status_t status = run(ctx, out->dtype, conv, *data);
  if (rn_ok(status)) status = move_channels(ctx, &temp, out, false);
  rn_tensor_clear(&temp);
  return status;
}

rn_status_t rn_conv_forward_sizes(const rn_window_attrs_t* attrs, const rn_tensor_t* x,
                                  const rn_tensor_t* w, rn_conv_t* conv) {
  if (x->rank != 4)
    return rn_invalid_argument("convolution input must be 4-dimensional: %s", rn_text_of(x).text);
  if (w->rank != 4)
    return rn_invalid_argument("convolution filter must be 4-dimensional: %s", rn_text_of(w).text);
  int64_t x_dims[4];
  rn_window_order(attrs->is_nchw, rn_tensor_dims(x), x_dims);
  int64_t depth = rn_tensor_dim(w, 2);
  conv->kind = RN_CONV_FORWARD;
  conv->batch = x_dims[0];
  conv->in_depth = x_dims[3];
  conv->out_depth = rn_tensor_dim(w, 3);
  if (depth == 0)
    return rn_invalid_argument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  if (conv->in_depth % depth)
    return rn_invalid_argument("input depth must be evenly divisible by filter depth: %" PRId64
                               " vs %" PRId64,
                               conv->in_depth, depth);
  conv->groups = conv->in_depth / depth;
  RN_RETURN_IF_ERROR(rn_window_axis(attrs, 1, x_dims[1], rn_tensor_dim(w, 0), &conv->rows));
  return rn_window_axis(attrs, 2, x_dims[2], rn_tensor_dim(w, 1), &conv->columns);
}

rn_status_t rn_conv_check_groups(const rn_conv_t* conv) {
  if (conv->out_depth % conv->groups == 0) return RN_OK;
  return rn_invalid_argument("output depth must be evenly divisible by number of groups: %" PRId64
                             " vs %" PRId64,
                             conv->out_depth, conv->groups);
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  conv_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  rn_conv_t conv = {0};
  RN_RETURN_IF_ERROR(rn_conv_forward_sizes(&state->attrs, x, w, &conv));
  int64_t dims[4] = {conv.batch, conv.rows.out, conv.columns.out, conv.out_depth};
  int64_t channels_first[4] = {dims[0], dims[3], dims[1], dims[2]};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, (rn_shape_t){4, state->attrs.is_nchw ? channels_first : dims}, &y));
  if (y->count == 0) return RN_OK;
  if (x->count == 0) {
    memset(y->data, 0, rn_tensor_bytes(y));
    return RN_OK;
  }
  if (w->count == 0)
    return rn_invalid_argument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  RN_RETURN_IF_ERROR(rn_conv_check_groups(&conv));
  rn_tensor_t temp = {0};
  const rn_tensor_t* last = NULL;
  rn_status_t status = channels_last(ctx, x, &temp, &last);
  rn_conv_data_t data = {last->data, w->data, NULL};
  if (rn_ok(status)) status = run_into(ctx, &conv, &data, &data.y, y, dims);
  rn_tensor_clear(&temp);
  return status;
}

// Reads |count| sizes from input |index|.
static rn_status_t read_sizes(const rn_kernel_ctx_t* ctx, int index, int64_t* out) {
  const rn_tensor_t* sizes = rn_in(ctx, index);
  for (int64_t i = 0; i < sizes->count; ++i) {
    out[i] = RN_DATA(sizes, const int32_t)[i];
    if (out[i] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", out[i]);
  }
  return RN_OK;
}

static rn_status_t check_axis(const char* op, int spatial, const rn_window_axis_t* axis,
                              int64_t actual) {
  if (axis->out == actual) return RN_OK;
  return rn_invalid_argument(
      "%s: Size of out_backprop doesn't match computed: actual = %" PRId64 ", computed = %" PRId64
      " spatial_dim: %d input: %" PRId64 " filter: %" PRId64 " output: %" PRId64 " stride: %" PRId64
      " dilation: %" PRId64,
      op, actual, axis->out, spatial, axis->in, axis->filter, actual, axis->stride, axis->dilation);
}

// Checks for both gradients: the sizes of x, w and y against each other, channels last. Dilation
// and groups need no special treatment; stock's plain kernels reject them.
static rn_status_t gradient_sizes(const rn_window_attrs_t* attrs, const char* op,
                                  const int64_t x[4], const int64_t w[4], const int64_t y[4],
                                  rn_conv_t* conv) {
  if (x[0] != y[0])
    return rn_invalid_argument(
        "%s: input and out_backprop must have the same batch size. Input batch: %" PRId64
        ", outbackprop batch: %" PRId64 ", batch_dim: 0",
        op, x[0], y[0]);
  if (w[2] <= 0)
    return rn_invalid_argument("%s: filter depth must be strictly greated than zero", op);
  if (x[3] % w[2])
    return rn_invalid_argument("%s: input depth must be evenly divisible by filter depth", op);
  if (w[3] != y[3])
    return rn_invalid_argument("%s: filter and out_backprop must have the same out_depth", op);
  conv->batch = x[0];
  conv->in_depth = x[3];
  conv->out_depth = w[3];
  conv->groups = x[3] / w[2];
  if (x[3]) RN_RETURN_IF_ERROR(rn_conv_check_groups(conv));
  RN_RETURN_IF_ERROR(rn_window_axis(attrs, 1, x[1], w[0], &conv->rows));
  RN_RETURN_IF_ERROR(check_axis(op, 1, &conv->rows, y[1]));
  RN_RETURN_IF_ERROR(rn_window_axis(attrs, 2, x[2], w[1], &conv->columns));
  return check_axis(op, 2, &conv->columns, y[2]);
}

rn_status_t rn_conv_input_sizes(const rn_kernel_ctx_t* ctx, const rn_window_attrs_t* attrs,
                                int64_t x[4], rn_conv_t* conv) {
  const rn_tensor_t *sizes = rn_in(ctx, 0), *w = rn_in(ctx, 1), *y = rn_in(ctx, 2);
  int64_t given[4], y_dims[4];
  if (sizes->rank != 1)
    return rn_invalid_argument("Conv2DBackpropInput: input_sizes input must be 1-dim, not %d",
                               sizes->rank);
  if (sizes->count != 4 && sizes->count != 2)
    return rn_invalid_argument(
        "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: "
        "%" PRId64,
        sizes->count);
  if (y->rank != 4)
    return rn_invalid_argument("input_sizes must be 4-dimensional, got: %d", y->rank);
  if (w->rank != 4)
    return rn_invalid_argument("Conv2DCustomBackpropInput: filter must be 4-dimensional");
  RN_RETURN_IF_ERROR(read_sizes(ctx, 0, given));
  rn_window_order(attrs->is_nchw, rn_tensor_dims(y), y_dims);
  if (sizes->count == 2)  // spatial sizes only
    x[0] = y_dims[0], x[1] = given[0], x[2] = given[1], x[3] = rn_tensor_dim(w, 2);
  else
    rn_window_order(attrs->is_nchw, given, x);
  conv->kind = RN_CONV_INPUT;
  return gradient_sizes(attrs, "Conv2DCustomBackpropInput", x, rn_tensor_dims(w), y_dims, conv);
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) {
  conv_state_t* state = ctx->state;
  const rn_tensor_t *w = rn_in(ctx, 1), *y = rn_in(ctx, 2), *last = NULL;
  rn_conv_t conv = {0};
  int64_t x[4];
  RN_RETURN_IF_ERROR(rn_conv_input_sizes(ctx, &state->attrs, x, &conv));
  int64_t channels_first[4] = {x[0], x[3], x[1], x[2]};
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, (rn_shape_t){4, state->attrs.is_nchw ? channels_first : x}, &out));
  if (out->count == 0) return RN_OK;
  if (y->count == 0 || w->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  rn_status_t status = channels_last(ctx, y, &temp, &last);
  rn_conv_data_t data = {NULL, w->data, last->data};
  if (rn_ok(status)) status = run_into(ctx, &conv, &data, &data.x, out, x);
  rn_tensor_clear(&temp);
  return status;
}

rn_status_t rn_conv_filter_sizes(const rn_kernel_ctx_t* ctx, const rn_window_attrs_t* attrs,
                                 int64_t w[4], rn_conv_t* conv) {
  static const char op[] = "Conv2DCustomBackpropFilter";
  const rn_tensor_t *x = rn_in(ctx, 0), *sizes = rn_in(ctx, 1), *y = rn_in(ctx, 2);
  int64_t x_dims[4], y_dims[4];
  if (sizes->rank != 1)
    return rn_invalid_argument("%s: filter_sizes input must be 1-dim, not %d", op, sizes->rank);
  if (x->rank != 4) return rn_invalid_argument("%s: input must be 4-dimensional", op);
  if (sizes->count != 4) return rn_invalid_argument("%s: filter must be 4-dimensional", op);
  RN_RETURN_IF_ERROR(read_sizes(ctx, 1, w));
  if (y->rank != 4) return rn_invalid_argument("%s: out_backprop must be 4-dimensional", op);
  rn_window_order(attrs->is_nchw, rn_tensor_dims(x), x_dims);
  rn_window_order(attrs->is_nchw, rn_tensor_dims(y), y_dims);
  conv->kind = RN_CONV_FILTER;
  return gradient_sizes(attrs, op, x_dims, w, y_dims, conv);
}

static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) {
  const conv_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *y = rn_in(ctx, 2);
  rn_conv_t conv = {0};
  int64_t w[4];
  RN_RETURN_IF_ERROR(rn_conv_filter_sizes(ctx, &state->attrs, w, &conv));
  rn_tensor_t *out = NULL, temps[2] = {{0}};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, w}, &out));
  if (out->count == 0) return RN_OK;
  if (y->count == 0 || x->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  rn_status_t status = channels_last(ctx, x, &temps[0], &x);
  if (rn_ok(status)) status = channels_last(ctx, y, &temps[1], &y);
  if (rn_ok(status))
    status = run(ctx, x->dtype, &conv, (rn_conv_data_t){x->data, out->data, y->data});
  rn_tensor_clear(&temps[0]);
  rn_tensor_clear(&temps[1]);
  return status;
}

#define ROW(op_, types_, init_, compute_)                                               \
  {                                                                                     \
    .op = op_, .device = "CPU", .types = {{"T", types_}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(conv_state_t), .init = init_, .destroy = conv_destroy,         \
    .compute = compute_                                                                 \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Conv2D", RN_TYPES_FLOATS | RN_T(INT32), conv_init, forward_compute),
    ROW("Conv2DBackpropInput", RN_TYPES_FLOATS | RN_T(INT32), conv_init, input_compute),
    ROW("Conv2DBackpropFilter", RN_TYPES_FLOATS, conv_init, filter_compute),
};
RN_KERNEL_FAMILY(cpu_conv, rows);
