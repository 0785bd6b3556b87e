// The master: finds the session that a call is about. See master.h.
#include "dist/master/master.h"

#include "base/container.h"
#include "dist/master/session.h"
#include "graph/import.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "wire/scan.h"

struct rn_local_master_t {
  rn_master_t face;  // first
  rn_local_master_options_t options;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t idle;
  rn_map_t sessions;
  int alive;  // sessions that are not freed yet
  bool is_closing;
  rn_timer_t sweep;
};

rn_master_t* rn_local_master_face(rn_local_master_t* master) { return &master->face; }
size_t rn_local_master_sessions(rn_local_master_t* master) {
  rn_mutex_lock(&master->mutex);
  size_t count = master->sessions.count;
  rn_mutex_unlock(&master->mutex);
  return count;
}
const rn_local_master_options_t* rn_local_master_options(const rn_local_master_t* master) {
  return &master->options;
}

void rn_local_master_count(rn_local_master_t* master, int by) {
  rn_mutex_lock(&master->mutex);
  master->alive += by;
  if (!master->alive) rn_cond_broadcast(&master->idle);
  rn_mutex_unlock(&master->mutex);
}

// The session, retained for the caller.
static rn_status_t find(rn_local_master_t* master, const rn_call_t* call, rn_str_t handle,
                        rn_master_session_t** out) {
  rn_mutex_lock(&master->mutex);
  *out = rn_map_get(&master->sessions, handle);
  if (*out) (*out)->refs++;
  rn_mutex_unlock(&master->mutex);
  if (*out) rn_master_session_meet(*out, call);
  return *out ? RN_OK : rn_aborted("Session %.*s is not found.", RN_STR_ARGS(handle));
}

static rn_status_t on_ready(rn_local_master_t* master, rn_master_session_t* session) {
  rn_mutex_lock(&master->mutex);
  rn_status_t status = master->is_closing
                           ? rn_unavailable("The master is closing")
                           : rn_map_put(&master->sessions, rn_str(session->handle), session);
  if (rn_ok(status)) session->refs++;
  rn_mutex_unlock(&master->mutex);
  return status;
}

static void create_session(rn_master_t* face, rn_create_session_t* call) {
  rn_master_session_open((rn_local_master_t*)face, call, on_ready);
}

// The input map of what the new nodes read of the existing ones. |from| and |to| are NULL to just
// count.
static size_t old_inputs(rn_graph_t* graph, rn_str_t graph_def, rn_tensor_id_t* from,
                         rn_edge_t* to) {
  size_t count = 0;
  rn_pb_scan_t nodes = rn_pb_scan(graph_def);
  rn_pb_field_t node, input;
  while (rn_pb_scan_next(&nodes, &node)) {
    if (node.number != rn_pb_GraphDef_node_field || node.wire != RN_PB_WIRE_LENGTH) continue;
    rn_pb_scan_t inputs = rn_pb_scan(node.bytes);
    while (rn_pb_scan_next(&inputs, &input)) {
      if (input.number != rn_pb_NodeDef_input_field || input.wire != RN_PB_WIRE_LENGTH) continue;
      rn_tensor_id_t id = rn_tensor_id_parse(input.bytes);
      rn_node_t* found = rn_graph_find(graph, id.name);
      if (!found) continue;
      if (from) from[count] = id;
      if (to) to[count] = (rn_edge_t){found, id.index};
      count++;
    }
  }
  return count;
}

static rn_status_t extend_graph(rn_master_session_t* session, rn_str_t graph_def) {
  rn_arena_t arena;
  rn_tensor_id_t* from = NULL;
  rn_edge_t* to = NULL;
  rn_arena_init(&arena, rn_local_master_options(session->master)->allocator);
  size_t count = old_inputs(session->graph, graph_def, NULL, NULL);
  rn_status_t status = RN_ARENA_ARRAY(&arena, count, &from);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, count, &to);
  if (rn_ok(status)) {
    rn_import_options_t import = {
        .allows_any_names = true,
        .extends = true,
        .map_from = from,
        .map_to = to,
        .map_count = (int32_t)old_inputs(session->graph, graph_def, from, to)};
    status = rn_graph_import(session->graph, graph_def, &import, NULL);
  }
  rn_arena_clear(&arena);
  return status;
}

static void extend_session(rn_master_t* face, rn_extend_session_t* call) {
  rn_master_session_t* session = NULL;
  rn_status_t status = find((rn_local_master_t*)face, &call->call, call->session, &session);
  if (rn_ok(status)) {
    rn_mutex_lock(&session->planning);
    if (call->version != session->version)
      status = rn_aborted("Current version is %lld but caller expected %lld.",
                          (long long)session->version, (long long)call->version);
    if (rn_ok(status)) status = extend_graph(session, call->graph_def);
    rn_master_plan_options_t options;
    rn_master_session_plan_options(session, &options);
    if (rn_ok(status)) status = rn_master_check(&options, session->graph);
    if (rn_ok(status)) call->version = ++session->version;
    rn_mutex_unlock(&session->planning);
  }
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

// A piece of a partial run may block, so it runs on the pool.
typedef struct master_piece_t {
  rn_job_t job;  // first
  rn_allocator_t allocator;
  rn_master_session_t* session;  // Retained
  rn_run_step_t* call;
} master_piece_t;

static void run_piece(rn_job_t* job) {
  master_piece_t* piece = (master_piece_t*)job;
  rn_run_step_t* call = piece->call;
  rn_status_t status = rn_master_partial_run(piece->session, call);
  rn_master_session_release(piece->session);
  RN_FREE(piece->allocator, piece);
  rn_call_done(&call->call, status);
}

static void start_piece(rn_local_master_t* master, rn_master_session_t* session,
                        rn_run_step_t* call) {
  master_piece_t* piece = NULL;
  rn_status_t status = RN_NEW(master->options.allocator, &piece);
  if (!rn_ok(status)) {
    rn_call_done(&call->call, status);
    return;
  }
  session->refs++;
  *piece = (master_piece_t){.job.run = run_piece,
                            .allocator = master->options.allocator,
                            .session = session,
                            .call = call};
  rn_pool_submit(master->options.env->pool, &piece->job);
}

// Closing sessions whose clients are gone.

static int64_t session_gc_ns(const rn_local_master_t* master) {
  return master->options.session_gc_ns > 0 ? master->options.session_gc_ns : RN_SESSION_GC_NS;
}

static rn_master_session_t* take_left(rn_local_master_t* master, int64_t since_ns) {
  rn_master_session_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&master->mutex);
  while (!found && (entry = rn_map_next(&master->sessions, &position)))
    if (rn_master_session_is_left(entry->value, since_ns)) found = entry->value;
  if (found) rn_map_remove(&master->sessions, rn_str(found->handle));
  rn_mutex_unlock(&master->mutex);
  return found;
}

static void on_sweep(rn_timer_t* timer) {
  rn_local_master_t* master = RN_CONTAINER_OF(timer, rn_local_master_t, sweep);
  const rn_env_t* env = master->options.env;
  int64_t now = env->now_ns(env->self), patience = session_gc_ns(master);
  rn_master_session_t* session;
  while ((session = take_left(master, now - patience))) {
    rn_log(env, RN_LOG_INFO, "Session %s is closed: its client has been gone for %lld s",
           session->handle, (long long)(patience / 1000000000));
    rn_master_session_close(session, NULL);
    rn_master_session_release(session);
  }
  rn_status_free(master->options.timers.set(master->options.timers.self, timer,
                                            now + patience / 4));  // cannot fail: it was set before
}

static void run_whole(void* self, rn_call_t* call) {
  rn_master_session_run(self, (rn_run_step_t*)call);
}

static void run_once(rn_master_session_t* session, rn_run_step_t* call) {
  rn_fence_call_t fenced = {.call = &call->call,
                            .number = call->request,
                            .fetches = call->fetches,
                            .fetch_count = call->fetch_count};
  rn_fence_run(session->fence, fenced, run_whole, session);
}

static void run_step(rn_master_t* face, rn_run_step_t* call) {
  rn_master_session_t* session = NULL;
  rn_status_t status = find((rn_local_master_t*)face, &call->call, call->session, &session);
  if (!rn_ok(status))
    rn_call_done(&call->call, status);
  else if (call->partial_run.size)
    start_piece((rn_local_master_t*)face, session, call);
  else
    run_once(session, call);
  rn_master_session_release(session);
}

static void partial_setup(rn_master_t* face, rn_partial_setup_t* call) {
  rn_master_session_t* session = NULL;
  rn_status_t status = find((rn_local_master_t*)face, &call->call, call->session, &session);
  if (rn_ok(status)) status = rn_master_partial_setup(session, call);
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

static void close_session(rn_master_t* face, rn_close_session_t* call) {
  rn_local_master_t* master = (rn_local_master_t*)face;
  rn_mutex_lock(&master->mutex);
  rn_master_session_t* session = rn_map_get(&master->sessions, call->session);
  if (session) rn_map_remove(&master->sessions, call->session);
  rn_mutex_unlock(&master->mutex);
  rn_status_t status =
      session ? RN_OK
              : rn_aborted("Session %.*s is not found. Possibly, this master has restarted.",
                           RN_STR_ARGS(call->session));
  if (session)
    rn_master_session_close(session, call);
  else
    rn_call_done(&call->call, status);
  rn_master_session_release(session);
}

static void list_devices(rn_master_t* face, rn_list_devices_t* call) {
  rn_master_session_t* session = NULL;
  rn_status_t status = find((rn_local_master_t*)face, &call->call, call->session, &session);
  if (!session) {
    rn_status_free(status);
    status = rn_invalid_argument("Session %.*s is not found. Possibly, this master has restarted.",
                                 RN_STR_ARGS(call->session));
  }
  if (rn_ok(status))
    status = RN_ARENA_ARRAY(&call->arena, (size_t)session->device_count, &call->devices);
  for (int i = 0; rn_ok(status) && i < session->device_count; ++i) {
    const rn_device_t* device = session->devices[i];
    rn_device_info_t* info = &call->devices[i];
    *info = rn_device_info(device);
    status = rn_arena_str(&call->arena, info->name, &info->name);
    if (rn_ok(status)) status = rn_arena_str(&call->arena, info->type, &info->type);
    if (rn_ok(status)) status = rn_arena_str(&call->arena, info->description, &info->description);
    if (rn_ok(status)) call->device_count++;
  }
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

// Clears the containers of all tasks; responds when all have.
typedef struct reset_t {
  rn_master_fan_t fan;  // first
  rn_reset_t* call;
  rn_allocator_t allocator;
  size_t size;
  rn_cleanup_all_t calls[];
} reset_t;

static void on_reset_all(rn_master_fan_t* fan, rn_status_t status) {
  reset_t* reset = (reset_t*)fan;
  rn_reset_t* call = reset->call;
  rn_free(reset->allocator, reset, reset->size);
  rn_call_done(&call->call, status);
}

static void on_reset(rn_call_t* call, rn_status_t status) {
  rn_master_fan_end(call->owner, status, RN_STR(""));
}

static void reset(rn_master_t* face, rn_reset_t* call) {
  rn_local_master_t* master = (rn_local_master_t*)face;
  int count = master->options.task_count;
  size_t size = sizeof(reset_t) + (size_t)count * sizeof(rn_cleanup_all_t);
  reset_t* reset = NULL;
  rn_status_t status = rn_alloc_zeroed(master->options.allocator, size, (void**)&reset);
  if (!rn_ok(status)) {
    rn_call_done(&call->call, status);
    return;
  }
  reset->call = call;
  reset->allocator = master->options.allocator;
  reset->size = size;
  rn_master_fan_open(&reset->fan, count + 1, on_reset_all);
  for (int t = 0; t < count; ++t) {
    rn_worker_t* worker =
        t == 0 ? rn_local_worker_face(master->options.worker)
               : master->options.peers.find(master->options.peers.self, master->options.tasks[t]);
    reset->calls[t] = (rn_cleanup_all_t){.call = {.done = on_reset,
                                                  .owner = reset,
                                                  .deadline_ns = call->call.deadline_ns,
                                                  .cancel = call->call.cancel},
                                         .containers = call->containers,
                                         .container_count = call->container_count};
    if (worker &&
        rn_master_task_passes(master->options.tasks[t], call->filters, call->filter_count))
      worker->vtable->cleanup_all(worker, &reset->calls[t]);
    else
      rn_master_fan_end(&reset->fan, RN_OK, RN_STR(""));
  }
  rn_master_fan_end(&reset->fan, RN_OK, RN_STR(""));
}

// Callables: the names of a step, under a number.

static rn_status_t copy_names(rn_arena_t* arena, const rn_str_t* from, size_t count,
                              rn_str_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, out));
  for (size_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i], &(*out)[i]));
  return RN_OK;
}

static rn_status_t keep_callable(rn_master_session_t* session, rn_allocator_t allocator,
                                 rn_make_callable_t* call) {
  rn_master_callable_t* callable = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &callable));
  rn_arena_init(&callable->arena, allocator);
  callable->feed_count = call->feed_count;
  callable->fetch_count = call->fetch_count;
  callable->target_count = call->target_count;
  callable->timeout_ms = call->timeout_ms;
  callable->trace_level = call->trace_level;
  callable->wants_graphs = call->wants_graphs;
  rn_status_t status =
      copy_names(&callable->arena, call->feeds, call->feed_count, &callable->feeds);
  if (rn_ok(status))
    status = copy_names(&callable->arena, call->fetches, call->fetch_count, &callable->fetches);
  if (rn_ok(status))
    status = copy_names(&callable->arena, call->targets, call->target_count, &callable->targets);
  if (!rn_ok(status)) {
    rn_arena_clear(&callable->arena);
    RN_FREE(allocator, callable);
    return status;
  }
  rn_mutex_lock(&session->mutex);
  call->handle = callable->handle = session->next_callable++;
  callable->next = session->callables;
  session->callables = callable;
  rn_mutex_unlock(&session->mutex);
  return RN_OK;
}

static void make_callable(rn_master_t* face, rn_make_callable_t* call) {
  rn_master_session_t* session = NULL;
  rn_local_master_t* master = (rn_local_master_t*)face;
  rn_status_t status = find(master, &call->call, call->session, &session);
  if (rn_ok(status)) status = keep_callable(session, master->options.allocator, call);
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

// A callable's step as an ordinary one.
typedef struct called_t {
  rn_run_step_t step;  // first
  rn_run_callable_t* call;
  rn_arena_t arena;
  rn_allocator_t allocator;
} called_t;

static void on_called(rn_call_t* call, rn_status_t status) {
  called_t* called = (called_t*)call;
  rn_run_callable_t* outer = called->call;
  if (rn_ok(status)) {
    memcpy(outer->fetches, called->step.fetches, outer->fetch_count * sizeof *outer->fetches);
    outer->metadata = called->step.metadata;
  } else {
    RN_FREE_ARRAY(called->allocator, outer->fetches, outer->fetch_count);
    outer->fetches = NULL;
    outer->fetch_count = 0;
  }
  rn_arena_clear(&called->arena);
  RN_FREE(called->allocator, called);
  rn_call_done(&outer->call, status);
}

static rn_status_t prepare_call(rn_master_session_t* session, rn_run_callable_t* call,
                                called_t* called) {
  rn_mutex_lock(&session->mutex);
  const rn_master_callable_t* callable = session->callables;
  while (callable && callable->handle != call->handle) callable = callable->next;
  rn_status_t status = RN_OK;
  rn_named_tensor_t* feeds = NULL;
  rn_str_t *names = NULL, *fetches = NULL, *targets = NULL;
  if (!callable)
    status = rn_invalid_argument("No such callable handle: %lld", (long long)call->handle);
  else if (callable->feed_count != call->feed_count)
    status = rn_invalid_argument("Expected %zu feed tensors, but got %zu", callable->feed_count,
                                 call->feed_count);
  if (rn_ok(status))
    status = copy_names(&called->arena, callable->feeds, callable->feed_count, &names);
  if (rn_ok(status))
    status = copy_names(&called->arena, callable->fetches, callable->fetch_count, &fetches);
  if (rn_ok(status))
    status = copy_names(&called->arena, callable->targets, callable->target_count, &targets);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&called->arena, call->feed_count, &feeds);
  if (rn_ok(status))
    status = RN_ARENA_ARRAY(&called->arena, callable->fetch_count, &called->step.fetches);
  if (rn_ok(status))
    status = rn_alloc_array(called->allocator, callable->fetch_count, sizeof *call->fetches,
                            (void**)&call->fetches);
  if (rn_ok(status)) {
    for (size_t i = 0; i < call->feed_count; ++i)
      feeds[i] = (rn_named_tensor_t){names[i], call->feeds[i]};
    call->fetch_count = callable->fetch_count;
    called->step.feeds = feeds;
    called->step.feed_count = call->feed_count;
    called->step.fetch_names = fetches;
    called->step.fetch_count = callable->fetch_count;
    called->step.targets = targets;
    called->step.target_count = callable->target_count;
    called->step.timeout_ms = callable->timeout_ms;
    called->step.trace_level = callable->trace_level;
    called->step.wants_graphs = callable->wants_graphs;
  }
  rn_mutex_unlock(&session->mutex);
  return status;
}

static void run_callable(rn_master_t* face, rn_run_callable_t* call) {
  rn_local_master_t* master = (rn_local_master_t*)face;
  rn_master_session_t* session = NULL;
  called_t* called = NULL;
  call->fetch_count = 0;
  call->fetches = NULL;
  rn_status_t status = find(master, &call->call, call->session, &session);
  if (rn_ok(status)) status = RN_NEW(master->options.allocator, &called);
  if (rn_ok(status)) {
    called->call = call;
    called->allocator = master->options.allocator;
    rn_arena_init(&called->arena, called->allocator);
    called->step.call = call->call;
    called->step.call.done = on_called;
    called->step.session = call->session;
    called->step.metadata = call->metadata;
    called->step.request = call->request;
    status = prepare_call(session, call, called);
  }
  if (rn_ok(status)) {
    run_once(session, &called->step);
  } else {
    if (called) {
      rn_arena_clear(&called->arena);
      RN_FREE(called->allocator, called);
    }
    rn_call_done(&call->call, status);
  }
  rn_master_session_release(session);
}

static void release_callable(rn_master_t* face, rn_release_callable_t* call) {
  rn_local_master_t* master = (rn_local_master_t*)face;
  rn_master_session_t* session = NULL;
  rn_master_callable_t* callable = NULL;
  rn_status_t status = find(master, &call->call, call->session, &session);
  if (rn_ok(status)) {
    rn_mutex_lock(&session->mutex);
    rn_master_callable_t** at = &session->callables;
    while (*at && (*at)->handle != call->handle) at = &(*at)->next;
    callable = *at;
    if (callable) *at = callable->next;
    rn_mutex_unlock(&session->mutex);
  }
  if (callable) {
    rn_arena_clear(&callable->arena);
    RN_FREE(master->options.allocator, callable);
  }
  rn_master_session_release(session);
  rn_call_done(&call->call, status);
}

static const rn_master_vtable_t vtable = {RN_MASTER_CALLS(RN_CALL_ENTRY)};

rn_status_t rn_local_master_create(const rn_local_master_options_t* options,
                                   rn_local_master_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, out));
  (*out)->face.vtable = &vtable;
  (*out)->options = *options;
  rn_mutex_init(&(*out)->mutex);
  rn_cond_init(&(*out)->idle);
  rn_map_init(&(*out)->sessions, options->allocator);
  (*out)->sweep.fn = on_sweep;
  if (!options->timers.set) return RN_OK;
  const rn_env_t* env = options->env;
  rn_status_t status = options->timers.set(options->timers.self, &(*out)->sweep,
                                           env->now_ns(env->self) + session_gc_ns(*out) / 4);
  if (!rn_ok(status)) {
    rn_local_master_destroy(*out);
    *out = NULL;
  }
  return status;
}

void rn_local_master_stop(rn_local_master_t* master) {
  if (master->options.timers.set)
    master->options.timers.clear(master->options.timers.self, &master->sweep);
  for (;;) {
    size_t position = 0;
    rn_mutex_lock(&master->mutex);
    master->is_closing = true;
    const rn_map_entry_t* entry = rn_map_next(&master->sessions, &position);
    rn_master_session_t* session = entry ? entry->value : NULL;
    if (session) rn_map_remove(&master->sessions, rn_str(session->handle));
    rn_mutex_unlock(&master->mutex);
    if (!session) break;
    rn_master_session_close(session, NULL);
    rn_master_session_release(session);
  }
}

void rn_local_master_destroy(rn_local_master_t* master) {
  if (!master) return;
  rn_local_master_stop(master);
  rn_mutex_lock(&master->mutex);
  while (master->alive) rn_cond_wait(&master->idle, &master->mutex);
  rn_mutex_unlock(&master->mutex);
  rn_map_clear(&master->sessions);
  rn_cond_destroy(&master->idle);
  rn_mutex_destroy(&master->mutex);
  RN_FREE(master->options.allocator, master);
}
