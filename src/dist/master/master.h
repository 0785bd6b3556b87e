// The master of this process: sessions of clients over all tasks of a cluster.
//
// For each signature, the master cuts the session's graph by task and registers the parts with
// their workers once; every step is then one call to each of them. Feeds and fetches end on the
// master's own CPU.
#ifndef RUNNEL_DIST_MASTER_MASTER_H_
#define RUNNEL_DIST_MASTER_MASTER_H_

#include "dist/worker/worker.h"
#include "net/timers.h"

typedef struct rn_local_master_t rn_local_master_t;

#define RN_SESSION_GC_NS INT64_C(3600000000000)

typedef struct rn_local_master_options_t {
  const rn_env_t* env;  // outlives the master
  rn_allocator_t allocator;
  rn_local_worker_t* worker;  // of the same process
  const rn_str_t* tasks;  // all of the cluster, "/job:ps/replica:0/task:0"; the master's is first
  int task_count;
  rn_peers_t peers;  // finds the other tasks
  rn_address_book_t
      reach;           // finds tasks of clusters that clients give; |find| NULL: none can be given
  rn_timers_t timers;  // |set| may be NULL: a broken connection then cancels its steps at once
  int64_t grace_ns;  // otherwise steps keep running for so long, for a client that repeats the call
  // How long an idle session outlives the connection it was last used on; 0: RN_SESSION_GC_NS.
  // Without timers, for ever.
  int64_t session_gc_ns;
} rn_local_master_options_t;

RN_MUST_USE rn_status_t rn_local_master_create(const rn_local_master_options_t* options,
                                               rn_local_master_t** out);
// Closes every session; no more can be opened. Calls may come until the master is destroyed.
void rn_local_master_stop(rn_local_master_t* master);
// Stops it and waits for running calls. No call may come any more. NULL is fine.
void rn_local_master_destroy(rn_local_master_t* master);
// How many sessions clients have open.
size_t rn_local_master_sessions(rn_local_master_t* master);
rn_master_t* rn_local_master_face(rn_local_master_t* master);

#endif  // RUNNEL_DIST_MASTER_MASTER_H_
