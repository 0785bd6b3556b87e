// TridiagonalSolve, TridiagonalMatMul and BandedTriangularSolve.
#include <complex.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/pool.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/kernel_rows.h"

typedef struct banded_state_t {
  bool pivots, perturbs, is_lower, is_adjoint;
} banded_state_t;

typedef struct banded_job_t {
  int64_t n, columns, bands;
  const void* a[3];  // the diagonals
  const void* b;     // the right-hand side
  void *out, *temp;
  bool pivots, perturbs, is_lower, is_adjoint;
  const int64_t *a_index, *b_index;  // operand index of each result matrix; NULL for the same
  void (*one)(const struct banded_job_t* job, int64_t i);
} banded_job_t;

#define T float
#define N(name) name##_f32
#define SIZE(x) fabs((double)(x))
#define CONJ(x) (x)
#define REAL(x) (x)
#define EPSILON (double)FLT_EPSILON
#define LEAST (double)FLT_MIN
#include "kernels/cpu/linalg/banded_body.h"
#undef T
#undef N
#undef EPSILON
#undef LEAST

#define T double
#define N(name) name##_f64
#define EPSILON DBL_EPSILON
#define LEAST DBL_MIN
#include "kernels/cpu/linalg/banded_body.h"
#undef T
#undef N
#undef SIZE
#undef CONJ
#undef REAL

#define T double _Complex
#define N(name) name##_c128
#define SIZE(x) cabs(x)
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#include "kernels/cpu/linalg/banded_body.h"
#undef T
#undef N
#undef SIZE
#undef CONJ
#undef REAL
#undef EPSILON
#undef LEAST

#define T float _Complex
#define N(name) name##_c64
#define SIZE(x) (double)cabsf(x)
#define CONJ(x) conjf(x)
#define REAL(x) crealf(x)
#define EPSILON (double)FLT_EPSILON
#define LEAST (double)FLT_MIN
#include "kernels/cpu/linalg/banded_body.h"

#define PICK(dtype, name)                 \
  ((dtype) == RN_FLOAT       ? name##_f32 \
   : (dtype) == RN_DOUBLE    ? name##_f64 \
   : (dtype) == RN_COMPLEX64 ? name##_c64 \
                             : name##_c128)

static void run_some(void* arg, int64_t begin, int64_t end) {
  const banded_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) job->one(job, i);
}

static void run(rn_kernel_ctx_t* ctx, banded_job_t* job, int64_t stack) {
  int64_t each = job->n * (job->columns + 4) * (job->bands + 1);
  rn_pool_for(rn_ctx_pool(ctx), stack, 20000 / (each + 1) + 1, run_some, job);
}

static rn_status_t solve_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const banded_state_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_linalg_check_tridiagonal(a, b));
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, a->dtype, rn_tensor_shape(a), &temp));
  banded_job_t job = {.n = rn_tensor_dim(a, a->rank - 1),
                      .columns = rn_tensor_dim(b, b->rank - 1),
                      .bands = 3,
                      .a = {a->data},
                      .b = b->data,
                      .out = out->data,
                      .temp = temp.data,
                      .pivots = state->pivots,
                      .perturbs = state->perturbs,
                      .one = PICK(a->dtype, tridiagonal_solve)};
  run(ctx, &job, rn_linalg_stack(a));
  rn_tensor_clear(&temp);
  return RN_OK;
}

static rn_status_t multiply_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a[3] = {rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)}, *b = rn_in(ctx, 3);
  RN_RETURN_IF_ERROR(rn_linalg_check_tridiagonal_product(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  banded_job_t job = {.n = rn_tensor_dim(b, b->rank - 2),
                      .columns = rn_tensor_dim(b, b->rank - 1),
                      .bands = 3,
                      .a = {a[0]->data, a[1]->data, a[2]->data},
                      .b = b->data,
                      .out = out->data,
                      .one = PICK(b->dtype, tridiagonal_multiply)};
  if (out->count) run(ctx, &job, rn_linalg_stack(b));
  return RN_OK;
}

static rn_status_t check_not_empty(int i, const rn_tensor_t* a) {
  if (a->count) return RN_OK;
  return rn_invalid_argument(
      "In[%d] must not be an empty tensor: Tensor<type: %s shape: %s values: >", i,
      rn_dtype_name(a->dtype), rn_text_of(a).text);
}

// The diagonal must not hold a zero: the first row of the bands of a lower matrix, else the last.
// Whether the first matrix is.
static bool is_singular(const rn_tensor_t* a, bool is_lower) {
  int64_t n = rn_tensor_dim(a, a->rank - 1), bands = rn_tensor_dim(a, a->rank - 2);
  size_t row = (size_t)n * rn_dtype_size(a->dtype);
  return PICK(a->dtype, has_no_pivot)(
      (const char*)a->data + (is_lower ? 0 : (size_t)(bands - 1) * row), n);
}

static rn_status_t banded_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const banded_state_t* state = ctx->state;
  if (a->rank < 2) return rn_invalid_argument("In[0] ndims must be >= 2: %d", a->rank);
  if (b->rank < 2) return rn_invalid_argument("In[1] ndims must be >= 2: %d", b->rank);
  RN_RETURN_IF_ERROR(check_not_empty(0, a));
  RN_RETURN_IF_ERROR(check_not_empty(1, b));
  rn_matmul_batch_t outer;
  if (!rn_matmul_broadcast(a, b, &outer))
    return rn_invalid_argument("In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                               rn_text_of(a).text, rn_text_of(b).text);
  int64_t n = rn_tensor_dim(a, a->rank - 1);
  if (n != rn_tensor_dim(b, b->rank - 2))
    return rn_invalid_argument("In[0] mismatch In[1] shape: %" PRId64 " vs. %" PRId64
                               ": %s %s %d %d",
                               n, rn_tensor_dim(b, b->rank - 2), rn_text_of(a).text,
                               rn_text_of(b).text, state->is_lower, state->is_adjoint);
  outer.dims[outer.rank] = n;
  outer.dims[outer.rank + 1] = rn_tensor_dim(b, b->rank - 1);
  rn_tensor_t *out = NULL, index = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){outer.rank + 2, outer.dims}, &out));
  int64_t stack = rn_dims_product(outer.dims, 0, outer.rank), index_dims[2] = {2, stack};
  // Stock checks the first matrix only; others give infinities.
  if (is_singular(a, state->is_lower))
    return rn_invalid_argument("Input matrix is not invertible.");
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){2, index_dims}, &index));
  int64_t* places = index.data;
  rn_linalg_fill_index(&outer, outer.a_steps, stack, places);
  rn_linalg_fill_index(&outer, outer.b_steps, stack, places + stack);
  banded_job_t job = {.n = n,
                      .columns = rn_tensor_dim(b, b->rank - 1),
                      .bands = rn_tensor_dim(a, a->rank - 2),
                      .a = {a->data},
                      .b = b->data,
                      .out = out->data,
                      .is_lower = state->is_lower,
                      .is_adjoint = state->is_adjoint,
                      .a_index = places,
                      .b_index = places + stack,
                      .one = PICK(a->dtype, banded_solve)};
  run(ctx, &job, stack);
  rn_tensor_clear(&index);
  return RN_OK;
}

static rn_status_t solve_init(const rn_kernel_init_t* init, void* memory) {
  banded_state_t* state = memory;
  state->pivots = rn_init_bool(init, "partial_pivoting");
  state->perturbs = rn_init_bool(init, "perturb_singular");
  if (state->pivots || !state->perturbs) return RN_OK;
  return rn_invalid_argument("Setting perturb_singular requires also setting partial_pivoting.");
}

static rn_status_t banded_init(const rn_kernel_init_t* init, void* memory) {
  banded_state_t* state = memory;
  state->is_lower = rn_init_bool(init, "lower");
  state->is_adjoint = rn_init_bool(init, "adjoint");
  return RN_OK;
}

#define ROW(op_, init_, compute_)                                                   \
  {                                                                                 \
    .op = op_, .device = "CPU", .state_size = sizeof(banded_state_t),               \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}}, .init = init_, \
    .compute = compute_                                                             \
  }
static const rn_kernel_def_t rows[] = {
    ROW("TridiagonalSolve", solve_init, solve_compute),
    ROW("TridiagonalMatMul", NULL, multiply_compute),
    ROW("BandedTriangularSolve", banded_init, banded_compute),
};
RN_KERNEL_FAMILY(cpu_banded, rows);
