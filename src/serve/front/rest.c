// TensorFlow Serving's REST: from a request to its reply. See rest.h and rest_body.h.
//
// A call lives from the request to its reply. Small bodies are read on the loop's thread; large
// ones, and large replies, are the pool's work, so that they hold up no other request.
#include "serve/front/rest.h"

#include <strings.h>

#include "base/container.h"
#include "proto/prediction_log.pb.h"
#include "serve/front/classify.h"
#include "serve/front/request_log.h"
#include "serve/front/request_trace.h"
#include "serve/front/rest_body.h"
#include "serve/front/rest_sample.h"

// Bytes of a body, and elements of outputs, that take about a millisecond.
#define LARGE_BODY ((size_t)1 << 18)
#define LARGE_OUTPUT ((int64_t)1 << 14)

typedef struct rest_call_t {
  rn_predict_t predict;
  const rn_front_t* front;
  rn_http_in_t* request;
  rn_arena_t arena;
  rn_rest_path_t path;
  rn_version_t* version;  // Retained; NULL: not found yet
  bool is_row;
  int64_t examples;          // of classify and regress
  rn_predict_value_t input;  // of these
  rn_strbuf_t sample;        // the request as bytes, if it is to be logged
  rn_job_t job;
} rest_call_t;

static const char* verb_name(rn_rest_verb_t verb) {
  return verb == RN_REST_PREDICT ? "predict" : verb == RN_REST_CLASSIFY ? "classify" : "regress";
}

static void call_destroy(rest_call_t* self) {
  rn_predict_clear(&self->predict);
  rn_version_release(self->version);
  rn_strbuf_clear(&self->sample);
  rn_arena_clear(&self->arena);
  RN_FREE(self->front->allocator, self);
}

static rn_rest_target_t target_of(const rest_call_t* self) {
  return (rn_rest_target_t){self->path.spec.name, rn_version_number(self->version),
                            self->predict.signature};
}

// Keeps a classify or regress request as bytes if it is to be logged. A sample that cannot be
// serialized is left out.
static void take_sample(rest_call_t* self, rn_str_t input) {
  rn_rest_target_t target = target_of(self);
  if (!rn_request_log_wants(self->front->log, target.model)) return;
  rn_status_t status = rn_rest_sample_request(&target, input, &self->sample);
  if (!rn_ok(status)) rn_strbuf_clear(&self->sample);
  rn_status_free(status);
}

// Logs the sample with its result, a message of type |desc|.
static void log_sample(const rest_call_t* self, uint32_t field, const rn_pb_message_desc_t* desc,
                       const void* result) {
  if (!self->sample.size) return;
  rn_rest_target_t target = target_of(self);
  rn_strbuf_t response;
  rn_strbuf_init(&response, self->front->allocator);
  rn_status_t status = rn_rest_sample_response(&target, desc, result, &response);
  if (rn_ok(status))
    rn_request_log_add(self->front->log, target.model, field, rn_strbuf_view(&self->sample),
                       rn_strbuf_view(&response));
  rn_status_free(status);
  rn_strbuf_clear(&response);
}

static rn_status_t write_reply(rest_call_t* self, rn_strbuf_t* out) {
  const rn_predict_t* predict = &self->predict;
  if (self->path.verb == RN_REST_PREDICT) {
    rn_request_log_add_predict(self->front->log, self->path.spec.name,
                               rn_version_number(self->version), predict,
                               rn_strbuf_view(&self->sample));
    return rn_rest_write_outputs(predict->outputs, predict->output_count, self->is_row, out);
  }
  if (self->path.verb == RN_REST_CLASSIFY) {
    rn_pb_serving_ClassificationResult_t classes;
    RN_RETURN_IF_ERROR(rn_infer_classes(predict->outputs, predict->output_count, self->examples,
                                        &self->arena, &classes));
    log_sample(self, rn_pb_serving_PredictionLog_classify_log_field,
               &rn_pb_serving_ClassificationResult_desc, &classes);
    return rn_rest_write_classes(&classes, out);
  }
  rn_pb_serving_RegressionResult_t values;
  RN_RETURN_IF_ERROR(rn_infer_values(predict->outputs, predict->output_count, self->examples,
                                     &self->arena, &values));
  log_sample(self, rn_pb_serving_PredictionLog_regress_log_field,
             &rn_pb_serving_RegressionResult_desc, &values);
  return rn_rest_write_values(&values, out);
}

// Replies, with the error if |status| is one, and ends the call.
static void finish(rest_call_t* self, rn_status_t status) {
  const rn_front_t* front = self->front;
  rn_http_in_t* request = self->request;
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  if (rn_ok(status)) status = write_reply(self, &body);
  // A name that no model has must not become a series.
  rn_str_t model = self->version ? self->path.spec.name : RN_STR("");
  rn_front_count(front, model, verb_name(self->path.verb), "REST", rn_status_code(status),
                 &self->predict.times);
  rn_request_trace_version(front->trace, self->version, false, &self->predict.times);
  unsigned marks = self->predict.marks;
  int64_t retry_ns = self->predict.retry_ns;
  if (rn_ok(status)) rn_front_count_answer(front, model, self->predict.rows, marks);
  call_destroy(self);
  if (rn_ok(status)) {
    rn_front_reply(front, request, 200, NULL, &body, marks);
  } else {
    rn_strbuf_clear(&body);
    rn_front_reply_error(front, request, status, retry_ns);
  }
}

static void finish_job(rn_job_t* job) { finish(RN_CONTAINER_OF(job, rest_call_t, job), RN_OK); }

static void on_predicted(rn_predict_t* predict, rn_status_t status) {
  rest_call_t* self = RN_CONTAINER_OF(predict, rest_call_t, predict);
  int64_t elements = 0;
  for (int i = 0; i < predict->output_count; ++i) elements += predict->outputs[i].value.count;
  if (rn_ok(status) && elements > LARGE_OUTPUT && self->front->pool) {
    self->job.run = finish_job;
    rn_pool_submit(self->front->pool, &self->job);
  } else {
    finish(self, status);
  }
}

static rn_status_t read_inputs(rest_call_t* self, const rn_rest_body_t* body) {
  const rn_backend_t* backend = rn_version_backend(self->version);
  int index = rn_backend_signature(backend, body->signature);
  if (index < 0)
    return rn_invalid_argument(
        "Serving signature name: \"%.*s\" not found in signature def",
        RN_STR_ARGS(body->signature.size ? body->signature : RN_STR("serving_default")));
  const rn_serve_signature_t* signature = &backend->signatures[index];
  self->predict.signature = signature->name;
  RN_RETURN_IF_ERROR(rn_rest_read_inputs(body, signature, self->front->allocator,
                                         &self->predict.inputs, &self->predict.input_count,
                                         &self->is_row));
  rn_request_log_take(self->front->log, self->path.spec.name, rn_version_number(self->version),
                      &self->predict, &self->sample);
  return RN_OK;
}

static rn_status_t read_examples(rest_call_t* self, const rn_rest_body_t* body) {
  const rn_front_t* front = self->front;
  rn_infer_method_t method =
      self->path.verb == RN_REST_CLASSIFY ? RN_INFER_CLASSIFY : RN_INFER_REGRESS;
  RN_RETURN_IF_ERROR(rn_infer_check(rn_version_backend(self->version), body->signature, method,
                                    front->checks_methods));
  rn_strbuf_t input;
  rn_strbuf_init(&input, front->allocator);
  self->predict.signature = body->signature;
  self->predict.inputs = &self->input;
  self->predict.input_count = 1;
  self->input.name = RN_STR(RN_INFER_INPUT);
  rn_status_t status = rn_rest_read_examples(body, &input);
  if (rn_ok(status))
    status = rn_infer_examples(rn_strbuf_view(&input), front->allocator, &self->input.value);
  if (rn_ok(status)) {
    self->examples = self->input.value.count;
    take_sample(self, rn_strbuf_view(&input));
  }
  rn_strbuf_clear(&input);
  return status;
}

static rn_status_t read_body(rest_call_t* self) {
  rn_rest_body_t body;
  RN_RETURN_IF_ERROR(rn_rest_body_scan(self->request->body, &self->arena, &body));
  body.instances.value.pool = body.inputs.value.pool = self->front->env->pool;
  rn_status_t status = rn_models_find(self->front->models, &self->path.spec, &self->version);
  if (rn_ok(status))
    status = (self->path.verb == RN_REST_PREDICT ? read_inputs : read_examples)(self, &body);
  return rn_rest_body_error(&body, status);
}

static void run_call(rest_call_t* self) {
  rn_status_t status = read_body(self);
  if (rn_ok(status))
    rn_version_predict(self->version, &self->predict);
  else
    finish(self, status);
}

static void run_job(rn_job_t* job) { run_call(RN_CONTAINER_OF(job, rest_call_t, job)); }

// The deadline: X-Request-Timeout-Ms after the request came, or the server's own timeout.
static rn_status_t read_deadline(const rn_front_t* front, const rn_http_in_t* request,
                                 int64_t* out) {
  *out = INT64_MAX;
  int64_t milliseconds = 0, timeout_ns = front->rest_timeout_ns;
  rn_str_t text = rn_http_header(request, "x-request-timeout-ms");
  if (text.size) {
    if (!rn_str_to_i64(text, &milliseconds) || milliseconds < 1)
      return rn_invalid_argument("X-Request-Timeout-Ms must be a positive number, not %.*s",
                                 RN_STR_ARGS(text));
    if (!rn_mul_i64_ok(milliseconds, 1000000, &timeout_ns)) return RN_OK;
  }
  if (timeout_ns > 0 && !rn_add_i64_ok(request->begun_ns, timeout_ns, out)) *out = INT64_MAX;
  return RN_OK;
}

static rn_status_t call_create(const rn_front_t* front, rn_http_in_t* request, rest_call_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(front->allocator, out));
  rest_call_t* self = *out;
  self->front = front;
  self->request = request;
  rn_arena_init(&self->arena, front->allocator);
  rn_strbuf_init(&self->sample, front->allocator);
  self->predict.allocator = front->allocator;
  self->predict.cancel = &request->cancel;
  self->predict.done = on_predicted;
  self->predict.times.begun_ns = request->begun_ns;
  return RN_OK;
}

// Replies to a GET.
static void inform(rest_call_t* self) {
  const rn_front_t* front = self->front;
  rn_http_in_t* request = self->request;
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_status_t status = rn_rest_write_info(front, &self->path, &self->arena, &body);
  call_destroy(self);
  if (rn_ok(status)) {
    rn_front_reply(front, request, 200, NULL, &body, 0);
  } else {
    rn_strbuf_clear(&body);
    rn_front_reply_error(front, request, status, 0);
  }
}

// A browser asks whether a page of another origin may call.
static void preflight(const rn_front_t* front, rn_http_in_t* request) {
  rn_str_t origin = rn_http_header(request, "origin");
  rn_strbuf_t empty;
  rn_strbuf_init(&empty, front->allocator);
  if (rn_str_starts_with(origin, RN_STR("http://")) ||
      rn_str_starts_with(origin, RN_STR("https://")))
    rn_front_reply(front, request, 200, NULL, &empty, 0);
  else
    rn_front_reply_error(front, request,
                         rn_failed_precondition("Origin header is missing in CORS preflight"), 0);
}

bool rn_rest_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role) {
  if (request->path.size < 4 || strncasecmp(request->path.data, "/v1/", 4) != 0) return false;
  if (rn_str_is(request->method, "OPTIONS")) {
    preflight(front, request);
    return true;
  }
  rest_call_t* self = NULL;
  rn_status_t status = call_create(front, request, &self);
  if (rn_ok(status))
    status = rn_rest_path_read(request->method, request->path, &self->arena, &self->path);
  bool is_post = rn_ok(status) && self->path.verb >= RN_REST_PREDICT;
  if (rn_ok(status) && role < (is_post ? RN_ROLE_PREDICT : RN_ROLE_READ))
    status = rn_front_denied(role);
  if (is_post && rn_ok(status)) status = read_deadline(front, request, &self->predict.deadline_ns);
  if (!rn_ok(status)) {
    if (self) call_destroy(self);
    rn_front_reply_error(front, request, status, 0);
  } else if (!is_post) {
    inform(self);
  } else if (request->body.size > LARGE_BODY && front->pool) {
    self->job.run = run_job;
    rn_pool_submit(front->pool, &self->job);
  } else {
    run_call(self);
  }
  return true;
}
