// The requests that wait for a backend, by priority and then by due time, in groups that can be
// joined into one batch.
//
// Not thread-safe, and knows no clock: the batcher calls it under its lock. Borrows the requests.
#ifndef RUNNEL_SERVE_MODEL_BATCH_QUEUE_H_
#define RUNNEL_SERVE_MODEL_BATCH_QUEUE_H_

#include "base/vec.h"
#include "serve/predict.h"

#define RN_BATCH_CLASSES 8  // of priorities, for counting

typedef struct rn_batch_group_t rn_batch_group_t;

// A binary heap whose elements know their places.
typedef struct rn_predict_heap_t {
  RN_VEC(rn_predict_t*) items;
  int slot;  // of rn_predict_t.places
  bool (*is_before)(const rn_predict_t* a, const rn_predict_t* b);
} rn_predict_heap_t;

typedef struct rn_batch_queue_t {
  rn_allocator_t allocator;
  bool pads;                         // requests of different shapes are joined, too
  RN_VEC(rn_batch_group_t*) groups;  // Owned; empty ones are kept for later
  rn_predict_heap_t deadlines;       // of requests that have one
  int64_t count, rows;               // in all; a request that runs alone counts as one row
  int64_t class_rows[RN_BATCH_CLASSES];
} rn_batch_queue_t;

void rn_batch_queue_init(rn_batch_queue_t* queue, bool pads, rn_allocator_t allocator);
void rn_batch_queue_clear(rn_batch_queue_t* queue);  // nothing may wait

// Adds a request whose |due_ns| and |come_ns| are set. |is_alone|: it is joined with no other.
RN_MUST_USE rn_status_t rn_batch_queue_add(rn_batch_queue_t* queue, rn_predict_t* predict,
                                           bool is_alone);
static inline bool rn_batch_queue_has(const rn_predict_t* predict) { return predict->places[0]; }
void rn_batch_queue_remove(rn_batch_queue_t* queue, rn_predict_t* predict);

// Whether |a| should run before |b|.
bool rn_batch_queue_is_before(const rn_predict_t* a, const rn_predict_t* b);
// The first request of a group, and the rows of all of them; NULL and 0 if none is left.
rn_predict_t* rn_batch_group_first(const rn_batch_group_t* group);
int64_t rn_batch_group_rows(const rn_batch_group_t* group);
bool rn_batch_group_is_alone(const rn_batch_group_t* group);

// The request with the earliest deadline; NULL if none has one.
rn_predict_t* rn_batch_queue_earliest(const rn_batch_queue_t* queue);
// The rows that would run before a new request of |priority|.
int64_t rn_batch_queue_ahead(const rn_batch_queue_t* queue, int priority);

#endif  // RUNNEL_SERVE_MODEL_BATCH_QUEUE_H_
