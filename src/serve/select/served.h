// The queries that were answered lately, by id: what feedback is joined with.
//
// Ids are numbers below 2^52, so that they are exact in JSON. They start at a random place, so that
// feedback for a query of an earlier process finds nothing. The window holds as many queries as fit
// into its bytes; the oldest leave first. Any thread may call it.
#ifndef RUNNEL_SERVE_SELECT_SERVED_H_
#define RUNNEL_SERVE_SELECT_SERVED_H_

#include "base/env.h"
#include "serve/select/answer.h"
#include "serve/select/policy.h"

typedef struct rn_served_t rn_served_t;

// |max_count| and |max_bytes| bound the window.
RN_MUST_USE rn_status_t rn_served_create(const rn_env_t* env, rn_allocator_t allocator,
                                         size_t max_count, size_t max_bytes, rn_served_t** out);
void rn_served_destroy(rn_served_t* served);  // NULL is fine

// An id that no other query has.
int64_t rn_served_next_id(rn_served_t* served);
// Whether rn_served_next_id has returned |id|.
bool rn_served_is_own(rn_served_t* served, int64_t id);
// The id that leaves the window when |id| enters it; 0: none.
int64_t rn_served_leaving(const rn_served_t* served, int64_t id);
// A hash of an application's name, a user and an input, for feedback that names these instead of an
// id.
uint64_t rn_served_hash(const rn_served_t* served, rn_str_t app, rn_str_t user,
                        const rn_tensor_t* input);

// One query. Text is borrowed for the call.
typedef struct rn_served_query_t {
  int64_t id;
  uint64_t hash;
  rn_str_t app, user;
  rn_selection_t selection;
  uint64_t arrived;                         // arms whose answers are set
  rn_answer_t answers[RN_POLICY_MAX_ARMS];  // of rn_served_take: the caller clears them
} rn_served_query_t;

// Keeps |query|, with the answers that have arrived, which it copies. A query that cannot be kept
// is left out: feedback for it is unknown.
void rn_served_put(rn_served_t* served, const rn_served_query_t* query);
// Adds an answer that arrived later, unless feedback came first or the query has left the window.
void rn_served_add(rn_served_t* served, int64_t id, int arm, const rn_answer_t* answer);

typedef enum rn_served_outcome_t {
  RN_SERVED_TAKEN,      // |*out| is set; from now on the query has had its feedback
  RN_SERVED_DUPLICATE,  // it had it before
  RN_SERVED_UNKNOWN,    // there is no such query, or it has left the window
  RN_SERVED_PASSED_ON,  // of feedback: another front end's query, if it is one; that is found out
} rn_served_outcome_t;
// Takes the query |id| of |app| for its feedback. |user| of |*out| is unset; it is copied to
// |user|, which has RN_SERVED_USER bytes.
#define RN_SERVED_USER 512
rn_served_outcome_t rn_served_take(rn_served_t* served, rn_str_t app, int64_t id, char* user,
                                   rn_served_query_t* out);
// The id of the last query with |hash|, 0 if there is none in the window.
int64_t rn_served_find(rn_served_t* served, uint64_t hash);

typedef struct rn_served_stats_t {
  size_t count, bytes;
} rn_served_stats_t;
rn_served_stats_t rn_served_stats(rn_served_t* served);

#endif  // RUNNEL_SERVE_SELECT_SERVED_H_
