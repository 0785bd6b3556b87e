// GRU cells: what devices share.
#ifndef RUNNEL_KERNELS_CPU_CTC_RNN_GRU_H_
#define RUNNEL_KERNELS_CPU_CTC_RNN_GRU_H_

#include "framework/kernel.h"

typedef struct rn_gru_size_t {
  int64_t batch, input, cell;
} rn_gru_size_t;

// Checks the inputs of a cell, or of its gradient.
RN_MUST_USE rn_status_t rn_gru_check(const rn_kernel_ctx_t* ctx, rn_gru_size_t* out);

#endif  // RUNNEL_KERNELS_CPU_CTC_RNN_GRU_H_
