// A thread that watches sockets and clocks: everything that the network starts begins here.
//
// Sockets are watched, timers set and jobs posted from any thread; what they call runs on the
// loop's thread, one after the other, with no locks held, and must not wait. The loop's thread is
// its own, or one that waits for an answer and turns the loop meanwhile: then nobody has to be
// woken by somebody else when the answer comes.
#ifndef RUNNEL_DIST_RPC_LOOP_H_
#define RUNNEL_DIST_RPC_LOOP_H_

#include "base/net.h"
#include "base/sync.h"
#include "dist/timers.h"

typedef struct rn_loop_t rn_loop_t;

// A socket under watch, embedded in its owner. It is read as long as it is watched.
typedef struct rn_watch_t {
  rn_socket_t* socket;       // Borrowed
  _Atomic bool wants_write;  // rn_loop_wake makes a change known
  void (*ready)(struct rn_watch_t* watch, bool can_read, bool can_write);
  bool is_watched;  // the loop's
} rn_watch_t;

typedef struct rn_loop_job_t {
  void (*run)(struct rn_loop_job_t* job);
  struct rn_loop_job_t* next;
} rn_loop_job_t;

RN_MUST_USE rn_status_t rn_loop_create(const rn_env_t* env, rn_allocator_t allocator,
                                       rn_loop_t** out);
// Runs the jobs that were posted, ends the thread. Nothing may be watched any more. NULL is fine.
void rn_loop_destroy(rn_loop_t* loop);

const rn_env_t* rn_loop_env(const rn_loop_t* loop);
int64_t rn_loop_now(const rn_loop_t* loop);

// Memory for messages that come: what was used for others before is quicker to fill. Blocks may
// outlive the loop.
rn_allocator_t rn_loop_landing(const rn_loop_t* loop);

void rn_loop_post(rn_loop_t* loop, rn_loop_job_t* job);
void rn_loop_wake(rn_loop_t* loop);
bool rn_loop_is_here(const rn_loop_t* loop);  // whether this is the loop's thread

// So many answers more are due, or fewer: while some are, and usually come soon, the loop looks for
// them a while before it sleeps.
void rn_loop_expect(rn_loop_t* loop, int by);

// For a thread that waits for an answer, with no locks held that what the loop calls might take.
// True: it is the loop's thread now, and calls rn_loop_turn until the answer is there. False:
// somebody else is, and the answer is to be waited for. Either is followed by rn_loop_leave.
typedef struct rn_loop_visit_t {
  bool is_turner;
  int64_t begun_ns, spin_ns;
} rn_loop_visit_t;
bool rn_loop_enter(rn_loop_t* loop, rn_loop_visit_t* visit);
void rn_loop_turn(rn_loop_t* loop, const rn_loop_visit_t* visit);
void rn_loop_leave(rn_loop_t* loop, const rn_loop_visit_t* visit);

// On the loop's thread only. Room for the watch is made here, so that nothing fails later.
RN_MUST_USE rn_status_t rn_loop_watch(rn_loop_t* loop, rn_watch_t* watch);
void rn_loop_unwatch(rn_loop_t* loop, rn_watch_t* watch);

// From any thread. Setting one that is set moves it. After clear returns the timer's function
// neither runs nor will, unless the caller is the loop's thread inside it.
RN_MUST_USE rn_status_t rn_loop_set_timer(rn_loop_t* loop, rn_timer_t* timer, int64_t at_ns);
void rn_loop_clear_timer(rn_loop_t* loop, rn_timer_t* timer);
// Whether |timer| is set and has not run yet.
bool rn_loop_has_timer(rn_loop_t* loop, const rn_timer_t* timer);
// The same, for those who know no loop.
rn_timers_t rn_loop_timers(rn_loop_t* loop);

#endif  // RUNNEL_DIST_RPC_LOOP_H_
