// Special functions: gamma and related functions, inverse error functions, nextafter. Computed in
// double, one element at a time (special_gamma.h), and rounded to the type at the end.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for lgamma_r
#endif
#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "kernels/special_gamma.h"

// For float and half the float function, as in stock, including subnormal floats.
static float log_gamma_float(float x) {
  int sign;
  return isinf(x) ? INFINITY : lgammaf_r(x, &sign);
}

static double digamma_narrow(double x) { return rn_digamma_from(x, 6); }  // an error of 2e-13

// The same for n floats: the powers of the first terms are made side by side.
enum { BLOCK = 32 };
static void zeta_narrow(const double* x, const double* q, double* out, int64_t n) {
  enum { TERMS = 7, POWERS = TERMS + 1 };
  double powers[BLOCK * POWERS];
  int64_t usual[BLOCK], count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] > 1 && q[i] > 0 && x[i] < 1e3 && q[i] < 1e6) {
      for (int k = 0; k < POWERS; ++k) powers[count * POWERS + k] = q[i] + k;
      usual[count++] = i;
    } else {
      out[i] = rn_zeta(x[i], q[i]);
    }
  }
  rn_vector_run(RN_VECTOR_LOG, RN_DOUBLE, powers, 1, NULL, 0, powers, count * POWERS);
  for (int64_t i = 0; i < count * POWERS; ++i) powers[i] *= -x[usual[i / POWERS]];
  rn_vector_run(RN_VECTOR_EXP, RN_DOUBLE, powers, 1, NULL, 0, powers, count * POWERS);
  for (int64_t j = 0; j < count; ++j) {
    const double* power = powers + j * POWERS;
    const int64_t i = usual[j];
    double sum = 0;
    for (int k = 0; k < TERMS; ++k) sum += power[k];
    out[i] = sum + rn_zeta_rest(x[i], q[i] + TERMS, power[TERMS], sum, RN_NARROW);
  }
}

// The same for n floats. For a < 30 the logarithm of gamma(a) is Stirling's series of z = a + 8, or
// of a if that is 8 or more, less the logarithm of a (a + 1) ... (a + 7).
static void gamma_factors(const double* a, const double* x, double* out, int64_t n) {
  enum { SHIFT = 8, LOGS = 3 };
  double logs[LOGS][BLOCK];
  for (int64_t i = 0; i < n; ++i) {
    const bool is_usual = a[i] > 0 && a[i] < 30 && x[i] > 0 && x[i] < INFINITY;
    const double at = is_usual ? a[i] : 1;
    double product = 1;
    for (int k = 0; k < SHIFT && at < SHIFT; ++k) product *= at + k;
    logs[0][i] = is_usual ? x[i] : 1;
    logs[1][i] = at < SHIFT ? at + SHIFT : at;
    logs[2][i] = product;
  }
  for (int k = 0; k < LOGS; ++k)
    rn_vector_run(RN_VECTOR_LOG, RN_DOUBLE, logs[k], 1, NULL, 0, logs[k], n);
  for (int64_t i = 0; i < n; ++i) {
    const double at = a[i] > 0 && a[i] < 30 ? a[i] : 1, z = at < SHIFT ? at + SHIFT : at;
    const double inverse = 1 / z, square = inverse * inverse;
    const double series =
        inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
    const double gamma = (z - 0.5) * logs[1][i] - z + 0.91893853320467274178 + series - logs[2][i];
    out[i] = at * logs[0][i] - x[i] - gamma;
  }
  rn_vector_run(RN_VECTOR_EXP, RN_DOUBLE, out, 1, NULL, 0, out, n);
  for (int64_t i = 0; i < n; ++i)
    if (a[i] >= 30) out[i] = rn_gamma_factor(a[i], x[i]);
}

static void igamma_narrow(const double* a, const double* x, double* out, int64_t n) {
  gamma_factors(a, x, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_igamma_with(a[i], x[i], RN_NARROW, out[i]);
}
static void igammac_narrow(const double* a, const double* x, double* out, int64_t n) {
  gamma_factors(a, x, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_igammac_with(a[i], x[i], RN_NARROW, out[i]);
}

#define ARGS void *arg, const void *const *in, const int *steps, void *out, int64_t n
#define LOOP(name, S, T, LOAD, SAVE, EXPRESSION)                  \
  static void name##_##S(ARGS) {                                  \
    (void)arg;                                                    \
    for (int64_t i = 0; i < n; ++i) {                             \
      const double x = LOAD(((const T*)in[0])[steps[0] ? i : 0]); \
      ((T*)out)[i] = SAVE(EXPRESSION);                            \
    }                                                             \
  }
#define LOOP2(name, S, T, EXPRESSION)                  \
  static void name##_##S(ARGS) {                       \
    (void)arg;                                         \
    for (int64_t i = 0; i < n; ++i) {                  \
      const T x = ((const T*)in[0])[steps[0] ? i : 0]; \
      const T y = ((const T*)in[1])[steps[1] ? i : 0]; \
      ((T*)out)[i] = (T)(EXPRESSION);                  \
    }                                                  \
  }
#define HALF_SAVE(x) rn_float_to_half((float)(x))
#define LOOP_ALL(name, narrow, function)                            \
  LOOP(name, f16, uint16_t, rn_half_to_float, HALF_SAVE, narrow(x)) \
  LOOP(name, f32, float, SAME, (float), narrow(x))                  \
  LOOP(name, f64, double, SAME, SAME, function(x))
#define LOOP2_BOTH(name, function)        \
  LOOP2(name, f32, float, function(x, y)) \
  LOOP2(name, f64, double, function(x, y))
LOOP_ALL(lgamma, log_gamma_float, rn_lgamma)
LOOP_ALL(digamma, digamma_narrow, rn_digamma)
LOOP_ALL(erfinv, rn_erf_inverse, rn_erf_inverse)
LOOP_ALL(ndtri, rn_normal_quantile, rn_normal_quantile)

// A loop over floats by a function of up to BLOCK doubles.
#define BLOCKS2(name, function)                                              \
  static void name##_f32(ARGS) {                                             \
    (void)arg;                                                               \
    const float *x = in[0], *y = in[1];                                      \
    float* to = out;                                                         \
    for (int64_t begin = 0; begin < n; begin += BLOCK) {                     \
      const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;           \
      double xs[BLOCK], ys[BLOCK], results[BLOCK];                           \
      for (int64_t i = 0; i < count; ++i) {                                  \
        xs[i] = (double)x[steps[0] ? begin + i : 0];                         \
        ys[i] = (double)y[steps[1] ? begin + i : 0];                         \
      }                                                                      \
      function(xs, ys, results, count);                                      \
      for (int64_t i = 0; i < count; ++i) to[begin + i] = (float)results[i]; \
    }                                                                        \
  }
BLOCKS2(zeta, zeta_narrow)
LOOP2(zeta, f64, double, rn_zeta(x, y))
LOOP2_BOTH(polygamma, rn_polygamma)
BLOCKS2(igamma, igamma_narrow)
LOOP2(igamma, f64, double, rn_igamma(x, y))
BLOCKS2(igammac, igammac_narrow)
LOOP2(igammac, f64, double, rn_igammac(x, y))
LOOP2_BOTH(igamma_grad_a, rn_igamma_grad_a)
LOOP2_BOTH(gamma_sample_grad, rn_gamma_sample_grad)
LOOP2(next_after, f32, float, nextafterf(x, y))
LOOP2(next_after, f64, double, nextafter(x, y))

#define BETA_LOOP(S, T, REST)                                                                \
  static void betainc_##S(ARGS) {                                                            \
    (void)arg;                                                                               \
    const T *a = in[0], *b = in[1], *x = in[2];                                              \
    for (int64_t i = 0; i < n; ++i)                                                          \
      ((T*)out)[i] = (T)rn_betainc(a[steps[0] * i], b[steps[1] * i], x[steps[2] * i], REST); \
  }
BETA_LOOP(f32, float, RN_NARROW)
BETA_LOOP(f64, double, RN_WIDE)

#define GRAIN 2048  // at about a hundred nanoseconds each

#define UNARY_KERNEL(name)                                     \
  static rn_status_t compute_##name(rn_kernel_ctx_t* ctx) {    \
    rn_dtype_t dtype = rn_in(ctx, 0)->dtype;                   \
    rn_run_fn_t fn = dtype == RN_FLOAT    ? name##_f32         \
                     : dtype == RN_DOUBLE ? name##_f64         \
                                          : name##_f16;        \
    return rn_elementwise_compute(ctx, 1, 1, GRAIN, fn, NULL); \
  }
#define BINARY_KERNEL(name)                                                      \
  static rn_status_t compute_##name(rn_kernel_ctx_t* ctx) {                      \
    rn_run_fn_t fn = rn_in(ctx, 0)->dtype == RN_FLOAT ? name##_f32 : name##_f64; \
    return rn_broadcast_compute(ctx, 2, 3, GRAIN, fn, NULL);                     \
  }
UNARY_KERNEL(lgamma)
UNARY_KERNEL(digamma)
UNARY_KERNEL(erfinv)
UNARY_KERNEL(ndtri)
BINARY_KERNEL(zeta)
BINARY_KERNEL(polygamma)
BINARY_KERNEL(igamma)
BINARY_KERNEL(igammac)
BINARY_KERNEL(igamma_grad_a)
BINARY_KERNEL(gamma_sample_grad)
BINARY_KERNEL(next_after)

static rn_status_t compute_betainc(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_betainc(ctx));
  return rn_broadcast_compute(ctx, 3, 7, GRAIN,
                              rn_in(ctx, 0)->dtype == RN_FLOAT ? betainc_f32 : betainc_f64, NULL);
}

#define PRECISE (RN_T(FLOAT) | RN_T(DOUBLE))
#define ROW(name, function, set)                                                     \
  {                                                                                  \
    .op = name, .device = "CPU", .types = {{"T", set}}, .flags = RN_KERNEL_IN_PLACE, \
    .compute = compute_##function                                                    \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Lgamma", lgamma, PRECISE | RN_T(HALF)),
    ROW("Digamma", digamma, PRECISE | RN_T(HALF)),
    ROW("Erfinv", erfinv, PRECISE),
    ROW("Ndtri", ndtri, PRECISE),
    ROW("Zeta", zeta, PRECISE),
    ROW("Polygamma", polygamma, PRECISE),
    ROW("Igamma", igamma, PRECISE),
    ROW("Igammac", igammac, PRECISE),
    ROW("IgammaGradA", igamma_grad_a, PRECISE),
    ROW("RandomGammaGrad", gamma_sample_grad, PRECISE),
    ROW("NextAfter", next_after, PRECISE),
    ROW("Betainc", betainc, PRECISE),
};
RN_KERNEL_FAMILY(cpu_special_math, rows);
