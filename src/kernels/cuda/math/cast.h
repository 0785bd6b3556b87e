// Conversions for other kernels.
#ifndef RUNNEL_KERNELS_CUDA_MATH_CAST_H_
#define RUNNEL_KERNELS_CUDA_MATH_CAST_H_

#include "kernels/cuda/launch.h"

// Fills |out| with the elements of type |source| at |address|, as Cast converts them.
RN_MUST_USE rn_status_t rn_cuda_convert(rn_kernel_ctx_t* ctx, const void* address,
                                        rn_dtype_t source, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CUDA_MATH_CAST_H_
