// What the files of the batcher share: batcher.c takes requests, batch_form.c decides
// which batches run, batch_work.c runs them.
//
// A request waits in |queue| until a lane of the backend is free and its batch should start. Each
// event (a request, a batch that ended, a timer) calls rn_batcher_form_locked, which takes as many
// batches from the queue as can start; they run after the lock is released, on this thread or on
// the pool. Requests are always answered without the lock.
//
// A thread that is inside holds a reference, because the request it answers may be the last one,
// and the batcher be destroyed meanwhile.
#ifndef RUNNEL_SERVE_MODEL_BATCHER_INTERNAL_H_
#define RUNNEL_SERVE_MODEL_BATCHER_INTERNAL_H_

#include <stdatomic.h>

#include "serve/model/batch.h"
#include "serve/model/batch_queue.h"
#include "serve/model/batch_wait.h"
#include "serve/model/batcher.h"

// Where a batcher counts. The pointers are NULL without metrics.
typedef struct rn_batch_series_t {
  rn_metric_series_t *rows, *run_rows, *padding, *batches;  // per batch
  rn_metric_series_t *full, *overload, *deadline;           // requests that did not run
} rn_batch_series_t;

struct rn_batcher_t {
  rn_batcher_options_t options;
  rn_batch_series_t series;
  int64_t* allowed;       // Owned; |options.allowed_count| of them
  rn_backend_t* backend;  // Borrowed
  int64_t max_rows;       // of a batch; 0: no limit but that of |size|
  rn_share_t* share;      // Retained; NULL: batches need no turn
  bool has_pool;
  _Atomic int refs;

  rn_mutex_t mutex;  // guards what follows
  rn_batch_size_t* size;
  rn_batch_wait_t wait;
  rn_batch_queue_t queue;
  rn_timer_t timer;
  int64_t timer_ns;     // when it is set to; INT64_MAX: not set
  rn_timer_t watch;     // for the deadlines of batches that run
  int64_t watch_ns;     // likewise
  rn_batch_t* running;  // linked by |next|
  int lanes_used;
  int64_t running_count;  // requests
  int64_t free_ns;        // when the last batch ended
  int mixed;              // batches, down from MIXED_BATCHES, since requests of two priorities met
  double run_ns;          // in the backend, lately
  double usual_rows;      // of a batch, lately
  bool is_joinable;       // false once the outputs of a batch had other rows than its inputs
  int64_t batches, rows, padded, expired, cancelled, refused;
};

// What was taken from the queue under the lock, to be handled without it.
typedef struct rn_batch_work_t {
  rn_batch_t *batches, *last;  // to run, linked by |next_to_run|
  rn_predict_t* expired;       // requests to answer, linked by |next|
  rn_predict_t* late;          // that could not be answered in time
  rn_predict_t* starved;       // for which there was no memory, or that were cancelled
} rn_batch_work_t;

int64_t rn_batcher_now(const rn_batcher_t* batcher);
void rn_batcher_enter(rn_batcher_t* batcher);
void rn_batcher_leave(rn_batcher_t* batcher);
bool rn_batcher_is_cancelled(const rn_predict_t* predict);

// Puts a request into the queue. CANCELLED if it was cancelled.
RN_MUST_USE rn_status_t rn_batcher_enqueue_locked(rn_batcher_t* batcher, rn_predict_t* predict,
                                                  bool is_alone);

// What requests are told that do not run.
rn_status_t rn_batcher_cancelled(void);
rn_status_t rn_batcher_late(void);
rn_status_t rn_batcher_overloaded(const rn_predict_t* predict);

// Where a thread comes from, and what it may do.
typedef enum rn_batch_place_t {
  RN_BATCH_PLACE_CALLER,    // may run one batch, if it is quick and cannot be deferred
  RN_BATCH_PLACE_DEFERRED,  // runs the batch that was deferred
  RN_BATCH_PLACE_WORKER,    // may run batches
  RN_BATCH_PLACE_EVENT,     // must not block
} rn_batch_place_t;

// Handles what was taken from the queue, and what can be taken meanwhile.
void rn_batcher_work_off(rn_batcher_t* batcher, rn_batch_work_t* work, rn_batch_place_t place);

// Takes batches from the queue as long as there are lanes for them, and sets the timer for the
// rest.
void rn_batcher_form_locked(rn_batcher_t* batcher, int64_t now, rn_batch_work_t* work);
// The same for one request that is not in the queue. False if it must wait there.
bool rn_batcher_form_one_locked(rn_batcher_t* batcher, rn_predict_t* predict, bool is_alone,
                                int64_t now, rn_batch_work_t* work);
// Has batches that run past |until| cancelled then.
void rn_batcher_watch_locked(rn_batcher_t* batcher, int64_t until);
// The batches that run past their deadlines, retained and linked by |next_overdue|. Sets |watch|
// for the others.
rn_batch_t* rn_batcher_overdue_locked(rn_batcher_t* batcher, int64_t now);
// Whether to refuse |predict| because it could not be answered in time; sets |retry_ns|.
bool rn_batcher_refuses_locked(rn_batcher_t* batcher, rn_predict_t* predict, int64_t now);
// How long a request of |rows| that came now would take to be answered.
int64_t rn_batcher_expected_locked(const rn_batcher_t* batcher, int64_t rows, int priority,
                                   int64_t now);
// Rows that the next batch may have.
int64_t rn_batcher_limit_locked(const rn_batcher_t* batcher);

#endif  // RUNNEL_SERVE_MODEL_BATCHER_INTERNAL_H_
