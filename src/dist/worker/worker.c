// The worker: see worker.h.
#include "dist/worker/worker.h"

#include <stdio.h>

#include "base/machine.h"
#include "dist/collective/cluster.h"
#include "dist/worker/recv.h"
#include "dist/worker/worker_internal.h"

rn_worker_t* rn_local_worker_face(rn_local_worker_t* worker) { return &worker->face; }
rn_device_t* rn_local_worker_device(const rn_local_worker_t* worker, int i) {
  return worker->devices[i];
}

int rn_local_worker_device_count(const rn_local_worker_t* worker) { return worker->device_count; }

void rn_local_worker_identify(const rn_local_worker_t* worker, rn_session_t* session) {
  for (int i = 0; i < rn_session_device_count(session); ++i) {
    rn_device_t* device = (rn_device_t*)(uintptr_t)rn_session_device(session, i);
    for (int w = 0; w < worker->device_count; ++w)
      if (rn_str_eq(worker->devices[w]->name, device->name))
        device->incarnation = worker->devices[w]->incarnation;
  }
}

rn_steps_t* rn_local_worker_steps(rn_local_worker_t* worker) { return worker->steps; }
rn_cluster_collectives_t* rn_local_worker_cluster(rn_local_worker_t* worker) {
  return worker->collectives;
}

rn_collectives_t* rn_local_worker_collectives(rn_local_worker_t* worker) {
  return rn_cluster_collectives_face(worker->collectives);
}

bool rn_local_worker_has_mail(rn_local_worker_t* worker) {
  return rn_cluster_collectives_has_mail(worker->collectives);
}

rn_device_info_t rn_device_info(const rn_device_t* device) {
  return (rn_device_info_t){.name = device->name,
                            .type = rn_str(device->type),
                            .memory_limit = device->memory_limit,
                            .incarnation = device->incarnation,
                            .description = rn_str(device->description)};
}

rn_status_t rn_worker_make_devices(const rn_local_worker_t* worker, rn_str_t task,
                                   rn_device_t*** out, int* out_count) {
  const rn_local_worker_options_t* options = &worker->options;
  rn_devices_init_t init = {.allocator = worker->allocator,
                            .env = options->env,
                            .name_prefix = task,
                            .cpus = options->cpu_devices,
                            .nulls = options->null_devices,
                            .gpu = &options->gpu};
  return rn_devices_create(&init, out, out_count);
}

void rn_worker_count_off(rn_local_worker_t* worker) {
  rn_mutex_lock(&worker->mutex);
  if (--worker->running == 0) rn_cond_broadcast(&worker->idle);
  rn_mutex_unlock(&worker->mutex);
}

void rn_worker_trim_devices(rn_local_worker_t* worker) {
  for (int i = 0; i < worker->device_count; ++i)
    if (worker->devices[i]->vtable->trim) worker->devices[i]->vtable->trim(worker->devices[i]);
  rn_machine_trim();
}

void rn_local_get_status(rn_worker_t* face, rn_get_status_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_status_t status = RN_ARENA_ARRAY(&call->arena, (size_t)worker->device_count, &call->devices);
  call->is_ours = true;
  for (int i = 0; rn_ok(status) && i < worker->device_count; ++i) {
    call->devices[call->device_count++] = rn_device_info(worker->devices[i]);
  }
  rn_call_done(&call->call, status);
}

void rn_local_cleanup_graph(rn_worker_t* face, rn_cleanup_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_partials_forget(worker->partials, call->step);
  rn_steps_drop(worker->steps, call->step, rn_aborted("Cleanup %lld", (long long)call->step));
  rn_call_done(&call->call, RN_OK);
}

// The device called |name|: by the worker, or by a session whose client gave the cluster. NULL if
// there is none.
static const rn_device_t* find_device(rn_local_worker_t* worker, rn_str_t name) {
  const rn_device_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  for (int i = 0; i < worker->device_count; ++i)
    if (rn_str_eq(worker->devices[i]->name, name)) return worker->devices[i];
  rn_mutex_lock(&worker->mutex);
  while (!found && (entry = rn_map_next(&worker->sessions, &position))) {
    const rn_worker_session_t* session = entry->value;
    for (int i = 0; session->given && i < session->device_count; ++i)
      if (rn_str_eq(session->devices[i]->name, name)) found = worker->devices[i];
  }
  rn_mutex_unlock(&worker->mutex);
  return found;
}

// Whether the key names a device of this task, with its current incarnation.
static rn_status_t check_key(rn_local_worker_t* worker, rn_str_t key) {
  rn_str_t whole = key;
  rn_str_t name = rn_str_split(&key, ';'), incarnation = rn_str_split(&key, ';');
  rn_str_t receiver = rn_str_split(&key, ';'), edge = rn_str_split(&key, ';');
  if (!receiver.size || !edge.size || !key.size)
    return rn_invalid_argument("Invalid  rendezvous key: %.*s", RN_STR_ARGS(whole));
  const rn_device_t* device = find_device(worker, name);
  char own[32];
  if (!device)
    return rn_invalid_argument("%s has no device %.*s", worker->options.task, RN_STR_ARGS(name));
  snprintf(own, sizeof own, "%016llx", (unsigned long long)device->incarnation);
  if (rn_str_is(incarnation, own)) return RN_OK;
  return rn_aborted(
      "RecvTensor expects a different device incarnation: %.*s vs. %s. Your worker job (\"%s\") "
      "was probably restarted. Check your worker job for the reason why it was restarted.",
      RN_STR_ARGS(incarnation), own, worker->options.task);
}

// Stopping the worker waits for values that are still copied from a device.
static void count_copy(void* self, bool ends) {
  rn_local_worker_t* worker = self;
  if (ends) {
    rn_worker_count_off(worker);
    return;
  }
  rn_mutex_lock(&worker->mutex);
  worker->running++;
  rn_mutex_unlock(&worker->mutex);
}

void rn_local_recv_tensor(rn_worker_t* face, rn_recv_tensor_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_recv_source_t source = {.steps = worker->steps,
                             .allocator = worker->allocator,
                             .memory = worker->devices[0]->allocator,
                             .count = count_copy,
                             .self = worker};
  call->value = (rn_tensor_t){0};
  if (rn_cluster_collectives_has(call->key)) {
    rn_cluster_collectives_recv(worker->collectives, call);
    return;
  }
  rn_status_t status = check_key(worker, call->key);
  if (rn_ok(status))
    rn_recv_serve(&source, call);
  else
    rn_call_done(&call->call, status);
}

void rn_local_cleanup_all(rn_worker_t* face, rn_cleanup_all_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_device_spec_t own = {0};
  rn_device_spec_parse(rn_str(worker->options.task), &own);
  for (int i = 0; i < worker->device_count; ++i) {
    if (!call->container_count)
      rn_resources_clear(worker->devices[i]->resources, RN_STR("localhost"));
    for (size_t c = 0; c < call->container_count; ++c) {
      // A task's default container has the name of its job.
      bool is_default = rn_str_eq(call->containers[c], own.job);
      rn_resources_clear(worker->devices[i]->resources, call->containers[c]);
      if (is_default) rn_resources_clear(worker->devices[i]->resources, RN_STR("localhost"));
    }
  }
  rn_worker_trim_devices(worker);
  rn_call_done(&call->call, RN_OK);
}

void rn_local_complete_group(rn_worker_t* face, rn_complete_group_t* call) {
  rn_cluster_collectives_join(((rn_local_worker_t*)face)->collectives, call);
}

void rn_local_complete_instance(rn_worker_t* face, rn_complete_instance_t* call) {
  rn_cluster_collectives_instance(((rn_local_worker_t*)face)->collectives, call);
}

void rn_local_recv_buf(rn_worker_t* face, rn_recv_buf_t* call) {
  rn_cluster_collectives_recv_buf(((rn_local_worker_t*)face)->collectives, call);
}

void rn_local_get_step_sequence(rn_worker_t* face, rn_get_step_sequence_t* call) {
  rn_cluster_collectives_sequence(((rn_local_worker_t*)face)->collectives, call);
}

void rn_local_logging(rn_worker_t* face, rn_logging_t* call) {
  rn_recv_log_t* log = rn_steps_log(((rn_local_worker_t*)face)->steps);
  if (call->switches_on) rn_recv_log_switch(log, true);
  if (call->switches_off) rn_recv_log_switch(log, false);
  for (size_t i = 0; i < call->step_count; ++i) rn_recv_log_take(log, call->steps[i], &call->notes);
  if (call->clears) rn_recv_log_clear(log);
  rn_call_done(&call->call, rn_strbuf_status(&call->notes));
}

#define LOCAL_ENTRY(side, name, ...) .name = rn_local_##name,
static const rn_worker_vtable_t vtable = {RN_WORKER_CALLS(LOCAL_ENTRY)};

rn_worker_stats_t rn_local_worker_stats(rn_local_worker_t* worker) {
  rn_worker_stats_t stats = {.steps = rn_steps_count(worker->steps)};
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&worker->mutex);
  stats.sessions = worker->sessions.count;
  stats.steps_run = worker->steps_run;
  while ((entry = rn_map_next(&worker->sessions, &position)))
    for (rn_registered_graph_t* at = ((rn_worker_session_t*)entry->value)->graphs; at;
         at = at->next)
      stats.graphs++;
  rn_mutex_unlock(&worker->mutex);
  return stats;
}

rn_status_t rn_local_worker_create(const rn_local_worker_options_t* options,
                                   rn_local_worker_t** out) {
  *out = NULL;
  rn_local_worker_t* worker = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &worker));
  worker->face.vtable = &vtable;
  worker->options = *options;
  worker->allocator = options->allocator;
  rn_mutex_init(&worker->mutex);
  rn_cond_init(&worker->idle);
  rn_map_init(&worker->sessions, worker->allocator);
  rn_kept_functions_init(&worker->kept, worker->allocator);
  rn_status_t status = rn_worker_make_devices(worker, rn_str(options->task), &worker->devices,
                                              &worker->device_count);
  worker->aliases = (rn_worker_aliases_t){.env = options->env,
                                          .allocator = worker->allocator,
                                          .devices = worker->devices,
                                          .device_count = worker->device_count};
  if (rn_ok(status))
    status = rn_steps_create(options->env, worker->allocator, rn_str(options->task), options->peers,
                             &worker->steps);
  if (rn_ok(status))
    status = rn_worker_partials_create(&worker->face, worker->allocator, &worker->partials);
  rn_cluster_collectives_options_t collectives = {.env = options->env,
                                                  .allocator = worker->allocator,
                                                  .task = rn_str(options->task),
                                                  .leader = options->collective_leader,
                                                  .peers = options->peers,
                                                  .exchanger = options->exchanger,
                                                  .prefers_library = options->collective_nccl,
                                                  .devices = worker->devices,
                                                  .device_count = worker->device_count};
  if (rn_ok(status)) status = rn_cluster_collectives_create(&collectives, &worker->collectives);
  if (rn_ok(status))
    status = rn_worker_make_session_locked(worker, &(rn_create_worker_session_t){0});
  if (!rn_ok(status)) {
    rn_local_worker_destroy(worker);
    return status;
  }
  *out = worker;
  return RN_OK;
}

static void wait_until_idle(rn_local_worker_t* worker) {
  rn_mutex_lock(&worker->mutex);
  while (worker->running) rn_cond_wait(&worker->idle, &worker->mutex);
  rn_mutex_unlock(&worker->mutex);
}

void rn_local_worker_stop(rn_local_worker_t* worker) {
  if (!worker) return;
  rn_mutex_lock(&worker->mutex);
  worker->is_closing = true;
  rn_mutex_unlock(&worker->mutex);
  rn_worker_partials_stop(worker->partials);
  rn_cluster_collectives_stop(worker->collectives);
  if (worker->steps) rn_steps_clear(worker->steps);
  wait_until_idle(worker);
}

void rn_local_worker_destroy(rn_local_worker_t* worker) {
  if (!worker) return;
  rn_local_worker_stop(worker);
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&worker->sessions, &position)))
    rn_worker_session_release(worker, entry->value, false);
  wait_until_idle(worker);
  rn_map_clear(&worker->sessions);
  for (int i = 0; i < worker->device_count; ++i)
    rn_resources_clear(worker->devices[i]->resources, (rn_str_t){0});
  rn_steps_destroy(worker->steps);
  rn_worker_partials_destroy(worker->partials);
  rn_cluster_collectives_destroy(worker->collectives);
  rn_kept_functions_clear(&worker->kept);
  rn_worker_aliases_clear(&worker->aliases);
  rn_devices_destroy(worker->allocator, worker->devices, worker->device_count);
  rn_cond_destroy(&worker->idle);
  rn_mutex_destroy(&worker->mutex);
  RN_FREE(worker->allocator, worker);
}
