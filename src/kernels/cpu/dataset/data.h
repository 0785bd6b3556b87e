// Datasets and iterators: the interface that the kinds of datasets in this folder implement.
//
// A dataset is what an op with its attributes makes of its inputs: an immutable reference-counted
// object in a variant tensor. An iterator walks over one and belongs to its creator. |next|
// produces one element at a time, and never blocks or holds a thread: if it returns true, the
// request is complete; otherwise the request's |done| is called later, once, from any thread. So
// each kind is a small state machine that is re-entered when what it asked for has arrived.
#ifndef RUNNEL_KERNELS_CPU_DATASET_DATA_H_
#define RUNNEL_KERNELS_CPU_DATASET_DATA_H_

#include "base/arena.h"
#include "framework/function.h"
#include "kernels/kernel_rows.h"

#define RN_DATA_INFINITE (-1)  // special cardinalities, with TensorFlow's values
#define RN_DATA_UNKNOWN (-2)
#define RN_DATA_AUTOTUNE (-1)  // the runtime chooses the number

#define RN_DATA_THREADS_TYPE "tensorflow::data::experimental::ThreadPoolResource"

typedef struct rn_dataset_t rn_dataset_t;
typedef struct rn_data_iterator_t rn_data_iterator_t;
typedef struct rn_data_kind_t rn_data_kind_t;
typedef struct rn_data_writer_t rn_data_writer_t;
typedef struct rn_data_reader_t rn_data_reader_t;

// The environment of all datasets of a device: threads and clock. It counts background tasks. When
// the device's resources are freed the host closes: it cancels running tasks and waits for them.
// Datasets that remain can then only be freed.
typedef struct rn_data_host_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_pool_t* pool;
  const rn_env_t* env;
  rn_cancel_t cancel;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t idle;
  bool is_closed;
  int64_t active;
} rn_data_host_t;

RN_MUST_USE rn_status_t rn_data_host_get(rn_resources_t* resources, const rn_kernel_init_t* init,
                                         rn_data_host_t** out);
// Bracket all running work. rn_data_host_enter returns false if the host is closed.
bool rn_data_host_enter(rn_data_host_t* host);
void rn_data_host_leave(rn_data_host_t* host);
// Whether the pool has more than one thread.
static inline bool rn_data_has_threads(const rn_data_host_t* host) {
  return rn_pool_threads(host->pool) > 1;
}

// What the datasets of one node share; reference-counted, since datasets outlive their kernel.
typedef struct rn_data_node_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_allocator_t memory;  // for elements
  rn_arena_t arena;       // holds everything below
  const rn_data_kind_t* kind;
  const rn_op_def_t* op;
  rn_str_t name;
  rn_attr_value_t* attrs;  // copies, by index in the op's definition
  int32_t input_count;
  int32_t component_count;
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  rn_str_t device;
  // The library through which the kernel calls functions; NULL if its op has none. Borrowed: only
  // the kernel and datasets of the node use it.
  rn_functions_t* functions;
} rn_data_node_t;

// A function that a dataset calls, with its captured arguments.
typedef struct rn_data_func_t {
  rn_functions_t* functions;  // Borrowed from the dataset; NULL if not created
  rn_instance_t* instance;
  const rn_func_attr_t* called;  // Borrowed from the node
  bool has_generators;           // random numbers depend on the calls before
  int32_t captured_count;
  const rn_tensor_t* captured;  // Borrowed from the dataset's inputs
} rn_data_func_t;

struct rn_dataset_t {
  rn_object_t object;
  rn_data_node_t* node;  // Retained
  const rn_data_kind_t* kind;
  rn_data_host_t* host;       // Retained
  rn_functions_t* functions;  // Retained; the node's
  rn_tensor_t* inputs;        // Owned; the inputs of the node
  int32_t component_count;    // components per element
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  _Atomic int64_t counted;  // rn_dataset_cardinality's; 0: not asked for yet
};

// A request for one element. It belongs to the requester, who must not touch it until it is done.
typedef struct rn_data_request_t {
  rn_tensor_t* out;    // one unset tensor per component; set on success
  rn_step_t* step;     // the step it runs for; in the background, the run's own
  rn_status_t status;  // of the completed request; the requester owns it
  bool is_end;
  uint32_t count;  // requests made so far
  void (*done)(struct rn_data_request_t* request);
} rn_data_request_t;

// What cancels the calls of a part of a pipeline. A part that works in the background has a run of
// its own below its owner's.
typedef struct rn_data_run_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_cancel_t cancel;
  rn_step_t step;                // background work runs for this step
  rn_cancel_t* outer;            // of |parent| or the host
  struct rn_data_run_t* parent;  // Retained
  rn_data_host_t* host;          // Retained
  rn_cancel_entry_t entry;
  _Atomic bool is_linked;  // |entry| is registered in |outer|
  rn_object_t* stats;      // Retained; the statistics of this part: stats.h. NULL if there are none
  struct rn_data_kept_t* kept;  // Owned by the outermost run; guarded by the host's mutex
} rn_data_run_t;
// The instance of |func| for calls of this run's iterators. A function with random generators has
// one of its own in each outermost run, so that every iterator of a program draws the same numbers.
// Borrowed; lives as long as the outermost run.
RN_MUST_USE rn_status_t rn_data_run_instance(rn_data_run_t* run, const rn_data_func_t* func,
                                             rn_instance_t** out);
// |depth| is the nesting depth of function calls.
RN_MUST_USE rn_status_t rn_data_run_create(rn_data_host_t* host, rn_data_run_t* parent,
                                           int32_t depth, rn_data_run_t** out);

// An iterator. Each kind embeds this as the first member of its own struct.
struct rn_data_iterator_t {
  rn_object_t object;
  rn_dataset_t* dataset;  // Retained
  rn_data_run_t* run;     // Retained
  // The iterator that reads this one. Borrowed, and only valid in |start|; NULL if there is none.
  const rn_data_iterator_t* user;
  rn_arena_t arena;  // for arrays with the iterator's lifetime
  int phase;         // of the state machine; 0 when no request is active
  rn_data_request_t* asked;
};

struct rn_data_kind_t {
  size_t dataset_size;
  size_t iterator_size;
  // Reads and checks inputs and attributes; errors have stock's messages.
  rn_status_t (*open)(rn_dataset_t* dataset);
  void (*close)(rn_dataset_t* dataset);  // NULL if nothing to free; accepts half-open ones
  int64_t (*cardinality)(const rn_dataset_t* dataset);  // NULL if unknown
  // Initializes the iterator's own members. NULL if there are none.
  rn_status_t (*start)(rn_data_iterator_t* iterator);
  void (*stop)(rn_data_iterator_t* iterator);  // NULL if nothing to free; accepts half-started ones
  // The owner drops an iterator that others may still hold: stops background work.
  void (*abandon)(rn_data_iterator_t* iterator);  // NULL if there is none
  bool (*next)(rn_data_iterator_t* iterator);  // continues with |asked|; true when it is complete
  // NULL if the state cannot be saved. Called while no request is active.
  rn_status_t (*save)(rn_data_iterator_t* iterator, rn_data_writer_t* writer);
  rn_status_t (*restore)(rn_data_iterator_t* iterator, rn_data_reader_t* reader);
  // Makes the element |index|, which is less than the cardinality; may wait. NULL if elements can
  // only be had in order.
  rn_status_t (*get)(rn_dataset_t* dataset, int64_t index, rn_step_t* step, rn_tensor_t* out);
  // The components of an element, for ops without attributes for them; 0 if the attributes say.
  int32_t fixed_count;
  rn_dtype_t fixed_types[3];
};

// Datasets. |inputs| are shared, or copied if they borrow their memory.
RN_MUST_USE rn_status_t rn_dataset_create(rn_data_node_t* node, const rn_data_kind_t* kind,
                                          rn_data_host_t* host, const rn_tensor_t* const* inputs,
                                          rn_dataset_t** out);
// The kind of the datasets of |op|; NULL if it makes none.
const rn_data_kind_t* rn_data_kind_of(const char* op);
// Creates what the datasets of a node share, for the kernel that makes them. The caller owns it.
RN_MUST_USE rn_status_t rn_data_node_create(const rn_kernel_init_t* init,
                                            const rn_data_kind_t* kind, rn_data_node_t** out);
// A node for datasets that no op makes; equal to |like| except for its elements. Copies types and
// shapes. The caller owns it.
RN_MUST_USE rn_status_t rn_data_inner_node(const rn_data_node_t* like, const rn_data_kind_t* kind,
                                           int32_t component_count, const rn_dtype_t* types,
                                           const rn_shape_t* shapes, rn_data_node_t** out);
// A zeroed dataset of such a node, which the caller fills instead of |open|.
RN_MUST_USE rn_status_t rn_dataset_create_inner(rn_data_node_t* node, rn_data_host_t* host,
                                                rn_dataset_t** out);
static inline void rn_dataset_release(rn_dataset_t* dataset) {
  if (dataset) rn_object_release(&dataset->object);
}
// The dataset in the scalar variant |tensor|; borrowed.
RN_MUST_USE rn_status_t rn_dataset_of(const rn_tensor_t* tensor, rn_dataset_t** out);
int64_t rn_dataset_cardinality(const rn_dataset_t* dataset);
// The element |index|, into unset tensors. UNIMPLEMENTED if the dataset has no random access,
// OUT_OF_RANGE if it has no such element. It may wait, for threads that may block.
RN_MUST_USE rn_status_t rn_dataset_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                                       rn_tensor_t* out);
// A scalar variant that holds a reference to |dataset|.
RN_MUST_USE rn_status_t rn_dataset_tensor(rn_dataset_t* dataset, rn_tensor_t* out);
// Takes ownership of |object|, even on failure.
RN_MUST_USE rn_status_t rn_data_variant(rn_allocator_t memory, rn_object_t* object,
                                        rn_tensor_t* out);

// For |open|: inputs and attributes by name. The names must be the op's.
const rn_tensor_t* rn_data_input(const rn_dataset_t* dataset, const char* name, int32_t* out_count);
bool rn_data_has_input(const rn_dataset_t* dataset, const char* name);
// NULL, or false, if the op has no such attribute.
const rn_attr_value_t* rn_data_attr(const rn_dataset_t* dataset, const char* name);
bool rn_data_flag(const rn_dataset_t* dataset, const char* name);
// INVALID_ARGUMENT "NAME must be a scalar" if it is not one.
RN_MUST_USE rn_status_t rn_data_scalar(const rn_dataset_t* dataset, const char* name, int64_t* out);
// The same for a string, which is borrowed; empty if the op has no such input.
RN_MUST_USE rn_status_t rn_data_text(const rn_dataset_t* dataset, const char* name, rn_str_t* out);
// The input dataset called |name|; borrowed from the dataset.
RN_MUST_USE rn_status_t rn_data_upstream(const rn_dataset_t* dataset, const char* name,
                                         rn_dataset_t** out);
// Opens the function in attribute |attr| with the captured arguments in input |captured|. It takes
// |arg_count| arguments before those. The caller checks the number of results.
RN_MUST_USE rn_status_t rn_data_func_open(rn_dataset_t* dataset, const char* attr,
                                          const char* captured, int32_t arg_count,
                                          const rn_dtype_t* arg_types, rn_data_func_t* out);
// The same for |func|, with the captured arguments that |out| has already.
RN_MUST_USE rn_status_t rn_data_func_bind(rn_dataset_t* dataset, const rn_func_attr_t* func,
                                          int32_t arg_count, const rn_dtype_t* arg_types,
                                          rn_data_func_t* out);
void rn_data_func_close(rn_data_func_t* func);
// Calls |func| on |args| and its captured arguments, and waits; meanwhile the thread helps others.
RN_MUST_USE rn_status_t rn_data_func_call(const rn_data_func_t* func, const rn_tensor_t* args,
                                          int32_t count, rn_step_t* step, rn_tensor_t* results);
// INVALID_ARGUMENT unless the results have these types.
RN_MUST_USE rn_status_t rn_data_func_gives(const rn_data_func_t* func, int32_t count,
                                           const rn_dtype_t* types);

// Iterators.
RN_MUST_USE rn_status_t rn_data_iterator_create(rn_dataset_t* dataset, rn_data_run_t* run,
                                                const rn_data_iterator_t* user,
                                                rn_data_iterator_t** out);
// Releases the owner's reference and stops background work. NULL is fine.
void rn_data_iterator_drop(rn_data_iterator_t* iterator);
// CANCELLED or DEADLINE_EXCEEDED if the step of |request| is over.
RN_MUST_USE rn_status_t rn_data_stopped(const rn_data_request_t* request);
// Requests an element: see the top of this file. One request at a time. Checks for cancellation on
// every call, and the clock now and then, so that loops over elements end when their step does.
static inline bool rn_data_next(rn_data_iterator_t* iterator, rn_data_request_t* request) {
  request->status = RN_OK;
  request->is_end = false;
  if (rn_is_cancelled(request->step->cancel) ||
      (request->step->deadline_ns && (++request->count & 255) == 0)) {
    request->status = rn_data_stopped(request);
    if (!rn_ok(request->status)) return true;
  }
  iterator->asked = request;
  return iterator->dataset->kind->next(iterator);
}
// Continues a request that had to wait; notifies the requester when it is complete.
static inline void rn_data_resume(rn_data_iterator_t* iterator) {
  if (iterator->dataset->kind->next(iterator)) iterator->asked->done(iterator->asked);
}
// The ways in which |next| completes a request.
static inline bool rn_data_end(rn_data_iterator_t* iterator) {
  iterator->phase = 0;
  iterator->asked->is_end = true;
  return true;
}
static inline bool rn_data_finish(rn_data_iterator_t* iterator, rn_status_t status) {
  iterator->phase = 0;
  iterator->asked->status = status;
  return true;
}

// An iterator's upstream iterator. Dropped when it reaches its end, and then stays at its end.
typedef struct rn_data_source_t {
  rn_data_request_t request;
  rn_data_iterator_t* owner;
  rn_data_run_t* run;            // what cancels it; NULL if the owner's run
  rn_data_iterator_t* iterator;  // Owned; NULL if at its end or never started
} rn_data_source_t;
RN_MUST_USE rn_status_t rn_data_source_start(rn_data_source_t* source, rn_data_iterator_t* owner,
                                             rn_dataset_t* dataset);
void rn_data_source_stop(rn_data_source_t* source);
// Requests the next element into |out|. False if the owner will be resumed later. The result is in
// |source->request|; the owner must pass on its status.
bool rn_data_ask(rn_data_source_t* source, rn_tensor_t* out);
// The same on behalf of |step|; |done| is called later instead of resuming the owner.
bool rn_data_ask_for(rn_data_source_t* source, rn_tensor_t* out, rn_step_t* step);

// A call of a dataset's function by an iterator.
typedef struct rn_data_call_t {
  rn_function_call_t call;  // first
  rn_data_iterator_t* owner;
  // If set, called instead of resuming the owner.
  void (*resume)(struct rn_data_call_t* call);
  rn_instance_t* instance;   // Borrowed from the function, or from the outermost run
  const rn_tensor_t** args;  // from the iterator's arena: the element's, then the captured ones
  rn_tensor_t* results;      // from the iterator's arena
  _Atomic bool is_met;       // completion or return has happened; the second of them continues
  rn_status_t status;
} rn_data_call_t;
RN_MUST_USE rn_status_t rn_data_call_init(rn_data_call_t* call, rn_data_iterator_t* owner,
                                          const rn_data_func_t* func);
// Runs |func| on the |count| tensors at |args| and its captured arguments. False if it completes
// later.
bool rn_data_call(rn_data_call_t* call, const rn_data_func_t* func, const rn_tensor_t* args,
                  int32_t count, rn_step_t* step);
void rn_data_call_clear(rn_data_call_t* call, const rn_data_func_t* func);  // clears the results

// |count| unset tensors from the iterator's arena.
RN_MUST_USE rn_status_t rn_data_row(rn_data_iterator_t* iterator, int32_t count, rn_tensor_t** out);
void rn_data_row_clear(rn_tensor_t* row, int32_t count);  // NULL is fine
static inline void rn_data_row_move(rn_tensor_t* from, rn_tensor_t* to, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    to[i] = from[i];
    from[i] = (rn_tensor_t){0};
  }
}
// Reads the |result| of a predicate. INVALID_ARGUMENT, naming |what|, unless it is a scalar bool.
RN_MUST_USE rn_status_t rn_data_holds(const rn_tensor_t* result, const char* what, bool* out);
// Creates a scalar.
RN_MUST_USE rn_status_t rn_data_make_scalar(rn_allocator_t memory, rn_dtype_t dtype, int64_t value,
                                            rn_tensor_t* out);

// A hash that is equal for datasets with the same ops, attributes, constants and function bodies,
// and almost never equal otherwise. Input files count by name; resources and
// the seeds of shuffles do not count.
RN_MUST_USE rn_status_t rn_data_digest(rn_dataset_t* dataset, uint64_t* out);

// Saved iterator state: numbers, strings and tensors, read in the order they were written. state.c
// documents the format.
struct rn_data_writer_t {
  rn_strbuf_t bytes;
  rn_status_t status;  // the first error
};
void rn_data_put_int(rn_data_writer_t* writer, int64_t value);
void rn_data_put_text(rn_data_writer_t* writer, rn_str_t text);
void rn_data_put_row(rn_data_writer_t* writer, const rn_tensor_t* row, int32_t count);
// Writes |iterator|, which may be NULL, with its kind's state.
RN_MUST_USE rn_status_t rn_data_put_iterator(rn_data_writer_t* writer,
                                             rn_data_iterator_t* iterator);

struct rn_data_reader_t {
  rn_str_t bytes;  // remaining input
  rn_allocator_t memory;
  const rn_dataset_t* dataset;  // the owner of the state; others are made to match
  int depth;                    // nesting of datasets in datasets
};
RN_MUST_USE rn_status_t rn_data_take_int(rn_data_reader_t* reader, int64_t* out);
RN_MUST_USE rn_status_t rn_data_take_text(rn_data_reader_t* reader, rn_str_t* out);
// Reads |count| tensors into |row|, which is unset. NULL |types| accepts any types.
RN_MUST_USE rn_status_t rn_data_take_row(rn_data_reader_t* reader, const rn_dtype_t* types,
                                         int32_t count, rn_tensor_t* row);
// Reads what rn_data_put_iterator wrote: restarts the source over |dataset|, or leaves it at its
// end.
RN_MUST_USE rn_status_t rn_data_restore_source(rn_data_reader_t* reader, rn_data_source_t* source,
                                               rn_data_iterator_t* owner, rn_dataset_t* dataset);
RN_MUST_USE rn_status_t rn_data_take_iterator(rn_data_reader_t* reader,
                                              rn_data_iterator_t* iterator);
RN_MUST_USE rn_status_t rn_data_bad_state(void);

// Whether |dataset| reads splits that a dispatcher hands out (split.c). |depth| is 0.
bool rn_data_has_splits(const rn_dataset_t* dataset, int depth);

// Tells an iterator over files, if it is one, that its elements go straight into batches.
void rn_data_files_into_batches(rn_data_iterator_t* iterator);

// The kinds of datasets.
#define X(op, kind) extern const rn_data_kind_t rn_data_kind_##kind;
#include "kernels/cpu/dataset/kinds.def"
#undef X

#endif  // RUNNEL_KERNELS_CPU_DATASET_DATA_H_
