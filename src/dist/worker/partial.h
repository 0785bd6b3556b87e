// Parts of a partial run: the part starts with the first piece, continues as values arrive, and the
// last piece waits for its end. Feeds and fetches of the pieces end at the master.
#ifndef RUNNEL_DIST_WORKER_PARTIAL_H_
#define RUNNEL_DIST_WORKER_PARTIAL_H_

#include "dist/iface.h"

typedef struct rn_worker_partials_t rn_worker_partials_t;

// |worker| runs the parts; borrowed.
RN_MUST_USE rn_status_t rn_worker_partials_create(rn_worker_t* worker, rn_allocator_t allocator,
                                                  rn_worker_partials_t** out);
// Cancels running parts. NULL is fine.
void rn_worker_partials_stop(rn_worker_partials_t* partials);
// Every part must have ended. NULL is fine.
void rn_worker_partials_destroy(rn_worker_partials_t* partials);

// Runs a piece and ends |call|.
void rn_worker_partials_run(rn_worker_partials_t* partials, rn_run_graph_t* call);
// Cleans up step |step|, which no call will wait for.
void rn_worker_partials_forget(rn_worker_partials_t* partials, int64_t step);

#endif  // RUNNEL_DIST_WORKER_PARTIAL_H_
