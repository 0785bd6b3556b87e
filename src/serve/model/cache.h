// The prediction cache: outputs by model version, signature, wanted outputs and inputs.
//
// Keys are compared in full. Of several equal requests that miss at the same time, one runs and the
// others wait for its answer. Eviction is CLOCK, by a budget of bytes that counts keys and entries.
// Any thread may call it.
#ifndef RUNNEL_SERVE_MODEL_CACHE_H_
#define RUNNEL_SERVE_MODEL_CACHE_H_

#include "base/env.h"
#include "net/timers.h"
#include "serve/predict.h"

typedef struct rn_predict_cache_t rn_predict_cache_t;

typedef struct rn_predict_cache_options_t {
  size_t max_bytes;
  rn_timers_t timers;  // for the deadlines of requests that wait; |set| may be NULL: not kept
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_predict_cache_options_t;

RN_MUST_USE rn_status_t rn_predict_cache_create(const rn_predict_cache_options_t* options,
                                                rn_predict_cache_t** out);
void rn_predict_cache_destroy(rn_predict_cache_t* cache);  // NULL is fine; nothing may wait

typedef enum rn_predict_cache_answer_t {
  RN_PREDICT_CACHE_HIT,    // the outputs are set, shared with the cache
  RN_PREDICT_CACHE_WAITS,  // an equal request is running; the cache calls |done| when it ends
  RN_PREDICT_CACHE_RUN,    // this request must run, and rn_predict_cache_put must follow
} rn_predict_cache_answer_t;
// |predict| is checked, as for rn_batcher_add. While it waits, it may be answered because of its
// own deadline or cancellation. For RN_PREDICT_CACHE_RUN, |*out_flight| is the request's place in
// the cache; NULL if it is not kept.
typedef struct rn_predict_cache_flight_t rn_predict_cache_flight_t;
rn_predict_cache_answer_t rn_predict_cache_get(rn_predict_cache_t* cache, rn_predict_t* predict,
                                               rn_predict_cache_flight_t** out_flight);
// Ends the flight of |predict|, whose outputs are set unless |status| (borrowed) is an error: keeps
// a reference to them, and answers those that waited. Errors are not kept. Those that waited get
// the error, too, unless only |predict| ran out of time or was cancelled: then the next one runs.
void rn_predict_cache_put(rn_predict_cache_t* cache, rn_predict_cache_flight_t* flight,
                          const rn_predict_t* predict, rn_status_t status);
// Forgets the entries of |version|, none of whose requests may be under way.
void rn_predict_cache_drop(rn_predict_cache_t* cache, const rn_version_t* version);

typedef struct rn_predict_cache_stats_t {
  int64_t hits, misses, waits, evictions;
  int64_t entries, bytes;
} rn_predict_cache_stats_t;
rn_predict_cache_stats_t rn_predict_cache_stats(rn_predict_cache_t* cache);

// Leaves only the bits of |mask| in the hashes of keys, so that different keys collide. Before the
// first request.
void rn_predict_cache_set_mask_for_testing(rn_predict_cache_t* cache, uint64_t mask);

#endif  // RUNNEL_SERVE_MODEL_CACHE_H_
