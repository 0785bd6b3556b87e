// What the files of the loop share: loop.c turns it, loop_spare.c keeps it turning while a long job
// runs on its thread.
#ifndef RUNNEL_NET_LOOP_INTERNAL_H_
#define RUNNEL_NET_LOOP_INTERNAL_H_

#include <stdatomic.h>

#include "base/cache_alloc.h"
#include "base/log.h"
#include "base/vec.h"
#include "net/loop.h"

#define RN_LOOP_THREADS 16  // of one loop: all but two may be busy with deferred jobs

struct rn_loop_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  _Atomic(pthread_t) thread;  // the loop's own, which may change: see loop_spare.c
  bool has_spare;             // there are idle CPUs
  _Atomic(pthread_t)
      turner;  // the thread that turns the loop: its own or a visitor; 0: none, parked
  rn_socket_t *wake_in, *wake_out;  // Owned: a byte written to one ends the poll on the other
  _Atomic bool is_woken;            // the byte was written and not read yet
  _Atomic int due;                  // answers
  rn_cache_alloc_t* landing;        // Retained
  char* scratch;                    // Owned
  // Of the loop's thread: the blocks that messages have taken from |landing|, and when it last saw
  // a new one.
  int64_t landed, landed_ns;
  int64_t asked_ns;           // likewise: when it last polled
  int64_t due_ns;             // likewise: how long it usually waits for outstanding responses
  rn_log_limit_t log;         // of failed polls
  rn_poller_t* poller;        // Owned; the tag of a socket is its watch, NULL for |wake_out|
  RN_VEC(rn_polled_t) ready;  // of the loop's thread; has room for MAX_READY and |layered|
  RN_VEC(rn_watch_t*) more;   // likewise: those with bytes that no poller sees; has room
  size_t layered;             // likewise: watches whose socket lies over another
  rn_mutex_t mutex;           // guards what follows
  rn_cond_t timer_ended;
  rn_loop_job_t *first, *last;
  RN_VEC(rn_timer_t*) timers;  // a heap by time; a timer's place is its index + 1
  rn_timer_t* running;
  bool is_stopping;
  rn_cond_t parked, handed;  // |parked|: the thread waits for visitors to leave; |handed|: a
                             // visitor waits for the thread
  int waiting;               // visitors that wait while another thread turns the loop
  uint64_t visits;
  int64_t left_ns, crowd_ns;  // when the last visitor left; when there were two at a time
  int64_t visit_ns;           // how long a visit usually takes
  bool is_wanted;             // a visitor waits for the thread to hand over the loop
  bool is_missed;             // the thread waits for a visitor to leave, without limit

  // Of loop_spare.c: see there.
  rn_job_t *deferred, *last_deferred;
  pthread_t threads[RN_LOOP_THREADS];  // all that were started
  int thread_count;
  int reserves;            // threads that could become the spare one
  bool has_spare_thread;   // one watches deferred jobs, or will
  bool is_spare_wanted;    // a reserve should
  bool is_over;            // the loop has ended: threads end, too
  rn_cond_t watched;       // the spare thread waits for a job, or for a while
  rn_cond_t relieved;      // the others wait to become the spare one
  _Atomic bool is_dozing;  // the spare thread must be woken for a job
  _Atomic uint64_t lent;   // changes when a deferred job begins or ends; odd while one runs
};

// Runs the deferred jobs. TAKEN: one of them took so long that another thread turns the loop now.
typedef enum rn_deferred_t { RN_DEFERRED_NONE, RN_DEFERRED_RAN, RN_DEFERRED_TAKEN } rn_deferred_t;
rn_deferred_t rn_loop_run_deferred(rn_loop_t* loop);

// Waits until this thread is to turn the loop: true; false when the loop is over.
bool rn_loop_stand_by(rn_loop_t* loop);
void* rn_loop_spare_main(void* loop);  // of a thread that begins by standing by

RN_MUST_USE bool rn_loop_start_thread_locked(rn_loop_t* loop, void* (*main)(void*));
void rn_loop_end_locked(rn_loop_t* loop);  // ends the threads that stand by
void rn_loop_join(rn_loop_t* loop);        // waits for all threads to end

#endif  // RUNNEL_NET_LOOP_INTERNAL_H_
