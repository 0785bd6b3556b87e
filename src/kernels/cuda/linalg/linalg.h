// What the kernels of linear algebra share.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_LINALG_H_
#define RUNNEL_KERNELS_CUDA_LINALG_LINALG_H_

#include "kernels/cuda/launch.h"

// One block per matrix, with threads for sides of |n|.
rn_cuda_grid_t rn_cuda_linalg_grid(int64_t stack, int64_t n);
// UNIMPLEMENTED if there are too many matrices for a grid, or a side is too long for an index.
RN_MUST_USE rn_status_t rn_cuda_linalg_check_stack(int64_t stack, int64_t n);

// Whether |flag|, one int32 on the card, is set. Waits for all work issued so far, so a kernel that
// calls it cannot be replayed.
RN_MUST_USE rn_status_t rn_cuda_read_flag(rn_kernel_ctx_t* ctx, const rn_tensor_t* flag, bool* out);

#endif  // RUNNEL_KERNELS_CUDA_LINALG_LINALG_H_
