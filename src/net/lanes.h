// The lanes of a server: its part on each loop, which opens, drains and closes on that loop's
// thread.
#ifndef RUNNEL_NET_LANES_H_
#define RUNNEL_NET_LANES_H_

#include "base/sync.h"
#include "net/listener.h"

typedef struct rn_lanes_t rn_lanes_t;

// A server puts this into a struct of its own, one per loop.
typedef struct rn_lane_t {
  rn_lanes_t* lanes;
  rn_loop_t* loop;
  struct rn_lane_t* next;
  rn_loop_job_t job;
  bool is_posted;  // guarded by the lock of |lanes|
} rn_lane_t;

struct rn_lanes_t {
  rn_listener_t* listener;  // Owned; of the first lane; NULL: the server has no port
  void (*drain)(rn_lane_t* lane);
  void (*close)(rn_lane_t* lane);
  rn_lane_t *first, *last;
  _Atomic bool is_draining, is_closing;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  size_t jobs;          // of lanes, that are posted or run
  rn_status_t failure;  // of starting the listener
};

// In a zeroed struct with |drain| and |close|.
void rn_lanes_init(rn_lanes_t* lanes);
void rn_lanes_deinit(rn_lanes_t* lanes);  // after rn_lanes_close
void rn_lanes_add(rn_lanes_t* lanes, rn_lane_t* lane, rn_loop_t* loop);

// Starts the listener, if there is one.
RN_MUST_USE rn_status_t rn_lanes_start(rn_lanes_t* lanes);
// Stops the listener and drains all lanes, soon; any thread may call it.
void rn_lanes_drain(rn_lanes_t* lanes);
// Destroys the listener and closes all lanes; waits for that. Not on a loop's thread.
void rn_lanes_close(rn_lanes_t* lanes);

#endif  // RUNNEL_NET_LANES_H_
