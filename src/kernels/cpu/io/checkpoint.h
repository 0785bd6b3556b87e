// Shared by the kernels of both checkpoint formats.
#ifndef RUNNEL_KERNELS_CPU_IO_CHECKPOINT_H_
#define RUNNEL_KERNELS_CPU_IO_CHECKPOINT_H_

#include "framework/kernel.h"

// Appends the first element, which must be usable as a path.
RN_MUST_USE rn_status_t rn_ckpt_path(const rn_tensor_t* tensor, rn_strbuf_t* out);
// RestoreV2 from V1 files that match |pattern|.
RN_MUST_USE rn_status_t rn_ckpt_restore_v1(rn_kernel_ctx_t* ctx, const char* pattern);

#endif  // RUNNEL_KERNELS_CPU_IO_CHECKPOINT_H_
