// The work-stealing pool.
//
// Work is in three places. Loops (rn_pool_for) are slots in the pool with a counter of pieces: a
// worker joins an open slot and claims pieces until none is left, so nothing is queued, and the
// caller never waits for a helper that did not come. Jobs that a worker submits go to its own
// deque. Jobs from outside, and those that find the deque full, go to one shared list.
//
// No worker sleeps while there is work: a publisher looks for sleepers after it has published; a
// worker that goes to sleep first counts itself as a sleeper and then looks for work once more. All
// of these are sequentially consistent, so at least one of the two sees the other. The same holds
// between a publisher that wakes no worker because one is looking, and the last worker to stop
// looking.
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
#include "base/deque.h"
#include "base/sync.h"

#define LOOP_SLOTS 64  // loops under way at once: the bits of |open_loops|
#define LOOK_NS 10000  // how long a worker looks for work before it sleeps: half a wake-up
// How long a worker looks if work has been arriving in shorter gaps than this, yielding the CPU
// meanwhile: waking a worker for every loop of a step would cost more.
#define LONG_LOOK_NS 200000
// If a yield took longer than this, other threads want the CPU.
#define YIELD_NS 5000
// Gaps are remembered as a number up to MOST_LUCK: a short one adds two, a long one takes one away;
// from ENOUGH_LUCK on, a worker looks for long.
#define MOST_LUCK 8
#define ENOUGH_LUCK 4
#define MAX_THREADS 1024  // more are not started

// A loop's state is one word: the flags, and below them the number of workers inside.
#define LOOP_TAKEN (1u << 31)    // the slot is in use
#define LOOP_OPEN (1u << 30)     // workers may join
#define LOOP_WAITING (1u << 29)  // the caller sleeps until the last worker has left
#define LOOP_INSIDE (LOOP_WAITING - 1)

typedef struct rn_pool_loop_t {
  _Alignas(RN_ALIGN) _Atomic uint32_t state;
  // Set by the caller before it opens the loop; unchanged until it has taken the slot back.
  void (*body)(void* arg, int64_t begin, int64_t end);
  void* arg;
  int64_t count, grain, pieces;
  _Alignas(RN_ALIGN) _Atomic int64_t next[2];  // of the even pieces and of the odd ones
  _Atomic int64_t claimed;                     // of all
} rn_pool_loop_t;

typedef struct rn_pool_worker_t {
  rn_deque_t deque;
  rn_pool_t* pool;  // Borrowed
  pthread_t thread;
  uint32_t tick;
  uint32_t random;  // never 0
  int luck;         // with short gaps between work, lately
} rn_pool_worker_t;

struct rn_pool_t {
  rn_allocator_t allocator;
  void* block;  // Owned: what the pool, aligned, lies in
  size_t block_size;
  int threads;

  rn_mutex_t start_mutex;  // held while workers are started
  bool no_more_workers;    // the system gave no thread, or the pool is going; under the mutex
  _Atomic int started;     // workers [0, started) exist; grows under the mutex

  _Alignas(RN_ALIGN) _Atomic uint64_t open_loops;  // a bit for each slot with pieces to claim
  _Alignas(RN_ALIGN) _Atomic uint32_t lookers;     // workers awake and without work
  _Atomic uint32_t sleepers;
  _Atomic uint32_t wakes;  // the word that sleepers sleep on; changes with each wake-up
  _Atomic bool stopping;

  _Alignas(RN_ALIGN) rn_mutex_t shared_mutex;  // guards the list
  rn_job_t* shared_first;
  rn_job_t* shared_last;
  _Atomic int64_t shared_count;  // changes under the mutex, read without

  rn_pool_loop_t loops[LOOP_SLOTS];
  rn_pool_worker_t workers[];  // threads - 1
};

// The calling thread's worker, of whichever pool; NULL if it is none.
static _Thread_local rn_pool_worker_t* current_worker __attribute__((tls_model("initial-exec")));

static rn_pool_worker_t* worker_here(const rn_pool_t* pool) {
  rn_pool_worker_t* worker = current_worker;
  return worker && worker->pool == pool ? worker : NULL;
}

static void futex_wait(_Atomic uint32_t* word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// One turn of a short wait; start with zeros. False once |patience| nanoseconds have passed, or
// other threads want the CPU.
typedef struct spin_t {
  uint32_t turns;
  int64_t start;
} spin_t;

static bool spin_again(spin_t* spin, int64_t patience) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
  if (++spin->turns % 16) return true;  // the clock costs more than a turn
  int64_t now = now_ns();
  if (!spin->start) spin->start = now;
  if (now - spin->start >= patience) return false;
  if (now - spin->start < LOOK_NS) return true;
  sched_yield();
  return now_ns() - now < YIELD_NS;
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
  atomic_fetch_add(&pool->shared_count, 1);
  rn_mutex_unlock(&pool->shared_mutex);
}

static rn_job_t* shared_pop(rn_pool_t* pool) {
  if (atomic_load(&pool->shared_count) == 0) return NULL;
  rn_mutex_lock(&pool->shared_mutex);
  rn_job_t* job = pool->shared_first;
  if (job) {
    pool->shared_first = job->next;
    if (!job->next) pool->shared_last = NULL;
    atomic_fetch_sub(&pool->shared_count, 1);
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
  rn_job_t* job = NULL;
  if (self) {
    // Every so often the shared list comes first, so that a worker with jobs of its own does not
    // starve it.
    if (++self->tick % 64 == 0) job = shared_pop(pool);
    if (!job) job = rn_deque_pop(&self->deque);
  }
  if (!job) job = shared_pop(pool);
  return job ? job : steal(pool, self);
}

static bool has_jobs(rn_pool_t* pool) {
  if (atomic_load(&pool->shared_count)) return true;
  int started = atomic_load(&pool->started);
  for (int i = 0; i < started; i++) {
    if (rn_deque_has_jobs(&pool->workers[i].deque)) return true;
  }
  return false;
}

// The next piece for a thread: even ones are for the caller, odd ones for workers, as long as there
// are any. So in consecutive loops over the same memory, each thread gets much the same part, which
// is in its cache. -1: all are taken.
static int64_t claim_piece(rn_pool_loop_t* loop, int side) {
  for (int turn = 0; turn < 2; ++turn, side = 1 - side) {
    int64_t i = atomic_fetch_add_explicit(&loop->next[side], 1, memory_order_relaxed);
    if (i < (loop->pieces + 1 - side) / 2) return 2 * i + side;
  }
  return -1;
}

// Claims and runs pieces until none is left.
static void loop_work(rn_pool_t* pool, rn_pool_loop_t* loop, bool is_caller) {
  int64_t piece;
  while ((piece = claim_piece(loop, is_caller ? 0 : 1)) >= 0) {
    // The thread that claims the last piece clears the loop's bit. It is inside until it has run
    // the piece, so the bit still belongs to this loop.
    if (atomic_fetch_add_explicit(&loop->claimed, 1, memory_order_relaxed) == loop->pieces - 1) {
      atomic_fetch_and(&pool->open_loops, ~(UINT64_C(1) << (loop - pool->loops)));
    }
    int64_t begin = piece * loop->grain;
    int64_t rest = loop->count - begin;
    loop->body(loop->arg, begin, begin + (rest < loop->grain ? rest : loop->grain));
  }
}

// Joins an open loop, works on it and leaves it. False: there was none to join.
static bool help_loop(rn_pool_t* pool) {
  for (uint64_t open = atomic_load(&pool->open_loops); open; open &= open - 1) {
    rn_pool_loop_t* loop = &pool->loops[__builtin_ctzll(open)];
    uint32_t state = atomic_load_explicit(&loop->state, memory_order_relaxed);
    bool joined = false;
    while (!joined && (state & LOOP_OPEN)) {
      // Acquire: the loop's fields are what its caller set before it opened it, and stay so until
      // we leave.
      joined = atomic_compare_exchange_weak_explicit(&loop->state, &state, state + 1,
                                                     memory_order_acquire, memory_order_relaxed);
    }
    if (!joined) continue;
    loop_work(pool, loop, false);
    // Release: what the pieces wrote is seen by the caller that finds us gone.
    state = atomic_fetch_sub_explicit(&loop->state, 1, memory_order_release) - 1;
    // The slot may already belong to another loop; waking its caller needlessly does no harm.
    if ((state & LOOP_WAITING) && (state & LOOP_INSIDE) == 0) futex_wake(&loop->state, INT_MAX);
    return true;
  }
  return false;
}

static bool run_something(rn_pool_t* pool, rn_pool_worker_t* self) {
  if (help_loop(pool)) return true;
  rn_job_t* job = find_job(pool, self);
  if (!job) return false;
  job->run(job);  // may free the job
  return true;
}

static void* worker_main(void* arg);

// Starts up to |count| workers, as far as the pool's number and the system allow. They count as
// lookers from the start, so that the work they are started for starts no others.
static void start_workers(rn_pool_t* pool, uint32_t count) {
  rn_mutex_lock(&pool->start_mutex);
  for (; count && !pool->no_more_workers; count--) {
    int index = atomic_load(&pool->started);
    if (index >= pool->threads - 1) break;
    rn_pool_worker_t* worker = &pool->workers[index];
    worker->pool = pool;
    worker->random = (uint32_t)index * 2654435761u | 1;
    atomic_fetch_add(&pool->lookers, 1);
    // Signals are for the host program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
      atomic_fetch_sub(&pool->lookers, 1);
      pool->no_more_workers = true;
    } else {
      atomic_store(&pool->started, index + 1);
    }
  }
  rn_mutex_unlock(&pool->start_mutex);
}

// After work was published: makes sure that |wanted| workers look for it.
static void call_workers(rn_pool_t* pool, uint32_t wanted) {
  uint32_t lookers = atomic_load(&pool->lookers);
  if (wanted <= lookers) return;
  wanted -= lookers;
  uint32_t sleepers = atomic_load(&pool->sleepers);
  if (sleepers) {
    atomic_fetch_add(&pool->wakes, 1);
    futex_wake(&pool->wakes, (int)(wanted < sleepers ? wanted : sleepers));
  }
  if (wanted > sleepers && atomic_load(&pool->started) < pool->threads - 1) {
    start_workers(pool, wanted - sleepers);
  }
}

// Looks for work for a while. True if there is a loop to join, or |*out_job| was found.
static bool look_around(rn_pool_t* pool, rn_pool_worker_t* self, rn_job_t** out_job) {
  int64_t patience = self->luck >= ENOUGH_LUCK ? LONG_LOOK_NS : LOOK_NS;
  spin_t spin = {0};
  do {
    if (atomic_load(&pool->open_loops)) return true;
    *out_job = find_job(pool, self);
    if (*out_job) return true;
    if (atomic_load_explicit(&pool->stopping, memory_order_relaxed)) return false;
  } while (spin_again(&spin, patience));
  bool is_crowded = patience == LONG_LOOK_NS && now_ns() - spin.start < patience;
  if (is_crowded) self->luck = 0;
  return false;
}

// Puts a looking worker to sleep until it is woken.
static void doze(rn_pool_t* pool, rn_pool_worker_t* self) {
  int64_t start = now_ns();
  uint32_t wakes = atomic_load(&pool->wakes);
  atomic_fetch_add(&pool->sleepers, 1);
  atomic_fetch_sub(&pool->lookers, 1);
  if (!atomic_load(&pool->open_loops) && !has_jobs(pool) && !atomic_load(&pool->stopping)) {
    futex_wait(&pool->wakes, wakes);
  }
  atomic_fetch_add(&pool->lookers, 1);
  atomic_fetch_sub(&pool->sleepers, 1);
  self->luck += now_ns() - start < LONG_LOOK_NS ? 2 : -1;
  if (self->luck > MOST_LUCK) self->luck = MOST_LUCK;
  if (self->luck < 0) self->luck = 0;
}

static void* worker_main(void* arg) {
  rn_pool_worker_t* self = arg;
  rn_pool_t* pool = self->pool;
  current_worker = self;
  pthread_setname_np(pthread_self(), "rn_pool");
  rn_denormals_flush();
  for (;;) {  // here the worker counts as a looker
    rn_job_t* job = NULL;
    if (look_around(pool, self, &job)) {
      // Publishers woke no one because we were looking, so the last worker to stop must check for
      // work again.
      if (atomic_fetch_sub(&pool->lookers, 1) == 1 && has_jobs(pool)) call_workers(pool, 1);
      if (job) job->run(job);
      while (run_something(pool, self)) {
      }
      atomic_fetch_add(&pool->lookers, 1);
    } else if (atomic_load(&pool->stopping)) {
      atomic_fetch_sub(&pool->lookers, 1);
      return NULL;
    } else {
      doze(pool, self);
    }
  }
}

static int usable_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);  // more processors than the set has room for
  return online > 0 && online < INT_MAX ? (int)online : 1;
}

rn_status_t rn_pool_create(rn_allocator_t allocator, int threads, rn_pool_t** out_pool) {
  *out_pool = NULL;
  if (threads < 1) threads = usable_processors();
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  size_t size = sizeof(rn_pool_t) + (size_t)(threads - 1) * sizeof(rn_pool_worker_t) + RN_ALIGN;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, &block));
  rn_pool_t* pool = (rn_pool_t*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
  pool->allocator = allocator;
  pool->block = block;
  pool->block_size = size;
  pool->threads = threads;
  rn_mutex_init(&pool->start_mutex);
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
  atomic_fetch_add(&pool->wakes, 1);
  futex_wake(&pool->wakes, INT_MAX);
  int started = atomic_load(&pool->started);
  for (int i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
  // Jobs that were submitted by the last jobs after the workers were told to stop.
  while (run_something(pool, NULL)) {
  }
  rn_mutex_destroy(&pool->shared_mutex);
  rn_mutex_destroy(&pool->start_mutex);
  rn_free(pool->allocator, pool->block, pool->block_size);
}

void rn_pool_start(rn_pool_t* pool) {
  if (rn_pool_threads(pool) > 1) start_workers(pool, (uint32_t)pool->threads - 1);
}

int rn_pool_threads(const rn_pool_t* pool) { return pool ? pool->threads : 1; }

void rn_pool_submit(rn_pool_t* pool, rn_job_t* job) {
  if (rn_pool_threads(pool) > 1 && atomic_load(&pool->started) == 0) start_workers(pool, 1);
  if (rn_pool_threads(pool) == 1 || atomic_load(&pool->started) == 0) {
    job->run(job);
    return;
  }
  rn_pool_worker_t* self = worker_here(pool);
  if (!self || !rn_deque_push(&self->deque, job)) shared_push(pool, job);
  call_workers(pool, 1);
}

bool rn_pool_help(rn_pool_t* pool) {
  return rn_pool_threads(pool) > 1 && run_something(pool, worker_here(pool));
}

// Takes a free slot; NULL if there is none.
static rn_pool_loop_t* take_slot(rn_pool_t* pool) {
  // The address of the stack spreads the threads over the slots, and brings each back to the slot
  // that is in its cache.
  uintptr_t first = ((uintptr_t)&pool >> 12) * 0x9e3779b97f4a7c15u >> 58;
  for (unsigned i = 0; i < LOOP_SLOTS; i++) {
    rn_pool_loop_t* loop = &pool->loops[(first + i) % LOOP_SLOTS];
    uint32_t free_state = 0;
    if (atomic_load_explicit(&loop->state, memory_order_relaxed) == 0 &&
        atomic_compare_exchange_strong_explicit(&loop->state, &free_state, LOOP_TAKEN,
                                                memory_order_acquire, memory_order_relaxed)) {
      return loop;
    }
  }
  return NULL;
}

// Lets no more workers in, waits for those inside, and gives the slot back.
static void close_loop(rn_pool_loop_t* loop) {
  uint32_t state = atomic_fetch_and_explicit(&loop->state, ~LOOP_OPEN, memory_order_acquire);
  spin_t spin = {0};
  while ((state & LOOP_INSIDE) && spin_again(&spin, LONG_LOOK_NS)) {
    state = atomic_load_explicit(&loop->state, memory_order_acquire);
  }
  while (state & LOOP_INSIDE) {
    state = atomic_fetch_or_explicit(&loop->state, LOOP_WAITING, memory_order_acquire);
    if ((state & LOOP_INSIDE) == 0) break;
    futex_wait(&loop->state, state | LOOP_WAITING);
    state = atomic_load_explicit(&loop->state, memory_order_acquire);
  }
  atomic_store_explicit(&loop->state, 0, memory_order_release);
}

static void run_alone(int64_t count, int64_t grain,
                      void (*body)(void* arg, int64_t begin, int64_t end), void* arg) {
  for (int64_t begin = 0; begin < count; begin += grain) {
    int64_t rest = count - begin;
    body(arg, begin, begin + (rest < grain ? rest : grain));
    if (rest <= grain) break;  // before the sum can overflow
  }
}

// A loop of several pieces, by the caller and up to |most| workers.
static void run_loop(rn_pool_t* pool, int64_t count, int64_t grain, int64_t most,
                     void (*body)(void* arg, int64_t begin, int64_t end), void* arg) {
  rn_pool_loop_t* loop = most > 0 ? take_slot(pool) : NULL;
  if (!loop) {
    run_alone(count, grain, body, arg);
    return;
  }
  loop->body = body;
  loop->arg = arg;
  loop->count = count;
  loop->grain = grain;
  loop->pieces = (count - 1) / grain + 1;
  atomic_store_explicit(&loop->claimed, 0, memory_order_relaxed);
  atomic_store_explicit(&loop->next[0], 0, memory_order_relaxed);
  atomic_store_explicit(&loop->next[1], 0, memory_order_relaxed);
  // The bit goes up before the loop opens: a worker that joins at once and claims the last piece
  // must find it there to take it down.
  atomic_fetch_or(&pool->open_loops, UINT64_C(1) << (loop - pool->loops));
  atomic_store_explicit(&loop->state, LOOP_TAKEN | LOOP_OPEN, memory_order_release);
  call_workers(pool, (uint32_t)(most > loop->pieces - 1 ? loop->pieces - 1 : most));
  loop_work(pool, loop, true);
  close_loop(loop);
}

void rn_pool_for(rn_pool_t* pool, int64_t count, int64_t grain,
                 void (*body)(void* arg, int64_t begin, int64_t end), void* arg) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if (count <= grain)
    body(arg, 0, count);
  else
    run_loop(pool, count, grain, rn_pool_threads(pool) - 1, body, arg);
}

void rn_pool_for_small(rn_pool_t* pool, int64_t count, int64_t grain, int64_t small,
                       void (*body)(void* arg, int64_t begin, int64_t end), void* arg) {
  if (count > grain || count <= small) {
    rn_pool_for(pool, count, count > grain ? grain : count, body, arg);
    return;
  }
  // A worker that stops looking meanwhile leaves its pieces to the others.
  int64_t awake = rn_pool_threads(pool) > 1 ? (int64_t)atomic_load(&pool->lookers) : 0;
  run_loop(pool, count, small < 1 ? 1 : small, awake, body, arg);
}
