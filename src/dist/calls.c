// Helpers for making calls: see calls.h.
#include "dist/calls.h"

static void on_answer(rn_call_t* call, rn_status_t status) {
  rn_waiter_t* waiter = call->owner;
  rn_mutex_lock(&waiter->mutex);
  waiter->status = status;
  waiter->is_here = true;
  rn_cond_signal(&waiter->came);
  rn_mutex_unlock(&waiter->mutex);
}

rn_call_t rn_waiter_call(rn_waiter_t* waiter, int64_t deadline_ns, rn_cancel_t* cancel) {
  *waiter = (rn_waiter_t){.is_here = false};
  rn_mutex_init(&waiter->mutex);
  rn_cond_init(&waiter->came);
  return (rn_call_t){.done = on_answer,
                     .owner = waiter,
                     .deadline_ns = deadline_ns,
                     .cancel = cancel,
                     .waits_for_ready = true};
}

bool rn_waiter_is_over(rn_waiter_t* waiter) {
  rn_mutex_lock(&waiter->mutex);
  bool is_over = waiter->is_here;
  rn_mutex_unlock(&waiter->mutex);
  return is_over;
}

rn_status_t rn_waiter_wait(rn_waiter_t* waiter) {
  rn_mutex_lock(&waiter->mutex);
  while (!waiter->is_here) rn_cond_wait(&waiter->came, &waiter->mutex);
  rn_mutex_unlock(&waiter->mutex);
  rn_cond_destroy(&waiter->came);
  rn_mutex_destroy(&waiter->mutex);
  return waiter->status;
}

static rn_status_t edge_name(rn_arena_t* arena, rn_edge_t edge, rn_str_t* out) {
  return rn_arena_printf(arena, out, "%.*s:%d", RN_STR_ARGS(edge.node->name), edge.index);
}

rn_status_t rn_run_step_name(rn_run_step_t* call, rn_arena_t* arena,
                             const rn_signature_t* signature, const rn_tensor_t* const* values) {
  rn_named_tensor_t* feeds = NULL;
  rn_str_t *fetches = NULL, *targets = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)signature->feed_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)signature->fetch_count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)signature->target_count, &targets));
  for (int32_t i = 0; i < signature->feed_count; ++i) {
    RN_RETURN_IF_ERROR(edge_name(arena, signature->feeds[i], &feeds[i].name));
    feeds[i].value = *values[i];
  }
  for (int32_t i = 0; i < signature->fetch_count; ++i)
    RN_RETURN_IF_ERROR(edge_name(arena, signature->fetches[i], &fetches[i]));
  for (int32_t i = 0; i < signature->target_count; ++i) targets[i] = signature->targets[i]->name;
  call->feeds = feeds;
  call->feed_count = (size_t)signature->feed_count;
  call->fetch_names = fetches;
  call->fetch_count = (size_t)signature->fetch_count;
  call->targets = targets;
  call->target_count = (size_t)signature->target_count;
  return RN_OK;
}
