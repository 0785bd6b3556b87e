// Attributes, checks and sizes of pooling over images, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_POOLING_H_
#define RUNNEL_KERNELS_CPU_NN_POOLING_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/pooling.h"

// State of the kernels. The CPU has only NHWC.
typedef struct rn_pooling_attrs_t {
  rn_window_attrs_t attrs;
  int64_t ksize[4];  // in the order of rn_window_attrs_t
  bool include_batch;
} rn_pooling_attrs_t;

// Read the attributes into |state|, an rn_pooling_attrs_t.
RN_MUST_USE rn_status_t rn_pooling_max_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_max_v2_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_max_gradient_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_max_second_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_max_second_v2_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_argmax_gradient_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_average_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_pooling_average_gradient_init(const rn_kernel_init_t* init, void* state);

// The state of a V2 op with window and strides from its inputs |ksize_at| and the next.
RN_MUST_USE rn_status_t rn_pooling_read_v2(const rn_kernel_ctx_t* ctx, int ksize_at,
                                           rn_pooling_attrs_t* out);
// UNIMPLEMENTED if the window spans channels.
RN_MUST_USE rn_status_t rn_pooling_no_depth(const rn_pooling_attrs_t* state, const char* kernel);

// Check the inputs of a call and fill in the sizes of |out|, not its data. |y_dims| are those of
// the pooled image, in the order of the data format. A window of MaxPool across channels becomes
// one across the columns of an image of one channel, whose rows are the pixels.
RN_MUST_USE rn_status_t rn_pooling_max_sizes(const rn_pooling_attrs_t* state, const rn_tensor_t* x,
                                             rn_pooling_t* out, int64_t y_dims[4]);
RN_MUST_USE rn_status_t rn_pooling_argmax_sizes(const rn_pooling_attrs_t* state,
                                                const rn_tensor_t* x, rn_pooling_t* out,
                                                int64_t y_dims[4]);
RN_MUST_USE rn_status_t rn_pooling_average_sizes(const rn_pooling_attrs_t* state,
                                                 const rn_tensor_t* x, rn_pooling_t* out,
                                                 int64_t y_dims[4]);
// For MaxPoolGrad, or |second| for MaxPoolGradGrad: x, y and the incoming gradient.
RN_MUST_USE rn_status_t rn_pooling_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                                  const rn_pooling_attrs_t* state, bool second,
                                                  rn_pooling_t* out);
RN_MUST_USE rn_status_t rn_pooling_argmax_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                                         const rn_pooling_attrs_t* state,
                                                         rn_pooling_t* out);
// For AvgPoolGrad: |dims| become those of the result; |out| stays as it is if they or the gradient
// are empty. Stock accepts a gradient of any spatial size: windows past the end add nothing.
RN_MUST_USE rn_status_t rn_pooling_average_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                                          const rn_pooling_attrs_t* state,
                                                          int64_t dims[4], rn_pooling_t* out);

#endif  // RUNNEL_KERNELS_CPU_NN_POOLING_H_
