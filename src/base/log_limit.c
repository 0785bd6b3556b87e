// Messages that may come again and again: see log_limit.h.
#include "base/log_limit.h"

#define PAUSE_NS INT64_C(10000000000)

bool rn_log_limit_says(rn_log_limit_t* limit, const rn_env_t* env, int64_t* out_left_out) {
  int64_t now = env->now_ns(env->self), said = limit->said_ns;
  *out_left_out = 0;
  if (said && now - said < PAUSE_NS) {
    limit->left_out++;
    return false;
  }
  limit->said_ns = now | 1;
  *out_left_out = limit->left_out;
  limit->left_out -= *out_left_out;
  return true;
}
