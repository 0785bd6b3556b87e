// Attributes and checks of FusedBatchNorm and its gradient, all versions, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_BATCH_NORM_H_
#define RUNNEL_KERNELS_CPU_NN_BATCH_NORM_H_

#include "framework/kernel.h"

// State of the kernels.
typedef struct rn_batch_norm_t {
  float epsilon, factor;
  bool is_training, is_channels_first;
} rn_batch_norm_t;

// A tensor as [outer, channels, inner]; inner is 1 if channels come last.
typedef struct rn_batch_norm_view_t {
  int64_t outer, channels, inner;
} rn_batch_norm_view_t;

// Reads the attributes into |state|, an rn_batch_norm_t.
RN_MUST_USE rn_status_t rn_batch_norm_init(const rn_kernel_init_t* init, void* state);

// Check the inputs of a call and give the view of x.
RN_MUST_USE rn_status_t rn_batch_norm_check(const rn_kernel_ctx_t* ctx,
                                            rn_batch_norm_view_t* out_view);
RN_MUST_USE rn_status_t rn_batch_norm_gradient_check(const rn_kernel_ctx_t* ctx,
                                                     rn_batch_norm_view_t* out_view);

#endif  // RUNNEL_KERNELS_CPU_NN_BATCH_NORM_H_
