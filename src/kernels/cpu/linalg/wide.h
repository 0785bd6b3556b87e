// Elements of real and complex tensors as double-precision complex numbers.
#ifndef RUNNEL_KERNELS_CPU_LINALG_WIDE_H_
#define RUNNEL_KERNELS_CPU_LINALG_WIDE_H_

#include <complex.h>

#include "framework/kernel.h"

typedef double _Complex rn_wide_t;

// Element |i| of a tensor of float, double or complex numbers.
static inline rn_wide_t rn_wide_load(const rn_tensor_t* a, int64_t i) {
  switch (a->dtype) {
    case RN_FLOAT:
      return RN_DATA(a, const float)[i];
    case RN_DOUBLE:
      return RN_DATA(a, const double)[i];
    case RN_COMPLEX64:
      return RN_DATA(a, const float _Complex)[i];
    default:
      return RN_DATA(a, const rn_wide_t)[i];
  }
}

// A real tensor gets the real part.
static inline void rn_wide_store(rn_tensor_t* a, int64_t i, rn_wide_t x) {
  switch (a->dtype) {
    case RN_FLOAT:
      RN_DATA(a, float)[i] = (float)creal(x);
      break;
    case RN_DOUBLE:
      RN_DATA(a, double)[i] = creal(x);
      break;
    case RN_COMPLEX64:
      RN_DATA(a, float _Complex)[i] = (float _Complex)x;
      break;
    default:
      RN_DATA(a, rn_wide_t)[i] = x;
  }
}

#endif  // RUNNEL_KERNELS_CPU_LINALG_WIDE_H_
