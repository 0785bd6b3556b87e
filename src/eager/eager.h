// Eager execution: ops that run when they are called, on handles of tensors.
//
// A context owns devices, a library of functions and a cache of kernels, keyed by op, attributes,
// input types and device, so a call costs a look-up and the kernel. Any number of threads may
// execute in one context; an op description belongs to one thread at a time. An op that calls
// functions runs as a function of one node. On a device with its own memory, values stay in that
// memory; they are copied to and from the host where an op, a function or the client needs them.
#ifndef RUNNEL_EAGER_EAGER_H_
#define RUNNEL_EAGER_EAGER_H_

#include "function/function.h"
#include "session/session.h"

typedef struct rn_eager_t rn_eager_t;
typedef struct rn_eager_handle_t rn_eager_handle_t;
typedef struct rn_eager_op_t rn_eager_op_t;
typedef struct rn_eager_executor_t rn_eager_executor_t;

// --- Contexts

typedef struct rn_eager_options_t {
  rn_session_options_t session;
  bool is_async;
  int policy;  // TFE_ContextDevicePlacementPolicy; "warn" copies silently
} rn_eager_options_t;

// |env| must outlive the context. The caller owns a reference.
RN_MUST_USE rn_status_t rn_eager_create(const rn_eager_options_t* options, const rn_env_t* env,
                                        rn_allocator_t allocator, rn_eager_t** out);
void rn_eager_retain(rn_eager_t* eager);
void rn_eager_release(rn_eager_t* eager);  // NULL is fine
// Waits for queued calls, and leaves the cluster. No call may start meanwhile or afterwards.
void rn_eager_close(rn_eager_t* eager);

// Gives the context |count| CPUs. FAILED_PRECONDITION if an op has run, or a value is on a device
// other than the first.
RN_MUST_USE rn_status_t rn_eager_set_cpus(rn_eager_t* eager, int count);
// Renames the devices to those of |task|, "/job:worker/replica:0/task:0". No op may run meanwhile;
// names that callers borrowed stay valid.
RN_MUST_USE rn_status_t rn_eager_set_task(rn_eager_t* eager, rn_str_t task);
rn_session_t* rn_eager_session(rn_eager_t* eager);
rn_graph_t* rn_eager_library(rn_eager_t* eager);  // its functions are ops of the context
uint64_t rn_eager_id(const rn_eager_t* eager);    // different for every context of the process
void rn_eager_set_soft_placement(rn_eager_t* eager, bool enable);
// Clears the cache of kernels. Kernels in use are freed after their last use.
void rn_eager_clear_caches(rn_eager_t* eager);
// Adds |function| to the library. As in stock, a function that was added twice must be removed
// twice.
RN_MUST_USE rn_status_t rn_eager_add_function(rn_eager_t* eager, rn_function_t* function);
// The last removal drops it from the library, and drops the kernels that may call it.
RN_MUST_USE rn_status_t rn_eager_remove_function(rn_eager_t* eager, rn_str_t name);
// The placement policy of the calling thread.
void rn_eager_set_policy(rn_eager_t* eager, int policy);
int rn_eager_policy(rn_eager_t* eager);
// Resources of a step (stacks, TensorArrays) are freed when the last running step ends.
void rn_eager_start_step(rn_eager_t* eager);
void rn_eager_end_step(rn_eager_t* eager);
// Starts to collect statistics of calls. Taking them passes them to |use| and then clears them.
void rn_eager_enable_stats(rn_eager_t* eager, bool enable);
void rn_eager_take_stats(rn_eager_t* eager, void (*use)(void* arg, const rn_step_stats_t* stats),
                         void* arg);
// Starts to log every call and to keep the names of ops in the order of calls: "Add, Neg, ".
void rn_eager_set_logging(rn_eager_t* eager, bool enable);
RN_MUST_USE rn_status_t rn_eager_executed(rn_eager_t* eager, rn_strbuf_t* out);
// A key-value store shared by the users of a context. Writing an existing key is ALREADY_EXISTS.
// Reading waits up to |wait_ms| for the key. Removing a key also removes the keys below it
// ("key/…").
RN_MUST_USE rn_status_t rn_eager_set_value(rn_eager_t* eager, rn_str_t key, rn_str_t value);
RN_MUST_USE rn_status_t rn_eager_get_value(rn_eager_t* eager, rn_str_t key, int64_t wait_ms,
                                           rn_strbuf_t* out);
void rn_eager_remove_value(rn_eager_t* eager, rn_str_t key);
// The device called |name|; "" is the first CPU. INVALID_ARGUMENT in stock's words.
RN_MUST_USE rn_status_t rn_eager_device(rn_eager_t* eager, rn_str_t name, rn_device_t** out);
// "/device:CPU:0" for "/cpu:0"; false if |name| is not a device name.
bool rn_eager_device_canonical(rn_str_t name, rn_strbuf_t* out);

// --- Handles: counted, and immutable once they have their value.

// A handle that shares |tensor|, or copies it if it borrows its bytes.
RN_MUST_USE rn_status_t rn_eager_handle_create(const rn_tensor_t* tensor, rn_eager_handle_t** out);
// The same for a tensor whose bytes, which it owns, are in the memory of |device|.
RN_MUST_USE rn_status_t rn_eager_handle_over(const rn_tensor_t* tensor, rn_eager_t* eager,
                                             rn_device_t* device, rn_eager_handle_t** out);
void rn_eager_handle_retain(rn_eager_handle_t* handle);
void rn_eager_handle_release(rn_eager_handle_t* handle);  // NULL is fine
rn_dtype_t rn_eager_handle_dtype(const rn_eager_handle_t* handle);
// Waits for the value and returns it, borrowed and in host memory, or the error of the op that
// should have made it. A packed handle gives its first value; a handle on a custom device is
// UNIMPLEMENTED.
RN_MUST_USE rn_status_t rn_eager_handle_value(rn_eager_handle_t* handle, const rn_tensor_t** out);
// The same, in whatever memory it is: for its shape.
RN_MUST_USE rn_status_t rn_eager_handle_tensor(rn_eager_handle_t* handle, const rn_tensor_t** out);
// That error if it is already known; does not wait.
RN_MUST_USE rn_status_t rn_eager_handle_status(rn_eager_handle_t* handle);
// The device whose op made the value, and the device whose memory holds it. NUL-terminated; valid
// as long as |handle|.
const char* rn_eager_handle_device(const rn_eager_handle_t* handle);
const char* rn_eager_handle_device_type(const rn_eager_handle_t* handle);
const char* rn_eager_handle_backing_device(const rn_eager_handle_t* handle);
// The device of an ordinary handle as |eager| knows it.
const rn_device_t* rn_eager_handle_own_device(const rn_eager_handle_t* handle,
                                              const rn_eager_t* eager);
// Copies the value to |device|; returns the same handle, retained, if it is there already.
RN_MUST_USE rn_status_t rn_eager_handle_copy_to(rn_eager_handle_t* handle, rn_eager_t* eager,
                                                rn_device_t* device, rn_eager_handle_t** out);

// --- Custom devices: what runs on them, and what their values are, is the client's business.

// A value that only its device understands.
typedef struct rn_eager_foreign_t {
  void* self;
  rn_status_t (*rank)(void* self, int* out);
  rn_status_t (*dim)(void* self, int axis, int64_t* out);
  void (*destroy)(void* self);
} rn_eager_foreign_t;

// Handles that functions give out are the caller's.
typedef struct rn_eager_custom_device_t {
  void* self;
  // A device of another task. An op runs there if it names the device or uses a resource on it;
  // otherwise its values are copied like those of any device.
  bool is_remote;
  rn_status_t (*copy_to)(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                         rn_eager_handle_t** out);
  rn_status_t (*copy_from)(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                           const char* device, rn_eager_handle_t** out);
  rn_status_t (*execute)(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                         int32_t* inout_count);
  // NULL if the device cannot pack handles.
  rn_status_t (*pack)(void* self, rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                      rn_eager_handle_t** out);
  void (*destroy)(void* self);
} rn_eager_custom_device_t;

// Adds a device to |eager|, which destroys it when the context is freed; after a failure the caller
// keeps it. INVALID_ARGUMENT if the name is not a full device name, ALREADY_EXISTS if it is taken.
RN_MUST_USE rn_status_t rn_eager_add_custom_device(rn_eager_t* eager, rn_str_t name,
                                                   const rn_eager_custom_device_t* device);
bool rn_eager_has_custom_device(rn_eager_t* eager, rn_str_t name);
bool rn_eager_is_remote_device(rn_eager_t* eager, rn_str_t name);
// The cluster that the remote devices of a context belong to.
typedef struct rn_eager_cluster_t {
  void* self;
  // Runs a call of a function that is not on a remote device by itself. |*out_done| is false if all
  // of it is to run here, after its inputs have been brought here.
  rn_status_t (*call)(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                      int32_t* inout_count, bool* out_done);
  void (*forget)(void* self, rn_str_t function);  // a function was removed from the context
  void (*close)(void* self);                      // no call will come any more; called once
  void (*destroy)(void* self);                    // after all values are gone
} rn_eager_cluster_t;
// The context owns the cluster from now on. FAILED_PRECONDITION if it has one.
RN_MUST_USE rn_status_t rn_eager_set_cluster(rn_eager_t* eager, const rn_eager_cluster_t* cluster);
void* rn_eager_cluster(rn_eager_t* eager);  // its |self|; NULL: none
// A handle of |value| on the custom device |name|; the handle owns the value.
RN_MUST_USE rn_status_t rn_eager_custom_handle(rn_eager_t* eager, rn_str_t name, rn_dtype_t dtype,
                                               const rn_eager_foreign_t* value,
                                               rn_eager_handle_t** out);
// The custom-device value of |handle|; NULL for an ordinary value.
const rn_eager_foreign_t* rn_eager_handle_custom(const rn_eager_handle_t* handle);
// The values of a packed handle, borrowed; their number is 0 if it is not packed.
int32_t rn_eager_handle_parts(const rn_eager_handle_t* handle, rn_eager_handle_t* const** out);
// Waits until |handle| has its value, wherever that is, or its error, which it returns.
RN_MUST_USE rn_status_t rn_eager_handle_wait(rn_eager_handle_t* handle);

// What a remote device, or the cluster, queues on an asynchronous executor. |run| is called once,
// on the executor's thread: it settles the results of the call and frees the job. |earlier| is the
// error of a call before it, which it takes: then it does nothing else. Returns how it ended.
typedef struct rn_eager_job_t {
  rn_status_t (*run)(struct rn_eager_job_t* job, rn_status_t earlier);
} rn_eager_job_t;
// Queues |job| on the calling thread's executor, which is asynchronous. On failure, with the
// executor's error if it has one, the caller keeps it.
RN_MUST_USE rn_status_t rn_eager_queue(rn_eager_t* eager, rn_eager_job_t* job);
bool rn_eager_is_async(rn_eager_t* eager);  // whether the calling thread's executor is
// A handle of a value that a job will make: on the custom device |name|, which settling may change,
// or, if |value| is NULL, on |device| of the session.
RN_MUST_USE rn_status_t rn_eager_pending_handle(rn_eager_t* eager, rn_str_t name,
                                                rn_device_t* device, rn_dtype_t dtype,
                                                const rn_eager_foreign_t* value,
                                                rn_eager_handle_t** out);
// Ends the wait for it. Copies |status|. |name| is the custom device of the value; |tensor| is
// moved into an ordinary handle.
void rn_eager_settle_custom(rn_eager_handle_t* handle, rn_str_t name, rn_status_t status);
void rn_eager_settle(rn_eager_handle_t* handle, rn_tensor_t* tensor, rn_status_t status);

// Copies |handle| to the device |name|, custom or not.
RN_MUST_USE rn_status_t rn_eager_handle_copy_to_name(rn_eager_handle_t* handle, rn_eager_t* eager,
                                                     rn_str_t name, rn_eager_handle_t** out);
// Lets a custom device copy |handle| to the first CPU.
RN_MUST_USE rn_status_t rn_eager_handle_to_host(rn_eager_handle_t* handle, rn_eager_handle_t** out);
// One handle over values of one type and shape on several devices: an op takes the one on its own
// device.
RN_MUST_USE rn_status_t rn_eager_pack(rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                                      rn_eager_handle_t** out);

// --- Ops

// What is known of a tensor without running anything. |value| takes precedence over the rest.
typedef struct rn_eager_shape_t {
  rn_dtype_t dtype;  // RN_INVALID: from the op's attributes
  rn_shape_t shape;
  const rn_tensor_t* value;  // Borrowed; NULL: not known
} rn_eager_shape_t;

// Infers the outputs of |op| for such inputs; the inputs of |op| itself are ignored. Undetermined
// input types are guessed, and output types are then RN_INVALID. Results live in |arena|.
RN_MUST_USE rn_status_t rn_eager_op_infer(const rn_eager_op_t* op, const rn_eager_shape_t* inputs,
                                          int32_t count, rn_arena_t* arena, rn_eager_shape_t** out,
                                          int32_t* out_count);

// NOT_FOUND, in stock's words, if |name| is neither an op nor a function of the context.
RN_MUST_USE rn_status_t rn_eager_op_create(rn_eager_t* eager, rn_str_t name, rn_eager_op_t** out);
void rn_eager_op_destroy(rn_eager_op_t* op);  // NULL is fine
// Reuses |op| as a new description, of |name| on |device|.
RN_MUST_USE rn_status_t rn_eager_op_reset(rn_eager_op_t* op, rn_str_t name, rn_str_t device);
rn_eager_t* rn_eager_op_context(const rn_eager_op_t* op);
const rn_op_def_t* rn_eager_op_def(const rn_eager_op_t* op);
// The definition of |name| in |eager|; NULL if there is none. It lives as long as the context.
const rn_op_def_t* rn_eager_find_def(rn_eager_t* eager, rn_str_t name);
RN_MUST_USE rn_status_t rn_eager_no_such_op(rn_str_t name);
RN_MUST_USE rn_status_t rn_eager_op_set_device(rn_eager_op_t* op, rn_str_t device);
const char* rn_eager_op_device(const rn_eager_op_t* op);
// One argument: a tensor, or a list of them.
RN_MUST_USE rn_status_t rn_eager_op_add_input(rn_eager_op_t* op, rn_eager_handle_t* input);
RN_MUST_USE rn_status_t rn_eager_op_add_list(rn_eager_op_t* op, rn_eager_handle_t* const* inputs,
                                             int32_t count);
int32_t rn_eager_op_input_count(const rn_eager_op_t* op);
rn_eager_handle_t* rn_eager_op_input(const rn_eager_op_t* op, int32_t i);  // Borrowed
// Copies |value|. A failure is kept and reported when the op is executed.
void rn_eager_op_set_attr(rn_eager_op_t* op, rn_str_t name, const rn_attr_value_t* value);
void rn_eager_op_fail(rn_eager_op_t* op, rn_status_t status);  // keeps the first; takes |status|
bool rn_eager_op_has_attr(const rn_eager_op_t* op, rn_str_t name);  // whether the client set it
typedef rn_status_t (*rn_eager_see_attr_t)(void* arg, rn_str_t name, const rn_attr_value_t* value);
// Visits the attributes that the client set, first those of the definition in its order, then
// others.
RN_MUST_USE rn_status_t rn_eager_op_each_attr(const rn_eager_op_t* op, rn_eager_see_attr_t see,
                                              void* arg);
// Visits the attributes that the client did not set but that follow from the inputs so far or have
// a default. Values are borrowed for the call.
RN_MUST_USE rn_status_t rn_eager_op_each_implied(const rn_eager_op_t* op, bool with_defaults,
                                                 rn_eager_see_attr_t see, void* arg);
// The number of tensors of argument |name|, as far as known.
RN_MUST_USE rn_status_t rn_eager_op_length(const rn_eager_op_t* op, rn_str_t name, bool is_output,
                                           int32_t* out);

// What cancels ops. An op that goes on after rn_eager_execute holds it.
typedef struct rn_eager_cancel_t {
  rn_cancel_t cancel;
  // When the owner and all ops have released it; NULL: the owner outlives them.
  void (*free_fn)(struct rn_eager_cancel_t* cancel);
  _Atomic int holds;  // of ops
} rn_eager_cancel_t;
void rn_eager_cancel_hold(rn_eager_cancel_t* cancel);     // NULL is fine
void rn_eager_cancel_release(rn_eager_cancel_t* cancel);  // for the owner too; NULL is fine
// Borrowed until rn_eager_execute returns; NULL for none.
void rn_eager_op_set_cancel(rn_eager_op_t* op, rn_eager_cancel_t* cancel);
rn_eager_cancel_t* rn_eager_op_cancel(const rn_eager_op_t* op);

// Runs the op. |*inout_count| is the capacity of |outputs| and becomes their number; the caller
// owns the handles. With an asynchronous executor, the handles and the executor report later
// errors.
RN_MUST_USE rn_status_t rn_eager_execute(rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                         int32_t* inout_count);

// --- Executors: queues, each with a thread of its own if it is asynchronous. Counted.

RN_MUST_USE rn_status_t rn_eager_executor_create(rn_allocator_t allocator, bool is_async,
                                                 rn_eager_executor_t** out);
// The last release waits for queued calls.
void rn_eager_executor_release(rn_eager_executor_t* executor);  // NULL is fine
bool rn_eager_executor_is_async(const rn_eager_executor_t* executor);
// Waits for queued calls; returns the first error since the last clear.
RN_MUST_USE rn_status_t rn_eager_executor_wait(rn_eager_executor_t* executor);
void rn_eager_executor_clear_error(rn_eager_executor_t* executor);
// The executor of the calling thread; NULL: the context's own.
RN_MUST_USE rn_status_t rn_eager_set_executor(rn_eager_t* eager, rn_eager_executor_t* executor);
rn_eager_executor_t* rn_eager_get_executor(rn_eager_t* eager);  // Retained
// Waits for all executors of the context.
RN_MUST_USE rn_status_t rn_eager_wait(rn_eager_t* eager);

#endif  // RUNNEL_EAGER_EAGER_H_
