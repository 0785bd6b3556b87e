// See rpc.h.
#include "serve/front/rpc.h"

#include "proto/serving_model.pb.h"
#include "proto/wrappers.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

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

// A call that waits for the pool.
typedef struct rpc_job_t {
  rn_job_t job;
  rn_front_t* front;
  rn_rpc_in_t* call;
  rn_rpc_work_fn_t work;
} rpc_job_t;

static void run_job(rn_job_t* base) {
  rpc_job_t job = *(rpc_job_t*)base;
  RN_FREE(job.front->allocator, (rpc_job_t*)base);
  rn_strbuf_t body;
  rn_strbuf_init(&body, job.front->allocator);
  rn_status_t status = job.work(job.front, job.call, &body);
  rn_rpc_finish(job.front, job.call, status, &body);
}

void rn_rpc_run(rn_front_t* front, rn_rpc_in_t* call, rn_rpc_work_fn_t work) {
  rpc_job_t* job = NULL;
  rn_status_t status = RN_NEW(front->allocator, &job);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  *job = (rpc_job_t){.job.run = run_job, .front = front, .call = call, .work = work};
  rn_pool_submit(front->pool, &job->job);
}

bool rn_front_streams(rn_str_t path) {
  return rn_str_is(path, "/grpc.health.v1.Health/Watch") ||
         rn_str_is(path, "/inference.GRPCInferenceService/ModelStreamInfer") ||
         rn_str_starts_with(path, RN_STR("/grpc.reflection."));
}
