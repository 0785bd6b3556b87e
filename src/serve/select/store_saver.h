// A thread that saves in rounds for a store, and the callers that wait for it.
#ifndef RUNNEL_SERVE_SELECT_STORE_SAVER_H_
#define RUNNEL_SERVE_SELECT_STORE_SAVER_H_

#include "base/env.h"
#include "base/log.h"
#include "base/sync.h"
#include "serve/metrics.h"

typedef struct rn_store_saver_t {
  const rn_env_t* env;
  const char* what;                 // cannot be done, for the log: "States cannot be saved"
  void (*wait)(void* self);         // returns when a round is due; called with |mutex| held
  rn_status_t (*save)(void* self);  // one round; called without it
  void* self;
  // Counts failures, as does |failures| below; NULL: nowhere else.
  rn_metric_series_t* failure_count;
  rn_log_limit_t complaint;  // of the thread

  rn_mutex_t mutex;  // guards what follows; the store may keep more under it
  rn_cond_t wake, saved;
  pthread_t thread;
  bool has_thread, is_closing;
  int64_t wanted, done;     // flushes: tickets given, and reached
  rn_status_t failure;      // Owned; of the last round
  int64_t saves, failures;  // rounds that succeeded and that failed
} rn_store_saver_t;

// The series of |metrics| (NULL: none) for the failures of a store.
static inline rn_metric_series_t* rn_store_failure_count(rn_metrics_t* metrics, const char* store) {
  return metrics ? rn_metrics_series(metrics, RN_METRIC_STORE_FAILURES, rn_str(store), RN_STR(""),
                                     RN_STR(""))
                 : NULL;
}

// In a zeroed struct with the fields before |complaint| set.
void rn_store_saver_init(rn_store_saver_t* saver);
// RESOURCE_EXHAUSTED if the thread cannot be started.
RN_MUST_USE rn_status_t rn_store_saver_start(rn_store_saver_t* saver);
// Ends the thread after a last round. Does nothing if it was not started.
void rn_store_saver_stop(rn_store_saver_t* saver);
void rn_store_saver_deinit(rn_store_saver_t* saver);  // after it was stopped

// Whether a round must not wait any longer, because a caller flushes or the store closes.
static inline bool rn_store_saver_is_due_locked(const rn_store_saver_t* saver) {
  return saver->is_closing || saver->wanted != saver->done;
}
// Waits for a round that begins from now on, and returns its status.
RN_MUST_USE rn_status_t rn_store_saver_flush(rn_store_saver_t* saver);
// Waits for the first round, and returns the status of the last one.
RN_MUST_USE rn_status_t rn_store_saver_wait_for_first(rn_store_saver_t* saver);

#endif  // RUNNEL_SERVE_SELECT_STORE_SAVER_H_
