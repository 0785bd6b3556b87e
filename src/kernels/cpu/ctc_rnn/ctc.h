// Sums of probabilities given by their logarithms, for the CTC kernels.
#ifndef RUNNEL_KERNELS_CPU_CTC_RNN_CTC_H_
#define RUNNEL_KERNELS_CPU_CTC_RNN_CTC_H_

#include <math.h>

#define RN_CTC_NONE (-INFINITY)  // log 0

// log(exp(a) + exp(b)).
static inline double rn_ctc_log_add(double a, double b) {
  if (a == RN_CTC_NONE) return b;
  if (b == RN_CTC_NONE) return a;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

#endif  // RUNNEL_KERNELS_CPU_CTC_RNN_CTC_H_
