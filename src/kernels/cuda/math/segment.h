// Sums by segment for other kernels: see segment.c.
#ifndef RUNNEL_KERNELS_CUDA_MATH_SEGMENT_H_
#define RUNNEL_KERNELS_CUDA_MATH_SEGMENT_H_

#include "kernels/cuda/launch.h"

// out[s] = the sum of the elements of |data| whose number in |ids| is s. Numbers that |out| has no
// place for are skipped.
RN_MUST_USE rn_status_t rn_cuda_segment_sum(rn_kernel_ctx_t* ctx, const rn_tensor_t* data,
                                            const rn_tensor_t* ids, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CUDA_MATH_SEGMENT_H_
