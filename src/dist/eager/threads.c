// Threads for jobs that may block: see threads.h.
#include "dist/eager/threads.h"

#include "base/sync.h"

#define IDLE_NS INT64_C(2000000000)

struct rn_threads_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t added, left;
  rn_job_t *first, *last;
  int waiting;  // jobs
  int idle;     // threads
  int count;    // all threads
  bool is_closing;
};

rn_status_t rn_threads_create(const rn_env_t* env, rn_allocator_t allocator, rn_threads_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->env = env;
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  rn_cond_init(&(*out)->added);
  rn_cond_init(&(*out)->left);
  return RN_OK;
}

void rn_threads_destroy(rn_threads_t* threads) {
  if (!threads) return;
  rn_mutex_lock(&threads->mutex);
  threads->is_closing = true;
  rn_cond_broadcast(&threads->added);
  while (threads->count) rn_cond_wait(&threads->left, &threads->mutex);
  rn_mutex_unlock(&threads->mutex);
  rn_cond_destroy(&threads->added);
  rn_cond_destroy(&threads->left);
  rn_mutex_destroy(&threads->mutex);
  RN_FREE(threads->allocator, threads);
}

// The next job, under the lock; NULL if none came for a while, or none will.
static rn_job_t* take_locked(rn_threads_t* threads) {
  int64_t until = threads->env->now_ns(threads->env->self) + IDLE_NS;
  bool is_late = false;
  threads->idle++;
  while (!threads->first && !threads->is_closing && !is_late)
    is_late = !rn_cond_wait_until(&threads->added, &threads->mutex, until);
  threads->idle--;
  rn_job_t* job = threads->first;
  if (!job) return NULL;
  threads->first = job->next;
  threads->waiting--;
  return job;
}

static void* main_of(void* arg) {
  rn_threads_t* threads = arg;
  rn_mutex_lock(&threads->mutex);
  for (rn_job_t* job; (job = take_locked(threads));) {
    rn_mutex_unlock(&threads->mutex);
    job->run(job);
    rn_mutex_lock(&threads->mutex);
  }
  if (--threads->count == 0) rn_cond_broadcast(&threads->left);
  rn_mutex_unlock(&threads->mutex);
  return NULL;
}

static bool start_locked(rn_threads_t* threads) {
  pthread_t thread;
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  bool ok = pthread_create(&thread, &detached, main_of, threads) == 0;
  pthread_attr_destroy(&detached);
  if (ok) threads->count++;
  return ok;
}

bool rn_threads_run(rn_threads_t* threads, rn_job_t* job) {
  rn_mutex_lock(&threads->mutex);
  bool is_taken = threads->idle > threads->waiting || start_locked(threads) || threads->count;
  if (is_taken) {
    job->next = NULL;
    if (threads->first)
      threads->last->next = job;
    else
      threads->first = job;
    threads->last = job;
    threads->waiting++;
    rn_cond_signal(&threads->added);
  }
  rn_mutex_unlock(&threads->mutex);
  return is_taken;
}
