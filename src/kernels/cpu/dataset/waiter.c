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
