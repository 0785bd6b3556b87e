// A store in a Redis server that several front ends share.
//
// A thread carries changes to Redis, where each is applied to the value that is there: under WATCH,
// so that no front end overwrites another's. The image in memory follows: values that were read
// lately are read again every |refresh_ns|, and a value that the image lacks is fetched when it is
// first asked for, while the caller goes on without it. Definitions that others add, change or
// remove are followed at the same pace. When Redis is gone the image serves alone;
// changes wait, up to |max_waiting| bytes, and are applied when it is back.
#ifndef RUNNEL_SERVE_SELECT_STORE_REDIS_H_
#define RUNNEL_SERVE_SELECT_STORE_REDIS_H_

#include "serve/select/redis_config.h"
#include "serve/select/store.h"

typedef struct rn_store_redis_options_t {
  const rn_redis_config_t* config;  // Borrowed as long as the store lives
  int64_t commit_ns;                // how long changes are gathered; 0: 20 ms
  int64_t refresh_ns;               // 0: 1 s
  int64_t retry_ns;       // first pause after a failure; doubles up to 64 times that; 0: 100 ms
  size_t max_waiting;     // bytes of changes that wait; 0: 64 MiB
  size_t max_bytes;       // in memory; 0: no limit
  rn_metrics_t* metrics;  // NULL: none
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_store_redis_options_t;

// Reads the definitions of applications, if Redis answers; if not, a warning is logged, and the
// store begins empty. UNIMPLEMENTED without hiredis.
RN_MUST_USE rn_status_t rn_store_redis_open(const rn_store_redis_options_t* options,
                                            rn_state_store_t** out);

#endif  // RUNNEL_SERVE_SELECT_STORE_REDIS_H_
