// Threads for work that may wait: as many as there is work, kept for a while when there is none.
//
// Ops of eager execution wait for values of other tasks, for queues, for each other; a pool of few
// threads would stand still with them. Functions may be called from any thread.
#ifndef RUNNEL_DIST_EAGER_THREADS_H_
#define RUNNEL_DIST_EAGER_THREADS_H_

#include "base/env.h"
#include "base/pool.h"

typedef struct rn_threads_t rn_threads_t;

RN_MUST_USE rn_status_t rn_threads_create(const rn_env_t* env, rn_allocator_t allocator,
                                          rn_threads_t** out);
// Waits for all jobs, those that jobs add too. NULL is fine.
void rn_threads_destroy(rn_threads_t* threads);

// Runs |job| on a thread that has nothing else to do; behind others if no more threads can be had.
// False if there is none at all: then the caller keeps the job.
bool rn_threads_run(rn_threads_t* threads, rn_job_t* job);

#endif  // RUNNEL_DIST_EAGER_THREADS_H_
