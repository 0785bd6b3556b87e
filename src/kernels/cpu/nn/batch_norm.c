// FusedBatchNorm and its gradient, all versions; isa/norm.c has the loops.
//
// Everything is computed in float with channels last; other types and layouts are copied first.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/bias.h"
#include "kernels/cpu/isa/norm.h"
#include "kernels/cpu/nn/batch_norm.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define PIECE_ELEMENTS (1 << 16)
#define MOST_PIECES 64

rn_status_t rn_batch_norm_init(const rn_kernel_init_t* init, void* state) {
  rn_batch_norm_t* norm = state;
  rn_str_t format = rn_init_string(init, "data_format");
  norm->epsilon = rn_init_float(init, "epsilon");
  norm->is_training = rn_init_bool(init, "is_training");
  norm->is_channels_first = format.size > 1 && format.data[1] == 'C';
  norm->factor = 1;
  if (rn_op_attr_index(init->op, RN_STR("exponential_avg_factor")) >= 0)
    norm->factor = rn_init_float(init, "exponential_avg_factor");
  return RN_OK;
}

static rn_batch_norm_view_t view_of(const rn_tensor_t* x, bool is_channels_first) {
  const int64_t* dims = rn_tensor_dims(x);
  int axis = is_channels_first ? 1 : x->rank - 1;
  rn_batch_norm_view_t view = {1, dims[axis], 1};
  for (int d = 0; d < axis; ++d) view.outer *= dims[d];
  for (int d = axis + 1; d < x->rank; ++d) view.inner *= dims[d];
  return view;
}

static void turn(const float* in, float* out, rn_batch_norm_view_t view, bool to_last) {
  for (int64_t n = 0; n < view.outer; ++n) {
    int64_t base = n * view.channels * view.inner;
    for (int64_t c = 0; c < view.channels; ++c)
      for (int64_t i = 0; i < view.inner; ++i) {
        int64_t first = base + c * view.inner + i, last = base + i * view.channels + c;
        if (to_last)
          out[last] = in[first];
        else
          out[first] = in[last];
      }
  }
}

// |*out| points to the floats of |x| with channels last: its own or those of |temp|.
static rn_status_t read_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* x,
                               rn_batch_norm_view_t view, rn_tensor_t* temp, const float** out) {
  *out = x->data;
  bool narrowed = x->dtype != RN_FLOAT, turned = view.inner > 1;
  if (!narrowed && !turned) return RN_OK;
  int64_t count = x->count * (narrowed && turned ? 2 : 1);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, temp));
  const float* from = x->data;
  if (narrowed) {
    const rn_vector_table_t* table = rn_vector_table();
    float* wide = (float*)temp->data + (turned ? x->count : 0);
    (x->dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(x->data, wide, x->count);
    from = wide;
  }
  if (turned) turn(from, temp->data, view, true);
  *out = temp->data;
  return RN_OK;
}

// A buffer for floats with channels last, which write_floats then stores to |y|.
static rn_status_t begin_floats(rn_kernel_ctx_t* ctx, rn_tensor_t* y, rn_batch_norm_view_t view,
                                rn_tensor_t* temp, float** out) {
  *out = y->data;
  if (y->dtype == RN_FLOAT && view.inner == 1) return RN_OK;
  int64_t count = 2 * y->count;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, temp));
  *out = temp->data;
  return RN_OK;
}

static void write_floats(const rn_tensor_t* temp, rn_batch_norm_view_t view, rn_tensor_t* y) {
  if (!temp->data) return;
  const rn_vector_table_t* table = rn_vector_table();
  const float* from = temp->data;
  if (view.inner > 1) {
    float* to = y->dtype == RN_FLOAT ? (float*)y->data : (float*)temp->data + y->count;
    turn(from, to, view, false);
    from = to;
  }
  if (y->dtype != RN_FLOAT)
    (y->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(from, y->data, y->count);
}

// A loop over rows, in pieces.
typedef struct batch_norm_job_t {
  const rn_norm_fns_t* fns;
  const float *x, *dy, *mean, *scale, *offset, *slope;
  float* out;
  int64_t columns, piece;
  enum { SUM, SQUARES, PRODUCTS, APPLY, GRADIENT } work;
} batch_norm_job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const batch_norm_job_t* job = arg;
  int64_t at = begin * job->columns, rows = end - begin, columns = job->columns;
  float* sums = job->out + begin / job->piece * columns;
  const float* dy = job->dy ? job->dy + at : NULL;
  switch (job->work) {
    case SUM:
      RN_ISA_PICK(rn_bias_)[RN_FLOAT].sum_rows(job->x + at, rows, columns, sums);
      break;
    case SQUARES:
      job->fns->squares(job->x + at, job->mean, rows, columns, sums);
      break;
    case PRODUCTS:
      job->fns->products(dy, job->x + at, job->mean, rows, columns, sums);
      break;
    case APPLY:
      job->fns->apply(job->x + at, job->mean, job->scale, job->offset, job->out + at, rows,
                      columns);
      break;
    case GRADIENT:
      job->fns->gradient(dy, job->x + at, job->mean, job->offset, job->slope, job->scale,
                         job->out + at, rows, columns);
      break;
  }
}

static void run_rows(rn_kernel_ctx_t* ctx, batch_norm_job_t* job, int64_t rows) {
  job->piece = PIECE_ELEMENTS / job->columns + 1;
  rn_pool_for(rn_ctx_pool(ctx), rows, job->piece, run_piece, job);
}

// Sums per piece, added in order.
static rn_status_t sum_rows(rn_kernel_ctx_t* ctx, batch_norm_job_t* job, int64_t rows,
                            float* sums) {
  job->piece = PIECE_ELEMENTS / job->columns + 1;
  if (job->piece < rows / MOST_PIECES + 1) job->piece = rows / MOST_PIECES + 1;
  int64_t pieces = (rows + job->piece - 1) / job->piece, count = pieces * job->columns;
  rn_tensor_t parts = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &parts));
  job->out = parts.data;
  rn_pool_for(rn_ctx_pool(ctx), rows, job->piece, run_piece, job);
  RN_ISA_PICK(rn_bias_)[RN_FLOAT].sum_rows(parts.data, pieces, job->columns, sums);
  rn_tensor_clear(&parts);
  return RN_OK;
}

static rn_status_t expect_vector(const rn_tensor_t* tensor, const char* name) {
  if (tensor->rank == 1) return RN_OK;
  return rn_invalid_argument("%s must be 1-dimensional%s", name, rn_text_of(tensor).text);
}
static rn_status_t expect_channels(const rn_tensor_t* tensor, const char* name, int64_t channels) {
  if (tensor->count == channels) return RN_OK;
  return rn_invalid_argument(
      "%s must have the same number of elements as the channels of x, got %" PRId64 " and %" PRId64,
      name, tensor->count, channels);
}
static rn_status_t expect_image(const rn_tensor_t* x) {
  if (x->rank == 4 || x->rank == 5) return RN_OK;
  return rn_invalid_argument("input must be 4 or 5-dimensional%s", rn_text_of(x).text);
}

rn_status_t rn_batch_norm_check(const rn_kernel_ctx_t* ctx, rn_batch_norm_view_t* out_view) {
  static const char* const names[] = {"x", "scale", "offset", "estimated_mean",
                                      "estimated_variance"};
  const rn_batch_norm_t* state = ctx->state;
  RN_RETURN_IF_ERROR(expect_image(rn_in(ctx, 0)));
  for (int i = 1; i < 5; ++i) RN_RETURN_IF_ERROR(expect_vector(rn_in(ctx, i), names[i]));
  *out_view = view_of(rn_in(ctx, 0), state->is_channels_first);
  RN_RETURN_IF_ERROR(expect_channels(rn_in(ctx, 1), "scale", out_view->channels));
  RN_RETURN_IF_ERROR(expect_channels(rn_in(ctx, 2), "offset", out_view->channels));
  if (state->is_training && state->factor == 1) return RN_OK;
  const char* when =
      state->is_training ? "When exponential_avg_factor != 1, " : "When is_training=false, ";
  char name[80];
  for (int i = 3; i < 5; ++i) {
    snprintf(name, sizeof name, "%s%s", when, i == 3 ? "mean" : "variance");
    RN_RETURN_IF_ERROR(expect_channels(rn_in(ctx, i), name, out_view->channels));
  }
  return RN_OK;
}

typedef struct stats_t {
  float *mean, *variance;              // returned as outputs
  float *saved_mean, *saved_variance;  // for the gradient
} stats_t;

static rn_status_t measure(rn_kernel_ctx_t* ctx, const float* x, int64_t rows, int64_t channels,
                           stats_t stats) {
  const rn_batch_norm_t* state = ctx->state;
  const float *old_mean = rn_in(ctx, 3)->data, *old_variance = rn_in(ctx, 4)->data;
  batch_norm_job_t job = {.fns = RN_ISA_PICK(rn_norm_), .x = x, .columns = channels, .work = SUM};
  RN_RETURN_IF_ERROR(sum_rows(ctx, &job, rows, stats.saved_mean));
  for (int64_t c = 0; c < channels; ++c) stats.saved_mean[c] /= (float)rows;
  job.mean = stats.saved_mean;
  job.work = SQUARES;
  RN_RETURN_IF_ERROR(sum_rows(ctx, &job, rows, stats.saved_variance));
  float unbias = (float)rows / (float)(rows > 1 ? rows - 1 : 1), f = state->factor;
  for (int64_t c = 0; c < channels; ++c) {
    stats.saved_variance[c] /= (float)rows;
    float mean = stats.saved_mean[c], variance = stats.saved_variance[c] * unbias;
    stats.mean[c] = f == 1 ? mean : (1 - f) * old_mean[c] + f * mean;
    stats.variance[c] = f == 1 ? variance : (1 - f) * old_variance[c] + f * variance;
  }
  return RN_OK;
}

static rn_status_t forward_run(rn_kernel_ctx_t* ctx, rn_batch_norm_view_t view, rn_tensor_t* y,
                               stats_t stats, rn_tensor_t temps[3]) {
  const rn_batch_norm_t* state = ctx->state;
  const float *x = NULL, *scale = rn_in(ctx, 1)->data;
  int64_t rows = view.outer * view.inner, channels = view.channels;
  RN_RETURN_IF_ERROR(read_floats(ctx, rn_in(ctx, 0), view, &temps[0], &x));
  size_t bytes = (size_t)channels * sizeof(float);
  if (state->is_training) {
    RN_RETURN_IF_ERROR(measure(ctx, x, rows, channels, stats));
  } else {
    memcpy(stats.mean, rn_in(ctx, 3)->data, bytes);
    memcpy(stats.variance, rn_in(ctx, 4)->data, bytes);
    memcpy(stats.saved_mean, stats.mean, bytes);
    memcpy(stats.saved_variance, stats.variance, bytes);
  }
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &channels}, &temps[1]));
  float *slope = temps[1].data, *to = NULL;
  RN_ISA_PICK(rn_norm_)->factors(scale, stats.saved_variance, state->epsilon, channels, slope);
  RN_RETURN_IF_ERROR(begin_floats(ctx, y, view, &temps[2], &to));
  batch_norm_job_t job = {.fns = RN_ISA_PICK(rn_norm_),
                          .x = x,
                          .mean = stats.saved_mean,
                          .scale = slope,
                          .offset = rn_in(ctx, 2)->data,
                          .out = to,
                          .columns = channels,
                          .work = APPLY};
  run_rows(ctx, &job, rows);
  write_floats(&temps[2], view, y);
  return RN_OK;
}

static void clear_all(rn_tensor_t* temps, int count) {
  for (int i = 0; i < count; ++i) rn_tensor_clear(&temps[i]);
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  rn_batch_norm_view_t view;
  RN_RETURN_IF_ERROR(rn_batch_norm_check(ctx, &view));
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t *y = NULL, *outs[4], *reserve = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int i = 0; i < 4; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i + 1, (rn_shape_t){1, &view.channels}, &outs[i]));
  // It stays empty: it has no elements, as in TensorFlow with oneDNN, so that batching calls may
  // add a dimension to it.
  if (ctx->kernel->output_count > 5)
    RN_RETURN_IF_ERROR(rn_output(ctx, 5, (rn_shape_t){1, &(int64_t){0}}, &reserve));
  stats_t stats = {outs[0]->data, outs[1]->data, outs[2]->data, outs[3]->data};
  if (x->count == 0) {
    for (int i = 0; i < 4; ++i)
      for (int64_t c = 0; c < view.channels; ++c) RN_DATA(outs[i], float)[c] = NAN;
    return RN_OK;
  }
  rn_tensor_t temps[3] = {0};
  rn_status_t status = forward_run(ctx, view, y, stats, temps);
  clear_all(temps, 3);
  return status;
}

// The gradient.

rn_status_t rn_batch_norm_gradient_check(const rn_kernel_ctx_t* ctx,
                                         rn_batch_norm_view_t* out_view) {
  static const char* const names[] = {"y_backprop",      "x", "scale", "reserve_space_1",
                                      "reserve_space_2", ""};
  const rn_batch_norm_t* state = ctx->state;
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(expect_image(dy));
  if (x->rank != 4 && x->rank != 5) return expect_image(x);
  for (int i = 2; i < 5; ++i) RN_RETURN_IF_ERROR(expect_vector(rn_in(ctx, i), names[i]));
  if (!rn_tensor_same_shape(dy, x))
    return rn_invalid_argument(
        "x and y_backprop must have same shape, but x has shape %s and y_backprop has shape %s",
        rn_text_of(x).text, rn_text_of(dy).text);
  *out_view = view_of(x, state->is_channels_first);
  for (int i = 2; i < 5; ++i)
    RN_RETURN_IF_ERROR(expect_channels(rn_in(ctx, i), names[i], out_view->channels));
  return RN_OK;
}

static rn_status_t gradient_run(rn_kernel_ctx_t* ctx, rn_batch_norm_view_t view, rn_tensor_t* dx,
                                float* dscale, float* doffset, rn_tensor_t temps[4]) {
  const rn_batch_norm_t* state = ctx->state;
  const float *dy = NULL, *x = NULL, *scale = rn_in(ctx, 2)->data, *mean = rn_in(ctx, 3)->data,
              *variance = rn_in(ctx, 4)->data;
  int64_t rows = view.outer * view.inner, channels = view.channels, count = 3 * channels;
  RN_RETURN_IF_ERROR(read_floats(ctx, rn_in(ctx, 0), view, &temps[0], &dy));
  RN_RETURN_IF_ERROR(read_floats(ctx, rn_in(ctx, 1), view, &temps[1], &x));
  batch_norm_job_t job = {.fns = RN_ISA_PICK(rn_norm_), .x = dy, .columns = channels, .work = SUM};
  RN_RETURN_IF_ERROR(sum_rows(ctx, &job, rows, doffset));
  job.x = x;
  job.dy = dy;
  job.mean = mean;
  job.work = PRODUCTS;
  RN_RETURN_IF_ERROR(sum_rows(ctx, &job, rows, dscale));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &temps[2]));
  float *dy_mean = temps[2].data, *slope = dy_mean + channels, *factor = slope + channels;
  for (int64_t c = 0; c < channels; ++c) {
    float inverse = 1 / sqrtf(variance[c] + state->epsilon);
    // Constant statistics propagate no gradient.
    dy_mean[c] = state->is_training ? doffset[c] / (float)rows : 0;
    slope[c] = state->is_training ? inverse * inverse * (dscale[c] / (float)rows) : 0;
    factor[c] = scale[c] * inverse;
    dscale[c] *= inverse;
  }
  RN_RETURN_IF_ERROR(begin_floats(ctx, dx, view, &temps[3], &job.out));
  job.scale = factor;
  if (state->is_training) {
    job.offset = dy_mean;
    job.slope = slope;
    job.work = GRADIENT;
  } else {  // only dy matters: x may contain NaN. Both of these are zeros.
    job.x = dy;
    job.mean = dy_mean;
    job.offset = slope;
    job.work = APPLY;
  }
  run_rows(ctx, &job, rows);
  write_floats(&temps[3], view, dx);
  return RN_OK;
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  rn_batch_norm_view_t view;
  RN_RETURN_IF_ERROR(rn_batch_norm_gradient_check(ctx, &view));
  rn_tensor_t *dx = NULL, *dscale = NULL, *doffset = NULL, *unused = NULL;
  static const int64_t none = 0;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 1)), &dx));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &view.channels}, &dscale));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &view.channels}, &doffset));
  for (int i = 3; i < 5; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &none}, &unused));
  if (dx->count == 0) {
    memset(dscale->data, 0, rn_tensor_bytes(dscale));
    memset(doffset->data, 0, rn_tensor_bytes(doffset));
    return RN_OK;
  }
  rn_tensor_t temps[4] = {0};
  rn_status_t status = gradient_run(ctx, view, dx, dscale->data, doffset->data, temps);
  clear_all(temps, 4);
  return status;
}

typedef struct factor_state_t {
  float epsilon;
} factor_state_t;

static rn_status_t factor_init(const rn_kernel_init_t* init, void* arg) {
  ((factor_state_t*)arg)->epsilon = rn_init_float(init, "epsilon");
  return RN_OK;
}

// A part of a norm that step/split_batch_norms.c split.
static rn_status_t factor_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *scale = rn_in(ctx, 0), *variance = rn_in(ctx, 1);
  rn_tensor_t* factor = NULL;
  if (scale->rank != 1 || scale->count != variance->count)
    return rn_invalid_argument("A scale of %s does not fit a variance of %s",
                               rn_text_of(scale).text, rn_text_of(variance).text);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(scale), &factor));
  float epsilon = ((const factor_state_t*)ctx->state)->epsilon;
  RN_ISA_PICK(rn_norm_)->factors(scale->data, variance->data, epsilon, scale->count, factor->data);
  return RN_OK;
}

#define NORM_TYPES (RN_TYPES_HALVES | RN_T(FLOAT))
#define ROW(op_, compute_)                                                        \
  {                                                                               \
    .op = op_, .device = "CPU", .types = {{"T", NORM_TYPES}, {"U", RN_T(FLOAT)}}, \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_batch_norm_t),          \
    .init = rn_batch_norm_init, .compute = compute_                               \
  }
#define FIRST_ROW(op_, compute_)                                                             \
  {                                                                                          \
    .op = op_, .device = "CPU", .types = {{"T", RN_T(FLOAT)}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_batch_norm_t), .init = rn_batch_norm_init, .compute = compute_   \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "_BatchNormFactor",
     .device = "CPU",
     .state_size = sizeof(factor_state_t),
     .init = factor_init,
     .compute = factor_compute},
    FIRST_ROW("FusedBatchNorm", forward_compute),
    ROW("FusedBatchNormV2", forward_compute),
    ROW("FusedBatchNormV3", forward_compute),
    FIRST_ROW("FusedBatchNormGrad", gradient_compute),
    ROW("FusedBatchNormGradV2", gradient_compute),
    ROW("FusedBatchNormGradV3", gradient_compute),
};
RN_KERNEL_FAMILY(cpu_batch_norm, rows);
