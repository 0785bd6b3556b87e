// Parts of a step that a master runs in pieces: the part starts with the first piece, goes on as
// values come, and is waited for with the last. What is fed and fetched meanwhile ends at the
// master.
#ifndef RUNNEL_DIST_WORKER_PARTIAL_H_
#define RUNNEL_DIST_WORKER_PARTIAL_H_

#include "dist/iface.h"

typedef struct rn_worker_partials_t rn_worker_partials_t;

// |worker| runs the parts; borrowed.
RN_MUST_USE rn_status_t rn_worker_partials_create(rn_worker_t* worker, rn_allocator_t allocator,
                                                  rn_worker_partials_t** out);
// Cancels what is under way. NULL is fine.
void rn_worker_partials_stop(rn_worker_partials_t* partials);
// Every part has ended. NULL is fine.
void rn_worker_partials_destroy(rn_worker_partials_t* partials);

// Takes in a piece; |call| is answered.
void rn_worker_partials_run(rn_worker_partials_t* partials, rn_run_graph_t* call);
// Step |step| is cleaned up: nobody will ask for its end, which is now.
void rn_worker_partials_forget(rn_worker_partials_t* partials, int64_t step);

#endif  // RUNNEL_DIST_WORKER_PARTIAL_H_
