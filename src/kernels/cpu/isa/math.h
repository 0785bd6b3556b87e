// Vectorized float functions of a few instructions; chains of activations spend their time here.
// Inlined, so that several registers are in flight at once.
//
// Errors against the exact value over all floats, in ulp (tests/kernels checks them): exp 0.8, tanh
// 1.5, sigmoid 2.2.
#ifndef RUNNEL_KERNELS_CPU_ISA_MATH_H_
#define RUNNEL_KERNELS_CPU_ISA_MATH_H_

#include "kernels/cpu/isa/isa.h"

typedef int32_t vi32_t __attribute__((vector_size(sizeof(vf32_t))));

#ifndef F32_SCALE
// a * 2^n for an integer n in [-252, 254], in two steps so that neither exceeds the exponent range.
static inline vf32_t f32_scale(vf32_t a, vf32_t n) {
  vi32_t whole = __builtin_convertvector(n, vi32_t);
  vi32_t half = whole >> 1;
  vi32_t rest = whole - half;
  return a * (vf32_t)((half + 127) << 23) * (vf32_t)((rest + 127) << 23);
}
#define F32_SCALE(a, n) f32_scale(a, n)
#endif

// e^x: x = n ln 2 + r, |r| <= ln 2 / 2, and e^r = 1 + r + r^2 p(r), p fitted with an error of 3e-9.
// Beyond [-104, 89] the result is 0 or infinity anyway.
static inline vf32_t f32_exp(vf32_t x) {
  x = F32_MIN(F32_SET1(89.0f), x);
  x = F32_MAX(F32_SET1(-104.0f), x);
  const vf32_t n = F32_RINT(x * F32_SET1(0x1.715476p+0f));
  // ln 2 in two parts, the first short enough for n times it to be exact.
  vf32_t r = F32_FMA(n, F32_SET1(-0x1.62e4p-1f), x);
  r = F32_FMA(n, F32_SET1(-0x1.7f7d1cp-20f), r);
  vf32_t p = F32_SET1(0.001381454020045061f);
  p = F32_FMA(p, r, F32_SET1(0.00836874521843878f));
  p = F32_FMA(p, r, F32_SET1(0.04166839079163573f));
  p = F32_FMA(p, r, F32_SET1(0.16666520398139842f));
  p = F32_FMA(p, r, F32_SET1(0.4999999343207034f));
  // 1 + r in two parts, so that only the last addition rounds.
  const vf32_t one_r = F32_SET1(1.0f) + r;
  const vf32_t rest = r - (one_r - F32_SET1(1.0f));
  return F32_SCALE(one_r + F32_FMA(p, r * r, rest), n);
}

// 1 / (1 + e^-x), from e^-|x|, which cannot overflow.
static inline vf32_t f32_sigmoid(vf32_t x) {
  const vf32_t one = F32_SET1(1.0f);
  const vf32_t e = f32_exp(F32_SET1(0.0f) - F32_ABS(x));
  return F32_IF_LESS(x, F32_SET1(0.0f), e, one) / (one + e);
}

// Below 0.55: x + x^3 p(x^2), with a relative error of 4e-8. Above: 1 - 2 / (e^2|x| + 1), where the
// addition absorbs the errors of the exponential. From 9.02 on the result is exactly 1.
static inline vf32_t f32_tanh(vf32_t x) {
  const vf32_t t = x * x;
  vf32_t small = F32_SET1(0.016437576899831684f);
  small = F32_FMA(small, t, F32_SET1(-0.05267181135419114f));
  small = F32_FMA(small, t, F32_SET1(0.13320725023139204f));
  small = F32_FMA(small, t, F32_SET1(-0.3333294663519072f));
  const vf32_t size = F32_ABS(x);
  small = F32_FMA(small * t, size, size);
  // |x| = n ln 2 / 2 + r. The magic number's last bits become n, biased as an exponent.
  const vf32_t a = F32_MIN(F32_SET1(9.02f), size);
  const vf32_t magic = F32_SET1(0x1.8p23f + 127);
  const vf32_t biased = F32_FMA(a, F32_SET1(0x1.715476p+1f), magic);
  const vf32_t r = F32_FMA(magic - biased, F32_SET1(0x1.62e43p-2f), a);
  const vf32_t power = (vf32_t)((vi32_t)biased << 23);
  vf32_t e = F32_SET1(0.088555482542039f);
  e = F32_FMA(e, r, F32_SET1(0.2679954293840404f));
  e = F32_FMA(e, r, F32_SET1(0.6666916589861968f));
  e = F32_FMA(e, r, F32_SET1(1.333313574346906f));
  e = F32_FMA(e, r, F32_SET1(1.9999996822422461f));
  e = F32_FMA(e, r, F32_SET1(2.0000000728625427f));
  e = F32_FMA(e, r, F32_SET1(1.0f));
  const vf32_t one = F32_SET1(1.0f);
  const vf32_t large = one - F32_SET1(2.0f) / F32_FMA(e, power, one);
  const vi32_t result = (vi32_t)F32_IF_LESS(F32_SET1(0.55f), size, large, small);
  return (vf32_t)(result | ((vi32_t)x & (vi32_t)F32_SET1(-0.0f)));
}

#endif  // RUNNEL_KERNELS_CPU_ISA_MATH_H_
