// Parts that run in pieces: see partial.h.
#include "dist/worker/partial.h"

// A running part, or one that has ended but was not waited for yet.
typedef struct partial_t {
  rn_run_graph_t call;  // first; its strings are in |arena|
  rn_worker_partials_t* partials;
  struct partial_t* next;
  int refs;              // of the list and of threads that cancel it; guarded by the lock
  rn_cancel_t cancel;    // its own: it outlives the calls of its pieces
  rn_run_graph_t* last;  // waits for the end; NULL: no call does yet
  bool is_over, is_forgotten, is_stopped;
  rn_status_t status;  // Owned: how it ended
  rn_arena_t arena;
} partial_t;

struct rn_worker_partials_t {
  rn_worker_t* worker;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  partial_t* first;
};

rn_status_t rn_worker_partials_create(rn_worker_t* worker, rn_allocator_t allocator,
                                      rn_worker_partials_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->worker = worker;
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  return RN_OK;
}

static void partial_free(partial_t* partial) {
  rn_status_free(partial->status);
  rn_cancel_destroy(&partial->cancel);
  rn_arena_clear(&partial->arena);
  RN_FREE(partial->partials->allocator, partial);
}

static void release(partial_t* partial) {
  rn_worker_partials_t* partials = partial->partials;
  rn_mutex_lock(&partials->mutex);
  bool is_last = --partial->refs == 0;
  rn_mutex_unlock(&partials->mutex);
  if (is_last) partial_free(partial);
}

void rn_worker_partials_destroy(rn_worker_partials_t* partials) {
  if (!partials) return;
  while (partials->first) {
    partial_t* partial = partials->first;
    partials->first = partial->next;
    partial_free(partial);
  }
  rn_mutex_destroy(&partials->mutex);
  RN_FREE(partials->allocator, partials);
}

static partial_t** find_locked(rn_worker_partials_t* partials, int64_t step) {
  partial_t** at = &partials->first;
  while (*at && (*at)->call.step != step) at = &(*at)->next;
  return at;
}

static void remove_locked(partial_t* partial) {
  partial_t** at = &partial->partials->first;
  while (*at != partial) at = &(*at)->next;
  *at = partial->next;
}

static void on_end(rn_call_t* call, rn_status_t status) {
  partial_t* partial = (partial_t*)call;
  rn_worker_partials_t* partials = partial->partials;
  rn_mutex_lock(&partials->mutex);
  rn_run_graph_t* last = partial->last;
  bool is_free = last || partial->is_forgotten;
  partial->is_over = true;
  if (is_free)
    remove_locked(partial);
  else
    partial->status = status;
  rn_mutex_unlock(&partials->mutex);
  if (!is_free) return;
  release(partial);
  if (last)
    rn_call_done(&last->call, status);
  else
    rn_status_free(status);
}

static rn_status_t make(rn_worker_partials_t* partials, const rn_run_graph_t* call,
                        partial_t** out) {
  partial_t* partial = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(partials->allocator, &partial));
  partial->partials = partials;
  partial->refs = 1;
  rn_cancel_init(&partial->cancel);
  rn_arena_init(&partial->arena, partials->allocator);
  partial->call = (rn_run_graph_t){
      .call = {.done = on_end, .deadline_ns = INT64_MAX, .cancel = &partial->cancel},
      .step = call->step};
  rn_status_t status = rn_arena_str(&partial->arena, call->session, &partial->call.session);
  if (rn_ok(status)) status = rn_arena_str(&partial->arena, call->handle, &partial->call.handle);
  if (!rn_ok(status)) {
    partial_free(partial);
    return status;
  }
  *out = partial;
  return RN_OK;
}

void rn_worker_partials_run(rn_worker_partials_t* partials, rn_run_graph_t* call) {
  partial_t *started = NULL, *over = NULL;
  bool waits = false;
  rn_mutex_lock(&partials->mutex);
  partial_t* partial = *find_locked(partials, call->step);
  rn_status_t status = RN_OK;
  if (call->feed_count || call->fetch_count)
    status = rn_unimplemented("A worker's part of a partial run has feeds or fetches");
  if (rn_ok(status) && !partial) {
    status = make(partials, call, &partial);
    if (rn_ok(status)) {
      partial->next = partials->first;
      partials->first = started = partial;
    }
  }
  if (rn_ok(status) && partial->is_over) {
    status = rn_status_copy(partial->status);
    if (call->is_last) {
      remove_locked(partial);
      over = partial;
    }
  } else if (rn_ok(status) && call->is_last) {
    partial->last = call;
    waits = true;
  }
  rn_mutex_unlock(&partials->mutex);
  // The part may end, and end |call|, before this returns.
  if (started) partials->worker->vtable->run_graph(partials->worker, &started->call);
  if (over) release(over);
  if (!waits) rn_call_done(&call->call, status);
}

void rn_worker_partials_forget(rn_worker_partials_t* partials, int64_t step) {
  rn_mutex_lock(&partials->mutex);
  partial_t* partial = *find_locked(partials, step);
  bool is_over = partial && partial->is_over;
  if (is_over) remove_locked(partial);  // with the list's reference
  if (partial && !is_over) {
    partial->is_forgotten = true;
    partial->refs++;
  }
  rn_mutex_unlock(&partials->mutex);
  if (partial && !is_over) rn_cancel(&partial->cancel);
  if (partial) release(partial);
}

void rn_worker_partials_stop(rn_worker_partials_t* partials) {
  for (partial_t* partial = NULL; partials;) {
    rn_mutex_lock(&partials->mutex);
    partial = partials->first;
    while (partial && (partial->is_over || partial->is_stopped)) partial = partial->next;
    if (partial) {
      partial->is_stopped = true;
      partial->refs++;
    }
    rn_mutex_unlock(&partials->mutex);
    if (!partial) return;
    rn_cancel(&partial->cancel);
    release(partial);
  }
}
