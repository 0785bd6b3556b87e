// Updates of rows by index on the device.
#ifndef RUNNEL_KERNELS_CUDA_STATE_SCATTER_H_
#define RUNNEL_KERNELS_CUDA_STATE_SCATTER_H_

#include "kernels/cpu/combine.h"
#include "kernels/cuda/launch.h"

// Combines rows of |into| with |updates|, in the order of the places, so that repeated rows give
// the CPU's result. Each |depth| numbers of |indices| name a row, a place in the first |depth|
// dimensions; those out of bounds are skipped. |updates| has one row per place, or is a scalar.
RN_MUST_USE rn_status_t rn_cuda_scatter(rn_kernel_ctx_t* ctx, rn_combine_op_t op,
                                        const rn_tensor_t* indices, int depth,
                                        const rn_tensor_t* updates, rn_tensor_t* into);

#endif  // RUNNEL_KERNELS_CUDA_STATE_SCATTER_H_
