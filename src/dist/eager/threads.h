// Threads for jobs that may block: one per job, kept for a while when idle.
//
// Ops of eager execution wait for values of other tasks, for queues and for each other, so a fixed
// pool of threads would deadlock. Any thread may call these functions.
#ifndef RUNNEL_DIST_EAGER_THREADS_H_
#define RUNNEL_DIST_EAGER_THREADS_H_

#include "base/env.h"
#include "base/pool.h"

typedef struct rn_threads_t rn_threads_t;

RN_MUST_USE rn_status_t rn_threads_create(const rn_env_t* env, rn_allocator_t allocator,
                                          rn_threads_t** out);
// Waits for all jobs, including those that jobs add. NULL is fine.
void rn_threads_destroy(rn_threads_t* threads);

// Runs |job| on an idle or new thread; queues it if no more threads can be started. False if there
// is no thread at all: then the caller keeps the job.
bool rn_threads_run(rn_threads_t* threads, rn_job_t* job);

#endif  // RUNNEL_DIST_EAGER_THREADS_H_
