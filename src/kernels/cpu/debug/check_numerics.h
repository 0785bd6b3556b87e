// CheckNumerics and CheckNumericsV2, as far as all devices share them.
#ifndef RUNNEL_KERNELS_CPU_DEBUG_CHECK_NUMERICS_H_
#define RUNNEL_KERNELS_CPU_DEBUG_CHECK_NUMERICS_H_

#include "framework/kernel.h"

// The state of the kernels.
typedef struct rn_check_numerics_t {
  rn_allocator_t allocator;
  char* message;     // Owned
  bool names_signs;  // the second version's message tells infinities by their signs
} rn_check_numerics_t;
RN_MUST_USE rn_status_t rn_check_numerics_init(const rn_kernel_init_t* init, void* state);
void rn_check_numerics_destroy(void* state);

// What is not finite in a tensor.
typedef struct rn_odd_t {
  bool nan, plus, minus;  // plus, minus: infinities by sign
} rn_odd_t;
// INVALID_ARGUMENT, with stock's message, if there is any.
RN_MUST_USE rn_status_t rn_check_numerics_report(const rn_check_numerics_t* check, rn_odd_t odd);

#endif  // RUNNEL_KERNELS_CPU_DEBUG_CHECK_NUMERICS_H_
