// Being called at a time, whoever keeps the clock: the thread that watches the network, or a
// simulated one.
#ifndef RUNNEL_DIST_TIMERS_H_
#define RUNNEL_DIST_TIMERS_H_

#include <stdint.h>

#include "base/status.h"

// Called once, at |at_ns| of the environment's clock or later, with no locks held; must not wait.
typedef struct rn_timer_t {
  void (*fn)(struct rn_timer_t* timer);
  int64_t at_ns;
  size_t place;  // the clock's: in its heap, from 1; 0: not set
} rn_timer_t;

// From any thread. Setting one that is set moves it. After |clear| returns the timer's function
// neither runs nor will, unless the caller is inside it.
typedef struct rn_timers_t {
  void* self;
  rn_status_t (*set)(void* self, rn_timer_t* timer, int64_t at_ns);
  void (*clear)(void* self, rn_timer_t* timer);
} rn_timers_t;

#endif  // RUNNEL_DIST_TIMERS_H_
