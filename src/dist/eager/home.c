// A client's own process as a task of its cluster. See home.h.
#include "dist/eager/home.h"

#include "base/log.h"
#include "dist/eager/internal.h"
#include "dist/eager/service.h"
#include "dist/eager/span.h"
#include "dist/server.h"

// The address of this process in |def|; "": it has none.
static rn_str_t own_address(const rn_pb_ServerDef_t* def) {
  const rn_pb_ClusterDef_t* cluster = def->cluster;
  for (uint32_t j = 0; cluster && j < cluster->job.count; ++j) {
    const rn_pb_JobDef_t* job = &cluster->job.items[j];
    for (uint32_t t = 0; t < job->tasks.count; ++t)
      if (rn_str_eq(job->name, def->job_name) && job->tasks.items[t].key == def->task_index)
        return job->tasks.items[t].value;
  }
  return RN_STR("");
}

// Other tasks know the devices of the context by the incarnations of the server's.
static void identify(rn_eager_client_t* client) {
  rn_session_t* session = rn_eager_session(client->eager);
  rn_local_worker_t* worker = rn_server_worker(client->server);
  int count = rn_local_worker_device_count(worker);
  for (int i = 0; i < rn_session_device_count(session) && i < count; ++i) {
    rn_device_t* device = (rn_device_t*)(uintptr_t)rn_session_device(session, i);
    device->incarnation = rn_local_worker_device(worker, i)->incarnation;
  }
}

rn_status_t rn_home_listen(rn_eager_client_t* client, const rn_eager_join_t* join,
                           const rn_pb_ServerDef_t* def) {
  rn_str_t address = own_address(def);
  rn_server_t* server = NULL;
  if (!join->make_server || !address.size) return RN_OK;
  if (client->server && rn_str_eq(rn_server_address(client->server), address)) return RN_OK;
  rn_home_close(client);
  rn_server_destroy(client->server);
  client->server = NULL;
  rn_status_t status = join->make_server(client->eager, join->server_def, &server);
  if (rn_status_code(status) == RN_CODE_FAILED_PRECONDITION) {  // another context has the port
    rn_log(client->env, RN_LOG_WARNING,
           "other tasks cannot use values of this context, because it cannot listen at %.*s: %s",
           RN_STR_ARGS(address), rn_status_message(status));
    rn_status_free(status);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(status);
  status = rn_server_start(server);
  if (!rn_ok(status)) {
    rn_server_destroy(server);
    return status;
  }
  client->server = server;
  identify(client);
  return RN_OK;
}

// Retained: another thread may close it. NULL if there is none.
static rn_eager_context_t* get_home(rn_eager_client_t* client) {
  rn_mutex_lock(&client->mutex);
  rn_eager_context_t* home = client->home;
  if (home) rn_eager_context_retain(home);
  rn_mutex_unlock(&client->mutex);
  return home;
}

static rn_status_t open_home(rn_eager_client_t* client, const rn_eager_join_t* join,
                             const rn_device_info_t* devices, size_t device_count) {
  rn_eager_context_t* home = get_home(client);
  if (home) {
    rn_status_t updated = rn_eager_context_update(home, rn_eager_context_view(home) + 1,
                                                  join->server_def, devices, device_count);
    rn_eager_context_release(home);
    return updated;
  }
  rn_eager_context_options_t options = {.env = client->env,
                                        .allocator = client->allocator,
                                        .peers = {.env = client->env,
                                                  .allocator = client->allocator,
                                                  .loop = client->loop,
                                                  .lease_ns = client->lease_ns,
                                                  .borrows = true,
                                                  .tokens = client->tokens},
                                        .worker = rn_server_worker(client->server),
                                        .eager = client->eager,
                                        .task = rn_eager_task_of(client->here),
                                        .id = client->context,
                                        .view = client->view,
                                        .server_def = join->server_def,
                                        .devices = devices,
                                        .device_count = device_count,
                                        .keep_alive_ns = INT64_MAX / 2};
  RN_RETURN_IF_ERROR(rn_eager_context_create(&options, &home));
  rn_status_t status = rn_eager_service_adopt(rn_server_eager(client->server), home);
  if (!rn_ok(status)) {
    rn_eager_context_release(home);
    return status;
  }
  rn_mutex_lock(&client->mutex);
  client->home = home;
  rn_mutex_unlock(&client->mutex);
  return RN_OK;
}

rn_status_t rn_home_open(rn_eager_client_t* client, const rn_eager_join_t* join) {
  rn_arena_t arena;
  rn_device_info_t* devices = NULL;
  size_t count = 0;
  if (!client->server || !join->make_server) return RN_OK;
  rn_arena_init(&arena, client->allocator);
  rn_status_t status = rn_eager_client_devices(client->eager, &arena, &devices, &count);
  if (rn_ok(status)) status = open_home(client, join, devices, count);
  rn_arena_clear(&arena);
  return status;
}

void rn_home_close(rn_eager_client_t* client) {
  rn_mutex_lock(&client->mutex);
  rn_eager_context_t* home = client->home;
  client->home = NULL;
  rn_mutex_unlock(&client->mutex);
  if (!home) return;
  rn_eager_service_dismiss(rn_server_eager(client->server), home);
  rn_eager_context_release(home);
}

rn_status_t rn_home_show(rn_eager_client_t* client, int64_t number, rn_eager_handle_t* handle) {
  rn_eager_context_t* home = get_home(client);
  if (!home)
    return rn_failed_precondition(
        "A resource of this process cannot be packed with others, because the cluster has no "
        "address for it");
  rn_status_t status = rn_eager_value_put(home, number, 0, handle);
  rn_eager_context_release(home);
  return status;
}

void rn_home_hide(rn_eager_client_t* client, int64_t number) {
  rn_eager_context_t* home = get_home(client);
  if (home) rn_status_free(rn_eager_value_drop(home, number, 0));
  rn_eager_context_release(home);
}

rn_status_t rn_home_take(rn_eager_client_t* client, int64_t op, int32_t output,
                         rn_eager_handle_t** out) {
  rn_eager_context_t* home = get_home(client);
  *out = NULL;
  if (!home) return rn_internal("A result is on a device that this context does not have");
  rn_status_t status = rn_eager_value_get(home, op, output, out, NULL);
  if (rn_ok(status)) rn_status_free(rn_eager_value_drop(home, op, output));
  rn_eager_context_release(home);
  return status;
}

void rn_home_forget(void* self, rn_str_t function) {
  rn_eager_client_t* client = self;
  rn_eager_context_t* home = get_home(client);
  if (home && !rn_str_starts_with(function, RN_STR(RN_SPAN_PREFIX)))
    rn_spans_drop(home, function, true);
  rn_eager_context_release(home);
}
