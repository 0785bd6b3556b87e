// Bessel functions and integrals without a closed form. Computed in double, one element at a time,
// and rounded to the type at the end.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for j0 etc.
#endif
#include <complex.h>
#include <math.h>

#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/kernel_rows.h"

#define PI 3.14159265358979323846
#define EULER 0.57721566490153286061
#define LN2 0.69314718055994530942
#define ROUNDS 500  // a series that has not converged by then never will

// exp(-x) I_n(x) for n = 0, 1 and x >= 0: the power series while it is short, beyond that the
// asymptotic series, whose smallest term is below exp(-2 x).
static double scaled_i(int n, double x) {
  if (isinf(x)) return 0;
  if (x <= 25) {
    double quarter = x * x / 4, term = n ? x / 2 : 1, sum = term;
    for (int k = 1; k < ROUNDS && term > sum * 1e-17; ++k) {
      term *= quarter / ((double)k * (k + n));
      sum += term;
    }
    return exp(-x) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < ROUNDS; ++k) {
    double odd = 2 * k - 1, next = -term * (4 * n * n - odd * odd) / (8 * k * x);
    if (fabs(next) >= fabs(term) || fabs(next) < 1e-17) break;
    sum += term = next;
  }
  return sum / (sqrt(2 * PI) * sqrt(x));  // 2 pi x may overflow
}

// From here on both functions overflow.
#define I_OVERFLOWS 714.0

// |scaled| times exp(|x|), in two steps, because exp overflows before the product does.
static double unscaled_i(double scaled, double x) {
  double half = exp(fabs(x) / 2);
  return fabs(x) < 700 ? exp(fabs(x)) * scaled : half * scaled * half;
}
static double i0e(double x) { return isnan(x) ? x : scaled_i(0, fabs(x)); }
static double i1e(double x) { return isnan(x) ? x : copysign(scaled_i(1, fabs(x)), x); }
static double i0(double x) { return fabs(x) > I_OVERFLOWS ? INFINITY : unscaled_i(i0e(x), x); }
static double i1(double x) {
  return fabs(x) > I_OVERFLOWS ? copysign(INFINITY, x) : unscaled_i(i1e(x), x);
}

// exp(x) K_0(x) and exp(x) K_1(x) for x > 0. Small x: the series with the logarithm. Large x, where
// the terms of the continued fraction exceed the exponent range: the first two terms of the
// asymptotic series. Otherwise the continued fraction for K_1 / K_0 by Steed's method, with the sum
// that gives K_0 itself.
static void scaled_k(double x, double* out_k0, double* out_k1) {
  const double front = sqrt(PI / 2) / sqrt(x);
  if (x > 1e9) {
    *out_k0 = front * (1 - 0.125 / x);
    *out_k1 = front * (1 + 0.375 / x);
    return;
  }
  if (x <= 2) {
    double quarter = x * x / 4, log_half = log(x) - LN2, term = 1, harmonic = 0;
    double sum0 = -(log_half + EULER), sum1 = log_half + EULER - 0.5, power = 1;
    for (int k = 1; k < ROUNDS; ++k) {
      harmonic += 1.0 / k;
      term *= quarter / ((double)k * k);
      power *= quarter / ((double)k * (k + 1));
      sum0 += term * (harmonic - log_half - EULER);
      double more = power * (log_half + EULER - 0.5 * (harmonic + harmonic + 1.0 / (k + 1)));
      sum1 += more;
      if (term < 1e-18 && fabs(more) < 1e-18) break;
    }
    *out_k0 = exp(x) * sum0;
    *out_k1 = exp(x) * (1 / x + x / 2 * sum1);
    return;
  }
  double b = 2 * (1 + x), d = 1 / b, h = d, delta = d, q1 = 0, q2 = 1, a1 = 0.25, c = a1, q = c;
  double a = -a1, s = 1 + q * delta;
  for (int i = 2; i < 10000; ++i) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    double next = (q1 - b * q2) / a;
    q1 = q2;
    q2 = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta *= b * d - 1;
    h += delta;
    double more = q * delta;
    s += more;
    if (fabs(more) < fabs(s) * 1e-17) break;
  }
  *out_k0 = front / s;
  *out_k1 = *out_k0 * (x + 0.5 - a1 * h) / x;
}

static double k_of(double x, int n, bool is_scaled) {
  if (isnan(x)) return x;
  if (x <= 0) return INFINITY;
  if (isinf(x)) return 0;
  double k[2];
  scaled_k(x, &k[0], &k[1]);
  return is_scaled ? k[n] : k[n] * exp(-x);
}
static double k0(double x) { return k_of(x, 0, false); }
static double k0e(double x) { return k_of(x, 0, true); }
static double k1(double x) { return k_of(x, 1, false); }
static double k1e(double x) { return k_of(x, 1, true); }

static double bessel_j0(double x) { return j0(x); }
static double bessel_j1(double x) { return j1(x); }
static double bessel_y0(double x) { return x <= 0 ? -INFINITY : y0(x); }
static double bessel_y1(double x) { return x <= 0 ? -INFINITY : y1(x); }

// Dawson's integral by sampling a Gaussian: with steps of 0.2 the error is exp(-(pi / 0.4)^2).
static double dawson(double x) {
  if (isnan(x)) return x;
  double size = fabs(x), square = x * x;
  if (size < 0.2) {  // the series, where the samples would cancel
    double term = x, sum = x;
    for (int k = 1; k < 30; ++k) sum += term *= -2 * square / (2 * k + 1);
    return sum;
  }
  if (size > 1e4) return isinf(x) ? copysign(0, x) : (0.5 + 0.25 / square) / x;
  const double step = 0.2;
  int middle = 2 * (int)(0.5 * size / step + 0.5);
  double rest = size - middle * step, sum = 0;
  for (int i = -45; i <= 45; i += 2) {
    double away = rest - i * step;
    sum += exp(-away * away) / (middle + i);
  }
  return copysign(sum / sqrt(PI), x);
}

static double exponential_integral(double x) {
  if (isnan(x) || x < 0) return NAN;
  if (x == 0) return -INFINITY;
  if (isinf(x)) return x;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < ROUNDS; ++k) {
      term *= x / k;
      sum += term / k;
      if (term / k < sum * 1e-17) break;
    }
    return EULER + log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < ROUNDS; ++k) {
    double next = term * k / x;
    if (next >= term || next < 1e-17) break;
    sum += term = next;
  }
  return exp(x) / x * sum;
}

// Both Fresnel integrals as C + iS: the series of exp(i pi t^2 / 2) near zero, elsewhere the
// continued fraction of the complementary error function.
static double complex fresnel(double size) {
  if (isinf(size)) return 0.5 + 0.5 * I;
  double square = size * size;
  if (size < 1.5) {
    double complex term = size, sum = size;
    for (int k = 1; k < 60; ++k) {
      term *= I * (PI / 2) * square / k;
      sum += term / (2 * k + 1);
    }
    return sum;
  }
  if (size > 1e8) return 0.5 + 0.5 * I;
  double complex b = 1 - I * PI * square, c = 1e300, d = 1 / b, h = d;
  for (int k = 2, n = -1; k < ROUNDS; ++k) {
    n += 2;
    double a = -(double)n * (n + 1);
    b += 4;
    d = 1 / (a * d + b);
    c = b + a / c;
    double complex factor = c * d;
    h *= factor;
    if (fabs(creal(factor) - 1) + fabs(cimag(factor)) < 1e-16) break;
  }
  h *= size - I * size;
  double angle = fmod(square, 4) * (PI / 2);
  return (0.5 + 0.5 * I) * (1 - (cos(angle) + I * sin(angle)) * h);
}
static double fresnel_cos(double x) { return isnan(x) ? x : copysign(creal(fresnel(fabs(x))), x); }
static double fresnel_sin(double x) { return isnan(x) ? x : copysign(cimag(fresnel(fabs(x))), x); }

// The sum of z^k / k^2 for |z| <= 1/2.
static double dilogarithm_series(double z) {
  double power = 1, sum = 0;
  for (int k = 1; k < 80; ++k) {
    power *= z;
    sum += power / ((double)k * k);
  }
  return sum;
}

// Spence's function, the dilogarithm of 1 - x, transformed to where the series is short.
static double spence(double x) {
  const double sixth = PI * PI / 6;
  if (isnan(x) || x < 0) return NAN;
  if (isinf(x)) return -INFINITY;
  if (x == 0) return sixth;
  if (x < 0.5) return sixth - log(x) * log1p(-x) - dilogarithm_series(x);
  if (x <= 1.5) return dilogarithm_series(1 - x);
  return -0.5 * log(x) * log(x) - spence(1 / x);
}

// One loop per type for all of them, with the function as argument.
typedef double (*bessel_function_t)(double);
#define LOOP(suffix, type, LOAD, SAVE)                                                    \
  static void run_##suffix(void* arg, const void* const* in, const int* steps, void* out, \
                           int64_t n) {                                                   \
    const bessel_function_t f = *(const bessel_function_t*)arg;                           \
    const type* x = in[0];                                                                \
    type* y = out;                                                                        \
    for (int64_t i = 0; i < n; ++i) y[i] = SAVE(f(LOAD(x[i * steps[0]])));                \
  }
#define PLAIN(x) (double)(x)
#define AS_FLOAT(x) (float)(x)
#define AS_HALF(x) rn_float_to_half((float)(x))
LOOP(f64, double, PLAIN, PLAIN)
LOOP(f32, float, PLAIN, AS_FLOAT)
LOOP(f16, uint16_t, rn_half_to_float, AS_HALF)

static const struct {
  const char* op;
  bessel_function_t function;
} functions[] = {
    {"BesselI0", i0},
    {"BesselI0e", i0e},
    {"BesselI1", i1},
    {"BesselI1e", i1e},
    {"BesselJ0", bessel_j0},
    {"BesselJ1", bessel_j1},
    {"BesselK0", k0},
    {"BesselK0e", k0e},
    {"BesselK1", k1},
    {"BesselK1e", k1e},
    {"BesselY0", bessel_y0},
    {"BesselY1", bessel_y1},
    {"Dawsn", dawson},
    {"Expint", exponential_integral},
    {"FresnelCos", fresnel_cos},
    {"FresnelSin", fresnel_sin},
    {"Spence", spence},
};

static rn_status_t special_init(const rn_kernel_init_t* init, void* state) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(functions[i].op, init->op->name) == 0)
      *(bessel_function_t*)state = functions[i].function;
  return RN_OK;
}

#define GRAIN 2048  // at about a hundred nanoseconds each

static rn_status_t special(rn_kernel_ctx_t* ctx) {
  rn_dtype_t dtype = rn_in(ctx, 0)->dtype;
  rn_run_fn_t fn = dtype == RN_DOUBLE ? run_f64 : dtype == RN_FLOAT ? run_f32 : run_f16;
  return rn_elementwise_compute(ctx, 1, 1, GRAIN, fn, ctx->state);
}

#define PRECISE (RN_T(FLOAT) | RN_T(DOUBLE))
#define ROW(name, set)                                                                \
  {                                                                                   \
    .op = name, .device = "CPU", .types = {{"T", set}}, .flags = RN_KERNEL_IN_PLACE,  \
    .state_size = sizeof(bessel_function_t), .init = special_init, .compute = special \
  }
#define BESSEL(letter) \
  ROW("Bessel" letter "0", PRECISE | RN_T(HALF)), ROW("Bessel" letter "1", PRECISE | RN_T(HALF))
#define SCALED(letter) \
  ROW("Bessel" letter "0e", PRECISE | RN_T(HALF)), ROW("Bessel" letter "1e", PRECISE | RN_T(HALF))

static const rn_kernel_def_t rows[] = {
    BESSEL("I"),
    SCALED("I"),
    BESSEL("J"),
    BESSEL("K"),
    SCALED("K"),
    BESSEL("Y"),
    ROW("Dawsn", PRECISE),
    ROW("Expint", PRECISE),
    ROW("FresnelCos", PRECISE),
    ROW("FresnelSin", PRECISE),
    ROW("Spence", PRECISE),
};
RN_KERNEL_FAMILY(cpu_bessel, rows);
