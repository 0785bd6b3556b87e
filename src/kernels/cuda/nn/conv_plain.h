// Convolutions by the kernels of conv.cu, one thread per number: where cuDNN has no engine, and as
// what its engines are compared with.
#ifndef RUNNEL_KERNELS_CUDA_NN_CONV_PLAIN_H_
#define RUNNEL_KERNELS_CUDA_NN_CONV_PLAIN_H_

#include "kernels/cuda/libs/cudnn_conv.h"

// Issues |conv|, without the steps after it. |out| is where the result goes, whatever |data| says.
RN_MUST_USE rn_status_t rn_cuda_conv_plain(rn_kernel_ctx_t* ctx, const rn_cuda_conv_t* conv,
                                           const rn_cuda_conv_data_t* data, rn_tensor_t* out);

// |*out| = the largest difference of the floats at |a| from those of |b|, as a part of the largest
// of |b|. Waits for the card.
RN_MUST_USE rn_status_t rn_cuda_conv_compare(rn_kernel_ctx_t* ctx, const void* a,
                                             const rn_tensor_t* b, float* out);

#endif  // RUNNEL_KERNELS_CUDA_NN_CONV_PLAIN_H_
