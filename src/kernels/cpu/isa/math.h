// Vectorized float functions of a few instructions; chains of activations spend their time here.
// Inlined, so that several registers are in flight at once.
//
// Errors against the exact value over all floats, in ulp (tests/kernels checks them): exp 0.8, tanh
// 1.5, sigmoid 2.2, expm1 0.8, atan 1.2, erf 1.2, erfc 3.1; of doubles: tanh 2.5, erf 1.5.
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

// e^x - 1 = 2^n ((1 - 2^-n) + (e^r - 1)), with n, r and p as for e^x; the sum in two parts, so that
// only the last addition rounds.
static inline vf32_t f32_expm1(vf32_t value) {
  vf32_t x = F32_MIN(F32_SET1(89.0f), value);
  x = F32_MAX(F32_SET1(-30.0f), x);
  const vf32_t n = F32_RINT(x * F32_SET1(0x1.715476p+0f));
  vf32_t r = F32_FMA(n, F32_SET1(-0x1.62e4p-1f), x);
  r = F32_FMA(n, F32_SET1(-0x1.7f7d1cp-20f), r);
  vf32_t p = F32_SET1(0.001381454020045061f);
  p = F32_FMA(p, r, F32_SET1(0.00836874521843878f));
  p = F32_FMA(p, r, F32_SET1(0.04166839079163573f));
  p = F32_FMA(p, r, F32_SET1(0.16666520398139842f));
  p = F32_FMA(p, r, F32_SET1(0.4999999343207034f));
  const vf32_t whole = F32_SET1(1.0f) - F32_SCALE(F32_SET1(1.0f), F32_SET1(0.0f) - n);
  const vf32_t sum = whole + r;
  const vf32_t rest = r - (sum - whole);
  const vf32_t y = F32_SCALE(sum + F32_FMA(p, r * r, rest), n);
  return F32_IF_LESS(F32_ABS(value), F32_SET1(0x1p-26f), value, y);  // keeps the sign of zero
}

// Below 0.9: x + x p(x^2), with an error of 1.2e-8.
static inline vf32_t f32_erf_small(vf32_t x) {
  const vf32_t t = x * x;
  vf32_t p = F32_SET1(-0.0006111291852659313f);
  p = F32_FMA(p, t, F32_SET1(0.00501622832875216f));
  p = F32_FMA(p, t, F32_SET1(-0.026781956872822373f));
  p = F32_FMA(p, t, F32_SET1(0.11282229959971779f));
  p = F32_FMA(p, t, F32_SET1(-0.3761253244491331f));
  p = F32_FMA(p, t, F32_SET1(0.12837915531907568f));
  return F32_FMA(p, x, x);
}

// Above 0.9: 1 - e^q(|x|), where q is the logarithm of erfc, with an error of 2e-9 in the result.
// From 3.93 on the result is exactly 1.
static inline vf32_t f32_erf(vf32_t x) {
  const vf32_t size = F32_ABS(x), small = f32_erf_small(size);
  const vf32_t a = F32_MIN(F32_SET1(4.0f), size);
  vf32_t q = F32_SET1(0.00019822070622391432f);
  q = F32_FMA(q, a, F32_SET1(-0.003065499813769701f));
  q = F32_FMA(q, a, F32_SET1(0.02231524801026675f));
  q = F32_FMA(q, a, F32_SET1(-0.10411374548531682f));
  q = F32_FMA(q, a, F32_SET1(-0.6369760132237072f));
  q = F32_FMA(q, a, F32_SET1(-1.127797280866097f));
  q = F32_FMA(q, a, F32_SET1(-0.00016643908297808707f));
  const vf32_t large = F32_SET1(1.0f) - f32_exp(q);
  const vi32_t result = (vi32_t)F32_IF_LESS(F32_SET1(0.9f), size, large, small);
  return (vf32_t)(result | ((vi32_t)x & (vi32_t)F32_SET1(-0.0f)));
}

// a^2 - square exactly, where |square| is a^2 rounded: by parts of 12 bits where there is no fused
// multiply-add.
static inline vf32_t f32_square_rest(vf32_t a, vf32_t square) {
#if defined(RN_ISA_base) && defined(__x86_64__)
  const vf32_t high = (vf32_t)((vi32_t)a & ~0xfff), low = a - high;
  return (high * high - square) + F32_SET1(2.0f) * high * low + low * low;
#else
  return F32_FMA(a, a, F32_SET1(0.0f) - square);
#endif
}

// 1 - erf(x) for small x. Otherwise, for a = |x|: erfc(a) = e^(-a^2) p(u) / (1 + 2a) with
// u = (a - 2) / (a + 2), p fitted with an error of 1.4e-8. erfc(-a) = 2 - erfc(a). From 10.06 on
// the result is 0.
static inline vf32_t f32_erfc(vf32_t x) {
  const vf32_t a = F32_MIN(F32_SET1(10.1f), F32_ABS(x)), one = F32_SET1(1.0f);
  const vf32_t u = (a - F32_SET1(2.0f)) / (a + F32_SET1(2.0f));
  vf32_t p = F32_SET1(-0.00040057958585871346f);
  p = F32_FMA(p, u, F32_SET1(-0.0012299307829046245f));
  p = F32_FMA(p, u, F32_SET1(0.0013135253299339721f));
  p = F32_FMA(p, u, F32_SET1(0.008631684381352788f));
  p = F32_FMA(p, u, F32_SET1(-0.00805987602128801f));
  p = F32_FMA(p, u, F32_SET1(-0.05420429945487695f));
  p = F32_FMA(p, u, F32_SET1(0.16405534683843817f));
  p = F32_FMA(p, u, F32_SET1(-0.16603142500388043f));
  p = F32_FMA(p, u, F32_SET1(-0.09276398085228074f));
  p = F32_FMA(p, u, F32_SET1(1.2769783934609218f));
  p = p / F32_FMA(a, F32_SET1(2.0f), one);
  const vf32_t square = a * a;
  p = F32_FMA(p, F32_SET1(0.0f) - f32_square_rest(a, square), p);
  const vf32_t tail = p * f32_exp(F32_SET1(0.0f) - square);
  const vf32_t y = F32_IF_LESS(x, F32_SET1(0.0f), F32_SET1(2.0f) - tail, tail);
  return F32_IF_LESS(F32_ABS(x), F32_SET1(0.5f), one - f32_erf_small(x), y);
}

// What the angle of t, from 0 to 1, has beyond t: t^3 p(t^2), with an error of 2e-9.
static inline vf32_t f32_atan_rest(vf32_t t) {
  const vf32_t z = t * t;
  vf32_t p = F32_SET1(-0.0018271846875981984f);
  p = F32_FMA(p, z, F32_SET1(0.011064315195826468f));
  p = F32_FMA(p, z, F32_SET1(-0.03145546942318338f));
  p = F32_FMA(p, z, F32_SET1(0.05823432039390459f));
  p = F32_FMA(p, z, F32_SET1(-0.08419445984456465f));
  p = F32_FMA(p, z, F32_SET1(0.10957571858007406f));
  p = F32_FMA(p, z, F32_SET1(-0.14265244599923016f));
  p = F32_FMA(p, z, F32_SET1(0.1999863855266662f));
  p = F32_FMA(p, z, F32_SET1(-0.33333301864571735f));
  return t * z * p;
}

// Of |x|, or 1 / |x| if that is less; then pi / 2 less that.
static inline vf32_t f32_atan(vf32_t x) {
  const vf32_t size = F32_ABS(x), one = F32_SET1(1.0f);
  const vf32_t t = F32_IF_LESS(one, size, one / size, size), rest = f32_atan_rest(t);
  // pi / 2 in two parts.
  const vf32_t large = F32_SET1(0x1.921fb6p+0f) - (t + (rest + F32_SET1(0x1.777a5cp-25f)));
  const vi32_t result = (vi32_t)F32_IF_LESS(one, size, large, t + rest);
  return (vf32_t)(result | ((vi32_t)x & (vi32_t)F32_SET1(-0.0f)));
}

// The angle of the smaller size over the larger one, added to 0 or pi / 2, or subtracted from pi /
// 2 or pi.
static inline vf32_t f32_atan2(vf32_t y, vf32_t x) {
  const vf32_t a = F32_ABS(x), b = F32_ABS(y), zero = F32_SET1(0.0f), one = F32_SET1(1.0f);
  const vi32_t sign = (vi32_t)F32_SET1(-0.0f);
  // If a is NaN, |low| is; if b is, |high| is. Two zeros make 0, two infinities 1.
  const vf32_t low = F32_MIN(b, a), high = F32_MAX(F32_SET1(0x1p-126f), F32_MAX(a, b));
  const vf32_t t = F32_IF_LESS(F32_SET1(0x1.fffffep127f), low, F32_MIN(one, high), low / high);
  const vi32_t is_steep = (vi32_t)F32_IF_LESS(a, b, F32_SET1(-0.0f), zero);
  const vi32_t is_left = (vi32_t)x & sign, turned = is_steep ^ is_left;
  // pi / 2 and pi in two parts.
  const vf32_t side = (vf32_t)(is_left | (vi32_t)one);
  vf32_t whole = F32_IF_LESS(side, zero, F32_SET1(0x1.921fb6p+1f), zero);
  vf32_t part = F32_IF_LESS(side, zero, F32_SET1(-0x1.777a5cp-24f), zero);
  whole = F32_IF_LESS(a, b, F32_SET1(0x1.921fb6p+0f), whole);
  part = F32_IF_LESS(a, b, F32_SET1(-0x1.777a5cp-25f), part);
  const vf32_t rest = (vf32_t)((vi32_t)f32_atan_rest(t) ^ turned);
  const vf32_t angle = whole + ((vf32_t)((vi32_t)t ^ turned) + (rest + part));
  return (vf32_t)(((vi32_t)angle & ~sign) | ((vi32_t)y & sign));
}

typedef int64_t vi64_t __attribute__((vector_size(sizeof(vf64_t))));

// e^r - 1 for a = n ln 2 + r, |a| < 700, and 2^n. The magic number's last bits become n, biased as
// an exponent.
static inline vf64_t f64_exp_parts(vf64_t a, vf64_t* power) {
  const vf64_t magic = F64_SET1(0x1.8p52 + 1023);
  const vf64_t biased = F64_FMA(a, F64_SET1(0x1.71547652b82fep+0), magic);
  const vf64_t n = biased - magic;
  vf64_t r = F64_FMA(n, F64_SET1(-0x1.62e42fefp-1), a);
  r = F64_FMA(n, F64_SET1(-0x1.473de6af278edp-34), r);
  vf64_t p = F64_SET1(1.0 / 479001600);  // the series, to an error of 1e-17
  p = F64_FMA(p, r, F64_SET1(1.0 / 39916800));
  p = F64_FMA(p, r, F64_SET1(1.0 / 3628800));
  p = F64_FMA(p, r, F64_SET1(1.0 / 362880));
  p = F64_FMA(p, r, F64_SET1(1.0 / 40320));
  p = F64_FMA(p, r, F64_SET1(1.0 / 5040));
  p = F64_FMA(p, r, F64_SET1(1.0 / 720));
  p = F64_FMA(p, r, F64_SET1(1.0 / 120));
  p = F64_FMA(p, r, F64_SET1(1.0 / 24));
  p = F64_FMA(p, r, F64_SET1(1.0 / 6));
  p = F64_FMA(p, r, F64_SET1(0.5));
  *power = (vf64_t)((vi64_t)biased << 52);
  return F64_FMA(p, r * r, r);
}

// E / (E + 2) with E = e^2|x| - 1 = 2^n ((1 - 2^-n) + (e^r - 1)). From 20 on the result is
// exactly 1.
static inline vf64_t f64_tanh(vf64_t x) {
  const vf64_t size = F64_ABS(x), two = F64_SET1(2.0);
  vf64_t power;
  const vf64_t rest =
      f64_exp_parts(F64_IF_LESS(F64_SET1(20.0), size, F64_SET1(40.0), size + size), &power);
  const vf64_t e = F64_FMA(rest, power, power - F64_SET1(1.0));
  const vi64_t result = (vi64_t)F64_IF_LESS(size, F64_SET1(0x1p-28), size, e / (e + two));
  return (vf64_t)(result | ((vi64_t)x & (vi64_t)F64_SET1(-0.0)));
}

// Below 1: x + x p(x^2), with an error of 7e-18. Above: 1 - e^q(|x|), where q is the logarithm of
// erfc, with an error of 7e-18 in the result. From 5.95 on the result is exactly 1.
static inline vf64_t f64_erf(vf64_t x) {
  const vf64_t size = F64_ABS(x), t = x * x, one = F64_SET1(1.0);
  vf64_t p = F64_SET1(-7.801153372864847e-10);
  p = F64_FMA(p, t, F64_SET1(1.3722955573406548e-08));
  p = F64_FMA(p, t, F64_SET1(-1.6209170690496133e-07));
  p = F64_FMA(p, t, F64_SET1(1.6447516931296086e-06));
  p = F64_FMA(p, t, F64_SET1(-1.4924744596843975e-05));
  p = F64_FMA(p, t, F64_SET1(0.00012055295316676904));
  p = F64_FMA(p, t, F64_SET1(-0.0008548325989555452));
  p = F64_FMA(p, t, F64_SET1(0.005223977607420193));
  p = F64_FMA(p, t, F64_SET1(-0.026866170643275775));
  p = F64_FMA(p, t, F64_SET1(0.11283791670945251));
  p = F64_FMA(p, t, F64_SET1(-0.3761263890318355));
  p = F64_FMA(p, t, F64_SET1(0.12837916709551256));
  const vf64_t a = F64_IF_LESS(F64_SET1(5.95), size, F64_SET1(5.95), size);
  vf64_t q = F64_SET1(-5.041223057958364e-12);
  q = F64_FMA(q, a, F64_SET1(2.088976520795231e-10));
  q = F64_FMA(q, a, F64_SET1(-4.014070965254623e-09));
  q = F64_FMA(q, a, F64_SET1(4.7314508614323025e-08));
  q = F64_FMA(q, a, F64_SET1(-3.801757137171511e-07));
  q = F64_FMA(q, a, F64_SET1(2.17446770219525e-06));
  q = F64_FMA(q, a, F64_SET1(-8.833157644799973e-06));
  q = F64_FMA(q, a, F64_SET1(2.3372623821381144e-05));
  q = F64_FMA(q, a, F64_SET1(-2.1696186293854756e-05));
  q = F64_FMA(q, a, F64_SET1(-0.00013212090406062216));
  q = F64_FMA(q, a, F64_SET1(0.0007659086909128119));
  q = F64_FMA(q, a, F64_SET1(-0.0019099424295274069));
  q = F64_FMA(q, a, F64_SET1(0.00040473527416793915));
  q = F64_FMA(q, a, F64_SET1(0.01899456822602544));
  q = F64_FMA(q, a, F64_SET1(-0.10270583511497118));
  q = F64_FMA(q, a, F64_SET1(-0.6366427252469518));
  q = F64_FMA(q, a, F64_SET1(-1.1283742993019952));
  q = F64_FMA(q, a, F64_SET1(-4.802030134302842e-07));
  vf64_t power;
  const vf64_t rest = f64_exp_parts(q, &power);
  const vf64_t large = one - F64_FMA(rest, power, power);
  const vi64_t result = (vi64_t)F64_IF_LESS(size, one, F64_FMA(p, size, size), large);
  return (vf64_t)(result | ((vi64_t)x & (vi64_t)F64_SET1(-0.0)));
}

#endif  // RUNNEL_KERNELS_CPU_ISA_MATH_H_
