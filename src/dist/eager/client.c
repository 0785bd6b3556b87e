// Joins a cluster and keeps its contexts alive. See client.h.
#include "dist/eager/client.h"

#include "base/container.h"
#include "collective/collectives.h"
#include "dist/calls.h"
#include "dist/eager/client_internal.h"
#include "dist/lease.h"
#include "dist/server.h"
#include "net/token.h"
#include "proto/any.pb.h"
#include "proto/config.pb.h"
#include "proto/coordination_config.pb.h"
#include "proto/coordination_service.pb.h"
#include "proto/eager_service.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define TIMEOUT_MS 60000
#define CHECK_NS INT64_C(10000000000)
#define MAX_CHECK_MS INT64_C(3600000)
#define MAX_WAIT_MS (INT64_C(365) * 86400000)
#define CLOSE_NS INT64_C(5000000000)
#define KEEP_ALIVE_S 600
#define FIRST_DEVICE "/device:CPU:0"

// --- Questions

static rn_status_t name_task(rn_status_t status, const rn_far_t* task) {
  if (rn_status_code(status) != RN_CODE_UNAVAILABLE) return status;
  rn_status_t named =
      rn_unavailable("%.*s: %s", RN_STR_ARGS(task->name), rn_status_message(status));
  rn_status_free(status);
  return named;
}

rn_status_t rn_far_ask(rn_eager_client_t* client, const rn_far_t* task, const char* path,
                       rn_message_t* request, int64_t deadline_ns, bool waits_for_ready,
                       rn_message_t* out) {
  rn_channel_t* channel = rn_eager_peers_channel(client->peers, task->name);
  if (!channel) {
    rn_message_clear(request);
    return rn_unavailable("%.*s is not in the cluster", RN_STR_ARGS(task->name));
  }
  rn_eager_question_t question;
  rn_eager_question_start(&question, channel, path, request, deadline_ns, waits_for_ready);
  return name_task(rn_eager_question_wait(&question, out), task);
}

// The same for a request of one piece.
static rn_status_t ask(rn_eager_client_t* client, const rn_far_t* task, const char* path,
                       const rn_strbuf_t* bytes, int64_t deadline_ns, bool waits_for_ready,
                       rn_message_t* out) {
  rn_message_t request;
  RN_RETURN_IF_ERROR(rn_strbuf_status(bytes));
  rn_message_init(&request, client->allocator);
  RN_RETURN_IF_ERROR(rn_message_add(&request, rn_strbuf_view(bytes)));
  return rn_far_ask(client, task, path, &request, deadline_ns, waits_for_ready, out);
}

int64_t rn_far_next_op(rn_eager_client_t* client) {
  rn_mutex_lock(&client->mutex);
  int64_t id = ++client->next_op;
  rn_mutex_unlock(&client->mutex);
  return id;
}

rn_far_device_t* rn_far_find_device(rn_eager_client_t* client, rn_str_t name) {
  rn_far_device_t* found = NULL;
  rn_mutex_lock(&client->mutex);
  for (size_t i = 0; i < client->tasks.count && !found; ++i) {
    rn_far_t* task = client->tasks.items[i];
    rn_mutex_lock(&task->mutex);
    for (size_t d = 0; d < task->devices.count && !found; ++d)
      if (rn_str_eq(task->devices.items[d]->name, name)) found = task->devices.items[d];
    rn_mutex_unlock(&task->mutex);
  }
  rn_mutex_unlock(&client->mutex);
  return found;
}

// --- Keeping contexts alive

typedef struct rn_far_pulse_t {
  rn_rpc_out_t out;  // first
  rn_eager_client_t* client;
} rn_far_pulse_t;

static void on_pulse_answer(rn_rpc_out_t* out, rn_status_t status) {
  rn_far_pulse_t* pulse = (rn_far_pulse_t*)out;
  rn_eager_client_t* client = pulse->client;
  rn_rpc_out_clear(out);
  rn_status_free(status);  // the next use of the task reports it
  RN_FREE(client->allocator, pulse);
  rn_mutex_lock(&client->mutex);
  client->pulse_count--;
  rn_cond_broadcast(&client->changed);
  rn_mutex_unlock(&client->mutex);
}

static rn_status_t start_pulse(rn_eager_client_t* client, rn_far_t* task) {
  rn_far_pulse_t* pulse = NULL;
  rn_strbuf_t bytes;
  rn_mutex_lock(&task->mutex);
  uint64_t context = task->context;
  rn_mutex_unlock(&task->mutex);
  rn_channel_t* channel = context ? rn_eager_peers_channel(client->peers, task->name) : NULL;
  if (!channel) return RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW(client->allocator, &pulse));
  pulse->client = client;
  pulse->out = (rn_rpc_out_t){.path = RN_EAGER_PATH "KeepAlive",
                              .deadline_ns = rn_loop_now(client->loop) + client->lease_ns,
                              .done = on_pulse_answer};
  rn_message_init(&pulse->out.request, client->allocator);
  rn_strbuf_init(&bytes, client->allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_KeepAliveRequest_context_id_field, context);
  rn_status_t status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) status = rn_message_add(&pulse->out.request, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  if (!rn_ok(status)) {
    RN_FREE(client->allocator, pulse);
    return status;
  }
  rn_mutex_lock(&client->mutex);
  client->pulse_count++;
  rn_mutex_unlock(&client->mutex);
  rn_rpc_start(channel, &pulse->out);
  return RN_OK;
}

static void on_timer(rn_timer_t* timer) {
  rn_eager_client_t* client = RN_CONTAINER_OF(timer, rn_eager_client_t, timer);
  for (size_t i = 0;; ++i) {
    rn_mutex_lock(&client->mutex);
    bool is_closing = client->is_closing;
    rn_far_t* task = i < client->tasks.count ? client->tasks.items[i] : NULL;
    int64_t every = client->keep_alive_s * 1000000000 / 3;
    rn_mutex_unlock(&client->mutex);
    if (is_closing) return;
    if (!task) {
      rn_status_free(rn_loop_set_timer(client->loop, timer, rn_loop_now(client->loop) + every));
      return;
    }
    rn_status_free(start_pulse(client, task));
  }
}

// --- Contexts of tasks

static void forget_functions_locked(rn_far_t* task) {
  for (size_t i = 0; i < task->functions.count; ++i) rn_function_release(task->functions.items[i]);
  task->functions.count = 0;
}

void rn_far_forget_functions(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  forget_functions_locked(task);
  rn_mutex_unlock(&task->mutex);
}

// Forgets the context on a task; returns its id.
static uint64_t leave_task(rn_far_t* task) {
  rn_mutex_lock(&task->mutex);
  uint64_t context = task->context;
  task->context = 0;
  task->opening++;
  task->dropped.count = 0;
  forget_functions_locked(task);
  rn_mutex_unlock(&task->mutex);
  return context;
}

static void close_task(rn_eager_client_t* client, rn_far_t* task) {
  rn_strbuf_t bytes;
  rn_message_t response;
  uint64_t context = leave_task(task), view = task->view;
  if (!context) return;
  rn_strbuf_init(&bytes, client->allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_CloseContextRequest_context_id_field, context);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_CloseContextRequest_context_view_id_field, view);
  rn_status_t status = ask(client, task, RN_EAGER_PATH "CloseContext", &bytes,
                           rn_loop_now(client->loop) + CLOSE_NS, false, &response);
  if (rn_ok(status)) rn_message_clear(&response);
  rn_status_free(status);  // it expires by itself
  rn_strbuf_clear(&bytes);
}

// |def| from the point of view of |task|.
static rn_status_t put_def(rn_strbuf_t* out, uint32_t number, const rn_pb_ServerDef_t* def,
                           const rn_far_t* task) {
  rn_pb_ServerDef_t own = *def;
  own.job_name = task->job;
  own.task_index = task->index;
  if (!own.protocol.size) own.protocol = RN_STR("grpc");
  size_t mark = rn_pb_begin(out, number);
  rn_status_t status = RN_PB_ENCODE(ServerDef, &own, NULL, out);
  rn_pb_end(out, mark);
  return status;
}

static rn_device_info_t info_of(const rn_far_device_t* device) {
  return (rn_device_info_t){.name = device->name,
                            .type = device->type,
                            .memory_limit = device->memory_limit,
                            .incarnation = device->incarnation,
                            .description = device->description};
}

// All devices of the cluster, including this process's.
static void put_cluster(rn_eager_client_t* client, rn_encoder_t* out, uint32_t number) {
  const rn_device_t* own = rn_session_device(rn_eager_session(client->eager), 0);
  rn_device_info_t here = {.name = client->here,
                           .type = RN_STR("CPU"),
                           .memory_limit = own->memory_limit,
                           .incarnation = own->incarnation};
  rn_encode_devices(out, number, &here, 1);
  for (size_t i = 0; i < client->tasks.count; ++i) {
    const rn_far_t* task = client->tasks.items[i];
    for (size_t d = 0; task->opened_at == client->view && d < task->devices.count; ++d) {
      const rn_far_device_t* device = task->devices.items[d];
      rn_device_info_t info = info_of(device);
      rn_encode_devices(out, number, &info, 1);
    }
  }
}

// Opens a context on |task| or, if it has one, sends it the new view.
static rn_status_t open_task(rn_eager_client_t* client, const rn_eager_join_t* join,
                             const rn_pb_ServerDef_t* def, rn_far_t* task, int64_t deadline_ns) {
  bool is_known = task->context == client->context;
  rn_message_t request, response;
  rn_encoder_t encoder;
  rn_message_init(&request, client->allocator);
  rn_encoder_open(&encoder, &request);
  rn_strbuf_t* out = &encoder.head;
  if (is_known) {
    encoder.status = put_def(out, rn_pb_eager_UpdateContextRequest_server_def_field, def, task);
    put_cluster(client, &encoder, rn_pb_eager_UpdateContextRequest_cluster_device_attributes_field);
    rn_pb_put_fixed64(out, rn_pb_eager_UpdateContextRequest_context_id_field, client->context);
    rn_pb_put_fixed64(out, rn_pb_eager_UpdateContextRequest_context_view_id_field, task->view + 1);
  } else {
    encoder.status = put_def(out, rn_pb_eager_CreateContextRequest_server_def_field, def, task);
    rn_pb_put_uint(out, rn_pb_eager_CreateContextRequest_keep_alive_secs_field,
                   (uint64_t)client->keep_alive_s);
    put_cluster(client, &encoder, rn_pb_eager_CreateContextRequest_cluster_device_attributes_field);
    rn_pb_put_fixed64(out, rn_pb_eager_CreateContextRequest_context_id_field, client->context);
    if (client->view)
      rn_pb_put_fixed64(out, rn_pb_eager_CreateContextRequest_context_view_id_field, client->view);
    rn_pb_put_uint(out, rn_pb_eager_CreateContextRequest_lazy_copy_remote_function_inputs_field, 1);
    if (join->clears)
      rn_pb_put_uint(out, rn_pb_eager_CreateContextRequest_clear_existing_contexts_field, 1);
  }
  rn_status_t status = rn_encoder_close(&encoder);
  if (!rn_ok(status)) {
    rn_message_clear(&request);
    return status;
  }
  RN_RETURN_IF_ERROR(rn_far_ask(
      client, task, is_known ? RN_EAGER_PATH "UpdateContext" : RN_EAGER_PATH "CreateContext",
      &request, deadline_ns, true, &response));
  rn_message_clear(&response);
  rn_mutex_lock(&task->mutex);
  task->context = client->context;
  task->view = is_known ? task->view + 1 : client->view;
  rn_mutex_unlock(&task->mutex);
  return RN_OK;
}

// --- Tasks and their devices

static rn_status_t add_device(rn_eager_client_t* client, rn_far_t* task,
                              const rn_device_info_t* info) {
  for (size_t i = 0; i < task->devices.count; ++i) {
    rn_far_device_t* known = task->devices.items[i];
    if (!rn_str_eq(known->name, info->name)) continue;
    if (known->incarnation != info->incarnation) leave_task(task);  // another process
    known->incarnation = info->incarnation;
    return RN_OK;
  }
  rn_far_device_t* device = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&client->arena, &device));
  device->client = client;
  device->task = task;
  device->memory_limit = info->memory_limit;
  device->incarnation = info->incarnation;
  RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->name, &device->name));
  RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->type, &device->type));
  RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, info->description, &device->description));
  RN_RETURN_IF_ERROR(rn_vec_reserve(&task->devices, client->allocator, task->devices.count + 1));
  rn_eager_custom_device_t table = rn_far_table(device);
  RN_RETURN_IF_ERROR(rn_eager_add_custom_device(client->eager, device->name, &table));
  rn_mutex_lock(&task->mutex);
  task->devices.items[task->devices.count++] = device;
  rn_mutex_unlock(&task->mutex);
  return RN_OK;
}

static rn_status_t learn_devices(rn_eager_client_t* client, rn_far_t* task, int64_t deadline_ns) {
  rn_worker_t* worker = rn_eager_peers_worker(client->peers, task->name);
  rn_waiter_t waiter;
  if (!worker) return rn_unavailable("%.*s cannot be reached", RN_STR_ARGS(task->name));
  rn_get_status_t call = {.call = rn_waiter_call(&waiter, deadline_ns, NULL)};
  rn_arena_init(&call.arena, client->allocator);
  worker->vtable->get_status(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
    rn_status_free(status);
    status = rn_unavailable("%.*s at %.*s does not answer", RN_STR_ARGS(task->name),
                            RN_STR_ARGS(task->address));
  }
  for (size_t i = 0; i < call.device_count && rn_ok(status); ++i)
    status = add_device(client, task, &call.devices[i]);
  rn_arena_clear(&call.arena);
  return status;
}

static rn_status_t get_task(rn_eager_client_t* client, rn_str_t job, int32_t index,
                            rn_str_t address, rn_far_t** out) {
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(&client->arena, &name, "/job:%.*s/replica:0/task:%d",
                                     RN_STR_ARGS(job), index));
  *out = NULL;
  for (size_t i = 0; i < client->tasks.count && !*out; ++i)
    if (rn_str_eq(client->tasks.items[i]->name, name)) *out = client->tasks.items[i];
  if (*out) {
    if (rn_str_eq((*out)->address, address)) return RN_OK;
    leave_task(*out);  // another process runs there now
    return rn_arena_str(&client->arena, address, &(*out)->address);
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&client->arena, out));
  (*out)->name = name;
  (*out)->index = index;
  rn_mutex_init(&(*out)->mutex);
  RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, job, &(*out)->job));
  RN_RETURN_IF_ERROR(rn_arena_str(&client->arena, address, &(*out)->address));
  rn_mutex_lock(&client->mutex);
  rn_status_t status = rn_vec_push(&client->tasks, client->allocator, *out);
  rn_mutex_unlock(&client->mutex);
  return status;
}

// Tasks of the new view; |opened_at| marks them.
static rn_status_t take_tasks(rn_eager_client_t* client, const rn_pb_ServerDef_t* def) {
  const rn_pb_ClusterDef_t* cluster = def->cluster;
  for (uint32_t j = 0; cluster && j < cluster->job.count; ++j) {
    const rn_pb_JobDef_t* job = &cluster->job.items[j];
    for (uint32_t t = 0; t < job->tasks.count; ++t) {
      rn_far_t* task = NULL;
      int32_t index = job->tasks.items[t].key;
      if (rn_str_eq(job->name, def->job_name) && index == def->task_index) continue;
      RN_RETURN_IF_ERROR(get_task(client, job->name, index, job->tasks.items[t].value, &task));
      task->opened_at = client->view;
    }
  }
  return RN_OK;
}

static rn_status_t open_all(rn_eager_client_t* client, const rn_eager_join_t* join,
                            const rn_pb_ServerDef_t* def) {
  int64_t timeout = join->timeout_ms > 0 ? join->timeout_ms : TIMEOUT_MS;
  int64_t deadline = rn_loop_now(client->loop) + timeout * 1000000;
  for (size_t i = 0; i < client->tasks.count; ++i)
    if (client->tasks.items[i]->opened_at == client->view)
      RN_RETURN_IF_ERROR(learn_devices(client, client->tasks.items[i], deadline));
  for (size_t i = 0; i < client->tasks.count; ++i)
    if (client->tasks.items[i]->opened_at == client->view)
      RN_RETURN_IF_ERROR(open_task(client, join, def, client->tasks.items[i], deadline));
  return RN_OK;
}

static void close_all(rn_eager_client_t* client, bool all) {
  for (size_t i = 0; i < client->tasks.count; ++i)
    if (all || client->tasks.items[i]->opened_at != client->view)
      close_task(client, client->tasks.items[i]);
}

// --- The client

static void destroy(void* self) {
  rn_eager_client_t* client = self;
  if (!client) return;
  rn_mutex_lock(&client->mutex);
  client->is_closing = true;
  rn_mutex_unlock(&client->mutex);
  if (client->loop) rn_loop_clear_timer(client->loop, &client->timer);
  rn_mutex_lock(&client->mutex);
  while (client->pulse_count) rn_cond_wait(&client->changed, &client->mutex);
  rn_mutex_unlock(&client->mutex);
  if (client->peers) close_all(client, true);
  rn_agent_destroy(client->agent);
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
  client->timer.fn = on_timer;
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
  if (rn_ok(status)) status = rn_eager_set_cluster(eager, client, destroy);
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
  return join->is_alone ? RN_OK : take_tasks(client, def);
}

static rn_status_t enter(rn_eager_client_t* client, const rn_eager_join_t* join,
                         const rn_pb_ServerDef_t* def) {
  bool is_update = join->is_update && client->context;
  uint64_t old_context = client->context;
  if (!is_update) close_all(client, true);
  if (!is_update) client->context = new_context(client);
  client->view = is_update ? client->view + 1 : client->view;
  if (!is_update && old_context) client->view = 0;
  if (!is_update)
    for (size_t i = 0; i < client->tasks.count; ++i) client->tasks.items[i]->opened_at = UINT64_MAX;
  rn_status_t status = start_view(client, join, def);
  if (rn_ok(status)) status = open_all(client, join, def);
  if (rn_ok(status)) {
    size_t size = client->here.size - strlen(FIRST_DEVICE);
    status = rn_eager_set_task(client->eager, rn_str_n(client->here.data, size));
  }
  if (!rn_ok(status)) {
    if (!is_update) close_all(client, true);
    return status;
  }
  close_all(client, false);
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
  if (rn_ok(status) && def->protocol.size && !rn_str_is(def->protocol, "grpc"))
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

// The devices of the context stand for those of the server's worker.
static void take_place(rn_eager_t* eager, rn_server_t* server) {
  rn_session_t* session = rn_eager_session(eager);
  rn_local_worker_t* worker = rn_server_worker(server);
  rn_step_t step;
  rn_local_worker_identify(worker, session);
  rn_session_step_init(session, &step);
  rn_collectives_forward(step.collectives, rn_local_worker_collectives(worker));
}

// A task of the cluster has failed: collectives would wait for it for ever.
static void abort_collectives(rn_job_t* job) {
  rn_eager_client_t* client = RN_CONTAINER_OF(job, rn_eager_client_t, aborting);
  rn_step_t step;
  rn_session_step_init(rn_eager_session(client->eager), &step);
  rn_collectives_abort(step.collectives, rn_status_copy(client->failure));
  rn_mutex_lock(&client->mutex);
  client->pulse_count--;
  rn_cond_broadcast(&client->changed);
  rn_mutex_unlock(&client->mutex);
}

static void on_task_failed(void* self, rn_status_t status) {
  rn_eager_client_t* client = self;
  rn_mutex_lock(&client->mutex);
  client->failure = rn_status_copy(status);
  client->pulse_count++;
  rn_mutex_unlock(&client->mutex);
  client->aborting.run = abort_collectives;
  if (client->env->pool)
    rn_pool_submit(client->env->pool, &client->aborting);
  else
    abort_collectives(&client->aborting);
}

// The devices of this process, as a DeviceInfo.
static void put_own_devices(rn_eager_client_t* client, rn_encoder_t* out) {
  rn_session_t* session = rn_eager_session(client->eager);
  for (int i = 0; i < rn_session_device_count(session); ++i) {
    rn_device_info_t info = rn_device_info(rn_session_device(session, i));
    size_t mark = rn_pb_begin(&out->head, rn_pb_DeviceInfo_device_field);
    rn_pb_put_str(&out->head, rn_pb_google_protobuf_Any_type_url_field,
                  RN_STR("type.googleapis.com/tensorflow.DeviceAttributes"));
    rn_encode_devices(out, rn_pb_google_protobuf_Any_value_field, &info, 1);
    rn_pb_end(&out->head, mark);
  }
}

static int64_t ns_of_ms(int64_t ms) {
  return ms <= 0 ? 0 : (ms < MAX_WAIT_MS ? ms : MAX_WAIT_MS) * 1000000;
}

// Joins the tasks that coordinate, if |def| says so.
static rn_status_t coordinate(rn_eager_client_t* client, const rn_pb_ServerDef_t* def) {
  const rn_pb_ConfigProto_t* config = def->default_session_config;
  const rn_pb_CoordinationServiceConfig_t* asked =
      config && config->experimental ? config->experimental->coordination_config : NULL;
  if (!asked || !asked->service_type.size || asked->force_disable || client->agent) return RN_OK;
  rn_channel_t* leader = rn_eager_peers_channel(client->peers, asked->service_leader);
  if (!leader)
    return rn_invalid_argument("The leader of the coordination, %.*s, is not in the cluster",
                               RN_STR_ARGS(asked->service_leader));
  int64_t silence = ns_of_ms(asked->heartbeat_timeout_in_ms);
  rn_message_t devices;
  rn_encoder_t encoder;
  rn_strbuf_t bytes;
  rn_message_init(&devices, client->allocator);
  rn_strbuf_init(&bytes, client->allocator);
  rn_encoder_open(&encoder, &devices);
  put_own_devices(client, &encoder);
  rn_status_t status = rn_encoder_close(&encoder);
  rn_message_flatten(&devices, &bytes);
  rn_agent_options_t options = {.env = client->env,
                                .allocator = client->allocator,
                                .loop = client->loop,
                                .leader = leader,
                                .job = def->job_name,
                                .index = def->task_index,
                                .devices = rn_strbuf_view(&bytes),
                                .silence_ns = silence > 0 ? silence : client->lease_ns,
                                .register_ns = ns_of_ms(asked->cluster_register_timeout_in_ms),
                                .failed = on_task_failed,
                                .self = client};
  if (rn_ok(status)) status = rn_agent_create(&options, &client->agent);
  rn_strbuf_clear(&bytes);
  return status;
}

rn_agent_t* rn_eager_client_agent(rn_eager_t* eager) {
  rn_eager_client_t* client = rn_eager_cluster(eager);
  return client ? client->agent : NULL;
}

rn_server_t* rn_eager_client_server(rn_eager_t* eager) {
  rn_eager_client_t* client = rn_eager_cluster(eager);
  return client ? client->server : NULL;
}

rn_status_t rn_eager_client_serve(rn_eager_t* eager, const rn_eager_join_t* join,
                                  rn_server_t* server) {
  rn_status_t status = rn_server_start(server);
  if (rn_ok(status)) status = rn_eager_client_join(eager, join);
  if (!rn_ok(status)) {
    rn_server_destroy(server);
    return status;
  }
  rn_eager_client_t* client = rn_eager_cluster(eager);
  take_place(eager, server);
  rn_mutex_lock(&client->mutex);
  rn_server_t* old = client->server;
  client->server = server;
  rn_mutex_unlock(&client->mutex);
  rn_server_destroy(old);
  rn_arena_t arena;
  rn_pb_ServerDef_t* def = NULL;
  rn_arena_init(&arena, client->allocator);
  status = RN_PB_DECODE(ServerDef, join->server_def, NULL, &arena, &def);
  if (rn_ok(status)) status = coordinate(client, def);
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
      (*out)[(*out_count)++] = info_of(device);
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
