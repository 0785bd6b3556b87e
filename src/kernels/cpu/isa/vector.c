// The vector functions for one ISA level: plain loops that the compiler vectorizes, and SLEEF where
// a formula is not enough. See kernels/cpu/vector.h.
#include "kernels/cpu/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/math.h"
#include "tensor/float16.h"

// The variants of a loop: two arrays, a scalar on either side, two scalars. |EXPRESSION| uses x and
// y.
#define LOOP2(T, U, EXPRESSION)                        \
  do {                                                 \
    const T* a_ = a;                                   \
    const T* b_ = b;                                   \
    T* out_ = out;                                     \
    if (a_step && b_step) {                            \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const U x = (U)a_[i], y = (U)b_[i];            \
        out_[i] = (T)(EXPRESSION);                     \
      }                                                \
    } else if (a_step) {                               \
      const U y = (U)b_[0];                            \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const U x = (U)a_[i];                          \
        out_[i] = (T)(EXPRESSION);                     \
      }                                                \
    } else if (b_step) {                               \
      const U x = (U)a_[0];                            \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const U y = (U)b_[i];                          \
        out_[i] = (T)(EXPRESSION);                     \
      }                                                \
    } else {                                           \
      const U x = (U)a_[0], y = (U)b_[0];              \
      const T value = (T)(EXPRESSION);                 \
      for (int64_t i = 0; i < n; ++i) out_[i] = value; \
    }                                                  \
  } while (0)

#define LOOP1(T, U, EXPRESSION)                        \
  do {                                                 \
    (void)b;                                           \
    (void)b_step;                                      \
    const T* a_ = a;                                   \
    T* out_ = out;                                     \
    if (a_step) {                                      \
      RN_IVDEP for (int64_t i = 0; i < n; ++i) {       \
        const U x = (U)a_[i];                          \
        out_[i] = (T)(EXPRESSION);                     \
      }                                                \
    } else {                                           \
      const U x = (U)a_[0];                            \
      const T value = (T)(EXPRESSION);                 \
      for (int64_t i = 0; i < n; ++i) out_[i] = value; \
    }                                                  \
  } while (0)

#define ARGS const void *a, int a_step, const void *b, int b_step, void *out, int64_t n
#define UNARY(name, T, U, EXPRESSION) \
  static void name(ARGS) { LOOP1(T, U, EXPRESSION); }
#define BINARY(name, T, U, EXPRESSION) \
  static void name(ARGS) { LOOP2(T, U, EXPRESSION); }

// Operations given by a formula, for both float types. Constants are rounded to the type. If the
// incoming gradient is 0, gradients of roots and reciprocals are 0 for any value. Those of Relu and
// Relu6 are products: a NaN gradient stays NaN, and an infinite one becomes NaN.
#define FLOAT_FORMULAS(T, S, FABS, SQRT_, FLOOR_, CEIL_, RINT_)           \
  UNARY(neg_##S, T, T, -x)                                                \
  UNARY(abs_##S, T, T, FABS(x))                                           \
  UNARY(sign_##S, T, T, x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x) \
  UNARY(square_##S, T, T, x* x)                                           \
  UNARY(round_##S, T, T, RINT_(x))                                        \
  UNARY(relu_##S, T, T, x < 0 ? 0 : x)                                    \
  UNARY(relu6_##S, T, T, x<0 ? 0 : x> 6 ? 6 : x)                          \
  BINARY(add_##S, T, T, x + y)                                            \
  BINARY(sub_##S, T, T, x - y)                                            \
  BINARY(mul_##S, T, T, x* y)                                             \
  BINARY(maximum_##S, T, T, x > y || x != x ? x : y)                      \
  BINARY(minimum_##S, T, T, x < y || x != x ? x : y)                      \
  BINARY(squared_difference_##S, T, T, (x - y) * (x - y))                 \
  BINARY(relu_grad_##S, T, T, y > 0 ? x : x * 0)                          \
  BINARY(relu6_grad_##S, T, T, x*(y > 0 && y < 6 ? (T)1 : (T)0))          \
  UNARY(sqrt_##S, T, T, SQRT_(x))                                         \
  UNARY(reciprocal_##S, T, T, 1 / x)                                      \
  UNARY(floor_##S, T, T, FLOOR_(x))                                       \
  UNARY(ceil_##S, T, T, CEIL_(x))                                         \
  UNARY(softsign_##S, T, T, x / (1 + FABS(x)))                            \
  BINARY(real_div_##S, T, T, x / y)                                       \
  BINARY(div_no_nan_##S, T, T, y == 0 ? 0 : x / y)                        \
  BINARY(mul_no_nan_##S, T, T, y == 0 ? 0 : x * y)                        \
  BINARY(xdivy_##S, T, T, x == 0 ? 0 : x / y)                             \
  BINARY(sigmoid_grad_##S, T, T, y* x*(1 - x))                            \
  BINARY(tanh_grad_##S, T, T, y*(1 - x * x))                              \
  BINARY(sqrt_grad_##S, T, T, y == 0 ? 0 : y * (T)0.5 / x)                \
  BINARY(rsqrt_grad_##S, T, T, y == 0 ? 0 : x * x * (y * (T)-0.5) * x)    \
  BINARY(reciprocal_grad_##S, T, T, y == 0 ? 0 : -y * x * x)              \
  BINARY(softsign_grad_##S, T, T, x / ((1 + FABS(y)) * (1 + FABS(y))))    \
  BINARY(elu_grad_##S, T, T, y < 0 ? (y + 1) * x : x)                     \
  BINARY(selu_grad_##S, T, T,                                             \
         y < 0 ? x * (y + (T)1.7580993408473768599402175208123)           \
               : x * (T)1.0507009873554804934193349852946)

FLOAT_FORMULAS(float, f32, __builtin_fabsf, __builtin_sqrtf, __builtin_floorf, __builtin_ceilf,
               __builtin_rintf)
FLOAT_FORMULAS(double, f64, __builtin_fabs, __builtin_sqrt, __builtin_floor, __builtin_ceil,
               __builtin_rint)

// Integers wrap around: computed unsigned.
#define INT_FORMULAS(T, U, S)                             \
  UNARY(neg_##S, T, U, (U)0 - x)                          \
  UNARY(abs_##S, T, T, x < 0 ? (T)((U)0 - (U)x) : x)      \
  UNARY(sign_##S, T, T, (x > 0) - (x < 0))                \
  UNARY(square_##S, T, U, x* x)                           \
  UNARY(round_##S, T, T, x)                               \
  UNARY(relu_##S, T, T, x < 0 ? 0 : x)                    \
  UNARY(relu6_##S, T, T, x<0 ? 0 : x> 6 ? 6 : x)          \
  BINARY(add_##S, T, U, x + y)                            \
  BINARY(sub_##S, T, U, x - y)                            \
  BINARY(mul_##S, T, U, x* y)                             \
  BINARY(maximum_##S, T, T, x > y ? x : y)                \
  BINARY(minimum_##S, T, T, x < y ? x : y)                \
  BINARY(squared_difference_##S, T, U, (x - y) * (x - y)) \
  BINARY(relu_grad_##S, T, T, y > 0 ? x : 0)              \
  BINARY(relu6_grad_##S, T, T, y > 0 && y < 6 ? x : 0)

#define UINT_FORMULAS(T, U, S)                            \
  UNARY(neg_##S, T, U, (U)0 - x)                          \
  UNARY(abs_##S, T, T, x)                                 \
  UNARY(sign_##S, T, T, x != 0)                           \
  UNARY(square_##S, T, U, x* x)                           \
  UNARY(round_##S, T, T, x)                               \
  UNARY(relu_##S, T, T, x)                                \
  UNARY(relu6_##S, T, T, x > 6 ? 6 : x)                   \
  BINARY(add_##S, T, U, x + y)                            \
  BINARY(sub_##S, T, U, x - y)                            \
  BINARY(mul_##S, T, U, x* y)                             \
  BINARY(maximum_##S, T, T, x > y ? x : y)                \
  BINARY(minimum_##S, T, T, x < y ? x : y)                \
  BINARY(squared_difference_##S, T, U, (x - y) * (x - y)) \
  BINARY(relu_grad_##S, T, T, y > 0 ? x : 0)              \
  BINARY(relu6_grad_##S, T, T, y > 0 && y < 6 ? x : 0)

INT_FORMULAS(int8_t, uint32_t, i8)
INT_FORMULAS(int16_t, uint32_t, i16)
INT_FORMULAS(int32_t, uint32_t, i32)
INT_FORMULAS(int64_t, uint64_t, i64)
UINT_FORMULAS(uint8_t, uint32_t, u8)
UINT_FORMULAS(uint16_t, uint32_t, u16)
UINT_FORMULAS(uint32_t, uint32_t, u32)
UINT_FORMULAS(uint64_t, uint64_t, u64)

// Transcendental functions, one register at a time. The end of an array is padded to a register, so
// that the result of an element does not depend on its position. |EXPRESSION| uses the registers x
// and y; P is the prefix of the type's macros.
#define REGISTERS1(V, T, P, EXPRESSION)                    \
  do {                                                     \
    (void)b;                                               \
    (void)b_step;                                          \
    const T* a_ = a;                                       \
    T* out_ = out;                                         \
    int64_t i = 0;                                         \
    for (; a_step && i + P##_WIDTH <= n; i += P##_WIDTH) { \
      const V x = P##_LOAD(a_ + i);                        \
      P##_STORE(out_ + i, EXPRESSION);                     \
    }                                                      \
    if (a_step && i < n) {                                 \
      const V x = P##_LOAD_N(a_ + i, n - i);               \
      P##_STORE_N(out_ + i, EXPRESSION, n - i);            \
    }                                                      \
    if (!a_step && n > 0) {                                \
      const V x = P##_LOAD_N(a_, 1);                       \
      T value;                                             \
      P##_STORE_N(&value, EXPRESSION, 1);                  \
      for (; i < n; ++i) out_[i] = value;                  \
    }                                                      \
  } while (0)

#define REGISTERS2(V, T, P, EXPRESSION)                    \
  do {                                                     \
    if (n <= 0) return;                                    \
    const T* a_ = a;                                       \
    const T* b_ = b;                                       \
    T* out_ = out;                                         \
    const V x0 = P##_SET1(a_[0]), y0 = P##_SET1(b_[0]);    \
    int64_t i = 0;                                         \
    for (; i + P##_WIDTH <= n; i += P##_WIDTH) {           \
      const V x = a_step ? P##_LOAD(a_ + i) : x0;          \
      const V y = b_step ? P##_LOAD(b_ + i) : y0;          \
      P##_STORE(out_ + i, EXPRESSION);                     \
    }                                                      \
    if (i < n) {                                           \
      const V x = a_step ? P##_LOAD_N(a_ + i, n - i) : x0; \
      const V y = b_step ? P##_LOAD_N(b_ + i, n - i) : y0; \
      P##_STORE_N(out_ + i, EXPRESSION, n - i);            \
    }                                                      \
  } while (0)

#define REG_F32_1(name, EXPRESSION) \
  static void name(ARGS) { REGISTERS1(vf32_t, float, F32, EXPRESSION); }
#define REG_F64_1(name, EXPRESSION) \
  static void name(ARGS) { REGISTERS1(vf64_t, double, F64, EXPRESSION); }
#define REG_F32_2(name, EXPRESSION) \
  static void name(ARGS) { REGISTERS2(vf32_t, float, F32, EXPRESSION); }
#define REG_F64_2(name, EXPRESSION) \
  static void name(ARGS) { REGISTERS2(vf64_t, double, F64, EXPRESSION); }

#define BOTH1(name, accuracy)                         \
  REG_F32_1(name##_f32, SLEEF_F32(name, accuracy)(x)) \
  REG_F64_1(name##_f64, SLEEF_F64(name, accuracy)(x))

REG_F32_1(exp_f32, f32_exp(x))
REG_F32_1(tanh_f32, f32_tanh(x))
REG_F32_1(sigmoid_f32, f32_sigmoid(x))
REG_F64_1(exp_f64, SLEEF_F64(exp, u10)(x))
REG_F64_1(tanh_f64, f64_tanh(x))
REG_F32_1(expm1_f32, f32_expm1(x))
REG_F64_1(expm1_f64, SLEEF_F64(expm1, u10)(x))
BOTH1(log, u10)

#if defined(RN_ISA_avx512)
// The instruction's 14 bits and one step of Newton's method: 1.3 ulp. At 0 and infinity the
// instruction is exact.
static inline vf32_t f32_rsqrt(vf32_t x) {
  const vf32_t y = _mm512_rsqrt14_ps(x);
  const vf32_t rest = F32_FMA(F32_SET1(0.0f) - x * y, y, F32_SET1(1.0f));
  const __mmask16 is_finite = _mm512_fpclass_ps_mask(y, 0x1e) ^ 0xffff;  // neither 0 nor infinite
  return _mm512_mask_mov_ps(y, is_finite, F32_FMA(y * F32_SET1(0.5f), rest, y));
}
REG_F32_1(rsqrt_f32, f32_rsqrt(x))
#else
UNARY(rsqrt_f32, float, float, 1 / __builtin_sqrtf(x))
#endif
UNARY(rsqrt_f64, double, double, 1 / __builtin_sqrt(x))

// SLEEF loses the smallest normal numbers and the sign of zero. Where |x| < |bound| the function
// equals x exactly, so return x.
#define F32_OR_SELF(x, bound, y) F32_IF_LESS(F32_ABS(x), F32_SET1(bound), x, y)
#define F64_OR_SELF(x, bound, y) F64_IF_LESS(F64_ABS(x), F64_SET1(bound), x, y)

// SLEEF's log1p fails just below the largest numbers; there log(1 + x) = log(x / 2^64) + 64 ln 2.
static inline vf32_t f32_log1p(vf32_t x) {
  const vf32_t bound = F32_SET1(0x1p100f);
  vf32_t y = SLEEF_F32(log1p, u10)(F32_IF_LESS(bound, x, x * F32_SET1(0x1p-64f), x));
  y = y + F32_IF_LESS(bound, x, F32_SET1(0x1.62e43p5f), F32_SET1(-0.0f));
  return F32_OR_SELF(x, 0x1p-26f, y);
}
static inline vf64_t f64_log1p(vf64_t x) {
  const vf64_t bound = F64_SET1(0x1p1000);
  vf64_t y = SLEEF_F64(log1p, u10)(F64_IF_LESS(bound, x, x * F64_SET1(0x1p-64), x));
  y = y + F64_IF_LESS(bound, x, F64_SET1(0x1.62e42fefa39efp5), F64_SET1(-0.0));
  return F64_OR_SELF(x, 0x1p-55, y);
}
REG_F32_1(log1p_f32, f32_log1p(x))
REG_F64_1(log1p_f64, f64_log1p(x))
BOTH1(sin, u10)
BOTH1(cos, u10)
REG_F32_1(tan_f32, F32_OR_SELF(x, 0x1p-14f, SLEEF_F32(tan, u10)(x)))
REG_F64_1(tan_f64, F64_OR_SELF(x, 0x1p-28, SLEEF_F64(tan, u10)(x)))
BOTH1(asin, u10)
BOTH1(acos, u10)
REG_F32_1(atan_f32, f32_atan(x))
REG_F64_1(atan_f64, SLEEF_F64(atan, u10)(x))

// Recomputes the elements of |x| beyond |bound| with the C library's function and takes the others
// from |y|. Rarely called, so kept out of the loops.
static __attribute__((noinline)) vf32_t f32_beyond(vf32_t x, vf32_t y, float bound,
                                                   float (*exact)(float)) {
  float in[F32_WIDTH], out[F32_WIDTH];
  F32_STORE(in, x);
  F32_STORE(out, y);
  for (int i = 0; i < F32_WIDTH; ++i)
    if (fabsf(in[i]) > bound) out[i] = exact(in[i]);
  return F32_LOAD(out);
}
static __attribute__((noinline)) vf64_t f64_beyond(vf64_t x, vf64_t y, double bound,
                                                   double (*exact)(double)) {
  double in[F64_WIDTH], out[F64_WIDTH];
  F64_STORE(in, x);
  F64_STORE(out, y);
  for (int i = 0; i < F64_WIDTH; ++i)
    if (fabs(in[i]) > bound) out[i] = exact(in[i]);
  return F64_LOAD(out);
}

// SLEEF's hyperbolic functions overflow before their results do, and its inverse ones square their
// argument. |F32| and |F64| are the bounds within which they are accurate.
#define BOUNDED1(name, F32, F64)                                                         \
  static inline vf32_t f32_##name(vf32_t x) {                                            \
    const vf32_t y = SLEEF_F32(name, u10)(x);                                            \
    return F32_ANY_LESS(F32_SET1(F32), F32_ABS(x)) ? f32_beyond(x, y, F32, name##f) : y; \
  }                                                                                      \
  static inline vf64_t f64_##name(vf64_t x) {                                            \
    const vf64_t y = SLEEF_F64(name, u10)(x);                                            \
    return F64_ANY_LESS(F64_SET1(F64), F64_ABS(x)) ? f64_beyond(x, y, F64, name) : y;    \
  }
BOUNDED1(sinh, 88.0f, 709.0)
BOUNDED1(cosh, 88.0f, 709.0)
BOUNDED1(asinh, 0x1p60f, 0x1p500)
BOUNDED1(acosh, 0x1p60f, 0x1p500)
REG_F32_1(sinh_f32, f32_sinh(x))
REG_F64_1(sinh_f64, f64_sinh(x))
REG_F32_1(cosh_f32, f32_cosh(x))
REG_F64_1(cosh_f64, f64_cosh(x))
REG_F32_1(asinh_f32, F32_OR_SELF(x, 0x1p-14f, f32_asinh(x)))
REG_F64_1(asinh_f64, F64_OR_SELF(x, 0x1p-28, f64_asinh(x)))
REG_F32_1(acosh_f32, f32_acosh(x))
REG_F64_1(acosh_f64, f64_acosh(x))
BOTH1(atanh, u10)
REG_F32_1(erf_f32, f32_erf(x))
REG_F64_1(erf_f64, f64_erf(x))
REG_F32_1(erfc_f32, f32_erfc(x))
REG_F64_1(erfc_f64, SLEEF_F64(erfc, u15)(x))

// SLEEF's atan2 takes reciprocals, which underflow for the largest numbers. Scaling both arguments
// keeps the angle; whatever underflows then was negligible anyway.
static inline vf64_t f64_atan2(vf64_t y, vf64_t x) {
  const vf64_t bound = F64_SET1(0x1p1000), small = F64_SET1(0x1p-64);
  if (F64_ANY_LESS(bound, F64_ABS(x)) || F64_ANY_LESS(bound, F64_ABS(y))) {
    vf64_t scale = F64_IF_LESS(bound, F64_ABS(x), small, F64_SET1(1.0));
    scale = F64_IF_LESS(bound, F64_ABS(y), small, scale);
    y = y * scale, x = x * scale;
  }
  return SLEEF_F64(atan2, u10)(y, x);
}
REG_F32_2(atan2_f32, f32_atan2(x, y))
REG_F64_2(atan2_f64, f64_atan2(x, y))
REG_F32_2(pow_f32, SLEEF_F32(pow, u10)(x, y))

// SLEEF's pow may overflow where the result rounds to the largest number; the C library's does not.
static __attribute__((noinline)) vf64_t f64_pow_again(vf64_t x, vf64_t y, vf64_t power) {
  double base[F64_WIDTH], exponent[F64_WIDTH], out[F64_WIDTH];
  F64_STORE(base, x);
  F64_STORE(exponent, y);
  F64_STORE(out, power);
  for (int i = 0; i < F64_WIDTH; ++i)
    if (isinf(out[i])) out[i] = pow(base[i], exponent[i]);
  return F64_LOAD(out);
}
static inline vf64_t f64_pow(vf64_t x, vf64_t y) {
  const vf64_t power = SLEEF_F64(pow, u10)(x, y);
  return F64_ANY_LESS(F64_SET1(DBL_MAX), F64_ABS(power)) ? f64_pow_again(x, y, power) : power;
}
REG_F64_2(pow_f64, f64_pow(x, y))

// A transcendental function combined with a formula: runs the first over a block, the second over
// the result. A scalar operand is read before anything is written, because the output may alias it.
#define COMPOSED1(name, T, S, INNER, BEFORE, AFTER)                              \
  static void name##_##S(ARGS) {                                                 \
    (void)b;                                                                     \
    (void)b_step;                                                                \
    const T* a_ = a;                                                             \
    T* out_ = out;                                                               \
    T inner[RN_VECTOR_BLOCK];                                                    \
    const T only = n > 0 ? a_[0] : 0;                                            \
    for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {               \
      int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK; \
      for (int64_t i = 0; i < count; ++i) {                                      \
        const T x = a_step ? a_[start + i] : only;                               \
        inner[i] = BEFORE;                                                       \
      }                                                                          \
      INNER##_##S(inner, 1, NULL, 0, inner, count);                              \
      RN_IVDEP for (int64_t i = 0; i < count; ++i) {                             \
        const T x = a_step ? a_[start + i] : only, e = inner[i];                 \
        (void)x;                                                                 \
        out_[start + i] = AFTER;                                                 \
      }                                                                          \
    }                                                                            \
  }

// For two arguments, where the inner function takes the second.
#define COMPOSED2(name, T, S, INNER, BEFORE, AFTER)                              \
  static void name##_##S(ARGS) {                                                 \
    const T* a_ = a;                                                             \
    const T* b_ = b;                                                             \
    T* out_ = out;                                                               \
    T inner[RN_VECTOR_BLOCK];                                                    \
    const T only_x = n > 0 ? a_[0] : 0, only_y = n > 0 ? b_[0] : 0;              \
    for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {               \
      int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK; \
      for (int64_t i = 0; i < count; ++i) {                                      \
        const T y = b_step ? b_[start + i] : only_y;                             \
        inner[i] = BEFORE;                                                       \
      }                                                                          \
      INNER##_##S(inner, 1, NULL, 0, inner, count);                              \
      RN_IVDEP for (int64_t i = 0; i < count; ++i) {                             \
        const T x = a_step ? a_[start + i] : only_x, e = inner[i];               \
        out_[start + i] = AFTER;                                                 \
      }                                                                          \
    }                                                                            \
  }

// Softplus is x where exp(x) swamps the 1: from -log(eps) - 2 on, as in stock.
#define COMPOSED(T, S, BOUND)                                                    \
  COMPOSED2(softplus_grad, T, S, exp, -y, x / (e + 1))                           \
  COMPOSED2(xlogy, T, S, log, y, x == 0 ? 0 : x * e)                             \
  COMPOSED2(xlog1py, T, S, log1p, y, x == 0 ? 0 : x * e)                         \
  static void softplus_##S(ARGS) {                                               \
    (void)b;                                                                     \
    (void)b_step;                                                                \
    const T* a_ = a;                                                             \
    T* out_ = out;                                                               \
    T small[RN_VECTOR_BLOCK], logs[RN_VECTOR_BLOCK];                             \
    const T only = n > 0 ? a_[0] : 0;                                            \
    for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {               \
      int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK; \
      exp_##S(a_step ? a_ + start : &only, a_step, NULL, 0, small, count);       \
      log1p_##S(small, 1, NULL, 0, logs, count);                                 \
      RN_IVDEP for (int64_t i = 0; i < count; ++i) {                             \
        const T x = a_step ? a_[start + i] : only;                               \
        out_[start + i] = x > BOUND ? x : logs[i];                               \
      }                                                                          \
    }                                                                            \
  }

REG_F32_1(elu_f32, F32_IF_LESS(x, F32_SET1(0.0f), f32_expm1(x), x))
COMPOSED1(elu, double, f64, expm1, x < 0 ? x : 0, x < 0 ? e : x)
REG_F32_1(selu_f32, F32_IF_LESS(x, F32_SET1(0.0f), F32_SET1(1.7580993f) * f32_expm1(x),
                                F32_SET1(1.050701f) * x))
COMPOSED1(selu, double, f64, expm1, x < 0 ? x : 0,
          x < 0 ? 1.7580993408473768599402175208123 * e : 1.0507009873554804934193349852946 * x)
COMPOSED(float, f32, 13.942385f)
COMPOSED(double, f64, 34.04365338911715)
COMPOSED1(sigmoid, double, f64, exp, -__builtin_fabs(x), (x < 0 ? e : 1) / (1 + e))

static void widen_half(const uint16_t* in, float* out, int64_t n) {
  int64_t i = 0;
#ifdef F32_LOAD_HALF
  for (; i + F32_WIDTH <= n; i += F32_WIDTH) F32_STORE(out + i, F32_LOAD_HALF(in + i));
#endif
  for (; i < n; ++i) out[i] = rn_half_to_float(in[i]);
}
static void widen_bfloat16(const uint16_t* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = rn_bfloat16_to_float(in[i]);
}
static void narrow_half(const float* in, uint16_t* out, int64_t n) {
  int64_t i = 0;
#ifdef F32_LOAD_HALF
  for (; i + F32_WIDTH <= n; i += F32_WIDTH) F32_STORE_HALF(out + i, F32_LOAD(in + i));
#endif
  for (; i < n; ++i) out[i] = rn_float_to_half(in[i]);
}
static void narrow_bfloat16(const float* in, uint16_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = rn_float_to_bfloat16(in[i]);
}

// 16-bit floats: computed in float and rounded once.
#ifdef F32_LOAD_HALF
static inline vf32_t load_halves(const uint16_t* p, int64_t n) {
  uint16_t all[F32_WIDTH] = {0};
  memcpy(all, p, (size_t)n * sizeof *p);
  return F32_LOAD_HALF(all);
}
static inline void store_halves(uint16_t* p, vf32_t v, int64_t n) {
  uint16_t all[F32_WIDTH];
  F32_STORE_HALF(all, v);
  memcpy(p, all, (size_t)n * sizeof *p);
}
#define HALVES(name, EXPRESSION)                               \
  static void name##_f16(ARGS) {                               \
    if (n <= 0) return;                                        \
    const uint16_t *a_ = a, *b_ = b;                           \
    uint16_t* out_ = out;                                      \
    const vf32_t x0 = F32_SET1(rn_half_to_float(a_[0]));       \
    const vf32_t y0 = F32_SET1(rn_half_to_float(b_[0]));       \
    int64_t i = 0;                                             \
    for (; i + F32_WIDTH <= n; i += F32_WIDTH) {               \
      const vf32_t x = a_step ? F32_LOAD_HALF(a_ + i) : x0;    \
      const vf32_t y = b_step ? F32_LOAD_HALF(b_ + i) : y0;    \
      F32_STORE_HALF(out_ + i, EXPRESSION);                    \
    }                                                          \
    if (i == n) return;                                        \
    const vf32_t x = a_step ? load_halves(a_ + i, n - i) : x0; \
    const vf32_t y = b_step ? load_halves(b_ + i, n - i) : y0; \
    store_halves(out_ + i, EXPRESSION, n - i);                 \
  }
HALVES(add, x + y)
HALVES(sub, x - y)
HALVES(mul, x* y)
HALVES(real_div, x / y)
#define HALF_ROWS                            \
  [RN_HALF] = {[RN_VECTOR_ADD] = add_f16,    \
               [RN_VECTOR_ADD_V2] = add_f16, \
               [RN_VECTOR_SUB] = sub_f16,    \
               [RN_VECTOR_MUL] = mul_f16,    \
               [RN_VECTOR_REAL_DIV] = real_div_f16},
#else
#define HALF_ROWS
#endif

#define NUMBER_ROWS(S)                                                                         \
  [RN_VECTOR_NEG] = neg_##S, [RN_VECTOR_ABS] = abs_##S, [RN_VECTOR_SIGN] = sign_##S,           \
  [RN_VECTOR_SQUARE] = square_##S, [RN_VECTOR_ROUND] = round_##S, [RN_VECTOR_RELU] = relu_##S, \
  [RN_VECTOR_RELU6] = relu6_##S, [RN_VECTOR_ADD] = add_##S, [RN_VECTOR_ADD_V2] = add_##S,      \
  [RN_VECTOR_SUB] = sub_##S, [RN_VECTOR_MUL] = mul_##S, [RN_VECTOR_MAXIMUM] = maximum_##S,     \
  [RN_VECTOR_MINIMUM] = minimum_##S, [RN_VECTOR_SQUARED_DIFFERENCE] = squared_difference_##S,  \
  [RN_VECTOR_RELU_GRAD] = relu_grad_##S, [RN_VECTOR_RELU6_GRAD] = relu6_grad_##S

#define FLOAT_ROWS(S)                                                                              \
  NUMBER_ROWS(S),                                                                                  \
      [RN_VECTOR_SQRT] = sqrt_##S, [RN_VECTOR_RSQRT] = rsqrt_##S,                                  \
      [RN_VECTOR_RECIPROCAL] = reciprocal_##S, [RN_VECTOR_INV] = reciprocal_##S,                   \
      [RN_VECTOR_EXP] = exp_##S, [RN_VECTOR_EXPM1] = expm1_##S, [RN_VECTOR_LOG] = log_##S,         \
      [RN_VECTOR_LOG1P] = log1p_##S, [RN_VECTOR_TANH] = tanh_##S,                                  \
      [RN_VECTOR_SIGMOID] = sigmoid_##S, [RN_VECTOR_SIN] = sin_##S, [RN_VECTOR_COS] = cos_##S,     \
      [RN_VECTOR_TAN] = tan_##S, [RN_VECTOR_ASIN] = asin_##S, [RN_VECTOR_ACOS] = acos_##S,         \
      [RN_VECTOR_ATAN] = atan_##S, [RN_VECTOR_SINH] = sinh_##S, [RN_VECTOR_COSH] = cosh_##S,       \
      [RN_VECTOR_ASINH] = asinh_##S, [RN_VECTOR_ACOSH] = acosh_##S, [RN_VECTOR_ATANH] = atanh_##S, \
      [RN_VECTOR_ERF] = erf_##S, [RN_VECTOR_ERFC] = erfc_##S, [RN_VECTOR_FLOOR] = floor_##S,       \
      [RN_VECTOR_CEIL] = ceil_##S, [RN_VECTOR_RINT] = round_##S,                                   \
      [RN_VECTOR_SOFTPLUS] = softplus_##S, [RN_VECTOR_SOFTSIGN] = softsign_##S,                    \
      [RN_VECTOR_ELU] = elu_##S, [RN_VECTOR_SELU] = selu_##S, [RN_VECTOR_REAL_DIV] = real_div_##S, \
      [RN_VECTOR_ATAN2] = atan2_##S, [RN_VECTOR_POW] = pow_##S,                                    \
      [RN_VECTOR_DIV_NO_NAN] = div_no_nan_##S, [RN_VECTOR_MUL_NO_NAN] = mul_no_nan_##S,            \
      [RN_VECTOR_XLOGY] = xlogy_##S, [RN_VECTOR_XDIVY] = xdivy_##S,                                \
      [RN_VECTOR_XLOG1PY] = xlog1py_##S, [RN_VECTOR_SIGMOID_GRAD] = sigmoid_grad_##S,              \
      [RN_VECTOR_TANH_GRAD] = tanh_grad_##S, [RN_VECTOR_SQRT_GRAD] = sqrt_grad_##S,                \
      [RN_VECTOR_RSQRT_GRAD] = rsqrt_grad_##S, [RN_VECTOR_RECIPROCAL_GRAD] = reciprocal_grad_##S,  \
      [RN_VECTOR_INV_GRAD] = reciprocal_grad_##S, [RN_VECTOR_SOFTPLUS_GRAD] = softplus_grad_##S,   \
      [RN_VECTOR_SOFTSIGN_GRAD] = softsign_grad_##S, [RN_VECTOR_ELU_GRAD] = elu_grad_##S,          \
      [RN_VECTOR_SELU_GRAD] = selu_grad_##S

extern const rn_vector_table_t RN_ISA_NAME(rn_vector_table_);
const rn_vector_table_t RN_ISA_NAME(rn_vector_table_) = {
    .name = RN_ISA_STRING,
    .fn = {[RN_FLOAT] = {FLOAT_ROWS(f32)},
           [RN_DOUBLE] = {FLOAT_ROWS(f64)},
           [RN_INT8] = {NUMBER_ROWS(i8)},
           [RN_INT16] = {NUMBER_ROWS(i16)},
           [RN_INT32] = {NUMBER_ROWS(i32)},
           [RN_INT64] = {NUMBER_ROWS(i64)},
           [RN_UINT8] = {NUMBER_ROWS(u8)},
           [RN_UINT16] = {NUMBER_ROWS(u16)},
           [RN_UINT32] = {NUMBER_ROWS(u32)},
           [RN_UINT64] = {NUMBER_ROWS(u64)},
           HALF_ROWS},
    .widen_half = widen_half,
    .widen_bfloat16 = widen_bfloat16,
    .narrow_half = narrow_half,
    .narrow_bfloat16 = narrow_bfloat16,
};
