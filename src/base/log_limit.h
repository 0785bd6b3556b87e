// Messages that may come again and again: one is said, then none for ten seconds, and the next says
// how many were left out.
#ifndef RUNNEL_BASE_LOG_LIMIT_H_
#define RUNNEL_BASE_LOG_LIMIT_H_

#include "base/env.h"

// Zeroed; any thread.
typedef struct rn_log_limit_t {
  _Atomic int64_t said_ns;  // when one was said last; 0: never
  _Atomic int64_t left_out;
} rn_log_limit_t;

// Whether the message is to be said now. |*out_left_out|: how many were not, since the last one.
bool rn_log_limit_says(rn_log_limit_t* limit, const rn_env_t* env, int64_t* out_left_out);

#endif  // RUNNEL_BASE_LOG_LIMIT_H_
