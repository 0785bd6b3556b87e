// Attributes, checks and sizes of DepthwiseConv2dNative and its gradients, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_DEPTHWISE_H_
#define RUNNEL_KERNELS_CPU_NN_DEPTHWISE_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/depthwise.h"

RN_MUST_USE rn_status_t rn_depthwise_attrs(const rn_kernel_init_t* init, rn_window_attrs_t* out);

// Check a call's inputs and fill in the sizes of |conv|, not its data. |y|, |x| and |w| become the
// dims of the result, those of images with channels last.
RN_MUST_USE rn_status_t rn_depthwise_forward_sizes(const rn_kernel_ctx_t* ctx,
                                                   const rn_window_attrs_t* attrs, int64_t y[4],
                                                   rn_depthwise_t* conv);
RN_MUST_USE rn_status_t rn_depthwise_input_sizes(const rn_kernel_ctx_t* ctx,
                                                 const rn_window_attrs_t* attrs, int64_t x[4],
                                                 rn_depthwise_t* conv);
RN_MUST_USE rn_status_t rn_depthwise_filter_sizes(const rn_kernel_ctx_t* ctx,
                                                  const rn_window_attrs_t* attrs, int64_t w[4],
                                                  rn_depthwise_t* conv);

#endif  // RUNNEL_KERNELS_CPU_NN_DEPTHWISE_H_
