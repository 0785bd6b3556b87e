// Another task's worker, for calls that must survive a broken connection: calls are repeated, under
// their numbers, if the connection broke and the task is still alive. The callee runs a numbered
// call once (worker/fence.h), which holds for our own tasks only: calls to a stock task are not
// repeated and fail with the connection.
#ifndef RUNNEL_DIST_REPEAT_H_
#define RUNNEL_DIST_REPEAT_H_

#include "base/env.h"
#include "dist/iface.h"

typedef struct rn_repeat_t rn_repeat_t;

// |peer| is borrowed.
RN_MUST_USE rn_status_t rn_repeat_create(rn_worker_t* peer, const rn_env_t* env,
                                         rn_allocator_t allocator, rn_repeat_t** out);
// No call may be under way. NULL is fine.
void rn_repeat_destroy(rn_repeat_t* repeat);
rn_worker_t* rn_repeat_worker(rn_repeat_t* repeat);

#endif  // RUNNEL_DIST_REPEAT_H_
