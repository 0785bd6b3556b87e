// The coordinator: threads, the stop request, and the first error.
#include <stdatomic.h>
#include <time.h>

#include "base/str.h"
#include "base/sync.h"
#include "base/vec.h"
#include "runnel/coordinator.h"

typedef struct worker_t {
  rn_coordinator_t* coordinator;  // Retained
  void (*body)(rn_coordinator_t* coordinator, void* arg);
  void* arg;
  char name[32];
} worker_t;

struct rn_coordinator_t {
  rn_allocator_t allocator;
  _Atomic int32_t refs;  // one of the client, and one per thread
  // Written under |mutex|; read without it where a hint is enough.
  _Atomic bool should_stop;
  rn_mutex_t mutex;
  rn_cond_t changed;  // signalled when a stop is requested or a thread ends
  int running;
  rn_status_t error;   // Owned; the first
  rn_status_t joined;  // Owned; the result of the last join
};

static void release(rn_coordinator_t* c) {
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  rn_status_free(c->error);
  rn_status_free(c->joined);
  rn_cond_destroy(&c->changed);
  rn_mutex_destroy(&c->mutex);
  RN_FREE(c->allocator, c);
}

RN_API rn_coordinator_t* rn_coordinator_create(void) {
  rn_coordinator_t* c = NULL;
  rn_status_t status = RN_NEW(rn_allocator_default(), &c);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  c->allocator = rn_allocator_default();
  atomic_init(&c->refs, 1);
  rn_mutex_init(&c->mutex);
  rn_cond_init(&c->changed);
  return c;
}

RN_API void rn_coordinator_destroy(rn_coordinator_t* c) {
  if (!c) return;
  rn_coordinator_request_stop(c);
  release(c);
}

RN_API bool rn_coordinator_should_stop(const rn_coordinator_t* c) {
  return !c || atomic_load_explicit(&c->should_stop, memory_order_acquire);
}

static void stop_locked(rn_coordinator_t* c) {
  atomic_store_explicit(&c->should_stop, true, memory_order_release);
  rn_cond_broadcast(&c->changed);
}

RN_API void rn_coordinator_request_stop(rn_coordinator_t* c) {
  if (!c) return;
  rn_mutex_lock(&c->mutex);
  stop_locked(c);
  rn_mutex_unlock(&c->mutex);
}

RN_API void rn_coordinator_report(rn_coordinator_t* c, int code, const char* message) {
  if (!c) return;
  bool is_error = code != RN_CODE_OK && code != RN_CODE_OUT_OF_RANGE && code != RN_CODE_CANCELLED;
  rn_mutex_lock(&c->mutex);
  // Errors after a stop request are caused by it, so they are dropped.
  if (is_error && rn_ok(c->error) && !rn_coordinator_should_stop(c))
    c->error = rn_status_make((rn_code_t)code, "%s", message ? message : "");
  stop_locked(c);
  rn_mutex_unlock(&c->mutex);
}

// |seconds| from now, on the clock of condition variables.
static int64_t deadline_in(double seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double limit = seconds < 0 ? 0 : seconds > 1e9 ? 1e9 : seconds;
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (int64_t)(limit * 1e9);
}

RN_API bool rn_coordinator_wait_for_stop(rn_coordinator_t* c, double seconds) {
  if (!c) return true;
  int64_t deadline = deadline_in(seconds);
  bool in_time = true;
  rn_mutex_lock(&c->mutex);
  while (!rn_coordinator_should_stop(c) && in_time) {
    if (seconds < 0)
      rn_cond_wait(&c->changed, &c->mutex);
    else
      in_time = rn_cond_wait_until(&c->changed, &c->mutex, deadline);
  }
  bool stopped = rn_coordinator_should_stop(c);
  rn_mutex_unlock(&c->mutex);
  return stopped;
}

static void end_thread(rn_coordinator_t* c) {
  rn_mutex_lock(&c->mutex);
  c->running--;
  rn_cond_broadcast(&c->changed);
  rn_mutex_unlock(&c->mutex);
  release(c);
}

static void* run(void* arg) {
  worker_t* worker = arg;
  rn_coordinator_t* c = worker->coordinator;
  worker->body(c, worker->arg);
  RN_FREE(c->allocator, worker);
  end_thread(c);
  return NULL;
}

static rn_status_t start(rn_coordinator_t* c, const worker_t* spec) {
  worker_t* worker = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(c->allocator, &worker));
  *worker = *spec;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  rn_mutex_lock(&c->mutex);
  c->running++;
  rn_mutex_unlock(&c->mutex);
  int failed = pthread_create(&thread, &attributes, run, worker);
  pthread_attr_destroy(&attributes);
  if (!failed) return RN_OK;
  RN_FREE(c->allocator, worker);
  end_thread(c);
  return rn_resource_exhausted("Cannot start thread '%s'", spec->name);
}

RN_API bool rn_coordinator_start(rn_coordinator_t* c, const char* name,
                                 void (*body)(rn_coordinator_t* coordinator, void* arg),
                                 void* arg) {
  if (!c) return false;
  worker_t spec = {.coordinator = c, .body = body, .arg = arg};
  size_t size = name ? strlen(name) : 0;
  if (size > sizeof spec.name - 1) size = sizeof spec.name - 1;
  if (size) memcpy(spec.name, name, size);
  rn_status_t status = body ? start(c, &spec) : rn_invalid_argument("The thread has no function");
  if (rn_ok(status)) return true;
  rn_coordinator_report(c, (int)rn_status_code(status), rn_status_message(status));
  rn_status_free(status);
  return false;
}

RN_API int rn_coordinator_join(rn_coordinator_t* c, double grace_seconds) {
  if (!c) return RN_CODE_OK;
  bool in_time = true;
  rn_mutex_lock(&c->mutex);
  while (c->running > 0 && !rn_coordinator_should_stop(c)) rn_cond_wait(&c->changed, &c->mutex);
  int64_t deadline = deadline_in(grace_seconds);
  while (c->running > 0 && in_time) in_time = rn_cond_wait_until(&c->changed, &c->mutex, deadline);
  rn_status_free(c->joined);
  c->joined = rn_status_copy(c->error);
  if (rn_ok(c->joined) && c->running > 0)
    c->joined = rn_aborted("Coordinator stopped with threads still running: %d", c->running);
  int code = (int)rn_status_code(c->joined);
  rn_mutex_unlock(&c->mutex);
  return code;
}

RN_API const char* rn_coordinator_message(const rn_coordinator_t* c) {
  return c ? rn_status_message(c->joined) : "";
}
