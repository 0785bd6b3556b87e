// Shared by the files of the eager client.
#ifndef RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_
#define RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_

#include "base/map.h"
#include "dist/coordination/agent.h"
#include "dist/eager/client.h"
#include "dist/eager/peers.h"
#include "dist/rpc/codec.h"

typedef struct rn_far_t rn_far_t;

// A device of another task.
typedef struct rn_far_device_t {
  rn_eager_client_t* client;
  rn_far_t* task;
  rn_str_t name, type, description;
  int64_t memory_limit;
  uint64_t incarnation;
} rn_far_device_t;

typedef struct rn_far_name_t {
  int64_t op;
  int32_t output;
} rn_far_name_t;

// Another task. It is never removed, nor are its devices.
struct rn_far_t {
  rn_str_t name, job;
  int32_t index;
  rn_str_t address;
  rn_mutex_t mutex;    // guards what follows
  uint64_t context;    // the open context; 0: none
  uint64_t opening;    // counts the contexts that it had: values of an earlier one are gone
  uint64_t opened_at;  // the client's view that it belongs to
  uint64_t view;       // of its context: updates that failed on other tasks do not count
  RN_VEC(rn_far_device_t*) devices;
  RN_VEC(rn_far_name_t) dropped;     // values that it may free
  RN_VEC(rn_function_t*) functions;  // Retained: those that it has
};

struct rn_eager_client_t {
  rn_agent_t* agent;    // Owned; NULL: the cluster has no coordination
  rn_job_t aborting;    // ends collectives after |failure|
  rn_status_t failure;  // Owned: of a task of the cluster
  rn_server_t* server;  // Owned: this process as a task of the cluster; NULL: it is none
  struct rn_eager_context_t* home;  // Retained: of this process, for other tasks; NULL: none
  rn_tokens_t* tokens;              // whose own one is sent to every task; Owned; NULL: none
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_eager_t* eager;  // Borrowed: it owns this
  rn_loop_t* loop;
  rn_eager_peers_t* peers;
  int64_t lease_ns;
  rn_timer_t timer;    // keeps contexts alive
  rn_mutex_t mutex;    // guards what follows
  rn_mutex_t joining;  // one at a time; before |mutex|
  rn_arena_t arena;    // tasks, devices, names
  RN_VEC(rn_far_t*) tasks;
  uint64_t context, view;
  int64_t keep_alive_s;
  rn_str_t here;  // the name of this process's first device in the cluster
  int64_t next_op;
  int pulse_count;  // calls under way
  rn_cond_t changed;
  bool is_closing;
};

// Calls |task| and waits; takes |request|. On success |out| is the response, which the caller
// clears.
RN_MUST_USE rn_status_t rn_far_ask(rn_eager_client_t* client, const rn_far_t* task,
                                   const char* path, rn_message_t* request, int64_t deadline_ns,
                                   bool waits_for_ready, rn_message_t* out);
// The functions that |task| has are told again before the next call.
void rn_far_forget_functions(rn_far_t* task);
int64_t rn_far_next_op(rn_eager_client_t* client);
// Adds the tasks of |def| to the client's present view.
RN_MUST_USE rn_status_t rn_far_take_tasks(rn_eager_client_t* client, const rn_pb_ServerDef_t* def);
// Opens contexts on the tasks of the present view, or sends it to those that have one.
RN_MUST_USE rn_status_t rn_far_open_all(rn_eager_client_t* client, const rn_eager_join_t* join,
                                        const rn_pb_ServerDef_t* def);
// Closes the contexts on tasks that are not in the present view, or on all.
void rn_far_close_all(rn_eager_client_t* client, bool all);
// Keeps the contexts alive.
void rn_far_on_timer(rn_timer_t* timer);
// |device| as other tasks see it; borrows its strings.
rn_device_info_t rn_far_device_info(const rn_far_device_t* device);
// The device of |client| with this name; NULL: none.
rn_far_device_t* rn_far_find_device(rn_eager_client_t* client, rn_str_t name);
// --- Values on other tasks (far.c)

typedef struct rn_far_value_t {
  rn_far_device_t* device;
  uint64_t context;
  uint64_t opening;  // of its task, when it was made
  rn_far_name_t name;
  int rank;
  int64_t dims[RN_MAX_RANK];
} rn_far_value_t;

// The value of |handle| if it is on another task; else NULL. It is complete once the handle has
// been waited for.
rn_far_value_t* rn_far_value(const rn_eager_handle_t* handle);
// A handle of a value that |device|'s task has under |name|; |shape| is a TensorShapeProto.
RN_MUST_USE rn_status_t rn_far_make_handle(rn_far_device_t* device, uint64_t context,
                                           rn_far_name_t name, rn_dtype_t dtype, rn_str_t shape,
                                           rn_eager_handle_t** out);
// The same for a value that a queued job will make, and the end of the wait for it, on |device|.
RN_MUST_USE rn_status_t rn_far_make_pending(rn_far_device_t* device, uint64_t context,
                                            rn_far_name_t name, rn_dtype_t dtype,
                                            rn_eager_handle_t** out);
void rn_far_settle(rn_eager_handle_t* handle, rn_far_device_t* device, rn_str_t shape,
                   rn_status_t status);
uint64_t rn_far_context(rn_far_t* task);  // the open context on |task|; 0: none
uint64_t rn_far_opening(rn_far_t* task);
// |task| may free a value of that opening.
void rn_far_forget(rn_eager_client_t* client, rn_far_t* task, uint64_t opening, rn_far_name_t name);
// Writes a RemoteTensorHandle, by itself or as field |number|; |device| "": just its name.
void rn_far_write_handle(rn_strbuf_t* out, rn_far_name_t name, rn_str_t device, rn_dtype_t dtype);
void rn_far_put_handle(rn_strbuf_t* out, uint32_t number, rn_far_name_t name, rn_str_t device,
                       rn_dtype_t dtype);
// Writes an attribute of an Operation.
RN_MUST_USE rn_status_t rn_far_put_attr(rn_strbuf_t* out, rn_str_t name,
                                        const rn_attr_value_t* value);
// Runs encoded |items| of |task|'s queue. On success the caller clears |out|; the second ignores
// the response.
RN_MUST_USE rn_status_t rn_far_enqueue(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                                       rn_str_t items, rn_message_t* out);
RN_MUST_USE rn_status_t rn_far_tell(rn_eager_client_t* client, rn_far_t* task, uint64_t context,
                                    rn_str_t items);
// Copies a value of another task, or one of this process, to |device|'s task under the number |id|.
RN_MUST_USE rn_status_t rn_far_bring(rn_far_device_t* device, uint64_t context,
                                     const rn_far_value_t* value, rn_dtype_t dtype, int64_t id);
RN_MUST_USE rn_status_t rn_far_upload(rn_far_device_t* device, uint64_t context, int64_t id,
                                      const rn_tensor_t* tensor);
RN_MUST_USE rn_status_t rn_far_check_movable(const rn_far_device_t* to, rn_dtype_t dtype,
                                             const char* from);

// Tells |task| the functions of the context that it does not know.
RN_MUST_USE rn_status_t rn_far_tell_functions(rn_eager_client_t* client, rn_far_t* task,
                                              uint64_t context);

// --- Ops on other tasks (far_call.c)

RN_MUST_USE rn_status_t rn_far_execute(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                       int32_t* inout_count);

// The table behind |device|; see eager/eager.h.
rn_eager_custom_device_t rn_far_table(rn_far_device_t* device);

#endif  // RUNNEL_DIST_EAGER_CLIENT_INTERNAL_H_
