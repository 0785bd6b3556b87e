// See warmup.h.
#include "serve/front/warmup.h"

#include "base/fs.h"
#include "base/outcome.h"
#include "io/record.h"
#include "proto/prediction_log.pb.h"
#include "serve/front/classify.h"
#include "serve/model/tf_backend.h"
#include "serve/model/validate.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"

// A message of a few bytes can ask for a tensor of any size.
#define MAX_TENSOR_BYTES ((size_t)1 << 30)

typedef struct warmup_t {
  const rn_warmup_options_t* options;
  rn_backend_t* backend;
  rn_arena_t arena;  // of one record
} warmup_t;

// One run, and its end, which may come on another thread.
typedef struct warmup_run_t {
  rn_backend_run_t run;  // first
  rn_outcome_t outcome;
} warmup_run_t;

static void on_done(rn_backend_run_t* run, rn_status_t status) {
  rn_outcome_set(&((warmup_run_t*)run)->outcome, status);
}

static rn_status_t run_and_wait(rn_backend_t* backend, const rn_backend_run_t* what) {
  warmup_run_t own = {.run = *what};
  own.run.done = on_done;
  own.run.is_quiet = true;
  rn_outcome_init(&own.outcome);
  backend->vtable->run(backend, &own.run);
  return rn_outcome_wait(&own.outcome);
}

// Runs a request that was checked: its inputs are in the signature's order.
static rn_status_t run_checked(warmup_t* warmup, const rn_predict_t* predict) {
  rn_backend_t* backend = warmup->backend;
  const rn_serve_signature_t* signature = &backend->signatures[predict->signature_index];
  rn_tensor_t *inputs = NULL, *outputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, (size_t)signature->input_count, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, (size_t)signature->output_count, &outputs));
  for (int i = 0; i < signature->input_count; ++i) inputs[i] = predict->inputs[i].value;
  rn_backend_run_t run = {.signature = predict->signature_index,
                          .inputs = inputs,
                          .outputs = outputs,
                          .deadline_ns = INT64_MAX};
  rn_status_t status = RN_OK;
  int times = warmup->options->iterations > 1 ? warmup->options->iterations : 1;
  for (int i = 0; rn_ok(status) && i < times; ++i) {
    status = run_and_wait(backend, &run);
    for (int o = 0; o < signature->output_count; ++o) rn_tensor_clear(&outputs[o]);
  }
  return status;
}

// Takes the inputs.
static rn_status_t run_predict(warmup_t* warmup, rn_str_t signature, rn_predict_value_t* inputs,
                               int count, const rn_str_t* filter, int filter_count) {
  rn_predict_t predict = {.signature = signature,
                          .inputs = inputs,
                          .input_count = count,
                          .filter = filter,
                          .filter_count = filter_count,
                          .allocator = warmup->options->allocator};
  rn_status_t status = rn_predict_validate(&predict, warmup->backend, false);
  if (rn_ok(status)) status = run_checked(warmup, &predict);
  rn_predict_clear(&predict);
  return status;
}

static rn_str_t signature_of(const rn_pb_serving_ModelSpec_t* spec) {
  return spec ? spec->signature_name : RN_STR("");
}

static rn_status_t replay_predict(warmup_t* warmup, const rn_pb_serving_PredictRequest_t* request) {
  rn_predict_value_t* inputs = NULL;
  size_t count = request->inputs.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, count, &inputs));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < count; ++i) {
    inputs[i].name = request->inputs.items[i].key;
    status = rn_tensor_from_proto(request->inputs.items[i].value, MAX_TENSOR_BYTES,
                                  warmup->options->allocator, &inputs[i].value);
  }
  if (rn_ok(status))
    return run_predict(warmup, signature_of(request->model_spec), inputs, (int)count,
                       request->output_filter.items, (int)request->output_filter.count);
  for (size_t i = 0; i < count; ++i) rn_tensor_clear(&inputs[i].value);
  return status;
}

static rn_status_t replay_infer(warmup_t* warmup, const rn_pb_serving_ModelSpec_t* spec,
                                rn_infer_method_t method, const rn_pb_serving_Input_t* input) {
  static const rn_pb_serving_Input_t nothing;
  rn_str_t signature = signature_of(spec);
  RN_RETURN_IF_ERROR(rn_infer_check(warmup->backend, signature, method, false));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, warmup->options->allocator);
  rn_predict_value_t value = {.name = RN_STR(RN_INFER_INPUT)};
  rn_status_t status = RN_PB_ENCODE(serving_Input, input ? input : &nothing, NULL, &bytes);
  if (rn_ok(status))
    status = rn_infer_examples(rn_strbuf_view(&bytes), warmup->options->allocator, &value.value);
  rn_strbuf_clear(&bytes);
  if (!rn_ok(status)) return status;
  return run_predict(warmup, signature, &value, 1, NULL, 0);
}

static rn_status_t replay_tasks(warmup_t* warmup,
                                const rn_pb_serving_MultiInferenceRequest_t* request) {
  for (uint32_t i = 0; i < request->tasks.count; ++i) {
    const rn_pb_serving_InferenceTask_t* task = &request->tasks.items[i];
    rn_infer_method_t method = RN_INFER_CLASSIFY;
    while (method <= RN_INFER_REGRESS &&
           !rn_str_is(task->method_name, rn_infer_method_name(method)))
      ++method;
    if (method > RN_INFER_REGRESS)
      return rn_unimplemented("Unsupported signature method_name: %.*s",
                              RN_STR_ARGS(task->method_name));
    RN_RETURN_IF_ERROR(replay_infer(warmup, task->model_spec, method, request->input));
  }
  return RN_OK;
}

static rn_status_t run_session(warmup_t* warmup, const rn_pb_serving_SessionRunRequest_t* request,
                               const rn_str_t* names, const rn_tensor_t* feeds) {
  rn_tensor_t* fetches = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, (size_t)request->fetch.count, &fetches));
  rn_tf_session_run_t run = {.feed_names = names,
                             .feeds = feeds,
                             .feed_count = (int)request->feed.count,
                             .fetch_names = request->fetch.items,
                             .fetch_count = (int)request->fetch.count,
                             .target_names = request->target.items,
                             .target_count = (int)request->target.count,
                             .has_aliases = request->tensor_name_is_alias,
                             .signature = signature_of(request->model_spec)};
  RN_RETURN_IF_ERROR(rn_tf_backend_session_run(warmup->backend, &run, fetches));
  for (uint32_t i = 0; i < request->fetch.count; ++i) rn_tensor_clear(&fetches[i]);
  return RN_OK;
}

static rn_status_t replay_session(warmup_t* warmup,
                                  const rn_pb_serving_SessionRunRequest_t* request) {
  rn_tensor_t* feeds = NULL;
  rn_str_t* names = NULL;
  size_t count = request->feed.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&warmup->arena, count, &names));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < count; ++i) {
    const rn_pb_NamedTensorProto_t* feed = &request->feed.items[i];
    names[i] = feed->name;
    status = feed->tensor
                 ? rn_tensor_from_proto(feed->tensor, MAX_TENSOR_BYTES, warmup->options->allocator,
                                        &feeds[i])
                 : rn_invalid_argument("The feed '%.*s' has no tensor", RN_STR_ARGS(feed->name));
  }
  if (rn_ok(status)) status = run_session(warmup, request, names, feeds);
  for (size_t i = 0; i < count; ++i) rn_tensor_clear(&feeds[i]);
  return status;
}

// A log without a request, or of an unknown kind, runs nothing, as in TensorFlow Serving.
static rn_status_t replay(warmup_t* warmup, const rn_pb_serving_PredictionLog_t* log) {
  switch (log->log_type_case) {
    case rn_pb_serving_PredictionLog_predict_log_field:
      return log->predict_log->request ? replay_predict(warmup, log->predict_log->request) : RN_OK;
    case rn_pb_serving_PredictionLog_classify_log_field: {
      const rn_pb_serving_ClassificationRequest_t* request = log->classify_log->request;
      if (!request) return RN_OK;
      return replay_infer(warmup, request->model_spec, RN_INFER_CLASSIFY, request->input);
    }
    case rn_pb_serving_PredictionLog_regress_log_field: {
      const rn_pb_serving_RegressionRequest_t* request = log->regress_log->request;
      if (!request) return RN_OK;
      return replay_infer(warmup, request->model_spec, RN_INFER_REGRESS, request->input);
    }
    case rn_pb_serving_PredictionLog_multi_inference_log_field:
      if (!log->multi_inference_log->request) return RN_OK;
      return replay_tasks(warmup, log->multi_inference_log->request);
    case rn_pb_serving_PredictionLog_session_run_log_field:
      if (!log->session_run_log->request) return RN_OK;
      return replay_session(warmup, log->session_run_log->request);
    default:
      return RN_OK;
  }
}

static rn_status_t replay_record(warmup_t* warmup, rn_str_t record) {
  rn_pb_serving_PredictionLog_t* log = NULL;
  rn_status_t status = RN_PB_DECODE(serving_PredictionLog, record, NULL, &warmup->arena, &log);
  return rn_ok(status) ? replay(warmup, log)
                       : rn_status_annotate(status, "\n\tFailed to parse warmup record");
}

static rn_status_t replay_all(warmup_t* warmup, rn_record_reader_t* reader, const char* path,
                              int* out_count) {
  for (*out_count = 0;; ++*out_count) {
    rn_str_t record;
    bool is_over = false;
    rn_status_t status = rn_record_reader_next(reader, &record, &is_over);
    if (!rn_ok(status))
      return rn_status_annotate(status, ". Please verify your warmup data is in TFRecord format.");
    if (is_over) return RN_OK;
    if (*out_count == RN_WARMUP_MOST_RECORDS)
      return rn_invalid_argument("Number of warmup records exceeds the maximum (%d) at %s",
                                 RN_WARMUP_MOST_RECORDS, path);
    status = replay_record(warmup, record);
    rn_arena_clear(&warmup->arena);
    if (!rn_ok(status))
      return rn_status_annotate(status, "\n\twhile running warmup record %d of %s", *out_count + 1,
                                path);
  }
}

rn_status_t rn_warmup_run(const rn_warmup_options_t* options, rn_backend_t* backend,
                          const char* folder, int* out_count) {
  warmup_t warmup = {.options = options, .backend = backend};
  rn_strbuf_t path;
  rn_record_reader_t* reader = NULL;
  int count = 0;
  bool exists = false;
  rn_strbuf_init(&path, options->allocator);
  rn_arena_init(&warmup.arena, options->allocator);
  rn_strbuf_printf(&path, "%s/" RN_WARMUP_FILE, folder);
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = rn_fs_find(options->env, path.data, &exists);
  if (rn_ok(status) && exists)
    status = rn_record_reader_open(options->env, path.data, RN_COMPRESSION_NONE, 0, &reader);
  if (rn_ok(status) && exists) status = replay_all(&warmup, reader, path.data, &count);
  rn_record_reader_close(reader);
  rn_arena_clear(&warmup.arena);
  rn_strbuf_clear(&path);
  if (out_count) *out_count = count;
  return status;
}
