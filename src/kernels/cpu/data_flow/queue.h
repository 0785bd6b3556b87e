// Queues of tuples of tensors: FIFO, random shuffle, padding FIFO, priority.
//
// One core implements all kinds. A call that cannot proceed becomes a waiter in one of two lines
// (in, out), served strictly in order. Its callback runs with no locks held.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_H_

#include "base/arena.h"
#include "kernels/cpu/data_flow/wait_line.h"
#include "kernels/cpu/random/philox.h"

#define RN_QUEUE_TYPE "Queue"

typedef enum rn_queue_kind_t {
  RN_QUEUE_FIFO,
  RN_QUEUE_SHUFFLE,
  RN_QUEUE_PADDING,
  RN_QUEUE_PRIORITY,  // ordered by the first component, smallest first
} rn_queue_kind_t;

// The specification of a queue. rn_queue_create borrows it.
typedef struct rn_queue_spec_t {
  rn_queue_kind_t kind;
  const char* op;    // "FIFOQueue": static storage
  int64_t capacity;  // < 0 if unlimited
  int64_t min_after_dequeue;
  int64_t seed, seed2;
  int32_t component_count;
  const rn_dtype_t* types;
  const rn_shape_t* shapes;  // NULL if any; unknown dimensions for RN_QUEUE_PADDING only
} rn_queue_spec_t;

typedef struct rn_queue_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds the name and the spec's lists
  rn_str_t name;
  rn_queue_spec_t spec;  // with the seeds as requested
  rn_mutex_t mutex;      // guards what follows
  // Elements in a ring: component c of the i-th is ring[((head + i) & mask) * components + c].
  rn_tensor_t* ring;  // Owned
  int64_t mask;       // slots - 1, where slots is a power of two; -1 while there are none
  int64_t head, count;
  bool is_closed;
  rn_wait_line_t in, out;
  rn_philox_single_t random;
} rn_queue_t;

RN_MUST_USE rn_status_t rn_queue_create(rn_allocator_t allocator, const rn_env_t* env,
                                        const rn_queue_spec_t* spec, rn_str_t name,
                                        rn_queue_t** out);
// INVALID_ARGUMENT, with stock's message, if the queue was created with a different spec.
RN_MUST_USE rn_status_t rn_queue_matches(const rn_queue_t* queue, const rn_queue_spec_t* spec,
                                         rn_str_t node, const char* op);

// The operations: each ends |ctx| with rn_done, now or later. The components are the inputs from
// |first| on; the outputs are the components or batches of them.
void rn_queue_enqueue(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int first);
void rn_queue_enqueue_many(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int first);
void rn_queue_dequeue(rn_queue_t* queue, rn_kernel_ctx_t* ctx);
// Dequeues |count| elements; with |allows_fewer|, what is left once the queue is closed.
void rn_queue_dequeue_many(rn_queue_t* queue, rn_kernel_ctx_t* ctx, int64_t count,
                           bool allows_fewer);
// Closes the queue after the waiting enqueues, or cancels those.
void rn_queue_close(rn_queue_t* queue, rn_kernel_ctx_t* ctx, bool cancels_enqueues);

int64_t rn_queue_size(rn_queue_t* queue);
bool rn_queue_is_closed(rn_queue_t* queue);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_QUEUE_H_
