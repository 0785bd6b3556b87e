// The event loop: a poller of the watched sockets and of a pair of sockets to wake it, a heap of
// timers, a list of jobs. See loop.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sched_getaffinity
#endif
#include <sched.h>
#include <time.h>

#include "base/thread.h"
#include "net/loop_internal.h"

// Memory cached for received messages, and the silence after which it is freed.
#define MAX_LANDING ((size_t)512 << 20)
#define REST_NS INT64_C(2000000000)
#define REST_BYTES ((size_t)4 << 20)  // at a time: sockets are looked at in between
// How long the loop's own thread leaves the loop to visitors after the last one left, and how long
// it keeps the loop after two came at a time.
#define PARK_NS INT64_C(3000000)
#define CROWD_NS INT64_C(100000000)
// An idle CPU takes long to wake. So a thread that waits for responses which usually arrive within
// this time polls all the while: a visitor, or the loop's own thread.
#define VISIT_NS INT64_C(400000)
#define DUE_NS INT64_C(60000)
// Sockets whose readiness is asked at a time.
#define MAX_READY 256

const rn_env_t* rn_loop_env(const rn_loop_t* loop) { return loop->env; }
int64_t rn_loop_now(const rn_loop_t* loop) { return loop->env->now_ns(loop->env->self); }
rn_allocator_t rn_loop_landing(const rn_loop_t* loop) { return rn_cache_allocator(loop->landing); }
char* rn_loop_scratch(const rn_loop_t* loop) { return loop->scratch; }
bool rn_loop_is_here(const rn_loop_t* loop) {
  return pthread_equal(pthread_self(), atomic_load(&loop->turner));
}

void rn_loop_wake(rn_loop_t* loop) {
  if (rn_loop_is_here(loop) || atomic_exchange(&loop->is_woken, true)) return;
  size_t written;
  rn_status_free(loop->wake_in->vtable->write(loop->wake_in, "", 1, RN_AT_ONCE, &written));
  rn_mutex_lock(&loop->mutex);
  if (!loop->turner) rn_cond_signal(&loop->parked);
  rn_mutex_unlock(&loop->mutex);
}

void rn_loop_expect(rn_loop_t* loop, int by) { atomic_fetch_add(&loop->due, by); }

void rn_loop_post(rn_loop_t* loop, rn_loop_job_t* job) {
  job->next = NULL;
  rn_mutex_lock(&loop->mutex);
  if (loop->last)
    loop->last->next = job;
  else
    loop->first = job;
  loop->last = job;
  rn_mutex_unlock(&loop->mutex);
  rn_loop_wake(loop);
}

static rn_socket_t* polled_of(const rn_watch_t* watch) {
  const rn_socket_vtable_t* vtable = watch->socket->vtable;
  return vtable->below ? vtable->below(watch->socket) : watch->socket;
}

// Lists a watch whose socket has buffered bytes, which only the loop's thread reads.
static void look_for_more(rn_loop_t* loop, rn_watch_t* watch) {
  const rn_socket_vtable_t* vtable = watch->socket->vtable;
  if (!vtable->has_more || watch->has_more || watch->is_deaf || !vtable->has_more(watch->socket))
    return;
  watch->has_more = true;
  loop->more.items[loop->more.count++] = watch;
}

rn_status_t rn_loop_watch(rn_loop_t* loop, rn_watch_t* watch) {
  if (watch->socket->vtable->has_more) {
    size_t needed = loop->layered + 1;
    RN_RETURN_IF_ERROR(rn_vec_reserve(&loop->more, loop->allocator, needed));
    RN_RETURN_IF_ERROR(rn_vec_reserve(&loop->ready, loop->allocator, MAX_READY + needed));
  }
  RN_RETURN_IF_ERROR(loop->poller->vtable->add(loop->poller, polled_of(watch), !watch->is_deaf,
                                               watch->wants_write, watch));
  watch->is_watched = true;
  if (watch->socket->vtable->has_more) loop->layered++;
  look_for_more(loop, watch);
  return RN_OK;
}

void rn_loop_unwatch(rn_loop_t* loop, rn_watch_t* watch) {
  if (!watch->is_watched) return;
  watch->is_watched = false;
  loop->poller->vtable->remove(loop->poller, polled_of(watch));
  if (watch->socket->vtable->has_more) loop->layered--;
  for (size_t i = 0; watch->has_more && i < loop->more.count; ++i)
    if (loop->more.items[i] == watch) loop->more.items[i] = loop->more.items[--loop->more.count];
  watch->has_more = false;
  for (size_t i = 0; i < loop->ready.count; ++i)
    if (loop->ready.items[i].tag == watch) loop->ready.items[i].tag = NULL;
}

void rn_loop_want(rn_loop_t* loop, rn_watch_t* watch, bool reads, bool writes) {
  if (watch->is_deaf == !reads && watch->wants_write == writes) return;
  bool was_deaf = watch->is_deaf;
  if (was_deaf == reads) watch->is_deaf = !reads;  // which only the loop's thread changes
  watch->wants_write = writes;
  if (!watch->is_watched) return;
  loop->poller->vtable->change(loop->poller, polled_of(watch), reads, writes, watch);
  if (was_deaf && reads) look_for_more(loop, watch);
}

// The heap: moves a new or changed timer up or down to its place.
static void put(rn_loop_t* loop, size_t i, rn_timer_t* timer) {
  loop->timers.items[i] = timer;
  timer->place = i + 1;
}

static void settle(rn_loop_t* loop, size_t i) {
  rn_timer_t* timer = loop->timers.items[i];
  while (i > 0 && loop->timers.items[(i - 1) / 2]->at_ns > timer->at_ns) {
    put(loop, i, loop->timers.items[(i - 1) / 2]);
    i = (i - 1) / 2;
  }
  for (size_t child; (child = 2 * i + 1) < loop->timers.count; i = child) {
    if (child + 1 < loop->timers.count &&
        loop->timers.items[child + 1]->at_ns < loop->timers.items[child]->at_ns)
      child++;
    if (loop->timers.items[child]->at_ns >= timer->at_ns) break;
    put(loop, i, loop->timers.items[child]);
  }
  put(loop, i, timer);
}

static void take_out(rn_loop_t* loop, rn_timer_t* timer) {
  size_t i = timer->place - 1;
  timer->place = 0;
  rn_timer_t* moved = loop->timers.items[--loop->timers.count];
  if (moved == timer) return;
  put(loop, i, moved);
  settle(loop, i);
}

rn_status_t rn_loop_set_timer(rn_loop_t* loop, rn_timer_t* timer, int64_t at_ns) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&loop->mutex);
  if (!timer->place) {
    status = rn_vec_push(&loop->timers, loop->allocator, timer);
    if (rn_ok(status)) timer->place = loop->timers.count;
  }
  bool is_first = false;
  if (rn_ok(status)) {
    timer->at_ns = at_ns;
    settle(loop, timer->place - 1);
    is_first = timer->place == 1;
  }
  rn_mutex_unlock(&loop->mutex);
  if (is_first) rn_loop_wake(loop);
  return status;
}

void rn_loop_clear_timer(rn_loop_t* loop, rn_timer_t* timer) {
  rn_mutex_lock(&loop->mutex);
  if (timer->place) take_out(loop, timer);
  while (loop->running == timer && !rn_loop_is_here(loop)) {
    rn_cond_wait(&loop->timer_ended, &loop->mutex);
    if (timer->place) take_out(loop, timer);  // it has set itself again
  }
  rn_mutex_unlock(&loop->mutex);
}

bool rn_loop_has_timer(rn_loop_t* loop, const rn_timer_t* timer) {
  rn_mutex_lock(&loop->mutex);
  bool is_set = timer->place != 0;
  rn_mutex_unlock(&loop->mutex);
  return is_set;
}

static rn_status_t timers_set(void* self, rn_timer_t* timer, int64_t at_ns) {
  return rn_loop_set_timer(self, timer, at_ns);
}
static void timers_clear(void* self, rn_timer_t* timer) { rn_loop_clear_timer(self, timer); }
rn_timers_t rn_loop_timers(rn_loop_t* loop) {
  return (rn_timers_t){.self = loop, .set = timers_set, .clear = timers_clear};
}

static void run_jobs(rn_loop_t* loop) {
  rn_mutex_lock(&loop->mutex);
  rn_loop_job_t* job = loop->first;
  loop->first = loop->last = NULL;
  rn_mutex_unlock(&loop->mutex);
  while (job) {
    rn_loop_job_t* next = job->next;
    job->run(job);
    job = next;
  }
}

// When the next timer is due.
static int64_t run_timers(rn_loop_t* loop) {
  rn_mutex_lock(&loop->mutex);
  while (loop->timers.count && loop->timers.items[0]->at_ns <= rn_loop_now(loop)) {
    rn_timer_t* timer = loop->timers.items[0];
    take_out(loop, timer);
    loop->running = timer;
    rn_mutex_unlock(&loop->mutex);
    timer->fn(timer);
    rn_mutex_lock(&loop->mutex);
    loop->running = NULL;
    rn_cond_broadcast(&loop->timer_ended);
  }
  int64_t next = loop->timers.count ? loop->timers.items[0]->at_ns : RN_FOREVER;
  if (loop->first) next = RN_AT_ONCE;
  rn_mutex_unlock(&loop->mutex);
  return next;
}

// When memory of messages that has not been used for a while is given back.
static int64_t rest_at(rn_loop_t* loop) {
  rn_cache_stats_t stats;
  rn_cache_alloc_stats(loop->landing, &stats);
  if (stats.large != loop->landed) {
    loop->landed = stats.large;
    loop->landed_ns = loop->asked_ns;
  }
  return stats.bytes_cached > 0 ? loop->landed_ns + REST_NS : RN_FOREVER;
}

// Updates a moving average of how long something takes.
static void note(int64_t* usual_ns, int64_t took_ns, int64_t limit_ns) {
  *usual_ns += ((took_ns < 4 * limit_ns ? took_ns : 4 * limit_ns) - *usual_ns) / 8;
}

// Asks which sockets are ready: spins until |spin_ns|, then blocks until |until_ns|.
static rn_status_t ask(rn_loop_t* loop, int64_t spin_ns, int64_t until_ns) {
  rn_poller_t* poller = loop->poller;
  while (spin_ns && until_ns != RN_AT_ONCE) {
    RN_RETURN_IF_ERROR(
        poller->vtable->wait(poller, loop->ready.items, MAX_READY, RN_AT_ONCE, &loop->ready.count));
    int64_t now = rn_loop_now(loop);
    if (loop->ready.count || now >= until_ns) return RN_OK;
    if (now >= spin_ns) break;
    sched_yield();  // other threads that want this CPU come first
  }
  return poller->vtable->wait(poller, loop->ready.items, MAX_READY, until_ns, &loop->ready.count);
}

static void hear_wake(rn_loop_t* loop) {
  char bytes[64];
  size_t size;
  rn_status_free(
      loop->wake_out->vtable->read(loop->wake_out, bytes, sizeof bytes, RN_AT_ONCE, &size));
  loop->is_woken = false;
}

// Calls the owners of the sockets that are ready. A callback may unwatch any socket, which clears
// its place in |ready|.
static void tell_ready(rn_loop_t* loop) {
  for (size_t i = 0; i < loop->more.count; ++i) {
    loop->more.items[i]->has_more = false;
    loop->ready.items[loop->ready.count++] =
        (rn_polled_t){.tag = loop->more.items[i], .can_read = true};
  }
  loop->more.count = 0;
  for (size_t i = 0; i < loop->ready.count; ++i) {
    const rn_polled_t ready = loop->ready.items[i];
    rn_watch_t* watch = ready.tag;
    if (!watch) continue;
    watch->ready(watch, ready.can_read, ready.can_write);
    if (loop->ready.items[i].tag) look_for_more(loop, watch);  // it is still watched
  }
  loop->ready.count = 0;
}

static void poll_once(rn_loop_t* loop, int64_t spin_ns, int64_t until_ns) {
  int64_t rest_ns = rest_at(loop);
  if (until_ns > rest_ns) until_ns = rest_ns;
  rn_status_t status = ask(loop, spin_ns, loop->more.count ? RN_AT_ONCE : until_ns);
  loop->asked_ns = rn_loop_now(loop);
  if (!rn_ok(status)) {
    int64_t left_out;
    if (rn_log_limit_says(&loop->log, loop->env, &left_out))
      rn_log(loop->env, RN_LOG_ERROR, "polling sockets: %s (%lld times before)",
             rn_status_message(status), (long long)left_out);
    rn_status_free(status);
    const struct timespec pause = {.tv_nsec = 10000000};  // the missing resource may come back
    nanosleep(&pause, NULL);
    return;
  }
  size_t woken = 0;
  while (woken < loop->ready.count && loop->ready.items[woken].tag) ++woken;
  bool is_woken = woken < loop->ready.count;
  if (is_woken) hear_wake(loop);
  if (loop->more.count || loop->ready.count > is_woken) {
    tell_ready(loop);
  }
  if (rest_ns != RN_FOREVER && loop->asked_ns >= rest_ns)
    rn_cache_alloc_trim_some(loop->landing, REST_BYTES);
  loop->ready.count = 0;
}

// Visitors.

// Refuses the waiting visitors. Under the lock.
static void refuse(rn_loop_t* loop) {
  if (!loop->is_wanted) return;
  loop->is_wanted = false;
  rn_cond_broadcast(&loop->handed);
}

// Leaves the loop to visitors until none has come for a while, or there is work that none of them
// does. Under the lock.
static void park(rn_loop_t* loop) {
  uint64_t seen = loop->visits;
  loop->turner = 0;
  rn_cond_broadcast(&loop->handed);
  for (;;) {
    bool is_long = loop->turner && loop->visits == seen;  // still the same visitor
    seen = loop->visits;
    loop->is_missed = is_long;
    if (is_long)
      rn_cond_wait(&loop->parked, &loop->mutex);
    else
      rn_cond_wait_until(&loop->parked, &loop->mutex, rn_loop_now(loop) + PARK_NS);
    loop->is_missed = false;
    if (loop->turner) continue;
    if (loop->waiting || loop->first || loop->is_woken || loop->is_stopping) break;
    if (!is_long && loop->visits == seen && !loop->is_wanted) break;
  }
  loop->turner = loop->thread;
}

// Whether visitors have come one at a time and often enough that the thread should stay away.
static bool is_regular(const rn_loop_t* loop, int64_t now) {
  return !loop->waiting && now - loop->left_ns < PARK_NS && now - loop->crowd_ns > CROWD_NS;
}

bool rn_loop_enter(rn_loop_t* loop, rn_loop_visit_t* visit) {
  int64_t now = rn_loop_now(loop);
  *visit = (rn_loop_visit_t){.begun_ns = now};
  rn_mutex_lock(&loop->mutex);
  if (loop->turner == loop->thread && is_regular(loop, now)) {
    loop->is_wanted = true;
    rn_mutex_unlock(&loop->mutex);
    rn_loop_wake(loop);
    rn_mutex_lock(&loop->mutex);
    while (loop->is_wanted && loop->turner) rn_cond_wait(&loop->handed, &loop->mutex);
  }
  visit->is_turner = !loop->turner && !loop->waiting;
  if (visit->is_turner) {
    loop->turner = pthread_self();
    loop->visits++;
    refuse(loop);  // other visitors
    if (loop->has_spare && loop->visit_ns <= VISIT_NS) visit->spin_ns = now + VISIT_NS;
  } else {
    if (loop->waiting || (loop->turner && loop->turner != loop->thread)) loop->crowd_ns = now;
    loop->waiting++;
    if (!loop->turner) rn_cond_signal(&loop->parked);
  }
  rn_mutex_unlock(&loop->mutex);
  return visit->is_turner;
}

void rn_loop_turn(rn_loop_t* loop, const rn_loop_visit_t* visit) {
  run_jobs(loop);
  int64_t until = run_timers(loop);
  poll_once(loop, visit->spin_ns, until);
}

void rn_loop_leave(rn_loop_t* loop, const rn_loop_visit_t* visit) {
  if (visit->is_turner) run_jobs(loop);
  int64_t now = rn_loop_now(loop), took = now - visit->begun_ns;
  rn_mutex_lock(&loop->mutex);
  if (visit->is_turner)
    loop->turner = 0;
  else
    loop->waiting--;
  loop->left_ns = now;
  note(&loop->visit_ns, took, VISIT_NS);
  bool is_due = loop->waiting || loop->first || loop->is_woken || loop->is_missed;
  if (!loop->turner && is_due) rn_cond_signal(&loop->parked);
  rn_mutex_unlock(&loop->mutex);
}

static void wait_for_due(rn_loop_t* loop, int64_t until_ns) {
  int64_t now = rn_loop_now(loop);
  bool is_due = loop->due > 0 && loop->has_spare, spins = is_due && loop->due_ns <= DUE_NS;
  poll_once(loop, spins ? now + DUE_NS : 0, until_ns);
  if (is_due) note(&loop->due_ns, loop->asked_ns - now, DUE_NS);
}

// Turns the loop until it is over, or until another thread took it.
static void turn_until_over(rn_loop_t* loop) {
  for (;;) {
    run_jobs(loop);
    int64_t until = run_timers(loop);
    rn_deferred_t ran = rn_loop_run_deferred(loop);
    if (ran == RN_DEFERRED_TAKEN) return;
    if (ran == RN_DEFERRED_RAN) {
      run_jobs(loop);
      until = run_timers(loop);
    }
    rn_mutex_lock(&loop->mutex);
    if (loop->deferred) until = RN_AT_ONCE;
    bool is_over = loop->is_stopping && !loop->first && !loop->deferred;
    if (loop->waiting || is_over) refuse(loop);
    bool parks = loop->is_wanted && !loop->first && !loop->deferred;
    if (parks) park(loop);
    if (is_over) rn_loop_end_locked(loop);
    rn_mutex_unlock(&loop->mutex);
    if (is_over) return;
    if (!parks) wait_for_due(loop, until);
  }
}

static void* loop_main(void* arg) {
  rn_loop_t* loop = arg;
  rn_thread_be_prompt();
  do turn_until_over(loop);
  while (rn_loop_stand_by(loop));
  return NULL;
}

void* rn_loop_spare_main(void* arg) {
  rn_loop_t* loop = arg;
  rn_thread_be_prompt();
  while (rn_loop_stand_by(loop)) turn_until_over(loop);
  return NULL;
}

static rn_status_t set_up(rn_loop_t* loop) {
  RN_RETURN_IF_ERROR(rn_cache_alloc_create(loop->allocator, MAX_LANDING, &loop->landing));
  RN_RETURN_IF_ERROR(rn_alloc(loop->allocator, RN_LOOP_SCRATCH, (void**)&loop->scratch));
  RN_RETURN_IF_ERROR(rn_vec_reserve(&loop->ready, loop->allocator, MAX_READY));
  const rn_env_t* env = loop->env;
  RN_RETURN_IF_ERROR(
      env->net->pair(env->net_self, loop->allocator, &loop->wake_in, &loop->wake_out));
  RN_RETURN_IF_ERROR(env->net->poller(env->net_self, loop->allocator, &loop->poller));
  RN_RETURN_IF_ERROR(loop->poller->vtable->add(loop->poller, loop->wake_out, true, false, NULL));
  // Nothing runs on the thread before |turner| is set.
  rn_mutex_lock(&loop->mutex);
  bool is_started = rn_loop_start_thread_locked(loop, loop_main);
  loop->thread = loop->turner = is_started ? loop->threads[0] : 0;
  rn_mutex_unlock(&loop->mutex);
  return is_started ? RN_OK : rn_resource_exhausted("Cannot start a thread for the network");
}

rn_status_t rn_loop_create(const rn_env_t* env, rn_allocator_t allocator, rn_loop_t** out) {
  *out = NULL;
  rn_loop_t* loop = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &loop));
  loop->allocator = allocator;
  loop->env = env;
  cpu_set_t usable;
  loop->has_spare = sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) > 1;
  loop->left_ns = loop->crowd_ns = INT64_MIN / 2;
  rn_mutex_init(&loop->mutex);
  rn_cond_init(&loop->timer_ended);
  rn_cond_init(&loop->parked);
  rn_cond_init(&loop->handed);
  rn_cond_init(&loop->watched);
  rn_cond_init(&loop->relieved);
  rn_status_t status = set_up(loop);
  if (!rn_ok(status)) {
    rn_loop_destroy(loop);
    return status;
  }
  *out = loop;
  return RN_OK;
}

void rn_loop_destroy(rn_loop_t* loop) {
  if (!loop) return;
  if (loop->thread_count) {
    rn_mutex_lock(&loop->mutex);
    loop->is_stopping = true;
    rn_mutex_unlock(&loop->mutex);
    rn_loop_wake(loop);
    rn_loop_join(loop);
  }
  if (loop->poller) loop->poller->vtable->close(loop->poller);
  if (loop->wake_in) loop->wake_in->vtable->close(loop->wake_in);
  if (loop->wake_out) loop->wake_out->vtable->close(loop->wake_out);
  rn_cache_alloc_release(loop->landing);
  rn_free(loop->allocator, loop->scratch, RN_LOOP_SCRATCH);
  rn_vec_free(&loop->ready, loop->allocator);
  rn_vec_free(&loop->more, loop->allocator);
  rn_vec_free(&loop->timers, loop->allocator);
  rn_cond_destroy(&loop->timer_ended);
  rn_cond_destroy(&loop->parked);
  rn_cond_destroy(&loop->handed);
  rn_cond_destroy(&loop->watched);
  rn_cond_destroy(&loop->relieved);
  rn_mutex_destroy(&loop->mutex);
  RN_FREE(loop->allocator, loop);
}
