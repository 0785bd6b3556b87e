// How the Redis server of a store is reached: an address, or a file with more (redis.proto).
#ifndef RUNNEL_SERVE_SELECT_REDIS_CONFIG_H_
#define RUNNEL_SERVE_SELECT_REDIS_CONFIG_H_

#include "base/arena.h"
#include "net/tls.h"

typedef struct rn_redis_config_t {
  const char* address;  // "host:port", "host" or "unix:path"
  int database;
  const char *user, *password;  // NULL: none
  rn_tls_t* tls;                // NULL: plain
  const char* prefix;           // of every key; NULL: "runnel:"
  int64_t feedback_seconds;     // how long queries wait for feedback; 0: 3600
  rn_arena_t arena;             // holds the texts of a file
} rn_redis_config_t;
static inline rn_str_t rn_redis_prefix(const rn_redis_config_t* config) {
  return config->prefix ? rn_str(config->prefix) : RN_STR("runnel:");
}

// Reads the file at |path|. Initializes |out|; rn_redis_config_clear frees it, also after a
// failure. INVALID_ARGUMENT names the file.
RN_MUST_USE rn_status_t rn_redis_config_read(const rn_env_t* env, const char* path,
                                             rn_allocator_t allocator, rn_redis_config_t* out);
void rn_redis_config_clear(rn_redis_config_t* config);  // a zeroed one is fine

#endif  // RUNNEL_SERVE_SELECT_REDIS_CONFIG_H_
