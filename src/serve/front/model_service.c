// ModelService: the states of a model's versions, and a new list of models.
#include "proto/serving_model.pb.h"
#include "proto/serving_status.pb.h"
#include "serve/front/rpc.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

static void put_status(rn_strbuf_t* out, uint32_t number, rn_code_t code, const char* message) {
  size_t status = rn_pb_begin(out, number);
  if (code) rn_pb_put_uint(out, rn_pb_serving_StatusProto_error_code_field, (uint64_t)code);
  if (*message) rn_pb_put_str(out, rn_pb_serving_StatusProto_error_message_field, rn_str(message));
  rn_pb_end(out, status);
}

static void put_version(rn_strbuf_t* out, const rn_version_info_t* info) {
  size_t version =
      rn_pb_begin(out, rn_pb_serving_GetModelStatusResponse_model_version_status_field);
  if (info->number)
    rn_pb_put_uint(out, rn_pb_serving_ModelVersionStatus_version_field, (uint64_t)info->number);
  if (info->state)
    rn_pb_put_uint(out, rn_pb_serving_ModelVersionStatus_state_field, (uint64_t)info->state);
  put_status(out, rn_pb_serving_ModelVersionStatus_status_field, info->code, info->message);
  rn_pb_end(out, version);
}

// The version that |label| points to; -1: there is no such label.
static int64_t labelled(const rn_model_info_t* info, rn_str_t label) {
  for (int i = 0; i < info->label_count; ++i)
    if (rn_str_eq(info->labels[i].label, label)) return info->labels[i].version;
  return -1;
}

static rn_status_t put_versions(const rn_model_info_t* info, const rn_model_spec_t* spec,
                                rn_strbuf_t* out) {
  int64_t wanted = spec->version;
  if (spec->label.size) {
    wanted = labelled(info, spec->label);
    if (wanted < 0)
      return rn_invalid_argument("Unrecognized servable version label: %.*s",
                                 RN_STR_ARGS(spec->label));
  }
  int found = 0;
  for (int i = 0; i < info->version_count; ++i) {
    if (wanted >= 0 && info->versions[i].number != wanted) continue;
    put_version(out, &info->versions[i]);
    found++;
  }
  if (found) return RN_OK;
  if (wanted >= 0)
    return rn_not_found("Could not find version %lld of model %.*s", (long long)wanted,
                        RN_STR_ARGS(spec->name));
  return rn_not_found("Could not find any versions of model %.*s", RN_STR_ARGS(spec->name));
}

static rn_status_t status_of(rn_front_t* front, const rn_model_spec_t* spec, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_arena_init(&arena, front->allocator);
  // A model without a name is not in the list: "" would ask for all of them.
  rn_status_t status =
      spec->name.size ? rn_models_info(front->models, spec->name, &arena, &infos, &count) : RN_OK;
  if (rn_status_code(status) == RN_CODE_NOT_FOUND || (rn_ok(status) && !count)) {
    rn_status_free(status);
    rn_model_info_t none = {.name = spec->name};
    status =
        put_versions(&none, &(rn_model_spec_t){.name = spec->name, .version = spec->version}, out);
  } else if (rn_ok(status)) {
    status = put_versions(&infos[0], spec, out);
  }
  rn_models_info_clear(infos, count);
  rn_arena_clear(&arena);
  return status;
}

static void get_model_status(rn_front_t* front, rn_rpc_in_t* call) {
  rn_rpc_spec_t spec;
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_status_t status = rn_rpc_spec_read(
      rn_rpc_request(call), rn_pb_serving_GetModelStatusRequest_model_spec_field, &spec);
  if (rn_ok(status)) status = status_of(front, &spec.model, &body);
  rn_rpc_finish(front, call, status, &body);
}

// The counters, by the names that clients use: "/tensorflow/serving/request_count".
static const struct counter_t {
  const char* name;
  rn_metric_id_t id;
} counters[] = {
#define COUNTER_ROW(id, kind, name, ...) {name, RN_METRIC_##id},
    RN_METRICS(COUNTER_ROW)
#undef COUNTER_ROW
};

static bool is_named(const char* ours, rn_str_t name) {
  size_t i = 0;
  for (; ours[i] && i < name.size; ++i)
    if (ours[i] != name.data[i] && !(ours[i] == ':' && name.data[i] == '/')) return false;
  return !ours[i] && i == name.size;
}

static void add_value(void* arg, const rn_str_t labels[3], rn_metric_series_t* series) {
  (void)labels;
  *(double*)arg += rn_series_value(series);
}

// The sum over all labels; 0 if there is no such metric.
static int64_t metric_value(const rn_front_t* front, rn_str_t name) {
  double sum = 0;
  for (size_t i = 0; i < sizeof counters / sizeof *counters; ++i)
    if (is_named(counters[i].name, name))
      rn_metrics_each(front->metrics, counters[i].id, add_value, &sum);
  return (int64_t)sum;
}

static rn_status_t reload(rn_front_t* front, rn_str_t bytes, rn_arena_t* arena, rn_strbuf_t* out) {
  rn_pb_serving_ReloadConfigRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(serving_ReloadConfigRequest, bytes, NULL, arena, &request));
  const rn_pb_serving_ModelServerConfig_t* config = request->config;
  if (!config || config->config_case != rn_pb_serving_ModelServerConfig_model_config_list_field)
    return rn_invalid_argument(
        "ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList "
        "is currently supported");
  uint32_t count = request->metric_names.count;
  int64_t* before = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &before));
  for (uint32_t i = 0; i < count; ++i)
    before[i] = metric_value(front, request->metric_names.items[i]);
  RN_RETURN_IF_ERROR(front->reload(front->self, config));
  put_status(out, rn_pb_serving_ReloadConfigResponse_status_field, RN_CODE_OK, "");
  for (uint32_t i = 0; i < count; ++i) {
    rn_str_t name = request->metric_names.items[i];
    size_t metric = rn_pb_begin(out, rn_pb_serving_ReloadConfigResponse_metric_field);
    rn_pb_put_str(out, rn_pb_serving_Metric_name_field, name);
    rn_pb_put_uint(out, rn_pb_serving_Metric_int64_value_increase_field,
                   (uint64_t)(metric_value(front, name) - before[i]));
    rn_pb_end(out, metric);
  }
  return RN_OK;
}

static rn_status_t run_reload(rn_front_t* front, rn_rpc_in_t* call, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, front->allocator);
  rn_status_t status = reload(front, rn_rpc_request(call), &arena, out);
  rn_arena_clear(&arena);
  return status;
}

// Blocks until the new models are loaded, so it runs on threads for that.
static void handle_reload_config(rn_front_t* front, rn_rpc_in_t* call) {
  rn_rpc_run_load(front, call, run_reload);
}

static const rn_rpc_method_t methods[] = {
    {"GetModelStatus", RN_ROLE_READ, get_model_status},
    {"HandleReloadConfigRequest", RN_ROLE_ADMIN, handle_reload_config},
};

bool rn_model_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  return rn_rpc_dispatch(front, call, role, "/tensorflow.serving.ModelService/", methods,
                         sizeof methods / sizeof *methods);
}
