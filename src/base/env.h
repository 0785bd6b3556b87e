// The environment: clock, files, network, randomness, log and threads behind one vtable, so that
// tests can replace them.
#ifndef RUNNEL_BASE_ENV_H_
#define RUNNEL_BASE_ENV_H_

#include "base/pool.h"
#include "base/str.h"

typedef enum rn_log_level_t { RN_LOG_INFO, RN_LOG_WARNING, RN_LOG_ERROR } rn_log_level_t;

typedef struct rn_fs_t rn_fs_t;    // files and directories: base/fs.h
typedef struct rn_net_t rn_net_t;  // streams between processes: base/net.h

// Every function may be called from any thread.
typedef struct rn_env_t {
  void* self;
  rn_allocator_t allocator;
  rn_pool_t* pool;  // Borrowed; may be NULL: one thread

  int64_t (*now_ns)(void* self);   // monotonic
  int64_t (*wall_us)(void* self);  // since 1970
  uint64_t (*random)(void* self);  // unpredictable bits, for seeds that the user did not set
  void (*log)(void* self, rn_log_level_t level, const char* message);

  const rn_fs_t* fs;
  void* fs_self;  // for the functions of |fs|
  const rn_net_t* net;
  void* net_self;  // for the functions of |net|
} rn_env_t;

// The operating system's environment: real clock and files, no pool, silent log.
const rn_env_t* rn_env_system(void);

void rn_log(const rn_env_t* env, rn_log_level_t level, const char* format, ...) RN_PRINTF(3, 4);

#endif  // RUNNEL_BASE_ENV_H_
