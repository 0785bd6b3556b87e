// See server.h.
#include "serve/server.h"

#include "base/machine.h"
#include "net/rpc_server.h"
#include "net/tensor_codec.h"
#include "serve/front/front.h"
#include "serve/front/health.h"
#include "serve/front/oip_rest.h"
#include "serve/front/request_log.h"
#include "serve/front/request_trace.h"
#include "serve/front/roles.h"
#include "serve/front/shared_memory.h"
#include "serve/front/warmup.h"
#include "serve/model/container.h"
#include "serve/model/loader.h"
#include "serve/model/models.h"
#include "serve/select/apps.h"
#include "serve/select/store_log.h"
#include "serve/select/store_redis.h"

#define MAX_LOOPS 64
#define RELOAD_NS INT64_C(600000000000)  // how long a reload waits for its models
#define MAX_STATE ((size_t)1 << 30)  // bytes of what applications learn, where they are not saved
#define LOADS 4                      // calls that wait for models at a time
#define GPU_BATCHES 32               // on GPUs at a time, of all models
#define MAX_DOORS 1024
#define MAX_ALL_HELD ((size_t)8 << 30)  // bytes of requests in memory, of all connections of a port
// How long a gRPC client may leave its call half sent, or a reply unread.
#define HALF_NS (30 * INT64_C(1000000000))
#define STALL_NS (60 * INT64_C(1000000000))

struct rn_model_server_t {
  rn_model_server_options_t options;
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_env_t env;            // with the pool
  rn_pool_t* pool;         // the threads within an op
  rn_pool_t* runners;      // run batches, and read and write long messages
  rn_pool_t* gpu_runners;  // run batches on GPUs; started when there is one
  rn_pool_t* loads;        // wait for models
  rn_pool_t* sessions;     // run steps of SessionRun
  rn_shares_t* shares;     // whose batch runs next
  rn_loop_t* loops[MAX_LOOPS];
  size_t loop_count;
  rn_loop_t* clock;     // ends batches at their deadlines, also those that block the other loops
  rn_tokens_t* tokens;  // Owned; NULL: there are none
  rn_metrics_t* metrics;
  rn_health_watchers_t* health;
  rn_predict_cache_t* cache;
  rn_request_log_t* log;
  rn_request_trace_t* trace;
  rn_shared_memory_t* shared_memory;
  rn_containers_t* containers;
  rn_loader_t* loader;
  rn_models_t* models;
  rn_state_store_t* store;
  rn_redis_queries_t* queries;
  rn_apps_t* apps;
  rn_front_t front;
  rn_http_server_t *http, *rest;  // |http|: connections that other ports accepted
  rn_rpc_server_t *rpc, *local;   // at |address| and at |socket_path|
};

// The protocols, in the order in which they are asked.
static const rn_http_route_fn_t http_routes[] = {rn_page_route, rn_rest_route, rn_oip_rest_route,
                                                 rn_clipper_route};
static const rn_rpc_route_fn_t rpc_routes[] = {rn_prediction_service_route,
                                               rn_model_service_route,
                                               rn_session_service_route,
                                               rn_oip_rpc_route,
                                               rn_health_route,
                                               rn_reflection_route};

static void on_http(void* self, rn_http_in_t* request) {
  rn_model_server_t* server = self;
  rn_role_t role =
      rn_roles_of(server->tokens, rn_http_header(request, "authorization"), request->is_local);
  for (size_t i = 0; i < sizeof http_routes / sizeof *http_routes; ++i)
    if (http_routes[i](&server->front, request, role)) return;
  rn_front_reply_error(&server->front, request,
                       rn_not_found("There is nothing at %.*s", RN_STR_ARGS(request->path)), 0);
}

static void on_rpc(void* self, rn_rpc_in_t* call) {
  rn_model_server_t* server = self;
  rn_role_t role =
      rn_roles_of(server->tokens, rn_rpc_header(call, "authorization"), call->is_local);
  for (size_t i = 0; i < sizeof rpc_routes / sizeof *rpc_routes; ++i)
    if (rpc_routes[i](&server->front, call, role)) return;
  rn_message_t none;
  rn_message_init(&none, server->allocator);
  rn_str_t path = rn_rpc_path(call);
  rn_rpc_reply(call, rn_unimplemented("There is no method %.*s", RN_STR_ARGS(path)), &none);
}

static rn_status_t make_loops(rn_model_server_t* server) {
  int wanted = server->options.loops;
  if (!wanted) wanted = (rn_pool_threads(server->pool) + 1) / 2;
  while (server->loop_count < (size_t)wanted && server->loop_count < MAX_LOOPS) {
    RN_RETURN_IF_ERROR(
        rn_loop_create(&server->env, server->allocator, &server->loops[server->loop_count]));
    server->loop_count++;
  }
  return RN_OK;
}

// On the thread that loads |backend|. Time is counted for versions that have requests.
static rn_status_t warm_up(void* self, rn_backend_t* backend, rn_str_t model, const char* folder) {
  rn_model_server_t* server = self;
  rn_warmup_options_t options = {.iterations = server->options.warmup_iterations,
                                 .env = &server->env,
                                 .allocator = server->allocator};
  int64_t begun = server->env.now_ns(server->env.self);
  int count = 0;
  rn_status_t status = rn_warmup_run(&options, backend, folder, &count);
  if (!count) return status;
  rn_metric_series_t* series =
      rn_metrics_series(server->metrics, RN_METRIC_WARMUP_LATENCY, model,
                        rn_ok(status) ? RN_STR("OK") : RN_STR("FAILED"), RN_STR(""));
  rn_series_add(series, (double)(server->env.now_ns(server->env.self) - begun) / 1e3);
  return status;
}

// rn_batcher_options_t.defer: on the loop whose thread this is.
static bool defer(void* self, rn_job_t* job) {
  rn_model_server_t* server = self;
  for (size_t i = 0; i < server->loop_count; ++i)
    if (rn_loop_is_here(server->loops[i])) return rn_loop_defer(server->loops[i], job);
  return false;
}

static void start_runner(void* self, rn_job_t* job) {
  rn_model_server_t* server = self;
  rn_pool_submit(server->runners, job);
}

static rn_status_t make_shares(rn_model_server_t* server) {
  rn_shares_options_t options = {.processors = rn_pool_threads(server->pool),
                                 .threads = rn_pool_threads(server->runners) - 1,
                                 .start = start_runner,
                                 .self = server,
                                 .timers = rn_loop_timers(server->clock),
                                 .weights = server->options.cpu_shares,
                                 .env = &server->env,
                                 .allocator = server->allocator};
  return rn_shares_create(&options, &server->shares);
}

static rn_status_t make_models(rn_model_server_t* server) {
  const rn_model_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(rn_containers_create(&server->env, server->allocator, &server->containers));
  rn_loader_options_t loader = {.tags = options->tags,
                                .session = options->session,
                                .replicas = options->replicas,
                                .gpus = options->model_gpus,
                                .max_memory = options->model_memory,
                                .isolates = options->isolates,
                                .containers = server->containers,
                                .program = options->program,
                                .warm_up = options->warms_up ? warm_up : NULL,
                                .warm_up_self = server,
                                .env = &server->env,
                                .allocator = server->allocator};
  RN_RETURN_IF_ERROR(rn_loader_create(&loader, &server->loader));
  rn_models_options_t models = {.load = rn_loader_load,
                                .self = server->loader,
                                .changed = rn_health_watchers_wake,
                                .changed_self = server->health,
                                .batching = options->batching,
                                .cache = server->cache,
                                .metrics = server->metrics,
                                .poll_ns = options->poll_ns,
                                .max_load_retries = options->max_load_retries,
                                .retry_ns = options->retry_ns,
                                .load_threads = options->load_threads ? options->load_threads : 1,
                                .unloads_first = options->unloads_first,
                                .labels_unavailable = options->labels_unavailable,
                                .keeps_emptied = options->keeps_emptied,
                                .env = &server->env,
                                .allocator = server->allocator};
  models.batching.pool = server->runners;
  models.batching.shares = server->shares;
  models.batching.device_pool = server->gpu_runners;
  models.batching.defer = defer;
  models.batching.defer_self = server;
  models.batching.timers = rn_loop_timers(server->loops[0]);
  models.batching.watch = rn_loop_timers(server->clock);
  models.batching.env = &server->env;
  models.batching.allocator = server->allocator;
  return rn_models_create(&models, &server->models);
}

static rn_status_t open_store(rn_model_server_t* server) {
  const rn_model_server_options_t* options = &server->options;
  rn_store_redis_options_t redis = {.config = options->redis,
                                    .metrics = server->metrics,
                                    .env = &server->env,
                                    .allocator = server->allocator};
  if (options->redis) return rn_store_redis_open(&redis, &server->store);
  rn_store_log_options_t log = {.folder = options->state_folder,
                                .metrics = server->metrics,
                                .env = &server->env,
                                .allocator = server->allocator};
  if (options->state_folder) return rn_store_log_open(&log, &server->store);
  return rn_state_store_create_memory(&server->env, server->allocator, MAX_STATE, &server->store);
}

static rn_status_t open_queries(rn_model_server_t* server) {
  rn_redis_queries_options_t options = {.config = server->options.redis,
                                        .claimed = rn_app_judged,
                                        .metrics = server->metrics,
                                        .env = &server->env,
                                        .allocator = server->allocator};
  return options.config ? rn_redis_queries_open(&options, &server->queries) : RN_OK;
}

static rn_status_t make_apps(rn_model_server_t* server) {
  RN_RETURN_IF_ERROR(open_store(server));
  RN_RETURN_IF_ERROR(open_queries(server));
  rn_apps_options_t apps = {.find = rn_apps_find_model,
                            .self = server->models,
                            .store = server->store,
                            .queries = server->queries,
                            .timers = rn_loop_timers(server->loops[0]),
                            .metrics = server->metrics,
                            .env = &server->env,
                            .allocator = server->allocator};
  RN_RETURN_IF_ERROR(rn_apps_create(&apps, &server->apps));
  return server->options.apps_file ? rn_apps_read_file(server->apps, server->options.apps_file)
                                   : RN_OK;
}

static rn_status_t put_in_force(rn_model_server_t* server,
                                const rn_pb_serving_ModelServerConfig_t* config) {
  RN_RETURN_IF_ERROR(rn_request_log_configure(server->log, config));
  return rn_models_configure(server->models, config);
}

static rn_status_t reload(void* self, const rn_pb_serving_ModelServerConfig_t* config) {
  return rn_model_server_reload(self, config);
}

static void set_front(rn_model_server_t* server) {
  rn_front_t* front = &server->front;
  front->models = server->models;
  front->apps = server->apps;
  front->metrics = server->metrics;
  front->health = server->health;
  front->cache = server->cache;
  front->log = server->log;
  front->trace = server->trace;
  front->log_settings = server->options.log_settings;
  front->shared_memory = server->shared_memory;
  front->env = &server->env;
  front->pool = server->runners;
  front->loads = server->loads;
  front->sessions = server->sessions;
  front->timers = rn_loop_timers(server->loops[0]);
  front->allocator = server->allocator;
  front->rest_timeout_ns = server->options.rest_timeout_ns;
  front->has_cors = server->options.has_cors;
  front->checks_methods = server->options.checks_methods;
  front->metrics_path = server->options.metrics_path;
  front->begun_ns = server->env.now_ns(server->env.self);
  front->self = server;
  front->reload = reload;
}

// Connections that have sent nothing yet; beyond it, and beyond the limits on others, the one that
// was silent for the longest is closed, so that silent ones lock no client out.
static size_t max_doors(void) {
  size_t part = rn_machine_descriptors() / 8 + 1;
  return part < MAX_DOORS ? part : MAX_DOORS;
}

static rn_status_t open_rpc(rn_model_server_t* server, const char* address, rn_rpc_server_t** out) {
  rn_rpc_server_options_t options = {.loop = server->loops[0],
                                     .loops = server->loops,
                                     .loop_count = server->loop_count,
                                     .allocator = server->allocator,
                                     .address = address,
                                     .handle = on_rpc,
                                     .streams = rn_front_streams,
                                     .self = server,
                                     .align = rn_align_content,
                                     .keeps_headers = true,
                                     .max_all_held = MAX_ALL_HELD,
                                     .max_connections = rn_machine_descriptors() / 4,
                                     .max_doors = max_doors(),
                                     .half_ns = HALF_NS,
                                     .stall_ns = STALL_NS,
                                     .tls = server->options.tls,
                                     .http = server->http};
  return rn_rpc_server_create(&options, out);
}

static rn_status_t open_http(rn_model_server_t* server, const char* address,
                             rn_http_server_t** out) {
  rn_http_server_options_t options = {.loop = server->loops[0],
                                      .loops = server->loops,
                                      .loop_count = server->loop_count,
                                      .allocator = server->allocator,
                                      .address = address,
                                      .handle = on_http,
                                      .self = server,
                                      .align = rn_oip_rest_align,
                                      .tls = server->options.tls,
                                      .max_all = MAX_ALL_HELD,
                                      .max_connections = rn_machine_descriptors() / 2};
  return rn_http_server_create(&options, out);
}

rn_status_t rn_model_server_open(rn_model_server_t* server) {
  const rn_model_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(open_http(server, NULL, &server->http));
  if (options->address) RN_RETURN_IF_ERROR(open_rpc(server, options->address, &server->rpc));
  if (options->rest_address)
    RN_RETURN_IF_ERROR(open_http(server, options->rest_address, &server->rest));
  if (!options->socket_path) return RN_OK;
  rn_str_t address;
  RN_RETURN_IF_ERROR(rn_arena_printf(&server->arena, &address, "unix:%s", options->socket_path));
  return open_rpc(server, address.data, &server->local);
}

static rn_status_t set_up(rn_model_server_t* server) {
  const rn_model_server_options_t* options = &server->options;
  rn_allocator_t allocator = server->allocator;
  RN_RETURN_IF_ERROR(rn_roles_read(&server->env, options->token_file, allocator, &server->tokens));
  RN_RETURN_IF_ERROR(rn_metrics_create(allocator, &server->metrics));
  RN_RETURN_IF_ERROR(rn_health_watchers_create(allocator, &server->health));
  RN_RETURN_IF_ERROR(rn_request_log_create(&server->env, server->metrics, allocator, &server->log));
  const rn_trace_options_t trace = {.file = options->trace_file,
                                    .initial = options->trace,
                                    .env = &server->env,
                                    .allocator = allocator};
  RN_RETURN_IF_ERROR(rn_request_trace_create(&trace, &server->trace));
  RN_RETURN_IF_ERROR(rn_pool_create(allocator, 0, &server->pool));
  server->env.pool = server->pool;
  // More runners than processors: batches that take long, or hang, must not keep others waiting.
  RN_RETURN_IF_ERROR(
      rn_pool_create(allocator, 2 * rn_pool_threads(server->pool) + 3, &server->runners));
  RN_RETURN_IF_ERROR(rn_pool_create(allocator, GPU_BATCHES + 1, &server->gpu_runners));
  RN_RETURN_IF_ERROR(rn_pool_create(allocator, LOADS + 1, &server->loads));
  RN_RETURN_IF_ERROR(
      rn_pool_create(allocator, rn_pool_threads(server->pool) + 1, &server->sessions));
  // Models that compute all the time get out of the way of the threads of connections.
  rn_pool_start_patient(server->pool);
  rn_pool_start_patient(server->runners);
  rn_pool_start_patient(server->sessions);
  RN_RETURN_IF_ERROR(make_loops(server));
  RN_RETURN_IF_ERROR(rn_loop_create(&server->env, allocator, &server->clock));
  rn_predict_cache_options_t cache = {.max_bytes = options->cache_bytes,
                                      .timers = rn_loop_timers(server->loops[0]),
                                      .env = &server->env,
                                      .allocator = allocator};
  if (options->cache_bytes) RN_RETURN_IF_ERROR(rn_predict_cache_create(&cache, &server->cache));
  RN_RETURN_IF_ERROR(rn_shared_memory_create(allocator, &server->shared_memory));
  RN_RETURN_IF_ERROR(make_shares(server));
  RN_RETURN_IF_ERROR(make_models(server));
  RN_RETURN_IF_ERROR(make_apps(server));
  set_front(server);
  return put_in_force(server, options->config);
}

rn_status_t rn_model_server_create(const rn_model_server_options_t* options,
                                   rn_model_server_t** out) {
  *out = NULL;
  rn_model_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->options = *options;
  server->allocator = options->allocator;
  server->env = *options->env;
  rn_arena_init(&server->arena, options->allocator);
  rn_status_t status = set_up(server);
  if (!rn_ok(status)) {
    rn_model_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

rn_status_t rn_model_server_wait(rn_model_server_t* server, int64_t deadline_ns) {
  RN_RETURN_IF_ERROR(rn_models_wait(server->models, deadline_ns));
  server->front.is_ready = true;
  rn_health_watchers_wake(server->health);
  rn_loader_be_quiet(server->loader);
  return RN_OK;
}

// "a: no versions in /models/a"
static void add_reason(const rn_model_info_t* info, rn_strbuf_t* out) {
  for (int i = 0; i < info->version_count; ++i)
    if (info->versions[i].state == RN_MODEL_AVAILABLE) return;
  rn_strbuf_printf(out, "%s%.*s: ", out->size ? "; " : "", RN_STR_ARGS(info->name));
  if (!info->version_count)
    rn_strbuf_printf(out, "no versions in %.*s", RN_STR_ARGS(info->base_path));
  else
    rn_strbuf_printf(out, "version %lld: %s", (long long)info->versions[0].number,
                     info->versions[0].message);
}

// What a check has found so far.
typedef struct server_check_t {
  const rn_model_info_t* infos;
  int count;
  rn_strbuf_t reasons;
} server_check_t;

static bool has_model(const server_check_t* check, rn_str_t name) {
  for (int i = 0; i < check->count; ++i)
    if (rn_str_eq(check->infos[i].name, name)) return true;
  return false;
}

// "application b: there is no model a"
static void check_app(void* arg, rn_app_t* app) {
  server_check_t* check = arg;
  const rn_pb_runnel_Application_t* definition = rn_app_definition(app);
  for (uint32_t i = 0; i < definition->model.count; ++i) {
    const rn_pb_runnel_ApplicationModel_t* model = &definition->model.items[i];
    if (model->is_unlinked || has_model(check, model->name)) continue;
    rn_strbuf_printf(&check->reasons, "%sapplication %.*s: there is no model %.*s",
                     check->reasons.size ? "; " : "", RN_STR_ARGS(definition->name),
                     RN_STR_ARGS(model->name));
  }
}

rn_status_t rn_model_server_check(rn_model_server_t* server) {
  RN_RETURN_IF_ERROR(rn_models_poll(server->models));
  rn_arena_t arena;
  rn_arena_init(&arena, server->allocator);
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_status_t status = rn_models_info(server->models, RN_STR(""), &arena, &infos, &count);
  server_check_t check = {.infos = infos, .count = count};
  rn_strbuf_init(&check.reasons, server->allocator);
  for (int i = 0; i < count; ++i) add_reason(&infos[i], &check.reasons);
  if (rn_ok(status)) status = rn_apps_each(server->apps, check_app, &check);
  if (rn_ok(status) && check.reasons.size)
    status = rn_status_from_buf(RN_CODE_NOT_FOUND, &check.reasons);
  rn_models_info_clear(infos, count);
  rn_strbuf_clear(&check.reasons);
  rn_arena_clear(&arena);
  return status;
}

int rn_model_server_port(const rn_model_server_t* server) {
  return server->rpc ? rn_rpc_server_port(server->rpc) : 0;
}

int rn_model_server_rest_port(const rn_model_server_t* server) {
  return server->rest ? rn_http_server_port(server->rest) : 0;
}

rn_status_t rn_model_server_reload(rn_model_server_t* server,
                                   const rn_pb_serving_ModelServerConfig_t* config) {
  RN_RETURN_IF_ERROR(put_in_force(server, config));
  return rn_models_wait(server->models, server->env.now_ns(server->env.self) + RELOAD_NS);
}

rn_status_t rn_model_server_renew_tokens(rn_model_server_t* server, bool* out_is_new) {
  *out_is_new = false;
  return server->tokens ? rn_tokens_refresh(server->tokens, out_is_new) : RN_OK;
}

void rn_model_server_drain(rn_model_server_t* server) {
  server->front.is_draining = true;
  rn_health_watchers_wake(server->health);
  if (server->http) rn_http_server_drain(server->http);
  if (server->rest) rn_http_server_drain(server->rest);
  if (server->rpc) rn_rpc_server_drain(server->rpc);
  if (server->local) rn_rpc_server_drain(server->local);
}

bool rn_model_server_is_busy(rn_model_server_t* server) {
  return (server->http && rn_http_server_stats(server->http).requests) ||
         (server->rest && rn_http_server_stats(server->rest).requests) ||
         (server->rpc && rn_rpc_server_stats(server->rpc).calls) ||
         (server->local && rn_rpc_server_stats(server->local).calls);
}

void rn_model_server_destroy(rn_model_server_t* server) {
  if (!server) return;
  rn_rpc_server_destroy(server->rpc);
  rn_rpc_server_destroy(server->local);
  rn_http_server_destroy(server->rest);
  rn_http_server_destroy(server->http);
  rn_apps_destroy(server->apps);
  rn_redis_queries_destroy(server->queries);
  rn_state_store_destroy(server->store);
  rn_models_destroy(server->models);
  rn_loader_destroy(server->loader);
  rn_containers_destroy(server->containers);
  rn_shared_memory_destroy(server->shared_memory);
  rn_predict_cache_destroy(server->cache);
  rn_shares_destroy(server->shares);
  for (size_t i = 0; i < server->loop_count; ++i) rn_loop_destroy(server->loops[i]);
  rn_loop_destroy(server->clock);
  rn_pool_destroy(server->loads);
  rn_pool_destroy(server->sessions);
  rn_pool_destroy(server->runners);
  rn_pool_destroy(server->gpu_runners);
  rn_pool_destroy(server->pool);
  rn_request_log_destroy(server->log);
  rn_request_trace_destroy(server->trace);
  rn_metrics_destroy(server->metrics);
  rn_health_watchers_destroy(server->health);
  rn_tokens_release(server->tokens);
  rn_arena_clear(&server->arena);
  RN_FREE(server->allocator, server);
}
