// How many threads a loop should use, learnt from how long it took. For pool_loop.c only.
//
// A loop is known by its body, count, grain and kind. For each it keeps the time with 1, 2, 4 ...
// threads and uses the number with the shortest. It starts with all of them, then tries half of
// that for some loops in a row, and so on down; later it tries a neighbour of the best now and
// then, more and more rarely as long as that does not win and the times stay what they are. So a
// loop that gets slower with more threads (too short, limited by memory, on a busy machine) uses
// fewer, whatever the reason. Of loops above RN_POOL_COST_LONG_NS, which nearly always gain from
// all threads, only neighbours of the best are tried, rarely, and no longer than one loop if that
// is clearly slower.
//
// The pieces of a loop do not depend on this, and so its results do not.
#ifndef RUNNEL_BASE_POOL_COST_H_
#define RUNNEL_BASE_POOL_COST_H_

#include <stdatomic.h>

#include "base/pool.h"

#define RN_POOL_COST_LONG_NS 300000
#define RN_POOL_COST_LEVELS 8  // 1, 2, 4 ... 64 threads, or the most that a loop can use
// A loop can have one of this many places; a new one takes a free place, or that of a loop which
// did not run lately. Large networks have hundreds of loops, and one that loses its place starts
// anew.
#define RN_POOL_COST_WAYS 4
#define RN_POOL_COST_ENTRIES 2048

typedef struct rn_pool_cost_t {
  _Alignas(RN_ALIGN) _Atomic bool is_locked;  // guards the rest; who finds it set goes without
  uint8_t best, trial;                        // levels; |trial| counts while |trial_left| > 0
  uint8_t trial_left;                         // loops
  bool is_upwards;                            // where the last trial was: alternates
  bool was_used;                              // since another loop looked for a place here
  uint16_t interval, countdown;               // loops between trials, and until the next one
  _Atomic uint32_t key;                       // 0: free; read without the lock, too
  float warm_ns;                              // of the trial's start, which does not count
  float settled_ns;                           // the best time when |interval| was last reset
  float time_ns[RN_POOL_COST_LEVELS];         // 0: not known
} rn_pool_cost_t;

typedef struct rn_pool_costs_t {
  rn_pool_cost_t entries[RN_POOL_COST_ENTRIES];
} rn_pool_costs_t;

// What a caller keeps from the choice to the record.
typedef struct rn_pool_choice_t {
  rn_pool_cost_t* entry;  // Borrowed; NULL: nothing to record
  uint32_t key;
  int level, threads;
  double time_ns;  // expected; 0: not known
} rn_pool_choice_t;

// The number of threads for a loop that |most| (>= 2) threads can work on.
rn_pool_choice_t rn_pool_cost_choose(rn_pool_costs_t* costs, const rn_pool_work_t* work, int most);
// The loop took |time_ns| with the threads that were chosen.
void rn_pool_cost_record(const rn_pool_choice_t* choice, int most, int64_t time_ns);

#endif  // RUNNEL_BASE_POOL_COST_H_
