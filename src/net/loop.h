// An event loop: watches sockets and timers, and starts everything that the network triggers.
//
// Any thread may watch sockets, set timers and post jobs; callbacks run on the loop's thread, one
// at a time, with no locks held, and must not block; rn_loop_defer is for what might. The loop's
// thread is its own, or a visitor: a thread that waits for a response and runs the loop meanwhile,
// which saves waking it when the response arrives.
#ifndef RUNNEL_NET_LOOP_H_
#define RUNNEL_NET_LOOP_H_

#include "base/net.h"
#include "base/pool.h"
#include "base/sync.h"
#include "net/timers.h"

typedef struct rn_loop_t rn_loop_t;

// A watched socket, embedded in its owner.
typedef struct rn_watch_t {
  rn_socket_t* socket;  // Borrowed
  bool wants_write;     // rn_loop_want changes it, and |is_deaf|: not polled for reading
  void (*ready)(struct rn_watch_t* watch, bool can_read, bool can_write);
  bool is_deaf, is_watched, has_more;  // of the loop's thread
} rn_watch_t;

typedef struct rn_loop_job_t {
  void (*run)(struct rn_loop_job_t* job);
  struct rn_loop_job_t* next;
} rn_loop_job_t;

RN_MUST_USE rn_status_t rn_loop_create(const rn_env_t* env, rn_allocator_t allocator,
                                       rn_loop_t** out);
// Runs the posted jobs and ends the thread. Nothing may be watched any more. NULL is fine.
void rn_loop_destroy(rn_loop_t* loop);

const rn_env_t* rn_loop_env(const rn_loop_t* loop);
int64_t rn_loop_now(const rn_loop_t* loop);

// Memory for received messages: recycled, which is quicker to fill. Blocks may outlive the loop.
rn_allocator_t rn_loop_landing(const rn_loop_t* loop);

// RN_LOOP_SCRATCH bytes to read into, for the loop's thread only, until its callback returns. So
// idle connections need no memory for input.
#define RN_LOOP_SCRATCH ((size_t)256 << 10)
char* rn_loop_scratch(const rn_loop_t* loop);

void rn_loop_post(rn_loop_t* loop, rn_loop_job_t* job);
// For work of some microseconds that may take long after all: runs |job| on the loop's thread,
// after the callbacks of this turn. If it takes more than some milliseconds, another thread becomes
// the loop's thread meanwhile, so that nothing else waits for it. False if the caller is not the
// loop's own thread, or too many jobs have not ended: then |job| will not run.
RN_MUST_USE bool rn_loop_defer(rn_loop_t* loop, rn_job_t* job);
void rn_loop_wake(rn_loop_t* loop);
bool rn_loop_is_here(const rn_loop_t* loop);  // whether this is the loop's thread

// Adjusts the number of outstanding responses; while responses have been quick, the loop spins
// before blocking.
void rn_loop_expect(rn_loop_t* loop, int by);

// For a thread that waits for a response, without locks that the loop's callbacks might take. True:
// it is the loop's thread now, and calls rn_loop_turn until the response is there. False: another
// thread is, so it just waits. In both cases rn_loop_leave must follow.
typedef struct rn_loop_visit_t {
  bool is_turner;
  int64_t begun_ns, spin_ns;
} rn_loop_visit_t;
bool rn_loop_enter(rn_loop_t* loop, rn_loop_visit_t* visit);
void rn_loop_turn(rn_loop_t* loop, const rn_loop_visit_t* visit);
void rn_loop_leave(rn_loop_t* loop, const rn_loop_visit_t* visit);

// On the loop's thread only. Reserves memory for the watch, so that nothing fails later.
RN_MUST_USE rn_status_t rn_loop_watch(rn_loop_t* loop, rn_watch_t* watch);
void rn_loop_unwatch(rn_loop_t* loop, rn_watch_t* watch);
// Changes what a watched socket is polled for. Any thread may change |writes|, under a lock of the
// owner's that keeps others from changing or unwatching it. |ready| is also called for a socket
// that has failed, whatever is wanted.
void rn_loop_want(rn_loop_t* loop, rn_watch_t* watch, bool reads, bool writes);

// Any thread may call these. Setting a timer that is set moves it. After clear returns, the timer's
// function neither runs nor will run, unless the caller is the loop's thread inside it.
RN_MUST_USE rn_status_t rn_loop_set_timer(rn_loop_t* loop, rn_timer_t* timer, int64_t at_ns);
void rn_loop_clear_timer(rn_loop_t* loop, rn_timer_t* timer);
// Whether |timer| is set and has not run yet.
bool rn_loop_has_timer(rn_loop_t* loop, const rn_timer_t* timer);
// The same, for code that does not know the loop.
rn_timers_t rn_loop_timers(rn_loop_t* loop);

#endif  // RUNNEL_NET_LOOP_H_
