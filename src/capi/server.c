// Servers: a task of a cluster, from its ServerDef.
#include "capi/server.h"

#include <stdlib.h>

#include "dist/lease.h"
#include "dist/rpc/codec.h"
#include "net/token.h"
#include "proto/tensorflow_server.pb.h"
#include "session/session.h"
#include "tensorflow/c/c_api.h"
#include "train/cluster_spec.h"
#include "wire/decode.h"

struct TF_Server {
  rn_server_t* server;  // Owned
};

static rn_status_t take_tasks(const rn_pb_ServerDef_t* def, rn_arena_t* arena,
                              rn_server_options_t* options) {
  size_t count = 0;
  const rn_pb_ClusterDef_t* cluster = def->cluster;
  for (uint32_t j = 0; cluster && j < cluster->job.count; ++j)
    count += cluster->job.items[j].tasks.count;
  rn_server_task_t* tasks = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &tasks));
  for (uint32_t j = 0; cluster && j < cluster->job.count; ++j) {
    const rn_pb_JobDef_t* job = &cluster->job.items[j];
    for (uint32_t t = 0; t < job->tasks.count; ++t)
      tasks[options->task_count++] = (rn_server_task_t){
          .job = job->name, .index = job->tasks.items[t].key, .address = job->tasks.items[t].value};
  }
  options->tasks = tasks;
  return RN_OK;
}

// Whether the environment allows eager clients to make a server connect outside of its cluster.
static bool allows_network(void) {
  rn_str_t allow = rn_str(getenv("RUNNEL_ALLOW"));
  bool allows = false;
  while (allow.size && !allows) {
    rn_str_t word = rn_str_trim(rn_str_split(&allow, ';'));
    allows = rn_str_is(word, "network") || rn_str_is(word, "all");
  }
  return allows;
}

// Takes the devices that |config| asks for; all GPUs if it does not say.
static rn_status_t take_devices(rn_str_t config, rn_server_options_t* options) {
  rn_session_options_t session;
  rn_session_options_init(&session);
  RN_RETURN_IF_ERROR(rn_session_options_parse(config, &session));
  options->cpu_devices = session.cpu_devices;
  options->null_devices = session.null_devices;
  options->gpu = session.gpu;
  return RN_OK;
}

// Creates a server in this process, with |options| that name its task and the cluster's.
static rn_status_t create_server(rn_server_options_t* options, rn_server_t** out) {
  options->env = rn_capi_env();
  options->allocator = rn_capi_allocator();
  options->reaches_all = allows_network();
  options->reaches_local = true;
  RN_RETURN_IF_ERROR(rn_tokens_read(options->env, NULL, &rn_call_gate_roles, options->allocator,
                                    &options->tokens));
  rn_status_t status = rn_server_create(options, out);
  rn_tokens_release(options->tokens);
  return status;
}

// The same from a ServerDef, which lives in |arena|; |cpus|: the number of its CPU devices, or 0 if
// the ServerDef says.
static rn_status_t create(rn_str_t proto, int cpus, rn_arena_t* arena, rn_server_t** out) {
  rn_pb_ServerDef_t* def = NULL;
  rn_status_t status = RN_PB_DECODE(ServerDef, proto, NULL, arena, &def);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Could not parse provided bytes into a ServerDef protocol buffer");
  }
  RN_RETURN_IF_ERROR(status);
  bool uses_ucx = rn_str_is(def->protocol, "grpc+ucx");
  if (def->protocol.size && !uses_ucx && !rn_str_is(def->protocol, "grpc"))
    return rn_not_found("No server factory registered for the given ServerDef: protocol \"%.*s\"",
                        RN_STR_ARGS(def->protocol));
  rn_server_options_t options = {
      .job = def->job_name, .index = def->task_index, .uses_ucx = uses_ucx};
  RN_RETURN_IF_ERROR(take_tasks(def, arena, &options));
  rn_str_t settings = rn_field_bytes(proto, rn_pb_ServerDef_default_session_config_field);
  RN_RETURN_IF_ERROR(take_devices(settings, &options));
  RN_RETURN_IF_ERROR(rn_lease_of_config(settings, &options.lease_ns));
  if (cpus) options.cpu_devices = cpus;
  const rn_pb_ConfigProto_t* config = def->default_session_config;
  if (config && config->experimental) {
    options.collective_leader = config->experimental->collective_group_leader;
    options.collective_nccl = config->experimental->collective_nccl;
  }
  return create_server(&options, out);
}

rn_status_t rn_capi_server_create(rn_str_t server_def, int cpus, rn_server_t** out) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = create(server_def, cpus, &arena, out);
  rn_arena_clear(&arena);
  return status;
}

// Wraps |server|, which it owns, for the caller of the C API.
static TF_Server* wrap(rn_server_t* server, rn_status_t outcome, TF_Status* status) {
  TF_Server* wrapped = NULL;
  if (rn_ok(outcome)) outcome = RN_NEW(rn_capi_allocator(), &wrapped);
  if (wrapped)
    wrapped->server = server;
  else
    rn_server_destroy(server);
  rn_capi_set(status, outcome);
  return wrapped;
}

TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  if (!proto && proto_len) {
    rn_capi_set(status, RN_CAPI_NULL("proto"));
    return NULL;
  }
  rn_server_t* server = NULL;
  rn_status_t outcome = rn_capi_server_create(rn_str_n(proto, proto_len), 0, &server);
  return wrap(server, outcome, status);
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  rn_capi_set(status, server ? rn_server_start(server->server) : RN_CAPI_NULL("server"));
}
void TF_ServerStop(TF_Server* server, TF_Status* status) {
  rn_capi_set(status, server ? rn_server_stop(server->server) : RN_CAPI_NULL("server"));
}
void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  rn_capi_set(status, server ? rn_server_join(server->server) : RN_CAPI_NULL("server"));
}
const char* TF_ServerTarget(TF_Server* server) {
  return server ? rn_server_target(server->server) : NULL;
}
void TF_DeleteServer(TF_Server* server) {
  if (!server) return;
  rn_server_destroy(server->server);
  RN_FREE(rn_capi_allocator(), server);
}

// Clusters in text form.

RN_API rn_cluster_t* rn_cluster_parse(const char* text, TF_Status* status) {
  bool is_config = !text;
  if (is_config) text = getenv("TF_CONFIG");
  rn_cluster_t* cluster = NULL;
  rn_capi_set(status,
              text ? rn_cluster_create(rn_capi_allocator(), rn_str(text), is_config, &cluster)
                   : rn_not_found("TF_CONFIG does not say what the cluster is"));
  return cluster;
}

static rn_status_t create_task(const rn_cluster_t* cluster, const char* job, int task,
                               rn_arena_t* arena, rn_server_t** out) {
  if (!rn_cluster_address(cluster, job, task))
    return rn_not_found("The cluster has no task %d of job %s", task, job);
  rn_server_task_t* tasks = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, cluster->tasks.count, &tasks));
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_cluster_task_t* from = &cluster->tasks.items[i];
    tasks[i] = (rn_server_task_t){.job = from->job, .index = from->index, .address = from->address};
  }
  rn_server_options_t options = {
      .tasks = tasks, .task_count = cluster->tasks.count, .job = rn_str(job), .index = task};
  RN_RETURN_IF_ERROR(take_devices(RN_STR(""), &options));
  return create_server(&options, out);
}

RN_API TF_Server* rn_cluster_server(const rn_cluster_t* cluster, const char* job, int task,
                                    TF_Status* status) {
  if (!cluster || !job) {
    rn_capi_set(status, RN_CAPI_NULL(cluster ? "job" : "cluster"));
    return NULL;
  }
  rn_server_t* server = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = create_task(cluster, job, task, &arena, &server);
  rn_arena_clear(&arena);
  return wrap(server, outcome, status);
}
