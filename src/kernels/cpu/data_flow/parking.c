// See parking.h.
#include "kernels/cpu/data_flow/parking.h"

typedef struct parked_t {
  rn_wait_call_t call;  // first
  rn_parking_t* parking;
  rn_resource_t* owner;  // Retained
  rn_parking_try_t attempt;
  const char* cancelled;
  rn_status_t status;
} parked_t;

void rn_parking_init(rn_parking_t* parking, rn_allocator_t allocator) {
  parking->allocator = allocator;
  rn_mutex_init(&parking->mutex);
}

void rn_parking_destroy(rn_parking_t* parking) { rn_mutex_destroy(&parking->mutex); }

// Tries the parked calls until none can proceed; returns the list of those that ended.
static rn_wait_call_t* sweep_locked(rn_parking_t* parking) {
  rn_wait_call_t *ended = NULL, **tail = &ended, *at = parking->line.first;
  while (at) {
    parked_t* parked = (parked_t*)at;
    rn_wait_call_t* next = parking->is_in_order ? NULL : at->next;
    if (parked->attempt(parked->owner, at->ctx, &parked->status)) {
      rn_wait_leave_locked(at);
      *tail = at;
      tail = &at->next;
      next = parking->line.first;  // the change may be what an earlier call waits for
    }
    at = next;
  }
  return ended;
}

// Called with no locks held, when no cancellation can come any more.
static void end(rn_wait_call_t* call) {
  parked_t* parked = (parked_t*)call;
  rn_kernel_ctx_t* ctx = call->ctx;
  rn_status_t status = parked->status;
  rn_resource_t* owner = parked->owner;
  RN_FREE(parked->parking->allocator, parked);
  rn_object_release(&owner->object);
  rn_done(ctx, status);
}

static void end_cancelled(parked_t* parked) {
  parked->status = rn_cancelled("%s", parked->cancelled);
  end(&parked->call);
}

static void on_cancel(rn_wait_call_t* call) {
  parked_t* parked = (parked_t*)call;
  rn_wait_call_t* ended = sweep_locked(parked->parking);
  rn_mutex_unlock(call->mutex);
  rn_wait_end_all(ended, end);
  end_cancelled(parked);
}

void rn_parking_call_begin(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                           rn_parking_begin_t begin, rn_parking_try_t attempt,
                           const char* cancelled) {
  parked_t* parked = NULL;
  rn_status_t status = RN_NEW(parking->allocator, &parked);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *parked = (parked_t){.call = {.on_cancel = on_cancel,
                                .ctx = ctx,
                                .mutex = &parking->mutex,
                                .line = &parking->line},
                       .parking = parking,
                       .owner = owner,
                       .attempt = attempt,
                       .cancelled = cancelled};
  rn_object_retain(&owner->object);
  if (!rn_wait_join(&parked->call)) {
    end_cancelled(parked);
    return;
  }
  rn_wait_call_t* ended = &parked->call;
  if (begin) parked->status = begin(owner, ctx);
  if (rn_ok(parked->status))
    ended = sweep_locked(parking);
  else
    rn_wait_leave_locked(ended);
  rn_mutex_unlock(&parking->mutex);
  rn_wait_end_all(ended, end);
}

void rn_parking_call(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                     rn_parking_try_t attempt, const char* cancelled) {
  rn_parking_call_begin(parking, owner, ctx, NULL, attempt, cancelled);
}

void rn_parking_retry(rn_parking_t* parking) {
  rn_mutex_lock(&parking->mutex);
  rn_wait_call_t* ended = sweep_locked(parking);
  rn_mutex_unlock(&parking->mutex);
  rn_wait_end_all(ended, end);
}
