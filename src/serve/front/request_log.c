// See request_log.h.
#include "serve/front/request_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sync.h"
#include "base/vec.h"
#include "io/record.h"
#include "net/tensor_codec.h"
#include "proto/prediction_log.pb.h"
#include "wire/writer.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_WAITING ((size_t)64 << 20)  // bytes of records that are not written yet

// A model that is sampled. It stays until the end: files may be open.
typedef struct log_model_t {
  rn_str_t name, prefix;  // of the arena
  _Atomic double rate;    // 0: no longer sampled
  _Atomic uint64_t random;
  rn_record_writer_t* writer;  // of the thread; NULL: none is open
  size_t size;                 // likewise: bytes of its file
  _Atomic(struct log_model_t*) next;
} log_model_t;

typedef struct log_record_t {
  log_model_t* model;
  rn_strbuf_t bytes;
  struct log_record_t* next;
} log_record_t;

struct rn_request_log_t {
  const rn_env_t* env;
  rn_metrics_t* metrics;
  rn_allocator_t allocator;
  rn_arena_t arena;  // under |mutex|
  _Atomic(log_model_t*) models;
  rn_log_limit_t limit;
  pthread_t thread;
  bool has_thread;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  log_record_t *first, *last;
  size_t waiting;
  bool is_stopping;
};

static log_model_t* find_model(rn_request_log_t* log, rn_str_t name) {
  for (log_model_t* model = log->models; model; model = model->next)
    if (rn_str_eq(model->name, name)) return model;
  return NULL;
}

bool rn_request_log_wants(rn_request_log_t* log, rn_str_t name) {
  log_model_t* model = log ? find_model(log, name) : NULL;
  double rate = model ? model->rate : 0;
  if (rate <= 0) return false;
  uint64_t state = atomic_fetch_add(&model->random, RN_RANDOM_STEP);
  return rn_random_to_unit(rn_random_mix(state)) < rate;
}

static void count(rn_request_log_t* log, rn_str_t model, const char* status) {
  rn_series_add(
      rn_metrics_series(log->metrics, RN_METRIC_LOG_COUNT, model, rn_str(status), RN_STR("")), 1);
}

static void free_record(rn_request_log_t* log, log_record_t* record) {
  rn_strbuf_clear(&record->bytes);
  RN_FREE(log->allocator, record);
}

// Queues |record|, or frees it if too much waits.
static void push(rn_request_log_t* log, log_record_t* record) {
  rn_str_t name = record->model->name;  // the thread may free a queued record at once
  rn_mutex_lock(&log->mutex);
  bool fits = log->waiting + record->bytes.size <= MAX_WAITING && !log->is_stopping;
  if (fits) {
    log->waiting += record->bytes.size;
    if (log->last)
      log->last->next = record;
    else
      log->first = record;
    log->last = record;
    rn_cond_signal(&log->changed);
  }
  rn_mutex_unlock(&log->mutex);
  count(log, name, fits ? "OK" : "DROPPED");
  if (!fits) free_record(log, record);
}

void rn_request_log_add(rn_request_log_t* log, rn_str_t name, uint32_t field, rn_str_t request,
                        rn_str_t response) {
  log_record_t* record = NULL;
  rn_status_t status = RN_NEW(log->allocator, &record);
  if (!rn_ok(status)) {
    count(log, name, "DROPPED");
    rn_status_free(status);
    return;
  }
  record->model = find_model(log, name);
  rn_strbuf_t* out = &record->bytes;
  rn_strbuf_init(out, log->allocator);
  size_t metadata = rn_pb_begin(out, rn_pb_serving_PredictionLog_log_metadata_field);
  size_t spec = rn_pb_begin(out, rn_pb_serving_LogMetadata_model_spec_field);
  rn_pb_put_str(out, rn_pb_serving_ModelSpec_name_field, name);
  rn_pb_end(out, spec);
  rn_pb_end(out, metadata);
  // Every kind has the request as field 1 and the response as field 2.
  size_t kind = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_serving_PredictLog_request_field, request);
  rn_pb_put_str(out, rn_pb_serving_PredictLog_response_field, response);
  rn_pb_end(out, kind);
  if (record->model && !out->failed)
    push(log, record);
  else
    free_record(log, record);
}

static rn_status_t open_file(rn_request_log_t* log, log_model_t* model) {
  char stamp[32], path[4096];
  time_t now = (time_t)(log->env->wall_us(log->env->self) / 1000000);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
  int size = snprintf(path, sizeof path, "%.*s.%s.%d", RN_STR_ARGS(model->prefix), stamp, getpid());
  if (size >= (int)sizeof path) return rn_invalid_argument("the name of the file is too long");
  const rn_sink_options_t options = {0};
  model->size = 0;
  return rn_record_writer_open(log->env, path, &options, &model->writer);
}

static void close_file(log_model_t* model) {
  if (model->writer) rn_status_free(rn_record_writer_close(model->writer));
  model->writer = NULL;
}

static void write_record(rn_request_log_t* log, log_record_t* record) {
  log_model_t* model = record->model;
  rn_status_t status = model->writer ? RN_OK : open_file(log, model);
  if (rn_ok(status)) status = rn_record_writer_write(model->writer, rn_strbuf_view(&record->bytes));
  if (rn_ok(status)) status = rn_record_writer_flush(model->writer, false);
  model->size += record->bytes.size;
  if (!rn_ok(status) || model->size >= MAX_FILE) close_file(model);
  int64_t left_out;
  if (!rn_ok(status)) {
    count(log, model->name, "FAILED");
    if (rn_log_limit_says(&log->limit, log->env, &left_out))
      rn_log(log->env, RN_LOG_WARNING, "requests of %.*s cannot be logged: %s",
             RN_STR_ARGS(model->name), rn_status_message(status));
  }
  rn_status_free(status);
}

static void* write_records(void* arg) {
  rn_request_log_t* log = arg;
  rn_mutex_lock(&log->mutex);
  while (log->first || !log->is_stopping) {
    log_record_t* record = log->first;
    if (!record) {
      rn_cond_wait(&log->changed, &log->mutex);
      continue;
    }
    log->first = record->next;
    if (!log->first) log->last = NULL;
    log->waiting -= record->bytes.size;
    rn_mutex_unlock(&log->mutex);
    write_record(log, record);
    free_record(log, record);
    rn_mutex_lock(&log->mutex);
  }
  rn_mutex_unlock(&log->mutex);
  return NULL;
}

rn_status_t rn_request_log_create(const rn_env_t* env, rn_metrics_t* metrics,
                                  rn_allocator_t allocator, rn_request_log_t** out) {
  *out = NULL;
  rn_request_log_t* log = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &log));
  log->env = env;
  log->metrics = metrics;
  log->allocator = allocator;
  rn_arena_init(&log->arena, allocator);
  rn_mutex_init(&log->mutex);
  rn_cond_init(&log->changed);
  log->has_thread = pthread_create(&log->thread, NULL, write_records, log) == 0;
  if (!log->has_thread) {
    rn_request_log_destroy(log);
    return rn_resource_exhausted("No thread for the request log");
  }
  *out = log;
  return RN_OK;
}

void rn_request_log_destroy(rn_request_log_t* log) {
  if (!log) return;
  rn_mutex_lock(&log->mutex);
  log->is_stopping = true;
  rn_cond_signal(&log->changed);
  rn_mutex_unlock(&log->mutex);
  if (log->has_thread) pthread_join(log->thread, NULL);
  for (log_model_t* model = log->models; model; model = model->next) close_file(model);
  rn_cond_destroy(&log->changed);
  rn_mutex_destroy(&log->mutex);
  rn_arena_clear(&log->arena);
  RN_FREE(log->allocator, log);
}

static rn_status_t check(const rn_pb_serving_ModelConfig_t* config) {
  const rn_pb_serving_LoggingConfig_t* logging = config->logging_config;
  double rate = logging->sampling_config ? logging->sampling_config->sampling_rate : 0;
  if (!(rate >= 0 && rate <= 1))
    return rn_invalid_argument("Model '%.*s': sampling_rate must be from 0 to 1, not %g",
                               RN_STR_ARGS(config->name), rate);
  const rn_pb_serving_LogCollectorConfig_t* collector = logging->log_collector_config;
  if (rate > 0 && (!collector || !collector->filename_prefix.size))
    return rn_invalid_argument("Model '%.*s': log_collector_config needs a filename_prefix",
                               RN_STR_ARGS(config->name));
  if (collector && collector->type.size && !rn_str_is(collector->type, "file"))
    return rn_invalid_argument("Model '%.*s': there is no log collector of type '%.*s', only file",
                               RN_STR_ARGS(config->name), RN_STR_ARGS(collector->type));
  return RN_OK;
}

// Under the lock.
static rn_status_t set_rate(rn_request_log_t* log, const rn_pb_serving_ModelConfig_t* config) {
  const rn_pb_serving_LoggingConfig_t* logging = config->logging_config;
  double rate = logging->sampling_config ? logging->sampling_config->sampling_rate : 0;
  log_model_t* model = find_model(log, config->name);
  if (!model && rate > 0) {
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&log->arena, &model));
    RN_RETURN_IF_ERROR(rn_arena_str(&log->arena, config->name, &model->name));
    RN_RETURN_IF_ERROR(
        rn_arena_str(&log->arena, logging->log_collector_config->filename_prefix, &model->prefix));
    model->random = log->env->random(log->env->self);
    model->next = log->models;
    log->models = model;
  }
  if (model) model->rate = rate;
  return RN_OK;
}

rn_status_t rn_request_log_configure(rn_request_log_t* log,
                                     const rn_pb_serving_ModelServerConfig_t* config) {
  const rn_pb_serving_ModelConfigList_t* list =
      config->config_case == rn_pb_serving_ModelServerConfig_model_config_list_field
          ? config->model_config_list
          : NULL;
  uint32_t count = list ? list->config.count : 0;
  for (uint32_t i = 0; i < count; ++i)
    if (list->config.items[i].logging_config) RN_RETURN_IF_ERROR(check(&list->config.items[i]));
  rn_status_t status = RN_OK;
  rn_mutex_lock(&log->mutex);
  for (log_model_t* model = log->models; model; model = model->next) model->rate = 0;
  for (uint32_t i = 0; i < count && rn_ok(status); ++i)
    if (list->config.items[i].logging_config) status = set_rate(log, &list->config.items[i]);
  rn_mutex_unlock(&log->mutex);
  return status;
}

void rn_request_log_put_spec(uint32_t field, rn_str_t model, int64_t version, rn_str_t signature,
                             rn_strbuf_t* out) {
  size_t spec = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_serving_ModelSpec_name_field, model);
  size_t number = rn_pb_begin(out, rn_pb_serving_ModelSpec_version_field);
  rn_pb_put_uint(out, rn_pb_google_protobuf_Int64Value_value_field, (uint64_t)version);
  rn_pb_end(out, number);
  if (signature.size) rn_pb_put_str(out, rn_pb_serving_ModelSpec_signature_name_field, signature);
  rn_pb_end(out, spec);
}

static rn_status_t put_values(uint32_t field, const rn_predict_value_t* values, int count,
                              rn_strbuf_t* out) {
  rn_message_t message;
  rn_message_init(&message, out->allocator);
  rn_encoder_t encoder;
  rn_encoder_open(&encoder, &message);
  for (int i = 0; i < count; ++i)
    rn_encode_named_tensor(&encoder, field, values[i].name, &values[i].value, RN_TENSOR_CONTENT);
  rn_status_t status = rn_encoder_close(&encoder);
  rn_message_flatten(&message, out);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

static rn_status_t put_request(rn_str_t model, int64_t version, const rn_predict_t* predict,
                               rn_strbuf_t* out) {
  rn_request_log_put_spec(rn_pb_serving_PredictRequest_model_spec_field, model, version,
                          predict->signature, out);
  for (int i = 0; i < predict->filter_count; ++i)
    rn_pb_put_str(out, rn_pb_serving_PredictRequest_output_filter_field, predict->filter[i]);
  return put_values(rn_pb_serving_PredictRequest_inputs_field, predict->inputs,
                    predict->input_count, out);
}

static rn_status_t put_response(rn_str_t model, int64_t version, const rn_predict_t* predict,
                                rn_strbuf_t* out) {
  rn_request_log_put_spec(rn_pb_serving_PredictResponse_model_spec_field, model, version,
                          predict->signature, out);
  return put_values(rn_pb_serving_PredictResponse_outputs_field, predict->outputs,
                    predict->output_count, out);
}

void rn_request_log_take(rn_request_log_t* log, rn_str_t model, int64_t version,
                         const rn_predict_t* predict, rn_strbuf_t* out) {
  if (!rn_request_log_wants(log, model)) return;
  rn_status_t status = put_request(model, version, predict, out);
  if (!rn_ok(status)) rn_strbuf_clear(out);
  rn_status_free(status);
}

void rn_request_log_add_predict(rn_request_log_t* log, rn_str_t model, int64_t version,
                                const rn_predict_t* predict, rn_str_t sample) {
  if (!sample.size) return;
  rn_strbuf_t response;
  rn_strbuf_init(&response, log->allocator);
  rn_status_t status = put_response(model, version, predict, &response);
  if (rn_ok(status))
    rn_request_log_add(log, model, rn_pb_serving_PredictionLog_predict_log_field, sample,
                       rn_strbuf_view(&response));
  rn_status_free(status);
  rn_strbuf_clear(&response);
}
