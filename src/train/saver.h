// Savers over rn_session_t and rn_status_t; runnel/saver.h is the API over it.
#ifndef RUNNEL_TRAIN_SAVER_H_
#define RUNNEL_TRAIN_SAVER_H_

#include <pthread.h>

#include "base/fs.h"
#include "base/sync.h"
#include "runnel/saver.h"
#include "session/session.h"

// A variable as the saver sees it.
typedef struct rn_saved_t {
  const rn_var_t* variable;
  const char* name;    // in checkpoints
  const char* slice;   // shape and slice; "" for the whole variable
  rn_edge_t value;     // what is saved
  rn_edge_t restored;  // what is assigned
  rn_node_t* assign;
} rn_saved_t;

typedef struct rn_kept_t {
  char* path;  // Owned
  double time, metric;
} rn_kept_t;

// The values that an asynchronous save writes.
typedef struct rn_snapshot_t rn_snapshot_t;

struct rn_saver_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // names
  rn_saver_options_t options;
  rn_saved_t* variables;
  int count;
  rn_edge_t filename, saved;
  rn_node_t* restore;
  rn_saver_names_t names;
  // Oldest first, or worst first if the saver keeps the best.
  RN_VEC(rn_kept_t) kept;
  double last_preserved;
  rn_strbuf_t last_path;
  // The thread that writes; while it runs, no other thread touches |kept|.
  pthread_t thread;
  bool is_writing;
  rn_snapshot_t* snapshot;  // Owned by the thread until it is joined
  rn_status_t write_status;
};

// The nodes (saver_graph.c).
RN_MUST_USE rn_status_t rn_saver_build(rn_saver_t* saver, rn_scope_t* scope);

// Which checkpoints are kept (saver_keep.c). Adds |path|, which is on disk, to the list, writes the
// state file, and only then removes surplus checkpoints.
RN_MUST_USE rn_status_t rn_saver_keep(rn_saver_t* saver, const rn_env_t* env, const char* path,
                                      double metric);
// Whether a checkpoint with this |metric| would be kept.
bool rn_saver_is_wanted(const rn_saver_t* saver, double metric);
RN_MUST_USE rn_status_t rn_saver_take_up(rn_saver_t* saver, const rn_env_t* env,
                                         const char* directory);
void rn_saver_kept_clear(rn_saver_t* saver);

// The functions of runnel/saver.h, with the library's own sessions and statuses.
RN_MUST_USE rn_status_t rn_saver_run_save(rn_saver_t* saver, rn_session_t* session,
                                          const char* path, int64_t step, const double* metric,
                                          const char** out_path);
RN_MUST_USE rn_status_t rn_saver_run_async(rn_saver_t* saver, rn_session_t* session,
                                           const char* path, int64_t step, const double* metric);
RN_MUST_USE rn_status_t rn_saver_join(rn_saver_t* saver);
RN_MUST_USE rn_status_t rn_saver_run_restore(rn_saver_t* saver, rn_session_t* session,
                                             const char* path);
RN_MUST_USE rn_status_t rn_saver_run_restore_some(rn_saver_t* saver, rn_session_t* session,
                                                  const char* path, int* out_count);

#endif  // RUNNEL_TRAIN_SAVER_H_
