// Sessions of this process: devices, the cache of programs, and running steps. See session.h.
#include "base/assert.h"
#include "base/fs_only.h"
#include "collective/collectives.h"
#include "exec/executor.h"
#include "place/homes.h"
#include "proto/config.pb.h"
#include "session/functions.h"
#include "session/graph_optimizers.h"
#include "session/impl.h"
#include "session/passes.h"
#include "session/placement.h"
#include "session/programs.h"
#include "session/step_parts.h"
#include "session/step_stats_proto.h"
#include "tensor/variant.h"
#include "wire/writer.h"

#define BUCKETS 256  // of the program cache; a power of two

// A program in the cache. Entries are added at the head of their bucket and stay until the session
// goes, so that looking one up takes no lock. As in stock, a session keeps using the graph that a
// step was first run with, even if an edge is changed later.
typedef struct local_entry_t {
  struct local_entry_t* next;
  uint64_t hash;
  rn_signature_t signature;  // copied
  rn_dtype_t* feed_types;
  rn_optimized_t optimized;  // by graph optimizers of plug-ins
  rn_planner_t planner;      // the session's, less the passes that those turn off
  rn_programs_t programs;    // made under the session's mutex
  _Atomic int64_t steps;     // counted where costs are measured
  rn_arena_t arena;
} local_entry_t;

// A step that may have to be stopped.
typedef struct local_running_t {
  rn_cancel_t* cancel;
  struct local_running_t* next;
  struct local_running_t* previous;
} local_running_t;

typedef struct local_session_t {
  rn_session_t base;  // first; its mutex guards planning and |running|, its devices are owned
  rn_session_options_t options;
  rn_env_t env;        // the caller's, with our pool if there is one
  rn_fs_only_t* only;  // Owned; the files that |env| shows; NULL: all
  rn_pool_t* pool;     // Owned; NULL if it is the caller's
  rn_pool_t* inter;    // the pool, or NULL if kernels must not run in parallel
  rn_kernel_cache_t kernels;
  rn_planner_t planner;
  rn_homes_t homes;
  rn_auto_place_t* automatic;  // Owned; NULL: placement is by rules alone
  local_entry_t* _Atomic buckets[BUCKETS];
  _Atomic int64_t next_step;
  local_running_t* running;
  rn_local_collectives_t* collectives;  // Owned; NULL if the caller gave others
} local_session_t;

static rn_status_t make_devices(local_session_t* session) {
  const rn_session_options_t* options = &session->options;
  rn_devices_init_t init = {
      .allocator = session->base.allocator,
      .env = &session->env,
      .name_prefix = options->task.size ? options->task : RN_STR("/job:localhost/replica:0/task:0"),
      .cpus = options->cpu_devices,
      .nulls = options->null_devices,
      .gpu = &options->gpu,
      .counts = &options->counts};
  rn_status_t status =
      rn_devices_create(&init, &session->base.devices, &session->base.device_count);
  session->options.task = RN_STR("");  // the caller's
  return status;
}

// Limits the files and the network that the graph may use.
static rn_status_t limit(local_session_t* session) {
  if (!session->options.is_limited) return RN_OK;
  RN_RETURN_IF_ERROR(rn_fs_only_create(&session->env, session->options.folder,
                                       session->options.allow, session->base.allocator,
                                       &session->only));
  rn_fs_only_apply(session->only, &session->env);
  session->options.folder = session->options.allow = RN_STR("");  // the caller's
  return RN_OK;
}

static rn_status_t set_up(local_session_t* session) {
  const rn_session_options_t* options = &session->options;
  RN_RETURN_IF_ERROR(limit(session));
  int intra = options->intra_threads, inter = options->inter_threads;
  int threads = intra < 1 || inter < 1 ? 0 : intra > inter ? intra : inter;
  if (!options->shares_pool) {
    RN_RETURN_IF_ERROR(rn_pool_create(session->base.allocator, threads, &session->pool));
    session->env.pool = session->pool;
  }
  session->base.step.pool = intra == 1 ? NULL : session->env.pool;
  session->inter = inter == 1 ? NULL : session->env.pool;
  RN_RETURN_IF_ERROR(make_devices(session));
  session->base.step.collectives = options->collectives;
  if (!options->collectives) {
    RN_RETURN_IF_ERROR(rn_local_collectives_create(&session->env, session->base.allocator, NULL,
                                                   &session->collectives));
    if (options->collective_nccl) rn_local_collectives_prefer_library(session->collectives);
    session->base.step.collectives = rn_local_collectives_face(session->collectives);
  }
  session->planner = (rn_planner_t){.allocator = session->base.allocator,
                                    .env = &session->env,
                                    .place = {.devices = session->base.devices,
                                              .device_count = session->base.device_count,
                                              .allow_soft_placement = options->allow_soft_placement,
                                              .log_placement = options->log_device_placement,
                                              .env = &session->env},
                                    .kernels = &session->kernels,
                                    .threads = rn_pool_threads(session->inter),
                                    .calls = options->calls,
                                    .optimize = options->optimize,
                                    .is_alone = options->shares_pool,
                                    .precision = options->precision,
                                    .debug = rn_plan_debug_from_env(),
                                    .watch = options->watch};
  rn_functions_options_t functions = {.graph = session->base.graph,
                                      .planner = &session->planner,
                                      .env = &session->env,
                                      .intra = session->base.step.pool,
                                      .inter = session->inter,
                                      .config = session->base.step.config,
                                      .collectives = session->base.step.collectives};
  RN_RETURN_IF_ERROR(
      rn_functions_create(&functions, session->base.allocator, &session->base.functions));
  session->planner.functions = session->base.functions;
  session->planner.calls.prunes_branches = true;
  rn_homes_init(&session->homes, session->base.allocator, session->base.graph,
                &session->planner.calls);
  session->planner.place.homes = &session->homes;
  RN_RETURN_IF_ERROR(rn_placement_create(session->base.step.config, &session->env,
                                         session->base.allocator, &session->automatic));
  if (session->automatic && !session->automatic->lanes)
    session->automatic->lanes = intra == 1 ? rn_pool_threads(session->inter) : 1;
  session->planner.place.automatic = session->automatic;
  return RN_OK;
}

static rn_status_t copy_config(local_session_t* session, rn_str_t config) {
  if (config.size == 0) return RN_OK;
  char* copy = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(session->base.allocator, config, &copy));
  session->base.step.config = rn_str_n(copy, config.size);
  return RN_OK;
}

static rn_status_t local_devices(rn_session_t* session, rn_device_t*** out, int* out_count) {
  *out = session->devices;
  *out_count = session->device_count;
  return RN_OK;
}

static rn_status_t local_close(rn_session_t* session) {
  rn_mutex_lock(&session->mutex);
  for (local_running_t* step = ((local_session_t*)session)->running; step; step = step->next)
    rn_cancel(step->cancel);
  rn_mutex_unlock(&session->mutex);
  return RN_OK;
}

static void entry_destroy(local_session_t* session, local_entry_t* entry) {
  rn_programs_clear(&entry->programs);
  rn_graph_release(entry->optimized.graph);
  rn_arena_clear(&entry->arena);
  RN_FREE(session->base.allocator, entry);
}

static void local_destroy(rn_session_t* base) {
  local_session_t* session = (local_session_t*)base;
  RN_ASSERT(!session->running);  // invariant 40: closing waited for the steps
  for (int b = 0; b < BUCKETS; ++b) {
    for (local_entry_t* entry = session->buckets[b]; entry;) {
      local_entry_t* next = entry->next;
      entry_destroy(session, entry);
      entry = next;
    }
  }
  rn_kernel_cache_clear(&session->kernels);
  rn_homes_clear(&session->homes);
  rn_auto_place_destroy(session->automatic);
  // Resources may hold functions, and functions hold kernels of the devices.
  for (int i = 0; i < session->base.device_count; ++i)
    rn_resources_clear(session->base.devices[i]->resources, (rn_str_t){0});
  rn_functions_close(session->base.functions);
  rn_local_collectives_destroy(session->collectives);
  rn_devices_destroy(session->base.allocator, session->base.devices, session->base.device_count);
  rn_pool_destroy(session->pool);
  rn_fs_only_destroy(session->only);
  rn_str_t config = base->step.config;
  if (config.size) rn_free(base->allocator, (char*)config.data, config.size + 1);
  rn_session_clear(base);
  RN_FREE(base->allocator, session);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value * UINT64_C(0x9E3779B97F4A7C15);
  return (hash << 29 | hash >> 35) * UINT64_C(0xBF58476D1CE4E5B9);
}

static uint64_t hash_signature(const rn_signature_t* s) {
  uint64_t hash = mix((uint64_t)s->feed_count << 40 | (uint64_t)s->fetch_count << 20,
                      (uint64_t)s->target_count);
  for (int32_t i = 0; i < s->feed_count; ++i)
    hash = mix(hash, (uintptr_t)s->feeds[i].node + (uint64_t)s->feeds[i].index);
  for (int32_t i = 0; i < s->fetch_count; ++i)
    hash = mix(hash, (uintptr_t)s->fetches[i].node + (uint64_t)s->fetches[i].index);
  for (int32_t i = 0; i < s->target_count; ++i) hash = mix(hash, (uintptr_t)s->targets[i]);
  for (int32_t i = 0; i < s->done_count; ++i) hash = mix(hash, (uintptr_t)s->done[i] + 1);
  return hash ^ hash >> 32;
}

static local_entry_t* find_entry(local_session_t* session, uint64_t hash,
                                 const rn_signature_t* signature) {
  for (local_entry_t* entry = session->buckets[hash & (BUCKETS - 1)]; entry; entry = entry->next)
    if (entry->hash == hash && rn_signature_eq(&entry->signature, signature)) return entry;
  return NULL;
}

// A feed must have the type of its edge but may have any shape, as in stock; kernels reject shapes
// that they cannot use.
static rn_status_t describe_feeds(local_entry_t* entry) {
  const rn_signature_t* signature = &entry->signature;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&entry->arena, (size_t)signature->feed_count, &entry->feed_types));
  for (int32_t i = 0; i < signature->feed_count; ++i) {
    rn_edge_t feed = signature->feeds[i];
    entry->feed_types[i] = rn_dtype_base(feed.node->outputs[feed.index].dtype);
  }
  return RN_OK;
}

static rn_status_t check_feed_edges(rn_graph_t* graph, const rn_signature_t* signature) {
  for (int32_t i = 0; i < signature->feed_count; ++i)
    RN_RETURN_IF_ERROR(rn_ir_check_edge(graph, signature->feeds[i], "feed"));
  return RN_OK;
}

static rn_status_t fill_entry(local_session_t* session, const rn_signature_t* signature,
                              local_entry_t* entry) {
  RN_RETURN_IF_ERROR(check_feed_edges(session->base.graph, signature));
  RN_RETURN_IF_ERROR(rn_signature_copy(&entry->arena, signature, &entry->signature));
  RN_RETURN_IF_ERROR(describe_feeds(entry));
  bool optimizes = session->options.optimize && !session->options.no_plugin_optimizers;
  rn_optimized_t* made = &entry->optimized;
  if (optimizes)
    RN_RETURN_IF_ERROR(rn_graph_optimize(&session->planner, session->base.graph, &entry->signature,
                                         &entry->arena, made));
  entry->planner = session->planner;
  entry->planner.off = made->off;
  return rn_programs_init(&entry->programs, &entry->planner,
                          made->graph ? made->graph : session->base.graph,
                          made->graph ? &made->signature : &entry->signature, &entry->arena);
}

static rn_status_t make_entry_locked(local_session_t* session, uint64_t hash,
                                     const rn_signature_t* signature, local_entry_t** out) {
  *out = find_entry(session, hash, signature);  // another thread may have been faster
  if (*out) return RN_OK;
  local_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(session->base.allocator, &entry));
  rn_arena_init(&entry->arena, session->base.allocator);
  entry->hash = hash;
  rn_status_t status = fill_entry(session, signature, entry);
  if (!rn_ok(status)) {
    entry_destroy(session, entry);
    return status;
  }
  entry->next = session->buckets[hash & (BUCKETS - 1)];
  session->buckets[hash & (BUCKETS - 1)] = entry;
  *out = entry;
  return RN_OK;
}

static bool is_right_feed(const local_entry_t* entry, int32_t i, const rn_tensor_t* feed) {
  return feed && feed->dtype == entry->feed_types[i];
}

// TensorFlow numbers feeds in the order of their names, and names the first that is wrong.
static rn_status_t wrong_feed(const local_entry_t* entry, const rn_tensor_t* const* feeds) {
  const rn_edge_t* edges = entry->signature.feeds;
  int32_t count = entry->signature.feed_count, first = -1, number = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (is_right_feed(entry, i, feeds[i])) continue;
    if (!feeds[i] || !rn_tensor_is_set(feeds[i]))
      return rn_invalid_argument("The value fed to '%s' is NULL", edges[i].node->name.data);
    if (first < 0 || rn_edge_compare(edges[i], edges[first]) < 0) first = i;
  }
  for (int32_t i = 0; i < count; ++i) number += rn_edge_compare(edges[i], edges[first]) < 0;
  return rn_invalid_argument("Expects arg[%d] to be %s but %s is provided", number,
                             rn_dtype_name(entry->feed_types[first]),
                             rn_dtype_name(feeds[first]->dtype));
}

static rn_status_t check_feeds(const local_entry_t* entry, const rn_tensor_t* const* feeds) {
  for (int32_t i = 0; i < entry->signature.feed_count; ++i)
    if (!is_right_feed(entry, i, feeds[i])) return wrong_feed(entry, feeds);
  return RN_OK;
}

// The program for |signature| and the shapes of |feeds|, planned now if there is none yet.
static rn_status_t get_program(local_session_t* session, const rn_signature_t* signature,
                               const rn_tensor_t* const* feeds, bool* out_is_measured,
                               rn_program_t** out) {
  uint64_t hash = hash_signature(signature);
  local_entry_t* entry = find_entry(session, hash, signature);
  rn_status_t status = RN_OK;
  if (!entry) {
    rn_mutex_lock(&session->base.mutex);
    status = make_entry_locked(session, hash, signature, &entry);
    rn_mutex_unlock(&session->base.mutex);
    RN_RETURN_IF_ERROR(status);
  }
  RN_RETURN_IF_ERROR(check_feeds(entry, feeds));
  if (__builtin_expect(session->options.cost_every > 0, 0))
    *out_is_measured = rn_session_measures(&session->options, entry->steps++);
  *out = rn_programs_find(&entry->programs, feeds);
  if (*out) return RN_OK;
  rn_mutex_lock(&session->base.mutex);
  status = rn_programs_make(&entry->programs, feeds, out);
  rn_mutex_unlock(&session->base.mutex);
  return status;
}

static void link_running(local_session_t* session, local_running_t* step) {
  rn_mutex_lock(&session->base.mutex);
  step->next = session->running;
  if (step->next) step->next->previous = step;
  session->running = step;
  if (rn_is_cancelled(&session->base.closing)) rn_cancel(step->cancel);
  rn_mutex_unlock(&session->base.mutex);
}

static void unlink_running(local_session_t* session, local_running_t* step) {
  rn_mutex_lock(&session->base.mutex);
  if (step->previous)
    step->previous->next = step->next;
  else
    session->running = step->next;
  if (step->next) step->next->previous = step->previous;
  rn_mutex_unlock(&session->base.mutex);
}

// The cancellation of a step that may wait, or whose parts must stop each other. The caller's
// triggers it through |outer|.
typedef struct own_cancel_t {
  rn_cancel_entry_t outer;  // first
  rn_cancel_t cancel;
  local_running_t running;
} own_cancel_t;

static void pass_cancel_on(rn_cancel_entry_t* entry) { rn_cancel(&((own_cancel_t*)entry)->cancel); }

static rn_status_t execute_cancellable(local_session_t* session, rn_run_t* run,
                                       rn_cancel_t* outer) {
  own_cancel_t own = {.outer = {.fn = pass_cancel_on}};
  rn_cancel_init(&own.cancel);
  own.running.cancel = run->step->cancel = &own.cancel;
  link_running(session, &own.running);
  if (outer && !rn_cancel_add(outer, &own.outer)) rn_cancel(&own.cancel);
  rn_status_t status = rn_execute(run);
  if (outer) rn_cancel_remove(outer, &own.outer);
  unlink_running(session, &own.running);
  rn_cancel_destroy(&own.cancel);
  return status;
}

static int64_t deadline_after(const local_session_t* session, int64_t timeout_ms) {
  int64_t ns, deadline;
  bool ok = rn_mul_i64_ok(timeout_ms, 1000000, &ns) &&
            rn_add_i64_ok(session->env.now_ns(session->env.self), ns, &deadline);
  return ok ? deadline : INT64_MAX;
}

// What the client gets may outlive the session and its devices.
static rn_status_t bring_to_host(rn_tensor_t* fetches, int32_t count) {
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    if (fetches[i].dtype == RN_VARIANT) status = rn_variants_to_host(&fetches[i], 0);
  for (int32_t i = 0; !rn_ok(status) && i < count; ++i) rn_tensor_clear(&fetches[i]);
  return status;
}

static rn_status_t run_program(local_session_t* session, rn_program_t* program,
                               const rn_signature_t* signature, const rn_tensor_t* const* feeds,
                               rn_tensor_t* fetches, const rn_step_options_t* options,
                               rn_step_stats_t* stats) {
  rn_cancel_t* outer = options ? options->cancel : NULL;
  bool is_quiet = options && options->is_quiet;
  rn_step_t step = session->base.step;
  if (is_quiet) step.pool = NULL;
  step.id = session->next_step++;
  rn_status_t status = RN_OK;
  if (program->exchanges) status = rn_rendezvous_create(session->base.allocator, &step.rendezvous);
  int64_t timeout_ms =
      options && options->timeout_ms > 0 ? options->timeout_ms : session->options.timeout_ms;
  rn_run_t run = {.plans = program->plans,
                  .plan_count = program->plan_count,
                  .step = &step,
                  .pool = is_quiet ? NULL : session->inter,
                  .feeds = feeds,
                  .feed_count = signature->feed_count,
                  .fetches = fetches,
                  .fetch_count = signature->fetch_count,
                  .stats = stats};
  if (timeout_ms > 0) run.deadline_ns = deadline_after(session, timeout_ms);
  step.deadline_ns = run.deadline_ns;
  step.stats = run.stats;
  if (rn_ok(status))
    status =
        program->is_plain && !outer ? rn_execute(&run) : execute_cancellable(session, &run, outer);
  if (step.rendezvous) rn_rendezvous_release(step.rendezvous);
  if (step.step_resources) rn_resources_destroy(step.step_resources);
  return rn_ok(status) && !program->is_plain ? bring_to_host(fetches, signature->fetch_count)
                                             : status;
}

// Writes what a client that asks for metadata gets beside the statistics themselves.
static rn_status_t write_metadata(local_session_t* session, const rn_signature_t* signature,
                                  const rn_tensor_t* const* feeds, bool is_measured,
                                  const rn_step_options_t* options, rn_step_stats_t* stats) {
  bool wants_graphs = options->wants_graphs && options->metadata;
  if (!stats && !wants_graphs) return RN_OK;
  rn_ir_t* parts = NULL;
  rn_strbuf_t* out = options->metadata;
  RN_RETURN_IF_ERROR(
      rn_step_parts_create(&session->planner, session->base.graph, signature, &parts));
  rn_status_t status = RN_OK;
  if (stats) rn_step_parts_add_stats(parts, feeds, stats);
  if (is_measured) {
    size_t costs = rn_pb_begin(out, rn_pb_RunMetadata_cost_graph_field);
    status = rn_step_parts_write_costs(parts, &session->planner, stats, out);
    rn_pb_end(out, costs);
  }
  if (rn_ok(status) && wants_graphs)
    status = rn_step_parts_write_graphs(parts, &session->planner,
                                        rn_pb_RunMetadata_partition_graphs_field, out);
  rn_ir_destroy(parts);
  return status;
}

// Runs a step whose costs are measured though the client does not trace it.
static rn_status_t run_measured(local_session_t* session, rn_program_t* program,
                                const rn_signature_t* signature, const rn_tensor_t* const* feeds,
                                rn_tensor_t* fetches, const rn_step_options_t* options) {
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, session->base.allocator, &session->env);
  rn_status_t status = run_program(session, program, signature, feeds, fetches, options, &stats);
  if (rn_ok(status)) status = write_metadata(session, signature, feeds, true, options, &stats);
  size_t field = rn_pb_begin(options->metadata, rn_pb_RunMetadata_step_stats_field);
  rn_step_stats_write(&stats, options->metadata);
  rn_pb_end(options->metadata, field);
  rn_step_stats_clear(&stats);
  return status;
}

static rn_status_t local_run(rn_session_t* base, const rn_signature_t* signature,
                             const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                             const rn_step_options_t* options) {
  local_session_t* session = (local_session_t*)base;
  rn_program_t* program = NULL;
  bool is_measured = false;
  RN_RETURN_IF_ERROR(get_program(session, signature, feeds, &is_measured, &program));
  is_measured = is_measured && options && options->metadata;
  rn_step_stats_t* stats = options ? options->stats : NULL;
  if (is_measured && !stats)
    return run_measured(session, program, signature, feeds, fetches, options);
  RN_RETURN_IF_ERROR(run_program(session, program, signature, feeds, fetches, options, stats));
  if (!options) return RN_OK;
  return write_metadata(session, signature, feeds, is_measured, options, stats);
}

static rn_status_t local_plan(rn_session_t* base, const rn_signature_t* signature,
                              const rn_tensor_t* const* feeds) {
  local_session_t* session = (local_session_t*)base;
  local_entry_t* entry = NULL;
  rn_program_t* program = NULL;
  rn_mutex_lock(&base->mutex);
  rn_status_t status = make_entry_locked(session, hash_signature(signature), signature, &entry);
  if (rn_ok(status) && feeds) status = check_feeds(entry, feeds);
  if (rn_ok(status))
    status = feeds ? rn_programs_make(&entry->programs, feeds, &program)
                   : rn_programs_plan(&entry->programs);
  rn_mutex_unlock(&base->mutex);
  return status;
}

static const rn_session_vtable_t vtable = {.run = local_run,
                                           .plan = local_plan,
                                           .devices = local_devices,
                                           .close = local_close,
                                           .destroy = local_destroy};

rn_status_t rn_session_create(rn_graph_t* graph, const rn_session_options_t* options,
                              const rn_env_t* env, rn_allocator_t allocator,
                              rn_session_t** out_session) {
  *out_session = NULL;
  local_session_t* session = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &session));
  session->options = *options;
  session->options.config = RN_STR("");
  session->env = *env;
  rn_session_init(&session->base, &vtable, graph, &session->env, allocator);
  rn_kernel_cache_init(&session->kernels, allocator);
  rn_status_t status = copy_config(session, options->config);
  if (rn_ok(status)) status = set_up(session);
  if (!rn_ok(status)) {
    rn_session_destroy(&session->base);
    return status;
  }
  *out_session = &session->base;
  return RN_OK;
}
