// The storage of a queue's elements. All functions but the last two need the queue's lock.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_STORE_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_STORE_H_

#include "kernels/cpu/data_flow/queue.h"

// Stores the tuple at |element|, moving it. On failure the caller keeps it.
RN_MUST_USE rn_status_t rn_queue_put(rn_queue_t* queue, rn_tensor_t* element);
// Puts back a tuple that was taken, at the front if the kind has one. Drops it if memory is short.
void rn_queue_put_back(rn_queue_t* queue, rn_tensor_t* element);
// Moves the next tuple to |element|. The queue must not be empty.
void rn_queue_take(rn_queue_t* queue, rn_tensor_t* element);
// Clears and frees everything.
void rn_queue_store_clear(rn_queue_t* queue);

// Batches |count| tuples into the outputs of |ctx|, padding where shapes differ. Needs no lock.
RN_MUST_USE rn_status_t rn_queue_batch(const rn_queue_t* queue, rn_kernel_ctx_t* ctx,
                                       const rn_tensor_t* elements, int64_t count);
// |*out| = slice |index| of |batch| along its first dimension, holding a reference or a copy. Needs
// no lock.
RN_MUST_USE rn_status_t rn_queue_slice(const rn_queue_t* queue, const rn_kernel_ctx_t* ctx,
                                       const rn_tensor_t* batch, int64_t index, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_STORE_H_
