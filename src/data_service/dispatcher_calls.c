// The methods of the dispatcher about workers and datasets, and the table of all methods. Each runs
// on the dispatcher's pool, under its lock.
#include "data_service/dispatcher_internal.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define VERSION 9           // of the protocol, which clients compare with theirs
#define MAX_THINGS 1000000  // datasets, jobs, clients: each takes memory for good

rn_status_t rn_ds_check_room(size_t count) {
  if (count < MAX_THINGS) return RN_OK;
  return rn_resource_exhausted("The dispatcher has %d entries of a kind, which is its limit",
                               MAX_THINGS);
}

RN_DS_METHOD(get_version) {
  RN_DS_UNUSED();
  rn_pb_data_GetVersionResponse_t response = {.version = VERSION};
  return RN_DS_ENCODE(GetVersionResponse, &response, out);
}

// Workers.
static bool has_task(const rn_pb_data_WorkerHeartbeatRequest_t* request, int64_t id) {
  for (size_t i = 0; i < request->current_tasks.count; ++i)
    if (request->current_tasks.items[i] == id) return true;
  return false;
}

static rn_status_t register_worker(rn_ds_dispatcher_t* self,
                                   const rn_pb_data_WorkerHeartbeatRequest_t* request) {
  RN_RETURN_IF_ERROR(rn_ds_check_room(self->state.workers.count));
  RN_RETURN_IF_ERROR(rn_ds_admit_worker(self, request->worker_address));
  rn_pb_data_RegisterWorkerUpdate_t worker = {.worker_address = request->worker_address,
                                              .worker_uid = request->worker_uid};
  worker.worker_tags.items = request->worker_tags.items;
  worker.worker_tags.count = request->worker_tags.count;
  worker.transfer_servers.items = request->transfer_servers.items;
  worker.transfer_servers.count = request->transfer_servers.count;
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_register_worker_field,
                                .register_worker = &worker};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  rn_ds_worker_t* added = self->state.workers.items[self->state.workers.count - 1];
  for (size_t i = 0; i < self->state.iterations.count; ++i) {
    rn_ds_iteration_t* iteration = self->state.iterations.items[i];
    rn_ds_task_t* task = NULL;
    if (!iteration->is_finished)
      RN_RETURN_IF_ERROR(
          rn_ds_create_task(self, iteration, added, iteration->job->num_consumers > 0, &task));
  }
  return RN_OK;
}

// A coordinated iteration whose task on this worker was removed gets a new one.
static rn_status_t renew_removed(rn_ds_dispatcher_t* self, rn_ds_worker_t* worker) {
  for (size_t i = 0; i < self->state.iterations.count; ++i) {
    rn_ds_iteration_t* iteration = self->state.iterations.items[i];
    rn_ds_task_t* found = NULL;
    if (!iteration->job->num_consumers || iteration->is_finished) continue;
    for (size_t k = 0; k < self->state.tasks.count && !found; ++k) {
      rn_ds_task_t* task = self->state.tasks.items[k];
      if (task->iteration == iteration && task->worker == worker && !task->is_removed &&
          !task->is_finished)
        found = task;
    }
    if (!found) RN_RETURN_IF_ERROR(rn_ds_create_task(self, iteration, worker, true, &found));
  }
  return RN_OK;
}

RN_DS_METHOD(worker_heartbeat) {
  RN_DS_UNUSED();
  rn_pb_data_WorkerHeartbeatRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(WorkerHeartbeatRequest, call, arena, &request));
  if (!rn_ds_find_worker(&self->state, request->worker_address))
    RN_RETURN_IF_ERROR(register_worker(self, request));
  rn_ds_worker_t* worker = rn_ds_find_worker(&self->state, request->worker_address);
  RN_RETURN_IF_ERROR(renew_removed(self, worker));
  for (size_t i = 0; i < self->state.tasks.count; ++i) {
    const rn_ds_task_t* task = self->state.tasks.items[i];
    if (task->worker != worker || task->is_finished || task->is_removed ||
        has_task(request, task->id))
      continue;
    RN_RETURN_IF_ERROR(
        rn_ds_write_task(self, task, rn_pb_data_WorkerHeartbeatResponse_new_tasks_field, out));
  }
  size_t mark = rn_pb_begin(out, rn_pb_data_WorkerHeartbeatResponse_tasks_to_delete_field);
  for (size_t i = 0; i < request->current_tasks.count; ++i) {
    const rn_ds_task_t* task = rn_ds_find_task(&self->state, request->current_tasks.items[i]);
    if (!task || task->worker != worker || task->is_finished || task->is_removed)
      rn_pb_put_varint(out, (uint64_t)request->current_tasks.items[i]);
  }
  rn_pb_end(out, mark);
  return RN_OK;
}

RN_DS_METHOD(worker_update) {
  RN_DS_UNUSED();
  rn_pb_data_WorkerUpdateRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(WorkerUpdateRequest, call, arena, &request));
  for (size_t i = 0; i < request->updates.count; ++i) {
    int64_t id = request->updates.items[i].task_id;
    const rn_ds_task_t* task = rn_ds_find_task(&self->state, id);
    if (!task) return rn_not_found("Task %lld not found", (long long)id);
    if (!request->updates.items[i].completed || task->is_finished) continue;
    rn_pb_data_FinishTaskUpdate_t finish = {.task_id = id};
    rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_finish_task_field,
                                  .finish_task = &finish};
    RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  }
  return RN_OK;
}

RN_DS_METHOD(get_workers) {
  RN_DS_UNUSED();
  for (size_t i = 0; i < self->state.workers.count; ++i) {
    size_t mark = rn_pb_begin(out, rn_pb_data_GetWorkersResponse_workers_field);
    rn_pb_put_str(out, rn_pb_data_WorkerInfo_address_field, self->state.workers.items[i]->address);
    rn_pb_end(out, mark);
  }
  return RN_OK;
}

// Datasets.
rn_status_t rn_ds_need_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_ds_dataset_t** out) {
  *out = rn_ds_find_dataset(&self->state, id);
  return *out ? RN_OK : rn_not_found("Dataset id %.*s not found", RN_STR_ARGS(id));
}

// A dataset that is registered again under its id must have the same metadata. Element specs differ
// in their bytes although they say the same, so they are not compared.
static rn_status_t check_same(const rn_ds_dataset_t* known,
                              const rn_pb_data_DataServiceMetadata_t* metadata) {
  static const rn_pb_data_DataServiceMetadata_t none = {0};
  if (!metadata) metadata = &none;
  const char* what = NULL;
  long long had = 0, got = 0;
  if (known->metadata.compression != metadata->compression) {
    what = "compression";
    had = known->metadata.compression;
    got = metadata->compression;
  } else if (known->metadata.cardinality != metadata->cardinality) {
    what = "cardinality";
    had = known->metadata.cardinality;
    got = metadata->cardinality;
  }
  if (!what) return RN_OK;
  return rn_invalid_argument(
      "Datasets with the same ID should have the same structure, got diff for dataset ID %.*s: "
      "modified: %s: %lld -> %lld. To fix this error, make sure you're registering the same "
      "dataset with the same ID.",
      RN_STR_ARGS(known->id), what, had, got);
}

RN_DS_METHOD(get_or_register_dataset) {
  RN_DS_UNUSED();
  rn_str_t bytes = rn_rpc_request(call);
  rn_str_t id = rn_field_bytes(bytes, rn_pb_data_GetOrRegisterDatasetRequest_dataset_id_field);
  rn_str_t about = rn_field_bytes(bytes, rn_pb_data_GetOrRegisterDatasetRequest_metadata_field);
  rn_str_t def = rn_field_bytes(bytes, rn_pb_data_GetOrRegisterDatasetRequest_dataset_field);
  rn_pb_data_DataServiceMetadata_t* metadata = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(data_DataServiceMetadata, about, NULL, arena, &metadata));
  rn_pb_data_GetOrRegisterDatasetResponse_t response = {.dataset_id = id};
  const rn_ds_dataset_t* known = rn_ds_find_dataset(&self->state, id);
  if (known) {
    RN_RETURN_IF_ERROR(check_same(known, metadata));
    return RN_DS_ENCODE(GetOrRegisterDatasetResponse, &response, out);
  }
  RN_RETURN_IF_ERROR(rn_ds_check_room(self->state.datasets.count));
  if (!id.size)
    RN_RETURN_IF_ERROR(
        rn_arena_printf(arena, &response.dataset_id, "%lld", (long long)self->state.next_dataset));
  RN_RETURN_IF_ERROR(rn_ds_put_dataset(self, response.dataset_id, def));
  rn_pb_data_RegisterDatasetUpdate_t add = {.dataset_id = response.dataset_id,
                                            .metadata = metadata};
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_register_dataset_field,
                                .register_dataset = &add};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  return RN_DS_ENCODE(GetOrRegisterDatasetResponse, &response, out);
}

RN_DS_METHOD(get_dataset_def) {
  RN_DS_UNUSED();
  rn_pb_data_GetDatasetDefRequest_t* request = NULL;
  rn_ds_dataset_t* dataset = NULL;
  rn_strbuf_t def;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(GetDatasetDefRequest, call, arena, &request));
  RN_RETURN_IF_ERROR(rn_ds_need_dataset(self, request->dataset_id, &dataset));
  rn_strbuf_init(&def, self->allocator);
  rn_status_t status = rn_ds_get_dataset(self, dataset->id, &def);
  if (rn_ok(status))
    rn_pb_put_str(out, rn_pb_data_GetDatasetDefResponse_dataset_def_field, rn_strbuf_view(&def));
  rn_strbuf_clear(&def);
  return status;
}

RN_DS_METHOD(get_metadata) {
  RN_DS_UNUSED();
  rn_pb_data_GetDataServiceMetadataRequest_t* request = NULL;
  rn_ds_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(GetDataServiceMetadataRequest, call, arena, &request));
  RN_RETURN_IF_ERROR(rn_ds_need_dataset(self, request->dataset_id, &dataset));
  rn_pb_data_GetDataServiceMetadataResponse_t response = {.metadata = &dataset->metadata};
  return RN_DS_ENCODE(GetDataServiceMetadataResponse, &response, out);
}

RN_DS_METHOD(get_config) {
  RN_DS_UNUSED();
  rn_pb_data_DataServiceConfig_t config = {.deployment_mode = self->config.deployment_mode};
  rn_pb_data_GetDataServiceConfigResponse_t response = {.config = &config};
  return RN_DS_ENCODE(GetDataServiceConfigResponse, &response, out);
}

RN_DS_METHOD(disable_compression) {
  RN_DS_UNUSED();
  rn_pb_data_DisableCompressionAtRuntimeRequest_t* request = NULL;
  rn_ds_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(DisableCompressionAtRuntimeRequest, call, arena, &request));
  RN_RETURN_IF_ERROR(rn_ds_need_dataset(self, request->dataset_id, &dataset));
  rn_pb_data_DisableCompressionAtRuntimeResponse_t response = {0};
  if (dataset->metadata.compression == rn_pb_data_DataServiceMetadata_COMPRESSION_OFF) {
    response.decision_case =
        rn_pb_data_DisableCompressionAtRuntimeResponse_no_compression_to_disable_field;
    response.no_compression_to_disable = true;
    return RN_DS_ENCODE(DisableCompressionAtRuntimeResponse, &response, out);
  }
  if (dataset->compression_disabled < 0) {
    rn_pb_data_CompressionDisabledAtRuntimeUpdate_t decide = {
        .dataset_id = dataset->id, .compression_disabled = request->disable_compression_at_runtime};
    rn_pb_data_Update_t update = {
        .update_type_case = rn_pb_data_Update_compression_disabled_at_runtime_field,
        .compression_disabled_at_runtime = &decide};
    RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  }
  response.decision_case =
      rn_pb_data_DisableCompressionAtRuntimeResponse_compression_disabled_at_runtime_field;
  response.compression_disabled_at_runtime = dataset->compression_disabled == 1;
  return RN_DS_ENCODE(DisableCompressionAtRuntimeResponse, &response, out);
}

const rn_ds_method_t rn_ds_methods[] = {
#define ROW(name, function) {#name, rn_ds_call_##function},
    RN_DS_METHODS(ROW)
#undef ROW
        {NULL, NULL}};
