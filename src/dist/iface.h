// The calls between tasks, independent of the transport: one record type per call, one vtable per
// service.
//
// A call is asynchronous. Its record holds the request and room for the response. The caller owns
// the record and keeps it in place until |done| is called: once, on any thread, with no locks held,
// and with a status that |done| owns. The request's strings are borrowed for the same time.
#ifndef RUNNEL_DIST_IFACE_H_
#define RUNNEL_DIST_IFACE_H_

#include "base/arena.h"
#include "base/str.h"
#include "framework/cancel.h"
#include "net/caller.h"
#include "tensor/tensor.h"

// Every call, in one list per service: X(side, name, Method, speed, answer, again). It makes the
// vtables, the forwarders, the methods of the gRPC services, the dispatch and the kinds of records
// (records.h). A new call is a line here, its record below and its implementations.
//   name     the vtable's function, and the record rn_<name>_t
//   Method   of the gRPC service
//   speed    QUICK: may run on the network's thread
//   answer   ANSWERS with a message of its own, or just with a status: ACKS
//   again    whether it may be made again after a broken connection (repeat.h): IDEMPOTENT calls
//            may; NUMBERED ones may under the number of rn_<name>_number, which the callee fences
//            (worker/fence.h); ONCE: never
#define RN_WORKER_CALLS(X)                                                       \
  X(worker, run_graph, RunGraph, QUICK, ANSWERS, NUMBERED)                       \
  X(worker, recv_tensor, RecvTensor, QUICK, ANSWERS, NUMBERED)                   \
  X(worker, cleanup_graph, CleanupGraph, QUICK, ACKS, IDEMPOTENT)                \
  /* A liveness probe: retrying would hide the answer. */                        \
  X(worker, get_status, GetStatus, QUICK, ANSWERS, ONCE)                         \
  X(worker, create_worker_session, CreateWorkerSession, QUICK, ACKS, IDEMPOTENT) \
  /* Callers retry this one themselves. */                                       \
  X(worker, delete_worker_session, DeleteWorkerSession, SLOW, ACKS, ONCE)        \
  /* A graph that was registered twice goes with its session. */                 \
  X(worker, register_graph, RegisterGraph, SLOW, ANSWERS, IDEMPOTENT)            \
  X(worker, deregister_graph, DeregisterGraph, SLOW, ACKS, IDEMPOTENT)           \
  X(worker, cleanup_all, CleanupAll, SLOW, ACKS, IDEMPOTENT)                     \
  /* Waits until all members of the group have made it. */                       \
  X(worker, complete_group, CompleteGroup, SLOW, ANSWERS, IDEMPOTENT)            \
  /* Likewise, if it is a broadcast. */                                          \
  X(worker, complete_instance, CompleteInstance, SLOW, ANSWERS, IDEMPOTENT)      \
  /* A value is taken once: if the connection breaks, the collective fails. */   \
  X(worker, recv_buf, RecvBuf, QUICK, ANSWERS, ONCE)                             \
  X(worker, get_step_sequence, GetStepSequence, QUICK, ANSWERS, IDEMPOTENT)      \
  /* Requests that switch logging on are counted. */                             \
  X(worker, logging, Logging, QUICK, ANSWERS, ONCE)

#define RN_MASTER_CALLS(X)                                 \
  X(master, run_step, RunStep, QUICK, ANSWERS)             \
  X(master, run_callable, RunCallable, QUICK, ANSWERS)     \
  X(master, create_session, CreateSession, SLOW, ANSWERS)  \
  X(master, extend_session, ExtendSession, SLOW, ANSWERS)  \
  X(master, partial_setup, PartialRunSetup, SLOW, ANSWERS) \
  X(master, close_session, CloseSession, SLOW, ACKS)       \
  X(master, list_devices, ListDevices, QUICK, ANSWERS)     \
  X(master, reset, Reset, SLOW, ACKS)                      \
  X(master, make_callable, MakeCallable, SLOW, ANSWERS)    \
  X(master, release_callable, ReleaseCallable, QUICK, ACKS)

typedef struct rn_call_t {
  void (*done)(struct rn_call_t* call, rn_status_t status);
  void* owner;           // for the caller's use
  int64_t deadline_ns;   // of the environment's clock; INT64_MAX: none
  rn_cancel_t* cancel;   // Borrowed; NULL if the call cannot be cancelled
  rn_caller_t* caller;   // Borrowed; for the callee: the connection of the call; NULL: none
  bool waits_for_ready;  // waits until the task can be reached instead of failing
  bool is_broken;  // response: the connection broke after the request was sent, which may have
                   // arrived
} rn_call_t;

typedef struct rn_named_tensor_t {
  rn_str_t name;
  rn_tensor_t value;
} rn_named_tensor_t;

// A device as other tasks see it.
typedef struct rn_device_info_t {
  rn_str_t name, type;
  int64_t memory_limit;
  uint64_t incarnation;
  rn_str_t description;  // of the hardware; "": none
} rn_device_info_t;

// Calls to a worker.

typedef struct rn_get_status_t {
  rn_call_t call;
  rn_arena_t arena;  // Owned by the caller; holds the response
  rn_device_info_t* devices;
  size_t device_count;
  bool is_ours;  // response: the task is Runnel's, so it knows our extensions of the protocol
} rn_get_status_t;

typedef struct rn_create_worker_session_t {
  rn_call_t call;
  rn_str_t session;
  rn_str_t job;  // the job and task that the master expects here
  int32_t task;
  rn_str_t cluster;  // a ClusterDef that the session's client gives; "": that of the server
  bool isolates;     // the session has its own state
  rn_str_t master;
  uint64_t master_incarnation;
} rn_create_worker_session_t;

typedef struct rn_delete_worker_session_t {
  rn_call_t call;
  rn_str_t session;
} rn_delete_worker_session_t;

typedef struct rn_register_graph_t {
  rn_call_t call;
  rn_str_t session, graph_def, config;
  int64_t collective_key;  // 0: the graph has no collectives; for stock's tasks
  char handle[32];         // response, NUL-terminated
} rn_register_graph_t;

typedef struct rn_deregister_graph_t {
  rn_call_t call;
  rn_str_t session, handle;
} rn_deregister_graph_t;

// Receives the values that a part has sent to other tasks by the time it first waits, or ends.
// |takes| gets the rendezvous key; it moves the value out and returns true, or leaves it.
typedef struct rn_outbox_t {
  bool (*takes)(struct rn_outbox_t* outbox, rn_str_t key, rn_tensor_t* value);
} rn_outbox_t;

typedef struct rn_run_graph_t {
  rn_call_t call;
  rn_str_t session, handle;
  int64_t step;
  const rn_named_tensor_t* feeds;  // borrowed
  size_t feed_count;
  const rn_named_tensor_t* sent;  // borrowed: values that other parts sent to this one, by
                                  // rendezvous key. For our own tasks only
  size_t sent_count;
  rn_outbox_t* outbox;  // Borrowed until run_graph returns; NULL: values wait until they are
                        // fetched. For a worker of this process only
  const rn_str_t* fetch_names;
  size_t fetch_count;
  rn_tensor_t* fetches;  // response: set and owned by the caller on success
  bool is_partial;       // a piece of a step; |is_last|: the last of them
  bool is_last;
  int64_t request;  // the caller's number for repeating the call; 0: it will not
  bool cleans_up;   // the worker forgets the step by itself once it succeeded and all that it sent
                    // was fetched. For our own tasks only
  bool wants_stats, wants_graphs, wants_costs;
  rn_strbuf_t stats;   // response: a StepStats, if |wants_stats|
  rn_strbuf_t graphs;  // response: the partition_graph fields of a RunGraphResponse, likewise
  rn_strbuf_t costs;   // response: a CostGraphDef, likewise
} rn_run_graph_t;
static inline int64_t rn_run_graph_number(const rn_run_graph_t* call) {
  return call->is_partial ? 0 : call->request;
}

typedef struct rn_cleanup_graph_t {
  rn_call_t call;
  int64_t step;
} rn_cleanup_graph_t;

typedef struct rn_recv_tensor_t {
  rn_call_t call;
  int64_t step;
  rn_str_t key;
  int64_t request;    // the caller's number for it
  rn_tensor_t value;  // response: owned by the caller, unset if it is dead
  bool is_dead;
} rn_recv_tensor_t;
static inline int64_t rn_recv_tensor_number(const rn_recv_tensor_t* call) { return call->request; }

typedef struct rn_cleanup_all_t {
  rn_call_t call;
  const rn_str_t* containers;  // none: the default one
  size_t container_count;
} rn_cleanup_all_t;

// A device joins a group of collectives. To the leader of collectives only.
typedef struct rn_complete_group_t {
  rn_call_t call;
  int32_t group_key, group_size;
  int32_t kind;  // rn_collective_kind_t
  int32_t rank;  // that the device asks for; -1: none
  bool is_ours;  // the caller is Runnel's
  rn_device_info_t device;
  rn_arena_t arena;  // Owned by the caller; holds the response
  rn_device_info_t* devices;
  size_t device_count;
  int32_t task_count;
  bool is_all_ours;  // response: all tasks of the group are
} rn_complete_group_t;

// A member of a group asks which member is the source of a broadcast. To the leader of collectives
// only, and by members of groups that have stock's tasks.
typedef struct rn_complete_instance_t {
  rn_call_t call;
  int32_t group_key, group_size, instance_key;
  int32_t kind;  // rn_collective_kind_t
  int64_t step;
  rn_str_t node, device, device_type;
  rn_dtype_t dtype;
  rn_str_t shape;  // a TensorShapeProto
  bool is_source;
  int32_t source_rank;  // response; -1: it is not a broadcast
} rn_complete_instance_t;

// Fetches what a member of a collective gives to another one, as stock's tasks do.
typedef struct rn_recv_buf_t {
  rn_call_t call;
  int64_t step;
  rn_str_t key;
  rn_str_t source, target;  // devices
  uint64_t incarnation;     // of |source|
  int64_t size;             // in bytes, as the caller expects it
  int64_t request;
  rn_tensor_t value;  // response: bytes; owned by the caller
} rn_recv_buf_t;

// The number of the next step of a graph with collectives, which masters of the same graph share.
// To the leader of collectives only.
typedef struct rn_get_step_sequence_t {
  rn_call_t call;
  const int64_t* graphs;  // borrowed: their keys
  size_t graph_count;
  rn_strbuf_t sequences;  // response: a GetStepSequenceResponse, appended
} rn_get_step_sequence_t;

// Controls and reads the log of values that a task receives: see worker/recv_log.h.
typedef struct rn_logging_t {
  rn_call_t call;
  bool switches_on, switches_off, clears;
  const int64_t* steps;  // borrowed: the steps whose log is returned and removed
  size_t step_count;
  rn_strbuf_t notes;  // response: a LoggingResponse, appended
} rn_logging_t;

// Calls to a master.

typedef struct rn_create_session_t {
  rn_call_t call;
  rn_str_t graph_def, config, target;
  char session[32];  // response
  int64_t version;
} rn_create_session_t;

typedef struct rn_extend_session_t {
  rn_call_t call;
  rn_str_t session, graph_def;
  int64_t version;  // and in the response the new one
} rn_extend_session_t;

typedef struct rn_run_step_t {
  rn_call_t call;
  rn_str_t session, partial_run;
  const rn_named_tensor_t* feeds;  // borrowed
  size_t feed_count;
  const rn_str_t *fetch_names, *targets;
  size_t fetch_count, target_count;
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;  // partition graphs, in the metadata
  int64_t request;
  rn_tensor_t* fetches;  // response: set and owned by the caller on success
  rn_strbuf_t metadata;  // response: a RunMetadata, if it was requested
  bool is_answered;      // response: it came from the master, even if it is an error
} rn_run_step_t;

typedef struct rn_close_session_t {
  rn_call_t call;
  rn_str_t session;
} rn_close_session_t;

typedef struct rn_list_devices_t {
  rn_call_t call;
  rn_str_t session;
  rn_arena_t arena;  // Owned by the caller; holds the response
  rn_device_info_t* devices;
  size_t device_count;
} rn_list_devices_t;

typedef struct rn_reset_t {
  rn_call_t call;
  const rn_str_t *containers, *filters;
  size_t container_count, filter_count;
} rn_reset_t;

typedef struct rn_partial_setup_t {
  rn_call_t call;
  rn_str_t session;
  const rn_str_t *feeds, *fetches, *targets;
  size_t feed_count, fetch_count, target_count;
  char handle[32];  // response
} rn_partial_setup_t;

typedef struct rn_make_callable_t {
  rn_call_t call;
  rn_str_t session;
  const rn_str_t *feeds, *fetches, *targets;
  size_t feed_count, fetch_count, target_count;
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;
  int64_t handle;  // response
} rn_make_callable_t;

typedef struct rn_run_callable_t {
  rn_call_t call;
  rn_str_t session;
  int64_t handle;
  int64_t request;           // the caller's number for it
  const rn_tensor_t* feeds;  // borrowed, in the callable's order
  size_t feed_count;
  size_t fetch_count;    // response, like the next two
  rn_tensor_t* fetches;  // owned by the caller, from |allocator|
  rn_strbuf_t metadata;
} rn_run_callable_t;

typedef struct rn_release_callable_t {
  rn_call_t call;
  rn_str_t session;
  int64_t handle;
} rn_release_callable_t;

// The two interfaces: one function per call of the list.
#define RN_CALL_FUNCTION(side, name, ...) void (*name)(rn_##side##_t * side, rn_##name##_t * call);

typedef struct rn_worker_t {
  const struct rn_worker_vtable_t* vtable;
} rn_worker_t;
typedef struct rn_worker_vtable_t {
  RN_WORKER_CALLS(RN_CALL_FUNCTION)
  const struct rn_showing_t* showing;  // NULL: nothing can be shown to the task
} rn_worker_vtable_t;

// Small values without calls: a task shows them to another one, which looks for them. Only a hint,
// which a transport gives where tasks share a machine: a value that is shown can also be had by a
// call, and must be, if it is not found.
#define RN_SHOWN_MAX ((size_t)64 << 10)
typedef struct rn_shown_key_t {
  uint64_t bits[2];  // a digest of its name
} rn_shown_key_t;
typedef struct rn_showing_t {
  // Whether the values that |worker| shows can be looked for at present.
  bool (*is_near)(rn_worker_t* worker);
  // Shows a copy of |size| bytes to |worker|. Returns a number for it; 0: it is not shown.
  uint64_t (*show)(rn_worker_t* worker, rn_shown_key_t key, const void* data, size_t size);
  void (*hide)(rn_worker_t* worker, uint64_t number);
  // Whether |worker| has taken it. False if that is not known.
  bool (*is_taken)(rn_worker_t* worker, uint64_t number);
  // Takes what |worker| shows under |key|, once; false if it is not there or has another size.
  bool (*take)(rn_worker_t* worker, rn_shown_key_t key, void* to, size_t size);
} rn_showing_t;

typedef struct rn_master_t {
  const struct rn_master_vtable_t* vtable;
} rn_master_t;
typedef struct rn_master_vtable_t {
  RN_MASTER_CALLS(RN_CALL_FUNCTION)
} rn_master_vtable_t;

// Fills a vtable with the file's own functions, which have the calls' names:
// rn_worker_vtable_t vtable = {RN_WORKER_CALLS(RN_CALL_ENTRY)}.
#define RN_CALL_ENTRY(side, name, ...) .name = name,

static inline void rn_call_done(rn_call_t* call, rn_status_t status) { call->done(call, status); }

#endif  // RUNNEL_DIST_IFACE_H_
