// LRN, local response normalization across channels, and its gradient.
//
// norm = bias + alpha * (the sum of squares of the channels at most |radius| away); y = x
// norm^-beta.
#include <math.h>

#include "kernels/cpu/nn/lrn.h"
#include "kernels/cpu/spans.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements per piece of work: pow takes about 10 ns each.
#define PIECE_ELEMENTS 4096

typedef struct lrn_job_t {
  const rn_lrn_t* lrn;
  const float *x, *y, *dy;
  float *out, *ratios;
  int64_t depth;
} lrn_job_t;

// norms[c] for the channels at |x|. Beyond the sizes that have a vector loop, the sliding sum is in
// double, so that removing a large square leaves no error behind.
static void norms_of(const rn_lrn_t* lrn, const float* x, int64_t depth, float* norms) {
  int64_t radius = lrn->radius < depth ? lrn->radius : depth;
  if (rn_spans()->window_norms(x, depth, radius, lrn->alpha, lrn->bias, norms)) return;
  double sum = 0;
  for (int64_t c = 0; c < radius && c < depth; ++c) sum += (double)x[c] * x[c];
  bool is_finite = isfinite(sum);
  for (int64_t c = 0; c < depth; ++c) {
    if (c + radius < depth) sum += (double)x[c + radius] * x[c + radius];
    if (c > radius) sum -= (double)x[c - radius - 1] * x[c - radius - 1];
    is_finite = is_finite && isfinite(sum);
    norms[c] = lrn->bias + lrn->alpha * (float)(sum < 0 ? 0 : sum);
  }
  if (is_finite) return;
  // An infinity or NaN would stay in the sliding sum, so compute each window separately.
  for (int64_t c = 0; c < depth; ++c) {
    float own = 0;
    int64_t end = c + radius + 1 < depth ? c + radius + 1 : depth;
    for (int64_t k = c > radius ? c - radius : 0; k < end; ++k) own += x[k] * x[k];
    norms[c] = lrn->bias + lrn->alpha * own;
  }
}

static void forward_piece(void* arg, int64_t begin, int64_t end) {
  const lrn_job_t* job = arg;
  const rn_lrn_t* lrn = job->lrn;
  for (int64_t p = begin; p < end; ++p) {
    const float* x = job->x + p * job->depth;
    float* y = job->out + p * job->depth;
    norms_of(lrn, x, job->depth, y);
    if (lrn->beta == 1) {
      for (int64_t c = 0; c < job->depth; ++c) y[c] = x[c] / y[c];
    } else if (lrn->beta == 0.5f) {
      rn_vector_run(RN_VECTOR_SQRT, RN_FLOAT, y, 1, NULL, 0, y, job->depth);
      rn_vector_run(RN_VECTOR_REAL_DIV, RN_FLOAT, x, 1, y, 1, y, job->depth);
    } else {
      const float power = -lrn->beta;
      rn_vector_run(RN_VECTOR_POW, RN_FLOAT, y, 1, &power, 0, y, job->depth);
      rn_vector_run(RN_VECTOR_MUL, RN_FLOAT, x, 1, y, 1, y, job->depth);
    }
  }
}

// dx[k] = dy[k] norm[k]^-beta - 2 alpha beta x[k] * (the sum of dy y / norm over the window).
static void gradient_piece(void* arg, int64_t begin, int64_t end) {
  const lrn_job_t* job = arg;
  const rn_lrn_t* lrn = job->lrn;
  int64_t depth = job->depth, radius = lrn->radius < depth ? lrn->radius : depth;
  for (int64_t p = begin; p < end; ++p) {
    const float *x = job->x + p * depth, *y = job->y + p * depth, *dy = job->dy + p * depth;
    float *dx = job->out + p * depth, *ratios = job->ratios + p * depth;
    norms_of(lrn, x, depth, dx);
    for (int64_t c = 0; c < depth; ++c) ratios[c] = dy[c] * y[c] / dx[c];
    for (int64_t c = 0; c < depth; ++c) {
      int64_t low = c > radius ? c - radius : 0;
      int64_t high = c + radius + 1 < depth ? c + radius + 1 : depth;
      float sum = 0;
      for (int64_t k = low; k < high; ++k) sum += ratios[k];
      dx[c] = dy[c] * powf(dx[c], -lrn->beta) - 2 * lrn->alpha * lrn->beta * x[c] * sum;
    }
  }
}

static rn_status_t run(rn_kernel_ctx_t* ctx, int inputs, rn_tensor_t* out, rn_tensor_t* temp) {
  const rn_tensor_t* x = rn_in(ctx, inputs == 1 ? 0 : 1);
  bool narrowed = out->dtype == RN_HALF;
  const rn_vector_table_t* table = rn_vector_table();
  const float* in[3] = {0};
  // Scratch for the ratios and, if they are not float, the inputs and the result as floats.
  int64_t dims[2] = {1 + (narrowed ? inputs + 1 : 0), out->count};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, dims}, temp));
  float *ratios = temp->data, *result = narrowed ? ratios + out->count : (float*)out->data;
  for (int i = 0; i < inputs; ++i) {
    in[i] = rn_in(ctx, i)->data;
    if (!narrowed) continue;
    float* wide = ratios + (i + 2) * out->count;
    table->widen_half(rn_in(ctx, i)->data, wide, out->count);
    in[i] = wide;
  }
  lrn_job_t job = {
      .lrn = ctx->state, .out = result, .ratios = ratios, .depth = rn_tensor_dim(x, 3)};
  if (inputs == 1)
    job.x = in[0];
  else
    job.dy = in[0], job.x = in[1], job.y = in[2];
  rn_pool_for(rn_ctx_pool(ctx), out->count / job.depth, PIECE_ELEMENTS / job.depth + 1,
              inputs == 1 ? forward_piece : gradient_piece, &job);
  if (narrowed) table->narrow_half(result, out->data, out->count);
  return RN_OK;
}

static rn_status_t compute(rn_kernel_ctx_t* ctx, int inputs) {
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 0)), &out));
  if (out->count == 0) return RN_OK;
  rn_status_t status = run(ctx, inputs, out, &temp);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_lrn_check(ctx));
  return compute(ctx, 1);
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_lrn_grad_check(ctx));
  return compute(ctx, 3);
}

#define ROW(op_, compute_)                                                             \
  {                                                                                    \
    .op = op_, .device = "CPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT)}},            \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_lrn_t), .init = rn_lrn_init, \
    .compute = compute_                                                                \
  }

static const rn_kernel_def_t rows[] = {
    ROW("LRN", forward_compute),
    ROW("LRNGrad", gradient_compute),
};
RN_KERNEL_FAMILY(cpu_lrn, rows);
