// Bessel functions and integrals without a closed form. Computed in double, one element at a time
// (special_bessel.h), and rounded to the type at the end.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for j0 etc.
#endif
#include <complex.h>
#include <math.h>

#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/isa/types.h"
#include "kernels/kernel_rows.h"
#include "kernels/special_bessel.h"

static double bessel_j0(double x) { return j0(x); }
static double bessel_j1(double x) { return j1(x); }
static double bessel_y0(double x) { return x <= 0 ? -INFINITY : y0(x); }
static double bessel_y1(double x) { return x <= 0 ? -INFINITY : y1(x); }

// Both Fresnel integrals as C + iS: the series of exp(i pi t^2 / 2) near zero, elsewhere the
// continued fraction of the complementary error function.
static double complex fresnel(double size) {
  if (isinf(size)) return 0.5 + 0.5 * I;
  double square = size * size;
  if (size < 1.5) {
    double complex term = size, sum = size;
    for (int k = 1; k < 60; ++k) {
      term *= I * (RN_PI / 2) * square / k;
      sum += term / (2 * k + 1);
    }
    return sum;
  }
  if (size > 1e8) return 0.5 + 0.5 * I;
  double complex b = 1 - I * RN_PI * square, c = 1e300, d = 1 / b, h = d;
  for (int k = 2, n = -1; k < RN_ROUNDS; ++k) {
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
  double angle = fmod(square, 4) * (RN_PI / 2);
  return (0.5 + 0.5 * I) * (1 - (cos(angle) + I * sin(angle)) * h);
}
static double fresnel_cos(double x) { return isnan(x) ? x : copysign(creal(fresnel(fabs(x))), x); }
static double fresnel_sin(double x) { return isnan(x) ? x : copysign(cimag(fresnel(fabs(x))), x); }

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
    {"BesselI0", rn_i0},         {"BesselI0e", rn_i0e},
    {"BesselI1", rn_i1},         {"BesselI1e", rn_i1e},
    {"BesselJ0", bessel_j0},     {"BesselJ1", bessel_j1},
    {"BesselK0", rn_k0},         {"BesselK0e", rn_k0e},
    {"BesselK1", rn_k1},         {"BesselK1e", rn_k1e},
    {"BesselY0", bessel_y0},     {"BesselY1", bessel_y1},
    {"Dawsn", rn_dawson},        {"Expint", rn_exponential_integral},
    {"FresnelCos", fresnel_cos}, {"FresnelSin", fresnel_sin},
    {"Spence", rn_spence},
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
