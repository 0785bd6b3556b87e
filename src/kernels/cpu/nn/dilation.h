// Attributes, checks and sizes of Dilation2D and its gradients, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_DILATION_H_
#define RUNNEL_KERNELS_CPU_NN_DILATION_H_

#include "framework/kernel.h"
#include "kernels/cpu/nn/window.h"

typedef struct rn_dilation_t {
  rn_window_axis_t rows, columns;
  int64_t depth;
} rn_dilation_t;

// Reads the attributes into |state|, an rn_window_attrs_t.
RN_MUST_USE rn_status_t rn_dilation_init(const rn_kernel_init_t* init, void* state);

// Check the inputs of a call and compute its sizes; |y_dims| are those of Dilation2D's result.
RN_MUST_USE rn_status_t rn_dilation_sizes(const rn_kernel_ctx_t* ctx, rn_dilation_t* out,
                                          int64_t y_dims[4]);
RN_MUST_USE rn_status_t rn_dilation_gradient_sizes(const rn_kernel_ctx_t* ctx, rn_dilation_t* out);

#endif  // RUNNEL_KERNELS_CPU_NN_DILATION_H_
