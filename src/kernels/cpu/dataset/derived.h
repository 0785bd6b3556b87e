// Datasets that other datasets are made of. The caller owns what it gets.
#ifndef RUNNEL_KERNELS_CPU_DATASET_DERIVED_H_
#define RUNNEL_KERNELS_CPU_DATASET_DERIVED_H_

#include "kernels/cpu/dataset/data.h"

// Every |count|-th element of |input|, from |index| on; the first |count| elements.
RN_MUST_USE rn_status_t rn_data_shard_over(rn_dataset_t* input, int64_t count, int64_t index,
                                           rn_dataset_t** out);
RN_MUST_USE rn_status_t rn_data_take_over(rn_dataset_t* input, int64_t count, rn_dataset_t** out);
// What an AutoShardDataset reads: its input with other sources, or a shard of it.
RN_MUST_USE rn_status_t rn_data_auto_shard(rn_dataset_t* dataset, rn_dataset_t** out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_DERIVED_H_
