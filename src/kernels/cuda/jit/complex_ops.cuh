// The functions of complex numbers that scalar_ops.cuh calls by their mathematical names. Included
// after it; a template finds them by the type of its argument.
//
// Errors are a few units in the last place of the larger part; infinite parts give what the
// formulas give.
#ifndef RUNNEL_KERNELS_CUDA_JIT_COMPLEX_OPS_CUH_
#define RUNNEL_KERNELS_CUDA_JIT_COMPLEX_OPS_CUH_

template <typename R>
RN_DEVICE rn_complex<R> rn_times_i(rn_complex<R> x) {
  return {-x.im, x.re};
}
template <typename R>
RN_DEVICE rn_complex<R> rn_times_minus_i(rn_complex<R> x) {
  return {x.im, -x.re};
}

template <typename R>
RN_DEVICE rn_complex<R> exp(rn_complex<R> x) {
  R size = exp(x.re);
  if (x.im == 0) return {size, x.im};
  return {size * cos(x.im), size * sin(x.im)};
}
template <typename R>
RN_DEVICE rn_complex<R> expm1(rn_complex<R> x) {
  R half = sin(x.im / 2);
  return {expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im)};
}
// Near the unit circle log |x| comes from |x|^2 - 1, which loses no digits.
template <typename R>
RN_DEVICE rn_complex<R> log(rn_complex<R> x) {
  R size = hypot(x.re, x.im), real = log(size);
  if (size > R(0.5) && size < R(2)) {
    R a = fmax(fabs(x.re), fabs(x.im)), b = fmin(fabs(x.re), fabs(x.im));
    real = log1p((a - 1) * (a + 1) + b * b) / 2;
  }
  return {real, atan2(x.im, x.re)};
}
template <typename R>
RN_DEVICE rn_complex<R> log1p(rn_complex<R> x) {
  bool is_small = fabs(x.re) < R(0.5) && fabs(x.im) < R(0.5);
  R size = is_small ? log1p(x.re * (2 + x.re) + x.im * x.im) / 2 : log(hypot(1 + x.re, x.im));
  return {size, atan2(x.im, 1 + x.re)};
}
template <typename R>
RN_DEVICE rn_complex<R> sqrt(rn_complex<R> x) {
  if (x.re == 0 && x.im == 0) return {R(0), x.im};
  // A quarter of the number, so that the sum cannot overflow.
  R t = 2 * sqrt((fabs(x.re) / 4 + hypot(x.re / 4, x.im / 4)) / 2), u = x.im / (2 * t);
  return x.re >= 0 ? rn_complex<R>(t, u) : rn_complex<R>(fabs(u), copysign(t, x.im));
}
template <typename R>
RN_DEVICE rn_complex<R> pow(rn_complex<R> x, rn_complex<R> y) {
  if (y.re == 0 && y.im == 0) return {R(1)};
  if (x.re == 0 && x.im == 0) return {R(0)};
  return exp(y * log(x));
}

template <typename R>
RN_DEVICE rn_complex<R> sinh(rn_complex<R> x) {
  return {sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im)};
}
template <typename R>
RN_DEVICE rn_complex<R> cosh(rn_complex<R> x) {
  return {cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im)};
}
// tanh(a + ib) = (tanh a (1 + t^2) + i t (1 - tanh^2 a)) / (1 + t^2 tanh^2 a), t = tan b, with all
// divided by 1 + t^2.
template <typename R>
RN_DEVICE rn_complex<R> tanh(rn_complex<R> x) {
  if (fabs(x.re) > R(sizeof(R) == 4 ? 11 : 22)) {
    R e = exp(-2 * fabs(x.re));
    return {copysign(R(1), x.re), 4 * e * sin(x.im) * cos(x.im)};
  }
  R s = sin(x.im), c = cos(x.im), h = sinh(x.re), k = cosh(x.re), size = h * h + c * c;
  return {h * k / size, s * c / size};
}
template <typename R>
RN_DEVICE rn_complex<R> sin(rn_complex<R> x) {
  return rn_times_minus_i(sinh(rn_times_i(x)));
}
template <typename R>
RN_DEVICE rn_complex<R> cos(rn_complex<R> x) {
  return cosh(rn_times_i(x));
}
template <typename R>
RN_DEVICE rn_complex<R> tan(rn_complex<R> x) {
  return rn_times_minus_i(tanh(rn_times_i(x)));
}

// The inverses by Kahan's formulas, which keep the signs at the cuts.
template <typename R>
RN_DEVICE rn_complex<R> asin(rn_complex<R> x) {
  rn_complex<R> one(1), a = sqrt(one - x), b = sqrt(one + x);
  return {atan2(x.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}
template <typename R>
RN_DEVICE rn_complex<R> acos(rn_complex<R> x) {
  rn_complex<R> one(1), a = sqrt(one - x), b = sqrt(one + x);
  return {2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
template <typename R>
RN_DEVICE rn_complex<R> acosh(rn_complex<R> x) {
  rn_complex<R> one(1), a = sqrt(x - one), b = sqrt(x + one);
  return {asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
}
template <typename R>
RN_DEVICE rn_complex<R> asinh(rn_complex<R> x) {
  return rn_times_minus_i(asin(rn_times_i(x)));
}
template <typename R>
RN_DEVICE rn_complex<R> atanh(rn_complex<R> x) {
  R a = fabs(x.re), below = 1 - a, im2 = x.im * x.im;
  R real = log1p(4 * a / (below * below + im2)) / 4;
  return {copysign(real, x.re), atan2(2 * x.im, below * (1 + a) - im2) / 2};
}
template <typename R>
RN_DEVICE rn_complex<R> atan(rn_complex<R> x) {
  return rn_times_minus_i(atanh(rn_times_i(x)));
}

#endif  // RUNNEL_KERNELS_CUDA_JIT_COMPLEX_OPS_CUH_
