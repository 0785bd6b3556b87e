// QR, SVD, eigenvalues of self-adjoint matrices and log determinants, of batches of matrices. All
// types are computed in double precision, real or complex: the usual uses (initial values, small
// covariances) favour little code over speed.
#include <complex.h>
#include <float.h>
#include <math.h>

#include "kernels/cpu/float_args.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/kernel_rows.h"

// STACKED: the values and, below them, the vectors in one matrix.
typedef enum decompose_work_t { QR, EIGEN, STACKED, SINGULAR, DETERMINANT } decompose_work_t;

typedef struct decompose_state_t {
  bool wants_vectors, is_full;
} decompose_state_t;

typedef struct decompose_job_t {
  decompose_work_t work;
  bool wants_vectors, is_full, is_wide_type;  // is_wide_type: double or complex128
  int64_t m, n;
  double tolerance;
  const void* in;
  void* outs[3];
  rn_float_args_t* halves;  // NULL unless the input is half, which is computed as float
  void* scratch;
} decompose_job_t;

#define T double
#define N(name) real_##name
#define CONJ(x) (x)
#define RE(x) (x)
#define SIZE(x) fabs(x)
#define SQUARE(x) ((x) * (x))
#define LARGEST(x) fabs(x)  // the magnitude of one part
#define DIRECTION(x) ((x) != (x) ? (x) : (x) < 0 ? -1.0 : 1.0)
#define LOAD(job, i) \
  ((job)->is_wide_type ? ((const double*)(job)->in)[i] : (double)((const float*)(job)->in)[i])
#define STORE(job, k, i, x)                                         \
  ((job)->is_wide_type ? (void)(((double*)(job)->outs[k])[i] = (x)) \
                       : (void)(((float*)(job)->outs[k])[i] = (float)(x)))
#include "kernels/cpu/linalg/decompose_body.h"
#undef T
#undef N
#undef CONJ
#undef RE
#undef SIZE
#undef SQUARE
#undef LARGEST
#undef DIRECTION
#undef LOAD
#undef STORE

#define T double _Complex
#define N(name) complex_##name
#define CONJ(x) conj(x)
#define RE(x) creal(x)
#define SIZE(x) cabs(x)
#define SQUARE(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#define LARGEST(x) fmax(fabs(creal(x)), fabs(cimag(x)))
#define DIRECTION(x) ((x) / cabs(x))
#define LOAD(job, i)                                            \
  ((job)->is_wide_type ? ((const double _Complex*)(job)->in)[i] \
                       : (double _Complex)((const float _Complex*)(job)->in)[i])
#define STORE(job, k, i, x)                                                  \
  ((job)->is_wide_type ? (void)(((double _Complex*)(job)->outs[k])[i] = (x)) \
                       : (void)(((float _Complex*)(job)->outs[k])[i] = (float _Complex)(x)))
#include "kernels/cpu/linalg/decompose_body.h"

// Elements of scratch memory per matrix; no term exceeds the size of an input or output.
static int64_t scratch_of(const decompose_job_t* job) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n, most = m < n ? n : m;
  int64_t width = job->is_full ? most : least;
  switch (job->work) {
    case QR:
      return m * n + m * (job->is_full ? m : least) + least + most;
    case EIGEN:
    case STACKED:
      return 2 * n * n + 4 * n;
    case SINGULAR:
      return 2 * m * n + 2 * least * least + (job->wants_vectors ? most * width : 0) + most +
             4 * least;
    case DETERMINANT:
      return n * n;
  }
  return 0;
}

// Allocates an output with the outer dims of the input, then |count| dims.
static rn_status_t output(rn_kernel_ctx_t* ctx, int i, decompose_job_t* job, int count,
                          int64_t rows, int64_t columns) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK + 2];
  int rank = in->rank - 2;
  memcpy(dims, rn_tensor_dims(in), (size_t)rank * sizeof *dims);
  dims[rank] = rows;
  dims[rank + 1] = columns;
  if (job->halves)
    return rn_float_args_out(job->halves, i, (rn_shape_t){rank + count, dims},
                             (float**)&job->outs[i]);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){rank + count, dims}, &out));
  job->outs[i] = out->data;
  return RN_OK;
}

// Vectors that were not requested are a scalar, as in stock, whatever the static shape says.
static rn_status_t no_vectors(rn_kernel_ctx_t* ctx, int i) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){0, NULL}, &out));
  memset(out->data, 0, rn_dtype_size(out->dtype));
  return RN_OK;
}

static rn_status_t make_outputs(rn_kernel_ctx_t* ctx, decompose_job_t* job) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n;
  switch (job->work) {
    case QR:
      RN_RETURN_IF_ERROR(output(ctx, 0, job, 2, m, job->is_full ? m : least));
      return output(ctx, 1, job, 2, job->is_full ? m : least, n);
    case EIGEN:
      RN_RETURN_IF_ERROR(output(ctx, 0, job, 1, n, 0));
      return job->wants_vectors ? output(ctx, 1, job, 2, n, n) : no_vectors(ctx, 1);
    case STACKED:
      return output(ctx, 0, job, 2, n + 1, n);
    case SINGULAR:
      RN_RETURN_IF_ERROR(output(ctx, 0, job, 1, least, 0));
      if (!job->wants_vectors) {
        RN_RETURN_IF_ERROR(no_vectors(ctx, 1));
        return no_vectors(ctx, 2);
      }
      RN_RETURN_IF_ERROR(output(ctx, 1, job, 2, m, job->is_full ? m : least));
      return output(ctx, 2, job, 2, n, job->is_full ? n : least);
    case DETERMINANT:
      RN_RETURN_IF_ERROR(output(ctx, 0, job, 0, 0, 0));
      return output(ctx, 1, job, 0, 0, 0);
  }
  return RN_OK;
}

static rn_status_t compute_with(rn_kernel_ctx_t* ctx, decompose_work_t work,
                                rn_float_args_t* halves) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  const decompose_state_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  bool is_complex = a->dtype == RN_COMPLEX64 || a->dtype == RN_COMPLEX128;
  decompose_job_t job = {.work = work,
                         .wants_vectors = state->wants_vectors,
                         .is_full = state->is_full,
                         .is_wide_type = a->dtype == RN_DOUBLE || a->dtype == RN_COMPLEX128,
                         .m = rn_tensor_dim(a, a->rank - 2),
                         .n = rn_tensor_dim(a, a->rank - 1),
                         .in = a->data,
                         .halves = halves};
  if (halves) RN_RETURN_IF_ERROR(rn_float_args_in(halves, 0, (const float**)&job.in));
  job.tolerance = job.is_wide_type ? 4 * DBL_EPSILON : 1e-10;
  if (work == EIGEN || work == STACKED || work == DETERMINANT)
    RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  RN_RETURN_IF_ERROR(make_outputs(ctx, &job));
  int64_t stack = rn_linalg_stack(a);
  int64_t size = scratch_of(&job) + 1;
  rn_tensor_t scratch = {0};
  RN_RETURN_IF_ERROR(
      rn_temp(ctx, is_complex ? RN_COMPLEX128 : RN_DOUBLE, (rn_shape_t){1, &size}, &scratch));
  job.scratch = scratch.data;
  bool is_good = true;
  for (int64_t i = 0; is_good && i < stack; ++i)
    is_good = is_complex ? complex_run(&job, i) : real_run(&job, i);
  rn_tensor_clear(&scratch);
  return is_good ? RN_OK
                 : rn_invalid_argument(
                       "Self-adjoint eigen decomposition was not successful. The "
                       "input might not be valid.");
}

static rn_status_t compute(rn_kernel_ctx_t* ctx, decompose_work_t work) {
  if (rn_in(ctx, 0)->dtype != RN_HALF) return compute_with(ctx, work, NULL);
  rn_float_args_t halves = {.ctx = ctx};
  return rn_float_args_end(&halves, compute_with(ctx, work, &halves));
}

static rn_status_t qr_compute(rn_kernel_ctx_t* ctx) { return compute(ctx, QR); }
static rn_status_t eigen_compute(rn_kernel_ctx_t* ctx) { return compute(ctx, EIGEN); }
static rn_status_t stacked_compute(rn_kernel_ctx_t* ctx) { return compute(ctx, STACKED); }
static rn_status_t singular_compute(rn_kernel_ctx_t* ctx) { return compute(ctx, SINGULAR); }
static rn_status_t determinant_compute(rn_kernel_ctx_t* ctx) { return compute(ctx, DETERMINANT); }

static rn_status_t qr_init(const rn_kernel_init_t* init, void* state) {
  ((decompose_state_t*)state)->is_full = rn_init_bool(init, "full_matrices");
  return RN_OK;
}

static rn_status_t singular_init(const rn_kernel_init_t* init, void* state) {
  ((decompose_state_t*)state)->wants_vectors = rn_init_bool(init, "compute_uv");
  return qr_init(init, state);
}

static rn_status_t eigen_init(const rn_kernel_init_t* init, void* state) {
  ((decompose_state_t*)state)->wants_vectors = rn_init_bool(init, "compute_v");
  return RN_OK;
}

#define ROW(op_, init_, compute_, more_types)                                                      \
  {                                                                                                \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                                      \
    .state_size = sizeof(decompose_state_t),                                                       \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE) | (more_types)}}, .init = init_, \
    .compute = compute_                                                                            \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Qr", qr_init, qr_compute, RN_T(HALF)),
    ROW("Svd", singular_init, singular_compute, 0),
    ROW("SelfAdjointEigV2", eigen_init, eigen_compute, 0),
    ROW("LogMatrixDeterminant", NULL, determinant_compute, 0),
    ROW("SelfAdjointEig", NULL, stacked_compute, 0),
    ROW("BatchSelfAdjointEig", NULL, stacked_compute, 0),
    ROW("BatchSelfAdjointEigV2", eigen_init, eigen_compute, 0),
    ROW("BatchSvd", singular_init, singular_compute, 0),
};
RN_KERNEL_FAMILY(cpu_decompose, rows);
