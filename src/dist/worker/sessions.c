// Sessions that masters open on the worker. A session is freed with the last step that runs in it.
#include <stdio.h>

#include "base/container.h"
#include "base/machine.h"
#include "dist/worker/worker_internal.h"

static rn_str_t task_of(const rn_worker_session_t* session) {
  return session->given ? rn_given_cluster_task(session->given, 0)
                        : rn_str(session->worker->options.task);
}

// Devices of a session with its own state. Other tasks know them by the worker's incarnations.
static rn_status_t make_own_devices(const rn_local_worker_t* worker, rn_worker_session_t* session) {
  RN_RETURN_IF_ERROR(
      rn_worker_make_devices(worker, task_of(session), &session->devices, &session->device_count));
  for (int i = 0; i < session->device_count && i < worker->device_count; ++i)
    session->devices[i]->incarnation = worker->devices[i]->incarnation;
  return RN_OK;
}

static void session_free(rn_local_worker_t* worker, rn_worker_session_t* session) {
  while (session->graphs) {
    rn_registered_graph_t* graph = session->graphs;
    session->graphs = graph->next;
    rn_worker_graph_release(graph->graph);
    RN_FREE(worker->allocator, graph);
  }
  // Kernels and resources hold functions, and functions hold kernels of the devices.
  rn_kernel_cache_clear(&session->kernels);
  if (session->owns_devices) {
    for (int i = 0; i < session->device_count; ++i)
      rn_resources_clear(session->devices[i]->resources, (rn_str_t){0});
    rn_kept_functions_clear(&session->kept);
    rn_devices_destroy(worker->allocator, session->devices, session->device_count);
  } else {
    rn_kept_functions_add(&worker->kept, NULL);
    rn_kept_functions_clear(&session->kept);
  }
  if (session->name.data)
    rn_free(worker->allocator, (char*)session->name.data, session->name.size + 1);
  if (session->master.data)
    rn_free(worker->allocator, (char*)session->master.data, session->master.size + 1);
  rn_given_cluster_destroy(session->given);
  RN_FREE(worker->allocator, session);
}

// The cluster that the client of |call| gave, if it did.
static rn_status_t take_cluster_locked(rn_local_worker_t* worker,
                                       const rn_create_worker_session_t* call,
                                       rn_worker_session_t* session) {
  const rn_local_worker_options_t* options = &worker->options;
  rn_arena_t arena;
  rn_str_t task;
  if (!call->cluster.size) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_given_cluster_create(call->cluster, options->reach, worker->allocator, &session->given));
  rn_arena_init(&arena, worker->allocator);
  rn_status_t status = rn_arena_printf(&arena, &task, "/job:%.*s/replica:0/task:%d",
                                       RN_STR_ARGS(call->job), call->task);
  if (rn_ok(status)) status = rn_given_cluster_set_own(session->given, task);
  if (rn_ok(status) && !call->isolates && !rn_str_is(task, options->task))
    status = rn_worker_aliases_get(&worker->aliases, task, &session->devices);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_worker_make_session_locked(rn_local_worker_t* worker,
                                          const rn_create_worker_session_t* call) {
  rn_str_t name = call->session, master = call->master;
  bool isolates = call->isolates;
  if (rn_map_get(&worker->sessions, name)) return RN_OK;  // a repeated call
  rn_worker_session_t* session = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(worker->allocator, &session));
  session->refs = 1;
  session->worker = worker;
  rn_kernel_cache_init(&session->kernels, worker->allocator);
  session->kernels.holds_functions = true;
  rn_kept_functions_init(&session->kept, worker->allocator);
  char* copy = NULL;
  rn_status_t status = rn_str_dup(worker->allocator, name, &copy);
  if (rn_ok(status)) session->name = rn_str_n(copy, name.size);
  if (rn_ok(status)) status = rn_str_dup(worker->allocator, master, &copy);
  if (rn_ok(status)) session->master = rn_str_n(copy, master.size);
  session->master_incarnation = call->master_incarnation;
  session->used_ns = worker->options.env->now_ns(worker->options.env->self);
  session->owns_devices = isolates;
  session->devices = isolates ? NULL : worker->devices;
  session->device_count = isolates ? 0 : worker->device_count;
  if (rn_ok(status)) status = take_cluster_locked(worker, call, session);
  if (rn_ok(status) && isolates) status = make_own_devices(worker, session);
  if (rn_ok(status)) status = rn_map_put(&worker->sessions, session->name, session);
  if (!rn_ok(status)) session_free(worker, session);
  return status;
}

static void free_later(rn_job_t* job) {
  rn_worker_session_t* session = RN_CONTAINER_OF(job, rn_worker_session_t, freeing);
  rn_local_worker_t* worker = session->worker;
  session_free(worker, session);
  rn_worker_trim_devices(worker);
  rn_worker_count_off(worker);
}

static bool has_far_devices(const rn_worker_session_t* session) {
  for (int i = 0; session->owns_devices && i < session->device_count; ++i)
    if (!session->devices[i]->is_host) return true;
  return false;
}

void rn_worker_session_release(rn_local_worker_t* worker, rn_worker_session_t* session,
                               bool was_running) {
  rn_mutex_lock(&worker->mutex);
  bool is_last = --session->refs == 0, is_later = is_last && has_far_devices(session);
  if (is_later) worker->running++;
  rn_mutex_unlock(&worker->mutex);
  if (is_later) {
    session->freeing.run = free_later;
    rn_pool_submit(worker->options.env->pool, &session->freeing);
  } else if (is_last) {
    session_free(worker, session);
    rn_worker_trim_devices(worker);
  }
  if (was_running) rn_worker_count_off(worker);
}

rn_status_t rn_worker_find_session_locked(rn_local_worker_t* worker, rn_str_t name,
                                          rn_worker_session_t** out) {
  *out = rn_map_get(&worker->sessions, name);
  if (*out) return RN_OK;
  return rn_aborted(
      "Session handle is not found: %.*s. Possibly this worker (\"%s\") just restarted.",
      RN_STR_ARGS(name), worker->options.task);
}

// A master whose cluster definition differs may not open sessions here, unless it gives its own.
static rn_status_t check_master(const rn_local_worker_t* worker,
                                const rn_create_worker_session_t* call) {
  const rn_local_worker_options_t* options = &worker->options;
  char wanted[300];
  if (call->cluster.size) return RN_OK;
  snprintf(wanted, sizeof wanted, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(call->job),
           call->task);
  if (call->job.size && strcmp(wanted, options->task) != 0)
    return rn_invalid_argument("%.*s expects %s here, but this is %s: their clusters differ",
                               RN_STR_ARGS(call->master), wanted, options->task);
  if (call->master.size && options->peers.find && !rn_str_is(call->master, options->task) &&
      !options->peers.find(options->peers.self, call->master))
    return rn_status_make(RN_CODE_PERMISSION_DENIED, "%.*s is not a task of the cluster of %s",
                          RN_STR_ARGS(call->master), options->task);
  return RN_OK;
}

// Ends the steps of a session that was removed from the map.
static void end_session(rn_local_worker_t* worker, rn_worker_session_t* session) {
  rn_steps_drop_owned(worker->steps, session, rn_aborted("The session was closed"));
  rn_worker_session_release(worker, session, false);
}

// Removes from the map a session that |master| opened under another incarnation than |incarnation|,
// or under that one if |is_same|; NULL if there is none.
static rn_worker_session_t* take_of_master(rn_local_worker_t* worker, rn_str_t master,
                                           uint64_t incarnation, bool is_same) {
  rn_worker_session_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&worker->mutex);
  while (!found && master.size && (entry = rn_map_next(&worker->sessions, &position))) {
    rn_worker_session_t* session = entry->value;
    if (rn_str_eq(session->master, master) &&
        (session->master_incarnation == incarnation) == is_same)
      found = session;
  }
  if (found) rn_map_remove(&worker->sessions, found->name);
  rn_mutex_unlock(&worker->mutex);
  return found;
}

void rn_local_worker_forget_master(rn_local_worker_t* worker, rn_str_t master,
                                   uint64_t incarnation) {
  rn_worker_session_t* session;
  while ((session = take_of_master(worker, master, incarnation, true)))
    end_session(worker, session);
}

rn_status_t rn_local_worker_masters(rn_local_worker_t* worker, rn_arena_t* arena,
                                    rn_worker_master_t** out, size_t* out_count) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = RN_ARENA_ARRAY(arena, worker->sessions.count, out);
  *out_count = 0;
  while (rn_ok(status) && (entry = rn_map_next(&worker->sessions, &position))) {
    const rn_worker_session_t* session = entry->value;
    rn_worker_master_t* master = &(*out)[*out_count];
    if (!session->master.size || rn_str_eq(session->master, task_of(session))) continue;
    if (session->given) {
      rn_peers_t peers = rn_given_cluster_peers(session->given);
      master->worker = peers.find(peers.self, session->master);
    }
    master->incarnation = session->master_incarnation;
    master->used_ns = session->used_ns;
    status = rn_arena_str(arena, session->master, &master->task);
    ++*out_count;
  }
  rn_mutex_unlock(&worker->mutex);
  return status;
}

// Logs at most one refused session per ten seconds.
static void warn(rn_local_worker_t* worker, rn_status_t refused) {
  const rn_env_t* env = worker->options.env;
  int64_t left_out;
  if (rn_log_limit_says(&worker->log, env, &left_out))
    rn_log(env, RN_LOG_WARNING, "refused a session: %s (and %lld before)",
           rn_status_message(refused), (long long)left_out);
}

void rn_local_create_worker_session(rn_worker_t* face, rn_create_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_status_t status = check_master(worker, call);
  if (!rn_ok(status)) warn(worker, status);
  // No one else closes the sessions that the master had open before it restarted.
  rn_worker_session_t* old;
  while (rn_ok(status) &&
         (old = take_of_master(worker, call->master, call->master_incarnation, false)))
    end_session(worker, old);
  rn_mutex_lock(&worker->mutex);
  if (rn_ok(status)) status = rn_worker_make_session_locked(worker, call);
  rn_mutex_unlock(&worker->mutex);
  rn_call_done(&call->call, status);
}

void rn_local_delete_worker_session(rn_worker_t* face, rn_delete_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  session = rn_map_get(&worker->sessions, call->session);
  if (session) rn_map_remove(&worker->sessions, call->session);
  rn_mutex_unlock(&worker->mutex);
  if (session) end_session(worker, session);
  rn_call_done(&call->call, RN_OK);
}
