// Timers, independent of the clock: that of the event loop's thread, or a simulated one.
#ifndef RUNNEL_NET_TIMERS_H_
#define RUNNEL_NET_TIMERS_H_

#include <stdint.h>

#include "base/status.h"

// |fn| is called once, at |at_ns| of the environment's clock or later, with no locks held; it must
// not block.
typedef struct rn_timer_t {
  void (*fn)(struct rn_timer_t* timer);
  int64_t at_ns;
  size_t place;  // for the clock: position in its heap, from 1; 0: not set
} rn_timer_t;

// Any thread may call these. Setting a timer that is set moves it. After |clear| returns, the
// timer's function neither runs nor will run, unless the caller is inside it.
typedef struct rn_timers_t {
  void* self;
  rn_status_t (*set)(void* self, rn_timer_t* timer, int64_t at_ns);
  void (*clear)(void* self, rn_timer_t* timer);
} rn_timers_t;

#endif  // RUNNEL_NET_TIMERS_H_
