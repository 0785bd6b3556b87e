// Real and complex numbers under the same names, for linear algebra.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_NUMBERS_CUH_
#define RUNNEL_KERNELS_CUDA_LINALG_NUMBERS_CUH_

#include "prelude.cuh"

// real_of<T>::type is the type of a number's parts.
template <typename T>
struct real_of {
  typedef T type;
};
template <typename R>
struct real_of<rn_complex<R>> {
  typedef R type;
};

RN_DEVICE float conj_of(float x) { return x; }
RN_DEVICE double conj_of(double x) { return x; }
template <typename R>
RN_DEVICE rn_complex<R> conj_of(rn_complex<R> x) {
  return {x.re, -x.im};
}

RN_DEVICE float re_of(float x) { return x; }
RN_DEVICE double re_of(double x) { return x; }
template <typename R>
RN_DEVICE R re_of(rn_complex<R> x) {
  return x.re;
}

// |x|^2.
RN_DEVICE float square_of(float x) { return x * x; }
RN_DEVICE double square_of(double x) { return x * x; }
template <typename R>
RN_DEVICE R square_of(rn_complex<R> x) {
  return x.re * x.re + x.im * x.im;
}

// |x|.
RN_DEVICE float size_of(float x) { return fabs(x); }
RN_DEVICE double size_of(double x) { return fabs(x); }
template <typename R>
RN_DEVICE R size_of(rn_complex<R> x) {
  return hypot(x.re, x.im);
}

RN_DEVICE float divide(float x, float y) { return x / y; }
RN_DEVICE double divide(double x, double y) { return x / y; }
// Scales by the larger part of y first, so that nothing overflows that need not.
template <typename R>
RN_DEVICE rn_complex<R> divide(rn_complex<R> x, rn_complex<R> y) {
  if (fabs(y.re) >= fabs(y.im)) {
    R ratio = y.im / y.re, whole = y.re + y.im * ratio;
    return {(x.re + x.im * ratio) / whole, (x.im - x.re * ratio) / whole};
  }
  R ratio = y.re / y.im, whole = y.re * ratio + y.im;
  return {(x.re * ratio + x.im) / whole, (x.im * ratio - x.re) / whole};
}

// x / |x|, and 0 for 0.
RN_DEVICE float direction_of(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
RN_DEVICE double direction_of(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
template <typename R>
RN_DEVICE rn_complex<R> direction_of(rn_complex<R> x) {
  R size = hypot(x.re, x.im);
  return size == 0 ? x : rn_complex<R>(x.re / size, x.im / size);
}

template <typename T>
RN_DEVICE bool is_zero(T x) {
  return size_of(x) == 0;
}

// The threads of a block as rows of 32: neighbours take neighbouring columns.
RN_DEVICE int lane() { return (int)threadIdx.x & 31; }
RN_DEVICE int row_of_threads() { return (int)threadIdx.x >> 5; }
RN_DEVICE int rows_of_threads() { return (int)blockDim.x >> 5; }

#endif  // RUNNEL_KERNELS_CUDA_LINALG_NUMBERS_CUH_
