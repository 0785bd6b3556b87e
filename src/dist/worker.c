// The worker: see worker.h.
#include "dist/worker.h"

#include <stdio.h>

#include "base/map.h"
#include "dist/worker_graph.h"

// A graph under its handle.
typedef struct registered_t {
  struct registered_t* next;
  rn_worker_graph_t* graph;  // Retained
  char handle[32];
} registered_t;

// What a master has opened. "" is the session of masters that open none. It goes with the last step
// that runs in it.
typedef struct session_t {
  int refs;       // the map's and those of steps; guarded by the worker's mutex
  rn_str_t name;  // Owned; the key of the map
  rn_device_t** devices;
  bool owns_devices;          // state is its own
  rn_kernel_cache_t kernels;  // shared by its graphs
  registered_t* graphs;
  int64_t next_handle;
} session_t;

struct rn_local_worker_t {
  rn_worker_t face;  // first
  rn_local_worker_options_t options;
  rn_allocator_t allocator;
  int device_count;
  rn_device_t** devices;  // Owned; the first is the CPU
  rn_steps_t* steps;      // Owned
  rn_mutex_t mutex;       // guards what follows
  rn_cond_t idle;
  rn_map_t sessions;
  int running;  // steps
  int64_t steps_run;
  bool is_closing;
};

rn_worker_t* rn_local_worker_face(rn_local_worker_t* worker) { return &worker->face; }
rn_device_t* rn_local_worker_device(const rn_local_worker_t* worker, int i) {
  return worker->devices[i];
}

static void destroy_devices(rn_local_worker_t* worker, rn_device_t** devices) {
  for (int i = 0; devices && i < worker->device_count; ++i)
    if (devices[i]) rn_device_destroy(devices[i]);
  RN_FREE_ARRAY(worker->allocator, devices, worker->device_count);
}

// A set of devices; those of a session with state of its own pass for the worker's.
static rn_status_t make_devices(rn_local_worker_t* worker, rn_device_t*** out) {
  const rn_local_worker_options_t* options = &worker->options;
  int cpus = options->cpu_devices < 1 ? 1 : options->cpu_devices;
  worker->device_count = cpus + options->null_devices;
  RN_RETURN_IF_ERROR(
      rn_alloc_array(worker->allocator, (size_t)worker->device_count, sizeof **out, (void**)out));
  for (int i = 0; i < worker->device_count; ++i) {
    rn_str_t task = rn_str(options->task);
    RN_RETURN_IF_ERROR(
        i < cpus
            ? rn_cpu_device_create(worker->allocator, task, i, options->env, &(*out)[i])
            : rn_null_device_create(worker->allocator, task, i - cpus, options->env, &(*out)[i]));
    if (worker->devices && worker->devices != *out)
      (*out)[i]->incarnation = worker->devices[i]->incarnation;
  }
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
  rn_kernel_cache_clear(&session->kernels);
  if (session->owns_devices) {
    for (int i = 0; session->devices && i < worker->device_count; ++i)
      if (session->devices[i]) rn_resources_clear(session->devices[i]->resources, (rn_str_t){0});
    destroy_devices(worker, session->devices);
  }
  if (session->name.data)
    rn_free(worker->allocator, (char*)session->name.data, session->name.size + 1);
  RN_FREE(worker->allocator, session);
}

static rn_status_t make_session_locked(rn_local_worker_t* worker, rn_str_t name, bool isolates) {
  if (rn_map_get(&worker->sessions, name))
    return rn_already_exists("Session %.*s is open already", RN_STR_ARGS(name));
  session_t* session = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(worker->allocator, &session));
  session->refs = 1;
  rn_kernel_cache_init(&session->kernels, worker->allocator);
  char* copy = NULL;
  rn_status_t status = rn_str_dup(worker->allocator, name, &copy);
  if (rn_ok(status)) session->name = rn_str_n(copy, name.size);
  session->owns_devices = isolates;
  session->devices = isolates ? NULL : worker->devices;
  if (rn_ok(status) && isolates) status = make_devices(worker, &session->devices);
  if (rn_ok(status)) status = rn_map_put(&worker->sessions, session->name, session);
  if (!rn_ok(status)) session_free(worker, session);
  return status;
}

// Lets go of a session, and of what is then under way if |was_running|.
static void session_release(rn_local_worker_t* worker, session_t* session, bool was_running) {
  rn_mutex_lock(&worker->mutex);
  bool is_last = --session->refs == 0;
  rn_mutex_unlock(&worker->mutex);
  if (is_last) session_free(worker, session);
  if (!was_running) return;
  rn_mutex_lock(&worker->mutex);
  if (--worker->running == 0) rn_cond_broadcast(&worker->idle);
  rn_mutex_unlock(&worker->mutex);
}

static rn_status_t find_session_locked(rn_local_worker_t* worker, rn_str_t name, session_t** out) {
  *out = rn_map_get(&worker->sessions, name);
  if (*out) return RN_OK;
  return rn_aborted(
      "Session handle is not found: %.*s. Possibly this worker (\"%s\") just restarted.",
      RN_STR_ARGS(name), worker->options.task);
}

static void create_session(rn_worker_t* face, rn_create_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = make_session_locked(worker, call->session, call->isolates);
  rn_mutex_unlock(&worker->mutex);
  rn_call_done(&call->call, status);
}

static void delete_session(rn_worker_t* face, rn_delete_worker_session_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  session_t* session = NULL;
  rn_mutex_lock(&worker->mutex);
  rn_status_t status = find_session_locked(worker, call->session, &session);
  if (rn_ok(status)) rn_map_remove(&worker->sessions, call->session);
  rn_mutex_unlock(&worker->mutex);
  if (session) session_release(worker, session, false);
  rn_call_done(&call->call, status);
}

static void get_status(rn_worker_t* face, rn_get_status_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_status_t status = RN_ARENA_ARRAY(&call->arena, (size_t)worker->device_count, &call->devices);
  for (int i = 0; rn_ok(status) && i < worker->device_count; ++i) {
    const rn_device_t* device = worker->devices[i];
    call->devices[call->device_count++] = (rn_device_info_t){.name = device->name,
                                                             .type = rn_str(device->type),
                                                             .memory_limit = device->memory_limit,
                                                             .incarnation = device->incarnation};
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
    rn_worker_graph_options_t options = {.env = worker->options.env,
                                         .allocator = worker->allocator,
                                         .devices = session->devices,
                                         .device_count = worker->device_count,
                                         .kernels = &session->kernels,
                                         .config = call->config};
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
      status = rn_not_found("No graph %.*s", RN_STR_ARGS(call->handle));
  }
  rn_mutex_unlock(&worker->mutex);
  if (registered) {
    rn_worker_graph_release(registered->graph);
    RN_FREE(worker->allocator, registered);
  }
  rn_call_done(&call->call, status);
}

// A step under way: the caller's call, with ours between.
typedef struct run_t {
  rn_run_graph_t call;  // first
  rn_run_graph_t* outer;
  rn_local_worker_t* worker;
  session_t* session;  // Retained
} run_t;

static void on_run(rn_call_t* call, rn_status_t status) {
  run_t* run = (run_t*)call;
  rn_local_worker_t* worker = run->worker;
  rn_run_graph_t* outer = run->outer;
  session_t* session = run->session;
  RN_FREE(worker->allocator, run);
  rn_call_done(&outer->call, status);
  session_release(worker, session, true);
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
  if (rn_ok(status)) {
    *out = registered->graph;
    *out_session = session;
    rn_worker_graph_retain(*out);
    session->refs++;
    worker->running++;
    worker->steps_run++;
  }
  rn_mutex_unlock(&worker->mutex);
  return status;
}

static void run_graph(rn_worker_t* face, rn_run_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_worker_graph_t* graph = NULL;
  rn_rendezvous_t* rendezvous = NULL;
  run_t* run = NULL;
  session_t* session = NULL;
  rn_status_t status = rn_steps_get(worker->steps, call->step, &rendezvous);
  if (rn_ok(status)) status = RN_NEW(worker->allocator, &run);
  if (rn_ok(status)) status = begin_run(worker, call, &session, &graph);
  if (rn_ok(status)) {
    *run = (run_t){.call = *call, .outer = call, .worker = worker, .session = session};
    run->call.call.done = on_run;
    rn_worker_graph_run(graph, &run->call, rendezvous);
  } else {
    if (run) RN_FREE(worker->allocator, run);
    rn_call_done(&call->call, status);
  }
  rn_worker_graph_release(graph);
  rn_rendezvous_release(rendezvous);
}

static void cleanup_graph(rn_worker_t* face, rn_cleanup_graph_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  rn_steps_drop(worker->steps, call->step, rn_aborted("Cleanup %lld", (long long)call->step));
  rn_call_done(&call->call, RN_OK);
}

// Another task, or the master, asks for a value.
typedef struct asked_t {
  rn_recv_t recv;  // first
  rn_local_worker_t* worker;
  rn_recv_tensor_t* call;
  rn_rendezvous_t* rendezvous;  // Retained
} asked_t;

static void on_asked(rn_recv_t* recv, rn_status_t status, rn_tensor_t* value, bool is_dead,
                     rn_device_t* device) {
  asked_t* asked = (asked_t*)recv;
  rn_recv_tensor_t* call = asked->call;
  rn_rendezvous_t* rendezvous = asked->rendezvous;
  RN_FREE(asked->worker->allocator, asked);
  if (rn_ok(status) && device) {
    status = rn_unimplemented("A value in the memory of %.*s cannot leave the task yet",
                              RN_STR_ARGS(device->name));
    rn_tensor_clear(value);
  }
  call->value = *value;
  call->is_dead = is_dead;
  *value = (rn_tensor_t){0};
  rn_rendezvous_release(rendezvous);
  rn_call_done(&call->call, status);
}

// Whether the key names a device of ours, as it is since this process started.
static rn_status_t check_key(const rn_local_worker_t* worker, rn_str_t key) {
  rn_str_t name = rn_str_split(&key, ';'), incarnation = rn_str_split(&key, ';');
  for (int i = 0; i < worker->device_count; ++i) {
    const rn_device_t* device = worker->devices[i];
    char own[32];
    if (!rn_str_eq(device->name, name)) continue;
    snprintf(own, sizeof own, "%016llx", (unsigned long long)device->incarnation);
    if (rn_str_is(incarnation, own)) return RN_OK;
    return rn_aborted(
        "RecvTensor expects a different device incarnation: %.*s vs. %s. Your worker job (\"%s\") "
        "was probably restarted. Check your worker job for the reason why it was restarted.",
        RN_STR_ARGS(incarnation), own, worker->options.task);
  }
  return rn_invalid_argument("%s has no device %.*s", worker->options.task, RN_STR_ARGS(name));
}

static void recv_tensor(rn_worker_t* face, rn_recv_tensor_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  asked_t* asked = NULL;
  call->value = (rn_tensor_t){0};
  rn_status_t status = check_key(worker, call->key);
  if (rn_ok(status)) status = RN_NEW(worker->allocator, &asked);
  if (rn_ok(status)) status = rn_steps_get(worker->steps, call->step, &asked->rendezvous);
  if (!rn_ok(status)) {
    if (asked) RN_FREE(worker->allocator, asked);
    rn_call_done(&call->call, status);
    return;
  }
  asked->recv.fn = on_asked;
  asked->worker = worker;
  asked->call = call;
  rn_rendezvous_recv(asked->rendezvous, call->key, &asked->recv);
}

static void cleanup_all(rn_worker_t* face, rn_cleanup_all_t* call) {
  rn_local_worker_t* worker = (rn_local_worker_t*)face;
  for (int i = 0; i < worker->device_count; ++i) {
    if (!call->container_count) rn_resources_clear(worker->devices[i]->resources, (rn_str_t){0});
    for (size_t c = 0; c < call->container_count; ++c)
      rn_resources_clear(worker->devices[i]->resources, call->containers[c]);
  }
  rn_call_done(&call->call, RN_OK);
}

static const rn_worker_vtable_t vtable = {
    .get_status = get_status,
    .create_session = create_session,
    .delete_session = delete_session,
    .register_graph = register_graph,
    .deregister_graph = deregister_graph,
    .run_graph = run_graph,
    .cleanup_graph = cleanup_graph,
    .recv_tensor = recv_tensor,
    .cleanup_all = cleanup_all,
};

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
  rn_status_t status = make_devices(worker, &worker->devices);
  if (rn_ok(status))
    status = rn_steps_create(options->env, worker->allocator, rn_str(options->task), options->peers,
                             &worker->steps);
  if (rn_ok(status)) status = make_session_locked(worker, RN_STR(""), false);
  if (!rn_ok(status)) {
    rn_local_worker_destroy(worker);
    return status;
  }
  *out = worker;
  return RN_OK;
}

void rn_local_worker_destroy(rn_local_worker_t* worker) {
  if (!worker) return;
  rn_mutex_lock(&worker->mutex);
  worker->is_closing = true;
  rn_mutex_unlock(&worker->mutex);
  if (worker->steps) rn_steps_clear(worker->steps);
  rn_mutex_lock(&worker->mutex);
  while (worker->running) rn_cond_wait(&worker->idle, &worker->mutex);
  rn_mutex_unlock(&worker->mutex);
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&worker->sessions, &position)))
    session_release(worker, entry->value, false);
  rn_map_clear(&worker->sessions);
  for (int i = 0; worker->devices && i < worker->device_count; ++i)
    if (worker->devices[i]) rn_resources_clear(worker->devices[i]->resources, (rn_str_t){0});
  rn_steps_destroy(worker->steps);
  destroy_devices(worker, worker->devices);
  rn_cond_destroy(&worker->idle);
  rn_mutex_destroy(&worker->mutex);
  RN_FREE(worker->allocator, worker);
}
