// SessionService.SessionRun: any tensors of a model's graph, by their names. TensorFlow Serving
// defines the service but does not offer it.
#include "net/tensor_codec.h"
#include "proto/config.pb.h"
#include "proto/named_tensor.pb.h"
#include "proto/serving_session.pb.h"
#include "serve/front/rpc.h"
#include "serve/model/tf_backend.h"
#include "wire/scan.h"
#include "wire/writer.h"

// More names than a step can use; they bound what one request may cost.
#define MAX_NAMES 1024

// A request, in an arena but for its tensors; names are borrowed from the bytes.
typedef struct session_call_t {
  rn_rpc_spec_t spec;
  rn_tf_session_run_t step;
  rn_tensor_t *feeds, *results;
  int64_t timeout_ms;
} session_call_t;

// The bytes of every field |number|.
static rn_status_t read_names(rn_str_t request, uint32_t number, rn_arena_t* arena,
                              const rn_str_t** out, int* out_count) {
  rn_pb_field_t field;
  rn_str_t* names = NULL;
  for (int pass = 0; pass < 2; ++pass) {
    rn_pb_scan_t scan = rn_pb_scan(request);
    int count = 0;
    while (rn_pb_scan_next(&scan, &field)) {
      if (field.number != number || field.wire != RN_PB_WIRE_LENGTH) continue;
      if (pass) names[count] = field.bytes;
      count++;
    }
    if (count > MAX_NAMES)
      return rn_invalid_argument("A step may have %d names of a kind at most", MAX_NAMES);
    if (!pass) RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &names));
    *out_count = count;
  }
  *out = names;
  return RN_OK;
}

static rn_status_t read_feeds(const rn_front_t* front, const rn_rpc_in_t* call, rn_arena_t* arena,
                              session_call_t* self) {
  const rn_str_t* feeds = NULL;
  rn_str_t* names = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(read_names(rn_rpc_request(call), rn_pb_serving_SessionRunRequest_feed_field,
                                arena, &feeds, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &self->feeds));
  self->step.feed_names = names;
  self->step.feeds = self->feeds;
  for (int i = 0; i < count; ++i) {
    names[i] = rn_field_bytes(feeds[i], rn_pb_NamedTensorProto_name_field);
    rn_str_t tensor = rn_field_bytes(feeds[i], rn_pb_NamedTensorProto_tensor_field);
    RN_RETURN_IF_ERROR(rn_rpc_tensor(front, call, tensor, &self->feeds[i]));
    self->step.feed_count++;
  }
  return RN_OK;
}

static rn_status_t read_request(const rn_front_t* front, const rn_rpc_in_t* call, rn_arena_t* arena,
                                session_call_t* self) {
  rn_str_t request = rn_rpc_request(call);
  rn_tf_session_run_t* step = &self->step;
  RN_RETURN_IF_ERROR(
      rn_rpc_spec_read(request, rn_pb_serving_SessionRunRequest_model_spec_field, &self->spec));
  RN_RETURN_IF_ERROR(read_feeds(front, call, arena, self));
  RN_RETURN_IF_ERROR(read_names(request, rn_pb_serving_SessionRunRequest_fetch_field, arena,
                                &step->fetch_names, &step->fetch_count));
  RN_RETURN_IF_ERROR(read_names(request, rn_pb_serving_SessionRunRequest_target_field, arena,
                                &step->target_names, &step->target_count));
  rn_str_t options = rn_field_bytes(request, rn_pb_serving_SessionRunRequest_options_field);
  self->timeout_ms = (int64_t)rn_field_value(options, rn_pb_RunOptions_timeout_in_ms_field);
  step->has_aliases =
      rn_field_value(request, rn_pb_serving_SessionRunRequest_tensor_name_is_alias_field);
  step->signature = self->spec.signature;
  return RN_ARENA_ARRAY(arena, (size_t)step->fetch_count, &self->results);
}

static rn_status_t write_response(const session_call_t* self, int64_t version,
                                  rn_message_t* message) {
  const rn_tf_session_run_t* step = &self->step;
  rn_encoder_t encoder;
  rn_encoder_open(&encoder, message);
  for (int i = 0; i < step->fetch_count; ++i)
    rn_encode_named_tensor(&encoder, rn_pb_serving_SessionRunResponse_tensor_field,
                           step->fetch_names[i], &self->results[i], RN_TENSOR_TYPED);
  rn_rpc_spec_write(&encoder.head, rn_pb_serving_SessionRunResponse_model_spec_field,
                    self->spec.model.name, version, step->has_aliases ? &step->signature : NULL);
  return rn_encoder_close(&encoder);
}

static rn_status_t run_step(rn_front_t* front, rn_rpc_in_t* call, session_call_t* self,
                            rn_message_t* out) {
  rn_version_t* version = NULL;
  RN_RETURN_IF_ERROR(rn_models_find(front->models, &self->spec.model, &version));
  rn_step_options_t options = {.timeout_ms = self->timeout_ms > 0 ? self->timeout_ms : 0,
                               .cancel = &call->cancel};
  self->step.options = &options;
  // A session may be run by any number of threads, although the batcher runs one batch at a time.
  rn_backend_t* backend = (rn_backend_t*)rn_version_backend(version);
  rn_status_t status = rn_tf_backend_session_run(backend, &self->step, self->results);
  if (rn_ok(status)) status = write_response(self, rn_version_number(version), out);
  rn_version_release(version);
  return status;
}

static rn_status_t run_session(rn_front_t* front, rn_rpc_in_t* call, rn_message_t* out) {
  session_call_t self = {.timeout_ms = 0};
  rn_arena_t arena;
  rn_arena_init(&arena, front->allocator);
  rn_status_t status = read_request(front, call, &arena, &self);
  if (rn_ok(status)) status = run_step(front, call, &self, out);
  for (int i = 0; i < self.step.feed_count; ++i) rn_tensor_clear(&self.feeds[i]);
  for (int i = 0; self.results && i < self.step.fetch_count; ++i) rn_tensor_clear(&self.results[i]);
  rn_arena_clear(&arena);
  return status;
}

// A step blocks, and there is no limit to how long.
static void session_run(rn_front_t* front, rn_rpc_in_t* call) {
  rn_rpc_run_session(front, call, run_session);
}

static const rn_rpc_method_t methods[] = {{"SessionRun", RN_ROLE_PREDICT, session_run}};

bool rn_session_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  return rn_rpc_dispatch(front, call, role, "/tensorflow.serving.SessionService/", methods, 1);
}
