// MatrixSolveLs and CholeskyGrad. All types are computed in double precision, complex for
// MatrixSolveLs: little code, and the normal equations need the digits.
#include <float.h>
#include <math.h>

#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cpu/linalg/wide.h"
#include "kernels/kernel_rows.h"

typedef struct least_state_t {
  bool is_fast;
} least_state_t;

typedef struct least_job_t {
  bool is_fast, is_wide_type;
  int64_t m, n, k;
  double regularizer;
  const rn_tensor_t *a, *b;
  rn_tensor_t* out;
  rn_wide_t *matrix, *right, *gram, *x, *tau;  // scratch: m n, max k, max max, max k, 2 max
} least_job_t;

static double norm2(rn_wide_t x) { return creal(x) * creal(x) + cimag(x) * cimag(x); }

// G = L L* in place. False if G is not positive definite to working precision.
static bool cholesky(rn_wide_t* g, int64_t n, double tolerance) {
  for (int64_t j = 0; j < n; ++j) {
    double whole = creal(g[j * n + j]), sum = whole;
    for (int64_t k = 0; k < j; ++k) sum -= norm2(g[j * n + k]);
    if (!(sum > tolerance * whole)) return false;
    double root = sqrt(sum);
    g[j * n + j] = root;
    for (int64_t i = j + 1; i < n; ++i) {
      rn_wide_t value = g[i * n + j];
      for (int64_t k = 0; k < j; ++k) value -= g[i * n + k] * conj(g[j * n + k]);
      g[i * n + j] = value / root;
    }
  }
  return true;
}

// X := (L L*)^-1 X, with rows of |k| numbers.
static void solve_cholesky(const rn_wide_t* l, int64_t n, rn_wide_t* x, int64_t k) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < k; ++c) {
      rn_wide_t sum = x[i * k + c];
      for (int64_t j = 0; j < i; ++j) sum -= l[i * n + j] * x[j * k + c];
      x[i * k + c] = sum / l[i * n + i];
    }
  for (int64_t i = n - 1; i >= 0; --i)
    for (int64_t c = 0; c < k; ++c) {
      rn_wide_t sum = x[i * k + c];
      for (int64_t j = i + 1; j < n; ++j) sum -= conj(l[j * n + i]) * x[j * k + c];
      x[i * k + c] = sum / l[i * n + i];
    }
}

// The normal equations: (A* A + lambda) X = A* B, or X = A* (A A* + lambda)^-1 B if A is wide.
static bool solve_normal(const least_job_t* job) {
  int64_t m = job->m, n = job->n, k = job->k, size = m >= n ? n : m;
  const rn_wide_t* a = job->matrix;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      rn_wide_t sum = i == j ? job->regularizer : 0;
      for (int64_t r = 0; r < (m >= n ? m : n); ++r)
        sum += m >= n ? conj(a[r * n + i]) * a[r * n + j] : a[i * n + r] * conj(a[j * n + r]);
      job->gram[i * size + j] = sum;
    }
  if (!cholesky(job->gram, size, job->is_wide_type ? 4 * DBL_EPSILON : 4 * FLT_EPSILON))
    return false;
  if (m < n) solve_cholesky(job->gram, m, job->right, k);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < k; ++c) {
      rn_wide_t sum = 0;
      for (int64_t r = 0; r < m; ++r) sum += conj(a[r * n + i]) * job->right[r * k + c];
      job->x[i * k + c] = sum;
    }
  if (m >= n) solve_cholesky(job->gram, n, job->x, k);
  return true;
}

// Reflects column |c| of the rows from |c| on to its first element; v is left below it, its first
// element in |*first|. Returns tau.
static double reflector(rn_wide_t* a, int64_t m, int64_t n, int64_t c, rn_wide_t* first) {
  double tail = 0;
  for (int64_t i = c + 1; i < m; ++i) tail += norm2(a[i * n + c]);
  rn_wide_t lead = a[c * n + c];
  double size = cabs(lead), whole = sqrt(size * size + tail);
  if (tail == 0) return 0;
  rn_wide_t phase = size > 0 ? lead / size : 1;
  *first = lead + phase * whole;
  a[c * n + c] = -phase * whole;
  return 1 / (whole * (whole + size));
}

// Applies I - tau v v* to columns [from, columns) of |x|.
static void reflect(const rn_wide_t* a, int64_t m, int64_t n, int64_t c, rn_wide_t first,
                    double tau, rn_wide_t* x, int64_t columns, int64_t from) {
  for (int64_t j = from; tau != 0 && j < columns; ++j) {
    rn_wide_t sum = conj(first) * x[c * columns + j];
    for (int64_t i = c + 1; i < m; ++i) sum += conj(a[i * n + c]) * x[i * columns + j];
    sum *= tau;
    x[c * columns + j] -= first * sum;
    for (int64_t i = c + 1; i < m; ++i) x[i * columns + j] -= a[i * n + c] * sum;
  }
}

static void swap_columns(rn_wide_t* a, int64_t m, int64_t n, int64_t i, int64_t j) {
  for (int64_t r = 0; i != j && r < m; ++r) {
    rn_wide_t old = a[r * n + i];
    a[r * n + i] = a[r * n + j];
    a[r * n + j] = old;
  }
}

// A P = Q R with the longest column first, applied to the right-hand side. Returns the rank.
static int64_t factor_pivoting(const least_job_t* job, int64_t* columns) {
  int64_t m = job->m, n = job->n, least = m < n ? m : n;
  double largest = 0;
  double epsilon = (job->is_wide_type ? DBL_EPSILON : (double)FLT_EPSILON) * (double)least;
  for (int64_t c = 0; c < n; ++c) columns[c] = c;
  for (int64_t c = 0; c < least; ++c) {
    int64_t best = c;
    double longest = -1;
    for (int64_t j = c; j < n; ++j) {
      double length = 0;
      for (int64_t i = c; i < m; ++i) length += norm2(job->matrix[i * n + j]);
      if (length > longest) longest = length, best = j;
    }
    if (c == 0) largest = sqrt(longest);
    if (!(sqrt(longest) > epsilon * largest)) return c;
    swap_columns(job->matrix, m, n, c, best);
    int64_t old = columns[c];
    columns[c] = columns[best], columns[best] = old;
    rn_wide_t first = 0;
    double tau = reflector(job->matrix, m, n, c, &first);
    reflect(job->matrix, m, n, c, first, tau, job->matrix, n, c + 1);
    reflect(job->matrix, m, n, c, first, tau, job->right, job->k, 0);
  }
  return least;
}

// The solution of least length, whatever the rank: R = [R1 R2] = S* Z* with S triangular, so that
// X = P Z S^-* (Q* B).
static void solve_orthogonal(const least_job_t* job, int64_t* columns) {
  int64_t n = job->n, k = job->k, rank = factor_pivoting(job, columns);
  rn_wide_t *s = job->gram, *firsts = job->tau, *taus = firsts + rank;  // s is n x rank
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < rank; ++j) s[i * rank + j] = i < j ? 0 : conj(job->matrix[j * n + i]);
  for (int64_t c = 0; c < rank; ++c) {
    firsts[c] = 0;
    taus[c] = reflector(s, n, rank, c, &firsts[c]);
    reflect(s, n, rank, c, firsts[c], creal(taus[c]), s, rank, c + 1);
  }
  memset(job->x, 0, (size_t)(n * k) * sizeof *job->x);
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t c = 0; c < k; ++c) {
      rn_wide_t sum = job->right[i * k + c];
      for (int64_t j = 0; j < i; ++j) sum -= conj(s[j * rank + i]) * job->x[j * k + c];
      job->x[i * k + c] = sum / conj(s[i * rank + i]);
    }
  for (int64_t c = rank - 1; c >= 0; --c)
    reflect(s, n, rank, c, firsts[c], creal(taus[c]), job->x, k, 0);
  // Rows back to their columns; the right-hand side is scratch by now.
  memcpy(job->right, job->x, (size_t)(n * k) * sizeof *job->x);
  for (int64_t i = 0; i < n; ++i)
    memcpy(job->x + columns[i] * k, job->right + i * k, (size_t)k * sizeof *job->x);
}

static bool solve_one(const least_job_t* job, int64_t i, int64_t* columns) {
  int64_t m = job->m, n = job->n, k = job->k;
  for (int64_t j = 0; j < m * n; ++j) job->matrix[j] = rn_wide_load(job->a, i * m * n + j);
  for (int64_t j = 0; j < m * k; ++j) job->right[j] = rn_wide_load(job->b, i * m * k + j);
  if (job->is_fast) {
    if (!solve_normal(job)) return false;
  } else {
    solve_orthogonal(job, columns);
  }
  for (int64_t j = 0; j < n * k; ++j) rn_wide_store(job->out, i * n * k + j, job->x[j]);
  return true;
}

static rn_status_t check_least(const rn_tensor_t* a, const rn_tensor_t* b) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  if (a->rank != b->rank) return rn_invalid_argument("All input tensors must have the same rank.");
  for (int d = 0; d < a->rank - 2; ++d)
    if (rn_tensor_dim(a, d) != rn_tensor_dim(b, d))
      return rn_invalid_argument("All input tensors must have the same outer dimensions.");
  if (rn_tensor_dim(a, a->rank - 2) != rn_tensor_dim(b, b->rank - 2))
    return rn_invalid_argument("Input matrix and rhs are incompatible.");
  return RN_OK;
}

// Stock looks at it when there is a matrix.
static rn_status_t check_regularizer(const rn_tensor_t* l) {
  if (l->rank != 0)
    return rn_invalid_argument("Regularizer must be a scalar, got shape of rank %d", l->rank);
  if (!(RN_DATA(l, const double)[0] >= 0))
    return rn_invalid_argument("l2_regularizer must be >= 0.");
  return RN_OK;
}

static rn_status_t least_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1), *l = rn_in(ctx, 2);
  const least_state_t* state = ctx->state;
  RN_RETURN_IF_ERROR(check_least(a, b));
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(b), (size_t)b->rank * sizeof *dims);
  least_job_t job = {.is_fast = state->is_fast,
                     .is_wide_type = a->dtype == RN_DOUBLE || a->dtype == RN_COMPLEX128,
                     .m = rn_tensor_dim(a, a->rank - 2),
                     .n = dims[b->rank - 2] = rn_tensor_dim(a, a->rank - 1),
                     .k = rn_tensor_dim(b, b->rank - 1),
                     .a = a,
                     .b = b};
  if (rn_linalg_stack(a) > 0) RN_RETURN_IF_ERROR(check_regularizer(l));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){b->rank, dims}, &job.out));
  if (job.out->count == 0) return RN_OK;
  job.regularizer = RN_DATA(l, const double)[0];
  if (job.m == 0) {
    memset(job.out->data, 0, (size_t)job.out->count * rn_dtype_size(job.out->dtype));
    return RN_OK;
  }
  int64_t most = job.m > job.n ? job.m : job.n;
  int64_t size = job.m * job.n + 2 * most * job.k + most * most + 2 * most;
  rn_tensor_t scratch = {0}, columns = {0};
  rn_status_t status = rn_temp(ctx, RN_COMPLEX128, (rn_shape_t){1, &size}, &scratch);
  if (rn_ok(status)) status = rn_temp(ctx, RN_INT64, (rn_shape_t){1, &job.n}, &columns);
  bool is_good = rn_ok(status);
  if (is_good) {
    job.matrix = scratch.data;
    job.right = job.matrix + job.m * job.n;
    job.x = job.right + most * job.k;
    job.gram = job.x + most * job.k;
    job.tau = job.gram + most * most;
  }
  for (int64_t i = 0, stack = rn_linalg_stack(a); is_good && i < stack; ++i)
    is_good = solve_one(&job, i, columns.data);
  rn_tensor_clear(&scratch);
  rn_tensor_clear(&columns);
  if (!rn_ok(status) || is_good) return status;
  return rn_invalid_argument(
      "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
      "larger l2_regularizer > 0.");
}

// X := L^-T X for rows of n numbers, and what is symmetric to it.
static void solve_transposed(const double* l, double* x, int64_t n) {
  for (int64_t i = n - 1; i >= 0; --i)
    for (int64_t c = 0; c < n; ++c) {
      double sum = x[i * n + c];
      for (int64_t j = i + 1; j < n; ++j) sum -= l[j * n + i] * x[j * n + c];
      x[i * n + c] = sum / l[i * n + i];
    }
}

static void transpose(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) {
      double old = x[i * n + j];
      x[i * n + j] = x[j * n + i];
      x[j * n + i] = old;
    }
}

// L^-T (M + M^T) L^-1 / 2, where M is the lower triangle of L^T dL with its diagonal halved.
static void cholesky_grad_one(double* l, double* d, double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = i; k < n; ++k) sum += l[k * n + i] * d[k * n + j];
      x[i * n + j] = x[j * n + i] = sum / 2;
    }
  solve_transposed(l, x, n);
  transpose(x, n);
  solve_transposed(l, x, n);
}

static rn_status_t cholesky_grad_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *l = rn_in(ctx, 0), *d = rn_in(ctx, 1);
  bool is_same = l->rank == d->rank;
  for (int i = 0; is_same && i < l->rank; ++i) is_same = rn_tensor_dim(l, i) == rn_tensor_dim(d, i);
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(l));
  if (!is_same) return rn_invalid_argument("Inputs (L and grad) must have the same shape.");
  int64_t n = rn_tensor_dim(l, l->rank - 1), all = n * n, dims[2] = {3, all};
  if (n != rn_tensor_dim(l, l->rank - 2))
    return rn_invalid_argument("Inputs must be a square matrices.");
  rn_tensor_t *out = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(l), &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, (rn_shape_t){2, dims}, &scratch));
  double *a = scratch.data, *b = a + all, *x = b + all;
  for (int64_t i = 0, stack = rn_linalg_stack(l); i < stack; ++i) {
    for (int64_t k = 0; k < all; ++k) {
      bool is_lower = k % n <= k / n;
      a[k] = is_lower ? creal(rn_wide_load(l, i * all + k)) : 0;
      b[k] = is_lower ? creal(rn_wide_load(d, i * all + k)) : 0;
    }
    cholesky_grad_one(a, b, x, n);
    for (int64_t k = 0; k < all; ++k) rn_wide_store(out, i * all + k, x[k]);
  }
  rn_tensor_clear(&scratch);
  return RN_OK;
}

static rn_status_t least_init(const rn_kernel_init_t* init, void* state) {
  ((least_state_t*)state)->is_fast = rn_init_bool(init, "fast");
  return RN_OK;
}

#define LEAST(op_)                                                                                 \
  {                                                                                                \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(least_state_t), \
    .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}},                               \
    .host_args = RN_HOST_ARGS("l2_regularizer"), .init = least_init, .compute = least_compute      \
  }
#define CHOLESKY_GRAD(op_)                                                         \
  {                                                                                \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                      \
    .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}}, .compute = cholesky_grad_compute \
  }

static const rn_kernel_def_t rows[] = {
    LEAST("MatrixSolveLs"),
    LEAST("BatchMatrixSolveLs"),
    CHOLESKY_GRAD("CholeskyGrad"),
    CHOLESKY_GRAD("BatchCholeskyGrad"),
};
RN_KERNEL_FAMILY(cpu_least_squares, rows);
