// The small calls of inference.GRPCInferenceService. See oip_rpc.h.
#include "serve/front/oip_rpc.h"

#include "serve/front/oip_info.h"
#include "serve/front/oip_settings.h"
#include "serve/front/rpc.h"
#include "serve/front/shared_memory.h"
#include "wire/decode.h"
#include "wire/encode.h"

// A call that is answered at once.
typedef struct oip_call_t {
  rn_front_t* front;
  rn_rpc_in_t* in;
  const void* request;  // decoded
  rn_arena_t arena;
  rn_strbuf_t* out;  // the response
} oip_call_t;

#define REQUEST(call, type) ((const rn_pb_inference_##type##_t*)(call)->request)
#define RESPOND(call, type, message) RN_PB_ENCODE(inference_##type, (message), NULL, (call)->out)

static rn_status_t server_live(oip_call_t* call) {
  rn_pb_inference_ServerLiveResponse_t response = {.live = true};
  return RESPOND(call, ServerLiveResponse, &response);
}

static rn_status_t server_ready(oip_call_t* call) {
  rn_pb_inference_ServerReadyResponse_t response = {.ready = rn_oip_is_ready(call->front)};
  return RESPOND(call, ServerReadyResponse, &response);
}

static rn_status_t model_ready(oip_call_t* call) {
  const rn_pb_inference_ModelReadyRequest_t* request = REQUEST(call, ModelReadyRequest);
  rn_pb_inference_ModelReadyResponse_t response = {
      .ready = rn_oip_model_is_ready(call->front, request->name, request->version)};
  return RESPOND(call, ModelReadyResponse, &response);
}

static rn_status_t server_metadata(oip_call_t* call) {
  rn_pb_inference_ServerMetadataResponse_t response;
  RN_RETURN_IF_ERROR(rn_oip_server_metadata(&call->arena, &response));
  return RESPOND(call, ServerMetadataResponse, &response);
}

static rn_status_t model_metadata(oip_call_t* call) {
  const rn_pb_inference_ModelMetadataRequest_t* request = REQUEST(call, ModelMetadataRequest);
  rn_pb_inference_ModelMetadataResponse_t response;
  RN_RETURN_IF_ERROR(
      rn_oip_model_metadata(call->front, request->name, request->version, &call->arena, &response));
  return RESPOND(call, ModelMetadataResponse, &response);
}

static rn_status_t model_config(oip_call_t* call) {
  const rn_pb_inference_ModelConfigRequest_t* request = REQUEST(call, ModelConfigRequest);
  rn_pb_inference_ModelConfig_t config;
  RN_RETURN_IF_ERROR(
      rn_oip_model_config(call->front, request->name, request->version, &call->arena, &config));
  rn_pb_inference_ModelConfigResponse_t response = {.config = &config};
  return RESPOND(call, ModelConfigResponse, &response);
}

static rn_status_t model_statistics(oip_call_t* call) {
  const rn_pb_inference_ModelStatisticsRequest_t* request = REQUEST(call, ModelStatisticsRequest);
  rn_pb_inference_ModelStatisticsResponse_t response;
  RN_RETURN_IF_ERROR(
      rn_oip_statistics(call->front, request->name, request->version, &call->arena, &response));
  return RESPOND(call, ModelStatisticsResponse, &response);
}

static rn_status_t repository_index(oip_call_t* call) {
  rn_pb_inference_RepositoryIndexResponse_t response;
  RN_RETURN_IF_ERROR(rn_oip_index(call->front, REQUEST(call, RepositoryIndexRequest)->ready,
                                  &call->arena, &response));
  return RESPOND(call, RepositoryIndexResponse, &response);
}

static rn_status_t shared_memory_status(oip_call_t* call) {
  rn_pb_inference_SystemSharedMemoryStatusResponse_t response = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  RN_RETURN_IF_ERROR(rn_oip_regions(
      call->front, REQUEST(call, SystemSharedMemoryStatusRequest)->name, &call->arena, &response));
  return RESPOND(call, SystemSharedMemoryStatusResponse, &response);
}

static rn_status_t shared_memory_register(oip_call_t* call) {
  const rn_pb_inference_SystemSharedMemoryRegisterRequest_t* request =
      REQUEST(call, SystemSharedMemoryRegisterRequest);
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  return rn_shared_memory_add(call->front->shared_memory, request->name, request->key,
                              request->offset, request->byte_size);
}

static rn_status_t shared_memory_unregister(oip_call_t* call) {
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  rn_shared_memory_remove(call->front->shared_memory, RN_REGION_SYSTEM,
                          REQUEST(call, SystemSharedMemoryUnregisterRequest)->name);
  return RN_OK;
}

static rn_status_t cuda_status(oip_call_t* call) {
  rn_pb_inference_CudaSharedMemoryStatusResponse_t response = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  RN_RETURN_IF_ERROR(rn_oip_cuda_regions(
      call->front, REQUEST(call, CudaSharedMemoryStatusRequest)->name, &call->arena, &response));
  return RESPOND(call, CudaSharedMemoryStatusResponse, &response);
}

static rn_status_t cuda_register(oip_call_t* call) {
  const rn_pb_inference_CudaSharedMemoryRegisterRequest_t* request =
      REQUEST(call, CudaSharedMemoryRegisterRequest);
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  return rn_shared_memory_add_cuda(call->front->shared_memory, request->name, request->raw_handle,
                                   request->device_id, request->byte_size);
}

static rn_status_t cuda_unregister(oip_call_t* call) {
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(call->front, call->in->is_local));
  rn_shared_memory_remove(call->front->shared_memory, RN_REGION_CUDA,
                          REQUEST(call, CudaSharedMemoryUnregisterRequest)->name);
  return RN_OK;
}

static rn_status_t log_settings(oip_call_t* call) {
  rn_pb_inference_LogSettingsResponse_t response;
  RN_RETURN_IF_ERROR(
      rn_oip_log_settings(call->front, REQUEST(call, LogSettingsRequest), &call->arena, &response));
  return RESPOND(call, LogSettingsResponse, &response);
}

static rn_status_t trace_setting(oip_call_t* call) {
  rn_pb_inference_TraceSettingResponse_t response;
  RN_RETURN_IF_ERROR(rn_oip_trace_settings(call->front, REQUEST(call, TraceSettingRequest),
                                           &call->arena, &response));
  return RESPOND(call, TraceSettingResponse, &response);
}

// For callers who may read only: the same method changes settings, too.
static rn_status_t log_settings_read(oip_call_t* call) {
  bool changes = REQUEST(call, LogSettingsRequest)->settings.count > 0;
  return changes ? rn_front_denied(RN_ROLE_READ) : log_settings(call);
}
static rn_status_t trace_setting_read(oip_call_t* call) {
  bool changes = REQUEST(call, TraceSettingRequest)->settings.count > 0;
  return changes ? rn_front_denied(RN_ROLE_READ) : trace_setting(call);
}

// Decodes the request, a message of type |desc| (NULL: it is empty), and runs |method|.
typedef rn_status_t (*oip_method_fn_t)(oip_call_t* call);
static rn_status_t run(rn_front_t* front, rn_rpc_in_t* in, const rn_pb_message_desc_t* desc,
                       oip_method_fn_t method, rn_strbuf_t* out) {
  oip_call_t call = {.front = front, .in = in, .out = out};
  rn_arena_init(&call.arena, front->allocator);
  void* request = NULL;
  rn_status_t status = RN_OK;
  if (desc) status = rn_pb_decode(desc, rn_rpc_request(in), NULL, &call.arena, &request);
  call.request = request;
  if (rn_ok(status)) status = method(&call);
  rn_arena_clear(&call.arena);
  return status;
}

static void answer(rn_front_t* front, rn_rpc_in_t* in, const rn_pb_message_desc_t* desc,
                   oip_method_fn_t method) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, front->allocator);
  rn_status_t status = run(front, in, desc, method, &out);
  rn_rpc_finish(front, in, status, &out);
}

#define ANSWER(method, desc) \
  static void on_##method(rn_front_t* front, rn_rpc_in_t* in) { answer(front, in, (desc), method); }
#define DESC(type) &rn_pb_inference_##type##_desc
ANSWER(server_live, NULL)
ANSWER(server_ready, NULL)
ANSWER(model_ready, DESC(ModelReadyRequest))
ANSWER(server_metadata, NULL)
ANSWER(model_metadata, DESC(ModelMetadataRequest))
ANSWER(model_config, DESC(ModelConfigRequest))
ANSWER(model_statistics, DESC(ModelStatisticsRequest))
ANSWER(repository_index, DESC(RepositoryIndexRequest))
ANSWER(shared_memory_status, DESC(SystemSharedMemoryStatusRequest))
ANSWER(shared_memory_register, DESC(SystemSharedMemoryRegisterRequest))
ANSWER(shared_memory_unregister, DESC(SystemSharedMemoryUnregisterRequest))
ANSWER(log_settings, DESC(LogSettingsRequest))
ANSWER(log_settings_read, DESC(LogSettingsRequest))
ANSWER(trace_setting, DESC(TraceSettingRequest))
ANSWER(trace_setting_read, DESC(TraceSettingRequest))
ANSWER(cuda_status, DESC(CudaSharedMemoryStatusRequest))
ANSWER(cuda_register, DESC(CudaSharedMemoryRegisterRequest))
ANSWER(cuda_unregister, DESC(CudaSharedMemoryUnregisterRequest))

// Calls that block.

static rn_status_t load(oip_call_t* call) {
  const rn_pb_inference_RepositoryModelLoadRequest_t* request =
      REQUEST(call, RepositoryModelLoadRequest);
  rn_oip_load_t parameters = {0};
  for (uint32_t i = 0; i < request->parameters.count; ++i) {
    const rn_pb_inference_ModelRepositoryParameter_t* value = request->parameters.items[i].value;
    bool is_config =
        rn_str_is(request->parameters.items[i].key, "config") && value &&
        value->parameter_choice_case == rn_pb_inference_ModelRepositoryParameter_string_param_field;
    parameters.has_config |= is_config;
    if (is_config)
      parameters.config = value->string_param;
    else
      parameters.other = request->parameters.items[i].key;
  }
  return rn_oip_load(call->front, request->model_name, &parameters);
}
static rn_status_t unload(oip_call_t* call) {
  return rn_oip_unload(call->front, REQUEST(call, RepositoryModelUnloadRequest)->model_name);
}

static rn_status_t load_work(rn_front_t* front, rn_rpc_in_t* in, rn_strbuf_t* out) {
  return run(front, in, DESC(RepositoryModelLoadRequest), load, out);
}
static rn_status_t unload_work(rn_front_t* front, rn_rpc_in_t* in, rn_strbuf_t* out) {
  return run(front, in, DESC(RepositoryModelUnloadRequest), unload, out);
}
static void on_load(rn_front_t* front, rn_rpc_in_t* in) { rn_rpc_run_load(front, in, load_work); }
static void on_unload(rn_front_t* front, rn_rpc_in_t* in) {
  rn_rpc_run_load(front, in, unload_work);
}

#define SERVICE "/inference.GRPCInferenceService/"

// The settings of the server, if |call| is about them.
static bool route_settings(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  static const rn_rpc_method_t reads[] = {
      {"LogSettings", RN_ROLE_READ, on_log_settings_read},
      {"TraceSetting", RN_ROLE_READ, on_trace_setting_read},
  };
  static const rn_rpc_method_t changes[] = {
      {"LogSettings", RN_ROLE_ADMIN, on_log_settings},
      {"TraceSetting", RN_ROLE_ADMIN, on_trace_setting},
  };
  if (!rn_str_is(rn_rpc_path(call), SERVICE "LogSettings") &&
      !rn_str_is(rn_rpc_path(call), SERVICE "TraceSetting"))
    return false;
  return rn_rpc_dispatch(front, call, role, SERVICE, role < RN_ROLE_ADMIN ? reads : changes, 2);
}

bool rn_oip_rpc_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  static const rn_rpc_method_t methods[] = {
      {"ModelInfer", RN_ROLE_PREDICT, rn_oip_rpc_infer},
      {"ModelStreamInfer", RN_ROLE_PREDICT, rn_oip_rpc_stream},
      {"ServerLive", RN_ROLE_NONE, on_server_live},
      {"ServerReady", RN_ROLE_NONE, on_server_ready},
      {"ModelReady", RN_ROLE_NONE, on_model_ready},
      {"ServerMetadata", RN_ROLE_READ, on_server_metadata},
      {"ModelMetadata", RN_ROLE_READ, on_model_metadata},
      {"ModelConfig", RN_ROLE_READ, on_model_config},
      {"ModelStatistics", RN_ROLE_READ, on_model_statistics},
      {"RepositoryIndex", RN_ROLE_READ, on_repository_index},
      {"RepositoryModelLoad", RN_ROLE_ADMIN, on_load},
      {"RepositoryModelUnload", RN_ROLE_ADMIN, on_unload},
      {"SystemSharedMemoryStatus", RN_ROLE_ADMIN, on_shared_memory_status},
      {"SystemSharedMemoryRegister", RN_ROLE_ADMIN, on_shared_memory_register},
      {"SystemSharedMemoryUnregister", RN_ROLE_ADMIN, on_shared_memory_unregister},
      {"CudaSharedMemoryStatus", RN_ROLE_ADMIN, on_cuda_status},
      {"CudaSharedMemoryRegister", RN_ROLE_ADMIN, on_cuda_register},
      {"CudaSharedMemoryUnregister", RN_ROLE_ADMIN, on_cuda_unregister},
  };
  return route_settings(front, call, role) ||
         rn_rpc_dispatch(front, call, role, SERVICE, methods, sizeof methods / sizeof *methods);
}
