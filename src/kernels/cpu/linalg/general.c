// Eigenvalues, square roots and logarithms of square matrices of any kind, by their Schur form.
#include <math.h>

#include "base/pool.h"
#include "kernels/cpu/linalg/schur.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cpu/linalg/wide.h"
#include "kernels/kernel_rows.h"

typedef enum general_work_t { EIGENVALUES, ROOT, LOGARITHM } general_work_t;

typedef struct general_state_t {
  bool wants_vectors;
} general_state_t;

typedef struct general_job_t {
  general_work_t work;
  bool wants_vectors;
  int64_t n;
  const rn_tensor_t* in;
  rn_tensor_t *out, *vectors;
  rn_wide_t* scratch;  // for each matrix, |each| numbers
  int64_t each;
  bool has_failed;
} general_job_t;

// Sorts the values by size, and their vectors, the columns of |x|, with them: as stock does with
// complex matrices.
static void sort_by_size(rn_wide_t* values, rn_wide_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t least = i;
    for (int64_t k = i + 1; k < n; ++k)
      if (cabs(values[k]) < cabs(values[least])) least = k;
    if (least == i) continue;
    rn_wide_t old = values[i];
    values[i] = values[least], values[least] = old;
    for (int64_t r = 0; x && r < n; ++r) {
      old = x[r * n + i];
      x[r * n + i] = x[r * n + least], x[r * n + least] = old;
    }
  }
}

// A real matrix with a negative eigenvalue has no real root: NaN, as in stock.
static void require_real(rn_wide_t* x, int64_t count) {
  double most = 0, imaginary = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = fmax(most, cabs(x[i]));
    imaginary = fmax(imaginary, fabs(cimag(x[i])));
  }
  for (int64_t i = 0; imaginary > 1e-7 * most && i < count; ++i) x[i] = (double)NAN;
}

static bool run_one(const general_job_t* job, int64_t i) {
  int64_t n = job->n, all = n * n;
  rn_wide_t *t = job->scratch + i * job->each, *q = t + all, *x = q + all, *work = x + all;
  for (int64_t k = 0; k < all; ++k) t[k] = rn_wide_load(job->in, i * all + k);
  if (!rn_schur(t, n, q, work)) return false;
  if (job->work == EIGENVALUES) {
    if (job->wants_vectors) rn_schur_vectors(t, q, n, x, work);
    for (int64_t k = 0; k < n; ++k) work[k] = t[k * n + k];
    if (rn_dtype_is_complex(job->in->dtype)) sort_by_size(work, job->wants_vectors ? x : NULL, n);
    for (int64_t k = 0; k < n; ++k) rn_wide_store(job->out, i * n + k, work[k]);
    if (!job->wants_vectors) return true;
    for (int64_t k = 0; k < all; ++k) rn_wide_store(job->vectors, i * all + k, x[k]);
    return true;
  }
  if (job->work == ROOT)
    rn_triangular_root(t, n, x);
  else
    rn_triangular_logarithm(t, n, x, work);
  rn_schur_back(x, q, n, t, work);
  if (job->in->dtype == RN_FLOAT || job->in->dtype == RN_DOUBLE) require_real(t, all);
  for (int64_t k = 0; k < all; ++k) rn_wide_store(job->out, i * all + k, t[k]);
  return true;
}

static void run_some(void* arg, int64_t begin, int64_t end) {
  general_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i)
    if (!run_one(job, i)) __atomic_store_n(&job->has_failed, true, __ATOMIC_RELAXED);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, general_job_t* job) {
  int64_t stack = rn_linalg_stack(job->in), n = job->n;
  job->each = (job->work == LOGARITHM ? 6 : 4) * n * n + 2 * n;
  int64_t dims[2] = {stack, job->each};
  rn_tensor_t scratch = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_COMPLEX128, (rn_shape_t){2, dims}, &scratch));
  job->scratch = scratch.data;
  double cost = 30.0 * (double)n * (double)n * (double)n + 1;
  rn_pool_for(rn_ctx_pool(ctx), stack, (int64_t)(1e5 / cost) + 1, run_some, job);
  rn_tensor_clear(&scratch);
  return RN_OK;
}

static rn_status_t function_of(rn_kernel_ctx_t* ctx, general_work_t work) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  general_job_t job = {.work = work, .n = rn_tensor_dim(a, a->rank - 1), .in = a};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &job.out));
  if (a->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(run(ctx, &job));
  if (!job.has_failed) return RN_OK;
  return rn_invalid_argument(
      "Schur decomposition was not successful. The input might not be valid.");
}

static rn_status_t root_compute(rn_kernel_ctx_t* ctx) { return function_of(ctx, ROOT); }
static rn_status_t logarithm_compute(rn_kernel_ctx_t* ctx) { return function_of(ctx, LOGARITHM); }

static rn_status_t eigen_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  const general_state_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  bool is_wide = a->dtype == RN_DOUBLE || a->dtype == RN_COMPLEX128;
  rn_dtype_t want = is_wide ? RN_COMPLEX128 : RN_COMPLEX64, have = ctx->kernel->output_types[0];
  if (want != have)
    return rn_invalid_argument("Invalid output dtype %d vs %d", (int)have, (int)want);
  general_job_t job = {.work = EIGENVALUES,
                       .wants_vectors = state->wants_vectors,
                       .n = rn_tensor_dim(a, a->rank - 1),
                       .in = a};
  rn_shape_t shape = rn_tensor_shape(a), values = {a->rank - 1, shape.dims};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, values, &job.out));
  // Vectors that were not requested are a scalar, as in stock, whatever the static shape says.
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 1, state->wants_vectors ? shape : (rn_shape_t){0, NULL}, &job.vectors));
  if (!state->wants_vectors) memset(job.vectors->data, 0, rn_dtype_size(want));
  if (a->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(run(ctx, &job));
  if (!job.has_failed) return RN_OK;
  return rn_invalid_argument(
      "Eigen decomposition was not successful. The input might not be valid.");
}

static rn_status_t eigen_init(const rn_kernel_init_t* init, void* state) {
  ((general_state_t*)state)->wants_vectors = rn_init_bool(init, "compute_v");
  return RN_OK;
}

#define ROW(op_, types_, init_, compute_)                                             \
  {                                                                                   \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                         \
    .state_size = sizeof(general_state_t), .types = {{"T", (types_)}}, .init = init_, \
    .compute = compute_                                                               \
  }
#define REAL_AND_COMPLEX (RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE))
static const rn_kernel_def_t rows[] = {
    ROW("Eig", REAL_AND_COMPLEX, eigen_init, eigen_compute),
    ROW("MatrixSquareRoot", REAL_AND_COMPLEX, NULL, root_compute),
    ROW("MatrixLogarithm", RN_TYPES_COMPLEX, NULL, logarithm_compute),
};
RN_KERNEL_FAMILY(cpu_general, rows);
