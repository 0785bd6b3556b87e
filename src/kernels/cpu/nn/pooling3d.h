// Attributes, checks and sizes of pooling over volumes, for all devices.
#ifndef RUNNEL_KERNELS_CPU_NN_POOLING3D_H_
#define RUNNEL_KERNELS_CPU_NN_POOLING3D_H_

#include "framework/kernel.h"
#include "kernels/cpu/nn/window.h"

// State of the kernels. The CPU has only NDHWC.
typedef struct rn_pooling3d_attrs_t {
  int64_t ksize[3], strides[3];
  rn_padding_t padding;
  bool is_ncdhw;
} rn_pooling3d_attrs_t;

typedef struct rn_pooling3d_t {
  rn_window_axis_t axes[3];
  int64_t batch, depth;
  int64_t outs[3];  // of y and dy; may differ from the computed sizes for AvgPool3DGrad
} rn_pooling3d_t;

// Reads the attributes into |state|, an rn_pooling3d_attrs_t.
RN_MUST_USE rn_status_t rn_pooling3d_init(const rn_kernel_init_t* init, void* state);

// Check the inputs of a call, whose state is an rn_pooling3d_attrs_t, and compute its sizes.
// |y_dims| and |dims| become those of the result, in the order of the data format.
RN_MUST_USE rn_status_t rn_pooling3d_sizes(const rn_kernel_ctx_t* ctx, rn_pooling3d_t* out,
                                           int64_t y_dims[5]);
// For MaxPool3DGrad, or |second| for MaxPool3DGradGrad.
RN_MUST_USE rn_status_t rn_pooling3d_gradient_sizes(const rn_kernel_ctx_t* ctx, bool second,
                                                    rn_pooling3d_t* out);
// For AvgPool3DGrad. Stock accepts spatial sizes smaller than computed, and larger by up to a
// window: windows past the end add nothing.
RN_MUST_USE rn_status_t rn_pooling3d_average_gradient_sizes(const rn_kernel_ctx_t* ctx,
                                                            int64_t dims[5], rn_pooling3d_t* out);

#endif  // RUNNEL_KERNELS_CPU_NN_POOLING3D_H_
