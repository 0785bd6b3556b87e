// Numbering the set flags of an array: the host's part.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_SCAN_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_SCAN_H_

#include "kernels/cuda/array/scan_args.h"

// Numbers the |count| flags at |flags| and waits for the card to say how many are set. The caller
// clears |offsets|, which |out| refers to, after it has issued its own kernel.
RN_MUST_USE rn_status_t rn_cuda_scan(rn_kernel_ctx_t* ctx, const void* flags, int64_t count,
                                     rn_cuda_scan_args* out, rn_tensor_t* offsets,
                                     int64_t* out_set);
// Issues a kernel that calls rn_each_flag.
RN_MUST_USE rn_status_t rn_cuda_scan_launch(const rn_kernel_ctx_t* ctx, const char* name,
                                            const rn_cuda_scan_args* scan, const void* args,
                                            size_t args_size);

// Copies |size| bytes at |from|, in the card's memory, to the host and waits for them.
RN_MUST_USE rn_status_t rn_cuda_read(rn_kernel_ctx_t* ctx, const void* from, size_t size, void* to);
// Issues a copy of |size| bytes at |from|, in the host's pageable memory, which may change when the
// call returns. So the work cannot be recorded.
RN_MUST_USE rn_status_t rn_cuda_write(rn_kernel_ctx_t* ctx, const void* from, size_t size,
                                      void* to);

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_SCAN_H_
