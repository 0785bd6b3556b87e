// A store in a folder of its own: a log of changes and a snapshot.
//
// A thread writes what has changed, and syncs it, |commit_ns| after the first change: killing the
// process, or the machine, loses no more than that. One process at a time may have the folder open.
#ifndef RUNNEL_SERVE_SELECT_STORE_LOG_H_
#define RUNNEL_SERVE_SELECT_STORE_LOG_H_

#include "serve/select/store.h"

typedef struct rn_store_log_options_t {
  const char* folder;     // made if it does not exist
  int64_t commit_ns;      // 0: 200 ms
  int64_t retry_ns;       // between tries while writing fails; 0: 1 s
  size_t compact_bytes;   // of the log, before it is replaced by a snapshot; 0: 16 MiB. The log may
                          // grow to twice the size of the last snapshot, if that is more
  size_t max_bytes;       // in memory; 0: no limit
  rn_metrics_t* metrics;  // NULL: none
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_store_log_options_t;

// Reads what the folder holds. A log whose end is torn is cut there. DATA_LOSS, with the path, if a
// snapshot is damaged: it was complete once.
RN_MUST_USE rn_status_t rn_store_log_open(const rn_store_log_options_t* options,
                                          rn_state_store_t** out);

#endif  // RUNNEL_SERVE_SELECT_STORE_LOG_H_
