// See wait_line.h.
#include "kernels/cpu/data_flow/wait_line.h"

void rn_wait_leave_locked(rn_wait_call_t* call) {
  *(call->previous ? &call->previous->next : &call->line->first) = call->next;
  *(call->next ? &call->next->previous : &call->line->last) = call->previous;
  call->next = call->previous = NULL;
  call->is_waiting = false;
}

rn_wait_call_t* rn_wait_pop_locked(rn_wait_line_t* line) {
  rn_wait_call_t* call = line->first;
  if (call) rn_wait_leave_locked(call);
  return call;
}

// If the call has left its line, the thread that took it out ends it, and waits for this function
// to return first.
static void on_cancel(rn_cancel_entry_t* entry) {
  rn_wait_call_t* call = (rn_wait_call_t*)entry;
  rn_mutex_t* mutex = call->mutex;
  rn_mutex_lock(mutex);
  if (call->is_waiting) {
    rn_wait_leave_locked(call);
    call->on_cancel(call);
  } else {
    call->is_cancelled = true;
    rn_mutex_unlock(mutex);
  }
}

bool rn_wait_join(rn_wait_call_t* call) {
  call->cancel.fn = on_cancel;
  // Register the cancellation first: nothing can end the call until it is in line.
  if (!rn_cancel_add(call->ctx->step->cancel, &call->cancel)) return false;
  rn_mutex_lock(call->mutex);
  if (call->is_cancelled) {
    rn_mutex_unlock(call->mutex);
    rn_wait_left(call);
    return false;
  }
  call->previous = call->line->last;
  *(call->previous ? &call->previous->next : &call->line->first) = call;
  call->line->last = call;
  call->is_waiting = true;
  return true;
}

void rn_wait_left(rn_wait_call_t* call) {
  rn_cancel_remove(call->ctx->step->cancel, &call->cancel);
}

void rn_wait_end_all(rn_wait_call_t* list, void (*end)(rn_wait_call_t* call)) {
  while (list) {
    rn_wait_call_t* next = list->next;
    rn_wait_left(list);
    end(list);
    list = next;
  }
}
