// What kernels of sparse tensors share.
#ifndef RUNNEL_KERNELS_CUDA_SPARSE_SPARSE_H_
#define RUNNEL_KERNELS_CUDA_SPARSE_SPARSE_H_

#include "kernels/cuda/launch.h"

// |*out| = column |d| of the matrix |indices|. The caller clears it.
RN_MUST_USE rn_status_t rn_cuda_sparse_column(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices,
                                              int d, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CUDA_SPARSE_SPARSE_H_
