// See config.h.
#include "serve/model/config.h"

#include "base/fs.h"
#include "base/map.h"
#include "proto/config.pb.h"
#include "wire/encode.h"
#include "wire/text.h"

// Far beyond what a person or a tool writes.

// TensorFlow Serving's defaults of BatchingParameters.
#define DEFAULT_BATCH_SIZE 1000
#define DEFAULT_ENQUEUED_BATCHES 10

// "Error parsing text-format NAME: 3:5: what" becomes "path:3:5: Error parsing text-format NAME:
// what", which editors and TensorFlow Serving's users understand.
static rn_status_t locate(rn_status_t status, const char* path) {
  if (rn_ok(status)) return status;
  const char* message = rn_status_message(status);
  const char* place = strstr(message, "text-format ");
  if (place) place = strstr(place, ": ");
  const char* what = place ? strstr(place + 2, ": ") : NULL;
  rn_status_t located = what ? rn_status_make(rn_status_code(status), "%s:%.*s: %.*s%s", path,
                                              (int)(what - place - 2), place + 2,
                                              (int)(place - message), message, what)
                             : rn_status_make(rn_status_code(status), "%s: %s", path, message);
  rn_status_free(status);
  return located;
}

// An error in what a file says, behind the file's name.
static rn_status_t name_file(rn_status_t status, const char* path) {
  if (rn_ok(status)) return status;
  rn_status_t named =
      rn_status_make(rn_status_code(status), "%s: %s", path, rn_status_message(status));
  rn_status_free(status);
  return named;
}

static rn_status_t read_text(const rn_env_t* env, const char* path,
                             const rn_pb_message_desc_t* desc, rn_arena_t* arena, void** out) {
  *out = NULL;
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  rn_status_t status = rn_fs_read(env, path, RN_CONFIG_MAX_BYTES, &text);
  if (rn_ok(status))
    status = locate(rn_pb_parse(desc, rn_strbuf_view(&text), NULL, arena, out), path);
  rn_strbuf_clear(&text);
  return status;
}

// Models.

static rn_status_t check_platform(const rn_pb_serving_ModelConfig_t* model) {
  rn_str_t platform = model->model_platform;
  if (model->model_type != rn_pb_serving_MODEL_TYPE_UNSPECIFIED) {
    if (platform.size)
      return rn_invalid_argument(
          "Illegal setting both ModelServerConfig::model_type (deprecated) and "
          "ModelServerConfig::model_platform, model name is %.*s",
          RN_STR_ARGS(model->name));
    if (model->model_type != rn_pb_serving_TENSORFLOW)
      return rn_invalid_argument("ModelServerConfig::model_type choice %d not supported.",
                                 model->model_type);
    return RN_OK;
  }
  if (!platform.size)
    return rn_invalid_argument(
        "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
        "ModelServerConfig::model_platform, model name is %.*s",
        RN_STR_ARGS(model->name));
  if (!rn_str_is(platform, "tensorflow") && !rn_str_is(platform, "container"))
    return rn_invalid_argument("Model %.*s requests unsupported platform %.*s",
                               RN_STR_ARGS(model->name), RN_STR_ARGS(platform));
  return RN_OK;
}

static rn_status_t check_sampling(const rn_pb_serving_ModelConfig_t* model) {
  const rn_pb_serving_LoggingConfig_t* logging = model->logging_config;
  if (!logging || !logging->sampling_config) return RN_OK;
  double rate = logging->sampling_config->sampling_rate;
  if (rate >= 0 && rate <= 1) return RN_OK;
  return rn_invalid_argument("The sampling_rate of model %.*s must be in 0 to 1, not %g",
                             RN_STR_ARGS(model->name), rate);
}

static rn_status_t check_model(const rn_pb_serving_ModelConfig_t* model) {
  if (!model->name.size) return rn_invalid_argument("A model has no name");
  RN_RETURN_IF_ERROR(rn_fs_check_name(model->name));
  RN_RETURN_IF_ERROR(rn_fs_check_name(model->base_path));
  bool is_absolute = model->base_path.size &&
                     (model->base_path.data[0] == '/' || rn_path_scheme(model->base_path).size);
  if (!is_absolute)
    return rn_invalid_argument(
        "Expected model %.*s to have an absolute path or URI; got base_path()=%.*s",
        RN_STR_ARGS(model->name), RN_STR_ARGS(model->base_path));
  for (uint32_t i = 0; i < model->version_labels.count; ++i)
    if (!model->version_labels.items[i].key.size)
      return rn_invalid_argument("A label of model %.*s is empty", RN_STR_ARGS(model->name));
  RN_RETURN_IF_ERROR(check_platform(model));
  return check_sampling(model);
}

static rn_status_t check_list(const rn_pb_serving_ModelConfigList_t* list) {
  rn_map_t names;
  rn_map_init(&names, rn_allocator_default());
  rn_status_t status = RN_OK;
  for (uint32_t i = 0; rn_ok(status) && i < list->config.count; ++i) {
    rn_pb_serving_ModelConfig_t* model = &list->config.items[i];
    if (rn_map_get(&names, model->name))
      status = rn_invalid_argument("Illegal to list model %.*s multiple times in config list",
                                   RN_STR_ARGS(model->name));
    if (rn_ok(status)) status = rn_map_put(&names, model->name, model);
    if (rn_ok(status)) status = check_model(model);
  }
  rn_map_clear(&names);
  return status;
}

rn_status_t rn_config_check(const rn_pb_serving_ModelServerConfig_t* config) {
  switch (config->config_case) {
    case 0:
      return RN_OK;
    case rn_pb_serving_ModelServerConfig_model_config_list_field:
      return check_list(config->model_config_list);
    default:
      return rn_invalid_argument("ModelServer does not yet support custom model config.");
  }
}

rn_status_t rn_config_parse_models(rn_str_t text, const char* path, rn_arena_t* arena,
                                   rn_pb_serving_ModelServerConfig_t** out) {
  *out = NULL;
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  rn_status_t status =
      rn_pb_parse(&rn_pb_serving_ModelServerConfig_desc, text, NULL, arena, (void**)&config);
  RN_RETURN_IF_ERROR(locate(status, path));
  RN_RETURN_IF_ERROR(name_file(rn_config_check(config), path));
  *out = config;
  return RN_OK;
}

rn_status_t rn_config_read_models(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                  rn_pb_serving_ModelServerConfig_t** out) {
  *out = NULL;
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  rn_status_t status = rn_fs_read(env, path, RN_CONFIG_MAX_BYTES, &text);
  if (rn_ok(status)) status = rn_config_parse_models(rn_strbuf_view(&text), path, arena, out);
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_config_single(rn_str_t name, rn_str_t base_path, rn_arena_t* arena,
                             rn_pb_serving_ModelServerConfig_t** out) {
  rn_pb_serving_ModelServerConfig_t* config = NULL;
  rn_pb_serving_ModelConfigList_t* list = NULL;
  rn_pb_serving_ModelConfig_t* model = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &config));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &list));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &model));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &model->name));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, base_path, &model->base_path));
  model->model_platform = RN_STR("tensorflow");
  list->config.items = model;
  list->config.count = 1;
  config->config_case = rn_pb_serving_ModelServerConfig_model_config_list_field;
  config->model_config_list = list;
  RN_RETURN_IF_ERROR(rn_config_check(config));
  *out = config;
  return RN_OK;
}

// Batching.

static int64_t value_of(const rn_pb_google_protobuf_Int64Value_t* wrapper, int64_t otherwise) {
  return wrapper ? wrapper->value : otherwise;
}

static rn_status_t check_positive(const char* field, int64_t value) {
  return value > 0 ? RN_OK
                   : rn_invalid_argument("%s must be positive; was %ld", field, (long)value);
}

static rn_status_t check_allowed(const rn_pb_serving_BatchingParameters_t* parameters, bool splits,
                                 int64_t max, int64_t max_run) {
  uint32_t count = parameters->allowed_batch_sizes.count;
  const int64_t* sizes = parameters->allowed_batch_sizes.items;
  if (!count) return RN_OK;
  for (uint32_t i = 0; i < count; ++i)
    if (sizes[i] <= (i ? sizes[i - 1] : 0))
      return rn_invalid_argument("allowed_batch_sizes entries must be monotonically increasing");
  int64_t last = sizes[count - 1];
  if (splits && last > max)
    return rn_invalid_argument(
        "Last entry in allowed_batch_sizes must be less than or equal to max_batch_size; last "
        "entry was %ld; expected %ld",
        (long)last, (long)max);
  if (splits && last != max_run)
    return rn_invalid_argument(
        "Last entry in allowed_batch_sizes must be equal to max_execution_batch_size; last entry "
        "was %ld; expected %ld",
        (long)last, (long)max_run);
  if (!splits && last != max)
    return rn_invalid_argument(
        "Last entry in allowed_batch_sizes must match max_batch_size; last entry was %ld; "
        "expected %ld",
        (long)last, (long)max);
  return RN_OK;
}

static rn_status_t apply_batching(const rn_pb_serving_BatchingParameters_t* parameters,
                                  rn_batcher_options_t* options) {
  int64_t max = value_of(parameters->max_batch_size, DEFAULT_BATCH_SIZE);
  int64_t wait_us = value_of(parameters->batch_timeout_micros, 0);
  int64_t batches = value_of(parameters->max_enqueued_batches, DEFAULT_ENQUEUED_BATCHES);
  bool splits =
      parameters->enable_large_batch_splitting && parameters->enable_large_batch_splitting->value;
  int64_t max_run = splits ? value_of(parameters->max_execution_batch_size, max) : max;
  RN_RETURN_IF_ERROR(check_positive("max_batch_size", max));
  RN_RETURN_IF_ERROR(check_positive("max_enqueued_batches", batches));
  RN_RETURN_IF_ERROR(
      check_positive("num_batch_threads", value_of(parameters->num_batch_threads, 1)));
  RN_RETURN_IF_ERROR(check_positive("max_execution_batch_size", max_run));
  if (wait_us < 0 || wait_us > INT64_MAX / 1000)
    return rn_invalid_argument("batch_timeout_micros must be non-negative; was %ld", (long)wait_us);
  if (max_run > max)
    return rn_invalid_argument("max_execution_batch_size %ld is larger than max_batch_size %ld",
                               (long)max_run, (long)max);
  RN_RETURN_IF_ERROR(check_allowed(parameters, splits, max, max_run));
  options->is_on = true;
  options->size.policy = RN_BATCH_FIXED;
  options->size.max = max_run;
  options->max_wait_ns = wait_us * 1000;
  if (!rn_mul_i64_ok(batches, max, &options->max_queued)) options->max_queued = INT64_MAX;
  options->allowed_sizes = parameters->allowed_batch_sizes.items;
  options->allowed_count = (int)parameters->allowed_batch_sizes.count;
  options->pads_variable = parameters->pad_variable_length_inputs;
  options->splits_large = splits;
  return RN_OK;
}

rn_status_t rn_config_read_batching(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                    rn_batcher_options_t* options) {
  const rn_pb_serving_BatchingParameters_t defaults = {0};
  if (!path) return apply_batching(&defaults, options);
  rn_pb_serving_BatchingParameters_t* parameters = NULL;
  RN_RETURN_IF_ERROR(
      read_text(env, path, &rn_pb_serving_BatchingParameters_desc, arena, (void**)&parameters));
  return name_file(apply_batching(parameters, options), path);
}

rn_status_t rn_config_read_own_batching(const rn_env_t* env, const char* folder, rn_arena_t* arena,
                                        rn_batcher_options_t* options, bool* out_found) {
  rn_str_t path;
  *out_found = false;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%s/" RN_CONFIG_BATCHING_FILE, folder));
  RN_RETURN_IF_ERROR(rn_fs_find(env, path.data, out_found));
  return *out_found ? rn_config_read_batching(env, path.data, arena, options) : RN_OK;
}

// Monitoring and TLS.

rn_status_t rn_config_read_monitoring(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                      rn_str_t* out_path) {
  *out_path = RN_STR("");
  rn_pb_serving_MonitoringConfig_t* config = NULL;
  RN_RETURN_IF_ERROR(
      read_text(env, path, &rn_pb_serving_MonitoringConfig_desc, arena, (void**)&config));
  const rn_pb_serving_PrometheusConfig_t* prometheus = config->prometheus_config;
  if (!prometheus || !prometheus->enable) return RN_OK;
  if (!prometheus->path.size) {
    *out_path = RN_STR(RN_CONFIG_METRICS_PATH);
    return RN_OK;
  }
  if (prometheus->path.data[0] != '/')
    return rn_invalid_argument("%s: the path of prometheus_config must begin with /, not '%.*s'",
                               path, RN_STR_ARGS(prometheus->path));
  return rn_arena_str(arena, prometheus->path, out_path);
}

rn_status_t rn_config_read_ssl(const rn_env_t* env, const char* path, rn_arena_t* arena,
                               rn_pb_serving_SSLConfig_t** out) {
  *out = NULL;
  rn_pb_serving_SSLConfig_t* config = NULL;
  RN_RETURN_IF_ERROR(read_text(env, path, &rn_pb_serving_SSLConfig_desc, arena, (void**)&config));
  const char* missing = !config->server_key.size                           ? "server_key"
                        : !config->server_cert.size                        ? "server_cert"
                        : config->client_verify && !config->custom_ca.size ? "custom_ca"
                                                                           : NULL;
  if (missing) return rn_invalid_argument("%s: %s is missing", path, missing);
  *out = config;
  return RN_OK;
}

// Sessions.

rn_status_t rn_config_read_session(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                   rn_session_options_t* inout) {
  rn_pb_ConfigProto_t* config = NULL;
  rn_strbuf_t bytes;
  RN_RETURN_IF_ERROR(read_text(env, path, &rn_pb_ConfigProto_desc, arena, (void**)&config));
  rn_strbuf_init(&bytes, arena->allocator);
  rn_status_t status = RN_PB_ENCODE(ConfigProto, config, NULL, &bytes);
  if (rn_ok(status)) {
    // The options borrow them.
    rn_str_t kept;
    status = rn_arena_str(arena, rn_strbuf_view(&bytes), &kept);
    if (rn_ok(status)) status = locate(rn_session_options_parse(kept, inout), path);
  }
  rn_strbuf_clear(&bytes);
  return status;
}
