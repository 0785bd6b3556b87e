// Special functions: gamma and related functions, inverse error functions, nextafter. Computed in
// double, one element at a time, and rounded to the type at the end.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for lgamma_r
#endif
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define PI 3.14159265358979323846
#define ROUNDS 4000  // a series that has not converged by then never will

static double log_gamma(double x) {
  int sign;  // lgamma would write it to a global
  return isinf(x) ? INFINITY : lgamma_r(x, &sign);
}

// For float and half the float function, as in stock, including subnormal floats.
static float log_gamma_float(float x) {
  int sign;
  return isinf(x) ? INFINITY : lgammaf_r(x, &sign);
}

// Psi: reflection for x < 0, then recurrence up to |start|, from where the asymptotic series
// converges.
static double digamma_from(double x, double start) {
  if (x <= 0 && x == floor(x)) return NAN;
  double result = 0;
  if (x < 0) {
    // The distances from the nearest pole and from the midpoint of two poles are exact.
    double part = x - rint(x), rest = copysign(0.5, part) - part;
    result = fabs(part) < 0.25 ? -PI / tan(PI * part) : -PI * tan(PI * rest);
    x = 1 - x;
  }
  for (; x < start; ++x) result -= 1 / x;
  double z = 1 / (x * x);
  // Bernoulli numbers over their index: B2k / 2k.
  // clang-format off
  double series = z * (1.0 / 12  - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
                - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  // clang-format on
  return result + log(x) - 0.5 / x - series;
}
static double digamma(double x) { return digamma_from(x, 12); }
static double digamma_narrow(double x) { return digamma_from(x, 6); }  // an error of 2e-13

// Solves erfc(y) = q for 0 < q <= 1 by Halley's method, which triples the digits per step.
static double erfc_inverse(double q) {
  double t = sqrt(-2 * log(q / 2));
  double y =
      0.70710678118654752 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
  for (int i = 0; i < 4; ++i) {
    double slope = 1.1283791670955125739 * exp(-y * y);
    if (slope == 0) break;
    double u = (erfc(y) - q) / slope;
    y += u / (1 - y * u);
  }
  return y;
}

static double erf_inverse(double x) {
  double size = fabs(x);
  if (!(size <= 1)) return NAN;
  if (size == 1) return copysign(INFINITY, x);
  if (size > 0.5) return copysign(erfc_inverse(1 - size), x);
  // Near zero erfc has lost digits: Newton's method on erf itself, starting from the series.
  double y = size * (0.88622692545275801 + 0.23201366653465450 * size * size);
  for (int i = 0; i < 4; ++i) {
    double u = (erf(y) - size) / (1.1283791670955125739 * exp(-y * y));
    y -= u / (1 + y * u);
  }
  return copysign(y, x);
}

static double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (fabs(p - 0.5) < 0.25) return 1.41421356237309504880 * erf_inverse(2 * p - 1);
  return p < 0.5 ? -1.41421356237309504880 * erfc_inverse(2 * p)
                 : 1.41421356237309504880 * erfc_inverse(2 * (1 - p));
}

// What sums and fractions may leave out, of their value: for doubles and for floats.
#define WIDE 1e-17
#define NARROW 1e-9

// The terms of zeta from q on, by the Euler-Maclaurin formula; |power| is q^-x, |sum| what is there
// already.
static inline double zeta_rest(double x, double q, double power, double sum, double least) {
  // B2k / (2k)!
  static const double factors[] = {1.0 / 12,           -1.0 / 720,
                                   1.0 / 30240,        -1.0 / 1209600,
                                   1.0 / 47900160,     -691.0 / 1307674368000,
                                   1.0 / 74724249600., -3617.0 / 10670622842880000.};
  const double inverse = 1 / q, square = inverse * inverse;
  double rest = q * power / (x - 1) + power / 2, rising = x * power * inverse;
  for (int k = 0; k < 8; ++k) {
    double term = factors[k] * rising;
    rest += term;
    if (fabs(term) < least * fabs(sum + rest)) break;
    rising *= (x + 2 * k + 1) * (x + 2 * k + 2) * square;
  }
  return rest;
}

// The Hurwitz zeta function, the sum of (q + k)^-x: the first terms, then the Euler-Maclaurin
// formula.
static double zeta(double x, double q) {
  if (x == 1) return INFINITY;
  if (!(x > 1)) return NAN;
  if (q <= 0) {
    // At a pole, both sides have the same infinity only for even powers.
    if (q == floor(q)) return fmod(x, 2) == 0 ? INFINITY : NAN;
    if (x != floor(x)) return NAN;
  }
  if (isinf(q) || (isinf(x) && q > 1)) return 0;
  double sum = 0;
  for (int k = 0; k < 12 || q < 12; ++k, ++q) {
    double term = pow(q, -x);
    sum += term;
    if (q > 0 && fabs(term) < 1e-17 * fabs(sum)) return sum;
  }
  return sum + zeta_rest(x, q, pow(q, -x), sum, WIDE);
}

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
      out[i] = zeta(x[i], q[i]);
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
    out[i] = sum + zeta_rest(x[i], q[i] + TERMS, power[TERMS], sum, NARROW);
  }
}

static double polygamma(double order, double x) {
  if (!(order >= 0) || order != floor(order)) return NAN;
  if (order == 0) return digamma(x);
  double value = exp(log_gamma(order + 1)) * zeta(order + 1, x);
  return fmod(order, 2) == 0 ? -value : value;
}

// x^a e^-x / gamma(a): the common factor of both incomplete gamma functions. From a = 8 on by
// Stirling's series: sqrt(a / 2 pi) (x / a)^a e^(a - x - series), with what rounding took from x /
// a and a - x. Where a power leaves the exponent range, by logarithms, which lose digits.
static double gamma_factor(double a, double x) {
  if (a < 8)
    return x < 700 ? pow(x, a) * exp(-x) * (a < 1 ? a / tgamma(a + 1) : 1 / tgamma(a))
                   : exp(a * log(x) - x - log_gamma(a));
  double z = 1 / (a * a), rest = a - x, ratio = x / a, power = pow(ratio, a);
  // clang-format off
  double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680
                  - z * (1.0 / 1188 - z * (691.0 / 360360 - z * (1.0 / 156 - z * (3617.0 / 122400)))))))) / a;
  // clang-format on
  double front = sqrt(a / (2 * PI)) * exp(-stirling);
  if (fabs(rest) < 300 && power > 1e-280) {
    double part = rest - a, lost = (a - (rest - part)) - (x + part);
    return front * power * exp(rest) * (1 + a * (fma(-ratio, a, x) / x) + lost);
  }
  double d = -rest / a;
  return front * exp(a * (fabs(d) < 0.5 ? log1p(d) - d : log(ratio) - d));
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
    if (a[i] >= 30) out[i] = gamma_factor(a[i], x[i]);
}

static double lower_series(double a, double x, double rest) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < ROUNDS && fabs(term) > rest * fabs(sum); ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum;
}

// A continued fraction by the recurrence of its numerators and denominators, of the last two steps.
// They are kept in range together.
typedef struct fraction_t {
  double top[2], bottom[2];
} fraction_t;

// top = b * top + a * the one before, and so for the bottom.
static inline void next_step(fraction_t* f, double a, double b) {
  const double top = b * f->top[1] + a * f->top[0], bottom = b * f->bottom[1] + a * f->bottom[0];
  *f = (fraction_t){{f->top[1], top}, {f->bottom[1], bottom}};
  if (__builtin_expect(fabs(bottom) > 1e150 || fabs(top) > 1e150, 0))
    for (int i = 0; i < 2; ++i) f->top[i] *= 1e-150, f->bottom[i] *= 1e-150;
}

// Whether the last step changed the value by less than |rest| of it.
static inline bool has_settled(const fraction_t* f, double rest) {
  const double now = f->top[1] * f->bottom[0], before = f->top[0] * f->bottom[1];
  return fabs(now - before) < rest * fabs(now);
}

// The continued fraction of the upper incomplete gamma function.
static double upper_fraction(double a, double x, double rest) {
  fraction_t f = {{0, 1}, {1, x + 1 - a}};
  double b = x + 1 - a;
  for (int k = 1; k < ROUNDS; ++k) {
    b += 2;
    next_step(&f, -k * (k - a), b);
    if (has_settled(&f, 10 * rest)) break;
  }
  return f.top[1] / f.bottom[1];
}

// The sums are at most of the size of a number: times less than this they are 0 as floats. |factor|
// is gamma_factor(a, x).
#define NOTHING 1e-60

static double igamma_with(double a, double x, double rest, double factor) {
  if (isnan(a) || isnan(x) || x < 0 || a < 0) return NAN;
  if (x == 0) return 0;
  if (a == 0) return NAN;
  if (isinf(a)) return isinf(x) ? NAN : 0;
  if (isinf(x)) return 1;
  if (factor == 0 || (rest > WIDE && a > 1 && factor < NOTHING)) return x < a + 1 ? 0 : 1;
  return x < a + 1 ? lower_series(a, x, rest) * factor : 1 - upper_fraction(a, x, rest) * factor;
}

static double igammac_with(double a, double x, double rest, double factor) {
  if (isnan(a) || isnan(x) || x < 0 || a <= 0) return NAN;
  if (x == 0) return 1;
  if (isinf(a)) return isinf(x) ? NAN : 1;
  if (isinf(x)) return 0;
  if (factor == 0 || (rest > WIDE && a > 1 && factor < NOTHING)) return x < a + 1 ? 1 : 0;
  return x < a + 1 ? 1 - lower_series(a, x, rest) * factor : upper_fraction(a, x, rest) * factor;
}

static double igamma(double a, double x) { return igamma_with(a, x, WIDE, gamma_factor(a, x)); }
static double igammac(double a, double x) { return igammac_with(a, x, WIDE, gamma_factor(a, x)); }
static void igamma_narrow(const double* a, const double* x, double* out, int64_t n) {
  gamma_factors(a, x, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = igamma_with(a[i], x[i], NARROW, out[i]);
}
static void igammac_narrow(const double* a, const double* x, double* out, int64_t n) {
  gamma_factors(a, x, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = igammac_with(a[i], x[i], NARROW, out[i]);
}

// The derivative with respect to a of the lower function, divided by minus the factor: of the
// series, term by term. For x < a + 1 all terms have the same sign.
static double lower_slope(double a, double x) {
  double term = 1 / a, slope = digamma(a + 1) - log(x), sum = 0;
  for (int k = 1; k < ROUNDS; ++k) {
    double part = term * slope;
    sum += part;
    if (a + k > x && fabs(part) < 1e-17 * fabs(sum)) break;
    slope += 1 / (a + k);
    term *= x / (a + k);
  }
  return sum;
}

// The derivative with respect to a of the upper function, divided by the factor: the continued
// fraction and its derivative in parallel. Where it is used, all terms are positive, so the far
// tail loses no digits.
static double upper_slope(double a, double x) {
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  double c_slope = 0, d_slope = d * d, h_slope = d_slope;  // b's derivative is always -1
  for (int k = 1; k < ROUNDS; ++k) {
    double step = -k * (k - a);
    b += 2;
    double next = step * d + b, next_slope = k * d + step * d_slope - 1;
    double inverse = 1 / c;
    c_slope = (k - step * c_slope * inverse) * inverse - 1;
    c = b + step * inverse;
    if (fabs(next) < tiny) next = tiny;
    if (fabs(c) < tiny) c = tiny;
    d = 1 / next;
    d_slope = -next_slope * d * d;
    double change = d * c, change_slope = d_slope * c + d * c_slope;
    h_slope = h_slope * change + h * change_slope;
    h *= change;
    if (fabs(change - 1) < 1e-16 && fabs(h * change_slope) <= 1e-16 * fabs(h_slope)) break;
  }
  return h * (log(x) - digamma(a)) + h_slope;
}

static double gamma_slope(double a, double x) {
  return x < a + 1 ? lower_slope(a, x) : upper_slope(a, x);
}

static double igamma_grad_a(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a < 0) return NAN;
  if (x == 0) return 0;
  if (a == 0 || isinf(x) || isinf(a)) return a == 0 ? NAN : 0;
  double factor = gamma_factor(a, x);
  return factor == 0 ? 0 : -factor * gamma_slope(a, x);
}

// How a sample x of the gamma distribution changes with a at a fixed quantile: the density, which
// is the factor over x, times dx must cancel the change of the distribution function.
static double gamma_sample_grad(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a <= 0) return NAN;
  return x == 0 || isinf(a) ? 0 : x * gamma_slope(a, x);
}

static double beta_fraction(double a, double b, double x, double rest) {
  fraction_t f = {{1, 1}, {1, 1 - (a + b) * x / (a + 1)}};
  for (int m = 1; m < ROUNDS; ++m) {
    next_step(&f, m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1);
    const bool is_even = has_settled(&f, 10 * rest);
    next_step(&f, -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1);
    if (is_even && has_settled(&f, 10 * rest)) break;
  }
  return f.top[1] / f.bottom[1];
}

static double betainc(double a, double b, double x, double rest) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return NAN;
  if (x == 0 || x == 1) return x;
  double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x, rest) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x, rest) / b;
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
LOOP_ALL(lgamma, log_gamma_float, log_gamma)
LOOP_ALL(digamma, digamma_narrow, digamma)
LOOP_ALL(erfinv, erf_inverse, erf_inverse)
LOOP_ALL(ndtri, normal_quantile, normal_quantile)

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
LOOP2(zeta, f64, double, zeta(x, y))
LOOP2_BOTH(polygamma, polygamma)
BLOCKS2(igamma, igamma_narrow)
LOOP2(igamma, f64, double, igamma(x, y))
BLOCKS2(igammac, igammac_narrow)
LOOP2(igammac, f64, double, igammac(x, y))
LOOP2_BOTH(igamma_grad_a, igamma_grad_a)
LOOP2_BOTH(gamma_sample_grad, gamma_sample_grad)
LOOP2(next_after, f32, float, nextafterf(x, y))
LOOP2(next_after, f64, double, nextafter(x, y))

#define BETA_LOOP(S, T, REST)                                                             \
  static void betainc_##S(ARGS) {                                                         \
    (void)arg;                                                                            \
    const T *a = in[0], *b = in[1], *x = in[2];                                           \
    for (int64_t i = 0; i < n; ++i)                                                       \
      ((T*)out)[i] = (T)betainc(a[steps[0] * i], b[steps[1] * i], x[steps[2] * i], REST); \
  }
BETA_LOOP(f32, float, NARROW)
BETA_LOOP(f64, double, WIDE)

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
