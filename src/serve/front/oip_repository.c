// The repository of models and the regions of shared memory, as the Open Inference Protocol shows
// and changes them. See oip_info.h.
#include "serve/front/oip_app.h"
#include "serve/front/oip_info.h"
#include "serve/front/oip_load.h"
#include "serve/front/shared_memory.h"

static const char* state_of(const rn_version_info_t* info) {
  switch (info->state) {
    case RN_MODEL_AVAILABLE:
      return "READY";
    case RN_MODEL_START:
    case RN_MODEL_LOADING:
      return "LOADING";
    case RN_MODEL_UNLOADING:
      return "UNLOADING";
    default:
      return "UNAVAILABLE";
  }
}

static rn_status_t index_model(const rn_model_info_t* model, bool only_ready, rn_arena_t* arena,
                               rn_pb_inference_RepositoryIndexResponse_t* out) {
  rn_pb_inference_RepositoryIndexResponse_ModelIndex_t* next =
      &out->models.items[out->models.count];
  if (!model->version_count && !only_ready) {
    *next = (rn_pb_inference_RepositoryIndexResponse_ModelIndex_t){.name = model->name,
                                                                   .state = RN_STR("UNAVAILABLE")};
    out->models.count++;
  }
  for (int i = model->version_count - 1; i >= 0; --i) {
    const rn_version_info_t* info = &model->versions[i];
    if (only_ready && info->state != RN_MODEL_AVAILABLE) continue;
    next->name = model->name;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &next->version, "%lld", (long long)info->number));
    next->state = rn_str(state_of(info));
    bool has_ended = info->state == RN_MODEL_END && info->code == RN_CODE_OK;
    next->reason = rn_str(has_ended ? "unloaded" : info->message);
    next++;
    out->models.count++;
  }
  return RN_OK;
}

rn_status_t rn_oip_index(rn_front_t* front, bool only_ready, rn_arena_t* arena,
                         rn_pb_inference_RepositoryIndexResponse_t* out) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  int64_t all = 0;
  *out = (rn_pb_inference_RepositoryIndexResponse_t){0};
  RN_RETURN_IF_ERROR(rn_models_info(front->models, RN_STR(""), arena, &infos, &count));
  for (int i = 0; i < count; ++i) all += infos[i].version_count + 1;
  rn_str_t* apps = NULL;
  size_t app_count = 0;
  rn_status_t status = rn_oip_app_names(front, arena, &apps, &app_count);
  if (rn_ok(status)) status = RN_OIP_LIST(arena, &out->models, all + (int64_t)app_count);
  out->models.count = 0;
  for (int i = 0; rn_ok(status) && i < count; ++i)
    status = index_model(&infos[i], only_ready, arena, out);
  for (size_t i = 0; rn_ok(status) && i < app_count; ++i)
    out->models.items[out->models.count++] = (rn_pb_inference_RepositoryIndexResponse_ModelIndex_t){
        .name = apps[i], .version = RN_STR("1"), .state = RN_STR("READY")};
  rn_models_info_clear(infos, count);
  return status;
}

// Names the model in the error of a change, in Triton's words.
static rn_status_t explain(rn_status_t status, const char* verb, rn_str_t name) {
  if (rn_ok(status)) return status;
  bool is_unknown = rn_status_code(status) == RN_CODE_NOT_FOUND;
  rn_status_t better =
      is_unknown ? rn_invalid_argument("failed to %s '%.*s', failed to poll from model repository",
                                       verb, RN_STR_ARGS(name))
                 : rn_status_make(rn_status_code(status), "failed to %s '%.*s': %s", verb,
                                  RN_STR_ARGS(name), rn_status_message(status));
  rn_status_free(status);
  return better;
}

rn_status_t rn_oip_load(rn_front_t* front, rn_str_t name, const rn_oip_load_t* load) {
  rn_arena_t arena;
  rn_version_policy_t* policy = NULL;
  rn_arena_init(&arena, front->allocator);
  rn_status_t status = RN_OK;
  if (load->other.size)
    status = rn_unimplemented(
        "models are loaded from their base paths, and the only parameter is 'config', not '%.*s'",
        RN_STR_ARGS(load->other));
  if (rn_ok(status) && load->has_config)
    status = rn_oip_load_policy(front, name, load->config, &arena, &policy);
  if (rn_ok(status)) status = rn_models_load(front->models, name, policy, INT64_MAX);
  rn_arena_clear(&arena);
  return explain(status, "load", name);
}

rn_status_t rn_oip_unload(rn_front_t* front, rn_str_t name) {
  return explain(rn_models_unload(front->models, name), "unload", name);
}

// Shared memory.

rn_status_t rn_oip_shared_memory(const rn_front_t* front, bool is_local) {
  if (is_local && front->shared_memory) return RN_OK;
  return rn_status_make(RN_CODE_PERMISSION_DENIED,
                        "Shared memory is for clients on this machine only");
}

rn_status_t rn_oip_regions(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                           rn_pb_inference_SystemSharedMemoryStatusResponse_t* out) {
  rn_region_info_t* regions = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(
      rn_shared_memory_list(front->shared_memory, RN_REGION_SYSTEM, name, arena, &regions, &count));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->regions, count));
  for (size_t i = 0; i < count; ++i) {
    rn_pb_inference_SystemSharedMemoryStatusResponse_RegionStatus_t* status = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &status));
    *status = (rn_pb_inference_SystemSharedMemoryStatusResponse_RegionStatus_t){
        .name = regions[i].name,
        .key = regions[i].key,
        .offset = regions[i].offset,
        .byte_size = regions[i].size};
    out->regions.items[i].key = regions[i].name;
    out->regions.items[i].value = status;
  }
  return RN_OK;
}

rn_status_t rn_oip_cuda_regions(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                rn_pb_inference_CudaSharedMemoryStatusResponse_t* out) {
  rn_region_info_t* regions = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(
      rn_shared_memory_list(front->shared_memory, RN_REGION_CUDA, name, arena, &regions, &count));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->regions, count));
  for (size_t i = 0; i < count; ++i) {
    rn_pb_inference_CudaSharedMemoryStatusResponse_RegionStatus_t* status = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &status));
    *status = (rn_pb_inference_CudaSharedMemoryStatusResponse_RegionStatus_t){
        .name = regions[i].name,
        .device_id = (uint64_t)regions[i].card,
        .byte_size = regions[i].size};
    out->regions.items[i].key = regions[i].name;
    out->regions.items[i].value = status;
  }
  return RN_OK;
}
