// The internals of a simulated cluster. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_WORLD_H_
#define RUNNEL_DIST_SIM_WORLD_H_

#include "base/map.h"
#include "base/vec.h"
#include "dist/repeat.h"
#include "dist/sim/records.h"
#include "dist/sim/sim.h"
#include "dist/worker/fence.h"
#include "dist/worker/gc.h"

// A set timer and its node, which may be NULL.
typedef struct rn_sim_event_t {
  int64_t at_ns;
  uint64_t number;  // orders timers of the same time
  rn_timer_t* timer;
  struct rn_sim_node_t* node;
} rn_sim_event_t;

typedef enum rn_sim_flight_state_t {
  RN_FLIGHT_GOING,
  RN_FLIGHT_RUNNING,
  RN_FLIGHT_RETURNING,
  RN_FLIGHT_DEAD,  // its callee's process died
} rn_sim_flight_state_t;

// A call: its request on the way, running, or its response on the way.
typedef struct rn_sim_flight_t {
  struct rn_sim_flight_t *previous, *next;  // of its link
  struct rn_sim_link_t* link;
  const rn_record_kind_t* kind;
  uint64_t number;  // in order of start
  rn_call_t* call;  // the caller's; NULL once it has ended
  rn_sim_flight_state_t state;
  rn_timer_t timer;            // its next event
  rn_timer_t caller_deadline;  // the caller's clock
  rn_timer_t callee_deadline;  // the callee's
  rn_timer_t given_up;         // tells the callee that the caller is gone
  rn_timer_t ending;           // the caller has cancelled it
  rn_cancel_entry_t entry;     // in the caller's cancellation
  bool is_linked, is_parked, is_orphan;
  rn_caller_t* caller;  // Retained: the callee's
  int64_t deadline_ns;
  uint64_t to_epoch;   // the epoch of the callee when it was sent
  rn_status_t answer;  // Owned
  rn_cancel_t cancel;  // the callee's
  rn_arena_t arena;
  rn_record_t record;  // the callee's
} rn_sim_flight_t;

// A link from one node to another.
typedef struct rn_sim_link_t {
  rn_worker_t worker;
  rn_master_t master;
  rn_repeat_t* repeat;  // Owned: in front of the worker, from its first use on, while the caller's
                        // process lives
  rn_sim_t* sim;
  int from, to;
  bool is_cut, is_leased;
  int64_t heard_ns;
  rn_sim_flight_t* flights;
  rn_caller_t* caller;  // Retained: the connection as the callee sees it; NULL: there is none
} rn_sim_link_t;

typedef struct rn_sim_node_t {
  rn_sim_t* sim;
  int index;
  const char* task;       // NULL: a client
  bool is_up, is_silent;  // |is_silent|: down without a broken connection
  uint64_t epoch;         // how often it was started
  int64_t frozen_until_ns;
  double slowness;
  int64_t out_free_ns,
      in_free_ns;  // when its port will have sent, or received, its current messages
  rn_env_t env;
  rn_leases_t* leases;
  rn_worker_gc_t* gc;
  rn_local_worker_t* worker;
  rn_worker_fence_t* fence;  // in front of it
  rn_local_master_t* master;
} rn_sim_node_t;

struct rn_sim_t {
  rn_sim_options_t options;
  rn_allocator_t allocator;
  int node_count;
  rn_sim_node_t* nodes;
  rn_sim_link_t* links;  // by from × node_count + to
  rn_str_t* task_names;  // by node: its own task first, as masters expect
  rn_map_t tasks;        // by name, their nodes
  int64_t now_ns;
  uint64_t random[2], next_number, trace;
  int64_t messages;
  RN_VEC(rn_sim_event_t) events;  // a heap
};

void rn_sim_note(rn_sim_t* sim, uint64_t what);
rn_status_t rn_sim_set(rn_sim_t* sim, rn_sim_node_t* node, rn_timer_t* timer, int64_t at_ns);
void rn_sim_clear(rn_sim_t* sim, rn_timer_t* timer);

static inline rn_sim_link_t* rn_sim_link(rn_sim_t* sim, int from, int to) {
  return &sim->links[from * sim->node_count + to];
}
void rn_sim_link_init(rn_sim_link_t* link, rn_sim_t* sim, int from, int to);
rn_link_t rn_sim_link_lease(rn_sim_link_t* link);
// Ends the calls of |node|, as the end of its process would.
void rn_sim_end_calls_from(rn_sim_t* sim, int node);
// Drops the calls to |node|, which die with its process. Then, unless the crash is silent, their
// callers are told.
void rn_sim_orphan_calls_to(rn_sim_t* sim, int node);
void rn_sim_tell_callers_of(rn_sim_t* sim, int node);
// Breaks the connection; the callee will be told.
void rn_sim_disconnect(rn_sim_link_t* link);

#endif  // RUNNEL_DIST_SIM_WORLD_H_
