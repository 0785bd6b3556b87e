// DepthwiseConv2dNative and its gradients; isa/depthwise.c has the loops.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/conv.h"
#include "kernels/cpu/nn/depthwise.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Products per piece of work.
#define PIECE_PRODUCTS 1e5

typedef struct depthwise_state_t {
  rn_window_attrs_t attrs;
} depthwise_state_t;

rn_status_t rn_depthwise_attrs(const rn_kernel_init_t* init, rn_window_attrs_t* attrs) {
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", attrs));
  RN_RETURN_IF_ERROR(rn_window_check_strides(attrs));
  const rn_attr_value_t* d = rn_init_attr(init, "dilations");
  for (int i = 0; i < 4; ++i)
    if (d->list_i[i] != 1)
      return rn_unimplemented(
          "Current kernel implementation does not support dilations, received [%" PRId64 " %" PRId64
          " %" PRId64 " %" PRId64 "]",
          d->list_i[0], d->list_i[1], d->list_i[2], d->list_i[3]);
  return RN_OK;
}

static rn_status_t depthwise_init(const rn_kernel_init_t* init, void* state) {
  rn_window_attrs_t* attrs = &((depthwise_state_t*)state)->attrs;
  RN_RETURN_IF_ERROR(rn_depthwise_attrs(init, attrs));
  if (attrs->is_nchw)
    return rn_unimplemented("Depthwise convolution on CPU is only supported for NHWC format");
  return RN_OK;
}

typedef enum depthwise_work_t { FORWARD, INPUT, FILTER } depthwise_work_t;

typedef struct depthwise_job_t {
  rn_depthwise_t conv;
  const rn_depthwise_fns_t* fns;
  depthwise_work_t work;
  char* parts;  // filter gradients, one per piece
  int64_t piece;
  size_t part_bytes;
} depthwise_job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const depthwise_job_t* job = arg;
  rn_depthwise_t conv = job->conv;
  switch (job->work) {
    case FORWARD:
      job->fns->forward(&conv, begin, end);
      break;
    case INPUT:
      job->fns->input(&conv, begin, end);
      break;
    case FILTER:
      conv.w = job->parts + (size_t)(begin / job->piece) * job->part_bytes;
      memset(conv.w, 0, job->part_bytes);
      job->fns->filter(&conv, begin, end);
      break;
  }
}

static rn_window_axis_t turned_axis(const rn_window_axis_t* axis) {
  rn_window_axis_t out = *axis;
  out.in = axis->out, out.out = axis->in;
  out.before = axis->filter - 1 - axis->before;
  out.after = axis->filter - 1 - axis->after;
  return out;
}

// The gradient of x with stride 1 is a convolution of y by the filter from its end.
static rn_status_t run_turned(rn_kernel_ctx_t* ctx, const rn_depthwise_t* conv, rn_conv_t plain) {
  int64_t taps = conv->rows.filter * conv->columns.filter, count = taps * conv->depth;
  rn_tensor_t filter = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &filter));
  for (int64_t t = 0; t < taps; ++t)
    memcpy(RN_DATA(&filter, float) + (taps - 1 - t) * conv->depth,
           (const float*)conv->w + t * conv->depth, (size_t)conv->depth * sizeof(float));
  plain.rows = turned_axis(&conv->rows);
  plain.columns = turned_axis(&conv->columns);
  rn_conv_depthwise(ctx, &plain, (rn_conv_data_t){conv->y, filter.data, conv->x}, NULL);
  rn_tensor_clear(&filter);
  return RN_OK;
}

static rn_status_t run_plain(rn_kernel_ctx_t* ctx, depthwise_work_t work, rn_dtype_t dtype,
                             const rn_depthwise_t* conv, int64_t batch) {
  int64_t filter = conv->rows.filter * conv->columns.filter,
          channels = conv->depth * conv->multiplier;
  rn_conv_t plain = {.kind = RN_CONV_FORWARD,
                     .batch = batch,
                     .in_depth = conv->depth,
                     .out_depth = channels,
                     .groups = conv->depth,
                     .rows = conv->rows,
                     .columns = conv->columns};
  if (work == FORWARD && dtype == RN_FLOAT && rn_conv_depthwise_fits(&plain)) {
    rn_conv_depthwise(ctx, &plain, (rn_conv_data_t){conv->x, conv->w, conv->y}, NULL);
    return RN_OK;
  }
  if (work == INPUT && dtype == RN_FLOAT && rn_conv_depthwise_fits(&plain) &&
      conv->rows.stride == 1 && conv->columns.stride == 1)
    return run_turned(ctx, conv, plain);
  double row = (double)(conv->columns.out * channels) * (double)filter;
  double each = work == FORWARD ? row : row * (double)conv->rows.out;
  size_t item = rn_dtype_size(dtype);
  depthwise_job_t job = {.conv = *conv,
                         .fns = &RN_ISA_PICK(rn_depthwise_)[dtype],
                         .work = work,
                         .piece = (int64_t)(PIECE_PRODUCTS / (each + 1)) + 1,
                         .part_bytes = (size_t)(filter * channels) * item};
  int64_t count = work == FORWARD ? batch * conv->rows.out : batch;
  rn_tensor_t parts = {0};
  if (work == FILTER) {
    if (job.piece < (batch + 15) / 16) job.piece = (batch + 15) / 16;
    int64_t dims[2] = {(batch + job.piece - 1) / job.piece, filter * channels};
    RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){2, dims}, &parts));
    job.parts = parts.data;
  }
  rn_pool_for(rn_ctx_pool(ctx), count, job.piece, run_piece, &job);
  for (int64_t i = 0; work == FILTER && i * job.piece < batch; ++i)
    rn_vector_run(RN_VECTOR_ADD, dtype, conv->w, 1, job.parts + (size_t)i * job.part_bytes, 1,
                  conv->w, filter * channels);
  rn_tensor_clear(&parts);
  return RN_OK;
}

// Zeroes the filter's gradient first, which is accumulated into. Computes 16-bit floats in float.
static rn_status_t run(rn_kernel_ctx_t* ctx, depthwise_work_t work, rn_dtype_t dtype,
                       rn_depthwise_t* conv, int64_t batch) {
  int64_t sizes[3] = {batch * conv->rows.in * conv->columns.in * conv->depth,
                      conv->rows.filter * conv->columns.filter * conv->depth * conv->multiplier,
                      batch * conv->rows.out * conv->columns.out * conv->depth * conv->multiplier};
  void* narrow[3] = {conv->x, conv->w, conv->y};
  int result = work == FORWARD ? 2 : work == INPUT ? 0 : 1;
  if (dtype != RN_HALF && dtype != RN_BFLOAT16) {
    if (work == FILTER) memset(conv->w, 0, (size_t)sizes[1] * rn_dtype_size(dtype));
    return run_plain(ctx, work, dtype, conv, batch);
  }
  const rn_vector_table_t* table = rn_vector_table();
  int64_t total = sizes[0] + sizes[1] + sizes[2];
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  float* wide[3] = {temp.data, (float*)temp.data + sizes[0],
                    (float*)temp.data + sizes[0] + sizes[1]};
  for (int i = 0; i < 3; ++i)
    if (i != result)
      (dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(narrow[i], wide[i], sizes[i]);
  if (work == FILTER) memset(wide[1], 0, (size_t)sizes[1] * sizeof(float));
  conv->x = wide[0], conv->w = wide[1], conv->y = wide[2];
  rn_status_t status = run_plain(ctx, work, RN_FLOAT, conv, batch);
  (dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(wide[result], narrow[result],
                                                                   sizes[result]);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t measure(const rn_window_attrs_t* attrs, const int64_t x[4], const int64_t w[4],
                           rn_depthwise_t* conv) {
  if (x[3] != w[2])
    return rn_invalid_argument("input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                               x[3], w[2]);
  conv->depth = x[3];
  conv->multiplier = w[3];
  RN_RETURN_IF_ERROR(rn_window_axis(attrs, 1, x[1], w[0], &conv->rows));
  return rn_window_axis(attrs, 2, x[2], w[1], &conv->columns);
}

static rn_status_t expect_rank4(const rn_tensor_t* tensor, const char* name) {
  if (tensor->rank == 4) return RN_OK;
  return rn_invalid_argument("%s must be 4-dimensional%s", name, rn_text_of(tensor).text);
}

rn_status_t rn_depthwise_forward_sizes(const rn_kernel_ctx_t* ctx, const rn_window_attrs_t* attrs,
                                       int64_t y[4], rn_depthwise_t* conv) {
  int64_t x[4], channels = 0;
  RN_RETURN_IF_ERROR(expect_rank4(rn_in(ctx, 0), "input"));
  RN_RETURN_IF_ERROR(expect_rank4(rn_in(ctx, 1), "filter"));
  rn_window_order(attrs->is_nchw, rn_tensor_dims(rn_in(ctx, 0)), x);
  RN_RETURN_IF_ERROR(measure(attrs, x, rn_tensor_dims(rn_in(ctx, 1)), conv));
  if (!rn_mul_i64_ok(conv->depth, conv->multiplier, &channels))
    return rn_invalid_argument("The filter has too many channels");
  y[0] = x[0], y[1] = conv->rows.out, y[2] = conv->columns.out, y[3] = channels;
  return RN_OK;
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  const depthwise_state_t* state = ctx->state;
  rn_depthwise_t conv = {.x = x->data, .w = w->data};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_depthwise_forward_sizes(ctx, &state->attrs, dims, &conv));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  if (y->count == 0) return RN_OK;
  conv.y = y->data;
  return run(ctx, FORWARD, x->dtype, &conv, dims[0]);
}

// Reads the sizes in input |index|.
static rn_status_t read_sizes(const rn_kernel_ctx_t* ctx, int index, const char* op,
                              const char* name, int64_t out[4]) {
  const rn_tensor_t* sizes = rn_in(ctx, index);
  if (sizes->rank != 1)
    return rn_invalid_argument("%s: %s input must be 1-dim, not %d", op, name, sizes->rank);
  if (sizes->count != 4)
    return rn_invalid_argument("%s: %s must contain 4 values, got %" PRId64, op, name,
                               sizes->count);
  for (int i = 0; i < 4; ++i) {
    out[i] = RN_DATA(sizes, const int32_t)[i];
    if (out[i] < 0) return rn_invalid_argument("Dimension %" PRId64 " must be >= 0", out[i]);
  }
  return RN_OK;
}

// |x| has channels last.
static rn_status_t gradient_check(const rn_window_attrs_t* attrs, const char* op,
                                  const int64_t x[4], const int64_t w[4], const rn_tensor_t* dy,
                                  rn_depthwise_t* conv) {
  static const char* const names[2] = {"rows", "cols"};
  if (dy->rank != 4) return rn_invalid_argument("%s: out_backprop must be 4-dimensional", op);
  int64_t y[4];
  rn_window_order(attrs->is_nchw, rn_tensor_dims(dy), y);
  if (x[0] != y[0])
    return rn_invalid_argument("%s: input and out_backprop must have the same batch size", op);
  RN_RETURN_IF_ERROR(measure(attrs, x, w, conv));
  const rn_window_axis_t* axes[2] = {&conv->rows, &conv->columns};
  for (int i = 0; i < 2; ++i)
    if (axes[i]->out != y[i + 1])
      return rn_invalid_argument(
          "%s: Number of %s of out_backprop doesn't match computed: actual = %" PRId64
          ", computed = %" PRId64,
          op, names[i], y[i + 1], axes[i]->out);
  int64_t channels = 0;
  if (!rn_mul_i64_ok(conv->depth, conv->multiplier, &channels) || channels != y[3])
    return rn_invalid_argument("%s: depth_multiplier * in_depth not equal to out_depth", op);
  return RN_OK;
}

rn_status_t rn_depthwise_input_sizes(const rn_kernel_ctx_t* ctx, const rn_window_attrs_t* attrs,
                                     int64_t x[4], rn_depthwise_t* conv) {
  static const char op[] = "DepthwiseConv2DBackpropInput";
  const rn_tensor_t* w = rn_in(ctx, 1);
  int64_t given[4];
  RN_RETURN_IF_ERROR(read_sizes(ctx, 0, op, "input_sizes", given));
  rn_window_order(attrs->is_nchw, given, x);
  if (w->rank != 4) return rn_invalid_argument("%s: filter must be 4-dimensional", op);
  return gradient_check(attrs, op, x, rn_tensor_dims(w), rn_in(ctx, 2), conv);
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) {
  const depthwise_state_t* state = ctx->state;
  const rn_tensor_t *w = rn_in(ctx, 1), *y = rn_in(ctx, 2);
  rn_depthwise_t conv = {.w = w->data, .y = y->data};
  int64_t x[4];
  RN_RETURN_IF_ERROR(rn_depthwise_input_sizes(ctx, &state->attrs, x, &conv));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, x}, &out));
  if (out->count == 0) return RN_OK;
  conv.x = out->data;
  return run(ctx, INPUT, w->dtype, &conv, x[0]);
}

rn_status_t rn_depthwise_filter_sizes(const rn_kernel_ctx_t* ctx, const rn_window_attrs_t* attrs,
                                      int64_t w[4], rn_depthwise_t* conv) {
  static const char op[] = "DepthwiseConv2DBackpropFilter";
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t x_dims[4];
  if (x->rank != 4) return rn_invalid_argument("%s: input must be 4-dimensional", op);
  RN_RETURN_IF_ERROR(read_sizes(ctx, 1, op, "filter_sizes", w));
  rn_window_order(attrs->is_nchw, rn_tensor_dims(x), x_dims);
  return gradient_check(attrs, op, x_dims, w, rn_in(ctx, 2), conv);
}

static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) {
  const depthwise_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *y = rn_in(ctx, 2);
  rn_depthwise_t conv = {.x = x->data, .y = y->data};
  int64_t w[4];
  RN_RETURN_IF_ERROR(rn_depthwise_filter_sizes(ctx, &state->attrs, w, &conv));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, w}, &out));
  if (out->count == 0) return RN_OK;
  conv.w = out->data;
  return run(ctx, FILTER, x->dtype, &conv, rn_tensor_dim(x, 0));
}

#define ROW(op_, compute_)                                                                       \
  {                                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(depthwise_state_t), .init = depthwise_init, .compute = compute_         \
  }

static const rn_kernel_def_t rows[] = {
    ROW("DepthwiseConv2dNative", forward_compute),
    ROW("DepthwiseConv2dNativeBackpropInput", input_compute),
    ROW("DepthwiseConv2dNativeBackpropFilter", filter_compute),
};
RN_KERNEL_FAMILY(cpu_depthwise, rows);
