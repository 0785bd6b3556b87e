// Eager execution: ops that run when they are called, on handles of tensors.
//
// A context owns devices, a library of functions and the kernels it has made so far, found again by
// op, attributes, input types and device; so a call costs a look-up and the kernel. Any number of
// threads may execute in one context; an op description belongs to one thread at a time. What
// calls functions runs as a function of one node, and what runs on a device with memory of its own
// as a step, through the context's session.
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
  int policy;  // TFE_ContextDevicePlacementPolicy; to warn is to copy silently
} rn_eager_options_t;

// |env| must outlive the context. The caller owns a reference.
RN_MUST_USE rn_status_t rn_eager_create(const rn_eager_options_t* options, const rn_env_t* env,
                                        rn_allocator_t allocator, rn_eager_t** out);
void rn_eager_retain(rn_eager_t* eager);
void rn_eager_release(rn_eager_t* eager);  // NULL is fine
// Waits for what is queued; nothing new may be executed meanwhile or afterwards.
void rn_eager_close(rn_eager_t* eager);

// Gives the context |count| CPUs. FAILED_PRECONDITION once something has run, or lies on a device
// other than the first.
RN_MUST_USE rn_status_t rn_eager_set_cpus(rn_eager_t* eager, int count);
// From now on the devices are those of |task|, "/job:worker/replica:0/task:0". Nothing may run
// meanwhile; names that were lent stay.
RN_MUST_USE rn_status_t rn_eager_set_task(rn_eager_t* eager, rn_str_t task);
rn_session_t* rn_eager_session(rn_eager_t* eager);
rn_graph_t* rn_eager_library(rn_eager_t* eager);  // whose functions are ops of the context
uint64_t rn_eager_id(const rn_eager_t* eager);    // different for every context of the process
void rn_eager_set_soft_placement(rn_eager_t* eager, bool enable);
// Forgets kernels; those in use go when they are not any more.
void rn_eager_clear_caches(rn_eager_t* eager);
// Adds |function| to the library. As in stock, what was added twice must be removed twice.
RN_MUST_USE rn_status_t rn_eager_add_function(rn_eager_t* eager, rn_function_t* function);
// The last removal takes it out of the library, and the kernels that may call it.
RN_MUST_USE rn_status_t rn_eager_remove_function(rn_eager_t* eager, rn_str_t name);
// The placement policy of the calling thread.
void rn_eager_set_policy(rn_eager_t* eager, int policy);
int rn_eager_policy(rn_eager_t* eager);
// Resources of a step (stacks, TensorArrays) go with the end of the last step that was started.
void rn_eager_start_step(rn_eager_t* eager);
void rn_eager_end_step(rn_eager_t* eager);
// From now on what runs is noted, until it is taken: |use| sees it before it is forgotten.
void rn_eager_enable_stats(rn_eager_t* eager, bool enable);
void rn_eager_take_stats(rn_eager_t* eager, void (*use)(void* arg, const rn_step_stats_t* stats),
                         void* arg);
// From now on every call is logged, and its op's name kept: "Add, Neg, ", in the order of calls.
void rn_eager_set_logging(rn_eager_t* eager, bool enable);
RN_MUST_USE rn_status_t rn_eager_executed(rn_eager_t* eager, rn_strbuf_t* out);
// Values that the users of a context leave for each other. A key that is there is ALREADY_EXISTS.
// Reading waits up to |wait_ms| for it; removing takes what is below it ("key/…") too.
RN_MUST_USE rn_status_t rn_eager_set_value(rn_eager_t* eager, rn_str_t key, rn_str_t value);
RN_MUST_USE rn_status_t rn_eager_get_value(rn_eager_t* eager, rn_str_t key, int64_t wait_ms,
                                           rn_strbuf_t* out);
void rn_eager_remove_value(rn_eager_t* eager, rn_str_t key);
// The device that |name| means; "" is the first CPU. INVALID_ARGUMENT in stock's words.
RN_MUST_USE rn_status_t rn_eager_device(rn_eager_t* eager, rn_str_t name, rn_device_t** out);
// "/device:CPU:0" for "/cpu:0"; false if |name| is no device name.
bool rn_eager_device_canonical(rn_str_t name, rn_strbuf_t* out);

// --- Handles: counted, and immutable once they have their value.

// A handle of |tensor|, shared (copied if it only borrows its bytes).
RN_MUST_USE rn_status_t rn_eager_handle_create(const rn_tensor_t* tensor, rn_eager_handle_t** out);
void rn_eager_handle_retain(rn_eager_handle_t* handle);
void rn_eager_handle_release(rn_eager_handle_t* handle);  // NULL is fine
rn_dtype_t rn_eager_handle_dtype(const rn_eager_handle_t* handle);
// The value, borrowed, once it is there; else the error of the op that was to make it. Of a packed
// handle, the first of its values; of one on a custom device, UNIMPLEMENTED.
RN_MUST_USE rn_status_t rn_eager_handle_value(rn_eager_handle_t* handle, const rn_tensor_t** out);
// That error if it is known already; does not wait.
RN_MUST_USE rn_status_t rn_eager_handle_status(rn_eager_handle_t* handle);
// The device whose op made it, and the one whose memory has it. NUL-terminated, live as long as
// |handle|.
const char* rn_eager_handle_device(const rn_eager_handle_t* handle);
const char* rn_eager_handle_device_type(const rn_eager_handle_t* handle);
const char* rn_eager_handle_backing_device(const rn_eager_handle_t* handle);
// A handle on |device|; the same one, retained, if it is there already.
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
  // A device of another task: ops go there when they ask for it, or for a resource that is there;
  // otherwise its values are copied like those of any device.
  bool is_remote;
  rn_status_t (*copy_to)(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                         rn_eager_handle_t** out);
  rn_status_t (*copy_from)(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                           const char* device, rn_eager_handle_t** out);
  rn_status_t (*execute)(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                         int32_t* inout_count);
  // NULL: handles cannot be packed on it.
  rn_status_t (*pack)(void* self, rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                      rn_eager_handle_t** out);
  void (*destroy)(void* self);
} rn_eager_custom_device_t;

// Adds a device to |eager|, which destroys it in the end; a failed call leaves it to the caller.
// INVALID_ARGUMENT for a name that is no full device name, ALREADY_EXISTS for one that is taken.
RN_MUST_USE rn_status_t rn_eager_add_custom_device(rn_eager_t* eager, rn_str_t name,
                                                   const rn_eager_custom_device_t* device);
bool rn_eager_has_custom_device(rn_eager_t* eager, rn_str_t name);
bool rn_eager_is_remote_device(rn_eager_t* eager, rn_str_t name);
// What the remote devices of a context belong to, freed with it, after all values. Set once, else
// FAILED_PRECONDITION.
RN_MUST_USE rn_status_t rn_eager_set_cluster(rn_eager_t* eager, void* cluster,
                                             void (*destroy)(void* cluster));
void* rn_eager_cluster(rn_eager_t* eager);  // NULL: none
// A handle of |value| on the custom device |name|; it destroys the value in the end.
RN_MUST_USE rn_status_t rn_eager_custom_handle(rn_eager_t* eager, rn_str_t name, rn_dtype_t dtype,
                                               const rn_eager_foreign_t* value,
                                               rn_eager_handle_t** out);
// What |handle| holds of a custom device; NULL: an ordinary value.
const rn_eager_foreign_t* rn_eager_handle_custom(const rn_eager_handle_t* handle);
// A handle on the device |name|, custom or not.
RN_MUST_USE rn_status_t rn_eager_handle_copy_to_name(rn_eager_handle_t* handle, rn_eager_t* eager,
                                                     rn_str_t name, rn_eager_handle_t** out);
// What a custom device copies of |handle| to the first CPU.
RN_MUST_USE rn_status_t rn_eager_handle_to_host(rn_eager_handle_t* handle, rn_eager_handle_t** out);
// One handle over values of one type and shape on several devices: an op takes the one that lies on
// its own device.
RN_MUST_USE rn_status_t rn_eager_pack(rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                                      rn_eager_handle_t** out);

// --- Ops

// What is known of a tensor without running anything. A |value| goes before the rest.
typedef struct rn_eager_shape_t {
  rn_dtype_t dtype;  // RN_INVALID: as the op's attributes say
  rn_shape_t shape;
  const rn_tensor_t* value;  // Borrowed; NULL: not known
} rn_eager_shape_t;

// What the outputs of |op| would be for such inputs; its own inputs do not count. Types of inputs
// that nothing settles are guessed, and those of outputs are then RN_INVALID. Results live in
// |arena|.
RN_MUST_USE rn_status_t rn_eager_op_infer(const rn_eager_op_t* op, const rn_eager_shape_t* inputs,
                                          int32_t count, rn_arena_t* arena, rn_eager_shape_t** out,
                                          int32_t* out_count);

// NOT_FOUND, in stock's words, if |name| is neither an op nor a function of the context.
RN_MUST_USE rn_status_t rn_eager_op_create(rn_eager_t* eager, rn_str_t name, rn_eager_op_t** out);
void rn_eager_op_destroy(rn_eager_op_t* op);  // NULL is fine
// Makes it a new description, of |name| on |device|.
RN_MUST_USE rn_status_t rn_eager_op_reset(rn_eager_op_t* op, rn_str_t name, rn_str_t device);
rn_eager_t* rn_eager_op_context(const rn_eager_op_t* op);
const rn_op_def_t* rn_eager_op_def(const rn_eager_op_t* op);
// The definition that |name| means in |eager|; NULL for none. It lives as long as the context.
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
bool rn_eager_op_has_attr(const rn_eager_op_t* op, rn_str_t name);  // that was given
typedef rn_status_t (*rn_eager_see_attr_t)(void* arg, rn_str_t name, const rn_attr_value_t* value);
// All attributes that were given, in the order of the definition, then others.
RN_MUST_USE rn_status_t rn_eager_op_each_attr(const rn_eager_op_t* op, rn_eager_see_attr_t see,
                                              void* arg);
// Those that were not given but follow from the inputs so far, or else have a default. Values are
// lent for the call.
RN_MUST_USE rn_status_t rn_eager_op_each_implied(const rn_eager_op_t* op, bool with_defaults,
                                                 rn_eager_see_attr_t see, void* arg);
// How many tensors argument |name| stands for, by what is known so far.
RN_MUST_USE rn_status_t rn_eager_op_length(const rn_eager_op_t* op, rn_str_t name, bool is_output,
                                           int32_t* out);
// Borrowed until the execution is over; NULL: none.
void rn_eager_op_set_cancel(rn_eager_op_t* op, rn_cancel_t* cancel);
// Runs the op. |*inout_count| is the room in |outputs| and becomes their number; the caller owns
// the handles. With an asynchronous executor, what goes wrong later is said by the handles and the
// executor.
RN_MUST_USE rn_status_t rn_eager_execute(rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                         int32_t* inout_count);

// --- Executors: queues, each with a thread of its own if it is asynchronous. Counted.

RN_MUST_USE rn_status_t rn_eager_executor_create(rn_allocator_t allocator, bool is_async,
                                                 rn_eager_executor_t** out);
// The last release waits for what is queued.
void rn_eager_executor_release(rn_eager_executor_t* executor);  // NULL is fine
bool rn_eager_executor_is_async(const rn_eager_executor_t* executor);
// Waits; the first error since it was cleared.
RN_MUST_USE rn_status_t rn_eager_executor_wait(rn_eager_executor_t* executor);
void rn_eager_executor_clear_error(rn_eager_executor_t* executor);
// The executor of the calling thread; NULL: the context's own.
RN_MUST_USE rn_status_t rn_eager_set_executor(rn_eager_t* eager, rn_eager_executor_t* executor);
rn_eager_executor_t* rn_eager_get_executor(rn_eager_t* eager);  // Retained
// Waits for all executors of the context.
RN_MUST_USE rn_status_t rn_eager_wait(rn_eager_t* eager);

#endif  // RUNNEL_EAGER_EAGER_H_
