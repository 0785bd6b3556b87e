// The parts of the worker: its record, and what its three files share. For the files of this folder
// only.
//
// worker.c has the worker's life and the calls that need no session, sessions.c opens and closes
// sessions, runs.c registers and runs their graphs. rn_local_<call> is the worker's end of a call
// of dist/iface.h.
#ifndef RUNNEL_DIST_WORKER_WORKER_INTERNAL_H_
#define RUNNEL_DIST_WORKER_WORKER_INTERNAL_H_

#include "base/log.h"
#include "base/map.h"
#include "dist/worker/aliases.h"
#include "dist/worker/graph.h"
#include "dist/worker/partial.h"
#include "dist/worker/worker.h"

// A registered graph.
typedef struct rn_registered_graph_t {
  struct rn_registered_graph_t* next;
  rn_worker_graph_t* graph;  // Retained
  char handle[32];
} rn_registered_graph_t;

// A session of a master. "" is the session of masters that open none. It is freed with the last
// step that runs in it.
typedef struct rn_worker_session_t {
  int refs;       // of the map and of steps; guarded by the worker's mutex
  rn_str_t name;  // Owned; the key of the map
  rn_device_t** devices;
  int device_count;
  bool owns_devices;          // it has its own state
  rn_given_cluster_t* given;  // Owned; the cluster that its client gave; NULL: none
  rn_kernel_cache_t kernels;  // shared by its graphs
  rn_kept_functions_t kept;   // of its destroyed graphs, if it owns its devices
  rn_registered_graph_t* graphs;
  int64_t next_handle;
  rn_str_t master;  // Owned; the master that opened it; "" if unknown
  uint64_t master_incarnation;
  int64_t used_ns;  // when its master last used it
  rn_job_t freeing;
  rn_local_worker_t* worker;
} rn_worker_session_t;

struct rn_local_worker_t {
  rn_worker_t face;  // first
  rn_local_worker_options_t options;
  rn_allocator_t allocator;
  int device_count;
  rn_device_t** devices;           // Owned; the first is the CPU
  rn_kept_functions_t kept;        // of destroyed graphs; resources of the devices may hold them
  rn_steps_t* steps;               // Owned
  rn_worker_partials_t* partials;  // Owned
  rn_cluster_collectives_t* collectives;  // Owned
  rn_mutex_t mutex;                       // guards what follows
  rn_cond_t idle;
  rn_map_t sessions;
  rn_worker_aliases_t aliases;
  int running;  // steps
  int64_t steps_run;
  bool is_closing;
  rn_log_limit_t log;  // of refused sessions
};

#define RN_LOCAL_CALL(side, name, ...) \
  void rn_local_##name(rn_##side##_t* face, rn_##name##_t* call);
RN_WORKER_CALLS(RN_LOCAL_CALL)

// Devices called by the name of |task|.
RN_MUST_USE rn_status_t rn_worker_make_devices(const rn_local_worker_t* worker, rn_str_t task,
                                               rn_device_t*** out, int* out_count);
// Gives back memory that what has ended leaves behind and the next session might not need.
void rn_worker_trim_devices(rn_local_worker_t* worker);
// Ends something that stopping the worker waits for.
void rn_worker_count_off(rn_local_worker_t* worker);

// Opens the session that |call| names, unless it is open.
RN_MUST_USE rn_status_t rn_worker_make_session_locked(rn_local_worker_t* worker,
                                                      const rn_create_worker_session_t* call);
// ABORTED if there is none of that name.
RN_MUST_USE rn_status_t rn_worker_find_session_locked(rn_local_worker_t* worker, rn_str_t name,
                                                      rn_worker_session_t** out);
// Releases a session, and counts a step off if |was_running|. The last step may end on the thread
// of a device that the session owns, which cannot destroy the device.
void rn_worker_session_release(rn_local_worker_t* worker, rn_worker_session_t* session,
                               bool was_running);

#endif  // RUNNEL_DIST_WORKER_WORKER_INTERNAL_H_
