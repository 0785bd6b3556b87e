// Prefetching: elements produced ahead of time in the background.
#ifndef RUNNEL_KERNELS_CPU_DATASET_PREFETCH_H_
#define RUNNEL_KERNELS_CPU_DATASET_PREFETCH_H_

#include "kernels/cpu/dataset/data.h"

// A dataset that prefetches up to |capacity| elements of |input|. The caller owns it.
RN_MUST_USE rn_status_t rn_data_prefetch_over(rn_dataset_t* input, int64_t capacity,
                                              rn_dataset_t** out);
// Starts prefetching for an iterator over such a dataset, before the first request.
void rn_data_prefetch_begin(rn_data_iterator_t* iterator);

#endif  // RUNNEL_KERNELS_CPU_DATASET_PREFETCH_H_
