// The status of one asynchronous call, for the thread that waits for its end.
#ifndef RUNNEL_BASE_OUTCOME_H_
#define RUNNEL_BASE_OUTCOME_H_

#include "base/status.h"
#include "base/sync.h"

typedef struct rn_outcome_t {
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  bool is_set;
  rn_status_t status;
} rn_outcome_t;

static inline void rn_outcome_init(rn_outcome_t* outcome) {
  *outcome = (rn_outcome_t){0};
  rn_mutex_init(&outcome->mutex);
  rn_cond_init(&outcome->changed);
}

// Called once, from any thread. Takes |status|. |outcome| may be gone when this returns.
static inline void rn_outcome_set(rn_outcome_t* outcome, rn_status_t status) {
  rn_mutex_lock(&outcome->mutex);
  outcome->status = status;
  outcome->is_set = true;
  rn_cond_signal(&outcome->changed);
  rn_mutex_unlock(&outcome->mutex);
}

// Waits for rn_outcome_set and returns its status. Called once; |outcome| must not be used
// afterwards.
RN_MUST_USE static inline rn_status_t rn_outcome_wait(rn_outcome_t* outcome) {
  rn_mutex_lock(&outcome->mutex);
  while (!outcome->is_set) rn_cond_wait(&outcome->changed, &outcome->mutex);
  rn_mutex_unlock(&outcome->mutex);
  rn_cond_destroy(&outcome->changed);
  rn_mutex_destroy(&outcome->mutex);
  return outcome->status;
}

#endif  // RUNNEL_BASE_OUTCOME_H_
