// MatrixExponential: exp(A) = (r(A / 2^s))^(2^s), where r is the Padé approximant of degree 13
// (Higham, 2005). All types are computed as complex doubles.
#include <math.h>

#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cpu/linalg/wide.h"
#include "kernels/kernel_rows.h"

// The approximant has full precision up to this norm.
#define MOST_NORM 5.371920351148152

typedef struct exponential_t {
  int64_t n;
  rn_wide_t *a, *a2, *a4, *a6, *u, *v, *work;  // n x n each
} exponential_t;

// out = x y.
static void multiply(const rn_wide_t* x, const rn_wide_t* y, int64_t n, rn_wide_t* out) {
  memset(out, 0, (size_t)(n * n) * sizeof *out);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) {
      rn_wide_t factor = x[i * n + k];
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += factor * y[k * n + j];
    }
}

// B := A^-1 B by elimination with pivots. False if A is singular.
static bool solve(rn_wide_t* a, rn_wide_t* b, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (cabs(a[i * n + k]) > cabs(a[best * n + k])) best = i;
    if (a[best * n + k] == 0) return false;
    for (int64_t j = 0; best != k && j < n; ++j) {
      rn_wide_t x = a[k * n + j], y = b[k * n + j];
      a[k * n + j] = a[best * n + j], a[best * n + j] = x;
      b[k * n + j] = b[best * n + j], b[best * n + j] = y;
    }
    rn_wide_t inverse = 1 / a[k * n + k];
    for (int64_t j = 0; j < n; ++j) b[k * n + j] *= inverse;
    for (int64_t j = k; j < n; ++j) a[k * n + j] *= inverse;
    for (int64_t i = 0; i < n; ++i) {
      rn_wide_t factor = i == k ? 0 : a[i * n + k];
      if (factor == 0) continue;
      for (int64_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      for (int64_t j = 0; j < n; ++j) b[i * n + j] -= factor * b[k * n + j];
    }
  }
  return true;
}

// The largest sum of a column; NaN if an element is.
static double norm(const rn_wide_t* a, int64_t n) {
  double most = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += cabs(a[i * n + j]);
    if (!(sum <= most)) most = sum;
  }
  return most;
}

// out = c6 A^6 + c4 A^4 + c2 A^2 + c0 I.
static void combine(const exponential_t* e, double c6, double c4, double c2, double c0,
                    rn_wide_t* out) {
  for (int64_t i = 0; i < e->n * e->n; ++i)
    out[i] = c6 * e->a6[i] + c4 * e->a4[i] + c2 * e->a2[i] + (i % (e->n + 1) ? 0 : c0);
}

// out = A^6 (c12 A^6 + c10 A^4 + c8 A^2) + c6 A^6 + c4 A^4 + c2 A^2 + c0 I.
static void half_sum(const exponential_t* e, const double c[7], rn_wide_t* work, rn_wide_t* out) {
  combine(e, c[6], c[5], c[4], 0, work);
  multiply(e->a6, work, e->n, out);
  combine(e, c[3], c[2], c[1], c[0], work);
  for (int64_t i = 0; i < e->n * e->n; ++i) out[i] += work[i];
}

// Replaces |e->a| by its exponential.
static void exponential(exponential_t* e) {
  static const double odd[7] = {
      32382376266240000, 1187353796428800, 10559470521600, 33522128640, 40840800, 16380, 1};
  static const double even[7] = {
      64764752532480000, 7771770303897600, 129060195264000, 670442572800, 1323241920, 960960, 182};
  const int64_t n = e->n, all = n * n;
  double size = norm(e->a, n);
  int squarings = size > MOST_NORM && isfinite(size) ? (int)ceil(log2(size / MOST_NORM)) : 0;
  for (int64_t i = 0; i < all; ++i) e->a[i] *= ldexp(1, -squarings);
  multiply(e->a, e->a, n, e->a2);
  multiply(e->a2, e->a2, n, e->a4);
  multiply(e->a4, e->a2, n, e->a6);
  half_sum(e, odd, e->work, e->v);
  multiply(e->a, e->v, n, e->u);
  half_sum(e, even, e->work, e->v);
  for (int64_t i = 0; i < all; ++i) {
    rn_wide_t u = e->u[i], v = e->v[i];
    e->u[i] = v + u;
    e->v[i] = v - u;
  }
  if (!solve(e->v, e->u, n))
    for (int64_t i = 0; i < all; ++i) e->u[i] = (double)NAN;
  for (int k = 0; k < squarings; ++k) {
    multiply(e->u, e->u, n, e->work);
    memcpy(e->u, e->work, (size_t)all * sizeof *e->u);
  }
  memcpy(e->a, e->u, (size_t)all * sizeof *e->u);
}

static rn_status_t compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_linalg_check_square(in));
  exponential_t e = {.n = rn_tensor_dim(in, in->rank - 1)};
  rn_wide_t** parts[] = {&e.a, &e.a2, &e.a4, &e.a6, &e.u, &e.v, &e.work};
  enum { PARTS = sizeof parts / sizeof *parts };
  const int64_t dims[3] = {PARTS, e.n, e.n}, all = e.n * e.n;
  rn_tensor_t *out = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_COMPLEX128, (rn_shape_t){3, dims}, &scratch));
  for (int p = 0; p < PARTS; ++p) *parts[p] = RN_DATA(&scratch, rn_wide_t) + p * all;
  for (int64_t i = 0, stack = rn_linalg_stack(in); i < stack; ++i) {
    for (int64_t k = 0; k < all; ++k) e.a[k] = rn_wide_load(in, i * all + k);
    exponential(&e);
    for (int64_t k = 0; k < all; ++k) rn_wide_store(out, i * all + k, e.a[k]);
  }
  rn_tensor_clear(&scratch);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "MatrixExponential",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = compute},
};
RN_KERNEL_FAMILY(cpu_exponential, rows);
