// The environment: clock, files, randomness, log and threads behind one table, so that tests can
// own them.
#ifndef RUNNEL_BASE_ENV_H_
#define RUNNEL_BASE_ENV_H_

#include "base/pool.h"
#include "base/str.h"

typedef enum rn_log_level_t { RN_LOG_INFO, RN_LOG_WARNING, RN_LOG_ERROR } rn_log_level_t;

typedef struct rn_file_t rn_file_t;  // an open file; of the environment that opened it

// Every function may be called from any thread. Files: paths are NUL-terminated; errors carry the
// path and errno's text.
typedef struct rn_env_t {
  void* self;
  rn_allocator_t allocator;
  rn_pool_t* pool;  // Borrowed; may be NULL: one thread

  int64_t (*now_ns)(void* self);   // monotonic
  int64_t (*wall_us)(void* self);  // since 1970
  uint64_t (*random)(void* self);  // unpredictable bits, for seeds that nobody gave
  void (*log)(void* self, rn_log_level_t level, const char* message);

  rn_status_t (*read_file)(void* self, const char* path, size_t limit,
                           rn_strbuf_t* out);                              // appends the whole file
  rn_status_t (*write_file)(void* self, const char* path, rn_str_t data);  // creates or replaces
} rn_env_t;

// The process's surroundings: real clock and files, no pool, silent log.
const rn_env_t* rn_env_system(void);

void rn_log(const rn_env_t* env, rn_log_level_t level, const char* format, ...) RN_PRINTF(3, 4);

#endif  // RUNNEL_BASE_ENV_H_
