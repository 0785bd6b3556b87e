// Queries that wait for feedback, in a Redis server that several front ends share: feedback may
// reach a front end that did not answer the query.
//
// A thread carries them there. A query is the string PREFIX + "query/" + its name, for as long as
// the front end that answered it remembers it, and at most the configuration's |feedback_seconds|.
// Feedback claims it: the one claim that finds it unclaimed counts. When Redis is gone, a front end
// claims its own queries by itself, and claims of others wait. What these bytes mean is the
// caller's business.
#ifndef RUNNEL_SERVE_SELECT_REDIS_QUERIES_H_
#define RUNNEL_SERVE_SELECT_REDIS_QUERIES_H_

#include "base/env.h"
#include "serve/metrics.h"
#include "serve/select/redis_config.h"

typedef struct rn_redis_queries_t rn_redis_queries_t;

typedef struct rn_redis_queries_options_t {
  const rn_redis_config_t* config;  // Borrowed
  rn_str_t claimed;                 // what replaces a query that was claimed; borrowed
  int64_t commit_ns;                // how long queries and claims are gathered; 0: 20 ms
  int64_t patience_ns;              // how long a claim waits for its query to appear; 0: 1 s
  int64_t retry_ns;                 // pause after a failure; doubles up to 64 times that; 0: 100 ms
  size_t max_waiting;               // bytes that wait for Redis; 0: 16 MiB
  rn_metrics_t* metrics;            // NULL: none
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_redis_queries_options_t;

// UNIMPLEMENTED without hiredis. A server that does not answer is no error.
RN_MUST_USE rn_status_t rn_redis_queries_open(const rn_redis_queries_options_t* options,
                                              rn_redis_queries_t** out);
// Tries once more to carry what waits, and ends every claim. What is put afterwards is dropped.
void rn_redis_queries_stop(rn_redis_queries_t* queries);
void rn_redis_queries_destroy(rn_redis_queries_t* queries);  // NULL is fine

// Names a query: the same id of another application is another query.
typedef struct rn_redis_query_name_t {
  int64_t id;
  uint64_t app;  // a hash of its name that is the same in all front ends
} rn_redis_query_name_t;

// Keeps |bytes| for the query |name|, and removes the one with the id |leaving| (0: none). Dropped
// for want of room, it is unknown to others.
void rn_redis_queries_put(rn_redis_queries_t* queries, rn_redis_query_name_t name, int64_t leaving,
                          rn_str_t bytes);
// Appends to a query that was put, claimed or not.
void rn_redis_queries_append(rn_redis_queries_t* queries, rn_redis_query_name_t name,
                             rn_str_t bytes);

// A claim, embedded in its owner, which keeps it in place until |done|.
typedef struct rn_redis_claim_t {
  rn_redis_query_name_t name;
  bool is_own;  // this front end answered the query
  // |found| is what the query was before; "" if there is none, so that only a claim of one's own
  // query can count. Called once, from any thread, with no locks held.
  void (*done)(struct rn_redis_claim_t* claim, rn_str_t found);
  struct rn_redis_claim_t* next;  // of the queries, like the rest
  int64_t until_ns;
  bool is_there;
} rn_redis_claim_t;
// False, without a call of |done|, if too much waits.
bool rn_redis_queries_claim(rn_redis_queries_t* queries, rn_redis_claim_t* claim);

// Waits until everything so far was carried and every claim has ended; the error that prevents it.
RN_MUST_USE rn_status_t rn_redis_queries_flush(rn_redis_queries_t* queries);

#endif  // RUNNEL_SERVE_SELECT_REDIS_QUERIES_H_
