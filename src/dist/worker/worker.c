// The worker: see worker.h.
#include "dist/worker/worker.h"

#include <stdio.h>

#include "base/container.h"
#include "base/log.h"
#include "base/map.h"
#include "dist/collective/cluster.h"
#include "dist/worker/aliases.h"
#include "dist/worker/graph.h"
#include "dist/worker/partial.h"
#include "dist/worker/recv.h"

// A registered graph.
typedef struct registered_t {
  struct registered_t* next;
  rn_worker_graph_t* graph;  // Retained
  char handle[32];
} registered_t;

// A session of a master. "" is the session of masters that open none. It is freed with the last
// step that runs in it.
typedef struct session_t {
  int refs;       // of the map and of steps; guarded by the worker's mutex
  rn_str_t name;  // Owned; the key of the map
  rn_device_t** devices;
  int device_count;
  bool owns_devices;          // it has its own state
  rn_given_cluster_t* given;  // Owned; the cluster that its client gave; NULL: none
  rn_kernel_cache_t kernels;  // shared by its graphs
  rn_kept_functions_t kept;   // of its destroyed graphs, if it owns its devices
  registered_t* graphs;
  int64_t next_handle;
  rn_str_t master;  // Owned; the master that opened it; "" if unknown
  uint64_t master_incarnation;
  int64_t used_ns;  // when its master last used it
  rn_job_t freeing;
  rn_local_worker_t* worker;
} session_t;

struct rn_local_worker_t {
  rn_worker_t face;  // first
  rn_local_worker_options_t options;
  rn_allocator_t allocator;
  int device_count;
  rn_device_t** devices;           // Owned; the first is the CPU
  rn_kept_functions_t kept;        // of destroyed graphs; resources of the devices may hold them
  rn_steps_t* steps;               // Owned
  rn_worker_partials_t* partials;  // Owned
  rn_cluster_collectives_t* collectives;  // Owned
  rn_mutex_t mutex;                       // guards what follows
  rn_cond_t idle;
  rn_map_t sessions;
  rn_worker_aliases_t aliases;
  int running;  // steps
  int64_t steps_run;
  bool is_closing;
  rn_log_limit_t log;  // of refused sessions
};

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

static rn_status_t make_devices(const rn_local_worker_t* worker, rn_str_t task, rn_device_t*** out,
                                int* out_count) {
  const rn_local_worker_options_t* options = &worker->options;
  rn_devices_init_t init = {.allocator = worker->allocator,
                            .env = options->env,
                            .name_prefix = task,
                            .cpus = options->cpu_devices,
                            .nulls = options->null_devices,
                            .gpu = &options->gpu};
  return rn_devices_create(&init, out, out_count);
}

static rn_str_t task_of(const session_t* session) {
  return session->given ? rn_given_cluster_task(session->given, 0)
                        : rn_str(session->worker->options.task);
}

// Devices of a session with its own state. Other tasks know them by the worker's incarnations.
static rn_status_t make_own_devices(const rn_local_worker_t* worker, session_t* session) {
  RN_RETURN_IF_ERROR(
      make_devices(worker, task_of(session), &session->devices, &session->device_count));
  for (int i = 0; i < session->device_count && i < worker->device_count; ++i)
    session->devices[i]->incarnation = worker->devices[i]->incarnation;
  return RN_OK;
}

// Sessions.

static void session_free(rn_local_worker_t* worker, session_t* session) {
  while (session->graphs) {
    registered_t* graph = session->graphs;
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
                                       const rn_create_worker_session_t* call, session_t* session) {
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

static rn_status_t make_session_locked(rn_local_worker_t* worker,
                                       const rn_create_worker_session_t* call) {
  rn_str_t name = call->session, master = call->master;
  bool isolates = call->isolates;
  if (rn_map_get(&worker->sessions, name)) return RN_OK;  // a repeated call
  session_t* session = NULL;
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

// Ends something that stopping the worker waits for.
static void count_off(rn_local_worker_t* worker) {
  rn_mutex_lock(&worker->mutex);
  if (--worker->running == 0) rn_cond_broadcast(&worker->idle);
  rn_mutex_unlock(&worker->mutex);
}

static void free_later(rn_job_t* job) {
  session_t* session = RN_CONTAINER_OF(job, session_t, freeing);
  rn_local_worker_t* worker = session->worker;
  session_free(worker, session);
  count_off(worker);
}

static bool has_far_devices(const session_t* session) {
  for (int i = 0; session->owns_devices && i < session->device_count; ++i)
    if (!session->devices[i]->is_host) return true;
  return false;
}

// Releases a session, and counts a step off if |was_running|. The last step may end on the thread
// of a device that the session owns, which cannot destroy the device.
static void session_release(rn_local_worker_t* worker, session_t* session, bool was_running) {
  rn_mutex_lock(&worker->mutex);
  bool is_last = --session->refs == 0, is_later = is_last && has_far_devices(session);
  if (is_later) worker->running++;
  rn_mutex_unlock(&worker->mutex);
  if (is_later) {
    session->freeing.run = free_later;
    rn_pool_submit(worker->options.env->pool, &session->freeing);
  } else if (is_last) {
    session_free(worker, session);
  }
  if (was_running) count_off(worker);
}

static rn_status_t find_session_locked(rn_local_worker_t* worker, rn_str_t name, session_t** out) {
  *out = rn_map_get(&worker->sessions, name);
  if (*out) return RN_OK;
  return rn_aborted(
      "Session handle is not found: %.*s. Possibly this worker (\"%s\") just restarted.",
      RN_STR_ARGS(name), worker->options.task);
}

static void trim_devices(rn_local_worker_t* worker) {
  for (int i = 0; i < worker->device_count; ++i)
    if (worker->devices[i]->vtable->trim) worker->devices[i]->vtable->trim(worker->devices[i]);
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
static void end_session(rn_local_worker_t* worker, session_t* session) {
  rn_steps_drop_owned(worker->steps, session, rn_aborted("The session was closed"));
  session_release(worker, session, false);
}

// Removes from the map a session that |master| opened under another incarnation than |incarnation|,
// or under that one if |is_same|; NULL if there is none.
static session_t* take_of_master(rn_local_worker_t* worker, rn_str_t master, uint64_t incarnation,
                                 bool is_same) {
  session_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&worker->mutex);
  while (!found && master.size && (entry = rn_map_next(&worker->sessions, &position))) {
    session_t* session = entry->value;
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
  session_t* session;
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
    const session_t* session = entry->value;
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

static void create_worker_session(rn_worker_t* face, rn_create_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_status_t status = check_master(worker, call);
  if (!rn_ok(status)) warn(worker, status);
  // No one else closes the sessions that the master had open before it restarted.
  session_t* old;
  while (rn_ok(status) &&
         (old = take_of_master(worker, call->master, call->master_incarnation, false)))
    end_session(worker, old);
  rn_mutex_lock(&worker->mutex);
  if (rn_ok(status)) status = make_session_locked(worker, call);
  rn_mutex_unlock(&worker->mutex);
  rn_call_done(&call->call, status);
}

static void delete_worker_session(rn_worker_t* face, rn_delete_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  session = rn_map_get(&worker->sessions, call->session);
  if (session) rn_map_remove(&worker->sessions, call->session);
  rn_mutex_unlock(&worker->mutex);
  if (session) end_session(worker, session);
  trim_devices(worker);
  rn_call_done(&call->call, RN_OK);
}

static void get_status(rn_worker_t* face, rn_get_status_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_status_t status = RN_ARENA_ARRAY(&call->arena, (size_t)worker->device_count, &call->devices);
  call->is_ours = true;
  for (int i = 0; rn_ok(status) && i < worker->device_count; ++i) {
    call->devices[call->device_count++] = rn_device_info(worker->devices[i]);
  }
  rn_call_done(&call->call, status);
}

// Graphs.

static rn_status_t keep_graph_locked(rn_local_worker_t* worker, rn_register_graph_t* call,
                                     rn_worker_graph_t* graph) {
  session_t* session = NULL;
  registered_t* registered = NULL;
  RN_RETURN_IF_ERROR(find_session_locked(worker, call->session, &session));
  RN_RETURN_IF_ERROR(RN_NEW(worker->allocator, &registered));
  snprintf(registered->handle, sizeof registered->handle, "%016llx",
           (unsigned long long)++session->next_handle);
  memcpy(call->handle, registered->handle, sizeof call->handle);
  registered->graph = graph;
  registered->next = session->graphs;
  session->graphs = registered;
  return RN_OK;
}

static void register_graph(rn_worker_t* face, rn_register_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_graph_t* graph = NULL;
  session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = find_session_locked(worker, call->session, &session);
  if (rn_ok(status)) session->refs++, worker->running++;
  rn_mutex_unlock(&worker->mutex);
  if (rn_ok(status)) {
    rn_worker_graph_options_t options = {
        .env = worker->options.env,
        .allocator = worker->allocator,
        .devices = session->devices,
        .device_count = session->device_count,
        .kernels = &session->kernels,
        .kept = session->owns_devices ? &session->kept : &worker->kept,
        .config = call->config,
        .collectives = rn_cluster_collectives_face(worker->collectives)};
    status = rn_worker_graph_create(&options, call->graph_def, &graph);
    rn_mutex_lock(&worker->mutex);
    if (rn_ok(status)) status = keep_graph_locked(worker, call, graph);
    rn_mutex_unlock(&worker->mutex);
    if (!rn_ok(status)) rn_worker_graph_release(graph);
    session_release(worker, session, true);
  }
  rn_call_done(&call->call, status);
}

static registered_t** find_graph(session_t* session, rn_str_t handle) {
  registered_t** at = &session->graphs;
  while (*at && !rn_str_is(handle, (*at)->handle)) at = &(*at)->next;
  return at;
}

static void deregister_graph(rn_worker_t* face, rn_deregister_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  session_t* session = NULL;
  registered_t* registered = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = find_session_locked(worker, call->session, &session);
  if (rn_ok(status)) {
    registered_t** at = find_graph(session, call->handle);
    registered = *at;
    if (registered)
      *at = registered->next;
    else
      status = rn_aborted("Graph handle is not found: %.*s. Possibly, this worker just restarted.",
                          RN_STR_ARGS(call->handle));
  }
  rn_mutex_unlock(&worker->mutex);
  if (registered) {
    rn_worker_graph_release(registered->graph);
    RN_FREE(worker->allocator, registered);
  }
  rn_call_done(&call->call, status);
}

// A running step: our call in place of the caller's.
typedef struct worker_run_t {
  rn_run_graph_t call;  // first
  rn_run_graph_t* outer;
  rn_local_worker_t* worker;
  session_t* session;           // Retained
  rn_job_t job;                 // starts it
  rn_worker_graph_t* graph;     // Retained until then
  rn_rendezvous_t* rendezvous;  // likewise
} worker_run_t;

static void on_run(rn_call_t* call, rn_status_t status) {
  worker_run_t* run = (worker_run_t*)call;
  rn_local_worker_t* worker = run->worker;
  rn_run_graph_t* outer = run->outer;
  session_t* session = run->session;
  if (rn_ok(status) && outer->cleans_up) rn_steps_end(worker->steps, outer->step);
  outer->stats = run->call.stats;
  outer->graphs = run->call.graphs;
  outer->costs = run->call.costs;
  RN_FREE(worker->allocator, run);
  rn_call_done(&outer->call, status);
  session_release(worker, session, true);
}

// Makes |session| the owner of |step|, so that a thread that removes the session finds it.
static rn_status_t own_step(rn_local_worker_t* worker, session_t* session, int64_t step) {
  rn_rendezvous_t* rendezvous = NULL;
  if (!session->given) {
    rn_steps_own(worker->steps, step, session);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_steps_adopt(worker->steps, step, session,
                                    rn_given_cluster_peers(session->given), &rendezvous));
  rn_rendezvous_release(rendezvous);
  return RN_OK;
}

static rn_status_t begin_run(rn_local_worker_t* worker, rn_run_graph_t* call,
                             session_t** out_session, rn_worker_graph_t** out) {
  session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = worker->is_closing ? rn_unavailable("The worker is closing") : RN_OK;
  if (rn_ok(status)) status = find_session_locked(worker, call->session, &session);
  registered_t* registered = rn_ok(status) ? *find_graph(session, call->handle) : NULL;
  if (rn_ok(status) && !registered)
    status = rn_aborted("Graph handle is not found: %.*s", RN_STR_ARGS(call->handle));
  if (rn_ok(status)) status = own_step(worker, session, call->step);
  if (rn_ok(status)) {
    *out = registered->graph;
    *out_session = session;
    rn_worker_graph_retain(*out);
    session->used_ns = worker->options.env->now_ns(worker->options.env->self);
    session->refs +=
        2;  // one for the thread that starts it, one for the end of the step; either may be last
    worker->running += 2;
    worker->steps_run++;
  }
  rn_mutex_unlock(&worker->mutex);
  return status;
}

static void start_run(rn_job_t* job) {
  worker_run_t* run = RN_CONTAINER_OF(job, worker_run_t, job);
  rn_local_worker_t* worker = run->worker;
  session_t* session = run->session;
  rn_worker_graph_t* graph = run->graph;
  rn_rendezvous_t* rendezvous = run->rendezvous;
  rn_worker_graph_run(graph, &run->call, rendezvous);
  rn_worker_graph_release(graph);
  rn_rendezvous_release(rendezvous);
  session_release(worker, session, true);
}

// Puts the values that came with the call into the rendezvous.
static rn_status_t put_sent(const rn_local_worker_t* worker, rn_rendezvous_t* rendezvous,
                            const rn_run_graph_t* call) {
  const rn_env_t* env = worker->options.env;
  rn_recv_log_t* log = rn_steps_log(worker->steps);
  int64_t now_us = rn_recv_log_is_on(log) ? env->wall_us(env->self) : 0;
  for (size_t i = 0; i < call->sent_count; ++i) {
    rn_tensor_t value;
    if (now_us)
      rn_recv_log_add(log, call->step, call->sent[i].name,
                      (int64_t)rn_tensor_bytes(&call->sent[i].value), now_us, now_us);
    RN_RETURN_IF_ERROR(rn_tensor_share(&call->sent[i].value, &value));
    RN_RETURN_IF_ERROR(rn_rendezvous_send(rendezvous, call->sent[i].name, &value, false, NULL));
  }
  return RN_OK;
}

static bool takes(void* self, rn_str_t key, rn_tensor_t* value) {
  rn_outbox_t* outbox = self;
  return outbox->takes(outbox, key, value);
}

// Starts a quick step, and hands what it has sent to other tasks by then to the outbox.
static void start_here(worker_run_t* run) {
  rn_steps_t* steps = run->worker->steps;
  rn_outbox_t* outbox = run->outer->outbox;
  rn_rendezvous_t* rendezvous = run->rendezvous;
  int64_t step = run->outer->step;
  if (outbox) rn_rendezvous_retain(rendezvous);
  start_run(&run->job);
  if (!outbox) return;
  rn_rendezvous_sweep(rendezvous, takes, outbox);
  rn_rendezvous_release(rendezvous);
  rn_steps_taken(steps, step);
}

// A quick step runs here, on the network's thread; others run on the pool.
static void run_graph(rn_worker_t* face, rn_run_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_graph_t* graph = NULL;
  rn_rendezvous_t* rendezvous = NULL;
  worker_run_t* run = NULL;
  session_t* session = NULL;
  if (call->is_partial) {
    rn_worker_partials_run(worker->partials, call);
    return;
  }
  rn_status_t status = rn_steps_get(worker->steps, call->step, &rendezvous);
  if (rn_ok(status)) status = put_sent(worker, rendezvous, call);
  if (rn_ok(status)) status = RN_NEW(worker->allocator, &run);
  if (rn_ok(status)) status = begin_run(worker, call, &session, &graph);
  if (!rn_ok(status)) {
    if (run) RN_FREE(worker->allocator, run);
    rn_rendezvous_release(rendezvous);
    rn_steps_drop_unowned(worker->steps, call->step, rn_status_copy(status));
    rn_call_done(&call->call, status);
    return;
  }
  *run = (worker_run_t){.call = *call,
                        .outer = call,
                        .worker = worker,
                        .session = session,
                        .job.run = start_run,
                        .graph = graph,
                        .rendezvous = rendezvous};
  run->call.call.done = on_run;
  if (rn_worker_graph_is_quick(graph))
    start_here(run);
  else
    rn_pool_submit(worker->options.env->pool, &run->job);
}

static void cleanup_graph(rn_worker_t* face, rn_cleanup_graph_t* call) {
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
    const session_t* session = entry->value;
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
    count_off(worker);
    return;
  }
  rn_mutex_lock(&worker->mutex);
  worker->running++;
  rn_mutex_unlock(&worker->mutex);
}

static void recv_tensor(rn_worker_t* face, rn_recv_tensor_t* call) {
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

static void cleanup_all(rn_worker_t* face, rn_cleanup_all_t* call) {
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
  trim_devices(worker);
  rn_call_done(&call->call, RN_OK);
}

static void complete_group(rn_worker_t* face, rn_complete_group_t* call) {
  rn_cluster_collectives_join(((rn_local_worker_t*)face)->collectives, call);
}

static void complete_instance(rn_worker_t* face, rn_complete_instance_t* call) {
  rn_cluster_collectives_instance(((rn_local_worker_t*)face)->collectives, call);
}

static void recv_buf(rn_worker_t* face, rn_recv_buf_t* call) {
  rn_cluster_collectives_recv_buf(((rn_local_worker_t*)face)->collectives, call);
}

static void get_step_sequence(rn_worker_t* face, rn_get_step_sequence_t* call) {
  rn_cluster_collectives_sequence(((rn_local_worker_t*)face)->collectives, call);
}

static void logging(rn_worker_t* face, rn_logging_t* call) {
  rn_recv_log_t* log = rn_steps_log(((rn_local_worker_t*)face)->steps);
  if (call->switches_on) rn_recv_log_switch(log, true);
  if (call->switches_off) rn_recv_log_switch(log, false);
  for (size_t i = 0; i < call->step_count; ++i) rn_recv_log_take(log, call->steps[i], &call->notes);
  if (call->clears) rn_recv_log_clear(log);
  rn_call_done(&call->call, rn_strbuf_status(&call->notes));
}

static const rn_worker_vtable_t vtable = {RN_WORKER_CALLS(RN_CALL_ENTRY)};

rn_worker_stats_t rn_local_worker_stats(rn_local_worker_t* worker) {
  rn_worker_stats_t stats = {.steps = rn_steps_count(worker->steps)};
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&worker->mutex);
  stats.sessions = worker->sessions.count;
  stats.steps_run = worker->steps_run;
  while ((entry = rn_map_next(&worker->sessions, &position)))
    for (registered_t* at = ((session_t*)entry->value)->graphs; at; at = at->next) stats.graphs++;
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
  rn_status_t status =
      make_devices(worker, rn_str(options->task), &worker->devices, &worker->device_count);
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
                                                  .devices = worker->devices,
                                                  .device_count = worker->device_count};
  if (rn_ok(status)) status = rn_cluster_collectives_create(&collectives, &worker->collectives);
  if (rn_ok(status)) status = make_session_locked(worker, &(rn_create_worker_session_t){0});
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
    session_release(worker, entry->value, false);
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
