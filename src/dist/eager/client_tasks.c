// The tasks of a client's cluster: their contexts, which are opened, kept alive and closed, and
// their devices. See client.h.
#include "base/container.h"
#include "dist/calls.h"
#include "dist/eager/client_internal.h"
#include "proto/eager_service.pb.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define TIMEOUT_MS 60000
#define CLOSE_NS INT64_C(5000000000)

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

void rn_far_on_timer(rn_timer_t* timer) {
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

rn_device_info_t rn_far_device_info(const rn_far_device_t* device) {
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
      rn_device_info_t info = rn_far_device_info(device);
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
rn_status_t rn_far_take_tasks(rn_eager_client_t* client, const rn_pb_ServerDef_t* def) {
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

rn_status_t rn_far_open_all(rn_eager_client_t* client, const rn_eager_join_t* join,
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

void rn_far_close_all(rn_eager_client_t* client, bool all) {
  for (size_t i = 0; i < client->tasks.count; ++i)
    if (all || client->tasks.items[i]->opened_at != client->view)
      close_task(client, client->tasks.items[i]);
}
