// Keeps the first error of jobs that run on several threads.
#ifndef RUNNEL_KERNELS_CPU_FIRST_ERROR_H_
#define RUNNEL_KERNELS_CPU_FIRST_ERROR_H_

#include "base/status.h"

// Moves |status| into |*first| if it is an error and the first one; frees it otherwise. Any number
// of threads may call this at once; read |*first| when all have ended.
static inline void rn_keep_first_error(rn_status_t* first, rn_status_t status) {
  rn_status_t none = RN_OK;
  if (!rn_ok(status) &&
      !__atomic_compare_exchange_n(first, &none, status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    rn_status_free(status);
}

#endif  // RUNNEL_KERNELS_CPU_FIRST_ERROR_H_
