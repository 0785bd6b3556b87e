// Elements put together into tensors with one dimension more: what the kinds of batches share.
#ifndef RUNNEL_KERNELS_CPU_DATASET_BATCH_H_
#define RUNNEL_KERNELS_CPU_DATASET_BATCH_H_

#include "kernels/cpu/dataset/data.h"

// A batch under construction: each component grows as elements arrive, so that a batch size larger
// than the data costs nothing.
typedef struct rn_data_batch_t {
  rn_allocator_t memory;
  int32_t component_count;
  rn_tensor_t* parts;  // from the iterator's arena; [capacity, ...]
  int64_t count, capacity;
  int64_t limit;  // elements that are expected at most
} rn_data_batch_t;

RN_MUST_USE rn_status_t rn_data_batch_init(rn_data_batch_t* batch, rn_data_iterator_t* iterator,
                                           int32_t component_count, int64_t limit);
void rn_data_batch_clear(rn_data_batch_t* batch);
// Adds the element |row|, which is cleared; all elements must have the same shapes.
RN_MUST_USE rn_status_t rn_data_batch_add(rn_data_batch_t* batch, rn_tensor_t* row);
// What there is goes to |out|; the batch is empty then.
RN_MUST_USE rn_status_t rn_data_batch_take(rn_data_batch_t* batch, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_BATCH_H_
