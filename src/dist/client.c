// Remote sessions: see client.h.
#include "dist/client.h"

#include <stdlib.h>

#include "dist/calls.h"
#include "dist/rpc/remote.h"
#include "graph/import.h"
#include "net/token.h"
#include "proto/config.pb.h"
#include "session/impl.h"
#include "wire/decode.h"

#define SCHEME "grpc://"
#define SECURE_SCHEME "grpcs://"
#define CLOSE_NS INT64_C(10000000000)
#define REPEAT_NS INT64_C(20000000)  // before a step is retried, doubled each time

struct rn_client_t {
  rn_session_t base;  // first
  const rn_env_t* env;
  char *target, *config;
  int64_t timeout_ms, lease_ns;
  rn_loop_t* loop;
  rn_tls_t* tls;        // Retained; NULL: plain
  rn_tokens_t* tokens;  // Owned; NULL: none
  rn_channel_t* channel;
  rn_remote_peer_t* peer;
  rn_leases_t* leases;
  rn_master_t* master;
  rn_mutex_t mutex;  // guards what follows, and sending the graph to the master
  char session[32];  // "": none yet
  int64_t version;
  size_t told;  // nodes of the graph that the master has
  bool is_closed;
  rn_arena_t arena;  // what follows
  rn_device_t** devices;
  int device_count;
};

static int64_t deadline_after(const rn_client_t* client, int64_t timeout_ms) {
  int64_t ns, deadline, ms = timeout_ms > 0 ? timeout_ms : client->timeout_ms;
  if (ms <= 0 || !rn_mul_i64_ok(ms, 1000000, &ns)) return INT64_MAX;
  return rn_add_i64_ok(client->env->now_ns(client->env->self), ns, &deadline) ? deadline
                                                                              : INT64_MAX;
}

// Loads the client's certificate from the files that the environment names.
static rn_status_t find_certificate(rn_client_t* client) {
  rn_tls_options_t options = {.allocator = client->base.allocator,
                              .cert = getenv("RUNNEL_TLS_CERT"),
                              .key = getenv("RUNNEL_TLS_KEY"),
                              .ca = getenv("RUNNEL_TLS_CA")};
  if (!options.cert || !options.key || !options.ca)
    return rn_invalid_argument(
        "A grpcs:// target needs RUNNEL_TLS_CERT, RUNNEL_TLS_KEY and RUNNEL_TLS_CA");
  return rn_tls_create(&options, &client->tls);
}

static rn_status_t set_up(rn_client_t* client, const rn_client_options_t* options) {
  RN_RETURN_IF_ERROR(rn_str_dup(client->base.allocator, options->target, &client->target));
  RN_RETURN_IF_ERROR(rn_str_dup(client->base.allocator, options->config, &client->config));
  client->base.step.config = rn_str_n(client->config, options->config.size);
  client->lease_ns = options->lease_ns;
  if (!client->lease_ns) RN_RETURN_IF_ERROR(rn_lease_of_config(options->config, &client->lease_ns));
  if (client->lease_ns <= 0) client->lease_ns = rn_lease_default();
  RN_RETURN_IF_ERROR(rn_loop_create(client->env, client->base.allocator, &client->loop));
  bool is_secure = rn_str_starts_with(options->target, RN_STR(SECURE_SCHEME));
  if (is_secure) RN_RETURN_IF_ERROR(find_certificate(client));
  RN_RETURN_IF_ERROR(
      rn_tokens_read(client->env, NULL, NULL, client->base.allocator, &client->tokens));
  size_t scheme = strlen(is_secure ? SECURE_SCHEME : SCHEME);
  rn_channel_options_t channel = {.loop = client->loop,
                                  .allocator = client->base.allocator,
                                  .address = client->target + scheme,
                                  .connect_ns = client->lease_ns,
                                  .tokens = client->tokens,
                                  .tls = client->tls};
  RN_RETURN_IF_ERROR(rn_channel_create(&channel, &client->channel));
  RN_RETURN_IF_ERROR(rn_remote_peer_create(client->channel, client->env, &(rn_remote_near_t){0},
                                           client->base.allocator, &client->peer));
  client->master = rn_remote_master(client->peer);
  rn_leases_options_t leases = {.env = client->env,
                                .allocator = client->base.allocator,
                                .timers = rn_loop_timers(client->loop),
                                .lease_ns = client->lease_ns};
  RN_RETURN_IF_ERROR(rn_leases_create(&leases, &client->leases));
  // A master's port serves a worker too, whose GetStatus is the liveness probe.
  return rn_leases_add(client->leases, rn_str(client->target), rn_remote_link(client->peer));
}

bool rn_client_is_target(rn_str_t target) {
  return rn_str_starts_with(target, RN_STR(SCHEME)) ||
         rn_str_starts_with(target, RN_STR(SECURE_SCHEME));
}

static rn_status_t client_close(rn_session_t* session) {
  rn_client_t* client = (rn_client_t*)session;
  if (!client->master) return RN_OK;
  rn_mutex_lock(&client->mutex);
  bool has_session = !client->is_closed && client->session[0];
  client->is_closed = true;
  rn_mutex_unlock(&client->mutex);
  if (!has_session) return RN_OK;
  rn_waiter_t waiter;
  rn_close_session_t call = {
      .call = rn_waiter_call(&waiter, client->env->now_ns(client->env->self) + CLOSE_NS, NULL),
      .session = rn_str(client->session)};
  call.call.waits_for_ready = false;
  client->master->vtable->close_session(client->master, &call);
  return rn_waiter_wait(&waiter);
}

static void client_destroy(rn_session_t* session) {
  rn_client_t* client = (rn_client_t*)session;
  rn_leases_stop(client->leases);
  rn_channel_destroy(client->channel);
  rn_leases_destroy(client->leases);
  rn_remote_peer_destroy(client->peer);
  rn_loop_destroy(client->loop);
  rn_tokens_release(client->tokens);
  rn_tls_release(client->tls);
  if (client->target) rn_free(client->base.allocator, client->target, strlen(client->target) + 1);
  if (client->config)
    rn_free(client->base.allocator, client->config, client->base.step.config.size + 1);
  rn_arena_clear(&client->arena);
  rn_mutex_destroy(&client->mutex);
  rn_session_clear(session);
  RN_FREE(session->allocator, client);
}

rn_status_t rn_client_reset(rn_client_t* client, const rn_str_t* containers, size_t count) {
  rn_arena_t arena;
  rn_pb_ConfigProto_t* config = NULL;
  rn_arena_init(&arena, client->base.allocator);
  rn_status_t status = RN_PB_DECODE(ConfigProto, client->base.step.config, NULL, &arena, &config);
  if (rn_ok(status)) {
    rn_waiter_t waiter;
    rn_reset_t call = {.call = rn_waiter_call(&waiter, deadline_after(client, 0), NULL),
                       .containers = containers,
                       .container_count = count,
                       .filters = config->device_filters.items,
                       .filter_count = config->device_filters.count};
    client->master->vtable->reset(client->master, &call);
    status = rn_waiter_wait(&waiter);
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t create_session(rn_client_t* client, rn_str_t graph_def, int64_t deadline_ns,
                                  rn_cancel_t* cancel) {
  rn_waiter_t waiter;
  rn_create_session_t call = {.call = rn_waiter_call(&waiter, deadline_ns, cancel),
                              .graph_def = graph_def,
                              .config = client->base.step.config,
                              .target = rn_str(client->target)};
  client->master->vtable->create_session(client->master, &call);
  RN_RETURN_IF_ERROR(rn_waiter_wait(&waiter));
  memcpy(client->session, call.session, sizeof client->session);
  client->version = call.version;
  return RN_OK;
}

static rn_status_t extend_session(rn_client_t* client, rn_str_t graph_def, int64_t deadline_ns,
                                  rn_cancel_t* cancel) {
  rn_waiter_t waiter;
  rn_extend_session_t call = {.call = rn_waiter_call(&waiter, deadline_ns, cancel),
                              .session = rn_str(client->session),
                              .graph_def = graph_def,
                              .version = client->version};
  client->master->vtable->extend_session(client->master, &call);
  RN_RETURN_IF_ERROR(rn_waiter_wait(&waiter));
  client->version = call.version;
  return RN_OK;
}

// Sends the nodes that the master does not have: all of them with a new session.
static rn_status_t send_graph(rn_client_t* client, int64_t deadline_ns, rn_cancel_t* cancel) {
  rn_strbuf_t graph;
  rn_strbuf_init(&graph, client->base.allocator);
  bool is_new = !client->session[0];
  size_t count = 0;
  rn_status_t status =
      rn_graph_export_from(client->base.graph, is_new ? 0 : client->told, &graph, &count);
  if (rn_ok(status))
    status = (is_new ? create_session : extend_session)(client, rn_strbuf_view(&graph), deadline_ns,
                                                        cancel);
  if (rn_ok(status)) client->told = count;
  rn_strbuf_clear(&graph);
  return status;
}

// Sends the new part of the graph to the master; |out_session| is the master's name for the
// session.
static rn_status_t tell(rn_client_t* client, int64_t deadline_ns, rn_cancel_t* cancel,
                        char out_session[32]) {
  rn_mutex_lock(&client->mutex);
  rn_mutex_lock(&client->base.graph->mutex);
  size_t count = client->base.graph->nodes.count;
  rn_mutex_unlock(&client->base.graph->mutex);
  rn_status_t status = RN_OK;
  if (client->is_closed)
    status = rn_cancelled("Session has been closed.");
  else if (!client->session[0] || count > client->told)
    status = send_graph(client, deadline_ns, cancel);
  memcpy(out_session, client->session, sizeof client->session);
  rn_mutex_unlock(&client->mutex);
  return status;
}

static rn_status_t check(const rn_client_t* client, const rn_signature_t* signature) {
  for (int32_t i = 0; i < signature->feed_count; ++i)
    RN_RETURN_IF_ERROR(rn_ir_check_edge(client->base.graph, signature->feeds[i], "feed"));
  for (int32_t i = 0; i < signature->fetch_count; ++i)
    RN_RETURN_IF_ERROR(rn_ir_check_edge(client->base.graph, signature->fetches[i], "fetch"));
  return RN_OK;
}

// A restarted master does not know the session: the next step opens another.
static void forget_session(rn_client_t* client, const char* session, rn_status_t status) {
  if (rn_status_code(status) != RN_CODE_ABORTED ||
      !strstr(rn_status_message(status), "is not found") ||
      !strstr(rn_status_message(status), session))
    return;
  rn_mutex_lock(&client->mutex);
  if (strcmp(client->session, session) == 0) client->session[0] = '\0';
  rn_mutex_unlock(&client->mutex);
}

static void sleep_until(int64_t at_ns) {
  rn_mutex_t mutex;
  rn_cond_t never;
  rn_mutex_init(&mutex);
  rn_cond_init(&never);
  rn_mutex_lock(&mutex);
  while (rn_cond_wait_until(&never, &mutex, at_ns)) continue;
  rn_mutex_unlock(&mutex);
  rn_cond_destroy(&never);
  rn_mutex_destroy(&mutex);
}

// Waits for the end of a step, and runs the event loop in this thread if no other does.
static rn_status_t await(rn_client_t* client, rn_waiter_t* waiter) {
  rn_loop_visit_t visit;
  bool turns = rn_loop_enter(client->loop, &visit);
  while (turns && !rn_waiter_is_over(waiter)) rn_loop_turn(client->loop, &visit);
  rn_status_t status = rn_waiter_wait(waiter);
  rn_loop_leave(client->loop, &visit);
  return status;
}

// Runs a step. If the connection breaks, retries under the same number for one lease; the master
// runs it once.
static rn_status_t run_named(rn_client_t* client, rn_run_step_t* call, int64_t deadline,
                             rn_cancel_t* cancel) {
  const rn_env_t* env = client->env;
  int64_t now = env->now_ns(env->self), until = now + client->lease_ns, pause = REPEAT_NS;
  for (;;) {
    rn_waiter_t waiter;
    call->call = rn_waiter_call(&waiter, deadline, cancel);
    call->call.waits_for_ready = false;
    call->is_answered = false;
    client->master->vtable->run_step(client->master, call);
    rn_status_t status = await(client, &waiter);
    now = env->now_ns(env->self);
    rn_lease_info_t lease = {0};
    rn_leases_list(client->leases, &lease, 1);
    if (rn_status_code(status) != RN_CODE_UNAVAILABLE || call->is_answered || lease.is_lost ||
        now + pause >= until || now + pause >= deadline || (cancel && rn_is_cancelled(cancel)))
      return status;
    rn_status_free(status);
    sleep_until(now + pause);
    pause *= 2;
  }
}

static rn_status_t client_run(rn_session_t* self, const rn_signature_t* signature,
                              const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                              const rn_step_options_t* options) {
  rn_client_t* client = (rn_client_t*)self;
  const rn_step_options_t none = {0};
  if (!options) options = &none;
  RN_RETURN_IF_ERROR(check(client, signature));
  int64_t deadline = deadline_after(client, options->timeout_ms);
  char session[sizeof client->session];
  RN_RETURN_IF_ERROR(tell(client, deadline, options->cancel, session));
  rn_arena_t arena;
  rn_arena_init(&arena, client->base.allocator);
  rn_run_step_t call = {
      .session = rn_str(session),
      .timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : client->timeout_ms,
      .trace_level = options->trace_level,
      .wants_graphs = options->wants_graphs,
      .request = (int64_t)(client->env->random(client->env->self) >> 1 | 1),
      .fetches = fetches};
  rn_strbuf_init(&call.metadata, client->base.allocator);
  rn_status_t status = rn_run_step_name(&call, &arena, signature, feeds);
  if (rn_ok(status)) status = run_named(client, &call, deadline, options->cancel);
  if (!rn_ok(status)) forget_session(client, session, status);
  if (options->metadata) rn_strbuf_append(options->metadata, rn_strbuf_view(&call.metadata));
  rn_strbuf_clear(&call.metadata);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t take_devices(rn_client_t* client, const rn_list_devices_t* call) {
  rn_device_t* devices = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&client->arena, call->device_count, &client->devices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&client->arena, call->device_count, &devices));
  for (size_t i = 0; i < call->device_count; ++i) {
    const rn_device_info_t* info = &call->devices[i];
    rn_str_t type;
    RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->name, &devices[i].name));
    RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->type, &type));
    devices[i].type = type.data;
    devices[i].memory_limit = info->memory_limit;
    devices[i].incarnation = info->incarnation;
    rn_str_t text = {0};
    if (info->description.size)
      RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->description, &text));
    devices[i].description = text.data;
    client->devices[i] = &devices[i];
  }
  client->device_count = (int)call->device_count;
  return RN_OK;
}

static rn_status_t client_devices(rn_session_t* self, rn_device_t*** out, int* out_count) {
  rn_client_t* client = (rn_client_t*)self;
  int64_t deadline = deadline_after(client, 0);
  char session[sizeof client->session];
  RN_RETURN_IF_ERROR(tell(client, deadline, NULL, session));
  rn_waiter_t waiter;
  rn_list_devices_t call = {.call = rn_waiter_call(&waiter, deadline, NULL),
                            .session = rn_str(session)};
  rn_arena_init(&call.arena, client->base.allocator);
  client->master->vtable->list_devices(client->master, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_mutex_lock(&client->mutex);
  if (rn_ok(status)) status = take_devices(client, &call);
  *out = client->devices;
  *out_count = client->device_count;
  rn_mutex_unlock(&client->mutex);
  rn_arena_clear(&call.arena);
  return status;
}

static const rn_session_vtable_t vtable = {
    .run = client_run, .devices = client_devices, .close = client_close, .destroy = client_destroy};

rn_status_t rn_client_create(const rn_client_options_t* options, rn_graph_t* graph,
                             rn_client_t** out) {
  *out = NULL;
  if (!rn_client_is_target(options->target) || rn_str_ends_with(options->target, RN_STR("//")))
    return rn_invalid_argument("Not a target: '%.*s'; expected grpc://host:port",
                               RN_STR_ARGS(options->target));
  rn_client_t* client = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &client));
  rn_session_init(&client->base, &vtable, graph, options->env, options->allocator);
  client->env = options->env;
  client->timeout_ms = options->timeout_ms;
  rn_mutex_init(&client->mutex);
  rn_arena_init(&client->arena, options->allocator);
  rn_status_t status = set_up(client, options);
  if (!rn_ok(status)) {
    rn_client_destroy(client);
    return status;
  }
  *out = client;
  return RN_OK;
}

void rn_client_destroy(rn_client_t* client) { rn_session_destroy((rn_session_t*)client); }
rn_session_t* rn_client_session(rn_client_t* client) { return &client->base; }
