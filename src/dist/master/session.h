// A client's session on a master. For the files of the master only.
#ifndef RUNNEL_DIST_MASTER_SESSION_H_
#define RUNNEL_DIST_MASTER_SESSION_H_

#include "base/map.h"
#include "dist/fence.h"
#include "dist/master/master.h"
#include "dist/master/plan.h"
#include "place/homes.h"
#include "proto/config.pb.h"
#include "session/session.h"

typedef struct rn_master_task_t {
  rn_str_t name;
  rn_worker_t* worker;     // Borrowed
  rn_get_status_t status;  // from the last probe
  bool has_session;
  bool is_suspect;      // it, or the connection to it, has failed: see mend.h
  bool has_lost;        // and it does not know the session any more
  rn_status_t silence;  // Owned: the error of the last probe
} rn_master_task_t;

// Waits for calls to several tasks: |next| is called when the last has ended, with the first error
// that is not a consequence of another.
typedef struct rn_master_fan_t {
  void (*next)(struct rn_master_fan_t* fan, rn_status_t status);
  rn_mutex_t mutex;
  int pending;
  rn_status_t status;
} rn_master_fan_t;
void rn_master_fan_open(rn_master_fan_t* fan, int pending,
                        void (*next)(rn_master_fan_t* fan, rn_status_t status));
// One call has ended; takes |status|. |task|, unless empty, is prepended to the message.
void rn_master_fan_end(rn_master_fan_t* fan, rn_status_t status, rn_str_t task);

// A program: one signature, registered with the workers that take part.
typedef struct rn_master_program_t {
  struct rn_master_program_t* next;
  struct rn_master_session_t* session;
  rn_str_t key;  // feeds, fetches and targets
  rn_master_plan_t plan;
  rn_master_fan_t fan;
  rn_job_t job;                    // plans it
  struct rn_master_step_t* maker;  // the step that it is planned for
  rn_register_graph_t* calls;      // by part
  _Atomic int64_t steps;           // counted where costs are measured
  enum { RN_PROGRAM_NEW, RN_PROGRAM_READY, RN_PROGRAM_FAILED } state;
  struct rn_master_step_t* waiting;  // steps that wait for it
  rn_status_t failure;               // Owned
  bool is_outdated;                  // a task was restarted: no new step uses it
  struct rn_master_program_t* next_outdated;
} rn_master_program_t;

// Called when tasks have been probed.
typedef struct rn_mend_waiter_t {
  struct rn_mend_waiter_t* next;
  void (*go_on)(struct rn_mend_waiter_t* waiter);
} rn_mend_waiter_t;

typedef struct rn_master_callable_t {
  struct rn_master_callable_t* next;
  int64_t handle;
  rn_str_t *feeds, *fetches, *targets;
  size_t feed_count, fetch_count, target_count;
  int64_t timeout_ms;
  int trace_level;
  bool wants_graphs;
  rn_arena_t arena;
} rn_master_callable_t;

// A partial run.
typedef struct rn_master_partial_t {
  struct rn_master_partial_t* next;
  char handle[32];
  rn_partial_run_t* run;  // Owned
  size_t left;            // feeds and fetches that are still missing
} rn_master_partial_t;

typedef struct rn_master_session_t {
  _Atomic int refs;
  rn_local_master_t* master;
  char handle[32];  // the key of the map
  rn_graph_t* graph;
  rn_session_options_t options;
  rn_arena_t arena;
  rn_str_t config;
  const rn_pb_ConfigProto_t* config_proto;  // the same, in the arena
  rn_given_cluster_t* given;                // Owned: the cluster of |config|; NULL: the master's
  int task_count;
  rn_master_task_t* tasks;  // the first is the master's own
  int device_count;
  rn_device_t** devices;  // those of other tasks are stand-ins
  rn_homes_t homes;       // of the graph's stateful nodes
  int* device_tasks;
  rn_cancel_t closing;
  rn_fence_t* fence;    // of its steps
  rn_mutex_t planning;  // held, before |mutex|, while the graph grows or a step is planned
  rn_mutex_t mutex;     // guards what follows; never held for long
  int64_t version;
  rn_master_program_t* programs;
  rn_master_callable_t* callables;
  int64_t next_callable;
  rn_session_t* face;  // Owned: this session behind the interface of any other, for partial runs;
                       // NULL: not yet
  rn_master_partial_t* partials;
  int64_t next_partial;
  rn_caller_t* caller;  // Retained: the last caller; NULL: a caller in this process
  rn_mend_waiter_t* mend_waiters;
  bool is_mending;
  int running;
  bool is_closed;
  rn_close_session_t* closer;  // waits for the last step
} rn_master_session_t;

const rn_local_master_options_t* rn_local_master_options(const rn_local_master_t* master);
static inline rn_allocator_t rn_master_session_allocator(const rn_master_session_t* session) {
  return rn_local_master_options(session->master)->allocator;
}
// A session was created, or was freed.
void rn_local_master_count(rn_local_master_t* master, int by);

// Whether |task| matches one of |filters|, or there are none.
bool rn_master_task_passes(rn_str_t task, const rn_str_t* filters, size_t count);

void rn_master_session_release(rn_master_session_t* session);
// The call that opens the session on task |t|; the caller sets what ends it.
rn_create_worker_session_t rn_master_session_create_call(const rn_master_session_t* session, int t);
void rn_master_session_plan_options(rn_master_session_t* session, rn_master_plan_options_t* out);

// Opens a session: probes all tasks, opens sessions on them, then ends |call|; |ready| is called
// before that, with the caller's reference.
void rn_master_session_open(rn_local_master_t* master, rn_create_session_t* call,
                            rn_status_t (*ready)(rn_local_master_t* master,
                                                 rn_master_session_t* session));
// Cancels its steps and, when the last of them has ended, closes the sessions on the tasks and ends
// |call|, which may be NULL.
void rn_master_session_close(rn_master_session_t* session, rn_close_session_t* call);
// Records the caller of |call| as the session's client.
void rn_master_session_meet(rn_master_session_t* session, const rn_call_t* call);
// Whether nothing of it is running and its client has been gone since |since_ns| or longer.
bool rn_master_session_is_left(rn_master_session_t* session, int64_t since_ns);
// A step has ended.
void rn_master_session_end_step(rn_master_session_t* session);
// Runs a step and ends |call|.
void rn_master_session_run(rn_master_session_t* session, rn_run_step_t* call);

// Resolves names to edges and nodes, in |arena|.
RN_MUST_USE rn_status_t rn_master_session_find(rn_master_session_t* session, rn_arena_t* arena,
                                               const rn_str_t* feeds, size_t feed_count,
                                               const rn_str_t* fetches, size_t fetch_count,
                                               const rn_str_t* targets, size_t target_count,
                                               rn_signature_t* out);

// Partial runs; both block.
RN_MUST_USE rn_status_t rn_master_partial_setup(rn_master_session_t* session,
                                                rn_partial_setup_t* call);
RN_MUST_USE rn_status_t rn_master_partial_run(rn_master_session_t* session, rn_run_step_t* call);
void rn_master_partials_clear(rn_master_session_t* session);

#endif  // RUNNEL_DIST_MASTER_SESSION_H_
