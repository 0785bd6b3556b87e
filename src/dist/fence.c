// Runs numbered calls once: see fence.h.
#include "dist/fence.h"

#include "base/container.h"
#include "base/map.h"

#define NUMBERS 4096
#define ANSWER_BYTES (1 << 20)

// A caller that waits for a response.
typedef struct fence_waiter_t {
  struct fence_waiter_t* next;
  struct fenced_t* fenced;
  rn_fence_call_t asked;
  rn_cancel_t* cancel;      // the caller's
  rn_cancel_entry_t entry;  // in |cancel|
  bool is_linked,
      is_gone;  // guarded by the fence's lock; |is_gone|: the response is not wanted any more
} fence_waiter_t;

// A numbered call.
typedef struct fenced_t {
  struct fenced_t* next;  // the next one that ended
  rn_fence_t* fence;
  int refs;  // of the fence, the run and threads that cancel it; guarded by the lock
  int64_t number;
  rn_cancel_t cancel;
  rn_timer_t grace;
  fence_waiter_t first;  // the first caller, with the original fields of its call
  void (*done)(rn_call_t* call, rn_status_t status);
  void* owner;
  fence_waiter_t* waiters;  // all
  bool has_ended, is_stopped;
  bool has_answer;  // the next fields are set
  rn_status_t status;
  rn_tensor_t* fetches;
  size_t fetch_count, bytes;
} fenced_t;

struct rn_fence_t {
  _Atomic int refs;  // of its owner and of running calls
  rn_fence_options_t options;
  rn_mutex_t mutex;           // guards what follows
  rn_map_t numbers;           // number -> fenced_t*
  fenced_t *oldest, *newest;  // of those that have ended
  fenced_t* oldest_answer;
  size_t ended, bytes;
  bool is_stopped;
};

rn_status_t rn_fence_create(const rn_fence_options_t* options, rn_fence_t** out) {
  *out = NULL;
  rn_fence_t* fence = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &fence));
  fence->refs = 1;
  fence->options = *options;
  if (!fence->options.numbers) fence->options.numbers = NUMBERS;
  if (!fence->options.answer_bytes) fence->options.answer_bytes = ANSWER_BYTES;
  if (!fence->options.answer_max) fence->options.answer_max = fence->options.answer_bytes;
  if (!fence->options.lost) fence->options.lost = RN_CODE_ABORTED;
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

// Keeps the response for repeated calls, until the number is forgotten. Without room, only the fact
// that the call ran is kept.
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
  if (bytes > fence->options.answer_bytes || bytes > fence->options.answer_max) return;
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

// Copies the tensors of a kept response into |call|.
static rn_status_t fill(const rn_fence_t* fence, const rn_tensor_t* fetches, rn_fence_call_t call) {
  RN_RETURN_IF_ERROR(share_all(fetches, call.fetch_count, call.fetches));
  if (fence->options.replayed) fence->options.replayed(call.call);
  return RN_OK;
}

// The response for a repeated call.
static rn_status_t replay(const fenced_t* fenced, rn_fence_call_t call) {
  if (!rn_ok(fenced->status)) return rn_status_copy(fenced->status);
  if (!fenced->has_answer)
    return rn_status_make(fenced->fence->options.lost,
                          "Step %lld has run, but its response was lost and is no longer kept",
                          (long long)fenced->number);
  if (call.fetch_count != fenced->fetch_count)
    return rn_invalid_argument("Call %lld was repeated with other fetches",
                               (long long)fenced->number);
  return fill(fenced->fence, fenced->fetches, call);
}

static void waiter_free(fenced_t* fenced, fence_waiter_t* waiter) {
  if (waiter != &fenced->first) RN_FREE(fenced->fence->options.allocator, waiter);
}

static void unlink_all(fenced_t* fenced) {
  for (fence_waiter_t* waiter = fenced->waiters; waiter; waiter = waiter->next)
    if (waiter->is_linked) rn_cancel_remove(waiter->cancel, &waiter->entry);
}

// The call has ended: all waiters get its response.
static void on_done(rn_call_t* call, rn_status_t status) {
  fenced_t* fenced = call->owner;
  rn_fence_t* fence = fenced->fence;
  rn_fence_call_t first = fenced->first.asked;
  rn_mutex_lock(&fence->mutex);
  keep_answer_locked(fenced, status, first.fetches, first.fetch_count);
  fenced->has_ended = true;  // later callers take the kept response
  rn_mutex_unlock(&fence->mutex);
  unlink_all(fenced);
  if (fence->options.timers.set)
    fence->options.timers.clear(fence->options.timers.self, &fenced->grace);
  while (fenced->waiters) {
    fence_waiter_t* waiter = fenced->waiters;
    rn_fence_call_t waiting = waiter->asked;
    fenced->waiters = waiter->next;
    bool is_first = waiter == &fenced->first;
    waiter_free(fenced, waiter);
    if (is_first) continue;
    rn_status_t again =
        rn_ok(status) ? fill(fence, first.fetches, waiting) : rn_status_copy(status);
    rn_call_done(waiting.call, again);
  }
  call->done = fenced->done;
  call->owner = fenced->owner;
  call->cancel = fenced->first.cancel;
  rn_mutex_lock(&fence->mutex);
  file_locked(fenced);
  release_locked(fenced);
  rn_mutex_unlock(&fence->mutex);
  rn_fence_release(fence);
  rn_call_done(call, status);
}

static void on_grace(rn_timer_t* timer) {
  fenced_t* fenced = RN_CONTAINER_OF(timer, fenced_t, grace);
  rn_fence_t* fence = fenced->fence;
  fence->refs++;
  rn_mutex_lock(&fence->mutex);
  bool is_alone = !fenced->has_ended;
  for (const fence_waiter_t* waiter = fenced->waiters; waiter; waiter = waiter->next)
    is_alone = is_alone && waiter->is_gone;
  fenced->refs += is_alone;
  rn_mutex_unlock(&fence->mutex);
  if (is_alone) rn_cancel(&fenced->cancel);
  rn_mutex_lock(&fence->mutex);
  if (is_alone) release_locked(fenced);
  rn_mutex_unlock(&fence->mutex);
  rn_fence_release(fence);
}

// A waiter is gone: it cancelled the call, which ends it, or its connection broke.
static void on_gone(rn_cancel_entry_t* entry) {
  fence_waiter_t* waiter = RN_CONTAINER_OF(entry, fence_waiter_t, entry);
  fenced_t* fenced = waiter->fenced;
  rn_fence_t* fence = fenced->fence;
  bool is_lost = rn_caller_is_lost(waiter->asked.call->caller) && fence->options.timers.set;
  const rn_env_t* env = fence->options.env;
  fence->refs++;
  rn_mutex_lock(&fence->mutex);
  waiter->is_gone = true;
  is_lost = is_lost && !fence->is_stopped;
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

// A running call that has not been cancelled yet, retained; NULL if there is none.
static fenced_t* take_running_locked(rn_fence_t* fence) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&fence->numbers, &position))) {
    fenced_t* fenced = entry->value;
    if (fenced->has_ended || fenced->is_stopped) continue;
    fenced->is_stopped = true;
    fenced->refs++;
    return fenced;
  }
  return NULL;
}

void rn_fence_stop(rn_fence_t* fence) {
  if (!fence) return;
  fenced_t* fenced;
  rn_mutex_lock(&fence->mutex);
  fence->is_stopped = true;
  while ((fenced = take_running_locked(fence))) {
    rn_mutex_unlock(&fence->mutex);
    rn_cancel(&fenced->cancel);
    rn_mutex_lock(&fence->mutex);
    release_locked(fenced);
  }
  rn_mutex_unlock(&fence->mutex);
}

// Registers for the cancellation of |waiter|.
static void link_waiter(fence_waiter_t* waiter) {
  waiter->entry.fn = on_gone;
  waiter->is_linked = waiter->cancel && rn_cancel_add(waiter->cancel, &waiter->entry);
  waiter->is_gone = waiter->cancel && !waiter->is_linked;
}

// A repeated call. True if it waits; else |*out_status| is its response.
static bool join_locked(rn_fence_t* fence, fenced_t* fenced, rn_fence_call_t call,
                        rn_status_t* out_status) {
  fence_waiter_t* waiter = NULL;
  if (fenced->has_ended) {
    *out_status = replay(fenced, call);
    return false;
  }
  if (call.fetch_count != fenced->first.asked.fetch_count) {
    *out_status =
        rn_invalid_argument("Call %lld was repeated with other fetches", (long long)fenced->number);
    return false;
  }
  *out_status = RN_NEW(fence->options.allocator, &waiter);
  if (!rn_ok(*out_status)) return false;
  waiter->fenced = fenced;
  waiter->asked = call;
  waiter->cancel = call.call->cancel;
  link_waiter(waiter);
  waiter->next = fenced->waiters;
  fenced->waiters = waiter;
  return true;
}

static rn_status_t begin_locked(rn_fence_t* fence, rn_fence_call_t call, fenced_t** out) {
  fenced_t* fenced = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(fence->options.allocator, &fenced));
  fenced->fence = fence;
  fenced->number = call.number;
  fenced->refs = 2;
  fenced->grace.fn = on_grace;
  rn_cancel_init(&fenced->cancel);
  fenced->first = (fence_waiter_t){.fenced = fenced, .asked = call, .cancel = call.call->cancel};
  fenced->waiters = &fenced->first;
  fenced->done = call.call->done;
  fenced->owner = call.call->owner;
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

void rn_fence_run(rn_fence_t* fence, rn_fence_call_t call, void (*run)(void* self, rn_call_t* call),
                  void* self) {
  if (!call.number) {
    run(self, call.call);
    return;
  }
  for (size_t i = 0; i < call.fetch_count; ++i) call.fetches[i] = (rn_tensor_t){0};
  fenced_t* fenced = NULL;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&fence->mutex);
  fenced_t* old =
      rn_map_get(&fence->numbers, rn_str_n((const char*)&call.number, sizeof call.number));
  bool waits = old && join_locked(fence, old, call, &status);
  if (!old) status = begin_locked(fence, call, &fenced);
  rn_mutex_unlock(&fence->mutex);
  if (fenced) {
    link_waiter(&fenced->first);
    if (fenced->first.is_gone) rn_cancel(&fenced->cancel);
    call.call->done = on_done;
    call.call->owner = fenced;
    call.call->cancel = &fenced->cancel;
    run(self, call.call);
  } else if (!waits) {
    rn_call_done(call.call, status);
  }
}
