// This process as a task of the cluster: its server, its collectives, and the coordination with
// other tasks. See client.h.
#include "base/container.h"
#include "collective/collectives.h"
#include "dist/eager/client_internal.h"
#include "dist/eager/home.h"
#include "dist/server.h"
#include "proto/any.pb.h"
#include "proto/config.pb.h"
#include "proto/coordination_config.pb.h"
#include "proto/coordination_service.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define MAX_WAIT_MS (INT64_C(365) * 86400000)

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
  rn_home_close(client);
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
