// See parking.h.
#include "kernels/cpu/data_flow/parking.h"

struct rn_parked_t {
  rn_cancel_entry_t cancel;  // first
  rn_parked_t *next, *previous;
  rn_parking_t* parking;
  rn_resource_t* owner;  // Retained
  rn_kernel_ctx_t* ctx;
  rn_parking_try_t attempt;
  const char* cancelled;
  bool is_parked;     // guarded by the lot's lock
  bool is_cancelled;  // before it was parked; guarded likewise
  rn_status_t status;
};

void rn_parking_init(rn_parking_t* parking, rn_allocator_t allocator) {
  parking->allocator = allocator;
  rn_mutex_init(&parking->mutex);
}

void rn_parking_destroy(rn_parking_t* parking) { rn_mutex_destroy(&parking->mutex); }

static void unlink_locked(rn_parked_t* parked) {
  rn_parking_t* parking = parked->parking;
  *(parked->previous ? &parked->previous->next : &parking->first) = parked->next;
  *(parked->next ? &parked->next->previous : &parking->last) = parked->previous;
  parked->is_parked = false;
}

static void append_locked(rn_parked_t* parked) {
  rn_parking_t* parking = parked->parking;
  parked->previous = parking->last;
  parked->next = NULL;
  *(parking->last ? &parking->last->next : &parking->first) = parked;
  parking->last = parked;
  parked->is_parked = true;
}

// Tries all parked calls until none can proceed; returns the list of those that ended.
static rn_parked_t* sweep_locked(rn_parking_t* parking) {
  rn_parked_t *ended = NULL, **tail = &ended, *at = parking->first;
  while (at) {
    rn_parked_t* next = at->next;
    if (at->attempt(at->owner, at->ctx, &at->status)) {
      unlink_locked(at);
      at->next = NULL;
      *tail = at;
      tail = &at->next;
      next = parking->first;  // the change may be what an earlier call waits for
    }
    at = next;
  }
  return ended;
}

// Called with no locks held, when no cancellation can come any more.
static void end(rn_parked_t* parked) {
  rn_kernel_ctx_t* ctx = parked->ctx;
  rn_status_t status = parked->status;
  rn_resource_t* owner = parked->owner;
  RN_FREE(parked->parking->allocator, parked);
  rn_object_release(&owner->object);
  rn_done(ctx, status);
}

static void end_all(rn_parked_t* ended) {
  while (ended) {
    rn_parked_t* next = ended->next;
    rn_cancel_remove(ended->ctx->step->cancel, &ended->cancel);
    end(ended);
    ended = next;
  }
}

// If the call has left the lot, the thread that took it out ends it, and waits for this function to
// return first.
static void on_cancel(rn_cancel_entry_t* entry) {
  rn_parked_t* parked = (rn_parked_t*)entry;
  rn_parking_t* parking = parked->parking;
  rn_mutex_lock(&parking->mutex);
  bool is_ours = parked->is_parked;
  if (is_ours) unlink_locked(parked);
  parked->is_cancelled = true;
  rn_mutex_unlock(&parking->mutex);
  if (!is_ours) return;
  parked->status = rn_cancelled("%s", parked->cancelled);
  end(parked);
}

void rn_parking_call(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                     rn_parking_try_t attempt, const char* cancelled) {
  rn_parked_t* parked = NULL;
  rn_status_t status = RN_NEW(parking->allocator, &parked);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *parked = (rn_parked_t){.cancel = {.fn = on_cancel},
                          .parking = parking,
                          .owner = owner,
                          .ctx = ctx,
                          .attempt = attempt,
                          .cancelled = cancelled};
  rn_object_retain(&owner->object);
  // Register the cancellation before parking: nothing can end the call until it is parked.
  if (!rn_cancel_add(ctx->step->cancel, &parked->cancel)) {
    parked->status = rn_cancelled("%s", cancelled);
    end(parked);
    return;
  }
  rn_mutex_lock(&parking->mutex);
  rn_parked_t* ended = NULL;
  bool is_cancelled = parked->is_cancelled;
  if (!is_cancelled) {
    append_locked(parked);
    ended = sweep_locked(parking);
  }
  rn_mutex_unlock(&parking->mutex);
  if (is_cancelled) {
    parked->status = rn_cancelled("%s", cancelled);
    parked->next = NULL;
    ended = parked;
  }
  end_all(ended);
}

void rn_parking_retry(rn_parking_t* parking, rn_resource_t* owner) {
  (void)owner;
  rn_mutex_lock(&parking->mutex);
  rn_parked_t* ended = sweep_locked(parking);
  rn_mutex_unlock(&parking->mutex);
  end_all(ended);
}
