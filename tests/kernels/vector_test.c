// The vector math functions for every ISA level that this processor supports: errors compared with
// long double, and that the value of an element does not depend on its position, on strides or on
// computing in place.
#include "kernels/cpu/vector.h"
#include "kernels/cpu/isa.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "base/denormals.h"
#include "kernels/cpu/isa.h"
#include "tensor/float16.h"

RN_ISA_DECLARE(rn_vector_table_t, rn_vector_table_);

static int tables(const rn_vector_table_t** out) {
  int count = 0;
  out[count++] = &rn_vector_table_base;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out[count++] = &rn_vector_table_avx2;
  if (rn_vector_table() == &rn_vector_table_avx512) out[count++] = &rn_vector_table_avx512;
#endif
  return count;
}

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus(long double x) {
  return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static long double elu(long double x) { return x < 0 ? expm1l(x) : x; }
static long double selu(long double x) {
  return x < 0 ? 1.7580993408473768599402175208123L * expm1l(x)
               : 1.0507009873554804934193349852946L * x;
}
static long double inverse_root(long double x) { return 1 / sqrtl(x); }

// The functions with the error that is promised, in units of the last place.
static const struct {
  rn_vector_code_t code;
  long double (*exact)(long double);
  double bound;
} functions[] = {
    {RN_VECTOR_EXP, expl, 0.85},       {RN_VECTOR_TANH, tanhl, 1.5},
    {RN_VECTOR_SIGMOID, sigmoid, 2.2}, {RN_VECTOR_EXPM1, expm1l, 1.01},
    {RN_VECTOR_LOG, logl, 1.01},       {RN_VECTOR_LOG1P, log1pl, 1.6},
    {RN_VECTOR_SIN, sinl, 1.01},       {RN_VECTOR_COS, cosl, 1.01},
    {RN_VECTOR_ATAN, atanl, 1.2},      {RN_VECTOR_ERF, erfl, 1.2},
    {RN_VECTOR_SQRT, sqrtl, 0.51},     {RN_VECTOR_RSQRT, inverse_root, 1.51},
    {RN_VECTOR_SOFTPLUS, softplus, 4}, {RN_VECTOR_ELU, elu, 1.01},
    {RN_VECTOR_SINH, sinhl, 1.5},      {RN_VECTOR_COSH, coshl, 1.5},
    {RN_VECTOR_ASINH, asinhl, 1.5},    {RN_VECTOR_ACOSH, acoshl, 1.5},
    {RN_VECTOR_ATANH, atanhl, 1.5},    {RN_VECTOR_TAN, tanl, 1.01},
    {RN_VECTOR_ASIN, asinl, 1.01},     {RN_VECTOR_ACOS, acosl, 1.01},
    {RN_VECTOR_ERFC, erfcl, 3.1},      {RN_VECTOR_SELU, selu, 2.2},
};

// Angles beyond this are SLEEF's business up to where stock's reduction of them fails, too.
static bool is_large_angle(rn_vector_code_t code, double x) {
  return (code == RN_VECTOR_SIN || code == RN_VECTOR_COS || code == RN_VECTOR_TAN) && fabs(x) > 1e6;
}

static double ulp_error(float got, long double want) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf((float)want) || isinf(got)) {
    // At the edge of the range either side will do.
    if ((float)want == got) return 0;
    return fabsl(want) > 3.40282e38L && fabsl(want) < 3.40283e38L ? 0 : INFINITY;
  }
  int exponent;
  frexpl(want, &exponent);
  if (exponent < -125) exponent = -125;
  return (double)(fabsl(got - want) / ldexpl(1, exponent - 24));
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

Test(vector, errors_over_all_exponents) {
  const rn_vector_table_t* all[3];
  int count = tables(all);
  for (int t = 0; t < count; ++t) {
    for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
      double worst = 0;
      float at = 0;
      for (uint64_t start = 0; start < UINT64_C(1) << 32;) {
        float x[512], y[512];
        int n = 0;
        for (; n < 512 && start < UINT64_C(1) << 32; ++n, start += 9973)
          x[n] = float_of((uint32_t)start);
        all[t]->fn[RN_FLOAT][functions[f].code](x, 1, NULL, 0, y, n);
        for (int i = 0; i < n; ++i) {
          if (is_large_angle(functions[f].code, x[i])) continue;
          double error = ulp_error(y[i], functions[f].exact(x[i]));
          if (error > worst) worst = error, at = x[i];
        }
      }
      cr_expect_leq(worst, functions[f].bound, "%s: function %d: %g ulp at %a", all[t]->name,
                    (int)functions[f].code, worst, at);
    }
  }
}

Test(vector, doubles) {
  const rn_vector_table_t* all[3];
  int count = tables(all);
  for (int t = 0; t < count; ++t) {
    for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
      for (double x = -30; x < 30; x += 0.037) {
        double y;
        all[t]->fn[RN_DOUBLE][functions[f].code](&x, 1, NULL, 0, &y, 1);
        double want = (double)functions[f].exact(x);
        if (isnan(want))
          cr_expect(isnan(y));
        else
          cr_expect_leq(fabs(y - want), 4e-16 * (fabs(want) + 1e-300) * functions[f].bound,
                        "%s: function %d of %g: %.17g, %.17g", all[t]->name, (int)functions[f].code,
                        x, y, want);
      }
    }
  }
}

// Over all exponents, and both sides of what is special.
Test(vector, doubles_over_all_exponents) {
  static const double edges[] = {0.0,   1.0,   88.0,  89.0,   700.0,   709.0,   709.78,  709.9,
                                 710.4, 710.5, 745.2, 0x1p53, 0x1p500, DBL_MAX, INFINITY};
  const rn_vector_table_t* all[3];
  int count = tables(all);
  for (int t = 0; t < count; ++t) {
    for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
      double x[8192];
      int n = 0;
      for (int e = -1022; e < 1024; ++e)
        for (int sign = -1; sign <= 1; sign += 2) x[n++] = sign * ldexp(1.37, e);
      for (size_t i = 0; i < sizeof edges / sizeof *edges; ++i)
        x[n++] = edges[i], x[n++] = -edges[i];
      double y[8192];
      all[t]->fn[RN_DOUBLE][functions[f].code](x, 1, NULL, 0, y, n);
      for (int i = 0; i < n; ++i) {
        if (is_large_angle(functions[f].code, x[i])) continue;
        const double want = (double)functions[f].exact(x[i]);
        if (isnan(want)) {
          cr_expect(isnan(y[i]), "%s: function %d of %g: %g", all[t]->name, functions[f].code, x[i],
                    y[i]);
          continue;
        }
        // What is too small to be held in full is zero; the last number and infinity are a step
        // apart.
        const bool is_edge =
            fabs(want) > DBL_MAX * (1 - 8 * DBL_EPSILON) && fabs(y[i]) > DBL_MAX / 2;
        cr_expect(y[i] == want || is_edge ||
                      fabs(y[i] - want) <= 4e-16 * functions[f].bound * fabs(want) + DBL_MIN,
                  "%s: function %d of %.17g: %.17g, not %.17g", all[t]->name, functions[f].code,
                  x[i], y[i], want);
      }
    }
  }
}

enum { LENGTH = 1100 };

// What functions must not change their ways at because of an element's place.
static const float odd[] = {NAN,   INFINITY, -INFINITY, 0.0f,     -0.0f,   88.7f,   -89.2f,
                            1e20f, -1e20f,   FLT_MAX,   -FLT_MAX, FLT_MIN, 0x1p-30f};

static void check_places(const rn_vector_table_t* table, rn_dtype_t dtype, int code) {
  rn_vector_fn_t fn = table->fn[dtype][code];
  if (!fn) return;
  size_t size = rn_dtype_size(dtype);
  _Alignas(8) char a[LENGTH * 8], b[LENGTH * 8], whole[LENGTH * 8], one[8], in_place[LENGTH * 8];
  for (int i = 0; i < LENGTH; ++i) {
    if (dtype == RN_FLOAT) {
      ((float*)a)[i] = (float)(i % 83) * 0.11f - 4, ((float*)b)[i] = (float)(i % 71) * 0.13f - 3;
    } else if (dtype == RN_DOUBLE) {
      ((double*)a)[i] = (i % 83) * 0.11 - 4, ((double*)b)[i] = (i % 71) * 0.13 - 3;
    } else {
      memset(a + (size_t)i * size, i * 37, size);
      memset(b + (size_t)i * size, i * 11, size);
    }
    if (i % 7 != 3) continue;
    const float value = odd[i / 7 % (int)(sizeof odd / sizeof *odd)];
    if (dtype == RN_FLOAT) ((float*)a)[i] = value;
    if (dtype == RN_DOUBLE) ((double*)a)[i] = 8 * (double)value;
  }
  fn(a, 1, b, 1, whole, LENGTH);
  for (int i = 0; i < LENGTH; i += 13) {
    fn(a + (size_t)i * size, 1, b + (size_t)i * size, 1, one, 1);
    cr_assert_arr_eq(one, whole + (size_t)i * size, size, "%s: dtype %d code %d element %d",
                     table->name, dtype, code, i);
  }
  memcpy(in_place, a, sizeof a);
  fn(in_place, 1, b, 1, in_place, LENGTH);
  cr_assert_arr_eq(in_place, whole, LENGTH * size, "%s: dtype %d code %d in place of a",
                   table->name, dtype, code);
  memcpy(in_place, b, sizeof b);
  fn(a, 1, in_place, 1, in_place, LENGTH);
  cr_assert_arr_eq(in_place, whole, LENGTH * size, "%s: dtype %d code %d in place of b",
                   table->name, dtype, code);
  // One number for all is an array of it.
  for (int i = 0; i < LENGTH; ++i) memcpy(b + (size_t)i * size, b, size);
  fn(a, 1, b, 1, whole, LENGTH);
  fn(a, 1, b, 0, in_place, LENGTH);
  cr_assert_arr_eq(in_place, whole, LENGTH * size, "%s: dtype %d code %d b is one number",
                   table->name, dtype, code);
  for (int i = 0; i < LENGTH; ++i) memcpy(a + (size_t)i * size, a, size);
  fn(a, 1, b, 1, whole, LENGTH);
  fn(a, 0, b, 0, in_place, LENGTH);
  cr_assert_arr_eq(in_place, whole, LENGTH * size, "%s: dtype %d code %d both are one number",
                   table->name, dtype, code);
  fn(a, 0, b, 1, in_place, LENGTH);
  cr_assert_arr_eq(in_place, whole, LENGTH * size, "%s: dtype %d code %d a is one number",
                   table->name, dtype, code);
}

Test(vector, places_and_steps) {
  const rn_vector_table_t* all[3];
  int count = tables(all);
  for (int t = 0; t < count; ++t)
    for (rn_dtype_t dtype = 1; dtype < RN_DTYPE_COUNT; ++dtype)
      for (int code = 1; code < RN_VECTOR_COUNT; ++code) check_places(all[t], dtype, code);
}

Test(vector, every_op_has_functions) {
  for (int code = 1; code < RN_VECTOR_COUNT; ++code) {
    cr_expect(rn_vector_table()->fn[RN_FLOAT][code], "code %d", code);
    cr_expect(rn_vector_table()->fn[RN_DOUBLE][code], "code %d", code);
  }
}

Test(vector, halves_are_rounded_once) {
  // 1 + 2^-11 is half way between two halves: to even. 2049 + 1 needs the float in between.
  uint16_t a[] = {0x3c00, 0x6800}, b[] = {0x1000, 0x3c00}, out[2];
  rn_vector_run(RN_VECTOR_ADD, RN_HALF, a, 1, b, 1, out, 2);
  cr_assert_eq(out[0], 0x3c00);
  cr_assert_eq(out[1], 0x6800);  // 2048 + 1 = 2049, half way: to even
  uint16_t c = 0x3f80, d = 0x3b80, sum;
  rn_vector_run(RN_VECTOR_ADD, RN_BFLOAT16, &c, 1, &d, 1, &sum, 1);
  cr_assert_eq(sum, 0x3f80);
}

Test(vector, logarithms_of_halves_are_rounded_before_the_product) {
  // log(3) = 1.0986 is 1.1015625 as a bfloat16; times 3 that is 3.3046875, which rounds to 3.3125.
  uint16_t three = 0x4040, out[2], zeros[] = {0, 0x8000}, nan = 0x7fc0;
  rn_vector_run(RN_VECTOR_XLOGY, RN_BFLOAT16, &three, 1, &three, 1, out, 1);
  cr_assert_eq(out[0], 0x4054);
  rn_vector_run(RN_VECTOR_XLOGY, RN_BFLOAT16, zeros, 1, &nan, 0, out, 2);
  cr_assert_eq(out[0] & 0x7fff, 0);
  cr_assert_eq(out[1] & 0x7fff, 0);
}

Test(vector, gradients_that_are_no_numbers_stay_none) {
  float dy[] = {NAN, INFINITY, 2}, x[] = {-1, -1, -1}, dx[3];
  rn_vector_run(RN_VECTOR_RELU_GRAD, RN_FLOAT, dy, 1, x, 1, dx, 3);
  cr_assert(isnan(dx[0]) && isnan(dx[1]) && dx[2] == 0);
  rn_vector_run(RN_VECTOR_RELU6_GRAD, RN_FLOAT, dy, 1, x, 1, dx, 3);
  cr_assert(isnan(dx[0]) && isnan(dx[1]) && dx[2] == 0);
}

// As in a kernel: floats that are too small to be held in full count as zero, halves do not.
Test(vector, subnormal_halves_are_numbers) {
  const uint64_t before = rn_denormals_flush();
  for (uint16_t bits = 1; bits < 0x400; ++bits) {
    cr_assert_float_eq(rn_half_to_float(bits), ldexpf(bits, -24), 0);
    cr_assert_float_eq(rn_half_to_float(bits | 0x8000), -ldexpf(bits, -24), 0);
    cr_assert_eq(rn_float_to_half(rn_half_to_float(bits)), bits);
  }
  rn_denormals_restore(before);
}

Test(vector, angles_of_the_largest_numbers) {
  const rn_vector_table_t* all[3];
  int count = tables(all);
  const float sizes[] = {FLT_MIN, 1, 0x1p99f, 0x1p101f, 0x1p126f, FLT_MAX, INFINITY};
  for (int t = 0; t < count; ++t) {
    for (size_t i = 0; i < 4 * 49; ++i) {
      const float y = (i & 1 ? -1 : 1) * sizes[i / 4 % 7], x = (i & 2 ? -1 : 1) * sizes[i / 28];
      float angle;
      all[t]->fn[RN_FLOAT][RN_VECTOR_ATAN2](&y, 1, &x, 1, &angle, 1);
      const float want = atan2f(y, x);
      cr_expect(fabsf(angle - want) <= 2e-7f * fabsf(want) + FLT_MIN, "%s: (%g, %g): %g, not %g",
                all[t]->name, y, x, angle, want);
      const double wide_y = isinf(y) ? y : y * 0x1p896, wide_x = isinf(x) ? x : x * 0x1p896;
      double wide;
      all[t]->fn[RN_DOUBLE][RN_VECTOR_ATAN2](&wide_y, 1, &wide_x, 1, &wide, 1);
      cr_expect(fabs(wide - atan2(wide_y, wide_x)) <= 4e-16 * fabs(wide) + DBL_MIN,
                "%s: (%g, %g): %g", all[t]->name, wide_y, wide_x, wide);
    }
  }
}

Test(vector, errors_of_angles) {
  const rn_vector_table_t* all[3];
  int count = tables(all);
  for (int t = 0; t < count; ++t) {
    double worst = 0;
    float at_y = 0, at_x = 0;
    for (uint32_t i = 0; i < 400000; ++i) {
      const uint32_t bits = i * UINT32_C(2654435761);
      const float x = ((float)(int32_t)bits + 0.5f) * 0x1p-31f;
      const float y =
          ldexpf((float)(int32_t)(bits * UINT32_C(40503)) * 0x1p-31f, (int)(i % 41) - 20);
      float angle;
      all[t]->fn[RN_FLOAT][RN_VECTOR_ATAN2](&y, 1, &x, 1, &angle, 1);
      const double error = ulp_error(angle, atan2l(y, x));
      if (error > worst) worst = error, at_y = y, at_x = x;
    }
    cr_expect_leq(worst, 1.7, "%s: %g ulp at (%a, %a)", all[t]->name, worst, at_y, at_x);
    const float odd[][2] = {{NAN, 1},         {1, NAN}, {NAN, INFINITY},
                            {-INFINITY, NAN}, {0, NAN}, {NAN, -0.0f}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; ++i) {
      float angle;
      all[t]->fn[RN_FLOAT][RN_VECTOR_ATAN2](&odd[i][0], 1, &odd[i][1], 1, &angle, 1);
      cr_expect(isnan(angle));
    }
    const float zeros[][3] = {
        {0, 0, 0}, {-0.0f, 0, -0.0f}, {0, -0.0f, (float)M_PI}, {-0.0f, -0.0f, -(float)M_PI}};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; ++i) {
      float angle;
      all[t]->fn[RN_FLOAT][RN_VECTOR_ATAN2](&zeros[i][0], 1, &zeros[i][1], 1, &angle, 1);
      cr_expect(angle == zeros[i][2] && signbit(angle) == signbit(zeros[i][2]));
    }
  }
}

Test(vector, integers_wrap) {
  int8_t a = 127, b = 1, out;
  rn_vector_run(RN_VECTOR_ADD, RN_INT8, &a, 1, &b, 1, &out, 1);
  cr_assert_eq(out, -128);
  int32_t least = INT32_MIN, result;
  rn_vector_run(RN_VECTOR_ABS, RN_INT32, &least, 1, NULL, 0, &result, 1);
  cr_assert_eq(result, INT32_MIN);
  rn_vector_run(RN_VECTOR_NEG, RN_INT32, &least, 1, NULL, 0, &result, 1);
  cr_assert_eq(result, INT32_MIN);
  uint16_t large = 65535, square;
  rn_vector_run(RN_VECTOR_SQUARE, RN_UINT16, &large, 1, NULL, 0, &square, 1);
  cr_assert_eq(square, 1);
}
