// See classify_rpc.h. Classify and Regress are calls of one task.
#include "serve/front/classify_rpc.h"

#include "proto/prediction_log.pb.h"
#include "proto/serving_classify.pb.h"
#include "serve/front/classify.h"
#include "serve/front/request_trace.h"
#include "serve/front/rpc.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

// More tasks than any model has signatures.
#define MAX_TASKS 256

typedef enum infer_api_t { API_CLASSIFY, API_REGRESS, API_MULTI } infer_api_t;
static const char* const api_names[] = {"Classify", "Regress", "MultiInference"};
static const uint32_t log_fields[] = {rn_pb_serving_PredictionLog_classify_log_field,
                                      rn_pb_serving_PredictionLog_regress_log_field,
                                      rn_pb_serving_PredictionLog_multi_inference_log_field};

typedef struct infer_call_t infer_call_t;

typedef struct infer_task_t {
  rn_predict_t predict;  // first
  infer_call_t* owner;
  rn_rpc_spec_t spec;
  rn_infer_method_t method;
  rn_predict_value_t input;
  rn_status_t status;  // Owned
} infer_task_t;

// A call under way: one block with its tasks.
struct infer_call_t {
  const rn_front_t* front;
  rn_rpc_in_t* call;
  infer_api_t api;
  rn_version_t* version;  // Retained
  int64_t examples;
  _Atomic int left;  // tasks that are not done, and one for the thread that starts them
  int count;
  infer_task_t tasks[];
};

static rn_status_t call_create(const rn_front_t* front, rn_rpc_in_t* call, infer_api_t api,
                               int count, infer_call_t** out) {
  size_t size = sizeof **out + (size_t)count * sizeof *(*out)->tasks;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(front->allocator, size, (void**)out));
  (*out)->front = front;
  (*out)->call = call;
  (*out)->api = api;
  (*out)->count = count;
  for (int i = 0; i < count; ++i) (*out)->tasks[i].predict.allocator = front->allocator;
  return RN_OK;
}

static void call_destroy(infer_call_t* self) {
  for (int i = 0; i < self->count; ++i) {
    rn_predict_clear(&self->tasks[i].predict);
    rn_status_free(self->tasks[i].status);
  }
  rn_version_release(self->version);
  rn_free(self->front->allocator, self, sizeof *self + (size_t)self->count * sizeof *self->tasks);
}

// One result, as field |number|.
static rn_status_t put_result(const infer_call_t* self, const infer_task_t* task, uint32_t number,
                              rn_strbuf_t* out) {
  const rn_predict_t* predict = &task->predict;
  rn_arena_t arena;
  rn_arena_init(&arena, self->front->allocator);
  size_t mark = rn_pb_begin(out, number);
  rn_status_t status = RN_OK;
  if (task->method == RN_INFER_CLASSIFY) {
    rn_pb_serving_ClassificationResult_t result = {0};
    status =
        rn_infer_classes(predict->outputs, predict->output_count, self->examples, &arena, &result);
    if (rn_ok(status)) status = RN_PB_ENCODE(serving_ClassificationResult, &result, NULL, out);
  } else {
    rn_pb_serving_RegressionResult_t result = {0};
    status =
        rn_infer_values(predict->outputs, predict->output_count, self->examples, &arena, &result);
    if (rn_ok(status)) status = RN_PB_ENCODE(serving_RegressionResult, &result, NULL, out);
  }
  rn_pb_end(out, mark);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t put_multi(const infer_call_t* self, const infer_task_t* task, rn_strbuf_t* out) {
  size_t result = rn_pb_begin(out, rn_pb_serving_MultiInferenceResponse_results_field);
  rn_rpc_spec_write(out, rn_pb_serving_InferenceResult_model_spec_field, task->spec.model.name,
                    rn_version_number(self->version), &task->spec.signature);
  rn_status_t status = put_result(self, task,
                                  task->method == RN_INFER_CLASSIFY
                                      ? rn_pb_serving_InferenceResult_classification_result_field
                                      : rn_pb_serving_InferenceResult_regression_result_field,
                                  out);
  rn_pb_end(out, result);
  return status;
}

static rn_status_t write_response(const infer_call_t* self, rn_strbuf_t* out) {
  if (self->api == API_MULTI) {
    for (int i = 0; i < self->count; ++i) RN_RETURN_IF_ERROR(put_multi(self, &self->tasks[i], out));
    return RN_OK;
  }
  // Both responses have the same fields.
  const infer_task_t* task = &self->tasks[0];
  RN_RETURN_IF_ERROR(
      put_result(self, task, rn_pb_serving_ClassificationResponse_result_field, out));
  rn_rpc_spec_write(out, rn_pb_serving_ClassificationResponse_model_spec_field,
                    task->spec.model.name, rn_version_number(self->version), &task->spec.signature);
  return RN_OK;
}

// Replies: with the error of the first task that failed, if one did.
static void finish(infer_call_t* self, rn_status_t status) {
  const rn_front_t* front = self->front;
  rn_rpc_in_t* call = self->call;
  // All tasks are of one model. Names that clients made up are counted together.
  rn_str_t model = self->version ? self->tasks[0].spec.model.name : RN_STR("");
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  for (int i = 0; i < self->count; ++i) {
    infer_task_t* task = &self->tasks[i];
    rn_status_t own = rn_rpc_end_predict(front, call, &task->predict, task->status);
    task->status = RN_OK;
    status = rn_status_join(status, own);
  }
  if (rn_ok(status)) status = write_response(self, &body);
  for (int i = 0; i < self->count; ++i) {
    const infer_task_t* task = &self->tasks[i];
    rn_front_count(front, model, api_names[self->api], "GRPC", rn_status_code(status),
                   &task->predict.times);
    rn_request_trace_version(front->trace, self->version, true, &task->predict.times);
    if (rn_ok(status)) rn_front_count_answer(front, model, self->examples, task->predict.marks);
  }
  rn_message_t message;
  rn_message_init(&message, front->allocator);
  if (rn_ok(status)) status = rn_front_message(&body, &message);
  if (rn_ok(status)) rn_rpc_log(front, call, model, log_fields[self->api], &message);
  rn_strbuf_clear(&body);
  call_destroy(self);
  rn_rpc_reply(call, status, &message);
}

static void let_go(infer_call_t* self) {
  if (--self->left == 0) finish(self, RN_OK);
}

static void on_predicted(rn_predict_t* predict, rn_status_t status) {
  infer_task_t* task = (infer_task_t*)predict;
  task->status = status;
  let_go(task->owner);
}

// Takes |examples|.
static rn_status_t give_examples(infer_call_t* self, rn_tensor_t* examples) {
  self->examples = examples->count;
  rn_status_t status = RN_OK;
  for (int i = 1; i < self->count && rn_ok(status); ++i)
    status = rn_tensor_share(examples, &self->tasks[i].input.value);
  self->tasks[0].input.value = *examples;
  return status;
}

// Finds the version and checks every task against it; then runs them all.
static rn_status_t prepare(infer_call_t* self, rn_str_t input) {
  const rn_front_t* front = self->front;
  RN_RETURN_IF_ERROR(rn_models_find(front->models, &self->tasks[0].spec.model, &self->version));
  const rn_backend_t* backend = rn_version_backend(self->version);
  for (int i = 0; i < self->count; ++i) {
    infer_task_t* task = &self->tasks[i];
    rn_str_t signature = task->spec.signature;
    if (self->api == API_MULTI && rn_backend_signature(backend, signature) < 0)
      return rn_invalid_argument(
          "Requested signature not found in model graph: %.*s",
          RN_STR_ARGS(signature.size ? signature : RN_STR("serving_default")));
    RN_RETURN_IF_ERROR(rn_infer_check(backend, signature, task->method, front->checks_methods));
    rn_rpc_begin_predict(front, self->call, &task->predict);
    task->owner = self;
    task->input.name = RN_STR(RN_INFER_INPUT);
    task->predict.signature = signature;
    task->predict.inputs = &task->input;
    task->predict.input_count = 1;
    task->predict.done = on_predicted;
  }
  rn_tensor_t examples = {0};
  RN_RETURN_IF_ERROR(rn_infer_examples(input, front->allocator, &examples));
  return give_examples(self, &examples);
}

static void run(infer_call_t* self, rn_str_t input) {
  rn_status_t status = prepare(self, input);
  if (!rn_ok(status)) {
    finish(self, status);
    return;
  }
  int count = self->count;
  self->left = count + 1;
  for (int i = 0; i < count; ++i) rn_version_predict(self->version, &self->tasks[i].predict);
  let_go(self);
}

// Both requests have the same fields.
static void run_one(rn_front_t* front, rn_rpc_in_t* call, infer_api_t api) {
  infer_call_t* self = NULL;
  rn_str_t request = rn_rpc_request(call);
  rn_status_t status = call_create(front, call, api, 1, &self);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  self->tasks[0].method = api == API_CLASSIFY ? RN_INFER_CLASSIFY : RN_INFER_REGRESS;
  status = rn_rpc_spec_read(request, rn_pb_serving_ClassificationRequest_model_spec_field,
                            &self->tasks[0].spec);
  if (rn_ok(status))
    run(self, rn_field_bytes(request, rn_pb_serving_ClassificationRequest_input_field));
  else
    finish(self, status);
}

void rn_classify_rpc(rn_front_t* front, rn_rpc_in_t* call) { run_one(front, call, API_CLASSIFY); }
void rn_regress_rpc(rn_front_t* front, rn_rpc_in_t* call) { run_one(front, call, API_REGRESS); }

static rn_status_t read_task(infer_call_t* self, int index, rn_str_t bytes) {
  infer_task_t* task = &self->tasks[index];
  RN_RETURN_IF_ERROR(
      rn_rpc_spec_read(bytes, rn_pb_serving_InferenceTask_model_spec_field, &task->spec));
  if (!task->spec.model.name.size)
    return rn_invalid_argument("Found ModelSpec with an empty model name.");
  if (!rn_str_eq(task->spec.model.name, self->tasks[0].spec.model.name))
    return rn_invalid_argument(
        "All ModelSpecs in a MultiInferenceRequest must access the same model name.");
  if (!task->spec.signature.size) task->spec.signature = RN_STR("serving_default");
  for (int i = 0; i < index; ++i)
    if (rn_str_eq(self->tasks[i].spec.signature, task->spec.signature))
      return rn_invalid_argument("Duplicate evaluation of signature: %.*s",
                                 RN_STR_ARGS(task->spec.signature));
  rn_str_t method = rn_field_bytes(bytes, rn_pb_serving_InferenceTask_method_name_field);
  task->method = RN_INFER_CLASSIFY;
  if (rn_str_is(method, rn_infer_method_name(RN_INFER_CLASSIFY))) return RN_OK;
  task->method = RN_INFER_REGRESS;
  if (rn_str_is(method, rn_infer_method_name(RN_INFER_REGRESS))) return RN_OK;
  return rn_unimplemented("Unsupported signature method_name: %.*s", RN_STR_ARGS(method));
}

static rn_status_t read_tasks(infer_call_t* self, rn_str_t request) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  int index = 0;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_serving_MultiInferenceRequest_tasks_field &&
        field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(read_task(self, index++, field.bytes));
  return RN_OK;
}

// -1: the bytes are not a message.
static int count_tasks(rn_str_t request) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  int count = 0;
  while (rn_pb_scan_next(&scan, &field) && count <= MAX_TASKS)
    count += field.number == rn_pb_serving_MultiInferenceRequest_tasks_field &&
             field.wire == RN_PB_WIRE_LENGTH;
  return scan.is_bad ? -1 : count;
}

void rn_multi_inference_rpc(rn_front_t* front, rn_rpc_in_t* call) {
  rn_str_t request = rn_rpc_request(call);
  int count = count_tasks(request);
  infer_call_t* self = NULL;
  rn_status_t status = count < 0    ? rn_invalid_argument("Malformed MultiInferenceRequest")
                       : count == 0 ? rn_invalid_argument("ModelSpec has no name specified.")
                       : count > MAX_TASKS
                           ? rn_invalid_argument("A request may have %d tasks at most", MAX_TASKS)
                           : call_create(front, call, API_MULTI, count, &self);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  status = read_tasks(self, request);
  if (rn_ok(status))
    run(self, rn_field_bytes(request, rn_pb_serving_MultiInferenceRequest_input_field));
  else
    finish(self, status);
}
