// Reads event files into series of points.
#ifndef RUNNEL_CLI_EVENTS_LOG_H_
#define RUNNEL_CLI_EVENTS_LOG_H_

#include "cli/cli.h"

typedef enum rn_series_kind_t {
  RN_SERIES_SCALAR,
  RN_SERIES_HISTOGRAM,
  RN_SERIES_IMAGE,
  RN_SERIES_AUDIO,
  RN_SERIES_TEXT,
  RN_SERIES_TENSOR,
  RN_SERIES_RUN_METADATA,
  RN_SERIES_GRAPH,
  RN_SERIES_KINDS,
} rn_series_kind_t;

typedef struct rn_point_t {
  int64_t step;
  double wall_time;
  double value;  // of scalars
} rn_point_t;

typedef struct rn_series_t {
  rn_str_t tag;  // NUL-terminated, in the log's arena
  rn_series_kind_t kind;
  RN_VEC(rn_point_t) points;  // in file order
} rn_series_t;

// A folder with event files in it.
typedef struct rn_log_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  int64_t files, events;
  RN_VEC(rn_series_t) series;  // sorted by kind and tag once the log is read
  rn_status_t damage;  // Owned; the error that ended a damaged file early; the rest was read
} rn_log_t;

void rn_log_init(rn_log_t* log, rn_allocator_t allocator);
void rn_log_clear(rn_log_t* log);
// Adds the event files of |folder| itself, in the order of their names.
RN_MUST_USE rn_status_t rn_log_read(rn_log_t* log, const rn_env_t* env, const char* folder);

#endif  // RUNNEL_CLI_EVENTS_LOG_H_
