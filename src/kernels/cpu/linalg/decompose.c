// QR, SVD and eigenvalues of self-adjoint matrices, of batches of matrices. Floats and doubles are
// computed in their own precision, complex numbers in double precision.
#include <complex.h>
#include <float.h>
#include <math.h>

#include "kernels/cpu/float_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/linalg.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/kernel_rows.h"

// STACKED: the values and, below them, the vectors in one matrix.
typedef enum decompose_work_t { QR, EIGEN, STACKED, SINGULAR } decompose_work_t;

typedef struct decompose_state_t {
  bool wants_vectors, is_full;
} decompose_state_t;

typedef struct decompose_job_t {
  decompose_work_t work;
  bool wants_vectors, is_full, is_narrow;  // is_narrow: complex64
  int64_t m, n;
  double epsilon;  // what counts as zero, relative to its neighbours
  const rn_linalg_fns_t* fns;
  const void* in;
  void* outs[3];
  rn_float_args_t* halves;  // NULL unless the input is half, which is computed as float
  void* scratch;
  double* reals;  // scratch, too: two per row or column
} decompose_job_t;

// A decomposition works on panels of this many columns.
#define PANEL 32
// Products of fewer multiplications, and so few reflectors or elements, are computed in place.
#define SMALL_PRODUCT 64
#define FEW 8
// Numbers that a block of reflectors needs.
#define BLOCK_SIZE(m, n) (PANEL * ((m) + PANEL + 2 * (n)))

#define R float
#define T float
#define N(name) single_##name
#define CONJ(x) (x)
#define RE(x) (x)
#define SIZE(x) fabs((double)(x))
#define SQUARE(x) ((double)(x) * (double)(x))
#define LOAD(job, i) ((const T*)(job)->in)[i]
#define STORE(job, k, i, x) (void)(((T*)(job)->outs[k])[i] = (x))
#include "kernels/cpu/linalg/decompose_parts.h"
#undef R
#undef T
#undef N

#define R double
#define T double
#define N(name) real_##name
#include "kernels/cpu/linalg/decompose_parts.h"
#undef T
#undef N
#undef CONJ
#undef RE
#undef SIZE
#undef SQUARE
#undef LOAD
#undef STORE

#define T double _Complex
#define N(name) complex_##name
#define CONJ(x) conj(x)
#define RE(x) creal(x)
#define SIZE(x) cabs(x)
#define SQUARE(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#define LOAD(job, i)                                                         \
  ((job)->is_narrow ? (double _Complex)((const float _Complex*)(job)->in)[i] \
                    : ((const double _Complex*)(job)->in)[i])
#define STORE(job, k, i, x)                                                              \
  ((job)->is_narrow ? (void)(((float _Complex*)(job)->outs[k])[i] = (float _Complex)(x)) \
                    : (void)(((double _Complex*)(job)->outs[k])[i] = (x)))
#include "kernels/cpu/linalg/decompose_parts.h"

// Elements of scratch memory per matrix; no term exceeds the size of an input or output.
static int64_t scratch_of(const decompose_job_t* job) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n, most = m < n ? n : m;
  int64_t width = !job->wants_vectors ? 0 : job->is_full ? most : least;
  switch (job->work) {
    case QR:
      return m * n + m * (job->is_full ? m : least) + least + BLOCK_SIZE(m, most);
    case EIGEN:
    case STACKED:
      return 2 * n * n + n + BLOCK_SIZE(n, n);
    case SINGULAR:
      return 2 * m * n + most * width + least * least + most * (width > least ? width : least) +
             2 * least + BLOCK_SIZE(most, most);
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
  }
  return RN_OK;
}

static bool run_one(const decompose_job_t* job, rn_dtype_t dtype, int64_t i) {
  switch (dtype) {
    case RN_FLOAT:
      return single_run(job, i);
    case RN_DOUBLE:
      return real_run(job, i);
    default:
      return complex_run(job, i);
  }
}

// Decomposes |stack| matrices, computed as |dtype|.
static rn_status_t run_all(rn_kernel_ctx_t* ctx, decompose_job_t* job, rn_dtype_t dtype,
                           int64_t stack) {
  int64_t size = scratch_of(job) + 1, most = 2 * (job->m > job->n ? job->m : job->n) + 1;
  rn_tensor_t scratch = {0}, reals = {0};
  rn_status_t status = rn_temp(ctx, dtype, (rn_shape_t){1, &size}, &scratch);
  if (rn_ok(status)) status = rn_temp(ctx, RN_DOUBLE, (rn_shape_t){1, &most}, &reals);
  bool is_good = true;
  if (rn_ok(status)) {
    job->scratch = scratch.data;
    job->reals = reals.data;
    job->fns = &RN_ISA_PICK(rn_linalg_)[dtype];
    for (int64_t i = 0; is_good && i < stack; ++i) is_good = run_one(job, dtype, i);
  }
  rn_tensor_clear(&scratch);
  rn_tensor_clear(&reals);
  if (!rn_ok(status) || is_good) return status;
  return rn_invalid_argument(
      "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
}

static rn_status_t compute_with(rn_kernel_ctx_t* ctx, decompose_work_t work,
                                rn_float_args_t* halves) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  const decompose_state_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  const bool is_complex = rn_dtype_is_complex(a->dtype);
  const rn_dtype_t dtype = halves ? RN_FLOAT : is_complex ? RN_COMPLEX128 : a->dtype;
  decompose_job_t job = {.work = work,
                         .wants_vectors = state->wants_vectors,
                         .is_full = state->is_full,
                         .is_narrow = a->dtype == RN_COMPLEX64,
                         .m = rn_tensor_dim(a, a->rank - 2),
                         .n = rn_tensor_dim(a, a->rank - 1),
                         .epsilon = dtype == RN_FLOAT ? FLT_EPSILON / 16.0 : DBL_EPSILON,
                         .in = a->data,
                         .halves = halves};
  if (halves) RN_RETURN_IF_ERROR(rn_float_args_in(halves, 0, (const float**)&job.in));
  if (work == EIGEN || work == STACKED) RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  RN_RETURN_IF_ERROR(make_outputs(ctx, &job));
  return run_all(ctx, &job, dtype, rn_linalg_stack(a));
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
    ROW("SelfAdjointEig", NULL, stacked_compute, 0),
    ROW("BatchSelfAdjointEig", NULL, stacked_compute, 0),
    ROW("BatchSelfAdjointEigV2", eigen_init, eigen_compute, 0),
    ROW("BatchSvd", singular_init, singular_compute, 0),
};
RN_KERNEL_FAMILY(cpu_decompose, rows);
