// A task's server: see server.h.
#include "dist/server.h"

#include <stdio.h>

#include "dist/rpc/channel.h"
#include "dist/rpc/remote.h"
#include "dist/rpc/service.h"

#define LEASE_NS INT64_C(10000000000)

// Another task, and the way there, made when it is first needed.
typedef struct peer_t {
  rn_str_t task;        // "/job:ps/replica:0/task:0"
  const char* address;  // "host:port"
  rn_channel_t* channel;
  rn_remote_peer_t* remote;
} peer_t;

struct rn_server_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_env_t env;  // the caller's with our pool
  rn_server_options_t options;
  rn_pool_t* pool;
  rn_loop_t* loop;
  rn_rpc_server_t* rpc;
  rn_local_worker_t* worker;
  rn_local_master_t* master;
  rn_service_t service;
  rn_str_t* names;  // of the tasks, the own one first
  peer_t* peers;    // all but the own one
  size_t peer_count;
  char target[300];
  rn_mutex_t mutex;  // guards what follows, and the making of channels
  rn_cond_t changed;
  bool is_started, is_stopped;
};

const char* rn_server_target(const rn_server_t* server) { return server->target; }

static rn_status_t connect_peer(rn_server_t* server, peer_t* peer) {
  int64_t lease = server->options.lease_ns ? server->options.lease_ns : LEASE_NS;
  rn_channel_options_t options = {.loop = server->loop,
                                  .allocator = server->allocator,
                                  .address = peer->address,
                                  .keepalive_ns = lease / 2,
                                  .connect_ns = lease};
  RN_RETURN_IF_ERROR(rn_channel_create(&options, &peer->channel));
  return rn_remote_peer_create(peer->channel, &server->env, server->allocator, &peer->remote);
}

static rn_worker_t* find_peer(void* self, rn_str_t task) {
  rn_server_t* server = self;
  rn_worker_t* found = NULL;
  rn_mutex_lock(&server->mutex);
  for (size_t i = 0; i < server->peer_count && !found; ++i) {
    peer_t* peer = &server->peers[i];
    if (!rn_str_eq(peer->task, task)) continue;
    rn_status_t status = peer->remote ? RN_OK : connect_peer(server, peer);
    if (rn_ok(status)) found = rn_remote_worker(peer->remote);
    rn_status_free(status);
  }
  rn_mutex_unlock(&server->mutex);
  return found;
}

// Until it is started, a server is not there for anybody.
static void handle(void* self, rn_rpc_in_t* call) {
  rn_server_t* server = self;
  rn_mutex_lock(&server->mutex);
  bool is_ready = server->is_started && !server->is_stopped;
  rn_mutex_unlock(&server->mutex);
  if (is_ready) {
    rn_service_handle(&server->service, call);
    return;
  }
  rn_message_t none;
  rn_message_init(&none, server->allocator);
  rn_rpc_reply(call, rn_unavailable("The server has not been started"), &none);
}

static rn_status_t task_name(rn_server_t* server, rn_str_t job, int32_t index, rn_str_t* out) {
  return rn_arena_printf(&server->arena, out, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(job),
                         index);
}

static rn_status_t take_cluster(rn_server_t* server, rn_str_t* out_address) {
  const rn_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&server->arena, options->task_count, &server->names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&server->arena, options->task_count, &server->peers));
  bool is_found = false;
  for (size_t i = 0; i < options->task_count; ++i) {
    const rn_server_task_t* task = &options->tasks[i];
    rn_str_t name, address;
    RN_RETURN_IF_ERROR(task_name(server, task->job, task->index, &name));
    RN_RETURN_IF_ERROR(rn_arena_str(&server->arena, task->address, &address));
    if (rn_str_eq(task->job, options->job) && task->index == options->index) {
      if (is_found)
        return rn_invalid_argument("Task %.*s is in the cluster twice", RN_STR_ARGS(name));
      is_found = true;
      server->names[0] = name;
      *out_address = address;
      continue;
    }
    for (size_t p = 0; p < server->peer_count; ++p)
      if (rn_str_eq(server->peers[p].task, name))
        return rn_invalid_argument("Task %.*s is in the cluster twice", RN_STR_ARGS(name));
    if (server->peer_count + 1 < options->task_count) server->names[server->peer_count + 1] = name;
    server->peers[server->peer_count++] = (peer_t){.task = name, .address = address.data};
  }
  if (is_found) return RN_OK;
  return rn_invalid_argument("Task %d was not defined in job \"%.*s\"", options->index,
                             RN_STR_ARGS(options->job));
}

static bool is_loopback(rn_str_t host) {
  return rn_str_is(host, "localhost") || rn_str_is(host, "[::1]") ||
         rn_str_starts_with(host, RN_STR("127."));
}

// Where to listen for |own|, "host:port".
static rn_status_t listen_address(rn_server_t* server, rn_str_t own, rn_str_t* out) {
  if (server->options.address.size)
    return rn_arena_str(&server->arena, server->options.address, out);
  const char* colon = own.size ? strrchr(own.data, ':') : NULL;
  if (!colon)
    return rn_invalid_argument("Could not interpret \"%.*s\" as a host-port pair.",
                               RN_STR_ARGS(own));
  rn_str_t host = rn_str_n(own.data, (size_t)(colon - own.data));
  return rn_arena_printf(&server->arena, out, "%s:%s", is_loopback(host) ? "127.0.0.1" : "0.0.0.0",
                         colon + 1);
}

static rn_status_t set_up(rn_server_t* server) {
  rn_server_options_t* options = &server->options;
  rn_str_t own = {0}, address;
  RN_RETURN_IF_ERROR(take_cluster(server, &own));
  RN_RETURN_IF_ERROR(listen_address(server, own, &address));
  RN_RETURN_IF_ERROR(rn_pool_create(server->allocator, options->threads, &server->pool));
  if (rn_pool_threads(server->pool) < 3) {  // one of them is whoever waits: the loop never does
    rn_pool_destroy(server->pool);
    server->pool = NULL;
    RN_RETURN_IF_ERROR(rn_pool_create(server->allocator, 3, &server->pool));
  }
  server->env.pool = server->pool;
  RN_RETURN_IF_ERROR(rn_loop_create(&server->env, server->allocator, &server->loop));
  rn_peers_t peers = {.self = server, .find = find_peer};
  rn_local_worker_options_t worker = {.env = &server->env,
                                      .allocator = server->allocator,
                                      .task = server->names[0].data,
                                      .cpu_devices = options->cpu_devices,
                                      .null_devices = options->null_devices,
                                      .peers = peers};
  RN_RETURN_IF_ERROR(rn_local_worker_create(&worker, &server->worker));
  rn_local_master_options_t master = {.env = &server->env,
                                      .allocator = server->allocator,
                                      .worker = server->worker,
                                      .tasks = server->names,
                                      .task_count = (int)options->task_count,
                                      .peers = peers};
  RN_RETURN_IF_ERROR(rn_local_master_create(&master, &server->master));
  server->service = (rn_service_t){.worker = rn_local_worker_face(server->worker),
                                   .master = rn_local_master_face(server->master),
                                   .env = &server->env,
                                   .allocator = server->allocator};
  rn_rpc_server_options_t rpc = {.loop = server->loop,
                                 .allocator = server->allocator,
                                 .address = address.data,
                                 .handle = handle,
                                 .self = server};
  RN_RETURN_IF_ERROR(rn_rpc_server_create(&rpc, &server->rpc));
  rn_str_t host = own;
  const char* colon = own.size ? strrchr(own.data, ':') : NULL;
  if (colon) host.size = (size_t)(colon - own.data);
  snprintf(server->target, sizeof server->target, "grpc://%.*s:%d", RN_STR_ARGS(host),
           rn_rpc_server_port(server->rpc));
  return RN_OK;
}

rn_status_t rn_server_create(const rn_server_options_t* options, rn_server_t** out) {
  *out = NULL;
  rn_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->allocator = options->allocator;
  server->env = *options->env;
  server->options = *options;
  rn_arena_init(&server->arena, options->allocator);
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  rn_status_t status = set_up(server);
  if (!rn_ok(status)) {
    rn_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

rn_status_t rn_server_start(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  rn_status_t status =
      server->is_stopped ? rn_failed_precondition("The server was stopped") : RN_OK;
  server->is_started = true;
  rn_mutex_unlock(&server->mutex);
  return status;
}

rn_status_t rn_server_stop(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  bool is_first = !server->is_stopped;
  server->is_stopped = true;
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
  if (!is_first) return RN_OK;
  // Steps end with their connections; what others wait for here ends with the steps.
  rn_local_master_destroy(server->master);
  server->master = NULL;
  rn_rpc_server_destroy(server->rpc);
  server->rpc = NULL;
  return RN_OK;
}

rn_status_t rn_server_join(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  while (!server->is_stopped) rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  return RN_OK;
}

void rn_server_destroy(rn_server_t* server) {
  if (!server) return;
  rn_status_free(rn_server_stop(server));
  for (size_t i = 0; i < server->peer_count; ++i) rn_channel_destroy(server->peers[i].channel);
  rn_local_worker_destroy(server->worker);
  for (size_t i = 0; i < server->peer_count; ++i) rn_remote_peer_destroy(server->peers[i].remote);
  rn_loop_destroy(server->loop);
  rn_pool_destroy(server->pool);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  rn_arena_clear(&server->arena);
  RN_FREE(server->allocator, server);
}
