// Helpers: steps that feed one number and fetch one, with a deadline, so that a step that hangs
// fails.
#ifndef RUNNEL_TESTS_PLACE_STEPS_H_
#define RUNNEL_TESTS_PLACE_STEPS_H_

#include "util.h"

enum { TIMEOUT_MS = 20000 };

// Feeds nothing if |feed| has no node.
static inline rn_status_t run_once(rt_t* rt, rn_edge_t feed, float value, rn_edge_t fetch,
                                   float* out) {
  rn_tensor_t fed = rt_scalar(value);
  rt_step_t step = {.options = {.timeout_ms = TIMEOUT_MS}};
  if (feed.node) rt_feed(&step, feed, &fed);
  rt_fetch(&step, fetch);
  rn_status_t status = rt_run(rt, &step);
  if (rn_ok(status)) *out = rt_value(&step.out[0]);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  return status;
}

static inline float get(rt_t* rt, rn_edge_t feed, float value, rn_edge_t fetch) {
  float out = 0;
  OK(run_once(rt, feed, value, fetch, &out));
  return out;
}

#endif  // RUNNEL_TESTS_PLACE_STEPS_H_
