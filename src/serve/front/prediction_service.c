// PredictionService: Predict and GetModelMetadata here; the calls over examples are in
// classify_rpc.c.
//
// A PredictRequest is not decoded into a message: its fields are scanned, large tensors stay in the
// received buffer, and large outputs are sent from their own.
#include "net/tensor_codec.h"
#include "proto/prediction_log.pb.h"
#include "proto/serving_metadata.pb.h"
#include "proto/serving_predict.pb.h"
#include "serve/front/classify_rpc.h"
#include "serve/front/request_trace.h"
#include "serve/front/rpc.h"
#include "wire/scan.h"
#include "wire/writer.h"

// More inputs or filters than any signature has. Both bound what one request may cost.
#define MAX_INPUTS 1024
#define MAX_FILTERS 1024

// A Predict call under way: one block with its arrays.
typedef struct predict_call_t {
  rn_predict_t predict;  // first
  const rn_front_t* front;
  rn_rpc_in_t* call;
  rn_version_t* version;  // Retained
  rn_rpc_spec_t spec;
  size_t size;  // of the block
  rn_predict_value_t inputs[];
} predict_call_t;

static void count_fields(rn_str_t request, size_t* out_inputs, size_t* out_filters) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  *out_inputs = *out_filters = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    *out_inputs += field.number == rn_pb_serving_PredictRequest_inputs_field;
    *out_filters += field.number == rn_pb_serving_PredictRequest_output_filter_field;
  }
}

static rn_status_t call_create(const rn_front_t* front, rn_rpc_in_t* call, predict_call_t** out) {
  size_t inputs, filters;
  count_fields(rn_rpc_request(call), &inputs, &filters);
  if (inputs > MAX_INPUTS || filters > MAX_FILTERS)
    return rn_invalid_argument("A request may have %d inputs and %d outputs at most", MAX_INPUTS,
                               MAX_FILTERS);
  size_t size = sizeof **out + inputs * sizeof *(*out)->inputs + filters * sizeof(rn_str_t);
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(front->allocator, size, (void**)out));
  (*out)->front = front;
  (*out)->call = call;
  (*out)->size = size;
  (*out)->predict.inputs = (*out)->inputs;
  (*out)->predict.filter = (const rn_str_t*)((*out)->inputs + inputs);
  return RN_OK;
}

static void call_destroy(predict_call_t* self) {
  rn_predict_clear(&self->predict);
  rn_version_release(self->version);
  rn_free(self->front->allocator, self, self->size);
}

// One entry of the map of inputs; of entries with the same key, the last one counts.
static rn_status_t read_input(predict_call_t* self, rn_str_t entry) {
  rn_predict_t* predict = &self->predict;
  rn_pb_scan_t scan = rn_pb_scan(entry);
  rn_pb_field_t field;
  rn_str_t name = RN_STR(""), bytes = RN_STR("");
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_serving_PredictRequest_InputsEntry_key_field) name = field.bytes;
    if (field.number == rn_pb_serving_PredictRequest_InputsEntry_value_field) bytes = field.bytes;
  }
  if (scan.is_bad) return rn_invalid_argument("Malformed PredictRequest");
  rn_predict_value_t* input = NULL;
  for (int i = 0; i < predict->input_count && !input; ++i)
    if (rn_str_eq(self->inputs[i].name, name)) input = &self->inputs[i];
  if (!input) input = &self->inputs[predict->input_count++];
  input->name = name;
  rn_tensor_clear(&input->value);
  rn_status_t status = rn_rpc_tensor(self->front, self->call, bytes, &input->value);
  if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
  rn_status_free(status);
  return rn_invalid_argument("tensor parsing error: %.*s", RN_STR_ARGS(name));
}

static rn_status_t read_request(predict_call_t* self) {
  rn_str_t request = rn_rpc_request(self->call);
  rn_predict_t* predict = &self->predict;
  RN_RETURN_IF_ERROR(
      rn_rpc_spec_read(request, rn_pb_serving_PredictRequest_model_spec_field, &self->spec));
  RN_RETURN_IF_ERROR(rn_models_find(self->front->models, &self->spec.model, &self->version));
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  rn_str_t* filters = (rn_str_t*)predict->filter;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    if (field.number == rn_pb_serving_PredictRequest_inputs_field)
      RN_RETURN_IF_ERROR(read_input(self, field.bytes));
    else if (field.number == rn_pb_serving_PredictRequest_output_filter_field)
      filters[predict->filter_count++] = field.bytes;
  }
  return RN_OK;
}

static rn_status_t write_response(const predict_call_t* self, rn_message_t* message) {
  const rn_predict_t* predict = &self->predict;
  rn_encoder_t encoder;
  rn_encoder_open(&encoder, message);
  for (int i = 0; i < predict->output_count; ++i)
    rn_encode_named_tensor(&encoder, rn_pb_serving_PredictResponse_outputs_field,
                           predict->outputs[i].name, &predict->outputs[i].value, RN_TENSOR_TYPED);
  rn_rpc_spec_write(&encoder.head, rn_pb_serving_PredictResponse_model_spec_field,
                    self->spec.model.name, rn_version_number(self->version), &self->spec.signature);
  return rn_encoder_close(&encoder);
}

static void finish(predict_call_t* self, rn_status_t status) {
  const rn_front_t* front = self->front;
  // Names that clients made up are counted together.
  rn_str_t model = self->version ? self->spec.model.name : RN_STR("");
  rn_rpc_in_t* call = self->call;
  rn_message_t message;
  rn_message_init(&message, front->allocator);
  if (rn_ok(status)) status = write_response(self, &message);
  status = rn_rpc_end_predict(front, call, &self->predict, status);
  rn_front_count(front, model, "Predict", "GRPC", rn_status_code(status), &self->predict.times);
  rn_request_trace_version(front->trace, self->version, true, &self->predict.times);
  if (rn_ok(status)) {
    rn_front_count_answer(front, model, self->predict.rows, self->predict.marks);
    rn_rpc_log(front, call, model, rn_pb_serving_PredictionLog_predict_log_field, &message);
  }
  call_destroy(self);
  rn_rpc_reply(call, status, &message);
}

static void on_predicted(rn_predict_t* predict, rn_status_t status) {
  finish((predict_call_t*)predict, status);
}

static void predict(rn_front_t* front, rn_rpc_in_t* call) {
  predict_call_t* self = NULL;
  rn_status_t status = call_create(front, call, &self);
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  rn_rpc_begin_predict(front, call, &self->predict);
  self->predict.done = on_predicted;
  status = read_request(self);
  if (!rn_ok(status)) {
    finish(self, status);
    return;
  }
  self->predict.signature = self->spec.signature;
  rn_version_predict(self->version, &self->predict);
}

// GetModelMetadata.

static rn_status_t check_fields(rn_str_t request) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  rn_pb_field_t field;
  int count = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_serving_GetModelMetadataRequest_metadata_field_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    if (!rn_str_is(field.bytes, "signature_def"))
      return rn_invalid_argument("Metadata field %.*s is not supported", RN_STR_ARGS(field.bytes));
    count++;
  }
  if (count) return RN_OK;
  return rn_invalid_argument("GetModelMetadataRequest must specify at least one metadata_field");
}

static void put_metadata(rn_strbuf_t* out, const rn_rpc_spec_t* spec, const rn_version_t* version) {
  rn_rpc_spec_write(out, rn_pb_serving_GetModelMetadataResponse_model_spec_field, spec->model.name,
                    rn_version_number(version), NULL);
  size_t entry = rn_pb_begin(out, rn_pb_serving_GetModelMetadataResponse_metadata_field);
  rn_pb_put_str(out, rn_pb_serving_GetModelMetadataResponse_MetadataEntry_key_field,
                RN_STR("signature_def"));
  size_t any = rn_pb_begin(out, rn_pb_serving_GetModelMetadataResponse_MetadataEntry_value_field);
  rn_pb_put_str(out, rn_pb_google_protobuf_Any_type_url_field,
                RN_STR("type.googleapis.com/tensorflow.serving.SignatureDefMap"));
  rn_str_t map = rn_version_backend(version)->meta;
  if (map.size) rn_pb_put_str(out, rn_pb_google_protobuf_Any_value_field, map);
  rn_pb_end(out, any);
  rn_pb_end(out, entry);
}

static void get_model_metadata(rn_front_t* front, rn_rpc_in_t* call) {
  rn_str_t request = rn_rpc_request(call);
  rn_rpc_spec_t spec;
  rn_version_t* version = NULL;
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_status_t status =
      rn_rpc_spec_read(request, rn_pb_serving_GetModelMetadataRequest_model_spec_field, &spec);
  if (rn_ok(status)) status = check_fields(request);
  if (rn_ok(status)) status = rn_models_find(front->models, &spec.model, &version);
  if (rn_ok(status)) put_metadata(&body, &spec, version);
  rn_version_release(version);
  rn_rpc_finish(front, call, status, &body);
}

static const rn_rpc_method_t methods[] = {
    {"Predict", RN_ROLE_PREDICT, predict},
    {"Classify", RN_ROLE_PREDICT, rn_classify_rpc},
    {"Regress", RN_ROLE_PREDICT, rn_regress_rpc},
    {"MultiInference", RN_ROLE_PREDICT, rn_multi_inference_rpc},
    {"GetModelMetadata", RN_ROLE_READ, get_model_metadata},
};

bool rn_prediction_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  return rn_rpc_dispatch(front, call, role, "/tensorflow.serving.PredictionService/", methods,
                         sizeof methods / sizeof *methods);
}
