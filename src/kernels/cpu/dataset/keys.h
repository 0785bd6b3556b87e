// Groups of elements by an int64 key, in arrays sorted by it.
#ifndef RUNNEL_KERNELS_CPU_DATASET_KEYS_H_
#define RUNNEL_KERNELS_CPU_DATASET_KEYS_H_

#include "base/status.h"
#include "tensor/tensor.h"

// The index of |key| among |count| structs of |size| bytes that begin with their key, or where to
// insert it.
size_t rn_data_find_key(const void* groups, size_t count, size_t size, int64_t key,
                        bool* out_found);

// Reads the number that |function| (its attribute, for the message) returned.
RN_MUST_USE rn_status_t rn_data_read_number(const rn_tensor_t* result, const char* function,
                                            int64_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_KEYS_H_
