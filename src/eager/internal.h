// Shared by the files of this folder.
#ifndef RUNNEL_EAGER_INTERNAL_H_
#define RUNNEL_EAGER_INTERNAL_H_

#include <stdatomic.h>

#include "eager/eager.h"
#include "framework/function.h"
#include "session/functions.h"

#define RN_EAGER_BUCKETS 1024  // of kernels; a power of two
#define RN_EAGER_FEW 8         // inputs, outputs and attributes that need no allocation
#define RN_EAGER_UNSET 0xFF    // rn_attr_value_t.kind of an attribute that was not given

// Lock and condition on which threads wait for a value. Belongs to an executor and may outlive it.
typedef struct rn_eager_sync_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  rn_cond_t done;
} rn_eager_sync_t;
void rn_eager_sync_retain(rn_eager_sync_t* sync);
void rn_eager_sync_release(rn_eager_sync_t* sync);  // NULL is fine

// A custom device of a context.
typedef struct rn_eager_custom_entry_t {
  rn_eager_custom_device_t device;
  char* name;  // Owned, canonical
  char* type;  // Owned: "CUSTOM" of "…/device:CUSTOM:0"
} rn_eager_custom_entry_t;

// A handle that is not a tensor on a device of the session: a value of a custom device, or several
// handles.
typedef struct rn_eager_special_t {
  // Of the context that the handle retains; settling a pending handle may change it.
  const rn_eager_custom_entry_t* _Atomic device;
  rn_eager_foreign_t custom;
  int32_t part_count;
  rn_eager_handle_t** parts;  // Retained
  rn_eager_t* eager;          // Retained
} rn_eager_special_t;
void rn_eager_special_destroy(rn_eager_special_t* special);  // NULL is fine
// Runs |op| on a custom device if it names one, or if it names none and an input is on one; sets
// |*out_done| then. Otherwise replaces inputs on custom devices and packed inputs by ordinary ones.
RN_MUST_USE rn_status_t rn_eager_execute_special(rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                                 int32_t* inout_count, bool* out_done);
void rn_eager_custom_devices_clear(rn_eager_t* eager);

// A key with its value.
typedef struct rn_eager_pair_t {
  rn_strbuf_t key, value;
} rn_eager_pair_t;
void rn_eager_store_clear(rn_eager_t* eager);
void rn_eager_log(rn_eager_t* eager, const char* op, const rn_device_t* device);

enum { RN_HANDLE_PENDING, RN_HANDLE_READY, RN_HANDLE_FAILED };

struct rn_eager_handle_t {
  _Atomic int32_t refs;
  _Atomic uint8_t state;
  rn_dtype_t dtype;
  rn_allocator_t allocator;
  rn_tensor_t tensor;           // once READY
  rn_tensor_t* _Atomic host;    // Owned: a copy of |tensor| in host memory, made when needed
  rn_device_t* memory;          // the device whose memory holds |tensor|; NULL: host memory
  rn_device_t* device;          // NULL: the first CPU
  rn_eager_t* eager;            // Retained if |device| is set, whose owner it is
  rn_eager_sync_t* sync;        // Retained; NULL if it was ready from the start
  rn_status_t status;           // once FAILED
  rn_eager_special_t* special;  // Owned; NULL for an ordinary value
};
// A handle without a value, of |dtype| on |device|. |sync| is NULL if the value is set before other
// threads see the handle.
RN_MUST_USE rn_status_t rn_eager_handle_new(rn_eager_t* eager, rn_device_t* device,
                                            rn_dtype_t dtype, rn_eager_sync_t* sync,
                                            rn_eager_handle_t** out);
// Gives a pending handle its value, which is moved, or its error, which is copied.
void rn_eager_handle_settle(rn_eager_handle_t* handle, rn_tensor_t* value, rn_status_t status);

// A kernel made for one op with its attributes, input types and device. Counted.
typedef struct rn_eager_kernel_t {
  struct rn_eager_kernel_t* next;  // in its bucket
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  uint64_t hash;
  // The key.
  const rn_op_def_t* def;
  rn_device_t* asked;  // the device that the call is meant for
  // For functions and control flow, if some device has its own memory: whether the call names no
  // device, and by input, the device of a resource, or the device whose memory holds the value
  // (NULL for host memory). Otherwise false and NULL.
  bool is_anywhere;
  rn_device_t** input_devices;
  int32_t input_count;
  rn_dtype_t* input_types;
  int32_t* lengths;  // of the arguments; NULL if unknown
  rn_attr_value_t* given;
  int32_t extra_count;
  rn_attr_t* extras;
  rn_arena_t arena;
  // The value: a node with all attributes, in its own graph, after the placeholders that it reads;
  // and a kernel, a function, or a constant.
  rn_graph_t* graph;  // Owned
  rn_node_t* node;
  rn_kernel_t* kernel;  // Owned
  rn_functions_t* functions;
  rn_instance_t* instance;  // Owned
  rn_str_t wrapper;         // the function of one node that wraps it; empty if there is none
  rn_graph_t* library;      // the library that holds |wrapper|
  const rn_tensor_t* constant;
  rn_device_t* device;  // runs it: |asked|, or the first CPU if |asked| has no kernel for it
  // By input: whether it is in the memory of |device|; NULL if none is, and for functions, which
  // take |input_devices|. By output: the device, and whose memory holds the value, NULL for host
  // memory; NULL if |device| is the CPU and all are there.
  const bool* inputs_far;
  const rn_result_place_t* output_places;
  int32_t output_count;
  const rn_dtype_t* output_types;
} rn_eager_kernel_t;
void rn_eager_kernel_retain(rn_eager_kernel_t* kernel);
void rn_eager_kernel_release(rn_eager_kernel_t* kernel);  // NULL is fine
// Finds or makes the kernel for |op| on |device|, or on the first CPU if |device| has none;
// borrowed as long as eager->running is held. If the op is_anonymous, makes a kernel for this call
// alone, which the caller owns.
RN_MUST_USE rn_status_t rn_eager_kernel_get(const rn_eager_op_t* op, rn_device_t* device,
                                            rn_eager_kernel_t** out);
// Whether the op has a kernel of its own, rather than being run by the executor or through
// functions.
bool rn_eager_has_kernel(const rn_op_def_t* def);
RN_MUST_USE rn_status_t rn_eager_kernel_create(const rn_eager_op_t* op, rn_device_t* device,
                                               uint64_t hash, rn_eager_kernel_t** out);

struct rn_eager_op_t {
  rn_eager_t* eager;
  const rn_op_def_t* def;
  rn_function_t* function;  // Retained; NULL if |def| is an op
  rn_device_t* device;      // NULL if the client named none
  rn_strbuf_t device_name;  // as the client gave it
  rn_eager_cancel_t* cancel;
  int32_t input_count, input_capacity;
  rn_eager_handle_t** inputs;  // Retained
  int32_t arg_count;           // arguments given so far
  bool is_anonymous;           // creates a resource without a name
  bool knows_lengths;          // false once single tensors were given for a list
  int32_t* lengths;            // by argument; RN_ARG_SINGLE for one tensor
  int32_t attr_room;
  rn_attr_value_t* attrs;  // by place in the definition
  RN_VEC(rn_attr_t) extras;
  rn_arena_t arena;
  bool has_tensors;  // attributes that hold buffers
  bool has_special;  // some input is not an ordinary value
  rn_status_t status;
  rn_eager_handle_t* few_inputs[RN_EAGER_FEW];
  int32_t few_lengths[RN_EAGER_FEW];
  rn_attr_value_t few_attrs[RN_EAGER_FEW];
};

typedef struct rn_eager_thread_t {
  uint64_t id;
  rn_eager_executor_t* executor;  // Retained; NULL for the context's
  int policy;                     // -1 for the context's
} rn_eager_thread_t;

// A function that the client added.
typedef struct rn_eager_function_t {
  rn_function_t* function;  // Retained
  int32_t count;            // number of times it was added
} rn_eager_function_t;

struct rn_eager_tape_t;
struct rn_tape_cache_t;

struct rn_eager_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  uint64_t id;
  rn_graph_t* library;           // Owned
  rn_session_t* session;         // Owned
  rn_session_options_t options;  // of the session
  rn_strbuf_t config;            // |options| points into it
  rn_step_t step;                // template for the step of every call
  rn_device_t* cpu;
  rn_device_t* preferred;      // takes ops without a device that it has kernels for; may be NULL
  bool has_far;                // some device has its own memory
  RN_VEC(rn_str_t) old_names;  // Owned: of devices
  int policy;
  _Atomic bool is_soft;
  rn_eager_executor_t* executor;  // Owned: the default one
  rn_eager_kernel_t* _Atomic buckets[RN_EAGER_BUCKETS];
  _Atomic int64_t running;     // executions that may look at kernels
  _Atomic bool has_threads;    // some thread set its own executor or policy
  _Atomic int32_t tape_count;  // recording tapes of all threads
  _Atomic bool has_stats;
  _Atomic bool is_logging;
  _Atomic bool has_custom;     // devices
  rn_eager_cluster_t cluster;  // set before |has_cluster|
  _Atomic bool has_cluster;
  bool is_closed;              // the cluster was closed
  rn_mutex_t mutex;            // guards what follows, and making kernels
  rn_eager_kernel_t* retired;  // removed from the buckets, perhaps still in use
  RN_VEC(rn_eager_thread_t) threads;
  RN_VEC(rn_eager_executor_t*) executors;  // Retained: all executors of the context
  struct rn_eager_tape_t* tapes;           // recording ones; see tape.c
  struct rn_tape_cache_t* tape_cache;
  RN_VEC(rn_eager_function_t) functions;
  int32_t steps;  // started and not ended
  rn_step_stats_t stats;
  RN_VEC(rn_eager_custom_entry_t*) custom_devices;  // Owned; freed with the context
  RN_VEC(rn_eager_pair_t) pairs;
  rn_cond_t pair_added;
  rn_strbuf_t executed;
};
// The device of input |i| if it is a resource; otherwise NULL.
static inline rn_device_t* rn_eager_resource_device(const rn_eager_op_t* op, int32_t i) {
  const rn_eager_handle_t* input = op->inputs[i];
  if (input->dtype != RN_RESOURCE) return NULL;
  return input->device ? input->device : op->eager->cpu;
}
// The same, and for another value the device whose memory holds it, NULL for host memory. A value
// on a device of another context comes through host memory.
static inline rn_device_t* rn_eager_input_device(const rn_eager_op_t* op, int32_t i) {
  const rn_eager_handle_t* input = op->inputs[i];
  if (!input->memory) return rn_eager_resource_device(op, i);
  return input->eager == op->eager ? input->memory : NULL;
}
static inline rn_device_t* rn_eager_output_memory(const rn_eager_kernel_t* kernel, int32_t i) {
  return kernel->output_places ? kernel->output_places[i].memory : NULL;
}
// INVALID_ARGUMENT in stock's words: |name| is no device, or only CPUs have a kernel for the op.
RN_MUST_USE rn_status_t rn_eager_no_device(rn_eager_t* eager, rn_str_t name, bool only_cpu);
// A number that identifies the calling thread.
uint64_t rn_eager_thread_id(void);
// The calling thread's executor if it is asynchronous, borrowed; otherwise NULL.
rn_eager_executor_t* rn_eager_async_executor(rn_eager_t* eager);

// Gets the values of |handles| into |out|, where |kernel| reads them. |*out_copies| is NULL, or has
// the values that had to be copied and is passed to rn_eager_copies_free after the call.
RN_MUST_USE rn_status_t rn_eager_values(const rn_eager_kernel_t* kernel,
                                        rn_eager_handle_t* const* handles, rn_tensor_t** out,
                                        rn_tensor_t** out_copies);
void rn_eager_copies_free(const rn_eager_kernel_t* kernel, rn_tensor_t* copies);  // NULL is fine
// The rest of rn_eager_values, for handles of which some are in other memory.
RN_MUST_USE rn_status_t rn_eager_move_inputs(const rn_eager_kernel_t* kernel,
                                             rn_eager_handle_t* const* handles, rn_tensor_t** out,
                                             rn_tensor_t** out_copies);
// Moves a constant, in host memory, to where its handle wants it.
RN_MUST_USE rn_status_t rn_eager_move_outputs(const rn_eager_kernel_t* kernel,
                                              rn_tensor_t* outputs);
// Copies |value|, in host memory, into the memory of |device|.
RN_MUST_USE rn_status_t rn_eager_upload(const rn_tensor_t* value, rn_device_t* device,
                                        rn_tensor_t* out);

// Runs |kernel| on values. |outputs| are unset before the call; on success the caller owns them.
RN_MUST_USE rn_status_t rn_eager_run(rn_eager_t* eager, const rn_eager_kernel_t* kernel,
                                     rn_eager_cancel_t* cancel, rn_tensor_t* const* inputs,
                                     rn_tensor_t* outputs);
// Queues a call and retains its handles. Fails with the executor's error if it has one.
RN_MUST_USE rn_status_t rn_eager_executor_add(rn_eager_executor_t* executor, rn_eager_t* eager,
                                              rn_eager_kernel_t* kernel, rn_eager_cancel_t* cancel,
                                              rn_eager_handle_t* const* inputs,
                                              rn_eager_handle_t* const* outputs);
// Queues a job, which is run or failed in its turn. Fails likewise; then the caller keeps the job.
RN_MUST_USE rn_status_t rn_eager_executor_add_job(rn_eager_executor_t* executor,
                                                  rn_eager_job_t* job);
rn_eager_sync_t* rn_eager_executor_sync(rn_eager_executor_t* executor);
void rn_eager_executor_retain(rn_eager_executor_t* executor);

// Records a call on the calling thread's tapes.
RN_MUST_USE rn_status_t rn_eager_record(rn_eager_t* eager, rn_eager_kernel_t* kernel,
                                        rn_eager_handle_t* const* inputs,
                                        rn_eager_handle_t* const* outputs);
void rn_eager_tape_cache_destroy(struct rn_tape_cache_t* cache);  // NULL is fine

#endif  // RUNNEL_EAGER_INTERNAL_H_
