// Joins a cluster. See client.h.
#include "dist/eager/client.h"

#include "dist/calls.h"
#include "dist/eager/client_internal.h"
#include "dist/eager/home.h"
#include "dist/lease.h"
#include "dist/server.h"
#include "net/token.h"
#include "wire/decode.h"

#define CHECK_NS INT64_C(10000000000)
#define MAX_CHECK_MS INT64_C(3600000)
#define KEEP_ALIVE_S 600
#define FIRST_DEVICE "/device:CPU:0"

static void close_client(void* self) {
  rn_eager_client_t* client = self;
  rn_mutex_lock(&client->joining);
  rn_far_close_all(client, true);
  rn_home_close(client);
  rn_mutex_unlock(&client->joining);
}

// Checks of the tasks, and what follows the failure of one.
static void wait_for_pulses(rn_eager_client_t* client) {
  rn_mutex_lock(&client->mutex);
  while (client->pulse_count) rn_cond_wait(&client->changed, &client->mutex);
  rn_mutex_unlock(&client->mutex);
}

static void destroy(void* self) {
  rn_eager_client_t* client = self;
  if (!client) return;
  rn_mutex_lock(&client->mutex);
  client->is_closing = true;
  rn_mutex_unlock(&client->mutex);
  if (client->loop) rn_loop_clear_timer(client->loop, &client->timer);
  wait_for_pulses(client);
  if (client->peers) rn_far_close_all(client, true);
  rn_agent_destroy(client->agent);
  wait_for_pulses(client);  // the agent may just have told of a failure
  rn_server_destroy(client->server);
  rn_status_free(client->failure);
  rn_eager_peers_destroy(client->peers);
  rn_loop_destroy(client->loop);
  rn_tokens_release(client->tokens);
  for (size_t i = 0; i < client->tasks.count; ++i) {
    rn_far_t* task = client->tasks.items[i];
    rn_vec_free(&task->devices, client->allocator);
    rn_vec_free(&task->dropped, client->allocator);
    rn_vec_free(&task->functions, client->allocator);
    rn_mutex_destroy(&task->mutex);
  }
  rn_vec_free(&client->tasks, client->allocator);
  rn_arena_clear(&client->arena);
  rn_cond_destroy(&client->changed);
  rn_mutex_destroy(&client->joining);
  rn_mutex_destroy(&client->mutex);
  RN_FREE(client->allocator, client);
}

static rn_status_t create(rn_eager_t* eager, const rn_eager_join_t* join, rn_eager_client_t** out) {
  rn_eager_client_t* client = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(join->allocator, &client));
  client->allocator = join->allocator;
  client->env = join->env;
  client->eager = eager;
  client->lease_ns = rn_lease_default();
  client->timer.fn = rn_far_on_timer;
  rn_mutex_init(&client->mutex);
  rn_mutex_init(&client->joining);
  rn_cond_init(&client->changed);
  rn_arena_init(&client->arena, client->allocator);
  rn_status_t status = rn_tokens_read(client->env, NULL, NULL, client->allocator, &client->tokens);
  if (rn_ok(status)) status = rn_loop_create(client->env, client->allocator, &client->loop);
  rn_eager_peers_options_t peers = {.env = client->env,
                                    .allocator = client->allocator,
                                    .loop = client->loop,
                                    .lease_ns = client->lease_ns,
                                    .borrows = true,
                                    .tokens = client->tokens};
  if (rn_ok(status)) status = rn_eager_peers_create(&peers, &client->peers);
  rn_eager_cluster_t cluster = {.self = client,
                                .call = rn_home_call,
                                .forget = rn_home_forget,
                                .close = close_client,
                                .destroy = destroy};
  if (rn_ok(status)) status = rn_eager_set_cluster(eager, &cluster);
  if (!rn_ok(status)) {
    destroy(client);
    return status;
  }
  *out = client;
  return RN_OK;
}

// An id for the contexts of one join, below 2^63 and never 0.
static uint64_t new_context(const rn_eager_client_t* client) {
  return client->env->random(client->env->self) >> 1 | 1;
}

static rn_status_t start_view(rn_eager_client_t* client, const rn_eager_join_t* join,
                              const rn_pb_ServerDef_t* def) {
  RN_RETURN_IF_ERROR(rn_arena_printf(&client->arena, &client->here,
                                     "/job:%.*s/replica:0/task:%d" FIRST_DEVICE,
                                     RN_STR_ARGS(def->job_name), def->task_index));
  client->keep_alive_s = join->keep_alive_s > 0 ? join->keep_alive_s : KEEP_ALIVE_S;
  RN_RETURN_IF_ERROR(rn_eager_peers_add(client->peers, def->cluster));
  return join->is_alone ? RN_OK : rn_far_take_tasks(client, def);
}

static rn_status_t enter(rn_eager_client_t* client, const rn_eager_join_t* join,
                         const rn_pb_ServerDef_t* def) {
  bool is_update = join->is_update && client->context;
  uint64_t old_context = client->context;
  if (!is_update) rn_far_close_all(client, true);
  if (!is_update) rn_home_close(client);
  if (!is_update) client->context = new_context(client);
  client->view = is_update ? client->view + 1 : client->view;
  if (!is_update && old_context) client->view = 0;
  if (!is_update)
    for (size_t i = 0; i < client->tasks.count; ++i) client->tasks.items[i]->opened_at = UINT64_MAX;
  rn_status_t status = start_view(client, join, def);
  if (rn_ok(status)) status = rn_home_listen(client, join, def);
  if (rn_ok(status)) status = rn_far_open_all(client, join, def);
  if (rn_ok(status)) {
    size_t size = client->here.size - strlen(FIRST_DEVICE);
    status = rn_eager_set_task(client->eager, rn_str_n(client->here.data, size));
  }
  if (rn_ok(status)) status = rn_home_open(client, join);
  if (!rn_ok(status)) {
    if (!is_update) rn_far_close_all(client, true);
    return status;
  }
  rn_far_close_all(client, false);
  return rn_loop_set_timer(client->loop, &client->timer,
                           rn_loop_now(client->loop) + client->keep_alive_s * 1000000000 / 3);
}

rn_status_t rn_eager_client_join(rn_eager_t* eager, const rn_eager_join_t* join) {
  rn_arena_t arena;
  rn_pb_ServerDef_t* def = NULL;
  rn_eager_client_t* client = rn_eager_cluster(eager);
  rn_arena_init(&arena, join->allocator);
  rn_status_t status = RN_PB_DECODE(ServerDef, join->server_def, NULL, &arena, &def);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    status = rn_invalid_argument("Invalid tensorflow.ServerDef protocol buffer");
  }
  if (rn_ok(status) && def->protocol.size && !rn_str_is(def->protocol, "grpc") &&
      !rn_str_is(def->protocol, "grpc+ucx"))
    status =
        rn_invalid_argument("The protocol \"%.*s\" is not supported", RN_STR_ARGS(def->protocol));
  if (rn_ok(status) && !client) status = create(eager, join, &client);
  if (rn_ok(status)) {
    rn_mutex_lock(&client->joining);
    status = enter(client, join, def);
    rn_mutex_unlock(&client->joining);
  }
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_eager_client_devices(rn_eager_t* eager, rn_arena_t* arena, rn_device_info_t** out,
                                    size_t* out_count) {
  rn_eager_client_t* client = rn_eager_cluster(eager);
  *out = NULL;
  *out_count = 0;
  if (!client) return RN_OK;
  size_t total = 0;
  rn_mutex_lock(&client->mutex);
  for (size_t i = 0; i < client->tasks.count; ++i) total += client->tasks.items[i]->devices.count;
  rn_status_t status = RN_ARENA_ARRAY(arena, total, out);
  for (size_t i = 0; i < client->tasks.count && rn_ok(status); ++i) {
    rn_far_t* task = client->tasks.items[i];
    rn_mutex_lock(&task->mutex);
    for (size_t d = 0; task->context && d < task->devices.count && *out_count < total; ++d) {
      const rn_far_device_t* device = task->devices.items[d];
      (*out)[(*out_count)++] = rn_far_device_info(device);
    }
    rn_mutex_unlock(&task->mutex);
  }
  rn_mutex_unlock(&client->mutex);
  return status;
}

rn_status_t rn_eager_client_check(rn_eager_t* eager, rn_str_t name, int64_t timeout_ms, bool* out) {
  rn_eager_client_t* client = rn_eager_cluster(eager);
  rn_worker_t* worker = client ? rn_eager_peers_worker(client->peers, name) : NULL;
  rn_waiter_t waiter;
  *out = false;
  if (!worker) return rn_invalid_argument("Unable to find a worker named %.*s", RN_STR_ARGS(name));
  int64_t ns = timeout_ms <= 0 || timeout_ms > MAX_CHECK_MS ? CHECK_NS : timeout_ms * 1000000;
  rn_get_status_t call = {.call = rn_waiter_call(&waiter, rn_loop_now(client->loop) + ns, NULL)};
  call.call.waits_for_ready = false;
  rn_arena_init(&call.arena, client->allocator);
  worker->vtable->get_status(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_arena_clear(&call.arena);
  *out = rn_ok(status);
  rn_status_free(status);
  return RN_OK;
}
