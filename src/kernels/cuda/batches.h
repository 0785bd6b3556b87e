// Batches of matrices whose dimensions broadcast, as few batches with one stride per operand.
#ifndef RUNNEL_KERNELS_CUDA_BATCHES_H_
#define RUNNEL_KERNELS_CUDA_BATCHES_H_

#include "kernels/cpu/matmul_shapes.h"

// |size| matrices. Matrix i of the result, at c_at + i * c_step, is made of those at
// a_at + i * a_step and b_at + i * b_step. All are counted in matrices.
typedef struct rn_cuda_batch_t {
  int64_t size;
  int64_t a_step, b_step, c_step;
  int64_t a_at, b_at, c_at;
} rn_cuda_batch_t;

// Calls |run| for batches that cover |all| together; none is empty. Dimensions that are like one
// are merged, the largest becomes the batch, and the host loops over the others.
RN_MUST_USE rn_status_t rn_cuda_batches(rn_kernel_ctx_t* ctx, const rn_matmul_batch_t* all,
                                        rn_status_t (*run)(rn_kernel_ctx_t* ctx,
                                                           const rn_cuda_batch_t* batch, void* arg),
                                        void* arg);

#endif  // RUNNEL_KERNELS_CUDA_BATCHES_H_
