// The environment of datasets, and cancellation of parts of a pipeline. See data.h.
#include <stdatomic.h>

#include "base/container.h"
#include "base/pool_wait.h"
#include "kernels/cpu/dataset/data.h"

#define HOST_TYPE "DataHost"

static void host_destroy(rn_object_t* object) {
  rn_data_host_t* host = (rn_data_host_t*)object;
  rn_cancel_destroy(&host->cancel);
  rn_cond_destroy(&host->idle);
  rn_mutex_destroy(&host->mutex);
  RN_FREE(host->allocator, host);
}

bool rn_data_host_enter(rn_data_host_t* host) {
  rn_mutex_lock(&host->mutex);
  bool is_open = !host->is_closed;
  host->active += is_open;
  rn_mutex_unlock(&host->mutex);
  return is_open;
}

void rn_data_host_leave(rn_data_host_t* host) {
  rn_mutex_lock(&host->mutex);
  if (--host->active == 0) rn_cond_broadcast(&host->idle);
  rn_mutex_unlock(&host->mutex);
}

// The entry in the table of resources; when it is destroyed, the host closes.
typedef struct keeper_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_data_host_t* host;  // Retained
} keeper_t;

static void close_host(rn_data_host_t* host) {
  rn_mutex_lock(&host->mutex);
  host->is_closed = true;
  rn_mutex_unlock(&host->mutex);
  rn_cancel(&host->cancel);
  rn_mutex_lock(&host->mutex);
  while (host->active > 0)
    if (!rn_pool_help_unlocked(host->pool, &host->mutex) && host->active > 0)
      rn_cond_wait_a_while(&host->idle, &host->mutex);
  rn_mutex_unlock(&host->mutex);
}

static void keeper_destroy(rn_object_t* object) {
  keeper_t* keeper = (keeper_t*)object;
  if (keeper->host) {
    close_host(keeper->host);
    rn_object_release(&keeper->host->object);
  }
  RN_FREE(keeper->allocator, keeper);
}

static rn_status_t keeper_create(void* arg, rn_resource_t** out) {
  const rn_data_host_t* from = arg;
  keeper_t* keeper = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(from->allocator, &keeper));
  keeper->resource = (rn_resource_t){{.refs = 1, .destroy = keeper_destroy}, HOST_TYPE};
  keeper->allocator = from->allocator;
  rn_status_t status = RN_NEW(from->allocator, &keeper->host);
  if (!rn_ok(status)) {
    rn_object_release(&keeper->resource.object);
    return status;
  }
  rn_data_host_t* host = keeper->host;
  host->object = (rn_object_t){.refs = 1, .destroy = host_destroy};
  host->allocator = from->allocator;
  host->pool = from->pool;
  host->env = from->env;
  rn_cancel_init(&host->cancel);
  rn_mutex_init(&host->mutex);
  rn_cond_init(&host->idle);
  *out = &keeper->resource;
  return RN_OK;
}

rn_status_t rn_data_host_get(rn_resources_t* resources, const rn_kernel_init_t* init,
                             rn_data_host_t** out) {
  *out = NULL;
  rn_data_host_t from = {.allocator = init->allocator, .env = init->env, .pool = init->env->pool};
  rn_resource_t* keeper = NULL;
  RN_RETURN_IF_ERROR(rn_resources_get(resources, RN_STR("_runnel"), RN_STR("datasets"), HOST_TYPE,
                                      keeper_create, &from, &keeper));
  *out = ((keeper_t*)keeper)->host;
  rn_object_retain(&(*out)->object);
  rn_object_release(&keeper->object);
  return RN_OK;
}

// A function's instance of an outermost run.
typedef struct rn_data_kept_t {
  struct rn_data_kept_t* next;
  rn_functions_t* functions;  // Retained
  rn_instance_t* instance;    // Owned
} rn_data_kept_t;

static void forget_kept(rn_data_run_t* run) {
  while (run->kept) {
    rn_data_kept_t* kept = run->kept;
    run->kept = kept->next;
    rn_function_forget(kept->functions, kept->instance);
    rn_functions_release(kept->functions);
    RN_FREE(run->allocator, kept);
  }
}

// Takes ownership of |instance|, unless the run has it already.
static rn_status_t keep(rn_data_run_t* run, rn_functions_t* functions, rn_instance_t* instance) {
  rn_data_kept_t* kept = NULL;
  rn_status_t status = RN_NEW(run->allocator, &kept);
  if (!rn_ok(status)) {
    rn_function_forget(functions, instance);
    return status;
  }
  rn_mutex_lock(&run->host->mutex);
  rn_data_kept_t* same = run->kept;
  while (same && same->instance != instance) same = same->next;
  if (!same) {
    *kept = (rn_data_kept_t){run->kept, functions, instance};
    rn_functions_retain(functions);
    run->kept = kept;
  }
  rn_mutex_unlock(&run->host->mutex);
  if (!same) return RN_OK;
  rn_function_forget(functions, instance);
  RN_FREE(run->allocator, kept);
  return RN_OK;
}

rn_status_t rn_data_run_instance(rn_data_run_t* run, const rn_data_func_t* func,
                                 rn_instance_t** out) {
  *out = func->instance;
  if (!func->has_generators) return RN_OK;
  while (run->parent) run = run->parent;
  RN_RETURN_IF_ERROR(
      rn_function_prepare_apart(func->functions, func->called, RN_STR(""), run, out));
  return keep(run, func->functions, *out);
}

static void run_destroy(rn_object_t* object) {
  rn_data_run_t* run = (rn_data_run_t*)object;
  forget_kept(run);
  if (atomic_exchange(&run->is_linked, false)) rn_cancel_remove(run->outer, &run->entry);
  rn_cancel_destroy(&run->cancel);
  if (run->stats) rn_object_release(run->stats);
  if (run->parent) rn_object_release(&run->parent->object);
  rn_object_release(&run->host->object);
  RN_FREE(run->allocator, run);
}

// The cancelled work may release the run while this callback is inside it, and waiting within a
// callback for its own end would deadlock. So the callback retains the run and clears |is_linked|.
// A run being destroyed waits for the callback, which then finds no references and returns.
static void outer_cancelled(rn_cancel_entry_t* entry) {
  rn_data_run_t* run = RN_CONTAINER_OF(entry, rn_data_run_t, entry);
  int32_t refs = atomic_load(&run->object.refs);
  do {
    if (refs == 0) return;
  } while (!atomic_compare_exchange_weak(&run->object.refs, &refs, refs + 1));
  atomic_store(&run->is_linked, false);
  rn_cancel(&run->cancel);
  rn_object_release(&run->object);
}

rn_status_t rn_data_run_create(rn_data_host_t* host, rn_data_run_t* parent, int32_t depth,
                               rn_data_run_t** out) {
  *out = NULL;
  rn_data_run_t* run = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(host->allocator, &run));
  run->object = (rn_object_t){.refs = 1, .destroy = run_destroy};
  run->allocator = host->allocator;
  run->host = host;
  rn_object_retain(&host->object);
  run->parent = parent;
  if (parent) rn_object_retain(&parent->object);
  if (parent && parent->stats) {
    run->stats = parent->stats;
    rn_object_retain(run->stats);
  }
  rn_cancel_init(&run->cancel);
  run->step = (rn_step_t){
      .cancel = &run->cancel, .env = host->env, .pool = host->pool, .call_depth = depth};
  run->outer = parent ? &parent->cancel : &host->cancel;
  run->entry.fn = outer_cancelled;
  run->is_linked = rn_cancel_add(run->outer, &run->entry);
  if (!run->is_linked) rn_cancel(&run->cancel);
  *out = run;
  return RN_OK;
}
