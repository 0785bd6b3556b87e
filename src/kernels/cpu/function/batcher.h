// Batchers: resources that collect the calls of an op in several steps into batches.
//
// A call joins the batch that is open, if its rows fit. With |splits| it is divided otherwise: a
// part fills the open batch, the others begin new ones. A batch closes when it is full, and when it
// has waited for as long as the options say. Closed batches run in order, several at a time. One
// thread per batcher, which its first call starts, keeps the time and starts batches.
#ifndef RUNNEL_KERNELS_CPU_FUNCTION_BATCHER_H_
#define RUNNEL_KERNELS_CPU_FUNCTION_BATCHER_H_

#include "framework/kernel.h"

#define RN_CALL_BATCHER_TYPE "BatchScheduler"

typedef struct rn_call_batcher_t rn_call_batcher_t;

typedef struct rn_call_batch_options_t {
  int64_t threads;         // batches that run at a time
  int64_t most_rows;       // of a batch
  int64_t most_call_rows;  // of a call
  bool splits;             // whether calls are divided
  int64_t timeout_ns;      // how long a batch waits for more calls
  int64_t most_batches;    // that wait to be run
  int32_t size_count;      // sizes that batches are padded to, ascending; 0 for any
  const int64_t* sizes;
} rn_call_batch_options_t;

// The rows of a call that are in one batch: all of them, or a part.
typedef struct rn_call_batch_task_t {
  rn_kernel_ctx_t* ctx;
  int64_t first, rows;
  // Private to the batcher.
  struct rn_call_batch_task_t* next;  // in the batch
  struct rn_batched_call_t* call;
  rn_tensor_t* results;  // Owned; of a part
  bool is_taken;         // its batch runs
  bool is_last;          // of its call to be taken
} rn_call_batch_task_t;

// A batch that runs. Its runner sets the results of all tasks and then calls
// rn_call_batch_end.
typedef struct rn_call_batch_t {
  rn_call_batcher_t* batcher;
  int32_t count;
  int64_t rows;  // of all tasks
  rn_call_batch_task_t* tasks;
  struct rn_call_batch_t* next;
  int64_t deadline_ns;
  bool is_closed;
} rn_call_batch_t;

// Starts to run |batch|; called on the batcher's thread, must not block for long.
typedef void (*rn_call_batch_run_fn_t)(rn_call_batch_t* batch);

// A batcher without calls. Copies |options|.
RN_MUST_USE rn_status_t rn_call_batcher_create(rn_allocator_t allocator, const rn_env_t* env,
                                               const rn_call_batch_options_t* options,
                                               rn_call_batch_run_fn_t run, rn_resource_t** out);
// Takes over the call |ctx| of |rows| rows; ends it on failure.
void rn_call_batcher_add(rn_call_batcher_t* batcher, rn_kernel_ctx_t* ctx, int64_t rows);
// Result |i| of |task|, which is taken.
void rn_call_batch_set_result(rn_call_batch_task_t* task, int i, rn_tensor_t* result);
// Ends the calls that have no other parts left, with |status|, which is taken, and frees |batch|.
void rn_call_batch_end(rn_call_batch_t* batch, rn_status_t status);

// Reads the attributes container, shared_name (or the node's name) and batching_queue, and finds
// the batcher with that name, or makes one. |arena| must outlive the call only.
RN_MUST_USE rn_status_t rn_call_batcher_find(const rn_kernel_init_t* init, rn_arena_t* arena,
                                             rn_call_batch_run_fn_t run, rn_call_batcher_t** out);
// The number of rows that |batch| is padded to.
int64_t rn_call_batch_padded_rows(const rn_call_batch_t* batch);
// Concatenates input |i| of all tasks, and pads with copies of the first row.
RN_MUST_USE rn_status_t rn_call_batch_concat(const rn_call_batch_t* batch, int i, rn_tensor_t* out);
// Checks that inputs 0 … |count| - 1 have the same number of rows.
RN_MUST_USE rn_status_t rn_call_batch_count_rows(const rn_kernel_ctx_t* ctx, int count,
                                                 int64_t* out);

#endif  // RUNNEL_KERNELS_CPU_FUNCTION_BATCHER_H_
