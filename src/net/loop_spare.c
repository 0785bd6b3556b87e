// Deferred jobs, and the threads that take the loop when one of them does not end: see loop.h.
//
// The loop's thread runs a deferred job outside of all callbacks, so that while it does, any other
// thread could turn the loop. One stands by: it looks at |lent| once in a while. If the same job
// runs as the last time, it takes the loop, and the thread with the job stands by when that has
// ended. Both settle by a compare-and-swap of |lent| who turns the loop; what the loop's thread
// alone may touch passes from one to the other with it.
#include "net/loop_internal.h"

// How often the spare thread looks: a job may keep the loop for twice as long. After DOZE looks
// without a job it sleeps until it is woken by the next one.
#define TICK_NS INT64_C(2000000)
#define DOZE 50

bool rn_loop_start_thread_locked(rn_loop_t* loop, void* (*main)(void*)) {
  if (loop->thread_count == RN_LOOP_THREADS) return false;
  if (pthread_create(&loop->threads[loop->thread_count], NULL, main, loop)) return false;
  loop->thread_count++;
  return true;
}

void rn_loop_end_locked(rn_loop_t* loop) {
  loop->is_over = true;
  rn_cond_broadcast(&loop->watched);
  rn_cond_broadcast(&loop->relieved);
}

void rn_loop_join(rn_loop_t* loop) {
  rn_mutex_lock(&loop->mutex);
  while (!loop->is_over) rn_cond_wait(&loop->relieved, &loop->mutex);
  rn_mutex_unlock(&loop->mutex);
  for (int i = 0; i < loop->thread_count; ++i) pthread_join(loop->threads[i], NULL);
}

// Sees to it that a thread stands by. False if there is none left.
static bool ensure_spare_locked(rn_loop_t* loop) {
  if (loop->has_spare_thread) return true;
  if (!loop->reserves && !rn_loop_start_thread_locked(loop, rn_loop_spare_main)) return false;
  loop->has_spare_thread = loop->is_spare_wanted = true;
  rn_cond_broadcast(&loop->relieved);
  return true;
}

bool rn_loop_defer(rn_loop_t* loop, rn_job_t* job) {
  pthread_t self = pthread_self();
  job->next = NULL;
  rn_mutex_lock(&loop->mutex);
  // Visitors have other things to do.
  bool is_here = pthread_equal(self, loop->turner) && pthread_equal(self, loop->thread);
  bool is_taken = is_here && ensure_spare_locked(loop);
  if (is_taken) {
    if (loop->last_deferred)
      loop->last_deferred->next = job;
    else
      loop->deferred = job;
    loop->last_deferred = job;
  }
  rn_mutex_unlock(&loop->mutex);
  return is_taken;
}

// False if another thread took the loop meanwhile.
static bool run_lent(rn_loop_t* loop, rn_job_t* job) {
  uint64_t mine = atomic_fetch_add(&loop->lent, 1) + 1;
  // The spare thread says that it dozes before it looks at |lent| for the last time.
  if (loop->is_dozing) {
    rn_mutex_lock(&loop->mutex);
    rn_cond_signal(&loop->watched);
    rn_mutex_unlock(&loop->mutex);
  }
  job->run(job);
  return atomic_compare_exchange_strong(&loop->lent, &mine, mine + 1);
}

rn_deferred_t rn_loop_run_deferred(rn_loop_t* loop) {
  rn_deferred_t ran = RN_DEFERRED_NONE;
  rn_mutex_lock(&loop->mutex);
  rn_job_t* last = loop->last_deferred;
  for (bool is_last = !last; !is_last; ran = RN_DEFERRED_RAN) {
    rn_job_t* job = loop->deferred;
    loop->deferred = job->next;
    if (!loop->deferred) loop->last_deferred = NULL;
    rn_mutex_unlock(&loop->mutex);
    is_last = job == last;  // jobs that these defer come after the sockets
    if (!run_lent(loop, job)) return RN_DEFERRED_TAKEN;
    rn_mutex_lock(&loop->mutex);
  }
  rn_mutex_unlock(&loop->mutex);
  return ran;
}

// Watches deferred jobs until one takes too long: then this thread has the loop. False when the
// loop is over.
static bool watch_locked(rn_loop_t* loop) {
  uint64_t seen = loop->lent;
  for (int idle = 0; !loop->is_over;) {
    if (idle >= DOZE) {
      loop->is_dozing = true;
      if (loop->lent == seen && !(seen & 1)) rn_cond_wait(&loop->watched, &loop->mutex);
      loop->is_dozing = false;
      idle = 0;
    } else {
      rn_cond_wait_until(&loop->watched, &loop->mutex, rn_loop_now(loop) + TICK_NS);
    }
    uint64_t now = loop->lent;
    if (now == seen && now & 1 && atomic_compare_exchange_strong(&loop->lent, &now, now + 1))
      return true;
    idle = now == seen ? idle + 1 : 0;
    seen = now;
  }
  return false;
}

// Waits until this thread is the spare one. False when the loop is over.
static bool become_spare_locked(rn_loop_t* loop) {
  loop->reserves++;
  while (loop->has_spare_thread && !loop->is_spare_wanted && !loop->is_over)
    rn_cond_wait(&loop->relieved, &loop->mutex);
  loop->reserves--;
  loop->is_spare_wanted = false;
  loop->has_spare_thread = true;
  return !loop->is_over;
}

bool rn_loop_stand_by(rn_loop_t* loop) {
  rn_mutex_lock(&loop->mutex);
  bool has_loop = become_spare_locked(loop) && watch_locked(loop);
  if (has_loop) {
    loop->has_spare_thread = false;
    loop->thread = loop->turner = pthread_self();
  }
  rn_mutex_unlock(&loop->mutex);
  return has_loop;
}
