// See oip_info.h.
#include "serve/front/oip_info.h"

#include <runnel/version.h>

#include "device/part.h"
#include "serve/front/oip.h"
#include "serve/front/oip_app.h"
#include "serve/model/labels.h"

// Rows of a request for a signature whose rows are independent: any number, up to this.
#define MAX_ROWS 65536

static const char* const extensions[] = {
    "binary_tensor_data",   "classification", "logging",           "model_configuration",
    "model_repository",     "parameters",     "schedule_policy",   "statistics",
    "system_shared_memory", "trace",          "cuda_shared_memory"};  // where a model uses a GPU

bool rn_oip_is_ready(const rn_front_t* front) { return front->is_ready && !front->is_draining; }

bool rn_oip_model_is_ready(rn_front_t* front, rn_str_t name, rn_str_t version) {
  rn_version_t* found = NULL;
  rn_status_t status = rn_oip_find(front, name, version, &found);
  bool is_ready = rn_ok(status);
  rn_status_free(status);
  rn_version_release(found);
  return is_ready || rn_oip_is_app(front, name, version);
}

rn_status_t rn_oip_server_metadata(rn_arena_t* arena,
                                   rn_pb_inference_ServerMetadataResponse_t* out) {
  *out = (rn_pb_inference_ServerMetadataResponse_t){.name = RN_STR("runnel"),
                                                    .version = RN_STR(RN_VERSION_STRING)};
  size_t count = sizeof extensions / sizeof *extensions - !rn_cuda_part_is_open();
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->extensions, count));
  for (size_t i = 0; i < count; ++i) out->extensions.items[i] = rn_str(extensions[i]);
  return RN_OK;
}

// A version with its signature, for the calls that describe a model.
static rn_status_t describe(rn_front_t* front, rn_str_t name, rn_str_t version, rn_version_t** out,
                            const rn_serve_signature_t** out_signature) {
  RN_RETURN_IF_ERROR(rn_oip_find(front, name, version, out));
  const rn_backend_t* backend = rn_version_backend(*out);
  int index = rn_oip_signature(backend, RN_STR(""));
  if (index < 0 && backend->signature_count) index = 0;
  if (index >= 0) {
    *out_signature = &backend->signatures[index];
    return RN_OK;
  }
  rn_version_release(*out);
  *out = NULL;
  return rn_failed_precondition("model '%.*s' has no signature", RN_STR_ARGS(name));
}

static rn_str_t platform_of(const rn_backend_t* backend) {
  return strcmp(backend->vtable->kind, "tensorflow") == 0 ? RN_STR("tensorflow_savedmodel")
                                                          : rn_str(backend->vtable->kind);
}

// The dims of |port| without the first |skip|; [-1] if the rank is not known.
#define COPY_DIMS(arena, port, skip, list) \
  copy_dims((arena), (port)->shape, (skip), (rn_pb_list_t*)(list))
static rn_status_t copy_dims(rn_arena_t* arena, rn_shape_t shape, int skip, rn_pb_list_t* out) {
  static const int64_t unknown = -1;
  if (!rn_shape_has_rank(shape)) shape = (rn_shape_t){1, &unknown}, skip = 0;
  int count = shape.rank > skip ? shape.rank - skip : 0;
  out->count = out->capacity = (uint32_t)count;
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, (size_t)count, sizeof(int64_t), &out->items));
  if (count) memcpy(out->items, shape.dims + skip, (size_t)count * sizeof(int64_t));
  return RN_OK;
}

static rn_status_t copy_ports(rn_arena_t* arena, const rn_serve_port_t* ports, int count,
                              rn_pb_inference_ModelMetadataResponse_TensorMetadata_t* out) {
  for (int i = 0; i < count; ++i) {
    const char* type = rn_oip_type_name(ports[i].dtype);
    RN_RETURN_IF_ERROR(rn_arena_str(arena, ports[i].name, &out[i].name));
    out[i].datatype = rn_str(type ? type : rn_dtype_name(ports[i].dtype));
    RN_RETURN_IF_ERROR(COPY_DIMS(arena, &ports[i], 0, &out[i].shape));
  }
  return RN_OK;
}

// The numbers of the available versions, ascending.
static rn_status_t list_versions(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                 rn_pb_inference_ModelMetadataResponse_t* out) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(rn_models_info(front->models, name, arena, &infos, &count));
  rn_status_t status = RN_OK;
  if (count) status = RN_OIP_LIST(arena, &out->versions, infos->version_count);
  out->versions.count = 0;
  for (int i = count ? infos->version_count - 1 : -1; rn_ok(status) && i >= 0; --i)
    if (infos->versions[i].state == RN_MODEL_AVAILABLE)
      status = rn_arena_printf(arena, &out->versions.items[out->versions.count++], "%lld",
                               (long long)infos->versions[i].number);
  rn_models_info_clear(infos, count);
  return status;
}

rn_status_t rn_oip_model_metadata(rn_front_t* front, rn_str_t name, rn_str_t version,
                                  rn_arena_t* arena, rn_pb_inference_ModelMetadataResponse_t* out) {
  rn_version_t* found = NULL;
  const rn_serve_signature_t* signature = NULL;
  rn_status_t missing = describe(front, name, version, &found, &signature);
  if (rn_status_code(missing) == RN_CODE_NOT_FOUND && rn_oip_is_app(front, name, version)) {
    rn_status_free(missing);
    return rn_oip_app_metadata(front, name, arena, out);
  }
  RN_RETURN_IF_ERROR(missing);
  *out = (rn_pb_inference_ModelMetadataResponse_t){
      .name = name, .platform = platform_of(rn_version_backend(found))};
  rn_status_t status = list_versions(front, name, arena, out);
  if (rn_ok(status)) status = RN_OIP_LIST(arena, &out->inputs, signature->input_count);
  if (rn_ok(status)) status = RN_OIP_LIST(arena, &out->outputs, signature->output_count);
  if (rn_ok(status))
    status = copy_ports(arena, signature->inputs, signature->input_count, out->inputs.items);
  if (rn_ok(status))
    status = copy_ports(arena, signature->outputs, signature->output_count, out->outputs.items);
  rn_version_release(found);
  return status;
}

int32_t rn_oip_config_type(rn_dtype_t dtype) {
  switch (dtype) {
#define OIP_VALUE(type, name, value) \
  case RN_##type:                    \
    return rn_pb_inference_##value;
    RN_OIP_TYPES(OIP_VALUE)
#undef OIP_VALUE
    default:
      return rn_pb_inference_TYPE_INVALID;
  }
}

static rn_status_t fill_config(rn_arena_t* arena, const rn_serve_signature_t* signature,
                               rn_pb_inference_ModelConfig_t* out) {
  int skip = signature->is_batched ? 1 : 0;
  out->max_batch_size = signature->is_batched ? MAX_ROWS : 0;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->input, signature->input_count));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->output, signature->output_count));
  for (int i = 0; i < signature->input_count; ++i) {
    const rn_serve_port_t* port = &signature->inputs[i];
    rn_pb_inference_ModelInput_t* input = &out->input.items[i];
    input->data_type = rn_oip_config_type(port->dtype);
    RN_RETURN_IF_ERROR(rn_arena_str(arena, port->name, &input->name));
    RN_RETURN_IF_ERROR(COPY_DIMS(arena, port, skip, &input->dims));
  }
  for (int i = 0; i < signature->output_count; ++i) {
    const rn_serve_port_t* port = &signature->outputs[i];
    rn_pb_inference_ModelOutput_t* output = &out->output.items[i];
    output->data_type = rn_oip_config_type(port->dtype);
    RN_RETURN_IF_ERROR(rn_arena_str(arena, port->name, &output->name));
    RN_RETURN_IF_ERROR(COPY_DIMS(arena, port, skip, &output->dims));
    if (port->labels)
      RN_RETURN_IF_ERROR(rn_arena_printf(arena, &output->label_filename,
                                         RN_LABELS_FOLDER "/%.*s.txt", RN_STR_ARGS(port->name)));
  }
  return RN_OK;
}

rn_status_t rn_oip_model_config(rn_front_t* front, rn_str_t name, rn_str_t version,
                                rn_arena_t* arena, rn_pb_inference_ModelConfig_t* out) {
  rn_version_t* found = NULL;
  const rn_serve_signature_t* signature = NULL;
  rn_status_t missing = describe(front, name, version, &found, &signature);
  if (rn_status_code(missing) == RN_CODE_NOT_FOUND && rn_oip_is_app(front, name, version)) {
    rn_status_free(missing);
    return rn_oip_app_config(front, name, arena, out);
  }
  RN_RETURN_IF_ERROR(missing);
  const rn_backend_t* backend = rn_version_backend(found);
  *out = (rn_pb_inference_ModelConfig_t){
      .name = name, .platform = platform_of(backend), .backend = rn_str(backend->vtable->kind)};
  rn_status_t status = fill_config(arena, signature, out);
  rn_version_release(found);
  return status;
}

// Statistics.

typedef rn_pb_inference_StatisticDuration_t oip_duration_t;

// Adds up the series of one model.
typedef struct oip_tally_t {
  rn_str_t model;
  const char* label;  // of the second label; NULL: any
  bool others;        // all but |label|
  double count, us;
} oip_tally_t;

static void add_series(void* arg, const rn_str_t labels[3], rn_metric_series_t* series) {
  oip_tally_t* tally = arg;
  if (!rn_str_eq(labels[0], tally->model)) return;
  if (tally->label && rn_str_is(labels[1], tally->label) == tally->others) return;
  tally->count += rn_series_value(series);
  tally->us += rn_series_sum(series);
}

static rn_status_t new_duration(rn_front_t* front, rn_arena_t* arena, rn_metric_id_t id,
                                const oip_tally_t* what, bool has_time, oip_duration_t** out) {
  oip_tally_t tally = *what;
  rn_metrics_each(front->metrics, id, add_series, &tally);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, out));
  **out = (oip_duration_t){.count = (uint64_t)tally.count,
                           .ns = has_time ? (uint64_t)(tally.us * 1e3) : 0};
  return RN_OK;
}

static rn_status_t fill_times(rn_front_t* front, rn_str_t model, rn_arena_t* arena,
                              rn_pb_inference_InferStatistics_t* out) {
  const struct {
    rn_metric_id_t id;
    const char* label;
    bool others, has_time;
    oip_duration_t** to;
  } rows[] = {
      {RN_METRIC_REQUEST_LATENCY, NULL, false, true, &out->success},
      {RN_METRIC_REQUEST_COUNT, "OK", true, false, &out->fail},
      {RN_METRIC_STAGE_LATENCY, "queue", false, true, &out->queue},
      {RN_METRIC_STAGE_LATENCY, "batch", false, true, &out->compute_input},
      {RN_METRIC_STAGE_LATENCY, "run", false, true, &out->compute_infer},
      {RN_METRIC_STAGE_LATENCY, "serialize", false, true, &out->compute_output},
      {RN_METRIC_MARK_COUNT, "cached", false, false, &out->cache_hit},
      {RN_METRIC_CACHE_COUNT, "miss", false, false, &out->cache_miss},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    oip_tally_t tally = {.model = model, .label = rows[i].label, .others = rows[i].others};
    RN_RETURN_IF_ERROR(
        new_duration(front, arena, rows[i].id, &tally, rows[i].has_time, rows[i].to));
  }
  return RN_OK;
}

static rn_status_t fill_statistics(rn_front_t* front, const rn_version_t* version,
                                   rn_arena_t* arena, rn_pb_inference_ModelStatistics_t* out) {
  RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_version_model(version), &out->name));
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &out->version, "%lld", (long long)rn_version_number(version)));
  int64_t answered_ns = rn_version_answered_ns(version);
  if (answered_ns) {
    const rn_env_t* env = front->env;
    int64_t since_us = (env->now_ns(env->self) - answered_ns) / 1000;
    out->last_inference = (uint64_t)((env->wall_us(env->self) - since_us) / 1000);
  }
  for (int i = 0; i < rn_version_replica_count(version); ++i) {
    rn_batcher_stats_t stats = rn_batcher_stats(rn_version_batcher(version, i));
    out->inference_count += (uint64_t)stats.rows;
    out->execution_count += (uint64_t)stats.batches;
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->inference_stats));
  return fill_times(front, out->name, arena, out->inference_stats);
}

// An application runs nothing itself: each query counts as one inference.
static rn_status_t fill_app_statistics(rn_front_t* front, rn_str_t name, rn_arena_t* arena,
                                       rn_pb_inference_ModelStatistics_t* out) {
  *out = (rn_pb_inference_ModelStatistics_t){.name = name, .version = RN_STR("1")};
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->inference_stats));
  RN_RETURN_IF_ERROR(fill_times(front, name, arena, out->inference_stats));
  oip_tally_t answered = {.model = name, .label = "OK"};
  rn_metrics_each(front->metrics, RN_METRIC_REQUEST_COUNT, add_series, &answered);
  out->inference_count = out->execution_count = (uint64_t)answered.count;
  return RN_OK;
}

// Appends those of applications: |name|, or all of them.
static rn_status_t add_app_statistics(rn_front_t* front, rn_str_t name, rn_str_t version,
                                      rn_arena_t* arena,
                                      rn_pb_inference_ModelStatisticsResponse_t* out) {
  rn_str_t* names = NULL;
  size_t count = 0;
  rn_pb_inference_ModelStatistics_t* stats = NULL;
  if (version.size && !rn_str_is(version, "1")) return RN_OK;
  RN_RETURN_IF_ERROR(rn_oip_app_names(front, arena, &names, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, out->model_stats.count + count, &stats));
  if (out->model_stats.count)
    memcpy(stats, out->model_stats.items, out->model_stats.count * sizeof *stats);
  out->model_stats.items = stats;
  for (size_t i = 0; i < count; ++i)
    if (!name.size || rn_str_eq(names[i], name))
      RN_RETURN_IF_ERROR(
          fill_app_statistics(front, names[i], arena, &stats[out->model_stats.count++]));
  return RN_OK;
}

static rn_status_t fill_all_statistics(rn_front_t* front, const rn_model_info_t* infos, int count,
                                       rn_str_t version, rn_arena_t* arena,
                                       rn_pb_inference_ModelStatisticsResponse_t* out) {
  int64_t wanted = -1, all = 0;
  if (version.size && !rn_str_to_i64(version, &wanted))
    return rn_invalid_argument("'%.*s' is not the number of a version", RN_STR_ARGS(version));
  for (int m = 0; m < count; ++m) all += infos[m].version_count;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->model_stats, all));
  out->model_stats.count = 0;
  for (int m = 0; m < count; ++m) {
    for (int v = 0; v < infos[m].version_count; ++v) {
      const rn_version_info_t* info = &infos[m].versions[v];
      if (!info->version || (wanted >= 0 && info->number != wanted)) continue;
      RN_RETURN_IF_ERROR(fill_statistics(front, info->version, arena,
                                         &out->model_stats.items[out->model_stats.count]));
      out->model_stats.count++;
    }
  }
  return RN_OK;
}

rn_status_t rn_oip_statistics(rn_front_t* front, rn_str_t name, rn_str_t version, rn_arena_t* arena,
                              rn_pb_inference_ModelStatisticsResponse_t* out) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  *out = (rn_pb_inference_ModelStatisticsResponse_t){0};
  if (name.size && !rn_oip_model_is_ready(front, name, version))
    return rn_not_found("requested model '%.*s' is not available", RN_STR_ARGS(name));
  rn_status_t status = rn_models_info(front->models, name, arena, &infos, &count);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {  // an application, as it is ready
    rn_status_free(status);
    status = RN_OK;
  }
  if (rn_ok(status)) status = fill_all_statistics(front, infos, count, version, arena, out);
  if (rn_ok(status)) status = add_app_statistics(front, name, version, arena, out);
  rn_models_info_clear(infos, count);
  return status;
}
