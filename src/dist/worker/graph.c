// Registered graphs: see graph.h.
#include "dist/worker/graph.h"

#include "base/container.h"
#include "exec/executor.h"
#include "framework/function.h"
#include "graph/import.h"
#include "proto/worker.pb.h"
#include "session/passes.h"
#include "session/programs.h"
#include "session/step_parts.h"
#include "session/step_stats_proto.h"

// The time that a quick graph may take, the addition per value from another task, and the maximum.
#define QUICK_NS 100000
#define QUICK_RECV_NS 150000
#define MAX_QUICK_NS 3000000
// How many runs in a row must be quick, or slow, before the graph counts as such.
#define QUICK_RUNS 3
#define SLOW_RUNS 8

struct rn_worker_graph_t {
  _Atomic int refs;
  _Atomic int64_t quick_ns;  // 0: some kernel may block
  _Atomic int alike;         // runs in a row: quick ones above 0, slow ones below
  _Atomic bool is_quick;
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_graph_t* graph;  // Retained
  rn_functions_t* functions;
  rn_kept_functions_t* kept;
  rn_collectives_t* collectives;
  rn_planner_t planner;
  rn_mutex_t planning;  // held while a program is made
  rn_signature_t signature;
  rn_programs_t programs;
  int32_t feed_count, fetch_count;
  rn_str_t *feed_names, *fetch_names;  // as the client calls them: "x:0"
  rn_signature_t whole;                // all that the part runs, with its ends as plain nodes
  rn_str_t config;
};

// A running step.
typedef struct graph_running_t {
  _Atomic int refs;          // its own, and that of a thread that cancels it
  rn_worker_graph_t* graph;  // Retained
  rn_run_graph_t* call;
  rn_step_t step;
  rn_cancel_t cancel;
  rn_cancel_entry_t outer;  // in the caller's cancellation
  rn_job_t job;             // plans it, and goes on
  int64_t start_ns;
  bool is_linked;
  rn_step_stats_t stats;
  rn_tensor_t* fetches;
  const rn_tensor_t* feeds[];  // by the program's feeds
} graph_running_t;

void rn_worker_graph_retain(rn_worker_graph_t* graph) { graph->refs++; }

void rn_worker_graph_release(rn_worker_graph_t* graph) {
  if (!graph || --graph->refs) return;
  rn_programs_clear(&graph->programs);
  rn_mutex_destroy(&graph->planning);
  rn_kept_functions_add(graph->kept, graph->functions);
  rn_graph_release(graph->graph);
  rn_arena_clear(&graph->arena);
  RN_FREE(graph->allocator, graph);
}

static bool is_client_end(const rn_node_t* node, rn_op_role_t role) {
  const rn_attr_value_t* ends = rn_node_attr(node, RN_STR("client_terminated"));
  return node->op->role == role && ends && ends->b;
}

static bool is_read(const rn_node_t* node) {
  for (int32_t i = 0; i < node->output_count; ++i)
    if (node->outputs[i].consumers.count) return true;
  return node->control_consumers.count > 0;
}

// Finds feeds, fetches and the nodes without consumers, which must run.
static rn_status_t find_ends(rn_worker_graph_t* graph, rn_signature_t* out) {
  size_t count = graph->graph->nodes.count;
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t **targets = NULL, **unread = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &unread));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &graph->feed_names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &graph->fetch_names));
  int32_t target_count = 0;
  for (size_t n = 0; n < count; ++n) {
    rn_node_t* node = graph->graph->nodes.items[n];
    const rn_attr_value_t* name = rn_node_attr(node, RN_STR("tensor_name"));
    if (!is_read(node)) unread[graph->whole.target_count++] = node;
    if (is_client_end(node, RN_ROLE_RECV)) {
      feeds[graph->feed_count] = (rn_edge_t){node, 0};
      graph->feed_names[graph->feed_count++] = name->s;
    } else if (is_client_end(node, RN_ROLE_SEND)) {
      fetches[graph->fetch_count] = node->inputs[0];
      graph->fetch_names[graph->fetch_count++] = name->s;
    } else if (!is_read(node)) {
      targets[target_count++] = node;
    }
  }
  graph->whole.targets = unread;
  *out = (rn_signature_t){.feeds = feeds,
                          .feed_count = graph->feed_count,
                          .fetches = fetches,
                          .fetch_count = graph->fetch_count,
                          .targets = targets,
                          .target_count = target_count};
  return RN_OK;
}

// Kernels that compute, and those of variables; others may block on files, queues or functions.
static bool never_waits(const rn_op_def_t* op) {
  static const char* const state[] = {"Variable",      "VarHandleOp",     "ReadVariableOp",
                                      "Assign",        "VarIsInitialize", "IsVariableInitialized",
                                      "ResourceApply", "ResourceScatter", "ResourceGather",
                                      "Random",        "Truncated",       "_"};
  if (rn_op_names_function(op)) return false;
  if (!(op->flags & RN_OP_STATEFUL)) return true;
  for (size_t i = 0; i < sizeof state / sizeof *state; ++i)
    if (strncmp(op->name, state[i], strlen(state[i])) == 0) return true;
  return false;
}

// Work of other devices may take any time, and the network's thread must not wait for it.
static bool is_on_host(const rn_program_t* program) {
  for (int32_t p = 0; p < program->plan_count; ++p)
    if (!program->plans[p]->device->is_host) return false;
  return true;
}

static int64_t quick_limit(const rn_worker_graph_t* graph) {
  int64_t limit = QUICK_NS;
  for (size_t n = 0; n < graph->graph->nodes.count; ++n) {
    const rn_op_def_t* op = graph->graph->nodes.items[n]->op;
    if (!never_waits(op)) return 0;
    if (op->role == RN_ROLE_RECV) limit += QUICK_RECV_NS;
  }
  return limit < MAX_QUICK_NS ? limit : MAX_QUICK_NS;
}

// Records a run. A single very slow one makes the graph slow again.
static void note_run(rn_worker_graph_t* graph, int64_t ns) {
  if (!graph->quick_ns) return;
  bool is_quick = ns <= graph->quick_ns;
  if (!is_quick && ns > 10 * graph->quick_ns) {
    graph->is_quick = false;
    graph->alike = 0;
    return;
  }
  int alike = graph->alike;
  alike = is_quick ? (alike > 0 ? alike + 1 : 1) : (alike < 0 ? alike - 1 : -1);
  if (alike >= QUICK_RUNS) graph->is_quick = true;
  if (alike <= -SLOW_RUNS) graph->is_quick = false;
  graph->alike = alike > QUICK_RUNS ? QUICK_RUNS : alike < -SLOW_RUNS ? -SLOW_RUNS : alike;
}

// The program for the shapes of |feeds|.
static rn_status_t get_program(rn_worker_graph_t* graph, const rn_tensor_t* const* feeds,
                               rn_program_t** out) {
  *out = rn_programs_find(&graph->programs, feeds);
  if (*out) return RN_OK;
  rn_mutex_lock(&graph->planning);
  rn_status_t status = rn_programs_make(&graph->programs, feeds, out);
  rn_mutex_unlock(&graph->planning);
  if (rn_ok(status) && !is_on_host(*out)) graph->quick_ns = 0;
  return status;
}

bool rn_worker_graph_is_quick(const rn_worker_graph_t* graph) {
  return __atomic_load_n((const bool*)&graph->is_quick, __ATOMIC_RELAXED);
}

static rn_status_t set_up(rn_worker_graph_t* graph, const rn_worker_graph_options_t* options,
                          rn_str_t graph_def) {
  rn_session_options_t session;
  rn_session_options_init(&session);
  RN_RETURN_IF_ERROR(rn_session_options_parse(options->config, &session));
  RN_RETURN_IF_ERROR(rn_arena_str(&graph->arena, options->config, &graph->config));
  RN_RETURN_IF_ERROR(rn_graph_create(graph->allocator, &graph->graph));
  graph->graph->keeps_misfits = true;
  rn_import_options_t import = {.allows_any_names = true};
  RN_RETURN_IF_ERROR(rn_graph_import(graph->graph, graph_def, &import, NULL));
  graph->planner = (rn_planner_t){.allocator = graph->allocator,
                                  .env = graph->env,
                                  .place = {.devices = options->devices,
                                            .device_count = options->device_count,
                                            .allow_soft_placement = session.allow_soft_placement,
                                            .mark = "_G",
                                            .env = graph->env},
                                  .kernels = options->kernels,
                                  .threads = rn_pool_threads(graph->env->pool),
                                  .calls = session.calls,
                                  .optimize = session.optimize,
                                  .precision = session.precision,
                                  .debug = rn_plan_debug_from_env()};
  rn_functions_options_t functions = {.graph = graph->graph,
                                      .planner = &graph->planner,
                                      .env = graph->env,
                                      .intra = graph->env->pool,
                                      .inter = graph->env->pool,
                                      .config = graph->config,
                                      .collectives = graph->collectives};
  RN_RETURN_IF_ERROR(rn_functions_create(&functions, graph->allocator, &graph->functions));
  graph->planner.functions = graph->functions;
  RN_RETURN_IF_ERROR(find_ends(graph, &graph->signature));
  RN_RETURN_IF_ERROR(rn_programs_init(&graph->programs, &graph->planner, graph->graph,
                                      &graph->signature, &graph->arena));
  graph->quick_ns = quick_limit(graph);
  // With feeds, their shapes decide which program is made.
  rn_program_t* program = NULL;
  return graph->feed_count ? RN_OK : get_program(graph, NULL, &program);
}

rn_status_t rn_worker_graph_create(const rn_worker_graph_options_t* options, rn_str_t graph_def,
                                   rn_worker_graph_t** out) {
  *out = NULL;
  rn_worker_graph_t* graph = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &graph));
  graph->refs = 1;
  graph->allocator = options->allocator;
  graph->env = options->env;
  graph->kept = options->kept;
  graph->collectives = options->collectives;
  rn_mutex_init(&graph->planning);
  rn_arena_init(&graph->arena, options->allocator);
  rn_status_t status = set_up(graph, options, graph_def);
  if (!rn_ok(status)) {
    rn_worker_graph_release(graph);
    return status;
  }
  *out = graph;
  return RN_OK;
}

static int32_t find_name(const rn_str_t* names, int32_t count, rn_str_t name) {
  for (int32_t i = 0; i < count; ++i)
    if (rn_str_eq(names[i], name)) return i;
  return -1;
}

static rn_status_t take_feeds(graph_running_t* running) {
  const rn_worker_graph_t* graph = running->graph;
  for (size_t i = 0; i < running->call->feed_count; ++i) {
    const rn_named_tensor_t* feed = &running->call->feeds[i];
    int32_t at = find_name(graph->feed_names, graph->feed_count, feed->name);
    if (at < 0) continue;  // no node of this program reads it
    running->feeds[at] = &feed->value;
  }
  for (int32_t i = 0; i < graph->feed_count; ++i)
    if (!running->feeds[i])
      return rn_invalid_argument("Nothing was fed for '%.*s'", RN_STR_ARGS(graph->feed_names[i]));
  return RN_OK;
}

static rn_status_t give_fetches(graph_running_t* running) {
  const rn_worker_graph_t* graph = running->graph;
  for (size_t i = 0; i < running->call->fetch_count; ++i) {
    rn_str_t name = running->call->fetch_names[i];
    int32_t at = find_name(graph->fetch_names, graph->fetch_count, name);
    if (at < 0)
      return rn_invalid_argument("The part of the step does not fetch '%.*s'", RN_STR_ARGS(name));
    RN_RETURN_IF_ERROR(rn_tensor_share(&running->fetches[at], &running->call->fetches[i]));
  }
  return RN_OK;
}

static size_t running_size(const rn_worker_graph_t* graph) {
  return sizeof(graph_running_t) + (size_t)graph->feed_count * sizeof(rn_tensor_t*);
}

static void running_release(graph_running_t* running) {
  if (--running->refs) return;
  rn_worker_graph_t* graph = running->graph;
  for (int32_t i = 0; running->fetches && i < graph->fetch_count; ++i)
    rn_tensor_clear(&running->fetches[i]);
  RN_FREE_ARRAY(graph->allocator, running->fetches, graph->fetch_count);
  if (running->step.step_resources) rn_resources_destroy(running->step.step_resources);
  rn_step_stats_clear(&running->stats);
  rn_cancel_destroy(&running->cancel);
  rn_rendezvous_release(running->step.rendezvous);
  rn_free(graph->allocator, running, running_size(graph));
  rn_worker_graph_release(graph);
}

static void on_outer_cancel(rn_cancel_entry_t* entry) {
  graph_running_t* running = RN_CONTAINER_OF(entry, graph_running_t, outer);
  running->refs++;
  rn_cancel(&running->cancel);
  rn_rendezvous_fail(running->step.rendezvous, rn_cancelled("Step was cancelled"));
  running_release(running);
}

// What the caller asks for beside the results.
static rn_status_t write_notes(graph_running_t* running) {
  rn_run_graph_t* call = running->call;
  const rn_planner_t* planner = &running->graph->planner;
  rn_ir_t* parts = NULL;
  if (!running->step.stats && !call->wants_graphs) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_step_parts_create(planner, running->graph->graph, &running->graph->whole, &parts));
  rn_status_t status = RN_OK;
  if (running->step.stats) rn_step_parts_add_stats(parts, NULL, &running->stats);
  if (call->wants_costs)
    status = rn_step_parts_write_costs(parts, planner, &running->stats, &call->costs);
  if (rn_ok(status) && call->wants_graphs)
    status = rn_step_parts_write_graphs(
        parts, planner, rn_pb_RunGraphResponse_partition_graph_field, &call->graphs);
  rn_ir_destroy(parts);
  return status;
}

static void on_ended(void* arg, rn_status_t status) {
  graph_running_t* running = arg;
  rn_run_graph_t* call = running->call;
  const rn_env_t* env = running->graph->env;
  note_run(running->graph, env->now_ns(env->self) - running->start_ns);
  if (running->is_linked) rn_cancel_remove(call->call.cancel, &running->outer);
  if (rn_ok(status)) status = give_fetches(running);
  if (rn_ok(status)) status = write_notes(running);
  if (call->wants_stats) rn_step_stats_write(&running->stats, &call->stats);
  if (!rn_ok(status)) {
    for (size_t i = 0; i < call->fetch_count; ++i) rn_tensor_clear(&call->fetches[i]);
    // Other parts may wait for values that this one will never send.
    rn_rendezvous_fail(running->step.rendezvous, rn_status_copy(status));
  }
  running_release(running);
  rn_call_done(&call->call, status);
}

static rn_status_t prepare(rn_worker_graph_t* graph, rn_run_graph_t* call,
                           rn_rendezvous_t* rendezvous, graph_running_t** out) {
  graph_running_t* running = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(graph->allocator, running_size(graph), (void**)&running));
  running->refs = 1;
  running->graph = graph;
  running->call = call;
  running->start_ns = graph->env->now_ns(graph->env->self);
  rn_worker_graph_retain(graph);
  rn_rendezvous_retain(rendezvous);
  rn_cancel_init(&running->cancel);
  rn_step_stats_init(&running->stats, graph->allocator, graph->env);
  bool is_traced = call->wants_stats || call->wants_costs;
  running->step = (rn_step_t){.id = call->step,
                              .cancel = &running->cancel,
                              .rendezvous = rendezvous,
                              .env = graph->env,
                              .pool = graph->env->pool,
                              .collectives = graph->collectives,
                              .config = graph->config,
                              .stats = is_traced ? &running->stats : NULL};
  rn_status_t status = take_feeds(running);
  if (rn_ok(status))
    status = rn_alloc_array(graph->allocator, (size_t)graph->fetch_count, sizeof(rn_tensor_t),
                            (void**)&running->fetches);
  if (!rn_ok(status)) {
    running_release(running);
    return status;
  }
  *out = running;
  return RN_OK;
}

static void start(rn_job_t* job) {
  graph_running_t* running = RN_CONTAINER_OF(job, graph_running_t, job);
  rn_worker_graph_t* graph = running->graph;
  rn_program_t* program = NULL;
  rn_status_t status = get_program(graph, running->feeds, &program);
  running->start_ns = graph->env->now_ns(graph->env->self);
  if (!rn_ok(status)) {
    on_ended(running, status);
    return;
  }
  int64_t deadline_ns = running->call->call.deadline_ns;
  rn_run_t run = {.plans = program->plans,
                  .plan_count = program->plan_count,
                  .step = &running->step,
                  .pool = rn_worker_graph_is_quick(graph) ? NULL : graph->env->pool,
                  .feeds = running->feeds,
                  .feed_count = graph->feed_count,
                  .fetches = running->fetches,
                  .fetch_count = graph->fetch_count,
                  .deadline_ns = deadline_ns == INT64_MAX ? 0 : deadline_ns,
                  .stats = running->step.stats};
  running->step.deadline_ns = run.deadline_ns;
  rn_execute_start(&run, on_ended, running);
}

void rn_worker_graph_run(rn_worker_graph_t* graph, rn_run_graph_t* call,
                         rn_rendezvous_t* rendezvous) {
  for (size_t i = 0; i < call->fetch_count; ++i) call->fetches[i] = (rn_tensor_t){0};
  graph_running_t* running = NULL;
  rn_status_t status = prepare(graph, call, rendezvous, &running);
  if (!rn_ok(status)) {
    rn_call_done(&call->call, status);
    return;
  }
  running->outer.fn = on_outer_cancel;
  if (call->call.cancel) {
    running->is_linked = rn_cancel_add(call->call.cancel, &running->outer);
    if (!running->is_linked) {
      on_ended(running, rn_cancelled("Step was cancelled"));
      return;
    }
  }
  bool is_planned = rn_programs_find(&graph->programs, running->feeds) != NULL;
  running->job.run = start;
  if (is_planned || !rn_worker_graph_is_quick(graph))
    start(&running->job);
  else
    rn_pool_submit(graph->env->pool, &running->job);
}
