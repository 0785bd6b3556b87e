// Sorts the places of an index tensor by row, for kernels that update rows: see rows_args.h.
#ifndef RUNNEL_KERNELS_CUDA_STATE_ROWS_H_
#define RUNNEL_KERNELS_CUDA_STATE_ROWS_H_

#include "kernels/cuda/state/rows_args.h"

typedef struct rn_cuda_rows_t {
  struct rn_rows_args args;  // for the kernel that updates the rows
  rn_tensor_t keys;
} rn_cuda_rows_t;

// Each |depth| numbers of |indices| name a place in the first |depth| dimensions of |shape|, which
// is a row. Indices out of bounds name no row. Issues the sort; the caller
// clears |out->keys| after it has issued its own kernel.
RN_MUST_USE rn_status_t rn_cuda_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int depth,
                                     rn_shape_t shape, rn_cuda_rows_t* out);
// Sets the number of elements per row, when a kernel counts in other units.
void rn_cuda_rows_set_width(struct rn_rows_args* rows, int64_t width);

#endif  // RUNNEL_KERNELS_CUDA_STATE_ROWS_H_
