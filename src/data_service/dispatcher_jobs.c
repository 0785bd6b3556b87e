// The methods of the dispatcher about jobs, their iterations and the clients that read them.
#include "data_service/dispatcher_internal.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define MAX_ROUND (INT64_MAX / 2)  // so that later rounds are numbers too
#define HINT rn_pb_data_ProcessingModeDef_HINT

static const char* target_name(rn_pb_data_TargetWorkers_t target) {
  static const char* const names[] = {"", "AUTO", "ANY", "LOCAL"};
  return (unsigned)target < 4 ? names[target] : "";
}
static const char* policy_name(int policy) {
  static const char* const names[] = {"",
                                      "sharding_policy: DYNAMIC",
                                      "sharding_policy: FILE",
                                      "sharding_policy: DATA",
                                      "sharding_policy: FILE_OR_DATA",
                                      "sharding_policy: HINT"};
  return (unsigned)policy < 6 ? names[policy] : "";
}

static rn_status_t check_same_job(const rn_ds_job_t* job, int policy,
                                  const rn_pb_data_GetOrCreateJobRequest_t* request,
                                  rn_arena_t* arena) {
  rn_str_t mode = RN_STR(""), cache = RN_STR(""), target = RN_STR("");
  if ((int)job->policy != policy)
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &mode, "Existing processing mode: <%s>; got <%s>. ",
                                       policy_name((int)job->policy), policy_name(policy)));
  if (job->has_cache != request->use_cross_trainer_cache)
    RN_RETURN_IF_ERROR(rn_arena_printf(
        arena, &cache, "Existing cross-trainer cache: <%s>; got <%s>. ",
        job->has_cache ? "enabled" : "disabled", job->has_cache ? "disabled" : "enabled"));
  if ((int)job->target_workers != (int)request->target_workers)
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &target, "Existing target workers: <%s>; got <%s>. ",
                                       target_name(job->target_workers),
                                       target_name(request->target_workers)));
  if (!mode.size && !cache.size && !target.size) return RN_OK;
  return rn_invalid_argument(
      "Tried to create job with name %.*s, but found an existing job with different parameters: "
      "%.*s%.*s%.*s",
      RN_STR_ARGS(job->name), RN_STR_ARGS(mode), RN_STR_ARGS(cache), RN_STR_ARGS(target));
}

RN_DS_METHOD(get_or_create_job) {
  RN_DS_UNUSED();
  rn_pb_data_GetOrCreateJobRequest_t* request = NULL;
  rn_ds_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(GetOrCreateJobRequest, call, arena, &request));
  int policy =
      request->processing_mode_def ? (int)request->processing_mode_def->sharding_policy : 0;
  if (policy < 0 || policy > (int)HINT)
    return rn_internal("ProcessingMode %d does not specify a valid sharding policy.", policy);
  rn_str_t name = request->job_name;
  if (!request->optional_job_name_case) {
    uint64_t random = self->env->random(self->env->self);
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &name, "anonymous_job_%lld_%llu",
                                       (long long)self->state.next_job,
                                       (unsigned long long)random));
  }
  rn_pb_data_GetOrCreateJobResponse_t response = {0};
  const rn_ds_job_t* job = rn_ds_find_job_named(&self->state, name);
  if (job) {
    RN_RETURN_IF_ERROR(check_same_job(job, policy, request, arena));
    response.job_id = job->id;
    return RN_DS_ENCODE(GetOrCreateJobResponse, &response, out);
  }
  RN_RETURN_IF_ERROR(rn_ds_check_room(self->state.jobs.count));
  RN_RETURN_IF_ERROR(rn_ds_need_dataset(self, request->dataset_id, &dataset));
  response.job_id = self->state.next_job;
  rn_pb_data_CreateJobUpdate_t create = {
      .job_id = response.job_id,
      .job_name = name,
      .dataset_id = request->dataset_id,
      .processing_mode_def = request->processing_mode_def,
      .target_workers = request->target_workers,
      .use_cross_trainer_cache = request->use_cross_trainer_cache};
  if (request->optional_num_consumers_case) {
    create.optional_num_consumers_case = rn_pb_data_CreateJobUpdate_num_consumers_field;
    create.num_consumers = request->num_consumers;
  }
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_create_job_field,
                                .create_job = &create};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  return RN_DS_ENCODE(GetOrCreateJobResponse, &response, out);
}

static rn_status_t create_iteration(rn_ds_dispatcher_t* self, const rn_ds_job_t* job,
                                    int64_t repetition, int64_t split_sources,
                                    rn_ds_iteration_t** out) {
  rn_pb_data_CreateIterationUpdate_t create = {.iteration_id = self->state.next_iteration,
                                               .job_id = job->id,
                                               .repetition = repetition,
                                               .num_split_providers = split_sources};
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_create_iteration_field,
                                .create_iteration = &create};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  *out = rn_ds_find_iteration(&self->state, create.iteration_id);
  for (size_t i = 0; i < self->state.workers.count; ++i) {
    rn_ds_task_t* task = NULL;
    RN_RETURN_IF_ERROR(rn_ds_create_task(self, *out, self->state.workers.items[i], false, &task));
    rn_ds_send_task(self, task);
  }
  return RN_OK;
}

RN_DS_METHOD(get_or_create_iteration) {
  RN_DS_UNUSED();
  rn_pb_data_GetOrCreateIterationRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(GetOrCreateIterationRequest, call, arena, &request));
  RN_RETURN_IF_ERROR(rn_ds_check_room(self->state.clients.count));
  const rn_ds_job_t* job = rn_ds_find_job(&self->state, request->job_id);
  if (!job) return rn_not_found("Job with id %lld not found", (long long)request->job_id);
  rn_ds_iteration_t* iteration = rn_ds_find_repetition(&self->state, job, request->repetition);
  if (!iteration || iteration->is_collected) {
    rn_ds_splits_t* splits = NULL;
    if (job->policy == rn_pb_data_ProcessingModeDef_DYNAMIC)
      RN_RETURN_IF_ERROR(
          rn_ds_splits_of(self, job, request->repetition, call, out_is_deferred, &splits));
    if (*out_is_deferred) return RN_OK;
    RN_RETURN_IF_ERROR(create_iteration(self, job, request->repetition,
                                        splits ? rn_ds_splits_count(splits) : 0, &iteration));
  }
  rn_pb_data_GetOrCreateIterationResponse_t response = {.iteration_client_id =
                                                            self->state.next_client};
  rn_pb_data_AcquireIterationClientUpdate_t acquire = {
      .iteration_id = iteration->id, .iteration_client_id = response.iteration_client_id};
  rn_pb_data_Update_t update = {
      .update_type_case = rn_pb_data_Update_acquire_iteration_client_field,
      .acquire_iteration_client = &acquire};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  // A client that has not begun to read is not released.
  rn_ds_find_client(&self->state, response.iteration_client_id)->heard_ns = INT64_MAX;
  return RN_DS_ENCODE(GetOrCreateIterationResponse, &response, out);
}

RN_DS_METHOD(release_client) {
  RN_DS_UNUSED();
  rn_pb_data_ReleaseIterationClientRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(ReleaseIterationClientRequest, call, arena, &request));
  int64_t id = request->iteration_client_id;
  const rn_ds_client_t* client = rn_ds_find_client(&self->state, id);
  if (!client || client->is_released)
    return rn_not_found("Iteration client id not found: %lld", (long long)id);
  rn_pb_data_ReleaseIterationClientUpdate_t release = {
      .iteration_client_id = id, .time_micros = self->env->wall_us(self->env->self)};
  rn_pb_data_Update_t update = {
      .update_type_case = rn_pb_data_Update_release_iteration_client_field,
      .release_iteration_client = &release};
  return rn_ds_change(self, &update);
}

// Brings the consumers of a coordinated job to agree on the round in which the next task joins.
static rn_status_t negotiate(rn_ds_dispatcher_t* self, const rn_ds_client_t* client,
                             const rn_pb_data_ClientHeartbeatRequest_t* request) {
  rn_ds_iteration_t* iteration = client->iteration;
  const rn_ds_pending_t* pending = &iteration->pending.items[0];
  rn_pb_data_TaskRejected_t rejected = {0};
  rn_pb_data_ClientHeartbeatUpdate_t heard = {.iteration_client_id = client->id};
  if (request->current_round >= pending->target_round) {
    int failures = pending->failures < 20 ? pending->failures : 20;
    rejected.new_target_round = iteration->round + ((int64_t)2 << failures);
    heard.task_rejected = &rejected;
  }
  bool is_ready = false;
  for (size_t i = 0; i < pending->ready.count; ++i)
    is_ready |= pending->ready.items[i] == client->id;
  if (request->optional_blocked_round_case && request->blocked_round <= pending->target_round &&
      !is_ready)
    heard.task_accepted = true;
  if (!heard.task_rejected && !heard.task_accepted) return RN_OK;
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_client_heartbeat_field,
                                .client_heartbeat = &heard};
  return rn_ds_change(self, &update);
}

RN_DS_METHOD(client_heartbeat) {
  RN_DS_UNUSED();
  rn_pb_data_ClientHeartbeatRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(ClientHeartbeatRequest, call, arena, &request));
  int64_t id = request->iteration_client_id;
  rn_ds_client_t* client = rn_ds_find_client(&self->state, id);
  if (!client || client->is_released) {
    if (self->config.fault_tolerant_mode)
      return rn_not_found("Iteration client id not found: %lld", (long long)id);
    return rn_not_found(
        "Unknown iteration client id %lld. The dispatcher is not configured to be fault tolerant, "
        "so this could be caused by a dispatcher restart.",
        (long long)id);
  }
  client->heard_ns = rn_loop_now(self->loop);
  rn_ds_iteration_t* iteration = client->iteration;
  if (iteration->is_collected)
    return rn_failed_precondition(
        "The requested iteration has been garbage collected due to inactivity. Consider "
        "configuring the dispatcher with a higher `iteration_gc_timeout_ms`.");
  if (request->current_round > MAX_ROUND)
    return rn_invalid_argument("%lld is not the number of a round",
                               (long long)request->current_round);
  if (request->optional_current_round_case && request->current_round > iteration->round)
    iteration->round = request->current_round;
  if (iteration->pending.count) RN_RETURN_IF_ERROR(negotiate(self, client, request));
  rn_pb_data_ClientHeartbeatResponse_t response = {.iteration_finished = iteration->is_finished,
                                                   .deployment_mode = self->config.deployment_mode};
  if (iteration->pending.count) {
    response.optional_block_round_case = rn_pb_data_ClientHeartbeatResponse_block_round_field;
    response.block_round = iteration->pending.items[0].target_round;
  }
  rn_pb_data_TaskInfo_t* infos = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, iteration->tasks.count, &infos));
  for (size_t i = 0; i < iteration->tasks.count; ++i) {
    const rn_ds_task_t* task = iteration->tasks.items[i];
    const rn_pb_data_RegisterWorkerUpdate_t* worker = task->worker->info;
    infos[i] = (rn_pb_data_TaskInfo_t){.worker_address = task->worker->address,
                                       .task_id = task->id,
                                       .iteration_id = iteration->id,
                                       .starting_round = task->starting_round,
                                       .worker_uid = worker->worker_uid};
    infos[i].worker_tags.items = worker->worker_tags.items;
    infos[i].worker_tags.count = worker->worker_tags.count;
    infos[i].transfer_servers.items = worker->transfer_servers.items;
    infos[i].transfer_servers.count = worker->transfer_servers.count;
  }
  response.task_info.items = infos;
  response.task_info.count = iteration->tasks.count;
  return RN_DS_ENCODE(ClientHeartbeatResponse, &response, out);
}
