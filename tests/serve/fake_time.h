// A simulated clock with timers: thousands of seconds pass in milliseconds, always the same way.
// One thread.
#ifndef RUNNEL_TESTS_SERVE_FAKE_TIME_H_
#define RUNNEL_TESTS_SERVE_FAKE_TIME_H_

#include <math.h>

#include "base/container.h"
#include "base/env.h"
#include "fake_model.h"
#include "net/timers.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define FAKE_TIMERS 4096

typedef struct fake_time_t {
  rn_env_t env;
  int64_t now;
  rn_timer_t* timers[FAKE_TIMERS];  // unordered; a timer's place is its index + 1
  size_t count;
  uint64_t random;
} fake_time_t;

static inline int64_t fake_now(void* self) { return ((fake_time_t*)self)->now; }

static inline rn_status_t fake_timer_set(void* self, rn_timer_t* timer, int64_t at_ns) {
  fake_time_t* time = self;
  if (!timer->place) {
    if (time->count == FAKE_TIMERS) return rn_out_of_memory();
    time->timers[time->count++] = timer;
    timer->place = time->count;
  }
  timer->at_ns = at_ns;
  return RN_OK;
}

static inline void fake_timer_clear(void* self, rn_timer_t* timer) {
  fake_time_t* time = self;
  if (!timer->place) return;
  rn_timer_t* last = time->timers[--time->count];
  time->timers[timer->place - 1] = last;
  last->place = timer->place;
  timer->place = 0;
}

static inline void fake_time_init(fake_time_t* time, uint64_t seed) {
  *time = (fake_time_t){.env = *rn_env_system(), .now = SECOND, .random = seed * 2654435761u + 1};
  time->env.self = time;
  time->env.now_ns = fake_now;
}

static inline rn_timers_t fake_timers(fake_time_t* time) {
  return (rn_timers_t){.self = time, .set = fake_timer_set, .clear = fake_timer_clear};
}

// Runs what is due up to |until|.
static inline void fake_time_run(fake_time_t* time, int64_t until) {
  for (;;) {
    rn_timer_t* first = NULL;
    for (size_t i = 0; i < time->count; ++i)
      if (!first || time->timers[i]->at_ns < first->at_ns) first = time->timers[i];
    if (!first || first->at_ns > until) break;
    if (first->at_ns > time->now) time->now = first->at_ns;
    fake_timer_clear(time, first);
    first->fn(first);
  }
  time->now = until;
}

static inline double fake_uniform(fake_time_t* time) {  // in (0, 1]
  time->random ^= time->random << 13;
  time->random ^= time->random >> 7;
  time->random ^= time->random << 17;
  return ((double)(time->random >> 11) + 1) / 9007199254740993.0;
}
// The gap to the next arrival of a Poisson process of |rate| per second.
static inline int64_t fake_gap(fake_time_t* time, double rate) {
  return (int64_t)(-log(fake_uniform(time)) / rate * 1e9) + 1;
}

// A model that takes |fixed_us| + |row_us| * rows, times |scale|, with noise: most batches within
// |noise| of that, and one in a thousand 1.5 times as long. It computes nothing if |is_dry|: its
// outputs are the inputs.
typedef struct fake_lane_t {
  rn_timer_t timer;
  struct fake_cost_t* cost;
  rn_backend_run_t* run;
  rn_cancel_entry_t entry;  // set if runs can be cancelled
} fake_lane_t;

typedef struct fake_cost_t {
  fake_model_t model;  // first
  fake_time_t* time;
  double fixed_us, row_us, scale, noise;
  bool is_dry, can_cancel;
  fake_lane_t lanes[8];
} fake_cost_t;

static inline void fake_cost_ready(rn_timer_t* timer) {
  fake_lane_t* lane = (fake_lane_t*)timer;
  rn_backend_run_t* run = lane->run;
  lane->run = NULL;
  if (lane->entry.fn) rn_cancel_remove(run->cancel, &lane->entry);
  if (lane->cost->is_dry) {
    OK(rn_tensor_share(&run->inputs[0], &run->outputs[0]));
    run->done(run, RN_OK);
  } else {
    run->done(run, fake_compute(run));
  }
}

static inline void fake_cost_cancelled(rn_cancel_entry_t* entry) {
  fake_lane_t* lane = RN_CONTAINER_OF(entry, fake_lane_t, entry);
  rn_backend_run_t* run = lane->run;
  lane->run = NULL;
  fake_timer_clear(lane->cost->time, &lane->timer);
  run->done(run, rn_cancelled("Step was cancelled"));
}

static inline void fake_cost_run(fake_model_t* fake, rn_backend_run_t* run) {
  fake_cost_t* cost = (fake_cost_t*)fake;
  fake_lane_t* lane = cost->lanes;
  while (lane->run) ++lane;
  double us = (cost->fixed_us + cost->row_us * (double)fake_rows(run)) * cost->scale;
  us *= 1 + cost->noise * (2 * fake_uniform(cost->time) - 1);
  if (cost->noise > 0 && fake_uniform(cost->time) < 0.001) us *= 1.5;
  *lane = (fake_lane_t){.timer = {.fn = fake_cost_ready}, .cost = cost, .run = run};
  OK(fake_timer_set(cost->time, &lane->timer, cost->time->now + (int64_t)(us * 1000)));
  if (!cost->can_cancel || !run->cancel) return;
  lane->entry.fn = fake_cost_cancelled;
  cr_assert(rn_cancel_add(run->cancel, &lane->entry));
}

static inline void fake_cost_init(fake_cost_t* cost, fake_time_t* time, double fixed_us,
                                  double row_us) {
  *cost = (fake_cost_t){.time = time, .fixed_us = fixed_us, .row_us = row_us, .scale = 1};
  fake_init(&cost->model);
  cost->model.on_run = fake_cost_run;
}

#endif  // RUNNEL_TESTS_SERVE_FAKE_TIME_H_
