// Linear systems, inverses, determinants and Cholesky factors of batches of matrices, which run in
// parallel; a single large matrix uses several threads.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/float_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linalg/factor.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/kernel_rows.h"

typedef enum linalg_work_t { SOLVE, INVERT, DETERMINANT, CHOLESKY, TRIANGULAR, LU } linalg_work_t;

typedef struct linalg_state_t {
  bool is_adjoint, is_lower;
} linalg_state_t;

typedef struct linalg_job_t {
  linalg_work_t work;
  const linalg_state_t* state;
  rn_linalg_matrix_t matrix;
  const char *a, *b;
  char* out;
  char* temp;                        // one matrix per batch entry, if the work needs it
  int64_t* pivots;                   // n per matrix
  int64_t columns;                   // of the right-hand side
  rn_tensor_t* rows;                 // of LU: the permutation
  const int64_t *a_index, *b_index;  // operand index of each result matrix
  bool is_singular;
} linalg_job_t;

static void set_identity(const rn_linalg_matrix_t* m, char* x) {
  memset(x, 0, (size_t)(m->n * m->n) * m->item);
  for (int64_t i = 0; i < m->n; ++i) m->fns->set(rn_linalg_at(m, x, m->n, i, i), 1);
}

static void cholesky_one(const rn_linalg_matrix_t* m, const char* a, char* u, char* out) {
  // The input is the lower triangle of A; its adjoint is the upper triangle that is factored.
  m->fns->adjoint(u, a, m->n);
  bool is_positive = rn_linalg_factor_positive(m, u);
  m->fns->adjoint(out, u, m->n);
  for (int64_t i = 0; i < m->n; ++i) {
    memset(rn_linalg_at(m, out, m->n, i, i + 1), 0, (size_t)(m->n - i - 1) * m->item);
    for (int64_t j = 0; !is_positive && j <= i; ++j)
      m->fns->set(rn_linalg_at(m, out, m->n, i, j), (double)NAN);
  }
}

static void determinant_one(const rn_linalg_matrix_t* m, const char* a, const int64_t* pivots,
                            char* out) {
  bool is_odd = false;
  m->fns->set(out, 1);
  for (int64_t k = 0; k < m->n; ++k) {
    is_odd ^= pivots[k] != k;
    m->fns->multiply(out, a + (size_t)(k * m->n + k) * m->item);
  }
  if (!is_odd) return;
  char minus[16];
  m->fns->set(minus, -1);
  m->fns->multiply(out, minus);
}

// Which row of the input each row of L U is: the exchanges, applied in order.
static void list_rows(const int64_t* pivots, int64_t n, rn_tensor_t* out, int64_t first) {
  for (int64_t k = 0; k < n; ++k) rn_int_set(out, first + k, k);
  for (int64_t k = 0; k < n; ++k) {
    int64_t other = rn_int_at(out, first + pivots[k]);
    rn_int_set(out, first + pivots[k], rn_int_at(out, first + k));
    rn_int_set(out, first + k, other);
  }
}

// Empty matrices have no data to point to.
#define AT(base, offset) ((base) ? (base) + (offset) : (base))

static void run_one(linalg_job_t* job, const rn_linalg_matrix_t* m, int64_t i) {
  int64_t n = m->n;
  size_t square = (size_t)(n * n) * m->item, side = (size_t)(n * job->columns) * m->item;
  const char* a = AT(job->a, (size_t)(job->a_index ? job->a_index[i] : i) * square);
  char* temp = AT(job->temp, (size_t)i * square);
  int64_t* pivots = AT(job->pivots, i * n);
  if (job->work == CHOLESKY) {
    cholesky_one(m, a, temp, job->out + (size_t)i * square);
    return;
  }
  if (job->work == SOLVE || job->work == TRIANGULAR)
    memcpy(job->out + (size_t)i * side,
           job->b + (size_t)(job->b_index ? job->b_index[i] : i) * side, side);
  if (job->work == TRIANGULAR) {
    bool is_adjoint = job->state->is_adjoint;
    rn_linalg_triangle_t triangle = {a, job->state->is_lower != is_adjoint, is_adjoint, false};
    rn_linalg_solve_triangle(m, &triangle, job->out + (size_t)i * side, job->columns);
    return;
  }
  if (job->state->is_adjoint)
    m->fns->adjoint(temp, a, n);
  else
    memcpy(temp, a, square);
  bool is_regular = rn_linalg_factor(m, temp, pivots);
  if (job->work == DETERMINANT) {
    determinant_one(m, temp, pivots, job->out + (size_t)i * m->item);
    return;
  }
  if (!is_regular) {
    __atomic_store_n(&job->is_singular, true, __ATOMIC_RELAXED);
    return;
  }
  char* x = job->out + (size_t)i * side;
  if (job->work == LU) {
    memcpy(x, temp, square);
    list_rows(pivots, n, job->rows, i * n);
    return;
  }
  if (job->work == INVERT) set_identity(m, x);
  rn_linalg_solve_factored(m, temp, pivots, x, job->columns);
}

static void run_stack(void* arg, int64_t begin, int64_t end) {
  linalg_job_t* job = arg;
  rn_linalg_matrix_t alone = job->matrix;
  alone.pool = NULL;
  for (int64_t i = begin; i < end; ++i) run_one(job, &alone, i);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, linalg_job_t* job, rn_dtype_t dtype, int64_t stack) {
  int64_t n = job->matrix.n;
  job->state = ctx->state;
  job->matrix.fns = &RN_ISA_PICK(rn_linalg_)[dtype];
  job->matrix.item = rn_dtype_size(dtype);
  job->matrix.pool = rn_ctx_pool(ctx);
  rn_tensor_t temp = {0}, pivots = {0};
  int64_t dims[3] = {stack, n, n};
  rn_status_t status = RN_OK;
  if (job->work != TRIANGULAR) status = rn_temp(ctx, dtype, (rn_shape_t){3, dims}, &temp);
  if (rn_ok(status) && job->work != TRIANGULAR && job->work != CHOLESKY)
    status = rn_temp(ctx, RN_INT64, (rn_shape_t){2, dims}, &pivots);
  if (rn_ok(status)) {
    job->temp = temp.data;
    job->pivots = pivots.data;
    double each = (double)n * (double)n * (double)(n + job->columns);
    if (stack == 1)
      run_one(job, &job->matrix, 0);
    else
      rn_pool_for(rn_ctx_pool(ctx), stack, rn_linalg_grain(each), run_stack, job);
  }
  rn_tensor_clear(&temp);
  rn_tensor_clear(&pivots);
  return status;
}

// One square matrix in, one matrix or number out.
static rn_status_t unary(rn_kernel_ctx_t* ctx, linalg_work_t work) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  int64_t n = rn_tensor_dim(a, a->rank - 1);
  rn_shape_t shape = rn_tensor_shape(a);
  if (work == DETERMINANT) shape.rank -= 2;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count == 0) return RN_OK;
  linalg_job_t job = {.work = work, .matrix.n = n, .a = a->data, .out = out->data, .columns = n};
  RN_RETURN_IF_ERROR(run(ctx, &job, a->dtype, rn_linalg_stack(a)));
  return job.is_singular ? rn_invalid_argument("Input is not invertible.") : RN_OK;
}

static rn_status_t lu_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  if (a->rank < 2) return rn_invalid_argument("Input tensor must have rank >= 2, got %d", a->rank);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  int64_t n = rn_tensor_dim(a, a->rank - 1);
  rn_shape_t shape = rn_tensor_shape(a), list = {a->rank - 1, shape.dims};
  linalg_job_t job = {.work = LU, .matrix.n = n, .a = a->data, .columns = n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, list, &job.rows));
  if (out->count == 0) return RN_OK;
  job.out = out->data;
  RN_RETURN_IF_ERROR(run(ctx, &job, a->dtype, rn_linalg_stack(a)));
  return job.is_singular ? rn_invalid_argument("Input is not invertible.") : RN_OK;
}

// Halves are inverted as floats.
static rn_status_t invert_halves(rn_kernel_ctx_t* ctx, rn_float_args_t* args) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  const float* in = NULL;
  float* out = NULL;
  RN_RETURN_IF_ERROR(rn_float_args_in(args, 0, &in));
  RN_RETURN_IF_ERROR(rn_float_args_out(args, 0, rn_tensor_shape(a), &out));
  int64_t n = rn_tensor_dim(a, a->rank - 1);
  linalg_job_t job = {
      .work = INVERT, .matrix.n = n, .a = (const char*)in, .out = (char*)out, .columns = n};
  if (a->count) RN_RETURN_IF_ERROR(run(ctx, &job, RN_FLOAT, rn_linalg_stack(a)));
  return job.is_singular ? rn_invalid_argument("Input is not invertible.") : RN_OK;
}

static rn_status_t invert_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  if (a->dtype != RN_HALF) return unary(ctx, INVERT);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  rn_float_args_t args = {.ctx = ctx};
  return rn_float_args_end(&args, invert_halves(ctx, &args));
}
static rn_status_t determinant_compute(rn_kernel_ctx_t* ctx) { return unary(ctx, DETERMINANT); }
static rn_status_t cholesky_compute(rn_kernel_ctx_t* ctx) { return unary(ctx, CHOLESKY); }

static rn_status_t solve_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_linalg_check_solve(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  if (out->count == 0) return RN_OK;
  linalg_job_t job = {.work = SOLVE,
                      .matrix.n = rn_tensor_dim(a, a->rank - 1),
                      .a = a->data,
                      .b = b->data,
                      .out = out->data,
                      .columns = rn_tensor_dim(b, b->rank - 1)};
  RN_RETURN_IF_ERROR(run(ctx, &job, a->dtype, rn_linalg_stack(a)));
  return job.is_singular ? rn_invalid_argument("Input matrix is not invertible.") : RN_OK;
}

static rn_status_t triangular_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  const linalg_state_t* state = ctx->state;
  rn_matmul_batch_t outer;
  RN_RETURN_IF_ERROR(rn_linalg_check_triangular(a, b, state->is_lower, state->is_adjoint, &outer));
  const int64_t *dims = outer.dims, n = rn_tensor_dim(a, a->rank - 1);
  const int rank = outer.rank;
  rn_tensor_t *out = NULL, index = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank + 2, dims}, &out));
  if (out->count == 0) return RN_OK;
  linalg_job_t job = {.work = TRIANGULAR,
                      .matrix.n = n,
                      .a = a->data,
                      .b = b->data,
                      .out = out->data,
                      .columns = dims[rank + 1]};
  int64_t stack = rn_dims_product(dims, 0, rank), index_dims[2] = {2, stack};
  if (stack > 1) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){2, index_dims}, &index));
    job.a_index = index.data;
    job.b_index = RN_DATA(&index, int64_t) + stack;
    rn_linalg_fill_index(&outer, outer.a_steps, stack, RN_DATA(&index, int64_t));
    rn_linalg_fill_index(&outer, outer.b_steps, stack, RN_DATA(&index, int64_t) + stack);
  }
  rn_status_t status = run(ctx, &job, a->dtype, stack);
  rn_tensor_clear(&index);
  return status;
}

static rn_status_t adjoint_init(const rn_kernel_init_t* init, void* state) {
  ((linalg_state_t*)state)->is_adjoint = rn_init_bool(init, "adjoint");
  return RN_OK;
}

static rn_status_t triangular_init(const rn_kernel_init_t* init, void* state) {
  ((linalg_state_t*)state)->is_lower = rn_init_bool(init, "lower");
  return adjoint_init(init, state);
}

#define ROW(op_, init_, compute_, more_types)                                                      \
  {                                                                                                \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                                      \
    .state_size = sizeof(linalg_state_t),                                                          \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE) | (more_types)}}, .init = init_, \
    .compute = compute_                                                                            \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MatrixSolve", adjoint_init, solve_compute, 0),
    ROW("MatrixInverse", adjoint_init, invert_compute, RN_T(HALF)),
    ROW("MatrixDeterminant", NULL, determinant_compute, 0),
    ROW("Cholesky", NULL, cholesky_compute, 0),
    ROW("Lu", NULL, lu_compute, 0),
    ROW("MatrixTriangularSolve", triangular_init, triangular_compute, 0),
    ROW("BatchMatrixSolve", adjoint_init, solve_compute, 0),
    ROW("BatchMatrixInverse", adjoint_init, invert_compute, 0),
    ROW("BatchMatrixDeterminant", NULL, determinant_compute, 0),
    ROW("BatchCholesky", NULL, cholesky_compute, 0),
    ROW("BatchMatrixTriangularSolve", triangular_init, triangular_compute, 0),
};
RN_KERNEL_FAMILY(cpu_linalg, rows);
