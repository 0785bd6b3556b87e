// Opens and closes sessions of a master. See session.h.
#include "dist/master/session.h"

#include <stdio.h>

#include "base/container.h"
#include "graph/import.h"
#include "wire/decode.h"
#include "wire/scan.h"

// Stands in for a device of another task: a name that nodes are placed on.
static void stand_in_destroy(rn_device_t* device) { (void)device; }
static const rn_device_vtable_t stand_in = {.destroy = stand_in_destroy};

// The state of opening a session.
typedef struct opening_t {
  rn_master_fan_t fan;  // first
  rn_master_session_t* session;
  rn_create_session_t* call;
  rn_status_t (*ready)(rn_local_master_t* master, rn_master_session_t* session);
} opening_t;

void rn_master_session_release(rn_master_session_t* session) {
  if (!session || --session->refs) return;
  rn_local_master_t* master = session->master;
  rn_allocator_t allocator = rn_local_master_options(master)->allocator;
  rn_master_partials_clear(session);
  while (session->programs) {
    rn_master_program_t* program = session->programs;
    session->programs = program->next;
    rn_master_plan_clear(&program->plan);
    rn_status_free(program->failure);
  }
  while (session->callables) {
    rn_master_callable_t* callable = session->callables;
    session->callables = callable->next;
    rn_arena_clear(&callable->arena);
    RN_FREE(allocator, callable);
  }
  for (int t = 0; t < session->task_count; ++t) {
    rn_arena_clear(&session->tasks[t].status.arena);
    rn_status_free(session->tasks[t].silence);
  }
  rn_homes_clear(&session->homes);
  rn_graph_release(session->graph);
  rn_fence_release(session->fence);
  rn_caller_release(session->caller);
  rn_given_cluster_destroy(session->given);
  rn_cancel_destroy(&session->closing);
  rn_mutex_destroy(&session->mutex);
  rn_mutex_destroy(&session->planning);
  rn_arena_clear(&session->arena);
  RN_FREE(allocator, session);
  rn_local_master_count(master, -1);
}

void rn_master_session_plan_options(rn_master_session_t* session, rn_master_plan_options_t* out) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  *out = (rn_master_plan_options_t){
      .allocator = master->allocator,
      .place = {.devices = session->devices,
                .device_count = session->device_count,
                .allow_soft_placement = session->options.allow_soft_placement,
                .log_placement = session->options.log_device_placement,
                .mark = "_S",
                .tasks = session->device_tasks,
                .env = master->env,
                .homes = &session->homes},
      .tasks = session->device_tasks,
      .task_count = session->task_count,
      .calls = {.keeps_calls = session->options.calls.keeps_calls,
                .lowering = session->options.calls.lowering,
                .prunes_branches = true},
      .optimize = session->options.optimize};
}

bool rn_master_task_passes(rn_str_t task, const rn_str_t* filters, size_t count) {
  rn_device_spec_t own, filter;
  if (!count) return true;
  if (!rn_device_spec_parse(task, &own)) return false;
  for (size_t i = 0; i < count; ++i)
    if (rn_device_spec_parse(filters[i], &filter) && rn_device_spec_matches(&filter, &own))
      return true;
  return false;
}

// A ClusterDef in the client's ConfigProto; |target| is how the client reaches this master.
static rn_status_t take_cluster(rn_master_session_t* session, rn_str_t target) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  rn_str_t cluster = rn_field_bytes(session->config, rn_pb_ConfigProto_cluster_def_field);
  if (!cluster.size) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_given_cluster_create(cluster, master->reach, master->allocator, &session->given));
  return rn_given_cluster_find_own(session->given, target);
}

static rn_status_t find_tasks(rn_master_session_t* session) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  const rn_pb_ConfigProto_t* config = session->config_proto;
  rn_peers_t peers = session->given ? rn_given_cluster_peers(session->given) : master->peers;
  int count = session->given ? rn_given_cluster_count(session->given) : master->task_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&session->arena, (size_t)count, &session->tasks));
  for (int t = 0; t < count; ++t) {
    rn_str_t name = session->given ? rn_given_cluster_task(session->given, t) : master->tasks[t];
    if (t > 0 &&
        !rn_master_task_passes(name, config->device_filters.items, config->device_filters.count))
      continue;
    rn_master_task_t* task = &session->tasks[session->task_count];
    task->name = name;
    task->worker =
        t == 0 ? rn_local_worker_face(master->worker) : peers.find(peers.self, task->name);
    if (!task->worker && peers.missing) return peers.missing(peers.self, task->name);
    if (!task->worker) return rn_not_found("No connection to %.*s", RN_STR_ARGS(task->name));
    rn_arena_init(&task->status.arena, master->allocator);
    session->task_count++;
  }
  return RN_OK;
}

// Nodes go to GPUs of other tasks only if this process knows which kernels a GPU has.
static rn_status_t make_stand_in(rn_master_session_t* session, rn_str_t name,
                                 const rn_device_info_t* info, rn_device_t** out) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  rn_device_t* device = NULL;
  rn_str_t type, description = {0};
  RN_RETURN_IF_ERROR(rn_arena_str(&session->arena, info->type, &type));
  if (info->description.size)
    RN_RETURN_IF_ERROR(rn_arena_str(&session->arena, info->description, &description));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&session->arena, &device));
  bool is_gpu = rn_str_is(type, "GPU");
  *device = (rn_device_t){.vtable = &stand_in,
                          .name = name,
                          .type = type.data,
                          .is_host = rn_str_is(type, "CPU"),
                          .is_preferred = is_gpu && rn_cuda_part_kernels(master->env),
                          .memory_limit = info->memory_limit,
                          .incarnation = info->incarnation,
                          .description = description.data};
  *out = device;
  return RN_OK;
}

// The name of a device of |task| in this session. A task whose client gave the cluster says the
// name that it was started with.
static rn_status_t name_in_session(rn_master_session_t* session, const rn_master_task_t* task,
                                   rn_str_t name, rn_str_t* out) {
  const rn_str_t mark = RN_STR("/device:");
  size_t at = 0;
  *out = name;
  if (!session->given) return RN_OK;
  while (at < name.size && !rn_str_starts_with(rn_str_n(name.data + at, name.size - at), mark))
    ++at;
  return rn_arena_printf(&session->arena, out, "%.*s%.*s", RN_STR_ARGS(task->name),
                         (int)(name.size - at), name.data + at);
}

// All devices that the tasks were started with, as in stock: the device_count and the GPUOptions of
// a session's config are about its client's machine. Stock's Python client on a machine without
// GPUs sends {"GPU": 0}.
static rn_status_t add_devices(rn_master_session_t* session) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  size_t count = 0;
  for (int t = 0; t < session->task_count; ++t) count += session->tasks[t].status.device_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&session->arena, count, &session->devices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&session->arena, count, &session->device_tasks));
  for (int t = 0; t < session->task_count; ++t) {
    for (size_t d = 0; d < session->tasks[t].status.device_count; ++d) {
      const rn_device_info_t* info = &session->tasks[t].status.devices[d];
      bool is_here = t == 0 && !session->given;
      rn_device_t* device = is_here ? rn_local_worker_device(master->worker, (int)d) : NULL;
      rn_str_t name;
      RN_RETURN_IF_ERROR(name_in_session(session, &session->tasks[t], info->name, &name));
      if (!device) RN_RETURN_IF_ERROR(make_stand_in(session, name, info, &device));
      session->device_tasks[session->device_count] = t;
      session->devices[session->device_count++] = device;
    }
  }
  return session->device_count ? RN_OK : rn_internal("The tasks have no devices");
}

void rn_master_session_meet(rn_master_session_t* session, const rn_call_t* call) {
  rn_mutex_lock(&session->mutex);
  rn_caller_t* old = session->caller;
  if (old != call->caller) session->caller = rn_caller_retain(call->caller);
  if (old == call->caller) old = NULL;
  rn_mutex_unlock(&session->mutex);
  rn_caller_release(old);
}

bool rn_master_session_is_left(rn_master_session_t* session, int64_t since_ns) {
  rn_mutex_lock(&session->mutex);
  bool is_left = !session->running && rn_caller_is_lost(session->caller) &&
                 session->caller->lost_ns <= since_ns;
  rn_mutex_unlock(&session->mutex);
  return is_left;
}

static void opening_end(opening_t* opening, rn_status_t status) {
  rn_create_session_t* call = opening->call;
  rn_master_session_t* session = opening->session;
  rn_allocator_t allocator = rn_local_master_options(session->master)->allocator;
  memcpy(call->session, session->handle, sizeof call->session);
  rn_master_session_meet(session, &call->call);
  // A client that is gone will not learn the session's handle.
  if (rn_ok(status) && call->call.cancel && rn_is_cancelled(call->call.cancel))
    status = rn_cancelled("The client has cancelled the session");
  if (rn_ok(status)) status = opening->ready(session->master, session);
  if (!rn_ok(status)) rn_master_session_close(session, NULL);
  RN_FREE(allocator, opening);
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

static void on_created_all(rn_master_fan_t* fan, rn_status_t status) {
  opening_t* opening = (opening_t*)fan;
  rn_master_plan_options_t options;
  rn_master_session_plan_options(opening->session, &options);
  if (rn_ok(status)) status = rn_master_check(&options, opening->session->graph);
  opening_end(opening, status);
}

// In a cluster that a client gives, sessions have their own state unless it says otherwise.
static bool isolates(const rn_master_session_t* session) {
  const rn_pb_ConfigProto_t* config = session->config_proto;
  if (!session->given) return config->isolate_session_state;
  return !(config->experimental &&
           config->experimental->share_session_state_in_clusterspec_propagation);
}

rn_create_worker_session_t rn_master_session_create_call(const rn_master_session_t* session,
                                                         int t) {
  rn_device_spec_t spec = {0};
  rn_device_spec_parse(session->tasks[t].name, &spec);
  return (rn_create_worker_session_t){
      .session = rn_str(session->handle),
      .job = spec.job,
      .task = spec.task,
      .cluster = rn_field_bytes(session->config, rn_pb_ConfigProto_cluster_def_field),
      .isolates = isolates(session),
      .master = session->tasks[0].name,
      .master_incarnation = session->devices[0]->incarnation};
}

typedef struct create_t {
  rn_create_worker_session_t call;  // first
  int task;
} create_t;

static void on_created(rn_call_t* call, rn_status_t status) {
  opening_t* opening = call->owner;
  rn_master_task_t* task = &opening->session->tasks[((create_t*)call)->task];
  // If the response was lost, the session may exist.
  task->has_session = rn_ok(status) || rn_status_code(status) == RN_CODE_UNAVAILABLE ||
                      rn_status_code(status) == RN_CODE_CANCELLED ||
                      rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
  // A task that died since it was probed may come back, and may not be needed.
  if (rn_status_code(status) == RN_CODE_UNAVAILABLE && ((create_t*)call)->task > 0) {
    task->is_suspect = task->has_lost = true;
    rn_status_free(status);
    status = RN_OK;
  }
  rn_master_fan_end(&opening->fan, status, task->name);
}

static void create_all(opening_t* opening) {
  rn_master_session_t* session = opening->session;
  create_t* creates = NULL;
  rn_status_t status = add_devices(session);
  if (rn_ok(status))
    status = RN_ARENA_ARRAY(&session->arena, (size_t)session->task_count, &creates);
  if (!rn_ok(status)) {
    opening_end(opening, status);
    return;
  }
  int count = session->task_count;  // the last response may free the session
  rn_master_fan_open(&opening->fan, count, on_created_all);
  for (int t = 0; t < count; ++t) {
    creates[t] = (create_t){.call = rn_master_session_create_call(session, t), .task = t};
    creates[t].call.call = (rn_call_t){.done = on_created,
                                       .owner = opening,
                                       .deadline_ns = opening->call->call.deadline_ns,
                                       .cancel = opening->call->call.cancel};
  }
  for (int t = 0; t < count; ++t) {
    rn_worker_t* worker = session->tasks[t].worker;
    worker->vtable->create_worker_session(worker, &creates[t].call);
  }
}

static void on_status_all(rn_master_fan_t* fan, rn_status_t status) {
  opening_t* opening = (opening_t*)fan;
  if (rn_ok(status))
    create_all(opening);
  else
    opening_end(opening, status);
}

static void on_status(rn_call_t* call, rn_status_t status) {
  rn_master_task_t* task = RN_CONTAINER_OF(call, rn_master_task_t, status.call);
  opening_t* opening = call->owner;
  rn_master_fan_end(&opening->fan, status, task->name);
}

static rn_status_t set_up(rn_master_session_t* session, const rn_create_session_t* call) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  RN_RETURN_IF_ERROR(rn_arena_str(&session->arena, call->config, &session->config));
  rn_session_options_init(&session->options);
  RN_RETURN_IF_ERROR(rn_session_options_parse(session->config, &session->options));
  rn_pb_ConfigProto_t* config = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(ConfigProto, session->config, NULL, &session->arena, &config));
  session->config_proto = config;
  RN_RETURN_IF_ERROR(rn_graph_create(master->allocator, &session->graph));
  session->graph->keeps_misfits = true;
  rn_import_options_t import = {.allows_any_names = true, .extends = true};
  RN_RETURN_IF_ERROR(rn_graph_import(session->graph, call->graph_def, &import, NULL));
  rn_homes_init(&session->homes, master->allocator, session->graph, &session->options.calls);
  snprintf(session->handle, sizeof session->handle, "%016llx",
           (unsigned long long)master->env->random(master->env->self));
  rn_fence_options_t fence = {.allocator = master->allocator,
                              .env = master->env,
                              .timers = master->timers,
                              .grace_ns = master->grace_ns};
  RN_RETURN_IF_ERROR(rn_fence_create(&fence, &session->fence));
  RN_RETURN_IF_ERROR(take_cluster(session, call->target));
  return find_tasks(session);
}

void rn_master_session_open(rn_local_master_t* master, rn_create_session_t* call,
                            rn_status_t (*ready)(rn_local_master_t* master,
                                                 rn_master_session_t* session)) {
  rn_allocator_t allocator = rn_local_master_options(master)->allocator;
  rn_master_session_t* session = NULL;
  opening_t* opening = NULL;
  rn_status_t status = RN_NEW(allocator, &session);
  if (rn_ok(status)) {
    session->refs = 1;
    session->master = master;
    rn_local_master_count(master, 1);
    rn_mutex_init(&session->mutex);
    rn_mutex_init(&session->planning);
    rn_cancel_init(&session->closing);
    rn_arena_init(&session->arena, allocator);
    status = set_up(session, call);
  }
  if (rn_ok(status)) status = RN_NEW(allocator, &opening);
  if (!rn_ok(status)) {
    rn_master_session_release(session);
    rn_call_done(&call->call, status);
    return;
  }
  *opening = (opening_t){.session = session, .call = call, .ready = ready};
  int count = session->task_count;
  // Slightly before the client's deadline, so that the client still learns which task did not
  // answer.
  const rn_env_t* env = rn_local_master_options(master)->env;
  int64_t deadline = call->call.deadline_ns, now = env->now_ns(env->self);
  if (deadline != INT64_MAX && deadline > now) deadline -= (deadline - now) / 8;
  rn_master_fan_open(&opening->fan, count, on_status_all);
  for (int t = 0; t < count; ++t)
    session->tasks[t].status.call = (rn_call_t){.done = on_status,
                                                .owner = opening,
                                                .deadline_ns = deadline,
                                                .cancel = call->call.cancel,
                                                .waits_for_ready = true};
  for (int t = 0; t < count; ++t)
    session->tasks[t].worker->vtable->get_status(session->tasks[t].worker,
                                                 &session->tasks[t].status);
}

// A session that a task should close. The call is retried until it succeeds, or the task has been
// dead for long.
typedef struct delete_t {
  rn_delete_worker_session_t call;  // first
  rn_allocator_t allocator;
  rn_worker_t* worker;
  int tries;
  char session[32];
} delete_t;

#define DELETE_NS INT64_C(60000000000)
#define DELETE_TRIES 8

static void on_deleted(rn_call_t* call, rn_status_t status) {
  delete_t* gone = (delete_t*)call;
  bool is_lost = rn_status_code(status) == RN_CODE_UNAVAILABLE && ++gone->tries < DELETE_TRIES;
  rn_status_free(status);
  if (is_lost)
    gone->worker->vtable->delete_worker_session(gone->worker, &gone->call);
  else
    RN_FREE(gone->allocator, gone);
}

static void close_tasks(rn_master_session_t* session) {
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  for (int t = 0; t < session->task_count; ++t) {
    rn_master_task_t* task = &session->tasks[t];
    delete_t* gone = NULL;
    rn_status_t status = task->has_session ? RN_NEW(master->allocator, &gone) : RN_OK;
    task->has_session = false;
    rn_status_free(status);
    if (!gone) continue;
    gone->allocator = master->allocator;
    gone->worker = task->worker;
    memcpy(gone->session, session->handle, sizeof gone->session);
    gone->call.session = rn_str(gone->session);
    gone->call.call = (rn_call_t){.done = on_deleted,
                                  .deadline_ns = master->env->now_ns(master->env->self) + DELETE_NS,
                                  .waits_for_ready = true};
    task->worker->vtable->delete_worker_session(task->worker, &gone->call);
  }
}

// Closes the session on its tasks: once, when no step runs any more.
static void finish_closing(rn_master_session_t* session) {
  rn_close_session_t* call = session->closer;
  session->closer = NULL;
  close_tasks(session);
  if (call) rn_call_done(&call->call, RN_OK);
  rn_master_session_release(session);
}

void rn_master_session_close(rn_master_session_t* session, rn_close_session_t* call) {
  session->refs++;  // until closing has ended
  rn_mutex_lock(&session->mutex);
  session->is_closed = true;
  session->closer = call;
  session->running++;  // this
  rn_mutex_unlock(&session->mutex);
  rn_cancel(&session->closing);
  rn_master_session_end_step(session);
}

void rn_master_session_end_step(rn_master_session_t* session) {
  rn_mutex_lock(&session->mutex);
  bool is_last = --session->running == 0 && session->is_closed;
  rn_mutex_unlock(&session->mutex);
  if (is_last) finish_closing(session);
}
