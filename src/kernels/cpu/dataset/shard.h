// The files of a snapshot as datasets: one per shard, and one that lists them all.
#ifndef RUNNEL_KERNELS_CPU_DATASET_SHARD_H_
#define RUNNEL_KERNELS_CPU_DATASET_SHARD_H_

#include "io/input.h"
#include "kernels/cpu/dataset/data.h"

// A dataset of datasets: the shards in the directory |run|, whose elements match those of |like|.
// The caller owns it.
RN_MUST_USE rn_status_t rn_data_shards_dataset(const rn_dataset_t* like, const char* run,
                                               rn_compression_t compression, rn_dataset_t** out);

// The shard in the scalar |tensor|, borrowed; NULL if it is not one. The others write it to a saved
// state and read it back.
const rn_dataset_t* rn_data_shard_of(const rn_tensor_t* tensor);
void rn_data_shard_put(rn_data_writer_t* writer, const rn_dataset_t* shard);
RN_MUST_USE rn_status_t rn_data_shard_take(rn_data_reader_t* reader, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_SHARD_H_
