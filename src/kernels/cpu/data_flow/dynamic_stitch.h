// DynamicPartition and DynamicStitch, as far as all devices share them.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_DYNAMIC_STITCH_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_DYNAMIC_STITCH_H_

#include "framework/kernel.h"

// Checks the shapes.
RN_MUST_USE rn_status_t rn_dynamic_partition_check(const rn_kernel_ctx_t* ctx);
// Makes the outputs: |counts| has the rows of each.
RN_MUST_USE rn_status_t rn_dynamic_partition_outputs(rn_kernel_ctx_t* ctx, const int64_t* counts);

// Checks the inputs, with indices in host memory, and makes the output of |*out_rows| rows.
RN_MUST_USE rn_status_t rn_dynamic_stitch_begin(rn_kernel_ctx_t* ctx, int64_t* out_rows,
                                                rn_tensor_t** out);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_DYNAMIC_STITCH_H_
