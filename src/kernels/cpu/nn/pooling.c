// MaxPool, AvgPool and their gradients; pooling_sizes.c has the checks, isa/pooling.c the loops.
#include <float.h>
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/nn/pooling.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements read per piece of work: about 50 us.
#define PIECE_ELEMENTS (1 << 18)

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

static rn_status_t max_compute_with(rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t y_dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_max_sizes(state, x, &pooling, y_dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.y = y->data;
  return run(ctx, WORK_MAX, x->dtype, &pooling, y_dims[0]);
}
static rn_status_t max_compute(rn_kernel_ctx_t* ctx) { return max_compute_with(ctx, ctx->state); }
static rn_status_t max_v2_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling_attrs_t state;
  RN_RETURN_IF_ERROR(rn_pooling_read_v2(ctx, 1, &state));
  return max_compute_with(ctx, &state);
}

static rn_status_t max_gradient_with(rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 2);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_gradient_sizes(ctx, state, false, &pooling));
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
  rn_pooling_attrs_t state;
  RN_RETURN_IF_ERROR(rn_pooling_read_v2(ctx, 3, &state));
  RN_RETURN_IF_ERROR(rn_pooling_no_depth(&state, "MaxPoolingGrad"));
  return max_gradient_with(ctx, &state);
}

static rn_status_t max_second_with(rn_kernel_ctx_t* ctx, const rn_pooling_attrs_t* state) {
  const rn_tensor_t *x = rn_in(ctx, 0), *dx = rn_in(ctx, 2);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_gradient_sizes(ctx, state, true, &pooling));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 1)), &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.dy = dx->data;
  pooling.pooled = rn_in(ctx, 1)->data;
  pooling.y = y->data;
  return run(ctx, WORK_MAX_SECOND, x->dtype, &pooling, rn_tensor_dim(x, 0));
}
static rn_status_t max_second_compute(rn_kernel_ctx_t* ctx) {
  return max_second_with(ctx, ctx->state);
}
static rn_status_t max_second_v2_compute(rn_kernel_ctx_t* ctx) {
  rn_pooling_attrs_t state;
  RN_RETURN_IF_ERROR(rn_pooling_read_v2(ctx, 3, &state));
  RN_RETURN_IF_ERROR(rn_pooling_no_depth(&state, "MaxPoolingGrad"));
  return max_second_with(ctx, &state);
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
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t y_dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_average_sizes(state, x, &pooling, y_dims));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  if (y->count == 0) return RN_OK;
  pooling.x = x->data;
  pooling.y = y->data;
  if (rn_dtype_stored(x->dtype) != x->dtype)
    return average_levels(ctx, x->dtype, &pooling, y_dims[0]);
  return run(ctx, WORK_AVERAGE, x->dtype, &pooling, y_dims[0]);
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

static rn_status_t average_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* dy = rn_in(ctx, 1);
  int64_t dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_average_gradient_sizes(ctx, ctx->state, dims, &pooling));
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &dx));
  if (dx->count == 0) return RN_OK;
  memset(dx->data, 0, rn_tensor_bytes(dx));
  if (dy->count == 0) return RN_OK;
  pooling.dy = dy->data;
  pooling.dx = dx->data;
  return run(ctx, WORK_AVERAGE_GRADIENT, dy->dtype, &pooling, rn_tensor_dim(dy, 0));
}

static rn_status_t argmax_compute(rn_kernel_ctx_t* ctx) {
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t y_dims[4];
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_argmax_sizes(state, x, &pooling, y_dims));
  rn_tensor_t *y = NULL, *argmax = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, y_dims}, &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){4, y_dims}, &argmax));
  if (y->count == 0) return RN_OK;
  if (argmax->dtype == RN_INT32)
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){4, y_dims}, &temp));
  pooling.x = x->data;
  pooling.y = y->data;
  pooling.argmax = temp.data ? temp.data : argmax->data;
  rn_status_t status = run(ctx, WORK_MAX, x->dtype, &pooling, y_dims[0]);
  for (int64_t i = 0; state->include_batch && i < y->count; ++i)
    pooling.argmax[i] += i / pooling.out_size * pooling.in_size;
  for (int64_t i = 0; temp.data && i < y->count; ++i)
    RN_DATA(argmax, int32_t)[i] = (int32_t)pooling.argmax[i];
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t argmax_gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_pooling_attrs_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *dy = rn_in(ctx, 1), *argmax = rn_in(ctx, 2);
  rn_pooling_t pooling = {0};
  RN_RETURN_IF_ERROR(rn_pooling_argmax_gradient_sizes(ctx, state, &pooling));
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
    .state_size = sizeof(rn_pooling_attrs_t), .init = init_, .compute = compute_        \
  }

// Window and strides are inputs.
#define ROW_V2(op_, init_, compute_)                                             \
  {                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", REAL}},                          \
    .host_args = RN_HOST_ARGS("ksize", "strides"), .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_pooling_attrs_t), .init = init_, .compute = compute_ \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MaxPool", REAL, rn_pooling_max_init, max_compute),
    ROW("MaxPoolGrad", REAL, rn_pooling_max_gradient_init, max_gradient_compute),
    ROW("MaxPoolGradGrad", REAL, rn_pooling_max_second_init, max_second_compute),
    ROW_V2("MaxPoolV2", rn_pooling_max_v2_init, max_v2_compute),
    ROW_V2("MaxPoolGradV2", rn_pooling_max_v2_init, max_gradient_v2_compute),
    ROW_V2("MaxPoolGradGradV2", rn_pooling_max_second_v2_init, max_second_v2_compute),
    ROW("MaxPoolWithArgmax", REAL, rn_pooling_max_init, argmax_compute),
    ROW("MaxPoolGradWithArgmax", REAL, rn_pooling_argmax_gradient_init, argmax_gradient_compute),
    ROW("QuantizedMaxPool", RN_T(QUINT8) | RN_T(QINT8), rn_pooling_max_init, quantized_max_compute),
    ROW("QuantizedAvgPool", RN_T(QUINT8) | RN_T(QINT8), rn_pooling_average_init,
        quantized_average_compute),
    ROW("AvgPool", RN_TYPES_FLOATS, rn_pooling_average_init, average_compute),
    ROW("AvgPoolGrad", RN_TYPES_FLOATS, rn_pooling_average_gradient_init, average_gradient_compute),
};
RN_KERNEL_FAMILY(cpu_pooling, rows);
