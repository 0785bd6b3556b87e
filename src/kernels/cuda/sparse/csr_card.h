// CSR matrices among the inputs of a kernel, in the card's memory.
#ifndef RUNNEL_KERNELS_CUDA_SPARSE_CSR_CARD_H_
#define RUNNEL_KERNELS_CUDA_SPARSE_CSR_CARD_H_

#include "kernels/cpu/sparse/csr.h"
#include "kernels/cuda/sparse/csr_args.h"

// Input |i|, borrowed.
static inline rn_status_t rn_cuda_csr_in(rn_kernel_ctx_t* ctx, int i, rn_csr_t** out) {
  return rn_csr_in_on(ctx, i, ctx->kernel->device, out);
}

static inline rn_cuda_csr_matrices rn_cuda_csr_matrices_of(const rn_csr_t* csr) {
  return (rn_cuda_csr_matrices){.starts = csr->starts.data,
                                .rows = csr->part[RN_CSR_ROWS].data,
                                .columns = csr->part[RN_CSR_COLUMNS].data,
                                .values = csr->part[RN_CSR_VALUES].data,
                                .count = csr->count,
                                .height = csr->height,
                                .width = csr->width};
}

// Output 0 with |in|'s entries, to whose |*out_values|, of the card, the caller issues work.
RN_MUST_USE rn_status_t rn_cuda_csr_output_like(rn_kernel_ctx_t* ctx, rn_csr_t* in,
                                                void** out_values);

#endif  // RUNNEL_KERNELS_CUDA_SPARSE_CSR_CARD_H_
