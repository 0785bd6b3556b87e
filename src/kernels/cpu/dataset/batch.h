// Batching elements into tensors with one more dimension; shared by the kinds of batches.
#ifndef RUNNEL_KERNELS_CPU_DATASET_BATCH_H_
#define RUNNEL_KERNELS_CPU_DATASET_BATCH_H_

#include "kernels/cpu/dataset/data.h"

// A batch under construction. Each component grows as elements arrive, so a batch size larger than
// the data costs nothing.
typedef struct rn_data_batch_t {
  rn_allocator_t memory;
  int32_t component_count;
  rn_tensor_t* parts;  // from the iterator's arena; [capacity, ...]
  int64_t count, capacity;
  int64_t limit;  // maximum number of elements expected
} rn_data_batch_t;

RN_MUST_USE rn_status_t rn_data_batch_init(rn_data_batch_t* batch, rn_data_iterator_t* iterator,
                                           int32_t component_count, int64_t limit);
void rn_data_batch_clear(rn_data_batch_t* batch);
// Adds the element |row| and clears it; all elements must have the same shapes.
RN_MUST_USE rn_status_t rn_data_batch_add(rn_data_batch_t* batch, rn_tensor_t* row);
// Moves the batch to |out|, leaving this one empty.
RN_MUST_USE rn_status_t rn_data_batch_take(rn_data_batch_t* batch, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_BATCH_H_
