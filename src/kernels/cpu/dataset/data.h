// Datasets and iterators: what the kinds of datasets in this folder are written against.
//
// A dataset is what an op with its attributes makes of its inputs: an immutable counted object in a
// variant tensor. An iterator walks over one and belongs to whoever made it. Its |next| gives one
// element at a time, never waits and never holds a thread: it is done when it returns true;
// otherwise the request's |done| is called later, once, from any thread. So each kind is a small
// state machine that is entered again when what it asked for has come.
#ifndef RUNNEL_KERNELS_CPU_DATASET_DATA_H_
#define RUNNEL_KERNELS_CPU_DATASET_DATA_H_

#include "base/arena.h"
#include "framework/function.h"
#include "kernels/kernel_rows.h"

#define RN_DATA_INFINITE (-1)  // cardinalities that are no numbers, as TensorFlow writes them
#define RN_DATA_UNKNOWN (-2)
#define RN_DATA_AUTOTUNE (-1)  // "choose a number yourself"

typedef struct rn_dataset_t rn_dataset_t;
typedef struct rn_data_iterator_t rn_data_iterator_t;
typedef struct rn_data_kind_t rn_data_kind_t;
typedef struct rn_data_writer_t rn_data_writer_t;
typedef struct rn_data_reader_t rn_data_reader_t;

// The surroundings of all datasets of a device: threads and clock. Tasks in the background
// are counted here. When the device's resources go the host closes: it cancels what runs and waits
// for it; what is left of datasets afterwards can only be freed.
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
// What runs is between these two. False: the host is closed.
bool rn_data_host_enter(rn_data_host_t* host);
void rn_data_host_leave(rn_data_host_t* host);
// More than one thread can be had.
static inline bool rn_data_has_threads(const rn_data_host_t* host) {
  return rn_pool_threads(host->pool) > 1;
}

// What the datasets of one node share; counted, since datasets outlive their kernel.
typedef struct rn_data_node_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_allocator_t memory;  // for elements
  rn_arena_t arena;       // all below
  const rn_data_kind_t* kind;
  const rn_op_def_t* op;
  rn_str_t name;
  rn_attr_value_t* attrs;  // copies, by place in the definition
  int32_t input_count;
  int32_t component_count;
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  rn_str_t device;
  // What the kernel calls functions through; NULL: its op names none. Borrowed: only the kernel and
  // datasets of the node use it.
  rn_functions_t* functions;
} rn_data_node_t;

// A function that a dataset calls, with the arguments that it captured.
typedef struct rn_data_func_t {
  rn_functions_t* functions;  // Borrowed from the dataset; NULL: not made
  rn_instance_t* instance;
  int32_t captured_count;
  const rn_tensor_t* captured;  // Borrowed from the dataset's inputs
} rn_data_func_t;

struct rn_dataset_t {
  rn_object_t object;
  rn_data_node_t* node;  // Retained
  const rn_data_kind_t* kind;
  rn_data_host_t* host;       // Retained
  rn_functions_t* functions;  // Retained; the node's
  rn_tensor_t* inputs;        // Owned; those of the node
  int32_t component_count;    // of an element
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
};

// One request for an element. The asker's; left alone until it is done.
typedef struct rn_data_request_t {
  rn_tensor_t* out;  // a place for each component, unset; set when done with neither error nor end
  rn_step_t* step;   // on whose behalf; that of a run in the background
  rn_status_t status;  // of the finished request; the asker owns it
  bool is_end;
  uint32_t count;  // requests so far
  void (*done)(struct rn_data_request_t* request);
} rn_data_request_t;

// What the calls of a part of a pipeline are stopped by. A part that works in the background has
// one of its own below its owner's.
typedef struct rn_data_run_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_cancel_t cancel;
  rn_step_t step;                // what is done in the background is done for this
  rn_cancel_t* outer;            // of |parent| or the host
  struct rn_data_run_t* parent;  // Retained
  rn_data_host_t* host;          // Retained
  rn_cancel_entry_t entry;
  _Atomic bool is_linked;  // |entry| waits in |outer|
} rn_data_run_t;
// |depth|: how many calls it is in.
RN_MUST_USE rn_status_t rn_data_run_create(rn_data_host_t* host, rn_data_run_t* parent,
                                           int32_t depth, rn_data_run_t** out);

// An iterator. Kinds put this first in a struct of their own.
struct rn_data_iterator_t {
  rn_object_t object;
  rn_dataset_t* dataset;  // Retained
  rn_data_run_t* run;     // Retained
  rn_arena_t arena;       // for arrays that live as long as the iterator
  int phase;              // of the state machine; 0 between requests
  rn_data_request_t* asked;
};

struct rn_data_kind_t {
  size_t dataset_size;
  size_t iterator_size;
  // Reads inputs and attributes, with stock's words where they make no sense.
  rn_status_t (*open)(rn_dataset_t* dataset);
  void (*close)(rn_dataset_t* dataset);  // NULL: nothing to free; takes half-open ones
  int64_t (*cardinality)(const rn_dataset_t* dataset);  // NULL: not known
  // Makes an iterator's own things. NULL: there are none.
  rn_status_t (*start)(rn_data_iterator_t* iterator);
  void (*stop)(rn_data_iterator_t* iterator);  // NULL: nothing to free; takes half-started ones
  // The owner lets go of an iterator that others may still hold: background work is to end.
  void (*abandon)(rn_data_iterator_t* iterator);  // NULL: there is none
  bool (*next)(rn_data_iterator_t* iterator);     // goes on with |asked|; true: it is done
  // NULL: cannot be saved. Called with no request under way.
  rn_status_t (*save)(rn_data_iterator_t* iterator, rn_data_writer_t* writer);
  rn_status_t (*restore)(rn_data_iterator_t* iterator, rn_data_reader_t* reader);
  // What an element is made of, for ops that do not say so; 0: the attributes do.
  int32_t fixed_count;
  rn_dtype_t fixed_types[3];
};

// Datasets. |inputs| are shared or, if they borrow, copied.
RN_MUST_USE rn_status_t rn_dataset_create(rn_data_node_t* node, const rn_data_kind_t* kind,
                                          rn_data_host_t* host, const rn_tensor_t* const* inputs,
                                          rn_dataset_t** out);
// What the datasets of a node share, of the kernel that makes them. The caller owns it.
RN_MUST_USE rn_status_t rn_data_node_create(const rn_kernel_init_t* init,
                                            const rn_data_kind_t* kind, rn_data_node_t** out);
// A node for datasets that no op makes, like |like| but for its elements; types and shapes are
// copied. The caller owns it.
RN_MUST_USE rn_status_t rn_data_inner_node(const rn_data_node_t* like, const rn_data_kind_t* kind,
                                           int32_t component_count, const rn_dtype_t* types,
                                           const rn_shape_t* shapes, rn_data_node_t** out);
// A dataset of such a node, zeroed: the caller fills it instead of |open|.
RN_MUST_USE rn_status_t rn_dataset_create_inner(rn_data_node_t* node, rn_data_host_t* host,
                                                rn_dataset_t** out);
static inline void rn_dataset_release(rn_dataset_t* dataset) {
  if (dataset) rn_object_release(&dataset->object);
}
// The dataset in the scalar variant |tensor|; borrowed.
RN_MUST_USE rn_status_t rn_dataset_of(const rn_tensor_t* tensor, rn_dataset_t** out);
int64_t rn_dataset_cardinality(const rn_dataset_t* dataset);
// A scalar variant that holds |dataset|, of which it keeps a reference.
RN_MUST_USE rn_status_t rn_dataset_tensor(rn_dataset_t* dataset, rn_tensor_t* out);
// Takes |object|, also when it fails.
RN_MUST_USE rn_status_t rn_data_variant(rn_allocator_t memory, rn_object_t* object,
                                        rn_tensor_t* out);

// For |open|: inputs and attributes by name. Names must be those of the op.
const rn_tensor_t* rn_data_input(const rn_dataset_t* dataset, const char* name, int32_t* out_count);
bool rn_data_has_input(const rn_dataset_t* dataset, const char* name);
const rn_attr_value_t* rn_data_attr(const rn_dataset_t* dataset, const char* name);  // or NULL
bool rn_data_flag(const rn_dataset_t* dataset, const char* name);  // false if there is none
// "NAME must be a scalar".
RN_MUST_USE rn_status_t rn_data_scalar(const rn_dataset_t* dataset, const char* name, int64_t* out);
// The first dataset among the inputs; borrowed from the dataset.
RN_MUST_USE rn_status_t rn_data_upstream(const rn_dataset_t* dataset, const char* name,
                                         rn_dataset_t** out);
// The function in attribute |attr| with the captured arguments in input |captured|. It takes
// |arg_count| arguments before those. Results are counted by the caller.
RN_MUST_USE rn_status_t rn_data_func_open(rn_dataset_t* dataset, const char* attr,
                                          const char* captured, int32_t arg_count,
                                          const rn_dtype_t* arg_types, rn_data_func_t* out);
void rn_data_func_close(rn_data_func_t* func);
// INVALID_ARGUMENT if the results are not of these types.
RN_MUST_USE rn_status_t rn_data_func_gives(const rn_data_func_t* func, int32_t count,
                                           const rn_dtype_t* types);

// Iterators.
RN_MUST_USE rn_status_t rn_data_iterator_create(rn_dataset_t* dataset, rn_data_run_t* run,
                                                rn_data_iterator_t** out);
// The owner's reference goes, and with it what works in the background. NULL is fine.
void rn_data_iterator_drop(rn_data_iterator_t* iterator);
// CANCELLED or DEADLINE_EXCEEDED if the step of |request| is over.
RN_MUST_USE rn_status_t rn_data_stopped(const rn_data_request_t* request);
// Asks for an element: see the head of this file. One request at a time. Loops over elements end
// here when their step does; the clock is looked at now and then.
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
// Goes on with a request that had to wait; its asker is told when it is done.
static inline void rn_data_resume(rn_data_iterator_t* iterator) {
  if (iterator->dataset->kind->next(iterator)) iterator->asked->done(iterator->asked);
}
// How |next| ends.
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

// An iterator's view of the one before it. Dropped at its end: then it stays at its end.
typedef struct rn_data_source_t {
  rn_data_request_t request;
  rn_data_iterator_t* owner;
  rn_data_run_t* run;            // what stops it; NULL: what stops the owner
  rn_data_iterator_t* iterator;  // Owned; NULL: at its end, or never started
} rn_data_source_t;
RN_MUST_USE rn_status_t rn_data_source_start(rn_data_source_t* source, rn_data_iterator_t* owner,
                                             rn_dataset_t* dataset);
void rn_data_source_stop(rn_data_source_t* source);
// The next element to |out|. False: the owner is resumed later. The result is in |source->request|;
// its status is the owner's to pass on.
bool rn_data_ask(rn_data_source_t* source, rn_tensor_t* out);
// The same on behalf of |step|, with |done| called later instead.
bool rn_data_ask_for(rn_data_source_t* source, rn_tensor_t* out, rn_step_t* step);

// A call of a dataset's function by an iterator.
typedef struct rn_data_call_t {
  rn_function_call_t call;  // first
  rn_data_iterator_t* owner;
  // Called instead of resuming the owner, if set.
  void (*resume)(struct rn_data_call_t* call);
  const rn_tensor_t** args;  // from the iterator's arena: those of the element, then captured ones
  rn_tensor_t* results;      // likewise
  _Atomic bool is_met;  // the completion or the return of the call has come: the second goes on
  rn_status_t status;
} rn_data_call_t;
RN_MUST_USE rn_status_t rn_data_call_init(rn_data_call_t* call, rn_data_iterator_t* owner,
                                          const rn_data_func_t* func);
// Runs |func| on the |count| tensors at |args| and what it captured. False: later.
bool rn_data_call(rn_data_call_t* call, const rn_data_func_t* func, const rn_tensor_t* args,
                  int32_t count, rn_step_t* step);
void rn_data_call_clear(rn_data_call_t* call, const rn_data_func_t* func);  // results

// |count| unset tensors of an iterator's own.
RN_MUST_USE rn_status_t rn_data_row(rn_data_iterator_t* iterator, int32_t count, rn_tensor_t** out);
void rn_data_row_clear(rn_tensor_t* row, int32_t count);  // NULL is fine
static inline void rn_data_row_move(rn_tensor_t* from, rn_tensor_t* to, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    to[i] = from[i];
    from[i] = (rn_tensor_t){0};
  }
}
// Whether the first of the |results| of a predicate holds. INVALID_ARGUMENT if it is no scalar
// bool.
RN_MUST_USE rn_status_t rn_data_holds(const rn_tensor_t* result, const char* what, bool* out);
// A new scalar.
RN_MUST_USE rn_status_t rn_data_make_scalar(rn_allocator_t memory, rn_dtype_t dtype, int64_t value,
                                            rn_tensor_t* out);

// A number that datasets have in common if ops, attributes, constants and the bodies of functions
// are the same; others nearly never have it. Files that are read count by their names, resources
// not at all.
RN_MUST_USE rn_status_t rn_data_digest(rn_dataset_t* dataset, uint64_t* out);

// State of iterators, saved and restored: numbers, texts and tensors, read in the order they were
// written. The form is in state.c.
struct rn_data_writer_t {
  rn_strbuf_t bytes;
  rn_status_t status;  // the first error
};
void rn_data_put_int(rn_data_writer_t* writer, int64_t value);
void rn_data_put_text(rn_data_writer_t* writer, rn_str_t text);
void rn_data_put_row(rn_data_writer_t* writer, const rn_tensor_t* row, int32_t count);
// An iterator with its kind's state; whatever it holds may be absent.
RN_MUST_USE rn_status_t rn_data_put_iterator(rn_data_writer_t* writer,
                                             rn_data_iterator_t* iterator);

struct rn_data_reader_t {
  rn_str_t bytes;  // what is left
  rn_allocator_t memory;
  const rn_dataset_t* dataset;  // whose state it is: others are made like it
  int depth;                    // of datasets in datasets
};
RN_MUST_USE rn_status_t rn_data_take_int(rn_data_reader_t* reader, int64_t* out);
RN_MUST_USE rn_status_t rn_data_take_text(rn_data_reader_t* reader, rn_str_t* out);
// |count| tensors of these types to |row|, which is unset; any types if NULL.
RN_MUST_USE rn_status_t rn_data_take_row(rn_data_reader_t* reader, const rn_dtype_t* types,
                                         int32_t count, rn_tensor_t* row);
// What rn_data_put_iterator wrote: the source is started anew over |dataset|, or at its end.
RN_MUST_USE rn_status_t rn_data_restore_source(rn_data_reader_t* reader, rn_data_source_t* source,
                                               rn_data_iterator_t* owner, rn_dataset_t* dataset);
RN_MUST_USE rn_status_t rn_data_take_iterator(rn_data_reader_t* reader,
                                              rn_data_iterator_t* iterator);
RN_MUST_USE rn_status_t rn_data_bad_state(void);

// Tells an iterator over files, if it is one, that its elements go straight into batches.
void rn_data_files_into_batches(rn_data_iterator_t* iterator);

// The kinds.
#define X(op, kind) extern const rn_data_kind_t rn_data_kind_##kind;
#include "kernels/cpu/dataset/kinds.def"
#undef X

#endif  // RUNNEL_KERNELS_CPU_DATASET_DATA_H_
