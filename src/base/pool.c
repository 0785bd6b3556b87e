// The work-stealing pool: its threads and its jobs. pool_loop.c has the loops.
//
// Jobs that a worker submits go to its own deque. Jobs from outside, and those that find the deque
// full, go to one shared list. |jobs| counts all of them, so that one load tells a looking worker
// that there is nothing.
//
// No worker sleeps while there is a job: a publisher counts its job and then looks at the states of
// the workers; a worker first changes its state and then looks at the number of jobs. All of these
// are sequentially consistent, so at least one of the two sees the other. That a publisher wakes no
// one because a worker is looking is right for the same reason: one that stops looking because it
// has found something wakes another if there are jobs. Loops need none of this, since their callers
// can do all the work.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sched_getaffinity, pthread_setname_np
#endif
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/denormals.h"
#include "base/machine.h"
#include "base/pool_internal.h"
#include "base/thread.h"

// If two yields, one soon after the other, took longer than this, other threads want the CPU: one
// that computes keeps it for most of a millisecond at least, and again the next time. Ticks, kernel
// threads, the hypervisor and threads that look for work, as this one does, take a CPU for some 10
// us often, and for longer a few times per second.
#define YIELD_NS 100000
#define SOON_NS 20000000
#define CROWDED_NS 50000000  // how long that is believed
// Gaps are remembered as a number up to MOST_LUCK: a short one adds two, a long one takes one away;
// from ENOUGH_LUCK on, a worker looks for long.
#define MOST_LUCK 8
#define ENOUGH_LUCK 4
#define MOST_KEPT ((size_t)64 << 20)  // larger blocks that were lent are freed at once

// The calling thread's worker, of whichever pool; NULL if it is none.
static _Thread_local rn_pool_worker_t* current_worker __attribute__((tls_model("initial-exec")));

static rn_pool_worker_t* worker_here(const rn_pool_t* pool) {
  rn_pool_worker_t* worker = current_worker;
  return worker && worker->pool == pool ? worker : NULL;
}

void rn_pool_futex_wait(_Atomic uint32_t* word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void rn_pool_futex_wake(_Atomic uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int64_t rn_pool_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool rn_pool_spin_again(rn_pool_t* pool, rn_pool_spin_t* spin, int64_t patience) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
  if (++spin->turns % 16) return true;  // the clock costs more than a turn
  int64_t now = rn_pool_now_ns();
  if (!spin->start) spin->start = now;
  if (now - spin->start >= patience) return false;
  if (now - spin->start < RN_POOL_LOOK_NS) return true;
  if (now < atomic_load_explicit(&pool->crowded_until_ns, memory_order_relaxed)) return false;
  sched_yield();
  int64_t after = rn_pool_now_ns();
  if (after - now < YIELD_NS) return true;
  int64_t last = atomic_exchange_explicit(&pool->long_yield_ns, after, memory_order_relaxed);
  // Yields that overlap may have waited for the same thing.
  if (!last || now < last || now - last > SOON_NS) return true;
  atomic_store_explicit(&pool->crowded_until_ns, after + CROWDED_NS, memory_order_relaxed);
  return false;
}

static void shared_push(rn_pool_t* pool, rn_job_t* job) {
  job->next = NULL;
  rn_mutex_lock(&pool->shared_mutex);
  if (pool->shared_last) {
    pool->shared_last->next = job;
  } else {
    pool->shared_first = job;
  }
  pool->shared_last = job;
  rn_mutex_unlock(&pool->shared_mutex);
}

static rn_job_t* shared_pop(rn_pool_t* pool) {
  rn_mutex_lock(&pool->shared_mutex);
  rn_job_t* job = pool->shared_first;
  if (job) {
    pool->shared_first = job->next;
    if (!job->next) pool->shared_last = NULL;
  }
  rn_mutex_unlock(&pool->shared_mutex);
  return job;
}

static rn_job_t* steal(rn_pool_t* pool, rn_pool_worker_t* self) {
  uint32_t started = (uint32_t)atomic_load_explicit(&pool->started, memory_order_acquire);
  uint32_t start = 0;
  if (self) {  // thieves begin at different victims
    self->random ^= self->random << 13;
    self->random ^= self->random >> 17;
    self->random ^= self->random << 5;
    start = self->random;
  }
  for (uint32_t i = 0; i < started; i++) {
    rn_pool_worker_t* victim = &pool->workers[(start % started + i) % started];
    rn_job_t* job = victim == self ? NULL : rn_deque_steal(&victim->deque);
    if (job) return job;
  }
  return NULL;
}

static rn_job_t* find_job(rn_pool_t* pool, rn_pool_worker_t* self) {
  if (atomic_load(&pool->jobs) <= 0) return NULL;
  rn_job_t* job = NULL;
  if (self) {
    // Every so often the shared list comes first, so that a worker with jobs of its own does not
    // starve it.
    if (++self->tick % 64 == 0) job = shared_pop(pool);
    if (!job) job = rn_deque_pop(&self->deque);
  }
  if (!job) job = shared_pop(pool);
  if (!job) job = steal(pool, self);
  if (job) atomic_fetch_sub(&pool->jobs, 1);
  return job;
}

static bool run_something(rn_pool_t* pool, rn_pool_worker_t* self) {
  if (rn_pool_help_loops(pool, self)) return true;
  rn_job_t* job = find_job(pool, self);
  if (!job) return false;
  if (self) rn_pool_set_busy(self);
  job->run(job);  // may free the job
  return true;
}

static void* worker_main(void* arg);

// False: there are enough, or the system gave no thread.
static bool start_worker_locked(rn_pool_t* pool) {
  int index = atomic_load(&pool->started);
  if (pool->no_more_workers || index >= pool->threads - 1) return false;
  rn_pool_worker_t* worker = &pool->workers[index];
  worker->pool = pool;
  worker->index = (uint32_t)index;
  worker->random = (uint32_t)index * 2654435761u | 1;
  // Signals are for the host program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pool->no_more_workers = pthread_create(&worker->thread, NULL, worker_main, worker) != 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!pool->no_more_workers) atomic_store(&pool->started, index + 1);
  return !pool->no_more_workers;
}

void rn_pool_start_workers(rn_pool_t* pool, int count) {
  rn_mutex_lock(&pool->start_mutex);
  while (atomic_load(&pool->started) < count && start_worker_locked(pool)) {
  }
  rn_mutex_unlock(&pool->start_mutex);
}

static _Atomic uint64_t* asleep_word(rn_pool_worker_t* worker) {
  return &worker->pool->asleep[worker->index / 64];
}

bool rn_pool_wake(rn_pool_worker_t* worker) {
  uint32_t state = RN_POOL_ASLEEP;
  if (atomic_load(&worker->state) != state ||
      !atomic_compare_exchange_strong(&worker->state, &state, RN_POOL_LOOKING))
    return false;
  atomic_fetch_and_explicit(asleep_word(worker), ~(UINT64_C(1) << worker->index % 64),
                            memory_order_relaxed);
  rn_pool_futex_wake(&worker->state);
  return true;
}

// After a job was published: makes sure that a worker looks for it.
static void call_worker(rn_pool_t* pool) {
  if (atomic_load(&pool->jobs) <= 0) return;
  int started = atomic_load(&pool->started);
  for (int i = 0; i < started; i++) {
    if (atomic_load(&pool->workers[i].state) == RN_POOL_LOOKING) return;
  }
  for (int i = 0; i < started; i++) {
    if (rn_pool_wake(&pool->workers[i])) return;
  }
  if (started >= pool->threads - 1) return;
  // One more than there are now: |started| may be behind, and its last worker busy already.
  rn_mutex_lock(&pool->start_mutex);
  start_worker_locked(pool);
  rn_mutex_unlock(&pool->start_mutex);
}

void rn_pool_set_busy(rn_pool_worker_t* self) {
  if (atomic_load_explicit(&self->state, memory_order_relaxed) == RN_POOL_BUSY) return;
  atomic_store(&self->state, RN_POOL_BUSY);
  call_worker(self->pool);
}

// Puts a looking worker to sleep until it is woken.
static void doze(rn_pool_t* pool, rn_pool_worker_t* self) {
  int64_t start = rn_pool_now_ns();
  atomic_fetch_or_explicit(asleep_word(self), UINT64_C(1) << self->index % 64,
                           memory_order_relaxed);
  atomic_store(&self->state, RN_POOL_ASLEEP);
  if (atomic_load(&pool->jobs) <= 0 && !atomic_load(&pool->stopping)) {
    while (atomic_load(&self->state) == RN_POOL_ASLEEP) {
      rn_pool_futex_wait(&self->state, RN_POOL_ASLEEP);
    }
  } else {
    rn_pool_wake(self);  // unless someone else has just done so
  }
  self->luck += rn_pool_now_ns() - start < RN_POOL_LONG_LOOK_NS ? 2 : -1;
  if (self->luck > MOST_LUCK) self->luck = MOST_LUCK;
  if (self->luck < 0) self->luck = 0;
}

// Looks for work and does it; ends when there has been none for a while.
static void look_around(rn_pool_t* pool, rn_pool_worker_t* self) {
  int64_t patience = self->luck >= ENOUGH_LUCK ? RN_POOL_LONG_LOOK_NS : RN_POOL_LOOK_NS;
  // More threads than processors are for jobs that wait, and must not keep others from running.
  if (self->index + 1 >= (uint32_t)pool->processors) patience = 0;
  rn_pool_spin_t spin = {0};
  do {
    while (run_something(pool, self)) spin = (rn_pool_spin_t){0};
    if (atomic_load_explicit(&self->state, memory_order_relaxed) == RN_POOL_BUSY) {
      atomic_store(&self->state, RN_POOL_LOOKING);
      continue;
    }
    if (atomic_load_explicit(&pool->stopping, memory_order_relaxed)) return;
  } while (rn_pool_spin_again(pool, &spin, patience));
}

static void* worker_main(void* arg) {
  rn_pool_worker_t* self = arg;
  rn_pool_t* pool = self->pool;
  current_worker = self;
  pthread_setname_np(pthread_self(), "rn_pool");
  rn_denormals_flush();
  for (;;) {
    look_around(pool, self);
    if (atomic_load(&pool->stopping) && atomic_load(&pool->jobs) <= 0) return NULL;
    doze(pool, self);
  }
}

static size_t aligned(size_t size) {
  return (size + RN_POOL_PAIR - 1) & ~(size_t)(RN_POOL_PAIR - 1);
}

// Takes |size| bytes from what |*inout_at| points to.
static void* carve(char** inout_at, size_t size) {
  char* at = *inout_at;
  *inout_at += aligned(size);
  return at;
}

rn_status_t rn_pool_create(rn_allocator_t allocator, int threads, rn_pool_t** out_pool) {
  rn_machine_processors_t processors = rn_machine_processors("");
  return rn_pool_create_on(allocator, threads < 1 ? processors.cores : threads, processors.all,
                           out_pool);
}

rn_status_t rn_pool_create_on(rn_allocator_t allocator, int threads, int processors,
                              rn_pool_t** out_pool) {
  *out_pool = NULL;
  if (threads < 1) threads = processors;
  if (threads > RN_POOL_MOST_THREADS) threads = RN_POOL_MOST_THREADS;
  size_t workers = (size_t)threads - 1, slots = workers ? RN_POOL_SLOTS : 0;
  size_t parts = workers + 1 < RN_POOL_MOST_PARTS ? workers + 1 : RN_POOL_MOST_PARTS;
  size_t costs = workers ? sizeof(rn_pool_costs_t) : 0;
  size_t size = aligned(sizeof(rn_pool_t)) + aligned(costs) +
                aligned(slots * sizeof(rn_pool_loop_t)) + slots * parts * sizeof(rn_pool_part_t) +
                aligned(workers * sizeof(rn_pool_worker_t)) + RN_POOL_PAIR;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, &block));
  char* at = (char*)aligned((uintptr_t)block);
  rn_pool_t* pool = carve(&at, sizeof *pool);
  pool->allocator = allocator;
  pool->block = block;
  pool->block_size = size;
  pool->threads = threads;
  pool->processors = processors;
  pool->costs = carve(&at, costs);
  pool->loops = carve(&at, slots * sizeof *pool->loops);
  for (size_t s = 0; s < slots; ++s)
    pool->loops[s].shares = carve(&at, parts * sizeof(rn_pool_part_t));
  pool->workers = carve(&at, workers * sizeof *pool->workers);
  rn_mutex_init(&pool->start_mutex);
  rn_mutex_init(&pool->kept_mutex);
  rn_mutex_init(&pool->shared_mutex);
  *out_pool = pool;
  return RN_OK;
}

void rn_pool_destroy(rn_pool_t* pool) {
  if (!pool) return;
  rn_mutex_lock(&pool->start_mutex);
  pool->no_more_workers = true;
  rn_mutex_unlock(&pool->start_mutex);
  while (run_something(pool, NULL)) {
  }
  atomic_store(&pool->stopping, true);
  int started = atomic_load(&pool->started);
  for (int i = 0; i < started; i++) rn_pool_wake(&pool->workers[i]);
  for (int i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
  // Jobs that were submitted by the last jobs after the workers were told to stop.
  while (run_something(pool, NULL)) {
  }
  while (atomic_load(&pool->submitters) > 0) sched_yield();
  rn_mutex_destroy(&pool->shared_mutex);
  rn_mutex_destroy(&pool->start_mutex);
  rn_mutex_destroy(&pool->kept_mutex);
  if (pool->kept) rn_free(pool->allocator, pool->kept, pool->kept_size);
  rn_free(pool->allocator, pool->block, pool->block_size);
}

rn_status_t rn_pool_borrow(rn_pool_t* pool, size_t size, void** out_block) {
  if (!pool) return rn_alloc(rn_allocator_default(), size, out_block);
  rn_mutex_lock(&pool->kept_mutex);
  bool fits = !pool->is_lent && pool->kept_size >= size;
  if (fits) {
    pool->is_lent = true;
    *out_block = pool->kept;
  }
  rn_mutex_unlock(&pool->kept_mutex);
  return fits ? RN_OK : rn_alloc(pool->allocator, size, out_block);
}

void rn_pool_give_back(rn_pool_t* pool, void* block, size_t size) {
  if (!pool) {
    rn_free(rn_allocator_default(), block, size);
    return;
  }
  rn_mutex_lock(&pool->kept_mutex);
  bool was_kept = block == pool->kept;
  void* old = block;
  size_t old_size = size;
  if (was_kept) {
    pool->is_lent = false;
  } else if (!pool->is_lent && size > pool->kept_size && size <= MOST_KEPT) {
    old = pool->kept, old_size = pool->kept_size;
    pool->kept = block, pool->kept_size = size;
  }
  rn_mutex_unlock(&pool->kept_mutex);
  if (!was_kept && old) rn_free(pool->allocator, old, old_size);
}

void rn_pool_start(rn_pool_t* pool) {
  if (rn_pool_threads(pool) > 1) rn_pool_start_workers(pool, pool->threads - 1);
}

static void* start_patient(void* pool) {
  rn_thread_be_patient();
  rn_pool_start(pool);
  return NULL;
}

void rn_pool_start_patient(rn_pool_t* pool) {
  pthread_t starter;
  if (pthread_create(&starter, NULL, start_patient, pool) == 0)
    pthread_join(starter, NULL);
  else
    rn_pool_start(pool);
}

int rn_pool_threads(const rn_pool_t* pool) { return pool ? pool->threads : 1; }

int rn_pool_loop_threads(const rn_pool_t* pool) {
  if (!pool) return 1;
  int most = pool->threads < pool->processors ? pool->threads : pool->processors;
  return most < RN_POOL_MOST_PARTS ? most : RN_POOL_MOST_PARTS;
}

void rn_pool_submit(rn_pool_t* pool, rn_job_t* job) {
  if (rn_pool_threads(pool) > 1 && atomic_load(&pool->started) == 0) rn_pool_start_workers(pool, 1);
  if (rn_pool_threads(pool) == 1 || atomic_load(&pool->started) == 0) {
    job->run(job);
    return;
  }
  rn_pool_worker_t* self = worker_here(pool);
  atomic_fetch_add(&pool->jobs, 1);
  // The thread that waits for the job may destroy the pool before this one has left it.
  if (!self) atomic_fetch_add(&pool->submitters, 1);
  if (!self || !rn_deque_push(&self->deque, job)) shared_push(pool, job);
  call_worker(pool);
  if (!self) atomic_fetch_sub(&pool->submitters, 1);
}

bool rn_pool_help(rn_pool_t* pool) {
  return rn_pool_threads(pool) > 1 && run_something(pool, worker_here(pool));
}
