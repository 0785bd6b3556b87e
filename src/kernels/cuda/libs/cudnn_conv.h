// Convolutions by cuDNN: plans made once per shape, the fastest of several kept with the card.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUDNN_CONV_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUDNN_CONV_H_

#include "kernels/cpu/nn/conv.h"
#include "kernels/cuda/launch.h"

// Where the filter's axes are in memory.
typedef enum rn_cuda_filter_t {
  RN_CUDA_FILTER_PLAIN,   // [planes, rows, columns, in_depth / groups, out_depth]
  RN_CUDA_FILTER_TURNED,  // out_depth first, then as the image: channels last or first
} rn_cuda_filter_t;

// A convolution of any kind. x is [batch, planes, rows, columns, in_depth] or, with channels first,
// [batch, in_depth, planes, rows, columns]; y likewise. Images have one plane.
// Only int64_t, because plans are found by its bytes.
typedef struct rn_cuda_conv_t {
  int64_t kind;   // rn_conv_kind_t
  int64_t dtype;  // of x, w and y
  int64_t is_channels_first;
  int64_t rank;  // spatial axes that cuDNN sees: 2, or 3 for volumes
  int64_t batch, in_depth, out_depth, groups;
  rn_window_axis_t axes[3];  // planes, rows, columns
  int64_t filter;            // rn_cuda_filter_t
  // What follows a forward convolution: + residual (like y), + bias (per channel), Relu.
  int64_t has_residual, has_bias, has_relu;
  int64_t alignment;  // of all addresses: 16, or the size of an element; set by rn_cudnn_conv
} rn_cuda_conv_t;

// Two of x, w and y are read, the third is written, depending on the kind.
typedef struct rn_cuda_conv_data_t {
  void *x, *w, *y;
  void *bias, *residual;
} rn_cuda_conv_data_t;

// Issues |conv| if cuDNN is there and has an engine for it; else |*out_done| is false and nothing
// was issued. The first call for a shape measures several engines and waits for them.
RN_MUST_USE rn_status_t rn_cudnn_conv(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                                      const rn_cuda_conv_data_t* data, bool* out_done);

// Issues the reordering of a filter from PLAIN to TURNED, or |back|.
RN_MUST_USE rn_status_t rn_cuda_conv_turn(const rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                                          const void* from, void* to, bool back);

// Elements of the filter.
static inline int64_t rn_cuda_conv_filter_size(const rn_cuda_conv_t* conv) {
  return conv->axes[0].filter * conv->axes[1].filter * conv->axes[2].filter *
         (conv->in_depth / conv->groups) * conv->out_depth;
}

// Like rn_temp, for what is in use while rn_cudnn_conv runs: in a recording, whose convolutions
// share a workspace, this is elsewhere.
RN_MUST_USE rn_status_t rn_cudnn_conv_temp(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count,
                                           rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUDNN_CONV_H_
