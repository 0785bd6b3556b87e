// MaxPool, AvgPool and their gradients: arguments and checks; isa/pooling.c has the loops.
#include <float.h>
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/pooling.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements read per piece of work: about 50 us.
#define PIECE_ELEMENTS (1 << 18)

typedef struct pooling_state_t {
  rn_window_attrs_t attrs;
  int64_t ksize[4];  // in the order of rn_window_attrs_t
  bool include_batch;
} pooling_state_t;

static rn_status_t check_batch(const pooling_state_t* state) {
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

static rn_status_t read_attrs(const rn_kernel_init_t* init, pooling_state_t* state,
                              const char* kernel) {
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", &state->attrs));
  if (state->attrs.is_nchw)
    return rn_invalid_argument("Default %s only supports NHWC on device type CPU", kernel);
  const rn_attr_value_t* ksize = rn_init_attr(init, "ksize");
  if (ksize->count != 4)
    return rn_invalid_argument("Sliding window ksize field must specify 4 dimensions");
  memcpy(state->ksize, ksize->list_i, sizeof state->ksize);
  return RN_OK;
}

static rn_status_t max_init_as(const rn_kernel_init_t* init, void* state, const char* kernel) {
  pooling_state_t* pooling = state;
  RN_RETURN_IF_ERROR(read_attrs(init, pooling, kernel));
  RN_RETURN_IF_ERROR(check_max_sizes(pooling->ksize));
  if (rn_op_attr_index(init->op, RN_STR("include_batch_in_index")) >= 0)
    pooling->include_batch = rn_init_bool(init, "include_batch_in_index");
  return check_batch(pooling);
}
static rn_status_t max_init(const rn_kernel_init_t* init, void* state) {
  return max_init_as(init, state, "MaxPoolingOp");
}
static rn_status_t no_depth(const pooling_state_t* state, const char* kernel) {
  if (state->ksize[3] == 1 && state->attrs.strides[3] == 1) return RN_OK;
  return rn_unimplemented("%s is not yet supported on the depth dimension.", kernel);
}
static rn_status_t max_gradient_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(max_init_as(init, state, "MaxPoolingGradOp"));
  return no_depth(state, "MaxPoolingGrad");
}
static rn_status_t argmax_gradient_init(const rn_kernel_init_t* init, void* state) {
  return max_init_as(init, state, "MaxPoolingGradOp");
}
static rn_status_t max_second_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(max_init_as(init, state, "MaxPoolingGradGradOp"));
  return no_depth(state, "MaxPoolingGradGrad");
}
// Window and strides are inputs.
static rn_status_t max_v2_init(const rn_kernel_init_t* init, void* state) {
  pooling_state_t* pooling = state;
  RN_RETURN_IF_ERROR(rn_window_init(init, NULL, &pooling->attrs));
  if (pooling->attrs.is_nchw)
    return rn_invalid_argument("Default MaxPoolingOp only supports NHWC on device type CPU");
  return RN_OK;
}

static rn_status_t average_init_as(const rn_kernel_init_t* init, void* state, const char* kernel) {
  pooling_state_t* pooling = state;
  RN_RETURN_IF_ERROR(read_attrs(init, pooling, kernel));
  for (int i = 0; i < 4; ++i)
    if (pooling->ksize[i] <= 0 || pooling->ksize[i] > INT32_MAX)
      return rn_invalid_argument("ksize must be a positive int32 value, got:%" PRId64,
                                 pooling->ksize[i]);
  return check_batch(pooling);
}
static rn_status_t average_init(const rn_kernel_init_t* init, void* state) {
  return average_init_as(init, state, "AvgPoolingOp");
}
static rn_status_t average_gradient_init(const rn_kernel_init_t* init, void* state) {
  return average_init_as(init, state, "AvgPoolingGradOp");
}

// Reads the window and strides of MaxPoolV2 from its inputs.
static rn_status_t read_v2(rn_kernel_ctx_t* ctx, int ksize_at, pooling_state_t* out) {
  *out = *(const pooling_state_t*)ctx->state;
  const rn_tensor_t *ksize = rn_in(ctx, ksize_at), *strides = rn_in(ctx, ksize_at + 1);
  if (ksize->count != 4)
    return rn_invalid_argument("Sliding window ksize field must specify 4 dimensions");
  if (strides->count != 4)
    return rn_invalid_argument("Sliding window stride field must specify 4 dimensions");
  for (int i = 0; i < 4; ++i) {
    out->ksize[i] = RN_DATA(ksize, const int32_t)[i];
    out->attrs.strides[i] = RN_DATA(strides, const int32_t)[i];
    if (out->attrs.strides[i] <= 0)
      return rn_invalid_argument("Stride must be > 0, but got %" PRId64, out->attrs.strides[i]);
  }
  RN_RETURN_IF_ERROR(check_max_sizes(out->ksize));
  return check_batch(out);
}

static rn_status_t check_pads(const pooling_state_t* state) {
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
static rn_status_t measure(const pooling_state_t* state, const int64_t* dims, rn_pooling_t* out) {
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

static const void* lowest_of(rn_dtype_t dtype, rn_dtype_t run_as) {
  static const float float_low = -FLT_MAX, half_low = -65504, bfloat16_low = -0x1.fep127f;
  static const double double_low = -DBL_MAX;
  static const int8_t int8_low = INT8_MIN;
  static const int16_t int16_low = INT16_MIN;
  static const int32_t int32_low = INT32_MIN;
  static const int64_t int64_low = INT64_MIN;
  static const uint64_t zero = 0;
  if (dtype == RN_HALF) return &half_low;
  if (dtype == RN_BFLOAT16) return &bfloat16_low;
  switch (run_as) {
    case RN_FLOAT:
      return &float_low;
    case RN_DOUBLE:
      return &double_low;
    case RN_INT8:
      return &int8_low;
    case RN_INT16:
      return &int16_low;
    case RN_INT32:
      return &int32_low;
    case RN_INT64:
      return &int64_low;
    default:
      return &zero;
  }
}

typedef struct pooling_job_t {
  const rn_pooling_t* pooling;
  rn_pooling_fn_t fn;
} pooling_job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const pooling_job_t* job = arg;
  job->fn(job->pooling, begin, end);
}

// Runs |fn| over |count| rows or images, each reading |elements| elements.
static void run_loop(rn_kernel_ctx_t* ctx, const rn_pooling_t* pooling, rn_pooling_fn_t fn,
                     int64_t count, int64_t elements) {
  pooling_job_t job = {pooling, fn};
  int64_t window = pooling->rows.filter < pooling->rows.in ? pooling->rows.filter : 1;
  if (pooling->columns.filter < pooling->columns.in) window *= pooling->columns.filter;
  double each = (double)elements * (double)window + 1;
  int64_t grain = each >= PIECE_ELEMENTS ? 1 : (int64_t)(PIECE_ELEMENTS / each) + 1;
  rn_pool_for(rn_ctx_pool(ctx), count, grain, run_piece, &job);
}

typedef enum pooling_work_t {
  WORK_MAX,
  WORK_AVERAGE,
  WORK_MAX_GRADIENT,
  WORK_AVERAGE_GRADIENT,
  WORK_MAX_SECOND
} pooling_work_t;

static void run_plain(rn_kernel_ctx_t* ctx, pooling_work_t work, rn_dtype_t dtype,
                      rn_pooling_t* pooling, int64_t batch) {
  const rn_pooling_fns_t* fns = &RN_ISA_PICK(rn_pooling_)[dtype];
  int64_t row = pooling->columns.out * pooling->depth;
  switch (work) {
    case WORK_MAX:
      run_loop(ctx, pooling, fns->max, batch * pooling->rows.out, row);
      break;
    case WORK_AVERAGE:
      run_loop(ctx, pooling, fns->average, batch * pooling->rows.out, row);
      break;
    case WORK_MAX_GRADIENT:
      memset(pooling->dx, 0, (size_t)(batch * pooling->in_size) * rn_dtype_size(dtype));
      run_loop(ctx, pooling, fns->max_gradient, batch, 2 * pooling->out_size);
      break;
    case WORK_AVERAGE_GRADIENT:
      memset(pooling->dx, 0, (size_t)(batch * pooling->in_size) * rn_dtype_size(dtype));
      run_loop(ctx, pooling, fns->average_gradient, batch, pooling->out_size);
      break;
    case WORK_MAX_SECOND:
      run_loop(ctx, pooling, fns->max_second, batch, pooling->out_size);
      break;
  }
}

// For any type; converts 16-bit floats to float and back.
static rn_status_t run(rn_kernel_ctx_t* ctx, pooling_work_t work, rn_dtype_t dtype,
                       rn_pooling_t* pooling, int64_t batch) {
  bool is_narrow = dtype == RN_HALF || dtype == RN_BFLOAT16;
  dtype = rn_dtype_stored(dtype);
  pooling->lowest = lowest_of(dtype, dtype);
  if (!is_narrow) {
    run_plain(ctx, work, dtype, pooling, batch);
    return RN_OK;
  }
  const rn_vector_table_t* table = rn_vector_table();
  rn_widen_fn_t widen = dtype == RN_HALF ? table->widen_half : table->widen_bfloat16;
  int64_t in = batch * pooling->in_size, out = batch * pooling->out_size;
  int64_t dy_size = work == WORK_MAX_SECOND ? in : out, total = 2 * in + 2 * out + dy_size;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  rn_pooling_t wide = *pooling;
  float* x = temp.data;
  float *y = x + in, *dx = y + out, *pooled = dx + in, *dy = pooled + out;
  wide.x = x, wide.y = y, wide.dx = dx, wide.dy = dy, wide.pooled = pooled;
  if (pooling->x) widen(pooling->x, x, in);
  if (pooling->dy) widen(pooling->dy, dy, dy_size);
  if (pooling->pooled) widen(pooling->pooled, pooled, out);
  run_plain(ctx, work, RN_FLOAT, &wide, batch);
  rn_narrow_fn_t narrow = dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16;
  if (pooling->y) narrow(y, pooling->y, out);
  if (pooling->dx) narrow(dx, pooling->dx, in);
  rn_tensor_clear(&temp);
  return RN_OK;
}

static rn_status_t check_image(const rn_tensor_t* x) {
  if (x->rank == 4) return RN_OK;
  return rn_invalid_argument("tensor_in_shape must have 2 spatial dimensions. %d 0", x->rank);
}

// Pooling across channels is pooling across the columns of an image of one channel.
static rn_status_t max_over_depth(const pooling_state_t* state, const int64_t* dims,
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
static rn_status_t measure_max(const pooling_state_t* state, const int64_t* dims, rn_pooling_t* out,
                               int64_t y_dims[4]) {
  bool over_depth = state->ksize[3] != 1;
  RN_RETURN_IF_ERROR(over_depth ? max_over_depth(state, dims, out) : measure(state, dims, out));
  y_dims[0] = dims[0];
  y_dims[1] = over_depth ? dims[1] : out->rows.out;
  y_dims[2] = over_depth ? dims[2] : out->columns.out;
  y_dims[3] = over_depth ? out->columns.out : out->depth;
  return RN_OK;
}

static rn_status_t max_compute_with(rn_kernel_ctx_t* ctx, const pooling_state_t* state) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(check_image(x));
  const int64_t* dims = rn_tensor_dims(x);
  int64_t y_dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(measure_max(state, dims, &pooling, y_dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.y = y->data;
  return run(ctx, WORK_MAX, x->dtype, &pooling, dims[0]);
}
static rn_status_t max_compute(rn_kernel_ctx_t* ctx) { return max_compute_with(ctx, ctx->state); }
static rn_status_t max_v2_compute(rn_kernel_ctx_t* ctx) {
  pooling_state_t state;
  RN_RETURN_IF_ERROR(read_v2(ctx, 1, &state));
  return max_compute_with(ctx, &state);
}

static rn_status_t expect_shape(const char* what, const rn_tensor_t* tensor,
                                const int64_t dims[4]) {
  if (memcmp(rn_tensor_dims(tensor), dims, 4 * sizeof *dims) == 0) return RN_OK;
  return rn_invalid_argument("Expected %s shape to be [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                             "], but got %s",
                             what, dims[0], dims[1], dims[2], dims[3], rn_text_of(tensor).text);
}

// Checks for the gradients of MaxPool: x, y and the incoming gradient.
static rn_status_t check_gradient(rn_kernel_ctx_t* ctx, const pooling_state_t* state, bool second,
                                  rn_pooling_t* out) {
  static const char* const names[3] = {"tensor_in", "tensor_out", "out_backprop"};
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank != 4) return rn_invalid_argument("%s must be 4-dimensional", names[i]);
  const int64_t* dims = rn_tensor_dims(rn_in(ctx, 0));
  RN_RETURN_IF_ERROR(measure(state, dims, out));
  int64_t y_dims[4] = {dims[0], out->rows.out, out->columns.out, out->depth};
  RN_RETURN_IF_ERROR(expect_shape("orig_output", rn_in(ctx, 1), y_dims));
  return expect_shape("grad", rn_in(ctx, 2), second ? dims : y_dims);
}

static rn_status_t max_gradient_with(rn_kernel_ctx_t* ctx, const pooling_state_t* state) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 2);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(check_gradient(ctx, state, false, &pooling));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  if (dx->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.dy = dy->data;
  pooling.dx = dx->data;
  return run(ctx, WORK_MAX_GRADIENT, x->dtype, &pooling, rn_tensor_dim(x, 0));
}
static rn_status_t max_gradient_compute(rn_kernel_ctx_t* ctx) {
  return max_gradient_with(ctx, ctx->state);
}
static rn_status_t max_gradient_v2_compute(rn_kernel_ctx_t* ctx) {
  pooling_state_t state;
  RN_RETURN_IF_ERROR(read_v2(ctx, 3, &state));
  RN_RETURN_IF_ERROR(no_depth(&state, "MaxPoolingGrad"));
  return max_gradient_with(ctx, &state);
}

static rn_status_t max_second_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dx = rn_in(ctx, 2);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(check_gradient(ctx, ctx->state, true, &pooling));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 1)), &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.dy = dx->data;
  pooling.pooled = rn_in(ctx, 1)->data;
  pooling.y = y->data;
  return run(ctx, WORK_MAX_SECOND, x->dtype, &pooling, rn_tensor_dim(x, 0));
}

// Averages levels in float and truncates. Sums of up to 2^16 bytes are exact in float, and their
// quotients are on the right side of the next integer.
static rn_status_t average_levels(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, rn_pooling_t* pooling,
                                  int64_t batch) {
  bool is_large = pooling->rows.filter > (1 << 16) / pooling->columns.filter;
  rn_dtype_t wide = is_large ? RN_DOUBLE : RN_FLOAT;
  int64_t in = batch * pooling->in_size, out = batch * pooling->out_size, total = in + out;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, wide, (rn_shape_t){1, &total}, &temp));
  rn_pooling_t own = *pooling;
  own.x = temp.data;
  own.y = (char*)temp.data + (size_t)in * rn_dtype_size(wide);
  dtype = rn_dtype_stored(dtype);
  rn_casts()->fn[dtype][wide](NULL, &pooling->x, &(int){1}, temp.data, in);
  run_plain(ctx, WORK_AVERAGE, wide, &own, batch);
  rn_casts()->fn[wide][dtype](NULL, (const void* const*)&own.y, &(int){1}, pooling->y, out);
  rn_tensor_clear(&temp);
  return RN_OK;
}

static rn_status_t average_compute(rn_kernel_ctx_t* ctx) {
  const pooling_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(check_image(x));
  if (state->ksize[3] != 1)
    return rn_unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
  const int64_t* dims = rn_tensor_dims(x);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(measure(state, dims, &pooling));
  int64_t y_dims[4] = {dims[0], pooling.rows.out, pooling.columns.out, pooling.depth};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.y = y->data;
  if (rn_dtype_stored(x->dtype) != x->dtype)
    return average_levels(ctx, x->dtype, &pooling, dims[0]);
  return run(ctx, WORK_AVERAGE, x->dtype, &pooling, dims[0]);
}

// Pooling of levels; passes the limits through.
static rn_status_t with_limits(rn_kernel_ctx_t* ctx, rn_status_t (*compute)(rn_kernel_ctx_t*)) {
  static const char* const names[] = {"min_input", "max_input"};
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 1 + i)->rank != 0)
      return rn_invalid_argument("%s shape must be rank 0 but is rank %d, received shape: %s",
                                 names[i], rn_in(ctx, 1 + i)->rank,
                                 rn_text_of(rn_in(ctx, 1 + i)).text);
  RN_RETURN_IF_ERROR(compute(ctx));
  return rn_quant_set_limits(ctx, 1, rn_quant_limits_at(ctx, 1));
}
static rn_status_t quantized_max_compute(rn_kernel_ctx_t* ctx) {
  return with_limits(ctx, max_compute);
}
static rn_status_t quantized_average_compute(rn_kernel_ctx_t* ctx) {
  return with_limits(ctx, average_compute);
}

// Stock accepts a gradient of any spatial size: windows past the end add nothing.
static rn_status_t average_gradient_compute(rn_kernel_ctx_t* ctx) {
  const pooling_state_t* state = ctx->state;
  const rn_tensor_t *sizes = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  if (sizes->rank != 1 || sizes->count != 4)
    return rn_invalid_argument("out_backprop must be 1-dimensional and 4 elements");
  if (dy->rank != 4) return rn_invalid_argument("out_backprop must be 4-dimensional");
  int64_t dims[4];
  for (int i = 0; i < 4; ++i) {
    dims[i] = RN_DATA(sizes, const int32_t)[i];
    if (dims[i] < 0)
      return rn_invalid_argument("Expected a non-negative size, got %" PRId64, dims[i]);
  }
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &dx));
  if (dx->count == 0) return RN_OK;
  if (state->ksize[3] != 1)
    return rn_unimplemented("Non-spatial pooling is not yet supported. Volunteers? :)");
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(measure(state, dims, &pooling));
  for (int d = 1; d < 3; ++d)
    if (rn_tensor_dim(dy, d) > 1 && rn_tensor_dim(dy, d) - 1 > dims[d] / state->attrs.strides[d])
      return rn_invalid_argument("index * stride must be less than or equal to input size");
  memset(dx->data, 0, rn_tensor_bytes(dx));
  if (dy->count == 0) return RN_OK;
  if (rn_tensor_dim(dy, 3) != dims[3])
    return rn_invalid_argument("out_backprop must have the depth of the input");
  if (rn_tensor_dim(dy, 0) > dims[0])
    return rn_invalid_argument("Output only has %" PRId64
                               " elements but computation requested would use element with "
                               "index=%" PRId64,
                               dx->count, (rn_tensor_dim(dy, 0) - 1) * (dx->count / dims[0]));
  int64_t batch = rn_tensor_dim(dy, 0);
  pooling.rows.out = rn_tensor_dim(dy, 1);
  pooling.columns.out = rn_tensor_dim(dy, 2);
  pooling.out_size = pooling.rows.out * pooling.columns.out * pooling.depth;
  pooling.dy = dy->data;
  pooling.dx = dx->data;
  return run(ctx, WORK_AVERAGE_GRADIENT, dy->dtype, &pooling, batch);
}

// With argmax. As in stock, a window over channels is checked and then ignored: the output equals
// the input. That is a known bug which clients may rely on.
static rn_status_t measure_argmax(const pooling_state_t* state, const int64_t* dims,
                                  rn_pooling_t* out, int64_t y_dims[4]) {
  RN_RETURN_IF_ERROR(measure_max(state, dims, out, y_dims));
  if (state->ksize[3] == 1) return RN_OK;
  *out = (rn_pooling_t){0};
  RN_RETURN_IF_ERROR(measure(state, dims, out));
  y_dims[1] = out->rows.out, y_dims[2] = out->columns.out, y_dims[3] = out->depth;
  return RN_OK;
}

static rn_status_t argmax_compute(rn_kernel_ctx_t* ctx) {
  const pooling_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(check_image(x));
  if (x->count == 0) return rn_invalid_argument("tensor_in must not be empty (2)");
  const int64_t* dims = rn_tensor_dims(x);
  int64_t y_dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(measure_argmax(state, dims, &pooling, y_dims));
  rn_tensor_t *y = NULL, *argmax = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){4, y_dims}, &argmax));
  if (y->count == 0) return RN_OK;
  if (argmax->dtype == RN_INT32)
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){4, y_dims}, &temp));
  pooling.x = x->data;
  pooling.y = y->data;
  pooling.argmax = temp.data ? temp.data : argmax->data;
  rn_status_t status = run(ctx, WORK_MAX, x->dtype, &pooling, dims[0]);
  for (int64_t i = 0; state->include_batch && i < y->count; ++i)
    pooling.argmax[i] += i / pooling.out_size * pooling.in_size;
  for (int64_t i = 0; temp.data && i < y->count; ++i)
    RN_DATA(argmax, int32_t)[i] = (int32_t)pooling.argmax[i];
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t argmax_gradient_compute(rn_kernel_ctx_t* ctx) {
  const pooling_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 1), *argmax = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check_image(x));
  rn_pooling_t pooling = {0};
  const int64_t* dims = rn_tensor_dims(x);
  int64_t y_dims[4];
  RN_RETURN_IF_ERROR(measure_argmax(state, dims, &pooling, y_dims));
  if (dy->rank != 4 || argmax->rank != 4)
    return rn_invalid_argument("grad_in and argmax must be 4-dimensional");
  RN_RETURN_IF_ERROR(expect_shape("grad", dy, y_dims));
  RN_RETURN_IF_ERROR(expect_shape("argmax", argmax, y_dims));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  memset(dx->data, 0, rn_tensor_bytes(dx));
  size_t item = rn_dtype_size(x->dtype);
  for (int64_t i = 0; i < dy->count; ++i) {
    int64_t image = i / pooling.out_size * pooling.in_size;
    int64_t at = RN_DATA(argmax, const int64_t)[i] + (state->include_batch ? 0 : image);
    if (at < image || at >= image + pooling.in_size)
      return rn_invalid_argument("Invalid output gradient index: %" PRId64 ", %" PRId64
                                 ", %" PRId64,
                                 at, image, image + pooling.in_size);
    char* to = (char*)dx->data + (size_t)at * item;
    rn_vector_run(RN_VECTOR_ADD, x->dtype, to, 1, (char*)dy->data + (size_t)i * item, 1, to, 1);
  }
  return RN_OK;
}

#define REAL RN_TYPES_REAL
#define ROW(op_, types_, init_, compute_)                                               \
  {                                                                                     \
    .op = op_, .device = "CPU", .types = {{"T", types_}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(pooling_state_t), .init = init_, .compute = compute_           \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MaxPool", REAL, max_init, max_compute),
    ROW("MaxPoolGrad", REAL, max_gradient_init, max_gradient_compute),
    ROW("MaxPoolGradGrad", REAL, max_second_init, max_second_compute),
    {.op = "MaxPoolV2",
     .device = "CPU",
     .types = {{"T", REAL}},
     .host_args = RN_HOST_ARGS("ksize", "strides"),
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(pooling_state_t),
     .init = max_v2_init,
     .compute = max_v2_compute},
    {.op = "MaxPoolGradV2",
     .device = "CPU",
     .types = {{"T", REAL}},
     .host_args = RN_HOST_ARGS("ksize", "strides"),
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(pooling_state_t),
     .init = max_v2_init,
     .compute = max_gradient_v2_compute},
    ROW("MaxPoolWithArgmax", REAL, max_init, argmax_compute),
    ROW("MaxPoolGradWithArgmax", REAL, argmax_gradient_init, argmax_gradient_compute),
    ROW("QuantizedMaxPool", RN_T(QUINT8) | RN_T(QINT8), max_init, quantized_max_compute),
    ROW("QuantizedAvgPool", RN_T(QUINT8) | RN_T(QINT8), average_init, quantized_average_compute),
    ROW("AvgPool", RN_TYPES_FLOATS, average_init, average_compute),
    ROW("AvgPoolGrad", RN_TYPES_FLOATS, average_gradient_init, average_gradient_compute),
};
RN_KERNEL_FAMILY(cpu_pooling, rows);
