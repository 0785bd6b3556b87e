// See rpc.h.
#include "serve/front/rpc.h"

#include <limits.h>
#include <stdio.h>

#include "net/tensor_codec.h"
#include "proto/serving_model.pb.h"
#include "proto/wrappers.pb.h"
#include "serve/front/request_log.h"
#include "wire/scan.h"
#include "wire/writer.h"

// No model has a longer name; errors repeat names.
#define MAX_NAME 1024

static rn_status_t read_version(rn_str_t bytes, rn_rpc_spec_t* out) {
  out->model.label = RN_STR("");
  out->model.version = (int64_t)rn_field_value(bytes, rn_pb_google_protobuf_Int64Value_value_field);
  if (out->model.version >= 0) return RN_OK;
  return rn_not_found("Servable not found for request: Specific(%.*s, %lld)",
                      RN_STR_ARGS(out->model.name), (long long)out->model.version);
}

rn_status_t rn_rpc_spec_read(rn_str_t request, uint32_t number, rn_rpc_spec_t* out) {
  *out = (rn_rpc_spec_t){.model = {.name = RN_STR(""), .version = -1, .label = RN_STR("")},
                         .signature = RN_STR("")};
  bool is_there = false;
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  rn_str_t spec = RN_STR("");
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != number || field.wire != RN_PB_WIRE_LENGTH) continue;
    is_there = true;
    spec = field.bytes;
  }
  if (scan.is_bad) return rn_invalid_argument("Malformed request");
  if (!is_there) return rn_invalid_argument("Missing ModelSpec");
  rn_str_t version = RN_STR("");
  bool has_version = false;
  for (scan = rn_pb_scan(spec); rn_pb_scan_next(&scan, &field);) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    switch (field.number) {
      case rn_pb_serving_ModelSpec_name_field:
        out->model.name = field.bytes;
        break;
      case rn_pb_serving_ModelSpec_version_field:
        has_version = true;
        version = field.bytes;
        break;
      case rn_pb_serving_ModelSpec_version_label_field:
        has_version = false;
        out->model.label = field.bytes;
        break;
      case rn_pb_serving_ModelSpec_signature_name_field:
        out->signature = field.bytes;
        break;
      default:
        break;
    }
  }
  if (scan.is_bad) return rn_invalid_argument("Malformed ModelSpec");
  if (out->model.name.size > MAX_NAME)
    return rn_not_found("Servable not found for request: a name of %zu bytes",
                        out->model.name.size);
  return has_version ? read_version(version, out) : RN_OK;
}

void rn_rpc_spec_write(rn_strbuf_t* out, uint32_t number, rn_str_t model, int64_t version,
                       const rn_str_t* signature) {
  size_t spec = rn_pb_begin(out, number);
  rn_pb_put_str(out, rn_pb_serving_ModelSpec_name_field, model);
  size_t value = rn_pb_begin(out, rn_pb_serving_ModelSpec_version_field);
  if (version) rn_pb_put_uint(out, rn_pb_google_protobuf_Int64Value_value_field, (uint64_t)version);
  rn_pb_end(out, value);
  if (signature)
    rn_pb_put_str(out, rn_pb_serving_ModelSpec_signature_name_field,
                  signature->size ? *signature : RN_STR("serving_default"));
  rn_pb_end(out, spec);
}

bool rn_rpc_dispatch(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role, const char* service,
                     const rn_rpc_method_t* methods, size_t count) {
  rn_str_t path = rn_rpc_path(call), prefix = rn_str(service);
  if (!rn_str_starts_with(path, prefix)) return false;
  rn_str_t name = rn_str_n(path.data + prefix.size, path.size - prefix.size);
  for (size_t i = 0; i < count; ++i) {
    if (!rn_str_is(name, methods[i].name)) continue;
    if (role >= methods[i].role)
      methods[i].handle(front, call);
    else
      rn_rpc_fail(front, call, rn_front_denied(role));
    return true;
  }
  rn_rpc_fail(front, call, rn_unimplemented("Method not found: %.*s", RN_STR_ARGS(path)));
  return true;
}

void rn_rpc_finish(const rn_front_t* front, rn_rpc_in_t* call, rn_status_t status,
                   rn_strbuf_t* body) {
  rn_message_t message;
  rn_message_init(&message, front->allocator);
  if (rn_ok(status)) status = rn_front_message(body, &message);
  rn_strbuf_clear(body);
  rn_rpc_reply(call, status, &message);
}

void rn_rpc_fail(const rn_front_t* front, rn_rpc_in_t* call, rn_status_t status) {
  rn_message_t none;
  rn_message_init(&none, front->allocator);
  rn_rpc_reply(call, status, &none);
}

void rn_rpc_stream(rn_rpc_in_t* call, rn_strbuf_t* body) {
  rn_message_t message;
  rn_status_t status = rn_front_message(body, &message);
  rn_strbuf_clear(body);
  if (rn_ok(status)) rn_rpc_send(call, &message);
  rn_status_free(status);
}

// A tensor that repeats its last value may have MAX_FILLED bytes whatever its message; others are
// as large as their elements, of which eight bytes take one at least.
#define MAX_FILLED (256u << 20)
#define MAX_GROWTH 8

rn_status_t rn_rpc_tensor(const rn_front_t* front, const rn_rpc_in_t* call, rn_str_t bytes,
                          rn_tensor_t* out) {
  const rn_message_t* message = &call->stream.message;
  rn_buffer_t* buffer = message->pieces.count ? message->pieces.items[0].buffer : NULL;
  size_t most = bytes.size > MAX_FILLED / MAX_GROWTH ? bytes.size * MAX_GROWTH : MAX_FILLED;
  RN_RETURN_IF_ERROR(rn_decode_tensor(bytes, buffer, most, front->allocator, out));
  if (out->buffer != buffer)
    rn_series_add(rn_metrics_series(front->metrics, RN_METRIC_COPIED_BYTES, RN_STR("grpc"),
                                    RN_STR(""), RN_STR("")),
                  (double)rn_tensor_bytes(out));
  return RN_OK;
}

void rn_rpc_begin_predict(const rn_front_t* front, rn_rpc_in_t* call, rn_predict_t* predict) {
  predict->times.begun_ns = front->env->now_ns(front->env->self);
  predict->deadline_ns = call->stream.deadline_ns;
  predict->cancel = &call->cancel;
  predict->allocator = front->allocator;
  int64_t priority = 0;
  if (rn_str_to_i64(rn_rpc_header(call, "priority"), &priority))
    predict->priority = priority > INT_MAX ? INT_MAX : priority < INT_MIN ? INT_MIN : (int)priority;
}

rn_status_t rn_rpc_end_predict(const rn_front_t* front, rn_rpc_in_t* call,
                               const rn_predict_t* predict, rn_status_t status) {
  char text[32];
  if (predict->marks)
    rn_rpc_add_trailer(call, "runnel-marks", rn_str(rn_front_marks(predict->marks, text)));
  if (!rn_ok(status) && predict->retry_ns > 0) {
    snprintf(text, sizeof text, "%lld", (long long)((predict->retry_ns - 1) / 1000000 + 1));
    rn_rpc_add_trailer(call, "grpc-retry-pushback-ms", rn_str(text));
  }
  bool is_late = rn_status_code(status) == RN_CODE_CANCELLED &&
                 front->env->now_ns(front->env->self) >= predict->deadline_ns;
  if (!is_late) return status;
  rn_status_free(status);
  return rn_deadline_exceeded("Deadline Exceeded");
}

void rn_rpc_log(const rn_front_t* front, const rn_rpc_in_t* call, rn_str_t model, uint32_t field,
                const rn_message_t* response) {
  if (!rn_request_log_wants(front->log, model)) return;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, front->allocator);
  for (size_t i = 0; i < response->pieces.count; ++i)
    rn_strbuf_append(&bytes, response->pieces.items[i].bytes);
  if (!bytes.failed)
    rn_request_log_add(front->log, model, field, rn_rpc_request(call), rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
}

// A call that waits for a pool. One of the functions is set.
typedef struct rpc_job_t {
  rn_job_t job;
  rn_front_t* front;
  rn_rpc_in_t* call;
  rn_rpc_work_fn_t work;
  rn_rpc_send_fn_t send;
} rpc_job_t;

static rn_status_t work_of(const rpc_job_t* job, rn_message_t* out) {
  if (job->send) return job->send(job->front, job->call, out);
  rn_strbuf_t body;
  rn_strbuf_init(&body, job->front->allocator);
  rn_status_t status = job->work(job->front, job->call, &body);
  if (rn_ok(status)) status = rn_front_message(&body, out);
  rn_strbuf_clear(&body);
  return status;
}

static void run_job(rn_job_t* base) {
  rpc_job_t job = *(rpc_job_t*)base;
  RN_FREE(job.front->allocator, (rpc_job_t*)base);
  rn_message_t message;
  rn_message_init(&message, job.front->allocator);
  rn_status_t status = work_of(&job, &message);
  rn_rpc_reply(job.call, status, &message);
}

static void submit(rpc_job_t job) {
  rpc_job_t* kept = NULL;
  rn_status_t status = RN_NEW(job.front->allocator, &kept);
  if (!rn_ok(status)) {
    rn_rpc_fail(job.front, job.call, status);
    return;
  }
  *kept = job;
  kept->job.run = run_job;
  rn_pool_submit(job.send ? job.front->sessions : job.front->loads, &kept->job);
}

void rn_rpc_run_load(rn_front_t* front, rn_rpc_in_t* call, rn_rpc_work_fn_t work) {
  submit((rpc_job_t){.front = front, .call = call, .work = work});
}

void rn_rpc_run_session(rn_front_t* front, rn_rpc_in_t* call, rn_rpc_send_fn_t work) {
  submit((rpc_job_t){.front = front, .call = call, .send = work});
}

bool rn_front_streams(rn_str_t path) {
  return rn_str_is(path, "/grpc.health.v1.Health/Watch") ||
         rn_str_is(path, "/inference.GRPCInferenceService/ModelStreamInfer") ||
         rn_str_starts_with(path, RN_STR("/grpc.reflection."));
}
