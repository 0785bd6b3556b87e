// See load_payload.h.
#include "cli/load_payload.h"

#include <jansson.h>

#include "cli/value.h"
#include "net/tensor_codec.h"
#include "proto/oip.pb.h"
#include "proto/prediction_log.pb.h"
#include "serve/front/json.h"
#include "serve/front/oip.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define MAX_TENSOR ((size_t)1 << 30)  // bytes, of a logged input

void rn_load_inputs_clear(rn_load_inputs_t* inputs) {
  for (int i = 0; i < inputs->count; ++i) rn_tensor_clear(&inputs->items[i].value);
  inputs->count = 0;
}

rn_status_t rn_load_inputs_given(const rn_cli_t* cli, rn_arena_t* arena, rn_load_inputs_t* out) {
  size_t at = 0, count = 0;
  while (rn_cli_each(cli, "--input", &at)) ++count;
  *out = (rn_load_inputs_t){0};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->items));
  at = 0;
  for (const char* text; (text = rn_cli_each(cli, "--input", &at));) {
    rn_load_input_t* input = &out->items[out->count];
    rn_str_t value;
    RN_RETURN_IF_ERROR(rn_cli_split(cli, "--input", rn_str(text), &input->name, &value));
    RN_RETURN_IF_ERROR(rn_cli_value(cli, value, RN_INVALID, &input->value));
    out->count++;
  }
  return RN_OK;
}

static uint64_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static void fill(rn_tensor_t* tensor, uint64_t* state) {
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint64_t random = next_random(state);
    double number = (double)random / 2147483648.0;
    switch (tensor->dtype) {
      case RN_FLOAT:
        ((float*)tensor->data)[i] = (float)number;
        break;
      case RN_DOUBLE:
        ((double*)tensor->data)[i] = number;
        break;
      case RN_INT32:
        ((int32_t*)tensor->data)[i] = (int32_t)(random % 10);
        break;
      case RN_INT64:
        ((int64_t*)tensor->data)[i] = (int64_t)(random % 10);
        break;
      default:
        break;  // zeros, and empty strings
    }
  }
}

static rn_status_t random_input(const json_t* info, int64_t rows, uint64_t* state,
                                rn_allocator_t allocator, rn_tensor_t* out) {
  const char* type = json_string_value(json_object_get(info, "dtype"));
  rn_dtype_t dtype =
      type && strncmp(type, "DT_", 3) == 0 ? rn_dtype_parse(rn_str(type)) : RN_INVALID;
  if (dtype == RN_INVALID) return rn_invalid_argument("the model has an input of type %s", type);
  const json_t* shape = json_object_get(json_object_get(info, "tensor_shape"), "dim");
  int64_t dims[RN_MAX_RANK];
  size_t rank = json_array_size(shape);
  if (rank > RN_MAX_RANK) return rn_invalid_argument("the model has an input of rank %zu", rank);
  for (size_t i = 0; i < rank; ++i) {
    const char* size = json_string_value(json_object_get(json_array_get(shape, i), "size"));
    if (!size || !rn_str_to_i64(rn_str(size), &dims[i]) || dims[i] < 0) dims[i] = rows;
  }
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, dtype, (rn_shape_t){(int32_t)rank, dims}, out));
  if (dtype != RN_STRING) memset(out->data, 0, rn_tensor_bytes(out));
  fill(out, state);
  return RN_OK;
}

rn_status_t rn_load_inputs_random(const rn_load_model_t* model, rn_str_t metadata, int64_t rows,
                                  uint64_t seed, rn_arena_t* arena, rn_allocator_t allocator,
                                  rn_load_inputs_t* out) {
  *out = (rn_load_inputs_t){0};
  const char* signature = model->signature ? model->signature : "serving_default";
  json_t* root = json_loadb(metadata.data, metadata.size, 0, NULL);
  json_t* map = json_object_get(
      json_object_get(json_object_get(json_object_get(root, "metadata"), "signature_def"),
                      "signature_def"),
      signature);
  json_t* inputs = json_object_get(map, "inputs");
  rn_status_t status = inputs ? RN_ARENA_ARRAY(arena, json_object_size(inputs), &out->items)
                              : rn_not_found("the model has no signature '%s'", signature);
  const char* name;
  json_t* info;
  if (rn_ok(status)) {
    json_object_foreach(inputs, name, info) {
      if (!rn_ok(status)) break;
      rn_load_input_t* input = &out->items[out->count];
      status = rn_arena_str(arena, rn_str(name), &input->name);
      if (rn_ok(status)) status = random_input(info, rows, &seed, allocator, &input->value);
      if (rn_ok(status)) out->count++;
    }
  }
  json_decref(root);
  return status;
}

rn_status_t rn_load_inputs_logged(rn_str_t record, rn_arena_t* arena, rn_allocator_t allocator,
                                  rn_load_inputs_t* out) {
  *out = (rn_load_inputs_t){0};
  rn_str_t log = rn_field_bytes(record, rn_pb_serving_PredictionLog_predict_log_field);
  rn_str_t request = rn_field_bytes(log, rn_pb_serving_PredictLog_request_field);
  if (!request.size) return rn_not_found("the record is no Predict request");
  rn_pb_serving_PredictRequest_t* message = NULL;
  RN_RETURN_IF_ERROR(
      rn_pb_decode(&rn_pb_serving_PredictRequest_desc, request, NULL, arena, (void**)&message));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, message->inputs.count, &out->items));
  for (uint32_t i = 0; i < message->inputs.count; ++i) {
    rn_load_input_t* input = &out->items[i];
    input->name = message->inputs.items[i].key;
    RN_RETURN_IF_ERROR(
        rn_tensor_from_proto(message->inputs.items[i].value, MAX_TENSOR, allocator, &input->value));
    out->count++;
  }
  return RN_OK;
}

static rn_status_t print_rest(const rn_load_model_t* model, const rn_load_inputs_t* inputs,
                              rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("{"));
  if (model->signature) {
    rn_strbuf_append(out, RN_STR("\"signature_name\": "));
    rn_json_put_string(out, rn_str(model->signature));
    rn_strbuf_append(out, RN_STR(", "));
  }
  rn_strbuf_append(out, RN_STR("\"inputs\": {"));
  for (int i = 0; i < inputs->count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(", "));
    rn_json_put_string(out, inputs->items[i].name);
    rn_strbuf_append(out, RN_STR(": "));
    RN_RETURN_IF_ERROR(rn_json_put_tensor(out, &inputs->items[i].value, true));
  }
  rn_strbuf_append(out, RN_STR("}}"));
  return RN_OK;
}

static rn_status_t oip_type(const rn_load_input_t* input, const char** out) {
  *out = rn_oip_type_name(input->value.dtype);
  if (*out) return RN_OK;
  return rn_invalid_argument("%.*s has a type that the Open Inference Protocol lacks",
                             RN_STR_ARGS(input->name));
}

static rn_status_t print_oip(const rn_load_inputs_t* inputs, rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("{\"inputs\": ["));
  for (int i = 0; i < inputs->count; ++i) {
    const rn_load_input_t* input = &inputs->items[i];
    const char* type;
    RN_RETURN_IF_ERROR(oip_type(input, &type));
    rn_strbuf_printf(out, "%s{\"name\": ", i ? ", " : "");
    rn_json_put_string(out, input->name);
    rn_strbuf_printf(out, ", \"datatype\": \"%s\", \"shape\": [", type);
    for (int d = 0; d < input->value.rank; ++d)
      rn_strbuf_printf(out, "%s%lld", d ? ", " : "", (long long)rn_tensor_dim(&input->value, d));
    rn_strbuf_append(out, RN_STR("], \"data\": "));
    RN_RETURN_IF_ERROR(rn_json_put_flat(out, &input->value, false));
    rn_strbuf_append(out, RN_STR("}"));
  }
  rn_strbuf_append(out, RN_STR("]}"));
  return RN_OK;
}

// The raw bytes of a tensor in the Open Inference Protocol: strings have a length before them.
static void put_raw(const rn_tensor_t* tensor, rn_strbuf_t* out) {
  if (tensor->dtype != RN_STRING) {
    rn_pb_put_str(out, rn_pb_inference_ModelInferRequest_raw_input_contents_field,
                  rn_str_n(tensor->data, rn_tensor_bytes(tensor)));
    return;
  }
  size_t mark = rn_pb_begin(out, rn_pb_inference_ModelInferRequest_raw_input_contents_field);
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view((const rn_tstring_t*)tensor->data + i);
    uint32_t size = (uint32_t)text.size;
    rn_strbuf_append_n(out, &size, sizeof size);
    rn_strbuf_append(out, text);
  }
  rn_pb_end(out, mark);
}

static rn_status_t print_oip_grpc(const rn_load_model_t* model, const rn_load_inputs_t* inputs,
                                  rn_strbuf_t* out) {
  rn_pb_put_str(out, rn_pb_inference_ModelInferRequest_model_name_field, rn_str(model->model));
  for (int i = 0; i < inputs->count; ++i) {
    const rn_load_input_t* input = &inputs->items[i];
    const char* type;
    RN_RETURN_IF_ERROR(oip_type(input, &type));
    size_t mark = rn_pb_begin(out, rn_pb_inference_ModelInferRequest_inputs_field);
    rn_pb_put_str(out, rn_pb_inference_ModelInferRequest_InferInputTensor_name_field, input->name);
    rn_pb_put_str(out, rn_pb_inference_ModelInferRequest_InferInputTensor_datatype_field,
                  rn_str(type));
    for (int d = 0; d < input->value.rank; ++d)
      rn_pb_put_uint(out, rn_pb_inference_ModelInferRequest_InferInputTensor_shape_field,
                     (uint64_t)rn_tensor_dim(&input->value, d));
    rn_pb_end(out, mark);
  }
  for (int i = 0; i < inputs->count; ++i) put_raw(&inputs->items[i].value, out);
  return rn_strbuf_status(out);
}

static rn_status_t print_grpc(const rn_load_model_t* model, const rn_load_inputs_t* inputs,
                              rn_strbuf_t* out) {
  size_t mark = rn_pb_begin(out, rn_pb_serving_PredictRequest_model_spec_field);
  rn_pb_put_str(out, rn_pb_serving_ModelSpec_name_field, rn_str(model->model));
  if (model->signature)
    rn_pb_put_str(out, rn_pb_serving_ModelSpec_signature_name_field, rn_str(model->signature));
  rn_pb_end(out, mark);
  rn_message_t message;
  rn_message_init(&message, out->allocator);
  rn_encoder_t encoder;
  rn_encoder_open(&encoder, &message);
  for (int i = 0; i < inputs->count; ++i)
    rn_encode_named_tensor(&encoder, rn_pb_serving_PredictRequest_inputs_field,
                           inputs->items[i].name, &inputs->items[i].value, RN_TENSOR_CONTENT);
  rn_status_t status = rn_encoder_close(&encoder);
  rn_message_flatten(&message, out);
  return status;
}

// {"input": [...]}: the first row of the first input.
static rn_status_t print_clipper(const rn_load_inputs_t* inputs, rn_strbuf_t* out) {
  if (inputs->count != 1)
    return rn_invalid_argument("an application has one input, not %d", inputs->count);
  rn_strbuf_append(out, RN_STR("{\"input\": "));
  RN_RETURN_IF_ERROR(rn_json_put_flat(out, &inputs->items[0].value, false));
  rn_strbuf_append(out, RN_STR("}"));
  return RN_OK;
}

rn_status_t rn_load_print(const rn_load_model_t* model, rn_load_protocol_t protocol,
                          const rn_load_inputs_t* inputs, rn_strbuf_t* out) {
  rn_status_t status = RN_OK;
  switch (protocol) {
    case RN_LOAD_REST:
      status = print_rest(model, inputs, out);
      break;
    case RN_LOAD_GRPC:
      status = print_grpc(model, inputs, out);
      break;
    case RN_LOAD_OIP:
      status = print_oip(inputs, out);
      break;
    case RN_LOAD_OIP_GRPC:
      status = print_oip_grpc(model, inputs, out);
      break;
    case RN_LOAD_CLIPPER:
      status = print_clipper(inputs, out);
      break;
  }
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

void rn_load_path(const rn_load_model_t* model, rn_load_protocol_t protocol, rn_strbuf_t* out) {
  switch (protocol) {
    case RN_LOAD_REST:
      rn_strbuf_printf(out, "/v1/models/%s:predict", model->model);
      break;
    case RN_LOAD_GRPC:
      rn_strbuf_append(out, RN_STR("/tensorflow.serving.PredictionService/Predict"));
      break;
    case RN_LOAD_OIP:
      rn_strbuf_printf(out, "/v2/models/%s/infer", model->model);
      break;
    case RN_LOAD_OIP_GRPC:
      rn_strbuf_append(out, RN_STR("/inference.GRPCInferenceService/ModelInfer"));
      break;
    case RN_LOAD_CLIPPER:
      rn_strbuf_printf(out, "/%s/predict", model->model);
      break;
  }
}
