// Attributes, checks and sizes of Conv3D and its gradients, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV3D_H_
#define RUNNEL_KERNELS_CPU_NN_CONV3D_H_

#include "kernels/cpu/nn/conv.h"

// State of the kernels, or its first part. The CPU has only NDHWC.
typedef struct rn_conv3d_attrs_t {
  int64_t strides[3], dilations[3];
  rn_padding_t padding;
  bool is_ncdhw;
} rn_conv3d_attrs_t;

typedef struct rn_conv3d_t {
  rn_window_axis_t axes[3];  // planes, rows, columns
  int64_t batch, in_depth, out_depth;
} rn_conv3d_t;

// Read the attributes into |state|, an rn_conv3d_attrs_t.
RN_MUST_USE rn_status_t rn_conv3d_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_conv3d_gradient_init(const rn_kernel_init_t* init, void* state);

// Check the inputs of a call, whose state is an rn_conv3d_attrs_t, and compute its sizes. |dims|
// become those of the gradient of x (|is_input|) or w.
RN_MUST_USE rn_status_t rn_conv3d_forward_sizes(const rn_kernel_ctx_t* ctx, rn_conv3d_t* out);
RN_MUST_USE rn_status_t rn_conv3d_gradient_sizes(const rn_kernel_ctx_t* ctx, bool is_input,
                                                 int64_t dims[5], rn_conv3d_t* out);

// Only on the CPU, channels last:
//
// Convolves |x| with |w| into |y|.
RN_MUST_USE rn_status_t rn_conv3d_forward(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                          const rn_conv3d_t* sizes, const rn_tensor_t* x,
                                          const rn_tensor_t* w, rn_tensor_t* y);
// Computes the result of |kind| for any type but the 16-bit floats; none of the three may be empty.
// The same bits with any number of threads.
RN_MUST_USE rn_status_t rn_conv3d_run(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                      rn_conv_kind_t kind, rn_dtype_t dtype,
                                      const rn_conv3d_t* sizes, rn_conv_data_t data);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV3D_H_
