// What special functions are written with: one source in the common subset of C and CUDA C++, for
// the CPU's kernels and for the loops that NVRTC compiles. jit/special_ops.cuh defines RN_SPECIAL,
// RN_INFINITY, RN_NOT_A_NUMBER and rn_lgamma() for those.
#ifndef RUNNEL_KERNELS_SPECIAL_H_
#define RUNNEL_KERNELS_SPECIAL_H_

#ifndef RN_SPECIAL
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // for lgamma_r
#endif
#include <math.h>
#include <stdbool.h>
#define RN_SPECIAL static inline
#define RN_INFINITY INFINITY
#define RN_NOT_A_NUMBER NAN

RN_SPECIAL double rn_lgamma(double x) {
  int sign;  // lgamma would write it to a global
  return isinf(x) ? INFINITY : lgamma_r(x, &sign);
}
#endif

#define RN_PI 3.14159265358979323846
#define RN_EULER 0.57721566490153286061
#define RN_LN2 0.69314718055994530942
#define RN_ROUNDS 4000  // a series that has not converged by then never will

RN_SPECIAL bool rn_is_infinite(double x) { return x == x && x - x != 0; }

#endif  // RUNNEL_KERNELS_SPECIAL_H_
