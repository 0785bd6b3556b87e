// Rows of a tensor (slices along its first dimension), for kernels that store them one by one.
#ifndef RUNNEL_KERNELS_CPU_ROWS_H_
#define RUNNEL_KERNELS_CPU_ROWS_H_

#include "framework/kernel.h"

// |*out| = rows [begin, begin + count) of |batch|, whose rank is at least 1; without the first
// dimension if |drops_dim| (then |count| is 1). Shares the buffer if |shares| and the rows meet the
// alignment of tensors; otherwise copies into memory from |allocator|.
RN_MUST_USE rn_status_t rn_rows_slice(const rn_tensor_t* batch, int64_t begin, int64_t count,
                                      bool drops_dim, bool shares, rn_allocator_t allocator,
                                      rn_tensor_t* out);

// The same for a kernel's tensor, shared where possible, on the kernel's device.
RN_MUST_USE rn_status_t rn_ctx_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* batch, int64_t begin,
                                    int64_t count, bool drops_dim, rn_tensor_t* out);

// Whether the rows of both, whose ranks are at least 1, have the same type and shape.
bool rn_rows_fit(const rn_tensor_t* a, const rn_tensor_t* b);

#endif  // RUNNEL_KERNELS_CPU_ROWS_H_
