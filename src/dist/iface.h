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
#include "dist/caller.h"
#include "framework/cancel.h"
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
  void* owner;           // the caller's
  int64_t deadline_ns;   // of the environment's clock; INT64_MAX: none
  rn_cancel_t* cancel;   // Borrowed; NULL: nobody will give it up
  rn_caller_t* caller;   // Borrowed: the connection it came on, at the callee's end; NULL: none
  bool waits_for_ready;  // for a task that cannot be reached yet
  bool is_broken;        // the answer: the connection was lost when the question had been sent. It
                         // may have come
} rn_call_t;

typedef struct rn_named_tensor_t {
  rn_str_t name;
  rn_tensor_t value;
} rn_named_tensor_t;

// A device as others see it.
typedef struct rn_device_info_t {
  rn_str_t name, type;
  int64_t memory_limit;
  uint64_t incarnation;
} rn_device_info_t;

// Calls to a worker.

typedef struct rn_get_status_t {
  rn_call_t call;
  rn_arena_t arena;  // Owned by the caller: holds the answer
  rn_device_info_t* devices;
  size_t device_count;
  bool is_ours;  // the answer: it knows what only our own tasks say to each other
} rn_get_status_t;

typedef struct rn_create_worker_session_t {
  rn_call_t call;
  rn_str_t session;
  rn_str_t job;  // what the master thinks the task is
  int32_t task;
  bool isolates;  // state is the session's own
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
  char handle[32];  // the answer, NUL-terminated
} rn_register_graph_t;

typedef struct rn_deregister_graph_t {
  rn_call_t call;
  rn_str_t session, handle;
} rn_deregister_graph_t;

// Who takes values that a part has sent to other tasks when it first had to wait, or has ended;
// |takes| gets the rendezvous's key, moves the value out and says true, or leaves it.
typedef struct rn_outbox_t {
  bool (*takes)(struct rn_outbox_t* outbox, rn_str_t key, rn_tensor_t* value);
} rn_outbox_t;

typedef struct rn_run_graph_t {
  rn_call_t call;
  rn_str_t session, handle;
  int64_t step;
  const rn_named_tensor_t* feeds;  // lent
  size_t feed_count;
  const rn_named_tensor_t* sent;  // lent: what others have sent to this part, under the
                                  // rendezvous's keys. For our own tasks only
  size_t sent_count;
  rn_outbox_t* outbox;  // Borrowed until run_graph returns; NULL: values wait until they are asked
                        // for. For a worker of this process only
  const rn_str_t* fetch_names;
  size_t fetch_count;
  rn_tensor_t* fetches;  // the answer: set and owned by the caller on success
  bool is_partial;       // a piece of a step; |is_last|: the last of them
  bool is_last;
  int64_t request;  // a number of the caller's, under which it may ask again; 0: it will not
  bool cleans_up;  // the worker forgets the step by itself, when it ended well and all that it sent
                   // was taken. For our own tasks only
  bool wants_stats, wants_graph;
  rn_strbuf_t stats;  // the answer: a StepStats, if it was wanted
  rn_strbuf_t graph;  // the answer: the part's GraphDef, likewise
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
  int64_t request;    // a number of the caller's
  rn_tensor_t value;  // the answer: owned by the caller, unset if it is dead
  bool is_dead;
} rn_recv_tensor_t;
static inline int64_t rn_recv_tensor_number(const rn_recv_tensor_t* call) { return call->request; }

typedef struct rn_cleanup_all_t {
  rn_call_t call;
  const rn_str_t* containers;  // none: the default one
  size_t container_count;
} rn_cleanup_all_t;

// What a task notes of the values that it gets from others: see worker/recv_log.h.
typedef struct rn_logging_t {
  rn_call_t call;
  bool switches_on, switches_off, clears;
  const int64_t* steps;  // lent: whose notes are wanted, and taken away
  size_t step_count;
  rn_strbuf_t notes;  // the answer: a LoggingResponse, added to what is there
} rn_logging_t;

// Calls to a master.

typedef struct rn_create_session_t {
  rn_call_t call;
  rn_str_t graph_def, config, target;
  char session[32];  // the answer
  int64_t version;
} rn_create_session_t;

typedef struct rn_extend_session_t {
  rn_call_t call;
  rn_str_t session, graph_def;
  int64_t version;  // and the new one as the answer
} rn_extend_session_t;

typedef struct rn_run_step_t {
  rn_call_t call;
  rn_str_t session, partial_run;
  const rn_named_tensor_t* feeds;  // lent
  size_t feed_count;
  const rn_str_t *fetch_names, *targets;
  size_t fetch_count, target_count;
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;  // the partitions, in the metadata
  int64_t request;
  rn_tensor_t* fetches;  // the answer: set and owned by the caller on success
  rn_strbuf_t metadata;  // the answer: a RunMetadata, if something was asked
  bool is_answered;      // the answer: it is the master's, also if it is an error
} rn_run_step_t;

typedef struct rn_close_session_t {
  rn_call_t call;
  rn_str_t session;
} rn_close_session_t;

typedef struct rn_list_devices_t {
  rn_call_t call;
  rn_str_t session;
  rn_arena_t arena;  // Owned by the caller: holds the answer
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
  char handle[32];  // the answer
} rn_partial_setup_t;

typedef struct rn_make_callable_t {
  rn_call_t call;
  rn_str_t session;
  const rn_str_t *feeds, *fetches, *targets;
  size_t feed_count, fetch_count, target_count;
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;
  int64_t handle;  // the answer
} rn_make_callable_t;

typedef struct rn_run_callable_t {
  rn_call_t call;
  rn_str_t session;
  int64_t handle;
  int64_t request;           // a number of the caller's
  const rn_tensor_t* feeds;  // lent, in the callable's order
  size_t feed_count;
  size_t fetch_count;    // the answer, as the next two
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
} rn_worker_vtable_t;

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
