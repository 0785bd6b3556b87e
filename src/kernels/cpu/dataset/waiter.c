// Requests that wait for other threads: see waiter.h.
#include "kernels/cpu/dataset/waiter.h"

#include "base/container.h"

static void cancelled(rn_cancel_entry_t* entry) {
  rn_data_waiter_t* waiter = RN_CONTAINER_OF(entry, rn_data_waiter_t, entry);
  rn_mutex_lock(waiter->mutex);
  rn_data_request_t* request = rn_data_waiter_take_locked(waiter);
  rn_mutex_unlock(waiter->mutex);
  if (!request) return;
  request->status = rn_cancelled("Operation was cancelled");
  request->done(request);
}

bool rn_data_waiter_enter(rn_data_waiter_t* waiter) {
  waiter->cancel = waiter->iterator->asked->step->cancel;
  waiter->entry.fn = cancelled;
  return rn_cancel_add(waiter->cancel, &waiter->entry);
}

bool rn_data_waiter_wait_locked(rn_data_waiter_t* waiter) {
  // A cancellation that has come already found no waiting request.
  waiter->is_waiting = !rn_is_cancelled(waiter->cancel);
  return waiter->is_waiting;
}

void rn_data_waiter_leave(rn_data_waiter_t* waiter) {
  rn_cancel_remove(waiter->cancel, &waiter->entry);
}

rn_data_request_t* rn_data_waiter_take_locked(rn_data_waiter_t* waiter) {
  if (!waiter->is_waiting) return NULL;
  waiter->is_waiting = false;
  return waiter->iterator->asked;
}

void rn_data_waiter_answer(rn_data_waiter_t* waiter, rn_data_request_t* request) {
  if (!request) return;
  rn_data_waiter_leave(waiter);
  request->done(request);
}

// A wait that the cancellation of its step ends.
typedef struct waiter_pause_t {
  rn_cancel_entry_t entry;
  rn_mutex_t mutex;
  rn_cond_t changed;
  bool is_cancelled;  // guarded by |mutex|
} waiter_pause_t;

static void on_pause_cancelled(rn_cancel_entry_t* entry) {
  waiter_pause_t* wait = RN_CONTAINER_OF(entry, waiter_pause_t, entry);
  rn_mutex_lock(&wait->mutex);
  wait->is_cancelled = true;
  rn_cond_broadcast(&wait->changed);
  rn_mutex_unlock(&wait->mutex);
}

rn_status_t rn_data_pause(const rn_data_request_t* request, const rn_env_t* env, int64_t micros) {
  waiter_pause_t wait = {.entry.fn = on_pause_cancelled};
  rn_mutex_init(&wait.mutex);
  rn_cond_init(&wait.changed);
  int64_t until = env->now_ns(env->self) + micros * 1000;
  if (request->step->deadline_ns && request->step->deadline_ns < until)
    until = request->step->deadline_ns + 1;
  if (rn_cancel_add(request->step->cancel, &wait.entry)) {
    rn_mutex_lock(&wait.mutex);
    while (!wait.is_cancelled && env->now_ns(env->self) < until)
      rn_cond_wait_until(&wait.changed, &wait.mutex, until);
    rn_mutex_unlock(&wait.mutex);
    rn_cancel_remove(request->step->cancel, &wait.entry);
  }
  rn_cond_destroy(&wait.changed);
  rn_mutex_destroy(&wait.mutex);
  return rn_data_stopped(request);
}
