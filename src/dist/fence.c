// Steps that are run once: see fence.h.
#include "dist/fence.h"

#include "base/map.h"

#define NUMBERS 4096
#define ANSWER_BYTES (1 << 20)

// Somebody who waits for a step.
typedef struct waiter_t {
  struct waiter_t* next;
  struct fenced_t* fenced;
  rn_run_step_t* call;
  rn_cancel_entry_t entry;  // in the call's cancellation
  bool is_linked, is_gone;  // guarded by the fence's lock: nobody hears the answer
} waiter_t;

// A step by its number.
typedef struct fenced_t {
  rn_run_step_t call;     // first: as it is run, while it is
  struct fenced_t* next;  // that ended after this one
  rn_fence_t* fence;
  int refs;  // the fence's and its run's, and of those who cancel it; guarded by the lock
  int64_t number;
  rn_cancel_t cancel;
  rn_timer_t grace;
  waiter_t first;     // who asked first
  waiter_t* waiters;  // all
  bool has_ended;
  bool has_answer;  // what follows
  rn_status_t status;
  rn_tensor_t* fetches;
  size_t fetch_count, bytes;
} fenced_t;

struct rn_fence_t {
  _Atomic int refs;  // its owner's and those of steps under way
  rn_fence_options_t options;
  rn_mutex_t mutex;           // guards what follows
  rn_map_t numbers;           // fenced_t* by its number
  fenced_t *oldest, *newest;  // of those that have ended
  fenced_t* oldest_answer;
  size_t ended, bytes;
};

rn_status_t rn_fence_create(const rn_fence_options_t* options, rn_fence_t** out) {
  *out = NULL;
  rn_fence_t* fence = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &fence));
  fence->refs = 1;
  fence->options = *options;
  if (!fence->options.numbers) fence->options.numbers = NUMBERS;
  if (!fence->options.answer_bytes) fence->options.answer_bytes = ANSWER_BYTES;
  rn_mutex_init(&fence->mutex);
  rn_map_init(&fence->numbers, options->allocator);
  *out = fence;
  return RN_OK;
}

static rn_str_t key_of(const fenced_t* fenced) {
  return rn_str_n((const char*)&fenced->number, sizeof fenced->number);
}

static void drop_answer_locked(fenced_t* fenced) {
  rn_fence_t* fence = fenced->fence;
  for (size_t i = 0; fenced->fetches && i < fenced->fetch_count; ++i)
    rn_tensor_clear(&fenced->fetches[i]);
  RN_FREE_ARRAY(fence->options.allocator, fenced->fetches, fenced->fetch_count);
  fenced->fetches = NULL;
  fence->bytes -= fenced->bytes;
  fenced->bytes = 0;
  fenced->has_answer = false;
}

static void release_locked(fenced_t* fenced) {
  if (--fenced->refs) return;
  drop_answer_locked(fenced);
  rn_status_free(fenced->status);
  rn_cancel_destroy(&fenced->cancel);
  RN_FREE(fenced->fence->options.allocator, fenced);
}

static void forget_oldest_locked(rn_fence_t* fence) {
  fenced_t* fenced = fence->oldest;
  fence->oldest = fenced->next;
  if (!fence->oldest) fence->newest = NULL;
  if (fence->oldest_answer == fenced) fence->oldest_answer = fenced->next;
  fence->ended--;
  rn_map_remove(&fence->numbers, key_of(fenced));
  release_locked(fenced);
}

void rn_fence_release(rn_fence_t* fence) {
  if (!fence || --fence->refs) return;
  while (fence->oldest) forget_oldest_locked(fence);
  rn_map_clear(&fence->numbers);
  rn_mutex_destroy(&fence->mutex);
  RN_FREE(fence->options.allocator, fence);
}

static rn_status_t share_all(const rn_tensor_t* from, size_t count, rn_tensor_t* to) {
  for (size_t i = 0; i < count; ++i) to[i] = (rn_tensor_t){0};
  for (size_t i = 0; i < count; ++i) {
    if (!rn_tensor_is_set(&from[i])) continue;
    rn_status_t status = rn_tensor_share(&from[i], &to[i]);
    if (rn_ok(status)) continue;
    for (size_t f = 0; f < i; ++f) rn_tensor_clear(&to[f]);
    return status;
  }
  return RN_OK;
}

// Whoever asks again before the number is forgotten gets this; without room, only that it ran.
static void keep_answer_locked(fenced_t* fenced, rn_status_t status, const rn_tensor_t* fetches,
                               size_t count) {
  rn_fence_t* fence = fenced->fence;
  fenced->status = rn_status_copy(status);
  if (!rn_ok(status)) {
    fenced->has_answer = true;
    return;
  }
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i)
    if (rn_tensor_is_set(&fetches[i])) bytes += rn_tensor_bytes(&fetches[i]);
  if (bytes > fence->options.answer_bytes) return;
  rn_status_t kept = rn_alloc_array(fence->options.allocator, count, sizeof *fenced->fetches,
                                    (void**)&fenced->fetches);
  fenced->fetch_count = count;
  if (rn_ok(kept)) kept = share_all(fetches, count, fenced->fetches);
  fenced->has_answer = rn_ok(kept);
  rn_status_free(kept);
  if (!fenced->has_answer) return;
  fenced->bytes = bytes;
  fence->bytes += bytes;
}

static void file_locked(fenced_t* fenced) {
  rn_fence_t* fence = fenced->fence;
  if (fence->newest)
    fence->newest->next = fenced;
  else
    fence->oldest = fenced;
  fence->newest = fenced;
  if (!fence->oldest_answer) fence->oldest_answer = fenced;
  fence->ended++;
  while (fence->bytes > fence->options.answer_bytes && fence->oldest_answer) {
    drop_answer_locked(fence->oldest_answer);
    fence->oldest_answer = fence->oldest_answer->next;
  }
  while (fence->ended > fence->options.numbers) forget_oldest_locked(fence);
}

// The answer for one that asked again.
static rn_status_t replay(const fenced_t* fenced, rn_run_step_t* call) {
  if (!rn_ok(fenced->status)) return rn_status_copy(fenced->status);
  if (!fenced->has_answer)
    return rn_aborted("Step %lld has run; its answer was lost and is no longer here",
                      (long long)fenced->number);
  if (call->fetch_count != fenced->fetch_count)
    return rn_invalid_argument("Call %lld came again with other fetches",
                               (long long)fenced->number);
  return share_all(fenced->fetches, fenced->fetch_count, call->fetches);
}

static void waiter_free(fenced_t* fenced, waiter_t* waiter) {
  if (waiter != &fenced->first) RN_FREE(fenced->fence->options.allocator, waiter);
}

static void unlink_all(fenced_t* fenced) {
  for (waiter_t* waiter = fenced->waiters; waiter; waiter = waiter->next)
    if (waiter->is_linked) rn_cancel_remove(waiter->call->call.cancel, &waiter->entry);
}

// The step has ended: everybody who waits gets its answer.
static void on_done(rn_call_t* call, rn_status_t status) {
  fenced_t* fenced = (fenced_t*)call;
  rn_fence_t* fence = fenced->fence;
  rn_run_step_t* first = fenced->first.call;
  first->metadata = fenced->call.metadata;
  rn_mutex_lock(&fence->mutex);
  keep_answer_locked(fenced, status, first->fetches, first->fetch_count);
  fenced->has_ended = true;  // who comes from now on takes it from there
  rn_mutex_unlock(&fence->mutex);
  unlink_all(fenced);
  if (fence->options.timers.set)
    fence->options.timers.clear(fence->options.timers.self, &fenced->grace);
  while (fenced->waiters) {
    waiter_t* waiter = fenced->waiters;
    rn_run_step_t* waiting = waiter->call;
    fenced->waiters = waiter->next;
    bool is_first = waiter == &fenced->first;
    waiter_free(fenced, waiter);
    if (is_first) continue;
    rn_status_t again = rn_ok(status)
                            ? share_all(first->fetches, first->fetch_count, waiting->fetches)
                            : rn_status_copy(status);
    rn_call_done(&waiting->call, again);
  }
  rn_mutex_lock(&fence->mutex);
  file_locked(fenced);
  release_locked(fenced);
  rn_mutex_unlock(&fence->mutex);
  rn_fence_release(fence);
  rn_call_done(&first->call, status);
}

static void on_grace(rn_timer_t* timer) {
  fenced_t* fenced = (fenced_t*)((char*)timer - __builtin_offsetof(fenced_t, grace));
  rn_fence_t* fence = fenced->fence;
  fence->refs++;
  rn_mutex_lock(&fence->mutex);
  bool is_alone = !fenced->has_ended;
  for (const waiter_t* waiter = fenced->waiters; waiter; waiter = waiter->next)
    is_alone = is_alone && waiter->is_gone;
  fenced->refs += is_alone;
  rn_mutex_unlock(&fence->mutex);
  if (is_alone) rn_cancel(&fenced->cancel);
  rn_mutex_lock(&fence->mutex);
  if (is_alone) release_locked(fenced);
  rn_mutex_unlock(&fence->mutex);
  rn_fence_release(fence);
}

// Somebody waits no longer: it gave the step up, which ends it, or its connection broke.
static void on_gone(rn_cancel_entry_t* entry) {
  waiter_t* waiter = (waiter_t*)((char*)entry - __builtin_offsetof(waiter_t, entry));
  fenced_t* fenced = waiter->fenced;
  rn_fence_t* fence = fenced->fence;
  const rn_call_t* call = &waiter->call->call;
  bool is_lost = rn_caller_is_lost(call->caller) && fence->options.timers.set;
  const rn_env_t* env = fence->options.env;
  fence->refs++;
  rn_mutex_lock(&fence->mutex);
  waiter->is_gone = true;
  bool has_ended = fenced->has_ended;
  fenced->refs++;
  rn_mutex_unlock(&fence->mutex);
  rn_status_t status = RN_OK;
  if (is_lost && !has_ended)
    status = fence->options.timers.set(fence->options.timers.self, &fenced->grace,
                                       env->now_ns(env->self) + fence->options.grace_ns);
  if (!is_lost || !rn_ok(status)) rn_cancel(&fenced->cancel);
  rn_status_free(status);
  rn_mutex_lock(&fence->mutex);
  release_locked(fenced);
  rn_mutex_unlock(&fence->mutex);
  rn_fence_release(fence);
}

// From now on it is known when |waiter| goes.
static void link_waiter(waiter_t* waiter) {
  rn_cancel_t* cancel = waiter->call->call.cancel;
  waiter->entry.fn = on_gone;
  waiter->is_linked = cancel && rn_cancel_add(cancel, &waiter->entry);
  waiter->is_gone = cancel && !waiter->is_linked;
}

// A second call of a number. True: it waits; else |*out_status| is its answer.
static bool join_locked(rn_fence_t* fence, fenced_t* fenced, rn_run_step_t* call,
                        rn_status_t* out_status) {
  waiter_t* waiter = NULL;
  if (fenced->has_ended) {
    *out_status = replay(fenced, call);
    return false;
  }
  if (call->fetch_count != fenced->first.call->fetch_count) {
    *out_status =
        rn_invalid_argument("Call %lld came again with other fetches", (long long)fenced->number);
    return false;
  }
  *out_status = RN_NEW(fence->options.allocator, &waiter);
  if (!rn_ok(*out_status)) return false;
  waiter->fenced = fenced;
  waiter->call = call;
  link_waiter(waiter);
  waiter->next = fenced->waiters;
  fenced->waiters = waiter;
  return true;
}

static rn_status_t begin_locked(rn_fence_t* fence, rn_run_step_t* call, fenced_t** out) {
  fenced_t* fenced = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(fence->options.allocator, &fenced));
  fenced->fence = fence;
  fenced->number = call->request;
  fenced->refs = 2;
  fenced->grace.fn = on_grace;
  rn_cancel_init(&fenced->cancel);
  fenced->first = (waiter_t){.fenced = fenced, .call = call};
  fenced->waiters = &fenced->first;
  fenced->call = *call;
  fenced->call.call.done = on_done;
  fenced->call.call.cancel = &fenced->cancel;
  rn_status_t status = rn_map_put(&fence->numbers, key_of(fenced), fenced);
  if (!rn_ok(status)) {
    fenced->refs = 1;
    release_locked(fenced);
    return status;
  }
  fence->refs++;
  *out = fenced;
  return RN_OK;
}

void rn_fence_run(rn_fence_t* fence, rn_run_step_t* call,
                  void (*run)(void* self, rn_run_step_t* call), void* self) {
  if (!call->request) {
    run(self, call);
    return;
  }
  for (size_t i = 0; i < call->fetch_count; ++i) call->fetches[i] = (rn_tensor_t){0};
  fenced_t* fenced = NULL;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&fence->mutex);
  fenced_t* old =
      rn_map_get(&fence->numbers, rn_str_n((const char*)&call->request, sizeof call->request));
  bool waits = old && join_locked(fence, old, call, &status);
  if (!old) status = begin_locked(fence, call, &fenced);
  rn_mutex_unlock(&fence->mutex);
  if (fenced) {
    link_waiter(&fenced->first);
    if (fenced->first.is_gone) rn_cancel(&fenced->cancel);
    run(self, &fenced->call);
  } else if (!waits) {
    rn_call_done(&call->call, status);
  }
}
