// Compressed elements: see compress.c.
#ifndef RUNNEL_KERNELS_CPU_DATASET_COMPRESS_H_
#define RUNNEL_KERNELS_CPU_DATASET_COMPRESS_H_

#include "kernels/cpu/dataset/data.h"

// Makes the |count| components of the CompressedElement |message|, into unset tensors; on failure
// they are unset. FAILED_PRECONDITION if their number or types are others.
RN_MUST_USE rn_status_t rn_data_uncompress(rn_str_t message, rn_allocator_t allocator,
                                           rn_allocator_t memory, const rn_dtype_t* types,
                                           int32_t count, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_COMPRESS_H_
