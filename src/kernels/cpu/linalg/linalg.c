// Linear systems, inverses, determinants and Cholesky factors of batches of matrices.
//
// Decompositions work on panels of rows or columns: a panel is factored, then one GEMM, which takes
// most of the time, updates the rest of the matrix. The matrices of a batch run in parallel; a
// single large matrix is updated by several threads, split by rows.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/float_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/linalg.h"
#include "kernels/cpu/linalg/shapes.h"
#include "kernels/kernel_rows.h"

#define PANEL 32
// Multiplications per piece of work.
#define PIECE_PRODUCTS 2e5

typedef struct linalg_matrix_t {
  const rn_linalg_fns_t* fns;
  size_t item;
  int64_t n;
  rn_pool_t* pool;
} linalg_matrix_t;

static char* at(const linalg_matrix_t* m, void* a, int64_t width, int64_t row, int64_t column) {
  return (char*)a + (size_t)(row * width + column) * m->item;
}

// A GEMM split by rows of C.
typedef struct rows_job_t {
  const linalg_matrix_t* matrix;
  const rn_subtract_t* product;
} rows_job_t;

static void subtract_rows(void* arg, int64_t begin, int64_t end) {
  const rows_job_t* job = arg;
  rn_subtract_t part = *job->product;
  size_t item = job->matrix->item;
  part.c = (char*)part.c + (size_t)(begin * part.c_row) * item;
  part.a = (const char*)part.a + (size_t)(begin * part.a_row) * item;
  part.m = end - begin;
  job->matrix->fns->subtract(&part);
}

static int64_t grain_of(double each) {
  return each >= PIECE_PRODUCTS ? 1 : (int64_t)(PIECE_PRODUCTS / (each + 1)) + 1;
}

static void subtract(const linalg_matrix_t* m, const rn_subtract_t* product) {
  if (product->m <= 0 || product->n <= 0 || product->k <= 0) return;
  rows_job_t job = {m, product};
  rn_pool_for(m->pool, product->m, grain_of((double)product->n * (double)product->k), subtract_rows,
              &job);
}

static void swap_rows(char* a, char* b, size_t bytes) {
  char temp[256];
  for (size_t i = 0; i < bytes; i += sizeof temp) {
    size_t n = bytes - i < sizeof temp ? bytes - i : sizeof temp;
    memcpy(temp, a + i, n);
    memcpy(a + i, b + i, n);
    memcpy(b + i, temp, n);
  }
}

// A = P L U in place, without L's unit diagonal. pivots[k] is the row swapped with row k. False if
// a pivot is 0 or the first is NaN: as in stock, where a later NaN is no reason to fail.
static bool factor(const linalg_matrix_t* m, char* a, int64_t* pivots) {
  int64_t n = m->n;
  bool is_regular = true;
  for (int64_t from = 0; from < n; from += PANEL) {
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t k = from; k < to; ++k) {
      pivots[k] = k + m->fns->largest(at(m, a, n, k, k), n, n - k);
      if (pivots[k] != k)
        swap_rows(at(m, a, n, k, 0), at(m, a, n, pivots[k], 0), (size_t)n * m->item);
      if (m->fns->is_zero(at(m, a, n, k, k))) {
        is_regular = false;
        continue;
      }
      if (k + 1 == n) break;
      m->fns->divide(at(m, a, n, k + 1, k), n, n - k - 1, at(m, a, n, k, k), false);
      subtract(
          m, &(rn_subtract_t){at(m, a, n, k + 1, k + 1), at(m, a, n, k + 1, k),
                              at(m, a, n, k, k + 1), n, n, 1, n, n - k - 1, to - k - 1, 1, false});
    }
    if (to == n) break;
    for (int64_t i = from + 1; i < to; ++i)
      m->fns->subtract(&(rn_subtract_t){at(m, a, n, i, to), at(m, a, n, i, from),
                                        at(m, a, n, from, to), n, n, 1, n, 1, n - to, i - from,
                                        false});
    subtract(m, &(rn_subtract_t){at(m, a, n, to, to), at(m, a, n, to, from), at(m, a, n, from, to),
                                 n, n, 1, n, n - to, n - to, to - from, false});
  }
  return is_regular && !m->fns->is_nan(a);
}

// How to read a triangle: which part of A, as it is or as its adjoint.
typedef struct triangle_t {
  const char* a;
  bool is_lower;  // after taking the adjoint
  bool is_adjoint, has_unit_diagonal;
} triangle_t;

// Columns [first, first + width) of X := A^-1 X, with rows of |columns| elements.
static void solve_columns(const linalg_matrix_t* m, const triangle_t* t, char* x, int64_t columns,
                          int64_t first, int64_t width) {
  int64_t n = m->n, row = t->is_adjoint ? 1 : n, column = t->is_adjoint ? n : 1;
  rn_subtract_t p = {.c_row = columns,
                     .b_row = columns,
                     .a_row = row,
                     .a_column = column,
                     .n = width,
                     .conjugate_a = t->is_adjoint};
  int64_t panels = (n + PANEL - 1) / PANEL;
  for (int64_t q = 0; q < panels; ++q) {
    int64_t from = (t->is_lower ? q : panels - 1 - q) * PANEL;
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t s = 0; s < to - from; ++s) {
      int64_t i = t->is_lower ? from + s : to - 1 - s, known = t->is_lower ? from : i + 1;
      p.c = at(m, x, columns, i, first);
      p.a = t->a + (size_t)(i * row + known * column) * m->item;
      p.b = at(m, x, columns, known, first);
      p.m = 1, p.k = s;
      if (s) m->fns->subtract(&p);
      if (!t->has_unit_diagonal)
        m->fns->divide(p.c, 1, width, t->a + (size_t)(i * n + i) * m->item, t->is_adjoint);
    }
    int64_t rest = t->is_lower ? to : 0, count = t->is_lower ? n - to : from;
    if (count <= 0) continue;
    p.c = at(m, x, columns, rest, first);
    p.a = t->a + (size_t)(rest * row + from * column) * m->item;
    p.b = at(m, x, columns, from, first);
    p.m = count, p.k = to - from;
    m->fns->subtract(&p);
  }
}

typedef struct columns_job_t {
  const linalg_matrix_t* matrix;
  const triangle_t* triangle;
  char* x;
  int64_t columns;
} columns_job_t;

static void solve_piece(void* arg, int64_t begin, int64_t end) {
  const columns_job_t* job = arg;
  solve_columns(job->matrix, job->triangle, job->x, job->columns, begin, end - begin);
}

static void solve_triangle(const linalg_matrix_t* m, const triangle_t* triangle, char* x,
                           int64_t columns) {
  columns_job_t job = {m, triangle, x, columns};
  int64_t grain = grain_of((double)m->n * (double)m->n);
  rn_pool_for(m->pool, columns, grain < 16 ? 16 : grain, solve_piece, &job);
}

// X := A^-1 X for a factored A.
static void solve_factored(const linalg_matrix_t* m, const char* a, const int64_t* pivots, char* x,
                           int64_t columns) {
  for (int64_t k = 0; k < m->n; ++k)
    if (pivots[k] != k)
      swap_rows(at(m, x, columns, k, 0), at(m, x, columns, pivots[k], 0),
                (size_t)columns * m->item);
  solve_triangle(m, &(triangle_t){a, true, false, true}, x, columns);
  solve_triangle(m, &(triangle_t){a, false, false, false}, x, columns);
}

// A = U* U in place, for the upper triangle of A. False if A is not positive definite.
static bool factor_positive(const linalg_matrix_t* m, char* a) {
  int64_t n = m->n;
  for (int64_t from = 0; from < n; from += PANEL) {
    int64_t to = from + PANEL < n ? from + PANEL : n;
    for (int64_t k = from; k < to; ++k) {
      if (!m->fns->root(at(m, a, n, k, k))) return false;
      if (k + 1 < n) m->fns->divide(at(m, a, n, k, k + 1), 1, n - k - 1, at(m, a, n, k, k), false);
      for (int64_t i = k + 1; i < to; ++i)
        m->fns->subtract(&(rn_subtract_t){at(m, a, n, i, i), at(m, a, n, k, i), at(m, a, n, k, i),
                                          n, n, n, n, 1, n - i, 1, true});
    }
    // Strips of rows from their first diagonal element on; nothing below it is read.
    for (int64_t i = to; i < n; i += PANEL) {
      int64_t rows = i + PANEL < n ? PANEL : n - i;
      subtract(m, &(rn_subtract_t){at(m, a, n, i, i), at(m, a, n, from, i), at(m, a, n, from, i), n,
                                   1, n, n, rows, n - i, to - from, true});
    }
  }
  return true;
}

// Batches of matrices.
typedef enum linalg_work_t { SOLVE, INVERT, DETERMINANT, CHOLESKY, TRIANGULAR, LU } linalg_work_t;

typedef struct linalg_state_t {
  bool is_adjoint, is_lower;
} linalg_state_t;

typedef struct linalg_job_t {
  linalg_work_t work;
  const linalg_state_t* state;
  linalg_matrix_t matrix;
  const char *a, *b;
  char* out;
  char* temp;                        // one matrix per batch entry, if the work needs it
  int64_t* pivots;                   // n per matrix
  int64_t columns;                   // of the right-hand side
  rn_tensor_t* rows;                 // of LU: the permutation
  const int64_t *a_index, *b_index;  // operand index of each result matrix
  bool is_singular;
} linalg_job_t;

static void set_identity(const linalg_matrix_t* m, char* x) {
  memset(x, 0, (size_t)(m->n * m->n) * m->item);
  for (int64_t i = 0; i < m->n; ++i) m->fns->set(at(m, x, m->n, i, i), 1);
}

static void cholesky_one(const linalg_matrix_t* m, const char* a, char* u, char* out) {
  // The input is the lower triangle of A; its adjoint is the upper triangle that is factored.
  m->fns->adjoint(u, a, m->n);
  bool is_positive = factor_positive(m, u);
  m->fns->adjoint(out, u, m->n);
  for (int64_t i = 0; i < m->n; ++i) {
    memset(at(m, out, m->n, i, i + 1), 0, (size_t)(m->n - i - 1) * m->item);
    for (int64_t j = 0; !is_positive && j <= i; ++j)
      m->fns->set(at(m, out, m->n, i, j), (double)NAN);
  }
}

static void determinant_one(const linalg_matrix_t* m, const char* a, const int64_t* pivots,
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

static void run_one(linalg_job_t* job, const linalg_matrix_t* m, int64_t i) {
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
    triangle_t triangle = {a, job->state->is_lower != is_adjoint, is_adjoint, false};
    solve_triangle(m, &triangle, job->out + (size_t)i * side, job->columns);
    return;
  }
  if (job->state->is_adjoint)
    m->fns->adjoint(temp, a, n);
  else
    memcpy(temp, a, square);
  bool is_regular = factor(m, temp, pivots);
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
  solve_factored(m, temp, pivots, x, job->columns);
}

static void run_stack(void* arg, int64_t begin, int64_t end) {
  linalg_job_t* job = arg;
  linalg_matrix_t alone = job->matrix;
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
      rn_pool_for(rn_ctx_pool(ctx), stack, grain_of(each), run_stack, job);
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
