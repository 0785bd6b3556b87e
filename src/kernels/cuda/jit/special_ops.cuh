// The scalar operations of scalar_ops.def that have no closed form: gamma and related functions,
// inverse error functions, Bessel functions, integrals. Computed in double, mostly by the CPU's own
// functions (kernels/special.h), and rounded to the type at the end. Included after scalar_ops.cuh.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_

#define RN_SPECIAL RN_DEVICE
#define RN_INFINITY rn_infinity<double>()
#define RN_NOT_A_NUMBER rn_nan<double>()
#include "kernels/special.h"

RN_DEVICE double rn_lgamma(double x) { return rn_is_infinite(x) ? rn_infinity<double>() : lgamma(x); }
RN_DEVICE float rn_lgamma(float x) {
  return rn_is_infinite(x) ? rn_infinity<float>() : lgammaf(x);
}

#include "kernels/special_bessel.h"
#include "kernels/special_gamma.h"

// J and Y of order 0 and 1 from 8 on, where CUDA's have errors of up to 5e-12: Hankel's expansion
// sqrt(2 / (pi x)) (P cos(x') - Q sin(x')) with x' = x - (2 order + 1) pi / 4. P and x Q are
// polynomials in (8 / x)^2, interpolated at Chebyshev's points, with errors below 1e-17.
#define RN_HANKEL_TERMS 14
RN_DEVICE double rn_hankel(const double (&terms)[RN_HANKEL_TERMS], double z) {
  double sum = terms[RN_HANKEL_TERMS - 1];
  for (int k = RN_HANKEL_TERMS - 2; k >= 0; --k) sum = sum * z + terms[k];
  return sum;
}

RN_DEVICE double rn_wide_bessel(int order, bool is_y, double x) {
  const double p0[] = {1.0,
                       -0.0010986328124996737,
                       2.7380883672109251e-5,
                       -2.1839190342283642e-6,
                       3.6203309521173532e-7,
                       -1.0239239991285942e-7,
                       4.3812698516604046e-8,
                       -2.5395434404600185e-8,
                       1.7236203631456422e-8,
                       -1.1558696461579816e-8,
                       6.5674275837449665e-9,
                       -2.7665349658558267e-9,
                       7.4078635587849977e-10,
                       -9.2954024470869306e-11};
  const double q0[] = {-0.12499999999999999,   0.0011444091796844858,  -5.5446289280090356e-5,
                       6.5907520873836661e-6,  -1.4531181940492295e-6, 5.1282574319655735e-7,
                       -2.6193898018443783e-7, 1.7385986393738692e-7,  -1.294758179775837e-7,
                       9.1965255514559196e-8,  -5.4079887962397398e-8, 2.3263295615353139e-8,
                       -6.3127578423287726e-9, 7.9922081850396114e-10};
  const double p1[] = {1.0,
                       0.0018310546874996559,
                       -3.5203993297701903e-5,
                       2.5809952950013142e-6,
                       -4.1030480891404308e-7,
                       1.1317408863913823e-7,
                       -4.7635762377210324e-8,
                       2.7310862271339777e-8,
                       -1.8410150403133397e-8,
                       1.2297197167024731e-8,
                       -6.9713340484150565e-9,
                       2.932813230777702e-9,
                       -7.8467070610025255e-10,
                       9.840821678448612e-11};
  const double q1[] = {0.37499999999999999,    -0.0016021728515593267, 6.7767686931732655e-5,
                       -7.6047144829333513e-6, 1.6240781447013697e-6,  -5.6169413683681107e-7,
                       2.8300006796479156e-7,  -1.8612719875479016e-7, 1.3782740725415922e-7,
                       -9.7575926766384658e-8, 5.7271028826226885e-8,  -2.4608376619829313e-8,
                       6.67306043217023e-9,    -8.4444272000720991e-10};
  if (rn_is_infinite(x)) return 0;
  double z = 64 / (x * x), p = order ? rn_hankel(p1, z) : rn_hankel(p0, z);
  double q = (order ? rn_hankel(q1, z) : rn_hankel(q0, z)) / x;
  // Where the sum or the difference cancels, it is -cos(2 x) over the other.
  double s = sin(x), c = cos(x), sum = s + c, difference = s - c, product = -cos(2 * x);
  if (s * c < 0)
    sum = product / difference;
  else
    difference = product / sum;
  double cosine = order ? difference : sum, sine = order ? -sum : difference;
  double value = is_y ? p * sine + q * cosine : p * cosine - q * sine;
  return value * 0.56418958354775628695 / sqrt(x);  // 1 / sqrt(pi)
}
RN_DEVICE double rn_j0(double x) {
  return fabs(x) < 8 || x != x ? j0(x) : rn_wide_bessel(0, false, fabs(x));
}
RN_DEVICE double rn_j1(double x) {
  return fabs(x) < 8 || x != x ? j1(x) : copysign(1.0, x) * rn_wide_bessel(1, false, fabs(x));
}
RN_DEVICE double rn_y0(double x) {
  if (x <= 0) return -rn_infinity<double>();
  return x < 8 || x != x ? y0(x) : rn_wide_bessel(0, true, x);
}
RN_DEVICE double rn_y1(double x) {
  if (x <= 0) return -rn_infinity<double>();
  return x < 8 || x != x ? y1(x) : rn_wide_bessel(1, true, x);
}

// Both Fresnel integrals as C + iS.
RN_DEVICE rn_complex128 rn_fresnel(double size) {
  const rn_complex128 half(0.5, 0.5), one(1);
  double square = size * size;
  if (size < 1.5) {
    rn_complex128 term(size), sum(size);
    for (int k = 1; k < 60; ++k) {
      term = term * rn_complex128(0, RN_PI / 2 * square / k);
      sum = sum + rn_complex128(term.re / (2 * k + 1), term.im / (2 * k + 1));
    }
    return sum;
  }
  if (size > 1e8) return half;
  rn_complex128 b(1, -RN_PI * square), c(1e300), d = one / b, h = d;
  for (int k = 2, n = -1; k < 500; ++k) {
    n += 2;
    rn_complex128 a(-(double)n * (n + 1));
    b.re += 4;
    d = one / (a * d + b);
    c = b + a / c;
    rn_complex128 factor = c * d;
    h = h * factor;
    if (fabs(factor.re - 1) + fabs(factor.im) < 1e-16) break;
  }
  h = h * rn_complex128(size, -size);
  double angle = fmod(square, 4.0) * (RN_PI / 2);
  return half * (one - rn_complex128(cos(angle), sin(angle)) * h);
}
RN_DEVICE double rn_fresnel_cos(double x) {
  return x != x ? x : copysign(rn_fresnel(fabs(x)).re, x);
}
RN_DEVICE double rn_fresnel_sin(double x) {
  return x != x ? x : copysign(rn_fresnel(fabs(x)).im, x);
}

#define RN_SPECIAL1(name, function) RN_OP1(name, function(double(x)))
#define RN_SPECIAL2(name, function) RN_OP2(name, function(double(x), double(y)))
RN_OP1(lgamma, rn_lgamma(x))  // of floats in float, as stock's
RN_SPECIAL1(digamma, rn_digamma)
RN_SPECIAL1(erfinv, rn_erf_inverse)
RN_SPECIAL1(ndtri, rn_normal_quantile)
RN_SPECIAL2(zeta, rn_zeta)
RN_SPECIAL2(polygamma, rn_polygamma)
RN_SPECIAL2(igamma, rn_igamma)
RN_SPECIAL2(igammac, rn_igammac)
RN_SPECIAL2(igamma_grad_a, rn_igamma_grad_a)
RN_SPECIAL2(random_gamma_grad, rn_gamma_sample_grad)
RN_OP3(betainc, rn_betainc(double(x), double(y), double(z), RN_WIDE))
RN_SPECIAL1(bessel_i0, rn_i0)
RN_SPECIAL1(bessel_i0e, rn_i0e)
RN_SPECIAL1(bessel_i1, rn_i1)
RN_SPECIAL1(bessel_i1e, rn_i1e)
RN_SPECIAL1(bessel_j0, rn_j0)
RN_SPECIAL1(bessel_j1, rn_j1)
RN_SPECIAL1(bessel_k0, rn_k0)
RN_SPECIAL1(bessel_k0e, rn_k0e)
RN_SPECIAL1(bessel_k1, rn_k1)
RN_SPECIAL1(bessel_k1e, rn_k1e)
RN_SPECIAL1(bessel_y0, rn_y0)
RN_SPECIAL1(bessel_y1, rn_y1)
RN_SPECIAL1(dawsn, rn_dawson)
RN_SPECIAL1(expint, rn_exponential_integral)
RN_SPECIAL1(fresnel_cos, rn_fresnel_cos)
RN_SPECIAL1(fresnel_sin, rn_fresnel_sin)
RN_SPECIAL1(spence, rn_spence)

#endif  // RUNNEL_KERNELS_CUDA_JIT_SPECIAL_OPS_CUH_
