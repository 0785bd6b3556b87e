// What pool.c, pool_loop.c and pool_cost.c share. For them only.
#ifndef RUNNEL_BASE_POOL_INTERNAL_H_
#define RUNNEL_BASE_POOL_INTERNAL_H_

#include "base/deque.h"
#include "base/pool_cost.h"
#include "base/sync.h"

#define RN_POOL_SLOTS 32  // loops under way at once; more run in their callers alone
#define RN_POOL_MOST_PARTS 64
#define RN_POOL_MOST_THREADS 1024  // more are not started
#define RN_POOL_PAIR 128           // processors fetch cache lines in pairs

// One thread's share of a loop. Both words are a generation and, below it, a number of chunks; a
// word of an older generation counts as zero, so that it needs no reset, and the line stays in
// the cache of the worker that uses it loop after loop.
typedef struct rn_pool_part_t {
  _Alignas(RN_POOL_PAIR) _Atomic uint64_t claimed;
  _Atomic uint64_t done;
} rn_pool_part_t;

// A slot for a loop. Its caller writes the first line, workers only read it.
typedef struct rn_pool_loop_t {
  // Odd while the loop is open. A reader that finds the same odd number before and after it read
  // the other fields has those of one loop.
  _Alignas(RN_POOL_PAIR) _Atomic uint64_t generation;
  _Atomic(rn_pool_body_t) body;
  _Atomic(void*) arg;
  _Atomic int64_t count, grain;
  _Atomic uint32_t chunk;  // pieces that are claimed at once
  _Atomic uint32_t parts;  // shares, the caller's first
  _Atomic uint32_t base;   // the worker that the second share is for
  _Atomic uint32_t flags;

  _Alignas(RN_POOL_PAIR) _Atomic bool is_taken;  // by a caller
  _Atomic uint32_t next_wake;                    // invited workers that someone has woken
  double debt_ns;  // the caller's: what loops have taken that workers slept through

  _Alignas(RN_POOL_PAIR) _Atomic bool is_awaited;  // the caller sleeps until the last chunk is done
  _Atomic uint32_t bell;                           // what it sleeps on
  rn_pool_part_t* shares;                          // Borrowed; set when the pool is made
} rn_pool_loop_t;

// The states of a worker, on a line of its own; a sleeping one sleeps on this word.
typedef enum rn_pool_state_t { RN_POOL_LOOKING, RN_POOL_BUSY, RN_POOL_ASLEEP } rn_pool_state_t;

typedef struct rn_pool_worker_t {
  _Alignas(RN_POOL_PAIR) _Atomic uint32_t state;
  _Alignas(RN_POOL_PAIR) rn_deque_t deque;
  rn_pool_t* pool;  // Borrowed
  pthread_t thread;
  uint32_t index;
  uint32_t tick;
  uint32_t random;  // never 0
  int luck;         // with short gaps between work, lately
  // An open loop that this worker was not invited to, and when it first saw it.
  uint64_t seen_generation;
  uint32_t seen_slot;
  int64_t seen_ns;
  uint64_t left[RN_POOL_SLOTS];  // the generation in which it found nothing more to claim
} rn_pool_worker_t;

struct rn_pool_t {
  rn_allocator_t allocator;
  void* block;  // Owned: what the pool, aligned, lies in
  size_t block_size;
  int threads;
  int processors;  // that loops use: more threads than that would only take turns

  rn_mutex_t start_mutex;  // held while workers are started
  bool no_more_workers;    // the system gave no thread, or the pool is going; under the mutex
  _Atomic int started;     // workers [0, started) exist; grows under the mutex

  // What lookers read in every turn; changes with jobs and never with loops.
  _Alignas(RN_POOL_PAIR) _Atomic int64_t jobs;  // submitted and not taken
  _Atomic uint32_t slots_used;                  // slots [0, slots_used) have been used
  _Atomic bool stopping;
  _Atomic int submitters;  // threads of others that are in rn_pool_submit

  // Until then the processors are known to be wanted by other threads: waits are short. A yield
  // would give the rest of this thread's turn away, where a sleeper gets it when it is woken.
  _Alignas(RN_POOL_PAIR) _Atomic int64_t crowded_until_ns;
  _Atomic int64_t long_yield_ns;  // when the last long yield ended; 0: none yet

  // A bit for each worker that sleeps, or is about to: a hint, for loops.
  _Alignas(RN_POOL_PAIR) _Atomic uint64_t asleep[RN_POOL_MOST_THREADS / 64];

  _Alignas(RN_POOL_PAIR) rn_mutex_t shared_mutex;  // guards the list
  rn_job_t* shared_first;
  rn_job_t* shared_last;

  rn_mutex_t kept_mutex;  // guards the block that rn_pool_borrow lends
  void* kept;             // Owned; NULL if there is none
  size_t kept_size;
  bool is_lent;

  rn_pool_costs_t* costs;  // Borrowed, like the two below: in |block|
  rn_pool_loop_t* loops;
  rn_pool_worker_t* workers;  // threads - 1
};

// One turn of a short wait; start with zeros. False once |patience| nanoseconds have passed, or
// other threads want the processor.
typedef struct rn_pool_spin_t {
  uint32_t turns;
  int64_t start;
} rn_pool_spin_t;
bool rn_pool_spin_again(rn_pool_t* pool, rn_pool_spin_t* spin, int64_t patience);
#define RN_POOL_LOOK_NS 10000  // a wait in which no yield is tried: half a wake-up
// The longest wait, for threads that have been lucky with it; yields the processor meanwhile.
#define RN_POOL_LONG_LOOK_NS 100000

int64_t rn_pool_now_ns(void);
void rn_pool_futex_wait(_Atomic uint32_t* word, uint32_t expected);
void rn_pool_futex_wake(_Atomic uint32_t* word);

// Starts workers until |count| exist, as far as the pool's number and the system allow.
void rn_pool_start_workers(rn_pool_t* pool, int count);
// Wakes |worker| if it sleeps. False: it did not.
bool rn_pool_wake(rn_pool_worker_t* worker);
// A looking worker has found work. Publishers of jobs may have relied on it, so it passes them on.
void rn_pool_set_busy(rn_pool_worker_t* self);

// Joins an open loop and works on it until there is nothing to claim. False: there is none for
// |self|. |self| is NULL for threads that are no workers.
bool rn_pool_help_loops(rn_pool_t* pool, rn_pool_worker_t* self);

#endif  // RUNNEL_BASE_POOL_INTERNAL_H_
