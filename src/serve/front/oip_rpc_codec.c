// The messages of an inference. See oip_rpc.h.
#include <stdio.h>

#include "net/tensor_codec.h"
#include "proto/oip.pb.h"
#include "serve/front/oip_rpc.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/writer.h"

typedef rn_pb_inference_ModelInferRequest_t oip_request_pb_t;
typedef rn_pb_inference_ModelInferRequest_InferInputTensor_t oip_input_pb_t;
typedef rn_pb_inference_InferTensorContents_t oip_contents_pb_t;

// Reading.

static rn_status_t value_of(rn_str_t key, const rn_pb_inference_InferParameter_t* parameter,
                            rn_oip_value_t* out) {
  *out = (rn_oip_value_t){.kind = RN_OIP_INT};
  switch (parameter->parameter_choice_case) {
    case rn_pb_inference_InferParameter_bool_param_field:
      out->kind = RN_OIP_BOOL;
      out->number = parameter->bool_param;
      return RN_OK;
    case rn_pb_inference_InferParameter_int64_param_field:
      out->number = parameter->int64_param;
      return RN_OK;
    case rn_pb_inference_InferParameter_uint64_param_field:
      out->number = (int64_t)parameter->uint64_param;
      return out->number < 0
                 ? rn_invalid_argument("parameter '%.*s' is too large", RN_STR_ARGS(key))
                 : RN_OK;
    case rn_pb_inference_InferParameter_string_param_field:
      out->kind = RN_OIP_STRING;
      out->text = parameter->string_param;
      return RN_OK;
    default:
      out->kind = RN_OIP_DOUBLE;
      return RN_OK;
  }
}

// Calls |set| with |target| for each parameter of |map|, a map of InferParameter.
#define SET_PARAMETERS(map, set, target)                                              \
  for (uint32_t p = 0; p < (map)->count; ++p) {                                       \
    rn_oip_value_t value;                                                             \
    RN_RETURN_IF_ERROR(value_of((map)->items[p].key, (map)->items[p].value, &value)); \
    RN_RETURN_IF_ERROR(set((target), (map)->items[p].key, &value));                   \
  }

static rn_status_t wrong_count(const rn_oip_input_t* input, uint32_t have, int64_t want) {
  return rn_invalid_argument(
      "unexpected number of elements %u in the typed contents of input '%.*s', expecting %lld",
      (unsigned)have, RN_STR_ARGS(input->name), (long long)want);
}

static rn_status_t copy_strings(const oip_contents_pb_t* contents, rn_tensor_t* out) {
  for (int64_t i = 0; i < out->count; ++i) {
    rn_str_t text = contents->bytes_contents.items[i];
    if (!rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], text.data, text.size))
      return rn_out_of_memory();
  }
  return RN_OK;
}

// Copies |list| to the elements of |out|, of C type |type|; false if one does not fit.
#define COPY(type, list)                                                \
  for (int64_t i = 0; i < out->count; ++i) {                            \
    RN_DATA(out, type)[i] = (type)contents->list.items[i];              \
    if (RN_DATA(out, type)[i] != contents->list.items[i]) return false; \
  }                                                                     \
  return true;
static bool copy_integers(const oip_contents_pb_t* contents, rn_tensor_t* out) {
  switch (out->dtype) {
    case RN_INT8:
      COPY(int8_t, int_contents)
    case RN_INT16:
      COPY(int16_t, int_contents)
    case RN_UINT8:
      COPY(uint8_t, uint_contents)
    default:
      COPY(uint16_t, uint_contents)
  }
}
#undef COPY

// The list of |contents| that holds elements of |dtype|, and whether it holds them as they are in
// memory.
static const rn_pb_list_t* list_of(const oip_contents_pb_t* contents, rn_dtype_t dtype,
                                   bool* out_plain) {
  *out_plain = true;
  switch (dtype) {
    case RN_BOOL:
      return (const rn_pb_list_t*)&contents->bool_contents;
    case RN_INT8:
    case RN_INT16:
      *out_plain = false;
      return (const rn_pb_list_t*)&contents->int_contents;
    case RN_INT32:
      return (const rn_pb_list_t*)&contents->int_contents;
    case RN_UINT8:
    case RN_UINT16:
      *out_plain = false;
      return (const rn_pb_list_t*)&contents->uint_contents;
    case RN_UINT32:
      return (const rn_pb_list_t*)&contents->uint_contents;
    case RN_INT64:
      return (const rn_pb_list_t*)&contents->int64_contents;
    case RN_UINT64:
      return (const rn_pb_list_t*)&contents->uint64_contents;
    case RN_FLOAT:
      return (const rn_pb_list_t*)&contents->fp32_contents;
    case RN_DOUBLE:
      return (const rn_pb_list_t*)&contents->fp64_contents;
    case RN_STRING:
      *out_plain = false;
      return (const rn_pb_list_t*)&contents->bytes_contents;
    default:
      return NULL;
  }
}

static rn_status_t read_typed(rn_oip_infer_t* infer, int i, const oip_contents_pb_t* contents) {
  const rn_oip_input_t* input = &infer->inputs[i];
  static const oip_contents_pb_t empty = {0};
  bool is_plain = false;
  const rn_pb_list_t* list = list_of(contents ? contents : &empty, input->dtype, &is_plain);
  if (!list)
    return rn_invalid_argument("Input '%.*s' of type %s must be in raw_input_contents",
                               RN_STR_ARGS(input->name), rn_oip_type_name(input->dtype));
  int64_t count = 0;
  if (!rn_shape_count(input->shape, &count) || count != (int64_t)list->count)
    return wrong_count(input, list->count, count);
  rn_tensor_t* out = &infer->predict.inputs[i].value;
  RN_RETURN_IF_ERROR(rn_tensor_create(infer->front->allocator, input->dtype, input->shape, out));
  if (is_plain && count) memcpy(out->data, list->items, rn_tensor_bytes(out));
  if (input->dtype == RN_STRING) return copy_strings(contents ? contents : &empty, out);
  if (!is_plain && count && !copy_integers(contents, out))
    return rn_invalid_argument("Input '%.*s' has elements out of the range of %s",
                               RN_STR_ARGS(input->name), rn_oip_type_name(input->dtype));
  return RN_OK;
}

// Reads input |i|; |*inout_raw| counts the raw contents that inputs before it took.
static rn_status_t read_input(rn_oip_infer_t* infer, int i, const oip_request_pb_t* request,
                              rn_buffer_t* buffer, uint32_t* inout_raw) {
  const oip_input_pb_t* from = &request->inputs.items[i];
  rn_oip_input_t* input = NULL;
  RN_RETURN_IF_ERROR(rn_oip_add_input(infer, &input));
  input->name = from->name;
  input->dtype = rn_oip_type_parse(from->datatype);
  input->shape = (rn_shape_t){(int32_t)from->shape.count, from->shape.items};
  SET_PARAMETERS(&from->parameters, rn_oip_input_set, input)
  RN_RETURN_IF_ERROR(rn_oip_input_check(infer, input));
  bool is_raw = request->raw_input_contents.count > 0;
  if (from->contents && (is_raw || input->place.region.size))
    return rn_invalid_argument(
        "contents field must not be specified when using raw_input_contents or shared memory for "
        "'%.*s'",
        RN_STR_ARGS(input->name));
  if (input->place.region.size) return rn_oip_input_shared(infer, i);
  if (!is_raw) return read_typed(infer, i, from->contents);
  if (*inout_raw == request->raw_input_contents.count)
    return rn_invalid_argument("expected raw_input_contents for input '%.*s', but it has %u only",
                               RN_STR_ARGS(input->name), (unsigned)*inout_raw);
  return rn_oip_input_raw(infer, i, request->raw_input_contents.items[(*inout_raw)++], buffer);
}

rn_status_t rn_oip_rpc_read(rn_oip_infer_t* infer, const rn_message_t* message) {
  oip_request_pb_t* request = NULL;
  rn_buffer_t* buffer = message->pieces.count ? message->pieces.items[0].buffer : NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(inference_ModelInferRequest, rn_message_view(message), NULL,
                                  &infer->arena, &request));
  infer->id = request->id;  // first, for the answers of streams
  infer->model = request->model_name;
  infer->version = request->model_version;
  SET_PARAMETERS(&request->parameters, rn_oip_infer_set, infer)
  for (uint32_t i = 0; i < request->outputs.count; ++i) {
    rn_oip_output_t* output = NULL;
    RN_RETURN_IF_ERROR(rn_oip_add_output(infer, &output));
    output->name = request->outputs.items[i].name;
    SET_PARAMETERS(&request->outputs.items[i].parameters, rn_oip_output_set, output)
  }
  uint32_t raw = 0;
  for (uint32_t i = 0; i < request->inputs.count; ++i)
    RN_RETURN_IF_ERROR(read_input(infer, (int)i, request, buffer, &raw));
  if (raw != request->raw_input_contents.count)
    return rn_invalid_argument("expected %u raw_input_contents, got %u", (unsigned)raw,
                               (unsigned)request->raw_input_contents.count);
  return RN_OK;
}

// Writing.

// Adds a parameter to the map in field |number|; one of |text| and |flag| is its value.
static void put_parameter(rn_strbuf_t* out, uint32_t number, rn_str_t key, rn_str_t text,
                          int64_t amount, uint32_t kind) {
  size_t entry = rn_pb_begin(out, number);
  rn_pb_put_str(out, 1, key);
  size_t value = rn_pb_begin(out, 2);
  if (kind == rn_pb_inference_InferParameter_string_param_field)
    rn_pb_put_str(out, kind, text);
  else
    rn_pb_put_uint(out, kind, (uint64_t)amount);
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
}
#define PUT_TEXT(out, number, key, text)                 \
  put_parameter((out), (number), RN_STR(key), (text), 0, \
                rn_pb_inference_InferParameter_string_param_field)
#define PUT_NUMBER(out, number, key, amount)                        \
  put_parameter((out), (number), RN_STR(key), RN_STR(""), (amount), \
                rn_pb_inference_InferParameter_int64_param_field)

static void put_output(rn_strbuf_t* out, const rn_oip_infer_t* infer,
                       const rn_predict_value_t* output) {
  const rn_tensor_t* value = &output->value;
  const rn_oip_output_t* want = rn_oip_output_of(infer, output->name);
  const uint32_t parameters = rn_pb_inference_ModelInferResponse_InferOutputTensor_parameters_field;
  size_t message = rn_pb_begin(out, rn_pb_inference_ModelInferResponse_outputs_field);
  rn_pb_put_str(out, rn_pb_inference_ModelInferResponse_InferOutputTensor_name_field, output->name);
  rn_pb_put_str(out, rn_pb_inference_ModelInferResponse_InferOutputTensor_datatype_field,
                rn_str(rn_oip_type_name(value->dtype)));
  size_t shape = rn_pb_begin(out, rn_pb_inference_ModelInferResponse_InferOutputTensor_shape_field);
  for (int i = 0; i < value->rank; ++i) rn_pb_put_varint(out, (uint64_t)rn_tensor_dim(value, i));
  rn_pb_end(out, shape);
  size_t size = 0;
  if (want && want->place.region.size && rn_oip_raw_size(value, &size)) {
    PUT_TEXT(out, parameters, "shared_memory_region", want->place.region);
    PUT_NUMBER(out, parameters, "shared_memory_byte_size", (int64_t)size);
    if (want->place.offset)
      PUT_NUMBER(out, parameters, "shared_memory_offset", (int64_t)want->place.offset);
  }
  rn_pb_end(out, message);
}

// One bytes field per output, in their order; empty for those in shared memory.
static void put_raw(rn_encoder_t* encoder, const rn_oip_infer_t* infer,
                    const rn_predict_value_t* output) {
  const uint32_t number = rn_pb_inference_ModelInferResponse_raw_output_contents_field;
  const rn_oip_output_t* want = rn_oip_output_of(infer, output->name);
  if (want && want->place.region.size) {
    rn_pb_put_str(&encoder->head, number, RN_STR(""));
  } else if (output->value.dtype == RN_STRING) {
    size_t field = rn_pb_begin(&encoder->head, number);
    rn_oip_raw_strings(&output->value, &encoder->head);
    rn_pb_end(&encoder->head, field);
  } else {
    rn_encode_bytes(encoder, number, &output->value);
  }
}

rn_status_t rn_oip_rpc_write(const rn_oip_infer_t* infer, bool is_stream, rn_message_t* out) {
  const rn_predict_t* predict = &infer->predict;
  const uint32_t parameters = rn_pb_inference_ModelInferResponse_parameters_field;
  for (int i = 0; i < predict->output_count; ++i) {
    size_t size;
    if (!rn_oip_type_name(predict->outputs[i].value.dtype) ||
        !rn_oip_raw_size(&predict->outputs[i].value, &size))
      return rn_unimplemented("Output '%.*s' of type %s is not in the protocol",
                              RN_STR_ARGS(predict->outputs[i].name),
                              rn_dtype_name(predict->outputs[i].value.dtype));
  }
  rn_encoder_t encoder;
  rn_encoder_open(&encoder, out);
  rn_strbuf_t* head = &encoder.head;
  char text[32];
  rn_pb_put_str(head, rn_pb_inference_ModelInferResponse_model_name_field, infer->model);
  int length = snprintf(text, sizeof text, "%lld", (long long)infer->number);
  rn_pb_put_str(head, rn_pb_inference_ModelInferResponse_model_version_field,
                rn_str_n(text, (size_t)length));
  if (infer->id.size) rn_pb_put_str(head, rn_pb_inference_ModelInferResponse_id_field, infer->id);
  if (predict->marks)
    PUT_TEXT(head, parameters, "runnel_marks", rn_str(rn_front_marks(predict->marks, text)));
  if (is_stream)
    put_parameter(head, parameters, RN_STR("triton_final_response"), RN_STR(""), 1,
                  rn_pb_inference_InferParameter_bool_param_field);
  for (int i = 0; i < predict->output_count; ++i) put_output(head, infer, &predict->outputs[i]);
  for (int i = 0; i < predict->output_count; ++i) put_raw(&encoder, infer, &predict->outputs[i]);
  return rn_encoder_close(&encoder);
}
